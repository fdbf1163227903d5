//! What each flow of a round should get: max-min fair shares of the capacities.
//! `ew_model::ceiling` computes how much of them is payload.

use ew_model::inventory::{HostId, Inventory, RackId};
use ew_model::plan::Flow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// What hosts and racks can carry, bits per second. `f64::INFINITY` means "does not limit".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capacities {
    /// Per host, sending.
    pub tx_bits_per_sec: Vec<f64>,
    /// Per host, receiving.
    pub rx_bits_per_sec: Vec<f64>,
    /// Per rack, what leaves it; `None` when unknown, which does not limit.
    pub up_bits_per_sec: Vec<Option<f64>>,
    /// Per rack, what enters it; `None` when unknown.
    pub down_bits_per_sec: Vec<Option<f64>>,
}

impl Capacities {
    /// All hosts alike, uplinks unlimited.
    #[must_use]
    pub fn uniform(inventory: &Inventory, nic_bits_per_sec: f64) -> Self {
        Self {
            tx_bits_per_sec: vec![nic_bits_per_sec; inventory.hosts.len()],
            rx_bits_per_sec: vec![nic_bits_per_sec; inventory.hosts.len()],
            up_bits_per_sec: vec![None; inventory.racks.len()],
            down_bits_per_sec: vec![None; inventory.racks.len()],
        }
    }
}

/// What limits a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bottleneck {
    /// A host's sending side.
    Tx(HostId),
    /// A host's receiving side.
    Rx(HostId),
    /// A rack's uplink, outwards.
    Up(RackId),
    /// A rack's uplink, inwards.
    Down(RackId),
}

/// A flow's fair share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Its rate, in the unit of the capacities. Infinite when nothing on its way limits.
    pub bits_per_sec: f64,
    /// Where it is limited. Among several that fill at the same time the first in the order of
    /// [`Bottleneck`].
    pub bottleneck: Bottleneck,
}

/// Max-min fair shares of flows that run at the same time, in the flows' order, by progressive
/// filling: all rates rise together, and where a resource is full its flows stay (Bertsekas and
/// Gallager, Data Networks, 6.5.2). Every flow ends with a full resource on which no other flow
/// gets more than it.
///
/// A host or rack beyond the end of `capacities` does not limit; a capacity that is not a number,
/// or below 0, counts as 0. Time: flows x log(resources).
#[must_use]
pub fn max_min(flows: &[Flow], inventory: &Inventory, capacities: &Capacities) -> Vec<Share> {
    let mut filling = Filling::new(flows, inventory, capacities);
    while let Some(level) = filling.heap.pop() {
        filling.close(level);
    }
    filling.shares
}

/// What is still open while rates rise.
struct Filling {
    resources: Vec<Resource>,
    /// The resources of each flow.
    ways: Vec<Vec<usize>>,
    shares: Vec<Share>,
    /// Whether the flow's share is final.
    closed: Vec<bool>,
    /// The common rate at which each resource would be full. Entries may be stale: the rate only
    /// ever rises, so an entry is checked when it comes up.
    heap: BinaryHeap<Level>,
}

struct Resource {
    name: Bottleneck,
    left: f64,
    open: u32,
    flows: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    rate: f64,
    resource: usize,
}

impl Filling {
    fn new(flows: &[Flow], inventory: &Inventory, capacities: &Capacities) -> Self {
        let mut number: BTreeMap<Bottleneck, usize> = BTreeMap::new();
        let ways: Vec<Vec<Bottleneck>> = flows.iter().map(|flow| way(flow, inventory)).collect();
        for name in ways.iter().flatten() {
            number.insert(*name, 0);
        }
        let mut resources = Vec::with_capacity(number.len());
        for (name, at) in &mut number {
            *at = resources.len();
            resources.push(Resource {
                name: *name,
                left: capacity(*name, capacities),
                open: 0,
                flows: Vec::new(),
            });
        }
        let ways: Vec<Vec<usize>> = ways
            .iter()
            .map(|way| {
                way.iter()
                    .filter_map(|name| number.get(name).copied())
                    .collect()
            })
            .collect();
        for (flow, way) in ways.iter().enumerate() {
            for resource in way {
                resources[*resource].open += 1;
                resources[*resource].flows.push(flow);
            }
        }
        let unlimited = |flow: &Flow| Share {
            bits_per_sec: f64::INFINITY,
            bottleneck: Bottleneck::Tx(flow.src),
        };
        let mut filling = Self {
            shares: flows.iter().map(unlimited).collect(),
            closed: vec![false; flows.len()],
            heap: BinaryHeap::new(),
            resources,
            ways,
        };
        for resource in 0..filling.resources.len() {
            filling.push(resource);
        }
        filling
    }

