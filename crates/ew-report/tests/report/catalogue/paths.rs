//! Parallel paths between racks.

use super::{golden, rack};
use ew_model::RackId;
use ew_model::finding::Details;
use ew_model::finding::details::{
    Directions, HashingCost, NarrowPath, NumberOfPaths, PathsByRates, PathsByRouters, RateInterval,
};

#[test]
fn their_number_and_a_narrow_one() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    [by_routers(), by_rates(), narrow()].concat()
}

const COST: HashingCost = HashingCost {
    measured_share: 0.812,
    expected_share: 0.839,
};

fn by_routers() -> Vec<(&'static str, Details)> {
    let of = |traced_connections, hashing| {
        Details::PathsByRouters(PathsByRouters {
            paths: 4,
            traced_connections,
            hashing,
        })
    };
    vec![
        ("routers, cost measured", of(96, Some(COST))),
        ("routers, one connection, cost not measured", of(1, None)),
    ]
}

fn by_rates() -> Vec<(&'static str, Details)> {
    let of = |numbers: &[(usize, f64)], hashing| {
        let number = |(paths, probability): &(usize, f64)| NumberOfPaths {
            paths: *paths,
            probability: *probability,
        };
        Details::PathsByRates(PathsByRates {
            paths: 4,
            numbers: numbers.iter().map(number).collect(),
            each: interval(46e6, 52e6),
            total: interval(184e6, 208e6),
            hashing,
        })
    };
    vec![
        ("rates, one number", of(&[(4, 0.994)], Some(COST))),
        ("rates, two numbers", of(&[(4, 0.83), (6, 0.12)], None)),
    ]
}

fn narrow() -> Vec<(&'static str, Details)> {
    let of = |racks: &[RackId], directions, likely_paths: &[usize]| {
        Details::NarrowPath(NarrowPath {
            racks: racks.to_vec(),
            directions,
            paths: 4,
            likely_paths: likely_paths.to_vec(),
            bits_per_sec: 16e6,
            others_bits_per_sec: 48e6,
            explained: 31,
            touched: 96,
            rounds: 12,
        })
    };
    let (first, second) = (rack(1), rack(2));
    vec![
        ("narrow, sends", of(&[second], Directions::Tx, &[4])),
        ("narrow, receives", of(&[second], Directions::Rx, &[4, 6])),
        ("narrow, both", of(&[first], Directions::Both, &[4])),
        (
            "narrow, racks not distinguished",
            of(&[first, second], Directions::Both, &[4]),
        ),
    ]
}

fn interval(low: f64, high: f64) -> RateInterval {
    RateInterval {
        low_bits_per_sec: low,
        high_bits_per_sec: high,
    }
}
