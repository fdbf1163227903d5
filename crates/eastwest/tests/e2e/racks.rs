//! `hosts --racks-of`: racks guessed from a run, on simulated networks whose racks are known.

use crate::common::{Finished, eastwest, text};
use std::process::Output;
use tempfile::TempDir;

/// Rounds that load all hosts, intra-rack and cross-rack.
const ALL_HOSTS: &str = "name: all\ndefaults: {samples: 20, streams: 8}\ntests:\n  - {name: inside, pattern: permutation}\n  - {name: across, pattern: cross-rack}\n";
const PATHS: &str = "name: paths\ntests:\n  - {name: paths, pattern: mesh, workload: trace}\n";

/// The racks of a simulated run over two racks of three hosts of 100 Mb/s.
fn racks_of(scenario: &str, uplink: &str) -> Output {
    let work = TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = work.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let lab = format!("name: sim\nracks: 2\nhosts-per-rack: 3\nnic: 100M\nuplink: {uplink}\n");
    let out = eastwest()
        .arg("run")
        .arg(file("scenario.yaml", scenario))
        .args(["--via", "sim", "--quiet", "--format", "json", "--seed", "1"])
        .arg("--topology")
        .arg(file("lab.yaml", &lab))
        .arg("--runs-dir")
        .arg(work.path().join("runs"))
        .output()
        .unwrap();
    Finished::of(&out);
    eastwest()
        .args(["hosts", "--racks-of", "last", "--runs-dir"])
        .arg(work.path().join("runs"))
        .output()
        .unwrap()
}

#[test]
fn a_guess_is_shown_with_what_it_is_made_from_and_its_agreement() {
    for (scenario, uplink, by) in [
        (ALL_HOSTS, "75M", "a guess by rates: 100% of 15 pairs agree"),
        (
            PATHS,
            "300M",
            "a guess by routers on traced paths: 100% of 15 pairs agree",
        ),
    ] {
        let out = racks_of(scenario, uplink);
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert_eq!(
            text(&out.stdout).trim(),
            "guess1=r1h[1-3],guess2=r2h[1-3]",
            "as --racks takes it"
        );
        assert!(text(&out.stderr).contains(by), "{}", text(&out.stderr));
    }
}

#[test]
fn where_uplinks_limit_nobody_there_is_no_guess_but_what_to_run() {
    let out = racks_of(ALL_HOSTS, "600M");
    assert!(!out.status.success());
    assert_eq!(text(&out.stdout), "");
    let words = text(&out.stderr);
    assert!(words.contains("shows no racks"), "{words}");
    assert!(words.contains("eastwest run permutation"), "{words}");
}
