//! Paths that swallow their connections.

use super::{golden, rack};
use ew_model::finding::Details;
use ew_model::finding::details::{BlackHole, Directions, PathLocation, PathRouter};

#[test]
fn of_one_rack_of_either_and_of_all() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let of = |number, directions| PathLocation::Rack {
        rack: rack(number),
        directions,
    };
    let one = black_hole(vec![of(1, Directions::Both)]);
    let either = BlackHole {
        routers: vec![PathRouter {
            from: rack(1),
            router: [10, 1, 3, 1].into(),
        }],
        ..black_hole(vec![of(1, Directions::Tx), of(2, Directions::Rx)])
    };
    let spine = BlackHole {
        lost_share: 0.062,
        failed_flows: 1,
        flows: 1,
        ..black_hole(vec![PathLocation::EveryRack])
    };
    vec![
        ("one rack's", Details::BlackHole(one)),
        ("either rack's", Details::BlackHole(either)),
        ("a spine, one flow", Details::BlackHole(spine)),
    ]
}

fn black_hole(locations: Vec<PathLocation>) -> BlackHole {
    BlackHole {
        locations,
        routers: Vec::new(),
        lost_share: 0.25,
        failed_flows: 17,
        flows: 64,
        gain_nats: 28.3,
    }
}
