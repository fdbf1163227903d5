//! Hosts below the configured NIC rate.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{BelowConfiguredNic, SharedLimit};

#[test]
fn of_one_host_of_some_and_of_all() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let below = |hosts: u32, limit| {
        Details::BelowConfiguredNic(BelowConfiguredNic {
            hosts: (1..=hosts).map(|number| host(1, number)).collect(),
            bits_per_sec: 4.1e9,
            configured_bits_per_sec: 10e9,
            goodput_bits_per_sec: 9.41e9,
            limit,
        })
    };
    let limit = SharedLimit::FullThreads { cpu_share: 0.97 };
    vec![
        ("one host", below(1, None)),
        ("two hosts", below(2, None)),
        ("all hosts, and what limits them", below(8, Some(limit))),
    ]
}
