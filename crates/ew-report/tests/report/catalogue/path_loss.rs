//! Uplinks that lose packets.

use super::{golden, rack};
use ew_model::finding::Details;
use ew_model::finding::details::{Directions, LossyUplinks};

#[test]
fn of_each_direction_and_of_both() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let lossy = |or_rack, directions, flows| {
        Details::LossyUplinks(LossyUplinks {
            rack: rack(2),
            or_rack,
            directions,
            retransmitted_share: 0.031,
            typical_share: 0.0,
            flows,
        })
    };
    vec![
        ("it sends", lossy(None, Directions::Tx, 24)),
        ("it receives, one flow", lossy(None, Directions::Rx, 1)),
        ("both directions", lossy(None, Directions::Both, 48)),
        (
            "of two racks, one direction",
            lossy(Some(rack(1)), Directions::Tx, 24),
        ),
        (
            "of two racks, the other direction",
            lossy(Some(rack(1)), Directions::Rx, 24),
        ),
        (
            "of two racks, both directions",
            lossy(Some(rack(1)), Directions::Both, 24),
        ),
    ]
}
