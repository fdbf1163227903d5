//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_lab::fuzzing;

#[test]
fn committed_inputs_and_their_neighbours_keep_the_promises() {
    let bound = Bound {
        base_bytes: fuzzing::LAB_BYTES,
        ..Bound::USUAL
    };
    replay("lab_file", 30, |data| check(bound, data, fuzzing::lab_file));
}
