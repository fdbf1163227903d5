//! What a rule finds.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something to fix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// From the workspace's folder.
    pub(super) path: PathBuf,
    /// From 1.
    pub(super) line: usize,
    /// What is wrong.
    pub(super) what: String,
    /// How to put it right.
    pub(super) fix: String,
}

impl Violation {
    pub(super) fn new(
        path: &Path,
        line: usize,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            line,
            what: what.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line) = (self.path.display(), self.line);
        write!(f, "{path}:{line}: {}\n    fix: {}", self.what, self.fix)
    }
}
