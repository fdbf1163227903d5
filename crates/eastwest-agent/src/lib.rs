//! `eastwest agent`: one host's part of a run. A program of its own, too (`eastwest-agent`), so
//! that a release copies to hosts what runs there and not the controller.

use anyhow::{Context, anyhow, bail};
use clap::Args;
use ew_agent::{AgentOptions, DialBack, Ending};
use ew_proto::sealed::LinkSecret;
use ew_sys::process::wait_for_end_signal;
use std::io::{BufRead, Read};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

/// Where Slurm reports that the step's srun is; both are addresses.
const SLURM_ADDRESSES: [&str; 2] = ["SLURM_LAUNCH_NODE_IPADDR", "SLURM_SRUN_COMM_HOST"];
/// The name that Slurm gives the node.
const SLURM_NODE: &str = "SLURMD_NODENAME";
/// One line a route (`net/ipv4/fib_trie.c`).
const ROUTES: &str = "/proc/net/route";
/// No secret is longer than its line.
const SECRET_LINE_BYTES: u64 = 128;

/// How the launcher starts an agent.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Remove the running executable and its private directory at once
    #[arg(long)]
    remove_self: bool,
    /// Dial the controller at this port; the run's secret is the first line of stdin, the host's
    /// name is $SLURMD_NODENAME
    #[arg(long, value_name = "PORT")]
    dial_back: Option<NonZeroU16>,
    /// Address of the controller, after those that Slurm gives; repeatable
    #[arg(long, value_name = "ADDRESS", requires = "dial_back")]
    dial_address: Vec<IpAddr>,
}

/// What keeps a pod up until an agent is started in it, and after.
#[derive(Debug, Args)]
pub struct HoldArgs {
    /// At most this long
    #[arg(long, value_name = "N")]
    seconds: u64,
}

/// Holds a pod, as its first process, until it is ordered to end.
///
/// # Errors
/// The system's.
pub fn hold(args: &HoldArgs) -> anyhow::Result<()> {
    let limit = Duration::from_secs(args.seconds);
    wait_for_end_signal(limit).context("cannot wait for signals")
}

/// Prints the main routing table by IPv4, as the kernel does.
///
/// # Errors
/// The system's.
pub fn print_routes() -> anyhow::Result<()> {
    let copied = std::fs::File::open(ROUTES)
        .and_then(|mut table| std::io::copy(&mut table, &mut std::io::stdout().lock()));
    copied.with_context(|| format!("cannot read {ROUTES}"))?;
    Ok(())
}

impl AgentArgs {
    fn dial_back(&self, port: NonZeroU16) -> anyhow::Result<DialBack> {
        let mut secret = String::new();
        let stdin = std::io::stdin().lock().take(SECRET_LINE_BYTES);
        std::io::BufReader::new(stdin)
            .read_line(&mut secret)
            .context("the run's secret cannot be read from stdin")?;
        let secret: LinkSecret = secret.parse()?;
        let name = std::env::var(SLURM_NODE)
            .map_err(|_| anyhow!("${SLURM_NODE} does not give this host's name"))?;
        let of_slurm = SLURM_ADDRESSES.iter().filter_map(|variable| {
            let address = std::env::var(variable).ok()?;
            address.parse::<IpAddr>().ok()
        });
        let mut controllers: Vec<SocketAddr> = Vec::new();
        for address in of_slurm.chain(self.dial_address.iter().copied()) {
            let controller = SocketAddr::new(address, port.get());
            if !controllers.contains(&controller) {
                controllers.push(controller);
            }
        }
        Ok(DialBack {
            controllers,
            name,
            secret,
        })
    }
}

/// Serves one run, and returns when the controller has taken its leave.
///
/// # Errors
/// Why the agent ended otherwise: its controller was lost, its host's owner stopped it, or the time
/// that the owner allows is up.
pub fn run(args: &AgentArgs) -> anyhow::Result<()> {
    let work_dir_free_bytes = ew_agent::leave_directory(args.remove_self);
    let dial_back = args.dial_back.map(|port| args.dial_back(port));
    match ew_agent::run(&AgentOptions {
        build: env!("CARGO_PKG_VERSION").to_owned(),
        work_dir_free_bytes,
        dial_back: dial_back.transpose()?,
    }) {
        Ending::Goodbye => Ok(()),
        Ending::Stopped { user } => bail!("the agent was stopped on its host by user {user}"),
        Ending::TimeIsUp => {
            bail!("the time that this host's owner allows is up (/etc/eastwest/limits)")
        }
        Ending::Lost(reason) => bail!("the agent ended itself: {reason}"),
    }
}
