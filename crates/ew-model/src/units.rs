//! Rates, sizes and durations as people write them, and back.
//!
//! Rates are decimal bits per second (`10G` is 10^10 b/s), unless their unit says bytes (`1GB/s`);
//! sizes are binary (`1M`, `1MiB` are 2^20 bytes).

use thiserror::Error;

/// A quantity that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{input}` is not {} {what}; write it like {example}", article(.what))]
pub struct UnitError {
    /// What was given.
    pub input: String,
    /// What was expected, for example "rate" or "size".
    pub what: &'static str,
    /// How to write it.
    pub example: &'static str,
}

fn article(noun: &str) -> &'static str {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    if is_vowel { "an" } else { "a" }
}

/// Smaller rates need a unit: `10` is a slip for `10G`, not ten bits per second.
const SMALLEST_BARE_RATE: f64 = 1e6;

/// Reads a rate in bits per second: `10G`, `200M`, `9.4Gb/s`, `25Gbit`, `100b/s`, `1000000`. With
/// `B/s` or `Bps` it is in bytes: `1.25GB/s` is `10G`.
///
/// # Errors
/// [`UnitError`] when the text is not a positive, finite rate, or a number below a million without
/// a unit.
pub fn parse_bits_per_sec(text: &str) -> Result<f64, UnitError> {
    let wrong = |what| UnitError {
        input: text.into(),
        what,
        example: "10G, 200M or 2.5Gb/s",
    };
    let error = || wrong("rate");
    let (number, unit) = split_number(text).ok_or_else(error)?;
    if unit.is_empty() && (0.0..SMALLEST_BARE_RATE).contains(&number) && number > 0.0 {
        return Err(wrong("rate with a unit"));
    }
    let (prefix, bits) = split_unit_of_rate(unit).unwrap_or((unit, 1.0));
    let factor = match prefix.to_ascii_lowercase().as_str() {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => return Err(error()),
    };
    positive(number * factor * bits).ok_or_else(error)
}

/// A unit that says what it counts: its prefix, and the bits of each. `GB/s` and `GBps` are bytes,
/// `Gb/s`, `Gbps` and `Gbit` are bits.
fn split_unit_of_rate(unit: &str) -> Option<(&str, f64)> {
    let lower = unit.to_ascii_lowercase();
    let suffixes = ["bits/s", "bit/s", "bit", "b/s", "bps"];
    let suffix = suffixes.iter().find(|suffix| lower.ends_with(*suffix))?;
    let (prefix, of) = unit.split_at(unit.len() - suffix.len());
    let is_bytes = of.starts_with('B') && !suffix.starts_with("bit");
    Some((prefix, if is_bytes { 8.0 } else { 1.0 }))
}

/// Reads a size in bytes, binary prefixes: `128K`, `1MiB`, `64`, `2GB`.
///
/// # Errors
/// [`UnitError`] when the text is not a size of at least one byte that fits 63 bits.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError {
        input: text.into(),
        what: "size",
        example: "128K, 1MiB or 65536",
    };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let factor = match unit
        .to_ascii_lowercase()
        .trim_end_matches('b')
        .trim_end_matches('i')
    {
        "" => 1.0,
        "k" => 1024.0,
        "m" => 1024.0 * 1024.0,
        "g" => 1024.0 * 1024.0 * 1024.0,
        "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(error()),
    };
    let bytes = positive(number * factor).ok_or_else(error)?;
    if !(1.0..9e18).contains(&bytes) {
        return Err(error());
    }
    Ok(bytes as u64)
}

