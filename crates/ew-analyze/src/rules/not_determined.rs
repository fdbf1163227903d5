//! A stage stays below expectation, and nothing found explains it.

use super::{Case, evidence};
use crate::observations::StageView;
use crate::words::{count, plain};
use ew_model::finding::{Cause, Finding, Severity, Subject};
use ew_model::scenario::{MeshMode, Pattern, Pick};

/// Share of the explained expectation below which a stage of lone flows asks for an answer.
const BELOW: f64 = 0.85;
/// The same where flows meet by design: TCP alone stays well below max-min there.
const BELOW_SHARED: f64 = 0.65;

pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    if found.iter().any(|finding| finding.cause == Cause::SlowPair) {
        return Vec::new();
    }
    let stages = case
        .observations
        .stages
        .iter()
        .zip(&case.expected.explained);
    stages
        .filter_map(|(stage, share)| finding(stage, (*share)?))
        .collect()
}

fn finding(stage: &StageView<'_>, share: f64) -> Option<Finding> {
    if share >= limit(&stage.stage.pattern) {
        return None;
    }
    let name = &stage.stage.name;
    let percent = 100.0 * share;
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: Cause::NotDetermined,
        sentence: format!(
            "`{name}` reached {percent:.0} % of what hosts and paths as measured allow; why was not determined"
        ),
        measured: Some(plain(share, "ratio")),
        expected: Some(plain(1.0, "ratio")),
        confidence: 0.5,
        evidence: vec![evidence(
            format!(
                "median over {} of measured over max-min expectation",
                count(stage.rounds.len(), "round")
            ),
            format!("flows.parquet: stage `{name}`"),
        )],
        hint: "give the racks if there are any (--racks), look at CPU use and retransmits of the hosts in the report, \
               and repeat with more streams"
            .into(),
    })
}

fn limit(pattern: &Pattern) -> f64 {
    match pattern {
        Pattern::Pair
        | Pattern::Permutation
        | Pattern::Bisection
        | Pattern::CrossRack {
            pick: Pick::Matching,
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Isolated,
            ..
        } => BELOW,
        Pattern::CrossRack {
            pick: Pick::Random { .. },
            ..
        }
        | Pattern::Mesh {
            mode: MeshMode::Loaded { .. },
            ..
        }
        | Pattern::Incast { .. }
        | Pattern::Outcast { .. } => BELOW_SHARED,
    }
}
