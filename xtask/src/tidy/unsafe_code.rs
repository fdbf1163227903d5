//! `unsafe` lives in `ew-sys` only, also in tests.

use super::source::{Source, for_each_level, ident};
use super::violation::Violation;

const HOME: &str = "ew-sys";

/// Violations of one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = vec![];
    if source.package == HOME {
        return violations;
    }
    for_each_level(&source.tokens, &mut |level| {
        for found in level
            .iter()
            .filter_map(|t| ident(Some(t)))
            .filter(|i| *i == "unsafe")
        {
            violations.push(source.violation(
                found.span().start().line,
                "`unsafe` outside ew-sys",
                "give ew-sys a safe function that does this, with its reasons in // SAFETY:",
            ));
        }
    });
    violations
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    #[test]
    fn the_word_counts_only_as_code() {
        let text =
            "// unsafe\nfn a() { b(\"unsafe\"); unsafe_code(); }\nfn c() { unsafe { d() } }\n";
        let lines = |package| -> Vec<usize> {
            let source = snippet(package, "src/a.rs", text);
            check(&source).iter().map(|v| v.line).collect()
        };
        assert_eq!(lines("ew-engine"), [3]);
        assert!(lines("ew-sys").is_empty());
    }

    #[test]
    fn macro_bodies_and_tests_count() {
        let text = "proptest! { fn a() { unsafe { b() } } }\n#[cfg(test)]\nmod tests { unsafe fn c() {} }\n";
        assert_eq!(check(&snippet("ew-plan", "src/a.rs", text)).len(), 2);
    }
}
