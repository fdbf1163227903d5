//! Where running labs are written down, and how a keeper is recognised.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use ew_sys::namespace::{ProcessHandle, effective_user_id};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::spec::LabSpec;

/// Written by the keeper once the lab is up, rewritten when a fault is applied.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct State {
    /// As asked for.
    pub(crate) declared: LabSpec,
    /// As it is now.
    pub(crate) current: LabSpec,
    /// Whether a user namespace must be joined first.
    pub(crate) rootless: bool,
    pub(crate) keeper_pid: u32,
    /// Distinguishes the keeper from a later process with its id.
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
}

/// The directory of all labs of this user, created when missing, readable by nobody else.
pub(crate) fn labs_dir() -> Result<PathBuf, LabError> {
    let dir = labs_path()?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(LabError::io("create", &dir))?;
    check_path(&dir)?;
    Ok(dir)
}

/// The directory of all labs, held open: what is listed and removed is what was examined, whatever
/// takes its name meanwhile.
struct Labs {
    file: fs::File,
}

impl Labs {
    /// `None` when there never was a lab.
    fn open() -> Result<Option<Self>, LabError> {
        let path = labs_path()?;
        let Ok(file) = fs::File::open(&path) else {
            return Ok(None);
        };
        check_path(&path)?;
        let (own, named) = (file.metadata(), fs::symlink_metadata(&path));
        let own = own.map_err(LabError::io("examine", &path))?;
        let named = named.map_err(LabError::io("examine", &path))?;
        if (own.dev(), own.ino()) != (named.dev(), named.ino()) {
            return Err(not_own(&path));
        }
        file.lock().map_err(LabError::io("lock", &path))?;
        Ok(Some(Self { file }))
    }

    /// A name that stays the same directory's.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

/// Every directory below the first one that is the system's.
fn check_path(labs: &Path) -> Result<(), LabError> {
    check_own(labs)?;
    let above = labs.ancestors().skip(1);
    for dir in above.take_while(|dir| !is_the_systems(dir)) {
        check_own(dir)?;
    }
    Ok(())
}

/// Root's, and only root's to write in; or sticky, so that nobody moves what is not his.
fn is_the_systems(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|metadata| {
        let mode = metadata.mode();
        metadata.is_dir() && metadata.uid() == 0 && (mode & 0o022 == 0 || mode & 0o1000 != 0)
    })
}

/// In a directory for everybody, such as /tmp, someone else could have put this one there first.
fn check_own(dir: &Path) -> Result<(), LabError> {
    let metadata = fs::symlink_metadata(dir).map_err(LabError::io("examine", dir))?;
    let own = metadata.is_dir() && metadata.uid() == effective_user_id();
    if own && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(not_own(dir))
}

fn not_own(dir: &Path) -> LabError {
    LabError::Unsupported {
        problem: format!(
            "{} belongs to someone else or is writable for others; remove it or set XDG_RUNTIME_DIR",
            dir.display()
        ),
    }
}

