//! Bonds with a member that carries nearly all.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{BondMember, BusiestMember, Directions};

#[test]
fn of_one_host_and_of_several() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let sends = bond(Directions::Tx, &[host(1, 1)]);
    let both = bond(Directions::Both, &[host(1, 1), host(2, 3)]);
    let receives = BondMember {
        hash_policy: Some("layer3+4".into()),
        is_hashed_by_connection: true,
        ..bond(Directions::Rx, &[host(1, 1)])
    };
    let by_connection = BondMember {
        directions: Directions::Both,
        ..receives.clone()
    };
    let team = BondMember {
        mode: None,
        hash_policy: None,
        ..bond(Directions::Tx, &[host(1, 2)])
    };
    vec![
        ("one host sends", Details::BondMember(sends)),
        ("two hosts, both directions", Details::BondMember(both)),
        ("one host receives", Details::BondMember(receives)),
        ("hashed by connection", Details::BondMember(by_connection)),
        ("a team", Details::BondMember(team)),
    ]
}

fn bond(directions: Directions, hosts: &[HostId]) -> BondMember {
    let busiest = |host: &HostId| BusiestMember {
        host: *host,
        member: "eno1".into(),
        share: 0.997,
    };
    BondMember {
        bond: "bond0".into(),
        mode: Some("802.3ad".into()),
        hash_policy: Some("layer2".into()),
        is_hashed_by_connection: false,
        members: vec!["eno1".into(), "eno2".into()],
        directions,
        busiest: hosts.iter().map(busiest).collect(),
    }
}
