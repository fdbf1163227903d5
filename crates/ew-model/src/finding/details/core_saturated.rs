//! A CPU of a host had no time left.

use super::OwnAndPeers;
use crate::analysis::CpuShare;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A CPU is busy all the time, and the peers' CPUs are not.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct FullCpu {
    /// Whose.
    pub host: HostId,
    /// The busiest, in the capacity test in which it was busiest.
    pub cpu: CpuShare,
    /// What took most of it.
    pub taker: CpuTaker,
    /// Share of the time that the busiest CPU was busy.
    pub busy_share: OwnAndPeers,
    /// That capacity test.
    pub stage: String,
}

/// What took a CPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuTaker {
    /// The kernel's handling of packets.
    Softirq,
    /// Others of the same hypervisor.
    Steal,
    /// Programs.
    Programs,
    /// The kernel on behalf of programs.
    Kernel,
}

/// The threads that move bytes wait for a CPU.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StarvedThreads {
    /// Whose.
    pub host: HostId,
    /// Time they waited over the flows' time, summed over threads.
    pub waited_share: OwnAndPeers,
    /// In which part of the flows.
    pub extent: Extent,
}

/// The sampler that sleeps until its time wakes late.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LateSampler {
    /// Whose.
    pub host: HostId,
    /// How late its readings began.
    pub late_ns: OwnAndPeers,
    /// In which part of the readings.
    pub extent: Extent,
}

/// In which part of a host's flows, or readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// In half of them: the median.
    Mostly,
    /// At least in a quarter of them.
    AtTimes,
}
