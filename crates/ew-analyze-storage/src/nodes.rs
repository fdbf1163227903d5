//! What the counters of clients and storage nodes report about a step, over its whole time and over
//! time.
//!
//! A step's time is from the common start to the last close. A reading counts where the time
//! between two of them lies in the step by half at least; a shorter step has no figure of its
//! hosts. Of Hadoop's TestDFSIO it is the time of its map tasks.

use super::testdfsio::{log_of, map_span};
use ew_evidence::basis::data_interface;
use ew_evidence::telemetry::{Cover, Window, busy_share, interface_of};
use ew_model::Run;
use ew_model::facts::{HostSample, InterfaceCounters};
use ew_model::inventory::HostId;
use ew_model::storage::{StorageOperation, StorageReport, StorageStep};
use ew_model::telemetry::DiskCounters;
use serde::{Deserialize, Serialize};

/// Points of a host's line in a step; more are not visible.
const MAX_POINTS: usize = 240;
/// Parts of a client's step: shorter ones show single buffers.
const MAX_PARTS: usize = 80;

/// What a host does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeRole {
    /// Has workers.
    Client,
    /// Named as a server, and in service.
    StorageNode,
    /// Named as a server, and out of service in this step.
    OutOfService,
}

/// A host's figures in a step. What was not read is `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// Its name.
    pub host: String,
    /// What it does.
    pub role: NodeRole,
    /// Mean over the step.
    #[serde(flatten)]
    pub counters: NodeCounters,
    /// Over time, between two readings each.
    pub points: Vec<NodePoint>,
    /// What its workers moved over time. Empty unless it is a client.
    pub moved: Vec<MovedPoint>,
}

/// What a host's counters report about a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeCounters {
    /// Out of the interface that carries its address, on the wire.
    pub tx_bits_per_sec: Option<f64>,
    /// Into it.
    pub rx_bits_per_sec: Option<f64>,
    /// Established TCP connections, max over readings.
    pub tcp_established: Option<u64>,
    /// Of all CPUs, 0 to 1.
    pub busy_share: Option<f64>,
    /// Of its disks together.
    pub disk: Option<DiskFigures>,
}

/// A host's disks together, without those that are made of others (device mapper, software RAID,
/// loop and memory disks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskFigures {
    /// Bytes read per second.
    pub read_bytes_per_sec: f64,
    /// Bytes written per second.
    pub written_bytes_per_sec: f64,
    /// Requests completed per second.
    pub requests_per_sec: f64,
    /// Requests in flight, mean (iostat's aqu-sz).
    pub queue_depth: f64,
    /// Time of a request, queue included. `None` without requests.
    pub await_ns: Option<u64>,
}

/// One span between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodePoint {
    /// Its end, from the step's common start.
    pub t_ns: u64,
    /// In it.
    #[serde(flatten)]
    pub counters: NodeCounters,
}

/// What a client's workers did in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovedPoint {
    /// Its end, from the step's common start.
    pub t_ns: u64,
    /// Bytes per second.
    pub bytes_per_sec: f64,
    /// Open, read or write, and close calls per second; reads and writes as bytes over the buffer.
    pub calls_per_sec: f64,
}

/// How evenly the storage nodes in service carried a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// Standard deviation of their NICs' rates over the mean: RX where files are written, TX where
    /// they are read.
    pub variation: f64,
    /// The node that is furthest from the mean.
    pub worst: String,
    /// Its rate over the mean of all.
    pub worst_share: f64,
    /// The highest rate over the mean of all. `None` for runs of before it was kept.
    #[serde(default)]
    pub busiest_share: Option<f64>,
}

/// All hosts that are clients or servers, clients first, each in the inventory's order. Empty for
/// runs of before a step's start was kept, and for removals.
pub(super) fn figures(run: &Run, step: &StorageStep) -> Vec<NodeFigures> {
    let Some(start_ns) = step.start_ns else {
        return Vec::new();
    };
    if step.operation == StorageOperation::Clean {
        return Vec::new();
    }
    let Some((offset_ns, length_ns)) = span(step) else {
        return Vec::new();
    };
    let start_ns = start_ns.saturating_add(offset_ns);
    let mut hosts: Vec<(NodeRole, HostId)> = run
        .manifest
        .inventory
        .host_ids()
        .filter_map(|host| Some((role(run, step, host)?, host)))
        .collect();
    hosts.sort();
    let of_host = |(role, host): (NodeRole, HostId)| {
        let time = StepTime::new(run, host, start_ns, length_ns);
        let report = step.reports.iter().find(|(id, _)| *id == host);
        NodeFigures {
            host: run.manifest.inventory.name(host).to_owned(),
            role,
            counters: time.counters(),
            points: time.points(),
            moved: report.map_or_else(Vec::new, |(_, report)| moved(step, report)),
        }
    };
    hosts.into_iter().map(of_host).collect()
}

