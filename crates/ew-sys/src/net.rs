//! Interfaces: addresses, MTU, link speed, driver, what virtual ones are made of.
//!
//! Read with getifaddrs, ioctls and netlink, which answer for the network namespace of the calling
//! thread. /sys would show the namespace it was mounted in.

use crate::link;
use ew_model::facts::InterfaceFacts;
use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// Drivers that report a constant instead of a link's speed.
const CONSTANT_SPEED_DRIVERS: [&str; 8] = [
    "veth", "tun", "bridge", "dummy", "ifb", "macvlan", "vxlan", "netkit",
];

pub(crate) const SIOCETHTOOL: u64 = 0x8946;
const ETHTOOL_GSET: u32 = 0x01;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const SPEED_UNKNOWN: u32 = u32::MAX;
const MEGABIT: f64 = 1e6;

/// An interface of the calling thread's network namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// What is recorded.
    pub facts: InterfaceFacts,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Whether it is up and sees a carrier, at this moment (`IFF_UP` and `IFF_LOWER_UP`,
    /// netdevice(7)). `facts.up` asks for `IFF_RUNNING`, which the kernel may clear up to a second
    /// later.
    pub carrier: bool,
}

/// All interfaces of the calling thread's network namespace, in kernel order.
///
/// # Errors
/// The system's, when no socket can be opened.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let socket = control_socket()?;
    let mut interfaces = names_and_addresses()?;
    // Kernels of sandboxes may not report; then nothing is known of kinds.
    let links = link::links().unwrap_or_default();
    for interface in &mut interfaces {
        describe(socket.as_raw_fd(), interface);
        if let Some(link) = links.get(&interface.facts.name) {
            interface.facts.kind.clone_from(&link.kind);
            interface.facts.lower.clone_from(&link.lower);
            interface.facts.tunnel = link.tunnel;
            interface.facts.bond.clone_from(&link.bond);
        }
    }
    Ok(interfaces)
}

/// Whether the interface that owns an address is up and sees a carrier. False when no interface
/// owns it.
///
/// # Errors
/// The system's, when the interfaces cannot be listed.
pub fn link_is_up(address: IpAddr) -> io::Result<bool> {
    let interfaces = names_and_addresses()?;
    // All of 127.0.0.0/8 is the loopback interface's, which lists one address of it.
    let owns =
        |i: &Interface| i.facts.addresses.contains(&address) || i.loopback && address.is_loopback();
    Ok(interfaces.iter().any(|i| owns(i) && i.carrier))
}

/// A socket to send ioctls through: any will do.
pub(crate) fn control_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .or_else(|_| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)))
}

fn names_and_addresses() -> io::Result<Vec<Interface>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `head` is a valid address for the list's address.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut entry = head;
    while !entry.is_null() {
        // SAFETY: `entry` is a node of the list, which lives until freeifaddrs below.
        let node = unsafe { &*entry };
        add_node(&mut found, node);
        entry = node.ifa_next;
    }
    // SAFETY: `head` came from getifaddrs and is freed once; nothing borrowed from it is left.
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

fn add_node(found: &mut Vec<Interface>, node: &libc::ifaddrs) {
    // SAFETY: getifaddrs gives every node a NUL-terminated name.
    let label = unsafe { CStr::from_ptr(node.ifa_name) }.to_string_lossy();
    // An IPv4 alias carries a label such as "eth0:1".
    let name = label.split(':').next().unwrap_or(&label);
    let index = match found.iter().position(|i| i.facts.name == name) {
        Some(index) => index,
        None => {
            found.push(Interface::default());
            found.len() - 1
        }
    };
    let interface = &mut found[index];
    name.clone_into(&mut interface.facts.name);
    let flags = node.ifa_flags;
    interface.loopback = flags & libc::IFF_LOOPBACK as u32 != 0;
    let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as u32;
    interface.facts.up = flags & wanted == wanted;
    let wanted = (libc::IFF_UP | libc::IFF_LOWER_UP) as u32;
    interface.carrier = flags & wanted == wanted;
    // SAFETY: the address is null or points at a sockaddr of its own family.
    if let Some(address) = unsafe { ip_of(node.ifa_addr) } {
        interface.facts.addresses.push(address);
        // SAFETY: as the address, and of the same family.
        let mask = unsafe { ip_of(node.ifa_netmask) };
        interface
            .facts
            .prefix_bits
            .push(mask.map_or(0, prefix_bits));
    }
}

