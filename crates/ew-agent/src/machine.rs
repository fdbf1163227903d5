//! What an agent has its host do. The agent itself decides and does nothing else, so that the same
//! agent runs on a real host and in a simulated one.

use crate::problem::Problem;
use ew_model::facts::HostFacts;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_proto::Timeline;
use ew_proto::message::{PortCheck, StageOrder, Welcome};
use std::net::{IpAddr, SocketAddr};

/// The host under an agent. Nothing here waits: what takes time comes back as an
/// [`crate::Input`].
pub trait Machine {
    /// Whether the host's owner allows the run at all, at this time.
    ///
    /// # Errors
    /// Why not.
    fn admit(&mut self, welcome: &Welcome) -> Result<(), Problem>;

    /// Opens the data listener and reads what there is to know of the host, which comes as
    /// [`crate::Input::Facts`].
    ///
    /// # Errors
    /// Why the host can take no part.
    fn prepare(&mut self, welcome: Welcome) -> Result<(), Problem>;

    /// What the host's owner allows, bits per second on the wire in each direction. `None`: as
    /// much as it carries.
    ///
    /// # Errors
    /// When it is a share of a rate that nobody knows.
    fn max_bits_per_sec(&self, facts: &HostFacts, address: IpAddr) -> Result<Option<f64>, Problem>;

    /// Where the data listener is; 0 before [`Machine::prepare`].
    fn data_port(&self) -> u16;

    /// Payload sent and received so far.
    fn totals(&self) -> HostTotals;

    /// Reads the host's counters from now on, as [`crate::Input::Sample`]; with a second interval
    /// everything of it, too, as [`crate::Input::Reading`].
    fn begin_sampling(&mut self, interval_ns: u64, watch_interval_ns: Option<u64>);

    /// Connections with this peer, or with a tool's server at this port of the host, are the
    /// run's own.
    fn expect_peer(&mut self, peer: SocketAddr, server_port: u16);

    /// Runs a stage's rounds in their time; each ends as [`crate::Input::RoundDone`].
    fn begin_stage(&mut self, order: StageOrder, timeline: Timeline);

    /// Rounds that have not begun follow this timeline.
    fn retime(&mut self, timeline: Timeline);

    /// Ends all flows and tools; no further round begins.
    fn end_stage(&mut self);

    /// Does a step of a storage job, which ends as [`crate::Input::StorageDone`].
    ///
    /// # Errors
    /// The report of a step that cannot begin.
    fn begin_step(&mut self, order: StorageOrder) -> Result<(), Box<StorageReport>>;

    /// Ends the storage step at hand early.
    fn end_step(&mut self);

    /// Probes peers' data ports, as [`crate::Input::PortsChecked`].
    fn check_ports(&mut self, check: PortCheck);

    /// Writes a line to the host's own log.
    fn log(&mut self, line: &str);
}

/// What a host's data listener and flows have done since the agent's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// Payload bytes sent.
    pub tx_bytes: u64,
    /// Payload bytes received.
    pub rx_bytes: u64,
    /// Connections that the data port refused.
    pub rejected_connections: u64,
}
