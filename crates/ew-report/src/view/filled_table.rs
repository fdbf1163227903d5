//! Tables without columns that would be empty all the way down.

use crate::words;

/// A table of the columns that have a value in some row.
pub(super) fn filled_table<T>(
    columns: &[&'static str],
    items: &[T],
    value: impl Fn(&T, &str) -> String,
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let is_filled = |column: &&str| {
        items
            .iter()
            .any(|item| value(item, column) != words::MISSING)
    };
    let header: Vec<&'static str> = columns.iter().copied().filter(is_filled).collect();
    let rows = items
        .iter()
        .map(|item| header.iter().map(|column| value(item, column)).collect())
        .collect();
    (header, rows)
}
