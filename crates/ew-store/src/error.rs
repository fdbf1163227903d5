//! What can go wrong with a run directory.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A run that cannot be written, read or found.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, for example "write".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no manifest.
    #[error("{} is not a run directory: it has no run.json (`eastwest runs list` shows the runs)", path.display())]
    NotARun {
        /// What was given.
        path: PathBuf,
    },
    /// Written by a newer eastwest.
    #[error(
        "{} was written by a newer eastwest (format {found}, this one reads up to {newest}): use that version or a later one",
        path.display()
    )]
    NewerVersion {
        /// The run.
        path: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest we read.
        newest: u32,
    },
    /// The manifest is no manifest.
    #[error("{} is damaged: {source}", path.display())]
    BadManifest {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A line in the middle of the events is damaged.
    #[error("{}, line {line} is damaged: {source}; the lines before it are whole", path.display())]
    BadEvent {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A value cannot be written as JSON.
    #[error("cannot write {} as JSON: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A table cannot be written.
    #[error("cannot write the table {}: {source}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        source: parquet::errors::ParquetError,
    },
    /// There is nothing to choose from.
    #[error("there is no run in {} (`eastwest run` makes one; --runs-dir names another directory)", root.display())]
    NoRuns {
        /// Where runs are kept.
        root: PathBuf,
    },
    /// No run fits.
    #[error("no run in {} is called `{wanted}` or begins or ends like that; the newest are: {}", root.display(), known.join(", "))]
    NoSuchRun {
        /// Where runs are kept.
        root: PathBuf,
        /// What was asked for.
        wanted: String,
        /// Some that exist, newest first.
        known: Vec<String>,
    },
    /// More than one run fits.
    #[error("`{wanted}` fits more than one run: {}; give more of the name", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// What it fits.
        candidates: Vec<String>,
    },
}

/// Adds what was tried, on what.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io {
        action,
        path,
        source,
    }
}
