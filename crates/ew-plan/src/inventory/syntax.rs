//! Text into operands: `n[1-4]!n3,@rack1` is a union with `n[1-4]`, a difference with `n3`, a union
//! with `@rack1`.
//!
//! ```text
//! set      := operand ( op operand )*        left to right, blanks around operators ignored
//! op       := ',' union | '!' difference | '&' intersection | '^' symmetric difference
//! operand  := ( text | '[' list ']' )+       a list is followed by text or the end, not a list
//! ```
//!
//! Digits in the text are indexes like those in brackets, so that `r1n[1-2]` has two dimensions.

use super::index::Index;
use super::limits::{MAX_INDEXES, MAX_NODES};
use super::node_set_error::Fault;
use super::ranges::parse_list;
use std::ops::Range;

/// What an operand does to the set on its left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Union,
    Difference,
    Intersection,
    SymmetricDifference,
}

/// Names of one shape: literal text with sets of indexes in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) operator: Operator,
    pub(super) shape: Shape,
    /// One sorted set for each slot in the shape.
    pub(super) indexes: Vec<Vec<Index>>,
    /// Where it is in the text.
    pub(super) span: Range<usize>,
}

/// The literal parts of a name, as one string in which `%s` is an index and `%%` a percent sign.
/// ClusterShell orders sets by such strings, so the same form is used here.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape(String);

/// A part of a [`Shape`].
pub(super) enum Piece<'a> {
    Text(&'a str),
    Slot,
}

/// What a blank inside a set means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blanks {
    /// A mistake, unless it is next to an operator.
    Mistake,
    /// The same as a comma, unless it is next to an operator: group files separate node sets so.
    Separator,
}

/// Cuts a node set into operands. A blank text has none.
///
/// # Errors
/// A [`Fault`] at the spot that is wrong.
pub(super) fn parse(text: &str, blanks: Blanks) -> Result<Vec<Operand>, Fault> {
    let mut operands = Vec::new();
    let mut operator = Operator::Union;
    let mut left = MAX_INDEXES;
    let mut position = skip_blanks(text, 0);
    while position < text.len() {
        let end = operand_end(text, position)?;
        if end == position {
            return Err(missing_operand(text, position));
        }
        operands.push(parse_operand(text, position..end, operator, &mut left)?);
        position = skip_blanks(text, end);
        let Some(next) = text[position..].chars().next() else {
            return Ok(operands);
        };
        operator = match operator_of(next) {
            Some(found) => {
                position = skip_blanks(text, position + next.len_utf8());
                if position == text.len() {
                    return Err(missing_operand(text, position));
                }
                found
            }
            None if blanks == Blanks::Separator => Operator::Union,
            None => return Err(blank_inside(text, end..position)),
        };
    }
    Ok(operands)
}

/// A single name, taken literally but for its digits. Numbers too long for an index stay text.
pub(super) fn parse_name(name: &str) -> (Shape, Box<[Index]>) {
    let mut shape = Shape::default();
    let mut indexes = Vec::new();
    shape.push_text(name, |index| indexes.push(index));
    (shape, indexes.into_boxed_slice())
}

