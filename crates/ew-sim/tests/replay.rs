//! The replay corpus: runs that were recorded on labs whose truth is known (bench/corpus), analysed
//! anew. Prints what today's analysis makes of them, and fails when that is worse than it was.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests too"
)]

use ew_sim::{Judgement, Truth, clopper_pearson, judge};
use ruzstd::decoding::StreamingDecoder;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What an analysis reached before. Whoever betters it raises these.
const MIN_RIGHT: usize = 285;
const MAX_WRONG_RUNS: usize = 1;

const FALSE_ACCUSATION: &str = "no false accusation";

#[derive(Deserialize)]
struct Name {
    kind: String,
    seed: u64,
}

struct Replayed {
    name: Name,
    truth: Truth,
    judgement: Judgement,
    sentence: String,
}

impl Replayed {
    fn accuses_wrongly(&self) -> bool {
        let checks = &self.judgement.checks;
        checks
            .iter()
            .any(|(name, passed)| *name == FALSE_ACCUSATION && !passed)
    }
}

#[test]
fn recorded_runs_are_judged_as_well_as_before() {
    let files = corpus();
    println!("{} recorded runs", files.len());
    let mut all = replay_all(&files);
    all.sort_by(|a, b| (&a.name.kind, a.name.seed).cmp(&(&b.name.kind, b.name.seed)));
    print_matrix(&all);
    print_checks(&all);
    if std::env::var_os("REPLAY_LIST").is_some() {
        print_wrong(&all);
    }
    let right = all.iter().filter(|run| run.judgement.is_right()).count();
    let accusing = all.iter().filter(|run| run.accuses_wrongly()).count();
    assert!(right >= MIN_RIGHT, "{right} right, before {MIN_RIGHT}");
    assert!(
        accusing <= MAX_WRONG_RUNS,
        "{accusing} runs accuse wrongly, before {MAX_WRONG_RUNS}"
    );
}

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/corpus");
    let entries = std::fs::read_dir(&folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "zst"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{} contains no runs", folder.display());
    files
}

/// On all CPUs.
fn replay_all(files: &[PathBuf]) -> Vec<Replayed> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let replayed = replay(file);
                    done.lock().unwrap().push(replayed);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

fn replay(file: &Path) -> Replayed {
    let text = decompressed(file);
    let (name, rest) = text.split_once('\n').unwrap();
    let (truth, rest) = rest.split_once('\n').unwrap();
    let (manifest, events) = rest.split_once('\n').unwrap();
    let run = tempfile::tempdir().unwrap();
    std::fs::write(run.path().join("run.json"), manifest).unwrap();
    std::fs::write(run.path().join("events.jsonl"), format!("{events}\n")).unwrap();
    let run = ew_store::load(run.path()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let truth: Truth =
        serde_json::from_str(truth).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let analysis = ew_analyze::analyze(&run);
    Replayed {
        name: serde_json::from_str(name).unwrap(),
        judgement: judge(&truth, &analysis),
        truth,
        sentence: ew_report::in_words(&analysis).sentence,
    }
}

fn decompressed(file: &Path) -> String {
    let packed = std::fs::File::open(file).unwrap();
    let mut text = String::new();
    let mut decoder = StreamingDecoder::new(packed).unwrap();
    decoder.read_to_string(&mut text).unwrap();
    text
}

fn print_matrix(all: &[Replayed]) {
    let mut kinds: BTreeMap<&str, Vec<&Replayed>> = BTreeMap::new();
    for run in all {
        kinds.entry(&run.name.kind).or_default().push(run);
    }
    println!(
        "\n{:24} {:>5} {:>6} {:>7} {:>8} {:>8}",
        "truth", "runs", "right", "missed", "accused", "starved"
    );
    for (kind, runs) in kinds {
        let count =
            |which: &dyn Fn(&Replayed) -> bool| runs.iter().filter(|run| which(run)).count();
        let missed = |run: &Replayed| !run.judgement.is_right() && !run.accuses_wrongly();
        println!(
            "{kind:24} {:>5} {:>6} {:>7} {:>8} {:>8}",
            runs.len(),
            count(&|run| run.judgement.is_right()),
            count(&missed),
            count(&Replayed::accuses_wrongly),
            count(&|run| run.truth.is_starved),
        );
    }
    println!(
        "accused: somebody who is not at fault; missed: a fault, or its ratio, is not named rightly"
    );
}

fn print_checks(all: &[Replayed]) {
    let mut checks: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for run in all {
        let whole = [("right as a whole", run.judgement.is_right())];
        let causes = run.judgement.findings.iter();
        let causes = causes.map(|(cause, is_right)| (format!("cause {cause:?}"), *is_right));
        let checks_of_run = whole.iter().chain(&run.judgement.checks);
        let named = checks_of_run.map(|(name, passed)| ((*name).to_owned(), *passed));
        for (name, passed) in named.chain(causes) {
            let count = checks.entry(name).or_default();
            count.0 += u64::from(passed);
            count.1 += 1;
        }
    }
    println!();
    for (name, (passed, asked)) in checks {
        let (low, high) = clopper_pearson(passed, asked);
        println!(
            "{name:32} {passed:>5} of {asked:<5} (95% CI {:.1} to {:.1}%)",
            100.0 * low,
            100.0 * high
        );
    }
}

fn print_wrong(all: &[Replayed]) {
    println!();
    for run in all.iter().filter(|run| !run.judgement.is_right()) {
        println!(
            "{} {}: {}",
            run.name.kind,
            run.name.seed,
            run.truth.axes.join(", ")
        );
        println!("    truth: {:?} {:?}", run.truth.faults, run.truth.ratios);
        println!("    found: {}", run.sentence);
        for wrong in &run.judgement.wrong {
            println!("    wrong: {wrong}");
        }
    }
}
