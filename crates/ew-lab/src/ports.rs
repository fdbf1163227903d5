//! The names of a host's interfaces, and of its leaf's ports towards it.

use ew_model::topology::HostSpec;

use crate::addresses::{address, host_number};

/// A host's interface.
pub(crate) fn interface(member: u32) -> String {
    format!("eth{member}")
}

/// Leaf's ports towards a host.
pub(crate) fn ports(host: &HostSpec) -> impl Iterator<Item = String> {
    (0..host.nic.lag_members).map(|member| port(host, member))
}

pub(crate) fn port(host: &HostSpec, member: u32) -> String {
    let number = u32::from(host_number(address(host))) + 1;
    match member {
        0 => format!("p{number}"),
        member => format!("p{number}-{}", member + 1),
    }
}
