//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, check_tree, replay};
use ew_telemetry::fuzzing;

#[test]
fn committed_inputs_their_neighbours_and_dense_ones_keep_the_promises() {
    check_dense_inputs();
    replay("host_tree", 20, |data| {
        check_tree(Bound::USUAL, data, fuzzing::host_tree);
    });
    replay("lldp", 100, |data| {
        check(Bound::DOCUMENT_TREE, data, fuzzing::lldp);
    });
}

/// What has many records in few bytes.
fn check_dense_inputs() {
    for (path, start, line) in [
        ("proc/stat", "", "cpu0 0 0 0 0\n"),
        ("proc/thread-self/net/softnet_stat", "", "0 0 0\n"),
        ("proc/interrupts", "CPU0\n", "1:1 a\n"),
        ("proc/diskstats", "", "0 0 a 1 0 0 0 0 0 0 0 0 0 0\n"),
        ("proc/cpuinfo", "", "processor:0\ncpu MHz:1\n"),
    ] {
        let text = format!("=== {path}\n{start}{}", line.repeat(30_000));
        check_tree(Bound::USUAL, text.as_bytes(), fuzzing::host_tree);
    }
}
