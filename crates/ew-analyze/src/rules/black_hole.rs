//! One of a rack's hashed paths swallows its connections.

use super::peers::percent;
use super::{Case, bad_path, evidence};
use crate::precision::confidence;
use crate::words::{count, plain};
use ew_model::finding::{Cause, Finding, Severity, Worded};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let found = case.tomography.black_hole.as_ref()?;
    let share = percent(found.share);
    let names = bad_path::names(case, found.scope, &found.rivals);
    Some(Finding {
        severity: Severity::Fault,
        subject: bad_path::subject(found.scope),
        cause: Cause::BadPath,
        symptom: None,
        measured: Some(plain(found.share, "share")),
        expected: Some(plain(0.0, "share")),
        confidence: confidence(Cause::BadPath),
        details: Worded::details(format!("{names}: a path blackholes its traffic, {share} of connections never open"), vec![evidence(
            format!(
                "{} of {} across these racks never began; intra-rack flows did; likelihood gain {:.0} nats",
                found.failed,
                count(found.flows, "flow"),
                found.gain,
            ),
            "flows.parquet: outcome missing, src_rack other than dst_rack".into(),
        )], "compare the packets sent by each member of these uplinks (ECMP or LAG) with what its far end received; take the member \
               that delivers nothing out of the group, then look at its transceiver, forwarding table and ACLs"
            .into()),
        cables: Vec::new(),
    })
}
