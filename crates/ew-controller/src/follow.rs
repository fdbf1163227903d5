//! Which host reports a flow's progress while its round goes on. Pure.
//!
//! A TCP sender knows what arrived and what it retransmitted. Else an engine counts
//! what its host sends and receives in all, so a host can report on a flow that has one of these
//! counts to itself.

use ew_model::inventory::HostId;
use ew_model::plan::{Flow, FlowId, Round, Stage};
use ew_model::workload::{Tool, WorkloadKind};
use std::collections::BTreeMap;

/// More flows at once than this are too many lines to read.
const MAX_FLOWS: usize = 4;
/// A window should have more than one part.
const MIN_WINDOW_NS: u64 = 2_000_000_000;

/// Flows by the host that reports them. Empty for rounds of many flows or short windows, and for
/// external tools, which report nothing before they end.
pub(crate) fn reporters(stage: &Stage, round: &Round) -> BTreeMap<HostId, Vec<FlowId>> {
    let mut reporters: BTreeMap<HostId, Vec<FlowId>> = BTreeMap::new();
    let is_readable = round.flows.len() <= MAX_FLOWS && stage.duration_ns >= MIN_WINDOW_NS;
    if !is_readable || stage.workload.tool != Tool::Engine {
        return reporters;
    }
    for flow in round.measured_flows() {
        let reporter = match stage.workload.kind {
            WorkloadKind::TcpStream => Some(flow.src),
            kind if kind.is_bulk() => bulk_teller(flow, round),
            _ => request_teller(flow, round),
        };
        if let Some(host) = reporter {
            reporters.entry(host).or_default().push(flow.id);
        }
    }
    reporters
}

/// The receiver, whose count is the flow's rate; the sender where the receiver has other flows,
/// too.
fn bulk_teller(flow: &Flow, round: &Round) -> Option<HostId> {
    let alone = |end: fn(&Flow) -> HostId| {
        let host = end(flow);
        let count = round.flows.iter().filter(|f| end(f) == host).count();
        (count == 1).then_some(host)
    };
    alone(|f| f.dst).or_else(|| alone(|f| f.src))
}

/// Who asks, when all it receives are the flow's answers.
fn request_teller(flow: &Flow, round: &Round) -> Option<HostId> {
    let has_it = |f: &&Flow| f.src == flow.src || f.dst == flow.src;
    (round.flows.iter().filter(has_it).count() == 1).then_some(flow.src)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::End;
    use ew_model::scenario::Pattern;
    use ew_model::workload::Workload;

    const WINDOW_NS: u64 = 2_000_000_000;

    /// The reporter of each flow, `None` where nobody can know.
    fn reported(kind: WorkloadKind, duration_ns: u64, flows: &[(u32, u32)]) -> Vec<Option<u32>> {
        let flow = |(id, (src, dst)): (usize, &(u32, u32))| Flow {
            id: FlowId(id as u32),
            src: HostId(*src),
            dst: HostId(*dst),
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        };
        let round = Round {
            sample: 0,
            senders_per_rack: None,
            flows: flows.iter().enumerate().map(flow).collect(),
        };
        let stage = Stage {
            name: "test".into(),
            pattern: Pattern::Pair,
            workload: Workload::of(kind),
            duration_ns,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: None,
            sweep: None,
            rounds: Vec::new(),
        };
        let reporters = reporters(&stage, &round);
        let reporter = |flow: &Flow| {
            let mut hosts = reporters
                .iter()
                .filter(|(_, reported)| reported.contains(&flow.id));
            let host = hosts.next().map(|(host, _)| host.0);
            assert!(hosts.next().is_none(), "two reporters");
            host
        };
        round.flows.iter().map(reporter).collect()
    }

    #[test]
    fn the_sender_tells_of_tcp() {
        let bulk = |flows| reported(WorkloadKind::TcpStream, WINDOW_NS, flows);
        assert_eq!(bulk(&[(0, 1), (1, 0)]), [Some(0), Some(1)]);
        assert_eq!(bulk(&[(0, 1), (0, 1)]), [Some(0), Some(0)]);
    }

    #[test]
    fn the_receiver_tells_of_datagrams_when_it_can() {
        let bulk = |flows| reported(WorkloadKind::UdpStream, WINDOW_NS, flows);
        assert_eq!(bulk(&[(0, 1), (1, 0)]), [Some(1), Some(0)]);
        assert_eq!(bulk(&[(0, 2), (1, 2)]), [Some(0), Some(1)], "incast");
        assert_eq!(bulk(&[(0, 1), (0, 1)]), [None, None]);
    }

    #[test]
    fn who_asks_tells_of_requests_when_it_can() {
        let requests = |flows| reported(WorkloadKind::TcpRr, WINDOW_NS, flows);
        assert_eq!(requests(&[(0, 1), (2, 3)]), [Some(0), Some(2)]);
        assert_eq!(requests(&[(0, 1), (1, 0)]), [None, None]);
        assert_eq!(requests(&[(0, 1), (2, 1)]), [Some(0), Some(2)]);
    }

    #[test]
    fn many_flows_and_short_windows_are_not_followed() {
        let many = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)];
        let kind = WorkloadKind::TcpStream;
        assert_eq!(reported(kind, WINDOW_NS, &many), [None; 5]);
        assert_eq!(reported(kind, WINDOW_NS - 1, &many[..1]), [None]);
    }
}
