//! An agent on a real host: plain threads around one inbox, and the engine.

use crate::agent::{Agent, Ending};
use crate::claim::Slot;
use crate::dial::{self, DialBack};
use crate::host::Host;
use crate::inbox::Input;
use crate::limits::Limits;
use crate::link::{self, Writer};
use crate::machine::{HostTotals, Machine};
use crate::offer;
use crate::problem::Problem;
use crate::sampler;
use crate::stage::RunningStage;
use crate::storage::RunningStep;
use crate::syslog;
use ew_engine::{Engine, EngineConfig};
use ew_model::facts::HostFacts;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_proto::Timeline;
use ew_proto::message::{PortCheck, StageOrder, Welcome};
use ew_sys::clock;
use ew_telemetry::OwnConnections;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Inputs that may wait for the loop; then its threads wait, and with the link's reader the
/// controller. The loop waits for none of them.
const MAX_QUEUED_INPUTS: usize = 256;
/// Longest sleep of the loop.
const IDLE_NS: u64 = 1_000_000_000;
/// How long the last words may take.
const FAREWELL_LIMIT: Duration = Duration::from_millis(500);
/// From the end's beginning to the process's end, whatever its threads are at.
const END_LIMIT: Duration = Duration::from_secs(1);
/// How long a storage step that is ended with its agent may take to remove what it has written in
/// part.
const STORAGE_END_LIMIT: Duration = Duration::from_millis(400);
/// How long one connection of a port check may take.
const PORT_CHECK_LIMIT: Duration = Duration::from_secs(2);
/// Variables in which batch systems name the job that a process is part of.
const OWN_JOB: [&str; 4] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];

/// How an agent is started.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Version and build, which must equal the controller's.
    pub build: String,
    /// What [`leave_directory`] returned.
    pub work_dir_free_bytes: Option<u64>,
    /// Dial the controller. `None`: it is at the other end of stdin and stdout.
    pub dial_back: Option<DialBack>,
}

/// Bytes free in the directory of the running executable. With `remove_self`, where a launcher put
/// it there for us, removes it and its private directory: before anything is waited for, or an
/// agent that is killed meanwhile leaves it behind.
#[must_use]
pub fn leave_directory(remove_self: bool) -> Option<u64> {
    let free_bytes = ew_telemetry::free_bytes_beside_executable();
    if remove_self {
        // The launcher's trap removes what cannot be removed here.
        let _ = ew_sys::process::unlink_self();
        // The directory that the launcher started it in is gone.
        let _ = std::env::set_current_dir("/");
    }
    free_bytes
}

/// Serves one controller until it leaves. Stops every flow and child before it returns.
#[must_use]
pub fn run(options: &AgentOptions) -> Ending {
    // Else it would be `exe`: launchers start the agent by a descriptor. Without /proc it stays so.
    let _ = std::fs::write("/proc/self/comm", "eastwest");
    ew_sys::process::raise_open_files_limit();
    let (sender, inbox) = sync_channel(MAX_QUEUED_INPUTS);
    let slot = Slot::hold(&sender);
    let writer = match &options.dial_back {
        None => {
            link::spawn_reader(std::io::stdin(), sender.clone());
            Writer::spawn(std::io::stdout(), sender.clone())
        }
        Some(dial_back) => match dial::dial(dial_back) {
            Ok(dialled) => {
                link::spawn_reader(dialled.reader, sender.clone());
                Writer::spawn(dialled.writer, sender.clone())
            }
            Err(problem) => return Ending::Lost(problem.to_string()),
        },
    };
    let machine = RealMachine::new(sender, slot, options.work_dir_free_bytes);
    let agent = Agent::new(&options.build, clock::monotonic_ns(), machine);
    serve(agent, writer, &inbox)
}

fn serve(mut agent: Agent<RealMachine>, writer: Writer, inbox: &Receiver<Input>) -> Ending {
    loop {
        while let Some(bytes) = agent.poll_transmit() {
            if !writer.send(bytes) {
                agent.lose("the control link does not take what the agent writes");
            }
        }
        if let Some(ending) = agent.ending().cloned() {
            stop(agent, writer, &ending);
            return ending;
        }
        match inbox.recv_timeout(time_to_wait(agent.poll_timeout())) {
            Ok(input) => agent.handle(input),
            Err(RecvTimeoutError::Timeout) => agent.handle_timeout(clock::monotonic_ns()),
            Err(RecvTimeoutError::Disconnected) => agent.lose("the agent's threads ended"),
        }
    }
}

fn time_to_wait(due_ns: Option<u64>) -> Duration {
    let now_ns = clock::monotonic_ns();
    let due_ns = due_ns.unwrap_or(now_ns + IDLE_NS);
    Duration::from_nanos(due_ns.saturating_sub(now_ns).min(IDLE_NS))
}

fn stop(mut agent: Agent<RealMachine>, writer: Writer, ending: &Ending) {
    end_at_the_latest();
    agent.stop();
    if let Some(step) = agent.machine().step.take() {
        step.wait(STORAGE_END_LIMIT);
    }
    if !matches!(ending, Ending::Lost(_)) {
        while let Some(bytes) = agent.poll_transmit() {
            writer.send(bytes);
        }
        writer.drain(FAREWELL_LIMIT);
    }
}

/// The host that this process runs on.
#[derive(Debug)]
struct RealMachine {
    inbox: SyncSender<Input>,
    slot: Slot,
    limits: Limits,
    work_dir_free_bytes: Option<u64>,
    own: OwnConnections,
    /// Once it takes part.
    host: Option<Host>,
    running: Option<RunningStage>,
    step: Option<RunningStep>,
}

