//! The sender's buffer is too small to keep the path full.

use super::peers::{of_lone_flows, percent};
use super::receive_window::limited_share;
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use ew_model::finding::Cause;
use ew_model::record::FlowRecord;

/// Share of the time with data in flight that was limited before it is a cause.
const LIMITED: f64 = 0.3;
/// And this many times its peers'.
const TIMES_PEERS: f64 = 2.0;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    if !suspect.tx {
        return None;
    }
    let share = |row: &FlowRecord| limited_share(row, |info| info.send_buffer_limited_us);
    let limited = of_lone_flows(case, (suspect.host, true, false), share)?;
    if !limited.stands_out(LIMITED, TIMES_PEERS) {
        return None;
    }
    let name = case.observations.inventory().name(suspect.host);
    let share = percent(limited.own);
    Some(Reason {
        cause: Cause::SendBuffer,
        because: format!("its send buffer was the limit for {share} of the time"),
        evidence: vec![evidence(
            format!(
                "flows from {name}: limited by the send buffer for {share} of their busy time in the median{}",
                limited.against(percent),
            ),
            format!("flows.parquet: src = {name}, send_buffer_limited_us over busy_us"),
        )],
        hint: "compare `sysctl net.ipv4.tcp_wmem net.core.wmem_max` with the other hosts'; the buffer must hold what is on the way, \
               bandwidth times round trip, and as much again"
            .into(),
        confidence: 0.9,
    })
}
