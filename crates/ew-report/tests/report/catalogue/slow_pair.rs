//! Pairs that are slow although their hosts are not.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{PairRate, SlowPair, SlowPairs};

#[test]
fn one_by_one_and_folded() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let one = |rounds, is_distinguished| {
        Details::SlowPair(SlowPair {
            pair: pair(1, rounds),
            expected_bits_per_sec: 940e6,
            is_distinguished,
        })
    };
    let many = |count| {
        let shown = 6.min(count);
        Details::SlowPairs(SlowPairs {
            count,
            pairs: (1..=shown as u32).map(|number| pair(number, 2)).collect(),
            expected_bits_per_sec: 940e6,
        })
    };
    vec![
        ("one", one(4, true)),
        ("one that may be a host, one round", one(1, false)),
        ("all shown", many(3)),
        ("twenty, of which six are shown", many(20)),
    ]
}

fn pair(number: u32, rounds: usize) -> PairRate {
    PairRate {
        src: HostId(number),
        dst: host(1, 1),
        bits_per_sec: 90e6 + 20e6 * f64::from(number),
        rounds,
    }
}
