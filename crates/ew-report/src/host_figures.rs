//! What the hosts' counters report about each stage, as words for all views: a host's stages, and
//! the hosts that were near a limit.

use crate::figures::{Figures, stage_name};
use crate::words::{MISSING, count, host_name, one_line, or_missing, percent, plural, rate};
use ew_model::Analysis;
use ew_model::analysis::{CpuShare, DiskShare, HostAnalysis, HostStageAnalysis};
use ew_model::units::{format_bytes, format_duration_ns, format_hertz};

/// A CPU or a disk that is busy for more than this share of the time is reported.
const BUSY: f64 = 0.8;
/// A quota that throttles for more than this share of the time is reported.
const HELD_BACK_TOLD: f64 = 0.01;
/// Packets dropped in a stage; fewer are chance.
const DROPS_TOLD: f64 = 100.0;
/// A disk that is busy for less is not reported.
pub(crate) const DISK_TOLD: f64 = 0.1;
/// Up to this many hosts are listed.
const HOSTS_LISTED: usize = 12;
/// Parts of a CPU's time below this are not reported.
const PART_TOLD: f64 = 0.1;

/// A figure of a host in a stage.
struct Column {
    name: &'static str,
    value: fn(&HostStageAnalysis) -> String,
    /// Whether the value is worth a column: that nothing was dropped is not.
    is_told: fn(&HostStageAnalysis) -> bool,
}

/// The figures, what matters first.
const COLUMNS: [Column; 13] = [
    always("sends", |s| rate(s.sent_bits_per_sec)),
    always("receives", |s| rate(s.received_bits_per_sec)),
    always("NIC out", |s| of_link(s.tx_bits_per_sec, s.tx_link_share())),
    always("NIC in", |s| of_link(s.rx_bits_per_sec, s.rx_link_share())),
    BUSIEST_CPU,
    always("it runs at", |s| {
        or_missing(s.busiest_cpu.and_then(|cpu| cpu.frequency_hz), format_hertz)
    }),
    always("all CPUs", |s| percent(s.busy_share)),
    HELD_BACK,
    BUSIEST_DISK,
    RETRANSMITS,
    DROPS,
    always("connections", |s| count(s.tcp_established)),
    always("rounds read", |s| s.rounds.to_string()),
];

/// The figures of hosts near a limit: their line has space for less.
const LIMITS: [Column; 6] = [
    BUSIEST_CPU,
    always("NIC", |s| percent(link_share(s))),
    HELD_BACK,
    BUSIEST_DISK,
    RETRANSMITS,
    DROPS,
];

const BUSIEST_CPU: Column = always("busiest CPU", |s| {
    or_missing(s.busiest_cpu.as_ref(), cpu_words)
});
const HELD_BACK: Column = Column {
    name: "throttled",
    value: |s| percent(s.throttled_share),
    is_told: |s| s.throttled_share >= Some(HELD_BACK_TOLD),
};
const BUSIEST_DISK: Column = Column {
    name: "busiest disk",
    value: |s| or_missing(s.disk.as_ref(), disk_words),
    is_told: |s| {
        s.disk
            .as_ref()
            .is_some_and(|disk| disk.busy_share >= DISK_TOLD)
    },
};
const RETRANSMITS: Column = always("retransmits", |s| count(s.retransmits));
const DROPS: Column = Column {
    name: "drops",
    value: |s| count(s.receive_drops),
    is_told: |s| s.receive_drops > Some(0),
};

/// A figure that is reported wherever it is known.
const fn always(name: &'static str, value: fn(&HostStageAnalysis) -> String) -> Column {
    Column {
        name,
        value,
        is_told: |_| true,
    }
}

/// A row of figures for each stage of a host. Columns that show nothing all the way down are left
/// out.
pub(crate) fn stage_table(
    analysis: &Analysis,
    host: &HostAnalysis,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let rows: Vec<_> = host.stages.iter().map(|stage| (host, stage)).collect();
    let words = |(_, stage): &Row<'_>| vec![name_of_stage(analysis, stage)];
    columns_told(&COLUMNS, vec!["stage"], &rows, words)
}

