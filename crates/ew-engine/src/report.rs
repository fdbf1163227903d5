//! From counter readings to a flow's report.

use crate::stream::Stream;
use crate::window::{FlowWindow, Reading};
use ew_model::record::{EndRecord, Interval, LatencySummary, StreamRecord};
use ew_proto::message::{FlowOrder, FlowReport, Role};
use ew_proto::round::RoundSpec;
use ew_sys::socket::TcpReading;
use hdrhistogram::Histogram;
use std::sync::Arc;

/// A silence at the window's end is a dead peer or path when it is this long and TCP's retransmissions are unanswered.
const SHORTEST_OUTAGE_MS: u64 = 500;
/// Without unanswered retransmissions the other end may only be short of CPU, which is a low figure and not a
/// missing one; but not for this long.
const SHORTEST_SILENCE_MS: u64 = 1000;

/// The report of a flow without a figure.
pub(crate) fn failed(order: &FlowOrder, error: String) -> FlowReport {
    FlowReport {
        flow: order.flow,
        sender: None,
        receiver: None,
        error: Some(error),
    }
}

/// The report of a flow that ran through the window, or why it has no figure.
pub(crate) fn measured(
    spec: &RoundSpec,
    order: &FlowOrder,
    streams: &[Arc<Stream>],
    window: &FlowWindow,
) -> FlowReport {
    if let Some(error) = first_silence(spec, order, window) {
        return failed(order, error);
    }
    let end = end_record(spec, order, streams, window);
    let (sender, receiver) = match order.role {
        Role::Send => (Some(end), None),
        Role::Receive => (None, Some(end)),
    };
    FlowReport {
        flow: order.flow,
        sender,
        receiver,
        error: None,
    }
}

/// The first error of a flow's streams before the window's end. Later ones are the peer's stop, seen because this host was
/// slow to read its counters.
pub(crate) fn first_error(spec: &RoundSpec, streams: &[Arc<Stream>]) -> Option<String> {
    let failures = streams.iter().map(|s| s.failure()).enumerate();
    let early = failures.filter_map(|(index, failure)| Some((index, failure?)));
    let (index, failure) = early
        .filter(|(_, failure)| failure.at_ns < spec.window_end_ns())
        .min_by_key(|(_, failure)| failure.at_ns)?;
    Some(name_stream(index, streams.len(), failure.error))
}

/// Says so when data did not move, or stopped moving.
fn first_silence(spec: &RoundSpec, order: &FlowOrder, window: &FlowWindow) -> Option<String> {
    let peer = order.peer.ip();
    if moved_bytes(order.role, window) == 0 {
        return Some(match order.role {
            Role::Send => format!("send to {peer}: no data moved in the window"),
            Role::Receive => format!("receive from {peer}: no data came in the window"),
        });
    }
    let tcp = &window.last.tcp;
    tcp.iter().enumerate().find_map(|(index, reading)| {
        let reading = reading.as_ref()?;
        let silent_ms = silent_ms(order.role, reading);
        let limit_ms = silence_limit_ms(spec.window_ns, reading.unanswered_timeouts);
        let told = (u64::from(silent_ms) > limit_ms).then(|| match order.role {
            Role::Send => {
                format!("send to {peer}: the peer was silent for the window's last {silent_ms} ms")
            }
            Role::Receive => {
                format!("receive from {peer}: no data came in the window's last {silent_ms} ms")
            }
        })?;
        Some(name_stream(index, tcp.len(), told))
    })
}

fn silence_limit_ms(window_ns: u64, unanswered_timeouts: u8) -> u64 {
    let window_ms = window_ns / 1_000_000;
    match unanswered_timeouts {
        0 => (window_ms / 2).max(SHORTEST_SILENCE_MS),
        _ => (window_ms / 3).max(SHORTEST_OUTAGE_MS),
    }
}

fn silent_ms(role: Role, reading: &TcpReading) -> u32 {
    match role {
        Role::Send => reading.since_last_ack_ms,
        Role::Receive => reading.since_last_data_ms,
    }
}

/// A sender's own count also holds what only went into the send buffer: what the peer acknowledged is better here.
fn moved_bytes(role: Role, window: &FlowWindow) -> u64 {
    let counted = counted_bytes(window);
    if role == Role::Receive {
        return counted;
    }
    let edges = window.first.tcp.iter().zip(&window.last.tcp);
    edges
        .map(|(first, last)| Some(last.as_ref()?.acked_bytes? - first.as_ref()?.acked_bytes?))
        .sum::<Option<u64>>()
        .unwrap_or(counted)
}

fn counted_bytes(window: &FlowWindow) -> u64 {
    match (window.readings.first(), window.readings.last()) {
        (Some(first), Some(last)) => last.bytes - first.bytes,
        _ => 0,
    }
}

