//! Many senders to one receiver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stage in which many send to one: collapsed goodput, unfairness, or a long queue. Figures are
/// medians over receivers and rounds.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Incast {
    /// Which.
    pub stage: String,
    /// Senders of a receiver, at most.
    pub senders: usize,
    /// Goodput over what receivers and uplinks allow, 0 to 1.
    pub goodput_share: f64,
    /// It is so low because TCP waits for timeouts.
    pub has_collapsed: bool,
    /// Round trip less the connection's shortest one.
    pub queueing_delay_ns: Option<u64>,
    /// Jain's index of the senders' rates: 1 is even, 1/n is one sender alone.
    pub fairness: f64,
    /// Receivers and rounds.
    pub samples: usize,
    /// Segments retransmitted over those sent, 0 to 1.
    pub retransmitted_share: f64,
}