fn prefix_bits(mask: IpAddr) -> u8 {
    let bits = match mask {
        IpAddr::V4(mask) => u32::from(mask).leading_ones(),
        IpAddr::V6(mask) => u128::from(mask).leading_ones(),
    };
    bits as u8
}

/// # Safety
/// `address` is null or points at a sockaddr of its family's type.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: not null, and a sockaddr by the caller's promise.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: by its family this is a sockaddr_in.
            let v4 = unsafe { &*address.cast::<libc::sockaddr_in>() };
            Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: by its family this is a sockaddr_in6.
            let v6 = unsafe { &*address.cast::<libc::sockaddr_in6>() };
            Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

fn describe(socket: RawFd, interface: &mut Interface) {
    let facts = &mut interface.facts;
    facts.mtu_bytes = mtu_bytes(socket, &facts.name);
    facts.driver = driver(socket, &facts.name);
    let Some(link) = link_settings(socket, &facts.name) else {
        return;
    };
    facts.duplex = duplex_word(link.duplex);
    facts.speed_bits_per_sec = speed_bits_per_sec(link.speed_mbit, facts.driver.as_deref());
}

fn speed_bits_per_sec(speed_mbit: u32, driver: Option<&str>) -> Option<f64> {
    let constant = driver.is_some_and(|d| CONSTANT_SPEED_DRIVERS.contains(&d));
    let known = speed_mbit != 0 && speed_mbit != SPEED_UNKNOWN && !constant;
    known.then(|| f64::from(speed_mbit) * MEGABIT)
}

fn duplex_word(duplex: u8) -> Option<String> {
    match duplex {
        0 => Some("half".to_owned()),
        1 => Some("full".to_owned()),
        _ => None,
    }
}

