//! What virtual links are made of, by `RTM_GETLINK` (include/uapi/linux/rtnetlink.h, if_link.h,
//! if_tunnel.h).

use crate::netlink::{Netlink, attributes, u32_at};
use ew_model::ceiling::{Tunnel, TunnelKind};
use ew_model::facts::Bond;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// `struct ifinfomsg`.
const MESSAGE_BYTES: usize = 16;

const ATTRIBUTE_NAME: u16 = 3;
const ATTRIBUTE_LINK: u16 = 5;
const ATTRIBUTE_MASTER: u16 = 10;
const ATTRIBUTE_LINKINFO: u16 = 18;
/// There when `ATTRIBUTE_LINK` counts in another network namespace.
const ATTRIBUTE_LINK_NETNSID: u16 = 37;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;

/// `IFLA_BOND_MODE` and `IFLA_BOND_XMIT_HASH_POLICY`, a byte each.
const BOND_MODE: u16 = 1;
const BOND_HASH_POLICY: u16 = 14;
/// `BOND_MODE_*` and `BOND_XMIT_POLICY_*` of if_bonding.h, by number, as sysfs spells them.
const BOND_MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];
const BOND_HASH_POLICIES: [&str; 6] = [
    "layer2",
    "layer3+4",
    "layer2+3",
    "encap2+3",
    "encap3+4",
    "vlan+srcmac",
];

const VXLAN_LINK: u16 = 3;
const VXLAN_GROUP6: u16 = 16;
const VXLAN_LOCAL6: u16 = 17;
const GENEVE_REMOTE6: u16 = 7;
/// `IFLA_GRE_LINK`, `IFLA_IPTUN_LINK`, `IFLA_VTI_LINK` and `IFLA_XFRM_LINK` alike.
const TUNNEL_LINK: u16 = 1;
const GRE_SENT_FLAGS: u16 = 3;
/// `GRE_CSUM`, `GRE_KEY` and `GRE_SEQ`: each takes a word of its own (RFC 2784, RFC 2890).
const GRE_OPTIONS: [u16; 3] = [0x8000, 0x2000, 0x1000];
const GRE_OPTION_BYTES: u32 = 4;

/// A link of the calling thread's network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// `IFLA_INFO_KIND`; `None` for ports of a NIC.
    pub(crate) kind: Option<String>,
    /// The interface below, where it is in this namespace.
    pub(crate) lower: Option<String>,
    /// What it puts around packets.
    pub(crate) tunnel: Option<Tunnel>,
    /// What it consists of.
    pub(crate) bond: Option<Bond>,
}

/// All links by name.
///
/// # Errors
/// The system's.
pub(crate) fn links() -> io::Result<BTreeMap<String, Link>> {
    let mut found: Vec<RawLink> = Vec::new();
    Netlink::open(libc::NETLINK_ROUTE)?.dump(
        RTM_GETLINK,
        &[0; MESSAGE_BYTES],
        &mut |kind, body| {
            if kind == RTM_NEWLINK {
                found.extend(raw_link(body));
            }
        },
    )?;
    Ok(joined(found))
}

