//! What was measured, and what was not.

use crate::words::{host_name, host_state, one_line, plural};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostPair, HostState};
use ew_model::finding::{Severity, Subject};
use ew_model::threshold::Checked;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Up to this many reasons for missing pairs are listed.
const REASONS_LISTED: usize = 10;

pub(crate) struct MissedThreshold {
    /// "FAIL" or "NO DATA".
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

pub(super) fn hosts(analysis: &Analysis) -> Vec<String> {
    let gone = |host: &&HostAnalysis| host.state != HostState::Alive;
    let line = |host: &HostAnalysis| {
        let name = host_name(analysis.inventory(), host.host);
        format!("{name} {}", host_state(&host.state))
    };
    analysis.hosts.iter().filter(gone).map(line).collect()
}

/// By reason, most first: `14 pairs: r1h02 never came up (r1h01 to r1h02, ...)`.
pub(super) fn pairs(analysis: &Analysis) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&HostPair>> = BTreeMap::new();
    for host_pair in analysis
        .host_pairs
        .iter()
        .filter(|c| c.bits_per_sec.is_none())
    {
        let reason = host_pair.missing.as_deref().unwrap_or("no reason recorded");
        groups.entry(reason).or_default().push(host_pair);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, host_pairs)| Reverse(host_pairs.len()));
    let rest = groups.len().saturating_sub(REASONS_LISTED);
    let mut lines: Vec<String> = groups
        .iter()
        .take(REASONS_LISTED)
        .map(|(reason, host_pairs)| pairs_line(analysis, reason, host_pairs))
        .collect();
    if rest > 0 {
        lines.push(format!(
            "and {}; the CSV report lists all",
            plural(rest, "more reason")
        ));
    }
    lines
}

fn pairs_line(analysis: &Analysis, reason: &str, host_pairs: &[&HostPair]) -> String {
    let name = |id| host_name(analysis.inventory(), id);
    let mut examples: Vec<String> = host_pairs
        .iter()
        .take(3)
        .map(|c| format!("{} to {}", name(c.src), name(c.dst)))
        .collect();
    if host_pairs.len() > examples.len() {
        examples.push("...".into());
    }
    format!(
        "{}: {} ({})",
        plural(host_pairs.len(), "pair"),
        one_line(reason),
        examples.join(", ")
    )
}

pub(super) fn thresholds(analysis: &Analysis) -> Vec<MissedThreshold> {
    let missed = |checked: &Checked| {
        let word = match checked.is_met {
            Some(true) => return None,
            Some(false) => "FAIL",
            None => "NO DATA",
        };
        let text = checked.to_string();
        Some(MissedThreshold { word, text })
    };
    analysis.thresholds.iter().filter_map(missed).collect()
}

pub(super) fn measured(analysis: &Analysis) -> String {
    let of = |count: usize, all: usize, noun: &str| format!("{count} of {}", plural(all, noun));
    let alive = |host: &&HostAnalysis| host.state == HostState::Alive;
    let up: Vec<&HostAnalysis> = analysis.hosts.iter().filter(alive).collect();
    let flows: u32 = analysis.stages.iter().map(|stage| stage.flows).sum();
    let missing: u32 = analysis.stages.iter().map(|stage| stage.missing).sum();
    let fine = up.iter().filter(|host| !is_accused(analysis, host)).count();
    let without_findings = match fine == up.len() {
        true => String::new(),
        false => format!("; {} without findings", plural(fine, "host")),
    };
    format!(
        "Measured: {}, {}{without_findings}.",
        of(up.len(), analysis.hosts.len(), "host"),
        of(
            flows.saturating_sub(missing) as usize,
            flows as usize,
            "flow"
        ),
    )
}

fn is_accused(analysis: &Analysis, host: &HostAnalysis) -> bool {
    let subject = Subject::Host { host: host.host };
    let mut findings = analysis.verdict.findings.iter();
    findings.any(|finding| finding.severity != Severity::Info && finding.subject == subject)
}
