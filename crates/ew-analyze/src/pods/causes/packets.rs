//! Smaller packets in pods than on nodes, with or without a tunnel around them.

use super::case::Case;
use crate::pods::difference::MIN_DIFFERENCE;
use ew_evidence::observations::StageView;
use ew_model::HostId;
use ew_model::ceiling::{Framing, LinkCounting, MessageCost, Transport};
use ew_model::facts::{HostSample, InterfaceFacts};
use ew_model::pods::{
    PacketCost, PodCause, PodCauseFacts, PodPath, SmallerPackets, TunnelledPackets,
};
use ew_model::workload::WorkloadKind;
use ew_stats::median;

/// IPv4 and TCP with timestamps, which every segment carries besides its payload.
const HEADER_BYTES: u32 = 52;
/// Of a path's rate, moved by a tunnel of the node, shows that the path goes through it. Readings
/// cover pauses, too.
const THROUGH_TUNNEL: f64 = 0.25;
/// Part of the difference from which on it is called all of it.
const ALL: f64 = 0.95;

/// A tunnel's headers, and the smaller packets of pods.
pub(super) fn smaller(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    if case.found.path == PodPath::SameNode || !case.comparison.kind.is_bulk() {
        return None;
    }
    let tunnel = tunnel_of(case);
    let inner = Packets::of(case, case.found.stage, tunnel)?;
    let outer = Packets::of(case, case.found.baseline, None)?;
    let lost = 1.0 - inner.efficiency() / outer.efficiency();
    if lost < MIN_DIFFERENCE / 3.0 {
        return None;
    }
    let share = (lost / case.drop()).min(1.0);
    let packets = SmallerPackets {
        mtu_bytes: inner.mtu_bytes,
        pods: inner.cost(),
        nodes: outer.cost(),
        lost_share: lost,
        is_all: share >= ALL,
    };
    Some(PodCause {
        facts: of_network(packets, tunnel),
        share: Some(share),
    })
}

/// In a tunnel, or by themselves.
fn of_network(packets: SmallerPackets, carrier: Option<&InterfaceFacts>) -> PodCauseFacts {
    let tunnel = carrier.and_then(|interface| Some((interface, interface.tunnel?)));
    match tunnel {
        Some((interface, tunnel)) => PodCauseFacts::Encapsulation(TunnelledPackets {
            tunnel: tunnel.kind,
            interface: interface.name.clone(),
            packets,
        }),
        None => PodCauseFacts::Mtu(packets),
    }
}

/// A message of a path as the nodes' link counts it.
struct Packets {
    /// Of the network that the sender sees.
    mtu_bytes: u32,
    cost: MessageCost,
}

impl Packets {
    /// A full TCP segment, as the senders had it, or a datagram. `None` where its size is unknown.
    fn of(
        case: &Case<'_, '_, '_>,
        view: &StageView<'_>,
        tunnel: Option<&InterfaceFacts>,
    ) -> Option<Self> {
        let is_udp = view.stage.workload.kind == WorkloadKind::UdpStream;
        let (mtu_bytes, message_bytes, transport) = if is_udp {
            let message_bytes = view.stage.workload.message_bytes;
            (mtu_bytes(case, view)?, message_bytes, Transport::Udp)
        } else {
            let segment_bytes = segment_bytes(view)?;
            let transport = Transport::Tcp { timestamps: true };
            (
                segment_bytes + HEADER_BYTES,
                segment_bytes.into(),
                transport,
            )
        };
        let framing = Framing {
            transport,
            tunnels: tunnel
                .and_then(|interface| interface.tunnel)
                .into_iter()
                .collect(),
            counting: LinkCounting::EthernetHeader,
            ..Framing::plain(mtu_bytes)
        };
        Some(Self {
            mtu_bytes,
            cost: framing.message(message_bytes),
        })
    }

    fn efficiency(&self) -> f64 {
        self.cost.message_bytes as f64 / self.cost.counted_bytes as f64
    }

    fn cost(&self) -> PacketCost {
        PacketCost {
            message_bytes: self.cost.message_bytes,
            packets: self.cost.packets,
            counted_bytes: self.cost.counted_bytes,
        }
    }
}

/// The typical segment of a stage's senders.
fn segment_bytes(view: &StageView<'_>) -> Option<u32> {
    let rows = view.measured();
    let infos = rows
        .filter_map(|row| row.sender.as_ref())
        .flat_map(|end| &end.streams);
    let sizes = infos.filter_map(|stream| Some(f64::from(stream.tcp_info?.send_mss_bytes)));
    let typical = median(&sizes.collect::<Vec<_>>())?;
    (typical >= 1.0).then(|| typical.round() as u32)
}

/// The smallest MTU of the interfaces that a stage's agents use.
fn mtu_bytes(case: &Case<'_, '_, '_>, view: &StageView<'_>) -> Option<u32> {
    let agents = Case::agents(view).into_iter();
    agents
        .filter_map(|host| case.interface(host)?.mtu_bytes)
        .min()
}

/// A tunnel of the nodes that the path's packets pass.
fn tunnel_of<'c>(case: &Case<'c, '_, '_>) -> Option<&'c InterfaceFacts> {
    let mut agents = Case::agents(case.found.stage).into_iter();
    agents.find_map(|pod| {
        let node = case.node_of(pod)?;
        let facts = case.observations.run.facts.get(&node)?;
        let mut tunnels = facts
            .interfaces
            .iter()
            .filter(|i| i.tunnel.is_some() && i.up);
        tunnels.find(|tunnel| carries(case, node, pod, tunnel))
    })
}

/// Whether a node's tunnel moves bytes as the path does; where no reading shows it, whether the
/// pods have its MTU. A tunnel of another network is up as well.
fn carries(case: &Case<'_, '_, '_>, node: HostId, pod: HostId, tunnel: &InterfaceFacts) -> bool {
    let stage = case.found.index;
    let cover = case
        .telemetry
        .cover_beside(node, pod, |index| index == stage);
    let moved = |sample: &HostSample| {
        let mut interfaces = sample.interfaces.iter();
        let counters = interfaces.find(|i| i.name == tunnel.name)?;
        Some(counters.rx_bytes.saturating_add(counters.tx_bytes))
    };
    let flow_bits_per_sec = case.comparison.figure.value;
    match cover.and_then(|cover| cover.per_second(moved)) {
        Some(bytes_per_sec) => 8.0 * bytes_per_sec >= THROUGH_TUNNEL * flow_bits_per_sec,
        None => {
            let of_pod = case
                .interface(pod)
                .and_then(|interface| interface.mtu_bytes);
            of_pod.is_some() && of_pod == tunnel.mtu_bytes
        }
    }
}
