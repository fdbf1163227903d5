//! `roles:` of a scenario file: flows between two sets, and what takes none.

use crate::common::{eastwest, text};
use std::collections::BTreeSet;
use std::process::Output;
use tempfile::TempDir;

const FILE: &str = "name: between
roles: {clients: 'n[1-2]', servers: 's[1-3]'}
defaults: {duration: 100ms, warm-up: 50ms, gap: 50ms, samples: 1}
tests:
";

fn run(tests: &str, words: &[&str]) -> (TempDir, Output) {
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("between.yaml");
    std::fs::write(&file, format!("{FILE}{tests}")).unwrap();
    let out = eastwest()
        .arg("run")
        .arg(&file)
        .args(["--via", "local", "--format", "csv", "--runs-dir"])
        .arg(work.path().join("runs"))
        .args(words)
        .output()
        .unwrap();
    (work, out)
}

/// Senders and receivers of the pair matrix.
fn pairs(out: &Output) -> BTreeSet<(String, String)> {
    let table = text(&out.stdout);
    let head: Vec<&str> = table.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|h| *h == name).unwrap();
    let (src, dst) = (column("src"), column("dst"));
    let rows = table.lines().skip(1).map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        (fields[src].to_owned(), fields[dst].to_owned())
    });
    rows.collect()
}

#[test]
fn flows_of_a_scenario_with_roles_go_from_clients_to_servers() {
    let tests = "  - {name: fewer, pattern: {fan-in: {servers: fewer}}}\n  - {pattern: mesh}\n";
    let (_work, out) = run(tests, &[]);
    assert_ne!(out.status.code(), Some(2), "{}", text(&out.stderr));
    let all = ["n1", "n2"]
        .into_iter()
        .flat_map(|client| ["s1", "s2", "s3"].map(|server| (client.to_owned(), server.to_owned())));
    assert_eq!(pairs(&out), all.collect());
}

#[test]
fn the_command_line_goes_before_the_file() {
    let (_work, out) = run(
        "  - {pattern: fan-in}\n",
        &["--clients", "n1", "--servers", "s2"],
    );
    assert_ne!(out.status.code(), Some(2), "{}", text(&out.stderr));
    let one = ("n1".to_owned(), "s2".to_owned());
    assert_eq!(pairs(&out), BTreeSet::from([one]));
}

#[test]
fn roles_that_cannot_be_are_usage() {
    let (_work, out) = run("  - {pattern: congestion}\n", &["--servers", "s1"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    let said = text(&out.stderr);
    assert!(
        said.contains("congestion") && said.contains("servers"),
        "{said}"
    );
    let (_work, out) = run("  - {pattern: fan-in}\n", &["--servers", "n[2-3]"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("host n2 is in --clients and in --servers"));
}
