//! Hosts, their addresses and racks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Index of a host in [`Inventory::hosts`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
pub struct HostId(pub u32);

/// Index of a rack in [`Inventory::racks`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize, Deserialize,
)]
pub struct RackId(pub u32);

impl HostId {
    /// As an index into host-ordered slices.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RackId {
    /// As an index into rack-ordered slices.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host#{}", self.0)
    }
}

/// One machine under test.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Host {
    /// The name the user gave, also what the launcher connects to.
    pub name: String,
    /// The address data flows use. `None` until names are resolved.
    pub address: Option<IpAddr>,
    /// The rack, when racks are known.
    pub rack: Option<RackId>,
}

/// How a launcher reaches a host, where that differs from the host's name and the launcher's
/// settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// Name or address to connect to, in place of the host's name.
    pub target: Option<String>,
    /// User there.
    pub user: Option<String>,
    /// Port of its sshd.
    pub port: Option<u16>,
}

/// A set of hosts below one leaf switch.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Rack {
    /// The group's name, for example `mc_rack1`.
    pub name: String,
}

/// Hosts in the user's order, and racks in the order they were named.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Inventory {
    /// All hosts; [`HostId`] indexes this.
    pub hosts: Vec<Host>,
    /// All racks; [`RackId`] indexes this. Empty when no racks were given.
    pub racks: Vec<Rack>,
}

impl Inventory {
    /// The host behind an id.
    ///
    /// # Panics
    /// If the id belongs to another inventory.
    #[must_use]
    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.index()]
    }

    /// The name of a host.
    #[must_use]
    pub fn name(&self, id: HostId) -> &str {
        &self.host(id).name
    }

    /// The name of a rack.
    #[must_use]
    pub fn rack_name(&self, id: RackId) -> &str {
        &self.racks[id.index()].name
    }

    /// All ids, in order.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.hosts.len() as u32).map(HostId)
    }

    /// All rack ids, in order.
    pub fn rack_ids(&self) -> impl Iterator<Item = RackId> + use<> {
        (0..self.racks.len() as u32).map(RackId)
    }

    /// The rack of a host, if racks are known.
    #[must_use]
    pub fn rack_of(&self, id: HostId) -> Option<RackId> {
        self.host(id).rack
    }

    /// From which rack to which other a flow goes, by index. `None` inside a rack, and where a host
    /// is in none.
    #[must_use]
    pub fn racks_between(&self, src: HostId, dst: HostId) -> Option<(usize, usize)> {
        let racks = (self.rack_of(src)?.index(), self.rack_of(dst)?.index());
        (racks.0 != racks.1).then_some(racks)
    }

    /// The hosts of a rack, in inventory order.
    #[must_use]
    pub fn hosts_in(&self, rack: RackId) -> Vec<HostId> {
        self.host_ids()
            .filter(|id| self.rack_of(*id) == Some(rack))
            .collect()
    }

    /// The host of that name, in capitals or not.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<HostId> {
        self.hosts
            .iter()
            .position(|h| h.name.eq_ignore_ascii_case(name))
            .map(|i| HostId(i as u32))
    }

    /// Whether both hosts sit in known, different racks.
    #[must_use]
    pub fn crosses_racks(&self, a: HostId, b: HostId) -> bool {
        matches!((self.rack_of(a), self.rack_of(b)), (Some(x), Some(y)) if x != y)
    }
}
