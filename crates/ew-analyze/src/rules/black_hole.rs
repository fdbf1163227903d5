//! One of a rack's hashed paths swallows its connections.

use super::bad_path;
use super::case::Case;
use crate::finding::{finding_of, plain};
use ew_model::finding::details::BlackHole;
use ew_model::finding::{Cause, Details, Finding, Severity};

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let found = case.tomography.black_hole.as_ref()?;
    Some(Finding {
        measured: plain(found.share, "share"),
        expected: plain(0.0, "share"),
        ..finding_of(
            Severity::Fault,
            bad_path::subject(found.scope),
            Cause::BadPath,
            Details::BlackHole(BlackHole {
                locations: bad_path::locations(&case.tomography.pods, found.scope, &found.rivals),
                routers: bad_path::routers(&found.via),
                lost_share: found.share,
                failed_flows: found.failed,
                flows: found.flows,
                gain_nats: found.gain,
            }),
        )
    })
}
