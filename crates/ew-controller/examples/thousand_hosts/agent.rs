//! A host that is not there: speaks over standard input and output as its agent would, and reports
//! what a host with many CPUs reports.

use crate::sample::Counters;
use ew_model::facts::{HostFacts, HostSample, InterfaceFacts};
use ew_model::record::{CpuUse, EndRecord, Interval, StreamRecord, TcpInfo};
use ew_proto::message::{FlowReport, PortAnswer, Role, RoundOrder, RoundReport, StageOrder};
use ew_proto::{AgentEvent, AgentSession, Timeline};
use ew_sys::clock::monotonic_ns;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const LINK_BITS_PER_SEC: f64 = 25e9;
/// Of the link, what a flow gets.
const SHARE: f64 = 0.94;
const INTERVAL_NS: u64 = 100_000_000;
const IDLE: Duration = Duration::from_millis(500);

/// What a host is to be.
#[derive(Deserialize, Serialize)]
pub(crate) struct Task {
    pub(crate) cpus: u32,
    pub(crate) samples: u32,
    pub(crate) read: HostSample,
}

/// Serves one controller until it leaves.
pub(crate) fn serve(build: &str, task: Task) {
    let inbox = read_input();
    let mut agent = Agent {
        session: AgentSession::new(build, monotonic_ns()),
        interval_ns: 0,
        next_sample_ns: u64::MAX,
        samples_left: task.samples,
        cpus: task.cpus,
        counters: Counters::new(task.cpus, task.read),
        held: Vec::new(),
        stage: None,
        is_over: false,
    };
    while !agent.is_over && agent.write_out().is_ok() {
        match inbox.recv_timeout(agent.time_to_wait()) {
            Ok((bytes, read_ns)) => agent.session.handle_bytes(&bytes, read_ns),
            Err(RecvTimeoutError::Timeout) => agent.session.handle_timeout(monotonic_ns()),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        while let Some(event) = agent.session.poll_event() {
            agent.on_event(event);
        }
        agent.do_what_is_due(monotonic_ns());
    }
    // Whoever does not read any more has ended.
    let _ = agent.write_out();
}

/// Bytes with the time at which they were read.
fn read_input() -> Receiver<(Vec<u8>, u64)> {
    let (sender, inbox) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length) = io::stdin().read(&mut buffer) {
            let piece = (buffer[..length].to_vec(), monotonic_ns());
            if length == 0 || sender.send(piece).is_err() {
                return;
            }
        }
    });
    inbox
}

struct Agent {
    session: AgentSession,
    interval_ns: u64,
    next_sample_ns: u64,
    samples_left: u32,
    cpus: u32,
    counters: Counters,
    /// As real agents do, until the end of a round.
    held: Vec<HostSample>,
    stage: Option<Stage>,
    is_over: bool,
}

/// The stage at hand.
struct Stage {
    order: StageOrder,
    timeline: Option<Timeline>,
    reported: usize,
}

impl Stage {
    fn next_round(&self) -> Option<&RoundOrder> {
        self.order.rounds.get(self.reported)
    }

    /// When the next round's window is over.
    fn due_ns(&self) -> u64 {
        let round_ns = self.order.warm_up_ns + self.order.duration_ns;
        match (self.timeline, self.next_round()) {
            (Some(timeline), Some(round)) => timeline.at(round.offset_ns + round_ns),
            (Some(_), None) => 0,
            (None, _) => u64::MAX,
        }
    }
}

impl Agent {
    fn write_out(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        while let Some(bytes) = self.session.poll_transmit() {
            out.write_all(&bytes)?;
        }
        out.flush()
    }

    fn time_to_wait(&self) -> Duration {
        let stage_ns = self.stage.as_ref().map_or(u64::MAX, Stage::due_ns);
        let due_ns = stage_ns.min(self.next_sample_ns);
        Duration::from_nanos(due_ns.saturating_sub(monotonic_ns())).min(IDLE)
    }

    fn on_event(&mut self, event: AgentEvent) {
        let done = match event {
            AgentEvent::Welcomed(welcome) => {
                self.interval_ns = welcome.sample_interval_ns;
                self.next_sample_ns = monotonic_ns() + self.interval_ns;
                self.session.ready(facts(welcome.address, self.cpus), 5401)
            }
            AgentEvent::CheckPorts(check) => {
                let round_trip_ns = Some(60_000);
                let reached = check.peers.iter();
                let reached = reached.map(|_| PortAnswer::Reached { round_trip_ns });
                self.session.ports_checked(reached.collect())
            }
            AgentEvent::Stage(order) => {
                let stage = order.stage;
                self.stage = Some(Stage {
                    order,
                    timeline: None,
                    reported: 0,
                });
                self.session.accept(stage)
            }
            AgentEvent::Go { timeline, .. } | AgentEvent::Retime(timeline) => {
                if let Some(stage) = &mut self.stage {
                    stage.timeline = Some(timeline);
                }
                Ok(())
            }
            AgentEvent::Abort => {
                self.stage = None;
                Ok(())
            }
            AgentEvent::Goodbye => {
                self.is_over = true;
                self.session.farewell()
            }
            AgentEvent::Storage(_) | AgentEvent::ControllerLost { .. } => {
                self.is_over = true;
                Ok(())
            }
        };
        // What the session refuses ends this host, which the run then reports.
        self.is_over |= done.is_err();
    }