fn end_record(
    spec: &RoundSpec,
    order: &FlowOrder,
    streams: &[Arc<Stream>],
    window: &FlowWindow,
) -> EndRecord {
    EndRecord {
        bytes: counted_bytes(window),
        window_ns: elapsed_ns(&window.readings),
        start_skew_ns: start_skew_ns(spec, order.role, streams, window),
        streams: stream_records(streams, window),
        intervals: intervals(&window.readings),
        latency: latency(streams),
    }
}

fn elapsed_ns(readings: &[Reading]) -> u64 {
    match (readings.first(), readings.last()) {
        (Some(first), Some(last)) => last.now_ns - first.now_ns,
        _ => 0,
    }
}

/// A sender's skew is its last stream's.
fn start_skew_ns(
    spec: &RoundSpec,
    role: Role,
    streams: &[Arc<Stream>],
    window: &FlowWindow,
) -> i64 {
    match role {
        Role::Send => streams
            .iter()
            .filter_map(|s| s.lane.first_send_ns())
            .map(|at_ns| difference_ns(at_ns, spec.start_ns))
            .max()
            .unwrap_or(0),
        Role::Receive => window
            .readings
            .first()
            .map_or(0, |first| difference_ns(first.now_ns, spec.window_start_ns)),
    }
}

fn difference_ns(achieved_ns: u64, planned_ns: u64) -> i64 {
    achieved_ns.wrapping_sub(planned_ns) as i64
}

fn stream_records(streams: &[Arc<Stream>], window: &FlowWindow) -> Vec<StreamRecord> {
    let (first, last) = (&window.first, &window.last);
    streams
        .iter()
        .enumerate()
        .map(|(index, stream)| StreamRecord {
            bytes: last.stream_bytes[index] - first.stream_bytes[index],
            local_port: stream.ports().local,
            peer_port: stream.ports().peer,
            tcp_info: last.tcp[index].map(|reading| reading.info),
            retransmits: retransmits(first.tcp[index].as_ref(), last.tcp[index].as_ref()),
        })
        .collect()
}

fn retransmits(first: Option<&TcpReading>, last: Option<&TcpReading>) -> Option<u64> {
    let segments = last?
        .info
        .total_retransmits
        .wrapping_sub(first?.info.total_retransmits);
    Some(u64::from(segments))
}

fn intervals(readings: &[Reading]) -> Vec<Interval> {
    let Some(start) = readings.first() else {
        return Vec::new();
    };
    readings
        .windows(2)
        .map(|pair| Interval {
            offset_ns: pair[0].now_ns - start.now_ns,
            length_ns: pair[1].now_ns - pair[0].now_ns,
            bytes: pair[1].bytes - pair[0].bytes,
        })
        .collect()
}

/// Histograms of the streams merged; `None` when there was no transaction.
fn latency(streams: &[Arc<Stream>]) -> Option<LatencySummary> {
    let mut merged: Option<Histogram<u64>> = None;
    for histogram in streams.iter().filter_map(|s| s.take_latency()) {
        match &mut merged {
            None => merged = Some(histogram),
            // All have the same bounds, so nothing can fall outside.
            Some(sum) => {
                let _ = sum.add(&histogram);
            }
        }
    }
    let histogram = merged.filter(|h| !h.is_empty())?;
    Some(LatencySummary {
        count: histogram.len(),
        min_ns: histogram.min(),
        mean_ns: histogram.mean().round() as u64,
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        max_ns: histogram.max(),
    })
}

fn name_stream(index: usize, count: usize, text: String) -> String {
    if count == 1 {
        return text;
    }
    format!("stream {} of {count}: {text}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_the_differences_of_readings() {
        let readings =
            [(1000, 5), (1100, 25), (1210, 26)].map(|(now_ns, bytes)| Reading { now_ns, bytes });
        let expected =
            [(0, 100, 20), (100, 110, 1)].map(|(offset_ns, length_ns, bytes)| Interval {
                offset_ns,
                length_ns,
                bytes,
            });
        assert_eq!(intervals(&readings), expected);
        assert_eq!(elapsed_ns(&readings), 210);
        assert_eq!(intervals(&[]), []);
    }

    #[test]
    fn a_silence_counts_sooner_when_retransmissions_are_unanswered() {
        let second_ns = 1_000_000_000;
        assert_eq!(silence_limit_ms(second_ns, 0), 1000);
        assert_eq!(silence_limit_ms(second_ns, 1), 500);
        assert_eq!(silence_limit_ms(12 * second_ns, 0), 6000);
        assert_eq!(silence_limit_ms(12 * second_ns, 3), 4000);
    }

    #[test]
    fn skew_has_a_sign() {
        assert_eq!(difference_ns(5, 7), -2);
        assert_eq!(difference_ns(7, 5), 2);
    }
}
