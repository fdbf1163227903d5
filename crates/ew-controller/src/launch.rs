//! Brings the fleet up, decides whether enough of it came up, and plans again around those that did
//! not.

use crate::fleet_event::FleetEvent;
use crate::journal::Journal;
use crate::member::both_errors;
use crate::members::{Member, Members};
use crate::run_error::RunError;
use ew_model::event::RunEvent;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::Plan;
use ew_model::scenario::Scenario;
use ew_proto::controller_session::ControllerEvent;
use std::collections::{BTreeMap, BTreeSet};

/// With fewer hosts in a rack than this, a slow host cannot be distinguished from a slow network.
const MIN_HOSTS_PER_RACK: usize = 2;

/// Launches every host and waits until each is up or has failed. What may pass is tried once more
/// when the others are up: their launches are out of the way, and a host that boots had time.
pub(crate) async fn bring_up(
    members: &mut Members,
    hosts: &[HostId],
    journal: &mut Journal,
) -> Result<(), RunError> {
    let began_ns = members.now_ns();
    for id in hosts {
        members.launch(*id);
    }
    let again = await_launches(members, began_ns, None, journal).await?;
    for id in again.keys() {
        members.launch(*id);
    }
    await_launches(members, began_ns, Some(&again), journal).await?;
    Ok(())
}

/// Until nobody is being launched. Hosts whose trouble may pass, with the reason; none of those
/// that failed `earlier`.
async fn await_launches(
    members: &mut Members,
    began_ns: u64,
    earlier: Option<&BTreeMap<HostId, String>>,
    journal: &mut Journal,
) -> Result<BTreeMap<HostId, String>, RunError> {
    let mut again = BTreeMap::new();
    while !members.launching().is_empty() {
        match members.next(u64::MAX).await {
            FleetEvent::Agent(host, ControllerEvent::Ready { facts, .. }) => {
                let launch_ns = members.now_ns() - began_ns;
                let chosen = members.inventory().host(host).address;
                let address = chosen.filter(|_| members.chooses_network());
                journal.emit(RunEvent::HostUp {
                    host,
                    facts: *facts,
                    launch_ns,
                    address,
                });
            }
            FleetEvent::Agent(host, ControllerEvent::Lost { reason: message })
            | FleetEvent::LaunchFailed { host, message } => {
                let may_pass = members.get(host).is_some_and(Member::is_worth_launching);
                if may_pass && earlier.is_none() {
                    again.insert(host, message);
                } else {
                    let first = earlier.and_then(|reasons| reasons.get(&host)).cloned();
                    let message = both_errors(first, message);
                    journal.emit(RunEvent::HostFailed { host, message });
                }
            }
            FleetEvent::Interrupt => {
                for (host, message) in again {
                    journal.emit(RunEvent::HostFailed { host, message });
                }
                journal.emit(RunEvent::Interrupted);
                return Err(RunError::Interrupted);
            }
            FleetEvent::Agent(..) | FleetEvent::Ended { .. } | FleetEvent::Deadline => {}
        }
    }
    Ok(again)
}

/// Whether the hosts that came up can give an answer.
pub(crate) fn check_enough(
    inventory: &Inventory,
    members: &Members,
    require_all: bool,
) -> Result<(), RunError> {
    let alive: BTreeSet<HostId> = members.alive().into_iter().collect();
    let dead = inventory.hosts.len() - alive.len();
    if dead == 0 {
        return Ok(());
    }
    if require_all {
        return Err(RunError::NotAllHosts { failed: dead });
    }
    for rack in inventory.rack_ids() {
        let left = inventory
            .hosts_in(rack)
            .iter()
            .filter(|id| alive.contains(id))
            .count();
        if left < MIN_HOSTS_PER_RACK {
            return Err(RunError::RackTooSmall {
                rack: inventory.rack_name(rack).into(),
                left,
            });
        }
    }
    if alive.len() < MIN_HOSTS_PER_RACK {
        return Err(RunError::TooFewHosts { left: alive.len() });
    }
    Ok(())
}

/// The plan over the hosts that came up, in the ids of the whole inventory.
pub(crate) fn plan_among(
    scenario: &Scenario,
    inventory: &Inventory,
    alive: &[HostId],
    seed: u64,
) -> Result<Plan, RunError> {
    let mut plan = ew_plan::replan(scenario, &sub_inventory(inventory, alive), seed)?;
    let flows = plan
        .stages
        .iter_mut()
        .flat_map(|stage| &mut stage.rounds)
        .flat_map(|round| &mut round.flows);
    for flow in flows {
        flow.src = alive[flow.src.index()];
        flow.dst = alive[flow.dst.index()];
    }
    Ok(plan)
}

/// The named hosts only, with all racks, so that rack ids stay the same. Host ids are positions in
/// `hosts`.
#[must_use]
pub fn sub_inventory(inventory: &Inventory, hosts: &[HostId]) -> Inventory {
    Inventory {
        hosts: hosts.iter().map(|id| inventory.host(*id).clone()).collect(),
        racks: inventory.racks.clone(),
    }
}
