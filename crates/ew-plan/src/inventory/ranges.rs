//! The range lists between brackets: `1-4,08,10-20/2`.

use super::folding::runs;
use super::index::{Index, MAX_DIGITS, number};
use super::limits::MAX_NODES;
use super::node_set_error::Fault;
use std::ops::Range;

/// One element of a range list, as written.
struct Element {
    begin: Bound,
    end: Bound,
    /// `None` when no step is written.
    step: Option<i128>,
    /// Whether there is a dash.
    is_span: bool,
    at: Range<usize>,
}

/// A number as written.
struct Bound {
    negative: bool,
    digits: String,
}

/// Reads a range list, with the digits that are directly before and behind its brackets, which
/// belong to the numbers: `n0[1-2]` is `n[01-02]`, `n[1-2]0` is `n[10,20]`. `offset` is where
/// `list` begins in the input.
///
/// # Errors
/// A [`Fault`] at the element that is wrong.
pub(super) fn parse_list(
    list: &str,
    offset: usize,
    leading: &str,
    trailing: &str,
) -> Result<Vec<Index>, Fault> {
    let mut indexes = Vec::new();
    let mut start = 0;
    for part in list.split(',') {
        let element = parse_element(part, offset + start)?;
        element.check()?;
        let element = element.with_trailing(trailing)?;
        element.enumerate_into(&mut indexes)?;
        start += part.len() + 1;
    }
    indexes.sort_unstable();
    indexes.dedup();
    if leading.is_empty() {
        return Ok(indexes);
    }
    prefixed(&indexes, leading, offset..offset + list.len())
}

fn parse_element(part: &str, offset: usize) -> Result<Element, Fault> {
    let text = part.trim();
    let begin = offset + (part.len() - part.trim_start().len());
    let at = begin..begin + text.len();
    if text.is_empty() {
        return Err(Fault::new(
            offset..offset + part.len(),
            "empty range",
            "write numbers between the brackets and between commas, for example `[1-4,7]`",
        ));
    }
    let (bounds, step) = match text.split_once('/') {
        Some((bounds, step)) => (bounds, Some(parse_step(step, &at)?)),
        None => (text, None),
    };
    let parts: Vec<&str> = bounds.split('-').map(str::trim).collect();
    let (begin, end) = match parts.as_slice() {
        [a] => ((false, *a), (false, *a)),
        ["", a] => ((true, *a), (true, *a)),
        [a, b] => ((false, *a), (false, *b)),
        ["", a, b] => ((true, *a), (false, *b)),
        ["", a, "", b] => ((true, *a), (true, *b)),
        _ => return Err(not_a_range(text, &at)),
    };
    let bound = |(negative, digits): (bool, &str)| {
        number(digits).map(|_| Bound {
            negative,
            digits: digits.to_owned(),
        })
    };
    match (bound(begin), bound(end)) {
        (Some(begin), Some(end)) => Ok(Element {
            begin,
            end,
            step,
            is_span: parts.len() > 1,
            at,
        }),
        _ => Err(not_a_range(text, &at)),
    }
}

fn parse_step(step: &str, at: &Range<usize>) -> Result<i128, Fault> {
    let step = step.trim();
    match number(step) {
        Some(value) if value > 0 => Ok(value),
        _ => Err(Fault::new(
            at.clone(),
            format!("invalid step `{step}`"),
            "a step is a whole number of at least 1, for example `[1-9/2]`",
        )),
    }
}

fn not_a_range(text: &str, at: &Range<usize>) -> Fault {
    let longest = text
        .split(|c: char| !c.is_ascii_digit())
        .map(str::len)
        .max();
    if longest.is_some_and(|n| n > MAX_DIGITS) {
        return Fault::new(
            at.clone(),
            format!("number of more than {MAX_DIGITS} digits"),
            "write such names out one by one, separated by commas",
        );
    }
    Fault::new(
        at.clone(),
        format!("`{text}` is not a number or a range"),
        "between brackets are numbers and ranges separated by commas: `[1-4,7,10-20/2]`; names go outside",
    )
}