/// From the common start: begin and length, ns.
fn span(step: &StorageStep) -> Option<(u64, u64)> {
    if let Some(log) = log_of(step) {
        return map_span(log);
    }
    let files = step.reports.iter().flat_map(|(_, report)| &report.files);
    Some((0, files.map(|file| file.end_ns()).max()?))
}

/// `None` unless two storage nodes in service have a rate.
pub(super) fn balance(nodes: &[NodeFigures], operation: StorageOperation) -> Option<Balance> {
    let rate = |node: &NodeFigures| match operation.writes() {
        true => node.counters.rx_bits_per_sec,
        false => node.counters.tx_bits_per_sec,
    };
    let serving = nodes.iter().filter(|n| n.role == NodeRole::StorageNode);
    let rates: Option<Vec<(&str, f64)>> =
        serving.map(|n| Some((n.host.as_str(), rate(n)?))).collect();
    balance_of(&rates?)
}

fn balance_of(rates: &[(&str, f64)]) -> Option<Balance> {
    let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    let variation = variation(&values).filter(|_| values.len() > 1)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let off = |rate: f64| (rate - mean).abs();
    let (host, rate) = rates.iter().max_by(|a, b| off(a.1).total_cmp(&off(b.1)))?;
    Some(Balance {
        variation,
        worst: (*host).to_owned(),
        worst_share: rate / mean,
        busiest_share: values.iter().copied().reduce(f64::max).map(|m| m / mean),
    })
}

/// Standard deviation of the population over the mean.
pub(super) fn variation(rates: &[f64]) -> Option<f64> {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (mean > 0.0).then(|| (squares / count).sqrt() / mean)
}

/// `None` for hosts that are only watched.
fn role(run: &Run, step: &StorageStep, host: HostId) -> Option<NodeRole> {
    let inventory = &run.manifest.inventory;
    let name = inventory.name(host);
    let roles = run.manifest.scenario.roles.as_ref();
    let reports = step.reports.iter().map(|(id, _)| *id);
    let missing = step.missing.iter().map(|(id, _)| *id);
    let is_worker = match roles.filter(|_| step.job.testdfsio.is_some()) {
        // A job's map tasks run on any of its cluster's hosts, whoever submits it.
        Some(roles) => roles.clients.iter().any(|client| client == name),
        None => reports.chain(missing).any(|id| id == host),
    };
    if is_worker {
        return Some(NodeRole::Client);
    }
    let roles = roles?;
    if !roles.servers.iter().any(|server| server == name) {
        return None;
    }
    let address = inventory.host(host).address.map(|ip| ip.to_string());
    let is_this = |node: &String| is_same_host(node, name) || Some(node) == address.as_ref();
    let serves = step.storage_nodes.is_empty() || step.storage_nodes.iter().any(is_this);
    Some(match serves {
        true => NodeRole::StorageNode,
        false => NodeRole::OutOfService,
    })
}

/// The NameNode may know a host by its full name, and the inventory by its short one, or the other
/// way round.
fn is_same_host(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let is_short_of = |short: &str, long: &str| {
        let rest = long.strip_prefix(short);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    is_short_of(&one, &other) || is_short_of(&other, &one)
}

/// A host's readings and the step, on its agent's clock.
struct StepTime<'a> {
    samples: &'a [HostSample],
    interface: Option<&'a str>,
    window: Window,
}

impl<'a> StepTime<'a> {
    fn new(run: &'a Run, host: HostId, start_ns: u64, length_ns: u64) -> Self {
        let offset_ns = run.clock_offset_ns.get(&host).copied().unwrap_or(0);
        let start_ns = start_ns.saturating_add_signed(offset_ns);
        Self {
            samples: run.samples.get(&host).map_or(&[], Vec::as_slice),
            interface: data_interface(run, host).map(|i| i.name.as_str()),
            window: Window {
                stage: 0,
                loaded_ns: start_ns,
                start_ns,
                end_ns: start_ns.saturating_add(length_ns),
            },
        }
    }

    fn counters(&self) -> NodeCounters {
        let cover = Cover::new(self.samples, &[&self.window]);
        cover.map_or_else(NodeCounters::default, |cover| self.in_cover(&cover))
    }

    /// Neighbours are joined where there are too many.
    fn points(&self) -> Vec<NodePoint> {
        let (start_ns, end_ns) = (self.window.start_ns, self.window.end_ns);
        let inside: Vec<&HostSample> = self
            .samples
            .windows(2)
            .filter(|two| two[1].agent_ns > start_ns && two[0].agent_ns < end_ns)
            .flat_map(|two| [&two[0], &two[1]])
            .collect();
        let mut inside = inside;
        inside.dedup_by_key(|sample| sample.agent_ns);
        let every = inside.len().div_ceil(MAX_POINTS).max(1);
        let kept: Vec<&HostSample> = inside.into_iter().step_by(every).collect();
        let point = |two: &[&'a HostSample]| {
            let cover = Cover::of_span(two[0], two[1])?;
            Some(NodePoint {
                t_ns: two[1].agent_ns.saturating_sub(start_ns),
                counters: self.in_cover(&cover),
            })
        };
        kept.windows(2).filter_map(point).collect()
    }