    fn do_what_is_due(&mut self, now_ns: u64) {
        while self.samples_left > 0 && self.next_sample_ns <= now_ns {
            self.held.push(self.counters.sample(self.next_sample_ns));
            self.samples_left -= 1;
            self.next_sample_ns += self.interval_ns;
        }
        if self.samples_left == 0 {
            self.next_sample_ns = u64::MAX;
        }
        while let Some(stage) = self.stage.as_mut().filter(|s| s.due_ns() <= now_ns) {
            let number = stage.order.stage;
            let done = match report(stage, self.cpus) {
                Some(report) => self.session.report(report),
                None => {
                    self.stage = None;
                    self.session.stage_done(number, 0)
                }
            };
            self.is_over |= done.is_err();
            self.send_samples();
        }
        if self.stage.as_ref().is_none_or(|s| s.timeline.is_none()) {
            self.send_samples();
        }
    }

    fn send_samples(&mut self) {
        for sample in std::mem::take(&mut self.held) {
            self.is_over |= self.session.sample(sample).is_err();
        }
    }
}

fn facts(address: IpAddr, cpus: u32) -> HostFacts {
    HostFacts {
        kernel: "6.18.0".into(),
        architecture: "x86_64".into(),
        cpus,
        open_files_limit: Some(1 << 20),
        interfaces: vec![InterfaceFacts {
            name: "eth0".into(),
            speed_bits_per_sec: Some(LINK_BITS_PER_SEC),
            mtu_bytes: Some(1500),
            driver: Some("mlx5_core".into()),
            duplex: Some("full".into()),
            addresses: vec![address],
            prefix_bits: vec![16],
            up: true,
            ..InterfaceFacts::default()
        }],
        realtime_ns: ew_sys::clock::realtime_ns(),
        clock_synchronised: Some(true),
        ..HostFacts::default()
    }
}

/// The next round's; `None` when all are reported.
fn report(stage: &mut Stage, cpus: u32) -> Option<RoundReport> {
    let round = stage.next_round()?.clone();
    stage.reported += 1;
    let window_ns = stage.order.duration_ns;
    let timeline = stage.timeline?;
    let window_start_ns = timeline.at(round.offset_ns + stage.order.warm_up_ns);
    let flows = round.flows.iter().map(|flow| {
        let end = Box::new(end(window_start_ns, window_ns, round.streams, cpus));
        let (sender, receiver) = match flow.role {
            Role::Send => (Some(end), None),
            Role::Receive => (None, Some(end)),
        };
        FlowReport {
            flow: flow.flow,
            sender,
            receiver,
            standing: None,
            error: None,
        }
    });
    Some(RoundReport {
        stage: stage.order.stage,
        round: round.round,
        flows: flows.collect(),
    })
}

fn end(window_start_ns: u64, window_ns: u64, streams: u32, cpus: u32) -> EndRecord {
    let in_time = |ns: u64| (LINK_BITS_PER_SEC * SHARE / 8e9 * ns as f64) as u64;
    let bytes = in_time(window_ns);
    let interval = |number: u64| Interval {
        offset_ns: number * INTERVAL_NS,
        length_ns: INTERVAL_NS,
        bytes: in_time(INTERVAL_NS),
    };
    let stream = |number: u32| StreamRecord {
        bytes: bytes / u64::from(streams),
        local_port: 40_000 + number as u16,
        peer_port: 5401,
        tcp_info: Some(TcpInfo {
            rtt_us: 480,
            rtt_variation_us: 60,
            min_rtt_us: Some(55),
            congestion_window_segments: 812,
            send_mss_bytes: 1448,
            receive_mss_bytes: 1448,
            path_mtu_bytes: 1500,
            delivery_rate_bytes_per_sec: Some(367_000_000),
            busy_us: Some(window_ns / 1000),
            receive_window_limited_us: Some(0),
            send_buffer_limited_us: Some(1200),
            ..TcpInfo::default()
        }),
        retransmits: Some(0),
        spurious_retransmits: Some(0),
        path: None,
    };
    EndRecord {
        bytes,
        window_ns,
        window_start_ns: Some(window_start_ns),
        start_skew_ns: 90_000,
        streams: (0..streams).map(stream).collect(),
        congestion: Some("cubic".into()),
        intervals: (0..window_ns / INTERVAL_NS).map(interval).collect(),
        cpu: Some(CpuUse {
            engine_ns: window_ns / 2,
            busy_ns: window_ns * 2,
            softirq_ns: window_ns / 3,
            cpus,
            moved_bytes: bytes,
            ..CpuUse::default()
        }),
        ..EndRecord::default()
    }
}
