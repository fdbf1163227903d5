//! Links that came up slow.

use super::slow_host::{no_flows, of_sides};
use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{Directions, LowLinkSpeed};

#[test]
fn next_to_peers_and_to_what_was_configured() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let rates = |tx_bits_per_sec, rx_bits_per_sec| LowLinkSpeed {
        tx_bits_per_sec,
        rx_bits_per_sec,
        ..low()
    };
    let alike = LowLinkSpeed {
        flows: of_sides(&[Directions::Tx, Directions::Rx]),
        ..rates(Some(941e6), Some(941.2e6))
    };
    let configured = LowLinkSpeed {
        is_configured: true,
        duplex: None,
        ..low()
    };
    let of = Details::LowLinkSpeed;
    vec![
        ("nothing is slow", of(low())),
        ("configured, duplex unknown", of(configured)),
        ("both sides alike", of(alike)),
        ("both sides", of(rates(Some(941e6), Some(712e6)))),
        ("it sends slowly", of(rates(Some(941e6), None))),
        ("it receives slowly", of(rates(None, Some(712e6)))),
    ]
}

fn low() -> LowLinkSpeed {
    LowLinkSpeed {
        host: host(1, 2),
        interface: "eth0".into(),
        bits_per_sec: 1e9,
        duplex: Some("full".into()),
        expected_bits_per_sec: 10e9,
        is_configured: false,
        tx_bits_per_sec: None,
        rx_bits_per_sec: None,
        flows: no_flows(),
    }
}
