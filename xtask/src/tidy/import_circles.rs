//! No files of a crate import each other in a circle: one of them is read first, and says what it
//! needs.

use super::source::{Source, ident, is_punct};
use super::violation::Violation;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const FIX: &str = "move what both need into a file of its own, below both";
/// Re-exports of re-exports are followed so far.
const MAX_DEPTH: usize = 8;

/// Names from the crate's root to a module, or on to an item.
type Names = Vec<String>;

/// The modules of a crate with what they import.
#[derive(Debug, Default)]
struct Crate<'a> {
    modules: BTreeMap<Names, Module<'a>>,
}

#[derive(Debug)]
struct Module<'a> {
    source: &'a Source,
    imports: Vec<Names>,
    /// What it hands on, by the name under which it does.
    handed_on: BTreeMap<String, Names>,
}

/// Violations of all crates.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let mut packages: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        packages.entry(&source.package).or_default().push(source);
    }
    packages.into_values().flat_map(check_package).collect()
}

fn check_package(sources: Vec<&Source>) -> Vec<Violation> {
    let modules = Crate::of(sources);
    let circles = modules.circles().into_iter();
    let violation = |circle: Vec<Names>| {
        let name = |module: &Names| match module.is_empty() {
            true => "lib".to_owned(),
            false => module.join("::"),
        };
        let names: Vec<String> = circle.iter().map(name).collect();
        let what = format!("files import each other in a circle: {}", names.join(", "));
        modules.modules[&circle[0]].source.violation(1, what, FIX)
    };
    circles.map(violation).collect()
}

impl<'a> Crate<'a> {
    fn of(sources: Vec<&'a Source>) -> Self {
        let named = |source: &'a Source| Some((module_of(&source.path)?, source));
        let sources: BTreeMap<Names, &Source> = sources.into_iter().filter_map(named).collect();
        let mut all = Self::default();
        for (module, source) in &sources {
            let mut reader = Reader {
                module,
                is_module: &|names| sources.contains_key(names),
                imports: Vec::new(),
                handed_on: BTreeMap::new(),
            };
            reader.read(source.shipped_tokens());
            let Reader {
                imports, handed_on, ..
            } = reader;
            let module_read = Module {
                source,
                imports,
                handed_on,
            };
            all.modules.insert(module.clone(), module_read);
        }
        all
    }

    /// The file that defines what is named.
    fn home(&self, names: &[String], depth: usize) -> Names {
        let lengths = (0..=names.len()).rev();
        let mut modules = lengths.map(|length| &names[..length]);
        let module = modules.find(|module| self.modules.contains_key(*module));
        let module = module.unwrap_or_default();
        let item = names.get(module.len());
        let handed_on = item.and_then(|item| self.modules.get(module)?.handed_on.get(item));
        match handed_on {
            Some(names) if depth < MAX_DEPTH => self.home(names, depth + 1),
            _ => module.to_vec(),
        }
    }

    fn edges(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let of = |(module, read): (&'_ Names, &Module<'_>)| {
            let homes = read.imports.iter().map(|names| self.home(names, 0));
            let others = homes.filter(|home| home != module);
            others
                .filter(|home| self.modules.contains_key(home))
                .collect()
        };
        let modules = self.modules.iter();
        modules
            .map(|(module, read)| (module, of((module, read))))
            .collect()
    }

