//! Who has which address, out of the ranges that are reserved for benchmarks: 198.18.0.0/15 (RFC
//! 2544) and 2001:2::/48 (RFC 5180). Racks, hosts, paths and pods are counted from 0.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ew_model::topology::{AddressFamily, HostSpec};

/// The address plan of one family.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses(pub(crate) AddressFamily);

/// The last byte of a rack's first host; a leaf's own and its tenants' are below it.
const FIRST_HOST: u8 = 10;
const GATEWAY: u8 = 1;
/// Background traffic leaves a rack from here, and enters it here.
const TENANT: u8 = 9;
/// Links above racks begin here among the links of their number.
const FIRST_POD_LINK: u8 = 128;

impl Addresses {
    /// All that is ever addressed.
    pub(crate) fn range(self) -> &'static str {
        match self.0 {
            AddressFamily::Ipv4 => "198.18.0.0/15",
            AddressFamily::Ipv6 => "2001:2::/48",
        }
    }

    pub(crate) fn host(self, rack: usize, host: usize) -> IpAddr {
        self.of_rack(rack, FIRST_HOST + host as u8)
    }

    pub(crate) fn gateway(self, rack: usize) -> IpAddr {
        self.of_rack(rack, GATEWAY)
    }

    pub(crate) fn tenant(self, rack: usize) -> IpAddr {
        self.of_rack(rack, TENANT)
    }

    /// All of a rack.
    pub(crate) fn prefix(self, rack: usize) -> String {
        let length = match self.0 {
            AddressFamily::Ipv4 => 24,
            AddressFamily::Ipv6 => 64,
        };
        format!("{}/{length}", self.of_rack(rack, 0))
    }

    fn of_rack(self, rack: usize, last: u8) -> IpAddr {
        let rack = rack as u8 + 1;
        match self.0 {
            AddressFamily::Ipv4 => Ipv4Addr::new(198, 18, rack, last).into(),
            AddressFamily::Ipv6 => {
                Ipv6Addr::new(0x2001, 2, 0, rack.into(), 0, 0, 0, last.into()).into()
            }
        }
    }

    /// Both ends, the upper one first, of member `path` of a rack's uplink.
    pub(crate) fn rack_link(self, rack: usize, path: usize) -> (IpAddr, IpAddr) {
        self.link(rack as u8 + 1, 4 * path as u8)
    }

    /// Both ends, the upper one first, of member `path` of a pod's uplink.
    pub(crate) fn pod_link(self, pod: usize, path: usize) -> (IpAddr, IpAddr) {
        self.link(pod as u8 + 1, FIRST_POD_LINK + 4 * path as u8)
    }

    /// Both ends, the upper one first, of a spine's link to the border of its pod.
    pub(crate) fn border_link(self, pod: usize, path: usize) -> (IpAddr, IpAddr) {
        // Pods have racks, so there are as many numbers from the top as pods from the bottom.
        self.link(u8::MAX - 1 - pod as u8, FIRST_POD_LINK + 4 * path as u8)
    }

    /// Both ends, the router's first, of the controller's link number `link`.
    pub(crate) fn controller_link(self, link: usize) -> (IpAddr, IpAddr) {
        self.link(u8::MAX, 4 * link as u8)
    }

    pub(crate) fn controller(self) -> IpAddr {
        self.controller_link(0).1
    }

    fn link(self, number: u8, first: u8) -> (IpAddr, IpAddr) {
        let end = |last: u8| match self.0 {
            AddressFamily::Ipv4 => Ipv4Addr::new(198, 19, number, last).into(),
            AddressFamily::Ipv6 => {
                let number = 0xff00 + u16::from(number);
                Ipv6Addr::new(0x2001, 2, 0, number, 0, 0, 0, last.into()).into()
            }
        };
        (end(first + 1), end(first + 2))
    }

    /// An address with the length that makes it reachable alone.
    pub(crate) fn alone(self, address: IpAddr) -> String {
        match self.0 {
            AddressFamily::Ipv4 => format!("{address}/32"),
            AddressFamily::Ipv6 => format!("{address}/128"),
        }
    }

    /// One end of a link, with the length that makes the other end reachable. Nobody else could
    /// have an IPv6 address.
    pub(crate) fn on_link(self, address: IpAddr) -> String {
        match self.0 {
            AddressFamily::Ipv4 => format!("{address}/30"),
            AddressFamily::Ipv6 => format!("{address}/126 nodad"),
        }
    }
}

/// The number of a host in its rack, from 0.
pub(crate) fn host_number(address: IpAddr) -> u8 {
    let last = match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[15],
    };
    last.saturating_sub(FIRST_HOST)
}

/// A host's own.
pub(crate) fn address(host: &HostSpec) -> IpAddr {
    host.address.unwrap_or(IpAddr::from([0, 0, 0, 0]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_address_is_given_twice() {
        for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
            let plan = Addresses(family);
            let mut seen = BTreeSet::new();
            let mut add = |address: IpAddr| assert!(seen.insert(address), "{address}");
            for rack in 0..250 {
                for host in 0..240 {
                    add(plan.host(rack, host));
                }
                add(plan.gateway(rack));
                add(plan.tenant(rack));
            }
            let links = |count: usize| (0..count).flat_map(|one| (0..30).map(move |p| (one, p)));
            let of_racks = links(250).map(|(rack, path)| plan.rack_link(rack, path));
            let of_pods = links(100).map(|(pod, path)| plan.pod_link(pod, path));
            let of_borders = links(100).map(|(pod, path)| plan.border_link(pod, path));
            let of_controller = (0..30).map(|link| plan.controller_link(link));
            let all = of_racks.chain(of_pods).chain(of_borders);
            for (upper, lower) in all.chain(of_controller) {
                add(upper);
                add(lower);
            }
        }
    }
}
