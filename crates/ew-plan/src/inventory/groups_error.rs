//! What goes wrong with group files, and with a group that is looked up.

use super::node_set_error::Fault;
use std::ops::Range;
use std::path::PathBuf;
use thiserror::Error;

/// Why group files could not be used.
#[derive(Debug, Error)]
pub enum GroupsError {
    /// A file is there but cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's words.
        reason: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{location}: {problem}")]
    Format {
        /// File and, when known, line.
        location: String,
        /// What is wrong, with the remedy.
        problem: String,
    },
    /// Two files define a source of one name.
    #[error("group source `{name}` is defined in {first} and in {second}; rename one of them")]
    Collision {
        /// The source.
        name: String,
        /// One file.
        first: String,
        /// The other.
        second: String,
    },
    /// `default:` in groups.conf names a source that is not there.
    #[error(
        "{location} names `{name}` as the default group source, which no file defines; known are: {known}"
    )]
    NoDefault {
        /// The file.
        location: String,
        /// The name.
        name: String,
        /// Sources there are.
        known: String,
    },
}

/// A group that could not be looked up; becomes an error at the spot where it was named.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LookupError {
    pub(super) problem: String,
    pub(super) remedy: String,
}

impl LookupError {
    pub(super) fn at(self, span: Range<usize>) -> Fault {
        Fault::new(span, self.problem, self.remedy)
    }
}
