//! Paths between racks of which it is not determined whether they limit.

use crate::common;
use ew_model::analysis::{RackPairAnalysis, Undetermined};
use ew_report::worded_rack_pair;

#[test]
fn by_every_reason() {
    let pair = common::demo().rack_pairs.remove(0);
    assert_eq!(worded_rack_pair(&pair).reason, None);
    let reasons = [
        Undetermined::NotMeasured,
        Undetermined::NotLoaded,
        Undetermined::Lossy,
        Undetermined::SingleConnections,
        Undetermined::TestedUpTo { share: 0.756 },
    ];
    let words = reasons.map(|reason| {
        let pair = RackPairAnalysis {
            details: Some(reason),
            ..pair.clone()
        };
        worded_rack_pair(&pair).reason.unwrap()
    });
    insta::assert_snapshot!(words.join("\n"));
}
