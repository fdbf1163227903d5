//! Reports every second how followed flows go, for who watches a run of few flows.

use crate::cancel::sleep_unless_cancelled;
use crate::host::Host;
use crate::inbox::Input;
use ew_engine::{RoundSpec, RunningRound, Totals};
use ew_model::plan::FlowId;
use ew_model::workload::WorkloadKind;
use ew_proto::message::{FlowOrder, FlowProgress, Role};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Length of the parts of a window.
const PART_NS: u64 = 1_000_000_000;

/// Reports the round's followed flows until its window ends or the stage is cancelled.
pub(crate) fn spawn(
    spec: RoundSpec,
    running: RunningRound,
    followed: &[FlowId],
    host: Host,
    cancelled: Arc<AtomicBool>,
) {
    let flows = spec.flows.iter();
    let orders: Vec<FlowOrder> = flows
        .filter(|order| followed.contains(&order.flow))
        .cloned()
        .collect();
    if orders.is_empty() {
        return;
    }
    thread::spawn(move || {
        let mut edges: Vec<Edge> = Vec::new();
        for at_ns in edges_ns(&spec) {
            if !sleep_unless_cancelled(at_ns, &cancelled) {
                return;
            }
            let totals = host.engine.totals();
            let counts = orders.iter();
            let counts = counts.map(|order| count(&spec, order, &totals, &running));
            let now = Edge {
                at_ns: ew_sys::clock::monotonic_ns(),
                counts: counts.collect(),
            };
            if let (Some(first), Some(before)) = (edges.first(), edges.last()) {
                for (index, order) in orders.iter().enumerate() {
                    let part = [first, before, &now];
                    if let Some(progress) = progress(&spec, order.flow, index, part) {
                        // The loop may have ended the agent meanwhile.
                        let _ = host.inbox.send(Input::FlowProgress(progress));
                    }
                }
            }
            edges.truncate(1);
            edges.push(now);
        }
    });
}

/// What was counted of the followed flows between two parts of the window.
struct Edge {
    at_ns: u64,
    /// `None` where it is unknown.
    counts: Vec<Option<Count>>,
}

/// What was counted of one flow since any time before the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    bytes: u64,
    retransmits: Option<u64>,
}

/// The window's start, then every second, then its end.
fn edges_ns(spec: &RoundSpec) -> impl Iterator<Item = u64> + use<> {
    let end_ns = spec.window_end_ns();
    (spec.window_start_ns..end_ns)
        .step_by(PART_NS as usize)
        .chain([end_ns])
}

/// Who sends over TCP knows what arrived, and what it had to send again; others know the engine's
/// totals.
fn count(
    spec: &RoundSpec,
    order: &FlowOrder,
    totals: &Totals,
    running: &RunningRound,
) -> Option<Count> {
    let kind = spec.workload.kind;
    let of_totals = |bytes| Count {
        bytes,
        retransmits: None,
    };
    match order.role {
        Role::Send if kind == WorkloadKind::TcpStream => {
            let sent = running.sent_over_tcp(order.flow)?;
            Some(Count {
                bytes: sent.acked_bytes,
                retransmits: Some(sent.retransmits),
            })
        }
        Role::Send if kind.is_bulk() => Some(of_totals(totals.tx_bytes)),
        // Answers to requests, too, are received.
        Role::Send | Role::Receive => Some(of_totals(totals.rx_bytes)),
    }
}

/// How a flow went between the last two of the edges; the first is the window's begin.
fn progress(
    spec: &RoundSpec,
    flow: FlowId,
    index: usize,
    edges: [&Edge; 3],
) -> Option<FlowProgress> {
    let [_, before, after] = edges;
    let count = |edge: &Edge| -> Option<Count> { *edge.counts.get(index)? };
    let [first, was, is] = [count(edges[0])?, count(before)?, count(after)?];
    let [was_bytes, is_bytes] = [was, is].map(|count| count.bytes.saturating_sub(first.bytes));
    let answer_bytes = spec.workload.answer_bytes().max(1);
    Some(FlowProgress {
        stage: spec.stage,
        round: spec.round,
        flow,
        offset_ns: before.at_ns.saturating_sub(spec.window_start_ns),
        length_ns: after.at_ns - before.at_ns,
        bytes: is_bytes.saturating_sub(was_bytes),
        // Whole answers, so that no part of one is counted twice.
        transactions: (!spec.workload.kind.is_bulk())
            .then(|| (is_bytes / answer_bytes).saturating_sub(was_bytes / answer_bytes)),
        retransmits: is
            .retransmits
            .zip(was.retransmits)
            .map(|(is, was)| is.saturating_sub(was)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{RoundIndex, StageIndex};
    use ew_model::workload::Workload;

    fn spec(kind: WorkloadKind) -> RoundSpec {
        RoundSpec {
            stage: StageIndex(1),
            round: RoundIndex(2),
            workload: Workload {
                response_bytes: Some(100),
                ..Workload::of(kind)
            },
            connect_at_ns: 0,
            start_ns: 0,
            window_start_ns: 500,
            window_ns: 2 * PART_NS + 1,
            interval_ns: 0,
            flows: Vec::new(),
        }
    }

    fn counted(kind: WorkloadKind, role: Role) -> Option<u64> {
        let peer = "198.18.0.2:5401".parse().unwrap();
        let order = FlowOrder::new(FlowId(7), role, true, peer);
        let totals = Totals {
            tx_bytes: 1,
            rx_bytes: 2,
            ..Totals::default()
        };
        let count = count(&spec(kind), &order, &totals, &RunningRound::default());
        count.map(|count| count.bytes)
    }

    #[test]
    fn each_role_has_its_count() {
        assert_eq!(counted(WorkloadKind::UdpStream, Role::Send), Some(1));
        assert_eq!(counted(WorkloadKind::UdpStream, Role::Receive), Some(2));
        assert_eq!(counted(WorkloadKind::TcpRr, Role::Send), Some(2));
    }

    #[test]
    fn a_part_is_what_was_counted_in_it() {
        let edge = |at_ns, bytes, retransmits| Edge {
            at_ns,
            counts: vec![Some(Count { bytes, retransmits }), None],
        };
        let reported = |kind, retransmits: [Option<u64>; 2]| {
            let (first, before) = (edge(500, 10, Some(4)), edge(700, 160, retransmits[0]));
            let part = [&first, &before, &edge(900, 1010, retransmits[1])];
            assert_eq!(progress(&spec(kind), FlowId(7), 1, part), None);
            let reported = progress(&spec(kind), FlowId(7), 0, part).unwrap();
            assert_eq!((reported.offset_ns, reported.length_ns), (200, 200));
            (reported.bytes, reported.transactions, reported.retransmits)
        };
        let (stream, requests) = (WorkloadKind::TcpStream, WorkloadKind::TcpRr);
        assert_eq!(reported(stream, [Some(5), Some(12)]), (850, None, Some(7)));
        // 150 and 1000 bytes of answers of 100: one, then ten.
        assert_eq!(reported(requests, [None, None]), (850, Some(9), None));
    }

    #[test]
    fn the_last_part_may_be_short() {
        let edges: Vec<u64> = edges_ns(&spec(WorkloadKind::TcpStream)).collect();
        let seconds = [0, PART_NS, 2 * PART_NS, 2 * PART_NS + 1];
        assert_eq!(edges, seconds.map(|ns| ns + 500));
    }
}
