//! The lab's links, addresses and routes as input for `ip -batch`.
//!
//! Every host has a point-to-point link to its leaf (or several: a LAG), as in a routed ("layer 3
//! to the host") fabric: the leaf owns one gateway address and a route per host. Unknown addresses
//! of the range are unreachable in every router, and no router has a default route. Neighbours are
//! known beforehand, so that a cable that loses packets in one direction loses nothing else.

use std::fmt::Write as _;
use std::net::IpAddr;

use ew_model::topology::HostSpec;

use crate::addresses::{Addresses, address, host_number};
use crate::fabric::{Destination, End, Fabric, Hop, Router};
use crate::ports::{interface, port, ports};
use crate::shaping::segment_burst_bytes;

/// MTU of the links between routers: never the limit.
const CORE_MTU_BYTES: u32 = 9000;

/// Commands for a router: the cables to the routers above it. `path_of` names a router's network
/// namespace.
pub(crate) fn links_up(
    fabric: &Fabric,
    router: Router,
    path_of: impl Fn(Router) -> String,
) -> String {
    let mut text = String::new();
    for (own, other, link) in fabric.ends(router) {
        if link.lower.router == router {
            let path = path_of(other.router);
            let _ = writeln!(
                text,
                "link add name {} address {} mtu {CORE_MTU_BYTES} type veth peer name {} address {} mtu {CORE_MTU_BYTES} netns {path}",
                own.device, own.hardware, other.device, other.hardware
            );
        }
    }
    text
}

/// Commands for a router whose cables are there: what makes it one.
pub(crate) fn router(fabric: &Fabric, router: Router) -> String {
    let addresses = fabric.addresses;
    let mut text = "link set dev lo up\n".to_owned();
    if let Router::Leaf(rack) = router {
        for address in [addresses.gateway(rack), addresses.tenant(rack)] {
            let _ = writeln!(text, "address add {} dev lo", no_doubt(addresses, address));
        }
        let _ = writeln!(text, "route add unreachable {}", addresses.prefix(rack));
    }
    let _ = writeln!(text, "route add unreachable {}", addresses.range());
    text + &link_ends(fabric, router) + &routes(fabric, router)
}

/// Commands for a router: its ends of cables that are plugged in, and of those that are not. It is
/// the upper end that goes down; the lower one loses its carrier.
pub(crate) fn link_ends(fabric: &Fabric, router: Router) -> String {
    let mut text = String::new();
    for (own, other, link) in fabric.ends(router) {
        let is_upper = link.upper.router == router;
        if is_upper && link.path.is_some_and(|path| !path.link_up) {
            let _ = writeln!(text, "link set dev {} down", own.device);
        } else {
            text += &plugged_in(fabric.addresses, own, other);
        }
    }
    text
}

fn plugged_in(addresses: Addresses, own: &End, other: &End) -> String {
    format!(
        "link set dev {device} up\naddress replace {} dev {device}\nneigh replace {} lladdr {} dev {device} nud permanent\n",
        addresses.on_link(own.address),
        other.address,
        other.hardware,
        device = own.device,
    )
}

/// Commands for a router: where it sends packets, each connection on one of the ways.
pub(crate) fn routes(fabric: &Fabric, router: Router) -> String {
    let addresses = fabric.addresses;
    let mut text = String::new();
    for (to, hops) in fabric.routes(router) {
        let to = match to {
            Destination::Rack(rack) => addresses.prefix(rack),
            Destination::Controller => addresses.alone(addresses.controller()),
        };
        text += &route(&to, &hops);
    }
    text
}

fn route(to: &str, hops: &[Hop]) -> String {
    match hops {
        [] => format!("route replace unreachable {to}\n"),
        [hop] => format!(
            "route replace {to} via {} dev {} onlink\n",
            hop.via, hop.device
        ),
        hops => {
            let mut text = format!("route replace {to}");
            for hop in hops {
                let _ = write!(
                    text,
                    " nexthop via {} dev {} weight {} onlink",
                    hop.via, hop.device, hop.weight
                );
            }
            text + "\n"
        }
    }
}

