//! Brings the fleet up, decides whether enough of it came up, and plans again around those that did
//! not.

use crate::abort::AbortLimits;
use crate::journal::Journal;
use crate::max_rate::MaxRate;
use crate::member::both_errors;
use crate::members::{FleetEvent, Member, Members};
use crate::run::RunError;
use ew_model::event::RunEvent;
use ew_model::inventory::{HostId, Inventory};
use ew_model::network::NetworkChoice;
use ew_model::plan::Plan;
use ew_model::scenario::Scenario;
use ew_proto::controller_session::ControllerEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// With fewer hosts in a rack than this, a slow host cannot be distinguished from a slow network.
const MIN_HOSTS_PER_RACK: usize = 2;

/// Hosts of a run above which the agents' program goes from host to host: below, the controller's
/// own uplink takes seconds.
const RELAY_ABOVE_HOSTS: usize = 64;
/// The same of hosts behind one jump host, which mostly are at the far end of a slow uplink.
const RELAY_ABOVE_HOSTS_BEHIND_ONE: usize = 8;

/// Whether hosts that are up hand the agents' program on to their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayChoice {
    /// Where there are many hosts, or several behind one jump host.
    #[default]
    Auto,
    /// In any case.
    Always,
    /// Every host gets it from the controller.
    Never,
}

impl RelayChoice {
    pub(crate) fn relays(self, hosts: usize, behind_one: usize) -> bool {
        match self {
            Self::Auto => hosts > RELAY_ABOVE_HOSTS || behind_one > RELAY_ABOVE_HOSTS_BEHIND_ONE,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// How agents are started.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// Version and build both sides must share.
    pub build: String,
    /// First and last port of the agents' data listeners.
    pub data_ports: (u16, u16),
    /// First and last port for external tools' servers.
    pub tool_ports: (u16, u16),
    /// Time between raw host samples.
    pub sample_interval_ns: u64,
    /// Where every agent serves stock iperf3 clients during the run. `None`: nowhere.
    pub offer_iperf3_port: Option<u16>,
    /// Hosts that somebody watches: they report everything about themselves once a second
    /// ([`RunEvent::HostRead`]).
    pub watched: BTreeSet<HostId>,
    /// From starting the launcher to the agent's readiness.
    pub launch_limit: Duration,
    /// The network that data use, found on each host. `None`: the inventory's addresses.
    pub network: Option<NetworkChoice>,
    /// Refuse to run when a host does not come up.
    pub require_all: bool,
    /// `user@controller`: hosts are taken for the run alone. `None`: they are shared.
    pub claimed_by: Option<String>,
    /// Load hosts that another run is loading, too.
    pub force: bool,
    /// Ends the run when it fails; runs every second by the shell, on the controller.
    pub abort_command: Option<String>,
    /// Ends the run where they are exceeded.
    pub abort_limits: AbortLimits,
    /// More payload than this is refused, where it depends on the line rates that hosts report.
    /// `None`: it was confirmed.
    pub max_bytes: Option<u64>,
    /// Load public addresses, too.
    pub allow_wan: bool,
    /// The most to load every host's link with. `None`: as much as it carries.
    pub max_rate: Option<MaxRate>,
    /// Agents write a line to their hosts' log when load begins and ends.
    pub syslog: bool,
    /// How the agents' program gets to the hosts.
    pub relay: RelayChoice,
}

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
