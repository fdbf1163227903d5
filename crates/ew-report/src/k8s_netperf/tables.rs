//! k8s-netperf's result tables: the same columns in the same order.

use super::row::{NodeCpu, PodCpu, Row};
use crate::words::or_missing;

/// A table's heading words before and after those that every table has.
struct Table {
    /// Its first columns.
    first: &'static [&'static str],
    /// Its last columns.
    last: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

const RESULT: &[&str] = &["RESULT TYPE", "DRIVER", "SCENARIO"];
const BY_ROLE: &[&str] = &["RESULT TYPE", "DRIVER", "ROLE", "SCENARIO"];
const SHARED: [&str; 11] = [
    "PARALLELISM",
    "HOST NETWORK",
    "VIRT MODE",
    "SERVICE",
    "EXTERNAL SERVER",
    "UDN INFO",
    "BRIDGE INFO",
    "SR-IOV INFO",
    "MESSAGE SIZE",
    "BURST",
    "SAME NODE",
];
const VALUE: &[&str] = &[
    "DURATION",
    "SAMPLES",
    "AVG VALUE",
    "95% CONFIDENCE INTERVAL",
];
const P99: &[&str] = &["DURATION", "SAMPLES", "AVG 99%TILE VALUE"];
const SPECIFIC: &[&str] = &["DURATION", "SAMPLES", "AVG VALUE"];
const NODE: &[&str] = &[
    "IDLE CPU",
    "USER CPU",
    "SYSTEM CPU",
    "STEAL CPU",
    "IOWAIT CPU",
    "NICE CPU",
    "SOFTIRQ CPU",
    "IRQ CPU",
];
const POD: &[&str] = &["POD", "UTILIZATION"];

/// Tables without rows are skipped.
pub(super) fn render(rows: &[Row]) -> String {
    let is_stream = |row: &&Row| row.profile.ends_with("STREAM");
    let is_rr = |row: &&Row| row.profile.ends_with("RR");
    let tables = [
        table(
            RESULT,
            VALUE,
            rows.iter()
                .filter(is_stream)
                .map(|row| result("Stream Results", row)),
        ),
        table(
            RESULT,
            VALUE,
            rows.iter()
                .filter(is_rr)
                .map(|row| result("Rr Results", row)),
        ),
        table(RESULT, P99, rows.iter().filter(is_rr).map(latency)),
        table(
            &["TYPE", "DRIVER", "SCENARIO"],
            SPECIFIC,
            rows.iter().filter_map(specific),
        ),
        table(BY_ROLE, NODE, rows.iter().flat_map(node_cpus)),
        table(BY_ROLE, POD, rows.iter().flat_map(pod_cpus)),
    ];
    let drawn = tables.iter().filter(|table| !table.rows.is_empty());
    drawn.map(draw).collect()
}

fn table(
    first: &'static [&'static str],
    last: &'static [&'static str],
    rows: impl Iterator<Item = Vec<String>>,
) -> Table {
    Table {
        first,
        last,
        rows: rows.collect(),
    }
}

fn result(kind: &str, row: &Row) -> Vec<String> {
    let unit = row.tput_metric;
    let value = or_missing(row.throughput, |value| format!("{value:.6} ({unit})"));
    let interval = or_missing(row.interval, |(low, high)| {
        format!("{low:.6}-{high:.6} ({unit})")
    });
    line(
        kind,
        None,
        row,
        [timing(row), vec![value, interval]].concat(),
    )
}

fn latency(row: &Row) -> Vec<String> {
    let value = or_missing(row.latency, |p99| format!("{p99:.6} ({})", row.ltcy_metric));
    line(
        "RR Latency Results",
        None,
        row,
        [timing(row), vec![value]].concat(),
    )
}

fn specific(row: &Row) -> Option<Vec<String>> {
    let (kind, value) = match row.profile {
        "TCP_STREAM" => ("TCP Retransmissions", row.tcp_retransmits),
        "UDP_STREAM" => ("UDP Loss Percent", row.udp_loss_percent),
        _ => return None,
    };
    let value = or_missing(value, |value| format!("{value:.6}"));
    Some(line(kind, None, row, [timing(row), vec![value]].concat()))
}

fn node_cpus(row: &Row) -> Vec<Vec<String>> {
    let ends = [("Client", &row.client_cpu), ("Server", &row.server_cpu)];
    let known = ends
        .into_iter()
        .filter_map(|(role, cpu)| Some((role, cpu.as_ref()?)));
    known
        .map(|(role, cpu)| line("Node CPU Utilization", Some(role), row, shares(cpu)))
        .collect()
}

fn pod_cpus(row: &Row) -> Vec<Vec<String>> {
    let ends = [("Client", &row.client_pods), ("Server", &row.server_pods)];
    let of_end = |(role, pods): (&'static str, &Vec<PodCpu>)| {
        let words = |pod: &PodCpu| vec![pod.pod_name.to_owned(), format!("{:.6}", pod.cpu_usage)];
        let lines = pods
            .iter()
            .map(|pod| line("Pod CPU Utilization", Some(role), row, words(pod)));
        lines.collect::<Vec<_>>()
    };
    ends.into_iter().flat_map(of_end).collect()
}

/// In the order of [`NODE`].
fn shares(cpu: &NodeCpu) -> Vec<String> {
    let columns = [
        Some(cpu.idle_cpu),
        cpu.user_cpu,
        cpu.system_cpu,
        Some(cpu.steal_cpu),
        cpu.io_cpu,
        cpu.nice_cpu,
        Some(cpu.soft_cpu),
        cpu.irq_cpu,
    ];
    let share = |percent| or_missing(percent, |percent: f64| format!("{percent:.6}"));
    columns.map(share).to_vec()
}

fn timing(row: &Row) -> Vec<String> {
    vec![row.duration.to_string(), row.samples.to_string()]
}

/// The columns that every table has, between the first and the last ones.
fn line(kind: &str, role: Option<&str>, row: &Row, last: Vec<String>) -> Vec<String> {
    let mut fields = vec![kind.to_owned(), row.driver.to_owned()];
    fields.extend(role.map(str::to_owned));
    fields.extend([
        row.profile.to_owned(),
        row.parallelism.to_string(),
        row.host_network.to_string(),
        // No virtual machine, and no network besides the pods' own that eastwest made.
        "false".to_owned(),
        row.service.to_string(),
        "false".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        row.message_size.to_string(),
        row.burst.to_string(),
        row.local.to_string(),
    ]);
    fields.extend(last);
    fields
}

fn draw(table: &Table) -> String {
    let header: Vec<String> = [table.first, &SHARED, table.last]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let width = |column: usize| {
        let cells = std::iter::once(&header).chain(&table.rows);
        cells
            .filter_map(|cells| cells.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let rule: String = widths
        .iter()
        .map(|width| format!("+{}", "-".repeat(width + 2)))
        .collect();
    let rule = format!("{rule}+\n");
    let drawn = |cells: &Vec<String>| {
        let cells: String = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("| {cell:<width$} "))
            .collect();
        format!("{cells}|\n")
    };
    let rows: String = table.rows.iter().map(drawn).collect();
    format!("{rule}{}{rule}{rows}{rule}", drawn(&header))
}
