//! Why a host takes no part in a run, or in a part of it. The texts are for whoever started the
//! run.

use ew_engine::EngineError;
use ew_telemetry::NoAddress;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Where the host's owner says what is allowed.
pub(crate) const FILE: &str = "/etc/eastwest/limits";

/// Why not.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// What cannot be understood allows nothing.
    #[error("{FILE}: {0}")]
    LimitsFile(#[source] LimitsFileError),
    /// The host's owner wants no run.
    #[error("its owner allows no runs: {0}")]
    Denied(String),
    /// The host's owner wants none at this time.
    #[error("its owner allows runs at {hours} only ({FILE})")]
    OutsideHours {
        /// A part of every day.
        hours: String,
    },
    /// A host with a limit does nothing that obeys none.
    #[error("this host's owner limits rates, which {what} would not obey ({FILE})")]
    KnowsNoLimit {
        /// What was asked for.
        what: String,
    },
    /// A share of a rate that nobody knows.
    #[error(
        "{FILE}: max-rate is a share of the line rate, which {address}'s interface does not report; write a rate, such as 1G"
    )]
    UnknownLineRate {
        /// The host's.
        address: IpAddr,
    },
    /// It is not on the network that was chosen.
    #[error(transparent)]
    Address(#[from] NoAddress),
    /// The data listener does not start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The port for iperf3's clients is taken, or not the host's.
    #[error("cannot offer iperf3 at {at}: {source}; choose a free port with --offer-iperf3")]
    OfferIperf3 {
        /// Where.
        at: SocketAddr,
        /// The server's own.
        source: ew_iperf3::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread for the iperf3 server: {0}")]
    Thread(#[source] io::Error),
    /// The controller cannot be dialled.
    #[error(
        "the controller cannot be reached from here ({attempts}); let nodes connect to it, with --dial-ports through a firewall"
    )]
    Unreachable {
        /// Each address with what came of it.
        attempts: String,
    },
}

/// What is wrong with the owner's file.
#[derive(Debug, thiserror::Error)]
pub enum LimitsFileError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Nothing is limited by this.
    #[error("unknown key `{0}`; there are max-rate, max-duration, hours and deny")]
    Key(String),
    /// No rate.
    #[error("max-rate `{0}` is neither a rate, such as 1G, nor a share, such as 10%")]
    MaxRate(String),
    /// No time.
    #[error("max-duration `{0}` is no time, such as 10m")]
    MaxDuration(String),
    /// No hours.
    #[error("hours `{0}` are no hours of a day in UTC, such as 22:00-06:00")]
    Hours(String),
}
