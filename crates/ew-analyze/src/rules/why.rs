//! Why a host is slow: one question after the other, the first that its evidence answers.
//!
//! The order is that of decision 0014: what keeps the host itself from moving bytes, then its link,
//! then who else is on it, then TCP's windows, then what is lost. A starved receiver also closes
//! its window, a full link also loses packets: the later questions see the consequences of the
//! earlier ones.

use super::case::Case;
use super::suspect::Suspect;
use super::{
    background_traffic, core_saturated, cpu_quota, disk, link_speed, mtu, path_loss, receive_drops,
    receive_window, send_buffer, tool_limit,
};
use ew_model::finding::details::Why;

type Question = fn(&Case<'_>, &Suspect) -> Option<Why>;

const QUESTIONS: [Question; 11] = [
    tool_limit::explain,
    cpu_quota::explain,
    core_saturated::explain,
    link_speed::explain,
    mtu::explain,
    background_traffic::explain,
    receive_window::explain,
    send_buffer::explain,
    path_loss::explain,
    receive_drops::explain,
    disk::explain,
];

/// The first cause that is found. `None` is a legal answer: the host's counters do not show it.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    QUESTIONS
        .iter()
        .find_map(|question| question(case, suspect))
}