pub(crate) fn joined(found: Vec<RawLink>) -> BTreeMap<String, Link> {
    let names: BTreeMap<u32, String> = found.iter().map(|l| (l.index, l.name.clone())).collect();
    let mut members: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for link in &found {
        if let Some(master) = link.master {
            members.entry(master).or_default().push(link.name.clone());
        }
    }
    let named = found.into_iter().map(|raw| {
        let lower = raw.lower.filter(|lower| *lower != raw.index);
        let members = members.remove(&raw.index).unwrap_or_default();
        let link = Link {
            lower: lower.and_then(|lower| names.get(&lower).cloned()),
            tunnel: raw.tunnel,
            kind: raw.kind,
            bond: raw.bond.map(|bond| Bond { members, ..bond }),
        };
        (raw.name, link)
    });
    named.collect()
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RawLink {
    index: u32,
    name: String,
    kind: Option<String>,
    lower: Option<u32>,
    master: Option<u32>,
    tunnel: Option<Tunnel>,
    /// Without its members.
    bond: Option<Bond>,
}

pub(crate) fn raw_link(body: &[u8]) -> Option<RawLink> {
    let mut link = RawLink {
        index: u32_at(body, 4)?,
        ..RawLink::default()
    };
    let (mut below, mut is_elsewhere) = (None, false);
    let mut device = None;
    for (attribute, value) in attributes(body.get(MESSAGE_BYTES..)?) {
        match attribute {
            ATTRIBUTE_NAME => link.name = text(value)?,
            ATTRIBUTE_LINK => below = u32_at(value, 0),
            ATTRIBUTE_MASTER => link.master = u32_at(value, 0).filter(|index| *index != 0),
            ATTRIBUTE_LINK_NETNSID => is_elsewhere = true,
            ATTRIBUTE_LINKINFO => {
                link.kind = find(value, INFO_KIND).and_then(text);
                let kind = link.kind.as_deref().unwrap_or_default();
                let data = find(value, INFO_DATA).unwrap_or_default();
                link.tunnel = tunnel(kind, data);
                link.bond = bond(kind, data);
                device = tunnel_device(kind, data);
            }
            _ => {}
        }
    }
    // A veth's other end is next to it, not below it.
    let is_below = !is_elsewhere && link.kind.as_deref() != Some("veth");
    link.lower = device.or(below.filter(|_| is_below)).filter(|i| *i != 0);
    (!link.name.is_empty()).then_some(link)
}

/// What a kind of link puts around packets. Whether WireGuard's peers are reached over IPv6 is not
/// reported without privilege: IPv4 is assumed. An xfrm or vti interface is taken for ESP with
/// AES-GCM, the typical choice.
fn tunnel(kind: &str, data: &[u8]) -> Option<Tunnel> {
    let (kind, outer_ipv6) = match kind {
        "vxlan" => (
            TunnelKind::Vxlan,
            is_set(find(data, VXLAN_GROUP6)) || is_set(find(data, VXLAN_LOCAL6)),
        ),
        "geneve" => (TunnelKind::Geneve, is_set(find(data, GENEVE_REMOTE6))),
        "gre" => (TunnelKind::Gre, false),
        "ip6gre" => (TunnelKind::Gre, true),
        "gretap" => (TunnelKind::Gretap, false),
        "ip6gretap" => (TunnelKind::Gretap, true),
        "ipip" | "sit" => (TunnelKind::Ipip, false),
        "ip6tnl" => (TunnelKind::Ipip, true),
        "wireguard" => (TunnelKind::Wireguard, false),
        "xfrm" | "vti" => (TunnelKind::Ipsec, false),
        "vti6" => (TunnelKind::Ipsec, true),
        _ => return None,
    };
    let is_gre = matches!(kind, TunnelKind::Gre | TunnelKind::Gretap);
    Some(Tunnel {
        kind,
        outer_ipv6,
        extra_bytes: if is_gre { gre_option_bytes(data) } else { 0 },
    })
}

fn bond(kind: &str, data: &[u8]) -> Option<Bond> {
    let word = |attribute: u16, words: &[&str]| {
        let number = *find(data, attribute)?.first()?;
        words
            .get(usize::from(number))
            .map(|word| (*word).to_owned())
    };
    matches!(kind, "bond" | "team").then(|| Bond {
        members: Vec::new(),
        mode: word(BOND_MODE, &BOND_MODES).filter(|_| kind == "bond"),
        hash_policy: word(BOND_HASH_POLICY, &BOND_HASH_POLICIES).filter(|_| kind == "bond"),
    })
}

/// The interface that a tunnel's outer packets are bound to.
fn tunnel_device(kind: &str, data: &[u8]) -> Option<u32> {
    let attribute = match kind {
        "vxlan" => VXLAN_LINK,
        "gre" | "ip6gre" | "gretap" | "ip6gretap" | "ipip" | "sit" | "ip6tnl" | "xfrm" | "vti"
        | "vti6" => TUNNEL_LINK,
        _ => return None,
    };
    u32_at(find(data, attribute)?, 0).filter(|index| *index != 0)
}

fn gre_option_bytes(data: &[u8]) -> u32 {
    let flags =
        find(data, GRE_SENT_FLAGS).and_then(|value| Some([*value.first()?, *value.get(1)?]));
    let flags = flags.map_or(0, u16::from_be_bytes);
    let options = GRE_OPTIONS.iter().filter(|option| flags & **option != 0);
    options.count() as u32 * GRE_OPTION_BYTES
}

/// Whether an address is there and not "any".
fn is_set(address: Option<&[u8]>) -> bool {
    address.is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0))
}

fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes)
        .find(|(kind, _)| *kind == wanted)
        .map(|(_, value)| value)
}

