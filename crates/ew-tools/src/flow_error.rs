//! Why a flow of a tool's round has no figures.

use crate::process::End;
use ew_model::tools::{Distribution, Refusal};
use ew_model::workload::Tool;
use std::io;
use std::net::SocketAddr;

/// What kept a tool from measuring a flow.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    /// The tool cannot carry the workload.
    #[error("{}: {}; expected {}", refusal.key, refusal.problem, refusal.expected)]
    Workload {
        /// Why.
        refusal: Refusal,
    },
    /// The host does not have the tool.
    #[error(
        "{program} is not installed on this host: {}, or leave out --tool",
        install_hint(*tool)
    )]
    NotInstalled {
        /// The tool's, which is missing.
        program: &'static str,
        /// Whose it is.
        tool: Tool,
    },
    /// No thread to wait for a process.
    #[error("cannot start a thread for a process; raise the limit of processes (ulimit -u)")]
    Thread,
    /// No process.
    #[error("{tool}: cannot be started: {source}")]
    Start {
        /// Its name.
        tool: &'static str,
        /// The system's.
        source: io::Error,
    },
    /// The round was given up.
    #[error("{tool}: aborted")]
    Aborted {
        /// Its name.
        tool: &'static str,
    },
    /// A client went on and on.
    #[error(
        "{tool}: no result from {peer} {seconds} s after the planned end{}",
        remedy(*is_limited)
    )]
    NoResult {
        /// Its name.
        tool: &'static str,
        /// Its server.
        peer: SocketAddr,
        /// As long as it was waited for.
        seconds: u64,
        /// Whether it ends by an amount and not by time.
        is_limited: bool,
    },
    /// A client, or a server that counts, ended without figures.
    #[error("{program}: {words}")]
    NoFigures {
        /// Of the tool.
        program: String,
        /// Its last ones, else what is missing.
        words: String,
    },
    /// A server has nothing to count by.
    #[error("{tool}: its server reports nothing")]
    ServerSilent {
        /// Its name.
        tool: &'static str,
    },
    /// A server ended with an error, or before it was needed no more.
    #[error("{tool} server on port {port}: {words}")]
    ServerEnded {
        /// Its name.
        tool: &'static str,
        /// Its own.
        port: u16,
        /// Its last ones, else how it ended.
        words: String,
    },
    /// A server of one client was still there, for one of two reasons.
    #[error("{tool} server on port {port}: no client came, or it stayed")]
    NoClientOrStayed {
        /// Its name.
        tool: &'static str,
        /// Its own.
        port: u16,
    },
    /// A server of one client waited in vain.
    #[error("{tool} server on port {port}: no client came")]
    NoClient {
        /// Its name.
        tool: &'static str,
        /// Its own.
        port: u16,
    },
    /// A server of one client still had it.
    #[error("{tool} server on port {port}: its client did not end the test")]
    ClientStayed {
        /// Its name.
        tool: &'static str,
        /// Its own.
        port: u16,
    },
    /// iperf3 wrote something else than JSON.
    #[error("iperf3: no JSON result ({source}; {end:?}) {words}")]
    NoJson {
        /// Where it is not.
        source: serde_json::Error,
        /// How it ended.
        end: End,
        /// Its last ones.
        words: String,
    },
    /// iperf3's result is not whole.
    #[error("iperf3: the result has no totals")]
    NoTotals,
    /// iperf3's result is nothing.
    #[error("iperf3: no data moved between this host and {peer}")]
    NothingMoved {
        /// Its server.
        peer: SocketAddr,
    },
}

fn remedy(is_limited: bool) -> &'static str {
    match is_limited {
        true => "; if only the limit was not reached by then, raise `duration` or lower it",
        false => "",
    }
}

/// What to type where it is missing.
fn install_hint(tool: Tool) -> String {
    let debian = tool.package(Distribution::Debian).map(|package| {
        let part = package
            .part
            .map(|part| format!(", from {part} or multiverse"));
        let part = part.unwrap_or_default();
        format!("apt install {} (Debian, Ubuntu{part})", package.name)
    });
    let fedora = tool.package(Distribution::Rhel).map(|package| {
        let epel = package.part.map_or("", |_| " with EPEL");
        format!("dnf install {} (Fedora, RHEL{epel})", package.name)
    });
    let hints: Vec<String> = [debian, fedora].into_iter().flatten().collect();
    hints.join(" or ")
}
