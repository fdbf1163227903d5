//! Rounds that did not run as planned.

use super::golden;
use ew_model::finding::Details;
use ew_model::finding::details::InvalidMeasurement;

#[test]
fn starved_and_not() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let starved = InvalidMeasurement {
        rounds: 12,
        void_rounds: 9,
        late_share: 0.41,
        missing_share: 0.024,
        starved_share: 0.83,
        is_starved: true,
    };
    let not = InvalidMeasurement {
        rounds: 1,
        void_rounds: 1,
        late_share: 0.0,
        missing_share: 0.5,
        starved_share: 0.0,
        is_starved: false,
    };
    vec![
        ("starved", Details::InvalidMeasurement(starved)),
        ("one round, not starved", Details::InvalidMeasurement(not)),
    ]
}
