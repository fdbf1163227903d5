//! Only the binaries, the live view and chores write to the terminal; tests may print why they
//! skip.

use super::source::{Source, for_each_level, ident, is_punct};
use super::violation::Violation;
use std::path::Path;

const MACROS: &[&str] = &["print", "println", "eprint", "eprintln", "dbg"];

/// Violations of one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = vec![];
    if may_print(&source.package, &source.path) {
        return violations;
    }
    for_each_level(&source.shipped_tokens(), &mut |level| {
        for (index, token) in level.iter().enumerate() {
            let name = ident(Some(token)).filter(|i| MACROS.iter().any(|m| *i == m));
            if let (Some(name), true) = (name, is_punct(level.get(index + 1), '!')) {
                violations.push(source.violation(
                    name.span().start().line,
                    format!("`{name}!` in a library"),
                    "return it, or emit an event or an error; the binary decides what is shown",
                ));
            }
        }
    });
    violations
}

fn may_print(package: &str, path: &Path) -> bool {
    let places = [
        "crates/eastwest-agent/src/main.rs",
        "crates/ew-report/src/live.rs",
        "crates/ew-report/src/live",
    ];
    matches!(package, "eastwest" | "xtask") || places.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    fn lines(package: &str, path: &str, text: &str) -> Vec<usize> {
        let violations = check(&snippet(package, path, text));
        violations.iter().map(|v| v.line).collect()
    }

    #[test]
    fn libraries_do_not_print() {
        let text = "fn a() {\n    println!(\"x\");\n    dbg!(1);\n}\n";
        assert_eq!(lines("ew-plan", "crates/ew-plan/src/a.rs", text), [2, 3]);
        assert_eq!(
            lines("ew-report", "crates/ew-report/src/html.rs", text),
            [2, 3]
        );
    }

    #[test]
    fn the_binary_the_live_view_and_tests_do() {
        let text = "fn a() { eprintln!(\"x\"); }";
        assert!(lines("eastwest", "crates/eastwest/src/a.rs", text).is_empty());
        assert!(lines("ew-report", "crates/ew-report/src/live/bar.rs", text).is_empty());
        assert!(lines("ew-lab", "crates/ew-lab/tests/a.rs", text).is_empty());
        let text = "fn println() {} #[cfg(test)] mod tests { fn a() { println!(\"x\"); } }";
        assert!(lines("ew-lab", "crates/ew-lab/src/a.rs", text).is_empty());
    }
}
