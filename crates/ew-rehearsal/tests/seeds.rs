//! Worlds of a few hundred seeds; `make sim` runs as many as wanted.

use ew_model::event::RunEvent;
use ew_model::finding::{Cause, Finding, Severity, Subject};
use ew_model::inventory::HostId;
use ew_model::run::{Outcome, RunManifest};
use ew_rehearsal::{Desk, Drawn, Trace, draw, draw_healthy, rehearse, violations};
use ew_store::RunWriter;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// So many worlds, from here on.
const SEEDS: std::ops::Range<u64> = 1..301;

#[test]
fn what_must_be_true_is_true_in_every_world() {
    let mut wrong = Vec::new();
    for seed in SEEDS {
        let trace = rehearse(draw(seed)).expect("a run");
        wrong.extend(
            violations(&trace)
                .iter()
                .map(|found| format!("seed {seed}: {found}")),
        );
    }
    assert!(
        wrong.is_empty(),
        "{} violations:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_seed_is_one_trace() {
    for seed in 1..20 {
        let hash = || rehearse(draw(seed)).expect("a run").hash().expect("JSON");
        assert_eq!(hash(), hash(), "seed {seed}");
    }
    let other = |seed| rehearse(draw(seed)).expect("a run").hash().expect("JSON");
    assert_ne!(other(1), other(2));
}

/// The thread that keeps the agents alive waits for neither.
#[test]
fn a_full_disk_and_a_stalled_terminal_change_nothing_of_a_run() {
    let hours = |count: u64| std::iter::once(0..count * 3_600_000_000_000).collect();
    for seed in 1..20 {
        let with = |desk| {
            let drawn = Drawn { desk, ..draw(seed) };
            rehearse(drawn).expect("a run")
        };
        let (good, bad) = (
            with(Desk::default()),
            with(Desk {
                full_ns: hours(2),
                disk_stalls_ns: hours(1),
                terminal_stalls_ns: hours(1),
                max_waiting_bytes: None,
            }),
        );
        assert_eq!(good.hash().unwrap(), bad.hash().unwrap(), "seed {seed}");
        assert!(good.unwritten.is_none() && bad.unwritten.is_some());
        assert!(!good.file.is_empty() && bad.file.is_empty());
    }
}

/// Events of so many hosts are packed.
#[test]
fn the_record_of_a_large_run_is_whole_and_lacks_what_it_counts_after_a_full_disk() {
    let with = |desk| {
        let mut drawn = draw_healthy(1, 130);
        drawn.scenario.tests.truncate(3);
        rehearse(Drawn { desk, ..drawn }).expect("a run")
    };
    let good = with(Desk::default());
    assert_eq!(violations(&good), Vec::<String>::new());
    let middle_ns = good.took_ns / 2;
    let full = with(Desk {
        full_ns: std::iter::once(middle_ns..middle_ns + 3_000_000_000).collect(),
        ..Desk::default()
    });
    assert_eq!(violations(&full), Vec::<String>::new());
    assert!(full.unwritten.is_some());
    for trace in [good, full] {
        assert!(ew_store::plain_lines(&trace.file).len() > 2 * trace.file.len());
    }
}

/// A controller that is killed, or whose disk is full, leaves a run directory that ends anywhere.
#[test]
fn every_beginning_of_a_run_can_be_read_and_accuses_no_idle_host() {
    for seed in 1..40 {
        let trace = rehearse(draw(seed)).expect("a run");
        let directory = tempfile::tempdir().expect("a directory");
        let kept = trace.file.len() * (seed as usize % 8 + 1) / 8;
        let path = write_beginning(&trace, directory.path(), kept);
        let run = ew_store::load(&path).expect("a run");
        let loaded: BTreeSet<HostId> = run
            .flows
            .iter()
            .flat_map(|row| [row.src, row.dst])
            .collect();
        let analysis = ew_analyze::analyze(&run);
        ew_report::findings_json(&analysis).expect("JSON");
        let is_fault = |finding: &&Finding| finding.severity == Severity::Fault;
        for finding in analysis.verdict.findings.iter().filter(is_fault) {
            // That a host did not come up, or was lost, is no accusation by measured rates.
            if let Subject::Host { host } = finding.subject
                && finding.cause != Cause::HostMissing
            {
                assert!(
                    loaded.contains(&host),
                    "seed {seed}, {kept} bytes: {finding:?}"
                );
            }
        }
    }
}

fn write_beginning(trace: &Trace, runs_dir: &Path, kept: usize) -> PathBuf {
    let plan = trace.events.iter().find_map(|event| match &event.event {
        RunEvent::RunStarted { plan, .. } => Some(plan),
        _ => None,
    });
    let manifest = RunManifest {
        format_version: ew_store::FORMAT_VERSION,
        id: format!("seed-{}", trace.drawn.seed),
        version: String::new(),
        started_unix_ns: 0,
        finished_unix_ns: None,
        fleet: "simulated".into(),
        command: Vec::new(),
        scenario: trace.drawn.scenario.clone(),
        inventory: trace.inventory.clone(),
        seed: trace.drawn.seed,
        node_labels: BTreeMap::new(),
        barriers: Vec::new(),
        plan_hash: plan.map(ew_store::plan_hash).unwrap_or_default(),
        outcome: Outcome::Unfinished,
        controller_peak_bytes: None,
        controller_cpu_ns: None,
    };
    let writer = RunWriter::create(runs_dir, manifest).expect("a run directory");
    let events = &trace.file[..kept];
    std::fs::write(writer.path().join(ew_store::EVENTS_FILE), events).expect("a file");
    writer.path().to_owned()
}
