//! Flows without a figure, repairs counted. Named, never shown as 0.

use super::case::Case;
use crate::finding::{MAX_EVIDENCE, finding_of, plain};
use ew_evidence::observations::{Observations, StageView};
use ew_model::barrier::{Barrier, BarrierKind};
use ew_model::finding::details::{
    FlowsMissing, MissingWith, RefusingHost, StageMissing, StagesMissing,
};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::{HostId, Outcome};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let stages = case.observations.stages.iter();
    let missing: usize = stages.map(|stage| stage.missing.len()).sum();
    if missing == 0 {
        return Vec::new();
    }
    vec![Finding {
        measured: plain(missing as f64, "count"),
        expected: plain(0.0, "count"),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            Cause::PairsMissing,
            Details::FlowsMissing(details(case, missing)),
        )
    }]
}

fn details(case: &Case<'_>, missing: usize) -> FlowsMissing {
    let observations = case.observations;
    let planned: u32 = observations.stages.iter().map(|stage| stage.planned).sum();
    let barriers = observations.run.manifest.barriers.iter();
    let with = with(observations);
    let stages: Vec<&StageView<'_>> = observations.stages.iter().collect();
    let (empty_stages, others) = empty_alike(&stages);
    FlowsMissing {
        missing,
        planned: planned as usize,
        is_interrupted: observations.run.manifest.outcome == Outcome::Interrupted,
        to_name: with.len(),
        named: with.into_iter().take(MAX_EVIDENCE).collect(),
        stages: others.into_iter().filter_map(of_stage).collect(),
        empty_stages,
        refusing: refusing(case),
        barriers: barriers
            .filter(is_here)
            .map(|barrier| barrier.words.clone())
            .collect(),
    }
}

/// Whose missing flows they are: of a host that is missing itself, else of a pair.
fn with(observations: &Observations<'_>) -> Vec<MissingWith> {
    let run = observations.run;
    let is_gone = |host: &HostId| run.lost.contains_key(host) || run.failed.contains_key(host);
    let mut hosts: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut pairs: BTreeSet<(HostId, HostId)> = BTreeSet::new();
    for flow in observations.stages.iter().flat_map(|stage| &stage.missing) {
        match [flow.src, flow.dst].into_iter().find(is_gone) {
            Some(host) => *hosts.entry(host).or_default() += 1,
            None => {
                pairs.insert((flow.src, flow.dst));
            }
        }
    }
    let pairs = pairs.into_iter();
    let hosts = hosts.into_iter();
    pairs
        .map(|(src, dst)| MissingWith::Pair { src, dst })
        .chain(hosts.map(|(host, flows)| MissingWith::Host { host, flows }))
        .collect()
}

/// Hosts whose connection tracking refused connections, which then never came up.
fn refusing(case: &Case<'_>) -> Vec<RefusingHost> {
    let hosts = case.hosts.iter();
    let refusing = hosts.filter_map(|host| Some((host.host, host.conntrack?)));
    refusing
        .map(|(host, refused)| RefusingHost { host, refused })
        .collect()
}

/// Why a pod ended goes with the host that is missing.
fn is_here(barrier: &&Barrier) -> bool {
    barrier.kind != BarrierKind::PodEnded
}

/// Stages that have no figure at all for the same reason, such as what an interrupted run had still
/// before it, and the other stages.
fn empty_alike<'s, 'a>(
    stages: &[&'s StageView<'a>],
) -> (Vec<StagesMissing>, Vec<&'s StageView<'a>>) {
    let mut empty: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for stage in stages {
        if let Some(reason) = reason_of_all(stage) {
            let names = empty.entry(reason).or_default();
            names.push(stage.stage.name.clone());
        }
    }
    empty.retain(|_, names| names.len() > 1);
    let is_other = |stage: &&&StageView<'_>| {
        reason_of_all(stage).is_none_or(|reason| !empty.contains_key(reason))
    };
    let others = stages.iter().filter(is_other).copied().collect();
    let folded = empty.into_iter().map(|(reason, stages)| StagesMissing {
        stages,
        reason: reason.to_owned(),
    });
    (folded.collect(), others)
}

/// Why the first flow has no figure, where none has.
fn reason_of_all<'a>(stage: &'a StageView<'_>) -> Option<&'a str> {
    let is_empty = stage.missing.len() == stage.planned as usize;
    let first = stage.missing.first().filter(|_| is_empty)?;
    Some(&first.reason)
}

fn of_stage(stage: &StageView<'_>) -> Option<StageMissing> {
    let first = stage.missing.first()?;
    Some(StageMissing {
        stage: stage.stage.name.clone(),
        missing: stage.missing.len(),
        planned: stage.planned as usize,
        reason: first.reason.clone(),
    })
}
