//! A rack uses fewer paths than the others, or than expected: a link is down, or its routes are
//! withdrawn.

use super::bad_path::direction_word;
use super::{Case, evidence};
use crate::precision::confidence;
use crate::tomography::LostMember;
use crate::words::{count, list, plain};
use ew_model::RackId;
use ew_model::finding::{Cause, Finding, Severity, Subject, Worded};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let lost = case.tomography.lost_members.iter();
    lost.map(|lost| finding(case, lost)).collect()
}

fn finding(case: &Case<'_>, lost: &LostMember) -> Finding {
    let inventory = case.observations.inventory();
    let name = |rack: usize| inventory.rack_name(RackId(rack as u32)).to_owned();
    let of = match lost.rack {
        Some(rack) => name(rack),
        None if lost.is_of_two => "between the racks".to_owned(),
        None => "every rack".to_owned(),
    };
    let is_expected = case.observations.run.plan.expect.paths == Some(lost.of as u32);
    let used = match (lost.is_guess, is_expected) {
        (true, _) => format!("{} paths in use, one short of {}", lost.used, lost.of),
        (false, true) => format!("{} of {1} paths in use (expected {1})", lost.used, lost.of),
        (false, false) => format!(
            "{} of {1} paths in use (other racks {1})",
            lost.used, lost.of
        ),
    };
    let source = || "flows.parquet: stages of workload trace".to_owned();
    let traced = count(lost.traced, "connection");
    let seen = format!(
        "{} of {} routers seen on the paths of {traced}",
        lost.used, lost.of
    );
    let mut evidences = vec![evidence(seen, source())];
    if !lost.without.is_empty() {
        let unused = lost.without.iter();
        let unused: Vec<String> = unused
            .map(|(from, router)| format!("{router} (from {})", name(*from)))
            .collect();
        evidences.push(evidence(
            format!("not used towards {of}: {}", list(&unused)),
            source(),
        ));
    }
    Finding {
        severity: if is_expected {
            Severity::Fault
        } else {
            Severity::Notice
        },
        subject: match lost.rack {
            Some(rack) => Subject::Rack {
                rack: RackId(rack as u32),
            },
            None if lost.is_of_two => Subject::RackPair {
                from: RackId(0),
                to: RackId(1),
            },
            None => Subject::Run,
        },
        cause: Cause::LostPath,
        symptom: None,
        measured: Some(plain(lost.used as f64, "count")),
        expected: Some(plain(lost.of as f64, "count")),
        confidence: confidence(Cause::LostPath),
        details: Worded::details(
            format!("{of}{}: {used}", direction_word(lost.direction)),
            evidences,
            if lost.is_guess { GUESS_HINT } else { HINT }.into(),
        ),
        cables: Vec::new(),
    }
}

const GUESS_HINT: &str = "if the fabric has one more path, a spine or its links are down for all racks; state the number with \
                          `--set expect.paths=N`, so that it is compared";
const HINT: &str = "look for an uplink that is down or a route that is withdrawn on the leaf switch, and on the spine above it; if the \
                    rack has fewer uplinks by design, nothing is wrong";
