//! Oversubscribed racks.

use super::{estimate, golden, golden_among, rack};
use crate::common;
use ew_model::finding::Details;
use ew_model::finding::details::{
    Directions, Oversubscribed, OversubscribedPods, PodLimit, UplinkLimit, UplinkRivals,
};

#[test]
fn of_one_rack_and_of_both() {
    insta::assert_snapshot!(golden(&cases()));
}

#[test]
fn of_many_racks() {
    let some = |racks: &[u32]| Details::Oversubscribed(oversubscribed(racks, Directions::Both));
    let cases = [
        ("all of four", some(&[1, 2, 3, 4])),
        ("three of four", some(&[1, 2, 3])),
    ];
    insta::assert_snapshot!(golden_among(&common::inventory(4, 4), &cases));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let both = oversubscribed(&[1, 2], Directions::Both);
    let sending = Oversubscribed {
        configured: Some(2.0),
        ..oversubscribed(&[2], Directions::Tx)
    };
    let receiving = Oversubscribed {
        is_unlike_others: true,
        is_unexpected: false,
        ..oversubscribed(&[1], Directions::Rx)
    };
    let one_way = Oversubscribed {
        racks: vec![rack(2), rack(1)],
        ..oversubscribed(&[1, 2], Directions::Tx)
    };
    vec![
        ("both racks", Details::Oversubscribed(both)),
        ("one way", Details::Oversubscribed(one_way)),
        (
            "one rack sends, worse than configured",
            Details::Oversubscribed(sending),
        ),
        (
            "one rack receives, unlike others",
            Details::Oversubscribed(receiving),
        ),
        ("one pod", Details::OversubscribedPods(pods(&[&[1, 2]]))),
        ("two pods", Details::OversubscribedPods(pods(&[&[1], &[2]]))),
        (
            "one way between two pods",
            Details::OversubscribedPods(OversubscribedPods {
                is_one_way: true,
                ..pods(&[&[1], &[2]])
            }),
        ),
    ]
}

fn pods(pods: &[&[u32]]) -> OversubscribedPods {
    let racks = |pod: &&[u32]| pod.iter().map(|number| rack(*number)).collect::<Vec<_>>();
    let limit = |pod: &&[u32]| PodLimit {
        racks: racks(pod),
        direction: Directions::Tx,
        capacity_bits_per_sec: 382e6,
        hosts_bits_per_sec: 764e6,
        rounds: 4,
        stage: Some("cross-rack".into()),
    };
    OversubscribedPods {
        pods: pods.iter().map(racks).collect(),
        directions: Directions::Tx,
        is_one_way: false,
        ratio: estimate(2.0, 1.9, 2.1),
        limits: pods.iter().map(limit).collect(),
    }
}

fn oversubscribed(racks: &[u32], directions: Directions) -> Oversubscribed {
    let of = |number: &u32, direction| UplinkLimit {
        rack: rack(*number),
        direction,
        capacity_bits_per_sec: 191e6,
        hosts_bits_per_sec: 764e6,
        rounds: 6,
        stage: Some("cross-rack".into()),
        rivals: None,
    };
    let mut limits = match directions {
        Directions::Both => racks
            .iter()
            .flat_map(|rack| [of(rack, Directions::Tx), of(rack, Directions::Rx)])
            .collect(),
        one => racks.iter().map(|rack| of(rack, one)).collect::<Vec<_>>(),
    };
    if let [only] = limits.as_mut_slice() {
        only.rounds = 1;
        only.stage = None;
        only.rivals = Some(UplinkRivals {
            racks: vec![rack(1), rack(2)],
            explained: 20,
            touched: 24,
        });
    }
    Oversubscribed {
        racks: racks.iter().map(|number| rack(*number)).collect(),
        directions,
        ratio: estimate(4.0, 3.9, 4.1),
        configured: None,
        is_unlike_others: false,
        is_unexpected: true,
        limits,
    }
}
