//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_iperf3::fuzzing;

/// A fuzz target: its name and what it runs.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 5] = [
    ("iperf3_control", fuzzing::control),
    ("iperf3_params", fuzzing::params),
    ("iperf3_results", fuzzing::results),
    ("iperf3_datagrams", fuzzing::datagrams),
    ("iperf3_claim", fuzzing::claim),
];

#[test]
fn committed_inputs_and_their_neighbours_keep_the_promises() {
    for (target, run) in TARGETS {
        replay(target, 100, |data| check(Bound::USUAL, data, run));
    }
}