/// Commands for a topmost router: its cable to the controller.
pub(crate) fn management(fabric: &Fabric, number: usize, controller_path: &str) -> String {
    let (own, other) = fabric.controller_link(number);
    format!(
        "link add name {} address {} mtu 1500 type veth peer name {} address {} netns {controller_path}\n{}",
        own.device,
        own.hardware,
        other.device,
        other.hardware,
        plugged_in(fabric.addresses, &own, &other)
    )
}

/// Commands for the management host.
pub(crate) fn controller(fabric: &Fabric) -> String {
    let mut text = "link set dev lo up\n".to_owned();
    for (number, _) in fabric.tops().enumerate() {
        let (other, own) = fabric.controller_link(number);
        text += &plugged_in(fabric.addresses, &own, &other);
    }
    text + &controller_routes(fabric)
}

/// Commands for the management host: the ways into every rack.
pub(crate) fn controller_routes(fabric: &Fabric) -> String {
    let racks = fabric.routers.iter().filter_map(|router| match router {
        Router::Leaf(rack) => Some(*rack),
        _ => None,
    });
    let own = fabric.addresses.controller();
    racks
        .map(|rack| {
            let hops = fabric.hops_from_controller(rack);
            let to = match hops.len() {
                0 => fabric.addresses.prefix(rack),
                _ => format!("{} src {own}", fabric.addresses.prefix(rack)),
            };
            route(&to, &hops)
        })
        .collect()
}

/// Commands for a leaf: cables to a host, and the ways to it.
pub(crate) fn host_cables(
    addresses: Addresses,
    rack: usize,
    host: &HostSpec,
    host_path: &str,
) -> String {
    let mut text = String::new();
    for member in 0..host.nic.lag_members {
        let _ = writeln!(
            text,
            "link add name {} address {} type veth peer name {} address {} netns {host_path}",
            port(host, member),
            hardware(rack, host, member, AtLeaf),
            interface(member),
            hardware(rack, host, member, AtHost),
        );
    }
    text + &leaf_mtu(host) + &leaf_port(addresses, rack, host)
}

/// Commands for a leaf: the MTU of a host's ports is the host's own.
pub(crate) fn leaf_mtu(host: &HostSpec) -> String {
    ports(host)
        .map(|port| format!("link set dev {port} mtu {}\n", host.nic.mtu_bytes))
        .collect()
}

/// Commands for a leaf: plugs a host's cables in or out. The kernel forgets routes over a link that
/// is down.
pub(crate) fn leaf_port(addresses: Addresses, rack: usize, host: &HostSpec) -> String {
    if !host.nic.link_up {
        return ports(host)
            .map(|port| format!("link set dev {port} down\n"))
            .collect();
    }
    let address = address(host);
    let mut text = String::new();
    for member in 0..host.nic.lag_members {
        let (port, hardware) = (port(host, member), hardware(rack, host, member, AtHost));
        let _ = writeln!(
            text,
            "link set dev {port} up\nneigh replace {address} lladdr {hardware} dev {port} nud permanent"
        );
    }
    // One port needs no gateway, and several must have one, which is the host itself.
    let ways: Vec<String> = match host.nic.lag_members {
        1 => ports(host).map(|port| format!("dev {port}")).collect(),
        _ => ports(host)
            .map(|port| format!("via {address} dev {port} onlink"))
            .collect(),
    };
    let (to, source) = (addresses.alone(address), addresses.gateway(rack));
    text + &format!("route replace {to} src {source} {}\n", any_of(&ways))
}

/// Commands for a host.
pub(crate) fn host_links(addresses: Addresses, rack: usize, host: &HostSpec) -> String {
    let own = no_doubt(addresses, address(host));
    let mut text = format!("link set dev lo up\naddress add {own} dev eth0\n");
    text += &host_devices(host);
    for member in 0..host.nic.lag_members {
        let device = interface(member);
        let _ = writeln!(
            text,
            "link set dev {device} up\nneigh replace {} lladdr {} dev {device} nud permanent",
            addresses.gateway(rack),
            hardware(rack, host, member, AtLeaf)
        );
    }
    text + &host_route(addresses, rack, host)
}

