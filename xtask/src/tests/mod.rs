//! `cargo xtask test`: every test of the workspace. Most of them wait for flows, labs and browsers,
//! so that several test binaries run at once; labs whose figures are judged come last and have the
//! CPUs for themselves. Tests of labs measure real flows, and a machine that others use, too, takes
//! a CPU away now and then: what failed runs once more, alone. What fails twice has failed; what
//! passes the second time is listed as unsteady.

mod binaries;
mod outcome;

use binaries::TestBinary;
use outcome::Outcome;
use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest first: none of them keeps a CPU idle at the end.
const LONGEST: [&str; 8] = [
    "eastwest/e2e",
    "ew-rehearsal/seeds",
    "ew-report/report",
    "ew-analyze/truth",
    "ew-tools/tools_live",
    "ew-plan/ew_plan",
    "ew-controller/corpus_replay",
    "ew-plan/corpus_replay",
];
/// Judges rates against known truths.
const LAST_AND_ALONE: &str = "eastwest/verdicts";
/// More tests at once than CPUs, since most wait.
const SHARED: Pool = Pool {
    binaries: 2,
    threads: "4",
};
const ALONE: Pool = Pool {
    binaries: 1,
    threads: "3",
};
/// More failures of a binary are no accidents, and are not tried again.
const ACCIDENTS: usize = 3;
const SLOWEST_SHOWN: usize = 8;

/// Runs the test binaries of these names, or all.
pub(crate) fn run(root: &Path, names: &[&str]) -> anyhow::Result<ExitCode> {
    let mut binaries = binaries::build(root)?;
    binaries.retain(|binary| names.is_empty() || names.contains(&&*binary.target));
    anyhow::ensure!(!binaries.is_empty(), "no test binary is named {names:?}");
    binaries.sort_by_key(|binary| {
        let rank = LONGEST.iter().position(|name| binary.to_string() == *name);
        rank.unwrap_or(LONGEST.len())
    });
    let (alone, shared): (Vec<_>, Vec<_>) = binaries
        .into_iter()
        .partition(|binary| binary.to_string() == LAST_AND_ALONE);
    let mut outcomes = SHARED.run(shared);
    outcomes.extend(ALONE.run(alone));
    show_slowest(&mut outcomes);
    judge(&outcomes)
}

/// How much runs at once.
struct Pool {
    binaries: usize,
    /// Tests of one binary.
    threads: &'static str,
}

impl Pool {
    fn run(&self, binaries: Vec<TestBinary>) -> Vec<Outcome> {
        let waiting = Mutex::new(VecDeque::from(binaries));
        let next = || lock(&waiting).pop_front();
        let outcomes = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..self.binaries {
                scope.spawn(|| {
                    while let Some(binary) = next() {
                        println!("running {binary}");
                        let outcome = Outcome::of(binary, self.threads);
                        let mut outcomes = lock(&outcomes);
                        outcome.show();
                        outcomes.push(outcome);
                    }
                });
            }
        });
        let outcomes = outcomes.into_inner();
        outcomes.unwrap_or_else(PoisonError::into_inner)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show_slowest(outcomes: &mut [Outcome]) {
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    let sum: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    println!(
        "\n{} test binaries, {} s in sum, the slowest:",
        outcomes.len(),
        sum.as_secs()
    );
    for outcome in outcomes.iter().take(SLOWEST_SHOWN) {
        println!("{:>6} s  {}", outcome.took.as_secs(), outcome.binary);
    }
}

/// Tries again what failed; whether all is well then.
fn judge(outcomes: &[Outcome]) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for outcome in outcomes.iter().filter(|outcome| !outcome.has_passed) {
        if !passes_again(outcome)? {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn passes_again(outcome: &Outcome) -> anyhow::Result<bool> {
    let (binary, failed) = (&outcome.binary, &outcome.failed);
    // A binary that ends badly need not name a test.
    if failed.is_empty() || failed.len() > ACCIDENTS {
        let count = failed.len();
        println!("FAILED: {binary}, of which {count} tests failed: not tried again");
        return Ok(false);
    }
    let mut is_well = true;
    for test in failed {
        println!("again, alone: {test} of {binary}");
        let has_passed = binary.passes_alone(test)?;
        is_well &= has_passed;
        let word = match has_passed {
            true => "UNSTEADY, passed the second time",
            false => "FAILED twice",
        };
        println!("{word}: {test} of {binary}");
    }
    Ok(is_well)
}
