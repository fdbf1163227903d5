//! Writing a run while it happens.

use crate::draft::write_whole;
use crate::error::{StoreError, io_error};
use crate::events::EventWriter;
use crate::fold::load_manifest;
use crate::id::renamed;
use crate::tables::write_tables;
use crate::{FINDINGS_FILE, FORMAT_VERSION, MANIFEST_FILE};
use ew_model::barrier::Barrier;
use ew_model::{Outcome, Run, RunManifest};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How many names are tried when two runs have the same random one.
const NAMES_TRIED: u32 = 16;

/// One run being written.
#[derive(Debug)]
pub struct RunWriter {
    directory: PathBuf,
    id: String,
    events: EventWriter,
}

impl RunWriter {
    /// Makes the run's directory below `root` (and `root` itself), with a manifest that states
    /// `unfinished`. When the manifest's id is taken, its random end is made anew:
    /// [`RunWriter::id`] is the one that holds.
    ///
    /// # Errors
    /// [`StoreError`] when the directory or a file in it cannot be made.
    pub fn create(root: &Path, mut manifest: RunManifest) -> Result<Self, StoreError> {
        let directory = make_directory(root, &mut manifest)?;
        let events = EventWriter::create(&directory, manifest.inventory.hosts.len())?;
        manifest.outcome = Outcome::Unfinished;
        manifest.finished_unix_ns = None;
        write_manifest(&directory, &mut manifest)?;
        Ok(Self {
            directory,
            id: manifest.id,
            events,
        })
    }

    /// The run's name, also its directory's.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The run's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Takes the run's events while it happens.
    pub fn events(&mut self) -> &mut EventWriter {
        &mut self.events
    }

    /// Replaces the manifest by its final form and writes the tables; returns the run, as
    /// [`crate::load`] reads it. The manifest comes before the tables, and whatever became of the
    /// events, so that a full disk costs tables that can be derived again, not the outcome.
    ///
    /// # Errors
    /// [`StoreError`] when a file cannot be written; what was written before stays readable.
    pub fn finish(mut self, mut manifest: RunManifest) -> Result<Run, StoreError> {
        let synced = self.events.sync();
        manifest.id.clone_from(&self.id);
        write_manifest(&self.directory, &mut manifest)?;
        synced?;
        write_tables(&self.directory, manifest)
    }
}

/// Writes `findings.json` into a run directory, replacing an older one: the verdict as the report
/// words it.
///
/// # Errors
/// [`StoreError`] when it cannot be written.
pub fn write_findings(
    directory: &Path,
    verdict: serde_json::Result<String>,
) -> Result<(), StoreError> {
    let path = directory.join(FINDINGS_FILE);
    match verdict {
        Ok(json) => write_whole(&path, json.as_bytes()),
        Err(source) => Err(StoreError::Json { path, source }),
    }
}

/// Adds to a finished run what was found after its end.
///
/// # Errors
/// [`StoreError`] when `run.json` cannot be read or written.
pub fn add_barriers(directory: &Path, barriers: Vec<Barrier>) -> Result<(), StoreError> {
    let mut manifest = load_manifest(directory)?;
    manifest.barriers.extend(barriers);
    write_json(&directory.join(MANIFEST_FILE), &manifest)
}

/// Writes any other file of a run, such as `report.html`, whole or not at all; returns its path.
///
/// # Errors
/// [`StoreError`] when it cannot be written.
pub fn write_file(directory: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
    let path = directory.join(name);
    write_whole(&path, bytes)?;
    Ok(path)
}

fn make_directory(root: &Path, manifest: &mut RunManifest) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(root).map_err(io_error("create", root))?;
    let mut tries_left = NAMES_TRIED;
    loop {
        let directory = root.join(&manifest.id);
        tries_left -= 1;
        // What hosts run and whom they talk to is in it: not for everybody.
        match fs::DirBuilder::new().mode(0o750).create(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries_left > 0 => {
                manifest.id = renamed(&manifest.id, manifest.started_unix_ns);
            }
            Err(error) => return Err(io_error("create", &directory)(error)),
        }
    }
}

fn write_manifest(directory: &Path, manifest: &mut RunManifest) -> Result<(), StoreError> {
    manifest.format_version = FORMAT_VERSION;
    write_json(&directory.join(MANIFEST_FILE), manifest)
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), StoreError> {
    let mut json = serde_json::to_vec_pretty(value).map_err(|source| StoreError::Json {
        path: path.to_path_buf(),
        source,
    })?;
    json.push(b'\n');
    write_whole(path, &json)
}
