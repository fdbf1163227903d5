//! What can go wrong with a lab, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// Why a lab could not be described, built, entered or changed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The description is wrong.
    #[error("{location}: {problem}")]
    Spec {
        /// `file:line:column`, or the file alone.
        location: String,
        /// What is wrong and how to write it.
        problem: Problem,
    },
    /// A fault that does not fit the lab.
    #[error("fault on `{target}`: {problem}")]
    Fault {
        /// The host or rack.
        target: String,
        /// What is wrong and how to write it.
        problem: Problem,
    },
    /// No such lab.
    #[error("no lab named `{name}` is up{others}; start one with `eastwest lab up -f FILE`")]
    NotUp {
        /// The name asked for.
        name: String,
        /// " (up: a, b)", or nothing.
        others: String,
    },
    /// A lab of this name runs already.
    #[error(
        "a lab named `{name}` is up already; end it with `eastwest lab down --lab {name}`, or give the new one another name"
    )]
    AlreadyUp {
        /// The name asked for.
        name: String,
    },
    /// No such host in the lab.
    #[error("lab `{lab}` has no host `{host}`; it has {known}")]
    UnknownHost {
        /// The lab.
        lab: String,
        /// The host asked for.
        host: String,
        /// The hosts there are, folded.
        known: String,
    },
    /// The machine or its kernel does not allow it.
    #[error("this machine cannot carry the lab: {problem}")]
    Unsupported {
        /// What is missing, and the remedy.
        problem: String,
    },
    /// The keeper could not build the lab.
    #[error("the lab could not be built: {problem}")]
    Build {
        /// The keeper's own words.
        problem: String,
    },
    /// A file, process or namespace operation failed.
    #[error("cannot {action} {subject}: {source}")]
    Io {
        /// The verb.
        action: &'static str,
        /// The object.
        subject: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// An iproute2 or OpenSSH command failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
    },
}

impl LabError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let subject = path.display().to_string();
        move |source| Self::Io {
            action,
            subject,
            source,
        }
    }

    pub(crate) fn io_named(
        action: &'static str,
        subject: impl Into<String>,
    ) -> impl FnOnce(io::Error) -> Self {
        let subject = subject.into();
        move |source| Self::Io {
            action,
            subject,
            source,
        }
    }
}

pub(crate) fn write_file(path: &Path, content: &str) -> Result<(), LabError> {
    std::fs::write(path, content).map_err(LabError::io("write", path))
}

pub(crate) fn existing(path: PathBuf) -> Option<PathBuf> {
    path.exists().then_some(path)
}
