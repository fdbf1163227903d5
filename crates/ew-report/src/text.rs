//! The report for the terminal: findings, the tables they rest on, and the summary last, where the
//! eye is when a run ends.

use crate::TextStyle;
use crate::compact::{self, is_compact};
use crate::figures::{self, Figures, mode_notes, stage_name};
use crate::host_figures;
use crate::settling;
use crate::sweep::lone_stages;
use crate::table::{columns_that_fit, table, wrap};
use crate::words::{
    MISSING, count, duration, estimated_rate, finding_figures, fine_percent, host_name, host_state,
    knee, network, one_line, or_missing, outcome, percent, plural, rack_name, rack_of, rate,
    ratio_with_interval, severity, severity_status, shortened, status, utc,
};
use ew_model::Analysis;
use ew_model::analysis::{Cell, HostAnalysis, HostState, RackPairAnalysis, StageAnalysis};
use ew_model::finding::{Finding, Severity, Subject, VerdictStatus};
use ew_model::threshold::Checked;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Up to this many hosts are listed one by one; above it only those that differ.
const HOSTS_LISTED: usize = 16;
/// Up to this many findings are written out.
const FINDINGS_LISTED: usize = 25;
/// The summary has at most ten lines with the report's path below it: up to this many findings, and
/// one line less where a line says how many more there are. Each has at most this many columns.
const SUMMARY_LISTED: usize = 6;
const SUMMARY_WIDTH: usize = 108;
/// Up to this many of the lines of findings are of missed thresholds.
const MISSED_LISTED: usize = 3;
/// Up to this many rack pairs are listed.
const RACK_PAIRS_LISTED: usize = 40;
/// Up to this many reasons for missing pairs are listed.
const REASONS_LISTED: usize = 10;
/// The terminal shows this many columns of the stage table however narrow it is.
const STAGE_COLUMNS_LEAST: usize = 5;
/// The stage table's columns, what matters first.
const STAGE_COLUMNS: [&str; 11] = [
    "stage",
    "of expected",
    "% of line rate",
    "aggregate",
    "per flow",
    "rtt",
    "rounds",
    "flows",
    "missing",
    "retrans",
    "skew p99",
];
/// The host table's columns.
const HOST_COLUMNS: [&str; 9] = [
    "host",
    "rack",
    "state",
    "send",
    "receive",
    "send vs peers",
    "recv vs peers",
    "idle rtt",
    "retrans",
];
/// Those of them that are words.
const HOST_WORDS: [&str; 3] = ["host", "rack", "state"];
/// A host whose rate is off its peers' by more than this is listed among many.
const NOTABLE_EFFECT: f64 = 0.05;

pub(crate) fn render(analysis: &Analysis, style: &TextStyle) -> String {
    let (width, ink) = layout(style);
    let network = network(analysis).map(|network| wrap(&network, width, "Network: "));
    let mut out = network.unwrap_or_default();
    if is_compact(analysis) {
        out.push_str(&compact(analysis, style));
        out.push_str(&summary(analysis, width, ink));
        return out;
    }
    out.push_str(&findings(analysis, width, ink));
    out.push_str(&rack_pairs(analysis, width, ink));
    out.push_str(&stages(analysis, style));
    out.push_str(&figure_tables(&figures::tables(analysis), width, ink));
    out.push_str(&hosts(analysis, width, ink));
    out.push_str(&missing_cells(analysis, width, ink));
    out.push_str(&facts(analysis, style));
    out.push_str(&summary(analysis, width, ink));
    out
}

fn layout(style: &TextStyle) -> (usize, Ink) {
    (style.width.max(40), Ink { color: style.color })
}

/// Hosts that differ from the rest in a way the tables show; all of them when there are few.
pub(crate) fn notable(analysis: &Analysis) -> Vec<&HostAnalysis> {
    let few = analysis.hosts.len() <= HOSTS_LISTED;
    analysis
        .hosts
        .iter()
        .filter(|h| few || differs(analysis, h))
        .collect()
}

