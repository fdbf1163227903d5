//! Every package takes lints and versions from the workspace, and is named as its folder.

use super::manifest::Manifest;
use super::violation::Violation;

/// Violations of one manifest.
pub(crate) fn check(manifest: &Manifest) -> Vec<Violation> {
    let mut violations = vec![];
    if !manifest.has_workspace_lints {
        violations.push(Violation::new(
            &manifest.path,
            1,
            "the workspace's lints are not used",
            "add `[lints]` with `workspace = true`",
        ));
    }
    let folder = manifest.path.parent().and_then(|p| p.file_name());
    if folder.is_some_and(|name| name != manifest.package.as_str()) {
        violations.push(Violation::new(
            &manifest.path,
            1,
            format!(
                "the package `{}` is not named as its folder",
                manifest.package
            ),
            "rename one of them",
        ));
    }
    let strays = manifest.dependencies.iter().filter(|d| !d.is_workspace);
    violations.extend(strays.map(|d| {
        Violation::new(
            &manifest.path,
            d.line,
            format!("`{}` does not take its version from the workspace", d.name),
            format!(
                "put it into [workspace.dependencies] and write `{}.workspace = true`",
                d.name
            ),
        )
    }));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Manifest::parse("crates/ew-x/Cargo.toml".into(), text)).len()
    }

    #[test]
    fn a_good_manifest_passes() {
        let text = "[package]\nname = \"ew-x\"\n[dependencies]\na.workspace = true\n[lints]\nworkspace = true\n";
        assert_eq!(count(text), 0);
    }

    #[test]
    fn lints_name_and_versions_are_checked() {
        assert_eq!(count("[package]\nname = \"ew-x\"\n"), 1);
        assert_eq!(
            count("[package]\nname = \"ew-y\"\n[lints]\nworkspace = true\n"),
            1
        );
        let text =
            "[package]\nname = \"ew-x\"\n[dependencies]\na = \"1\"\n[lints]\nworkspace = true\n";
        assert_eq!(count(text), 1);
    }
}
