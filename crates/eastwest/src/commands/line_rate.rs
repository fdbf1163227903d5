//! `eastwest line-rate`: a link's maximum goodput, step by step.

use crate::exit::{Failure, Outcome};
use crate::output::{self, PlainArgs};
use anyhow::{Context, anyhow, bail};
use clap::{ArgAction, Args, ValueEnum};
use ew_model::ceiling::{Encapsulation, Framing, LinkCounting, Transport, Tunnel, TunnelKind};
use ew_model::facts::{HostFacts, InterfaceFacts};
use ew_model::limit::Limit;
use ew_model::units;
use std::path::Path;
use std::process::ExitCode;

/// Ethernet's.
const USUAL_MTU_BYTES: u32 = 1500;

#[derive(Debug, Args)]
pub(crate) struct LineRateArgs {
    /// The link's rate, for example 10G; with --interface only where the host does not know it
    #[arg(long, value_name = "RATE", value_parser = units::parse_bits_per_sec, required_unless_present = "interface")]
    link: Option<f64>,
    /// The link's MTU, outside of all tunnels [default: 1500]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65_536), conflicts_with = "interface")]
    mtu: Option<u32>,
    /// Take MTU, rate, tags and tunnel from an interface of this host
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    #[command(flatten)]
    packet: PacketArgs,
    #[command(flatten)]
    tunnel: TunnelArgs,
    /// Round-trip time for the bandwidth-delay product and the socket buffers
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = units::parse_duration_ns)]
    rtt: u64,
    /// Calculate the message rate and goodput of messages of this size, one per packet
    #[arg(long, value_name = "SIZE", value_parser = units::parse_bytes)]
    message: Option<u64>,
    /// Count frames as Linux shapers do: without preamble, check sequence and gap
    #[arg(long)]
    shaped: bool,
    #[command(flatten)]
    plain: PlainArgs,
}

/// What the packets are.
#[derive(Debug, Args)]
struct PacketArgs {
    /// IPv6 instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// UDP instead of TCP
    #[arg(long)]
    udp: bool,
    /// TCP with timestamps, as is the default, whatever this host has set
    #[arg(long, conflicts_with_all = ["no_timestamps", "udp"])]
    timestamps: bool,
    /// TCP without timestamps
    #[arg(long, conflicts_with = "udp")]
    no_timestamps: bool,
    /// A VLAN tag; twice for two
    #[arg(long, action = ArgAction::Count)]
    vlan: u8,
    /// Two VLAN tags (802.1ad)
    #[arg(long, conflicts_with = "vlan")]
    qinq: bool,
}

/// What is around them.
#[derive(Debug, Args)]
#[group(skip)]
struct TunnelArgs {
    /// A tunnel around the packets; repeat for a tunnel in a tunnel, the innermost first
    #[arg(long = "tunnel", value_name = "NAME")]
    named: Vec<TunnelName>,
    /// The same as --tunnel vxlan
    #[arg(long, hide = true)]
    vxlan: bool,
    /// The same as --tunnel geneve
    #[arg(long, hide = true)]
    geneve: bool,
    /// The same as --tunnel gre
    #[arg(long, hide = true)]
    gre: bool,
    /// The same as --tunnel wireguard, outside of the others
    #[arg(long, hide = true)]
    wireguard: bool,
    /// The same as --tunnel ipsec, outside of the others
    #[arg(long, hide = true)]
    ipsec: bool,
    /// Tunnels run over IPv6
    #[arg(long)]
    outer_ipv6: bool,
    /// Something else that adds so many bytes to every packet
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tunnel_bytes: Option<u32>,
    /// The MTU inside the tunnels, where it is not all that fits
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65_536))]
    inner_mtu: Option<u32>,
}

/// `--tunnel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TunnelName {
    /// Ethernet in UDP: 50 bytes
    Vxlan,
    /// Ethernet in UDP: 50 bytes without options
    Geneve,
    /// IP in GRE: 24 bytes
    Gre,
    /// Ethernet in GRE: 38 bytes
    Gretap,
    /// IP in IP: 20 bytes
    Ipip,
    /// 60 bytes over IPv4
    Wireguard,
    /// ESP in tunnel mode with AES-GCM: 54 bytes and padding
    Ipsec,
}

pub(crate) fn run(args: &LineRateArgs) -> Outcome {
    let link = link(args).map_err(Failure::usage)?;
    let limit = Limit::new(link.bits_per_sec, &link.framing, args.rtt, args.message);
    if link.framing.payload_bytes() == 0 {
        let mtu = link.framing.mtu_bytes;
        let error = anyhow!(
            "an MTU of {mtu} bytes inside the tunnels leaves no space for payload; give a greater --mtu or fewer tunnels"
        );
        return Err(Failure::usage(error));
    }
    let text = match args.plain.is_json() {
        true => ew_report::limit_json(&limit, &link.notes).map_err(Failure::failed)?,
        false => {
            let style = output::text_style(output::ColorChoice::Never);
            ew_report::limit_text(&limit, &link.notes, &style)
        }
    };
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}

