//! `--via` and its companions: which launcher, and how agents are started.

use crate::build::{OWN_BINARY, build};
use crate::exit::Failure;
use crate::flag_values::{parse_duration, parse_ports};
use crate::input_file::read_text;
use crate::kubernetes::KubernetesArgs;
use crate::slurm::SlurmArgs;
use anyhow::{Context, anyhow};
use clap::{Args, ValueEnum};
use ew_controller::{AbortLimits, LaunchOptions, RelayChoice};
use ew_fleet::bootstrap::Keeping;
use ew_fleet::{Entered, FanOut, Launcher, Local, Payloads, Ssh, SshOptions};
use ew_lab::{Lab, LabSpec};
use ew_model::inventory::Host;
use ew_plan::inventory::Roster;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// More often would measure the kernel's own ticks, and the reading.
const SHORTEST_SAMPLE_INTERVAL_NS: u64 = 100_000_000;
const REMOTE_DIR: &str = "--remote-dir";

/// When hosts hand the agent on to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RelayWhen {
    Auto,
    Always,
    Never,
}

impl RelayWhen {
    fn choice(self) -> RelayChoice {
        match self {
            Self::Auto => RelayChoice::Auto,
            Self::Always => RelayChoice::Always,
            Self::Never => RelayChoice::Never,
        }
    }
}

/// What starts agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FleetKind {
    /// The system's ssh client: copies this binary and starts it
    Ssh,
    /// A lab on this machine (see `eastwest lab`)
    Lab,
    /// Agents on this machine, on loopback addresses
    Local,
    /// Pods of a Kubernetes cluster, one per node, entered through the API server
    Kubernetes,
    /// Tasks of a Slurm job, started by srun; agents dial back to this host
    Slurm,
    /// Nothing: the network of --topology is simulated, and nothing is sent
    Sim,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct FleetArgs {
    /// How to start agents on the hosts
    #[arg(long = "via", alias = "fleet", value_enum, default_value = "ssh")]
    pub(crate) fleet: FleetKind,
    /// The lab's name, when more than one is up
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// Lab file with the network that --via sim simulates
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// ssh configuration instead of the user's
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_config: Option<PathBuf>,
    /// User on the hosts
    #[arg(short = 'l', long, value_name = "USER")]
    ssh_user: Option<String>,
    /// Port of the hosts' sshd
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    ssh_port: Option<u16>,
    /// Key for the hosts, before those of the ssh configuration; repeatable
    #[arg(short = 'i', long, value_name = "FILE")]
    identity: Vec<PathBuf>,
    /// Jump hosts, as in `ssh -J`
    #[arg(
        short = 'J',
        long,
        value_name = "[USER@]HOST[:PORT],...",
        allow_hyphen_values = false
    )]
    jump: Option<String>,
    /// Setting of the ssh client, for example StrictHostKeyChecking=accept-new; repeatable
    #[arg(short = 'o', long = "ssh-option", value_name = "KEY=VALUE")]
    ssh_options: Vec<String>,
    /// Directory on each host for the agent binary, which is removed on start [default: $TMPDIR or
    /// /tmp there]
    #[arg(long, value_name = "DIR", help_heading = "Advanced")]
    remote_dir: Option<String>,
    /// Keep the binary on the hosts for later runs, under its SHA-256 [in --remote-dir, default:
    /// ~/.cache/eastwest there]
    #[arg(long, help_heading = "Advanced")]
    keep_binary: bool,
    /// Longest time for a host's agent to become ready
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    launch_timeout: Duration,
    /// Hosts launched over ssh at the same time [default: 8, and up to 64 while launches are quick]
    #[arg(short = 'f', long, alias = "fan-out", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    fanout: Option<u16>,
    /// Whether hosts that are up hand the agent on to their neighbours, so that it travels once a
    /// rack; auto: with more than 64 hosts, or more than 8 behind one jump host
    #[arg(
        long,
        help_heading = "Advanced",
        value_name = "WHEN",
        default_value = "auto"
    )]
    relay: RelayWhen,
    /// Refuse to run when a host does not come up
    #[arg(long)]
    require_all: bool,
    /// Ports of the agents' data listeners; the first free one is taken
    #[arg(long, help_heading = "Advanced", value_name = "FIRST-LAST", default_value = "5401-5499", value_parser = parse_ports)]
    data_ports: (u16, u16),
    /// Ports for servers of external tools
    #[arg(long, help_heading = "Advanced", value_name = "FIRST-LAST", default_value = "5001-5399", value_parser = parse_ports)]
    tool_ports: (u16, u16),
    /// Time between readings of every host's counters, at least 100ms
    #[arg(long, help_heading = "Advanced", value_name = "TIME", default_value = "1s", value_parser = parse_sample_interval)]
    sample_interval: u64,
    /// Every host also serves stock iperf3 clients at this port while the run lasts, without
    /// authentication
    #[arg(long, help_heading = "Advanced", value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    offer_iperf3: Option<u16>,
    #[command(flatten)]
    pub(crate) kubernetes: KubernetesArgs,
    #[command(flatten)]
    pub(crate) slurm: SlurmArgs,
}

