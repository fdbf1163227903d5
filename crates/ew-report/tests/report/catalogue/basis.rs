//! What rates are compared with.

use crate::common;
use ew_model::analysis::{Basis, KnownFraming, NicRateSource};
use ew_model::ceiling::{Framing, LinkCounting, Transport, Tunnel, TunnelKind};
use ew_report::worded_basis;

#[test]
fn by_every_source_of_the_line_rate() {
    let sources = [
        NicRateSource::MaxRate,
        NicRateSource::Configured,
        NicRateSource::LinkSpeed,
        NicRateSource::MedianOfHosts,
        NicRateSource::Unknown,
    ];
    let words = sources.map(|nic_rate_source| {
        let basis = Basis {
            nic_rate_source,
            ..common::basis()
        };
        worded_basis(&basis).nic_source
    });
    insta::assert_snapshot!(words.join("\n"));
}

#[test]
fn by_every_part_of_the_framing() {
    let seen = common::framing();
    let tunnel = |kind, outer_ipv6| Tunnel {
        outer_ipv6,
        ..Tunnel::of(kind)
    };
    let framed = |framing: Framing| KnownFraming {
        framing,
        ..seen.clone()
    };
    let cases = [
        seen.clone(),
        KnownFraming {
            is_mtu_known: false,
            are_timestamps_known: false,
            ..seen.clone()
        },
        framed(Framing {
            mtu_bytes: 9000,
            ipv6: true,
            transport: Transport::Tcp { timestamps: false },
            vlan_tags: 1,
            counting: LinkCounting::OnTheWire,
            ..seen.framing.clone()
        }),
        framed(Framing {
            mtu_bytes: 1450,
            tunnels: vec![
                tunnel(TunnelKind::Vxlan, false),
                tunnel(TunnelKind::Wireguard, true),
            ],
            vlan_tags: 2,
            ..seen.framing.clone()
        }),
    ];
    let words = cases.map(|framing| {
        let basis = Basis {
            framing,
            ..common::basis()
        };
        worded_basis(&basis).efficiency_source
    });
    insta::assert_snapshot!(words.join("\n"));
}