/// A host in one of its stages.
type Row<'a> = (&'a HostAnalysis, &'a HostStageAnalysis);

/// Header and rows: words first, then the columns that show something in some row.
fn columns_told(
    columns: &[Column],
    mut header: Vec<&'static str>,
    rows: &[Row<'_>],
    words: impl Fn(&Row<'_>) -> Vec<String>,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let says = |column: &&Column| {
        let mut stages = rows.iter().map(|(_, stage)| stage);
        stages.any(|stage| (column.is_told)(stage) && (column.value)(stage) != MISSING)
    };
    let reported: Vec<&Column> = columns.iter().filter(says).collect();
    header.extend(reported.iter().map(|column| column.name));
    let cells = |row: &Row<'_>| {
        let mut cells = words(row);
        cells.extend(reported.iter().map(|column| (column.value)(row.1)));
        cells
    };
    (header, rows.iter().map(cells).collect())
}

/// The hosts that were near a limit of their own, each in the stage in which it was nearest. No
/// rows when none was.
pub(crate) fn near_limits(analysis: &Analysis) -> Figures {
    let near = hosts_near_limits(analysis);
    let shown = &near[..near.len().min(HOSTS_LISTED)];
    let words = |(host, stage): &Row<'_>| {
        vec![
            host_name(analysis.inventory(), host.host),
            name_of_stage(analysis, stage),
        ]
    };
    let (header, rows) = columns_told(&LIMITS, vec!["host", "in stage"], shown, words);
    let more = near.len() - shown.len();
    let note = format!(
        "{}; the HTML report has them all.",
        plural(more, "more host")
    );
    Figures {
        title: "Hosts near a limit of their own",
        header,
        rows,
        left: 2,
        notes: (more > 0).then_some(note).into_iter().collect(),
    }
}

/// How near the hosts came to a limit: the busiest CPU and NIC over a stage. `None` without
/// counters.
pub(crate) fn nearest_words(analysis: &Analysis) -> Option<String> {
    let cpu = max(analysis, |s| Some(s.busiest_cpu?.busy_share));
    let nic = max(analysis, link_share);
    let figure = |(share, host, stage): Nearest<'_>, of: &str| {
        let stage = name_of_stage(analysis, stage);
        let host = host_name(analysis.inventory(), host.host);
        format!("{}{of} ({host}, {stage})", percent(Some(share)))
    };
    // Whose reading it was shows nothing where all read the same.
    let shared = |(share, _, stage): Nearest<'_>| {
        let stage = name_of_stage(analysis, stage);
        format!("{} (this machine's, {stage})", percent(Some(share)))
    };
    let cpu = cpu.map(|most| match is_shared(analysis) {
        true => format!("CPU {}", shared(most)),
        false => format!("CPU {}", figure(most, "")),
    });
    let nic = nic.map(|most| format!("NIC {}", figure(most, " of its link")));
    let parts: Vec<String> = cpu.into_iter().chain(nic).collect();
    (!parts.is_empty()).then(|| format!("Busiest over a stage: {}.", parts.join(", ")))
}

/// In a lab all hosts share the machine's CPUs and disks, and each of them shows the same ones.
pub(crate) fn is_shared(analysis: &Analysis) -> bool {
    analysis.run.fleet == "lab"
}

/// Greater of sending and receiving, as a share of the link.
pub(crate) fn link_share(stage: &HostStageAnalysis) -> Option<f64> {
    let shares = [stage.tx_link_share(), stage.rx_link_share()];
    shares
        .into_iter()
        .flatten()
        .filter(|s| s.is_finite())
        .reduce(f64::max)
}

/// `cpu3 97%: softirq 62%, system 30%`.
fn cpu_words(cpu: &CpuShare) -> String {
    let head = format!("cpu{} {}", cpu.cpu, percent(Some(cpu.busy_share)));
    match cpu_parts(cpu, 2) {
        parts if parts.is_empty() => head,
        parts => format!("{head}: {parts}"),
    }
}

