//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_plan::fuzzing;

/// A text of a few bytes may name a million nodes.
const NODES: Bound = Bound {
    base_bytes: fuzzing::NODES_BYTES,
    ..Bound::DOCUMENT_TREE
};

#[test]
fn committed_inputs_their_neighbours_and_dense_ones_keep_the_promises() {
    check_dense_inputs();
    replay("node_set", 30, |data| check(NODES, data, fuzzing::node_set));
    replay("groups", 30, |data| check(NODES, data, fuzzing::groups));
    replay("host_file", 30, |data| {
        check(NODES, data, fuzzing::host_file);
    });
    replay("scenario", 30, |data| {
        check(Bound::DOCUMENT_TREE, data, fuzzing::scenario);
    });
}

/// What has many parts in few bytes.
fn check_dense_inputs() {
    for (start, part, end) in [
        ("name: a\ntests:\n", "- a\n", ""),
        ("a: [", "a,", "]\n"),
        ("a: [", "[],", "]\n"),
        ("", "a: {}\n", ""),
    ] {
        let text = format!("{start}{}{end}", part.repeat(20_000));
        check(Bound::DOCUMENT_TREE, text.as_bytes(), fuzzing::scenario);
    }
}
