//! A package's Cargo.toml, as far as the rules care: read by line, so that a violation has one.

use std::path::PathBuf;

/// A Cargo.toml.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// From the workspace's folder.
    pub(crate) path: PathBuf,
    /// Name of the package.
    pub(crate) package: String,
    /// All kinds.
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether `[lints]` has `workspace = true`.
    pub(crate) has_workspace_lints: bool,
}

/// A line of a dependencies table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    /// Name of the crate.
    pub(crate) name: String,
    /// Line in the file, from 1.
    pub(crate) line: usize,
    /// Whether it is for tests only.
    pub(crate) is_dev: bool,
    /// Whether the version comes from the workspace.
    pub(crate) is_workspace: bool,
}

impl Manifest {
    /// Reads the text.
    pub(crate) fn parse(path: PathBuf, text: &str) -> Self {
        let mut manifest = Self {
            path,
            ..Self::default()
        };
        let mut table = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(header) = line.strip_prefix('[') {
                table = header.trim_end_matches(']').trim().into();
                manifest.read_header(&table, index + 1);
            } else if let Some((key, value)) = line.split_once('=') {
                manifest.read_entry(&table, key.trim(), value.trim(), index + 1);
            }
        }
        manifest
    }

    /// A dependency may have a table of its own: `[dependencies.name]`.
    fn read_header(&mut self, table: &str, line: usize) {
        if let Some((parent, name)) = table.rsplit_once('.')
            && is_dependencies(parent)
        {
            self.dependencies.push(Dependency {
                name: unquote(name),
                line,
                is_dev: parent.ends_with("dev-dependencies"),
                is_workspace: false,
            });
        }
    }

    fn read_entry(&mut self, table: &str, key: &str, value: &str, line: usize) {
        match (table, key, value) {
            ("package", "name", name) => self.package = unquote(name),
            ("lints", "workspace", "true") => self.has_workspace_lints = true,
            _ if is_dependencies(table) => {
                self.dependencies.push(dependency(table, key, value, line));
            }
            _ => {
                let own_table = table
                    .rsplit_once('.')
                    .is_some_and(|(p, _)| is_dependencies(p));
                if own_table
                    && (key, value) == ("workspace", "true")
                    && let Some(last) = self.dependencies.last_mut()
                {
                    last.is_workspace = true;
                }
            }
        }
    }
}

fn dependency(table: &str, key: &str, value: &str, line: usize) -> Dependency {
    let (name, dotted) = key.split_once('.').unwrap_or((key, ""));
    let compact: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    let in_braces = compact
        .trim_matches(['{', '}'])
        .split(',')
        .any(|part| part == "workspace=true");
    Dependency {
        name: unquote(name),
        line,
        is_dev: table.ends_with("dev-dependencies"),
        is_workspace: (dotted, value) == ("workspace", "true") || in_braces,
    }
}

/// Also those of a target: `target.'cfg(unix)'.dependencies`.
fn is_dependencies(table: &str) -> bool {
    let last = table.rsplit('.').next().unwrap_or_default();
    matches!(
        last,
        "dependencies" | "dev-dependencies" | "build-dependencies"
    )
}

fn unquote(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_forms_are_told_apart() {
        let manifest = Manifest::parse(
            "Cargo.toml".into(),
            r#"
[package]
name = "ew-x" # the name

[dependencies]
a.workspace = true
b = { workspace = true, features = ["x"] }
c = "1"

[dependencies.d]
workspace = true

[target.'cfg(unix)'.dependencies]
e = { version = "1" }

[dev-dependencies]
f = { features = ["y"], workspace = true }

[lints]
workspace = true
"#,
        );
        assert_eq!(manifest.package, "ew-x");
        assert!(manifest.has_workspace_lints);
        let reported: Vec<_> = manifest
            .dependencies
            .iter()
            .map(|d| (d.name.as_str(), d.line, d.is_dev, d.is_workspace))
            .collect();
        assert_eq!(
            reported,
            [
                ("a", 6, false, true),
                ("b", 7, false, true),
                ("c", 8, false, false),
                ("d", 10, false, true),
                ("e", 14, false, false),
                ("f", 17, true, true),
            ]
        );
    }
}
