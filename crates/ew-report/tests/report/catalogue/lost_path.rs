//! Paths that are not in use.

use super::{golden, rack};
use ew_model::finding::Details;
use ew_model::finding::details::{
    Directions, LostPath, LostPathLocation, PathExpectation, PathRouter,
};

#[test]
fn of_one_rack_of_two_and_of_all() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let of_rack = LostPathLocation::Rack { rack: rack(2) };
    let unused = PathRouter {
        from: rack(1),
        router: [10, 1, 3, 1].into(),
    };
    let sends = LostPath {
        directions: Directions::Tx,
        expectation: PathExpectation::Configured,
        ..lost(of_rack)
    };
    let receives = LostPath {
        directions: Directions::Rx,
        unused_routers: vec![unused],
        ..lost(of_rack)
    };
    let both = LostPath {
        used_paths: 0,
        traced_connections: 1,
        ..lost(of_rack)
    };
    let one_way = LostPath {
        directions: Directions::Tx,
        unused_routers: vec![unused],
        ..lost(LostPathLocation::OneWay {
            from: rack(1),
            to: rack(2),
        })
    };
    let skipped = LostPath {
        expectation: PathExpectation::OneShort,
        unused_routers: vec![unused],
        ..lost(LostPathLocation::BetweenTwoRacks)
    };
    let all = LostPath {
        used_paths: 7,
        expected_paths: 8,
        expectation: PathExpectation::OneShort,
        ..lost(LostPathLocation::EveryRack)
    };
    vec![
        ("sends, configured", Details::LostPath(sends)),
        ("receives, unlike other racks", Details::LostPath(receives)),
        ("both directions, one connection", Details::LostPath(both)),
        (
            "between two racks",
            Details::LostPath(lost(LostPathLocation::BetweenTwoRacks)),
        ),
        ("from one of two to the other", Details::LostPath(one_way)),
        ("addresses skip one, a guess", Details::LostPath(skipped)),
        ("every rack, a guess", Details::LostPath(all)),
    ]
}

fn lost(location: LostPathLocation) -> LostPath {
    LostPath {
        location,
        directions: Directions::Both,
        used_paths: 3,
        expected_paths: 4,
        expectation: PathExpectation::OtherRacks,
        traced_connections: 96,
        unused_routers: Vec::new(),
    }
}
