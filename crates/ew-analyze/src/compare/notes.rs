//! What differs between two runs besides their figures.

use ew_evidence::observations::{Observations, StageView};
use ew_model::comparison::{
    Change, ComparisonNote, MetricComparison, NotCompared, StageComparison, StageNote,
};
use ew_model::plan::Stage;
use ew_model::{Analysis, Outcome, Run};
use std::collections::BTreeSet;

/// "`mesh` (tcp-stream), `rtt` (tcp-rr)", for errors.
pub(super) fn stage_list(stages: &[StageView<'_>]) -> String {
    let one = |view: &StageView<'_>| {
        let kind = view.stage.workload.kind.name();
        format!("`{}` ({kind})", view.stage.name)
    };
    match stages.len() {
        0 => "no stage".into(),
        _ => stages.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

/// Stages without a partner, and those with one of which a side has no figure.
pub(super) fn not_compared(
    a: &Observations<'_>,
    b: &Observations<'_>,
    matched: &[(&StageView<'_>, &StageView<'_>)],
) -> Vec<NotCompared> {
    let unmatched = |run: &Observations<'_>, is_matched: &dyn Fn(&str) -> bool| {
        let names = run.stages.iter().map(|view| view.stage.name.as_str());
        names
            .filter(|name| !is_matched(name))
            .map(|name| NotCompared::OnlyIn {
                stage: name.to_owned(),
                run: run.run.manifest.id.clone(),
            })
            .collect::<Vec<_>>()
    };
    let ours = |name: &str| matched.iter().any(|(a, _)| a.stage.name == name);
    let theirs = |name: &str| matched.iter().any(|(_, b)| b.stage.name == name);
    let mut found = unmatched(a, &ours);
    found.extend(unmatched(b, &theirs));
    for (a, b) in matched {
        if a.measured().next().is_none() || b.measured().next().is_none() {
            let stage = a.stage.name.clone();
            found.push(NotCompared::NoFigure { stage });
        }
    }
    found
}

/// How a stage was measured otherwise.
pub(super) fn of_stages(a: &Stage, b: &Stage) -> Vec<StageNote> {
    let name = differing(a.name.clone(), b.name.clone());
    let pattern = differing(a.pattern.name().to_owned(), b.pattern.name().to_owned());
    let tool = differing(a.workload.tool, b.workload.tool);
    let settings = differing(a.workload.settings(), b.workload.settings());
    let window = differing(a.duration_ns, b.duration_ns);
    let rounds = differing(a.rounds.len() as u32, b.rounds.len() as u32);
    let notes = [
        name.map(|(base, other)| StageNote::Name { base, other }),
        pattern.map(|(base, other)| StageNote::Pattern { base, other }),
        tool.map(|(base, other)| StageNote::Tool { base, other }),
        settings.map(|(base, other)| StageNote::Settings { base, other }),
        window.map(|(base_ns, other_ns)| StageNote::Window { base_ns, other_ns }),
        rounds.map(|(base, other)| StageNote::Rounds { base, other }),
    ];
    notes.into_iter().flatten().collect()
}

/// Both, where they differ.
fn differing<T: PartialEq>(base: T, other: T) -> Option<(T, T)> {
    (base != other).then_some((base, other))
}

/// What differs between the runs as a whole.
pub(super) fn of_runs(a: &Analysis, b: &Analysis) -> Vec<ComparisonNote> {
    let of_both = |of: fn(&Analysis) -> String| differing(of(a), of(b));
    let line_rate = differing(line_rate(a), line_rate(b));
    let frames = differing(a.basis.framing.clone(), b.basis.framing.clone());
    let version = of_both(|x| x.run.version.clone());
    let kernels = differing(kernels(a), kernels(b));
    let fleet = of_both(|x| x.run.fleet.clone());
    let seeds = differing(a.run.seed, b.run.seed);
    let notes = [
        not_whole(&a.run.id, a.run.outcome),
        not_whole(&b.run.id, b.run.outcome),
        line_rate.map(|(base, other)| ComparisonNote::LineRate { base, other }),
        frames.map(|(base, other)| ComparisonNote::Frames { base, other }),
        version.map(|(base, other)| ComparisonNote::Version { base, other }),
        kernels.map(|(base, other)| ComparisonNote::Kernels { base, other }),
        fleet.map(|(base, other)| ComparisonNote::Fleet { base, other }),
        hosts(a, b),
        seeds.map(|(base, other)| ComparisonNote::Seeds {
            base,
            other,
            base_run: a.run.id.clone(),
        }),
    ];
    notes.into_iter().flatten().collect()
}

/// Runs that were not whole, other than the first ones.
pub(super) fn of_replicates(base: &[Run], other: &[Run]) -> Vec<ComparisonNote> {
    let more = base.iter().skip(1).chain(other.iter().skip(1));
    let manifests = more.map(|run| &run.manifest);
    let notes = manifests.filter_map(|run| not_whole(&run.id, run.outcome));
    notes.collect()
}

/// What the interval allows for, and how to narrow it.
pub(super) fn of_spread(stages: &[StageComparison]) -> Vec<ComparisonNote> {
    let metrics = || stages.iter().flat_map(|stage| &stage.metrics);
    let Some(first) = metrics().next() else {
        return Vec::new();
    };
    let mut notes = vec![ComparisonNote::Spread {
        metric: first.metric,
        stage: stages[0].name.clone(),
        spread: first.spread,
    }];
    let is_of_few = |m: &MetricComparison| m.change == Change::Different;
    if metrics().any(is_of_few) {
        notes.push(ComparisonNote::TooFewRuns);
    }
    notes
}

fn not_whole(run: &str, outcome: Outcome) -> Option<ComparisonNote> {
    (outcome != Outcome::Complete).then(|| ComparisonNote::NotWhole {
        run: run.to_owned(),
        outcome,
    })
}

/// A measured rate is a result, not a setting.
fn line_rate(analysis: &Analysis) -> Option<f64> {
    let basis = &analysis.basis;
    let nic = basis.nic_bits_per_sec;
    nic.filter(|_| !basis.nic_rate_source.is_measured())
}

fn kernels(analysis: &Analysis) -> Vec<String> {
    let hosts = analysis.hosts.iter();
    let kernels: BTreeSet<&String> = hosts.filter_map(|host| host.kernel.as_ref()).collect();
    kernels.into_iter().cloned().collect()
}

fn hosts(a: &Analysis, b: &Analysis) -> Option<ComparisonNote> {
    let names = |x: &Analysis| -> BTreeSet<String> {
        let hosts = x.inventory().hosts.iter();
        hosts.map(|host| host.name.clone()).collect()
    };
    let (ours, theirs) = (names(a), names(b));
    let only = |x: &BTreeSet<String>, y: &BTreeSet<String>| x.difference(y).cloned().collect();
    (ours != theirs).then(|| ComparisonNote::Hosts {
        base: only(&ours, &theirs),
        other: only(&theirs, &ours),
    })
}
