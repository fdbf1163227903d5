//! `/proc/self/limits`, see proc(5).

use std::path::Path;

/// The soft limit of open files. `None` when it cannot be read; "unlimited" is `u64::MAX`.
pub(crate) fn open_files_limit(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("proc/self/limits")).ok()?;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}