/// Reads an amount of data or a rate of storage, as disks are sold: `10TB` and `1.2GB/s` are
/// decimal, `64MiB` is binary, `10Gb/s` is in bits. What the unit is per (`/s`) is the caller's.
///
/// # Errors
/// [`UnitError`] when the text is not a positive, finite amount.
pub fn parse_storage_bytes(text: &str) -> Result<f64, UnitError> {
    let error = || UnitError {
        input: text.into(),
        what: "amount of data",
        example: "10TB, 500GB, 1.2GB/s or 64MiB",
    };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let (unit, bits) = split_unit_of_rate(unit).unwrap_or_else(|| {
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        (unit.strip_suffix(['b', 'B']).unwrap_or(unit), 8.0)
    });
    let unit = unit.to_ascii_lowercase();
    let (prefix, base) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, 1024.0f64),
        None => (unit.as_str(), 1000.0),
    };
    let exponent = ["", "k", "m", "g", "t", "p"]
        .iter()
        .position(|known| *known == prefix)
        .ok_or_else(error)?;
    positive(number * base.powi(exponent as i32) * bits / 8.0).ok_or_else(error)
}

/// `1.20 GB/s`: three significant digits, decimal prefix.
#[must_use]
pub fn format_bytes_per_sec(rate: f64) -> String {
    let (value, prefix) = decimal_prefix(rate);
    format!("{} {prefix}B/s", three_digits(value))
}

/// Reads a duration into nanoseconds: `2s`, `500ms`, `1.5s`, `5m`, `1h`, `250us`; a bare number is
/// seconds.
///
/// # Errors
/// [`UnitError`] when the text is not a duration of 0 s to 30 days.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    let error = || UnitError {
        input: text.into(),
        what: "duration",
        example: "2s, 500ms, 1.5m or 1h",
    };
    let (number, unit) = split_number(text).ok_or_else(error)?;
    let factor = match unit {
        "" | "s" | "sec" => 1e9,
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "d" => 86_400e9,
        _ => return Err(error()),
    };
    let ns = number * factor;
    if !(0.0..=30.0 * 86_400e9).contains(&ns) {
        return Err(error());
    }
    Ok(ns.round() as u64)
}

/// `9.41 Gb/s`: three significant digits, decimal prefix.
#[must_use]
pub fn format_bits_per_sec(rate: f64) -> String {
    let (value, prefix) = decimal_prefix(rate);
    format!("{} {prefix}b/s", three_digits(value))
}

/// `1.05`, `12.3`, `586`: how many times, in three significant digits.
#[must_use]
pub fn format_factor(factor: f64) -> String {
    three_digits(factor)
}

/// `2.40 GHz`: three significant digits, decimal prefix.
#[must_use]
pub fn format_hertz(frequency_hz: f64) -> String {
    let (value, prefix) = decimal_prefix(frequency_hz);
    format!("{} {prefix}Hz", three_digits(value))
}

/// `1.50 MiB`: three significant digits, binary prefix.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    const PREFIXES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut index = 0;
    while value >= 1024.0 && index + 1 < PREFIXES.len() {
        value /= 1024.0;
        index += 1;
    }
    if index == 0 {
        format!("{bytes} B")
    } else {
        format!("{} {}", three_digits(value), PREFIXES[index])
    }
}

