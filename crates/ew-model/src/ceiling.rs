//! How much of a link's rate can be payload, and what else follows from rate, frame and round trip:
//! pure calculation.
//!
//! Every header is a [`Layer`] with its size and its source. All that uses a protocol's efficiency,
//! from the expectation of a run to `eastwest line-rate`, takes it from here.

pub use crate::tunnel::{Tunnel, TunnelKind};

use crate::facts::InterfaceFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Preamble 7 and start frame delimiter 1 (IEEE 802.3, clause 3.2.1 and 3.2.2).
const PREAMBLE_BYTES: u32 = 8;
/// Two addresses and the type (IEEE 802.3, clause 3.1.1).
const ETHERNET_BYTES: u32 = 14;
/// A tag of IEEE 802.1Q, clause 9.3.
const VLAN_TAG_BYTES: u32 = 4;
/// Frame check sequence (IEEE 802.3, clause 3.2.9).
const CHECK_BYTES: u32 = 4;
/// Min gap between packets, 96 bit times (IEEE 802.3, table 4-2).
const GAP_BYTES: u32 = 12;
/// Minimum-size frame from addresses to check sequence, 512 bits (IEEE 802.3, table 4-2).
const MIN_FRAME_BYTES: u32 = 64;
const UDP_BYTES: u32 = 8;
const TCP_BYTES: u32 = 20;
/// 10 bytes, padded to a multiple of 4 (RFC 7323, appendix A).
const TIMESTAMPS_BYTES: u32 = 12;
/// ESP's integrity check value with AES-GCM (RFC 4106, section 6).
const ESP_CHECK_BYTES: u32 = 16;
/// The authentication tag of ChaCha20-Poly1305 (RFC 8439, section 2.8).
const WIREGUARD_TAG_BYTES: u32 = 16;
/// WireGuard pads what it carries to multiples of this, but not beyond its MTU (WireGuard, section
/// 5.4.6).
const WIREGUARD_BLOCK_BYTES: u32 = 16;
/// Identification header of an IPv6 fragment (RFC 8200, section 4.5).
const IPV6_FRAGMENT_BYTES: u32 = 8;

/// What a packet of a flow looks like on a link.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Framing {
    /// Max packet of the network layer that the flow's own interface takes: inside all
    /// tunnels.
    pub mtu_bytes: u32,
    /// Whether the flow's packets are IPv6; else IPv4.
    pub ipv6: bool,
    /// What they carry.
    pub transport: Transport,
    /// What is put around them, the innermost first.
    pub tunnels: Vec<Tunnel>,
    /// VLAN tags of the frame on the link: 1 is 802.1Q, 2 is 802.1ad (QinQ).
    pub vlan_tags: u32,
    /// Which bytes the link's rate counts.
    pub counting: LinkCounting,
}

/// The protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP (RFC 9293).
    Tcp {
        /// Whether every segment carries the timestamps option (RFC 7323): Linux' default.
        timestamps: bool,
    },
    /// UDP (RFC 768).
    Udp,
}

/// Which bytes of a frame a link's rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkCounting {
    /// The frame with its 14-byte Ethernet header, without tags, check sequence, preamble and gap:
    /// how Linux queueing disciplines count (`qdisc_pkt_len`, which is `skb->len` at the device),
    /// and so tbf and the lab.
    EthernetHeader,
    /// All that passes the wire: a physical port's line rate.
    OnTheWire,
}

/// What interfaces put around a flow's packets on their way down to a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Encapsulation {
    /// The innermost first.
    pub tunnels: Vec<Tunnel>,
    /// VLAN tags outside of all tunnels.
    pub vlan_tags: u32,
}

/// One part of what passes a link for a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// For example "TCP header".
    pub name: &'static str,
    /// Its size.
    pub bytes: u32,
    /// Where that is laid down.
    pub source: &'static str,
    /// Whether the link's rate counts it.
    pub counted: bool,
}