    /// Groups in which each leads to each other.
    fn circles(&self) -> Vec<Vec<Names>> {
        let edges = self.edges();
        let reached = |from: &Names| {
            let mut reached: BTreeSet<&Names> = BTreeSet::new();
            let mut open: Vec<&Names> = edges[from].iter().collect();
            while let Some(next) = open.pop() {
                if reached.insert(next) {
                    open.extend(&edges[next]);
                }
            }
            reached
        };
        let all: BTreeMap<&Names, BTreeSet<&Names>> = edges
            .keys()
            .map(|module| (*module, reached(module)))
            .collect();
        let mut circles: Vec<Vec<Names>> = Vec::new();
        for (module, reached) in all
            .iter()
            .filter(|(module, reached)| reached.contains(*module))
        {
            let with = reached.iter().filter(|other| all[*other].contains(module));
            let circle: Vec<Names> = with.map(|other| (*other).clone()).collect();
            if !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles
    }
}

/// `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`, `src/lib.rs` is the root. `None` for what is no
/// module of the library or the binary.
fn module_of(path: &Path) -> Option<Names> {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let start = parts.iter().position(|part| *part == "src")? + 1;
    let (file, folders) = parts[start..].split_last()?;
    let name = file.strip_suffix(".rs")?;
    let is_other_root = folders.first() == Some(&"bin") || (folders.is_empty() && name == "main");
    let mut names: Names = folders.iter().map(|folder| (*folder).to_owned()).collect();
    if !(name == "mod" || (folders.is_empty() && name == "lib")) {
        names.push(name.to_owned());
    }
    (!is_other_root).then_some(names)
}

/// Reads one file's paths.
struct Reader<'a> {
    module: &'a Names,
    is_module: &'a dyn Fn(&Names) -> bool,
    imports: Vec<Names>,
    handed_on: BTreeMap<String, Names>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let level: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < level.len() {
            if let Some(length) = self.read_hand_on(&level[at..]) {
                at += length;
                continue;
            }
            let goes_on =
                at > 0 && (is_punct(level.get(at - 1), ':') || is_punct(level.get(at - 1), '.'));
            if let Some(base) = self.base(&level[at..]).filter(|_| !goes_on) {
                let mut found = Vec::new();
                at += leaves(&level[at + 3..], base, &mut found) + 3;
                self.imports
                    .extend(found.into_iter().map(|(names, _)| names));
                continue;
            }
            let is_scope = at > 0 && ident(level.get(at - 1)).is_some_and(|word| word == "pub");
            if let TokenTree::Group(group) = &level[at]
                && !is_scope
            {
                self.read(group.stream());
            }
            at += 1;
        }
    }

    /// `pub use`, with or without a scope: how many tokens.
    fn read_hand_on(&mut self, level: &[TokenTree]) -> Option<usize> {
        if ident(level.first())? != "pub" {
            return None;
        }
        let has_scope = matches!(level.get(1), Some(TokenTree::Group(_)));
        let start = 1 + usize::from(has_scope);
        if ident(level.get(start))? != "use" {
            return None;
        }
        let end = level.iter().position(|token| is_punct(Some(token), ';'))?;
        if let Some(base) = self.base(&level[start + 1..]) {
            let mut found = Vec::new();
            leaves(&level[start + 4..end], base, &mut found);
            for (names, name) in found {
                self.handed_on.insert(name, names);
            }
        }
        Some(end + 1)
    }

    /// Where a path leads that begins here: with `crate`, `self`, `super` or a module of this one.
    fn base(&self, tokens: &[TokenTree]) -> Option<Names> {
        let name = ident(tokens.first())?.to_string();
        if !is_punct(tokens.get(1), ':') || !is_punct(tokens.get(2), ':') {
            return None;
        }
        let child = [self.module.clone(), vec![name.clone()]].concat();
        match name.as_str() {
            "crate" => Some(Names::new()),
            "self" => Some(self.module.clone()),
            "super" => Some(self.module[..self.module.len().saturating_sub(1)].to_vec()),
            _ => (self.is_module)(&child).then_some(child),
        }
    }
}

/// Adds every path from `base` on, with the name that it has here; returns how many tokens it took.
fn leaves(tokens: &[TokenTree], base: Names, found: &mut Vec<(Names, String)>) -> usize {
    match tokens.first() {
        Some(TokenTree::Ident(name)) if name == "super" && is_path(&tokens[1..]) => {
            let outer = base[..base.len().saturating_sub(1)].to_vec();
            3 + leaves(&tokens[3..], outer, found)
        }
        Some(TokenTree::Ident(name)) => {
            let names = match name == "self" {
                true => base,
                false => [base, vec![name.to_string()]].concat(),
            };
            if is_path(&tokens[1..]) {
                return 3 + leaves(&tokens[3..], names, found);
            }
            let renamed = ident(tokens.get(1)).filter(|word| *word == "as");
            let own = renamed.and_then(|_| ident(tokens.get(2))).unwrap_or(name);
            found.push((names, own.to_string()));
            if renamed.is_some() { 3 } else { 1 }
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let parts = inner.split(|token| is_punct(Some(token), ','));
            for part in parts.filter(|part| !part.is_empty()) {
                leaves(part, base.clone(), found);
            }
            1
        }
        _ => {
            found.push((base, "*".into()));
            0
        }
    }
}

fn is_path(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), ':') && is_punct(tokens.get(1), ':')
}

#[cfg(test)]
mod tests {
    use super::super::source::snippet;
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| snippet("x", &format!("crates/x/src/{path}"), text);
        let sources: Vec<Source> = files.iter().map(source).collect();
        let violations = check(&sources);
        let names = |violation: &Violation| violation.what.rsplit(": ").next().unwrap().to_owned();
        violations.iter().map(names).collect()
    }

    #[test]
    fn circles_are_found_however_they_are_imported() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use super::b::{self, B};", "fn f() { crate::a::f(); }"),
            ("use crate::{b::B, c};", "use crate::{c::C, a::{A, D}};"),
            ("use crate::B;", "use crate::a::A;"),
        ] {
            let lib = "mod a; mod b; mod c; pub use b::B;";
            let files = [("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", "")];
            assert_eq!(circles(&files), ["a, b"], "{a} {b}");
        }
    }

    #[test]
    fn a_registry_above_its_trait_is_none() {
        let registry = "mod one; mod tool; pub(crate) use tool::Tool; fn all() { one::One; }";
        let one = "use super::{Tool,};";
        let files = [("t/mod.rs", registry), ("t/one.rs", one), ("t/tool.rs", "")];
        assert_eq!(circles(&files), [""; 0]);
        let files = [
            ("t/mod.rs", "mod one; trait Tool {} fn all() { one::One; }"),
            ("t/one.rs", one),
        ];
        assert_eq!(circles(&files), ["t, t::one"]);
    }

    #[test]
    fn tests_and_other_crates_are_no_imports() {
        let a = "use std::b::B; pub(in crate::b) fn f(x: X) { x.b::<u8>(); } #[cfg(test)] mod tests { use crate::b::B; }";
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", a),
            ("b.rs", "use crate::a::A;"),
        ];
        assert_eq!(circles(&files), [""; 0]);
    }
}
