//! The field's words: what a term is called everywhere, in comments, texts and docs.

use super::source::Source;
use super::violation::Violation;
use super::workspace::Doc;
use proc_macro2::{TokenStream, TokenTree};

/// Retired words and phrases, in lower case, and what to write.
const RETIRED: [(&str, &str); 80] = [
    ("told", "reported, shown"),
    ("tell", "report, show"),
    ("tells", "reports, shows"),
    ("greatest", "max, largest"),
    ("usual", "typical, default"),
    ("beside", "next to, compared with"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("sent again", "retransmitted"),
    ("held back", "throttled"),
    ("left out", "skipped"),
    ("take turns", "are interleaved"),
    ("lone flow", "isolated flow"),
    ("lone flows", "isolated flows"),
    ("in company", "with concurrent flows"),
    ("usual here", "typical"),
    ("stranger", "unauthenticated peer"),
    ("strangers", "unauthenticated connections"),
    ("foreign traffic", "background traffic"),
    ("payload ceiling", "max goodput"),
    ("healthy host", "reference host"),
    ("healthy hosts", "reference hosts"),
    ("both ways", "both directions"),
    ("proved clean", "confirmed clean"),
    ("slow as a whole", "degraded for all flows"),
    ("endless rate", "asymptotic bandwidth"),
    ("half performance", "n1/2"),
    ("teller", "reporter"),
    ("tellers", "reporters"),
    ("happening", "fleet event"),
    ("said", "reported, shown"),
    ("stated", "configured, expected"),
    ("held against", "compared with"),
    ("hold against", "compare with"),
    ("inside racks", "intra-rack"),
    ("across racks", "cross-rack"),
    ("asking end", "client"),
    ("answering end", "server"),
    ("asking host", "client"),
    ("answering host", "server"),
    ("judged stages", "capacity tests"),
    ("want of cpu", "CPU starvation"),
    ("got no cpu", "were CPU-starved"),
    ("least frame", "minimum-size frame"),
    ("least frames", "minimum-size frames"),
    ("least size", "smallest size"),
    ("drawn anew", "selected anew"),
    ("in a drawn order", "in random order"),
    ("looking", "polling, checking"),
    ("looks whether", "checks whether"),
    ("looked whether", "checked whether"),
    ("is looked for", "is polled for"),
    ("says hello", "sends hello"),
    ("kernel says", "kernel reports"),
    ("says where", "shows where"),
    ("says whether", "returns whether"),
    ("hold back", "throttle, delay"),
    ("hold up", "delay"),
    ("holds up", "delays"),
    ("holds the truth", "contains the truth"),
    ("holds wrong", "contains wrong"),
    ("came twice", "duplicated"),
    ("in turns", "interleaved"),
    ("takes turns", "is interleaved"),
    ("settles", "converges"),
    ("stands for", "means"),
    ("seat", "slot"),
    ("seats", "slots"),
    ("lane", "stream counters, server port"),
    ("door", "listener"),
    ("inlet", "receive path"),
    ("outlet", "send path, sink"),
    ("outlets", "send paths, sinks"),
    ("ledger", "byte totals"),
    ("no room", "no space"),
    ("room for", "space for, headroom for"),
    ("crowd", "concurrent flows"),
    ("least cost", "min cost"),
    ("mending", "fixing"),
];
/// The list itself.
const THIS: &str = "xtask/src/tidy/words.rs";

/// Violations of one Rust file: its comments and texts, but for names that old files have.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if source.path.ends_with(THIS) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    collect_texts(&source.tokens, &mut texts);
    let lines = source.text.lines().enumerate();
    let comments = lines.filter_map(|(index, line)| {
        let comment = line.trim_start().strip_prefix("// ")?;
        Some((index + 1, comment.to_owned()))
    });
    texts.extend(comments);
    let retired = texts.iter().flat_map(|(line, text)| {
        let found = retired_in(text).map(|(word, instead)| (*line, word, instead));
        found.collect::<Vec<_>>()
    });
    retired
        .map(|(line, word, instead)| source.violation(line, what(word), &fix(instead)))
        .collect()
}

/// Violations of a page of the docs.
pub(crate) fn check_doc(doc: &Doc) -> Vec<Violation> {
    let lines = doc.text.lines().enumerate();
    let found = lines.flat_map(|(index, line)| {
        retired_in(line).map(move |(word, instead)| (index + 1, word, instead))
    });
    found
        .map(|(line, word, instead)| Violation::new(&doc.path, line, what(word), fix(instead)))
        .collect()
}

fn what(word: &str) -> String {
    format!("`{word}` is not the field's word")
}

fn fix(instead: &str) -> String {
    format!("write: {instead}")
}

/// String literals and doc comments with their lines; not the aliases that serde reads.
fn collect_texts(tokens: &TokenStream, texts: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect_texts(&group.stream(), texts),
            TokenTree::Literal(literal) if !is_alias(&tokens[..index]) => {
                let text = literal.to_string();
                if text.contains('"') {
                    texts.push((literal.span().start().line, text));
                }
            }
            _ => {}
        }
    }
}

/// Whether what comes before is `alias =`.
fn is_alias(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Ident(name), TokenTree::Punct(_)] if name == "alias")
}

/// The retired words of a text, but for names of variables in it.
fn retired_in(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let lower = without_captures(&text.to_lowercase());
    RETIRED
        .into_iter()
        .filter(move |(word, _)| has_word(&lower, word))
}

/// The text without what `{name}` and `{name:?}` stand for in it.
fn without_captures(text: &str) -> String {
    let mut parts = text.split('{');
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        left.push_str(part.split_once('}').map_or(part, |(_, behind)| behind));
    }
    left
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    #[test]
    fn comments_and_texts_are_searched_and_names_are_not() {
        let text = "/// What it tells.\nfn told() {\n    // Sent again.\n    let a = \"the greatest\";\n}\n";
        let source = snippet("ew-x", "crates/ew-x/src/a.rs", text);
        let lines: Vec<usize> = check(&source).iter().map(|v| v.line).collect();
        assert_eq!(lines, [1, 4, 3]);
    }

    #[test]
    fn captures_are_names() {
        let text = "fn f() {\n    let a = format!(\"{said:?} is {stated}, {}\", 1);\n}\n";
        let source = snippet("ew-x", "crates/ew-x/src/a.rs", text);
        assert!(check(&source).is_empty());
    }

    #[test]
    fn aliases_of_old_files_stay() {
        let text = "#[serde(alias = \"told\")]\nstruct A;\n";
        assert!(check(&snippet("ew-x", "crates/ew-x/src/a.rs", text)).is_empty());
    }

    #[test]
    fn whole_words_only() {
        assert!(
            retired_in("untold, foretell, remedy besides")
                .next()
                .is_none()
        );
        assert!(retired_in("It Tells").next().is_some());
    }
}
