//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_sys::fuzzing;

#[test]
fn committed_inputs_and_their_neighbours_keep_the_promises() {
    replay("netlink", 100, |data| {
        check(Bound::USUAL, data, fuzzing::netlink);
    });
}
