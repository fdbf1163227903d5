//! Conclusions: findings and the verdict over them, as facts. The report makes their sentences.

pub mod details;
mod worded;

pub use details::Details;
pub use worded::{Evidence, WordedFinding, WordedVerdict};

use crate::estimate::Estimate;
use crate::inventory::{HostId, RackId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All findings of a run, and what they amount to.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Verdict {
    /// What it amounts to.
    pub status: VerdictStatus,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// What a verdict without findings rests on.
    #[serde(default)]
    pub grounds: Grounds,
}

/// What was measured, and what was not.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Grounds {
    /// Any stage's rates were compared with what hosts and paths can do.
    pub is_judged: bool,
    /// Median of what hosts send and receive, bits per second.
    pub typical_bits_per_sec: Option<Estimate>,
    /// How far the racks' uplinks were tested.
    pub uplinks: UplinkTest,
    /// Rounds from which nothing is concluded.
    pub excluded_rounds: usize,
    /// Share of the flows that load each of several parallel paths by half whose hosts lacked CPU,
    /// where that is most of them: a bad path would not have been seen.
    #[serde(default)]
    pub starved_path_flows: Option<f64>,
    /// Why nothing was measured, in the words of whoever reported it. `None` where something was,
    /// or nobody reported why.
    pub failure: Option<String>,
}

/// How far the load went that the racks' uplinks were tested with.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UplinkTest {
    /// There is no traffic between racks, or a rack's uplinks limit it, which is a finding.
    #[default]
    None,
    /// No rack's uplinks limit its hosts.
    NoneLimits,
    /// The load could not have shown all of it: of one rack it reached this share of the hosts'
    /// rate, 0 where it is not known.
    UpTo(f64),
}

/// What the verdict amounts to; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictStatus {
    /// Nothing wrong found (exit 0).
    NothingWrong,
    /// There are findings, but none is worse than what was configured (exit 0).
    AsExpected,
    /// A finding is worse than configured, or a host is faulty against its peers (exit 1).
    Worse,
    /// Hosts or host pairs are missing, so the answer is not whole (exit 3).
    Partial,
    /// There is not enough data for an answer (exit 4).
    NotDetermined,
}

/// How bad a finding is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Limits the result, not worse than configured.
    Notice,
    /// Worse than configured or than its peers.
    Fault,
}

/// What a finding is about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case", tag = "type")]
pub enum Subject {
    /// One host.
    Host {
        /// Which.
        host: HostId,
    },
    /// One direction between two hosts.
    Pair {
        /// Sender.
        src: HostId,
        /// Receiver.
        dst: HostId,
    },
    /// One direction between two racks.
    RackPair {
        /// Sending rack.
        from: RackId,
        /// Receiving rack.
        to: RackId,
    },
    /// The uplinks of one rack.
    Rack {
        /// Which.
        rack: RackId,
    },
    /// The whole run.
    Run,
}

