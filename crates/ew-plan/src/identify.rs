//! Whether a plan's flows distinguish every link from every other one.
//!
//! A flow's row in the incidence matrix has a one for each link on its way: its sender's TX, its
//! receiver's RX and, cross-rack, the uplinks of both. Its rank is that of all pairs' matrix,
//! the most there can be, when two kinds of graphs are connected: within each rack the one of its
//! hosts' TX and RX with an edge for each flow, and the one of the racks' uplinks out and in with
//! an edge for each pair of racks. For then every TX of a rack is the negative of every RX of it
//! but for one constant, and what remains of a flow across is one row of the racks' graph. A
//! connected bipartite graph of n nodes has rank n - 1.

use ew_model::inventory::Inventory;
use ew_model::plan::Stage;
use ew_model::workload::WorkloadKind;
use std::collections::BTreeSet;

/// Whether bulk TCP flows of the stages identify every link, as far as all pairs would.
pub(crate) fn identifies_every_link<'s>(
    stages: impl Iterator<Item = &'s Stage>,
    inventory: &Inventory,
) -> bool {
    let (hosts, racks) = (inventory.hosts.len(), inventory.racks.len());
    let mut groups = Groups::new(2 * hosts + 2 * racks);
    let bulk = stages.filter(|stage| stage.workload.kind == WorkloadKind::TcpStream);
    for flow in bulk
        .flat_map(|stage| &stage.rounds)
        .flat_map(|round| &round.flows)
    {
        let ends = inventory.rack_of(flow.src).zip(inventory.rack_of(flow.dst));
        match ends.filter(|(from, to)| from != to) {
            Some((from, to)) => {
                groups.join(2 * hosts + from.index(), 2 * hosts + racks + to.index());
            }
            None => groups.join(flow.src.index(), hosts + flow.dst.index()),
        }
    }
    let members: Vec<Vec<usize>> = match racks {
        0 => vec![(0..hosts).collect()],
        _ => inventory
            .rack_ids()
            .map(|rack| {
                inventory
                    .hosts_in(rack)
                    .iter()
                    .map(|host| host.index())
                    .collect()
            })
            .collect(),
    };
    let within = members.iter().all(|members| {
        let nodes = members.iter().flat_map(|host| [*host, hosts + host]);
        groups.count(nodes) <= fewest(members.len())
    });
    let uplinks = 2 * hosts..2 * hosts + 2 * racks;
    within && (racks < 2 || groups.count(uplinks) <= fewest(racks))
}

/// Components of "each sends to all others": with two nobody meets a third.
fn fewest(nodes: usize) -> usize {
    match nodes {
        0..=2 => 2,
        _ => 1,
    }
}

/// Disjoint sets, with halved paths.
struct Groups {
    parent: Vec<usize>,
}

impl Groups {
    fn new(nodes: usize) -> Self {
        Self {
            parent: (0..nodes).collect(),
        }
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.parent[node] != node {
            self.parent[node] = self.parent[self.parent[node]];
            node = self.parent[node];
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a] = b;
    }