fn text(value: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(value).ok()?;
    Some(text.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: &str, data: &[u8], more: &[u8]) -> Vec<u8> {
        let mut body = vec![0; MESSAGE_BYTES];
        body[4..8].copy_from_slice(&9_u32.to_ne_bytes());
        body.extend(attribute(ATTRIBUTE_NAME, b"tun9\0"));
        body.extend(more);
        let info = [
            attribute(INFO_KIND, format!("{kind}\0").as_bytes()),
            attribute(INFO_DATA, data),
        ];
        body.extend(attribute(ATTRIBUTE_LINKINFO, &info.concat()));
        body
    }

    #[test]
    fn a_vxlan_over_ipv6_is_bound_to_its_device() {
        let data = [
            attribute(VXLAN_LINK, &2_u32.to_ne_bytes()),
            attribute(VXLAN_LOCAL6, &[0xfd; 16]),
        ];
        let link = raw_link(&message("vxlan", &data.concat(), &[])).unwrap();
        assert_eq!((link.name.as_str(), link.index), ("tun9", 9));
        assert_eq!(link.lower, Some(2));
        let tunnel = link.tunnel.unwrap();
        assert_eq!((tunnel.kind, tunnel.outer_ipv6), (TunnelKind::Vxlan, true));
        let any = attribute(VXLAN_GROUP6, &[0; 16]);
        let link = raw_link(&message("vxlan", &any, &[])).unwrap();
        assert!(!link.tunnel.unwrap().outer_ipv6, "the address is `any`");
    }

    #[test]
    fn geneve_and_wireguard_are_known_without_a_kernel_that_has_them() {
        let tunnel = |kind: &str, data: &[u8]| raw_link(&message(kind, data, &[])).unwrap().tunnel;
        let geneve = tunnel("geneve", &attribute(GENEVE_REMOTE6, &[0xfd; 16])).unwrap();
        assert_eq!((geneve.kind, geneve.outer_ipv6), (TunnelKind::Geneve, true));
        assert!(!tunnel("geneve", &[]).unwrap().outer_ipv6);
        let wireguard = tunnel("wireguard", &[]).unwrap();
        assert_eq!(wireguard, Tunnel::of(TunnelKind::Wireguard));
        assert_eq!(tunnel("bridge", &[]), None);
    }

    #[test]
    fn a_bond_has_members_a_mode_and_a_policy() {
        let data = [
            attribute(BOND_MODE, &[4]),
            attribute(BOND_HASH_POLICY, &[1]),
        ];
        let bond = raw_link(&message("bond", &data.concat(), &[])).unwrap();
        let member = |index: u32, name: &str| RawLink {
            index,
            name: name.into(),
            master: Some(9),
            ..RawLink::default()
        };
        let links = joined(vec![member(2, "eth0"), bond, member(3, "eth1")]);
        let expected = Bond {
            members: vec!["eth0".into(), "eth1".into()],
            mode: Some("802.3ad".into()),
            hash_policy: Some("layer3+4".into()),
        };
        assert_eq!(links["tun9"].bond, Some(expected));
        assert_eq!(links["eth0"].bond, None);
        let unknown = attribute(BOND_MODE, &[77]);
        let bond = raw_link(&message("bond", &unknown, &[])).unwrap().bond;
        assert_eq!(bond.unwrap().mode, None);
        let master = attribute(ATTRIBUTE_MASTER, &9_u32.to_ne_bytes());
        let port = raw_link(&message("veth", &[], &master)).unwrap();
        assert_eq!(port.master, Some(9));
    }

    #[test]
    fn options_of_gre_take_words() {
        let data = attribute(GRE_SENT_FLAGS, &0xb000_u16.to_be_bytes());
        let link = raw_link(&message("gretap", &data, &[])).unwrap();
        assert_eq!(link.tunnel.unwrap().extra_bytes, 12);
        let link = raw_link(&message("gre", &[], &[])).unwrap();
        assert_eq!(link.tunnel.unwrap().extra_bytes, 0);
    }

    #[test]
    fn what_is_in_another_namespace_or_beside_is_not_below() {
        let below = attribute(ATTRIBUTE_LINK, &2_u32.to_ne_bytes());
        let of = |kind: &str, more: &[u8]| raw_link(&message(kind, &[], more)).unwrap();
        let vlan = of("vlan", &below);
        assert_eq!((vlan.lower, vlan.tunnel), (Some(2), None));
        let elsewhere = [below.clone(), attribute(ATTRIBUTE_LINK_NETNSID, &[0; 4])];
        assert_eq!(of("macvlan", &elsewhere.concat()).lower, None);
        assert_eq!(of("veth", &below).lower, None);
    }

    #[test]
    fn cut_messages_are_left_out() {
        let whole = message("vxlan", &[], &[]);
        for length in 0..MESSAGE_BYTES {
            assert_eq!(raw_link(&whole[..length]), None);
        }
        for length in MESSAGE_BYTES..whole.len() {
            let _ = raw_link(&whole[..length]);
        }
    }

    #[test]
    fn the_kernel_answers() {
        let links = links().unwrap();
        assert_eq!(links.get("lo"), Some(&Link::default()));
    }
}
