//! What can be wrong with a scenario file or a `--set`, reported with its position and the remedy.

use std::fmt;
use thiserror::Error;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// In a file; line and column count from 1.
    File {
        /// The file's name as the user gave it, or the built-in's name.
        name: String,
        /// Line.
        line: u64,
        /// Column, in characters.
        column: u64,
    },
    /// In an override given on the command line, as typed.
    Override(String),
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line: 0, .. } => f.write_str(name),
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Override(text) => write!(f, "--set {text}"),
        }
    }
}

/// What could have been written instead of an unknown word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// The known word that looks like it, if any does.
    pub near: Option<String>,
    /// All known words.
    pub known: Vec<String>,
}

impl Choices {
    fn of(word: &str, known: &[&str]) -> Box<Self> {
        Box::new(Self {
            near: nearest(word, known),
            known: known.iter().map(ToString::to_string).collect(),
        })
    }

    fn hint(&self) -> String {
        did_you_mean(self.near.as_deref())
    }

    /// The nearest word, or all where none is near.
    fn near_or_all(&self) -> String {
        match &self.near {
            Some(_) => format!(
                "{}; all keys: docs/reference/scenario-files.md",
                self.hint()
            ),
            None => format!("; known keys: {}", self.list()),
        }
    }

    fn list(&self) -> String {
        match self.known.is_empty() {
            true => "none".into(),
            false => self.known.join(", "),
        }
    }
}

/// Why a scenario could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The text is not YAML, or has a key twice.
    #[error("{location}: not readable as YAML: {message}")]
    Yaml {
        /// Where the reader stopped.
        location: SourceLocation,
        /// The reader's own words.
        message: String,
    },
    /// A key that means nothing here.
    #[error("{location}: unknown key `{key}` in {inside}{}", .choices.near_or_all())]
    UnknownKey {
        /// Where.
        location: SourceLocation,
        /// What was written.
        key: String,
        /// What the key is in, for example "a test".
        inside: String,
        /// The known keys.
        choices: Box<Choices>,
    },
    /// A word that is none of the choices.
    #[error("{location}: `{word}` is not a {what}{}; choose from: {}", .choices.hint(), .choices.list())]
    UnknownWord {
        /// Where.
        location: SourceLocation,
        /// What was written.
        word: String,
        /// What was expected, for example "pattern".
        what: String,
        /// What it could have been.
        choices: Box<Choices>,
    },
    /// A value of the wrong shape or out of bounds.
    #[error("{location}: {key}: {problem}; expected {expected}")]
    Value {
        /// Where.
        location: SourceLocation,
        /// The key whose value it is.
        key: String,
        /// What is wrong.
        problem: String,
        /// What would be right, with an example.
        expected: String,
    },
    /// A key that must be there is not.
    #[error("{location}: {inside} has no `{key}`; add {example}")]
    Missing {
        /// Where the mapping starts.
        location: SourceLocation,
        /// What lacks the key.
        inside: String,
        /// The key.
        key: String,
        /// How to write it.
        example: String,
    },
    /// An override that is not `key=value`, or has nothing to apply to.
    #[error("--set {text}: {problem}")]
    Override {
        /// As typed.
        text: String,
        /// What is wrong and how to put it right.
        problem: String,
    },
}

impl ScenarioError {
    pub(super) fn unknown_key(
        location: SourceLocation,
        key: &str,
        inside: &str,
        known: &[&str],
    ) -> Self {
        Self::UnknownKey {
            location,
            key: key.into(),
            inside: inside.into(),
            choices: Choices::of(key, known),
        }
    }

    pub(super) fn unknown_word(
        location: SourceLocation,
        word: &str,
        what: &str,
        known: &[&str],
    ) -> Self {
        Self::UnknownWord {
            location,
            word: word.into(),
            what: what.into(),
            choices: Choices::of(word, known),
        }
    }

    pub(super) fn value(
        location: SourceLocation,
        key: &str,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Value {
            location,
            key: key.into(),
            problem: problem.into(),
            expected: expected.into(),
        }
    }
}

/// The known word most like `word`, if any is like it at all.
pub(super) fn nearest(word: &str, known: &[&str]) -> Option<String> {
    let word = word.to_lowercase().replace('_', "-");
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (edit_distance(&word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_string())
}

pub(super) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|word| format!(" (did you mean `{word}`?)"))
        .unwrap_or_default()
}

/// Min number of insertions, deletions, substitutions and exchanges of neighbours (optimal string
/// alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let substituted = rows[i][j] + usize::from(a[i] != b[j]);
            let mut least = substituted.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["duration", "warm-up", "gap", "samples"];
        assert_eq!(nearest("durration", &known), Some("duration".into()));
        assert_eq!(nearest("warm_up", &known), Some("warm-up".into()));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("mehs", &["mesh", "pair"]), Some("mesh".into()));
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }
}
