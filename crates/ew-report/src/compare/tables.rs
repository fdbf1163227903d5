//! The tables of a comparison, the same in every form.

use crate::words::{MISSING, fine_percent, one_line, or_missing, with_interval};
use ew_model::analysis::Estimate;
use ew_model::comparison::{
    Change, Comparison, HostComparison, Method, Metric, MetricComparison, PairComparison,
    RoleComparison, StageComparison,
};
use ew_model::units::{format_bits_per_sec, format_duration_ns};

/// Up to this many flows of a stage are listed, the worst change first.
const FLOWS_LISTED: usize = 12;
/// Up to this many hosts, those that changed most first.
const HOSTS_LISTED: usize = 16;

/// A table with its title.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// How many columns are words.
    pub(super) left: usize,
    pub(super) notes: Vec<String>,
}

/// The answer first, then what it rests on.
pub(super) fn tables(comparison: &Comparison) -> Vec<Table> {
    let mut tables = vec![medians(comparison), means(comparison)];
    for stage in &comparison.stages {
        let hosts_of = |metric| hosts(stage, metric, comparison.threshold);
        let mut metrics = stage.metrics.iter().filter(|m| m.pairs.len() > 1);
        // One metric shows which flows and hosts; the others follow it, but for hosts that decide.
        if let Some(first) = metrics.next() {
            tables.extend([hosts_of(first), flows(stage, first)]);
        }
        let deciding = metrics.filter(|m| m.hosts_beyond_threshold().next().is_some());
        tables.extend(deciding.map(hosts_of));
    }
    tables
}

fn medians(comparison: &Comparison) -> Table {
    let row = |stage: &StageComparison, m: &MetricComparison| {
        vec![
            one_line(&stage.name),
            m.metric.name().into(),
            estimated(m.metric, &m.base.median),
            estimated(m.metric, &m.other.median),
            ratio_words(m.ratio.as_ref()),
            probability(m.q_value),
            change_words(m, comparison.threshold),
        ]
    };
    Table {
        title: "Medians".into(),
        header: vec!["stage", "metric", "A", "B", "B / A", "p", "B is"],
        rows: rows(comparison, row),
        left: 2,
        notes: vec![
            "A and B: medians of all figures. B / A: flow by flow where both runs have the same (Hodges and Lehmann), of several \
             runs by their mean levels; it can differ from the quotient of the medians."
                .into(),
            "In brackets: 95% intervals; that of B / A allows for the spread from run to run. p is adjusted for the number of \
             tests (Benjamini and Hochberg)."
                .into(),
        ],
    }
}

fn means(comparison: &Comparison) -> Table {
    let row = |stage: &StageComparison, m: &MetricComparison| {
        let span =
            |min: f64, max: f64| format!("{} to {}", value(m.metric, min), value(m.metric, max));
        vec![
            one_line(&stage.name),
            m.metric.name().into(),
            estimated(m.metric, &m.base.mean),
            estimated(m.metric, &m.other.mean),
            span(m.base.min, m.base.max),
            span(m.other.min, m.other.max),
            method(m),
        ]
    };
    Table {
        title: "Means, spread, and how it was compared".into(),
        header: vec![
            "stage",
            "metric",
            "A mean",
            "B mean",
            "A span",
            "B span",
            "compared by",
        ],
        rows: rows(comparison, row),
        left: 2,
        notes: Vec::new(),
    }
}

fn hosts(stage: &StageComparison, metric: &MetricComparison, threshold: Option<f64>) -> Table {
    let distance = |host: &HostComparison| {
        let of = |role: Option<RoleComparison>| role.map_or(0.0, |at| at.ratio.ln().abs());
        of(host.sending).max(of(host.receiving))
    };
    let mut hosts: Vec<&HostComparison> = metric.hosts.iter().collect();
    hosts.sort_by(|x, y| distance(y).total_cmp(&distance(x)));
    let row = |host: &&HostComparison| {
        let mut cells = vec![one_line(&host.name)];
        for role in [host.sending, host.receiving] {
            cells.push(or_missing(role, |at| at.flows.to_string()));
            cells.push(or_missing(role, |at| role_words(&at, threshold)));
            cells.push(probability(role.and_then(|at| at.q_value)));
        }
        cells
    };
    Table {
        title: format!(
            "Hosts in {}: {}, B / A, the largest change first",
            one_line(&stage.name),
            metric.metric.name()
        ),
        header: vec![
            "host",
            "flows",
            "as sender",
            "p",
            "flows",
            "as receiver",
            "p",
        ],
        rows: hosts.iter().take(HOSTS_LISTED).map(row).collect(),
        left: 1,
        notes: more(hosts.len(), HOSTS_LISTED, "JSON report lists"),
    }
}

