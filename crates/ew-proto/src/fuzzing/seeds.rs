//! Small messages for tests, and the inputs the committed corpus is made of.

use crate::clock_line::Timeline;
use crate::frame::encode;
use crate::limits::{MAX_FRAME_BYTES, Message};
use crate::message::{
    EndState, FlowOrder, FlowProgress, FlowReport, OthersTcp, PortAnswer, PortCheck, RelayKey,
    Role, RoundOrder, RoundReport, RunToken, StageOrder, ToAgent, ToController, Welcome,
};
use crate::preamble::{MAX_BANNER_BYTES, preamble};
use ew_model::facts::{HostFacts, HostSample};
use ew_model::inventory::HostId;
use ew_model::latency::Histogram;
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::record::{EndRecord, SizeTimes, StreamRecord};
use ew_model::storage::{
    FileOutcome, FileRecord, StorageJob, StorageOperation, StorageOrder, StorageReport,
};
use ew_model::telemetry::{HostReading, ProcessCounters};
use ew_model::workload::{Tool, Workload, WorkloadKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The build both sides claim.
pub const BUILD: &str = "fuzz";

/// Scenes a controller's session can be put into.
pub const CONTROLLER_SCENES: u8 = 9;

/// Scenes an agent's session can be put into.
pub const AGENT_SCENES: u8 = 7;

/// A named input of a fuzz target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The fuzz target.
    pub target: &'static str,
    /// File name.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// A welcome of host 0 on 127.0.0.1.
#[must_use]
pub fn welcome() -> Welcome {
    Welcome {
        host: HostId(0),
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        network: None,
        token: RunToken([7; 16]),
        relay_key: Some(RelayKey([9; 16])),
        data_ports: (5201, 5299),
        sample_interval_ns: 1_000_000_000,
        offer_iperf3_port: None,
        watch_interval_ns: Some(1_000_000_000),
        claim: None,
        syslog: false,
        tools: vec![Tool::Iperf3, Tool::Netpipe],
    }
}

/// A stage of `rounds` rounds with `flows` flows each, numbered from 0 through the stage.
#[must_use]
pub fn stage_order(stage: u32, rounds: u32, flows: u32) -> StageOrder {
    StageOrder {
        stage: StageIndex(stage),
        workload: Box::new(Workload::of(WorkloadKind::TcpStream)),
        warm_up_ns: 1_000_000,
        duration_ns: 2_000_000,
        gap_ns: 3_000_000,
        rounds: (0..rounds).map(|r| round_order(r, flows)).collect(),
    }
}

/// The report that fits round `index` of the order.
#[must_use]
pub fn report(order: &StageOrder, index: usize) -> RoundReport {
    let round = order.rounds.get(index);
    let end = EndRecord {
        bytes: 1_000_000,
        window_ns: 2_000_000,
        streams: vec![StreamRecord::default()],
        completions: vec![SizeTimes {
            bytes: 300,
            times: Histogram::of(60_000, 2),
        }],
        ..EndRecord::default()
    };
    RoundReport {
        stage: order.stage,
        round: round.map_or(RoundIndex(0), |r| r.round),
        flows: round
            .iter()
            .flat_map(|r| &r.flows)
            .map(|f| FlowReport {
                flow: f.flow,
                sender: Some(Box::new(end.clone())),
                receiver: None,
                standing: Some(EndState::default()),
                error: None,
            })
            .collect(),
    }
}

/// The first second of the order's first flow.
#[must_use]
pub fn progress(order: &StageOrder) -> FlowProgress {
    let round = order.rounds.first();
    let flow = round.and_then(|r| r.flows.first());
    FlowProgress {
        stage: order.stage,
        round: round.map_or(RoundIndex(0), |r| r.round),
        flow: flow.map_or(FlowId(0), |f| f.flow),
        offset_ns: 0,
        length_ns: 1_000_000_000,
        bytes: 1_000_000,
        transactions: None,
        retransmits: Some(3),
    }
}

/// A storage step of `files` files.
#[must_use]
pub fn storage_order(step: u32, files: u32) -> StorageOrder {
    StorageOrder {
        step,
        operation: StorageOperation::Write,
        job: StorageJob {
            target: "file:///mnt/share".into(),
            file_bytes: 1 << 20,
            buffer_bytes: 1 << 16,
            parallel: 2,
            direct: false,
            sync: true,
            drop_cache: true,
            verify: true,
            seed: 7,
            replication: Some(2),
            block_bytes: Some(1 << 27),
            time_ns: None,
            testdfsio: None,
        },
        files: (0..files).collect(),
        present_bytes: 0,
        start_ns: 5,
    }
}

/// The report that fits the order.
#[must_use]
pub fn storage_report(order: &StorageOrder) -> StorageReport {
    let record = |file: &u32| FileRecord {
        file: *file,
        worker: 0,
        start_ns: 1,
        open_ns: Some(2),
        first_byte_ns: Some(3),
        io_ns: Some(4),
        close_ns: None,
        bytes: 5,
        outcome: FileOutcome::Failed {
            error: "\u{1b}[31mno space left".into(),
        },
    };
    StorageReport {
        step: order.step,
        files: order.files.iter().map(record).collect(),
        interval_ns: 1_000_000,
        interval_bytes: vec![5],
        notes: vec!["page cache: warm".into()],
        ..StorageReport::default()
    }
}

/// Every input of the committed corpus.
#[must_use]
pub fn all() -> Vec<Seed> {
    let mut seeds = preamble_seeds();
    seeds.extend(frame_seeds("frame_decoder", &[]));
    for scene in 0..CONTROLLER_SCENES {
        seeds.extend(session_seeds("controller_session", scene, &to_controller()));
    }
    for scene in 0..AGENT_SCENES {
        seeds.extend(session_seeds("agent_session", scene, &to_agent()));
    }
    seeds.push(whole_controller_session());
    seeds
}

fn round_order(round: u32, flows: u32) -> RoundOrder {
    let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5201);
    let flow = |i: u32| {
        let is_even = i.is_multiple_of(2);
        let role = if is_even { Role::Send } else { Role::Receive };
        FlowOrder::new(FlowId(round * flows + i), role, is_even, peer)
    };
    RoundOrder {
        round: RoundIndex(round),
        offset_ns: u64::from(round) * 6_000_000,
        streams: 1,
        flows: (0..flows).map(flow).collect(),
        followed: Vec::new(),
    }
}

