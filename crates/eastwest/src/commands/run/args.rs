//! The flags of `eastwest run`.

use crate::commands::dfsio::StorageArgs;
use crate::commands::testdfsio::TestDfsioArgs;
use crate::exit::Failure;
use crate::fleet::{FleetArgs, FleetKind};
use crate::hosts::HostArgs;
use crate::http::{self, Endpoint};
use crate::output::{self, RunsDirArg, ShowArgs};
use crate::plan_args::PlanArgs;
use crate::predecessor::PredecessorArgs;
use crate::push::{self, Pushgateway};
use crate::safety::SafetyArgs;
use crate::sinks;
use clap::{Args, ValueEnum};
use ew_controller::LaunchOptions;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A built-in scenario (see `eastwest scenario list`), a YAML file, `dfsio` for files on
    /// storage, or `testdfsio` for Hadoop's own job
    #[arg(index = 1, default_value = "qualify")]
    pub(crate) scenario: String,
    /// Hosts, in addition to those of --hosts
    #[arg(index = 2, value_name = "HOST")]
    more_hosts: Vec<String>,
    #[command(flatten)]
    pub(crate) hosts: HostArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) safety: SafetyArgs,
    /// Print stages, rounds, flows, expected duration and bytes, and stop
    #[arg(long, help_heading = "Safety")]
    pub(crate) dry_run: bool,
    /// Start without the question that a terminal gets above 32 hosts or 1 TiB
    #[arg(short, long, help_heading = "Safety")]
    pub(in crate::commands) yes: bool,
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
    #[command(flatten)]
    pub(crate) testdfsio: TestDfsioArgs,
    #[command(flatten)]
    pub(crate) show: ShowArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) runs: RunsDirArg,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) live: LiveArgs,
    /// Serve Prometheus metrics of the run at this address, to whoever may connect; for example
    /// 127.0.0.1:9464
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = http::parse_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Show the run as it goes in a browser, at this address with a random token in its path, until
    /// Ctrl-C [default address: 127.0.0.1 and any free port]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = http::parse_address)]
    pub(super) web: Option<SocketAddr>,
    /// Push the run's metrics and results to a Prometheus Pushgateway afterwards, for example
    /// http://pushgateway:9091
    #[arg(long, value_name = "URL", value_parser = push::parse_gateway)]
    pub(super) push: Option<Pushgateway>,
    /// Send progress every 5 s, and then the verdict with its findings, as JSON by POST
    #[arg(long, value_name = "URL", value_parser = sinks::parse_url)]
    pub(super) webhook: Option<sinks::Url>,
    /// Send the run's metrics every 5 s, and then its results, by Prometheus remote write, for
    /// example http://prometheus:9090/api/v1/write
    #[arg(long, value_name = "URL", value_parser = sinks::parse_url)]
    pub(super) remote_write: Option<sinks::Url>,
    /// PEM file of the certificates that --push, --webhook and --remote-write trust by https
    /// [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub(super) push_ca: Option<PathBuf>,
    #[command(flatten)]
    pub(super) predecessor: PredecessorArgs,
    /// Show this host as `eastwest top` does while the run goes on: full screen on a terminal, else
    /// text every 5 s
    #[arg(long, value_name = "HOST")]
    pub(crate) watch: Option<String>,
}

impl RunArgs {
    /// All named hosts together.
    pub(crate) fn settled(mut self) -> Self {
        let more = std::mem::take(&mut self.more_hosts);
        self.hosts.add(more);
        self
    }

    /// Of `eastwest pair`, whose `-l` was a user's name before it was a message size.
    pub(crate) fn settled_pair(mut self) -> Self {
        if let Some(user) = self.plan.user_in_length() {
            output::say(
                "note: -l is the message size here, as in iperf3; name the user with --ssh-user",
            );
            self.fleet.log_in_as(user);
        }
        self.settled()
    }

    /// All changes of the scenario, in its own keys.
    pub(crate) fn all_overrides(&self) -> Vec<String> {
        let polite = self.safety.polite.then(|| "dscp=le".to_owned());
        polite
            .into_iter()
            .chain(self.plan.all_overrides())
            .collect()
    }

    /// A flag that was given and that only runs with agents know.
    pub(in crate::commands) fn flag_of_agents(&self) -> Option<&'static str> {
        let flags = [
            ("--metrics", self.metrics.is_some()),
            ("--watch", self.watch.is_some()),
            ("--web", self.web.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// Where metrics are served, taken before anything starts.
    pub(crate) fn metrics_endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        let bind = |address| Endpoint::bind(address, "metrics", "--metrics");
        self.metrics.map(bind).transpose()
    }

    /// Options of this run's agents.
    pub(crate) fn launch_options(&self) -> LaunchOptions {
        let is_local = self.fleet.fleet == FleetKind::Local;
        self.safety.apply(self.fleet.options(), is_local)
    }

    /// A flag that was given and that only runs with flows know.
    pub(crate) fn flag_of_flows(&self) -> Option<&'static str> {
        let flags = [
            ("--push", self.push.is_some()),
            ("--webhook", self.webhook.is_some()),
            ("--remote-write", self.remote_write.is_some()),
            ("--web", self.web.is_some()),
            ("--compare-with", self.predecessor.is_given()),
            ("--max-rate", self.safety.max_rate.is_some()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }
}

/// What is reported on stderr while a run goes on.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LiveArgs {
    /// How to show progress on stderr
    #[arg(long, value_enum, default_value = "auto", value_name = "HOW")]
    live: LiveChoice,
    /// Show no progress on stderr
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// `--live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LiveChoice {
    /// Bars on a terminal, lines elsewhere
    Auto,
    /// Lines: for up to 4 flows at once in windows of 2 s or more, one per flow and second
    Lines,
}

impl LiveArgs {
    /// As on a command line without the options.
    pub(crate) const DEFAULT: Self = Self {
        live: LiveChoice::Auto,
        quiet: false,
    };

    pub(in crate::commands) fn is_quiet(self) -> bool {
        self.quiet
    }

    pub(super) fn draws_bars(self) -> bool {
        self.live == LiveChoice::Auto
            && !self.quiet
            && std::io::stderr().is_terminal()
            && output::can_move_cursor()
    }

    /// Lines have space for single flows.
    pub(crate) fn follows_flows(self) -> bool {
        !self.draws_bars() && !self.quiet
    }
}
