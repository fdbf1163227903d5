//! The commands in the documentation: what it shows of `hosts`, `scenario`, `size` and `line-rate`
//! is what they print, and everything it runs can be planned.

use crate::common::{eastwest, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Commands that only calculate.
const PURE: [&str; 5] = ["hosts", "nodeset", "scenario", "size", "line-rate"];
/// Commands that measure; `--dry-run` plans.
const PLANNED: [&str; 5] = ["run", "pair", "latency", "mesh", "congestion"];
/// What cannot be planned here: it asks a cluster, a scheduler, a lab, a storage system or an
/// earlier run, or a file that no page shows.
const OUTSIDE: [&str; 13] = [
    "kubernetes",
    "--via",
    "--fleet",
    "dfsio",
    "fan-in",
    "--run last",
    "--web",
    "--metrics",
    "--compare-with",
    "--addresses",
    "@row",
    "--interface",
    "run pods",
];

/// Pages whose tables contain commands, next to those of other tools.
const COMPARISONS: &str = "docs/comparisons";

/// A line after `$ eastwest`, and what the page shows below it.
pub(crate) struct Shown {
    page: PathBuf,
    pub(crate) line: String,
    pub(crate) output: Vec<String>,
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs/guide", "docs/concepts", "docs/reference", COMPARISONS] {
        let files = std::fs::read_dir(root.join(folder)).unwrap();
        let markdown = files.map(|file| file.unwrap().path());
        pages.extend(markdown.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    pages.sort();
    pages
}

fn shown() -> Vec<Shown> {
    pages().iter().flat_map(|page| shown_on(page)).collect()
}

pub(crate) fn shown_on(page: &Path) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let text = std::fs::read_to_string(page).unwrap().replace("\\\n", " ");
    if page
        .parent()
        .is_some_and(|folder| folder.ends_with(COMPARISONS))
    {
        all.extend(in_tables(page, &text));
    }
    let blocks = text.split("```console\n").skip(1);
    for block in blocks.filter_map(|rest| rest.split("\n```").next()) {
        let mut is_ours = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                is_ours = command.starts_with("eastwest ");
                if is_ours {
                    all.push(Shown {
                        page: page.to_owned(),
                        line: command["eastwest ".len()..].to_owned(),
                        output: Vec::new(),
                    });
                }
            } else if let Some(last) = all.last_mut().filter(|_| is_ours) {
                last.output.push(line.to_owned());
            }
        }
    }
    all
}

/// Whole commands; three dots replace the rest of one.
fn in_tables(page: &Path, text: &str) -> Vec<Shown> {
    let spans = text.split('`').skip(1).step_by(2);
    let commands = spans.filter_map(|span| span.strip_prefix("eastwest "));
    let whole = commands.filter(|command| !command.contains("..."));
    let shown = |command: &str| Shown {
        page: page.to_owned(),
        line: command.to_owned(),
        output: Vec::new(),
    };
    whole.map(shown).collect()
}

/// Words up to a comment, a pipe, a redirection or the next command.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(part.to_owned());
            continue;
        }
        for word in part.split_whitespace() {
            if ["#", "|", ">"].contains(&word) {
                return words;
            }
            words.push(word.trim_end_matches(';').to_owned());
            if word.ends_with(';') {
                return words;
            }
        }
    }
    words
}

/// Groups, files and a saved cluster that pages speak of.
fn surroundings() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mut groups = String::from("all: n[1-24]\ncompute: n[1-8]\ngpu: n[9-12]\n");
    for rack in 1..=3 {
        let hosts = format!("n[{}-{}]", 8 * rack - 7, 8 * rack);
        groups.push_str(&format!(
            "mc_rack{rack}: {hosts}\nrack{rack}: {hosts}\nrow{rack}: n[{rack}-{rack}]\n"
        ));
    }
    write("groups", &groups);
    write("nodes.rack1", "n1\nn2\nn3\nn4\n");
    write("nodes.rack2", "n5\nn6\nn7\nn8\n");
    write("inventory.ini", "[compute]\nn[1:16]\n");
    write(
        "config/eastwest/clusters.yaml",
        "prod:\n  hosts: n[1-8]\nforty:\n  racks: 'r1=r1h[1-10],r2=r2h[1-10],r3=r3h[1-10],r4=r4h[1-10]'\n",
    );
    let mine = eastwest()
        .args(["scenario", "show", "qualify"])
        .output()
        .unwrap();
    write("mine.yaml", &text(&mine.stdout));
    dir
}

fn run(words: &[String], surroundings: &TempDir) -> Output {
    let mut command: Command = eastwest();
    let config = surroundings.path().join("config");
    command.args(words).current_dir(surroundings.path());
    command.env("CLUSTERSHELL_CFGDIR", surroundings.path());
    command.env("XDG_CONFIG_HOME", config);
    command.output().unwrap()
}

/// `...` replaces what a page leaves out.
fn is_like(printed: &str, page: &[String]) -> bool {
    let mut at = printed;
    let mut may_skip = false;
    for line in page.iter().map(|line| line.trim_end()) {
        if line == "..." {
            may_skip = true;
            continue;
        }
        let line = format!("{line}\n");
        let Some(found) = at.find(&line).filter(|found| may_skip || *found == 0) else {
            return false;
        };
        at = &at[found + line.len()..];
        may_skip = false;
    }
    may_skip || at.is_empty()
}

#[test]
fn commands_in_the_documentation_do_what_it_shows() {
    let surroundings = surroundings();
    let (mut checked, mut wrong) = (0, Vec::new());
    for Shown { page, line, output } in shown() {
        let mut words = words(&line);
        let command = words[0].clone();
        let is_planned = PLANNED.contains(&command.as_str());
        if OUTSIDE.iter().any(|outside| line.contains(outside)) {
            continue;
        }
        if !is_planned && !PURE.contains(&command.as_str()) {
            continue;
        }
        if is_planned && !line.contains("--dry-run") {
            words.push("--dry-run".into());
        }
        let out = run(&words, &surroundings);
        let is_refused = output
            .first()
            .is_some_and(|line| line.starts_with("error: "));
        let printed = match is_refused {
            true => text(&out.stderr),
            false => text(&out.stdout),
        };
        let expected = if is_refused { 2 } else { 0 };
        let shows = output.is_empty() || is_planned && !is_refused || is_like(&printed, &output);
        if out.status.code() != Some(expected) || !shows {
            wrong.push(format!(
                "{}: {line}\n{}{}",
                page.display(),
                text(&out.stderr),
                if shows { String::new() } else { printed }
            ));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 40, "only {checked} commands were found");
}