impl Shape {
    /// The name with these indexes in its slots, written by `write`.
    pub(super) fn fill<T>(&self, items: &[T], write: impl Fn(&T) -> String) -> String {
        let mut name = String::new();
        let mut items = items.iter();
        for piece in self.pieces() {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Slot => name.extend(items.next().map(&write)),
            }
        }
        name
    }

    /// Its text and slots, in order.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut rest = self.0.as_str();
        std::iter::from_fn(move || {
            let (piece, bytes) = match rest.find('%') {
                _ if rest.is_empty() => return None,
                None => (Piece::Text(rest), rest.len()),
                Some(0) if rest.starts_with("%s") => (Piece::Slot, 2),
                Some(0) => (Piece::Text("%"), 2),
                Some(at) => (Piece::Text(&rest[..at]), at),
            };
            rest = rest.get(bytes..).unwrap_or("");
            Some(piece)
        })
    }

    /// Bytes of its text, a slot taken for two.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn contains(&self, c: char) -> bool {
        self.0.contains(c)
    }

    pub(super) fn starts_with(&self, c: char) -> bool {
        self.0.starts_with(c)
    }

    fn push_index_slot(&mut self) {
        self.0.push_str("%s");
    }

    /// Appends text, turning its numbers into index slots.
    fn push_text(&mut self, text: &str, mut found: impl FnMut(Index)) {
        let mut rest = text;
        while !rest.is_empty() {
            let letters = rest
                .find(|c: char| c.is_ascii_digit())
                .unwrap_or(rest.len());
            self.0.push_str(&rest[..letters].replace('%', "%%"));
            rest = &rest[letters..];
            let digits = count_leading_digits(rest);
            match Index::from_digits(&rest[..digits]) {
                Some(index) => {
                    self.push_index_slot();
                    found(index);
                }
                None => self.0.push_str(&rest[..digits]),
            }
            rest = &rest[digits..];
        }
    }
}

fn operator_of(c: char) -> Option<Operator> {
    match c {
        ',' => Some(Operator::Union),
        '!' => Some(Operator::Difference),
        '&' => Some(Operator::Intersection),
        '^' => Some(Operator::SymmetricDifference),
        _ => None,
    }
}

fn skip_blanks(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start().len()
}

/// Where the operand that begins at `start` ends: at a blank or an operator outside brackets.
fn operand_end(text: &str, start: usize) -> Result<usize, Fault> {
    let mut open = None;
    for (offset, c) in text[start..].char_indices() {
        let at = start + offset;
        match (c, open) {
            ('[', None) => open = Some(at),
            ('[', Some(open)) => return Err(missing_bracket(text, open, at)),
            (']', Some(_)) => open = None,
            (']', None) => {
                return Err(Fault::new(
                    at..at + 1,
                    "closing bracket without an opening one",
                    "remove `]`, or put `[` before the numbers",
                ));
            }
            (c, None) if c.is_whitespace() || operator_of(c).is_some() => return Ok(at),
            _ => {}
        }
    }
    match open {
        Some(open) => Err(missing_bracket(text, open, text.len())),
        None => Ok(text.len()),
    }
}

fn missing_bracket(text: &str, open: usize, until: usize) -> Fault {
    let list = text[open + 1..until]
        .find(|c: char| !c.is_ascii_digit() && !"-/, ".contains(c))
        .map_or(&text[open + 1..until], |n| &text[open + 1..open + 1 + n])
        .trim_end_matches([',', ' ']);
    let remedy = if list.is_empty() {
        "put `]` behind the numbers, for example `n[1-4]`".to_owned()
    } else if list.ends_with(['-', '/']) {
        format!("finish it with a number and `]`, for example `[{list}9]`")
    } else {
        format!("close it: `[{list}]`")
    };
    Fault::new(
        open..open + 1 + list.len(),
        "missing closing bracket",
        remedy,
    )
}

fn missing_operand(text: &str, position: usize) -> Fault {
    let before = text[..position].trim_end();
    let (at, operator) = match text[position..].chars().next() {
        Some(c) => (position..position + c.len_utf8(), c),
        None => {
            let c = before.chars().next_back().unwrap_or(' ');
            (before.len() - c.len_utf8()..before.len(), c)
        }
    };
    Fault::new(
        at,
        format!("nothing to combine with `{operator}`"),
        format!("write a node set on both sides of `{operator}`, or remove it"),
    )
}

fn blank_inside(text: &str, blank: Range<usize>) -> Fault {
    let left = text[..blank.start]
        .rsplit(|c: char| operator_of(c).is_some())
        .next()
        .unwrap_or("")
        .trim_start();
    let right = text[blank.end..]
        .split(|c: char| operator_of(c).is_some() || c.is_whitespace())
        .next()
        .unwrap_or("");
    let remedy = format!("separate node sets with a comma: `{left},{right}`");
    Fault::new(blank, "blank inside a name", remedy)
}

