//! Words of a report as HTML.

use super::chart;
use crate::words::code_spans;

/// Text as HTML in which nothing is markup but code between backquotes, and ranges stay on one
/// line.
pub(super) fn rich(text: &str) -> String {
    code_spans(text)
        .into_iter()
        .map(|(is_code, piece)| match is_code {
            true => format!("<code>{}</code>", chart::escaped(piece)),
            false => chart::escaped(&unbroken(piece)),
        })
        .collect()
}

/// A line may break after an en dash; a word joiner (U+2060) forbids it.
pub(super) fn unbroken(text: &str) -> String {
    text.replace('\u{2013}', "\u{2013}\u{2060}")
}