/// A link, and notes on how it is known.
struct Link {
    bits_per_sec: f64,
    framing: Framing,
    notes: Vec<String>,
}

fn link(args: &LineRateArgs) -> anyhow::Result<Link> {
    match (&args.interface, args.link) {
        (Some(name), stated) => link_of_interface(args, name, stated),
        (None, Some(bits_per_sec)) => Ok(link_as_said(args, bits_per_sec)),
        (None, None) => bail!("no rate: give --link, for example --link 10G"),
    }
}

fn link_as_said(args: &LineRateArgs, bits_per_sec: f64) -> Link {
    let tunnels = args.tunnel.tunnels();
    let fits = tunnels
        .iter()
        .rev()
        .fold(args.mtu.unwrap_or(USUAL_MTU_BYTES), |mtu, tunnel| {
            tunnel.inner_mtu_bytes(mtu)
        });
    let mut notes = Vec::new();
    let mtu_bytes = args.tunnel.inner_mtu.unwrap_or(fits);
    if mtu_bytes > fits {
        notes.push(format!(
            "Packets of {mtu_bytes} bytes do not fit: the tunnels leave space for {fits}, so they would be fragmented or dropped."
        ));
    } else if !tunnels.is_empty() {
        notes.push(format!("MTU inside the tunnels: {mtu_bytes}."));
    }
    Link {
        bits_per_sec,
        framing: Framing {
            mtu_bytes,
            ipv6: args.packet.ipv6,
            transport: args.packet.transport(true),
            tunnels,
            vlan_tags: args.packet.vlan_tags(),
            counting: args.counting(),
        },
        notes,
    }
}

fn link_of_interface(args: &LineRateArgs, name: &str, stated: Option<f64>) -> anyhow::Result<Link> {
    let host = HostFacts {
        interfaces: ew_sys::net::interfaces()
            .context("this host's interfaces cannot be listed")?
            .into_iter()
            .map(|interface| interface.facts)
            .collect(),
        ..HostFacts::default()
    };
    let interface = named(&host, name)?;
    let way = host.way_down(interface);
    let around = Encapsulation::of(way.iter().copied());
    let known = way.iter().find_map(|below| below.speed_bits_per_sec);
    let Some(bits_per_sec) = stated.or(known) else {
        bail!(
            "{name} ({}) knows no link speed; state it, for example --link 10G",
            kind_words(interface)
        );
    };
    let mtu_bytes = interface
        .mtu_bytes
        .with_context(|| format!("{name} has no MTU"))?;
    let only_ipv6 = !interface.addresses.iter().any(std::net::IpAddr::is_ipv4)
        && interface.addresses.iter().any(is_global_ipv6);
    let mut tunnels = around.tunnels;
    tunnels.extend(args.tunnel.tunnels());
    let mut notes = vec![found(&way, stated.is_some())];
    notes.extend(doubts(interface));
    notes.extend(buffers());
    Ok(Link {
        bits_per_sec,
        framing: Framing {
            mtu_bytes: args.tunnel.inner_mtu.unwrap_or(mtu_bytes),
            ipv6: args.packet.ipv6 || only_ipv6,
            transport: args.packet.transport(timestamps_are_on()),
            tunnels,
            vlan_tags: around.vlan_tags + args.packet.vlan_tags(),
            counting: args.counting(),
        },
        notes,
    })
}

fn named<'a>(host: &'a HostFacts, name: &str) -> anyhow::Result<&'a InterfaceFacts> {
    let names = || {
        let names: Vec<&str> = host.interfaces.iter().map(|i| i.name.as_str()).collect();
        names.join(", ")
    };
    let found = host.interfaces.iter().find(|i| i.name == name);
    found.with_context(|| format!("this host has no interface `{name}`; it has {}", names()))
}

