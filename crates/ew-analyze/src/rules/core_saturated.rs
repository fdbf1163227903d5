//! A CPU had no time left: for packets, for programs, or because a hypervisor gave it to others.

use super::peers::{Compared, compared, of_own_ends, of_stages, percent};
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use crate::stats::quantile;
use ew_model::HostId;
use ew_model::analysis::CpuShare;
use ew_model::finding::Cause;
use ew_model::record::EndRecord;
use ew_model::units::format_duration_ns;

/// A CPU this busy has no time left.
const FULL: f64 = 0.95;
/// Its peers' busiest CPU is less busy by this.
const BUSIER: f64 = 0.15;
/// Share of the window that the engine's threads waited for a CPU.
const WAITED: f64 = 0.3;
/// And this many times its peers'.
const TIMES_PEERS: f64 = 2.0;
/// A sampler that sleeps until its time wakes this late only where something else has the CPU. Idle
/// hosts stay below 1 ms.
const LATE_NS: f64 = 20e6;
/// And this many times its peers' lateness, which varies much.
const TIMES_PEERS_LATE: f64 = 10.0;
/// Fewer readings show chance.
const LEAST_READINGS: usize = 5;

const LOOK_HINT: &str = "look at `top -1` on the host: what runs on the CPU that eastwest is bound to, and with which priority \
                         (`ps -eo pid,cls,rtprio,psr,pcpu,comm --sort -pcpu`); then at `taskset -p` and cpusets";

/// Hosts that share CPUs (a lab, virtual machines without steal) show the same busy CPUs
/// everywhere; there the threads' own waiting shows who is starved.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    full(case, suspect.host).or_else(|| without_cpu(case, suspect.host, &MOSTLY))
}

/// The same of a host that is slow at times: then its threads wait at times.
pub(super) fn explain_at_times(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    full(case, suspect.host).or_else(|| without_cpu(case, suspect.host, &AT_TIMES))
}

/// In which part of a host's flows, or readings, its threads must have waited.
struct Extent {
    quantile: f64,
    words: &'static str,
}

const MOSTLY: Extent = Extent {
    quantile: 0.5,
    words: "in the median",
};
const AT_TIMES: Extent = Extent {
    quantile: 0.75,
    words: "at least in a quarter of them",
};

fn full(case: &Case<'_>, host: HostId) -> Option<Reason> {
    let busiest = |host| of_stages(case, host, |s| Some(s.busiest_cpu?.busy_share));
    let busy = compared(case, host, busiest)?;
    if !busy.exceeds(FULL, BUSIER) {
        return None;
    }
    let (cpu, stage) = fullest(case, host)?;
    let name = case.observations.inventory().name(host);
    let (by, hint) = by_what(&cpu);
    Some(Reason {
        cause: Cause::CoreSaturated,
        because: format!("CPU {} saturated, {by}", cpu.cpu),
        evidence: vec![evidence(
            format!(
                "{name}: CPU {} {} busy{} (programs {}, kernel {}, softirq {}, stolen {})",
                cpu.cpu,
                percent(cpu.busy_share),
                busy.against(percent),
                percent(cpu.user_share),
                percent(cpu.system_share),
                percent(cpu.softirq_share),
                percent(cpu.steal_share),
            ),
            format!(
                "hosts.parquet: host = {name}, kind = cpu, name = {}, stage `{stage}`",
                cpu.cpu
            ),
        )],
        hint: hint.into(),
    })
}

/// The busiest CPU of the capacity test in which it was busiest.
fn fullest(case: &Case<'_>, host: HostId) -> Option<(CpuShare, String)> {
    let stages = case.hosts.get(host.index())?.stages.iter();
    let judged = stages.filter(|stage| super::peers::is_judged(case, stage.stage as usize));
    let fullest = judged
        .filter_map(|stage| Some((stage.busiest_cpu?, stage.stage as usize)))
        .max_by(|a, b| a.0.busy_share.total_cmp(&b.0.busy_share))?;
    let stage = case.observations.stages.get(fullest.1)?;
    Some((fullest.0, stage.stage.name.clone()))
}