/// Command for a host: its way out, with the congestion control that its connections get. A
/// namespace's default may only be one that everybody is allowed, a route's may be any
/// (ip-route(8)).
pub(crate) fn host_route(addresses: Addresses, rack: usize, host: &HostSpec) -> String {
    let gateway = addresses.gateway(rack);
    let devices = (0..host.nic.lag_members).map(interface);
    let ways: Vec<String> = devices
        .map(|device| format!("via {gateway} dev {device} onlink"))
        .collect();
    format!(
        "route replace default src {}{} {}\n",
        address(host),
        congestion(host),
        any_of(&ways)
    )
}

/// Cubic, whatever this machine prefers, because clusters run it; none where the kernel has it not.
fn congestion(host: &HostSpec) -> String {
    let wanted = host.congestion_control.name();
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let is_there = available.is_ok_and(|names| names.split_whitespace().any(|n| n == wanted));
    match host.congestion_control == Default::default() && !is_there {
        true => String::new(),
        false => format!(" congctl {wanted}"),
    }
}

fn any_of(ways: &[String]) -> String {
    match ways {
        [way] => way.clone(),
        ways => ways.iter().map(|way| format!("nexthop {way} ")).collect(),
    }
}

/// Commands for a host: MTU, and the size of the bursts that its stack hands to its NIC.
pub(crate) fn host_devices(host: &HostSpec) -> String {
    let gso_bytes = segment_burst_bytes(host.nic.tx_bits_per_sec);
    let devices = (0..host.nic.lag_members).map(interface);
    devices
        .map(|device| {
            let mtu = host.nic.mtu_bytes;
            format!("link set dev {device} mtu {mtu} gso_max_size {gso_bytes}\n")
        })
        .collect()
}

/// An address that nobody else can have: IPv6 would look for another owner first.
fn no_doubt(addresses: Addresses, address: IpAddr) -> String {
    match address {
        IpAddr::V4(_) => addresses.alone(address),
        IpAddr::V6(_) => format!("{} nodad", addresses.alone(address)),
    }
}

#[derive(Clone, Copy)]
enum Side {
    AtLeaf,
    AtHost,
}
use Side::{AtHost, AtLeaf};

fn hardware(rack: usize, host: &HostSpec, member: u32, side: Side) -> String {
    let last = match side {
        AtLeaf => 1,
        AtHost => 2,
    };
    let host = host_number(address(host));
    format!("02:00:{rack:02x}:{host:02x}:{member:02x}:{last:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::LabSpec;

    #[test]
    fn nothing_but_the_benchmark_ranges_is_ever_addressed() {
        for family in ["ipv4", "ipv6"] {
            let text = format!(
                "name: t\nracks: 4\nhosts-per-rack: 2\nnic: 200M\npaths: 3\nlag-members: 2\naddress-family: {family}\n\
                 pods: [{{racks: 2, paths: 2}}, {{racks: 2, paths: 2}}]\n"
            );
            let spec = LabSpec::parse(&text, "t.yaml").unwrap();
            let count = check_addresses(&commands(&spec));
            assert!(count > 100, "{count}");
        }
    }

    fn commands(spec: &LabSpec) -> String {
        let fabric = Fabric::of(spec);
        let mut text = controller(&fabric) + &management(&fabric, 1, "/n");
        for router_of in fabric.routers.clone() {
            text += &links_up(&fabric, router_of, |_| "/n".into());
            text += &router(&fabric, router_of);
        }
        for (index, rack) in spec.topology.racks.iter().enumerate() {
            for host in &rack.hosts {
                text += &host_cables(fabric.addresses, index, host, "/n");
                text += &host_links(fabric.addresses, index, host);
            }
        }
        text
    }

    fn check_addresses(text: &str) -> usize {
        let words = text.split([' ', '\n', '/']);
        let addresses: Vec<IpAddr> = words.filter_map(|word| word.parse().ok()).collect();
        for address in &addresses {
            let is_inside = match address {
                IpAddr::V4(address) => matches!(address.octets(), [198, 18 | 19, ..]),
                IpAddr::V6(address) => address.segments()[..3] == [0x2001, 2, 0],
            };
            assert!(is_inside, "{address}");
        }
        addresses.len()
    }
}