/// Why, as far as the evidence carries.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The path between two racks carries less than their hosts could send.
    Uplink,
    /// The host sends slower than its peers.
    SlowSender,
    /// The host receives slower than its peers.
    SlowReceiver,
    /// The host is slow in both directions: its link or the host itself.
    SlowHost,
    /// Only this pair is slow: a member link, a hash collision, a path.
    SlowPair,
    /// What moves the bytes is the limit: a tool's only thread, or the engine's thread of a flow,
    /// used one CPU whole.
    ToolLimit,
    /// One CPU, or all of them, had no time left.
    CoreSaturated,
    /// The control group's CPU quota throttled the agent.
    CpuQuota,
    /// The interface carries what its link can.
    LineRate,
    /// The link came up slower than its peers' or than configured, or at half duplex.
    LinkSpeed,
    /// The MTU differs from the peers'.
    Mtu,
    /// A host was lost or never came up.
    HostMissing,
    /// Flows could not be measured.
    #[serde(rename = "cells-missing")]
    PairsMissing,
    /// Idle round trips are longer than the peers' or than configured.
    Latency,
    /// The receiver's window limits the senders: its buffer is too small.
    ReceiveWindow,
    /// The send buffer is too small.
    SendBuffer,
    /// Packets are lost on the way.
    Loss,
    /// The receiving host drops what reached it: in the ring, in the backlog, or at the socket.
    ReceiveDrops,
    /// A disk is the limit.
    Disk,
    /// Traffic that is not the run's takes a part of the link.
    #[serde(alias = "foreign-traffic")]
    BackgroundTraffic,
    /// Pods get less than their nodes.
    PodNetwork,
    /// Others' load makes flows slower: what a fabric does to everybody, and how much.
    Congestion,
    /// The rounds did not run as planned: too many flows late or missing, so that nothing may be
    /// concluded.
    MeasurementQuality,
    /// Hosts come in classes of NIC speed, which is no fault.
    NicClasses,
    /// Hosts have a faster network than the measured one, and it lay idle.
    FasterNetwork,
    /// One member of a bond carries nearly all of its traffic.
    BondMember,
    /// All hosts stay below their links' own speed.
    BelowLinkSpeed,
    /// A single connection is limited below what its hosts do with several: a provider's cap, or
    /// one member of a bond.
    ConnectionLimit,
    /// One of a rack's parallel paths carries less than the others, loses packets, or is down.
    BadPath,
    /// A rack uses fewer parallel paths than the others: a link is down, or its routes are
    /// withdrawn.
    LostPath,
    /// Single connections get less than the fabric has, because parallel paths are hashed:
    /// expected, and no fault.
    HashCollisions,
    /// Below expectation, and the evidence does not show why.
    NotDetermined,
}

/// What a cause does to the rates.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// The host sends slower than its peers.
    SlowSender,
    /// The host receives slower than its peers.
    SlowReceiver,
    /// The host is slow in both directions.
    SlowHost,
    /// Only this pair is slow.
    SlowPair,
    /// A stage stays below what hosts and paths allow.
    SlowStage,
}

/// How far a finding can be relied on, from how often findings of its cause were right on networks
/// whose truth is known: the lower end of the 95% interval of that share.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Below one half, or not measured.
    Low,
    /// At least one half.
    Medium,
    /// At least nine in ten; or the run itself shows it, and nothing is inferred.
    High,
}

impl Confidence {
    /// The word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// One conclusion.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// About what.
    pub subject: Subject,
    /// Why, as far as the evidence carries.
    pub cause: Cause,
    /// What it did to the rates, where the cause was found for something slow. `None` where the
    /// cause names it.
    #[serde(default)]
    pub symptom: Option<Symptom>,
    /// The measured quantity. `None` for findings without one.
    pub measured: Option<Quantity>,
    /// What it was compared with.
    pub expected: Option<Quantity>,
    /// How often findings of this cause were right, in a word.
    pub confidence: Confidence,
    /// What was found, and what it rests on.
    #[serde(default)]
    pub details: Details,
    /// Where the cables of the accused hosts end, as LLDP reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cables: Vec<Cable>,
}

impl Finding {
    /// Whether it reports so many unexplained flows that the run as a whole shows nothing sure.
    #[must_use]
    pub fn leaves_the_run_open(&self) -> bool {
        let is_share = |figure: &Quantity| figure.unit == "share";
        self.cause == Cause::NotDetermined
            && self.severity > Severity::Info
            && self.measured.as_ref().is_some_and(is_share)
    }
}

/// The far end of a host's link.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Cable {
    /// Whose link.
    pub host: HostId,
    /// The link's name on the host.
    pub link: String,
    /// Name of the switch.
    pub switch: String,
    /// Name of its port.
    pub port: String,
}

/// A number with its unit and 95% interval.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Quantity {
    /// Point estimate.
    pub value: f64,
    /// Lower end. `None` when there are too few samples for an interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// `bits_per_sec`, `ratio`, `share`, `ns`, `bytes`, `count`.
    pub unit: String,
}

impl VerdictStatus {
    /// The documented exit code.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::NothingWrong | Self::AsExpected => 0,
            Self::Worse => 1,
            Self::Partial => 3,
            Self::NotDetermined => 4,
        }
    }
}
