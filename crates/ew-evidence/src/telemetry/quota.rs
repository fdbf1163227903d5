//! Whether the CPU limit of an agent's control group throttled it.
//!
//! A group's counters are of its own level: what a group above it throttles (a pod's, above its
//! container's, has the same quota in another phase) is in no counter that the container can read.
//! Counters read once a second are of more than the rounds, too. What the agent's threads used and
//! how long they waited is read at the edges of every window, whatever throttled them.

use super::Telemetry;
use crate::criteria::{FULL, SLOW, THROTTLED};
use crate::observations::StageView;
use ew_model::HostId;
use ew_model::record::EndRecord;
use ew_stats::median;

/// What a host's agent could do in a stage under its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quota {
    /// Of the agent's control group, in CPUs. `None` without one.
    pub limit_cpus: Option<f64>,
    /// Share of the time that the group's counters report it was throttled. `None` where there are
    /// none.
    pub counted: Option<f64>,
    /// Of windows in which the agent's threads used all of the limit, and waited. `None`: they did
    /// not.
    pub reached: Option<Reached>,
}

/// The limit was reached: medians over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// CPUs used, on average over the rounds.
    pub used_cpus: f64,
    /// Share of the time that a thread was ready and waited.
    pub waited: f64,
}

impl Quota {
    /// Of one host in one stage, by its index.
    pub fn of(telemetry: &Telemetry<'_>, host: HostId, index: usize, view: &StageView<'_>) -> Self {
        let limit_cpus = limit_cpus(telemetry, host);
        let cover = telemetry.cover(host, |stage| stage == index);
        let counted = cover.and_then(|cover| cover.throttled_share());
        let is_counted = counted.is_some_and(|share| share >= THROTTLED);
        let reached = limit_cpus.and_then(|limit| reached(host, view, limit, is_counted));
        Self {
            limit_cpus,
            counted,
            reached,
        }
    }

    /// Share of the time that the limit throttled the agent.
    pub fn held_back_share(&self) -> Option<f64> {
        let waited = self.reached.map(|reached| reached.waited);
        match (self.counted, waited) {
            (Some(counted), Some(waited)) => Some(counted.max(waited)),
            (counted, waited) => counted.or(waited),
        }
    }
}

fn limit_cpus(telemetry: &Telemetry<'_>, host: HostId) -> Option<f64> {
    let group = &telemetry.samples(host).last()?.causes.as_ref()?.cgroup;
    let period_us = group.cpu_period_us.filter(|period| *period > 0)?;
    Some(group.cpu_quota_us? as f64 / period_us as f64)
}

/// On a node whose CPUs are all busy threads wait without a limit, too: there the counters have to
/// report it.
fn reached(
    host: HostId,
    view: &StageView<'_>,
    limit_cpus: f64,
    is_counted: bool,
) -> Option<Reached> {
    let windows: Vec<(&EndRecord, u32)> = windows(host, view).collect();
    let in_windows = |value: fn(&EndRecord, u32) -> Option<f64>| {
        let values = windows
            .iter()
            .filter_map(|(end, streams)| value(end, *streams));
        median(&values.collect::<Vec<_>>())
    };
    let reached = Reached {
        used_cpus: in_windows(used_cpus)?,
        waited: in_windows(EndRecord::waited_share)?,
    };
    // On a busy node threads wait for one another.
    let has_idle_cpus = in_windows(busy_share).is_some_and(|busy| busy < FULL);
    // Quotas are given for 100 ms, and a window of 700 ms may have missed one of seven.
    let is_held_back = reached.used_cpus >= SLOW * limit_cpus && reached.waited >= THROTTLED;
    (is_held_back && (has_idle_cpus || is_counted)).then_some(reached)
}

/// One record a round, which has the figures of all the host's streams, and how many they are.
fn windows<'v>(
    host: HostId,
    view: &'v StageView<'_>,
) -> impl Iterator<Item = (&'v EndRecord, u32)> {
    view.rounds.iter().filter_map(move |round| {
        let end = round.records.iter().find_map(|row| match host {
            host if row.src == host => row.sender.as_ref(),
            host if row.dst == host => row.receiver.as_ref(),
            _ => None,
        });
        Some((end?, round.streams_of(host).max(1)))
    })
}

fn used_cpus(end: &EndRecord, _: u32) -> Option<f64> {
    let cpu = end.cpu.as_ref().filter(|_| end.window_ns > 0)?;
    Some(cpu.engine_ns as f64 / end.window_ns as f64)
}

fn busy_share(end: &EndRecord, _: u32) -> Option<f64> {
    let cpu = end.cpu.as_ref()?;
    let all_ns = f64::from(cpu.cpus) * end.window_ns as f64;
    (all_ns > 0.0).then(|| (cpu.busy_ns + cpu.steal_ns) as f64 / all_ns)
}
