//! Hosts that are slow at times.

use super::why::reason;
use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{LowQuartile, SlowAtTimes};

#[test]
fn with_low_flows_and_without() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let low = LowQuartile {
        quartile_bits_per_sec: 31.2e6,
        peers_bits_per_sec: 94.6e6,
    };
    let at_times = |low, case| {
        Details::SlowAtTimes(SlowAtTimes {
            host: host(1, 2),
            low,
            why: reason(case),
        })
    };
    vec![
        (
            "its flows are low",
            at_times(Some(low), "threads wait at times"),
        ),
        ("its flows keep up", at_times(None, "CPU quota")),
    ]
}