impl Element {
    /// ClusterShell's rules: both ends padded alike, ascending, a step only with a range.
    fn check(&self) -> Result<(), Fault> {
        let (begin, end) = (&self.begin, &self.end);
        if (begin.is_padded() || end.is_padded()) && begin.digits.len() != end.digits.len() {
            let (first, last) = (begin.bare(), end.bare());
            let width = begin.digits.len().max(end.digits.len());
            return Err(self.fault(
                format!(
                    "padding mismatch: `{}` has {} digit{}, `{}` has {}",
                    begin.digits,
                    begin.digits.len(),
                    if begin.digits.len() == 1 { "" } else { "s" },
                    end.digits,
                    end.digits.len()
                ),
                format!("write {first}-{last} or {first:0>width$}-{last:0>width$}"),
            ));
        }
        if begin.is_padded() && begin.negative {
            return Err(self.fault(
                "negative number with leading zeros",
                "write it without zeros",
            ));
        }
        if begin.value() > end.value() {
            return Err(self.fault(
                format!(
                    "range runs backwards: {} is above {}",
                    begin.value(),
                    end.value()
                ),
                format!("write {}-{}", end.written(), begin.written()),
            ));
        }
        if !self.is_span && self.step.is_some_and(|s| s != 1) {
            return Err(self.fault(
                "step without a range",
                format!(
                    "a step needs a first and a last number, for example `{}-{}/2`",
                    begin.bare(),
                    begin.value() + 8
                ),
            ));
        }
        Ok(())
    }

    /// Appends the digits that are behind the bracket to every number, which multiplies the step.
    fn with_trailing(mut self, trailing: &str) -> Result<Self, Fault> {
        if trailing.is_empty() {
            return Ok(self);
        }
        if self.step.is_some() {
            return Err(self.fault(
                format!("digits `{trailing}` behind a range with a step"),
                "put the digits into the numbers, for example `n[10-30/10]` for 10, 20 and 30",
            ));
        }
        if self.begin.negative || self.end.negative {
            return Err(self.fault(
                format!("digits `{trailing}` behind a negative range"),
                "put the digits into the numbers",
            ));
        }
        if self.end.digits.len() + trailing.len() > MAX_DIGITS {
            return Err(self.fault(
                format!("number of more than {MAX_DIGITS} digits"),
                "write such names out one by one, separated by commas",
            ));
        }
        self.begin.digits.push_str(trailing);
        self.end.digits.push_str(trailing);
        if self.is_span {
            self.step = Some(10_i128.pow(trailing.len() as u32));
        }
        self.check()?;
        Ok(self)
    }

    fn enumerate_into(&self, indexes: &mut Vec<Index>) -> Result<(), Fault> {
        let (first, last) = (self.begin.value(), self.end.value());
        let step = self.step.unwrap_or(1);
        let width = if self.begin.is_padded() {
            self.begin.digits.len()
        } else {
            0
        };
        let distance = last.saturating_sub(first);
        if distance / step >= (MAX_NODES.saturating_sub(indexes.len())) as i128 {
            return Err(self.fault(format!("more than {MAX_NODES} nodes"), "name a smaller set"));
        }
        let mut value = first;
        while value <= last {
            indexes.push(Index::new(value, width));
            value = value.saturating_add(step);
        }
        Ok(())
    }

    fn fault(&self, problem: impl Into<String>, remedy: impl Into<String>) -> Fault {
        Fault::new(self.at.clone(), problem, remedy)
    }
}

impl Bound {
    fn value(&self) -> i128 {
        let value = number(&self.digits).unwrap_or(0);
        if self.negative { -value } else { value }
    }

    fn is_padded(&self) -> bool {
        self.digits.len() > 1 && self.digits.starts_with('0')
    }

    /// Without padding.
    fn bare(&self) -> String {
        self.value().to_string()
    }

    fn written(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}", self.digits)
    }
}

