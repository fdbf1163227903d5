//! What a plan will cost, known beforehand.

use ew_model::plan::{Plan, Stage};
use std::collections::BTreeSet;

/// Per stage: clock exchanges, sending the rounds ahead, the common start's lead, and collecting the reports.
pub const STAGE_OVERHEAD_NS: u64 = 1_000_000_000;

/// What a plan, or one of its stages, will cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Time without launch and teardown.
    pub duration_ns: u64,
    /// Flows over all rounds.
    pub flows: u64,
    /// Rounds.
    pub rounds: u64,
    /// Payload bytes at most: every busy NIC at line rate through warm-ups and windows. `None` when the line rate is
    /// not known, and for tcp-rr stages, whose bytes depend on round-trip times; a plan's total leaves those out.
    pub bytes: Option<u64>,
}

/// Estimates a whole plan; `nic_bits_per_sec` is a host's line rate, when known.
#[must_use]
pub fn estimate(plan: &Plan, nic_bits_per_sec: Option<f64>) -> Estimate {
    let add = |sum: Estimate, stage: &Stage| {
        let one = estimate_stage(stage, nic_bits_per_sec);
        Estimate {
            duration_ns: sum.duration_ns.saturating_add(one.duration_ns),
            flows: sum.flows.saturating_add(one.flows),
            rounds: sum.rounds.saturating_add(one.rounds),
            bytes: match (sum.bytes, one.bytes) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            },
        }
    };
    plan.stages.iter().fold(Estimate::default(), add)
}

/// Estimates one stage.
#[must_use]
pub fn estimate_stage(stage: &Stage, nic_bits_per_sec: Option<f64>) -> Estimate {
    Estimate {
        duration_ns: planned_ns(stage).saturating_add(STAGE_OVERHEAD_NS),
        flows: stage.rounds.iter().map(|r| r.flows.len() as u64).sum(),
        rounds: stage.rounds.len() as u64,
        bytes: nic_bits_per_sec.and_then(|rate| most_bytes(stage, rate)),
    }
}

/// Like [`Stage::planned_ns`], for stages that are not yet known to be in bounds.
pub(crate) fn planned_ns(stage: &Stage) -> u64 {
    stage
        .warm_up_ns
        .saturating_add(stage.duration_ns)
        .saturating_add(stage.gap_ns)
        .saturating_mul(stage.rounds.len() as u64)
}

/// No more can move than all senders' NICs send, or all receivers' take.
fn most_bytes(stage: &Stage, nic_bits_per_sec: f64) -> Option<u64> {
    if !stage.workload.kind.is_bulk() {
        return None;
    }
    let busy = |round: &ew_model::Round| {
        let senders: BTreeSet<_> = round.flows.iter().map(|f| f.src).collect();
        let receivers: BTreeSet<_> = round.flows.iter().map(|f| f.dst).collect();
        senders.len().min(receivers.len()) as f64
    };
    let busy: f64 = stage.rounds.iter().map(busy).sum();
    let seconds = (stage.warm_up_ns as f64 + stage.duration_ns as f64) / 1e9;
    Some((busy * seconds * nic_bits_per_sec / 8.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::inventory;
    use crate::{plan, scenario};

    #[test]
    fn a_mesh_of_sixteen_is_within_its_bar() {
        let text = scenario::builtin("mesh").unwrap();
        let scenario = scenario::parse(text, "mesh", &[]).unwrap();
        let plan = plan(&scenario, &inventory(&[8, 8]), 1).unwrap();
        let estimate = estimate(&plan, Some(1e9));
        assert_eq!(estimate.flows, 240);
        let bar_ns = estimate.rounds * (1_000_000_000 + 300_000_000) + 5_000_000_000;
        assert!(estimate.duration_ns <= bar_ns);
        // 240 flows of 1.2 s at 1 Gb/s.
        assert_eq!(estimate.bytes, Some(36_000_000_000));
    }

    #[test]
    fn an_unknown_rate_gives_no_bytes() {
        let text = scenario::builtin("rtt").unwrap();
        let scenario = scenario::parse(text, "rtt", &[]).unwrap();
        let plan = plan(&scenario, &inventory(&[4]), 1).unwrap();
        assert_eq!(estimate(&plan, None).bytes, None);
        assert_eq!(estimate(&plan, Some(1e9)).bytes, None);
    }
}
