//! Times of files by the storage node that stores them.
//!
//! Of a target that is no HDFS the node is the endpoint. Files of HDFS are several nodes' in
//! general, and which replica served a read is not reported: only a file whose blocks are all on
//! one DataNode counts, and how many those are is part of the answer.

use super::file_times::summary;
use ew_model::inventory::HostId;
use ew_model::latency::{Histogram, LatencySummary};
use ew_model::storage::{FileOutcome, FileRecord, StorageOperation, StorageStep};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Files by storage node, and how many of all they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimesByNode {
    /// Whole files of one storage node.
    pub files_of_one_node: u32,
    /// All whole files.
    pub files: u32,
    /// By name.
    pub nodes: Vec<NodeTimes>,
}

/// One storage node's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeTimes {
    /// A DataNode's host, an endpoint's URL, or the host whose own disk it is.
    pub node: String,
    /// Of a file, as TestDFSIO counts it.
    pub file_times: Option<LatencySummary>,
    /// From the end of the open to the end of the first call.
    pub first_byte: Option<LatencySummary>,
    /// Of single read or write calls, those of files that failed later included. `None`: calls are
    /// counted by client, and a client's files are on several nodes.
    pub calls: Option<LatencySummary>,
}

/// Which storage node stores a step's files.
#[derive(Debug)]
pub enum FilePlacement {
    /// All files of a client are on one node.
    ByClient(BTreeMap<HostId, String>),
    /// The NameNode showed it after the step.
    ByFile {
        /// By number of the file; without those that are on several nodes.
        nodes: BTreeMap<u32, String>,
        /// A file that is written again goes elsewhere: where its last pass began. Empty for reads.
        last_start_ns: BTreeMap<u32, u64>,
    },
}

impl FilePlacement {
    /// `None` for removals, for jobs of Hadoop's, which report no files, and where no node is
    /// known.
    #[must_use]
    pub fn new(step: &StorageStep, name: &dyn Fn(HostId) -> String) -> Option<Self> {
        if step.operation == StorageOperation::Clean || step.job.testdfsio.is_some() {
            return None;
        }
        if step.job.target.starts_with("hdfs://") {
            return Some(Self::ByFile {
                nodes: step.data_node_of_file.iter().flatten().cloned().collect(),
                last_start_ns: last_passes(step),
            })
            .filter(|_| step.data_node_of_file.is_some());
        }
        let node = |host: HostId| {
            let own = step.endpoints.iter().find(|(id, _)| *id == host);
            match (step.is_disk_alone, own) {
                (true, _) => name(host),
                (false, Some((_, target))) => target.clone(),
                (false, None) => step.job.target.clone(),
            }
        };
        let hosts = step.reports.iter().map(|(host, _)| *host);
        Some(Self::ByClient(
            hosts.map(|host| (host, node(host))).collect(),
        ))
    }

    /// Where a host's file was in one pass.
    #[must_use]
    pub fn node(&self, host: HostId, record: &FileRecord) -> Option<&str> {
        match self {
            Self::ByClient(nodes) => nodes.get(&host).map(String::as_str),
            Self::ByFile {
                nodes,
                last_start_ns,
            } => {
                let last = last_start_ns.get(&record.file);
                let is_there = last.is_none_or(|start_ns| *start_ns == record.start_ns);
                let node = nodes.get(&record.file).map(String::as_str);
                node.filter(|_| is_there)
            }
        }
    }
}

fn last_passes(step: &StorageStep) -> BTreeMap<u32, u64> {
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for (_, record) in whole_files(step).filter(|_| step.operation.writes()) {
        let start_ns = last.entry(record.file).or_default();
        *start_ns = record.start_ns.max(*start_ns);
    }
    last
}

/// `None` as of [`FilePlacement::new`].
pub(super) fn analyze(step: &StorageStep, name: &dyn Fn(HostId) -> String) -> Option<TimesByNode> {
    let placement = FilePlacement::new(step, name)?;
    let mut by_node: BTreeMap<String, Vec<&FileRecord>> = BTreeMap::new();
    for (host, record) in whole_files(step) {
        if let Some(node) = placement.node(host, record) {
            by_node.entry(node.to_owned()).or_default().push(record);
        }
    }
    let calls = calls(step, &placement);
    let times = |(node, records): (&String, &Vec<&FileRecord>)| NodeTimes {
        node: node.clone(),
        file_times: summary(records.iter().filter_map(|r| r.dfsio_ns(step.operation))),
        first_byte: summary(records.iter().filter_map(|r| r.first_byte_ns)),
        calls: calls.get(node.as_str()).and_then(Histogram::summary),
    };
    Some(TimesByNode {
        files_of_one_node: by_node.values().map(Vec::len).sum::<usize>() as u32,
        files: whole_files(step).count() as u32,
        nodes: by_node.iter().map(times).collect(),
    })
}