/// "Found: vx0 (vxlan, MTU 1450) over eth0 (mlx5_core, MTU 1500, 10.0 Gb/s)."
fn found(way: &[&InterfaceFacts], rate_is_stated: bool) -> String {
    let one = |interface: &&InterfaceFacts| {
        let mut parts = vec![kind_words(interface)];
        parts.extend(interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
        parts.extend(interface.speed_bits_per_sec.map(units::format_bits_per_sec));
        format!("{} ({})", interface.name, parts.join(", "))
    };
    let way: Vec<String> = way.iter().map(one).collect();
    let rate = if rate_is_stated {
        "; the rate is configured"
    } else {
        ""
    };
    format!("Found: {}{rate}.", way.join(" over "))
}

fn kind_words(interface: &InterfaceFacts) -> String {
    let kind = interface.kind.as_deref().or(interface.driver.as_deref());
    kind.unwrap_or("kind unknown").to_owned()
}

/// What cannot be seen from where we are.
fn doubts(interface: &InterfaceFacts) -> Option<String> {
    let name = &interface.name;
    match interface.kind.as_deref()? {
        "veth" | "netkit" => Some(format!(
            "{name} leads out of this network namespace, as a pod's does: what the node puts around packets is not to be seen \
             from here. An MTU of 1450 speaks of vxlan or geneve below, 1480 of ipip, 1420 or 1440 of wireguard: add it by --tunnel."
        )),
        "wireguard" => Some(format!(
            "Whether {name}'s peers are reached over IPv6 is visible to root only: taken as IPv4; give --link and --tunnel \
             wireguard --outer-ipv6 where it is not."
        )),
        "xfrm" | "vti" | "vti6" => Some(format!(
            "{name}'s cipher is not asked for: taken as ESP with AES-GCM."
        )),
        "geneve" => Some(format!("{name} may add options: taken as none.")),
        "bridge" => Some(format!(
            "{name} passes packets on to its ports: where they leave tagged or by a tunnel, name that port."
        )),
        _ => None,
    }
}

/// What the host allows now, next to what is needed.
fn buffers() -> Option<String> {
    let read = |name: &str| {
        let path = Path::new("/proc/sys/net").join(name);
        let text = std::fs::read_to_string(path).ok()?;
        text.split_whitespace().last().map(str::to_owned)
    };
    Some(format!(
        "This host allows: tcp_rmem {}, tcp_wmem {}, rmem_max {}, wmem_max {} bytes.",
        read("ipv4/tcp_rmem")?,
        read("ipv4/tcp_wmem")?,
        read("core/rmem_max").unwrap_or("-".into()),
        read("core/wmem_max").unwrap_or("-".into())
    ))
}

/// Linux: 0 is off.
fn timestamps_are_on() -> bool {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps");
    text.map_or(true, |text| text.trim() != "0")
}

fn is_global_ipv6(address: &std::net::IpAddr) -> bool {
    matches!(address, std::net::IpAddr::V6(v6) if !v6.is_unicast_link_local())
}

impl LineRateArgs {
    fn counting(&self) -> LinkCounting {
        match self.shaped {
            true => LinkCounting::EthernetHeader,
            false => LinkCounting::OnTheWire,
        }
    }
}

impl PacketArgs {
    fn transport(&self, usual_timestamps: bool) -> Transport {
        match self.udp {
            true => Transport::Udp,
            false => Transport::Tcp {
                timestamps: self.timestamps || (usual_timestamps && !self.no_timestamps),
            },
        }
    }

    fn vlan_tags(&self) -> u32 {
        if self.qinq { 2 } else { u32::from(self.vlan) }
    }
}

impl TunnelArgs {
    /// The innermost first: those in the order given, then overlays, then what encrypts.
    fn tunnels(&self) -> Vec<Tunnel> {
        let named = self.named.iter().map(|name| name.kind());
        let flags = [
            (self.vxlan, TunnelKind::Vxlan),
            (self.geneve, TunnelKind::Geneve),
            (self.gre, TunnelKind::Gre),
            (self.wireguard, TunnelKind::Wireguard),
            (self.ipsec, TunnelKind::Ipsec),
        ];
        let flagged = flags
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, kind)| kind);
        let mut tunnels: Vec<Tunnel> = named
            .chain(flagged)
            .map(|kind| Tunnel {
                outer_ipv6: self.outer_ipv6,
                ..Tunnel::of(kind)
            })
            .collect();
        tunnels.extend(self.tunnel_bytes.map(|bytes| Tunnel {
            extra_bytes: bytes,
            ..Tunnel::of(TunnelKind::Other)
        }));
        tunnels
    }
}

impl TunnelName {
    fn kind(self) -> TunnelKind {
        match self {
            Self::Vxlan => TunnelKind::Vxlan,
            Self::Geneve => TunnelKind::Geneve,
            Self::Gre => TunnelKind::Gre,
            Self::Gretap => TunnelKind::Gretap,
            Self::Ipip => TunnelKind::Ipip,
            Self::Wireguard => TunnelKind::Wireguard,
            Self::Ipsec => TunnelKind::Ipsec,
        }
    }
}
