//! A rack uses fewer paths than the others, or than expected: a link is down, or its routes are
//! withdrawn.

use super::bad_path;
use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_fit::tomography::{LostLocation, LostMember};
use ew_model::RackId;
use ew_model::finding::details::{Directions, LostPath, LostPathLocation, PathExpectation};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let lost = case.tomography.lost_members.iter();
    lost.map(|lost| finding(case, lost)).collect()
}

fn finding(case: &Case<'_>, lost: &LostMember) -> Finding {
    let is_expected = case.observations.run.plan.expect.paths == Some(lost.of as u32);
    let (location, directions) = location(lost);
    Finding {
        measured: plain(lost.used as f64, "count"),
        expected: plain(lost.of as f64, "count"),
        ..finding_of(
            if is_expected {
                Severity::Fault
            } else {
                Severity::Notice
            },
            subject(location),
            Cause::LostPath,
            Details::LostPath(LostPath {
                location,
                directions,
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
        )
    }
}

/// With the directions, seen from the rack.
fn location(lost: &LostMember) -> (LostPathLocation, Directions) {
    let rack = |rack: usize| RackId(rack as u32);
    match lost.location {
        LostLocation::Rack(of, direction) => {
            (LostPathLocation::Rack { rack: rack(of) }, direction.into())
        }
        LostLocation::OneWay(from, to) => {
            let (from, to) = (rack(from), rack(to));
            (LostPathLocation::OneWay { from, to }, Directions::Tx)
        }
        LostLocation::BetweenTwo => (LostPathLocation::BetweenTwoRacks, Directions::Both),
        LostLocation::Everywhere => (LostPathLocation::EveryRack, Directions::Both),
    }
}

fn subject(location: LostPathLocation) -> Subject {
    match location {
        LostPathLocation::Rack { rack } => Subject::Rack { rack },
        LostPathLocation::OneWay { from, .. } => Subject::Rack { rack: from },
        LostPathLocation::BetweenTwoRacks => Subject::RackPair {
            from: RackId(0),
            to: RackId(1),
        },
        LostPathLocation::EveryRack => Subject::Run,
    }
}
