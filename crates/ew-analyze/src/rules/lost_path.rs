//! A rack uses fewer paths than the others, or than expected: a link is down, or its routes are
//! withdrawn.

use super::{Case, bad_path};
use crate::precision::confidence;
use crate::tomography::LostMember;
use crate::words::plain;
use ew_model::RackId;
use ew_model::finding::details::{LostPath, LostPathPlace, PathExpectation};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let lost = case.tomography.lost_members.iter();
    lost.map(|lost| finding(case, lost)).collect()
}

fn finding(case: &Case<'_>, lost: &LostMember) -> Finding {
    let is_expected = case.observations.run.plan.expect.paths == Some(lost.of as u32);
    let place = place(lost);
    Finding {
        severity: if is_expected {
            Severity::Fault
        } else {
            Severity::Notice
        },
        subject: subject(place),
        cause: Cause::LostPath,
        symptom: None,
        measured: Some(plain(lost.used as f64, "count")),
        expected: Some(plain(lost.of as f64, "count")),
        confidence: confidence(Cause::LostPath),
        details: Details::LostPath(LostPath {
            place,
            directions: lost.direction.into(),
            used_paths: lost.used,
            expected_paths: lost.of,
            expectation: match (lost.is_guess, is_expected) {
                (true, _) => PathExpectation::OneShort,
                (false, true) => PathExpectation::Configured,
                (false, false) => PathExpectation::OtherRacks,
            },
            traced_connections: lost.traced,
            unused_routers: bad_path::routers(&lost.without),
        }),
        cables: Vec::new(),
    }
}

fn place(lost: &LostMember) -> LostPathPlace {
    match lost.rack {
        Some(rack) => LostPathPlace::Rack {
            rack: RackId(rack as u32),
        },
        None if lost.is_of_two => LostPathPlace::BetweenTwoRacks,
        None => LostPathPlace::EveryRack,
    }
}

fn subject(place: LostPathPlace) -> Subject {
    match place {
        LostPathPlace::Rack { rack } => Subject::Rack { rack },
        LostPathPlace::BetweenTwoRacks => Subject::RackPair {
            from: RackId(0),
            to: RackId(1),
        },
        LostPathPlace::EveryRack => Subject::Run,
    }
}
