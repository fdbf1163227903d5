//! Human numbers: read as iperf3 reads them, and written as it writes them.
//!
//! Sizes are binary (`128K` is 131072), rates are decimal (`10M` is 10,000,000): `unit_atoi` and `unit_atof_rate`
//! of units.c.

use thiserror::Error;

/// A number that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a number with an optional K, M, G or T behind it")]
pub struct BadNumber(String);

/// Letters of `-f`.
pub const FORMATS: &str = "kmgtKMGT";

/// A rate and what goes with it: `-b 10M/5`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second; 0 is unlimited.
    pub bits_per_sec: u64,
    /// Blocks that are sent back to back; 0 is none named.
    pub burst: u32,
}

/// A number of bytes or blocks: K, M, G and T are powers of 1024.
///
/// # Errors
/// When it is no number, negative, or too large.
pub fn parse_size(text: &str) -> Result<u64, BadNumber> {
    scaled(text, 1024.0)
}

/// A rate: K, M, G and T are powers of 1000; behind a slash the burst.
///
/// # Errors
/// When either part is no number, negative, or too large.
pub fn parse_rate(text: &str) -> Result<Rate, BadNumber> {
    let (rate, burst) = match text.split_once('/') {
        Some((rate, burst)) => {
            let burst = burst.parse().map_err(|_| BadNumber(text.to_owned()))?;
            (rate, burst)
        }
        None => (text, 0),
    };
    Ok(Rate {
        bits_per_sec: scaled(rate, 1000.0)?,
        burst,
    })
}

/// Bytes with a unit that fits: `1.25 GByte`, always in 1024s.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    adaptive(bytes, 1024.0, "Byte")
}

/// A rate in the unit of `-f`: bits in 1000s for small letters and `None`, bytes in 1024s for large ones.
#[must_use]
pub fn rate(bits_per_sec: f64, format: Option<char>) -> String {
    let bytes_per_sec = bits_per_sec / 8.0;
    match format {
        Some(letter @ ('K' | 'M' | 'G' | 'T')) => in_unit(bytes_per_sec, letter, 1024.0, "Byte"),
        Some(letter @ ('k' | 'm' | 'g' | 't')) => in_unit(bits_per_sec, letter, 1000.0, "bit"),
        _ => adaptive(bits_per_sec, 1000.0, "bit"),
    }
}

const PREFIXES: [(&str, char); 5] = [("", ' '), ("K", 'K'), ("M", 'M'), ("G", 'G'), ("T", 'T')];

fn scaled(text: &str, base: f64) -> Result<u64, BadNumber> {
    let bad = || BadNumber(text.to_owned());
    let power = text.chars().next_back().and_then(|last| {
        let last = last.to_ascii_uppercase();
        PREFIXES.iter().position(|(_, letter)| *letter == last)
    });
    let digits = match power {
        Some(power) if power > 0 => &text[..text.len() - 1],
        _ => text,
    };
    let number: f64 = digits.parse().map_err(|_| bad())?;
    let number = number * base.powi(power.unwrap_or(0) as i32);
    if !number.is_finite() || number < 0.0 || number > i64::MAX as f64 {
        return Err(bad());
    }
    Ok(number as u64)
}

fn adaptive(number: f64, base: f64, unit: &str) -> String {
    let mut scaled = number;
    let mut place = 0;
    while scaled >= base && place + 1 < PREFIXES.len() {
        scaled /= base;
        place += 1;
    }
    written(scaled, PREFIXES[place].0, unit)
}

fn in_unit(number: f64, letter: char, base: f64, unit: &str) -> String {
    let letter = letter.to_ascii_uppercase();
    let place = PREFIXES.iter().position(|(_, p)| *p == letter).unwrap_or(0);
    written(number / base.powi(place as i32), PREFIXES[place].0, unit)
}

/// Three significant digits in four places.
fn written(number: f64, prefix: &str, unit: &str) -> String {
    let digits = if number < 9.995 {
        2
    } else if number < 99.95 {
        1
    } else {
        0
    };
    format!("{number:4.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_rates_decimal() {
        assert_eq!(parse_size("128K"), Ok(131_072));
        assert_eq!(parse_size("1.5m"), Ok(1_572_864));
        assert_eq!(parse_size("17"), Ok(17));
        assert_eq!(
            parse_rate("10M"),
            Ok(Rate {
                bits_per_sec: 10_000_000,
                burst: 0
            })
        );
        assert_eq!(
            parse_rate("1g/32"),
            Ok(Rate {
                bits_per_sec: 1_000_000_000,
                burst: 32
            })
        );
    }

    #[test]
    fn what_is_no_number_is_named() {
        for text in ["", "K", "ten", "-1", "1X", "1e999", "nan", "9999999999T"] {
            assert_eq!(parse_size(text), Err(BadNumber(text.into())), "{text}");
        }
        assert!(parse_rate("10M/").is_err() && parse_rate("10M/x").is_err());
    }

    #[test]
    fn numbers_are_written_in_four_places() {
        assert_eq!(bytes(1_062_993_920.0), "1014 MByte");
        assert_eq!(bytes(1_342_177_280.0), "1.25 GByte");
        assert_eq!(bytes(0.0), "0.00 Byte");
        assert_eq!(rate(6_460_000_000.0, None), "6.46 Gbit");
        assert_eq!(rate(44_000_000.0, None), "44.0 Mbit");
        assert_eq!(rate(10_200_000.0, Some('k')), "10200 Kbit");
        assert_eq!(rate(83_886_080.0, Some('M')), "10.0 MByte");
    }
}
