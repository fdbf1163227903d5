//! Why there is no run.

use ew_store::StoreError;
use std::time::Duration;

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario does not fit the hosts.
    #[error(transparent)]
    Plan(#[from] ew_plan::PlanError),
    /// Two hosts found the same address on the network that was asked for.
    #[error(transparent)]
    Addresses(#[from] ew_plan::inventory::InventoryError),
    /// The run directory could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system refused something the controller itself needs.
    #[error("the controller could not start: {0}")]
    System(#[from] std::io::Error),
    /// `--require-all`, and not all came up.
    #[error(
        "{failed} host(s) did not come up and --require-all was given; fix them (see above), or drop --require-all"
    )]
    NotAllHosts {
        /// How many did not.
        failed: usize,
    },
    /// A rack without a pair of hosts shows nothing.
    #[error(
        "only {left} host(s) of rack `{rack}` came up and a rack needs two; fix its hosts (see above), or leave the rack out of --racks and --hosts"
    )]
    RackTooSmall {
        /// Which.
        rack: String,
        /// Hosts left.
        left: usize,
    },
    /// Fewer than two hosts in all.
    #[error("only {left} host(s) came up and a run needs two; fix the others (see above)")]
    TooFewHosts {
        /// Hosts left.
        left: usize,
    },
    /// A storage job without anybody who could work.
    #[error("no host with workers came up; fix them (see above)")]
    NoWorkers,
    /// Every test needs a tool that is missing.
    #[error("no test is left: {0}")]
    NoTool(String),
    /// Another run has hosts of this one.
    #[error(
        "in use by another run: {hosts} (run {run} of {by}, {times}); wait for it with --wait 10m, end it with `eastwest stop` on the hosts, or add to its load with --force"
    )]
    InUse {
        /// Which, folded.
        hosts: String,
        /// The first one's run.
        run: String,
        /// Who runs it.
        by: String,
        /// Since when and until when, in words.
        times: String,
        /// Until its planned end.
        left: Duration,
    },
    /// Hosts do other work.
    #[error(
        "at other work: {hosts} ({example}); wait until it is over, leave these hosts out, or add to their load with --force"
    )]
    AtWork {
        /// Which, folded.
        hosts: String,
        /// The first one's work.
        example: String,
    },
    /// Others use the hosts' links.
    #[error(
        "links in use by others before any load: {hosts} ({example}); wait until it is over, leave these hosts out, or add to their load with --force"
    )]
    LinksInUse {
        /// Which, folded.
        hosts: String,
        /// The fullest one.
        example: String,
    },
    /// Addresses that are everybody's.
    #[error(
        "{hosts}: public addresses, such as {example}; measure a private network with --network, or load these with --allow-wan"
    )]
    PublicAddresses {
        /// Whose, folded.
        hosts: String,
        /// One of them.
        example: std::net::IpAddr,
    },
    /// At another site.
    #[error(
        "{hosts}: far away (round trip {example}); leave these hosts out (--hosts 'SET!{hosts}'), or load the path to them with --allow-wan"
    )]
    FarHosts {
        /// Which, folded.
        hosts: String,
        /// A round trip, and between whom.
        example: String,
    },
    /// A firewall, most likely, or a link that is down: `firewalld` rejects with the same answer.
    #[error(
        "{hosts}: no connection to the data ports ({example}); check that the interface of the data address is up there (ip -br link), and allow TCP and UDP {first}-{last} (firewall-cmd --add-port={first}-{last}/tcp \
         --add-port={first}-{last}/udp; ufw allow {first}:{last}/tcp; ufw allow {first}:{last}/udp; nft add rule inet filter input tcp dport {first}-{last} accept; \
         nft add rule inet filter input udp dport {first}-{last} accept), use open ports with --data-ports, \
         or leave these hosts out (--hosts 'SET!{hosts}')"
    )]
    PortsBlocked {
        /// Whose, folded.
        hosts: String,
        /// A pair that cannot connect, and why.
        example: String,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// More than a person at a terminal has seen.
    #[error(
        "up to {bytes} at {rate} per host ({source_of_rate}) is more than {limit}, which nobody has confirmed; start with --yes, or send less with --max-rate 10% or --set duration=1s"
    )]
    MuchLoad {
        /// Payload at most.
        bytes: String,
        /// Of a host's link.
        rate: String,
        /// Who reports the rate.
        source_of_rate: String,
        /// Payload that needs no confirmation.
        limit: String,
    },
    /// A share of a line rate that nobody knows.
    #[error(
        "the line rate of {hosts} is unknown, so no share of it can be a limit; state it with --set expect.nic=10G, or give --max-rate as a rate, such as 1G"
    )]
    NoLineRate {
        /// Which hosts, folded.
        hosts: String,
    },
    /// A load that is a share of a line rate that nobody knows.
    #[error(
        "test `{test}` loads links with a share of their rate, which is unknown on {hosts}; set it with --expect-nic 10G"
    )]
    NoRateToLoad {
        /// The first such test.
        test: String,
        /// Which hosts, folded.
        hosts: String,
    },
    /// The user stopped it before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}