/// A packet, from the first byte that passes to the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packet {
    /// In order of passing.
    pub layers: Vec<Layer>,
    /// Payload of the transport.
    pub payload_bytes: u32,
    /// What the link's rate counts.
    pub counted_bytes: u32,
    /// The frame from addresses to check sequence.
    pub frame_bytes: u32,
}

/// What a message costs that leaves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MessageCost {
    /// Its payload.
    pub message_bytes: u64,
    /// Packets it takes: segments of TCP, or fragments of a datagram.
    pub packets: u64,
    /// What the link's rate counts.
    pub counted_bytes: u64,
}

impl Encapsulation {
    /// From an interface and those below it, the highest first. A tag inside a tunnel is part of
    /// what the tunnel carries.
    #[must_use]
    pub fn of<'a>(way_down: impl IntoIterator<Item = &'a InterfaceFacts>) -> Self {
        let mut all = Self::default();
        for interface in way_down {
            if interface.kind.as_deref() == Some("vlan") {
                all.vlan_tags += 1;
            }
            let Some(tunnel) = interface.tunnel else {
                continue;
            };
            let tags = std::mem::take(&mut all.vlan_tags);
            all.tunnels.push(Tunnel {
                extra_bytes: tunnel.extra_bytes + tags * VLAN_TAG_BYTES,
                ..tunnel
            });
        }
        all
    }
}

impl Framing {
    /// TCP over IPv4 with timestamps, nothing around it, on a wire: 1448 of 1538 bytes at MTU 1500.
    #[must_use]
    pub fn plain(mtu_bytes: u32) -> Self {
        Self {
            mtu_bytes,
            ipv6: false,
            transport: Transport::Tcp { timestamps: true },
            tunnels: Vec::new(),
            vlan_tags: 0,
            counting: LinkCounting::OnTheWire,
        }
    }

