//! CPU time by use (what top and mpstat show), pressure and throttling.

use crate::counted::{rate, share_of_time_us, wrapping_rate};
use crate::view::{CoreView, CpuView};
use ew_model::facts::CpuCounters;
use ew_model::telemetry::{CpuReading, HostReading};
use std::time::Duration;

/// CPUs between two readings.
pub(crate) fn cpu_view(before: &HostReading, now: &HostReading, time: Duration) -> CpuView {
    let cores: Vec<CoreView> = now
        .cpus
        .iter()
        .filter_map(|cpu| {
            let was = before.cpus.iter().find(|c| c.times.cpu == cpu.times.cpu)?;
            Some(core(was, cpu, time))
        })
        .collect();
    let stall = |reading: &HostReading| reading.pressure.cpu.map(|p| p.some_us);
    CpuView {
        busy: mean(cores.iter().map(|core| core.busy)),
        pressure: share_of_time_us(stall(now), stall(before), time),
        throttled: throttled(before, now),
        quota_cores: now
            .cgroup
            .cpu_quota_us
            .zip(now.cgroup.cpu_period_us)
            .filter(|(_, period)| *period > 0)
            .map(|(quota, period)| quota as f64 / period as f64),
        cores,
    }
}

fn core(before: &CpuReading, now: &CpuReading, time: Duration) -> CoreView {
    let moved = Moved::between(&before.times, &now.times);
    let softnet = now.softnet.zip(before.softnet);
    CoreView {
        cpu: now.times.cpu,
        busy: moved.share(moved.all - moved.idle - moved.iowait),
        user: moved.share(moved.user),
        nice: moved.share(moved.nice),
        guest: moved.guest.map(|guest| moved.share(guest)),
        system: moved.share(moved.system),
        irq: moved.share(moved.irq),
        softirq: moved.share(moved.softirq),
        steal: moved.share(moved.steal),
        iowait: moved.share(moved.iowait),
        packets_per_sec: softnet.map(|(n, b)| wrapping_rate(n.processed, b.processed, time)),
        softnet_drops_per_sec: softnet.map(|(n, b)| wrapping_rate(n.dropped, b.dropped, time)),
        squeezed_per_sec: softnet.map(|(n, b)| wrapping_rate(n.squeezed, b.squeezed, time)),
        frequency_hz: now.frequency_hz,
        max_frequency_hz: now.max_frequency_hz,
        numa_node: now.numa_node,
    }
}

/// Ticks between two readings. Guests' ticks are part of user's.
struct Moved {
    user: u64,
    nice: u64,
    guest: Option<u64>,
    system: u64,
    idle: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
    all: u64,
}

impl Moved {
    /// The kernel's iowait and idle may go back a little: taken for not moved.
    fn between(before: &CpuCounters, now: &CpuCounters) -> Self {
        let moved = |of: fn(&CpuCounters) -> Option<u64>| {
            let (now, before) = (of(now).unwrap_or(0), of(before).unwrap_or(0));
            now.saturating_sub(before)
        };
        let nice = moved(|c| Some(c.nice_ticks));
        let user = moved(|c| Some(c.user_ticks)) + nice;
        let guests = moved(|c| c.guest_ticks) + moved(|c| c.guest_nice_ticks);
        let system = moved(|c| Some(c.system_ticks));
        let idle = moved(|c| Some(c.idle_ticks));
        let (iowait, irq) = (moved(|c| c.iowait_ticks), moved(|c| c.irq_ticks));
        let (softirq, steal) = (moved(|c| c.softirq_ticks), moved(|c| c.steal_ticks));
        Self {
            user,
            nice,
            guest: now.guest_ticks.map(|_| guests),
            system,
            idle,
            iowait,
            irq,
            softirq,
            steal,
            all: user + system + idle + iowait + irq + softirq + steal,
        }
    }

    fn share(&self, part: u64) -> f64 {
        if self.all == 0 {
            return 0.0;
        }
        part as f64 / self.all as f64
    }
}

fn throttled(before: &HostReading, now: &HostReading) -> Option<f64> {
    let second = Duration::from_secs(1);
    let (was, is) = (&before.cgroup, &now.cgroup);
    is.cpu_quota_us?;
    let periods = rate(is.cpu_periods, was.cpu_periods, second)?;
    let throttled = rate(is.cpu_throttled_periods, was.cpu_throttled_periods, second)?;
    (periods > 0.0).then(|| (throttled / periods).min(1.0))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    if count == 0 {
        return 0.0;
    }
    values.sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::{CgroupReading, SoftnetCounters};

    const SECOND: Duration = Duration::from_secs(1);

    fn reading(ticks: [u64; 8], processed: u32, throttled: u64) -> HostReading {
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
        let times = CpuCounters {
            cpu: 3,
            user_ticks: user,
            nice_ticks: nice,
            system_ticks: system,
            idle_ticks: idle,
            iowait_ticks: Some(iowait),
            irq_ticks: Some(irq),
            softirq_ticks: Some(softirq),
            steal_ticks: Some(steal),
            guest_ticks: Some(nice / 2),
            ..CpuCounters::default()
        };
        let softnet = Some(SoftnetCounters {
            processed,
            ..SoftnetCounters::default()
        });
        HostReading {
            cpus: vec![CpuReading {
                times,
                softnet,
                ..CpuReading::default()
            }],
            cgroup: CgroupReading {
                cpu_quota_us: Some(50_000),
                cpu_period_us: Some(100_000),
                cpu_periods: Some(throttled * 4),
                cpu_throttled_periods: Some(throttled),
                ..CgroupReading::default()
            },
            ..HostReading::default()
        }
    }

    #[test]
    fn shares_are_of_what_moved() {
        let before = reading([10, 0, 10, 100, 10, 0, 0, 0], u32::MAX, 1);
        let now = reading([20, 10, 15, 130, 5, 5, 30, 10], 999, 3);
        let view = cpu_view(&before, &now, SECOND);
        let core = view.cores[0];
        // 20 + 5 + 30 + 5 + 30 + 10 = 100 ticks; iowait went back.
        assert_eq!((core.user, core.system, core.softirq), (0.2, 0.05, 0.3));
        assert_eq!((core.steal, core.iowait), (0.1, 0.0));
        assert_eq!((core.nice, core.guest), (0.1, Some(0.05)));
        assert!((core.busy - 0.7).abs() < 1e-9);
        assert_eq!(core.packets_per_sec, Some(1000.0), "32 bits wrap");
        assert_eq!((view.throttled, view.quota_cores), (Some(0.25), Some(0.5)));
    }

    #[test]
    fn a_cpu_that_came_online_waits_for_its_second_reading() {
        let now = reading([20, 0, 0, 0, 0, 0, 0, 0], 0, 0);
        let view = cpu_view(&HostReading::default(), &now, SECOND);
        assert!(view.cores.is_empty());
        assert_eq!(
            (view.busy, view.throttled, view.pressure),
            (0.0, None, None)
        );
    }
}
