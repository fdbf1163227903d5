//! Links that are full.

use super::golden;
use ew_model::finding::Details;
use ew_model::finding::details::LineRate;

#[test]
fn of_one_host_and_of_several() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let of = |hosts| {
        Details::LineRate(LineRate {
            hosts,
            link_bits_per_sec: 10e9,
            wire_share: 0.987,
        })
    };
    vec![("one host", of(1)), ("eight hosts", of(8))]
}
