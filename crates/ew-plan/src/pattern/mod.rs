//! Who talks to whom: one file per pattern. A pattern turns an inventory and a stream of random
//! numbers into rounds of client -> server relations; directions and flow numbers are added by the
//! plan.

mod bisection;
mod congestion;
mod cross_rack;
mod incast;
mod mesh;
mod outcast;
mod pair;
mod paths;
mod permutation;
mod pods;
mod roles;

use crate::schedule::draw::Draw;
use ew_model::inventory::{HostId, Inventory, RackId};
use ew_model::scenario::Pattern;
use std::collections::BTreeMap;

/// One client that opens connections to one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    pub(crate) client: HostId,
    pub(crate) server: HostId,
    /// The server port slot the client drew (`pick: random` only).
    pub(crate) lane: Option<u16>,
    /// It is in the way of those that are measured.
    pub(crate) is_aggressor: bool,
}

/// A round before directions and flow numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) sample: u32,
    pub(crate) senders_per_rack: Option<u32>,
    pub(crate) relations: Vec<Relation>,
    /// The server sends where in the test the client does, and the other way round.
    pub(crate) reversed: bool,
}

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

/// Why a pattern does not fit an inventory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Impossible {
    TooFewHosts {
        need: usize,
        have: usize,
    },
    NeedsTwoRacks {
        have: usize,
    },
    NoRackOfTwo,
    TooManyPartners {
        asked: u32,
        others: usize,
    },
    NeedsRoles,
    TooFewOfRole {
        role: &'static str,
        need: usize,
        have: usize,
    },
}

/// Lays a pattern out.
pub(crate) fn drafts(
    pattern: &Pattern,
    site: &Site<'_>,
    draw: &mut Draw,
) -> Result<Vec<Draft>, Impossible> {
    let have = site.inventory.hosts.len();
    if have < 2 {
        return Err(Impossible::TooFewHosts { need: 2, have });
    }
    if let (Some(sides), false) = (site.roles, matches!(pattern, Pattern::Pods { .. })) {
        return roles::drafts(pattern, site, sides, draw);
    }
    match pattern {
        Pattern::FanIn | Pattern::FanInFewer => Err(Impossible::NeedsRoles),
        Pattern::Pair => Ok(pair::drafts(site)),
        Pattern::Permutation => permutation::drafts(site, draw),
        Pattern::Paths { shifts } => Ok(paths::drafts(site, *shifts, draw)),
        Pattern::CrossRack {
            pick,
            senders,
            scope,
        } => cross_rack::drafts(site, *pick, *senders, *scope, draw),
        Pattern::Mesh { mode, max_rounds } => Ok(mesh::drafts(site, *mode, *max_rounds, draw)),
        Pattern::Incast {
            senders,
            max_senders,
            at_once: false,
        } => incast::drafts(site, *senders, *max_senders, draw),
        Pattern::Incast {
            senders,
            max_senders,
            at_once: true,
        } => incast::drafts_at_once(site, *senders, *max_senders, draw),
        Pattern::Outcast { receivers } => outcast::drafts(site, *receivers, draw),
        Pattern::Bisection => Ok(bisection::drafts(site, draw)),
        Pattern::Pods { path } => pods::drafts(site, *path),
        Pattern::Congestion { aggressor } => congestion::drafts(site, *aggressor, draw),
        // Filled when all other tests are laid out.
        Pattern::OtherTests { .. } => Ok(vec![Draft::new(0, Vec::new())]),
    }
}

/// An upper bound of the relations that [`drafts`] would make, cheap to know beforehand.
pub(crate) fn most_relations(pattern: &Pattern, site: &Site<'_>) -> u64 {
    if let (Some(sides), false) = (site.roles, matches!(pattern, Pattern::Pods { .. })) {
        return roles::most_relations(pattern, sides).saturating_mul(u64::from(site.samples));
    }
    let hosts = site.inventory.hosts.len() as u64;
    let racks = site.inventory.racks.len() as u64;
    let per_sample = match pattern {
        Pattern::FanIn | Pattern::FanInFewer => 0,
        Pattern::Pair => hosts / 2,
        Pattern::Permutation | Pattern::Bisection | Pattern::Pods { .. } => hosts,
        Pattern::Paths { shifts } => hosts * u64::from(*shifts),
        Pattern::CrossRack { senders, scope, .. } => {
            cross_rack::most_relations(hosts, racks, *senders, *scope)
        }
        Pattern::Mesh { mode, max_rounds } => mesh::most_relations(hosts, *mode, *max_rounds),
        Pattern::Incast { .. } | Pattern::Outcast { .. } => hosts * racks.max(1),
        Pattern::Congestion { .. } => congestion::most_relations(hosts),
        Pattern::OtherTests { per_host } => hosts * u64::from(*per_host),
    };
    per_sample.saturating_mul(u64::from(site.samples))
}

