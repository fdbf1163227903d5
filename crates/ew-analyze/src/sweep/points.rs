//! One stage of a sweep as a point of its curve.

use crate::latency;
use ew_evidence::observations::{StageView, times, typical_ns};
use ew_model::analysis::{Estimate, LatencyFigures};
use ew_model::latency::Histogram;
use ew_model::record::{FlowRecord, TcpInfo};
use ew_model::sweep::SweepPoint;
use ew_model::workload::Workload;
use ew_stats::{median, median_estimate, sorted};

/// A point that was measured, with what the sockets report of it.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) bytes: u64,
    /// One message; ping-pong: half the median round trip.
    pub(super) message_ns: f64,
    pub(super) round_trip: Option<LatencyFigures>,
    /// The stage's name, where its rows are found.
    pub(super) stage: String,
    /// What the sender's TCP reports, medians over streams and rounds.
    pub(super) mss_bytes: Option<u64>,
    pub(super) min_rtt_ns: Option<u64>,
    /// Share of the time with data in flight in which the receiver's window, or the send buffer,
    /// limited the sender.
    pub(super) limited_share: Option<f64>,
    pub(super) retransmits: u64,
}

impl Measured {
    pub(super) fn bits_per_sec(&self) -> f64 {
        8e9 * self.bytes as f64 / self.message_ns
    }
}

/// For the reports.
pub(super) fn point(stage: &StageView<'_>) -> SweepPoint {
    let bytes = stage.stage.workload.message_bytes;
    let rates: Vec<f64> = match stage.is_bulk() {
        true => stage
            .measured()
            .filter_map(FlowRecord::bits_per_sec)
            .collect(),
        false => stage
            .measured()
            .filter_map(|row| there(row, &stage.stage.workload))
            .collect(),
    };
    let bits_per_sec = median_estimate(&rates);
    SweepPoint {
        message_bytes: bytes,
        bits_per_sec,
        message_ns: message_ns(stage, bits_per_sec),
        round_trip: round_trip(stage),
        missing: stage.missing.len() as u32,
    }
}

/// For the curve. `None` without a figure.
pub(super) fn measured(stage: &StageView<'_>) -> Option<Measured> {
    let point = point(stage);
    let infos: Vec<TcpInfo> = stage
        .measured()
        .filter_map(|row| row.sender.as_ref())
        .flat_map(|end| &end.streams)
        .filter_map(|stream| stream.tcp_info)
        .collect();
    let over = |figure: fn(&TcpInfo) -> Option<f64>| {
        median(&infos.iter().filter_map(figure).collect::<Vec<_>>())
    };
    let message_ns = point.message_ns.filter(|ns| ns.is_finite() && *ns > 0.0)?;
    Some(Measured {
        bytes: point.message_bytes,
        message_ns,
        round_trip: point.round_trip,
        stage: stage.stage.name.clone(),
        mss_bytes: over(|info| Some(f64::from(info.send_mss_bytes))).map(|mss| mss as u64),
        min_rtt_ns: over(|info| info.min_rtt_us.map(f64::from)).map(|us| (us * 1000.0) as u64),
        limited_share: over(limited_share),
        retransmits: stage.measured().filter_map(FlowRecord::retransmits).sum(),
    })
}

fn limited_share(info: &TcpInfo) -> Option<f64> {
    let busy_us = info.busy_us.filter(|us| *us > 0)? as f64;
    let limited_us = info.receive_window_limited_us? + info.send_buffer_limited_us?;
    Some(limited_us as f64 / busy_us)
}

/// A row's rate as NetPIPE gives it: the size over half the round trip.
fn there(row: &FlowRecord, workload: &Workload) -> Option<f64> {
    let round_trip_ns = typical_ns(row)? as f64 * workload.meaning().round_trips;
    let bits = 8.0 * workload.message_bytes as f64;
    (round_trip_ns > 0.0).then(|| 1e9 * bits / (round_trip_ns / 2.0))
}

fn message_ns(stage: &StageView<'_>, rate: Option<Estimate>) -> Option<f64> {
    let bytes = stage.stage.workload.message_bytes as f64;
    let rate = rate?.value;
    (rate > 0.0).then(|| 8e9 * bytes / rate)
}

/// Of all flows and rounds.
fn round_trip(stage: &StageView<'_>) -> Option<LatencyFigures> {
    let mut all = Histogram::default();
    for row in stage.measured() {
        if let Some(times) = times(row) {
            all.merge(times);
        }
    }
    latency::figures(&all)
}

/// The middle one of every three neighbours, so that one lucky or unlucky size decides nothing; the
/// ends stay.
pub(super) fn smoothed(values: &[f64]) -> Vec<f64> {
    let at = |i: usize| match (i.checked_sub(1), values.get(i + 1)) {
        (Some(before), Some(after)) => sorted(&[values[before], values[i], *after])[1],
        _ => values[i],
    };
    (0..values.len()).map(at).collect()
}
