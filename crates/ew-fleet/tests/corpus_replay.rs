//! Replays the fuzzer's committed inputs.

use ew_fleet::fuzzing;
use ew_fuzz::{Bound, check, replay};

#[test]
fn committed_inputs_and_their_neighbours_keep_the_promises() {
    replay("launch_output", 100, |data| {
        check(Bound::USUAL, data, fuzzing::launch_output);
    });
}
