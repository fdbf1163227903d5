//! Everything that the drawing of the fabric shows.

use crate::html::accused::Mark;
use ew_model::{HostId, RackId};

/// More parallel paths than this are one thick line.
pub(super) const MAX_WIRES: usize = 16;

/// Everything that is drawn.
pub(super) struct Parts {
    /// What connects the racks, in words. `None` without racks.
    pub(super) spine: Option<String>,
    pub(super) racks: Vec<RackPart>,
    pub(super) pairs: Vec<PairPart>,
    pub(super) is_dense: bool,
    /// In words, for those who do not see it.
    pub(super) summary: String,
}

pub(super) struct RackPart {
    /// `None` for hosts without a rack.
    pub(super) id: Option<RackId>,
    pub(super) name: String,
    /// Where its uplinks are shown in figures, or explained.
    pub(super) to: String,
    pub(super) about: String,
    /// Out of the rack and into it.
    pub(super) gauges: Vec<Gauge>,
    pub(super) marks: Vec<Mark>,
    pub(super) wires: Vec<Wire>,
    pub(super) hosts: Vec<HostPart>,
}

/// One direction of a rack's uplinks. Shares are of what the rack's hosts can do together.
pub(super) struct Gauge {
    pub(super) arrow: char,
    pub(super) text: String,
    pub(super) class: &'static str,
    /// Load: the max that was carried in a round.
    pub(super) carried: f64,
    /// `None` where the uplinks were not seen to limit.
    pub(super) capacity: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Used,
    Bad,
    Unused,
}

pub(super) struct HostPart {
    pub(super) id: HostId,
    pub(super) name: String,
    pub(super) to: String,
    pub(super) about: String,
    pub(super) state: HostClass,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HostClass {
    Fine,
    Fault,
    Notice,
    Gone,
}

/// Two hosts between which something is wrong.
pub(super) struct PairPart {
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) to: String,
    pub(super) about: String,
    pub(super) class: &'static str,
}

impl RackPart {
    pub(super) fn accusations(&self) -> usize {
        let is_accused = |host: &&HostPart| host.state != HostClass::Fine;
        self.marks.len() + self.hosts.iter().filter(is_accused).count()
    }
}