/// `64 KiB`, `65539 B`: to the byte, with a prefix only where it hides none.
#[must_use]
pub fn format_whole_bytes(bytes: u64) -> String {
    const PREFIXES: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |(unit, _): &&(u64, &str)| bytes > 0 && bytes.is_multiple_of(*unit);
    match PREFIXES.iter().find(fits) {
        Some((unit, prefix)) => format!("{} {prefix}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// `1.50 s`, `230 µs`, `2 min 5 s`.
#[must_use]
pub fn format_duration_ns(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{} µs", three_digits(value / 1e3)),
        1_000_000..1_000_000_000 => format!("{} ms", three_digits(value / 1e6)),
        1_000_000_000..120_000_000_000 => format!("{} s", three_digits(value / 1e9)),
        120_000_000_000..7_200_000_000_000 => {
            let seconds = ns / 1_000_000_000;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
        _ => {
            let minutes = ns / 60_000_000_000;
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}

fn decimal_prefix(value: f64) -> (f64, &'static str) {
    match value.abs() {
        v if v >= 999.5e9 => (value / 1e12, "T"),
        v if v >= 999.5e6 => (value / 1e9, "G"),
        v if v >= 999.5e3 => (value / 1e6, "M"),
        v if v >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    }
}

/// `191`, `9.41`, `0.05`: three significant digits, but never more than two decimals nor less than
/// a whole number.
#[must_use]
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_decimal() {
        assert_eq!(parse_bits_per_sec("10G"), Ok(1e10));
        assert_eq!(parse_bits_per_sec("2.5Gb/s"), Ok(2.5e9));
        assert_eq!(parse_bits_per_sec("200Mbit"), Ok(2e8));
        assert!(parse_bits_per_sec("fast").is_err());
        assert!(parse_bits_per_sec("0").is_err());
        assert_eq!(parse_bits_per_sec("1000000"), Ok(1e6));
        assert_eq!(parse_bits_per_sec("10b/s"), Ok(10.0));
        let bare = parse_bits_per_sec("10").unwrap_err().to_string();
        assert!(bare.starts_with("`10` is not a rate with a unit; write it like 10G"));
        assert_eq!(format_bits_per_sec(191.3e6), "191 Mb/s");
        assert_eq!(format_bits_per_sec(9.4149e9), "9.41 Gb/s");
        assert_eq!(format_bits_per_sec(999_700.0), "1.00 Mb/s");
        assert_eq!(format_hertz(2_445_428_000.0), "2.45 GHz");
    }

    #[test]
    fn bytes_and_bits_per_second_are_a_factor_of_eight_apart() {
        for bits in [
            "10G", "10g", "10Gbit", "10Gbps", "10gbps", "10 Gb/s", "10GBIT/s",
        ] {
            assert_eq!(parse_bits_per_sec(bits), Ok(1e10), "{bits}");
        }
        for bytes in ["1.25GB/s", "1.25gB/s", "1.25GBps"] {
            assert_eq!(parse_bits_per_sec(bytes), Ok(1e10), "{bytes}");
            assert_eq!(parse_storage_bytes(bytes), Ok(1.25e9), "{bytes}");
        }
        for bits in ["10Gb/s", "10Gbps", "10Gbit/s"] {
            assert_eq!(parse_storage_bytes(bits), Ok(1.25e9), "{bits}");
        }
        assert_eq!(parse_storage_bytes("1.25gb"), Ok(1.25e9));
        assert!(parse_bits_per_sec("10GBB/s").is_err());
        assert!(parse_storage_bytes("10GBB/s").is_err());
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(parse_bytes("128K"), Ok(131_072));
        assert_eq!(parse_bytes("1MiB"), Ok(1_048_576));
        assert_eq!(parse_bytes("64"), Ok(64));
        assert!(parse_bytes("0").is_err());
        assert_eq!(format_bytes(1_572_864), "1.50 MiB");
    }

    #[test]
    fn storage_is_sold_in_decimal_units() {
        assert_eq!(parse_storage_bytes("10TB"), Ok(10e12));
        assert_eq!(parse_storage_bytes("1.2GB/s"), Ok(1.2e9));
        assert_eq!(parse_storage_bytes("64MiB"), Ok(67_108_864.0));
        assert_eq!(parse_storage_bytes("512"), Ok(512.0));
        let error = parse_storage_bytes("10Tb5").unwrap_err().to_string();
        assert!(
            error.starts_with("`10Tb5` is not an amount of data;"),
            "{error}"
        );
        assert!(parse_storage_bytes("0GB").is_err());
        assert_eq!(format_bytes_per_sec(5.5556e9), "5.56 GB/s");
    }

    #[test]
    fn durations_take_units() {
        assert_eq!(parse_duration_ns("1.5s"), Ok(1_500_000_000));
        assert_eq!(parse_duration_ns("500ms"), Ok(500_000_000));
        assert_eq!(parse_duration_ns("2"), Ok(2_000_000_000));
        assert!(parse_duration_ns("-1s").is_err());
        assert!(parse_duration_ns("1y").is_err());
        assert_eq!(format_duration_ns(125_000_000_000), "2 min 5 s");
    }
}
