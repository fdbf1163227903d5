//! `storage:` in place of `tests:`: a storage job, with the words of `run dfsio`'s flags.

use super::error::ScenarioError;
use super::tree::{Content, Node};
use super::values::{choice, count, duration, only_known, size, switch, text};
use ew_model::storage::StorageOperation;

const KEYS: [&str; 20] = [
    "target",
    "operations",
    "files",
    "file-size",
    "buffer-size",
    "parallel",
    "time",
    "replication",
    "block-size",
    "verify",
    "direct",
    "fsync",
    "warm",
    "read-shift",
    "keep",
    "fan-in",
    "storage-nodes",
    "client-counts",
    "dfs-hosts",
    "disk",
];
const MAX_FILES: u32 = 100_000_000;
const MIN_TIME_NS: u64 = 1_000_000;
const MAX_TIME_NS: u64 = 24 * 3600 * 1_000_000_000;
const MAX_PARALLEL: u32 = 1024;
const MAX_HOSTS: u32 = 1_000_000;

/// What a file specifies about a storage job. Empty or `None`: as without it on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageSettings {
    /// Where the files go, as URLs.
    pub target: Vec<String>,
    /// What is done with them, in order.
    pub operations: Vec<StorageOperation>,
    /// Of all hosts together.
    pub files: Option<u32>,
    /// Of each file.
    pub file_bytes: Option<u64>,
    /// Of each call.
    pub buffer_bytes: Option<u64>,
    /// Files of a host at once.
    pub parallel: Option<u32>,
    /// How long writes and reads go on.
    pub time_ns: Option<u64>,
    /// Copies of each block; HDFS only.
    pub replication: Option<u32>,
    /// Of each block; HDFS only.
    pub block_bytes: Option<u64>,
    /// Whether every byte read is compared with what was written.
    pub verify: Option<bool>,
    /// O_DIRECT.
    pub direct: Option<bool>,
    /// fsync before close.
    pub fsync: Option<bool>,
    /// Whether reads find the clients' page cache as it is.
    pub warm: Option<bool>,
    /// Whose files a host reads.
    pub read_shift: Option<u32>,
    /// Whether the files stay.
    pub keep: Option<bool>,
    /// Whether storage nodes are taken away one by one.
    pub fan_in: Option<bool>,
    /// Numbers of them.
    pub storage_nodes: Vec<u32>,
    /// Numbers of clients.
    pub client_counts: Vec<u32>,
    /// The NameNode's hosts file.
    pub dfs_hosts: Option<String>,
    /// Directory on the servers' disks.
    pub disk: Option<String>,
}

/// `None` without the key.
pub(super) fn read(root: &Node) -> Result<Option<StorageSettings>, ScenarioError> {
    let Some(node) = root.get("storage") else {
        return Ok(None);
    };
    if let Some(tests) = root.get("tests") {
        return Err(ScenarioError::value(
            tests.location.clone(),
            "tests",
            "a file has flows or files, not both",
            "`tests:` or `storage:`",
        ));
    }
    only_known(node, "`storage`", &KEYS)?;
    let number = |key, most| node.get(key).map(|n| count(n, key, 1..=most)).transpose();
    let bytes = |key| node.get(key).map(|n| size(n, key, 1..=1 << 60)).transpose();
    let flag = |key| node.get(key).map(|n| switch(n, key)).transpose();
    let word = |key| node.get(key).map(|n| text(n, key)).transpose();
    let numbers = |key| -> Result<Vec<u32>, ScenarioError> {
        let items = items(node, key).iter();
        items.map(|n| count(n, key, 1..=MAX_HOSTS)).collect()
    };
    Ok(Some(StorageSettings {
        target: words(node, "target")?,
        operations: operations(node)?,
        files: number("files", MAX_FILES)?,
        file_bytes: bytes("file-size")?,
        buffer_bytes: bytes("buffer-size")?,
        parallel: number("parallel", MAX_PARALLEL)?,
        time_ns: duration(node.get("time"), "time", MIN_TIME_NS..=MAX_TIME_NS)?,
        replication: number("replication", MAX_HOSTS)?,
        block_bytes: bytes("block-size")?,
        verify: flag("verify")?,
        direct: flag("direct")?,
        fsync: flag("fsync")?,
        warm: flag("warm")?,
        read_shift: number("read-shift", MAX_HOSTS)?,
        keep: flag("keep")?,
        fan_in: flag("fan-in")?,
        storage_nodes: numbers("storage-nodes")?,
        client_counts: numbers("client-counts")?,
        dfs_hosts: word("dfs-hosts")?.map(str::to_owned),
        disk: word("disk")?.map(str::to_owned),
    }))
}

fn operations(node: &Node) -> Result<Vec<StorageOperation>, ScenarioError> {
    let known = StorageOperation::ALL.map(StorageOperation::name);
    let items = items(node, "operations").iter();
    items
        .map(|item| Ok(StorageOperation::ALL[choice(item, "operation", &known)?]))
        .collect()
}

fn words(node: &Node, key: &str) -> Result<Vec<String>, ScenarioError> {
    let items = items(node, key).iter();
    items
        .map(|item| text(item, key).map(|word| word.trim().to_owned()))
        .collect()
}

/// Of a list, or the one value.
fn items<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match node.get(key) {
        None => &[],
        Some(value) => match &value.content {
            Content::Nothing => &[],
            Content::Sequence(items) => items,
            _ => std::slice::from_ref(value),
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{ScenarioError, parse_file};
    use ew_model::storage::StorageOperation;

    fn read(storage: &str) -> Result<super::StorageSettings, ScenarioError> {
        let text = format!("name: s\nstorage:\n{storage}");
        let file = parse_file(&text, "s.yaml", &[])?;
        assert!(file.scenario.tests.is_empty());
        Ok(file.storage.unwrap())
    }

    #[test]
    fn a_job_has_the_words_of_the_flags() {
        let found = read(
            "  target: [hdfs://nn:8020/a, hdfs://nn:8020/b]\n  operations: [write, random-read]\n  files: 8\n  file-size: 1GiB\n  verify: false\n  client-counts: [1, 2]\n  storage-nodes: 4\n",
        )
        .unwrap();
        assert_eq!(found.target.len(), 2);
        let operations = [StorageOperation::Write, StorageOperation::RandomRead];
        assert_eq!(found.operations, operations);
        assert_eq!((found.files, found.file_bytes), (Some(8), Some(1 << 30)));
        assert_eq!((found.verify, found.fsync), (Some(false), None));
        assert_eq!(
            (found.client_counts, found.storage_nodes),
            (vec![1, 2], vec![4])
        );
    }

    #[test]
    fn what_it_cannot_be_is_named() {
        for (storage, words) in [
            ("  targets: file:///x\n", "target"),
            ("  operations: [reed]\n", "read"),
            ("  files: none\n", "`none` does not fit"),
            ("  verify: maybe\n", "on"),
            (
                "  target: file:///x\ntests: [{pattern: mesh}]\n",
                "not both",
            ),
        ] {
            let error = read(storage).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
