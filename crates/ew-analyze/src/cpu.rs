//! What a stage cost its hosts, and netperf's service demand.

use crate::latency;
use ew_evidence::observations::StageView;
use ew_model::HostId;
use ew_model::analysis::{CpuAnalysis, CpuSplitShares};
use ew_model::plan::RoundIndex;
use ew_model::record::{CpuSplit, CpuUse, EndRecord, FlowRecord};
use std::collections::{BTreeMap, BTreeSet};

/// One end of a row and its host.
type Ends = fn(&FlowRecord) -> (HostId, Option<&EndRecord>);

/// By round and host.
type Windows = BTreeMap<(RoundIndex, HostId), Window>;

/// What a host used in one window, and how long that was.
#[derive(Clone, Copy, Debug)]
struct Window {
    used: CpuUse,
    window_ns: u64,
    transactions: u64,
}

/// A stage's hosts that sent data or asked, and those that received or answered; `None` where none
/// of them reported. Where every host was both in every round, both are the same: a host's time
/// cannot be divided.
pub(crate) fn of_ends(stage: &StageView<'_>) -> (Option<CpuAnalysis>, Option<CpuAnalysis>) {
    let transactions = transactions(stage);
    let windows = |ends: Ends| windows(stage, ends, &transactions);
    let senders = windows(|row| (row.src, row.sender.as_ref()));
    let receivers = windows(|row| (row.dst, row.receiver.as_ref()));
    let of = |windows: &Windows| {
        let hosts: BTreeSet<HostId> = windows.keys().map(|(_, host)| *host).collect();
        let windows: Vec<Window> = windows.values().copied().collect();
        (!windows.is_empty()).then(|| cpu(&windows, hosts.len() as u32, stage.is_bulk()))
    };
    match senders.keys().eq(receivers.keys()) {
        true => (of(&senders), of(&senders)),
        false => (of(&senders), of(&receivers)),
    }
}

/// Every record of a host and round repeats the host's figures: they are taken once.
fn windows(
    stage: &StageView<'_>,
    ends: Ends,
    transactions: &BTreeMap<(RoundIndex, HostId), u64>,
) -> Windows {
    let mut windows = Windows::new();
    for row in stage.measured() {
        let (host, end) = ends(row);
        let known = end.and_then(|end| {
            let known = transactions.get(&(row.round, host)).copied();
            end.cpu.map(|used| Window {
                used,
                window_ns: end.window_ns,
                transactions: known.unwrap_or(0).max(used.transactions),
            })
        });
        if let Some(window) = known.filter(|w| w.window_ns > 0 && w.used.cpus > 0) {
            windows.insert((row.round, host), window);
        }
    }
    windows
}

/// Transactions that a host asked for or answered. Only the client counts them, and they cost
/// both.
fn transactions(stage: &StageView<'_>) -> BTreeMap<(RoundIndex, HostId), u64> {
    let mut transactions: BTreeMap<(RoundIndex, HostId), u64> = BTreeMap::new();
    for row in stage.measured().filter(|_| !stage.is_bulk()) {
        let count = latency::transactions(row).unwrap_or(0);
        for host in [row.src, row.dst] {
            let sum = transactions.entry((row.round, host)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    transactions
}

fn cpu(windows: &[Window], hosts: u32, is_bulk: bool) -> CpuAnalysis {
    let sum = |part: fn(&Window) -> f64| windows.iter().map(part).sum::<f64>();
    let time_ns = sum(|w| w.window_ns as f64);
    let all_cpus_ns = sum(|w| w.window_ns as f64 * f64::from(w.used.cpus));
    let busy_ns = sum(|w| w.used.busy_ns as f64);
    let kib = sum(|w| w.used.moved_bytes as f64) / 1024.0;
    let transactions = sum(|w| w.transactions as f64);
    let demand = |amount: f64| (amount > 0.0).then(|| busy_ns / 1000.0 / amount);
    CpuAnalysis {
        hosts,
        engine_cpus: sum(|w| w.used.engine_ns as f64) / time_ns,
        busy_cpus: busy_ns / time_ns,
        // Ticks of 10 ms overshoot a short window.
        busy_share: (busy_ns / all_cpus_ns).min(1.0),
        softirq_share: sum(|w| w.used.softirq_ns as f64) / all_cpus_ns,
        steal_share: sum(|w| w.used.steal_ns as f64) / all_cpus_ns,
        split: split(windows, all_cpus_ns),
        micros_per_kib: demand(kib).filter(|_| is_bulk),
        micros_per_transaction: demand(transactions).filter(|_| !is_bulk),
    }
}

/// `None` where a window has none: parts of different windows do not add up.
fn split(windows: &[Window], all_cpus_ns: f64) -> Option<CpuSplitShares> {
    let splits: Option<Vec<CpuSplit>> = windows.iter().map(|w| w.used.split).collect();
    let splits = splits?;
    let share = |part: fn(&CpuSplit) -> u64| {
        let ns: f64 = splits.iter().map(|split| part(split) as f64).sum();
        ns / all_cpus_ns
    };
    Some(CpuSplitShares {
        user: share(|split| split.user_ns),
        nice: share(|split| split.nice_ns),
        system: share(|split| split.system_ns),
        iowait: share(|split| split.iowait_ns),
        irq: share(|split| split.irq_ns),
    })
}
