//! Pairs that are slow although their hosts are not.

use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One slow pair.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowPair {
    /// Which, and what it does.
    pub pair: PairRate,
    /// What its hosts do with others.
    pub expected_bits_per_sec: f64,
    /// Both hosts were seen with other peers, so that it is the pair; otherwise it may be either
    /// host.
    pub is_distinguished: bool,
}

/// Many slow pairs.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct SlowPairs {
    /// How many.
    pub count: usize,
    /// The slowest first; of many only these.
    pub pairs: Vec<PairRate>,
    /// What the first one's hosts do with others.
    pub expected_bits_per_sec: f64,
}

/// What flows of a pair get.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PairRate {
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// The rate of one that is alone.
    pub bits_per_sec: f64,
    /// Rounds that showed it.
    pub rounds: usize,
}
