//! Who talks to whom: one file per pattern. A pattern turns an inventory and a stream of random
//! numbers into rounds of client -> server relations; directions and flow numbers are added by the
//! plan.

mod bisection;
mod congestion;
mod cross_rack;
mod draft;
mod fan;
mod incast;
mod mesh;
mod outcast;
mod pair;
mod paths;
mod permutation;
mod pods;
mod roles;
mod site;

pub(crate) use draft::{Draft, Impossible, Relation};
pub(crate) use site::{Sides, Site};

use crate::schedule::draw::Draw;
use ew_model::scenario::Pattern;

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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ew_model::inventory::{Host, HostId, Inventory, Rack, RackId};
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
