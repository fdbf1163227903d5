//! One of a rack's hashed paths swallows its connections.

use super::bad_path;
use super::case::Case;
use crate::precision::confidence;
use crate::words::plain;
use ew_model::finding::details::BlackHole;
use ew_model::finding::{Cause, Details, Finding, Severity};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let found = case.tomography.black_hole.as_ref()?;
    Some(Finding {
        severity: Severity::Fault,
        subject: bad_path::subject(found.scope),
        cause: Cause::BadPath,
        symptom: None,
        measured: Some(plain(found.share, "share")),
        expected: Some(plain(0.0, "share")),
        confidence: confidence(Cause::BadPath),
        details: Details::BlackHole(BlackHole {
            locations: bad_path::locations(found.scope, &found.rivals),
            routers: bad_path::routers(&found.via),
            lost_share: found.share,
            failed_flows: found.failed,
            flows: found.flows,
            gain_nats: found.gain,
        }),
        cables: Vec::new(),
    })
}