/// Never in a directory for everybody, where others choose what a name means.
fn labs_path() -> Result<PathBuf, LabError> {
    let user = effective_user_id();
    if user == 0 {
        return Ok("/run/eastwest/labs".into());
    }
    let named = |name| std::env::var_os(name).filter(|dir| !dir.is_empty());
    let runtime = PathBuf::from(format!("/run/user/{user}"));
    let is_ours = fs::symlink_metadata(&runtime).is_ok_and(|dir| dir.uid() == user);
    let state = || named("HOME").map(|home| Path::new(&home).join(".local/state"));
    let dir = named("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .or(is_ours.then_some(runtime))
        .or_else(|| named("XDG_STATE_HOME").map(PathBuf::from))
        .or_else(state);
    match dir {
        Some(dir) => Ok(dir.join("eastwest/labs")),
        None => Err(LabError::Unsupported {
            problem: "there is no directory for the labs' state: set XDG_RUNTIME_DIR or HOME"
                .into(),
        }),
    }
}

/// Creates a lab's directory; two builders never get the same one, and what a dead keeper left is
/// removed.
pub(crate) fn claim(spec: &LabSpec, rootless: bool) -> Result<PathBuf, LabError> {
    let labs = labs_dir()?;
    let lock = fs::File::open(&labs).map_err(LabError::io("open", &labs))?;
    lock.lock().map_err(LabError::io("lock", &labs))?;
    let dir = labs.join(spec.name());
    if is_alive(&dir) {
        return Err(LabError::AlreadyUp {
            name: spec.name().to_owned(),
        });
    }
    remove(&dir, spec.name());
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
    let dir = labs_path()?.join(name);
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
    let Some(held) = Labs::open()? else {
        return Ok(names);
    };
    let labs = held.path();
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

/// Removes a lab's directory and control groups; nothing that is not a lab's.
pub(crate) fn remove(dir: &Path, name: &str) {
    crate::control_group::remove_all(name);
    let marks = [State::path(dir), Request::path(dir)];
    if marks.iter().any(|mark| mark.exists()) {
        // What shows that it is a lab's goes last: if this is cut short, the next one goes on.
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if !marks.contains(&path) {
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        let _ = fs::remove_dir_all(dir);
    } else {
        // Begun and not written down: it is empty.
        let _ = fs::remove_dir(dir);
    }
}

/// Whether a keeper, or the process that is about to start one, is there; of a lab of another
/// version of eastwest, too, which this one cannot read.
fn is_alive(dir: &Path) -> bool {
    #[derive(Deserialize)]
    struct Holder {
        #[serde(alias = "builder_pid")]
        keeper_pid: u32,
        #[serde(alias = "builder_start_ticks")]
        keeper_start_ticks: u64,
    }
    let [state, request] = [State::path(dir), Request::path(dir)].map(|path| {
        let text = fs::read_to_string(path).ok()?;
        serde_json::from_str::<Holder>(&text).ok()
    });
    let holder = state.or(request);
    holder.is_some_and(|is| hold(is.keeper_pid, is.keeper_start_ticks).is_some())
}

fn hold(pid: u32, start: u64) -> Option<ProcessHandle> {
    let handle = ProcessHandle::open(pid).ok()?;
    let same = start_ticks(pid) == Some(start);
    (same && !handle.wait_ended(std::time::Duration::ZERO)).then_some(handle)
}

/// Field 22 of /proc/PID/stat (proc_pid_stat(5)); the name in field 2 may contain anything but ends
/// at the last `)`.
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// Written next to and renamed, so that a reader sees the old or the new.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LabError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::other);
    let text = text.map_err(LabError::io("write", path))?;
    let draft = path.with_extension("new");
    fs::write(&draft, text).map_err(LabError::io("write", &draft))?;
    fs::rename(&draft, path).map_err(LabError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_of_another_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id();
        let start = start_ticks(own).unwrap();
        let state = |start| {
            format!(r#"{{"declared": 7, "keeper_pid": {own}, "keeper_start_ticks": {start}}}"#)
        };
        fs::write(State::path(dir.path()), state(start)).unwrap();
        assert!(is_alive(dir.path()));
        fs::write(State::path(dir.path()), state(start + 1)).unwrap();
        assert!(!is_alive(dir.path()), "another process with its id");
    }

    #[test]
    fn what_is_no_labs_is_not_removed() {
        let work = tempfile::tempdir().unwrap();
        let (theirs, ours) = (work.path().join("theirs"), work.path().join("ours"));
        for dir in [&theirs, &ours] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("file"), "x").unwrap();
        }
        fs::write(State::path(&ours), "{}").unwrap();
        remove(&theirs, "theirs");
        remove(&ours, "ours");
        assert!(theirs.join("file").exists() && !ours.exists());
    }

    #[test]
    fn no_directory_above_may_be_somebody_elses() {
        use std::os::unix::fs::PermissionsExt;
        let work = tempfile::tempdir().unwrap();
        let labs = work.path().join("eastwest/labs");
        fs::create_dir_all(&labs).unwrap();
        let set = |dir: &Path, mode| {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&labs, 0o700);
        assert!(check_path(&labs).is_ok());
        set(labs.parent().unwrap(), 0o777);
        assert!(check_path(&labs).is_err());
    }

    #[test]
    fn a_process_is_told_from_another_with_its_id() {
        let own = std::process::id();
        let start = start_ticks(own).unwrap();
        assert!(hold(own, start).is_some());
        assert!(hold(own, start + 1).is_none());
    }
}