    /// Payload of a full packet: TCP's max segment, or UDP's largest datagram that is not
    /// fragmented. 0 when the MTU contains no payload.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        let headers = bytes_of(&self.ip_headers());
        self.mtu_bytes.saturating_sub(headers)
    }

    /// A full packet.
    #[must_use]
    pub fn full_packet(&self) -> Packet {
        self.packet(self.payload_bytes())
    }

    /// Payload over counted bytes of full packets, 0 to 1. Acknowledgements in the other direction
    /// are not counted.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        let packet = self.full_packet();
        f64::from(packet.payload_bytes) / f64::from(packet.counted_bytes)
    }

    /// The minimum-size frame of the link: 64 bytes, whatever the flow's packets carry.
    #[must_use]
    pub fn min_packet(&self) -> Packet {
        let min = Self {
            transport: Transport::Udp,
            counting: self.counting,
            ..Self::plain(self.mtu_bytes)
        };
        min.packet(0)
    }

    /// A packet with this payload.
    #[must_use]
    pub fn packet(&self, payload_bytes: u32) -> Packet {
        let mut front = self.ip_headers();
        let mut back: Vec<Layer> = Vec::new();
        let mut full = self.mtu_bytes;
        for tunnel in &self.tunnels {
            let inside = bytes_of(&front) + payload_bytes + bytes_of(&back);
            let (headers, trailers) = tunnel.around(inside, full);
            full = tunnel.carried_bytes(full);
            front.splice(0..0, headers);
            back.extend(trailers);
        }
        self.ethernet(front, payload_bytes, back)
    }

    /// What a message costs that is not joined with others: TCP sends full segments and a rest, UDP
    /// one datagram, which IP fragments when it is longer than the MTU (RFC 791, section 3.2; RFC
    /// 8200, section 4.5).
    #[must_use]
    pub fn message(&self, message_bytes: u64) -> MessageCost {
        let mut cost = MessageCost {
            message_bytes,
            packets: 0,
            counted_bytes: 0,
        };
        let full = u64::from(self.payload_bytes());
        if message_bytes <= full {
            cost.add(1, &self.packet(message_bytes as u32));
        } else if let Transport::Tcp { .. } = self.transport {
            // An MTU without space for payload is no reason to divide by zero.
            let full = full.max(1);
            cost.add(message_bytes / full, &self.full_packet());
            if !message_bytes.is_multiple_of(full) {
                cost.add(1, &self.packet((message_bytes % full) as u32));
            }
        } else {
            self.add_fragments(&mut cost);
        }
        cost
    }

    /// A fragment of a datagram: the bytes that it carries go as a payload without a UDP header,
    /// which only the first one has and which is split with the rest.
    fn add_fragments(&self, cost: &mut MessageCost) {
        let (header, min) = match self.ipv6 {
            true => (UDP_BYTES, 40 + IPV6_FRAGMENT_BYTES),
            false => (UDP_BYTES, 20),
        };
        let per_fragment = u64::from((self.mtu_bytes.saturating_sub(min) & !7).max(8));
        let split = cost.message_bytes + u64::from(header);
        // `packet` adds a UDP header to every payload: what takes its place is carried bytes or the
        // fragment's header.
        let of = |carried: u64| {
            let fragment = if self.ipv6 { IPV6_FRAGMENT_BYTES } else { 0 };
            self.packet((carried as u32 + fragment).saturating_sub(header))
        };
        cost.add(split / per_fragment, &of(per_fragment));
        if !split.is_multiple_of(per_fragment) {
            cost.add(1, &of(split % per_fragment));
        }
    }

    fn ip_headers(&self) -> Vec<Layer> {
        let mut layers = vec![ip_header(self.ipv6, false)];
        match self.transport {
            Transport::Udp => layers.push(layer("UDP header", UDP_BYTES, "RFC 768")),
            Transport::Tcp { timestamps } => {
                layers.push(layer("TCP header", TCP_BYTES, "RFC 9293"));
                if timestamps {
                    let source = "RFC 7323, appendix A";
                    layers.push(layer("timestamps, padded", TIMESTAMPS_BYTES, source));
                }
            }
        }
        layers
    }

    fn ethernet(&self, front: Vec<Layer>, payload_bytes: u32, back: Vec<Layer>) -> Packet {
        const STANDARD: &str = "IEEE 802.3";
        let on_the_wire = self.counting == LinkCounting::OnTheWire;
        let seen = |layer: Layer| Layer {
            counted: on_the_wire,
            ..layer
        };
        let tags = VLAN_TAG_BYTES * self.vlan_tags;
        let frame = ETHERNET_BYTES
            + tags
            + bytes_of(&front)
            + payload_bytes
            + bytes_of(&back)
            + CHECK_BYTES;
        let padding = MIN_FRAME_BYTES.saturating_sub(frame);
        let mut layers = vec![
            seen(layer("preamble, start delimiter", PREAMBLE_BYTES, STANDARD)),
            layer("Ethernet header", ETHERNET_BYTES, STANDARD),
        ];
        if tags > 0 {
            let name = if self.vlan_tags == 1 {
                "VLAN tag"
            } else {
                "VLAN tags"
            };
            layers.push(seen(layer(name, tags, "IEEE 802.1Q")));
        }
        layers.extend(front);
        layers.push(layer("payload", payload_bytes, "the rest of the packet"));
        layers.extend(back);
        if padding > 0 {
            layers.push(seen(layer(
                "padding to the minimum-size frame",
                padding,
                STANDARD,
            )));
        }
        layers.push(seen(layer("check sequence", CHECK_BYTES, STANDARD)));
        layers.push(seen(layer("gap between packets", GAP_BYTES, STANDARD)));
        Packet {
            payload_bytes,
            counted_bytes: layers.iter().filter(|l| l.counted).map(|l| l.bytes).sum(),
            frame_bytes: frame + padding,
            layers,
        }
    }
}

impl Tunnel {
    /// The shortest form of a kind over IPv4.
    #[must_use]
    pub fn of(kind: TunnelKind) -> Self {
        Self {
            kind,
            outer_ipv6: false,
            extra_bytes: 0,
        }
    }

    /// What it makes of a packet of `inside` bytes: the outer packet's size.
    #[must_use]
    pub fn carried_bytes(&self, inside: u32) -> u32 {
        let (headers, trailers) = self.around(inside, inside);
        inside + bytes_of(&headers) + bytes_of(&trailers)
    }

