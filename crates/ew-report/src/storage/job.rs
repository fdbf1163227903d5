//! Storage runs, for people and for programs.

use super::hadoop;
use crate::csv_line::push_line;
use crate::error::ReportError;
use crate::format::TextStyle;
use crate::table::{table, wrap};
use crate::words::{MISSING, count, duration, one_line, or_missing, percent, plural, rate};
use ew_analyze_storage::dfsio;
use ew_analyze_storage::fan_in::{Axis, FanIn, FanInPoint, Term};
use ew_analyze_storage::job::{ClientFigures, StepAnalysis, StorageAnalysis};
use ew_analyze_storage::limits::{Alone, Binding, WayPart};
use ew_analyze_storage::node_times::FilePlacement;
use ew_analyze_storage::nodes::{Balance, NodeCounters, NodeFigures, NodeRole};
use ew_model::analysis::Estimate;
use ew_model::finding::VerdictStatus;
use ew_model::latency::LatencySummary;
use ew_model::run::Run;
use ew_model::storage::{
    DataNodeState, FileOutcome, FileRecord, HdfsFacts, StorageJob, StorageOperation,
};
use ew_model::units::{format_bytes, format_bytes_per_sec, format_whole_bytes};
use serde::Serialize;

/// Version of the JSON document's layout. It grows when a field changes its meaning or goes; new
/// fields do not count.
const SCHEMA_VERSION: u32 = 3;
/// Stragglers, clients and failures shown at most; JSON has all.
const MAX_ROWS: usize = 20;

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
        "step,operation,host,file,worker,start_ns,open_ns,first_byte_ns,io_ns,close_ns,bytes,outcome,storage_node\n",
    );
    for step in &run.storage {
        let placement = FilePlacement::new(step, &|id| run.manifest.inventory.name(id).to_owned());
        for (id, report) in &step.reports {
            let host = run.manifest.inventory.name(*id);
            let node = |record: &FileRecord| placement.as_ref()?.node(*id, record);
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
                    one_line(host),
                    record.file.to_string(),
                    record.worker.to_string(),
                    record.start_ns.to_string(),
                    time(record.open_ns),
                    time(record.first_byte_ns),
                    time(record.io_ns),
                    time(record.close_ns),
                    record.bytes.to_string(),
                    outcome.to_owned(),
                    or_missing(node(record), one_line),
                ];
                push_line(&mut text, columns.into_iter());
            }
        }
    }
    text
}

