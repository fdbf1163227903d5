//! A Rust file as tokens, so that strings and comments never match a rule, and macro bodies do.

use super::violation::Violation;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use std::path::{Component, Path, PathBuf};

/// A Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the workspace's folder.
    pub(crate) path: PathBuf,
    /// Name of its package.
    pub(crate) package: String,
    /// Whether the whole file is for tests only.
    pub(crate) is_test: bool,
    /// All of it.
    pub(crate) text: String,
    /// The same, cut.
    pub(crate) tokens: TokenStream,
}

impl Source {
    /// Cuts the text into tokens.
    pub(crate) fn parse(path: PathBuf, package: &str, text: &str) -> Result<Self, Violation> {
        match text.parse() {
            Ok(tokens) => Ok(Self {
                is_test: is_test_path(&path),
                path,
                package: package.into(),
                text: text.into(),
                tokens,
            }),
            Err(error) => Err(Violation::new(
                &path,
                error.span().start().line,
                "this is no Rust",
                "make it compile",
            )),
        }
    }

    /// The file without what only tests compile.
    pub(crate) fn shipped_tokens(&self) -> TokenStream {
        if self.is_test {
            return TokenStream::new();
        }
        without_tests(self.tokens.clone())
    }

    /// A violation in this file.
    pub(crate) fn violation(&self, line: usize, what: impl Into<String>, fix: &str) -> Violation {
        Violation::new(&self.path, line, what, fix)
    }
}

/// Calls `visit` with each list of sibling tokens: the file's own, then those of each group in it.
pub(crate) fn for_each_level(tokens: &TokenStream, visit: &mut impl FnMut(&[TokenTree])) {
    let level: Vec<TokenTree> = tokens.clone().into_iter().collect();
    visit(&level);
    for token in &level {
        if let TokenTree::Group(group) = token {
            for_each_level(&group.stream(), visit);
        }
    }
}

/// The token's name, if it is one.
pub(crate) fn ident(token: Option<&TokenTree>) -> Option<&Ident> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident),
        _ => None,
    }
}

/// Whether the token is this sign.
pub(crate) fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn is_test_path(path: &Path) -> bool {
    let in_folder = path.components().any(|c| {
        matches!(c, Component::Normal(name) if name == "tests" || name == "benches" || name == "examples")
    });
    in_folder || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// Drops items behind `#[test]` and `#[cfg(test)]`: up to their braces or semicolon.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = vec![];
    let mut skipping = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if is_punct(Some(&token), '#') && is_test_attribute(tokens.peek()) {
            skipping = true;
        }
        let ends_item = match &token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            other => is_punct(Some(other), ';'),
        };
        if !skipping {
            kept.push(shipped(token));
        } else if ends_item {
            skipping = false;
        }
    }
    kept.into_iter().collect()
}

fn shipped(token: TokenTree) -> TokenTree {
    let TokenTree::Group(group) = token else {
        return token;
    };
    let mut inner = proc_macro2::Group::new(group.delimiter(), without_tests(group.stream()));
    inner.set_span(group.span());
    TokenTree::Group(inner)
}

fn is_test_attribute(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else {
        return false;
    };
    let text: String = group.stream().to_string().split_whitespace().collect();
    matches!(text.as_str(), "test" | "cfg(test)") || text.starts_with("cfg(all(test")
}

#[cfg(test)]
pub(super) fn snippet(package: &str, path: &str, text: &str) -> Source {
    Source::parse(path.into(), package, text).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_tests_compile_is_dropped() {
        let source = snippet(
            "ew-x",
            "crates/ew-x/src/a.rs",
            "fn a() { b(); } #[cfg(test)] mod tests { fn c() {} } #[test] fn d() {} #[cfg(test)] use e; fn f() {}",
        );
        let text = source.shipped_tokens().to_string();
        for (name, kept) in [
            ("a", true),
            ("b", true),
            ("c", false),
            ("d", false),
            ("e", false),
            ("f", true),
        ] {
            let found = text
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == name);
            assert_eq!(found, kept, "{name} in {text}");
        }
    }

    #[test]
    fn test_files_are_known_by_their_place() {
        for (path, is_test) in [
            ("crates/a/tests/x.rs", true),
            ("crates/a/src/b/tests.rs", true),
            ("crates/a/src/b.rs", false),
            ("crates/a/src/contests.rs", false),
        ] {
            assert_eq!(is_test_path(Path::new(path)), is_test, "{path}");
        }
    }

    #[test]
    fn broken_text_is_a_violation_with_its_line() {
        let error = Source::parse("a.rs".into(), "x", "fn a() {}\n}\n").unwrap_err();
        assert!(error.to_string().starts_with("a.rs:2: "), "{error}");
    }
}
