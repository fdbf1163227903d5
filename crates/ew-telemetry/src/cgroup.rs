//! The control group of this process, versions 1 and 2, see cgroups(7).

use crate::file::{FileBuffer, number, trimmed};
use ew_model::telemetry::CgroupReading;
use std::path::{Path, PathBuf};

/// Version 1 reports "no limit" as the largest multiple of a page below 2^63.
const NO_LIMIT_V1: u64 = 1 << 62;

/// Limits and counters of the group that `/proc/self/cgroup` names.
///
/// In a container with its own cgroup namespace the path is `/` and the files are the container's.
/// Where a group is named that is not mounted here, its nearest mounted ancestor answers.
pub(crate) fn cgroup(root: &Path, buffer: &mut FileBuffer) -> CgroupReading {
    let text = trimmed(root.join("proc/self/cgroup")).unwrap_or_default();
    let mount = root.join("sys/fs/cgroup");
    if let Some(reading) = version_1(&mount, &text, buffer) {
        return reading;
    }
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    path.and_then(|path| version_2(&mount, path, buffer))
        .unwrap_or_default()
}

fn version_2(mount: &Path, path: &str, buffer: &mut FileBuffer) -> Option<CgroupReading> {
    let group = nearest(mount, path, "cgroup.controllers")?;
    let mut reading = CgroupReading {
        version: Some(2),
        memory_used_bytes: number(group.join("memory.current")),
        // "max" is no number.
        memory_limit_bytes: number(group.join("memory.max")),
        ..CgroupReading::default()
    };
    if let Some((quota, period)) = trimmed(group.join("cpu.max"))
        .as_deref()
        .and_then(|text| text.split_once(' '))
    {
        reading.cpu_quota_us = quota.parse().ok();
        reading.cpu_period_us = period.parse().ok();
    }
    let text = buffer.read(group.join("cpu.stat")).unwrap_or_default();
    reading.cpu_periods = value(text, "nr_periods");
    reading.cpu_throttled_periods = value(text, "nr_throttled");
    reading.cpu_throttled_us = value(text, "throttled_usec");
    let text = buffer.read(group.join("memory.events")).unwrap_or_default();
    reading.memory_limit_hits = value(text, "max");
    reading.oom_kills = value(text, "oom_kill");
    Some(reading)
}

/// `None` when neither the cpu nor the memory controller is of version 1.
fn version_1(mount: &Path, text: &str, buffer: &mut FileBuffer) -> Option<CgroupReading> {
    let cpu = group_of_controller(mount, text, "cpu", "cpu.stat");
    let memory = group_of_controller(mount, text, "memory", "memory.usage_in_bytes");
    if cpu.is_none() && memory.is_none() {
        return None;
    }
    let mut reading = CgroupReading {
        version: Some(1),
        ..CgroupReading::default()
    };
    if let Some(group) = cpu {
        // -1 is no quota, and no unsigned number.
        reading.cpu_quota_us = number(group.join("cpu.cfs_quota_us"));
        reading.cpu_period_us = number(group.join("cpu.cfs_period_us"));
        let text = buffer.read(group.join("cpu.stat")).unwrap_or_default();
        reading.cpu_periods = value(text, "nr_periods");
        reading.cpu_throttled_periods = value(text, "nr_throttled");
        reading.cpu_throttled_us = value(text, "throttled_time").map(|ns| ns / 1000);
    }
    if let Some(group) = memory {
        let limit = number(group.join("memory.limit_in_bytes"));
        reading.memory_limit_bytes = limit.filter(|limit| *limit < NO_LIMIT_V1);
        reading.memory_used_bytes = number(group.join("memory.usage_in_bytes"));
        reading.memory_limit_hits = number(group.join("memory.failcnt"));
        let text = buffer.read(group.join("memory.oom_control"));
        reading.oom_kills = text.and_then(|text| value(text, "oom_kill"));
    }
    Some(reading)
}

/// The line `4:cpu,cpuacct:/pods/one` names the group of both controllers; each is mounted under
/// its own name, or under both joined, or both directions.
fn group_of_controller(mount: &Path, text: &str, controller: &str, file: &str) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        if !names.split(',').any(|name| name == controller) {
            return None;
        }
        [names, controller]
            .iter()
            .find_map(|folder| nearest(&mount.join(folder), path, file))
    })
}

/// The folder of `path` below `mount` that contains `file`, or its nearest ancestor that does.
fn nearest(mount: &Path, path: &str, file: &str) -> Option<PathBuf> {
    let mut path = Path::new(path.trim_start_matches('/'));
    loop {
        let folder = mount.join(path);
        if folder.join(file).exists() {
            return Some(folder);
        }
        path = path.parent()?;
    }
}

/// The number behind a name, one pair a line.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    fn read(tree: &str) -> CgroupReading {
        cgroup(&recorded(tree), &mut FileBuffer::default())
    }

    #[test]
    fn a_pod_of_version_2() {
        let group = read("linux-6.12");
        assert_eq!(group.version, Some(2));
        assert_eq!(
            (group.cpu_quota_us, group.cpu_period_us),
            (Some(50_000), Some(100_000))
        );
        assert_eq!(
            (group.cpu_periods, group.cpu_throttled_periods),
            (Some(800), Some(200))
        );
        assert_eq!(group.cpu_throttled_us, Some(9_876_543));
        assert_eq!(group.memory_limit_bytes, Some(536_870_912));
        assert_eq!(
            (group.memory_limit_hits, group.oom_kills),
            (Some(4), Some(1))
        );
    }

    #[test]
    fn no_limits_are_none() {
        let group = read("linux-5.14");
        assert_eq!(group.version, Some(2));
        assert_eq!((group.cpu_quota_us, group.memory_limit_bytes), (None, None));
        assert_eq!(group.memory_used_bytes, Some(1_000_000));
    }

    #[test]
    fn a_pod_of_version_1() {
        let group = read("linux-4.18");
        assert_eq!(group.version, Some(1));
        assert_eq!(group.cpu_quota_us, Some(200_000));
        assert_eq!(group.cpu_throttled_us, Some(5_000));
        assert_eq!(
            group.memory_limit_bytes, None,
            "2^63 less a page is no limit"
        );
        assert_eq!(group.memory_used_bytes, Some(77));
        assert_eq!(group.oom_kills, Some(3));
    }

    #[test]
    fn a_host_without_groups() {
        assert_eq!(read("nothing-here"), CgroupReading::default());
    }
}