impl Relation {
    pub(crate) fn new(client: HostId, server: HostId) -> Self {
        Self {
            client,
            server,
            lane: None,
            is_aggressor: false,
        }
    }

    pub(crate) fn aggressor(client: HostId, server: HostId) -> Self {
        Self {
            is_aggressor: true,
            ..Self::new(client, server)
        }
    }
}

impl Draft {
    pub(crate) fn new(sample: u32, relations: Vec<Relation>) -> Self {
        Self {
            sample,
            senders_per_rack: None,
            relations,
            reversed: false,
        }
    }
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

/// One host of each rack, or one of all hosts when there are no racks: the rotation of incast
/// and outcast.
fn one_per_rack(inventory: &Inventory, draw: &mut Draw) -> Vec<HostId> {
    let mut racks = racks(inventory);
    if racks.is_empty() {
        racks.push(inventory.host_ids().collect());
    }
    racks
        .iter()
        .map(|hosts| hosts[draw.below(hosts.len())])
        .collect()
}

/// Rounds of one host against `count` (or all) others, selected anew and spread over the racks, for
/// each host of [`one_per_rack`] and each sample.
fn fan(
    site: &Site<'_>,
    count: Option<u32>,
    draw: &mut Draw,
    relation: impl Fn(HostId, HostId) -> Relation,
) -> Result<Vec<Draft>, Impossible> {
    let others = site.inventory.hosts.len() - 1;
    let wanted = count.map_or(others, |n| n as usize);
    if wanted > others {
        let asked = count.unwrap_or(u32::MAX);
        return Err(Impossible::TooManyPartners { asked, others });
    }
    let hubs = one_per_rack(site.inventory, draw);
    let mut drafts = Vec::new();
    for sample in 0..site.samples {
        for hub in &hubs {
            let others = site.inventory.host_ids().filter(|id| id != hub).collect();
            let partners = spread(site.inventory, others, draw)
                .into_iter()
                .take(wanted);
            let relations = partners.map(|p| relation(*hub, p)).collect();
            drafts.push(Draft::new(sample, relations));
        }
    }
    Ok(drafts)
}

/// The hosts in random order in which the racks are interleaved, so that any first part of them is
/// spread over the racks.
fn spread(inventory: &Inventory, mut hosts: Vec<HostId>, draw: &mut Draw) -> Vec<HostId> {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ew_model::inventory::{Host, Rack};
    use std::collections::BTreeSet;

    /// An inventory with racks of these sizes; hosts are numbered rack by rack.
    pub(crate) fn inventory(rack_sizes: &[usize]) -> Inventory {
        let mut inventory = Inventory::default();
        for (r, size) in rack_sizes.iter().enumerate() {
            inventory.racks.push(Rack {
                name: format!("rack{r}"),
            });
            for _ in 0..*size {
                inventory.hosts.push(Host {
                    name: format!("n{}", inventory.hosts.len()),
                    address: None,
                    rack: Some(RackId(r as u32)),
                });
            }
        }
        inventory
    }

    /// The first hosts are clients, the next ones servers.
    pub(crate) fn two_sets(clients: u32, servers: u32) -> Sides {
        Sides {
            clients: (0..clients).map(HostId).collect(),
            servers: (clients..clients + servers).map(HostId).collect(),
        }
    }

    /// An inventory without racks.
    pub(crate) fn flat(hosts: usize) -> Inventory {
        let mut inventory = inventory(&[hosts]);
        inventory.racks.clear();
        for host in &mut inventory.hosts {
            host.rack = None;
        }
        inventory
    }

    pub(crate) fn site(inventory: &Inventory, samples: u32) -> Site<'_> {
        Site {
            inventory,
            samples,
            oversubscription: 4.0,
            roles: None,
        }
    }

    pub(crate) fn laid_out(pattern: &Pattern, site: &Site<'_>, seed: u64) -> Vec<Draft> {
        let drafts = drafts(pattern, site, &mut Draw::new(seed, "test")).unwrap();
        let count: usize = drafts.iter().map(|d| d.relations.len()).sum();
        assert!(
            count as u64 <= most_relations(pattern, site),
            "the bound holds"
        );
        for relation in drafts.iter().flat_map(|d| &d.relations) {
            assert_ne!(
                relation.client, relation.server,
                "never a host against itself"
            );
        }
        drafts
    }

    /// Whether no host is client twice or server twice.
    pub(crate) fn is_matching(draft: &Draft) -> bool {
        let clients: BTreeSet<_> = draft.relations.iter().map(|r| r.client).collect();
        let servers: BTreeSet<_> = draft.relations.iter().map(|r| r.server).collect();
        clients.len() == draft.relations.len() && servers.len() == draft.relations.len()
    }
}
