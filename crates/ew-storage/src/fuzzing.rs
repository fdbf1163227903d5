//! What the fuzz targets run, and the tests that replay their inputs: each panics when a promise is
//! broken and returns otherwise.

use crate::maintenance::{Lease, entries, take_out, text_of};
use crate::name_node::{body, data_node, replication, take_listing};
use crate::protobuf;
use ew_model::storage::{DataNode, DataNodeState};
use std::collections::BTreeMap;
use std::path::Path;

/// A NameNode's answer to any of the calls, with the header of Hadoop's RPC and without.
pub fn hdfs_answer(data: &[u8]) {
    match body(data) {
        Ok(answer) => read_answer(&answer),
        Err(problem) => assert!(!problem.to_string().is_empty()),
    }
    read_answer(data);
}

fn read_answer(answer: &[u8]) {
    let mut count = 0;
    for (_, field) in protobuf::fields(answer) {
        count += 1;
        let _ = field.bytes().and_then(data_node);
    }
    assert!(count <= answer.len());
    let _ = replication(answer);
    let mut found = BTreeMap::new();
    let (last, _) = take_listing(answer, &mut found);
    assert!(found.is_empty() || last.is_some());
}

/// HDFS's file of hosts, and our lease on it: a file from which a node was taken out can be read
/// again, and says so.
pub fn dfs_hosts(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = serde_json::from_str::<Lease>(text);
    let path = Path::new("dfs.hosts");
    let Ok(mut nodes) = entries(path, text) else {
        return;
    };
    let node = DataNode {
        host: "dn1".into(),
        address: "198.18.0.1".into(),
        state: DataNodeState::InService,
        capacity_bytes: 0,
        remaining_bytes: 0,
    };
    take_out(&mut nodes, &node, 1);
    let (count, text) = (nodes.len(), text_of(&nodes));
    drop(nodes);
    let again = entries(path, &text).unwrap_or_default();
    assert_eq!(again.len(), count);
    assert!(text.contains("IN_MAINTENANCE"));
}
