//! The receiver's window holds the senders back: its buffer is too small for the path.

use super::peers::{of_lone_flows, percent};
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use ew_model::finding::Cause;
use ew_model::record::{FlowRecord, TcpInfo};

/// Share of the time with data in flight that was limited before it is a cause.
const LIMITED: f64 = 0.3;
/// And this many times its peers'.
const TIMES_PEERS: f64 = 2.0;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    if !suspect.rx {
        return None;
    }
    let share = |row: &FlowRecord| limited_share(row, |info| info.receive_window_limited_us);
    let limited = of_lone_flows(case, (suspect.host, false, true), share)?;
    if !limited.stands_out(LIMITED, TIMES_PEERS) {
        return None;
    }
    let name = case.observations.inventory().name(suspect.host);
    let share = percent(limited.own);
    Some(Reason {
        cause: Cause::ReceiveWindow,
        because: format!("receive window limited the senders {share} of the time"),
        evidence: vec![evidence(
            format!(
                "flows to {name}: limited by the receiver's window for {share} of their busy time in the median{}",
                limited.against(percent),
            ),
            format!("flows.parquet: dst = {name}, receive_window_limited_us over busy_us"),
        )],
        hint: "compare `sysctl net.ipv4.tcp_rmem net.core.rmem_max net.ipv4.tcp_moderate_rcvbuf` with the other hosts'; the largest \
               buffer must hold twice the bandwidth times the round trip"
            .into(),
    })
}

/// A limit's time over the busy time, all streams of a flow.
pub(super) fn limited_share(row: &FlowRecord, limit: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
    let streams = &row.sender.as_ref()?.streams;
    let infos = || streams.iter().filter_map(|stream| stream.tcp_info);
    let busy_us: u64 = infos().filter_map(|info| info.busy_us).sum();
    let limited_us: Option<u64> = infos().map(|info| limit(&info)).sum();
    (busy_us > 0).then_some(limited_us? as f64 / busy_us as f64)
}
