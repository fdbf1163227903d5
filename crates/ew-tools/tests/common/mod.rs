//! What live tests of tools share: orders over loopback, and rounds that end.

use ew_model::plan::FlowId;
use ew_model::workload::Tool;
use ew_proto::message::{FlowOrder, FlowReport, Role};
use ew_tools::{RoundSpec, discover, run_round};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(crate) const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Whether a test can run. Prints what it skips; in CI nothing is.
pub(crate) fn is_there(tool: Tool) -> bool {
    let found = !discover(&[tool]).is_empty();
    assert!(
        found || std::env::var_os("CI").is_none(),
        "CI must have {}: scripts/setup.sh",
        tool.name()
    );
    if !found {
        println!("skipped: {} is not installed", tool.name());
    }
    found
}

pub(crate) fn order(port: u16, role: Role, opens: bool) -> FlowOrder {
    let (flow, peer) = (FlowId(u32::from(port)), SocketAddr::new(LOCALHOST, port));
    FlowOrder::new(flow, role, opens, peer).by_tool(port)
}

pub(crate) fn start(spec: RoundSpec) -> Receiver<Vec<FlowReport>> {
    start_until(spec, &Arc::default())
}

/// The same, and it ends when it is ordered to.
pub(crate) fn start_until(spec: RoundSpec, cancel: &Arc<AtomicBool>) -> Receiver<Vec<FlowReport>> {
    let (sender, receiver) = channel();
    let done = Box::new(move |reports| sender.send(reports).unwrap_or(()));
    run_round(LOCALHOST, spec, Arc::clone(cancel), done).unwrap();
    receiver
}

/// Generous: only a hang reaches it.
pub(crate) fn wait(reports: &Receiver<Vec<FlowReport>>) -> Vec<FlowReport> {
    reports.recv_timeout(Duration::from_secs(120)).unwrap()
}

/// The first of so many in a row that are free. Below those that the kernel gives to connections,
/// which other tests open meanwhile.
pub(crate) fn free_ports(count: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(12_000);
    loop {
        let first = NEXT.fetch_add(count, Ordering::Relaxed);
        let mut bound = (first..first + count).map(|port| TcpListener::bind((LOCALHOST, port)));
        if bound.all(|bound| bound.is_ok()) {
            return first;
        }
    }
}
