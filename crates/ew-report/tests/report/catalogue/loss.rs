//! Datagrams that are lost.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{DatagramLoss, DatagramLossOfPair, Fragments};

#[test]
fn with_a_pace_and_without() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let paced = loss(true);
    let unpaced = DatagramLoss {
        worst_pair: None,
        pairs: 1,
        lost_datagrams: 1,
        sent_datagrams: 1,
        lost_share: 1.0,
        ..loss(false)
    };
    let fragmented = |is_paced| DatagramLoss {
        fragments: Some(Fragments {
            message_bytes: 8192,
            fragments: 6,
            mtu_bytes: 1500,
            whole_bytes: 1472,
        }),
        ..loss(is_paced)
    };
    vec![
        ("at a pace", Details::DatagramLoss(paced)),
        (
            "without a pace, one pair, one datagram",
            Details::DatagramLoss(unpaced),
        ),
        (
            "fragments at a pace",
            Details::DatagramLoss(fragmented(true)),
        ),
        (
            "fragments without a pace",
            Details::DatagramLoss(fragmented(false)),
        ),
    ]
}

fn loss(is_paced: bool) -> DatagramLoss {
    DatagramLoss {
        stage: "udp".into(),
        is_paced,
        lost_datagrams: 20_480,
        sent_datagrams: 812_400,
        lost_share: 0.0252,
        worst_pair: Some(DatagramLossOfPair {
            src: host(1, 2),
            dst: host(2, 4),
            lost_share: 0.119,
        }),
        pairs: 8,
        fragments: None,
    }
}