    fn push(&mut self, resource: usize) {
        let Resource { left, open, .. } = self.resources[resource];
        if open > 0 && left.is_finite() {
            let rate = left.max(0.0) / f64::from(open);
            self.heap.push(Level { rate, resource });
        }
    }

    /// The resource with the lowest level is full: its open flows stay at that rate.
    fn close(&mut self, level: Level) {
        let Resource { left, open, .. } = self.resources[level.resource];
        if open == 0 {
            return;
        }
        let rate = left.max(0.0) / f64::from(open);
        if rate > level.rate {
            // Stale: flows that were limited elsewhere left some over.
            self.push(level.resource);
            return;
        }
        let flows = std::mem::take(&mut self.resources[level.resource].flows);
        for flow in flows {
            if std::mem::replace(&mut self.closed[flow], true) {
                continue;
            }
            self.shares[flow] = Share {
                bits_per_sec: rate,
                bottleneck: self.resources[level.resource].name,
            };
            for resource in &self.ways[flow] {
                self.resources[*resource].left -= rate;
                self.resources[*resource].open -= 1;
            }
        }
    }
}

/// The resources on a flow's way.
fn way(flow: &Flow, inventory: &Inventory) -> Vec<Bottleneck> {
    let mut way = vec![Bottleneck::Tx(flow.src), Bottleneck::Rx(flow.dst)];
    if let (Some(from), Some(to)) = (inventory.rack_of(flow.src), inventory.rack_of(flow.dst))
        && from != to
    {
        way.push(Bottleneck::Up(from));
        way.push(Bottleneck::Down(to));
    }
    way
}

fn capacity(name: Bottleneck, capacities: &Capacities) -> f64 {
    let known = match name {
        Bottleneck::Tx(host) => capacities.tx_bits_per_sec.get(host.index()).copied(),
        Bottleneck::Rx(host) => capacities.rx_bits_per_sec.get(host.index()).copied(),
        Bottleneck::Up(rack) => capacities
            .up_bits_per_sec
            .get(rack.index())
            .copied()
            .flatten(),
        Bottleneck::Down(rack) => capacities
            .down_bits_per_sec
            .get(rack.index())
            .copied()
            .flatten(),
    };
    match known {
        None => f64::INFINITY,
        Some(value) if value.is_nan() || value < 0.0 => 0.0,
        Some(value) => value,
    }
}