impl FleetArgs {
    /// By `--ssh-user`.
    pub(crate) fn log_in_as(&mut self, user: String) {
        self.ssh_user = Some(user);
    }

    /// The lab that `--via lab` means.
    pub(crate) fn attach_lab(&self) -> Result<Option<Lab>, Failure> {
        if self.fleet != FleetKind::Lab {
            return Ok(None);
        }
        let name = match &self.lab {
            Some(name) => name.clone(),
            None => only_lab()?,
        };
        Lab::attach(&name).map(Some).map_err(Failure::usage)
    }

    /// The launcher.
    pub(crate) fn launcher(
        &self,
        lab: Option<Arc<Lab>>,
        roster: &Roster,
    ) -> Result<Arc<dyn Launcher>, Failure> {
        match (self.fleet, lab) {
            (FleetKind::Local, _) => Ok(Arc::new(local())),
            (FleetKind::Slurm, _) => {
                // Of the payload only its checks are needed: srun copies the file itself.
                Payloads::of_binary(Path::new(OWN_BINARY)).map_err(Failure::failed)?;
                let hosts = &roster.inventory;
                let slurm = self.slurm.launcher(self.remote_dir.as_deref(), hosts)?;
                Ok(Arc::new(slurm))
            }
            (_, Some(lab)) => Ok(lab_launcher(lab)),
            (FleetKind::Ssh | FleetKind::Lab, None) => self.ssh(roster),
            (FleetKind::Sim, _) => Err(Failure::usage(anyhow!(
                "only flows of `eastwest run` can be simulated; leave out --via sim"
            ))),
            (FleetKind::Kubernetes, None) => Err(Failure::usage(anyhow!(
                "only `eastwest run` works with --via kubernetes: it checks rights, nodes and pods before anything is measured"
            ))),
        }
    }

