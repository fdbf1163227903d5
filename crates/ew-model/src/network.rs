//! Which of a host's networks data use, and which was measured.

pub use crate::subnet::{Subnet, SubnetError};

use crate::facts::InterfaceFacts;
use crate::units::format_bits_per_sec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network to measure, as the user names it; every host looks for it among its own interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkChoice {
    /// The interface with an address in this subnet.
    Subnet(Subnet),
    /// The interface of this name.
    Interface(String),
}

/// Networks that are nobody's alone, first address and length of the prefix: RFC 1122 (loopback),
/// RFC 1918, RFC 3927 (link-local), RFC 6598 (carrier-grade NAT), RFC 2544 (benchmarks), RFC 5737
/// (documentation), and whatever is no unicast address.
const PRIVATE_V4: [(Ipv4Addr, u32); 11] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
];

/// Networks that are nobody's alone though they are global unicast, as above: RFC 5180
/// (benchmarks), RFC 3849 and RFC 9637 (documentation).
const PRIVATE_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address is one of the internet's: load on it may leave the site.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let is_in = |(first, bits): &(Ipv4Addr, u32)| {
                (u32::from(*first) ^ u32::from(address)) >> (32 - bits) == 0
            };
            !PRIVATE_V4.iter().any(is_in) && !address.is_multicast() && !address.is_broadcast()
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public(mapped.into()),
            None => {
                let is_in = |(first, bits): &(Ipv6Addr, u32)| {
                    (u128::from(*first) ^ u128::from(address)) >> (128 - bits) == 0
                };
                is_global_unicast(address) && !PRIVATE_V6.iter().any(is_in)
            }
        },
    }
}

/// 2000::/3 (RFC 4291).
fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] >> 13 == 1
}

impl fmt::Display for NetworkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subnet(subnet) => write!(f, "{subnet}"),
            Self::Interface(name) => write!(f, "interface {name}"),
        }
    }
}

impl NetworkChoice {
    /// A host's address on the network: that of an interface which is up before others, IPv4 before
    /// IPv6 where both fit. Link-local addresses and loopback ones do not count.
    #[must_use]
    pub fn address_on(&self, interfaces: &[InterfaceFacts]) -> Option<IpAddr> {
        let fits = |interface: &InterfaceFacts, address: IpAddr| match self {
            Self::Subnet(subnet) => subnet.contains(address),
            Self::Interface(name) => interface.name == *name,
        };
        let addresses = interfaces.iter().flat_map(|interface| {
            let own = interface.addresses.iter().copied();
            own.filter(move |address| is_routable(*address) && fits(interface, *address))
                .map(|address| (!interface.up, address.is_ipv6(), address))
        });
        // The first of equals: `min_by_key` keeps the kernel's order.
        addresses
            .min_by_key(|(is_down, is_v6, _)| (*is_down, *is_v6))
            .map(|(_, _, address)| address)
    }

    /// Why a host has no address on the network, in words.
    #[must_use]
    pub fn missing_on(&self, interfaces: &[InterfaceFacts]) -> String {
        let describe = |interface: &InterfaceFacts| {
            let addresses = interface.addresses.iter().filter(|a| is_routable(**a));
            let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
            let down = if interface.up { "" } else { ", down" };
            format!(
                "{} ({}{down})",
                interface.name,
                or_none(&addresses.join(" "))
            )
        };
        let there: Vec<String> = interfaces.iter().map(describe).collect();
        format!(
            "no address on {self}; it has {}. Name another with --network or --interface",
            or_none(&there.join(", "))
        )
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn is_routable(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !address.is_loopback() && !is_link_local
}

/// What was measured: hosts whose data interfaces are alike.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct MeasuredNetwork {
    /// The interface's name on these hosts.
    pub interface: String,
    /// Its subnet. `None` in runs of before prefixes were read.
    pub subnet: Option<String>,
    /// Its speed, bits per second. `None` when unknown.
    pub speed_bits_per_sec: Option<f64>,
    /// Its maximum transmission unit, bytes.
    pub mtu_bytes: Option<u32>,
    /// On how many hosts.
    pub hosts: usize,
}

impl fmt::Display for MeasuredNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.interface)?;
        if let Some(subnet) = &self.subnet {
            write!(f, ", {subnet}")?;
        }
        if let Some(speed) = self.speed_bits_per_sec {
            write!(f, ", {}", format_bits_per_sec(speed))?;
        }
        match self.mtu_bytes {
            Some(mtu) => write!(f, ", MTU {mtu}"),
            None => Ok(()),
        }
    }
}

/// The networks of hosts, by their data interface and address: those with most hosts first.
#[must_use]
pub fn measured_networks<'a>(
    hosts: impl Iterator<Item = (&'a InterfaceFacts, IpAddr)>,
) -> Vec<MeasuredNetwork> {
    let mut networks: Vec<MeasuredNetwork> = Vec::new();
    for (interface, address) in hosts {
        let own = MeasuredNetwork {
            interface: interface.name.clone(),
            subnet: interface
                .subnet_of(address)
                // A host route is not the network that hosts share.
                .filter(|subnet| !subnet.is_one_address())
                .map(|subnet| subnet.to_string()),
            speed_bits_per_sec: interface.speed_bits_per_sec,
            mtu_bytes: interface.mtu_bytes,
            hosts: 0,
        };
        let is_alike = |known: &&mut MeasuredNetwork| {
            MeasuredNetwork {
                hosts: 0,
                ..(**known).clone()
            } == own
        };
        match networks.iter_mut().find(is_alike) {
            Some(known) => known.hosts += 1,
            None => networks.push(MeasuredNetwork { hosts: 1, ..own }),
        }
    }
    networks.sort_by_key(|network| std::cmp::Reverse(network.hosts));
    networks
}

