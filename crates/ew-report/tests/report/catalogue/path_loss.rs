//! Uplinks that lose packets.

use super::{golden, golden_among, rack};
use crate::common;
use ew_model::RackId;
use ew_model::finding::Details;
use ew_model::finding::details::{Directions, LossyRack, LossyUplinks};

#[test]
fn of_each_direction_and_of_both() {
    insta::assert_snapshot!(golden(&cases()));
}

#[test]
fn of_several_racks() {
    let some = |directions, shares: &[f64]| {
        let racks = (1..).zip(shares);
        let racks = racks.map(|(number, share)| loses(number, *share, 24));
        of(racks.collect(), None, directions)
    };
    let cases = [
        ("a pod's", some(Directions::Tx, &[0.009, 0.011])),
        ("all", some(Directions::Both, &[0.02, 0.02, 0.02, 0.02])),
    ];
    insta::assert_snapshot!(golden_among(&common::inventory(4, 4), &cases));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let lossy = |or_rack, directions, flows| of(vec![loses(2, 0.031, flows)], or_rack, directions);
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

fn loses(number: u32, retransmitted_share: f64, flows: usize) -> LossyRack {
    LossyRack {
        rack: rack(number),
        retransmitted_share,
        flows,
    }
}

fn of(racks: Vec<LossyRack>, or_rack: Option<RackId>, directions: Directions) -> Details {
    Details::LossyUplinks(LossyUplinks {
        racks,
        or_rack,
        directions,
        typical_share: 0.0,
    })
}
