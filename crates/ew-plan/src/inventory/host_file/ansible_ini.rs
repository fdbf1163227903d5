//! Ansible inventories in INI form.

use super::ansible::{Tree, Variables};
use super::content::HostFile;
use super::lines::{line_of, significant_lines};
use crate::inventory::inventory_error::InventoryError;
use std::path::Path;

/// What the lines of a section are.
#[derive(Clone, Copy)]
enum Section {
    Hosts,
    Children,
    Variables,
}

pub(super) fn read(path: &Path, text: &str) -> Result<HostFile, InventoryError> {
    let mut tree = Tree::default();
    let (mut group, mut section) = ("ungrouped".to_owned(), Section::Hosts);
    for (number, line) in significant_lines(text) {
        let location = line_of(path, number);
        if is_section(line) {
            (group, section) = parse_section(line, &location)?;
            continue;
        }
        match section {
            Section::Hosts => {
                let mut words = words(line).into_iter();
                let pattern = words.next().unwrap_or_default();
                let variables = words.filter_map(|word| variable(&word)).collect();
                tree.add_hosts(&group, &pattern, &variables, &location)?;
            }
            Section::Children => tree.add_child(&group, line),
            Section::Variables => {
                tree.add_variables(&group, variable(line).into_iter().collect::<Variables>());
            }
        }
    }
    tree.into_host_file(&path.display().to_string())
}

fn parse_section(line: &str, location: &str) -> Result<(String, Section), InventoryError> {
    let name = line.trim_matches(['[', ']']);
    let (group, kind) = name.split_once(':').unwrap_or((name, ""));
    let section = match kind {
        "" => Section::Hosts,
        "children" => Section::Children,
        "vars" => Section::Variables,
        other => {
            return Err(InventoryError::HostFile {
                location: location.to_owned(),
                problem: format!("`:{other}` in an Ansible inventory"),
                remedy: "a section is [GROUP], [GROUP:children] or [GROUP:vars]".into(),
            });
        }
    };
    Ok((group.to_owned(), section))
}

/// Words at blanks outside quotes, without the quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (String::new(), None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (c, None) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn variable(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let value = value.trim().trim_matches(['"', '\'']);
    Some((key.trim().to_owned(), value.to_owned()))
}

/// `[web]`, `[web:vars]`: a node set such as `[1-4]` begins with a digit, YAML's `[n1, n2]` has a
/// comma.
pub(super) fn is_section(line: &str) -> bool {
    let inside = line.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
    let is_begin = |c: char| c.is_ascii_alphabetic() || c == '_';
    inside.is_some_and(|name| name.starts_with(is_begin) && !name.contains(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_variables_and_racks() {
        let text = "; comment\nlogin ansible_host=192.0.2.1 rack=none\n[rack_a]\nn[1:2] ansible_port=2222\n[rack_b]\n\
                    n3 ansible_host=10.0.0.3 ansible_user='own user'\nn4:2022\n[compute:children]\nrack_a\nrack_b\n[compute:vars]\n\
                    ansible_user=ops\n[all:vars]\nansible_user=root\n";
        let file = read(Path::new("inv.ini"), text).unwrap();
        let found: Vec<String> = file
            .hosts
            .iter()
            .map(|host| {
                let user = host.login.user.as_deref().unwrap_or("-");
                let port = host.login.port.unwrap_or(0);
                let rack = host.rack.as_deref().unwrap_or("-");
                format!("{} {user} {port} {rack}", host.name)
            })
            .collect();
        assert_eq!(
            found,
            [
                "login root 0 none",
                "n1 ops 2222 rack_a",
                "n2 ops 2222 rack_a",
                "n3 own user 0 rack_b",
                "n4 ops 2022 rack_b"
            ]
        );
        assert_eq!(file.groups["compute"], ["n1", "n2", "n3", "n4"]);
        assert_eq!(file.hosts[3].address, Some("10.0.0.3".parse().unwrap()));
        assert_eq!(file.hosts[3].login.target.as_deref(), Some("10.0.0.3"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, word) in [
            ("[web:hosts]\n", ":hosts"),
            ("[web]\nn[1-4]\n", "n[01:40]"),
            ("[web]\nn1 ansible_host='{{ x }}'\n", "ansible-inventory"),
            ("[web]\nn1 ansible_port=no\n", "65535"),
        ] {
            let error = read(Path::new("inv"), text).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
