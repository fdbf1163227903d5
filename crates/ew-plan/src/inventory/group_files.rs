//! The formats of group files: flat, YAML, and the INI of groups.conf.

use super::groups_error::GroupsError;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Characters that mean something in node sets and so cannot be in a group's name.
const NOT_IN_NAMES: &[char] = &['@', ',', '!', '&', '^', '*', '?', '[', ']'];

/// A group's definition: a node set in which blanks separate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupValue {
    pub(super) value: String,
    /// For errors: `group @rack1 in FILE`.
    pub(super) location: String,
}

/// Reads `name: nodeset [nodeset...]` lines; blanks around the name do no harm, lines of one name
/// add up.
///
/// # Errors
/// [`GroupsError::Format`] with the line that is not of that form.
pub(super) fn parse_flat(
    text: &str,
    origin: &str,
) -> Result<BTreeMap<String, GroupValue>, GroupsError> {
    let mut groups: BTreeMap<String, GroupValue> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let error = |problem: String| GroupsError::Format {
            location: format!("{origin}, line {number}"),
            problem,
        };
        let Some((name, value)) = line.split_once(':') else {
            return Err(error(format!(
                "`{line}` has no colon; write `name: nodeset`"
            )));
        };
        let name = name.trim_end();
        check_name(name).map_err(|problem| error(problem.to_string()))?;
        let group = groups.entry(name.to_owned()).or_insert_with(|| GroupValue {
            value: String::new(),
            location: location(name, &format!("{origin}, line {number}")),
        });
        if !group.value.is_empty() {
            group.value.push(' ');
        }
        group.value.push_str(value.trim());
    }
    Ok(groups)
}

/// Reads a YAML file of group sources.
///
/// # Errors
/// [`GroupsError::Format`] when it is not source to group to node set, list of node sets, or
/// nothing.
pub(super) fn parse_yaml(
    text: &str,
    origin: &str,
) -> Result<BTreeMap<String, BTreeMap<String, GroupValue>>, GroupsError> {
    let error = |problem: String| GroupsError::Format {
        location: origin.to_owned(),
        problem,
    };
    if text
        .lines()
        .all(|l| l.trim().is_empty() || l.trim_start().starts_with('#'))
    {
        return Ok(BTreeMap::new());
    }
    let file: BTreeMap<String, BTreeMap<String, YamlValue>> = serde_saphyr::from_str(text)
        .map_err(|e| {
            error(format!(
                "{e}; expected `source:` with lines `group: 'nodeset'` below it, node sets in quotes"
            ))
        })?;
    let mut sources = BTreeMap::new();
    for (source, groups) in file {
        let mut values = BTreeMap::new();
        for (name, YamlValue(value)) in groups {
            check_name(&name).map_err(|problem| error(problem.to_string()))?;
            let location = location(&format!("{source}:{name}"), origin);
            values.insert(name, GroupValue { value, location });
        }
        sources.insert(source, values);
    }
    Ok(sources)
}

fn location(group: &str, origin: &str) -> String {
    format!("group @{group} in {origin}")
}

/// Why a group cannot have its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NameError {
    /// It has none.
    #[error("group without a name; write `name: nodeset`")]
    Missing,
    /// It has one that a node set reads as something else.
    #[error("group name `{name}` contains `{character}`, which a node set could not name")]
    Character {
        /// The name.
        name: String,
        /// The first one that is read so.
        character: char,
    },
}

fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Missing);
    }
    match name
        .chars()
        .find(|c| c.is_whitespace() || NOT_IN_NAMES.contains(c))
    {
        Some(character) => Err(NameError::Character {
            name: name.to_owned(),
            character,
        }),
        None => Ok(()),
    }
}

/// A group's value in YAML: text, a list of texts, or nothing; as one node set.
struct YamlValue(String);

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlValueVisitor)
    }
}

struct YamlValueVisitor;

