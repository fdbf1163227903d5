//! Tells every second how followed flows go, for who watches a run of few flows.

use crate::inbox::Input;
use crate::stage::{Host, sleep_unless_cancelled};
use ew_engine::{RoundSpec, Totals};
use ew_model::plan::FlowId;
use ew_proto::message::{FlowProgress, Role};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Length of the parts of a window.
const PART_NS: u64 = 1_000_000_000;

/// Tells of the round's followed flows, from the engine's totals, until its window ends or the stage is cancelled.
pub(crate) fn spawn(
    spec: RoundSpec,
    followed: Vec<FlowId>,
    host: Host,
    cancelled: Arc<AtomicBool>,
) {
    thread::spawn(move || {
        let mut before: Option<(u64, Totals)> = None;
        let mut first = Totals::default();
        for at_ns in edges_ns(&spec) {
            if !sleep_unless_cancelled(at_ns, &cancelled) {
                return;
            }
            let now_ns = ew_sys::clock::monotonic_ns();
            let totals = host.engine.totals();
            let Some((then_ns, then)) = before.replace((now_ns, totals)) else {
                first = totals;
                continue;
            };
            let part = Part {
                offset_ns: then_ns.saturating_sub(spec.window_start_ns),
                length_ns: now_ns - then_ns,
                edges: [since(then, first), since(totals, first)],
            };
            for progress in followed.iter().filter_map(|flow| part.of(*flow, &spec)) {
                // The loop may have ended the agent meanwhile.
                let _ = host.inbox.send(Input::FlowProgress(progress));
            }
        }
    });
}

/// The window's start, then every second, then its end.
fn edges_ns(spec: &RoundSpec) -> impl Iterator<Item = u64> + use<> {
    let end_ns = spec.window_end_ns();
    (spec.window_start_ns..end_ns)
        .step_by(PART_NS as usize)
        .chain([end_ns])
}

/// A part of the window, with what the engine had moved in the window before it and with it.
struct Part {
    offset_ns: u64,
    length_ns: u64,
    edges: [Totals; 2],
}

impl Part {
    /// `None` when the flow is not of this round.
    fn of(&self, flow: FlowId, spec: &RoundSpec) -> Option<FlowProgress> {
        let order = spec.flows.iter().find(|order| order.flow == flow)?;
        let is_bulk = spec.workload.kind.is_bulk();
        let count = |totals: &Totals| match order.role {
            Role::Send if is_bulk => totals.tx_bytes,
            // Answers to requests, too, are received.
            Role::Send | Role::Receive => totals.rx_bytes,
        };
        let [before, after] = self.edges.each_ref().map(count);
        let answer_bytes = spec.workload.answer_bytes().max(1);
        Some(FlowProgress {
            stage: spec.stage,
            round: spec.round,
            flow,
            offset_ns: self.offset_ns,
            length_ns: self.length_ns,
            bytes: after.saturating_sub(before),
            // Whole answers, so that no part of one is counted twice.
            transactions: (!is_bulk)
                .then(|| (after / answer_bytes).saturating_sub(before / answer_bytes)),
        })
    }
}

fn since(totals: Totals, first: Totals) -> Totals {
    Totals {
        tx_bytes: totals.tx_bytes.saturating_sub(first.tx_bytes),
        rx_bytes: totals.rx_bytes.saturating_sub(first.rx_bytes),
        ..totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{RoundIndex, StageIndex};
    use ew_model::workload::{Workload, WorkloadKind};
    use ew_proto::message::FlowOrder;

    fn spec(kind: WorkloadKind, role: Role) -> RoundSpec {
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
            flows: vec![FlowOrder {
                flow: FlowId(7),
                role,
                opens: true,
                peer: "198.18.0.2:5401".parse().unwrap(),
                server_port: 0,
            }],
        }
    }

    fn told(kind: WorkloadKind, role: Role) -> (u64, Option<u64>) {
        let totals = |tx_bytes, rx_bytes| Totals {
            tx_bytes,
            rx_bytes,
            ..Totals::default()
        };
        let part = Part {
            offset_ns: 0,
            length_ns: PART_NS,
            edges: [totals(10, 150), totals(5010, 1000)],
        };
        assert_eq!(part.of(FlowId(8), &spec(kind, role)), None);
        let progress = part.of(FlowId(7), &spec(kind, role)).unwrap();
        (progress.bytes, progress.transactions)
    }

    #[test]
    fn each_role_has_its_count() {
        assert_eq!(told(WorkloadKind::TcpStream, Role::Send), (5000, None));
        assert_eq!(told(WorkloadKind::TcpStream, Role::Receive), (850, None));
        assert_eq!(told(WorkloadKind::TcpRr, Role::Send), (850, Some(9)));
    }

    #[test]
    fn the_last_part_may_be_short() {
        let edges: Vec<u64> = edges_ns(&spec(WorkloadKind::TcpStream, Role::Send)).collect();
        let seconds = [0, PART_NS, 2 * PART_NS, 2 * PART_NS + 1];
        assert_eq!(edges, seconds.map(|ns| ns + 500));
    }
}
