//! What differs between two runs besides their figures, in words.

use crate::observations::{Observations, StageView};
use crate::settings::in_words;
use ew_model::comparison::{Change, MIN_RUNS, MetricComparison, StageComparison};
use ew_model::plan::Stage;
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use ew_model::{Analysis, Outcome, Run};
use std::collections::BTreeSet;

/// So many names are reported.
const NAMES_TOLD: usize = 4;

/// "`mesh` (tcp-stream), `rtt` (tcp-rr)".
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
) -> Vec<String> {
    let unmatched = |stages: &[StageView<'_>], run: &str, is_matched: &dyn Fn(&str) -> bool| {
        let names = stages.iter().map(|view| view.stage.name.as_str());
        names
            .filter(|name| !is_matched(name))
            .map(|name| format!("`{name}` is only in {run}"))
            .collect::<Vec<_>>()
    };
    let ours = |name: &str| matched.iter().any(|(a, _)| a.stage.name == name);
    let theirs = |name: &str| matched.iter().any(|(_, b)| b.stage.name == name);
    let mut lines = unmatched(&a.stages, &a.run.manifest.id, &ours);
    lines.extend(unmatched(&b.stages, &b.run.manifest.id, &theirs));
    for (a, b) in matched {
        if a.measured().next().is_none() || b.measured().next().is_none() {
            lines.push(format!(
                "`{}` has no figure in one of the runs",
                a.stage.name
            ));
        }
    }
    lines
}

/// How a stage was measured otherwise.
pub(super) fn of_stages(a: &Stage, b: &Stage) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut differs = |what: &str, base: String, other: String| {
        if base != other {
            remarks.push(format!("{what}: {base} against {other}"));
        }
    };
    differs("stage", format!("`{}`", a.name), format!("`{}`", b.name));
    differs("pattern", a.pattern.name().into(), b.pattern.name().into());
    let tool = |stage: &Stage| stage.workload.tool.name().to_owned();
    differs("tool", tool(a), tool(b));
    let settings = |stage: &Stage| match in_words(&stage.workload) {
        words if words.is_empty() => "the defaults".into(),
        words => words.join(", "),
    };
    differs("settings", settings(a), settings(b));
    let window = |stage: &Stage| format_duration_ns(stage.duration_ns);
    differs("window", window(a), window(b));
    let rounds = |stage: &Stage| stage.rounds.len().to_string();
    differs("rounds", rounds(a), rounds(b));
    remarks
}

/// What differs between the runs as a whole.
pub(super) fn of_runs(a: &Analysis, b: &Analysis) -> Vec<String> {
    let mut remarks: Vec<String> = [a, b].into_iter().filter_map(unfinished).collect();
    let mut differs = |what: &str, base: String, other: String| {
        if base != other {
            remarks.push(format!("{what}: {base} against {other}"));
        }
    };
    let line_rate = |x: &Analysis| {
        let nic = x.basis.nic_bits_per_sec;
        // Discovered rates are results, not settings.
        let nic = nic.filter(|_| !x.basis.nic_source.starts_with("discovered"));
        nic.map_or("not known".into(), format_bits_per_sec)
    };
    differs("line rate", line_rate(a), line_rate(b));
    let frames = |x: &Analysis| x.basis.efficiency_source.clone();
    differs("frames", frames(a), frames(b));
    let version = |x: &Analysis| x.run.version.clone();
    differs("eastwest", version(a), version(b));
    differs("kernels", kernels(a), kernels(b));
    differs("fleet", a.run.fleet.clone(), b.run.fleet.clone());
    remarks.extend(host_remark(a, b));
    if a.run.seed != b.run.seed {
        remarks.push(format!(
            "seeds {} and {}: random pairs may differ; `eastwest runs repeat {}` runs the same flows",
            a.run.seed, b.run.seed, a.run.id
        ));
    }
    remarks
}

/// Runs that were not whole, other than the first ones.
pub(super) fn of_replicates(base: &[Run], other: &[Run]) -> Vec<String> {
    let more = base.iter().skip(1).chain(other.iter().skip(1));
    let manifests = more.map(|run| &run.manifest);
    let said = manifests.filter_map(|run| Some(format!("{} {}", run.id, how(run.outcome)?)));
    said.collect()
}

/// What the interval allows for, and how to narrow it.
pub(super) fn of_spread(stages: &[StageComparison]) -> Vec<String> {
    let mut metrics = stages.iter().flat_map(|stage| &stage.metrics);
    let Some(first) = metrics.next() else {
        return Vec::new();
    };
    let percent = 100.0 * first.spread.deviation;
    let source = match (first.spread.degrees, first.spread.history) {
        (None, _) => "assumed: too few runs show it".to_owned(),
        (Some(_), 0) => "from the runs compared".to_owned(),
        (Some(_), history) => format!("from the runs compared and {history} earlier ones"),
    };
    let stage = &stages[0].name;
    let mut lines = vec![format!(
        "run-to-run spread of {} in `{stage}`: {percent:.2}% ({source})",
        first.metric.name()
    )];
    let is_of_few = |m: &MetricComparison| m.change == Change::Different;
    if stages
        .iter()
        .flat_map(|stage| &stage.metrics)
        .any(is_of_few)
    {
        lines.push(format!(
            "\"different\" describes the runs; for a change of the network give {MIN_RUNS} runs or more of each, \
             such as `eastwest compare A1,A2,A3 B1,B2,B3`"
        ));
    }
    lines
}

fn unfinished(analysis: &Analysis) -> Option<String> {
    let how = how(analysis.run.outcome)?;
    Some(format!("{} {how}", analysis.run.id))
}

/// How a run was not whole.
fn how(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Complete => None,
        Outcome::Partial => Some("is partial: hosts or pairs are missing"),
        Outcome::Interrupted => Some("was interrupted"),
        Outcome::Failed => Some("failed"),
        Outcome::Unfinished => Some("was cut short"),
    }
}

fn kernels(analysis: &Analysis) -> String {
    let kernels: BTreeSet<&str> = analysis
        .hosts
        .iter()
        .filter_map(|host| host.kernel.as_deref())
        .collect();
    match kernels.len() {
        0 => "not known".into(),
        _ => kernels.into_iter().collect::<Vec<_>>().join(", "),
    }
}

fn host_remark(a: &Analysis, b: &Analysis) -> Option<String> {
    let names = |x: &Analysis| -> BTreeSet<String> {
        let hosts = x.inventory().hosts.iter();
        hosts.map(|host| host.name.clone()).collect()
    };
    let (ours, theirs) = (names(a), names(b));
    let listed = |names: Vec<&String>| match names.as_slice() {
        [] => "none".to_owned(),
        few if few.len() <= NAMES_TOLD => {
            let few: Vec<&str> = few.iter().map(|name| name.as_str()).collect();
            few.join(", ")
        }
        many => format!("{} hosts", many.len()),
    };
    let only =
        |x: &BTreeSet<String>, y: &BTreeSet<String>| listed(x.difference(y).collect::<Vec<_>>());
    (ours != theirs).then(|| {
        format!(
            "hosts only in one run: {} against {}",
            only(&ours, &theirs),
            only(&theirs, &ours)
        )
    })
}
