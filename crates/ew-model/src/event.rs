//! The one event enum that every live view and the recorder consume.

use crate::facts::{HostFacts, HostSample};
use crate::inventory::{HostId, Inventory};
use crate::place::{FlowId, RoundIndex, StageIndex};
use crate::plan::Plan;
use crate::record::FlowRecord;
use crate::run::Outcome;
use crate::storage::{HdfsFacts, StorageOperation, StorageStep};
use crate::telemetry::HostReading;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// An event with its times, one line of `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Since the run began, controller's monotonic clock.
    pub at_ns: u64,
    /// What happened.
    pub event: RunEvent,
}

/// What happens in a run, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type", content = "data")]
pub enum RunEvent {
    /// The plan is made and the launch begins.
    RunStarted {
        /// [`crate::run::RunManifest::id`]. Empty in runs from before it was recorded.
        #[serde(default)]
        id: String,
        /// Who takes part.
        inventory: Inventory,
        /// What will happen.
        plan: Plan,
    },
    /// Hosts did not come up, so the plan was made again over the others (same ids). Replaces the
    /// plan.
    Replanned {
        /// What will happen now.
        plan: Plan,
    },
    /// An agent has introduced itself and its version fits.
    HostUp {
        /// Which.
        host: HostId,
        /// What it reports about its host.
        facts: HostFacts,
        /// Time from launch to hello.
        launch_ns: u64,
        /// Its address on the network that was asked for. `None` where the inventory has it.
        #[serde(default)]
        address: Option<IpAddr>,
    },
    /// A host could not be brought up.
    HostFailed {
        /// Which.
        host: HostId,
        /// In the launcher's own words (for ssh: ssh's stderr).
        message: String,
    },
    /// A clock estimate, made before each stage, and inside it where the clock has left its line.
    ClockSynced {
        /// Which.
        host: HostId,
        /// Agent's monotonic clock minus the controller's.
        offset_ns: i64,
        /// The offset is right within this.
        error_ns: u64,
        /// By how much the agent's clock is faster, parts per billion. `None` where the run was too
        /// short to show it, and in runs of before it was estimated.
        #[serde(default)]
        rate_ppb: Option<i32>,
    },
    /// The stage's turn begins: its only one, or one of many where stages are interleaved.
    StageStarted {
        /// Which.
        stage: StageIndex,
        /// Hosts that take part.
        hosts_alive: u32,
    },
    /// All reports of a round are in, or its deadline passed.
    RoundFinished {
        /// Which stage.
        stage: StageIndex,
        /// Which round.
        round: RoundIndex,
        /// One per planned flow, missing ones included.
        records: Vec<FlowRecord>,
    },
    /// The stage is over.
    StageFinished {
        /// Which.
        stage: StageIndex,
    },
    /// Raw counters of one host.
    HostSampled {
        /// Which.
        host: HostId,
        /// The counters.
        sample: HostSample,
    },
    /// Connections that a host's data port refused (no token, garbage, silence), since its start.
    #[serde(alias = "strangers")]
    ConnectionsRejected {
        /// Which.
        host: HostId,
        /// How many.
        count: u64,
    },
    /// Live rate of the whole fleet, about once a second. Not recorded.
    Progress {
        /// Sum over hosts of payload received. `None` while external tools run, which report
        /// nothing before their end.
        bits_per_sec: Option<f64>,
        /// Hosts alive.
        hosts_alive: u32,
        /// Estimated time left.
        left_ns: u64,
    },
    /// How a followed flow went for a part of its window, reported while the round goes on. Not
    /// recorded: the round's records have the figures.
    FlowProgress {
        /// Which stage.
        stage: StageIndex,
        /// Which flow.
        flow: FlowId,
        /// Sender of the data, or of the requests.
        src: HostId,
        /// Receiver of the data, or who answers.
        dst: HostId,
        /// Start of the part, from the window's start.
        offset_ns: u64,
        /// Its length.
        length_ns: u64,
        /// Payload bytes; of answers where there are requests.
        bytes: u64,
        /// Transactions, where there are requests.
        transactions: Option<u64>,
        /// TCP segments retransmitted, where the sender reports.
        retransmits: Option<u64>,
    },
    /// Everything of the one host that somebody watches, about once a second. Not recorded: samples
    /// are.
    HostRead {
        /// Which.
        host: HostId,
        /// All its counters.
        reading: Box<HostReading>,
    },
    /// A host stopped answering after it had been up.
    HostLost {
        /// Which.
        host: HostId,
        /// How it was noticed.
        message: String,
    },
    /// A lost host answers again.
    HostReturned {
        /// Which.
        host: HostId,
    },
    /// Something the user should know that is not a finding.
    Warning {
        /// In words, with a remedy.
        message: String,
    },
    /// Events before this one were not written: the disk was full or did not keep up, or a host had
    /// reported too much.
    EventsLost {
        /// How many.
        count: u64,
    },
    /// Workers on storage were sent their orders. Not recorded: the end is.
    StorageStepStarted {
        /// What they do.
        operation: StorageOperation,
        /// Storage nodes or endpoints in service. `None`: unknown.
        storage_nodes: Option<u32>,
        /// Hosts with workers.
        hosts: u32,
        /// Files, all hosts.
        files: u32,
        /// Bytes to be moved, all hosts.
        bytes: u64,
    },
    /// What the NameNode reports before the first step of a storage job on HDFS.
    StorageFacts(Box<HdfsFacts>),
    /// How a storage step goes, in a job's own words. Not recorded: its log is.
    StorageProgress {
        /// What is done.
        operation: StorageOperation,
        /// In words.
        words: String,
    },
    /// All reports of a storage step are in, or its hosts are lost.
    StorageStepFinished(Box<StorageStep>),
    /// The user asked to stop.
    Interrupted,
    /// All is collected and the fleet is torn down.
    RunFinished {
        /// How it ended.
        outcome: Outcome,
        /// Hosts whose cleanup was not confirmed, by name, with the reason.
        unclean: Vec<(String, String)>,
    },
}

impl RunEvent {
    /// Whether the event only feeds live views and is not written to the run.
    #[must_use]
    pub fn is_live_only(&self) -> bool {
        matches!(
            self,
            Self::Progress { .. }
                | Self::FlowProgress { .. }
                | Self::HostRead { .. }
                | Self::StorageStepStarted { .. }
                | Self::StorageProgress { .. }
        )
    }
}