/// For the terminal: the verdict, then per step TestDFSIO's block and what it hides.
#[must_use]
pub fn storage_text(analysis: &StorageAnalysis, style: &TextStyle) -> String {
    let width = style.width.max(40);
    let (status, sentence) = verdict(analysis);
    let mut out = wrap(&format!("{status}: {sentence}"), width, "");
    if let Some(job) = &analysis.job {
        out.push_str(&wrap(&job_line(job), width, ""));
    }
    out.extend(
        analysis
            .hdfs
            .as_ref()
            .map(|facts| wrap(&hdfs_line(facts), width, "")),
    );
    for note in notes(analysis) {
        out.push_str(&wrap(&note, width, ""));
    }
    for warning in &analysis.warnings {
        let line = format!("warning: {}", one_line(warning));
        out.push_str(&wrap(&line, width, ""));
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

/// A status word, and what it means here.
pub(crate) fn verdict(analysis: &StorageAnalysis) -> (&'static str, String) {
    let wrong: usize = analysis.steps.iter().map(|s| s.corrupt.len()).sum();
    match analysis.status {
        VerdictStatus::Worse => {
            let files = plural(wrong, "file");
            (
                "FAIL",
                format!("{files} read back with other bytes than written"),
            )
        }
        VerdictStatus::Partial if analysis.interrupted => {
            ("INCOMPLETE", "stopped by the user".into())
        }
        VerdictStatus::Partial => ("INCOMPLETE", "files or hosts are missing, see below".into()),
        VerdictStatus::NotDetermined => ("NO DATA", "an operation moved no file, see below".into()),
        VerdictStatus::NothingWrong | VerdictStatus::AsExpected => {
            let is_verified = analysis.job.as_ref().is_some_and(|job| job.verify);
            let reads = analysis.steps.iter().any(|s| s.operation.reads());
            let sentence = match (is_verified, reads) {
                (true, true) => "all files whole, every byte read as written",
                _ => "all files whole",
            };
            ("PASS", sentence.into())
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
            point.count(fan_in.axis).to_string(),
            format!("{}:{}", point.clients, point.endpoints),
            or_missing(point.bytes_per_sec, format_bytes_per_sec),
            or_missing(point.steady_bytes_per_sec, format_bytes_per_sec),
            or_missing(
                point
                    .rate()
                    .map(|rate| rate / f64::from(point.count(fan_in.axis))),
                format_bytes_per_sec,
            ),
            or_missing(point.binding.as_ref(), binding),
            or_missing(point.modelled, |model| term(model.term).to_owned()),
            percent(point.variation),
            format!("{:.2} s", point.exec_s),
            or_missing(point.slowest.as_deref(), one_line),
        ]
    };
    let rows: Vec<_> = fan_in.points.iter().map(row).collect();
    let (count, each) = match fan_in.axis {
        Axis::StorageNodes => ("nodes", "per node"),
        Axis::Clients => ("clients", "per client"),
    };
    let head = [
        count,
        "fan-in",
        "aggregate",
        "common window",
        each,
        "bound by",
        "model",
        "variation",
        "exec",
        "worst",
    ];
    out.push_str(&table(&head, &rows, 0, width));
    out
}

/// What the table amounts to.
pub(crate) fn fan_in_lines(fan_in: &FanIn) -> Vec<String> {
    let operation = fan_in.operation.name();
    let (one, many) = match fan_in.axis {
        Axis::StorageNodes => ("storage node", "endpoints"),
        Axis::Clients => ("client", "clients"),
    };
    let counts = fan_in.points.iter().map(|point| point.count(fan_in.axis));
    let most = counts.max();
    let mut lines = vec![match (fan_in.enough_endpoints, most) {
        (Some(enough), Some(most)) if enough < most => format!(
            "{operation}: {enough} of {most} {many} reach 90% of the highest aggregate, more do not raise it (one run per step)"
        ),
        (Some(_), _) => format!(
            "{operation}: with fewer {many} the aggregate stays below 90% of the highest (one run per step)"
        ),
        (None, _) => format!("{operation}: a step has no whole aggregate to compare with"),
    }];
    if let Some(fit) = &fan_in.fit {
        let bend = match (&fit.plateau, &fit.knee) {
            (Some(plateau), Some(knee)) => format!(
                ", up to {}: saturates at {} ({:.2}{})",
                interval(plateau),
                plural(knee.nodes as usize, one),
                knee.exact,
                match (knee.low, knee.high) {
                    (Some(low), Some(high)) => format!(", 95% {low:.2} to {high:.2}"),
                    _ => String::new(),
                }
            ),
            _ => ", no saturation up to here".into(),
        };
        lines.push(format!(
            "{operation}: {} per {one}{bend}; largest residual {}",
            interval(&fit.node),
            percent(Some(fit.worst_residual))
        ));
    }
    lines.extend(fan_in.terms.network.as_ref().map(|network| {
        let network = interval(network);
        format!("{operation}: {network} between both sets, below what clients and storage nodes do")
    }));
    lines.extend(alone_lines(operation, &fan_in.alone));
    lines
}

/// What was measured without the rest.
fn alone_lines(operation: &str, alone: &Alone) -> Vec<String> {
    let measured = [
        ("one client", &alone.client),
        ("one storage node", &alone.node),
        ("all together", &alone.network),
        ("one storage node's disk", &alone.disk),
    ];
    let measured = measured
        .into_iter()
        .filter_map(|(word, rate)| Some(format!("{word} {}", interval(rate.as_ref()?))));
    let measured: Vec<String> = measured.collect();
    let by_servers = alone.by_servers.iter().map(|by| {
        let rate = format_bytes_per_sec(by.bytes_per_sec.value);
        format!("{} with {}", rate, plural(by.servers as usize, "server"))
    });
    let by_servers: Vec<String> = by_servers.collect();
    let knee = alone.network_fit.as_ref().and_then(|fit| fit.knee.as_ref());
    let knee = knee.map_or_else(String::new, |knee| {
        format!("; saturates at {:.2} servers", knee.exact)
    });
    let line = |words: &str, parts: &[String], end: &str| {
        (!parts.is_empty()).then(|| format!("{operation}, {words}: {}{end}", parts.join(", ")))
    };
    let lines = [
        line("network and disks alone", &measured, ""),
        line("network alone", &by_servers, &knee),
    ];
    lines.into_iter().flatten().collect()
}

/// A term of the model.
pub(crate) fn term(term: Term) -> &'static str {
    match term {
        Term::Clients => "clients",
        Term::StorageNodes => "storage nodes",
        Term::Network => "network",
        Term::Plateau => "plateau",
    }
}

/// `HDFS nn1:8020: 4 DataNodes in service, 1 in maintenance, capacity 12.0 TiB, ...`.
pub(crate) fn hdfs_line(facts: &HdfsFacts) -> String {
    let mut parts = Vec::new();
    match &facts.data_nodes {
        None => parts.push("DataNodes are shown to HDFS superusers only".to_owned()),
        Some(nodes) => {
            let count = |state| nodes.iter().filter(|node| node.state == state).count();
            let serving = count(DataNodeState::InService);
            parts.push(format!("{} in service", plural(serving, "DataNode")));
            let others = [
                (
                    count(DataNodeState::EnteringMaintenance),
                    "entering maintenance",
                ),
                (count(DataNodeState::InMaintenance), "in maintenance"),
                (count(DataNodeState::Decommissioning), "decommissioning"),
                (facts.dead.as_ref().map_or(0, Vec::len), "dead"),
            ];
            let others = others.into_iter().filter(|(count, _)| *count > 0);
            parts.extend(others.map(|(count, word)| format!("{count} {word}")));
        }
    }
    let bytes = |word: &str, bytes: Option<u64>| Some(format!("{word} {}", format_bytes(bytes?)));
    parts.extend(bytes("capacity", facts.capacity_bytes));
    parts.extend(bytes("remaining", facts.remaining_bytes));
    parts.extend(
        facts
            .replication
            .map(|copies| format!("default replication {copies}")),
    );
    parts.extend(bytes("default block size", facts.block_bytes));
    format!("HDFS {}: {}", one_line(&facts.name_node), parts.join(", "))
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

pub(crate) fn binding(binding: &Binding) -> String {
    let side = match binding.lowest.side {
        WayPart::Clients => "clients' NICs",
        WayPart::Network => "network",
        WayPart::StorageNodeNic => "storage nodes' NICs",
        WayPart::Disk => "disks",
    };
    let side = match (binding.busiest_share, binding.lowest.side) {
        (None, _) => side.to_owned(),
        (Some(_), WayPart::Disk) => "the busiest storage node's disk".into(),
        (Some(_), _) => "the busiest storage node's NIC".into(),
    };
    let reached = percent(Some(binding.reached));
    let limit = format_bytes_per_sec(binding.lowest.bytes_per_sec);
    match binding.binds {
        true => format!("{side}, {reached} of {limit}"),
        false => format!("not measured ({reached} of {side})"),
    }
}

pub(crate) fn job_line(job: &StorageJob) -> String {
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
pub(crate) fn notes(analysis: &StorageAnalysis) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in analysis.steps.iter().flat_map(|step| &step.notes) {
        let note = one_line(note);
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

pub(crate) fn step_text(step: &StepAnalysis, width: usize) -> String {
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
        let around = [circumstances(step), step.balance.as_ref().map(balance_line)];
        for line in around.into_iter().flatten() {
            out.push_str(&wrap(&line, width, ""));
        }
        out.push_str(&nodes(&step.nodes, width));
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
        out.push_str(&times_by_client(step, width));
        out.push_str(&times_by_node(step, width));
        out.push_str(&nodes(&step.nodes, width));
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

/// What TestDFSIO's block does not report.
fn hidden(step: &StepAnalysis) -> Vec<String> {
    let bytes = |rate: Option<f64>| or_missing(rate, format_bytes_per_sec);
    let mut lines = vec![format!(
        "{}: {} of {} files whole, {}, aggregate {} over {} (first open to last close)",
        step.operation.name(),
        step.files_done,
        step.files_ordered,
        format_bytes(step.bytes),
        bytes(step.aggregate_bytes_per_sec),
        duration(step.wall_ns)
    )];
    if let Some(common) = &step.common {
        lines.push(format!(
            "common window: {} with all workers active, {} of the time; aggregate in it {}",
            duration(Some(common.length_ns)),
            percent(Some(common.overlap)),
            bytes(common.bytes_per_sec)
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
    lines.extend(step.balance.as_ref().map(balance_line));
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
    let call = call_word(step);
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

fn call_word(step: &StepAnalysis) -> &'static str {
    match step.operation.writes() {
        true => "write call",
        false => "read call",
    }
}

/// By rate.
fn slowest_first(clients: &[ClientFigures]) -> Vec<&ClientFigures> {
    let mut slowest: Vec<&ClientFigures> = clients.iter().collect();
    let rate = |client: &ClientFigures| client.bytes_per_sec.unwrap_or(0.0);
    slowest.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    slowest
}

/// One host's or node's times, by word.
type NamedTimes = (String, Vec<(&'static str, Option<LatencySummary>)>);

/// Empty for one client: its times are the step's.
fn times_by_client(step: &StepAnalysis, width: usize) -> String {
    if step.clients.len() < 2 {
        return String::new();
    }
    let slowest = slowest_first(&step.clients).into_iter().take(MAX_ROWS);
    let named = slowest.map(|client| {
        let times = vec![("file", client.file_times), (call_word(step), client.calls)];
        (one_line(&client.host), times)
    });
    named_times("client", &named.collect::<Vec<_>>(), width)
}

/// Empty where storage has one name and nobody knows what is behind it.
fn times_by_node(step: &StepAnalysis, width: usize) -> String {
    let Some(by_node) = &step.times_by_node else {
        return String::new();
    };
    let is_whole = by_node.files_of_one_node == by_node.files;
    if is_whole && by_node.nodes.len() < 2 {
        return String::new();
    }
    let nodes = by_node.nodes.iter().take(MAX_ROWS);
    let named = nodes.map(|node| {
        let times = [
            ("file", node.file_times),
            ("first byte", node.first_byte),
            (call_word(step), node.calls),
        ];
        let known = times.into_iter().filter(|(_, times)| times.is_some());
        (one_line(&node.node), known.collect())
    });
    let named: Vec<NamedTimes> = named.collect();
    let mut out = String::new();
    if !is_whole {
        let line = format!(
            "times per storage node: of {} of {} files, those with all blocks on one DataNode alone",
            by_node.files_of_one_node, by_node.files
        );
        out.push_str(&wrap(&line, width, ""));
    }
    if !named.is_empty() {
        out.push_str(&named_times("storage node", &named, width));
    }
    out
}

fn named_times(head: &str, named: &[NamedTimes], width: usize) -> String {
    let row = |name: &str, (word, times): &(&str, Option<LatencySummary>)| {
        let time = |of: fn(&LatencySummary) -> u64| duration(times.as_ref().map(of));
        vec![
            name.to_owned(),
            (*word).to_owned(),
            or_missing(times.as_ref(), |t| t.count.to_string()),
            time(|t| t.p50_ns),
            time(|t| t.p90_ns),
            time(|t| t.p99_ns),
            time(|t| t.max_ns),
        ]
    };
    let rows = named
        .iter()
        .flat_map(|(name, times)| times.iter().map(|times| row(name, times)));
    let rows: Vec<_> = rows.collect();
    let head = [head, "time", "n", "p50", "p90", "p99", "max"];
    table(&head, &rows, 2, width)
}

fn clients(clients: &[ClientFigures], width: usize) -> String {
    let slowest = slowest_first(clients);
    let left_out = slowest.len().saturating_sub(MAX_ROWS);
    let row = |client: &&ClientFigures| {
        vec![
            one_line(&client.host),
            client.files.to_string(),
            format_bytes(client.bytes),
            or_missing(client.bytes_per_sec, format_bytes_per_sec),
            duration(client.wall_ns),
            duration(client.file_times.map(|times| times.p50_ns)),
            duration(Some(client.late_ns)),
        ]
    };
    let rows: Vec<_> = slowest.iter().take(MAX_ROWS).map(row).collect();
    let head = [
        "client", "files", "bytes", "rate", "wall", "p50 file", "start",
    ];
    let mut out = table(&head, &rows, 1, width);
    if left_out > 0 {
        out.push_str(&format!("... and {} faster\n", plural(left_out, "client")));
    }
    out
}

/// Counters of storage nodes; clients have a table of their own. Empty where none was read.
fn nodes(nodes: &[NodeFigures], width: usize) -> String {
    let is_read = |node: &&NodeFigures| {
        node.role == NodeRole::StorageNode && node.counters != NodeCounters::default()
    };
    let serving: Vec<&NodeFigures> = nodes.iter().filter(is_read).collect();
    if serving.is_empty() {
        return String::new();
    }
    let row = |node: &&NodeFigures| {
        let counters = &node.counters;
        let disk = counters.disk;
        vec![
            one_line(&node.host),
            rate(counters.tx_bits_per_sec),
            rate(counters.rx_bits_per_sec),
            count(counters.tcp_established),
            percent(counters.busy_share),
            or_missing(disk, |disk| format_bytes_per_sec(disk.read_bytes_per_sec)),
            or_missing(disk, |disk| {
                format_bytes_per_sec(disk.written_bytes_per_sec)
            }),
            or_missing(disk, |disk| format!("{:.1}", disk.queue_depth)),
            duration(disk.and_then(|disk| disk.await_ns)),
        ]
    };
    let rows: Vec<_> = serving.iter().take(MAX_ROWS).map(row).collect();
    let head = [
        "storage node",
        "TX",
        "RX",
        "connections",
        "CPU",
        "disk reads",
        "disk writes",
        "queue",
        "await",
    ];
    table(&head, &rows, 1, width)
}

/// `balance of storage nodes: variation 12%, sh3 at 71% of the mean`.
fn balance_line(balance: &Balance) -> String {
    format!(
        "balance of storage nodes' NICs: variation {} (standard deviation over mean), furthest {} at {} of the mean",
        percent(Some(balance.variation)),
        one_line(&balance.worst),
        percent(Some(balance.worst_share))
    )
}

/// Wrong bytes first, then what is missing, then what was slow.
fn troubles(step: &StepAnalysis) -> Vec<String> {
    let operation = step.operation.name();
    let corrupt = step.corrupt.iter().map(|wrong| {
        format!(
            "FAIL: {}: {operation}: test_io_{} contains wrong bytes from offset {}: {}",
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
    let left_out = lines.len().saturating_sub(MAX_ROWS);
    lines.truncate(MAX_ROWS);
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
        assert_eq!(lines.len(), MAX_ROWS + 1);
        assert!(lines[MAX_ROWS].contains("10 more"));
    }
}
