//! One host and many others, for one host of each rack: what incast and outcast share.

use super::draft::{Draft, Impossible, Relation};
use super::site::{Site, racks, spread};
use crate::schedule::draw::Draw;
use ew_model::inventory::{HostId, Inventory};

/// One host of each rack, or one of all hosts when there are no racks: the rotation of incast
/// and outcast.
pub(super) fn one_per_rack(inventory: &Inventory, draw: &mut Draw) -> Vec<HostId> {
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
pub(super) fn fan(
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
