//! Disks that are busy all the time.

use crate::analysis::DiskShare;
use crate::inventory::HostId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A disk of one host is busy all the time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BusyDisk {
    /// Whose.
    pub host: HostId,
    /// The busiest, in the capacity test in which it was busiest.
    pub disk: DiskShare,
}

/// The disks of most hosts are busy all the time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct BusyDisks {
    /// Number of hosts with a disk.
    pub hosts: usize,
    /// Share of the time that a host's busiest disk was busy, median over hosts.
    pub busy_share: f64,
    /// Of the host with the busiest.
    pub busiest: BusyDisk,
}