    fn count(&mut self, nodes: impl Iterator<Item = usize>) -> usize {
        let roots: BTreeSet<usize> = nodes.map(|node| self.root(node)).collect();
        roots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::identifies_every_link;
    use crate::pattern::tests::inventory;
    use crate::{plan, scenario};
    use ew_model::inventory::{HostId, Inventory};
    use ew_model::plan::Plan;
    use ew_model::workload::WorkloadKind;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Pair = (HostId, HostId);

    fn qualify(inventory: &Inventory, seed: u64) -> Plan {
        let text = scenario::builtin("qualify").unwrap();
        let scenario = scenario::parse(text, "qualify", &[]).unwrap();
        plan(&scenario, inventory, seed).unwrap()
    }

    fn pairs(plan: &Plan) -> BTreeSet<Pair> {
        let bulk = plan.stages.iter();
        let bulk = bulk.filter(|stage| stage.workload.kind == WorkloadKind::TcpStream);
        let flows = bulk
            .flat_map(|stage| &stage.rounds)
            .flat_map(|round| &round.flows);
        flows.map(|flow| (flow.src, flow.dst)).collect()
    }

    fn all_pairs(inventory: &Inventory) -> BTreeSet<Pair> {
        let hosts = || inventory.host_ids();
        hosts()
            .flat_map(|src| hosts().map(move |dst| (src, dst)))
            .filter(|(src, dst)| src != dst)
            .collect()
    }

    /// Of the incidence matrix, by elimination in the field of so many elements.
    fn rank(pairs: &BTreeSet<Pair>, inventory: &Inventory) -> usize {
        const PRIME: i64 = 1_000_003;
        let (hosts, racks) = (inventory.hosts.len(), inventory.racks.len());
        let row = |(src, dst): &Pair| {
            let mut row = vec![0_i64; 2 * hosts + 2 * racks];
            row[src.index()] = 1;
            row[hosts + dst.index()] = 1;
            if inventory.crosses_racks(*src, *dst) {
                row[2 * hosts + inventory.rack_of(*src).unwrap().index()] = 1;
                row[2 * hosts + racks + inventory.rack_of(*dst).unwrap().index()] = 1;
            }
            row
        };
        let mut rows: Vec<Vec<i64>> = pairs.iter().map(row).collect();
        let power = |base: i64| {
            let (mut result, mut base, mut left) = (1, base, PRIME - 2);
            while left > 0 {
                if left % 2 == 1 {
                    result = result * base % PRIME;
                }
                base = base * base % PRIME;
                left /= 2;
            }
            result
        };
        let mut rank = 0;
        for column in 0..2 * hosts + 2 * racks {
            let Some(pivot) = (rank..rows.len()).find(|at| rows[*at][column] != 0) else {
                continue;
            };
            rows.swap(rank, pivot);
            let inverse = power(rows[rank][column]);
            let pivot = rows[rank].clone();
            for other in rows
                .iter_mut()
                .skip(rank + 1)
                .filter(|row| row[column] != 0)
            {
                let factor = other[column] * inverse % PRIME;
                for (value, of_pivot) in other.iter_mut().zip(&pivot) {
                    *value = (*value + (PRIME - factor) * of_pivot) % PRIME;
                }
            }
            rank += 1;
        }
        rank
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn qualify_identifies_what_all_pairs_would(
            sizes in proptest::collection::vec(3usize..7, 2..5), seed: u64
        ) {
            let inventory = inventory(&sizes);
            let plan = qualify(&inventory, seed);
            prop_assert!(identifies_every_link(plan.stages.iter(), &inventory));
            prop_assert_eq!(
                rank(&pairs(&plan), &inventory),
                rank(&all_pairs(&inventory), &inventory)
            );
        }

        /// The graphs agree with the rank, for any flows.
        #[test]
        fn connected_graphs_are_full_rank(
            sizes in proptest::collection::vec(3usize..6, 2..4), seed: u64, keep in 1usize..30
        ) {
            let inventory = inventory(&sizes);
            let mut plan = qualify(&inventory, seed);
            let mut left = keep;
            for stage in &mut plan.stages {
                for round in &mut stage.rounds {
                    let kept = round.flows.len().min(left);
                    round.flows.truncate(kept);
                    left -= if stage.workload.kind == WorkloadKind::TcpStream { kept } else { 0 };
                }
            }
            let is_full = rank(&pairs(&plan), &inventory) == rank(&all_pairs(&inventory), &inventory);
            let is_connected = identifies_every_link(plan.stages.iter(), &inventory);
            prop_assert!(!is_connected || is_full);
        }
    }

    #[test]
    fn a_rack_that_never_sends_is_not_identified() {
        let inventory = inventory(&[4, 4, 4]);
        let mut plan = qualify(&inventory, 1);
        let own = inventory.hosts_in(ew_model::RackId(1)).to_vec();
        for round in plan.stages.iter_mut().flat_map(|stage| &mut stage.rounds) {
            round
                .flows
                .retain(|flow| !own.contains(&flow.src) || own.contains(&flow.dst));
        }
        assert!(!identifies_every_link(plan.stages.iter(), &inventory));
    }
}
