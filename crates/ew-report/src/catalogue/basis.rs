//! What rates are compared with.

use ew_model::analysis::{Basis, KnownFraming, NicRateSource};
use ew_model::ceiling::{LinkCounting, Transport};
use schemars::JsonSchema;
use serde::Serialize;

/// What rates were compared with, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
#[schemars(rename = "Basis")]
pub struct WordedBasis {
    /// As figures.
    #[serde(flatten)]
    pub basis: Basis,
    /// Where the line rate came from: "configured", "link speed", "discovered: median of hosts".
    pub nic_source: &'static str,
    /// How payload over wire bytes came about, for example "MTU 1500, IPv4, timestamps, Ethernet
    /// with preamble and gap: 1448 of 1538 bytes".
    pub efficiency_source: String,
}

/// The basis with its words.
#[must_use]
pub fn worded_basis(basis: &Basis) -> WordedBasis {
    WordedBasis {
        basis: basis.clone(),
        nic_source: nic_source(basis.nic_rate_source),
        efficiency_source: efficiency_source(&basis.framing),
    }
}

/// Where the line rate of a reference host came from.
pub(crate) fn nic_source(source: NicRateSource) -> &'static str {
    match source {
        NicRateSource::MaxRate => "--max-rate",
        NicRateSource::Configured => "configured",
        NicRateSource::LinkSpeed => "link speed",
        NicRateSource::MedianOfHosts => "discovered: median of hosts",
        NicRateSource::Unknown => "nothing was measured or configured",
    }
}

/// "MTU 1450, IPv4, timestamps, in vxlan, Ethernet with preamble and gap: 1398 of 1538 bytes".
pub(crate) fn efficiency_source(known: &KnownFraming) -> String {
    let framing = &known.framing;
    let assumed = |is_known: bool| if is_known { "" } else { " (assumed)" };
    let has_timestamps = framing.transport == Transport::Tcp { timestamps: true };
    let mut parts = vec![
        format!("MTU {}{}", framing.mtu_bytes, assumed(known.is_mtu_known)),
        (if framing.ipv6 { "IPv6" } else { "IPv4" }).to_owned(),
        format!(
            "{}timestamps{}",
            if has_timestamps { "" } else { "no " },
            assumed(known.are_timestamps_known)
        ),
    ];
    for tunnel in &framing.tunnels {
        let outer = if tunnel.outer_ipv6 { " over IPv6" } else { "" };
        parts.push(format!("in {}{outer}", tunnel.kind.name()));
    }
    match framing.vlan_tags {
        0 => {}
        1 => parts.push("a VLAN tag".into()),
        tags => parts.push(format!("{tags} VLAN tags")),
    }
    let packet = framing.full_packet();
    format!(
        "{}, {}: {} of {} bytes",
        parts.join(", "),
        counting(framing.counting),
        packet.payload_bytes,
        packet.counted_bytes
    )
}

fn counting(counting: LinkCounting) -> &'static str {
    match counting {
        LinkCounting::EthernetHeader => "frames as the kernel counts them",
        LinkCounting::OnTheWire => "Ethernet with preamble and gap",
    }
}
