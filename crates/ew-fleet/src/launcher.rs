//! What a launcher is.

use crate::error::LaunchError;
use crate::in_process::InProcess;
use crate::payload::Payloads;
use crate::relay::Neighbour;
use crate::slots::FanOut;
use crate::slurm::Slurm;
use ew_model::Host;
use std::process::Command;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Knows the process whose standard input and output are the link to a host's agent. It starts
/// nothing itself.
pub trait Launcher: Send + Sync {
    /// The word of `--fleet`: `local`, `lab`, `ssh`.
    fn name(&self) -> &'static str;

    /// How many hosts may be launched at once.
    fn fan_out(&self) -> FanOut;

    /// Slots for connections that have not logged in yet, of every jump host on the way to this
    /// host. In one order for all hosts, or two could wait for each other.
    fn login_slots(&self, _host: &Host) -> Vec<Arc<Semaphore>> {
        Vec::new()
    }

    /// Whether agents dial back from a step of a job, and no process of our own carries a link.
    fn step(&self) -> Option<&Slurm> {
        None
    }

    /// Where agents are that no process carries a link to: those of a simulation.
    fn in_process(&self) -> Option<&dyn InProcess> {
        None
    }

    /// The process for one host. Its standard streams, process group and lifetime are set by
    /// [`crate::launch_from`].
    ///
    /// # Errors
    /// [`LaunchError`] when the host cannot be launched by this launcher at all.
    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError>;

    /// Whether hosts of this launcher can get the program from a neighbour.
    fn relays(&self) -> bool {
        false
    }

    /// Hosts that share a jump host, and with it an uplink: of the one with the most.
    fn max_hosts_behind_one(&self) -> usize {
        0
    }

    /// The process for one host, which gets the program from a neighbour if that goes well, and
    /// else as [`Launcher::agent_command`] has it.
    ///
    /// # Errors
    /// [`LaunchError`] when the host cannot be launched by this launcher at all.
    fn agent_command_from(
        &self,
        host: &Host,
        _neighbour: &Neighbour,
    ) -> Result<AgentCommand, LaunchError> {
        self.agent_command(host)
    }

    /// A process that runs the POSIX shell commands which come on its standard input on one host,
    /// as root.
    ///
    /// # Errors
    /// [`LaunchError`] when the host cannot be reached by this launcher at all.
    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError>;
}

/// The shell's arguments for [`Launcher::root_shell`]: root's own, or sudo's where sudo asks no
/// question.
pub(crate) const ROOT_SHELL: [&str; 2] = [
    "-c",
    "if [ \"$(id -u)\" = 0 ]; then exec sh -s; else exec sudo -n sh -s; fi",
];

/// A process to start, and what to hand over through its standard input first.
#[derive(Debug)]
pub struct AgentCommand {
    /// The agent itself, or a client that carries its standard streams.
    pub command: Command,
    /// The binaries, when the far side is the [`crate::bootstrap`] and waits for its machine's.
    pub payloads: Option<Payloads>,
}
