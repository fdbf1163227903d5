//! The pair matrix as CSV: one header line, one row per ordered pair, by sender and receiver.
//!
//! Quoting as RFC 4180 section 2, rules 5 to 7; lines end with a bare newline, which every reader takes and which
//! keeps the last column clean for awk and cut. Rates are bits per second in full, not rounded to a prefix. What
//! was not measured is "-", with the reason in the last column, so that no reader can take it for a 0.

use crate::words::{MISSING, host_name, or_missing, rack_of};
use ew_model::Analysis;
use ew_model::analysis::Cell;

const HEADER: &str = "src,dst,src_rack,dst_rack,bits_per_sec,expected_bits_per_sec,ratio,samples,retransmits,rtt_us,missing\n";

pub(crate) fn render(analysis: &Analysis) -> String {
    let mut text = String::from(HEADER);
    for cell in &analysis.cells {
        text.push_str(&row(analysis, cell).map(|f| quoted(&f)).join(","));
        text.push('\n');
    }
    text
}

fn row(analysis: &Analysis, cell: &Cell) -> [String; 11] {
    let inventory = analysis.inventory();
    let ratio = cell
        .bits_per_sec
        .zip(cell.expected_bits_per_sec)
        .filter(|(_, expected)| *expected > 0.0)
        .map(|(measured, expected)| measured / expected);
    [
        host_name(inventory, cell.src),
        host_name(inventory, cell.dst),
        rack_of(inventory, cell.src),
        rack_of(inventory, cell.dst),
        whole(cell.bits_per_sec),
        whole(cell.expected_bits_per_sec),
        or_missing(ratio, |r| format!("{r:.4}")),
        cell.samples.to_string(),
        or_missing(cell.retransmits, |r| r.to_string()),
        or_missing(cell.rtt_us, |r| r.to_string()),
        cell.missing
            .as_deref()
            .map_or_else(String::new, crate::words::one_line),
    ]
}

fn whole(bits_per_sec: Option<f64>) -> String {
    match bits_per_sec.filter(|r| r.is_finite()) {
        Some(rate) => format!("{rate:.0}"),
        None => MISSING.into(),
    }
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader written from RFC 4180's grammar, independent of the writer.
    fn read(line: &str) -> String {
        match line.strip_prefix('"').and_then(|l| l.strip_suffix('"')) {
            Some(inner) => inner.replace("\"\"", "\""),
            None => line.to_owned(),
        }
    }

    proptest! {
        #[test]
        fn quoting_reads_back(field in "[a-z,\"\\n\\r ]{0,20}") {
            prop_assert_eq!(read(&quoted(&field)), field);
        }
    }

    #[test]
    fn only_what_needs_it_is_quoted() {
        assert_eq!(quoted("host1"), "host1");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
