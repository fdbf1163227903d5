//! Flows without a figure, repairs counted. Named, never shown as 0.

use super::{Case, evidence};
use crate::observations::StageView;
use crate::precision::confidence;
use crate::words::{count, list, plain};
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
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
        sentence: if interrupted {
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
        measured: Some(plain(missing as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: confidence(Cause::CellsMissing),
        evidence: all_evidence(case),
        hint: if interrupted {
            "what was measured is valid; run it to the end for the rest".into()
        } else {
            "the reasons are in the rows; run again when they are dealt with, the other figures are valid".into()
        },
    }]
}

/// By stages, and by hosts whose connection tracking refused connections, which then never came up.
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
    stages.filter_map(stage_evidence).chain(words).collect()
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
