//! `eastwest stop`: ends the agents of this host.

use crate::exit::{Failure, Outcome};
use crate::output;
use anyhow::anyhow;
use clap::Args;
use std::io;
use std::process::ExitCode;

/// Stop all agents on this host, whoever's runs they are part of: flows end at once, and the runs
/// go on without this host. Agents of other users need root
#[derive(Debug, Args)]
pub(crate) struct StopArgs {}

pub(crate) fn run(_args: &StopArgs) -> Outcome {
    let stopped = ew_agent::stop_all().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::failed(anyhow!(
            "an agent on this host belongs to another user; stop it as root"
        )),
        _ => Failure::failed(anyhow!("cannot reach an agent on this host: {error}")),
    })?;
    if stopped.is_empty() {
        output::say("no agent runs on this host");
    }
    for claim in stopped {
        output::say(&format!("stopped: run {} of {}", claim.run, claim.by));
    }
    Ok(ExitCode::SUCCESS)
}
