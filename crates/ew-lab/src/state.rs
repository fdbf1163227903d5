//! Where running labs are written down, and how a keeper is recognised.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ew_sys::namespace::{ProcessHandle, effective_user_id};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::spec::LabSpec;

/// Written by the keeper once the lab stands, rewritten when a fault is applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// As asked for.
    pub(crate) declared: LabSpec,
    /// As it is now.
    pub(crate) current: LabSpec,
    /// Whether a user namespace must be joined first.
    pub(crate) rootless: bool,
    pub(crate) keeper_pid: u32,
    /// Tells the keeper from a later process with its id.
    pub(crate) keeper_start_ticks: u64,
    /// By host name, or `spine`, `controller`, `leaf:RACK`.
    pub(crate) namespaces: BTreeMap<String, Descriptors>,
    /// What the machine could not give, in words.
    pub(crate) notes: Vec<String>,
}

/// The keeper's descriptors of one host's namespaces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Descriptors {
    pub(crate) network: i32,
    pub(crate) mount: i32,
    pub(crate) host_name: i32,
}

/// What `up` hands to the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) spec: LabSpec,
    pub(crate) rootless: bool,
    /// Of the process that builds the lab, while there is no keeper.
    pub(crate) builder_pid: u32,
    pub(crate) builder_start_ticks: u64,
}

impl State {
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join("state.json")
    }

    pub(crate) fn load(dir: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(Self::path(dir)).ok()?).ok()
    }

    pub(crate) fn save(&self, dir: &Path) -> Result<(), LabError> {
        write_json(&Self::path(dir), self)
    }

    /// Takes hold of the keeper, if it still is the one that was written down.
    pub(crate) fn keeper(&self) -> Option<ProcessHandle> {
        hold(self.keeper_pid, self.keeper_start_ticks)
    }
}

impl Request {
    pub(crate) fn path(dir: &Path) -> PathBuf {
        dir.join("request.json")
    }

    pub(crate) fn load(dir: &Path) -> Result<Self, LabError> {
        let path = Self::path(dir);
        let text = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
        serde_json::from_str(&text)
            .map_err(std::io::Error::other)
            .map_err(LabError::io("read", &path))
    }

    fn builder(&self) -> Option<ProcessHandle> {
        hold(self.builder_pid, self.builder_start_ticks)
    }
}

/// The directory of all labs of this user, created when missing, readable by nobody else.
pub(crate) fn labs_dir() -> Result<PathBuf, LabError> {
    let dir = labs_path();
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(LabError::io("create", &dir))?;
    check_own(&dir)?;
    Ok(dir)
}

/// In a directory for everybody, such as /tmp, someone else could have put this one there first.
fn check_own(dir: &Path) -> Result<(), LabError> {
    let metadata = fs::symlink_metadata(dir).map_err(LabError::io("examine", dir))?;
    let own = metadata.is_dir() && metadata.uid() == effective_user_id();
    if own && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(LabError::Unsupported {
        problem: format!(
            "{} belongs to someone else or is writable for others; remove it or set XDG_RUNTIME_DIR",
            dir.display()
        ),
    })
}

fn labs_path() -> PathBuf {
    let user = effective_user_id();
    if user == 0 {
        return "/run/eastwest/labs".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => Path::new(&dir).join("eastwest/labs"),
        _ => std::env::temp_dir().join(format!("eastwest-{user}/labs")),
    }
}

/// Creates a lab's directory; two builders never get the same one, and what a dead keeper left is removed.
pub(crate) fn claim(spec: &LabSpec, rootless: bool) -> Result<PathBuf, LabError> {
    let labs = labs_dir()?;
    let lock = fs::File::open(&labs).map_err(LabError::io("open", &labs))?;
    lock.lock().map_err(LabError::io("lock", &labs))?;
    let dir = labs.join(&spec.name);
    if is_alive(&dir) {
        return Err(LabError::AlreadyUp {
            name: spec.name.clone(),
        });
    }
    remove(&dir, &spec.name);
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&dir)
        .map_err(LabError::io("create", &dir))?;
    let builder_pid = std::process::id();
    let request = Request {
        spec: spec.clone(),
        rootless,
        builder_pid,
        builder_start_ticks: start_ticks(builder_pid).unwrap_or(0),
    };
    write_json(&Request::path(&dir), &request)?;
    Ok(dir)
}

/// The directory and state of a running lab. What a dead keeper left is removed.
pub(crate) fn find(name: &str) -> Result<(PathBuf, State), LabError> {
    let found = names()?.into_iter().any(|known| known == name);
    let dir = labs_path().join(name);
    match State::load(&dir).filter(|_| found) {
        Some(state) => Ok((dir, state)),
        None => {
            let others = names()?.join(", ");
            Err(LabError::NotUp {
                name: name.into(),
                others: if others.is_empty() {
                    others
                } else {
                    format!(" (up: {others})")
                },
            })
        }
    }
}

/// The labs that are up, in order.
pub(crate) fn names() -> Result<Vec<String>, LabError> {
    let mut names = Vec::new();
    let labs = labs_path();
    let Ok(lock) = fs::File::open(&labs) else {
        return Ok(names);
    };
    check_own(&labs)?;
    lock.lock().map_err(LabError::io("lock", &labs))?;
    for entry in fs::read_dir(&labs).map_err(LabError::io("read", &labs))? {
        let entry = entry.map_err(LabError::io("read", &labs))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_alive(&entry.path()) {
            remove(&entry.path(), &name);
        } else if State::load(&entry.path()).is_some() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Removes a lab's directory and control groups.
pub(crate) fn remove(dir: &Path, name: &str) {
    crate::control_group::remove_all(name);
    let _ = fs::remove_dir_all(dir);
}

/// Whether a keeper, or the process that is about to start one, is there.
fn is_alive(dir: &Path) -> bool {
    match State::load(dir) {
        Some(state) => state.keeper().is_some(),
        None => Request::load(dir).is_ok_and(|request| request.builder().is_some()),
    }
}

fn hold(pid: u32, start: u64) -> Option<ProcessHandle> {
    let handle = ProcessHandle::open(pid).ok()?;
    let same = start_ticks(pid) == Some(start);
    (same && !handle.wait_ended(std::time::Duration::ZERO)).then_some(handle)
}

/// Field 22 of /proc/PID/stat (proc_pid_stat(5)); the name in field 2 may hold anything but ends at the last `)`.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Written beside and renamed, so that a reader sees the old or the new.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::other);
    let text = text.map_err(LabError::io("write", path))?;
    let beside = path.with_extension("new");
    fs::write(&beside, text).map_err(LabError::io("write", &beside))?;
    fs::rename(&beside, path).map_err(LabError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_with_its_id() {
        let own = std::process::id();
        let start = start_ticks(own).unwrap();
        assert!(hold(own, start).is_some());
        assert!(hold(own, start + 1).is_none());
    }
}
