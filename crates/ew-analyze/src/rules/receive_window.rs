//! The receiver's window limits the senders: its buffer is too small for the path.

use super::case::Case;
use super::peers::of_isolated_flows;
use super::suspect::Suspect;
use ew_evidence::criteria::{HELD_BACK, TIMES_PEERS};
use ew_model::finding::details::{SmallReceiveWindow, Why};
use ew_model::record::{FlowRecord, TcpInfo};

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    if !suspect.rx {
        return None;
    }
    let share = |row: &FlowRecord| limited_share(row, |info| info.receive_window_limited_us);
    let limited = of_isolated_flows(case, (suspect.host, false, true), share)?;
    if !limited.stands_out(HELD_BACK, TIMES_PEERS) {
        return None;
    }
    Some(Why::SmallReceiveWindow(SmallReceiveWindow {
        host: suspect.host,
        limited_share: limited.into(),
    }))
}

/// A limit's time over the busy time, all streams of a flow.
pub(super) fn limited_share(row: &FlowRecord, limit: fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
    let streams = &row.sender.as_ref()?.streams;
    let infos = || streams.iter().filter_map(|stream| stream.tcp_info);
    let busy_us: u64 = infos().filter_map(|info| info.busy_us).sum();
    let limited_us: Option<u64> = infos().map(|info| limit(&info)).sum();
    (busy_us > 0).then_some(limited_us? as f64 / busy_us as f64)
}
