//! Why a host is slow: what is behind "Cause: ", and what that rests on.

use ew_model::Inventory;
use ew_model::finding::Evidence;
use ew_model::finding::details::Why;

/// What a reason says.
pub(in crate::catalogue) trait Reasoned {
    /// What is behind "Cause: ".
    fn because(&self, names: &Inventory) -> String;

    /// What it rests on, each with where to look.
    fn evidence(&self, names: &Inventory) -> Vec<Evidence>;

    /// What a person can do next.
    fn next_step(&self, names: &Inventory) -> String;
}

impl Reasoned for Why {
    fn because(&self, names: &Inventory) -> String {
        reason(self).because(names)
    }

    fn evidence(&self, names: &Inventory) -> Vec<Evidence> {
        reason(self).evidence(names)
    }

    fn next_step(&self, names: &Inventory) -> String {
        reason(self).next_step(names)
    }
}

fn reason(why: &Why) -> &dyn Reasoned {
    match why {
        Why::BackgroundTraffic(it) => it,
        Why::BusyDisk(it) => it,
        Why::BusyThread(it) => it,
        Why::CpuQuota(it) => it,
        Why::FullCpu(it) => it,
        Why::HalfDuplex(it) => it,
        Why::LateSampler(it) => it,
        Why::LimitingSendBuffer(it) => it,
        Why::LossOnLink(it) => it,
        Why::OddMtu(it) => it,
        Why::ReceiveDrops(it) => it,
        Why::Shaper(it) => it,
        Why::SingleThread(it) => it,
        Why::SmallReceiveWindow(it) => it,
        Why::SmallSendBuffer(it) => it,
        Why::StarvedThreads(it) => it,
    }
}