    /// The largest packet it can carry in outer packets of `outer_mtu_bytes`.
    #[must_use]
    pub fn inner_mtu_bytes(&self, outer_mtu_bytes: u32) -> u32 {
        let mut inner = outer_mtu_bytes.saturating_sub(self.carried_bytes(0));
        // Padding depends on the size, so the shortest form of it is only near.
        while self.carried_bytes(inner + 1) <= outer_mtu_bytes {
            inner += 1;
        }
        while inner > 0 && self.carried_bytes(inner) > outer_mtu_bytes {
            inner -= 1;
        }
        inner
    }

    /// Headers and trailers around `inside` bytes, where a full packet has `full`.
    fn around(&self, inside: u32, full: u32) -> (Vec<Layer>, Vec<Layer>) {
        let mut headers = self.headers();
        if self.extra_bytes > 0 {
            headers.push(layer(self.extra_name(), self.extra_bytes, "as set"));
        }
        if self.carries_ethernet() {
            headers.push(layer("inner Ethernet header", ETHERNET_BYTES, "IEEE 802.3"));
        }
        (headers, self.trailers(inside, full))
    }

    fn headers(&self) -> Vec<Layer> {
        let outer = ip_header(self.outer_ipv6, true);
        let udp = layer("outer UDP header", UDP_BYTES, "RFC 768");
        match self.kind {
            TunnelKind::Vxlan => vec![outer, udp, layer("VXLAN header", 8, "RFC 7348, section 5")],
            TunnelKind::Geneve => {
                vec![
                    outer,
                    udp,
                    layer("Geneve header", 8, "RFC 8926, section 3.1"),
                ]
            }
            TunnelKind::Gre | TunnelKind::Gretap => {
                vec![outer, layer("GRE header", 4, "RFC 2784, section 2.1")]
            }
            TunnelKind::Ipip => vec![outer],
            TunnelKind::Wireguard => {
                vec![
                    outer,
                    udp,
                    layer("WireGuard header", 16, "WireGuard, section 5.4.6"),
                ]
            }
            TunnelKind::Ipsec => vec![
                outer,
                layer("ESP header", 8, "RFC 4303, section 2"),
                layer("initialization vector", 8, "RFC 4106, section 3.1"),
            ],
            TunnelKind::Other => Vec::new(),
        }
    }

    fn trailers(&self, inside: u32, full: u32) -> Vec<Layer> {
        let (padding, source) = match self.kind {
            TunnelKind::Wireguard => (
                inside
                    .next_multiple_of(WIREGUARD_BLOCK_BYTES)
                    .min(full.max(inside))
                    - inside,
                "WireGuard, section 5.4.6",
            ),
            TunnelKind::Ipsec => (
                (inside + 2).next_multiple_of(4) - (inside + 2),
                "RFC 4303, section 2.4",
            ),
            _ => return Vec::new(),
        };
        let mut trailers = Vec::new();
        if padding > 0 {
            trailers.push(layer("padding", padding, source));
        }
        if self.kind == TunnelKind::Ipsec {
            let source = "RFC 4303, sections 2.5 and 2.6";
            trailers.push(layer("pad length, next header", 2, source));
            trailers.push(layer(
                "integrity check",
                ESP_CHECK_BYTES,
                "RFC 4106, section 6",
            ));
        } else {
            let source = "RFC 8439, section 2.8";
            trailers.push(layer("authentication tag", WIREGUARD_TAG_BYTES, source));
        }
        trailers
    }

    fn carries_ethernet(&self) -> bool {
        matches!(
            self.kind,
            TunnelKind::Vxlan | TunnelKind::Geneve | TunnelKind::Gretap
        )
    }

    fn extra_name(&self) -> &'static str {
        match self.kind {
            TunnelKind::Geneve => "Geneve options",
            TunnelKind::Gre | TunnelKind::Gretap => "GRE options",
            TunnelKind::Ipsec => "UDP around ESP",
            _ => "encapsulation",
        }
    }
}

