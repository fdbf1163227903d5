//! Hosts whose MTU is not the typical one.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::OddMtu;

#[test]
fn of_one_host_of_several_and_of_many() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    vec![
        ("one host", Details::OddMtu(odd(1))),
        ("two hosts", Details::OddMtu(odd(2))),
        ("seven hosts", Details::OddMtu(odd(7))),
    ]
}

pub(super) fn odd(hosts: u32) -> OddMtu {
    OddMtu {
        hosts: (1..=hosts).map(|number| host(1, number)).collect(),
        mtu_bytes: 1500,
        typical_bytes: 9000,
    }
}