fn whole_files(step: &StorageStep) -> impl Iterator<Item = (HostId, &FileRecord)> {
    let reports = step.reports.iter();
    let all = reports.flat_map(|(host, report)| report.files.iter().map(|r| (*host, r)));
    all.filter(|(_, record)| record.outcome == FileOutcome::Done)
}

fn calls<'a>(step: &StorageStep, placement: &'a FilePlacement) -> BTreeMap<&'a str, Histogram> {
    let mut calls: BTreeMap<&str, Histogram> = BTreeMap::new();
    let FilePlacement::ByClient(nodes) = placement else {
        return calls;
    };
    for (host, report) in &step.reports {
        if let Some(node) = nodes.get(host) {
            calls.entry(node).or_default().merge(&report.calls);
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::{MS, of, record, report};
    use ew_model::storage::StorageReport;

    fn analyzed(step: &StorageStep) -> TimesByNode {
        analyze(step, &|id| format!("h{}", id.0)).unwrap()
    }

    fn p50_ms(times: Option<LatencySummary>) -> u64 {
        times.unwrap().p50_ns / MS
    }

    /// Four hosts, two endpoints: each has the files and the calls of its hosts.
    #[test]
    fn an_endpoint_has_its_clients_files_and_calls() {
        let reports = (0..4).map(|host: u32| StorageReport {
            calls: Histogram::of(u64::from(host % 2 + 1) * MS, 5),
            ..report(vec![record(host, 0, 100 * (u64::from(host) % 2 + 1))])
        });
        let mut step = of(reports.collect());
        let endpoint = |host: u32| (HostId(host), format!("file:///s{}", host % 2));
        step.endpoints = (0..4).map(endpoint).collect();
        let found = analyzed(&step);
        assert_eq!((found.files_of_one_node, found.files), (4, 4));
        let [s0, s1] = &found.nodes[..] else {
            panic!("two endpoints");
        };
        assert_eq!(
            (s0.node.as_str(), s1.node.as_str()),
            ("file:///s0", "file:///s1")
        );
        assert_eq!((p50_ms(s0.file_times), p50_ms(s1.file_times)), (100, 200));
        assert_eq!((p50_ms(s0.calls), p50_ms(s1.calls)), (1, 2));
        assert_eq!(s0.calls.unwrap().count, 10);
        assert_eq!(p50_ms(s0.first_byte), 2);
    }

    #[test]
    fn one_target_is_one_node_and_own_disks_are_their_hosts() {
        let mut step = of(vec![
            report(vec![record(0, 0, 100)]),
            report(vec![record(1, 0, 200)]),
        ]);
        assert_eq!(analyzed(&step).nodes[0].node, "file:///tmp");
        assert_eq!(analyzed(&step).nodes[0].file_times.unwrap().count, 2);
        step.is_disk_alone = true;
        let names: Vec<String> = analyzed(&step).nodes.into_iter().map(|n| n.node).collect();
        assert_eq!(names, ["h0", "h1"]);
    }

    /// Files 0 and 1 are on one DataNode each, file 2 on several; file 0 was written twice.
    #[test]
    fn of_hdfs_only_files_of_one_data_node_count() {
        let mut step = of(vec![report(vec![
            record(0, 0, 900),
            record(1, 0, 200),
            record(2, 0, 300),
            record(0, 1000, 100),
        ])]);
        step.job.target = "hdfs://nn:8020/x".into();
        assert_eq!(analyze(&step, &|_| String::new()), None);
        step.data_node_of_file = Some(vec![(0, "dn1".into()), (1, "dn2".into())]);
        let found = analyzed(&step);
        assert_eq!((found.files_of_one_node, found.files), (2, 4));
        let times: Vec<(&str, u64, u64)> = found
            .nodes
            .iter()
            .map(|n| {
                (
                    n.node.as_str(),
                    n.file_times.unwrap().count,
                    p50_ms(n.file_times),
                )
            })
            .collect();
        assert_eq!(times, [("dn1", 1, 100), ("dn2", 1, 200)]);
        assert!(found.nodes[0].calls.is_none());
        // Read twice from where it is.
        step.operation = StorageOperation::Read;
        let found = analyzed(&step);
        assert_eq!(found.nodes[0].file_times.unwrap().count, 2);
        assert_eq!(found.files_of_one_node, 3);
    }
}