pub(crate) fn to_agent() -> Vec<(&'static str, Vec<u8>)> {
    let order = stage_order(0, 2, 2);
    let stage = order.stage;
    let timeline = Timeline {
        start_ns: 5,
        rate_ppb: -100_000,
    };
    let check = ToAgent::CheckPorts(PortCheck {
        peers: vec![SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5201)],
        with_udp: true,
    });
    vec![
        ("welcome", frame(&ToAgent::Welcome(welcome()))),
        ("clock-probe", frame(&ToAgent::ClockProbe { sequence: 0 })),
        ("stage", frame(&ToAgent::Stage(order))),
        ("go", frame(&ToAgent::Go { stage, timeline })),
        ("abort", frame(&ToAgent::Abort)),
        ("heartbeat", frame(&ToAgent::Heartbeat)),
        ("check-ports", frame(&check)),
        ("goodbye", frame(&ToAgent::Goodbye)),
        ("storage", frame(&ToAgent::Storage(storage_order(0, 2)))),
        ("retime", frame(&ToAgent::Retime { stage, timeline })),
    ]
}

fn alive() -> ToController {
    ToController::Alive {
        agent_ns: 0,
        tx_bytes: 1,
        rx_bytes: 2,
        others: Some(OthersTcp {
            sent_segments: 1000,
            retransmitted_segments: 3,
        }),
    }
}

fn ports_checked() -> ToController {
    let reached = PortAnswer::Reached {
        round_trip_ns: Some(50_000),
    };
    let unreached = PortAnswer::Unreached {
        error: "refused".into(),
    };
    ToController::PortsChecked {
        answers: vec![reached, unreached],
    }
}

pub(crate) fn to_controller() -> Vec<(&'static str, Vec<u8>)> {
    let order = stage_order(0, 2, 2);
    let stage = order.stage;
    let ready = ToController::Ready {
        facts: HostFacts::default(),
        data_port: 4000,
    };
    let refused = ToController::StageRefused {
        stage,
        reason: "no iperf3".into(),
    };
    let done = ToController::StageDone {
        stage,
        rejected_connections: 1,
    };
    let reply = ToController::ClockReply {
        sequence: 0,
        agent_ns: 7,
    };
    let progress = ToController::FlowProgress(progress(&order));
    let stored = storage_report(&storage_order(0, 2));
    let stored = ToController::StorageReport(Box::new(stored));
    let storing = ToController::StorageProgress {
        step: 0,
        words: "\u{1b}[31mmap 25%".into(),
    };
    let fault = ToController::Fault {
        message: "\u{1b}[31mred".into(),
    };
    vec![
        ("ready", frame(&ready)),
        ("clock-reply", frame(&reply)),
        ("accepted", frame(&ToController::StageAccepted { stage })),
        ("refused", frame(&refused)),
        (
            "report",
            frame(&ToController::RoundReport(report(&order, 0))),
        ),
        ("done", frame(&done)),
        ("alive", frame(&alive())),
        ("flow-progress", frame(&progress)),
        (
            "sample",
            frame(&ToController::Sample(HostSample {
                causes: Some(Box::default()),
                ..HostSample::default()
            })),
        ),
        (
            "reading",
            frame(&ToController::Reading(Box::new(HostReading {
                processes: vec![ProcessCounters::default()],
                ..HostReading::default()
            }))),
        ),
        ("ports-checked", frame(&ports_checked())),
        ("storage-report", frame(&stored)),
        ("storage-progress", frame(&storing)),
        ("fault", frame(&fault)),
        ("farewell", frame(&ToController::Farewell)),
    ]
}

