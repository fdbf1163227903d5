//! Reading JSON the way iperf3's peers write it: whole numbers as floats, -1 as 2^64-1, text that
//! is not UTF-8.

use serde_json::{Map, Value};

/// An object, or nothing when the text is not one.
pub(crate) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    // Titles are passed on as the user's terminal encoded them.
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_str(text.trim_end_matches('\0')) {
        Ok(Value::Object(map)) => Some(map),
        _ => None,
    }
}

/// A whole number. What does not fit a signed 64-bit number is what a C cast makes of it: iperf
/// 3.12 sends -1 as 2^64-1.
pub(crate) fn integer(map: &Map<String, Value>, key: &str) -> Option<i64> {
    let number = map.get(key)?.as_number()?;
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    if let Some(wrapped) = number.as_u64() {
        return Some(wrapped.cast_signed());
    }
    let float = number.as_f64()?;
    if !float.is_finite() {
        return None;
    }
    // 1.8446744073709552e19 is how newer versions write the same -1. Other floats saturate.
    if float == 18_446_744_073_709_551_616.0 {
        return Some(-1);
    }
    Some(float as i64)
}

/// A finite number.
pub(crate) fn float(map: &Map<String, Value>, key: &str) -> Option<f64> {
    map.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// `true`, and nothing else.
pub(crate) fn is_true(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key) == Some(&Value::Bool(true))
}

/// A number other than zero, or `true`.
pub(crate) fn is_set(map: &Map<String, Value>, key: &str) -> bool {
    is_true(map, key) || integer(map, key).is_some_and(|number| number != 0)
}

/// A text of at most so many bytes.
pub(crate) fn text(map: &Map<String, Value>, key: &str, most_bytes: usize) -> Option<String> {
    let text = map.get(key)?.as_str()?;
    (text.len() <= most_bytes).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer_of(text: &str) -> Option<i64> {
        integer(
            &object(format!("{{\"a\":{text}}}").as_bytes()).unwrap(),
            "a",
        )
    }

    #[test]
    fn numbers_come_in_every_form_peers_use() {
        assert_eq!(integer_of("10"), Some(10));
        assert_eq!(integer_of("10.0"), Some(10));
        assert_eq!(integer_of("1e+16"), Some(10_000_000_000_000_000));
        assert_eq!(integer_of("18446744073709551615"), Some(-1));
        assert_eq!(integer_of("1.8446744073709552e+19"), Some(-1));
        assert_eq!(integer_of("-1"), Some(-1));
        assert_eq!(integer_of("1e300"), Some(i64::MAX));
    }

    #[test]
    fn a_wrong_type_is_as_good_as_absent() {
        for wrong in ["\"10\"", "true", "null", "[]", "{}"] {
            assert_eq!(integer_of(wrong), None);
        }
    }

    #[test]
    fn text_that_is_not_json_is_no_object() {
        for text in ["", "[]", "1", "{", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}"] {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        let deep = "[".repeat(8000);
        assert_eq!(object(deep.as_bytes()), None);
        assert!(object(b"{\"title\":\"\xff\"}").is_some());
    }
}
