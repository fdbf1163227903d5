//! What an agent can be woken by.

use ew_model::facts::{HostFacts, HostSample};
use ew_model::storage::StorageReport;
use ew_model::telemetry::HostReading;
use ew_proto::message::{FlowProgress, OthersTcp, PortAnswer, RoundReport, Welcome};

/// One thing that happened, in order of arrival.
#[derive(Debug)]
pub enum Input {
    /// Bytes from the controller, with the time they were read.
    Bytes {
        /// As they came.
        bytes: Vec<u8>,
        /// On the host's monotonic clock.
        read_ns: u64,
    },
    /// What there is to know of the host before anything runs, and the welcome that asked for it.
    Facts(Box<(Welcome, HostFacts)>),
    /// The control link is gone, either way.
    LinkClosed,
    /// A round of the running stage is over.
    RoundDone(RoundReport),
    /// How a followed flow goes.
    FlowProgress(FlowProgress),
    /// Raw host counters, and what others' TCP connections sent.
    Sample(HostSample, Option<OthersTcp>),
    /// All counters of this host.
    Reading(Box<HostReading>),
    /// A storage step is over.
    StorageDone(Box<StorageReport>),
    /// How the storage step at hand goes.
    StorageProgress {
        /// Which.
        step: u32,
        /// In words.
        words: String,
    },
    /// The host's owner ends the agent.
    Stop {
        /// User id of who does.
        user: u32,
    },
    /// The host's owner allows no more time.
    TimeIsUp,
    /// Answer to a port check.
    PortsChecked(Vec<PortAnswer>),
}
