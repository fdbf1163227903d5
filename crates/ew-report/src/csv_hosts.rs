//! Hosts as CSV: one header line, one row per host and stage it took part in. Quoting and missing
//! values as in the pairs' CSV.

use crate::csv_line::{push_line, whole};
use crate::host_figures::name_of_stage;
use crate::words::{MISSING, host_name, one_line, or_missing, rack_of};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostStageAnalysis};

/// A column and its value.
type Column = (&'static str, fn(&HostStageAnalysis) -> String);

/// Those after host, rack, stage and workload; further ones are added at the end.
const COLUMNS: [Column; 23] = [
    ("rounds", |s| s.rounds.to_string()),
    ("sent_bits_per_sec", |s| whole(s.sent_bits_per_sec)),
    ("received_bits_per_sec", |s| whole(s.received_bits_per_sec)),
    ("nic_tx_bits_per_sec", |s| whole(s.tx_bits_per_sec)),
    ("nic_rx_bits_per_sec", |s| whole(s.rx_bits_per_sec)),
    ("link_bits_per_sec", |s| whole(s.link_bits_per_sec)),
    ("busiest_cpu", |s| {
        or_missing(s.busiest_cpu, |c| c.cpu.to_string())
    }),
    ("cpu_busy_share", |s| {
        share(s.busiest_cpu.map(|c| c.busy_share))
    }),
    ("cpu_user_share", |s| {
        share(s.busiest_cpu.map(|c| c.user_share))
    }),
    ("cpu_system_share", |s| {
        share(s.busiest_cpu.map(|c| c.system_share))
    }),
    ("cpu_softirq_share", |s| {
        share(s.busiest_cpu.map(|c| c.softirq_share))
    }),
    ("cpu_steal_share", |s| {
        share(s.busiest_cpu.map(|c| c.steal_share))
    }),
    ("all_cpus_busy_share", |s| share(s.busy_share)),
    ("quota_held_back_share", |s| share(s.throttled_share)),
    ("busiest_disk", |s| {
        or_missing(s.disk.as_ref(), |d| one_line(&d.name))
    }),
    ("disk_busy_share", |s| {
        share(s.disk.as_ref().map(|d| d.busy_share))
    }),
    ("disk_read_bytes_per_sec", |s| {
        whole(s.disk.as_ref().map(|d| d.read_bytes_per_sec))
    }),
    ("disk_written_bytes_per_sec", |s| {
        whole(s.disk.as_ref().map(|d| d.written_bytes_per_sec))
    }),
    ("disk_await_ns", |s| {
        number(s.disk.as_ref().and_then(|d| d.await_ns))
    }),
    ("retransmits", |s| number(s.retransmits)),
    ("receive_drops", |s| number(s.receive_drops)),
    ("tcp_connections", |s| number(s.tcp_established)),
    ("cpu_frequency_hz", |s| {
        whole(s.busiest_cpu.and_then(|c| c.frequency_hz))
    }),
];

pub(crate) fn render(analysis: &Analysis) -> String {
    let mut text = String::new();
    let names = COLUMNS.iter().map(|(name, _)| *name);
    let header = ["host", "rack", "stage", "workload"].into_iter();
    push_line(&mut text, header.chain(names).map(String::from));
    for host in &analysis.hosts {
        for stage in &host.stages {
            push_line(&mut text, fields(analysis, host, stage).into_iter());
        }
    }
    text
}

fn fields(analysis: &Analysis, host: &HostAnalysis, stage: &HostStageAnalysis) -> Vec<String> {
    let inventory = analysis.inventory();
    let known = analysis.stages.get(stage.stage as usize);
    let mut fields = vec![
        host_name(inventory, host.host),
        rack_of(inventory, host.host),
        known.map_or_else(|| name_of_stage(analysis, stage), |s| one_line(&s.name)),
        or_missing(known, |s| one_line(&s.workload)),
    ];
    fields.extend(COLUMNS.iter().map(|(_, value)| value(stage)));
    fields
}

fn share(value: Option<f64>) -> String {
    match value.filter(|v| v.is_finite()) {
        Some(share) => format!("{share:.4}"),
        None => MISSING.into(),
    }
}

fn number(value: Option<u64>) -> String {
    or_missing(value, |v| v.to_string())
}
