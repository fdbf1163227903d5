//! Single values and mappings of a scenario file: read, compared with their bounds, or refused with
//! the source location.

use super::error::{ScenarioError, SourceLocation};
use super::tree::{Content, Node};
use ew_model::units::{self, UnitError, format_bytes, format_duration_ns};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Refuses anything but a mapping of the known keys.
pub(super) fn only_known(node: &Node, inside: &str, known: &[&str]) -> Result<(), ScenarioError> {
    let Some(entries) = node.entries() else {
        return Err(ScenarioError::value(
            node.location.clone(),
            inside,
            format!("{} is not a mapping", node.kind()),
            format!("`key: value` lines; known keys: {}", known.join(", ")),
        ));
    };
    match entries.iter().find(|e| !known.contains(&e.key.as_str())) {
        None => Ok(()),
        Some(entry) => Err(ScenarioError::unknown_key(
            entry.key_location.clone(),
            &entry.key,
            inside,
            known,
        )),
    }
}

/// The index of a word in its choices.
pub(super) fn choice(node: &Node, what: &str, known: &[&str]) -> Result<usize, ScenarioError> {
    let word = text(node, what)?;
    known
        .iter()
        .position(|k| *k == word)
        .ok_or_else(|| ScenarioError::unknown_word(node.location.clone(), word, what, known))
}

/// `on` or `off`; YAML's own booleans count, too.
pub(super) fn switch(node: &Node, key: &str) -> Result<bool, ScenarioError> {
    match text(node, key)? {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        word => {
            let (location, what) = (node.location.clone(), format!("value for `{key}`"));
            let known = ["on", "off"];
            Err(ScenarioError::unknown_word(location, word, &what, &known))
        }
    }
}

/// A whole number in bounds.
pub(super) fn count<N>(
    node: &Node,
    key: &str,
    bounds: RangeInclusive<N>,
) -> Result<N, ScenarioError>
where
    N: FromStr + PartialOrd + Display,
{
    let word = text(node, key)?;
    match word.parse() {
        Ok(value) if bounds.contains(&value) => Ok(value),
        _ => Err(ScenarioError::value(
            node.location.clone(),
            key,
            format!("`{word}` does not fit"),
            format!("a whole number from {} to {}", bounds.start(), bounds.end()),
        )),
    }
}

/// A size in bounds, bytes.
pub(super) fn size(
    node: &Node,
    key: &str,
    bounds: RangeInclusive<u64>,
) -> Result<u64, ScenarioError> {
    match quantity(Some(node), key, units::parse_bytes)? {
        Some(bytes) if bounds.contains(&bytes) => Ok(bytes),
        bytes => Err(ScenarioError::value(
            node.location.clone(),
            key,
            format!("{} does not fit", whole_size(bytes.unwrap_or_default())),
            format!(
                "{} to {}",
                whole_size(*bounds.start()),
                whole_size(*bounds.end())
            ),
        )),
    }
}

/// To the byte, where a prefix would hide some.
fn whole_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) {
        format_bytes(bytes)
    } else {
        format!("{bytes} B")
    }
}

/// A scalar's text.
pub(super) fn text<'a>(node: &'a Node, key: &str) -> Result<&'a str, ScenarioError> {
    node.text().ok_or_else(|| {
        let problem = format!("{} is not a single value", node.kind());
        ScenarioError::value(node.location.clone(), key, problem, "one word or number")
    })
}

/// A scalar's text, trimmed; empty when there is none.
pub(super) fn text_or_empty(root: &Node, key: &str) -> Result<String, ScenarioError> {
    match root.get(key) {
        None => Ok(String::new()),
        Some(node) if matches!(node.content, Content::Nothing) => Ok(String::new()),
        Some(node) => Ok(text(node, key)?.trim().into()),
    }
}

/// The value of a key that must be there.
pub(super) fn required<'a>(
    node: &'a Node,
    inside: &str,
    key: &str,
    example: &str,
) -> Result<&'a Node, ScenarioError> {
    node.get(key).ok_or_else(|| ScenarioError::Missing {
        location: node.location.clone(),
        inside: inside.into(),
        key: key.into(),
        example: example.into(),
    })
}

/// A time in bounds, ns. `None` when there is no node.
pub(super) fn duration(
    node: Option<&Node>,
    key: &str,
    bounds: RangeInclusive<u64>,
) -> Result<Option<u64>, ScenarioError> {
    let ns = quantity(node, key, units::parse_duration_ns)?;
    match (ns, node) {
        (Some(ns), Some(node)) if !bounds.contains(&ns) => Err(ScenarioError::value(
            node.location.clone(),
            key,
            format!("{} does not fit", format_duration_ns(ns)),
            format!(
                "{} to {}",
                format_duration_ns(*bounds.start()),
                format_duration_ns(*bounds.end())
            ),
        )),
        _ => Ok(ns),
    }
}

/// A number with its unit. `None` when there is no node.
pub(super) fn quantity<T>(
    node: Option<&Node>,
    key: &str,
    parse: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<Option<T>, ScenarioError> {
    let Some(node) = node else { return Ok(None) };
    let word = text(node, key)?;
    parse(word)
        .map(Some)
        .map_err(|error| unit_error(node.location.clone(), key, &error))
}

fn unit_error(location: SourceLocation, key: &str, error: &UnitError) -> ScenarioError {
    let problem = format!("`{}` is not a {}", error.input, error.what);
    ScenarioError::value(
        location,
        key,
        problem,
        format!("one like {}", error.example),
    )
}
