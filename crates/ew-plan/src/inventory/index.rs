//! Node indexes: the numbers in names, with their zero padding.

use std::fmt;

/// Longest number that takes part in ranges; 38 digits always fit an `i128`.
pub(super) const MAX_DIGITS: usize = 38;

/// A number with its zero padding: `7`, `07` and `007` are three different indexes.
///
/// The order is ClusterShell's: shorter before longer, then by value; negative numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Index {
    /// Characters of the written form; negative for negative numbers, so that the derived order is
    /// right.
    signed_width: i16,
    value: i128,
}

impl Index {
    /// A number written with at least `width` digits. Padding has no meaning for negative numbers.
    pub(super) fn new(value: i128, width: usize) -> Self {
        let digits = count_digits(value.unsigned_abs());
        let signed_width = if value < 0 {
            -(digits as i16 + 1)
        } else {
            digits.max(width) as i16
        };
        Self {
            signed_width,
            value,
        }
    }

    /// Reads ASCII digits with their padding; `None` when there are none, too many, or other
    /// characters.
    pub(super) fn from_digits(digits: &str) -> Option<Self> {
        let value = number(digits)?;
        Some(Self::new(value, digits.len()))
    }

    pub(super) fn value(self) -> i128 {
        self.value
    }

    /// Characters of the written form.
    pub(super) fn width(self) -> usize {
        usize::from(self.signed_width.unsigned_abs())
    }

    /// Whether the number begins with a zero that is not its only digit.
    pub(super) fn is_padded(self) -> bool {
        self.value >= 0 && self.width() > count_digits(self.value.unsigned_abs())
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value < 0 {
            write!(f, "{}", self.value)
        } else {
            write!(f, "{:0width$}", self.value, width = self.width())
        }
    }
}

pub(super) fn number(digits: &str) -> Option<i128> {
    let fits = !digits.is_empty() && digits.len() <= MAX_DIGITS;
    if fits && digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().ok()
    } else {
        None
    }
}

fn count_digits(value: u128) -> usize {
    value.checked_ilog10().unwrap_or(0) as usize + 1
}
