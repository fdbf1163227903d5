//! A CPU had no time left: for packets, for programs, or because a hypervisor gave it to others.

use super::case::Case;
use super::peers::{Compared, compared, of_own_ends, of_stages};
use super::suspect::Suspect;
use ew_evidence::criteria::{
    FULL, HELD_BACK, LONG_NS, MIN_SAMPLES, MORE_LEFT, TIMES_PEERS, TIMES_TYPICAL,
};
use ew_model::HostId;
use ew_model::analysis::CpuShare;
use ew_model::finding::details::{CpuTaker, Extent, FullCpu, LateSampler, StarvedThreads, Why};
use ew_model::record::EndRecord;
use ew_stats::quantile;

/// Hosts that share CPUs (a lab, virtual machines without steal) show the same busy CPUs
/// everywhere; there the threads' own waiting shows who is starved.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    full(case, suspect.host).or_else(|| without_cpu(case, suspect.host, Extent::Mostly))
}

/// The same of a host that is slow at times: then its threads wait at times.
pub(super) fn explain_at_times(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    full(case, suspect.host).or_else(|| without_cpu(case, suspect.host, Extent::AtTimes))
}

fn full(case: &Case<'_>, host: HostId) -> Option<Why> {
    let busiest = |host| of_stages(case, host, |s| Some(s.busiest_cpu?.busy_share));
    let busy = compared(case, host, busiest)?;
    if !busy.exceeds(FULL, MORE_LEFT) {
        return None;
    }
    let (cpu, stage) = fullest(case, host)?;
    Some(Why::FullCpu(FullCpu {
        host,
        cpu,
        taker: taker(&cpu),
        busy_share: busy.into(),
        stage,
    }))
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

/// What took most of it.
fn taker(cpu: &CpuShare) -> CpuTaker {
    let takers = [
        (cpu.softirq_share, CpuTaker::Softirq),
        (cpu.steal_share, CpuTaker::Steal),
        (cpu.user_share, CpuTaker::Programs),
        (cpu.system_share, CpuTaker::Kernel),
    ];
    let max = takers.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    max.map_or(CpuTaker::Kernel, |(_, taker)| taker)
}

/// Where packets wait for the CPU, too, little comes to the threads that move bytes; then the
/// sampler is the witness.
fn without_cpu(case: &Case<'_>, host: HostId, extent: Extent) -> Option<Why> {
    starved(case, host, extent).or_else(|| woken_late(case, host, extent))
}

fn starved(case: &Case<'_>, host: HostId, extent: Extent) -> Option<Why> {
    let share = |end: &EndRecord| end.waited_share(2 * end.streams.len() as u32);
    let waited = |host| of_own_ends(case, host, quantile_of(extent), share);
    let waited: Compared = compared(case, host, waited)?;
    let stands_out = waited.stands_out(HELD_BACK, TIMES_PEERS);
    if !(stands_out && waited.exceeds(HELD_BACK, HELD_BACK / 2.0)) {
        return None;
    }
    Some(Why::StarvedThreads(StarvedThreads {
        host,
        waited_share: waited.into(),
        extent,
    }))
}

/// A sampler that sleeps until its time wakes late only where something else has the CPU.
fn woken_late(case: &Case<'_>, host: HostId, extent: Extent) -> Option<Why> {
    let late = compared(case, host, |host| {
        lateness_ns(case, host, quantile_of(extent))
    })?;
    // On hosts that are all late, how late varies.
    let are_on_time = late.peers.is_none_or(|peers| peers < LONG_NS);
    if !(are_on_time && late.stands_out(LONG_NS, TIMES_TYPICAL)) {
        return None;
    }
    Some(Why::LateSampler(LateSampler {
        host,
        late_ns: late.into(),
        extent,
    }))
}

/// In half of its flows, or readings, a host's threads must have waited, or in a quarter of them.
fn quantile_of(extent: Extent) -> f64 {
    match extent {
        Extent::Mostly => 0.5,
        Extent::AtTimes => 0.75,
    }
}

/// How late a host's readings began, at a quantile of them.
fn lateness_ns(case: &Case<'_>, host: HostId, at: f64) -> Option<f64> {
    let readings = case.observations.run.samples.get(&host)?;
    let late: Vec<f64> = readings.iter().map(|r| r.late_ns as f64).collect();
    quantile(&late, at).filter(|_| late.len() >= MIN_SAMPLES)
}
