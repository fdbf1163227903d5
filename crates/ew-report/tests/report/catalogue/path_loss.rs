//! Uplinks that lose packets.

use super::{golden, rack};
use ew_model::finding::Details;
use ew_model::finding::details::{Directions, LossyUplinks};

#[test]
fn of_each_direction_and_of_both() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let lossy = |directions, flows| {
        Details::LossyUplinks(LossyUplinks {
            rack: rack(2),
            directions,
            retransmitted_share: 0.031,
            typical_share: 0.0,
            flows,
        })
    };
    vec![
        ("it sends", lossy(Directions::Tx, 24)),
        ("it receives, one flow", lossy(Directions::Rx, 1)),
        ("both directions", lossy(Directions::Both, 48)),
    ]
}
