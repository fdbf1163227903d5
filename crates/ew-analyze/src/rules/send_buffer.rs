//! The sender's buffer is too small to keep the path full.

use super::case::Case;
use super::peers::of_isolated_flows;
use super::receive_window::limited_share;
use super::suspect::Suspect;
use ew_evidence::criteria::{HELD_BACK, TIMES_PEERS, TIMES_TYPICAL};
use ew_model::finding::details::{LimitingSendBuffer, SmallSendBuffer, Why};
use ew_model::record::{FlowRecord, TcpInfo};

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    if !suspect.tx {
        return None;
    }
    limited(case, suspect).or_else(|| small(case, suspect))
}

/// The kernel has counted the time.
fn limited(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let share = |row: &FlowRecord| limited_share(row, |info| info.send_buffer_limited_us);
    let limited = of_isolated_flows(case, (suspect.host, true, false), share)?;
    if !limited.stands_out(HELD_BACK, TIMES_PEERS) {
        return None;
    }
    Some(Why::LimitingSendBuffer(LimitingSendBuffer {
        host: suspect.host,
        limited_share: limited.into(),
    }))
}

/// The kernel counts no time while the program is between two writes, which a buffer of few
/// segments hides in; but then it contains less than the congestion window lets out, which no other
/// limit does.
fn small(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let who = (suspect.host, true, false);
    let buffer = of_isolated_flows(case, who, buffer_bytes)?;
    let peers = buffer.peers?;
    let window = of_isolated_flows(case, who, window_bytes)?.own;
    if buffer.own > peers / TIMES_TYPICAL || buffer.own > window / TIMES_PEERS {
        return None;
    }
    Some(Why::SmallSendBuffer(SmallSendBuffer {
        host: suspect.host,
        buffer_bytes: buffer.into(),
        congestion_window_bytes: window as u64,
    }))
}

/// The min of a flow's streams.
fn buffer_bytes(row: &FlowRecord) -> Option<f64> {
    let bytes = infos(row).filter_map(|info| info.send_buffer_bytes);
    bytes.min().map(|bytes| bytes as f64)
}

/// The min of a flow's streams.
fn window_bytes(row: &FlowRecord) -> Option<f64> {
    let bytes =
        |info: TcpInfo| u64::from(info.congestion_window_segments) * u64::from(info.send_mss_bytes);
    infos(row).map(bytes).min().map(|bytes| bytes as f64)
}

fn infos(row: &FlowRecord) -> impl Iterator<Item = TcpInfo> {
    let streams = row.sender.iter().flat_map(|sender| &sender.streams);
    streams.filter_map(|stream| stream.tcp_info)
}
