//! Bulk UDP that loses datagrams.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A stage whose datagrams are lost.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DatagramLoss {
    /// Which.
    pub stage: String,
    /// Its senders had a pace; without one they send what they can, and the surplus is lost.
    pub is_paced: bool,
    /// Datagrams that never came.
    pub lost_datagrams: u64,
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// The former over the latter, 0 to 1.
    pub lost_share: f64,
    /// The pair that loses most. `None` where there are no others.
    pub worst_pair: Option<DatagramLossOfPair>,
    /// Pairs of the stage.
    pub pairs: usize,
    /// How a datagram is fragmented. `None` where it fits the MTU.
    pub fragments: Option<Fragments>,
}

/// A pair's loss.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct DatagramLossOfPair {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Datagrams that never came over those sent, 0 to 1.
    pub lost_share: f64,
}

/// A datagram that does not fit the MTU: it is lost with any of its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Fragments {
    /// The datagram's payload.
    pub message_bytes: u64,
    /// How many.
    pub fragments: u64,
    /// What limits them.
    pub mtu_bytes: u32,
    /// The largest payload that needs no fragments.
    pub whole_bytes: u32,
}
