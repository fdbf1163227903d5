//! Flows without a figure, repairs counted. Named, never shown as 0.

use super::{Case, evidence};
use crate::observations::StageView;
use crate::precision::confidence;
use crate::words::{count, list, plain};
use ew_model::barrier::{Barrier, BarrierKind};
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
use ew_model::{HostId, Outcome};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let observations = case.observations;
    let run = observations.run;
    let inventory = observations.inventory();
    let missing: usize = observations
        .stages
        .iter()
        .map(|stage| stage.missing.len())
        .sum();
    if missing == 0 {
        return Vec::new();
    }
    let interrupted = run.manifest.outcome == Outcome::Interrupted;
    let planned: u32 = observations.stages.iter().map(|stage| stage.planned).sum();
    let is_gone = |host: &HostId| run.lost.contains_key(host) || run.failed.contains_key(host);
    let mut explained: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut others: BTreeSet<(HostId, HostId)> = BTreeSet::new();
    for flow in observations.stages.iter().flat_map(|stage| &stage.missing) {
        match [flow.src, flow.dst].into_iter().find(is_gone) {
            Some(host) => *explained.entry(host).or_default() += 1,
            None => {
                others.insert((flow.src, flow.dst));
            }
        }
    }
    let mut names: Vec<String> = others
        .iter()
        .map(|(src, dst)| format!("{} to {}", inventory.name(*src), inventory.name(*dst)))
        .collect();
    names.extend(
        explained
            .iter()
            .map(|(host, n)| format!("{n} with {}", inventory.name(*host))),
    );
    vec![Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: Cause::CellsMissing,
        symptom: None,
        measured: Some(plain(missing as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: confidence(Cause::CellsMissing),
        details: Worded::details(
            if interrupted {
                format!(
                    "the run was interrupted: {missing} of {} not measured",
                    count(planned as usize, "flow")
                )
            } else {
                format!(
                    "{} of {planned} could not be measured: {}",
                    count(missing, "flow"),
                    list(&names)
                )
            },
            all_evidence(case),
            if interrupted {
                "what was measured is valid; run it to the end for the rest".into()
            } else {
                "the reasons are in the rows; run again when they are dealt with, the other figures are valid".into()
            },
        ),
        cables: Vec::new(),
    }]
}

/// By stages, by hosts whose connection tracking refused connections, which then never came up, and
/// what else keeps pods apart.
fn all_evidence(case: &Case<'_>) -> Vec<Evidence> {
    let stages = case.observations.stages.iter();
    let inventory = case.observations.inventory();
    let refusing = case
        .hosts
        .iter()
        .filter_map(|h| Some((h.host, h.conntrack?)));
    let words = refusing.map(|(host, refused)| {
        let name = inventory.name(host);
        let (packets, why) = (refused.packets, refused.why());
        evidence(
            format!("{name}: conntrack dropped {packets} packets of new connections ({why})"),
            format!("counters.parquet: host = {name}, source = conntrack"),
        )
    });
    let stages: Vec<&StageView<'_>> = stages.collect();
    let barriers = &case.observations.run.manifest.barriers;
    let of_stages = of_stages(&stages).into_iter();
    of_stages
        .chain(words)
        .chain(barriers.iter().filter(is_here).map(of_barrier))
        .collect()
}

/// Why a pod ended goes with the host that is missing.
fn is_here(barrier: &&Barrier) -> bool {
    barrier.kind != BarrierKind::PodEnded
}

/// As the launcher found it after the run.
fn of_barrier(barrier: &Barrier) -> Evidence {
    evidence(barrier.words.clone(), "run.json: barriers".into())
}

/// A line for each stage; one for all those without a figure for the same reason, such as what an
/// interrupted run had still before it.
fn of_stages(stages: &[&StageView<'_>]) -> Vec<Evidence> {
    let mut without: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for stage in stages {
        if let Some(reason) = reason_of_all(stage) {
            let names = without.entry(reason).or_default();
            names.push(format!("`{}`", stage.stage.name));
        }
    }
    without.retain(|_, names| names.len() > 1);
    let is_folded = |stage: &StageView<'_>| {
        reason_of_all(stage).is_some_and(|reason| without.contains_key(reason))
    };
    let single = stages.iter().filter(|stage| !is_folded(stage));
    let folded = without.iter().map(|(reason, names)| {
        evidence(
            format!("no figure in {}, first: {reason}", list(names)),
            "flows.parquet: outcome missing".into(),
        )
    });
    let single = single.filter_map(|stage| stage_evidence(stage));
    single.chain(folded).collect()
}

/// Why the first flow has no figure, where none has.
fn reason_of_all<'a>(stage: &'a StageView<'_>) -> Option<&'a str> {
    let is_empty = stage.missing.len() == stage.planned as usize;
    let first = stage.missing.first().filter(|_| is_empty)?;
    Some(&first.reason)
}

fn stage_evidence(stage: &StageView<'_>) -> Option<Evidence> {
    let first = stage.missing.first()?;
    let name = &stage.stage.name;
    Some(evidence(
        format!(
            "`{name}`: {} of {} missing, first: {}",
            stage.missing.len(),
            stage.planned,
            first.reason
        ),
        format!("flows.parquet: stage `{name}`, outcome missing"),
    ))
}
