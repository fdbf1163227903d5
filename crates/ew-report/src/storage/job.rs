//! Storage runs, for people and for programs.

use super::hadoop;
use crate::table::{table, wrap};
use crate::words::{MISSING, duration, one_line, or_missing, percent, plural};
use crate::{ReportError, TextStyle};
use ew_analyze::storage::dfsio;
use ew_analyze::storage::fan_in::{FanIn, FanInPoint};
use ew_analyze::storage::job::{ClientFigures, StepAnalysis, StorageAnalysis};
use ew_analyze::storage::limits::{Binding, Side};
use ew_model::analysis::Estimate;
use ew_model::finding::VerdictStatus;
use ew_model::latency::LatencySummary;
use ew_model::run::Run;
use ew_model::storage::{FileOutcome, StorageJob, StorageOperation};
use ew_model::units::{format_bytes, format_bytes_per_sec, format_whole_bytes};
use serde::Serialize;

/// Version of the JSON document's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
const SCHEMA_VERSION: u32 = 1;
/// Stragglers, clients and failures shown at most; JSON has all.
const MOST_ROWS: usize = 20;

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    schema_version: u32,
    #[serde(flatten)]
    analysis: &'a StorageAnalysis,
}

/// For programs.
///
/// # Errors
/// [`ReportError::Json`], a defect.
pub fn storage_json(analysis: &StorageAnalysis) -> Result<String, ReportError> {
    let document = Document {
        schema: "eastwest-storage",
        schema_version: SCHEMA_VERSION,
        analysis,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// One row per file and step. Times in ns, "-" where there is none.
#[must_use]
pub fn storage_csv(run: &Run) -> String {
    let mut text = String::from(
        "step,operation,host,file,worker,start_ns,open_ns,first_byte_ns,io_ns,close_ns,bytes,outcome\n",
    );
    for step in &run.storage {
        for (host, report) in &step.reports {
            let host = run.manifest.inventory.name(*host);
            for record in &report.files {
                let time = |ns: Option<u64>| or_missing(ns, |ns| ns.to_string());
                let outcome = match &record.outcome {
                    FileOutcome::Done => "done",
                    FileOutcome::Failed { .. } => "failed",
                    FileOutcome::Corrupt { .. } => "corrupt",
                    FileOutcome::Cancelled => "cancelled",
                };
                let columns = [
                    step.step.to_string(),
                    step.operation.name().to_owned(),
                    quoted(host),
                    record.file.to_string(),
                    record.worker.to_string(),
                    record.start_ns.to_string(),
                    time(record.open_ns),
                    time(record.first_byte_ns),
                    time(record.io_ns),
                    time(record.close_ns),
                    record.bytes.to_string(),
                    outcome.to_owned(),
                ];
                text.push_str(&columns.join(","));
                text.push('\n');
            }
        }
    }
    text
}

/// RFC 4180: quoted where it must be.
fn quoted(text: &str) -> String {
    let text = one_line(text);
    match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

/// For the terminal: the verdict, then per step TestDFSIO's block and what it hides.
#[must_use]
pub fn storage_text(analysis: &StorageAnalysis, style: &TextStyle) -> String {
    let width = style.width.max(40);
    let mut out = wrap(&verdict(analysis), width, "");
    if let Some(job) = &analysis.job {
        out.push_str(&wrap(&job_line(job), width, ""));
    }
    for note in notes(analysis) {
        out.push_str(&wrap(&note, width, ""));
    }
    for fan_in in &analysis.fan_in {
        out.push_str(&fan_in_text(fan_in, width));
    }
    for step in &analysis.steps {
        if !out.ends_with("\n\n") {
            out.push('\n');
        }
        out.push_str(&step_text(step, width));
    }
    out
}

fn verdict(analysis: &StorageAnalysis) -> String {
    let wrong: usize = analysis.steps.iter().map(|s| s.corrupt.len()).sum();
    match analysis.status {
        VerdictStatus::Worse => {
            format!(
                "FAIL: {} read back with other bytes than written",
                plural(wrong, "file")
            )
        }
        VerdictStatus::Partial if analysis.interrupted => "INCOMPLETE: stopped by the user".into(),
        VerdictStatus::Partial => "INCOMPLETE: files or hosts are missing, see below".into(),
        VerdictStatus::NotDetermined => "NO DATA: an operation moved no file, see below".into(),
        VerdictStatus::NothingWrong | VerdictStatus::AsExpected => {
            let is_verified = analysis.job.as_ref().is_some_and(|job| job.verify);
            let reads = analysis.steps.iter().any(|s| s.operation.reads());
            match (is_verified, reads) {
                (true, true) => "PASS: all files whole, every byte read as written".into(),
                _ => "PASS: all files whole".to_owned(),
            }
        }
    }
}

/// One operation against the number of storage nodes or endpoints.
fn fan_in_text(fan_in: &FanIn, width: usize) -> String {
    let mut out = String::from("\n");
    for line in fan_in_lines(fan_in) {
        out.push_str(&wrap(&line, width, ""));
    }
    let row = |point: &FanInPoint| {
        vec![
            point.endpoints.to_string(),
            format!("{}:{}", point.clients, point.endpoints),
            or_missing(point.bytes_per_sec, format_bytes_per_sec),
            or_missing(point.steady_bytes_per_sec, format_bytes_per_sec),
            or_missing(
                point.rate().map(|rate| rate / f64::from(point.endpoints)),
                format_bytes_per_sec,
            ),
            or_missing(point.binding.as_ref(), binding),
            percent(point.variation),
            format!("{:.2} s", point.exec_s),
            or_missing(point.slowest.as_deref(), one_line),
        ]
    };
    let rows: Vec<_> = fan_in.points.iter().map(row).collect();
    let head = [
        "nodes",
        "fan-in",
        "aggregate",
        "common window",
        "per node",
        "bound by",
        "variation",
        "exec",
        "slowest",
    ];
    out.push_str(&table(&head, &rows, 0, width));
    out
}

/// What the table amounts to.
fn fan_in_lines(fan_in: &FanIn) -> Vec<String> {
    let operation = fan_in.operation.name();
    let most = fan_in.points.iter().map(|point| point.endpoints).max();
    let mut lines = vec![match (fan_in.enough_endpoints, most) {
        (Some(enough), Some(most)) if enough < most => format!(
            "{operation}: {enough} of {most} endpoints reach 90% of the highest aggregate, more do not raise it (one run per step)"
        ),
        (Some(_), _) => format!(
            "{operation}: with fewer endpoints the aggregate stays below 90% of the highest (one run per step)"
        ),
        (None, _) => format!("{operation}: a step has no whole aggregate to compare with"),
    }];
    if let Some(fit) = &fan_in.fit {
        let bend = match (&fit.plateau, &fit.knee) {
            (Some(plateau), Some(knee)) => format!(
                ", up to {}: saturates at {} ({:.2}{})",
                interval(plateau),
                plural(knee.nodes as usize, "storage node"),
                knee.exact,
                match (knee.low, knee.high) {
                    (Some(low), Some(high)) => format!(", 95% {low:.2} to {high:.2}"),
                    _ => String::new(),
                }
            ),
            _ => ", no saturation up to here".into(),
        };
        lines.push(format!(
            "{operation}: {} per storage node{bend}; largest residual {}",
            interval(&fit.node),
            percent(Some(fit.worst_residual))
        ));
    }
    let measured = [
        ("one client", fan_in.alone.client),
        ("one storage node", fan_in.alone.node),
        ("all together", fan_in.alone.network),
        ("one storage node's disk", fan_in.alone.disk),
    ];
    let measured = measured
        .into_iter()
        .filter_map(|(word, rate)| Some(format!("{word} {}", format_bytes_per_sec(rate?))));
    let measured: Vec<String> = measured.collect();
    if !measured.is_empty() {
        lines.push(format!(
            "{operation}, network and disks alone: {}",
            measured.join(", ")
        ));
    }
    lines
}

fn interval(estimate: &Estimate) -> String {
    let value = format_bytes_per_sec(estimate.value);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!(
            "{value} (95% {} to {})",
            format_bytes_per_sec(low),
            format_bytes_per_sec(high)
        ),
        _ => value,
    }
}

fn binding(binding: &Binding) -> String {
    let side = match binding.lowest.side {
        Side::Clients => "clients' NICs",
        Side::Network => "network",
        Side::StorageNodeNic => "storage nodes' NICs",
        Side::Disk => "disks",
    };
    let reached = percent(Some(binding.reached));
    let limit = format_bytes_per_sec(binding.lowest.bytes_per_sec);
    match binding.binds {
        true => format!("{side}, {reached} of {limit}"),
        false => format!("not measured ({reached} of {side})"),
    }
}

fn job_line(job: &StorageJob) -> String {
    if job.testdfsio.is_some() {
        return format!(
            "{}: Hadoop's TestDFSIO, files of {}, buffer {}",
            one_line(&job.target),
            format_whole_bytes(job.file_bytes),
            format_whole_bytes(job.buffer_bytes)
        );
    }
    let check = match job.verify {
        true => "content verified on reads",
        false => "content not verified",
    };
    let again = job
        .time_ns
        .map(|ns| format!(", again and again for {} at least", duration(Some(ns))));
    format!(
        "{}: files of {}, buffer {}, {} at once per host{}, {check}, seed {}",
        one_line(&job.target),
        format_whole_bytes(job.file_bytes),
        format_whole_bytes(job.buffer_bytes),
        plural(job.parallel as usize, "file"),
        again.unwrap_or_default(),
        job.seed
    )
}

/// Those of all steps, each once.
fn notes(analysis: &StorageAnalysis) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in analysis.steps.iter().flat_map(|step| &step.notes) {
        let note = one_line(note);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

fn step_text(step: &StepAnalysis, width: usize) -> String {
    let mut out = String::new();
    match &step.dfsio {
        Some(figures) => {
            let word = step.operation.dfsio_name();
            let date = java_date(step.started_unix_ns);
            out.push_str(&dfsio::block(figures, word, &date, step.exec_s));
        }
        None => out.push_str(&counts(step)),
    }
    if let Some(job) = &step.hadoop {
        for line in hadoop::lines(job, step) {
            out.push_str(&wrap(&line, width, ""));
        }
    } else if step.dfsio.is_some() {
        if let Some(line) = circumstances(step) {
            out.push_str(&wrap(&line, width, ""));
        }
        for line in hidden(step) {
            out.push_str(&wrap(&line, width, ""));
        }
        out.push('\n');
        out.push_str(&times(step, width));
        out.push_str(&clients(&step.clients, width));
    }
    for line in troubles(step) {
        out.push_str(&wrap(&line, width, ""));
    }
    out
}

fn counts(step: &StepAnalysis) -> String {
    let removed = step.operation == StorageOperation::Clean;
    let verb = if removed { "removed" } else { "whole" };
    let ordered = match step.files_ordered {
        0 => String::new(),
        ordered => format!(" of {ordered}"),
    };
    format!(
        "{}: {}{ordered} files {verb} in {:.2} s\n",
        step.operation.name(),
        step.files_done,
        step.exec_s
    )
}

/// What is special about a step.
fn circumstances(step: &StepAnalysis) -> Option<String> {
    if step.is_disk_alone {
        return Some("on the storage nodes' own disks, without the network".into());
    }
    let nodes = &step.storage_nodes;
    (!nodes.is_empty()).then(|| {
        let count = plural(nodes.len(), "storage node");
        format!("{count} in service: {}", one_line(&nodes.join(", ")))
    })
}

/// What TestDFSIO's block does not say.
fn hidden(step: &StepAnalysis) -> Vec<String> {
    let rate = |rate: Option<f64>| or_missing(rate, format_bytes_per_sec);
    let mut lines = vec![format!(
        "{}: {} of {} files whole, {}, aggregate {} over {} (first open to last close)",
        step.operation.name(),
        step.files_done,
        step.files_ordered,
        format_bytes(step.bytes),
        rate(step.aggregate_bytes_per_sec),
        duration(step.wall_ns)
    )];
    if let Some(common) = &step.common {
        lines.push(format!(
            "common window: {} with all workers active, {} of the time; aggregate in it {}",
            duration(Some(common.length_ns)),
            percent(Some(common.overlap)),
            rate(common.bytes_per_sec)
        ));
    }
    if let Some(rates) = &step.file_rates {
        lines.push(format!(
            "rate per file: min {}, p5 {}, p50 {}, p95 {}, max {}",
            format_bytes_per_sec(rates.min),
            format_bytes_per_sec(rates.p5),
            format_bytes_per_sec(rates.p50),
            format_bytes_per_sec(rates.p95),
            format_bytes_per_sec(rates.max)
        ));
    }
    if let Some(share) = step.content_share {
        let word = if step.operation.writes() {
            "making"
        } else {
            "verifying"
        };
        lines.push(format!(
            "{word} content: {} of the I/O time",
            percent(Some(share))
        ));
    }
    lines
}

fn times(step: &StepAnalysis, width: usize) -> String {
    let call = if step.operation.writes() {
        "write call"
    } else {
        "read call"
    };
    let rows = [
        ("open", &step.open),
        ("first byte", &step.first_byte),
        ("I/O", &step.io),
        ("close", &step.close),
        (call, &step.calls),
    ];
    let row = |(name, times): (&str, &Option<LatencySummary>)| {
        let time = |of: fn(&LatencySummary) -> u64| duration(times.as_ref().map(of));
        vec![
            name.to_owned(),
            or_missing(times.as_ref(), |t| t.count.to_string()),
            time(|t| t.min_ns),
            time(|t| t.p50_ns),
            time(|t| t.p90_ns),
            time(|t| t.p99_ns),
            time(|t| t.max_ns),
        ]
    };
    let rows: Vec<_> = rows.into_iter().map(row).collect();
    table(
        &["time", "n", "min", "p50", "p90", "p99", "max"],
        &rows,
        1,
        width,
    )
}

fn clients(clients: &[ClientFigures], width: usize) -> String {
    let mut slowest: Vec<&ClientFigures> = clients.iter().collect();
    let rate = |client: &ClientFigures| client.bytes_per_sec.unwrap_or(0.0);
    slowest.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    let left_out = slowest.len().saturating_sub(MOST_ROWS);
    let row = |client: &&ClientFigures| {
        vec![
            one_line(&client.host),
            client.files.to_string(),
            format_bytes(client.bytes),
            or_missing(client.bytes_per_sec, format_bytes_per_sec),
            duration(client.wall_ns),
            duration(client.median_file_ns),
            duration(Some(client.late_ns)),
        ]
    };
    let rows: Vec<_> = slowest.iter().take(MOST_ROWS).map(row).collect();
    let head = [
        "client", "files", "bytes", "rate", "wall", "p50 file", "start",
    ];
    let mut out = table(&head, &rows, 1, width);
    if left_out > 0 {
        out.push_str(&format!("... and {} faster\n", plural(left_out, "client")));
    }
    out
}

/// Wrong bytes first, then what is missing, then what was slow.
fn troubles(step: &StepAnalysis) -> Vec<String> {
    let operation = step.operation.name();
    let corrupt = step.corrupt.iter().map(|wrong| {
        format!(
            "FAIL: {}: {operation}: test_io_{} holds wrong bytes from offset {}: {}",
            one_line(&wrong.host),
            wrong.file,
            wrong.offset,
            one_line(&wrong.found)
        )
    });
    let failures = step.failures.iter().map(|failure| {
        let files = match failure.files {
            0 => String::new(),
            count => format!("{} failed: ", plural(count as usize, "file")),
        };
        let (host, error) = (one_line(&failure.host), one_line(&failure.error));
        format!("{host}: {operation}: {files}{error}")
    });
    let missing = step
        .missing
        .iter()
        .map(|(host, why)| format!("{}: {operation}: {}", one_line(host), one_line(why)));
    let cancelled = (step.cancelled > 0).then(|| {
        let files = plural(step.cancelled as usize, "file");
        format!("{operation}: {files} stopped before their end")
    });
    let slow = step.stragglers.iter().map(|slow| {
        format!(
            "straggler: test_io_{} on {}: {}, {:.1} times the median",
            slow.file,
            one_line(&slow.host),
            duration(Some(slow.time_ns)),
            slow.times_median
        )
    });
    [
        limited(corrupt.collect()),
        limited(failures.collect()),
        limited(missing.collect()),
        cancelled.into_iter().collect(),
        limited(slow.collect()),
    ]
    .concat()
}

fn limited(mut lines: Vec<String>) -> Vec<String> {
    let left_out = lines.len().saturating_sub(MOST_ROWS);
    lines.truncate(MOST_ROWS);
    if left_out > 0 {
        lines.push(format!("... and {left_out} more, see --format json"));
    }
    lines
}

/// As `java.util.Date` prints it: `Wed Sep 02 10:00:00 UTC 2026`.
fn java_date(unix_ns: u64) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).map_or_else(
        |_| MISSING.to_owned(),
        |at| at.strftime("%a %b %d %H:%M:%S UTC %Y").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_as_java_prints_them() {
        let at = 1_788_343_200_000_000_000;
        assert_eq!(java_date(at), "Wed Sep 02 10:00:00 UTC 2026");
    }

    #[test]
    fn long_lists_are_cut() {
        let lines = limited((0..30).map(|n| n.to_string()).collect());
        assert_eq!(lines.len(), MOST_ROWS + 1);
        assert!(lines[MOST_ROWS].contains("10 more"));
    }
}
