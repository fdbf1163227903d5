//! Watches hosts without any load.

use crate::fleet_event::FleetEvent;
use crate::job::LaunchOptions;
use crate::members::Members;
use ew_fleet::Launcher;
use ew_model::inventory::{HostId, Inventory};
use ew_model::telemetry::HostReading;
use ew_proto::controller_session::ControllerEvent;
use std::sync::Arc;
use std::time::Duration;

/// What comes of a watched host.
#[derive(Debug)]
pub enum Watched {
    /// Everything about it, once a second.
    Reading(Box<HostReading>),
    /// It did not come up, or was lost; with the reason.
    Down(String),
}

/// Launches an agent on every host and hands on what each reads, once a second, until `take` wants
/// no more, the time is over, every host is down, or the user asks to stop.
///
/// # Errors
/// When the controller itself cannot start; of the kind `Interrupted` when the user asked to stop.
pub async fn watch(
    inventory: &Inventory,
    launcher: Arc<dyn Launcher>,
    options: LaunchOptions,
    limit: Option<Duration>,
    mut take: impl FnMut(HostId, Watched) -> bool,
) -> std::io::Result<()> {
    let options = LaunchOptions {
        watched: inventory.host_ids().collect(),
        ..options
    };
    let mut members = Members::of_process(inventory, launcher, options)?;
    for id in inventory.host_ids() {
        members.launch(id);
    }
    let interrupted = hand_on(&mut members, limit, &mut take).await;
    members.tear_down().await;
    match interrupted {
        true => Err(std::io::ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// Whether the user asked to stop. The time counts from when all are up or down.
async fn hand_on(
    members: &mut Members,
    limit: Option<Duration>,
    take: &mut impl FnMut(HostId, Watched) -> bool,
) -> bool {
    let mut deadline_ns = None;
    while !(members.alive().is_empty() && members.launching().is_empty()) {
        if members.launching().is_empty() && deadline_ns.is_none() {
            let limit_ns = limit.map(|limit| limit.as_nanos() as u64);
            deadline_ns = limit_ns.map(|limit_ns| members.now_ns() + limit_ns);
        }
        let (host, watched) = match members.next(deadline_ns.unwrap_or(u64::MAX)).await {
            FleetEvent::Agent(host, ControllerEvent::Reading(reading)) => {
                (host, Watched::Reading(reading))
            }
            FleetEvent::Agent(host, ControllerEvent::Lost { reason: message })
            | FleetEvent::LaunchFailed { host, message } => (host, Watched::Down(message)),
            FleetEvent::Interrupt => return true,
            FleetEvent::Deadline => return false,
            FleetEvent::Agent(..) | FleetEvent::Ended { .. } => continue,
        };
        if !take(host, watched) {
            return false;
        }
    }
    false
}
