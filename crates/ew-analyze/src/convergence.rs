//! `samples: auto`: which figures have converged. The controller asks after every batch of rounds,
//! the analysis at the end.

use ew_evidence::observations::typical_ns;
use ew_model::analysis::{Estimate, UnconvergedFigure};
use ew_model::plan::{Flow, Stage};
use ew_model::record::FlowRecord;
use ew_stats::median_estimate;
use std::collections::BTreeMap;

/// A figure that has not converged, and the round it belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unconverged {
    /// Position of the round in its repetition: to be run again.
    pub round: usize,
    /// The figure.
    pub figure: UnconvergedFigure,
}

/// The flows' figures whose 95% interval of the median is wider than the stage asks, by round.
/// What was never measured is missing, which is another matter; a stage that does not ask has none.
///
/// Checking again after every batch makes it likelier than 5% that some interval is narrow by luck
/// and misses the truth; batches grow, so that there are few checks.
#[must_use]
pub fn unconverged(stage: &Stage, records: &[&FlowRecord]) -> Vec<Unconverged> {
    let Some(auto) = stage.auto else {
        return Vec::new();
    };
    let mut unconverged = Vec::new();
    for ((round, position), values) in values(stage, records) {
        let (Some(estimate), Some(flow)) =
            (median_estimate(&values), flow_at(stage, round, position))
        else {
            continue;
        };
        let width = relative_width(&estimate);
        if width.is_none_or(|width| width > auto.width) {
            let figure = UnconvergedFigure {
                src: flow.src,
                dst: flow.dst,
                senders_per_rack: stage.rounds[round].senders_per_rack,
                estimate,
                width,
            };
            unconverged.push(Unconverged { round, figure });
        }
    }
    unconverged
}

/// Width of an estimate's interval over its value. `None` without an interval.
#[must_use]
pub fn relative_width(estimate: &Estimate) -> Option<f64> {
    let width = estimate.high? - estimate.low?;
    (estimate.value > 0.0).then_some(width / estimate.value)
}

/// What each flow did in each repetition, by round of a repetition and position in the round.
/// Repair rounds are skipped: they are one repetition each, and do not have that round's number.
fn values(stage: &Stage, records: &[&FlowRecord]) -> BTreeMap<(usize, usize), Vec<f64>> {
    let per_sample = stage.rounds_per_sample().max(1);
    let mut values: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for record in records {
        let Some(planned) = stage.rounds.get(record.round.0 as usize) else {
            continue;
        };
        let position = planned.flows.iter().position(|flow| flow.id == record.flow);
        if let (Some(position), Some(value)) = (position, figure(record, stage)) {
            let round = record.round.0 as usize % per_sample;
            values.entry((round, position)).or_default().push(value);
        }
    }
    values
}

fn flow_at(stage: &Stage, round: usize, position: usize) -> Option<&Flow> {
    stage.rounds.get(round)?.flows.get(position)
}

/// A flow's rate in bits per second, or its median time in ns.
fn figure(record: &FlowRecord, stage: &Stage) -> Option<f64> {
    match stage.workload.kind.is_bulk() {
        true => record.bits_per_sec(),
        false => typical_ns(record).map(|ns| ns as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;
    use ew_model::plan::{End, FlowId, Round, RoundIndex, StageIndex};
    use ew_model::record::{EndRecord, FlowOutcome};
    use ew_model::scenario::{AutoSamples, Pattern};
    use ew_model::workload::{Workload, WorkloadKind};

    /// Two rounds a repetition, with one flow each.
    fn stage(samples: u32) -> Stage {
        let round = |sample: u32, slot: u32| Round {
            sample,
            senders_per_rack: Some(slot + 1),
            flows: vec![Flow {
                id: FlowId(2 * sample + slot),
                src: HostId(slot),
                dst: HostId(slot + 1),
                opened_by: End::Src,
                lane: None,
                is_aggressor: false,
                traces: None,
            }],
        };
        Stage {
            name: "t".into(),
            pattern: Pattern::Pair,
            workload: Workload::of(WorkloadKind::TcpStream),
            duration_ns: 1,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: Some(AutoSamples {
                width: 0.05,
                at_least: 6,
                at_most: samples,
                budget_ns: None,
            }),
            sweep: None,
            rounds: (0..samples)
                .flat_map(|s| [round(s, 0), round(s, 1)])
                .collect(),
        }
    }

    fn record(stage: &Stage, round: u32, bytes: u64) -> FlowRecord {
        let planned = &stage.rounds[round as usize];
        let flow = &planned.flows[0];
        let end = EndRecord {
            bytes,
            window_ns: 1_000_000_000,
            ..EndRecord::default()
        };
        FlowRecord {
            is_aggressor: false,
            stage: StageIndex(0),
            round: RoundIndex(round),
            flow: flow.id,
            sample: planned.sample,
            src: flow.src,
            dst: flow.dst,
            outcome: match bytes {
                0 => FlowOutcome::Missing { reason: "t".into() },
                _ => FlowOutcome::Measured,
            },
            sender: None,
            receiver: Some(end),
        }
    }

    /// `steady` in the first round of each repetition, `noisy` in the second.
    fn records(stage: &Stage, steady: &[u64], noisy: &[u64]) -> Vec<FlowRecord> {
        let rows = |values: &[u64], slot: u32| {
            let row = |(n, bytes): (u32, &u64)| record(stage, 2 * n + slot, *bytes);
            (0..).zip(values).map(row).collect::<Vec<_>>()
        };
        [rows(steady, 0), rows(noisy, 1)].concat()
    }

    fn left(stage: &Stage, rows: &[FlowRecord]) -> Vec<Unconverged> {
        unconverged(stage, &rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_wide_interval_is_told_with_its_round() {
        let stage = stage(8);
        let rows = records(
            &stage,
            &[1000, 1001, 999, 1000, 1002, 998],
            &[900, 1000, 1100, 950, 1050, 1000],
        );
        let left = left(&stage, &rows);
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].round, left[0].figure.src), (1, HostId(1)));
        assert_eq!(left[0].figure.senders_per_rack, Some(2));
        assert!((left[0].figure.width.unwrap() - 0.2).abs() < 1e-9);
        assert!((left[0].figure.estimate.value - 8000.0).abs() < 1e-9);
    }

    #[test]
    fn five_equal_values_have_no_interval_and_have_not_converged() {
        let stage = stage(8);
        let five = left(&stage, &records(&stage, &[1000; 5], &[]));
        assert_eq!((five.len(), five[0].figure.width), (1, None));
        assert_eq!(left(&stage, &records(&stage, &[1000; 6], &[])), []);
    }

    #[test]
    fn what_was_never_measured_holds_nobody_up() {
        let stage = stage(8);
        assert_eq!(left(&stage, &records(&stage, &[1000; 6], &[0; 6])), []);
    }

    #[test]
    fn a_given_number_of_samples_asks_for_nothing() {
        let mut stage = stage(8);
        let rows = records(&stage, &[1000, 500, 100], &[]);
        stage.auto = None;
        assert_eq!(left(&stage, &rows), []);
    }
}
