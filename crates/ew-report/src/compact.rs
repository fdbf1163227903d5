//! Two hosts' own test: one table, as users of netperf, iperf3 and sockperf expect.

use crate::figures::{
    Figures, amount, cpu_ends, fine_digits, latency, loss, micros, one_way_delay, service_demand,
    stage_name, stages_outside_sweeps,
};
use crate::sweep;
use crate::words::{
    MISSING, estimated_rate, fine_percent, host_name, one_line, or_missing, percent,
};
use ew_model::Analysis;
use ew_model::analysis::{CpuAnalysis, HostState, StageAnalysis};

/// Whether the run is of this kind: pairs of at most two hosts, and nothing missing that would have
/// to be explained.
pub(crate) fn is_compact(analysis: &Analysis) -> bool {
    let is_pair = |stage: &StageAnalysis| stage.pattern == "pair" && stage.missing == 0;
    let are_up = analysis.hosts.iter().all(|h| h.state == HostState::Alive);
    !analysis.stages.is_empty()
        && analysis.tools.is_empty()
        && analysis.hosts.len() <= 2
        && analysis.stages.iter().all(is_pair)
        && are_up
}

/// The result: rates in one table, times in another; a run of one workload has one of them.
pub(crate) fn results(analysis: &Analysis) -> Vec<Figures> {
    let tables = [rates(analysis), latency(analysis)];
    let sweeps = sweep::tables(analysis);
    let filled = tables.into_iter().filter(|t| !t.rows.is_empty());
    sweeps.into_iter().chain(filled).collect()
}

/// CPU of transactions, a line a stage: their table has no space for it.
pub(crate) fn cpu_notes(analysis: &Analysis) -> Vec<String> {
    let note = |stage: &StageAnalysis| {
        let ends: Vec<String> = cpu_ends(stage)
            .into_iter()
            .map(|(end, cpu)| format!("{end} {}", cpu_words(cpu)))
            .collect();
        let is_told = stage.latency.is_some() && !ends.is_empty();
        is_told.then(|| format!("{}, CPU: {}.", one_line(&stage.name), ends.join("; ")))
    };
    stages_outside_sweeps(analysis).filter_map(note).collect()
}

/// "12% busy, 28.4 µs/tr".
fn cpu_words(cpu: &CpuAnalysis) -> String {
    let share = percent(Some(cpu.busy_share));
    match service_demand(cpu) {
        demand if demand == MISSING => format!("{share} busy"),
        demand => format!("{share} busy, {demand}"),
    }
}

/// One line that leads to everything else.
pub(crate) fn facts(analysis: &Analysis) -> String {
    let run = &analysis.run;
    let inventory = analysis.inventory();
    let names: Vec<String> = inventory
        .host_ids()
        .map(|host| host_name(inventory, host))
        .collect();
    format!(
        "{}: run {}, seed {}, eastwest {}; its HTML and JSON reports have the rest.",
        names.join(" and "),
        one_line(&run.id),
        run.seed,
        one_line(&run.version)
    )
}

/// A column: its name, its value, and whether the table has it although it may be empty all the way
/// down.
type Column = (&'static str, fn(&StageAnalysis) -> String, bool);

fn rates(analysis: &Analysis) -> Figures {
    const COLUMNS: [Column; 13] = [
        ("stage", stage_name, true),
        ("rate", |s| estimated_rate(s.aggregate_bits_per_sec), true),
        ("of expected", |s| fine_percent(s.of_expected), false),
        (
            "% of line rate",
            |s| fine_percent(s.ceiling.map(|ceiling| ceiling.reached)),
            false,
        ),
        (
            "retrans",
            |s| or_missing(s.retransmits, |n| n.to_string()),
            false,
        ),
        (
            "per second",
            |s| {
                let per_second = s.datagrams.and_then(|d| d.received_per_sec);
                or_missing(per_second, |e| amount(e.value))
            },
            false,
        ),
        ("lost", |s| or_missing(s.datagrams.as_ref(), loss), false),
        (
            "jitter µs",
            |s| or_missing(s.datagrams, |d| micros(d.jitter_ns)),
            false,
        ),
        (
            "one-way µs",
            |s| {
                or_missing(s.datagrams.and_then(|d| d.one_way), |delay| {
                    one_way_delay(&delay)
                })
            },
            false,
        ),
        ("CPU send", |s| busy(s.sender_cpu), false),
        ("CPU recv", |s| busy(s.receiver_cpu), false),
        ("µs/KiB send", |s| demand(s.sender_cpu), false),
        ("µs/KiB recv", |s| demand(s.receiver_cpu), false),
    ];
    let stages: Vec<&StageAnalysis> = stages_outside_sweeps(analysis)
        .filter(|stage| stage.kind.is_bulk())
        .collect();
    let shown: Vec<Column> = COLUMNS
        .into_iter()
        .filter(|(_, value, always)| *always || stages.iter().any(|s| value(s) != MISSING))
        .collect();
    Figures {
        title: "Result",
        header: shown.iter().map(|(name, _, _)| *name).collect(),
        rows: stages
            .iter()
            .map(|stage| shown.iter().map(|(_, value, _)| value(stage)).collect())
            .collect(),
        left: 1,
        notes: Vec::new(),
    }
}

fn busy(cpu: Option<CpuAnalysis>) -> String {
    percent(cpu.map(|cpu| cpu.busy_share))
}

fn demand(cpu: Option<CpuAnalysis>) -> String {
    let micros = cpu.and_then(|cpu| cpu.micros_per_kib);
    or_missing(micros, fine_digits)
}
