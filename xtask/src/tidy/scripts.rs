//! Every file of a page's script is tested in a browser: next to `src/.../NAME.js` there is
//! `tests/.../browser/NAME.rs` of the same crate.

use super::violation::Violation;
use std::path::{Path, PathBuf};

/// Scripts without a test. All paths are from the workspace's folder.
pub(crate) fn check(scripts: &[PathBuf], sources: &[&Path]) -> Vec<Violation> {
    let untested = scripts
        .iter()
        .filter(|script| !sources.iter().any(|source| is_test_of(script, source)));
    untested
        .map(|script| {
            let name = script.file_stem().unwrap_or_default().display();
            let fix = format!("test what it does in tests/.../browser/{name}.rs");
            Violation::new(script, 1, "no browser test", fix)
        })
        .collect()
}

fn is_test_of(script: &Path, source: &Path) -> bool {
    let folder = source.parent();
    let is_browser_test = folder.is_some_and(|folder| folder.ends_with("browser"));
    let package = |path: &Path| path.components().take(2).collect::<PathBuf>();
    let is_below_tests = source
        .components()
        .nth(2)
        .is_some_and(|part| part.as_os_str() == "tests");
    is_browser_test
        && is_below_tests
        && package(script) == package(source)
        && script.file_stem() == source.file_stem()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_needs_a_browser_test_of_its_name() {
        let scripts = [PathBuf::from("crates/ew-x/src/html/map.js")];
        let found = |tests: &[&str]| {
            let tests: Vec<&Path> = tests.iter().map(Path::new).collect();
            check(&scripts, &tests).len()
        };
        assert_eq!(found(&["crates/ew-x/tests/all/browser/map.rs"]), 0);
        assert_eq!(found(&[]), 1);
        assert_eq!(found(&["crates/ew-x/tests/all/browser/maps.rs"]), 1);
        assert_eq!(found(&["crates/ew-x/tests/all/map.rs"]), 1);
        assert_eq!(found(&["crates/ew-y/tests/all/browser/map.rs"]), 1);
        assert_eq!(found(&["crates/ew-x/src/browser/map.rs"]), 1);
    }
}
