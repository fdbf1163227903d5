//! `eastwest stop`: ends the agents of this host.

use crate::exit::{Failure, Outcome};
use crate::output;
use anyhow::anyhow;
use clap::Args;
use std::process::ExitCode;

/// Stop all agents on this host, whoever's runs they are part of: flows end at once, and the runs
/// go on without this host. Agents of other users need root. A copy of the binary that is still
/// under way is no agent yet: stop again
#[derive(Debug, Args)]
pub(crate) struct StopArgs {}

pub(crate) fn run(_args: &StopArgs) -> Outcome {
    let stopped = ew_agent::stop_all()
        .map_err(|error| Failure::failed(anyhow!("cannot reach an agent on this host: {error}")))?;
    for claim in &stopped.agents {
        output::say(&match claim {
            Some(claim) => format!("stopped: run {} of {}", claim.run, claim.by),
            None => "stopped: an agent without a run".to_owned(),
        });
    }
    match (stopped.denied, stopped.agents.is_empty()) {
        (0, true) => output::say("no agent runs on this host"),
        (0, false) => {}
        (denied, _) => {
            return Err(Failure::failed(anyhow!(
                "{denied} agent(s) on this host belong to other users; stop them as root"
            )));
        }
    }
    Ok(ExitCode::SUCCESS)
}