/// Puts the digits that are before the bracket in front of every number.
///
/// ClusterShell does so with the two ends of each run only, so that `n1[9-10]` becomes `n19` to
/// `n110`; where that differs from what is written, neither reading is taken.
fn prefixed(indexes: &[Index], leading: &str, at: Range<usize>) -> Result<Vec<Index>, Fault> {
    let runs = runs(indexes);
    for run in &runs {
        if run.first.value() < 0 {
            return Err(Fault::new(
                at,
                format!("digits `{leading}` before a negative range"),
                "put the digits into the numbers",
            ));
        }
        if run.first.width() != run.last.width() {
            let (first, last) = (run.first, run.last);
            // With zeros in front, a range needs both ends to be of one length.
            let bare = leading.trim_start_matches('0');
            let end = format!("{bare}{last}");
            let is_padded = leading.starts_with('0');
            let width = if is_padded { end.len() } else { 0 };
            let begin = format!("{:0>width$}", format!("{bare}{first}"));
            return Err(Fault::new(
                at,
                format!(
                    "digits `{leading}` before numbers of different lengths, {first} to {last}"
                ),
                format!(
                    "write all numbers out inside the brackets: `[{leading}{first},...,{leading}{last}]` if {leading} \
                     followed by each number is meant, `[{begin}-{end}]` for everything between"
                ),
            ));
        }
    }
    indexes
        .iter()
        .map(|index| Index::from_digits(&format!("{leading}{index}")))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| {
            Fault::new(
                at,
                format!("number of more than {MAX_DIGITS} digits"),
                "write such names out one by one, separated by commas",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<String, Fault> {
        let indexes = parse_list(text, 0, "", "")?;
        Ok(indexes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn ranges_steps_padding_and_signs() {
        assert_eq!(list("1-8/3").unwrap(), "1 4 7");
        assert_eq!(list("08-10").unwrap(), "08 09 10");
        assert_eq!(list("9-10,08").unwrap(), "9 08 10");
        assert_eq!(list("-2-2").unwrap(), "-2 -1 0 1 2");
        assert_eq!(list("-3--2, -10").unwrap(), "-10 -3 -2");
        assert_eq!(list("4/1").unwrap(), "4");
    }

    #[test]
    fn padding_mismatch_says_both_ways_out() {
        let fault = list("302,304,305-0333").unwrap_err();
        assert_eq!(fault.span, 8..16);
        assert_eq!(fault.remedy, "write 305-333 or 0305-0333");
    }

    #[test]
    fn advice_for_doubtful_digits_can_be_taken() {
        for (leading, text, advice) in [
            ("0", "1-10", "[01-10]"),
            ("01", "9-10", "[019-110]"),
            ("1", "9-10", "[19-110]"),
        ] {
            let fault = parse_list(text, 0, leading, "").unwrap_err();
            let expected = format!("`{advice}` for everything between");
            assert!(fault.remedy.ends_with(&expected), "{}", fault.remedy);
            assert!(list(advice.trim_matches(['[', ']'])).is_ok());
        }
        assert!(
            list("1-010")
                .unwrap_err()
                .problem
                .contains("`1` has 1 digit, ")
        );
    }

    #[test]
    fn adjacent_digits_join_the_numbers() {
        let join = |leading, trailing, text| parse_list(text, 0, leading, trailing);
        assert_eq!(
            join("00", "", "00-02").unwrap(),
            parse_list("0000-0002", 0, "", "").unwrap()
        );
        assert_eq!(
            join("", "5", "1-10").unwrap(),
            parse_list("15-105/10", 0, "", "").unwrap()
        );
        assert!(join("", "5", "1-4/2").is_err());
        assert!(join("", "5", "0-10").is_err());
        assert!(join("1", "", "9-10").is_err());
        assert!(join("1", "", "9,10").is_err());
        assert!(join("1", "", "-2-2").is_err());
    }

    #[test]
    fn sizes_are_bounded() {
        assert!(list("0-999999").is_ok());
        assert!(list("0-1000000").is_err());
        assert!(list("0-99999999999999999999999999999999999999").is_err());
        assert_eq!(
            list("0-99999999999999999999999999999999999999/99999999999999999999999999999999999999")
                .unwrap(),
            "0 99999999999999999999999999999999999999"
        );
        assert!(list("123456789012345678901234567890123456789").is_err());
    }
}
