//! What a plan will cost, known beforehand.

use ew_model::plan::{Plan, Stage};
use ew_model::workload::{Limit, Workload};
use std::collections::BTreeSet;

/// Per stage: clock exchanges, sending the rounds ahead, the common start's lead, and collecting
/// the reports.
pub const STAGE_OVERHEAD_NS: u64 = 1_000_000_000;

/// What a plan, or one of its stages, will cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanCost {
    /// Time without launch and teardown; the most it may take where rounds run until their figures
    /// converge.
    pub duration_ns: u64,
    /// The same when everything converges at the first check.
    pub least_duration_ns: u64,
    /// Flows over all rounds.
    pub flows: u64,
    /// Rounds.
    pub rounds: u64,
    /// Payload bytes at most, both directions: what configured rates and limits allow, for bulk
    /// workloads no more than every busy NIC at line rate, through warm-ups and windows. `None`
    /// when neither is known, as with requests as fast as answers come; a plan's total leaves those
    /// out.
    pub bytes: Option<u64>,
}

/// Estimates a whole plan; `nic_bits_per_sec` is a host's line rate, when known.
#[must_use]
pub fn estimate(plan: &Plan, nic_bits_per_sec: Option<f64>) -> PlanCost {
    let add = |sum: PlanCost, stage: &Stage| {
        let one = estimate_stage(stage, nic_bits_per_sec);
        PlanCost {
            duration_ns: sum.duration_ns.saturating_add(one.duration_ns),
            least_duration_ns: sum.least_duration_ns.saturating_add(one.least_duration_ns),
            flows: sum.flows.saturating_add(one.flows),
            rounds: sum.rounds.saturating_add(one.rounds),
            bytes: match (sum.bytes, one.bytes) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            },
        }
    };
    plan.stages.iter().fold(PlanCost::default(), add)
}

/// Estimates one stage.
#[must_use]
pub fn estimate_stage(stage: &Stage, nic_bits_per_sec: Option<f64>) -> PlanCost {
    PlanCost {
        duration_ns: stage.planned_ns().saturating_add(STAGE_OVERHEAD_NS),
        least_duration_ns: stage.min_planned_ns().saturating_add(STAGE_OVERHEAD_NS),
        flows: stage.rounds.iter().map(|r| r.flows.len() as u64).sum(),
        rounds: stage.rounds.len() as u64,
        bytes: most_bytes(stage, nic_bits_per_sec),
    }
}

/// The lowest of what bounds a stage's bytes.
fn most_bytes(stage: &Stage, nic_bits_per_sec: Option<f64>) -> Option<u64> {
    let workload = &stage.workload;
    let seconds = (stage.warm_up_ns as f64 + stage.duration_ns as f64) / 1e9;
    let flows: usize = stage.rounds.iter().map(|r| r.flows.len()).sum();
    let (flows, streams) = (flows as f64, f64::from(workload.streams));
    let pace = &workload.pace;
    let by_rate = |bits_per_sec: f64| flows * seconds * bits_per_sec / 8.0;
    let nic = nic_bits_per_sec.filter(|_| fills_links(stage));
    let share = pace.line_share.unwrap_or(1.0);
    let bounds = [
        nic.map(|rate| busy_nics(stage) * seconds * share * rate / 8.0),
        pace.stream_bits_per_sec.map(|rate| by_rate(rate * streams)),
        pace.flow_bits_per_sec.map(by_rate),
        pace.requests_per_sec
            .map(|rate| flows * seconds * rate * transaction_bytes(workload)),
        workload.limit.map(|limit| match limit {
            Limit::Bytes(bytes) => flows * streams * bytes as f64,
            Limit::Messages(count) => flows * streams * count as f64 * transaction_bytes(workload),
        }),
    ];
    let least = bounds.into_iter().flatten().min_by(f64::total_cmp)?;
    Some(least as u64)
}

/// Whether a stage sends as much as links carry where nothing else bounds it: bulk, messages of all
/// sizes, or aggressors.
#[must_use]
pub fn fills_links(stage: &Stage) -> bool {
    let mut flows = stage.rounds.iter().flat_map(|round| &round.flows);
    stage.workload.kind.keeps_to_a_rate() || flows.any(|flow| flow.is_aggressor)
}

