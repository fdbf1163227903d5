//! Two engines on one host and rounds between them.

use ew_engine::{Engine, EngineConfig, RoundSpec};
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role, RunToken};
use ew_sys::clock::monotonic_ns;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const TOKEN: RunToken = RunToken([42; 16]);
pub(crate) const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const MILLISECOND: u64 = 1_000_000;

pub(crate) fn engine(address: IpAddr) -> Engine {
    engine_with_ports(address, (0, 0))
}

pub(crate) fn engine_with_ports(address: IpAddr, ports: (u16, u16)) -> Engine {
    Engine::start(EngineConfig {
        address,
        ports,
        token: TOKEN,
        relay_key: None,
    })
    .unwrap()
}

pub(crate) fn workload(kind: WorkloadKind, streams: u32, message_bytes: u64) -> Workload {
    Workload {
        streams,
        message_bytes,
        ..Workload::of(kind)
    }
}

/// Connects from now on for 800 ms, warms up for 50 ms and counts for 300 ms.
pub(crate) fn round(workload: Workload) -> RoundSpec {
    let now_ns = monotonic_ns();
    RoundSpec {
        stage: StageIndex(1),
        round: RoundIndex(2),
        workload,
        connect_at_ns: now_ns,
        start_ns: now_ns + 800 * MILLISECOND,
        window_start_ns: now_ns + 850 * MILLISECOND,
        window_ns: 300 * MILLISECOND,
        interval_ns: 100 * MILLISECOND,
        flows: Vec::new(),
    }
}

/// One end of a flow.
pub(crate) fn order(flow: u32, role: Role, opens: bool, peer: SocketAddr) -> FlowOrder {
    FlowOrder::new(FlowId(flow), role, opens, peer)
}

/// A round with the given flows.
pub(crate) fn with_flows(spec: &RoundSpec, flows: Vec<FlowOrder>) -> RoundSpec {
    RoundSpec {
        flows,
        ..spec.clone()
    }
}

pub(crate) fn start(engine: &Engine, spec: RoundSpec) -> Receiver<Vec<FlowReport>> {
    let (sender, receiver) = channel();
    let done = Box::new(move |reports| sender.send(reports).unwrap_or(()));
    engine.run_round(spec, done).unwrap();
    receiver
}

/// Generous: only a hang reaches it.
pub(crate) fn wait(reports: &Receiver<Vec<FlowReport>>) -> Vec<FlowReport> {
    reports.recv_timeout(Duration::from_secs(30)).unwrap()
}

pub(crate) fn data_address(engine: &Engine, address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, engine.port())
}
