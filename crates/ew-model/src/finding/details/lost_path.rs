//! A rack uses fewer paths than the others, or than expected.

use super::{Directions, PathRouter};
use crate::inventory::RackId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Paths that are not in use.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct LostPath {
    /// Whose they are.
    #[serde(rename = "place")]
    pub location: LostPathLocation,
    /// Which way, seen from the rack.
    pub directions: Directions,
    /// Paths in use.
    pub used_paths: usize,
    /// Paths that should be.
    pub expected_paths: usize,
    /// Why so many.
    pub expectation: PathExpectation,
    /// Traced connections that show it.
    pub traced_connections: usize,
    /// Routers on the paths not in use, by the racks that send over them. Of the way out of a rack
    /// it is the rack's own end of the link.
    pub unused_routers: Vec<PathRouter>,
}

/// Whose lost paths are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "type")]
#[schemars(rename = "LostPathPlace")]
pub enum LostPathLocation {
    /// One rack's.
    Rack {
        /// Which.
        rack: RackId,
    },
    /// Of two racks, where the way out of the one is the way into the other.
    OneWay {
        /// That sends.
        from: RackId,
        /// That receives.
        to: RackId,
    },
    /// One of two racks', and nobody can know which.
    BetweenTwoRacks,
    /// Every rack's.
    EveryRack,
}

/// Why more paths should be in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathExpectation {
    /// So many were configured.
    Configured,
    /// Other racks use so many, or the other direction does.
    OtherRacks,
    /// A guess: fabrics are built with so many, and all racks use one less.
    OneShort,
}
