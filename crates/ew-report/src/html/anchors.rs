//! The names of the elements that links lead to.

use ew_model::{HostId, RackId};

pub(super) fn host_anchor(host: HostId) -> String {
    format!("host-{}", host.0)
}

pub(super) fn stage_anchor(stage: usize) -> String {
    format!("stage-{stage}")
}

pub(super) fn rack_anchor(from: RackId, to: RackId) -> String {
    format!("rack-{}-{}", from.0, to.0)
}
