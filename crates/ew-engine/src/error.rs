//! What can keep the engine or a round from starting.

use crate::refusal::Refusal;
use std::io;
use std::net::IpAddr;

/// Why the engine or a round did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The data address is not one of this host's.
    #[error(
        "cannot listen on {address}: {source}; the inventory's address for this host must be one of the host's own"
    )]
    Address {
        /// As given.
        address: IpAddr,
        /// The system's.
        source: io::Error,
    },
    /// Every port of the range is taken.
    #[error("no free data port on {address} in {first}-{last}: {source}; choose a wider range")]
    NoFreePort {
        /// As given.
        address: IpAddr,
        /// First port tried.
        first: u16,
        /// Last port tried.
        last: u16,
        /// The system's, for the last port.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error(
        "cannot start a thread for {purpose}: {source}; raise the limit of processes (ulimit -u)"
    )]
    Thread {
        /// What it is for.
        purpose: &'static str,
        /// The system's.
        source: io::Error,
    },
    /// The data listener's waker could not be made.
    #[error(
        "cannot open sockets for the data listener: {0}; raise the limit of open files (ulimit -n)"
    )]
    Sockets(#[source] io::Error),
    /// The round asks for something the engine does not do.
    #[error("round refused: {0}")]
    Round(#[from] Refusal),
}
