//! What hosts are and have, without a run; and what is done about it.

use crate::fleet_event::FleetEvent;
use crate::job::LaunchOptions;
use crate::members::{Members, State};
use ew_fleet::{LaunchSlots, Launcher, RootError, run_as_root};
use ew_model::facts::HostFacts;
use ew_model::inventory::{HostId, Inventory};
use ew_model::workload::Tool;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// Why a host's facts are not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// Its agent could not be launched, or was lost.
    #[error("{message}")]
    Down {
        /// Why, as it is recorded.
        message: String,
    },
    /// The survey ended before it answered.
    #[error("not finished")]
    Unfinished,
}

/// Asks every host for its facts, and which of the tools it has: an agent is launched there and
/// taken down again. Hosts that did not answer are there with the reason.
///
/// # Errors
/// When the controller itself cannot start; of the kind `Interrupted` when the user asked to stop.
pub async fn survey(
    inventory: &Inventory,
    launcher: Arc<dyn Launcher>,
    options: LaunchOptions,
    tools: Vec<Tool>,
) -> std::io::Result<BTreeMap<HostId, Result<HostFacts, NoAnswer>>> {
    let mut members = Members::of_process(inventory, launcher, options)?;
    members.look_for(tools);
    for id in inventory.host_ids() {
        members.launch(id);
    }
    let interrupted = wait_until_launched(&mut members).await;
    let answer = |id: HostId| match members.get(id).map(|member| &member.state) {
        Some(State::Up { facts, .. }) => Ok(facts.as_ref().clone()),
        Some(State::Down { message }) => Err(NoAnswer::Down {
            message: message.clone(),
        }),
        Some(State::Launching) | None => Err(NoAnswer::Unfinished),
    };
    let answers = inventory.host_ids().map(|id| (id, answer(id))).collect();
    members.tear_down().await;
    if interrupted {
        return Err(std::io::ErrorKind::Interrupted.into());
    }
    Ok(answers)
}

/// Waits until every host is up or has failed. Whether the user asked to stop.
pub(crate) async fn wait_until_launched(members: &mut Members) -> bool {
    while !members.launching().is_empty() {
        if matches!(members.next(u64::MAX).await, FleetEvent::Interrupt) {
            return true;
        }
    }
    false
}

/// Runs each host's shell commands as root there, on many hosts at once. Failures are in words for
/// the user.
///
/// # Errors
/// Of the kind `Interrupted` when the user asked to stop; a package manager that was begun on a
/// host goes on there.
pub async fn run_as_root_on(
    inventory: &Inventory,
    launcher: Arc<dyn Launcher>,
    commands: BTreeMap<HostId, Vec<String>>,
    limit: Duration,
) -> std::io::Result<BTreeMap<HostId, Result<(), RootError>>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let slots = Arc::new(LaunchSlots::new(launcher.fan_out()));
    let mut tasks = JoinSet::new();
    for (id, commands) in commands {
        let (host, launcher) = (inventory.host(id).clone(), Arc::clone(&launcher));
        let slots = Arc::clone(&slots);
        tasks.spawn(async move {
            let _slot = slots.take().await;
            let done = run_as_root(launcher.as_ref(), &host, &commands, limit).await;
            (id, done)
        });
    }
    let mut results = BTreeMap::new();
    loop {
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(done) => results.extend(done),
                None => return Ok(results),
            },
            _ = interrupt.recv() => return Err(std::io::ErrorKind::Interrupted.into()),
            _ = terminate.recv() => return Err(std::io::ErrorKind::Interrupted.into()),
        }
    }
}
