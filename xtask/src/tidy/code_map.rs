//! ARCHITECTURE.md names every crate.

use super::violation::Violation;
use std::path::Path;

const FILE: &str = "ARCHITECTURE.md";

/// Crates that the text does not name in backquotes or as a path.
pub(crate) fn check(text: Option<&str>, crates: &[&str]) -> Vec<Violation> {
    let path = Path::new(FILE);
    let Some(text) = text else {
        let what = "there is no code map";
        return vec![Violation::new(
            path,
            1,
            what,
            "write one: a line per crate, and the invariants",
        )];
    };
    let missing = crates.iter().filter(|name| !is_named(text, name));
    missing
        .map(|name| {
            let what = format!("the code map does not name `{name}`");
            Violation::new(
                path,
                1,
                what,
                "describe what it contains and what it must not do",
            )
        })
        .collect()
}

/// As a whole word: `ew-plan` is not named by `ew-planner`.
fn is_named(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_')
        .any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_must_be_named() {
        let text = "| `ew-model` | the nouns |\ncrates/ew-planner: no\n";
        assert!(check(Some(text), &["ew-model"]).is_empty());
        let missing = check(Some(text), &["ew-model", "ew-plan"]);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].what.contains("ew-plan"));
        assert_eq!(check(None, &["ew-model"]).len(), 1);
    }
}