/// The host table's header, rows and number of columns that are words, for text and Markdown.
/// Columns that would be empty all the way down are skipped.
pub(crate) fn host_table(
    analysis: &Analysis,
    hosts: &[&HostAnalysis],
) -> (Vec<&'static str>, Vec<Vec<String>>, usize) {
    let inventory = analysis.inventory();
    let value = |h: &HostAnalysis, column: &str| match column {
        "host" => host_name(inventory, h.host),
        "rack" => rack_of(inventory, h.host),
        "state" => state_word(&h.state).into(),
        "send" => estimated_rate(h.tx_bits_per_sec),
        "receive" => estimated_rate(h.rx_bits_per_sec),
        "send vs peers" => percent(h.tx_effect),
        "recv vs peers" => percent(h.rx_effect),
        "idle rtt" => duration(h.idle_rtt_ns),
        "retrans" => count(h.retransmits),
        _ => MISSING.into(),
    };
    let (header, rows) = filled_table(&HOST_COLUMNS, hosts, |host, column| value(host, column));
    let words = header
        .iter()
        .filter(|name| HOST_WORDS.contains(name))
        .count();
    (header, rows, words)
}

/// A table of the columns that have a value in some row.
fn filled_table<T>(
    columns: &[&'static str],
    items: &[T],
    value: impl Fn(&T, &str) -> String,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let is_filled = |column: &&str| items.iter().any(|item| value(item, column) != MISSING);
    let header: Vec<&'static str> = columns.iter().copied().filter(is_filled).collect();
    let rows = items
        .iter()
        .map(|item| header.iter().map(|column| value(item, column)).collect())
        .collect();
    (header, rows)
}

/// The line for the hosts that the table skips.
pub(crate) fn alike(analysis: &Analysis, listed: usize) -> Option<String> {
    let others: Vec<_> = analysis
        .hosts
        .iter()
        .filter(|h| !differs(analysis, h))
        .collect();
    if listed == analysis.hosts.len() || others.is_empty() {
        return None;
    }
    let span = |rates: Vec<f64>| {
        let low = rates.iter().copied().reduce(f64::min);
        let high = rates.iter().copied().reduce(f64::max);
        or_missing(low.zip(high), |(low, high)| {
            format!(
                "{} to {}",
                format_bits_per_sec(low),
                format_bits_per_sec(high)
            )
        })
    };
    let of = |side: fn(&HostAnalysis) -> Option<f64>| {
        span(others.iter().filter_map(|h| side(h)).collect())
    };
    Some(format!(
        "{} alike: they send {} and receive {}.",
        match others.len() {
            1 => "1 other host is".to_owned(),
            n => format!("{n} other hosts are"),
        },
        of(|h| h.tx_bits_per_sec.map(|e| e.value)),
        of(|h| h.rx_bits_per_sec.map(|e| e.value)),
    ))
}

/// The rack table's header and rows, for text and Markdown.
pub(crate) fn rack_table(analysis: &Analysis) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let header = vec![
        "from",
        "to",
        "inside, per host",
        "across, sum",
        "oversubscription",
        "uplink",
        "full at",
    ];
    let rows = analysis
        .rack_pairs
        .iter()
        .take(RACK_PAIRS_LISTED)
        .map(|pair| {
            vec![
                rack_name(analysis.inventory(), pair.from),
                rack_name(analysis.inventory(), pair.to),
                estimated_rate(pair.inside_bits_per_sec),
                estimated_rate(pair.across_bits_per_sec),
                oversubscription(pair),
                rate(pair.uplink_bits_per_sec),
                or_missing(pair.knee_senders, knee),
            ]
        })
        .collect();
    (header, rows)
}

/// The ratio with its interval; "none found" when the path did not limit; else why there is none.
pub(crate) fn oversubscription(pair: &RackPairAnalysis) -> String {
    match (pair.limited, pair.oversubscription, &pair.reason) {
        (Some(false), _, _) => "none found".into(),
        (_, Some(ratio), _) => ratio_with_interval(Some(ratio)),
        (_, None, Some(reason)) => format!("{MISSING} ({})", one_line(reason)),
        (_, None, None) => MISSING.into(),
    }
}

