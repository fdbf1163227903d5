//! Bad paths, by their routers and by their share of the connections.

use super::{golden, rack};
use ew_model::finding::Details;
use ew_model::finding::details::{
    BadPathByRouter, BadPathByShare, Directions, PathLocation, PathRouter,
};

#[test]
fn by_routers_and_by_share() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    [routers(), shares()].concat()
}

fn routers() -> Vec<(&'static str, Details)> {
    let sends = vec![of(2, Directions::Tx)];
    let either = vec![of(2, Directions::Tx), of(1, Directions::Rx)];
    let one = by_router(sends, vec![router(2, 1)]);
    let several = by_router(either, vec![router(1, 1), router(2, 2), router(2, 3)]);
    let single = BadPathByRouter {
        bad_connections: 1,
        connections: 1,
        others_bad_share: 0.0,
        ..by_router(
            vec![PathLocation::EveryRack],
            vec![router(1, 1), router(2, 1)],
        )
    };
    vec![
        ("one router", Details::BadPathByRouter(one)),
        (
            "three routers, two places",
            Details::BadPathByRouter(several),
        ),
        ("a spine, one connection", Details::BadPathByRouter(single)),
        (
            "seven routers",
            Details::BadPathByRouter(by_router(
                vec![of(1, Directions::Both)],
                (1..=7).map(|number| router(2, number)).collect(),
            )),
        ),
    ]
}

fn shares() -> Vec<(&'static str, Details)> {
    let narrow = by_share(of(2, Directions::Rx));
    let lossy = BadPathByShare {
        fewest_paths: 4,
        is_narrow: false,
        pace_share: 0.93,
        bad_connections: 1,
        connections: 1,
        ..by_share(of(1, Directions::Both))
    };
    vec![
        ("narrow", Details::BadPathByShare(narrow)),
        ("loses packets", Details::BadPathByShare(lossy)),
    ]
}

fn of(number: u32, directions: Directions) -> PathLocation {
    PathLocation::Rack {
        rack: rack(number),
        directions,
    }
}

fn router(from: u32, number: u8) -> PathRouter {
    PathRouter {
        from: rack(from),
        router: [10, from as u8, number, 1].into(),
    }
}

fn by_router(locations: Vec<PathLocation>, routers: Vec<PathRouter>) -> BadPathByRouter {
    BadPathByRouter {
        locations,
        routers,
        bad_connections: 14,
        connections: 18,
        others_bad_share: 0.021,
        gain_nats: 31.4,
    }
}

fn by_share(location: PathLocation) -> BadPathByShare {
    BadPathByShare {
        locations: vec![location],
        stage: "paths".into(),
        fewest_paths: 3,
        max_paths: 4,
        is_narrow: true,
        pace_share: 0.52,
        retransmitted_share: 0.013,
        bad_connections: 12,
        connections: 48,
        bad_share: 0.25,
        gain_nats: 22.6,
    }
}
