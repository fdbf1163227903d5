//! What names hosts or racks that a run does not have: everybody looks them up by number.

use ew_model::plan::Flow;
use ew_model::{HostId, Run};
use std::collections::BTreeMap;

/// Takes out of a run what names hosts or racks that are not in its inventory, and gives how many
/// of them there were. Only a damaged directory has any.
pub(crate) fn drop_unknown(run: &mut Run) -> usize {
    let inventory = &mut run.manifest.inventory;
    let (hosts, racks) = (inventory.hosts.len(), inventory.racks.len());
    let mut dropped = 0;
    for host in &mut inventory.hosts {
        if host.rack.is_some_and(|rack| rack.index() >= racks) {
            host.rack = None;
            dropped += 1;
        }
    }
    let known = |host: HostId| host.index() < hosts;
    let of_plan = |flow: &Flow| known(flow.src) && known(flow.dst);
    let rounds = run
        .plan
        .stages
        .iter_mut()
        .flat_map(|stage| &mut stage.rounds);
    for round in rounds {
        dropped += retain(&mut round.flows, of_plan);
    }
    dropped += retain(&mut run.flows, |row| known(row.src) && known(row.dst));
    for step in &mut run.storage {
        dropped += retain(&mut step.reports, |(host, _)| known(*host));
        dropped += retain(&mut step.missing, |(host, _)| known(*host));
        dropped += retain(&mut step.endpoints, |(host, _)| known(*host));
    }
    dropped
        + retain_known(&mut run.facts, hosts)
        + retain_known(&mut run.failed, hosts)
        + retain_known(&mut run.lost, hosts)
        + retain_known(&mut run.returned, hosts)
        + retain_known(&mut run.clock_offset_ns, hosts)
        + retain_known(&mut run.clock_error_ns, hosts)
        + retain_known(&mut run.samples, hosts)
        + retain_known(&mut run.rejected_connections, hosts)
}

fn retain<T>(all: &mut Vec<T>, is_known: impl Fn(&T) -> bool) -> usize {
    let before = all.len();
    all.retain(is_known);
    before - all.len()
}

fn retain_known<T>(by_host: &mut BTreeMap<HostId, T>, hosts: usize) -> usize {
    let before = by_host.len();
    by_host.retain(|host, _| host.index() < hosts);
    before - by_host.len()
}
