//! A launcher whose processes enter somewhere else first: a lab host's namespaces.

use crate::error::LaunchError;
use crate::launcher::{AgentCommand, Launcher};
use crate::slots::FanOut;
use ew_model::Host;
use std::io;
use std::process::Command;

/// Wraps a launcher and lets a closure change each command, so that it enters the host's namespaces
/// between fork and exec. `Entered` over [`crate::Local`] is the lab fleet.
pub struct Entered<L, F> {
    name: &'static str,
    inner: L,
    enter: F,
}

impl<L, F> Entered<L, F>
where
    L: Launcher,
    F: Fn(&Host, &mut Command) -> io::Result<()> + Send + Sync,
{
    /// `enter` is called once per launch, before anything is started; its error is shown with the
    /// host's name.
    pub fn new(name: &'static str, inner: L, enter: F) -> Self {
        Self { name, inner, enter }
    }

    fn enter(&self, host: &Host, command: &mut Command) -> Result<(), LaunchError> {
        (self.enter)(host, command).map_err(|source| LaunchError::Enter {
            host: host.name.clone(),
            source,
        })
    }
}

impl<L, F> Launcher for Entered<L, F>
where
    L: Launcher,
    F: Fn(&Host, &mut Command) -> io::Result<()> + Send + Sync,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn fan_out(&self) -> FanOut {
        self.inner.fan_out()
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        let mut agent = self.inner.agent_command(host)?;
        self.enter(host, &mut agent.command)?;
        Ok(agent)
    }

    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError> {
        let mut shell = self.inner.root_shell(host)?;
        self.enter(host, &mut shell)?;
        Ok(shell)
    }
}

impl<L, F> std::fmt::Debug for Entered<L, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entered({})", self.name)
    }
}