/// `eth0, 10.20.0.0/16, 25.0 Gb/s, MTU 9000`; where hosts differ, the first two kinds with their
/// numbers of hosts.
#[must_use]
pub fn describe_networks(networks: &[MeasuredNetwork]) -> String {
    const NAMED: usize = 2;
    if let [one] = networks {
        return one.to_string();
    }
    let mut words: Vec<String> = networks
        .iter()
        .take(NAMED)
        .map(|network| {
            let plural = if network.hosts == 1 { "" } else { "s" };
            format!("{network} ({} host{plural})", network.hosts)
        })
        .collect();
    if networks.len() > NAMED {
        words.push(format!("and {} others", networks.len() - NAMED));
    }
    words.join("; ")
}

/// An interface of a host that is up, has an address and is faster than the measured one: the
/// fastest of them.
#[must_use]
pub fn faster_interface<'a>(
    interfaces: &'a [InterfaceFacts],
    measured: &InterfaceFacts,
) -> Option<&'a InterfaceFacts> {
    /// Two ports of one kind may differ a little in what they report.
    const FASTER: f64 = 1.05;
    let speed = measured.speed_bits_per_sec?;
    let is_faster = |interface: &&InterfaceFacts| {
        let has_address = interface.addresses.iter().any(|a| is_routable(*a));
        let faster = interface
            .speed_bits_per_sec
            .is_some_and(|s| s > FASTER * speed);
        interface.up && has_address && faster
    };
    let rate = |interface: &&InterfaceFacts| interface.speed_bits_per_sec.unwrap_or(0.0);
    interfaces
        .iter()
        .filter(is_faster)
        .max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str, prefix: u8, speed: f64) -> InterfaceFacts {
        InterfaceFacts {
            name: name.into(),
            addresses: vec!["fe80::1".parse().unwrap(), address.parse().unwrap()],
            prefix_bits: vec![64, prefix],
            speed_bits_per_sec: Some(speed),
            mtu_bytes: Some(1500),
            up: true,
            ..InterfaceFacts::default()
        }
    }

    #[test]
    fn public_addresses_are_the_internets() {
        for (address, is) in [
            ("10.255.0.1", false),
            ("11.0.0.1", true),
            ("172.31.9.9", false),
            ("172.32.0.1", true),
            ("100.127.255.255", false),
            ("198.19.255.1", false),
            ("198.20.0.1", true),
            ("8.8.8.8", true),
            ("fd00::1", false),
            ("fe80::1", false),
            ("2001:db8::1", false),
            ("2001:2:0:ffff::2", false),
            ("2001:2:1::1", true),
            ("3fff:fff::1", false),
            ("3fff:1000::1", true),
            ("2606:4700::1111", true),
            ("::ffff:8.8.8.8", true),
            ("::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), is, "{address}");
        }
    }

    #[test]
    fn subnets() {
        let subnet: Subnet = "10.20.3.4/16".parse().unwrap();
        assert_eq!(subnet.to_string(), "10.20.0.0/16");
        assert!(subnet.contains("10.20.255.1".parse().unwrap()));
        assert!(!subnet.contains("10.21.0.1".parse().unwrap()));
        assert!(!subnet.contains("::1".parse().unwrap()));
        let all: Subnet = "::/0".parse().unwrap();
        assert!(all.contains("fd00::1".parse().unwrap()));
        for wrong in ["10.0.0.0", "10.0.0.0/33", "x/8", "10.0.0.0/x", ""] {
            assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_find_their_address() {
        let own = [
            interface("eth0", "10.0.0.1", 24, 1e9),
            interface("eth1", "10.20.0.1", 16, 25e9),
        ];
        let subnet = |text: &str| NetworkChoice::Subnet(text.parse().unwrap());
        let found = |choice: &NetworkChoice| choice.address_on(&own).map(|a| a.to_string());
        assert_eq!(found(&subnet("10.20.0.0/16")).as_deref(), Some("10.20.0.1"));
        let by_name = NetworkChoice::Interface("eth0".into());
        assert_eq!(found(&by_name).as_deref(), Some("10.0.0.1"));
        assert_eq!(found(&subnet("fe80::/10")), None, "link-local");
        let missing = subnet("10.30.0.0/16");
        assert_eq!(found(&missing), None);
        assert_eq!(
            missing.missing_on(&own),
            "no address on 10.30.0.0/16; it has eth0 (10.0.0.1), eth1 (10.20.0.1). Name another with --network or --interface"
        );
    }

    #[test]
    fn what_is_measured_is_described() {
        let slow = interface("eth0", "10.0.0.1", 24, 1e9);
        let fast = interface("eth1", "10.20.0.1", 16, 25e9);
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.20.0.1".parse().unwrap());
        let one = measured_networks([(&slow, a), (&slow, a)].into_iter());
        assert_eq!(
            describe_networks(&one),
            "eth0, 10.0.0.0/24, 1.00 Gb/s, MTU 1500"
        );
        let two = measured_networks([(&slow, a), (&fast, b), (&slow, a)].into_iter());
        assert_eq!(
            describe_networks(&two),
            "eth0, 10.0.0.0/24, 1.00 Gb/s, MTU 1500 (2 hosts); eth1, 10.20.0.0/16, 25.0 Gb/s, MTU 1500 (1 host)"
        );
        let all = [slow.clone(), fast.clone()];
        assert_eq!(faster_interface(&all, &slow), Some(&all[1]));
        assert_eq!(faster_interface(&all, &fast), None);
        let down = InterfaceFacts { up: false, ..fast };
        assert_eq!(faster_interface(&[down], &slow), None);
    }
}
