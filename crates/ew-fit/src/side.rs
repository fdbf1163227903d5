//! Sides of hosts.

use ew_model::HostId;

/// One direction of a host's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Sending.
    Tx(HostId),
    /// Receiving.
    Rx(HostId),
}

impl Side {
    /// Whose it is.
    pub fn host(self) -> HostId {
        let (Self::Tx(host) | Self::Rx(host)) = self;
        host
    }
}
