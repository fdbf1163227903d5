//! Flow completion times at a load, by size, over those of the same size alone.
//!
//! Messages of one class have one size, so a slowdown compares like with like; and it is formed
//! within one pass, in which the stages run one after the other, so that what drifts touches both.

use crate::congestion::MIN_FOR_P99;
use ew_evidence::observations::{Observations, StageView};
use ew_model::Run;
use ew_model::analysis::Estimate;
use ew_model::completion::{FlowCompletion, SizeSlowdown};
use ew_model::latency::Histogram;
use ew_model::plan::{LimitedRound, Stage, StageIndex};
use ew_model::sizes::SizeClass;
use ew_model::workload::WorkloadKind;
use ew_stats::{median, median_estimate};
use std::collections::BTreeMap;

/// Times of one size, by repetition.
type Passes = BTreeMap<u32, Histogram>;
/// By size.
type Times = BTreeMap<u64, Passes>;

/// All stages of messages that have a baseline, itself included, in the order of the plan.
pub(crate) fn completions(observations: &Observations<'_>) -> Vec<FlowCompletion> {
    let stages = (0u32..).map(StageIndex).zip(&observations.stages);
    let of_messages =
        stages.filter(|(_, view)| view.stage.workload.kind == WorkloadKind::FlowSizes);
    let of_messages: Vec<_> = of_messages.collect();
    let baseline = |of: &Stage| {
        let mut views = of_messages.iter().map(|(_, view)| *view);
        views.find(|view| {
            let workload = &view.stage.workload;
            let is_alone = !view.has_aggressors() && workload.pace.line_share.is_none();
            is_alone && workload.distribution == of.workload.distribution
        })
    };
    let completion = |(index, view): &(StageIndex, &StageView<'_>)| {
        let baseline = baseline(view.stage)?;
        completion(observations.run, *index, view, baseline)
    };
    of_messages.iter().filter_map(completion).collect()
}

fn completion(
    run: &Run,
    index: StageIndex,
    view: &StageView<'_>,
    baseline: &StageView<'_>,
) -> Option<FlowCompletion> {
    let workload = &view.stage.workload;
    let is_baseline = std::ptr::eq(view, baseline);
    let (alone, loaded) = (times(baseline), times(view));
    let none = Passes::new();
    let size = |class: SizeClass| {
        let loaded = loaded.get(&class.bytes).unwrap_or(&none);
        slowdown(class, alone.get(&class.bytes)?, loaded, is_baseline)
    };
    let classes = workload.distribution.classes().into_iter();
    let sizes: Vec<SizeSlowdown> = classes.filter_map(size).collect();
    (!sizes.is_empty()).then(|| FlowCompletion {
        stage: view.stage.name.clone(),
        baseline_stage: baseline.stage.name.clone(),
        distribution: workload.distribution,
        load: workload.pace.line_share,
        achieved_load: achieved(run, index, view.stage),
        sizes,
    })
}

/// Of all the stage's measured flows.
fn times(view: &StageView<'_>) -> Times {
    let mut times = Times::new();
    for row in view.measured() {
        for one in row.sender.iter().flat_map(|end| &end.completions) {
            let passes = times.entry(one.bytes).or_default();
            passes.entry(row.sample).or_default().merge(&one.times);
        }
    }
    times
}

fn slowdown(
    class: SizeClass,
    alone: &Passes,
    loaded: &Passes,
    is_baseline: bool,
) -> Option<SizeSlowdown> {
    let typical = |times: &Histogram| times.quantile(0.5).map(|ns| ns as f64);
    let medians: BTreeMap<u32, f64> = alone
        .iter()
        .filter_map(|(pass, times)| Some((*pass, typical(times)?)))
        .collect();
    let alone_ns = median(&medians.values().copied().collect::<Vec<_>>())?;
    // What messages of a pass are compared with.
    let reference = |pass: u32| match is_baseline {
        false => Some(medians.get(&pass).copied().unwrap_or(alone_ns)),
        true => {
            let others = medians.iter().filter(|(other, _)| **other != pass);
            median(&others.map(|(_, ns)| *ns).collect::<Vec<_>>())
        }
    };
    let over = |figure: &dyn Fn(&Histogram) -> Option<f64>| -> Vec<Option<f64>> {
        let of_pass = |(pass, times): (&u32, &Histogram)| Some(figure(times)? / reference(*pass)?);
        loaded.iter().map(of_pass).collect()
    };
    let p50: Vec<f64> = over(&typical).into_iter().flatten().collect();
    let p99: Option<Vec<f64>> = over(&tail).into_iter().collect();
    let mut all = Histogram::default();
    loaded.values().for_each(|times| all.merge(times));
    let of_all = || tail(&all).map(|ns| vec![ns / alone_ns]);
    Some(SizeSlowdown {
        bytes: class.bytes,
        share: class.share,
        messages: all.count(),
        alone_ns,
        p50: median_estimate(&p50),
        p99: p99.or_else(of_all).and_then(|p99| median_estimate(&p99)),
    })
}

