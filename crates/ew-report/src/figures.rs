//! Latency, datagrams and CPU as tables, and notes on how figures came about; the same
//! in every view.

use crate::catalogue::settings::settings;
use crate::words::{
    MISSING, fine_percent, host_name, note, one_line, or_missing, percent, plural, rate,
};
use ew_model::Analysis;
use ew_model::WorkloadKind;
use ew_model::analysis::{
    CpuAnalysis, DatagramAnalysis, Estimate, LatencyFigures, OneWayDelay, PairAnalysis,
    StageAnalysis,
};
use ew_model::record::FigureNote;
use ew_model::units::three_digits;

/// Up to this many pairs are listed, the slowest first.
const PAIRS_LISTED: usize = 12;

/// A table with its title, for any view.
pub(crate) struct Figures {
    pub(crate) title: &'static str,
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// How many columns are words.
    pub(crate) left: usize,
    /// What the table does not show by itself.
    pub(crate) notes: Vec<String>,
}

/// Stages that are tests by themselves: the others are points of a curve.
pub(crate) fn stages_outside_sweeps(analysis: &Analysis) -> impl Iterator<Item = &StageAnalysis> {
    analysis.stages.iter().filter(|stage| stage.sweep.is_none())
}

/// Whether readers came for more than the stage table and the findings show: not so in a run of
/// plain bulk TCP with its probe of round trips.
pub(crate) fn has_details(analysis: &Analysis) -> bool {
    let is_judged = analysis.stages.iter().any(|stage| stage.judged);
    !(is_judged && analysis.stages.iter().all(is_plain))
}

/// Times of all transactions of each stage.
pub(crate) fn latency(analysis: &Analysis) -> Figures {
    let mut rows = Vec::new();
    for stage in stages_outside_sweeps(analysis) {
        let Some(latency) = &stage.latency else {
            continue;
        };
        let name = one_line(&stage.name);
        let per_second = latency.transactions_per_sec;
        rows.push(times_row(name.clone(), per_second, &latency.times));
        if let Some(times) = &latency.uncorrected {
            rows.push(times_row(format!("{name}, uncorrected"), None, times));
        }
        if let Some(times) = &latency.connect {
            rows.push(times_row(format!("{name}, connecting"), None, times));
        }
    }
    Figures {
        title: "Latency, µs",
        header: vec![
            "stage",
            "per second",
            "count",
            "min",
            "mean",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
            "max",
        ],
        notes: latency_notes(analysis, &rows),
        rows,
        left: 1,
    }
}

fn latency_notes(analysis: &Analysis, rows: &[Vec<String>]) -> Vec<String> {
    let percentiles = rows
        .iter()
        .flat_map(|row| &row[row.len().saturating_sub(5)..]);
    let mut notes = Vec::new();
    if percentiles.into_iter().any(|cell| cell == MISSING) {
        notes.push("A percentile is \"-\" where too few transactions are behind it.".into());
    }
    let mut latencies = stages_outside_sweeps(analysis).filter_map(|stage| stage.latency.as_ref());
    if latencies.any(|latency| latency.uncorrected.is_some()) {
        notes.push(
            "Open loop: times count from when a request was due; uncorrected ones from when it was really sent, as \
             tools report that do not know when it was due."
                .into(),
        );
    }
    notes
}

fn times_row(name: String, per_second: Option<Estimate>, times: &LatencyFigures) -> Vec<String> {
    vec![
        name,
        or_missing(per_second, |e| amount(e.value)),
        times.count.to_string(),
        micros(times.min_ns),
        micros(times.mean_ns),
        micros(times.p50_ns),
        or_missing(times.p90_ns, micros),
        or_missing(times.p99_ns, micros),
        or_missing(times.p999_ns, micros),
        or_missing(times.p9999_ns, micros),
        micros(times.max_ns),
    ]
}

