//! Hosts that lack CPU all along.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{StarvedHost, StarvedRate};

#[test]
fn slow_and_not_slow() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let starved = |slow| {
        Details::StarvedHost(StarvedHost {
            host: host(1, 2),
            starved_rounds: 11,
            rounds: 12,
            degree: 0.62,
            others_degree: 0.03,
            slow,
        })
    };
    let slow = StarvedRate {
        bits_per_sec: 5.2e6,
        peers_bits_per_sec: 94.6e6,
    };
    vec![("slow", starved(Some(slow))), ("not slow", starved(None))]
}
