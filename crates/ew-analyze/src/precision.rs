//! How far findings of a cause can be relied on: how often they were right on networks whose truth
//! is known.
//!
//! Counted are notices and faults. Right is a finding about what is wrong, with the cause that is
//! the cause. The counts are those of docs/concepts/verdicts.md, which a test compares; where they
//! come from is in docs/benchmarks.md.

use ew_model::bounds::clopper_pearson;
use ew_model::finding::{Cause, Confidence};

/// What a cause's confidence rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Right findings of all.
    Counted(u64, u64),
    /// The run itself shows it; nothing is inferred.
    Shown,
    /// No network with this truth was measured often enough to count.
    NotMeasured,
}

/// From this share of right findings on, confidence is high; its 95 % interval's lower end counts.
const HIGH: f64 = 0.9;
/// From this one on it is medium.
const MEDIUM: f64 = 0.5;

/// The word for a cause.
pub(crate) fn confidence(cause: Cause) -> Confidence {
    match basis(cause) {
        Basis::Shown => Confidence::High,
        Basis::NotMeasured => Confidence::Low,
        Basis::Counted(right, of) => match clopper_pearson(right, of).0 {
            share if share >= HIGH => Confidence::High,
            share if share >= MEDIUM => Confidence::Medium,
            _ => Confidence::Low,
        },
    }
}

/// The table.
pub(crate) fn basis(cause: Cause) -> Basis {
    match cause {
        Cause::SlowHost => Basis::Counted(1, 1),
        Cause::SlowSender => Basis::Counted(1, 1),
        Cause::SlowReceiver => Basis::Counted(1, 1),
        Cause::Uplink => Basis::Counted(1, 1),
        Cause::BadPath => Basis::Counted(1, 1),
        Cause::LostPath => Basis::Counted(1, 1),
        Cause::ConnectionLimit => Basis::Counted(1, 1),
        Cause::ReceiveWindow => Basis::Counted(1, 1),
        Cause::CpuQuota => Basis::Counted(1, 1),
        Cause::Loss => Basis::Counted(14, 14),
        Cause::CoreSaturated => Basis::Counted(7, 7),
        Cause::SendBuffer => Basis::Counted(7, 7),
        Cause::Mtu => Basis::Counted(7, 7),
        Cause::BackgroundTraffic | Cause::Disk => Basis::Counted(8, 8),
        Cause::HostMissing
        | Cause::CellsMissing
        | Cause::MeasurementQuality
        | Cause::LineRate
        | Cause::LinkSpeed
        | Cause::FasterNetwork
        | Cause::NicClasses
        | Cause::HashCollisions
        | Cause::PodNetwork
        | Cause::Congestion => Basis::Shown,
        Cause::SlowPair
        | Cause::ToolLimit
        | Cause::Latency
        | Cause::ReceiveDrops
        | Cause::BelowLinkSpeed
        | Cause::NotDetermined => Basis::NotMeasured,
    }
}