/// Times of each ordered pair, where a stage has more than one.
pub(crate) fn latency_by_pair(analysis: &Analysis) -> Figures {
    let mut pairs: Vec<(&StageAnalysis, &PairAnalysis, LatencyFigures)> =
        stages_outside_sweeps(analysis)
            .filter(|stage| stage.pairs.len() > 1)
            .flat_map(|stage| stage.pairs.iter().map(move |pair| (stage, pair)))
            .filter_map(|(stage, pair)| Some((stage, pair, pair.times?)))
            .collect();
    pairs.sort_by_key(|(_, _, times)| std::cmp::Reverse((times.p99_ns, times.p50_ns)));
    let inventory = analysis.inventory();
    let row = |(stage, pair, times): &(&StageAnalysis, &PairAnalysis, LatencyFigures)| {
        let pair_name = format!(
            "{} to {}",
            host_name(inventory, pair.src),
            host_name(inventory, pair.dst)
        );
        vec![
            one_line(&stage.name),
            pair_name,
            or_missing(pair.transactions_per_sec, amount),
            times.count.to_string(),
            micros(times.mean_ns),
            micros(times.p50_ns),
            or_missing(times.p99_ns, micros),
            or_missing(times.p999_ns, micros),
            micros(times.max_ns),
        ]
    };
    let more = pairs.len().saturating_sub(PAIRS_LISTED);
    let note = || {
        let more = plural(more, "more pair");
        format!("{more}; the CSV and JSON reports list all.")
    };
    Figures {
        title: "Latency by pair, µs, slowest first",
        header: vec![
            "stage",
            "pair",
            "per second",
            "count",
            "mean",
            "p50",
            "p99",
            "p99.9",
            "max",
        ],
        rows: pairs.iter().take(PAIRS_LISTED).map(row).collect(),
        left: 2,
        notes: (more > 0).then(note).into_iter().collect(),
    }
}

/// Loss and order of each stage.
pub(crate) fn datagrams(analysis: &Analysis) -> Figures {
    let row = |stage: &StageAnalysis| {
        let d = stage.datagrams?;
        Some(vec![
            stage_name(stage),
            rate(stage.aggregate_bits_per_sec.map(|e| e.value)),
            or_missing(d.received_per_sec, |e| amount(e.value)),
            loss(&d),
            fine_share(d.worst_loss),
            d.lost.to_string(),
            d.reordered.to_string(),
            d.duplicates.to_string(),
            micros(d.jitter_ns),
            micros(d.worst_jitter_ns),
        ])
    };
    Figures {
        title: "Datagrams",
        header: vec![
            "stage",
            "received",
            "per second",
            "lost",
            "worst flow",
            "count",
            "reordered",
            "twice",
            "jitter µs",
            "worst",
        ],
        rows: stages_outside_sweeps(analysis).filter_map(row).collect(),
        left: 1,
        notes: Vec::new(),
    }
}

/// How long datagrams were under way, as well as the clocks allow.
pub(crate) fn one_way(analysis: &Analysis) -> Figures {
    let mut is_hidden = false;
    let row = |stage: &StageAnalysis| {
        let OneWayDelay {
            times,
            clock_error_ns,
        } = stage.datagrams?.one_way?;
        is_hidden |= times.p50_ns <= clock_error_ns;
        Some(vec![
            stage_name(stage),
            micros(clock_error_ns),
            micros(times.min_ns),
            micros(times.p50_ns),
            or_missing(times.p90_ns, micros),
            or_missing(times.p99_ns, micros),
            or_missing(times.p999_ns, micros),
            micros(times.max_ns),
        ])
    };
    let rows = stages_outside_sweeps(analysis).filter_map(row).collect();
    let note = "delays that do not exceed ±, the error of both hosts' clocks, are below what these clocks resolve";
    Figures {
        title: "One-way delay of datagrams, µs",
        header: vec!["stage", "±", "min", "p50", "p90", "p99", "p99.9", "max"],
        rows,
        left: 1,
        notes: is_hidden.then(|| note.to_owned()).into_iter().collect(),
    }
}

/// What each stage cost its hosts.
pub(crate) fn cpu(analysis: &Analysis) -> Figures {
    let mut rows = Vec::new();
    for stage in stages_outside_sweeps(analysis) {
        for (end, cpu) in cpu_ends(stage) {
            rows.push(vec![
                stage_name(stage),
                end.into(),
                format!("{:.2}", cpu.engine_cpus),
                format!("{:.2}", cpu.busy_cpus),
                percent(Some(cpu.busy_share)),
                percent(Some(cpu.softirq_share)),
                percent(Some(cpu.steal_share)),
                service_demand(cpu),
            ]);
        }
    }
    Figures {
        title: "CPU",
        header: vec![
            "stage",
            "end",
            "engine CPUs",
            "busy CPUs",
            "of all",
            "softirq",
            "steal",
            "service demand",
        ],
        rows,
        left: 2,
        notes: vec![
            "Service demand is the whole host's CPU time over what its streams moved, as netperf defines it; busy CPUs \
             are the whole host's, engine CPUs those of the engine's threads."
                .into(),
        ],
    }
}