impl RealMachine {
    fn new(inbox: SyncSender<Input>, slot: Slot, work_dir_free_bytes: Option<u64>) -> Self {
        Self {
            inbox,
            slot,
            limits: Limits::default(),
            work_dir_free_bytes,
            own: OwnConnections::default(),
            host: None,
            running: None,
            step: None,
        }
    }

    /// What the host's owner allows is over at some time, whatever the controller wants.
    fn end_when_time_is_up(&self) {
        let Some(left) = self.limits.time_left(clock::realtime_ns()) else {
            return;
        };
        let inbox = self.inbox.clone();
        thread::spawn(move || {
            thread::sleep(left);
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::TimeIsUp);
        });
    }

    /// On a thread of its own: tools may be asked for their versions, and meanwhile the controller
    /// wants to hear that the agent lives.
    fn read_facts(&self, welcome: Welcome) {
        let (inbox, work_dir_free_bytes) = (self.inbox.clone(), self.work_dir_free_bytes);
        let slot = self.slot.clone();
        thread::spawn(move || {
            let mut facts = ew_telemetry::facts(Path::new("/"), Some(welcome.address));
            facts.work_dir_free_bytes = work_dir_free_bytes;
            facts.tools = ew_tools::discover(&welcome.tools);
            let own_jobs = OWN_JOB.iter().filter_map(|name| std::env::var(name).ok());
            let own_jobs: Vec<String> = own_jobs.collect();
            facts.other_work = ew_telemetry::other_work(Path::new("/"), &own_jobs);
            facts.in_use_by = (welcome.claim.as_ref())
                .and_then(|own| slot.take(own))
                .map(Box::new);
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::Facts(Box::new((welcome, facts))));
        });
    }
}

impl Machine for RealMachine {
    fn admit(&mut self, welcome: &Welcome) -> Result<(), Problem> {
        self.limits = Limits::read()?.admit(welcome, clock::realtime_ns())?;
        self.end_when_time_is_up();
        Ok(())
    }

    fn prepare(&mut self, mut welcome: Welcome) -> Result<(), Problem> {
        if let Some(network) = &welcome.network {
            welcome.address = ew_telemetry::address_on(network)?;
        }
        let config = EngineConfig {
            address: welcome.address,
            ports: welcome.data_ports,
            token: welcome.token,
            relay_key: welcome.relay_key,
        };
        let engine = Engine::start(config)?;
        if let Some(port) = welcome.offer_iperf3_port {
            offer::start(welcome.address, port)?;
        }
        self.own = OwnConnections::new(welcome.data_ports);
        self.host = Some(Host {
            engine: Arc::new(engine),
            address: welcome.address,
            inbox: self.inbox.clone(),
        });
        self.read_facts(welcome);
        Ok(())
    }

    fn max_bits_per_sec(&self, facts: &HostFacts, address: IpAddr) -> Result<Option<f64>, Problem> {
        self.limits.max_bits_per_sec(facts, address)
    }

    fn data_port(&self) -> u16 {
        self.host.as_ref().map_or(0, |host| host.engine.port())
    }

    fn totals(&self) -> HostTotals {
        let Some(host) = &self.host else {
            return HostTotals::default();
        };
        let totals = host.engine.totals();
        HostTotals {
            tx_bytes: totals.tx_bytes,
            rx_bytes: totals.rx_bytes,
            rejected_connections: totals.rejected_connections,
        }
    }

    fn begin_sampling(&mut self, interval_ns: u64, watch_interval_ns: Option<u64>) {
        sampler::spawn(interval_ns, self.own.clone(), self.inbox.clone());
        if let Some(interval_ns) = watch_interval_ns {
            sampler::spawn_watch(interval_ns, self.inbox.clone());
        }
    }

    fn expect_peer(&mut self, peer: SocketAddr, server_port: u16) {
        self.own.expect(peer, server_port);
    }

    fn begin_stage(&mut self, order: StageOrder, timeline: Timeline) {
        if let Some(host) = &self.host {
            self.running = Some(RunningStage::start(order, timeline, host));
        }
    }

    fn retime(&mut self, timeline: Timeline) {
        if let Some(running) = &self.running {
            running.retime(timeline);
        }
    }

    fn end_stage(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel();
        }
        if let Some(host) = &self.host {
            host.engine.abort();
        }
    }

    fn begin_step(&mut self, order: StorageOrder) -> Result<(), Box<StorageReport>> {
        self.step = Some(RunningStep::start(order, self.inbox.clone())?);
        Ok(())
    }

    fn end_step(&mut self) {
        if let Some(step) = &self.step {
            step.cancel();
        }
    }

    fn check_ports(&mut self, check: PortCheck) {
        let Some(host) = &self.host else { return };
        let (engine, inbox) = (Arc::clone(&host.engine), host.inbox.clone());
        thread::spawn(move || {
            let answers = engine.check_ports(&check, PORT_CHECK_LIMIT);
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::PortsChecked(answers));
        });
    }

    fn log(&mut self, line: &str) {
        syslog::write(line);
    }
}

/// An agent promises to be gone within 5 s of its controller. Threads that do not end, such as one
/// that unauthenticated peers keep busy, must not hold it; children die with it.
fn end_at_the_latest() {
    thread::spawn(|| {
        thread::sleep(END_LIMIT);
        std::process::exit(1);
    });
}
