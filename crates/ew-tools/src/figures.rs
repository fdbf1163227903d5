//! Records from the few figures that tools report.

use crate::tool::BothEnds;
use ew_model::record::{EndRecord, Reported};
use ew_model::workload::Workload;

const NS_PER_SECOND: f64 = 1e9;

/// Bulk data, as many bytes at both ends over the same time.
pub(crate) fn bulk(bytes: u64, window_ns: u64, reported: Reported) -> BothEnds {
    let end = EndRecord {
        bytes,
        window_ns,
        ..EndRecord::default()
    };
    BothEnds {
        sender: EndRecord {
            reported: Some(reported),
            ..end.clone()
        },
        receiver: end,
    }
}

/// Bulk data of a tool that reports a rate and no bytes: they follow from it over the planned
/// window.
pub(crate) fn bulk_of_rate(bits_per_sec: f64, window_ns: u64, reported: Reported) -> BothEnds {
    let bytes = bits_per_sec / 8.0 * window_ns as f64 / NS_PER_SECOND;
    bulk(bytes.round() as u64, window_ns, reported)
}

/// Transactions: how many in which time. A tool that reports neither has a window of 0, which gives
/// no rate.
pub(crate) fn transactions(
    workload: &Workload,
    counted: Option<(u64, u64)>,
    reported: Reported,
) -> BothEnds {
    let (count, window_ns) = counted.unzip();
    let end = EndRecord {
        bytes: count.unwrap_or(0).saturating_mul(workload.message_bytes),
        window_ns: window_ns.unwrap_or(0),
        ..EndRecord::default()
    };
    BothEnds {
        sender: EndRecord {
            transactions: count,
            reported: Some(reported),
            ..end.clone()
        },
        receiver: end,
    }
}

/// How long it takes to move so many bytes at a rate. 0 without a rate.
pub(crate) fn time_of_bytes_ns(bytes: u64, bits_per_sec: f64) -> u64 {
    if bits_per_sec > 0.0 {
        (bytes as f64 * 8.0 / bits_per_sec * NS_PER_SECOND).round() as u64
    } else {
        0
    }
}

/// Seconds as nanoseconds.
pub(crate) fn seconds_ns(seconds: f64) -> u64 {
    (seconds.max(0.0) * NS_PER_SECOND).round() as u64
}

/// Microseconds as nanoseconds.
pub(crate) fn micros_ns(micros: f64) -> u64 {
    seconds_ns(micros / 1e6)
}

/// The number after a label, wherever it is: `RunTime=` in `[Total Run] RunTime=1.001 sec;`.
pub(crate) fn number_after(text: &str, label: &str) -> Option<f64> {
    let (_, after) = text.split_once(label)?;
    let after = after.trim_start();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
    after[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_after_its_label() {
        let text = "[Valid Duration] RunTime=0.545 sec; SentMessages=9175;";
        assert_eq!(number_after(text, "RunTime="), Some(0.545));
        assert_eq!(number_after(text, "SentMessages="), Some(9175.0));
        assert_eq!(number_after(text, "Lost="), None);
        assert_eq!(number_after("a=\u{1b}x", "a="), None);
    }

    #[test]
    fn a_time_and_a_rate_give_each_other() {
        assert_eq!(time_of_bytes_ns(125_000_000, 1e9), 1_000_000_000);
        assert_eq!(time_of_bytes_ns(1, 0.0), 0);
        let ends = bulk_of_rate(8e9, 500_000_000, Reported::default());
        assert_eq!(ends.receiver.bytes, 500_000_000);
    }
}
