//! Agents on this machine, one process per host of the inventory. Needs no privilege.

use crate::error::LaunchError;
use crate::launcher::{AgentCommand, Launcher, ROOT_SHELL};
use crate::slots::FanOut;
use ew_model::Host;
use std::path::PathBuf;
use std::process::Command;

/// Starts the binary itself as `BINARY agent`.
#[derive(Clone, Debug)]
pub struct Local {
    /// The eastwest binary.
    pub binary: PathBuf,
}

impl Launcher for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn fan_out(&self) -> FanOut {
        FanOut::fixed(64)
    }

    fn agent_command(&self, _host: &Host) -> Result<AgentCommand, LaunchError> {
        let mut command = Command::new(&self.binary);
        command.arg("agent");
        Ok(AgentCommand {
            command,
            payloads: None,
        })
    }

    fn root_shell(&self, _host: &Host) -> Result<Command, LaunchError> {
        let mut shell = Command::new("sh");
        shell.args(ROOT_SHELL);
        Ok(shell)
    }
}
