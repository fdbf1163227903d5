//! What is wrong in a node set, where, and how to put it right.

use std::error::Error;
use std::fmt;
use std::ops::Range;

/// Characters of the input shown around the spot.
const EXCERPT_CHARS: usize = 100;

/// A node set that could not be understood. [`fmt::Display`] shows the input, the spot and the
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSetError {
    /// Where the text comes from when the user did not just type it, for example
    /// `group @rack1 in /etc/...`.
    pub location: Option<String>,
    /// The text.
    pub input: String,
    /// Where in `input` the problem begins, in bytes.
    pub offset: usize,
    /// How long the spot is, in bytes; 0 points between two characters or behind the end.
    pub length: usize,
    /// What is wrong, without a full stop.
    pub problem: String,
    /// What to do about it, without a full stop.
    pub remedy: String,
}

/// A problem at a span of a text that is known to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) problem: String,
    pub(super) remedy: String,
}

impl Fault {
    pub(super) fn new(
        span: Range<usize>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (problem, remedy) = (problem.into(), remedy.into());
        Self {
            span,
            problem,
            remedy,
        }
    }

    /// Completes the fault with the text it was found in.
    pub(super) fn in_text(self, input: &str, location: Option<&str>) -> NodeSetError {
        NodeSetError {
            location: location.map(str::to_owned),
            input: input.to_owned(),
            offset: self.span.start,
            length: self.span.len(),
            problem: self.problem,
            remedy: self.remedy,
        }
    }
}

impl Error for NodeSetError {}

impl fmt::Display for NodeSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => writeln!(f, "{} ({location})", self.problem)?,
            None => writeln!(f, "{}", self.problem)?,
        }
        let (excerpt, indent, width) = self.excerpt();
        writeln!(f, "  {excerpt}")?;
        writeln!(f, "  {:indent$}{}", "", "^".repeat(width.max(1)))?;
        write!(f, "{}", self.remedy)
    }
}

impl NodeSetError {
    /// The line shown, and the column and width of the spot in it, counted in characters.
    fn excerpt(&self) -> (String, usize, usize) {
        let before = self.input.get(..self.offset).unwrap_or(&self.input);
        let rest = self.input.get(self.offset..).unwrap_or("");
        let spot = rest.get(..self.length).unwrap_or(rest);
        let after = rest.get(spot.len()..).unwrap_or("");
        let before: Vec<char> = before.chars().map(visible).collect();
        let spot: Vec<char> = spot.chars().map(visible).take(EXCERPT_CHARS).collect();
        let after: Vec<char> = after.chars().map(visible).collect();

        let kept_before = before.len().min(EXCERPT_CHARS / 2);
        let kept_after = after.len().min(EXCERPT_CHARS.saturating_sub(spot.len()));
        let mut line = String::new();
        let mut indent = kept_before;
        if kept_before < before.len() {
            line.push('…');
            indent += 1;
        }
        line.extend(&before[before.len() - kept_before..]);
        line.extend(&spot);
        line.extend(&after[..kept_after]);
        if kept_after < after.len() {
            line.push('…');
        }
        (line, indent, spot.len())
    }
}

/// Line breaks, tabs and other control characters would move the caret away from its spot.
fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_spot() {
        let error = Fault::new(3..8, "unknown group `@rck1`", "did you mean `@rack1`?")
            .in_text("n1,@rck1,n3", None);
        assert_eq!(
            error.to_string(),
            "unknown group `@rck1`\n  n1,@rck1,n3\n     ^^^^^\ndid you mean `@rack1`?"
        );
    }

    #[test]
    fn long_input_is_cut_around_the_spot() {
        let input = format!("{}!{}", "a".repeat(5000), "b".repeat(5000));
        let text = Fault::new(5000..5001, "p", "r")
            .in_text(&input, Some("group @x"))
            .to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "p (group @x)");
        assert!(lines[1].chars().count() < 170, "{}", lines[1]);
        let caret = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(caret), Some('!'));
    }

    #[test]
    fn a_spot_outside_the_text_does_not_panic() {
        let error = Fault::new(7..9, "p", "r").in_text("é", None);
        assert!(error.to_string().contains('^'));
    }
}