fn mtu_bytes(socket: RawFd, name: &str) -> Option<u32> {
    let mut request = named_request(name)?;
    // SAFETY: `request` is a valid ifreq with a terminated name; the kernel fills `ifru_mtu`.
    let status = unsafe { libc::ioctl(socket, libc::SIOCGIFMTU as _, &raw mut request) };
    if status < 0 {
        return None;
    }
    // SAFETY: after success the union contains the MTU.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

fn driver(socket: RawFd, name: &str) -> Option<String> {
    let mut information = DriverInformation::new();
    ethtool(socket, name, &mut information)?;
    let text = CStr::from_bytes_until_nul(&information.driver).ok()?;
    let text = text.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

struct Link {
    speed_mbit: u32,
    duplex: u8,
}

/// ETHTOOL_GLINKSETTINGS, for drivers that know only the older call ETHTOOL_GSET.
fn link_settings(socket: RawFd, name: &str) -> Option<Link> {
    let mut settings = LinkSettings::new(0);
    if ethtool(socket, name, &mut settings).is_none() {
        return old_link_settings(socket, name);
    }
    // The kernel answers the first call with the negated size of its link mode masks.
    if settings.mask_words < 0 {
        settings = LinkSettings::new(settings.mask_words.checked_neg()?);
        ethtool(socket, name, &mut settings)?;
    }
    Some(Link {
        speed_mbit: settings.speed,
        duplex: settings.duplex,
    })
}

fn old_link_settings(socket: RawFd, name: &str) -> Option<Link> {
    let mut settings = OldSettings {
        command: ETHTOOL_GSET,
        ..OldSettings::default()
    };
    ethtool(socket, name, &mut settings)?;
    let speed_mbit = u32::from(settings.speed_high) << 16 | u32::from(settings.speed);
    // 16-bit drivers report "unknown" with 65535.
    let unknown = speed_mbit == u32::from(u16::MAX);
    Some(Link {
        speed_mbit: if unknown { SPEED_UNKNOWN } else { speed_mbit },
        duplex: settings.duplex,
    })
}

fn ethtool<T: EthtoolBlock>(socket: RawFd, name: &str, block: &mut T) -> Option<()> {
    let mut request = named_request(name)?;
    request.ifr_ifru.ifru_data = std::ptr::from_mut(block).cast();
    // SAFETY: `block` starts with its command and is as large as that command's answer
    // (EthtoolBlock).
    let status = unsafe { libc::ioctl(socket, SIOCETHTOOL as _, &raw mut request) };
    (status >= 0).then_some(())
}

pub(crate) fn named_request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: ifreq is integers, arrays and a pointer: all zeroes are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

/// A block whose first field is an ethtool command and which is large enough for that command's
/// answer.
trait EthtoolBlock {}
impl EthtoolBlock for DriverInformation {}
impl EthtoolBlock for LinkSettings {}
impl EthtoolBlock for OldSettings {}

/// `struct ethtool_drvinfo` of include/uapi/linux/ethtool.h.
#[repr(C)]
struct DriverInformation {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

impl DriverInformation {
    fn new() -> Self {
        Self {
            command: ETHTOOL_GDRVINFO,
            driver: [0; 32],
            rest: [0; 160],
        }
    }
}

/// `struct ethtool_link_settings` with space for three masks of the most words the kernel can ask
/// for.
#[repr(C)]
struct LinkSettings {
    command: u32,
    speed: u32,
    duplex: u8,
    port_to_autonegotiation: [u8; 3],
    mdix: [u8; 3],
    mask_words: i8,
    transceiver_to_rate_matching: [u8; 4],
    reserved: [u32; 7],
    masks: [u32; 3 * 127],
}

impl LinkSettings {
    fn new(mask_words: i8) -> Self {
        Self {
            command: ETHTOOL_GLINKSETTINGS,
            speed: SPEED_UNKNOWN,
            duplex: u8::MAX,
            port_to_autonegotiation: [0; 3],
            mdix: [0; 3],
            mask_words,
            transceiver_to_rate_matching: [0; 4],
            reserved: [0; 7],
            masks: [0; 3 * 127],
        }
    }
}

/// `struct ethtool_cmd`.
#[derive(Default)]
#[repr(C)]
struct OldSettings {
    command: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port_to_mdio: [u8; 5],
    packets: [u32; 2],
    speed_high: u16,
    mdix: [u8; 2],
    partner_advertising: u32,
    reserved: [u32; 2],
}

const _: () = assert!(size_of::<DriverInformation>() == 196);
const _: () = assert!(size_of::<OldSettings>() == 44);
const _: () = assert!(size_of::<LinkSettings>() == 48 + 3 * 127 * 4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_found() {
        let interfaces = interfaces().unwrap();
        let loopback = interfaces.iter().find(|i| i.loopback).unwrap();
        assert_eq!(loopback.facts.name, "lo");
        assert!(
            loopback
                .facts
                .addresses
                .contains(&IpAddr::from(Ipv4Addr::LOCALHOST))
        );
        assert!(loopback.facts.mtu_bytes.is_some_and(|mtu| mtu >= 1280));
        assert_eq!(loopback.facts.speed_bits_per_sec, None);
    }

    #[test]
    fn a_link_is_up_only_where_an_interface_owns_the_address() {
        assert!(link_is_up(Ipv4Addr::new(127, 3, 2, 1).into()).unwrap());
        assert!(!link_is_up(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap());
    }

    #[test]
    fn names_are_unique() {
        let interfaces = interfaces().unwrap();
        for (index, interface) in interfaces.iter().enumerate() {
            assert!(
                interfaces[..index]
                    .iter()
                    .all(|i| i.facts.name != interface.facts.name)
            );
        }
    }

    #[test]
    fn constants_of_virtual_drivers_are_no_speed() {
        assert_eq!(speed_bits_per_sec(10_000, Some("veth")), None);
        assert_eq!(speed_bits_per_sec(SPEED_UNKNOWN, Some("virtio_net")), None);
        assert_eq!(speed_bits_per_sec(0, Some("e1000e")), None);
        assert_eq!(speed_bits_per_sec(25_000, Some("mlx5_core")), Some(25e9));
        assert_eq!(speed_bits_per_sec(1000, None), Some(1e9));
    }

    #[test]
    fn a_name_too_long_for_the_kernel_is_refused() {
        assert!(named_request("a-name-of-more-than-fifteen").is_none());
        assert!(named_request("eth0").is_some());
    }
}
