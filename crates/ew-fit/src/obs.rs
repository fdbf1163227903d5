//! A measured flow.

use ew_evidence::criteria::{LEAST_FILL, MIN_SAMPLES};
use ew_evidence::flow_pace;
use ew_model::record::{EndRecord, FlowRecord};
use ew_model::workload::{StreamCount, Workload};
use ew_model::{HostId, Inventory};
use ew_stats::quantile;

/// One measured flow.
#[derive(Clone, Debug)]
pub struct Obs {
    pub src: HostId,
    pub dst: HostId,
    /// Racks of its ends when they are known and differ.
    pub(super) racks: Option<(usize, usize)>,
    pub bits_per_sec: f64,
    pub(super) ln_rate: f64,
    /// 0 to 1, see [`starvation`](ew_evidence::quality::starvation).
    pub starvation: f64,
    /// How little a low rate shows, 0 to 1: starvation, and whatever else is known to lower it.
    pub(super) doubt: f64,
    /// Connections of the flow, each with a share and a hash of its own.
    pub(super) streams: f64,
    /// What the flow is paced to.
    pub(super) pace_bits_per_sec: f64,
    /// It is known to ask for no more than what it carried.
    pub(super) asks_what_it_got: bool,
    /// Segments retransmitted over segments sent. `None` where the kernel does not report.
    pub retransmitted_share: Option<f64>,
    /// Its better intervals are close to the middle ones: it cannot exceed what it does.
    pub(super) is_steady: bool,
}

impl Obs {
    /// Whether its connections are enough to spread over parallel paths.
    pub(super) fn has_many_streams(&self) -> bool {
        has_many_streams(self.streams)
    }
}

pub(super) fn has_many_streams(streams: f64) -> bool {
    streams >= MIN_SAMPLES as f64
}

pub(super) fn obs(
    inventory: &Inventory,
    workload: &Workload,
    row: &FlowRecord,
    rate: f64,
    starvation: f64,
) -> Obs {
    Obs {
        src: row.src,
        dst: row.dst,
        racks: inventory.racks_between(row.src, row.dst),
        bits_per_sec: rate,
        ln_rate: rate.ln(),
        starvation,
        doubt: starvation,
        streams: streams(workload, row),
        pace_bits_per_sec: flow_pace(workload).unwrap_or(f64::INFINITY),
        asks_what_it_got: false,
        retransmitted_share: retransmitted_share(row),
        is_steady: is_steady(row),
    }
}

/// Rounds that double have what the sender counts.
fn streams(workload: &Workload, row: &FlowRecord) -> f64 {
    let counted = row.sender.as_ref().map_or(0, |end| end.streams.len());
    match workload.stream_count {
        StreamCount::Doubling if counted > 0 => counted as f64,
        _ => f64::from(workload.streams.max(1)),
    }
}

/// Segments retransmitted since they were lost, over segments sent.
pub fn retransmitted_share(row: &FlowRecord) -> Option<f64> {
    let sender = row.sender.as_ref()?;
    let mss = sender
        .streams
        .iter()
        .find_map(|stream| stream.tcp_info)?
        .send_mss_bytes;
    let segments = sender.bytes as f64 / f64::from(if mss == 0 { 1448 } else { mss });
    Some(row.lost_segments()? as f64 / segments.max(1.0))
}

/// Whether the flow's better intervals are hardly better than the middle ones, as when what it
/// fills cannot be exceeded.
fn is_steady(row: &FlowRecord) -> bool {
    let intervals = row
        .receiver
        .iter()
        .flat_map(EndRecord::interval_bits_per_sec);
    let rates: Vec<f64> = intervals.collect();
    match (quantile(&rates, 0.9), quantile(&rates, 0.5)) {
        (Some(high), Some(middle)) => middle >= LEAST_FILL * high,
        _ => true,
    }
}
