//! After a mesh: what is missing is tried once more between the hosts that are up, those that came back included.

use crate::journal::Journal;
use crate::members::{Happening, Members};
use ew_model::event::RunEvent;
use ew_model::inventory::HostId;
use ew_model::plan::{End, FlowId, Round, Stage};
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::scenario::Pattern;
use ew_plan::schedule::UplinkLimits;
use ew_proto::controller_session::ControllerEvent;
use std::collections::BTreeSet;

/// A host is launched at most this often in a run.
const MAX_LAUNCHES: u32 = 3;

/// Whether a lone flow measures the same as in its round: only where nobody shares anything by design.
pub(crate) fn is_repairable(stage: &Stage) -> bool {
    matches!(stage.pattern, Pattern::Mesh { .. })
}

/// Tries to bring lost hosts back, and waits until each is up or has failed again.
pub(crate) async fn revive(members: &mut Members, journal: &mut Journal<'_>) -> bool {
    let tries: BTreeSet<HostId> = members
        .down()
        .into_iter()
        .filter(|id| {
            members
                .get(*id)
                .is_some_and(|member| member.launches < MAX_LAUNCHES)
        })
        .collect();
    for id in &tries {
        members.launch(*id);
    }
    while !members.launching().is_empty() {
        match members.next(u64::MAX).await {
            Happening::Agent(host, ControllerEvent::Ready { .. }) => {
                journal.emit(RunEvent::HostReturned { host });
            }
            Happening::Interrupt => return false,
            Happening::Agent(..)
            | Happening::LaunchFailed { .. }
            | Happening::Ended { .. }
            | Happening::Deadline => {}
        }
    }
    true
}

/// Rounds for the cells without a figure whose ends are both up.
pub(crate) fn rounds(
    records: &[FlowRecord],
    alive: &[HostId],
    opened_by: End,
    first_flow: FlowId,
    limits: Option<UplinkLimits<'_>>,
) -> Vec<Round> {
    let measured: BTreeSet<(HostId, HostId)> = records
        .iter()
        .filter(|record| record.outcome == FlowOutcome::Measured)
        .map(|record| (record.src, record.dst))
        .collect();
    let missing: BTreeSet<(HostId, HostId)> = records
        .iter()
        .map(|record| (record.src, record.dst))
        .filter(|pair| !measured.contains(pair))
        .filter(|(src, dst)| alive.contains(src) && alive.contains(dst))
        .collect();
    let missing: Vec<_> = missing.into_iter().collect();
    ew_plan::repair_rounds(&missing, opened_by, first_flow, limits)
}
