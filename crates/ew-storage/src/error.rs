//! What goes wrong with storage, by name and with a remedy.

use std::io;
use thiserror::Error;

/// A call that failed, on which name, and why.
#[derive(Debug, Error)]
#[error("cannot {call} {name}: {problem}")]
pub struct StorageError {
    /// `open`, `write`, `close`, ...
    pub call: &'static str,
    /// The file or folder.
    pub name: String,
    /// Why.
    pub problem: Problem,
}

/// Why a call failed.
#[derive(Debug, Error)]
pub enum Problem {
    /// `ENOSPC`.
    #[error("no space left (ENOSPC); free space, or choose fewer or smaller files")]
    DiskFull,
    /// `EDQUOT`.
    #[error("quota exceeded (EDQUOT); raise it, or choose fewer or smaller files")]
    QuotaExceeded,
    /// `EACCES`, `EPERM`.
    #[error(
        "permission denied (EACCES); run as a user who may write there, or choose another --target"
    )]
    NoPermission,
    /// `EROFS`.
    #[error("read-only file system (EROFS); mount it for writing, or choose another --target")]
    ReadOnly,
    /// `ENOENT`.
    #[error("no such file or directory; check --target, and write before reading")]
    NotFound,
    /// `ESTALE`.
    #[error("stale file handle (ESTALE): the server no longer knows the file; mount it anew")]
    Stale,
    /// `EINVAL` with `O_DIRECT`.
    #[error(
        "the file system does not support O_DIRECT with this buffer size; leave out --direct, or give a multiple of 4096 bytes"
    )]
    NoDirect,
    /// A file ended early.
    #[error(
        "it ends after {found} bytes, expected {expected}; write it with the same --file-size first"
    )]
    Short {
        /// Bytes it has.
        found: u64,
        /// Bytes it should have.
        expected: u64,
    },
    /// The target is none.
    #[error("{0}")]
    BadTarget(String),
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

impl StorageError {
    /// Of a failed call.
    pub fn new(call: &'static str, name: impl Into<String>, problem: Problem) -> Self {
        Self {
            call,
            name: name.into(),
            problem,
        }
    }

    /// Whether the file is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.problem, Problem::NotFound)
    }
}

/// For `map_err`: the system's error of a call on a name.
pub(crate) fn of_system(call: &'static str, name: &str) -> impl FnOnce(io::Error) -> StorageError {
    let name = name.to_owned();
    move |error| StorageError::new(call, name, Problem::from(error))
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull,
            io::ErrorKind::QuotaExceeded => Self::QuotaExceeded,
            io::ErrorKind::PermissionDenied => Self::NoPermission,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::StaleNetworkFileHandle => Self::Stale,
            _ => Self::Other(error.to_string()),
        }
    }
}