    fn in_cover(&self, cover: &Cover<'a>) -> NodeCounters {
        let bits = |bytes: fn(&InterfaceCounters) -> u64| {
            let per_second = cover.per_second(|s| interface_of(s, self.interface).map(bytes));
            per_second.map(|bytes| 8.0 * bytes)
        };
        let established = |s: &HostSample| s.causes.as_ref()?.protocols.tcp_established;
        NodeCounters {
            tx_bits_per_sec: bits(|i| i.tx_bytes),
            rx_bits_per_sec: bits(|i| i.rx_bytes),
            tcp_established: cover.readings().filter_map(established).max(),
            busy_share: busy_share(cover),
            disk: disks(cover),
        }
    }
}

/// `None` without a disk.
fn disks(cover: &Cover<'_>) -> Option<DiskFigures> {
    let grown = |counter: fn(&DiskCounters) -> u64| -> Option<f64> {
        let by_disk = cover.grown_by_key(None, move |s| {
            let disks = s.causes.iter().flat_map(|causes| &causes.disks);
            let own = disks.filter(|disk| !disk.is_made_of_others());
            own.map(|disk| (disk.name.as_str(), counter(disk)))
                .collect()
        });
        (!by_disk.is_empty()).then(|| by_disk.values().sum())
    };
    let seconds = cover.ns() / 1e9;
    let per_sec = |counter| Some(grown(counter)? / seconds);
    let requests = grown(|d| d.reads)? + grown(|d| d.writes)?;
    let waited_ms = grown(|d| d.read_ms)? + grown(|d| d.write_ms)?;
    Some(DiskFigures {
        read_bytes_per_sec: per_sec(|d| d.read_bytes)?,
        written_bytes_per_sec: per_sec(|d| d.written_bytes)?,
        requests_per_sec: requests / seconds,
        queue_depth: per_sec(|d| d.weighted_ms)? / 1e3,
        await_ns: (requests >= 1.0).then(|| (waited_ms * 1e6 / requests) as u64),
    })
}

/// At most [`MAX_PARTS`] equal parts of the step.
fn moved(step: &StorageStep, report: &StorageReport) -> Vec<MovedPoint> {
    let joined = report.interval_bytes.len().div_ceil(MAX_PARTS).max(1);
    let part_ns = report.interval_ns.saturating_mul(joined as u64).max(1);
    let buffer_bytes = step.job.buffer_bytes.max(1) as f64;
    let mut calls = vec![0.0; report.interval_bytes.len().div_ceil(joined)];
    for file in &report.files {
        let ends_ns = [
            file.open_ns.map(|ns| file.start_ns + ns),
            file.close_ns.map(|_| file.end_ns()),
        ];
        for at_ns in ends_ns.into_iter().flatten() {
            // A close may end after the last byte.
            let last = calls.len().saturating_sub(1);
            if let Some(calls) = calls.get_mut(((at_ns / part_ns) as usize).min(last)) {
                *calls += 1.0;
            }
        }
    }
    let seconds = part_ns as f64 / 1e9;
    let parts = report.interval_bytes.chunks(joined).zip(calls).enumerate();
    parts
        .map(|(at, (bytes, calls))| {
            let bytes = bytes.iter().sum::<u64>() as f64;
            MovedPoint {
                t_ns: part_ns * (at as u64 + 1),
                bytes_per_sec: bytes / seconds,
                calls_per_sec: (calls + bytes / buffer_bytes) / seconds,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_furthest_from_the_mean_is_the_worst() {
        let found = balance_of(&[("a", 100.0), ("b", 110.0), ("c", 30.0)]).unwrap();
        assert_eq!(found.worst, "c");
        assert!((found.worst_share - 0.375).abs() < 1e-9);
        assert!((found.busiest_share.unwrap() - 1.375).abs() < 1e-9);
        assert!((found.variation - 0.4448).abs() < 1e-3, "{found:?}");
        assert!(balance_of(&[("a", 100.0)]).is_none());
        assert!(balance_of(&[("a", 0.0), ("b", 0.0)]).is_none());
    }

    #[test]
    fn variation_is_of_the_population() {
        assert_eq!(variation(&[100.0, 100.0]), Some(0.0));
        let found = variation(&[50.0, 150.0]).unwrap();
        assert!((found - 0.5).abs() < 1e-12);
    }

    #[test]
    fn full_and_short_names_are_one_host() {
        assert!(is_same_host("dn1", "dn1.example.org"));
        assert!(is_same_host("DN1.example.org", "dn1"));
        assert!(!is_same_host("dn1", "dn10"));
        assert!(!is_same_host("dn1.a.org", "dn1.b.org"));
    }
}
