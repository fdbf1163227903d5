//! Replays the fuzzer's committed inputs.

use ew_controller::fuzzing;
use ew_fuzz::{Bound, check_tree, damaged, replay};
use std::sync::atomic::{AtomicUsize, Ordering};

const BOUND: Bound = Bound {
    base_bytes: fuzzing::PAGE_BYTES,
    ..Bound::DOCUMENT_TREE
};

/// How often a value of an input's JSON is replaced.
const DAMAGES: u32 = 60;

fn check(data: &[u8]) {
    check_tree(BOUND, data, fuzzing::run_directory);
}

/// A test of what cannot be read shows nothing.
fn check_that_runs_can_be_read() {
    let read = AtomicUsize::new(0);
    replay("run_directory", 0, |data| {
        check_tree(BOUND, data, |directory| {
            let is_run = ew_store::load(directory).is_ok_and(|run| !run.plan.scenario.is_empty());
            read.fetch_add(usize::from(is_run), Ordering::Relaxed);
        });
    });
    assert!(read.load(Ordering::Relaxed) >= 10, "{read:?}");
}

#[test]
fn committed_runs_and_damaged_ones_keep_the_promises() {
    check_that_runs_can_be_read();
    replay("run_directory", 3, |data| {
        check(data);
        for seed in 0..DAMAGES {
            damaged(data, seed).iter().for_each(|data| check(data));
        }
    });
}
