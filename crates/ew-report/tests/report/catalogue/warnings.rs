//! What the user should know of a run itself.

use crate::common;
use ew_model::analysis::{Expectation, Warning};
use ew_model::threshold::{Checked, Metric, Threshold};
use ew_report::{Format, TextStyle, render};

#[test]
fn of_every_kind() {
    let mut analysis = common::demo();
    analysis.warnings = warnings();
    let text = render(&analysis, Format::Json, &TextStyle::default()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let words = document["warnings"].as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|warning| warning.as_str().unwrap()).collect();
    insta::assert_snapshot!(words.join("\n"));
}

/// One of each kind, a round and several, and a threshold with a figure and without.
pub(crate) fn warnings() -> Vec<Warning> {
    let missed = |value| {
        Warning::ThresholdMissed(Checked {
            threshold: Threshold::parse(None, Metric::RttP99, "<300us").unwrap(),
            value,
            is_met: value.map(|_| false),
        })
    };
    let not_tested = |expectation| Warning::NotTested { expectation };
    vec![
        Warning::Recorded {
            message: "r1h02: the clock is not disciplined (adjtimex)".into(),
        },
        Warning::Unclean {
            name: "r1h03".into(),
            message: "no answer".into(),
        },
        Warning::Skipped {
            tests: "cross-rack, incast: needs hosts in at least two racks".into(),
        },
        Warning::RoundsExcluded { rounds: 1 },
        Warning::RoundsExcluded { rounds: 4 },
        missed(Some(412_000.0)),
        missed(None),
        not_tested(Expectation::Oversubscription),
        not_tested(Expectation::Paths),
        not_tested(Expectation::Rtt),
    ]
}
