//! One round of one host, ready to run: what the engine and the external tools take.

use crate::message::FlowOrder;
use ew_model::plan::{RoundIndex, StageIndex};
use ew_model::workload::Workload;

/// One round of one host. All times are this host's CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundSpec {
    /// Which stage.
    pub stage: StageIndex,
    /// Which round of it.
    pub round: RoundIndex,
    /// What the flows carry.
    pub workload: Workload,
    /// When opening ends begin to connect.
    pub connect_at_ns: u64,
    /// When senders begin to send. Connecting ends here.
    pub start_ns: u64,
    /// When counting begins: the end of the warm-up.
    pub window_start_ns: u64,
    /// How long counting lasts.
    pub window_ns: u64,
    /// Time between counter reads inside the window.
    pub interval_ns: u64,
    /// This host's ends of flows.
    pub flows: Vec<FlowOrder>,
}

impl RoundSpec {
    /// When counting ends.
    #[must_use]
    pub fn window_end_ns(&self) -> u64 {
        self.window_start_ns.saturating_add(self.window_ns)
    }
}
