//! What goes wrong with storage, by name and with a remedy.

use crate::client_error::ClientError;
use crate::hosts_file_error::HostsFileError;
use crate::target_error::TargetError;
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
    /// Nothing listens at the NameNode's address, or a DataNode's.
    #[error(
        "connection refused: nothing listens there; check host and port of --target (NameNode RPC, often 8020), and that it runs"
    )]
    Refused,
    /// A server ended the connection.
    #[error(
        "the server closed the connection; check host and port of --target (NameNode RPC, often 8020), and its log"
    )]
    Closed,
    /// A server is silent.
    #[error(
        "no answer within {seconds} s; check host and port of --target, and that the NameNode and its DataNodes run"
    )]
    NoAnswer {
        /// How long was waited.
        seconds: u64,
    },
    /// HDFS is read-only.
    #[error(
        "the NameNode is in safe mode; wait until enough DataNodes have reported, or run `hdfs dfsadmin -safemode leave`"
    )]
    SafeMode,
    /// Of two NameNodes the one without work.
    #[error(
        "this NameNode is the standby; give the active one (`hdfs haadmin -getAllServiceState`), or the nameservice with HADOOP_CONF_DIR set on each host"
    )]
    Standby,
    /// HDFS's permissions.
    #[error(
        "{0}; set HADOOP_USER_NAME in the environment of each host's agent, or choose another --target"
    )]
    Denied(String),
    /// Only Kerberos tickets are accepted.
    #[error(
        "the NameNode accepts only Kerberos or tokens, which this binary does not have; measure through a mount, or with Hadoop's own TestDFSIO"
    )]
    Kerberos,
    /// No DataNode takes a block.
    #[error(
        "no DataNode takes the block, for want of space or because it is down or not in service: {0}"
    )]
    NoDataNode(String),
    /// The NameNode gives no new block before an earlier one is reported. The client does not retry
    /// it.
    #[error(
        "a block was not reported to the NameNode in time (NotReplicatedYetException); choose a larger --block-size"
    )]
    BlockNotYet,
    /// The target is none.
    #[error(transparent)]
    BadTarget(#[from] TargetError),
    /// This host cannot be a client of it.
    #[error(transparent)]
    NoClient(#[from] ClientError),
    /// The NameNode's hosts file, or the lease next to it, cannot be used.
    #[error(transparent)]
    HostsFile(#[from] HostsFileError),
    /// Anything else, in the system's words.
    #[error("{0}")]
    Other(String),
}

impl StorageError {
    /// Of a failed call.
    pub fn new(call: &'static str, name: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self {
            call,
            name: name.into(),
            problem: problem.into(),
        }
    }

    /// Whether the same file may well succeed from its start.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.problem, Problem::BlockNotYet)
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
    move |error| StorageError::new(call, name, error)
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