/// "0.602", "0.602, beyond 5%".
fn role_words(role: &RoleComparison, threshold: Option<f64>) -> String {
    let ratio = plain_ratio(role.ratio);
    match threshold.filter(|_| role.beyond_threshold) {
        Some(most) => format!("{ratio}, beyond {}", whole_percent(most)),
        None => ratio,
    }
}

fn flows(stage: &StageComparison, metric: &MetricComparison) -> Table {
    let row = |pair: &PairComparison| {
        vec![
            format!("{} to {}", one_line(&pair.src), one_line(&pair.dst)),
            value(metric.metric, pair.base),
            value(metric.metric, pair.other),
            plain_ratio(pair.ratio),
            format!("{}, {}", pair.base_rounds, pair.other_rounds),
            probability(pair.q_value),
        ]
    };
    Table {
        title: format!(
            "Flows in {}: {}, the worst change first",
            one_line(&stage.name),
            metric.metric.name()
        ),
        header: vec!["flow", "A", "B", "B / A", "rounds", "p"],
        rows: metric.pairs.iter().take(FLOWS_LISTED).map(row).collect(),
        left: 1,
        notes: more(
            metric.pairs.len(),
            FLOWS_LISTED,
            "CSV and JSON reports list",
        ),
    }
}

fn rows(
    comparison: &Comparison,
    row: impl Fn(&StageComparison, &MetricComparison) -> Vec<String>,
) -> Vec<Vec<String>> {
    let stages = comparison.stages.iter();
    let all = stages.flat_map(|stage| stage.metrics.iter().map(move |metric| (stage, metric)));
    all.map(|(stage, metric)| row(stage, metric)).collect()
}

fn more(count: usize, listed: usize, where_else: &str) -> Vec<String> {
    let rest = count.saturating_sub(listed);
    let line = || format!("{rest} more; the {where_else} all.");
    (rest > 0).then(line).into_iter().collect()
}

/// A value in its metric's unit.
pub(crate) fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Throughput => format_bits_per_sec(value),
        Metric::Transactions => format!("{value:.0}/s"),
        Metric::Delivered => fine_percent(Some(value)),
        Metric::LatencyMedian
        | Metric::LatencyP99
        | Metric::LatencyP999
        | Metric::ConnectMedian
        | Metric::Jitter => format_duration_ns(value.max(0.0) as u64),
    }
}

/// A value with its interval.
pub(super) fn estimated(metric: Metric, estimate: &Estimate) -> String {
    with_interval(estimate.value, estimate.low, estimate.high, |v| {
        value(metric, v)
    })
}

/// `0.952 (0.941–0.963)`.
pub(super) fn ratio_words(ratio: Option<&Estimate>) -> String {
    or_missing(ratio, |r| {
        with_interval(r.value, r.low, r.high, plain_ratio)
    })
}

fn plain_ratio(ratio: f64) -> String {
    match ratio {
        r if r >= 9.995 => format!("{r:.1}"),
        r if r >= 1.495 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

pub(super) fn probability(p: Option<f64>) -> String {
    match p {
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) => format!("{p:.3}"),
        None => MISSING.into(),
    }
}

/// "worse", "different, beyond 5%".
pub(super) fn change_words(metric: &MetricComparison, threshold: Option<f64>) -> String {
    match threshold.filter(|_| metric.beyond_threshold) {
        Some(most) => format!("{}, beyond {}", change(metric.change), whole_percent(most)),
        None => change(metric.change).into(),
    }
}

/// `5%`, `2.5%`.
fn whole_percent(share: f64) -> String {
    let percent = (1000.0 * share).round() / 10.0;
    format!("{percent}%")
}

fn method(metric: &MetricComparison) -> String {
    match metric.method {
        Method::Flows { flows } => format!("{flows} flows, paired"),
        Method::DifferentFlows { base, other } => format!("{base} and {other} flows"),
        Method::Rounds { base, other } => format!("{base} and {other} rounds"),
        Method::Runs { base, other } => format!("{base} and {other} runs"),
    }
}

pub(super) fn change(change: Change) -> &'static str {
    match change {
        Change::Better => "better",
        Change::Worse => "worse",
        Change::Different => "different",
        Change::None => "no difference",
        Change::Unknown => "unknown",
    }
}
