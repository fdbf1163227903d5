//! CPU quotas by control group, version 1 or 2, whichever carries the cpu controller here.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::error::LabError;

const PERIOD_US: f64 = 20_000.0;
/// The minimum the kernel grants in a period.
const MIN_QUOTA_US: f64 = 1000.0;

enum Hierarchy {
    V1(PathBuf),
    V2(PathBuf),
}

/// Creates a host's group, or changes its quota.
pub(crate) fn set_quota(lab: &str, host: &str, cores: f64) -> Result<(), LabError> {
    if ew_sys::namespace::effective_user_id() != 0 {
        return Err(unsupported("a cpu-quota needs root"));
    }
    let hierarchy = find_hierarchy().ok_or_else(|| {
        unsupported("a cpu-quota needs the cpu controller of control groups, which is not mounted")
    })?;
    let period_us = PERIOD_US.max(MIN_QUOTA_US / cores).round();
    let quota_us = (cores * period_us).round();
    let (root, files) = match &hierarchy {
        Hierarchy::V1(root) => (
            root,
            vec![
                // Any quota fits the longest period, and the period the quota that follows.
                ("cpu.cfs_quota_us", "-1".into()),
                ("cpu.cfs_period_us", period_us.to_string()),
                ("cpu.cfs_quota_us", quota_us.to_string()),
            ],
        ),
        Hierarchy::V2(root) => {
            // Fails harmlessly when the controller is enabled already; a lack of it shows below.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
            (root, vec![("cpu.max", format!("{quota_us} {period_us}"))])
        }
    };
    let group = root.join(group_name(lab, host));
    if !group.exists() {
        fs::create_dir(&group).map_err(LabError::io("create control group", &group))?;
    }
    for (file, value) in files {
        let path = group.join(file);
        fs::write(&path, value).map_err(LabError::io("write", &path))?;
    }
    Ok(())
}

/// The `cgroup.procs` file of a host that has a quota.
pub(crate) fn entry(lab: &str, host: &str) -> Result<Vec<OwnedFd>, LabError> {
    let Some(path) = procs_path(lab, host) else {
        return Ok(Vec::new());
    };
    let file = fs::OpenOptions::new().write(true).open(&path);
    let file = file.map_err(LabError::io("open", &path))?;
    Ok(vec![OwnedFd::from(file)])
}

/// Moves a process that runs already into its host's group.
pub(crate) fn adopt(lab: &str, host: &str, pid: u32) {
    if let Some(path) = procs_path(lab, host) {
        // A process that has just ended needs no quota.
        let _ = fs::write(path, pid.to_string());
    }
}

/// Removes all groups of a lab, once its processes have ended.
pub(crate) fn remove_all(lab: &str) {
    let root = match find_hierarchy() {
        Some(Hierarchy::V1(root) | Hierarchy::V2(root)) => root,
        None => return,
    };
    let prefix = group_name(lab, "");
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            remove(&entry.path());
        }
    }
}

/// The kernel lets go of the members of a group a moment after they have ended.
fn remove(group: &Path) {
    for _ in 0..100 {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

fn procs_path(lab: &str, host: &str) -> Option<PathBuf> {
    let (Hierarchy::V1(root) | Hierarchy::V2(root)) = find_hierarchy()?;
    crate::error::existing(root.join(group_name(lab, host)).join("cgroup.procs"))
}

/// Lab and host names contain no dot.
fn group_name(lab: &str, host: &str) -> String {
    format!("eastwest.{lab}.{host}")
}

fn find_hierarchy() -> Option<Hierarchy> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let rows = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.nth(1)?, words.next()?, words.next()?))
    });
    let mut second = None;
    for (path, kind, options) in rows {
        if kind == "cgroup" && options.split(',').any(|option| option == "cpu") {
            return Some(Hierarchy::V1(path.into()));
        }
        if kind == "cgroup2" {
            let offered = fs::read_to_string(Path::new(path).join("cgroup.controllers"));
            if offered.is_ok_and(|words| words.split_whitespace().any(|word| word == "cpu")) {
                second = Some(Hierarchy::V2(path.into()));
            }
        }
    }
    second
}

fn unsupported(problem: &str) -> LabError {
    LabError::Unsupported {
        problem: problem.into(),
    }
}
