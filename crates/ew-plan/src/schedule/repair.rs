//! Rounds that measure what a failure left unmeasured, and nothing else.

use super::coloring::color_edges;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{End, Flow, FlowId, Round};
use std::collections::BTreeMap;

/// How much a repair round may put on a rack's uplink, for stages that isolate their flows.
#[derive(Clone, Copy, Debug)]
pub struct UplinkLimits<'a> {
    /// Whose racks.
    pub inventory: &'a Inventory,
    /// Taken to be so many to one: a rack of n hosts gets max(1, floor(n / this)) flows per
    /// direction at a time.
    pub oversubscription: f64,
}

/// Rounds for the `missing` (src, dst) pairs: each host in at most one flow per direction a round,
/// in as few rounds as the busiest host has missing flows (König), or somewhat more where `limits`
/// narrow an uplink. Flow ids count from `first_id` ([`crate::plan::next_flow_id`] gives it); a
/// pair named twice is measured twice; pairs of a host with itself are skipped. `opened_by`
/// specifies which end opens the connections, for all flows alike.
#[must_use]
pub fn repair_rounds(
    missing: &[(HostId, HostId)],
    opened_by: End,
    first_id: FlowId,
    limits: Option<UplinkLimits<'_>>,
) -> Vec<Round> {
    let pairs: Vec<(HostId, HostId)> = missing.iter().copied().filter(|(a, b)| a != b).collect();
    let edges: Vec<(u32, u32)> = pairs.iter().map(|(a, b)| (a.0, b.0)).collect();
    let mut by_color: BTreeMap<usize, Vec<(HostId, HostId)>> = BTreeMap::new();
    for (pair, color) in pairs.iter().zip(color_edges(&edges)) {
        by_color.entry(color).or_default().push(*pair);
    }
    let mut id = first_id.0;
    let mut flow = |(src, dst): (HostId, HostId)| {
        let flow = Flow {
            id: FlowId(id),
            src,
            dst,
            opened_by,
            lane: None,
            is_aggressor: false,
            traces: None,
        };
        id = id.saturating_add(1);
        flow
    };
    by_color
        .into_values()
        .flat_map(|pairs| within_uplinks(pairs, limits))
        .map(|pairs| Round {
            sample: 0,
            senders_per_rack: None,
            flows: pairs.into_iter().map(&mut flow).collect(),
        })
        .collect()
}

/// Flows per direction at a time that each rack's uplink is taken to carry: max(1, floor(hosts /
/// oversubscription)).
pub(crate) fn uplink_flows(inventory: &Inventory, oversubscription: f64) -> Vec<u32> {
    let mut hosts = vec![0u32; inventory.racks.len()];
    for rack in inventory.hosts.iter().filter_map(|host| host.rack) {
        hosts[rack.index()] += 1;
    }
    let carried = |n: u32| (f64::from(n) / oversubscription.max(1.0)).floor() as u32;
    hosts.into_iter().map(|n| carried(n).max(1)).collect()
}

/// A round being filled, with what its uplinks still carry.
struct Filled {
    up: Vec<u32>,
    down: Vec<u32>,
    pairs: Vec<(HostId, HostId)>,
}

/// Splits a round where it puts too much on an uplink; first fit.
fn within_uplinks(
    pairs: Vec<(HostId, HostId)>,
    limits: Option<UplinkLimits<'_>>,
) -> Vec<Vec<(HostId, HostId)>> {
    let Some(limits) = limits else {
        return vec![pairs];
    };
    let carried = uplink_flows(limits.inventory, limits.oversubscription);
    let mut rounds: Vec<Filled> = Vec::new();
    for (src, dst) in pairs {
        let racks = (limits.inventory.rack_of(src), limits.inventory.rack_of(dst));
        let crossing = match racks {
            (Some(from), Some(to)) if from != to => Some((from.index(), to.index())),
            _ => None,
        };
        let fits = |round: &Filled| {
            crossing.is_none_or(|(from, to)| round.up[from] > 0 && round.down[to] > 0)
        };
        let at = rounds.iter().position(fits).unwrap_or_else(|| {
            rounds.push(Filled {
                up: carried.clone(),
                down: carried.clone(),
                pairs: Vec::new(),
            });
            rounds.len() - 1
        });
        let round = &mut rounds[at];
        if let Some((from, to)) = crossing {
            round.up[from] -= 1;
            round.down[to] -= 1;
        }
        round.pairs.push((src, dst));
    }
    rounds.into_iter().map(|round| round.pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::inventory;
    use std::collections::BTreeSet;

    #[test]
    fn one_dead_host_of_eight_costs_seven_rounds() {
        let dead = HostId(3);
        let others = (0..8).map(HostId).filter(|h| *h != dead);
        let missing: Vec<_> = others.flat_map(|h| [(dead, h), (h, dead)]).collect();
        let rounds = repair_rounds(&missing, End::Src, FlowId(100), None);
        assert_eq!(rounds.len(), 7);
        let flows: Vec<_> = rounds.iter().flat_map(|r| &r.flows).collect();
        let ids: BTreeSet<_> = flows.iter().map(|f| f.id.0).collect();
        assert_eq!(ids, (100..114).collect());
        let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src, f.dst)).collect();
        assert_eq!(pairs, missing.into_iter().collect());
    }

    #[test]
    fn uplinks_are_respected_where_asked() {
        let inventory = inventory(&[4, 4]);
        let missing: Vec<_> = (0..4).map(|i| (HostId(i), HostId(4 + i))).collect();
        assert_eq!(repair_rounds(&missing, End::Src, FlowId(0), None).len(), 1);
        let limits = UplinkLimits {
            inventory: &inventory,
            oversubscription: 4.0,
        };
        assert_eq!(
            repair_rounds(&missing, End::Src, FlowId(0), Some(limits)).len(),
            4
        );
        assert!(repair_rounds(&[], End::Src, FlowId(0), Some(limits)).is_empty());
    }
}