/// The stage table's header and rows, for all views. Columns that would be empty all the way down
/// are skipped.
pub(crate) fn stage_table(analysis: &Analysis) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let stages: Vec<&StageAnalysis> = lone_stages(analysis).collect();
    let has_missing = stages.iter().any(|s| s.missing > 0);
    filled_table(&STAGE_COLUMNS, &stages, |stage, column| match column {
        "missing" if !has_missing => MISSING.into(),
        column => stage_value(stage, column),
    })
}

/// What is said of figures wherever they are shown: bytes that no application saw, figures that did
/// not converge.
fn figures_notes(analysis: &Analysis) -> Vec<String> {
    let mut notes = mode_notes(analysis);
    notes.extend(settling::notes(analysis));
    notes
}

/// What the stage table's figures do not say by themselves, for all views.
pub(crate) fn stage_notes(analysis: &Analysis) -> Vec<String> {
    let mut notes = figures_notes(analysis);
    for stage in lone_stages(analysis) {
        if let Some((min, median, max)) = stage.rtt_ns {
            notes.push(format!(
                "{}: round trips from {} to {} over pairs, median {}.",
                one_line(&stage.name),
                format_duration_ns(min),
                format_duration_ns(max),
                format_duration_ns(median)
            ));
        }
        if let Some(collisions) = stage.random_collisions {
            notes.push(format!(
                "{}: stock iperf3 would have refused {} because the drawn server port was taken.",
                one_line(&stage.name),
                plural(collisions as usize, "draw")
            ));
        }
    }
    notes.extend(ceiling_note(analysis));
    let has_more = |s: &StageAnalysis| s.of_expected.is_some_and(|share| share > 1.0005);
    if analysis.stages.iter().any(has_more) {
        notes.push(
            "More than 100% of expected: a short window can give back what buffers held before it."
                .into(),
        );
    }
    if analysis.stages.iter().any(|s| s.retransmits > Some(0)) {
        notes.push(
            "Retransmits are a count of segments: drops are how TCP finds the rate of a full queue, so they are no \
             fault by themselves."
                .into(),
        );
    }
    notes
}

/// What the column "% of line rate" is compared with. `None` where no stage has it.
pub(crate) fn ceiling_note(analysis: &Analysis) -> Option<String> {
    analysis.stages.iter().find_map(|stage| stage.ceiling)?;
    let basis = &analysis.basis;
    let doubt = match basis.nic_source.starts_with("discovered") {
        true => {
            ". NIC speed was estimated from this run; set --expect-nic for an absolute comparison"
        }
        false => "",
    };
    Some(format!(
        "% of line rate: goodput divided by the NICs' maximum goodput; {}{doubt}.",
        healthy_host(analysis)
    ))
}

