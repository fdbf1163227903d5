//! What clients, network, storage nodes' NICs and disks do alone, and which of them binds a step.

use super::job::StepAnalysis;
use ew_model::Run;
use ew_model::plan::StageIndex;
use ew_model::storage::StorageOperation;
use serde::{Deserialize, Serialize};

/// Stages of the network alone, data to the servers.
pub const NETWORK_STAGES: [&str; 3] = ["all", "one-server", "one-client"];
/// Suffix of the limits' names where data goes to the clients.
pub const READ_SUFFIX: &str = "-read";
/// All clients and servers together bind only where they carry less than this share of what the
/// ends allow.
const NETWORK_BINDS_BELOW: f64 = 0.9;
/// A step that reaches this share of its lowest limit is bound by it.
const BINDS_FROM: f64 = 0.85;

/// One part of the way between a client's memory and a storage node's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// NICs of the clients.
    Clients,
    /// Between both sets.
    Network,
    /// NICs of the storage nodes.
    StorageNodeNic,
    /// Their disks.
    Disk,
}

/// Rates measured without the rest, bytes per second. What was not measured is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// One client with all servers.
    pub client: Option<f64>,
    /// One storage node with all clients.
    pub node: Option<f64>,
    /// All clients with all servers.
    pub network: Option<f64>,
    /// One storage node's disk.
    pub disk: Option<f64>,
}

/// What a step cannot exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Of what.
    pub side: Side,
    /// Of the whole step.
    pub bytes_per_sec: f64,
}

/// The lowest limit of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The lowest one.
    pub lowest: Limit,
    /// The step's rate over it.
    pub reached: f64,
    /// Whether the step is bound by it, or stays below for another reason: balance, CPU, NameNode.
    pub binds: bool,
}

/// The rates measured alone for an operation.
#[must_use]
pub fn alone(run: &Run, steps: &[StepAnalysis], operation: StorageOperation) -> Alone {
    let network = |name: &str| {
        let suffix = if operation.reads() { READ_SUFFIX } else { "" };
        stage_bytes_per_sec(run, &format!("{name}{suffix}"))
    };
    let disks = steps
        .iter()
        .filter(|step| step.is_disk_alone && step.operation.reads() == operation.reads());
    let disks = disks.flat_map(|step| &step.clients);
    Alone {
        client: network("one-client"),
        node: network("one-server"),
        network: network("all"),
        disk: mean(disks.filter_map(|node| node.bytes_per_sec)),
    }
}

/// Mean over the stage's rounds of the sum of their flows. `None` unless all were measured.
fn stage_bytes_per_sec(run: &Run, name: &str) -> Option<f64> {
    let stage = run
        .plan
        .stages
        .iter()
        .position(|stage| stage.name == name)?;
    let mut rounds = std::collections::BTreeMap::new();
    let of_stage = run
        .flows
        .iter()
        .filter(|flow| flow.stage == StageIndex(stage as u32));
    for flow in of_stage {
        *rounds.entry(flow.round).or_insert(0.0) += flow.bits_per_sec()? / 8.0;
    }
    mean(rounds.into_values())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

impl Alone {
    /// What a step with so many clients and storage nodes cannot exceed; each byte is written to
    /// `copies` nodes.
    #[must_use]
    pub fn limits(&self, clients: u32, nodes: u32, copies: u32) -> Vec<Limit> {
        let shared = f64::from(nodes) / f64::from(copies.clamp(1, nodes.max(1)));
        let limit = |side, rate: Option<f64>, times: f64| {
            let bytes_per_sec = rate? * times;
            Some(Limit {
                side,
                bytes_per_sec,
            })
        };
        let clients = limit(Side::Clients, self.client, f64::from(clients));
        let nic = limit(Side::StorageNodeNic, self.node, shared);
        let disk = limit(Side::Disk, self.disk, shared);
        let ends = [&clients, &nic].into_iter().flatten();
        let ends = ends.map(|end| end.bytes_per_sec).reduce(f64::min);
        let network = limit(Side::Network, self.network, 1.0).filter(|network| {
            ends.is_none_or(|ends| network.bytes_per_sec < NETWORK_BINDS_BELOW * ends)
        });
        [clients, nic, disk, network]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The lowest limit against what was reached. `None` without limits.
#[must_use]
pub fn binding(limits: &[Limit], rate: f64) -> Option<Binding> {
    let by_rate = |a: &&Limit, b: &&Limit| a.bytes_per_sec.total_cmp(&b.bytes_per_sec);
    let lowest = *limits.iter().min_by(by_rate)?;
    let reached = rate / lowest.bytes_per_sec;
    Some(Binding {
        lowest,
        reached,
        binds: reached >= BINDS_FROM,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Alone = Alone {
        client: Some(119.6),
        node: Some(191.3),
        network: Some(478.0),
        disk: Some(1000.0),
    };

    fn bound(alone: &Alone, nodes: u32, copies: u32, rate: f64) -> Binding {
        binding(&alone.limits(4, nodes, copies), rate).unwrap()
    }

    #[test]
    fn the_lowest_limit_binds() {
        let side = |nodes, copies, rate| bound(&ALONE, nodes, copies, rate).lowest.side;
        assert_eq!(side(4, 1, 470.0), Side::Clients);
        assert_eq!(side(2, 1, 380.0), Side::StorageNodeNic);
        assert_eq!(side(4, 3, 250.0), Side::StorageNodeNic, "three copies");
        let slow = Alone {
            disk: Some(50.0),
            ..ALONE
        };
        assert_eq!(bound(&slow, 3, 1, 148.0).lowest.side, Side::Disk);
        let narrow = Alone {
            network: Some(300.0),
            ..ALONE
        };
        assert_eq!(bound(&narrow, 4, 1, 290.0).lowest.side, Side::Network);
    }

    #[test]
    fn far_below_every_limit_nothing_binds() {
        assert!(!bound(&ALONE, 2, 1, 200.0).binds);
        assert!(bound(&ALONE, 2, 1, 380.0).binds);
        assert!(binding(&[], 1.0).is_none());
    }
}
