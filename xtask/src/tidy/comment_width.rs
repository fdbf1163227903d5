//! Comments fit into 100 columns, as rustfmt keeps code.

use super::source::Source;
use super::violation::Violation;

const COLUMNS: usize = 100;

/// Violations of one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().enumerate();
    let comments = lines.filter(|(_, line)| line.trim_start().starts_with("//"));
    let wide = comments.filter(|(_, line)| line.chars().count() > COLUMNS);
    wide.map(|(index, line)| {
        let what = format!("a comment of {} columns", line.chars().count());
        source.violation(index + 1, what, "wrap it at 100 columns")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    #[test]
    fn comments_end_at_column_100() {
        let fits = format!("    // {}\n", "µ".repeat(93));
        let wide = format!("    /// {}\nfn a() {{}}\n", "x".repeat(93));
        let source = snippet("ew-x", "crates/ew-x/src/a.rs", &format!("{fits}{wide}"));
        let lines: Vec<usize> = check(&source).iter().map(|v| v.line).collect();
        assert_eq!(lines, [2]);
    }
}