/// What took most of it, and what helps.
fn by_what(cpu: &CpuShare) -> (String, &'static str) {
    let kinds = [
        (
            cpu.softirq_share,
            "softirq",
            "spread the NIC's queues over CPUs (`ethtool -L`, irqbalance or `smp_affinity`), switch on RPS/RFS where the NIC has one \
             queue, and look at GRO (`ethtool -k`)",
        ),
        (
            cpu.steal_share,
            "hypervisor steal",
            "the machine below is overcommitted: move this virtual machine or its neighbours, or give it CPUs of its own",
        ),
        (
            cpu.user_share,
            "programs",
            "look at `top -1` on the host while it runs: what else uses the CPU, and whether it is pinned there",
        ),
        (
            cpu.system_share,
            "kernel",
            "use more streams (`--set streams=4`), larger messages or zero-copy; look at `perf top` on the host",
        ),
    ];
    let most = kinds.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or((String::new(), ""), |(share, by, hint)| {
        (format!("{} {by}", percent(share)), hint)
    })
}

/// Where packets wait for the CPU, too, little comes to the threads that move bytes; then the
/// sampler is the witness.
fn without_cpu(case: &Case<'_>, host: HostId, extent: &Extent) -> Option<Reason> {
    starved(case, host, extent).or_else(|| woken_late(case, host, extent))
}

fn starved(case: &Case<'_>, host: HostId, extent: &Extent) -> Option<Reason> {
    let waited = |host| of_own_ends(case, host, extent.quantile, waited_share);
    let waited: Compared = compared(case, host, waited)?;
    if !(waited.stands_out(WAITED, TIMES_PEERS) && waited.exceeds(WAITED, WAITED / 2.0)) {
        return None;
    }
    let name = case.observations.inventory().name(host);
    Some(Reason {
        cause: Cause::CoreSaturated,
        because: format!(
            "CPU-starved, its I/O threads waited for a CPU {} of the time",
            percent(waited.own.min(1.0))
        ),
        evidence: vec![evidence(
            format!(
                "{name}: threads waited for a CPU for {} of the windows, summed over threads, {}{}",
                percent(waited.own),
                extent.words,
                waited.against(percent),
            ),
            format!(
                "flows.parquet: src or dst = {name}, tx_cpu_engine_wait_ns and rx_cpu_engine_wait_ns"
            ),
        )],
        hint: LOOK_HINT.into(),
    })
}

fn woken_late(case: &Case<'_>, host: HostId, extent: &Extent) -> Option<Reason> {
    let late = compared(case, host, |host| lateness_ns(case, host, extent.quantile))?;
    if !late.stands_out(LATE_NS, TIMES_PEERS_LATE) {
        return None;
    }
    let name = case.observations.inventory().name(host);
    let words = |ns: f64| format_duration_ns(ns as u64);
    Some(Reason {
        cause: Cause::CoreSaturated,
        because: format!(
            "CPU-starved, eastwest's sampler woke {} late",
            words(late.own)
        ),
        evidence: vec![evidence(
            format!(
                "{name}: readings began {} late, {}{}",
                words(late.own),
                extent.words,
                late.against(words)
            ),
            format!("hosts.parquet: host = {name}, late_ns"),
        )],
        hint: LOOK_HINT.into(),
    })
}

/// How late a host's readings began, at a quantile of them.
fn lateness_ns(case: &Case<'_>, host: HostId, at: f64) -> Option<f64> {
    let readings = case.observations.run.samples.get(&host)?;
    let late: Vec<f64> = readings.iter().map(|r| r.late_ns as f64).collect();
    quantile(&late, at).filter(|_| late.len() >= LEAST_READINGS)
}

/// Time the engine's threads waited over the window.
fn waited_share(end: &EndRecord) -> Option<f64> {
    let waited_ns = end.cpu?.engine_wait_ns? as f64;
    (end.window_ns > 0).then(|| waited_ns / end.window_ns as f64)
}
