//! Replays the fuzzer's committed inputs.

use ew_fuzz::{Bound, check, replay};
use ew_storage::fuzzing;

#[test]
fn committed_inputs_their_neighbours_and_dense_ones_keep_the_promises() {
    check_dense_inputs();
    replay("hdfs_answer", 100, |data| {
        check(Bound::USUAL, data, fuzzing::hdfs_answer);
    });
    replay("dfs_hosts", 100, |data| {
        check(Bound::DOCUMENT_TREE, data, fuzzing::dfs_hosts);
    });
}

/// What has many records in few bytes.
fn check_dense_inputs() {
    let node = [10, 6, 10, 4, 10, 0, 18, 0];
    check(Bound::USUAL, &node.repeat(20_000), fuzzing::hdfs_answer);
    let nodes = format!(
        "[{}{{\"hostName\":\"\"}}]",
        "{\"hostName\":\"\"},".repeat(20_000)
    );
    check(Bound::DOCUMENT_TREE, nodes.as_bytes(), fuzzing::dfs_hosts);
}
