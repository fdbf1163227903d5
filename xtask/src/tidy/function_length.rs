//! Functions fit a screen: 70 lines from `fn` to the closing brace, tests included.

use super::source::{Source, for_each_level, ident, is_punct};
use super::violation::Violation;
use proc_macro2::{Delimiter, Group, Ident, TokenTree};

const MAX_LINES: usize = 70;

/// Violations of one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let mut violations = vec![];
    for_each_level(&source.tokens, &mut |level| {
        for (index, token) in level.iter().enumerate() {
            let Some((name, body)) = function(token, &level[index + 1..]) else {
                continue;
            };
            let first = token.span().start().line;
            let lines = body.span_close().end().line - first + 1;
            if lines > MAX_LINES {
                violations.push(source.violation(
                    first,
                    format!("`{name}` is {lines} lines long, over {MAX_LINES}"),
                    "give its parts names of their own",
                ));
            }
        }
    });
    violations
}

/// Name and body of the function that begins at `token`; `None` for function pointers and
/// declarations.
fn function<'a>(token: &TokenTree, rest: &'a [TokenTree]) -> Option<(&'a Ident, &'a Group)> {
    ident(Some(token)).filter(|i| *i == "fn")?;
    let name = ident(rest.first())?;
    for token in rest {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return Some((name, group));
            }
            token if is_punct(Some(token), ';') => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let violations = check(&snippet("ew-x", "src/a.rs", text));
        violations.into_iter().map(|v| (v.line, v.what)).collect()
    }

    fn body(lines: usize) -> String {
        "    a();\n".repeat(lines)
    }

    #[test]
    fn the_limit_itself_passes() {
        assert!(found(&format!("fn a() {{\n{}}}\n", body(68))).is_empty());
        let long = found(&format!("\nfn a() {{\n{}}}\n", body(69)));
        assert_eq!(long, [(2, "`a` is 71 lines long, over 70".to_owned())]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_confuse() {
        let text = format!(
            "fn a() {{\n    b(\"}}\"); // }}\n    c('{{');\n{}}}\n",
            body(70)
        );
        assert_eq!(found(&text).len(), 1);
        let text = format!("fn a() {{ b(\"{{\"); }}\n{}", "fn c() {}\n".repeat(100));
        assert!(found(&text).is_empty());
    }

    #[test]
    fn methods_tests_and_macro_bodies_count_but_pointers_do_not() {
        let long = body(80);
        let text = format!(
            "impl A {{ fn a(&self) where Self: B {{\n{long}}} }}\n#[cfg(test)] mod t {{ #[test] fn b() {{\n{long}}} }}\n\
             proptest! {{ fn c(x in 0..9) {{\n{long}}} }}\n"
        );
        assert_eq!(found(&text).len(), 3);
        let text = format!(
            "trait A {{ fn a(); }}\ntype B = fn(u8);\nstruct C {{ d: fn(u8) }}\nmod e {{\n{long}}}\n"
        );
        assert!(found(&text.replace("a();\n", "use x;\n")).is_empty());
    }
}
