//! What patterns are laid out on: hosts, their racks and their roles, and ways to take hosts from
//! them.

use crate::schedule::draw::Draw;
use ew_model::inventory::{HostId, Inventory, RackId};
use std::collections::BTreeMap;

/// What patterns are laid out on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) samples: u32,
    /// What uplinks are taken to be, to one, where a pattern spares them.
    pub(crate) oversubscription: f64,
    /// Clients and servers, where the scenario distinguishes them.
    pub(crate) roles: Option<&'a Sides>,
}

/// Clients and servers by id; neither is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) clients: Vec<HostId>,
    pub(crate) servers: Vec<HostId>,
}

/// The hosts of each rack that has any, in inventory order. Hosts without a rack are in none.
pub(crate) fn racks(inventory: &Inventory) -> Vec<Vec<HostId>> {
    let mut racks = vec![Vec::new(); inventory.racks.len()];
    for id in inventory.host_ids() {
        if let Some(rack) = inventory.rack_of(id) {
            racks[rack.index()].push(id);
        }
    }
    racks.retain(|hosts: &Vec<HostId>| !hosts.is_empty());
    racks
}

/// The hosts in random order in which the racks are interleaved, so that any first part of them is
/// spread over the racks.
pub(super) fn spread(
    inventory: &Inventory,
    mut hosts: Vec<HostId>,
    draw: &mut Draw,
) -> Vec<HostId> {
    draw.shuffle(&mut hosts);
    let mut seen: BTreeMap<Option<RackId>, usize> = BTreeMap::new();
    let mut turns = Vec::with_capacity(hosts.len());
    for id in hosts {
        let turn = seen.entry(inventory.rack_of(id)).or_default();
        *turn += 1;
        turns.push((*turn, id));
    }
    // Stable: inside a turn the order stays random.
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, id)| id).collect()
}

/// The larger set is dealt over the smaller one: all take part, and shares differ by one at most.
pub(super) fn dealt(clients: &[HostId], servers: &[HostId]) -> Vec<(HostId, HostId)> {
    let count = clients.len().max(servers.len());
    (0..count)
        .map(|i| (clients[i % clients.len()], servers[i % servers.len()]))
        .collect()
}