/// Both ends, or one where every host was both.
pub(crate) fn cpu_ends(stage: &StageAnalysis) -> Vec<(&'static str, &CpuAnalysis)> {
    let (sends, receives) = match stage.kind.is_bulk() {
        true => ("sender", "receiver"),
        false => ("client", "server"),
    };
    if stage.sender_cpu == stage.receiver_cpu {
        return stage
            .sender_cpu
            .iter()
            .map(|cpu| ("each host", cpu))
            .collect();
    }
    let sender = stage.sender_cpu.iter().map(|cpu| (sends, cpu));
    sender
        .chain(stage.receiver_cpu.iter().map(|cpu| (receives, cpu)))
        .collect()
}

/// CPU microseconds per KiB moved or per transaction.
pub(crate) fn service_demand(cpu: &CpuAnalysis) -> String {
    match (cpu.micros_per_kib, cpu.micros_per_transaction) {
        (Some(micros), _) => format!("{} µs/KiB", fine_digits(micros)),
        (None, Some(micros)) => format!("{} µs/tr", three_digits(micros)),
        (None, None) => MISSING.into(),
    }
}

/// What a reader must know of how each stage's figures came about: what was set, who paced, which
/// bytes no application saw, what fell back. Stages with the same notes share a line.
pub(crate) fn mode_notes(analysis: &Analysis) -> Vec<String> {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for stage in stages_outside_sweeps(analysis) {
        let Some(words) = mode_words(stage) else {
            continue;
        };
        let name = one_line(&stage.name);
        match notes.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(name),
            None => notes.push((words, vec![name])),
        }
    }
    let line = |(words, names): (String, Vec<String>)| format!("{}: {words}.", names.join(", "));
    notes.into_iter().map(line).collect()
}

fn mode_words(stage: &StageAnalysis) -> Option<String> {
    let parts = mode_parts(stage);
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What was set and what must be known of one stage, each in words.
pub(crate) fn mode_parts(stage: &StageAnalysis) -> Vec<String> {
    let labels = stage.labels.iter().map(|label| {
        let words = note(label.note);
        match label.flows == label.of_flows {
            true => words.to_owned(),
            false => format!("{words} ({} of {} flows)", label.flows, label.of_flows),
        }
    });
    let settings = settings(&stage.settings).into_iter();
    let settings = settings.map(|setting| one_line(&setting));
    settings.chain(labels).collect()
}

/// The stage's name, with a mark where an application did not see the bytes that the figures count.
pub(crate) fn stage_name(stage: &StageAnalysis) -> String {
    let has = |note| stage.labels.iter().any(|label| label.note == note);
    let name = one_line(&stage.name);
    if has(FigureNote::ReceiverDidNotSeeBytes) {
        format!("{name} (bytes unseen)")
    } else if has(FigureNote::SenderDidNotTouchBytes) {
        format!("{name} (bytes untouched)")
    } else {
        name
    }
}

/// Whether the stage table and the findings show all of a stage: bulk TCP whose bytes the
/// applications saw, or a closed loop that probes round trips. Two hosts' own test is never plain.
fn is_plain(stage: &StageAnalysis) -> bool {
    let mut notes = stage.labels.iter().map(|label| label.note);
    let is_labelled = notes.any(|note| note != FigureNote::Segmented);
    let is_open = stage
        .latency
        .as_ref()
        .is_some_and(|l| l.uncorrected.is_some());
    let is_usual = stage.judged || (stage.kind == WorkloadKind::TcpRr && !is_open);
    is_usual && !is_labelled && stage.pattern != "pair"
}

/// The share lost, or "-".
pub(crate) fn loss(datagrams: &DatagramAnalysis) -> String {
    fine_share(datagrams.loss)
}

/// The median and by how much it may be off, microseconds.
pub(crate) fn one_way_delay(delay: &OneWayDelay) -> String {
    let (median, error) = (micros(delay.times.p50_ns), micros(delay.clock_error_ns));
    format!("{median} ±{error}")
}

/// Microseconds in three significant digits, as netperf and sockperf give them, but never less than
/// whole ones.
pub(crate) fn micros(ns: u64) -> String {
    three_digits(ns as f64 / 1000.0)
}

/// A count a second: whole, and in three digits below a hundred.
pub(crate) fn amount(value: f64) -> String {
    if value.is_finite() {
        three_digits(value)
    } else {
        MISSING.into()
    }
}

/// Three digits, and below one as many decimals as netperf gives.
pub(crate) fn fine_digits(value: f64) -> String {
    match value.abs() < 0.9995 {
        true => format!("{value:.3}"),
        false => three_digits(value),
    }
}

/// A share as per cent in which one of ten thousand shows.
fn fine_share(share: Option<f64>) -> String {
    match share {
        Some(0.0) => "0%".into(),
        Some(share) if share > 0.0 && share < 0.01 => format!("{:.3}%", 100.0 * share),
        share => fine_percent(share),
    }
}
