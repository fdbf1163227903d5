//! Lines of CSV and the fields in them, the same in every table.
//!
//! Quoting as RFC 4180 section 2, rules 5 to 7; lines end with a bare newline, which every reader
//! takes and which keeps the last column clean for awk and cut.

use crate::words::MISSING;

/// Adds a line of quoted fields.
pub(crate) fn push_line(text: &mut String, fields: impl Iterator<Item = String>) {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    text.push_str(&fields.join(","));
    text.push('\n');
}

/// A rate or an amount without decimals.
pub(crate) fn whole(value: Option<f64>) -> String {
    match value.filter(|r| r.is_finite()) {
        Some(rate) => format!("{rate:.0}"),
        None => MISSING.into(),
    }
}

/// A field as RFC 4180 has it. Words that a spreadsheet would take for a formula get an apostrophe
/// before them: names come from inventories and hosts.
fn quoted(field: &str) -> String {
    let is_formula = field.len() > 1 && field.starts_with(['=', '+', '-', '@', '\t']);
    let field = &match is_formula && field.parse::<f64>().is_err() {
        true => format!("'{field}"),
        false => field.to_owned(),
    };
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
        assert_eq!(quoted("=HYPERLINK(1)"), "'=HYPERLINK(1)");
        assert_eq!((&*quoted("-0.5"), &*quoted("-")), ("-0.5", "-"));
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
