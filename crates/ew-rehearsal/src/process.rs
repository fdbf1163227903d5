//! An agent's process: the real agent, driven as on a real host, with the lies of a bad one.

use crate::faults::Fault;
use crate::link;
use crate::machine::SimulatedMachine;
use crate::world::{End, World};
use ew_agent::{Agent, Input};
use ew_fleet::InProcessLink;
use ew_model::inventory::HostId;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Of both sides.
pub(crate) const BUILD: &str = "rehearsal";
/// Frames that may wait for a slow link, as a real agent's.
const MAX_QUEUED_WRITES: usize = 4096;
/// How long the last words may take, as a real agent's.
const FAREWELL_LIMIT: Duration = Duration::from_millis(500);
/// Longest sleep of the loop.
const IDLE_NS: u64 = 1_000_000_000;

/// Starts the host's agent; its process ends by itself, or is killed.
pub(crate) fn start(world: &Arc<World>, host: HostId) -> InProcessLink {
    let (ours, theirs) = link::connect(world, host);
    let began_ns = world.now_ns();
    let process = Process::new(world, host, theirs);
    let living = tokio::spawn(process.live());
    let world = Arc::clone(world);
    tokio::spawn(async move {
        until_killed(&world, host, began_ns).await;
        living.abort();
    });
    ours
}

/// Until somebody ends the process that began at this time.
async fn until_killed(world: &World, host: HostId, began_ns: u64) {
    let kills = world.faults(host).iter().filter_map(|fault| match *fault {
        Fault::Dies { at_ns } | Fault::LosesPower { at_ns } if at_ns >= began_ns => Some(at_ns),
        _ => None,
    });
    match kills.min() {
        Some(at_ns) => world.sleep_until(at_ns).await,
        None => pending().await,
    }
}

/// The same frame, so many times.
struct Frames {
    frame: Vec<u8>,
    times: usize,
}

struct Process {
    world: Arc<World>,
    host: HostId,
    agent: Agent<SimulatedMachine>,
    inputs: mpsc::UnboundedReceiver<Input>,
    reader: ReadHalf<DuplexStream>,
    frames: mpsc::Sender<Frames>,
    writing: JoinHandle<()>,
    began_ns: u64,
    heard_ns: u64,
    /// Those that are still to come.
    lies: Vec<Fault>,
}

impl Process {
    fn new(world: &Arc<World>, host: HostId, link: DuplexStream) -> Self {
        let (inbox, inputs) = mpsc::unbounded_channel();
        let machine = SimulatedMachine::new(world, host, inbox);
        let (reader, writer) = split(link);
        let (frames, queue) = mpsc::channel(MAX_QUEUED_WRITES);
        let now_ns = world.now_ns();
        let lies = world.faults(host).iter().filter(|fault| match **fault {
            Fault::Repeats { at_ns } | Fault::Garbles { at_ns } | Fault::Floods { at_ns, .. } => {
                at_ns >= now_ns
            }
            _ => false,
        });
        Self {
            agent: Agent::new(BUILD, world.agent_ns(host), machine),
            world: Arc::clone(world),
            host,
            inputs,
            reader,
            frames,
            writing: tokio::spawn(write_all(queue, writer)),
            began_ns: now_ns,
            heard_ns: now_ns,
            lies: lies.copied().collect(),
        }
    }

    async fn live(mut self) {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            self.transmit();
            if self.agent.ending().is_some() {
                return self.end().await;
            }
            self.world.awake(self.host).await;
            let wait = self.time_to_wait();
            tokio::select! {
                biased;
                read = self.reader.read(&mut buffer) => self.on_read(&buffer[..read.unwrap_or(0)]),
                Some(input) = self.inputs.recv() => self.on_input(input),
                () = sleep(wait) => {
                    let now_ns = self.world.agent_ns(self.host);
                    self.agent.handle_timeout(now_ns);
                }
            }
        }
    }

    /// Nothing: the link is gone, either way.
    fn on_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return self.agent.handle(Input::LinkClosed);
        }
        self.heard_ns = self.world.now_ns();
        self.agent.handle(Input::Bytes {
            bytes: bytes.to_vec(),
            read_ns: self.world.agent_ns(self.host),
        });
    }

    fn on_input(&mut self, input: Input) {
        let now_ns = self.world.now_ns();
        let forgets = |fault: &Fault| matches!(fault, Fault::Forgets { at_ns } if now_ns >= *at_ns);
        let is_report = matches!(input, Input::RoundDone(_));
        if !(is_report && self.world.faults(self.host).iter().any(forgets)) {
            self.agent.handle(input);
        }
    }

    fn time_to_wait(&self) -> Duration {
        let now_ns = self.world.agent_ns(self.host);
        let due_ns = self.agent.poll_timeout().unwrap_or(now_ns + IDLE_NS);
        Duration::from_nanos(due_ns.saturating_sub(now_ns).min(IDLE_NS))
    }

    fn transmit(&mut self) {
        while let Some(frame) = self.agent.poll_transmit() {
            let frames = self.with_lies(frame);
            if self.frames.try_send(frames).is_err() {
                self.agent
                    .lose("the control link does not take what the agent writes");
            }
        }
    }

    /// Not of the greeting, without which there is no agent.
    fn with_lies(&mut self, mut frame: Vec<u8>) -> Frames {
        let mut times = 1;
        let now_ns = self.world.now_ns();
        let is_due = |fault: &mut Fault| match *fault {
            Fault::Repeats { at_ns } | Fault::Garbles { at_ns } | Fault::Floods { at_ns, .. } => {
                now_ns >= at_ns && now_ns > self.began_ns
            }
            _ => false,
        };
        for lie in self.lies.extract_if(.., is_due) {
            match lie {
                Fault::Repeats { .. } => times = 2,
                Fault::Floods { times: often, .. } => times = often,
                _ => frame
                    .iter_mut()
                    .for_each(|byte| *byte = byte.rotate_left(3) ^ 0x5a),
            }
        }
        Frames { frame, times }
    }

    async fn end(mut self) {
        self.world.seen().ends.push(End {
            host: self.host,
            heard_ns: self.heard_ns,
            was_welcome: self.heard_ns > self.began_ns,
            at_ns: self.world.now_ns(),
        });
        self.agent.stop();
        self.transmit();
        drop(self.frames);
        // What a stuck link does not take is lost, as a real agent's.
        let _ = timeout(FAREWELL_LIMIT, self.writing).await;
    }
}

async fn write_all(mut queue: mpsc::Receiver<Frames>, mut link: WriteHalf<DuplexStream>) {
    while let Some(Frames { frame, times }) = queue.recv().await {
        for _ in 0..times {
            if link.write_all(&frame).await.is_err() {
                return;
            }
        }
    }
}