impl<'de> Visitor<'de> for YamlValueVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node set in quotes, a list of node sets, or nothing")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<YamlValue, E> {
        Ok(YamlValue(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<YamlValue, E> {
        Ok(YamlValue(number.to_string()))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<YamlValue, E> {
        Ok(YamlValue(number.to_string()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<YamlValue, E> {
        Ok(YamlValue(String::new()))
    }

    fn visit_none<E: de::Error>(self) -> Result<YamlValue, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlValue, A::Error> {
        let mut sets: Vec<String> = Vec::new();
        while let Some(YamlValue(set)) = list.next_element()? {
            if !set.trim().is_empty() {
                sets.push(set);
            }
        }
        Ok(YamlValue(sets.join(",")))
    }
}

/// groups.conf: a section `Main` and one section for each group source, or for several
/// (`[name,alias]`).
#[derive(Debug, Default)]
pub(super) struct Config {
    sections: Vec<Section>,
}

#[derive(Debug)]
pub(super) struct Section {
    name: String,
    /// The file.
    pub(super) location: String,
    values: BTreeMap<String, String>,
}

impl Section {
    /// The group sources it defines.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.name.split(',').map(str::trim)
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }
}

impl Config {
    /// All sections but `Main`.
    pub(super) fn sections(&self) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(|s| s.name != "Main")
    }

    /// A value of the section `Main`.
    pub(super) fn main(&self, key: &str) -> Option<&str> {
        let main = self.sections.iter().find(|s| s.name == "Main")?;
        main.get(key)
    }

    /// A list of directories in `Main`, `$CFGDIR` replaced. `groupsdir` is the old name of
    /// `confdir`.
    pub(super) fn directories(&self, key: &str, cfgdir: &Path) -> Vec<PathBuf> {
        let old = (key == "confdir").then(|| self.main("groupsdir")).flatten();
        let list = old.or_else(|| self.main(key)).unwrap_or("");
        let cfgdir = cfgdir.to_string_lossy();
        let mut directories: Vec<PathBuf> = Vec::new();
        for word in split_words(list) {
            let written = PathBuf::from(substitute(&word, &[("CFGDIR", &cfgdir)]));
            let directory: PathBuf = written.components().collect();
            if !directories.contains(&directory) {
                directories.push(directory);
            }
        }
        directories
    }

    /// Takes over another file's values; they go before those already here.
    pub(super) fn override_with(&mut self, other: Self) {
        for section in other.sections {
            match self.sections.iter_mut().find(|s| s.name == section.name) {
                Some(mine) => {
                    mine.values.extend(section.values);
                    mine.location = section.location;
                }
                None => self.sections.push(section),
            }
        }
    }
}

/// Reads groups.conf: `[section]`, `key: value` or `key = value`, indented lines continue a value,
/// `#` and `;` begin comment lines.
///
/// # Errors
/// [`GroupsError::Format`] with the line that is none of these.
pub(super) fn parse_config(text: &str, origin: &str) -> Result<Config, GroupsError> {
    let mut config = Config::default();
    let mut last_key: Option<String> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        let error = |problem: &str| GroupsError::Format {
            location: format!("{origin}, line {number}"),
            problem: format!("`{content}` {problem}"),
        };
        let section = config.sections.last_mut();
        let continues = line.starts_with([' ', '\t']);
        if let (true, Some(key), Some(section)) = (continues, &last_key, section) {
            let value = section.values.entry(key.clone()).or_default();
            value.push('\n');
            value.push_str(content);
        } else if let Some(name) = content.strip_prefix('[') {
            let name = name
                .strip_suffix(']')
                .ok_or_else(|| error("is not a section; write `[name]`"))?;
            last_key = None;
            config.sections.push(Section {
                name: name.to_owned(),
                location: origin.to_owned(),
                values: BTreeMap::new(),
            });
        } else {
            let (key, value) = content
                .split_once([':', '='])
                .ok_or_else(|| error("is neither `key: value` nor `[section]`"))?;
            let key = key.trim_end().to_lowercase();
            let section = config
                .sections
                .last_mut()
                .ok_or_else(|| error("is before any `[section]`"))?;
            section.values.insert(key.clone(), value.trim().to_owned());
            last_key = Some(key);
        }
    }
    Ok(config)
}

/// Reads what may be a groups.conf, and all that it is asked for.
pub(crate) fn fuzzed_config(text: &str) {
    let Ok(mut config) = parse_config(text, "groups.conf") else {
        return;
    };
    for key in ["confdir", "autodir"] {
        let directories = config.directories(key, Path::new("/etc/clustershell"));
        assert!(directories.len() <= text.len());
    }
    for section in config.sections() {
        assert!(section.names().count() <= text.len());
        let map = section.get("map").unwrap_or_default();
        let _ = substitute(map, &[("CFGDIR", "/etc"), ("GROUP", "g1")]);
    }
    if let Ok(more) = parse_config(text, "groups.conf") {
        config.override_with(more);
    }
}

/// Replaces `$NAME` and `${NAME}` for the names given and `$$` by `$`; other dollar signs stay for
/// the shell.
pub(super) fn substitute(template: &str, variables: &[(&str, &str)]) -> String {
    let mut result = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        if let Some(after) = behind.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let braced = behind.strip_prefix('{');
        let name_text = braced.unwrap_or(behind);
        let length = name_text
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(name_text.len());
        let after = &name_text[length..];
        let after = match braced {
            Some(_) => after.strip_prefix('}'),
            None => Some(after),
        };
        let value = variables.iter().find(|(n, _)| *n == &name_text[..length]);
        match (value, after) {
            (Some((_, value)), Some(after)) => {
                result.push_str(value);
                rest = after;
            }
            _ => {
                result.push('$');
                rest = behind;
            }
        }
    }
    result.push_str(rest);
    result
}

/// Words separated by blanks; quotes keep blanks inside a word.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_lines() {
        let text = "# racks\n mc_rack2 :h[1-2].x h9\n\nempty:\nmc_rack2: h10\nref: @other:g\n";
        let groups = parse_flat(text, "f").unwrap();
        assert_eq!(groups["mc_rack2"].value, "h[1-2].x h9 h10");
        assert_eq!(groups["empty"].value, "");
        assert_eq!(groups["ref"].value, "@other:g");
        let error = parse_flat("a: n1\nn2 n3\n", "f").unwrap_err().to_string();
        assert!(error.starts_with("f, line 2"), "{error}");
        assert!(parse_flat("a b: n1", "f").is_err());
        assert!(parse_flat(": n1", "f").is_err());
    }

    #[test]
    fn yaml_values() {
        let text =
            "racks:\n  r1: 'n[1-2]'\n  r2:\n    - 'n3'\n    - '@r1'\n  none:\n  num: 12\ncpu: {}\n";
        let sources = parse_yaml(text, "f").unwrap();
        let value = |group: &str| sources["racks"][group].value.as_str();
        assert_eq!(value("r1"), "n[1-2]");
        assert_eq!(value("r2"), "n3,@r1");
        assert_eq!(value("none"), "");
        assert_eq!(value("num"), "12");
        assert!(sources["cpu"].is_empty());
        assert!(parse_yaml("# nothing\n", "f").unwrap().is_empty());
        for wrong in [
            "- a",
            "racks: n1",
            "racks:\n  r1: {a: b}",
            "racks:\n  r1: @x",
        ] {
            let error = parse_yaml(wrong, "file.yaml").unwrap_err().to_string();
            assert!(error.starts_with("file.yaml: "), "{error}");
        }
    }

    #[test]
    fn config_files() {
        let text = "[Main]\nDefault: local\nconfdir = /a \"$CFGDIR/b c\" $CFGDIR/../x\n; note\n[slurm,sp]\nmap: a\n  b\n";
        let config = parse_config(text, "f").unwrap();
        assert_eq!(config.main("default"), Some("local"));
        let directories = config.directories("confdir", Path::new("/cfg"));
        assert_eq!(directories[1], Path::new("/cfg/b c"));
        let section = config.sections().next().unwrap();
        assert_eq!(section.names().collect::<Vec<_>>(), ["slurm", "sp"]);
        assert_eq!(section.get("map"), Some("a\nb"));
        for wrong in ["key: value", "[Main]\nword", "[Main"] {
            assert!(parse_config(wrong, "f").is_err(), "{wrong}");
        }
    }

    #[test]
    fn variables() {
        let variables = [("GROUP", "g1"), ("CFGDIR", "/c")];
        assert_eq!(
            substitute("x $GROUP ${GROUP}y $f $$HOME ${f} $ $GROUPS", &variables),
            "x g1 g1y $f $HOME ${f} $ $GROUPS"
        );
    }
}
