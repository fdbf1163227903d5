//! A scenario file as a tree that remembers where each part was written.
//!
//! The tree is read by hand rather than by derive, because overrides change it before it is
//! understood, and because an error has to name the source location, what was expected and the
//! nearest known word.

use super::error::{ScenarioError, SourceLocation};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// One YAML node and where it came from.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) location: SourceLocation,
}

/// The content of a node. Scalars stay text: `10`, `10G` and `"10"` are read by whoever knows what
/// is expected.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Nothing,
    Scalar(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_location: SourceLocation,
    pub(super) value: Node,
}

/// Reads YAML text.
pub(super) fn read(text: &str, file_name: &str) -> Result<Node, ScenarioError> {
    let raw: Spanned<Raw> = serde_saphyr::from_str(text).map_err(|error| {
        let plain = error.without_snippet();
        ScenarioError::Yaml {
            location: source_location(file_name, plain.location().unwrap_or(Location::UNKNOWN)),
            message: message(plain),
        }
    })?;
    Ok(located(raw, file_name))
}

/// The value of an override: text, or YAML where it begins as a list or a mapping does. All of it
/// is at `location`.
pub(super) fn value_of(text: &str, location: &SourceLocation) -> Result<Node, ScenarioError> {
    if !text.starts_with(['[', '{']) {
        return Ok(Node::scalar(text, location.clone()));
    }
    let mut node = read(text, "").map_err(|error| match error {
        ScenarioError::Yaml { message, .. } => ScenarioError::Yaml {
            location: location.clone(),
            message,
        },
        other => other,
    })?;
    node.move_to(location);
    Ok(node)
}

impl Node {
    pub(super) fn scalar(text: &str, location: SourceLocation) -> Self {
        Self {
            content: Content::Scalar(text.into()),
            location,
        }
    }

    pub(super) fn mapping(entries: Vec<Entry>, location: SourceLocation) -> Self {
        Self {
            content: Content::Mapping(entries),
            location,
        }
    }

    fn move_to(&mut self, location: &SourceLocation) {
        self.location = location.clone();
        match &mut self.content {
            Content::Nothing | Content::Scalar(_) => (),
            Content::Sequence(items) => items.iter_mut().for_each(|item| item.move_to(location)),
            Content::Mapping(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_location = location.clone();
                entry.value.move_to(location);
            }),
        }
    }

    /// What the node is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.content {
            Content::Nothing => "nothing",
            Content::Scalar(_) => "a single value",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// The entries of a mapping; nothing counts as an empty one, as in `expect:` without a value.
    pub(super) fn entries(&self) -> Option<&[Entry]> {
        match &self.content {
            Content::Mapping(entries) => Some(entries),
            Content::Nothing => Some(&[]),
            _ => None,
        }
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let entry = self.entries()?.iter().find(|e| e.key == key)?;
        Some(&entry.value)
    }

    /// The value of a key, to be changed.
    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        match &mut self.content {
            Content::Mapping(entries) => entries
                .iter_mut()
                .find(|e| e.key == key)
                .map(|e| &mut e.value),
            _ => None,
        }
    }

    /// Sets a key, in place when it is there. A node that is nothing, or the bare word of a choice,
    /// becomes a mapping.
    pub(super) fn set(&mut self, key: &str, value: Node) {
        if let Some(old) = self.get_mut(key) {
            *old = value;
            return;
        }
        let entry = Entry {
            key: key.into(),
            key_location: value.location.clone(),
            value,
        };
        match &mut self.content {
            Content::Mapping(entries) => entries.push(entry),
            _ => self.content = Content::Mapping(vec![entry]),
        }
    }
}

/// What serde hands over, with the YAML reader's locations.
enum Raw {
    Nothing,
    Scalar(String),
    Sequence(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<Key>, Spanned<Raw>)>),
}

/// A mapping's key, whatever scalar it is.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Key)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a mapping")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Raw::Mapping(entries))
    }
}

fn located(raw: Spanned<Raw>, file: &str) -> Node {
    let content = match raw.value {
        Raw::Nothing => Content::Nothing,
        Raw::Scalar(text) => Content::Scalar(text),
        Raw::Sequence(items) => {
            Content::Sequence(items.into_iter().map(|item| located(item, file)).collect())
        }
        Raw::Mapping(entries) => {
            let entry = |(key, value): (Spanned<Key>, Spanned<Raw>)| Entry {
                key_location: source_location(file, key.referenced),
                key: key.value.0,
                value: located(value, file),
            };
            Content::Mapping(entries.into_iter().map(entry).collect())
        }
    };
    Node {
        content,
        location: source_location(file, raw.referenced),
    }
}

fn source_location(file: &str, location: Location) -> SourceLocation {
    SourceLocation::File {
        name: file.into(),
        line: location.line(),
        column: location.column(),
    }
}

/// The reader's words without what is reported already (the position) or helps only programmers.
fn message(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::DuplicateMappingKey { key, .. } = error {
        let key = key.as_deref().unwrap_or_default();
        return format!("the key `{key}` is there twice; keep one");
    }
    if let serde_saphyr::Error::MultipleDocuments { .. } = error {
        return "there are several documents; keep one, or give each a file".into();
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let end = line.rfind(" at line ").unwrap_or(line.len());
    line[..end].trim().to_string()
}