/// One well-formed message per scene (out of order in most), and a damaged one of each kind.
fn session_seeds(
    target: &'static str,
    scene: u8,
    messages: &[(&'static str, Vec<u8>)],
) -> Vec<Seed> {
    let mut seeds: Vec<Seed> = messages
        .iter()
        .map(|(name, frame)| Seed {
            target,
            name: format!("scene{scene}-{name}"),
            bytes: [&[scene, 0], frame.as_slice()].concat(),
        })
        .collect();
    if scene == 2 {
        seeds.extend(frame_seeds(target, &[scene, 3]));
    }
    seeds
}

fn frame_seeds(target: &'static str, prefix: &[u8]) -> Vec<Seed> {
    let valid = frame(&ToController::RoundReport(report(&stage_order(0, 1, 2), 0)));
    let orders = frame(&ToAgent::Stage(stage_order(1, 3, 2)));
    let oversized = (MAX_FRAME_BYTES as u32 + 1).to_be_bytes();
    let huge_count = [
        0, 0, 0, 11, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x01,
    ];
    let surplus = [0, 0, 0, 3, 5, 0, 0];
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("valid-report", valid.clone()),
        ("valid-stage", orders.clone()),
        ("valid-two", [valid.as_slice(), &orders].concat()),
        ("truncated-length", valid[..3].to_vec()),
        ("truncated-body", valid[..valid.len() - 1].to_vec()),
        ("oversized", [&oversized, valid.as_slice()].concat()),
        ("oversized-most", vec![0xff; 8]),
        ("empty-frame", vec![0; 4]),
        ("huge-count", huge_count.to_vec()),
        ("surplus", surplus.to_vec()),
        ("unknown-variant", vec![0, 0, 0, 1, 0x7f]),
    ];
    inputs
        .into_iter()
        .map(|(name, bytes)| Seed {
            target,
            name: name.into(),
            bytes: [prefix, &bytes].concat(),
        })
        .collect()
}

fn preamble_seeds() -> Vec<Seed> {
    let valid = preamble(BUILD);
    let banner = b"Last login: today\r\n\nEASTWEST-AGENT";
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("valid", valid.clone()),
        (
            "valid-with-frames",
            [valid.as_slice(), &frame(&ToController::Farewell)].concat(),
        ),
        ("valid-behind-banner", [banner, valid.as_slice()].concat()),
        ("truncated", valid[..valid.len() - 2].to_vec()),
        (
            "wrong-protocol",
            format!("\nEASTWEST-AGENT 4294967295 {BUILD}\n").into_bytes(),
        ),
        ("wrong-build", b"\nEASTWEST-AGENT 1 other\n".to_vec()),
        ("no-build", b"\nEASTWEST-AGENT 1\n".to_vec()),
        ("no-number", b"\nEASTWEST-AGENT one fuzz\n".to_vec()),
        ("not-text", b"\nEASTWEST-AGENT \xff\xfe \xff\n".to_vec()),
        (
            "endless-line",
            [b"\nEASTWEST-AGENT 1 ".as_slice(), &[b'x'; 300]].concat(),
        ),
        ("oversized-banner", vec![b'\n'; MAX_BANNER_BYTES + 64]),
    ];
    inputs
        .into_iter()
        .map(|(name, bytes)| Seed {
            target: "preamble",
            name: name.into(),
            bytes,
        })
        .collect()
}

/// What an agent sends in scene 1 when its version line and all that follows come in one go.
fn whole_controller_session() -> Seed {
    let mut bytes = vec![0, 5];
    bytes.extend(preamble(BUILD));
    for (_, message) in to_controller() {
        bytes.extend(message);
    }
    Seed {
        target: "controller_session",
        name: "scene0-everything".into(),
        bytes,
    }
}

fn frame<T: Message>(message: &T) -> Vec<u8> {
    encode(message).unwrap_or_default()
}
