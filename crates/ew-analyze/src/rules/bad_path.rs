//! One of a rack's hashed paths carries less than its pace at half load, or loses packets.

use super::peers::percent;
use super::{Case, confidence_of, evidence};
use crate::fit::Direction;
use crate::tomography::Scope;
use crate::words::{count, plain};
use ew_model::RackId;
use ew_model::finding::{Cause, Finding, Severity, Subject};

/// Below this share of the pace a path is narrow; above, it loses.
const NARROW: f64 = 0.85;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let found = case.bad_path?;
    let share = found.bad as f64 / found.connections as f64;
    let paths = (1.0 / share).round().max(2.0);
    let what = if found.of_pace < NARROW {
        format!("{} of pace", percent(found.of_pace))
    } else {
        format!(
            "{} of segments retransmitted",
            percent(found.retransmitted_share)
        )
    };
    let names = names(case, found.scope, &found.rivals);
    Some(Finding {
        severity: Severity::Fault,
        subject: subject(found.scope),
        cause: Cause::BadPath,
        symptom: None,
        sentence: format!("{names}: one of about {paths:.0} paths degraded at half load, {what}; {} of connections affected", percent(share)),
        measured: Some(plain(share, "share")),
        expected: Some(plain(0.0, "share")),
        confidence: confidence_of(found.gain),
        evidence: vec![evidence(
            format!(
                "{} of {} slow or retransmitting in every round of theirs, paced to half load: median {} of pace, {} of segments retransmitted",
                found.bad,
                count(found.connections, "connection"),
                percent(found.of_pace),
                percent(found.retransmitted_share),
            ),
            format!("flows.parquet: stage `{}`, by source port", found.stage),
        )],
        hint: "compare speed, errors and bytes of each member of these uplinks (ECMP or LAG) on the leaf switch, and of the spine ports \
               behind them"
            .into(),
    })
}

pub(super) fn subject(scope: Scope) -> Subject {
    match scope {
        Scope::Rack(rack, _) => Subject::Rack {
            rack: RackId(rack as u32),
        },
        Scope::Everywhere => Subject::Run,
    }
}

/// "rack2 TX", "rack2 TX or rack1 RX (not told apart)".
pub(super) fn names(case: &Case<'_>, scope: Scope, rivals: &[Scope]) -> String {
    let name = |scope: &Scope| match scope {
        Scope::Rack(rack, direction) => {
            let name = case
                .observations
                .inventory()
                .rack_name(RackId(*rack as u32));
            let word = match direction {
                Direction::Tx => " TX",
                Direction::Rx => " RX",
                Direction::Both => "",
            };
            format!("{name}{word}")
        }
        Scope::Everywhere => "every rack (a spine)".to_owned(),
    };
    let all: Vec<String> = [&scope].into_iter().chain(rivals).map(name).collect();
    match all.len() {
        1 => all.concat(),
        _ => format!("{} (not told apart)", all.join(" or ")),
    }
}