/// The run's facts as name and value, for all views.
pub(crate) fn fact_list(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let run = &analysis.run;
    let took = run
        .finished_unix_ns
        .and_then(|end| end.checked_sub(run.started_unix_ns));
    let up = analysis
        .hosts
        .iter()
        .filter(|h| h.state == HostState::Alive)
        .count();
    let clock = analysis.hosts.iter().filter_map(|h| h.clock_error_ns).max();
    let skew = analysis
        .stages
        .iter()
        .filter_map(|s| s.start_skew_ns)
        .map(|s| s.1)
        .max();
    let rejected_connections: u64 = analysis.hosts.iter().map(|h| h.rejected_connections).sum();
    let basis = &analysis.basis;
    vec![
        ("run", one_line(&run.id)),
        ("ended", outcome(run.outcome).into()),
        ("started", utc(Some(run.started_unix_ns))),
        ("took", duration(took)),
        (
            "hosts",
            format!("{up} of {} to the end", analysis.hosts.len()),
        ),
        ("fleet", one_line(&run.fleet)),
        ("scenario", one_line(&run.scenario.name)),
        ("seed", run.seed.to_string()),
        ("plan", one_line(&run.plan_hash)),
        ("reference host", healthy_host(analysis)),
        (
            "efficiency",
            format!(
                "{:.4} ({})",
                basis.efficiency,
                one_line(&basis.efficiency_source)
            ),
        ),
        (
            "clock error",
            or_missing(clock, |ns| format!("at most {}", format_duration_ns(ns))),
        ),
        (
            "start skew",
            or_missing(skew, |ns| {
                format!("p99 {} in the worst stage", format_duration_ns(ns))
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

/// What rates were held against: the line rate taken and the payload it can carry.
fn healthy_host(analysis: &Analysis) -> String {
    let basis = &analysis.basis;
    format!(
        "reference NIC rate {} ({}), max goodput {}",
        rate(basis.nic_bits_per_sec),
        one_line(&basis.nic_source),
        rate(payload_ceiling(analysis)),
    )
}

/// Goodput that a reference host's line rate can carry, bits per second: line rate times
/// efficiency.
pub(crate) fn payload_ceiling(analysis: &Analysis) -> Option<f64> {
    let ceiling = analysis.basis.nic_bits_per_sec? * analysis.basis.efficiency;
    (ceiling.is_finite() && ceiling > 0.0).then_some(ceiling)
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

/// The command that draws the same plan again: the program's name without its path, and the seed.
fn repeat(analysis: &Analysis) -> String {
    let run = &analysis.run;
    let Some((program, arguments)) = run.command.split_first() else {
        return MISSING.into();
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut words = vec![quoted(name)];
    words.extend(arguments.iter().map(|word| quoted(word)));
    let has_seed = |word: &String| word == "--seed" || word.starts_with("--seed=");
    // `demo` has a seed of its own and takes none.
    const RUNS: [&str; 5] = ["run", "pair", "latency", "mesh", "congestion"];
    let is_run = |word: &String| RUNS.contains(&word.as_str());
    if arguments.iter().any(is_run) && !arguments.iter().any(has_seed) {
        words.push(format!("--seed {}", run.seed));
    }
    words.join(" ")
}

/// A word as a POSIX shell reads it back, in single quotes where it holds more than plain
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

/// Why hosts were not there to the end: `r1h02 failed: Permission denied`.
pub(crate) fn absences(analysis: &Analysis) -> Vec<String> {
    analysis
        .hosts
        .iter()
        .filter(|h| h.state != HostState::Alive)
        .map(|h| {
            format!(
                "{} {}",
                host_name(analysis.inventory(), h.host),
                host_state(&h.state)
            )
        })
        .collect()
}

/// Pairs without a figure, by reason, most first:
/// `14 pairs: r1h02 never came up (r1h01 to r1h02, ...)`.
pub(crate) fn missing_by_reason(analysis: &Analysis) -> Vec<String> {
    let mut groups: BTreeMap<&str, Vec<&Cell>> = BTreeMap::new();
    for cell in analysis.cells.iter().filter(|c| c.bits_per_sec.is_none()) {
        let reason = cell.missing.as_deref().unwrap_or("no reason recorded");
        groups.entry(reason).or_default().push(cell);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cells)| Reverse(cells.len()));
    let rest = groups.len().saturating_sub(REASONS_LISTED);
    let mut lines: Vec<String> = groups
        .iter()
        .take(REASONS_LISTED)
        .map(|(reason, cells)| missing_line(analysis, reason, cells))
        .collect();
    if rest > 0 {
        lines.push(format!(
            "and {}; the CSV report lists all",
            plural(rest, "more reason")
        ));
    }
    lines
}

fn missing_line(analysis: &Analysis, reason: &str, cells: &[&Cell]) -> String {
    let name = |id| host_name(analysis.inventory(), id);
    let mut examples: Vec<String> = cells
        .iter()
        .take(3)
        .map(|c| format!("{} to {}", name(c.src), name(c.dst)))
        .collect();
    if cells.len() > examples.len() {
        examples.push("...".into());
    }
    format!(
        "{}: {} ({})",
        plural(cells.len(), "pair"),
        one_line(reason),
        examples.join(", ")
    )
}

fn state_word(state: &HostState) -> &'static str {
    match state {
        HostState::Alive => "up",
        HostState::Lost { .. } => "lost",
        HostState::Failed { .. } => "failed",
    }
}

/// At most nine lines, so that ten with the report's path: status, what is wrong, a line each, and
/// how much was measured over which network.
fn summary(analysis: &Analysis, width: usize, ink: Ink) -> String {
    let word = status(analysis);
    let word = match analysis.verdict.status {
        VerdictStatus::NothingWrong => ink.green(word),
        VerdictStatus::AsExpected => ink.yellow(word),
        VerdictStatus::Worse => ink.red(word),
        VerdictStatus::Partial | VerdictStatus::NotDetermined => ink.yellow(word),
    };
    let mut out = format!("\n{}\n", ink.bold(&word));
    let line = |start: &str, text: &str| {
        let room = width
            .min(SUMMARY_WIDTH)
            .saturating_sub(start.chars().count());
        format!("{start}{}\n", shortened(&one_line(text), room))
    };
    let shown: Vec<&Finding> = analysis
        .verdict
        .findings
        .iter()
        .filter(|finding| finding.severity != Severity::Info)
        .collect();
    let missed = missed_thresholds(analysis);
    if shown.is_empty() && missed.is_empty() {
        out.push_str(&wrap(&one_line(&analysis.verdict.sentence), width, "  "));
    }
    for (word, checked) in missed.iter().take(MISSED_LISTED) {
        out.push_str(&line(
            &format!("  {word}  threshold "),
            &checked.to_string(),
        ));
    }
    if missed.len() > MISSED_LISTED {
        let more = plural(missed.len() - MISSED_LISTED, "more threshold");
        out.push_str(&format!("  {more} missed, in the warnings above\n"));
    }
    let room = SUMMARY_LISTED - missed.len().min(MISSED_LISTED + 1);
    let listed = match shown.len() > room {
        true => room - 1,
        false => room,
    };
    for finding in shown.iter().take(listed) {
        let start = format!("  {}  ", severity_status(finding.severity));
        out.push_str(&line(&start, &finding.sentence));
    }
    if shown.len() > listed {
        let more = plural(shown.len() - listed, "more finding");
        out.push_str(&format!("  {more} above\n"));
    }
    out.push_str(&line("  ", &measured(analysis)));
    out
}

/// Thresholds that were not met, and those without a figure.
fn missed_thresholds(analysis: &Analysis) -> Vec<(&'static str, &Checked)> {
    let word = |checked: &Checked| match checked.is_met {
        Some(true) => None,
        Some(false) => Some("FAIL"),
        None => Some("NO DATA"),
    };
    let all = analysis.thresholds.iter();
    all.filter_map(|checked| Some((word(checked)?, checked)))
        .collect()
}

/// `Measured: 8 of 8 hosts, 416 of 416 flows; 7 hosts without findings.`
fn measured(analysis: &Analysis) -> String {
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

fn findings(analysis: &Analysis, width: usize, ink: Ink) -> String {
    let findings = &analysis.verdict.findings;
    if findings.is_empty() {
        return format!("{}\n  none\n\n", ink.bold("Findings"));
    }
    let mut out = format!("{}\n", ink.bold("Findings"));
    for (i, finding) in findings.iter().take(FINDINGS_LISTED).enumerate() {
        out.push_str(&finding_text(i + 1, finding, width, ink));
    }
    if findings.len() > FINDINGS_LISTED {
        out.push_str(&wrap(
            &format!(
                "{} more; the HTML and JSON reports list all.",
                findings.len() - FINDINGS_LISTED
            ),
            width,
            "  ",
        ));
        out.push('\n');
    }
    out
}

fn finding_text(number: usize, finding: &Finding, width: usize, ink: Ink) -> String {
    let word = severity(finding.severity);
    let head = wrap(
        &format!("{word}: {}", one_line(&finding.sentence)),
        width,
        &format!("{number:>3}. "),
    );
    let painted = match finding.severity {
        Severity::Fault => ink.red(word),
        Severity::Notice => ink.yellow(word),
        Severity::Info => word.to_owned(),
    };
    let mut out = head.replacen(word, &painted, 1);
    out.push_str(&wrap(&finding_figures(finding), width, "     "));
    for evidence in &finding.evidence {
        let line = format!(
            "{} [{}]",
            one_line(&evidence.text),
            one_line(&evidence.source)
        );
        out.push_str(&wrap(&line, width, "     - "));
    }
    if !finding.hint.is_empty() {
        out.push_str(&wrap(&one_line(&finding.hint), width, "     hint: "));
    }
    out.push('\n');
    out
}

fn rack_pairs(analysis: &Analysis, width: usize, ink: Ink) -> String {
    if analysis.rack_pairs.is_empty() {
        return String::new();
    }
    let (header, rows) = rack_table(analysis);
    let mut out = section("Rack to rack", &header, &rows, 2, width, ink);
    if analysis.rack_pairs.len() > rows.len() {
        out.truncate(out.trim_end().len());
        out.push_str(&format!(
            "\n{} more pairs; the HTML and JSON reports list all.\n\n",
            analysis.rack_pairs.len() - rows.len()
        ));
    }
    out
}

fn stages(analysis: &Analysis, style: &TextStyle) -> String {
    let (width, ink) = layout(style);
    if analysis.stages.is_empty() {
        return format!("{}\n  none ran\n\n", ink.bold("Stages"));
    }
    let (header, mut rows) = stage_table(analysis);
    let shown = columns_that_fit(&header, &rows, width, STAGE_COLUMNS_LEAST);
    rows.iter_mut().for_each(|row| row.truncate(shown));
    let mut out = match rows.is_empty() {
        true => String::from("\n"),
        false => section("Stages", &header[..shown], &rows, 1, width, ink),
    };
    let mut notes = match style.details {
        true => stage_notes(analysis),
        // What must be said of the figures themselves.
        false => figures_notes(analysis),
    };
    if shown < header.len() {
        let left_out = header[shown..].join(", ");
        notes.push(format!("Hidden (terminal too narrow): {left_out}."));
    }
    push_notes(&mut out, &notes, width);
    out
}

/// Two hosts' own test: findings where there are any, the result, and what must be said of it.
fn compact(analysis: &Analysis, style: &TextStyle) -> String {
    let (width, ink) = layout(style);
    let mut out = String::new();
    if !analysis.verdict.findings.is_empty() {
        out.push_str(&findings(analysis, width, ink));
    }
    out.push_str(&figure_tables(&compact::results(analysis), width, ink));
    let mut notes = figures_notes(analysis);
    notes.extend(compact::cpu_notes(analysis));
    push_notes(&mut out, &notes, width);
    out.push_str(&wrap(&compact::facts(analysis), width, "  "));
    for warning in &analysis.warnings {
        out.push_str(&wrap(&one_line(warning), width, "  warning: "));
    }
    out
}

fn figure_tables(tables: &[Figures], width: usize, ink: Ink) -> String {
    let mut out = String::new();
    for table in tables {
        let (header, rows) = (&table.header, &table.rows);
        out.push_str(&section(table.title, header, rows, table.left, width, ink));
        push_notes(&mut out, &table.notes, width);
    }
    out
}

/// Lines right below a table.
fn push_notes(out: &mut String, notes: &[String], width: usize) {
    if notes.is_empty() {
        return;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    for note in notes {
        out.push_str(&wrap(note, width, "  "));
    }
    out.push('\n');
}

fn stage_value(stage: &StageAnalysis, column: &str) -> String {
    match column {
        "stage" => stage_name(stage),
        "of expected" => fine_percent(stage.of_expected),
        "% of line rate" => fine_percent(stage.ceiling.map(|ceiling| ceiling.reached)),
        "aggregate" => estimated_rate(stage.aggregate_bits_per_sec),
        "per flow" => estimated_rate(stage.flow_bits_per_sec),
        "rtt" => duration(stage.rtt_ns.map(|(_, median, _)| median)),
        "rounds" => stage.rounds.to_string(),
        "flows" => stage.flows.to_string(),
        "missing" => stage.missing.to_string(),
        "retrans" => count(stage.retransmits),
        "skew p99" => duration(stage.start_skew_ns.map(|s| s.1)),
        _ => MISSING.into(),
    }
}

fn hosts(analysis: &Analysis, width: usize, ink: Ink) -> String {
    let listed = notable(analysis);
    let mut out = String::new();
    if listed.is_empty() {
        out.push_str(&format!("{}\n", ink.bold("Hosts")));
    } else {
        let (header, rows, words) = host_table(analysis, &listed);
        out.push_str(&section("Hosts", &header, &rows, words, width, ink));
        out.truncate(out.trim_end().len() + 1);
    }
    if let Some(line) = alike(analysis, listed.len()) {
        out.push_str(&wrap(&line, width, ""));
    }
    for line in absences(analysis) {
        out.push_str(&wrap(&line, width, "  "));
    }
    if let Some(line) = host_figures::nearest_words(analysis) {
        out.push_str(&wrap(&line, width, ""));
    }
    out.push('\n');
    let near = host_figures::near_limits(analysis);
    if !near.rows.is_empty() {
        out.push_str(&figure_tables(&[near], width, ink));
    }
    out
}

fn missing_cells(analysis: &Analysis, width: usize, ink: Ink) -> String {
    let groups = missing_by_reason(analysis);
    if groups.is_empty() {
        return String::new();
    }
    let mut out = format!("{}\n", ink.bold("Pairs without a figure"));
    for line in groups {
        out.push_str(&wrap(&line, width, "  "));
    }
    out.push('\n');
    out
}

/// Facts of the run: all of them on request, else what says which run it was and what it was
/// compared with.
fn facts(analysis: &Analysis, style: &TextStyle) -> String {
    const ALWAYS: [&str; 5] = ["run", "took", "hosts", "reference host", "repeat"];
    let (width, ink) = layout(style);
    let mut out = format!("{}\n", ink.bold("Run"));
    let facts = fact_list(analysis).into_iter();
    let shown = facts.filter(|(name, _)| style.details || ALWAYS.contains(name));
    for (name, value) in shown {
        out.push_str(&wrap(&value, width, &format!("  {name:<18} ")));
    }
    for warning in &analysis.warnings {
        out.push_str(&wrap(&one_line(warning), width, "  warning: "));
    }
    out
}

fn section(
    title: &str,
    header: &[&str],
    rows: &[Vec<String>],
    left: usize,
    width: usize,
    ink: Ink,
) -> String {
    format!("{}\n{}", ink.bold(title), table(header, rows, left, width))
}

fn differs(analysis: &Analysis, host: &HostAnalysis) -> bool {
    let off = |effect: Option<f64>| effect.is_some_and(|e| (e - 1.0).abs() > NOTABLE_EFFECT);
    let named = analysis.verdict.findings.iter().any(|f| match f.subject {
        Subject::Host { host: named } => named == host.host,
        Subject::Pair { src, dst } => src == host.host || dst == host.host,
        Subject::RackPair { .. } | Subject::Rack { .. } | Subject::Run => false,
    });
    host.state != HostState::Alive || off(host.tx_effect) || off(host.rx_effect) || named
}

/// Colours for what words already say.
#[derive(Clone, Copy)]
pub(crate) struct Ink {
    pub(crate) color: bool,
}

impl Ink {
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(text, "1")
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint(text, "1;31")
    }

    fn yellow(self, text: &str) -> String {
        self.paint(text, "1;33")
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint(text, "1;32")
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.color {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}