/// The largest parts of a CPU's time, at most so many: `softirq 62%, system 30%`. Empty when it
/// did little.
pub(crate) fn cpu_parts(cpu: &CpuShare, most: usize) -> String {
    let mut parts = [
        ("user", cpu.user_share),
        ("system", cpu.system_share),
        ("softirq", cpu.softirq_share),
        ("steal", cpu.steal_share),
    ];
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let reported = parts
        .iter()
        .filter(|(_, share)| *share >= PART_TOLD)
        .take(most);
    let reported: Vec<String> = reported
        .map(|(name, share)| format!("{name} {}", percent(Some(*share))))
        .collect();
    reported.join(", ")
}

/// `sda 97%, writes 88.0 MiB/s`: the greater direction; where the disk is busy, what a request
/// takes, too.
fn disk_words(disk: &DiskShare) -> String {
    let mut words = format!(
        "{} {}",
        one_line(&disk.name),
        percent(Some(disk.busy_share))
    );
    let (side, bytes) = match disk.read_bytes_per_sec > disk.written_bytes_per_sec {
        true => ("reads", disk.read_bytes_per_sec),
        false => ("writes", disk.written_bytes_per_sec),
    };
    if bytes >= 1.0 {
        words.push_str(&format!(", {side} {}/s", format_bytes(bytes as u64)));
    }
    if let Some(ns) = disk.await_ns.filter(|_| disk.busy_share >= BUSY) {
        words.push_str(&format!(", {} each", format_duration_ns(ns)));
    }
    words
}

/// `191 Mb/s, 96%` of the link.
fn of_link(bits_per_sec: Option<f64>, share: Option<f64>) -> String {
    match share.filter(|share| share.is_finite()) {
        Some(share) => format!("{}, {}", rate(bits_per_sec), percent(Some(share))),
        None => rate(bits_per_sec),
    }
}

/// A host's stage by its name in the run.
pub(crate) fn name_of_stage(analysis: &Analysis, stage: &HostStageAnalysis) -> String {
    let known = analysis.stages.get(stage.stage as usize);
    known.map_or_else(|| format!("stage {}", stage.stage), stage_name)
}

/// Hosts with their worst stage, worst first.
fn hosts_near_limits(analysis: &Analysis) -> Vec<Row<'_>> {
    let shared = is_shared(analysis);
    let strain = |stage: &HostStageAnalysis| strain(stage, shared);
    let mut near: Vec<Row<'_>> = Vec::new();
    for host in &analysis.hosts {
        let worst = host
            .stages
            .iter()
            .max_by(|a, b| strain(a).total_cmp(&strain(b)));
        near.extend(
            worst
                .filter(|stage| strain(stage) >= 1.0)
                .map(|stage| (host, stage)),
        );
    }
    near.sort_by(|(_, a), (_, b)| strain(b).total_cmp(&strain(a)));
    near
}

/// How far a host was beyond what is not reported; at 1 or more it is reported.
fn strain(stage: &HostStageAnalysis, shared: bool) -> f64 {
    let cpu = stage.busiest_cpu.map(|cpu| cpu.busy_share / BUSY);
    let disk = stage.disk.as_ref().map(|disk| disk.busy_share / BUSY);
    let own = [cpu, disk].into_iter().filter(|_| !shared);
    let slow_at_times = stage.throttled_share.map(|share| share / HELD_BACK_TOLD);
    let drops = stage.receive_drops.map(|drops| drops as f64 / DROPS_TOLD);
    let all = own.chain([slow_at_times, drops]).flatten();
    all.filter(|v| v.is_finite()).fold(0.0, f64::max)
}

/// A figure, and the host and stage that had it.
type Nearest<'a> = (f64, &'a HostAnalysis, &'a HostStageAnalysis);

/// The max of a figure over hosts and stages.
fn max(analysis: &Analysis, of: impl Fn(&HostStageAnalysis) -> Option<f64>) -> Option<Nearest<'_>> {
    let stages = analysis
        .hosts
        .iter()
        .flat_map(|h| h.stages.iter().map(move |s| (h, s)));
    stages
        .filter_map(|(host, stage)| Some((of(stage).filter(|v| v.is_finite())?, host, stage)))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}
