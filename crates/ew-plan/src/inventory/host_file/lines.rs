//! The lines of a host file, and where they are.

use std::path::Path;

/// Lines with their numbers, without comments and blanks around.
pub(super) fn significant_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(number, line)| (number, line.split('#').next().unwrap_or("").trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(';'))
}

pub(super) fn line_of(path: &Path, number: usize) -> String {
    format!("{}, line {number}", path.display())
}