// The heap gives the largest first, so the lowest rate is the largest; ties go to the resource
// named first.
impl Ord for Level {
    fn cmp(&self, other: &Self) -> Ordering {
        other
            .rate
            .total_cmp(&self.rate)
            .then(other.resource.cmp(&self.resource))
    }
}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Level {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::inventory;
    use ew_model::plan::{End, FlowId};
    use proptest::prelude::*;

    fn flow(src: u32, dst: u32) -> Flow {
        Flow {
            id: FlowId(0),
            src: HostId(src),
            dst: HostId(dst),
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        }
    }

    fn rates(shares: &[Share]) -> Vec<f64> {
        shares.iter().map(|s| s.bits_per_sec).collect()
    }

    #[test]
    fn clients_of_one_server_share_its_nic() {
        let inventory = inventory(&[4]);
        let capacities = Capacities::uniform(&inventory, 10.0);
        let shares = max_min(
            &[flow(0, 2), flow(1, 2), flow(2, 3)],
            &inventory,
            &capacities,
        );
        assert_eq!(rates(&shares), [5.0, 5.0, 10.0]);
        assert_eq!(shares[0].bottleneck, Bottleneck::Rx(HostId(2)));
    }

    #[test]
    fn what_one_leaves_the_others_take() {
        // Two flows leave host 0; one of them is limited to 2 by a slow receiver.
        let inventory = inventory(&[3]);
        let mut capacities = Capacities::uniform(&inventory, 10.0);
        capacities.rx_bits_per_sec[1] = 2.0;
        let shares = max_min(&[flow(0, 1), flow(0, 2)], &inventory, &capacities);
        assert_eq!(rates(&shares), [2.0, 8.0]);
        assert_eq!(shares[1].bottleneck, Bottleneck::Tx(HostId(0)));
    }

    #[test]
    fn uplinks_are_shared_across_and_not_inside() {
        let inventory = inventory(&[4, 4]);
        let mut capacities = Capacities::uniform(&inventory, 10.0);
        capacities.up_bits_per_sec[0] = Some(10.0);
        let across: Vec<Flow> = (0..4).map(|i| flow(i, 4 + i)).collect();
        assert_eq!(rates(&max_min(&across, &inventory, &capacities)), [2.5; 4]);
        assert_eq!(
            rates(&max_min(&[flow(0, 1)], &inventory, &capacities)),
            [10.0]
        );
    }

    #[test]
    fn odd_capacities_do_no_harm() {
        let inventory = inventory(&[2]);
        assert_eq!(max_min(&[], &inventory, &Capacities::default()), []);
        let free = max_min(&[flow(0, 1)], &inventory, &Capacities::default());
        assert!(free[0].bits_per_sec.is_infinite());
        let broken = Capacities::uniform(&inventory, f64::NAN);
        assert_eq!(rates(&max_min(&[flow(0, 1)], &inventory, &broken)), [0.0]);
    }

    fn used(name: Bottleneck, flows: &[Flow], inventory: &Inventory, shares: &[Share]) -> f64 {
        let on = flows
            .iter()
            .zip(shares)
            .filter(|(f, _)| way(f, inventory).contains(&name));
        on.map(|(_, s)| s.bits_per_sec).sum()
    }

    proptest! {
        #[test]
        fn shares_are_max_min_fair(
            sizes in proptest::collection::vec(1usize..5, 1..4),
            picks in proptest::collection::vec((0u32..100, 0u32..100), 1..40),
            nics in proptest::collection::vec(1.0f64..100.0, 24),
            uplinks in proptest::collection::vec(proptest::option::of(1.0f64..50.0), 8),
        ) {
            let inventory = inventory(&sizes);
            let hosts = inventory.hosts.len() as u32;
            let flows: Vec<Flow> = picks.iter().map(|(a, b)| flow(a % hosts, b % hosts))
                .filter(|f| f.src != f.dst).collect();
            let capacities = Capacities {
                tx_bits_per_sec: nics[..12].to_vec(),
                rx_bits_per_sec: nics[12..].to_vec(),
                up_bits_per_sec: uplinks[..4].to_vec(),
                down_bits_per_sec: uplinks[4..].to_vec(),
            };
            let shares = max_min(&flows, &inventory, &capacities);
            for (f, share) in flows.iter().zip(&shares) {
                for name in way(f, &inventory) {
                    let limit = capacity(name, &capacities);
                    prop_assert!(used(name, &flows, &inventory, &shares) <= limit * (1.0 + 1e-9));
                }
                let at = share.bottleneck;
                prop_assert!(way(f, &inventory).contains(&at));
                let full = used(at, &flows, &inventory, &shares);
                prop_assert!(full >= capacity(at, &capacities) * (1.0 - 1e-9));
                for (other, s) in flows.iter().zip(&shares) {
                    let shares_it = way(other, &inventory).contains(&at);
                    prop_assert!(!shares_it || s.bits_per_sec <= share.bits_per_sec * (1.0 + 1e-9));
                }
            }
        }
    }
}
