//! Replays the fuzzer's committed inputs.

use ew_analyze_storage::fuzzing;
use ew_fuzz::{Bound, check, replay};

#[test]
fn committed_inputs_and_their_neighbours_keep_the_promises() {
    replay("testdfsio_figures", 60, |data| {
        check(Bound::USUAL, data, fuzzing::testdfsio_figures);
    });
}
