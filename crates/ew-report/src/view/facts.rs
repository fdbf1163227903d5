//! Which run it was, and what its rates were compared with.

use super::ceiling::ceiling_words;
use super::stages::start_skew_p99;
use crate::catalogue::basis::efficiency_source;
use crate::words::{MISSING, duration, one_line, or_missing, outcome, plural, took_ns, utc};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostState};
use ew_model::units::{format_bytes, format_duration_ns};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Name and value.
pub(super) fn all(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let run = &analysis.run;
    let up = analysis
        .hosts
        .iter()
        .filter(|h| h.state == HostState::Alive)
        .count();
    let clock = analysis.hosts.iter().filter_map(|h| h.clock_error_ns).max();
    let skews = analysis.stages.iter();
    let skew = skews.max_by_key(|s| s.start_skew_ns.map(|skew| skew.1));
    let rejected_connections: u64 = analysis.hosts.iter().map(|h| h.rejected_connections).sum();
    let basis = &analysis.basis;
    vec![
        ("run", one_line(&run.id)),
        ("ended", outcome(run.outcome).into()),
        ("started", utc(Some(run.started_unix_ns))),
        ("took", duration(took_ns(run))),
        (
            "hosts",
            format!("{up} of {} to the end", analysis.hosts.len()),
        ),
        ("fleet", one_line(&run.fleet)),
        ("scenario", one_line(&run.scenario.name)),
        ("seed", run.seed.to_string()),
        ("plan", one_line(&run.plan_hash)),
        ("reference host", ceiling_words(analysis)),
        (
            "efficiency",
            format!(
                "{:.4} ({})",
                basis.efficiency,
                efficiency_source(&basis.framing)
            ),
        ),
        (
            "clock error",
            or_missing(clock, |ns| format!("at most {}", format_duration_ns(ns))),
        ),
        (
            "start skew",
            or_missing(skew.and_then(start_skew_p99), |p99| {
                format!("p99 {p99} in the worst stage")
            }),
        ),
        ("rejected connections", rejected_connections.to_string()),
        (
            "controller",
            format!(
                "{} of CPU time, {} at its peak",
                duration(run.controller_cpu_ns),
                or_missing(run.controller_peak_bytes, format_bytes)
            ),
        ),
        ("kernels", by_hosts(analysis, |host| host.kernel.as_deref())),
        (
            "congestion control",
            by_hosts(analysis, |host| host.congestion.as_deref()),
        ),
        ("eastwest", one_line(&run.version)),
        ("command", one_line(&run.command.join(" "))),
        ("repeat", repeat(analysis)),
    ]
}

/// What hosts have, with their number, most first: `6.12.0 (7 hosts), 6.1.0 (1 host)`.
fn by_hosts(analysis: &Analysis, what: fn(&HostAnalysis) -> Option<&str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in analysis.hosts.iter().filter_map(what) {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, hosts)| Reverse(*hosts));
    let parts: Vec<String> = counts
        .iter()
        .map(|(name, hosts)| format!("{} ({})", one_line(name), plural(*hosts, "host")))
        .collect();
    or_missing((!parts.is_empty()).then_some(parts), |p| p.join(", "))
}

/// The command that makes the same plan again: the program's name without its path, and the seed.
fn repeat(analysis: &Analysis) -> String {
    let run = &analysis.run;
    let Some(program) = run.command.first() else {
        return MISSING.into();
    };
    let name = program.rsplit('/').next().unwrap_or(program).to_owned();
    let words = std::iter::once(name).chain(run.repeating_arguments());
    words
        .map(|word| quoted(&word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a POSIX shell reads it back, in single quotes where it contains more than plain
/// characters.
fn quoted(word: &str) -> String {
    let word = one_line(word);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
