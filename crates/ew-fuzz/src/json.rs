//! Damage that a fuzzer of bytes rarely finds: text that is JSON still, with one value that is
//! wrong.

use serde_json::Value;

/// What takes the place of a value. The largest is the last whole number that a float has: sums of
/// more wrap in the binary that is shipped, and are nothing that was measured.
const REPLACEMENTS: [&str; 16] = [
    "null",
    "0",
    "1",
    "2",
    "-1",
    "4294967295",
    "9007199254740992",
    "-9007199254740992",
    "1e308",
    "-0.5",
    "1e-9",
    "true",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
];

/// The text with one value of one of its lines of JSON replaced, or with a list's elements twice or
/// backwards. The seed chooses. `None` when no line is JSON.
#[must_use]
pub fn damaged(text: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut draw = Draw(u64::from(seed));
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let candidates: Vec<usize> = (0..lines.len())
        .filter(|at| lines[*at].first() == Some(&b'{'))
        .collect();
    let at = *candidates.get(draw.below(candidates.len()))?;
    let mut value: Value = serde_json::from_slice(lines[at]).ok()?;
    let mut left = draw.below(count(&value));
    damage(&mut value, &mut left, &mut draw);
    let line = value.to_string();
    lines[at] = line.as_bytes();
    Some(lines.join(&b'\n'))
}

/// Numbers from a seed, by Steele's SplitMix64.
struct Draw(u64);

impl Draw {
    /// 0 for a limit of 0.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }
}

/// The value and all in it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

/// Damages the value that comes after `left` others. Whether it was there.
fn damage(value: &mut Value, left: &mut usize, draw: &mut Draw) -> bool {
    if *left == 0 {
        change(value, draw);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| damage(item, left, draw)),
        Value::Object(fields) => fields.values_mut().any(|field| damage(field, left, draw)),
        _ => false,
    }
}

fn change(value: &mut Value, draw: &mut Draw) {
    match (value, draw.below(3)) {
        (Value::Array(items), 0) => items.extend(items.clone()),
        (Value::Array(items), 1) => items.reverse(),
        (value, _) => {
            let replacement = REPLACEMENTS[draw.below(REPLACEMENTS.len())];
            *value = serde_json::from_str(replacement).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_value_is_another_and_the_rest_is_as_it_was() {
        let text = b"=== a\n{\"a\":[1,2],\"b\":\"c\"}\nrest";
        let all: BTreeSet<Vec<u8>> = (0..2000).filter_map(|seed| damaged(text, seed)).collect();
        let is = |line: &str| all.contains(format!("=== a\n{line}\nrest").as_bytes());
        assert!(is(r#"{"a":[1,2],"b":null}"#) && is(r#"{"a":[1,-0.5],"b":"c"}"#));
        assert!(is(r#"{"a":[2,1],"b":"c"}"#) && is(r#"{"a":[1,2,1,2],"b":"c"}"#));
        assert!(is("4294967295") && is(r#"{"a":{},"b":"c"}"#));
        assert_eq!(damaged(b"no JSON\n", 7), None);
    }
}
