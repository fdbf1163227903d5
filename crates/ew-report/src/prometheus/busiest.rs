//! The busiest core and the busiest disk of a host, without a series per core or disk.

use ew_model::facts::{CpuCounters, HostSample};
use ew_model::telemetry::DiskCounters;

/// Min time over which a core's share is taken: shorter spans are mostly the clock tick of 10 ms.
const SPAN_NS: u64 = 900_000_000;

/// Per span of about a second, how long the busiest one of them was busy; summed, so that no scrape
/// misses a span.
#[derive(Debug, Default)]
pub(super) struct Busiest {
    span_began: Option<HostSample>,
    /// Busy time of each span's busiest core.
    pub(super) core_seconds: f64,
    /// The busiest core's share of the last span.
    pub(super) core_ratio: Option<f64>,
    /// Busy time of each span's busiest disk.
    pub(super) disk_seconds: f64,
}

impl Busiest {
    pub(super) fn take(&mut self, sample: &HostSample) {
        let Some(began) = &self.span_began else {
            self.span_began = Some(sample.clone());
            return;
        };
        let span_ns = sample.agent_ns.saturating_sub(began.agent_ns);
        if span_ns < SPAN_NS {
            return;
        }
        let seconds = span_ns as f64 / 1e9;
        self.core_ratio = busiest_core(&began.cpus, &sample.cpus);
        self.core_seconds += self.core_ratio.unwrap_or(0.0) * seconds;
        self.disk_seconds += busiest_disk(disks_of(began), disks_of(sample)).min(seconds);
        self.span_began = Some(sample.clone());
    }
}

pub(super) fn disks_of(sample: &HostSample) -> &[DiskCounters] {
    sample.causes.as_ref().map_or(&[], |causes| &causes.disks)
}

/// Busy ticks over all ticks.
fn busiest_core(before: &[CpuCounters], after: &[CpuCounters]) -> Option<f64> {
    let shares = after.iter().filter_map(|cpu| {
        let was = before.iter().find(|was| was.cpu == cpu.cpu)?;
        let busy = busy_ticks(cpu).saturating_sub(busy_ticks(was));
        let all = busy + idle_ticks(cpu).saturating_sub(idle_ticks(was));
        (all > 0).then(|| busy as f64 / all as f64)
    });
    shares.max_by(f64::total_cmp)
}

/// `user` includes guest time.
fn busy_ticks(cpu: &CpuCounters) -> u64 {
    let newer = [cpu.irq_ticks, cpu.softirq_ticks, cpu.steal_ticks];
    cpu.user_ticks + cpu.nice_ticks + cpu.system_ticks + newer.into_iter().flatten().sum::<u64>()
}

fn idle_ticks(cpu: &CpuCounters) -> u64 {
    cpu.idle_ticks + cpu.iowait_ticks.unwrap_or(0)
}

/// In seconds.
fn busiest_disk(before: &[DiskCounters], after: &[DiskCounters]) -> f64 {
    let busy = after.iter().filter_map(|disk| {
        let was = before.iter().find(|was| was.name == disk.name)?;
        Some(disk.busy_ms.saturating_sub(was.busy_ms))
    });
    busy.max().unwrap_or(0) as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ms: u64, cores: [(u64, u64); 2]) -> HostSample {
        let core = |(cpu, (busy, idle)): (usize, (u64, u64))| CpuCounters {
            cpu: cpu as u32,
            softirq_ticks: Some(busy),
            idle_ticks: idle,
            ..CpuCounters::default()
        };
        HostSample {
            agent_ns: at_ms * 1_000_000,
            cpus: cores.into_iter().enumerate().map(core).collect(),
            ..HostSample::default()
        }
    }

    #[test]
    fn the_busiest_core_of_each_span_counts() {
        let mut busiest = Busiest::default();
        busiest.take(&sample(0, [(0, 0), (0, 0)]));
        assert_eq!(busiest.core_ratio, None);
        busiest.take(&sample(1000, [(90, 10), (20, 80)]));
        assert_eq!(busiest.core_ratio, Some(0.9));
        // Too short to know.
        busiest.take(&sample(1100, [(100, 10), (20, 90)]));
        busiest.take(&sample(2000, [(90, 110), (70, 130)]));
        assert_eq!(busiest.core_ratio, Some(0.5));
        assert!((busiest.core_seconds - 1.4).abs() < 1e-9);
    }
}
