//! Names with `*` and `?` in them, such as `n?-[1-32]*`: what a shell would match.

use super::syntax::{Operand, Piece};
use std::collections::BTreeSet;

/// Compared with a name in time that does not grow with how many numbers its brackets hold.
pub(super) struct Mask {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    /// `?`
    OneCharacter,
    /// `*`
    Anything,
    Number {
        written: BTreeSet<String>,
        widths: BTreeSet<usize>,
    },
}

impl Mask {
    pub(super) fn of(operand: &Operand) -> Self {
        let mut parts = Vec::new();
        let mut indexes = operand.indexes.iter();
        for piece in operand.shape.pieces() {
            match piece {
                Piece::Text(text) => parts.extend(text_parts(text)),
                Piece::Slot => {
                    let numbers = indexes.next().into_iter().flatten();
                    parts.push(Part::number(numbers.map(ToString::to_string).collect()));
                }
            }
        }
        Self { parts }
    }

    /// Whether all of a name is what the mask has.
    pub(super) fn matches(&self, name: &str) -> bool {
        let start = vec![0];
        let parts = self.parts.iter();
        let ends = parts.fold(start, |begins, part| part.ends(name, &begins));
        ends.contains(&name.len())
    }
}

/// Text without wildcards stays together.
fn text_parts(text: &str) -> impl Iterator<Item = Part> {
    let cut = text.split_inclusive(['*', '?']);
    cut.flat_map(|cut| {
        let letters = cut.trim_end_matches(['*', '?']);
        let wildcard = match cut.chars().next_back() {
            Some('*') => Some(Part::Anything),
            Some('?') => Some(Part::OneCharacter),
            _ => None,
        };
        let letters = (!letters.is_empty()).then(|| Part::Text(letters.to_owned()));
        letters.into_iter().chain(wildcard)
    })
}

impl Part {
    fn number(written: BTreeSet<String>) -> Self {
        let widths = written.iter().map(String::len).collect();
        Self::Number { written, widths }
    }

    /// Where in a name this part may end that begins at one of these places: sorted, each once.
    fn ends(&self, name: &str, begins: &[usize]) -> Vec<usize> {
        match self {
            Self::Text(text) => advanced(begins, |at| {
                name[at..].starts_with(text).then_some(text.len())
            }),
            Self::OneCharacter => {
                advanced(begins, |at| name[at..].chars().next().map(char::len_utf8))
            }
            Self::Anything => begins.first().map_or_else(Vec::new, |&first| {
                let ends = first..=name.len();
                ends.filter(|&end| name.is_char_boundary(end)).collect()
            }),
            Self::Number { written, widths } => {
                let ends = begins.iter().flat_map(|&at| {
                    let ends = widths.iter().map(move |width| at + width);
                    ends.filter(move |&end| {
                        name.get(at..end)
                            .is_some_and(|digits| written.contains(digits))
                    })
                });
                let ends: BTreeSet<usize> = ends.collect();
                ends.into_iter().collect()
            }
        }
    }
}

/// The places after those where something of this many bytes begins.
fn advanced(begins: &[usize], bytes: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
    let ends = begins.iter().filter_map(|&at| Some(at + bytes(at)?));
    ends.collect()
}

#[cfg(test)]
mod tests {
    use super::super::syntax::{Blanks, parse};
    use super::Mask;

    fn matches(mask: &str, name: &str) -> bool {
        let operands = parse(mask, Blanks::Mistake).expect("a node set");
        Mask::of(&operands[0]).matches(name)
    }

    #[test]
    fn masks_match_whole_names() {
        assert!(matches("n?", "n1") && matches("*1", "rack1n1"));
        assert!(matches("a*b*c", "a-bb-c") && matches("n*1?", "node12"));
        assert!(!matches("n?", "n10") && !matches("n?", "n"));
        assert!(!matches("a*b", "abc"));
        assert!(matches("%?", "%é") && !matches("%s*", "%%"));
    }

    #[test]
    fn numbers_are_those_in_brackets_as_they_are_written() {
        assert!(matches("n?-[1-32]", "n7-32") && matches("*[08-11]", "r08"));
        assert!(!matches("n?-[1-32]", "n7-33") && !matches("*-[08-11]", "r-8"));
        // Where it ends is not known before the rest is compared.
        assert!(matches("n[1,12]?", "n12") && matches("n[1,12]?", "n123"));
        assert!(matches("r[1-2]*[3-4]", "r1r13") && !matches("r[1-2]*[3-4]", "r1r15"));
    }

    #[test]
    fn a_million_numbers_are_one_comparison() {
        assert!(matches("n?[1-999999]", "nx999999"));
        let name = "1".repeat(200);
        assert!(!matches("*1*1*1*1*1*1*1*1*1*1*2", &name));
    }
}
