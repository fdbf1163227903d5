//! Human numbers: read as iperf3 reads them, and written as it writes them.
//!
//! Sizes are binary (`128K` is 131072), rates are decimal (`10M` is 10,000,000): `unit_atoi` and
//! `unit_atof_rate` of units.c.

use crate::wire::params::MAX_FLOW_LABEL;
use thiserror::Error;

/// A number that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a number with an optional K, M, G or T behind it")]
pub struct BadNumber(String);

/// A type of service or a DSCP that is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadTos {
    /// Not in a byte.
    #[error("\"{0}\" is not a number from 0 to 255 (decimal, 0octal or 0xhexadecimal)")]
    Tos(String),
    /// Not in six bits, and no name.
    #[error("\"{0}\" is neither a number from 0 to 63 nor a name such as cs1, af41 or ef")]
    Dscp(String),
    /// Not in the 20 bits of a flow label, or none.
    #[error("\"{0}\" is not a number from 1 to 1048575 (decimal, 0octal or 0xhexadecimal)")]
    FlowLabel(String),
}

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

/// A type of service from 0 to 255: decimal, octal behind `0`, hexadecimal behind `0x`.
///
/// # Errors
/// When it is none of that.
pub fn parse_tos(text: &str) -> Result<u8, BadTos> {
    let tos = prefixed(text).and_then(|number| number.try_into().ok());
    tos.ok_or_else(|| BadTos::Tos(text.to_owned()))
}

/// An IPv6 flow label from 1 to 2^20 - 1 (RFC 6437), as a number like a type of service.
///
/// # Errors
/// When it is none.
pub fn parse_flow_label(text: &str) -> Result<u32, BadTos> {
    let label = prefixed(text).filter(|label| (1..=MAX_FLOW_LABEL).contains(label));
    label.ok_or_else(|| BadTos::FlowLabel(text.to_owned()))
}

/// A DSCP from 0 to 63, as a number like a type of service or by its name (RFC 2474, 2597, 3246,
/// 5865, 8622).
///
/// # Errors
/// When it is neither.
pub fn parse_dscp(text: &str) -> Result<u8, BadTos> {
    let named = named_dscp(&text.to_ascii_lowercase());
    let numbered = prefixed(text).and_then(|number| number.try_into().ok());
    let found = named.or(numbered).filter(|dscp| *dscp < 64);
    found.ok_or_else(|| BadTos::Dscp(text.to_owned()))
}

/// Bytes with a unit that fits: `1.25 GByte`, always in 1024s.
#[must_use]
pub fn bytes(bytes: f64) -> String {
    adaptive(bytes, 1024.0, "Byte")
}

/// A rate in the unit of `-f`: bits in 1000s for small letters and `None`, bytes in 1024s for large
/// ones.
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

fn prefixed(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn named_dscp(name: &str) -> Option<u8> {
    match (name, name.get(..2), name.get(2..).map(str::as_bytes)) {
        ("ef", ..) => Some(46),
        ("va", ..) => Some(44),
        ("le", ..) => Some(1),
        (_, Some("cs"), Some([class @ b'0'..=b'7'])) => Some((class - b'0') << 3),
        (_, Some("af"), Some([class @ b'1'..=b'4', drop @ b'1'..=b'3'])) => {
            Some(((class - b'0') << 3) | ((drop - b'0') << 1))
        }
        _ => None,
    }
}

fn adaptive(number: f64, base: f64, unit: &str) -> String {
    let mut scaled = number;
    let mut index = 0;
    while scaled >= base && index + 1 < PREFIXES.len() {
        scaled /= base;
        index += 1;
    }
    written(scaled, PREFIXES[index].0, unit)
}

fn in_unit(number: f64, letter: char, base: f64, unit: &str) -> String {
    let letter = letter.to_ascii_uppercase();
    let index = PREFIXES.iter().position(|(_, p)| *p == letter).unwrap_or(0);
    written(number / base.powi(index as i32), PREFIXES[index].0, unit)
}

/// Three significant digits in four columns.
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
    fn types_of_service_come_with_c_prefixes_and_dscps_with_names() {
        assert_eq!(
            ["52", "064", "0x34"].map(parse_tos),
            [Ok(52), Ok(52), Ok(52)]
        );
        assert_eq!(parse_tos("0"), Ok(0));
        assert!(parse_tos("256").is_err() && parse_tos("08").is_err());
        let dscps = ["cs1", "AF41", "ef", "46", "0x2e"].map(parse_dscp);
        assert_eq!(dscps, [Ok(8), Ok(34), Ok(46), Ok(46), Ok(46)]);
        assert!(
            parse_dscp("af44").is_err() && parse_dscp("64").is_err() && parse_dscp("").is_err()
        );
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
