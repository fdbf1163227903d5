//! All runs of a directory: list, find, prune.

use crate::MANIFEST_FILE;
use crate::error::{StoreError, io_error};
use crate::events::is_being_written;
use crate::fold::load_manifest;
use ew_model::{Outcome, RunManifest};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// How many names an error offers.
const NAMES_OFFERED: usize = 5;

/// What `runs list` shows of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Its name.
    pub id: String,
    /// Its directory.
    pub path: PathBuf,
    /// Wall clock at start, ns since 1970.
    pub started_unix_ns: u64,
    /// Wall clock at end. `None` when it was cut short or still runs.
    pub finished_unix_ns: Option<u64>,
    /// The scenario's name.
    pub scenario: String,
    /// ssh, local, lab, ...
    pub fleet: String,
    /// Number of hosts.
    pub hosts: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether a process is writing it now.
    pub being_written: bool,
}

/// The runs below a directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Newest first.
    pub runs: Vec<RunSummary>,
    /// Those that look like runs but cannot be read, with the reason: a newer format, a damaged
    /// manifest.
    pub unreadable: Vec<StoreError>,
}

/// Which runs `runs prune` removes; a run is removed when any given rule selects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneRule {
    /// All but this many newest.
    pub keep: Option<usize>,
    /// All that started before this wall-clock time, ns since 1970.
    pub started_before_unix_ns: Option<u64>,
}

/// All runs directly below `root`; none when it does not exist.
///
/// # Errors
/// [`StoreError::Io`] when `root` cannot be read.
pub fn list(root: &Path) -> Result<Listing, StoreError> {
    let mut listing = Listing::default();
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listing),
        Err(error) => return Err(io_error("read", root)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error("read", root))?;
        // Symbolic links are passed over: a run is listed, and pruned, where it lies.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        match load_manifest(&entry.path()) {
            Ok(manifest) => listing.runs.push(summarise(entry.path(), &manifest)),
            Err(StoreError::NotARun { .. }) => {}
            Err(error) => listing.unreadable.push(error),
        }
    }
    listing
        .runs
        .sort_by(|a, b| (b.started_unix_ns, &b.id).cmp(&(a.started_unix_ns, &a.id)));
    Ok(listing)
}

/// The directory of the run that `wanted` names: `latest` or `last`, `last~1` for the one before
/// it, a path, or the beginning or the end of a run's name.
///
/// # Errors
/// [`StoreError::NoRuns`], [`StoreError::NoSuchRun`], [`StoreError::Ambiguous`], or
/// [`StoreError::NotARun`] for a path.
pub fn resolve(root: &Path, wanted: &str) -> Result<PathBuf, StoreError> {
    let path = Path::new(wanted);
    let recent = recent(wanted);
    if recent.is_none() && path.join(MANIFEST_FILE).is_file() {
        return Ok(path.to_path_buf());
    }
    if path.file_name().is_some_and(|name| name == MANIFEST_FILE) && path.is_file() {
        return Ok(path.parent().unwrap_or(Path::new(".")).to_path_buf());
    }
    let runs = list(root)?.runs;
    let fits = |run: &&RunSummary| run.id.starts_with(wanted) || run.id.ends_with(wanted);
    let candidates: Vec<&RunSummary> = match (recent, wanted) {
        (Some(before), _) => runs.iter().skip(before).take(1).collect(),
        (None, "") => Vec::new(),
        _ => match runs.iter().find(|run| run.id == wanted) {
            Some(run) => vec![run],
            None => runs.iter().filter(fits).collect(),
        },
    };
    match candidates.as_slice() {
        [run] => Ok(run.path.clone()),
        [] if wanted.contains('/') => Err(StoreError::NotARun {
            path: path.to_path_buf(),
        }),
        [] if runs.is_empty() => Err(StoreError::NoRuns {
            root: root.to_path_buf(),
        }),
        [] => Err(StoreError::NoSuchRun {
            root: root.to_path_buf(),
            wanted: wanted.to_owned(),
            known: names(runs.iter()),
        }),
        several => Err(StoreError::Ambiguous {
            wanted: wanted.to_owned(),
            candidates: names(several.iter().copied()),
        }),
    }
}

/// How many runs came after the one that `latest`, `last` or `last~2` names.
fn recent(wanted: &str) -> Option<usize> {
    let rest = wanted
        .strip_prefix("latest")
        .or_else(|| wanted.strip_prefix("last"))?;
    match rest.strip_prefix('~') {
        Some(before) => before.parse().ok(),
        None => rest.is_empty().then_some(0),
    }
}

/// Removes runs by a rule and returns their directories, newest first. Touches only directories
/// directly below `root` whose readable `run.json` bears the directory's own name, and never a run
/// that is being written.
///
/// # Errors
/// [`StoreError::Io`] for the first one that cannot be removed.
pub fn prune(root: &Path, rule: &PruneRule) -> Result<Vec<PathBuf>, StoreError> {
    let mut removed = Vec::new();
    for (index, run) in list(root)?.runs.into_iter().enumerate() {
        let too_many = rule.keep.is_some_and(|keep| index >= keep);
        let too_old = rule
            .started_before_unix_ns
            .is_some_and(|limit| run.started_unix_ns < limit);
        let ours = run.path.file_name().is_some_and(|name| name == &*run.id);
        if (too_many || too_old) && ours && !run.being_written {
            remove(&run.path)?;
            removed.push(run.path);
        }
    }
    Ok(removed)
}

/// The manifest last, so that a removal that is cut short can be repeated.
fn remove(directory: &Path) -> Result<(), StoreError> {
    let failed = |source| io_error("remove", directory)(source);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name() == MANIFEST_FILE {
            continue;
        }
        let is_directory = entry.file_type().map_err(failed)?.is_dir();
        match is_directory {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        }
        .map_err(failed)?;
    }
    fs::remove_dir_all(directory).map_err(failed)
}

fn summarise(path: PathBuf, manifest: &RunManifest) -> RunSummary {
    RunSummary {
        id: manifest.id.clone(),
        started_unix_ns: manifest.started_unix_ns,
        finished_unix_ns: manifest.finished_unix_ns,
        scenario: manifest.scenario.name.clone(),
        fleet: manifest.fleet.clone(),
        hosts: manifest.inventory.hosts.len() as u32,
        outcome: manifest.outcome,
        being_written: is_being_written(&path),
        path,
    }
}

fn names<'a>(runs: impl Iterator<Item = &'a RunSummary>) -> Vec<String> {
    runs.take(NAMES_OFFERED).map(|run| run.id.clone()).collect()
}
