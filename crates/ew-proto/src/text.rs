//! Text that came from another machine, made safe to show.

const MAX_CHARS: usize = 2000;

/// One line without control characters (a terminal would obey them), at most 2000 characters.
pub(crate) fn printable(text: &str) -> String {
    let mut line: String = text
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_CHARS)
        .collect();
    line.truncate(line.trim_end().len());
    line
}

/// The same in place.
pub(crate) fn make_printable(text: &mut String) {
    *text = printable(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_length_are_tamed() {
        assert_eq!(printable(" a\x1b[31m\nb\n"), "a [31m b");
        assert_eq!(printable(&"x".repeat(5000)).len(), MAX_CHARS);
    }
}