impl Packet {
    /// How many of them a second fill a link, packets per second.
    #[must_use]
    pub fn per_sec(&self, link_bits_per_sec: f64) -> f64 {
        link_bits_per_sec / (8.0 * f64::from(self.counted_bytes))
    }
}

impl MessageCost {
    /// Payload over counted bytes, 0 to 1.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.message_bytes as f64 / self.counted_bytes as f64
    }

    fn add(&mut self, packets: u64, packet: &Packet) {
        self.packets += packets;
        self.counted_bytes += packets * u64::from(packet.counted_bytes);
    }
}

fn ip_header(ipv6: bool, outer: bool) -> Layer {
    match (ipv6, outer) {
        (false, false) => layer("IPv4 header", 20, "RFC 791, section 3.1"),
        (false, true) => layer("outer IPv4 header", 20, "RFC 791, section 3.1"),
        (true, false) => layer("IPv6 header", 40, "RFC 8200, section 3"),
        (true, true) => layer("outer IPv6 header", 40, "RFC 8200, section 3"),
    }
}

fn layer(name: &'static str, bytes: u32, source: &'static str) -> Layer {
    Layer {
        name,
        bytes,
        source,
        counted: true,
    }
}

fn bytes_of(layers: &[Layer]) -> u32 {
    layers.iter().map(|layer| layer.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(framing: &Framing) -> (u32, u32) {
        let packet = framing.full_packet();
        (packet.payload_bytes, packet.counted_bytes)
    }

    fn inside(kind: TunnelKind) -> Framing {
        let tunnel = Tunnel::of(kind);
        Framing {
            tunnels: vec![tunnel],
            ..Framing::plain(tunnel.inner_mtu_bytes(1500))
        }
    }

    #[test]
    fn the_known_fractions_of_ethernet() {
        let plain = Framing::plain(1500);
        assert_eq!(fraction(&plain), (1448, 1538));
        let without = Framing {
            transport: Transport::Tcp { timestamps: false },
            ..plain.clone()
        };
        assert_eq!(fraction(&without), (1460, 1538));
        let counted = Framing {
            counting: LinkCounting::EthernetHeader,
            ..plain.clone()
        };
        assert_eq!(fraction(&counted), (1448, 1514));
        let v6 = Framing {
            ipv6: true,
            ..plain.clone()
        };
        assert_eq!(fraction(&v6), (1428, 1538));
        let tagged = Framing {
            vlan_tags: 1,
            ..plain.clone()
        };
        assert_eq!(fraction(&tagged), (1448, 1542));
        let udp = Framing {
            transport: Transport::Udp,
            ..plain
        };
        assert_eq!(fraction(&udp), (1472, 1538));
        assert_eq!(fraction(&Framing::plain(9000)), (8948, 9038));
        assert_eq!(fraction(&Framing::plain(40)).0, 0);
    }

    /// 100 Mb/s Ethernet: 94.1 Mb/s with timestamps, 94.9 without.
    #[test]
    fn the_classic_hundred_megabit() {
        let mut framing = Framing::plain(1500);
        assert_eq!(format!("{:.1}", 100.0 * framing.efficiency()), "94.1");
        framing.transport = Transport::Tcp { timestamps: false };
        assert_eq!(format!("{:.1}", 100.0 * framing.efficiency()), "94.9");
    }

    #[test]
    fn tunnels_leave_the_mtus_that_their_documents_say() {
        let mtus = TunnelKind::NAMED.map(|kind| Tunnel::of(kind).inner_mtu_bytes(1500));
        assert_eq!(mtus, [1450, 1450, 1476, 1462, 1480, 1440, 1446]);
        let over_ipv6 = Tunnel {
            outer_ipv6: true,
            ..Tunnel::of(TunnelKind::Wireguard)
        };
        assert_eq!(over_ipv6.inner_mtu_bytes(1500), 1420, "wg-quick's own");
    }

    #[test]
    fn a_full_packet_of_a_tunnel_fills_the_frame_below() {
        for kind in TunnelKind::NAMED {
            let framing = inside(kind);
            let packet = framing.full_packet();
            assert_eq!(packet.frame_bytes, 1518, "{kind:?}");
            let sum: u32 = packet.layers.iter().map(|l| l.bytes).sum();
            assert_eq!(sum, 1538, "{kind:?}");
        }
        assert_eq!(fraction(&inside(TunnelKind::Vxlan)), (1398, 1538));
    }

    #[test]
    fn wireguard_pads_to_sixteen_but_never_beyond_its_mtu() {
        let framing = Framing {
            tunnels: vec![Tunnel::of(TunnelKind::Wireguard)],
            ..Framing::plain(1420)
        };
        let padding = |payload| {
            let packet = framing.packet(payload);
            packet.layers.iter().any(|layer| layer.name == "padding")
        };
        assert!(!padding(1368), "1420 bytes are full");
        assert!(padding(1));
        assert!(!padding(76), "128 bytes are a multiple");
    }

    #[test]
    fn tunnels_may_be_nested() {
        let tunnels = vec![
            Tunnel::of(TunnelKind::Vxlan),
            Tunnel::of(TunnelKind::Wireguard),
        ];
        let framing = Framing {
            tunnels,
            ..Framing::plain(1390)
        };
        assert_eq!(framing.full_packet().frame_bytes, 1518);
    }

    #[test]
    fn tags_inside_a_tunnel_are_carried_by_it() {
        let vlan = InterfaceFacts {
            kind: Some("vlan".into()),
            ..InterfaceFacts::default()
        };
        let vxlan = InterfaceFacts {
            kind: Some("vxlan".into()),
            tunnel: Some(Tunnel::of(TunnelKind::Vxlan)),
            ..InterfaceFacts::default()
        };
        let port = InterfaceFacts::default();
        let way = Encapsulation::of([&vlan, &vxlan, &vlan, &port]);
        assert_eq!(way.vlan_tags, 1);
        assert_eq!(way.tunnels.len(), 1);
        assert_eq!(way.tunnels[0].carried_bytes(100), 154);
        assert_eq!(Encapsulation::of([&port]), Encapsulation::default());
    }

    #[test]
    fn small_frames_are_padded_and_their_rate_is_the_known_one() {
        let framing = Framing {
            transport: Transport::Udp,
            ..Framing::plain(1500)
        };
        let packet = framing.packet(1);
        assert_eq!((packet.frame_bytes, packet.counted_bytes), (64, 84));
        assert_eq!(
            (packet.per_sec(10e9) / 1e4).round(),
            1488.0,
            "14.88 million"
        );
        assert_eq!(framing.packet(18).counted_bytes, 84);
        assert_eq!(framing.packet(19).counted_bytes, 85);
    }

    #[test]
    fn messages_take_full_segments_and_a_rest() {
        let tcp = Framing::plain(1500);
        let cost = tcp.message(3000);
        assert_eq!(cost.packets, 3);
        assert_eq!(cost.counted_bytes, 2 * 1538 + (3000 - 2 * 1448) + 90);
        assert_eq!(tcp.message(64).counted_bytes, 64 + 90);
        assert!(
            Framing::plain(10).message(5).packets > 0,
            "nonsense ends, too"
        );
    }

    /// RFC 791: fragments carry multiples of 8 bytes; the UDP header is in the first.
    #[test]
    fn long_datagrams_are_fragmented() {
        let udp = Framing {
            transport: Transport::Udp,
            ..Framing::plain(1500)
        };
        assert_eq!(udp.message(1472).packets, 1);
        let cost = udp.message(1473);
        assert_eq!(cost.packets, 2);
        assert_eq!(cost.counted_bytes, 1538 + 84);
        assert_eq!(udp.message(8192).packets, 6);
        let v6 = Framing { ipv6: true, ..udp };
        let cost = v6.message(1453);
        assert_eq!(cost.packets, 2);
        // 1461 bytes with the UDP header: 1448 and 13, each with 48 bytes of headers.
        assert_eq!(cost.counted_bytes, (1448 + 48 + 38) + (13 + 48 + 38));
    }
}
