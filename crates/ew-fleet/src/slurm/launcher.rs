//! Slurm's steps as a launcher.

use super::Slurm;
use crate::error::LaunchError;
use crate::launcher::{AgentCommand, Launcher, ROOT_SHELL};
use crate::slots::FanOut;
use ew_model::Host;
use std::process::Command;

/// All of a step's nodes are launched by one process.
const FAN_OUT: usize = 1 << 16;

impl Launcher for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn fan_out(&self) -> FanOut {
        FanOut::fixed(FAN_OUT)
    }

    fn step(&self) -> Option<&Slurm> {
        Some(self)
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        Err(LaunchError::Slurm {
            host: host.name.clone(),
            words: "agents of a job have no process of their own here".into(),
        })
    }

    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError> {
        let mut command = self.srun(&host.name);
        command.args(["--nodes=1", "--ntasks=1", "sh"]);
        command.args(ROOT_SHELL);
        Ok(command)
    }
}