/// The 99th percentile, where enough messages are behind it.
fn tail(times: &Histogram) -> Option<f64> {
    let is_told = times.count() >= MIN_FOR_P99;
    is_told.then(|| times.quantile(0.99).map(|ns| ns as f64))?
}

/// What all flows of a stage carried over what they were to offer, as a share of the line rate.
fn achieved(run: &Run, index: StageIndex, stage: &Stage) -> Option<Estimate> {
    let load = stage.workload.pace.line_share?;
    let mut carried: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for (number, round) in stage.rounds.iter().enumerate() {
        let at_line_rate = LimitedRound::at_line_rate(&run.plan, round)?;
        let offered: BTreeMap<_, f64> = (round.flows.iter())
            .filter_map(|flow| Some((flow.id, stage.load(flow, &at_line_rate)?)))
            .collect();
        let rows =
            (run.flows.iter()).filter(|row| row.stage == index && row.round.0 as usize == number);
        for row in rows {
            if let (Some(rate), Some(offered)) = (row.bits_per_sec(), offered.get(&row.flow)) {
                let sums = carried.entry(row.sample).or_default();
                *sums = (sums.0 + rate, sums.1 + offered);
            }
        }
    }
    let shares = carried.values().filter(|(_, offered)| *offered > 0.0);
    let shares: Vec<f64> = shares
        .map(|(rate, offered)| load * rate / offered)
        .collect();
    median_estimate(&shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: SizeClass = SizeClass {
        bytes: 300,
        share: 0.5,
    };

    fn passes(of: &[(u64, u64)]) -> Passes {
        let of_pass = |(pass, (ns, count)): (u32, &(u64, u64))| (pass, Histogram::of(*ns, *count));
        (0..).zip(of).map(of_pass).collect()
    }

    #[test]
    fn a_pass_is_compared_with_the_same_size_alone_in_it() {
        let alone = passes(&[(100, 9), (200, 9), (100, 9)]);
        let loaded = passes(&[(300, 500), (600, 500), (300, 500)]);
        let found = slowdown(CLASS, &alone, &loaded, false).unwrap();
        assert_eq!(found.p50.unwrap().value, 3.0);
        assert_eq!(
            (found.p99.unwrap().value, found.p99.unwrap().samples),
            (3.0, 3)
        );
        assert_eq!((found.alone_ns, found.messages), (100.0, 1500));
    }

    #[test]
    fn the_baseline_is_compared_with_its_other_passes() {
        let alone = passes(&[(100, 400), (150, 400), (100, 400)]);
        let found = slowdown(CLASS, &alone, &alone, true).unwrap();
        // 100 over 125, 150 over 100, 100 over 125.
        assert_eq!(found.p50.unwrap().value, 0.8);
        let once = passes(&[(100, 400)]);
        assert_eq!(slowdown(CLASS, &once, &once, true).unwrap().p50, None);
    }

    #[test]
    fn few_messages_have_a_tail_together_or_none() {
        let alone = passes(&[(100, 9), (100, 9)]);
        let few = passes(&[(300, 150), (500, 150)]);
        let found = slowdown(CLASS, &alone, &few, false).unwrap().p99.unwrap();
        assert_eq!((found.value, found.samples, found.low), (5.0, 1, None));
        let fewer = passes(&[(300, 100), (500, 100)]);
        assert_eq!(slowdown(CLASS, &alone, &fewer, false).unwrap().p99, None);
        assert!(slowdown(CLASS, &Passes::new(), &few, false).is_none());
        let nothing = slowdown(CLASS, &alone, &Passes::new(), false).unwrap();
        assert_eq!(
            (nothing.messages, nothing.p50, nothing.p99),
            (0, None, None)
        );
    }
}
