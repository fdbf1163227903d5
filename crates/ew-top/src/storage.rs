//! Disks (what iostat shows) and memory.

use crate::counted::{rate, rate_or_zero, share_of_time_us};
use crate::view::{DiskView, MemoryView};
use ew_model::telemetry::{DiskCounters, HostReading};
use std::time::Duration;

/// Disks between two readings, the busiest first.
pub(crate) fn disk_views(before: &HostReading, now: &HostReading, time: Duration) -> Vec<DiskView> {
    let pairs = now.disks.iter().filter_map(|disk| {
        let was = before.disks.iter().find(|d| d.name == disk.name)?;
        Some(disk_view(was, disk, time))
    });
    let mut views: Vec<DiskView> = pairs.collect();
    views.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    views
}

/// As iostat derives them: await is the time of all requests over their number, utilisation the
/// time with any in flight.
fn disk_view(before: &DiskCounters, now: &DiskCounters, time: Duration) -> DiskView {
    let per_second = |of: fn(&DiskCounters) -> u64| rate_or_zero(of(now), of(before), time);
    let requests = per_second(|d| d.reads) + per_second(|d| d.writes);
    let request_ms = per_second(|d| d.read_ms) + per_second(|d| d.write_ms);
    DiskView {
        name: now.name.clone(),
        read_bytes_per_sec: per_second(|d| d.read_bytes),
        written_bytes_per_sec: per_second(|d| d.written_bytes),
        reads_per_sec: per_second(|d| d.reads),
        writes_per_sec: per_second(|d| d.writes),
        utilisation: (per_second(|d| d.busy_ms) / 1e3).min(1.0),
        await_ms: (requests > 0.0).then(|| request_ms / requests),
        queue: per_second(|d| d.weighted_ms) / 1e3,
    }
}

/// Memory, and the pressure on it and on disks.
pub(crate) fn memory_view(before: &HostReading, now: &HostReading, time: Duration) -> MemoryView {
    let swapped = |reading: &HostReading| {
        let memory = &reading.memory;
        Some(memory.swapped_in_pages? + memory.swapped_out_pages?)
    };
    let memory_stall = |reading: &HostReading| reading.pressure.memory.map(|p| p.some_us);
    let disk_stall = |reading: &HostReading| reading.pressure.io.map(|p| p.some_us);
    let cgroup = &now.cgroup;
    MemoryView {
        total_bytes: now.memory.total_bytes,
        available_bytes: now.memory.available_bytes,
        swapped_pages_per_sec: rate(swapped(now), swapped(before), time),
        pressure: share_of_time_us(memory_stall(now), memory_stall(before), time),
        disk_pressure: share_of_time_us(disk_stall(now), disk_stall(before), time),
        cgroup_share: cgroup
            .memory_used_bytes
            .zip(cgroup.memory_limit_bytes)
            .filter(|(_, limit)| *limit > 0)
            .map(|(used, limit)| used as f64 / limit as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_iostat_derives_them() {
        let before = DiskCounters {
            name: "sda".into(),
            ..DiskCounters::default()
        };
        let now = DiskCounters {
            reads: 100,
            read_bytes: 2 << 20,
            read_ms: 400,
            writes: 300,
            written_bytes: 4 << 20,
            write_ms: 1200,
            busy_ms: 1900,
            weighted_ms: 8000,
            ..before.clone()
        };
        let view = disk_view(&before, &now, Duration::from_secs(2));
        assert_eq!((view.reads_per_sec, view.writes_per_sec), (50.0, 150.0));
        assert_eq!(view.await_ms, Some(4.0));
        assert_eq!((view.utilisation, view.queue), (0.95, 4.0));
        let idle = disk_view(&now, &now, Duration::from_secs(2));
        assert_eq!(idle.await_ms, None);
    }
}