    /// A flag that was given and that only launches over ssh know.
    pub(crate) fn flag_of_ssh(&self) -> Option<&'static str> {
        self.flags_of_ssh().next()
    }

    /// Refuses flags that would change nothing, because another launcher has them.
    pub(crate) fn check_flags(&self) -> Result<(), Failure> {
        let topology = self.topology.as_ref().map(|_| "--topology");
        let others = [
            (FleetKind::Kubernetes, "kubernetes", self.kubernetes.given()),
            (FleetKind::Slurm, "slurm", self.slurm.given()),
            (FleetKind::Sim, "sim", topology),
        ];
        let mut others = others.into_iter().filter(|(kind, ..)| *kind != self.fleet);
        match others.find_map(|(_, name, flag)| Some((name, flag?))) {
            Some((name, flag)) => Err(Failure::usage(anyhow!(
                "{flag} is of --via {name} and changes nothing without; give --via {name}, or leave {flag} out"
            ))),
            None if self.fleet == FleetKind::Slurm => self.check_flags_of_slurm(),
            None => Ok(()),
        }
    }

    /// srun starts the agents, and has a directory for the binary, too.
    fn check_flags_of_slurm(&self) -> Result<(), Failure> {
        match self.flags_of_ssh().find(|flag| *flag != REMOTE_DIR) {
            Some(flag) => Err(Failure::usage(anyhow!(
                "{flag} is of --via ssh, and srun starts the agents of a job; leave it out with --via slurm"
            ))),
            None => Ok(()),
        }
    }

    fn flags_of_ssh(&self) -> impl Iterator<Item = &'static str> {
        let flags = [
            ("--ssh-config", self.ssh_config.is_some()),
            ("--ssh-user", self.ssh_user.is_some()),
            ("--ssh-port", self.ssh_port.is_some()),
            ("--identity", !self.identity.is_empty()),
            ("--jump", self.jump.is_some()),
            ("--ssh-option", !self.ssh_options.is_empty()),
            (REMOTE_DIR, self.remote_dir.is_some()),
            ("--keep-binary", self.keep_binary),
            ("--fanout", self.fanout.is_some()),
            ("--relay", self.relay != RelayWhen::Auto),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// How long agents may take to come up.
    pub(crate) fn launch_timeout(&self) -> Duration {
        self.launch_timeout
    }

    /// The ports that data listeners take, first and last.
    pub(crate) fn data_ports(&self) -> (u16, u16) {
        self.data_ports
    }

    /// The first port that data listeners take.
    pub(crate) fn first_data_port(&self) -> u16 {
        self.data_ports.0
    }

    /// How agents are started.
    pub(crate) fn options(&self) -> LaunchOptions {
        LaunchOptions {
            build: build(),
            data_ports: self.data_ports,
            tool_ports: self.tool_ports,
            sample_interval_ns: self.sample_interval,
            offer_iperf3_port: self.offer_iperf3,
            watched: BTreeSet::new(),
            launch_limit: self.launch_timeout,
            network: None,
            require_all: self.require_all,
            claimed_by: None,
            force: false,
            abort_command: None,
            max_bytes: None,
            abort_limits: AbortLimits::DEFAULT,
            allow_wan: true,
            max_rate: None,
            syslog: false,
            relay: self.relay.choice(),
        }
    }

    fn ssh(&self, roster: &Roster) -> Result<Arc<dyn Launcher>, Failure> {
        let payloads = Payloads::of_binary(Path::new(OWN_BINARY)).map_err(Failure::failed)?;
        let typical = SshOptions::default();
        let fan_out = self.fanout.map(|hosts| FanOut::fixed(hosts.into()));
        let options = SshOptions {
            ssh_config: self.ssh_config.clone(),
            user: self.ssh_user.clone(),
            port: self.ssh_port,
            remote_dir: self.remote_dir.clone(),
            fan_out: fan_out.unwrap_or(typical.fan_out),
            identities: self.identity.clone(),
            settings: self.ssh_options.clone(),
            jump: self.jump.clone(),
            keeping: match self.keep_binary {
                true => Keeping::Binary,
                false => Keeping::Nothing,
            },
            logins: roster.logins.clone(),
            ..typical
        };
        let ssh = Ssh::new(payloads, options).map_err(Failure::usage)?;
        Ok(Arc::new(ssh.with_ways_to(&roster.inventory.hosts)))
    }
}

/// Agents of a lab: started here, in each host's namespaces.
pub(crate) fn lab_launcher(lab: Arc<Lab>) -> Arc<dyn Launcher> {
    let enter = move |host: &Host, command: &mut Command| {
        lab.enter_command(&host.name, command)
            .map_err(std::io::Error::other)
    };
    Arc::new(Entered::new("lab", local(), enter))
}

fn local() -> Local {
    Local {
        binary: PathBuf::from(OWN_BINARY),
    }
}

/// A lab file's network.
pub(crate) fn read_lab_file(file: &Path) -> Result<LabSpec, Failure> {
    let name = file.display().to_string();
    let text = read_text(file)
        .with_context(|| format!("cannot read the lab file `{name}`"))
        .map_err(Failure::usage)?;
    LabSpec::parse(&text, &name).map_err(Failure::usage)
}

/// The name of the one lab that is up.
pub(crate) fn only_lab() -> Result<String, Failure> {
    let mut names = ew_lab::names().map_err(Failure::failed)?;
    match names.len() {
        1 => Ok(names.remove(0)),
        0 => Err(Failure::usage(anyhow!(
            "no lab is up; start one with `eastwest lab up -f FILE`"
        ))),
        _ => Err(Failure::usage(anyhow!(
            "several labs are up ({}); name one with --lab",
            names.join(", ")
        ))),
    }
}

fn parse_sample_interval(text: &str) -> anyhow::Result<u64> {
    let interval_ns = ew_model::units::parse_duration_ns(text)?;
    anyhow::ensure!(
        interval_ns >= SHORTEST_SAMPLE_INTERVAL_NS,
        "{text} is too short to measure anything; give at least 100ms"
    );
    Ok(interval_ns)
}