/// `left` is how many numbers brackets may still list.
fn parse_operand(
    text: &str,
    span: Range<usize>,
    operator: Operator,
    left: &mut usize,
) -> Result<Operand, Fault> {
    let mut shape = Shape::default();
    let mut indexes = Vec::new();
    let mut position = span.start;
    while let Some(open) = find_within(text, position..span.end, '[') {
        // operand_end has made sure that each bracket is closed
        let close = find_within(text, open..span.end, ']').unwrap_or(span.end);
        let behind = (close + 1).min(span.end);
        let lead = open - count_trailing_digits(&text[position..open]);
        let tail = behind + count_leading_digits(&text[behind..span.end]);
        if text[tail..span.end].starts_with('[') {
            return Err(Fault::new(
                behind..tail + 1,
                "bracket directly behind a bracket",
                "write one list, as in `n[1-2,5-6]`, or put text between the brackets, as in `r[1-2]n[5-6]`",
            ));
        }
        shape.push_text(&text[position..lead], |index| indexes.push(vec![index]));
        shape.push_index_slot();
        let list = parse_list(
            &text[open + 1..close],
            open + 1,
            &text[lead..open],
            &text[behind..tail],
        )?;
        *left = left.checked_sub(list.len()).ok_or_else(|| {
            let problem = format!("more than {MAX_NODES} nodes");
            Fault::new(open..behind, problem, "name a smaller set")
        })?;
        indexes.push(list);
        position = tail;
    }
    shape.push_text(&text[position..span.end], |index| indexes.push(vec![index]));
    Ok(Operand {
        operator,
        shape,
        indexes,
        span,
    })
}

fn find_within(text: &str, span: Range<usize>, wanted: char) -> Option<usize> {
    text[span.clone()].find(wanted).map(|n| span.start + n)
}

fn count_leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn count_trailing_digits(text: &str) -> usize {
    text.bytes().rev().take_while(u8::is_ascii_digit).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (Range<usize>, String) {
        let fault = parse(text, Blanks::Mistake).unwrap_err();
        (fault.span, fault.problem)
    }

    #[test]
    fn operators_and_blanks() {
        let operands = parse(" n[1, 2] , m3 ! k ", Blanks::Mistake).unwrap();
        let spans: Vec<_> = operands.iter().map(|o| o.span.clone()).collect();
        assert_eq!(spans, [1..8, 11..13, 16..17]);
        assert_eq!(operands[2].operator, Operator::Difference);
        assert_eq!(parse("  ", Blanks::Mistake), Ok(Vec::new()));
        assert_eq!(parse("a b\n@c", Blanks::Separator).unwrap().len(), 3);
    }

    #[test]
    fn digits_are_dimensions() {
        let operands = parse("r1n[1-2]x%5-ib", Blanks::Mistake).unwrap();
        assert_eq!(operands[0].shape, Shape("r%sn%sx%%%s-ib".into()));
        assert_eq!(operands[0].indexes.len(), 3);
        let (shape, indexes) = parse_name("r1%n02");
        assert_eq!(shape.fill(&indexes, ToString::to_string), "r1%n02");
    }

    #[test]
    fn faults_point_at_the_spot() {
        assert_eq!(fault("n[1-4"), (1..5, "missing closing bracket".into()));
        assert_eq!(
            fault("n[1-4,m[5-6]").0,
            1..5,
            "points at the bracket left open"
        );
        assert_eq!(fault("n1]").0, 2..3);
        assert_eq!(fault("n[1-2][3-4]").0, 6..7);
        assert_eq!(fault("n[1-2]5[3-4]").0, 6..8);
        assert_eq!(fault("n1 n2"), (2..3, "blank inside a name".into()));
        assert_eq!(fault("n1,,n2").0, 3..4);
        assert_eq!(fault("n1,").0, 2..3);
        assert_eq!(fault("!n1").0, 0..1);
        assert_eq!(fault("n[]").1, "empty range");
        assert_eq!(fault("k1,host[302,305-0333].x").0, 12..20);
    }
}