/// No more can move than all senders' NICs send, or all receivers' take; summed over rounds.
fn busy_nics(stage: &Stage) -> f64 {
    let busy = |round: &ew_model::Round| {
        let senders: BTreeSet<_> = round.flows.iter().map(|f| f.src).collect();
        let receivers: BTreeSet<_> = round.flows.iter().map(|f| f.dst).collect();
        senders.len().min(receivers.len()) as f64
    };
    stage.rounds.iter().map(busy).sum()
}

/// A message, with its answer where there are answers.
fn transaction_bytes(workload: &Workload) -> f64 {
    let answer = match workload.kind.is_bulk() {
        true => 0,
        false => workload.answer_bytes(),
    };
    workload.message_bytes as f64 + answer as f64
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
    fn aggressors_fill_links_beside_victims_that_only_ask() {
        let text = scenario::builtin("congestion").unwrap();
        let scenario = scenario::parse(text, "congestion", &[]).unwrap();
        let plan = plan(&scenario, &inventory(&[4, 4]), 1).unwrap();
        let bytes = |at: usize| estimate_stage(&plan.stages[at], Some(1e9)).bytes;
        assert_eq!(bytes(0), None, "round trips alone");
        assert!(bytes(2) > Some(6 * 1_000_000_000 / 8), "all-to-all");
    }

    #[test]
    fn a_load_has_its_share_of_the_bytes() {
        let text = "name: a\ndefaults: {duration: 2s, warm-up: 0, samples: 1}\n\
                    tests: [{pattern: pair, workload: flow-sizes, load: 50%}]\n";
        let scenario = scenario::parse(text, "a.yaml", &[]).unwrap();
        let plan = plan(&scenario, &inventory(&[2]), 1).unwrap();
        assert_eq!(estimate(&plan, Some(1e8)).bytes, Some(12_500_000));
        assert_eq!(estimate(&plan, None).bytes, None);
    }

    #[test]
    fn an_unknown_rate_gives_no_bytes() {
        let text = scenario::builtin("rtt").unwrap();
        let scenario = scenario::parse(text, "rtt", &[]).unwrap();
        let plan = plan(&scenario, &inventory(&[4]), 1).unwrap();
        assert_eq!(estimate(&plan, None).bytes, None);
        assert_eq!(estimate(&plan, Some(1e9)).bytes, None);
    }

    #[test]
    fn stated_rates_and_limits_bound_the_bytes() {
        let bytes = |settings: &str, nic| {
            let text = format!(
                "name: a\ndefaults: {{duration: 2s, warm-up: 0, samples: 1}}\ntests: [{{pattern: pair, {settings}}}]\n"
            );
            let scenario = scenario::parse(&text, "a.yaml", &[]).unwrap();
            let plan = plan(&scenario, &inventory(&[2]), 1).unwrap();
            estimate(&plan, nic).bytes
        };
        let udp = "workload: udp-stream, streams: 4, rate: 100M";
        assert_eq!(bytes(udp, None), Some(100_000_000));
        assert_eq!(bytes(udp, Some(1e8)), Some(25_000_000), "the NIC is slower");
        assert_eq!(
            bytes("total-rate: 100M, streams: 4", None),
            Some(25_000_000)
        );
        assert_eq!(
            bytes("limit-bytes: 1M, streams: 4", Some(1e9)),
            Some(4 << 20)
        );
        let open =
            "workload: udp-rr, request-rate: 1k, message-size: 936, response-size: 64, streams: 8";
        assert_eq!(bytes(open, Some(1e9)), Some(2_000_000));
        assert_eq!(bytes("workload: udp-rr", Some(1e9)), None);
        assert_eq!(
            bytes("workload: ping, interval: 10ms", None),
            Some(200 * 112)
        );
        assert_eq!(
            bytes("workload: ping, limit-messages: 5", None),
            Some(5 * 112)
        );
    }
}
