//! What a run is given.

use crate::abort::AbortLimits;
use crate::max_rate::MaxRate;
use crate::orders::Detours;
use ew_fleet::Launcher;
use ew_model::inventory::{HostId, Inventory};
use ew_model::network::NetworkChoice;
use ew_model::scenario::Scenario;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Hosts of a run above which the agents' program goes from host to host: below, the controller's
/// own uplink takes seconds.
const RELAY_ABOVE_HOSTS: usize = 64;
/// The same of hosts behind one jump host, which mostly are at the far end of a slow uplink.
const RELAY_ABOVE_HOSTS_BEHIND_ONE: usize = 8;

/// Everything a run needs. The inventory's addresses are resolved.
pub struct Job {
    /// What to find out.
    pub scenario: Scenario,
    /// Between whom.
    pub inventory: Inventory,
    /// Of all random choices.
    pub seed: u64,
    /// How agents are started.
    pub launcher: Arc<dyn Launcher>,
    /// With what.
    pub options: LaunchOptions,
    /// Where run directories go.
    pub runs_dir: PathBuf,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// Whether somebody watches single flows: agents then report every second how they go, in
    /// rounds of few flows and long windows.
    pub follow_flows: bool,
    /// Whether signals end the process as by default again once the fleet is down: analysis and
    /// reports may take long. False where the caller has to clean up whatever happens.
    pub signals_end_analysis: bool,
    /// Services that lead to agents, where paths go through them. Empty elsewhere.
    pub detours: Detours,
    /// Of the hosts, where they are nodes of Kubernetes; empty elsewhere.
    pub node_labels: BTreeMap<String, BTreeMap<String, String>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("scenario", &self.scenario.name)
            .field("fleet", &self.launcher.name())
            .finish_non_exhaustive()
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
    /// ([`ew_model::event::RunEvent::HostRead`]).
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

impl Default for LaunchOptions {
    /// What holds where nobody asked for anything.
    fn default() -> Self {
        Self {
            build: String::new(),
            data_ports: (5401, 5401),
            tool_ports: (5301, 5399),
            sample_interval_ns: 1_000_000_000,
            offer_iperf3_port: None,
            watched: BTreeSet::new(),
            launch_limit: Duration::from_secs(20),
            network: None,
            require_all: false,
            claimed_by: None,
            force: false,
            abort_command: None,
            abort_limits: AbortLimits::DEFAULT,
            max_bytes: None,
            allow_wan: false,
            max_rate: None,
            syslog: false,
            relay: RelayChoice::default(),
        }
    }
}

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
