//! Why a host is slow.

use super::{
    BackgroundTraffic, BusyDisk, BusyThread, CpuQuota, FullCpu, HalfDuplex, LateSampler,
    LimitingSendBuffer, LossOnLink, OddMtu, ReceiveDrops, Shaper, SingleThread, SmallReceiveWindow,
    SmallSendBuffer, StarvedThreads,
};
use crate::finding::Cause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a host is slow, with what that rests on.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum Why {
    /// Others' traffic is on its link.
    BackgroundTraffic(BackgroundTraffic),
    /// A disk is busy all the time.
    BusyDisk(BusyDisk),
    /// A thread of the engine uses one CPU whole.
    BusyThread(BusyThread),
    /// A CPU quota throttled the agent.
    CpuQuota(CpuQuota),
    /// A CPU had no time left.
    FullCpu(FullCpu),
    /// The link runs at half duplex.
    HalfDuplex(HalfDuplex),
    /// The sampler wakes late.
    LateSampler(LateSampler),
    /// The send buffer limited the flows.
    LimitingSendBuffer(LimitingSendBuffer),
    /// The link loses packets.
    LossOnLink(LossOnLink),
    /// The MTU is not the peers'.
    OddMtu(OddMtu),
    /// It drops what it received.
    ReceiveDrops(ReceiveDrops),
    /// A queueing discipline lets less pass.
    Shaper(Shaper),
    /// A tool has one thread for all streams.
    SingleThread(SingleThread),
    /// The receive window limited the senders.
    SmallReceiveWindow(SmallReceiveWindow),
    /// The send buffer is smaller than what the congestion window lets out.
    SmallSendBuffer(SmallSendBuffer),
    /// The threads that move bytes wait for a CPU.
    StarvedThreads(StarvedThreads),
}

impl Why {
    /// As the cause of a finding.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::BackgroundTraffic(_) => Cause::BackgroundTraffic,
            Self::BusyDisk(_) => Cause::Disk,
            Self::BusyThread(_) | Self::SingleThread(_) => Cause::ToolLimit,
            Self::CpuQuota(_) => Cause::CpuQuota,
            Self::FullCpu(_) | Self::LateSampler(_) | Self::StarvedThreads(_) => {
                Cause::CoreSaturated
            }
            Self::HalfDuplex(_) | Self::Shaper(_) => Cause::LinkSpeed,
            Self::LimitingSendBuffer(_) | Self::SmallSendBuffer(_) => Cause::SendBuffer,
            Self::LossOnLink(_) => Cause::Loss,
            Self::OddMtu(_) => Cause::Mtu,
            Self::ReceiveDrops(_) => Cause::ReceiveDrops,
            Self::SmallReceiveWindow(_) => Cause::ReceiveWindow,
        }
    }
}
