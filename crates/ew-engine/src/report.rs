//! From counter readings to a flow's report.

use crate::stream::Stream;
use crate::tally::{self, Tally};
use crate::window::{self, FlowWindow, Reading};
use crate::workload::machine::Prepared;
use ew_model::latency::Latency;
use ew_model::record::{CpuUse, EndRecord, FigureNote, Interval, SizeTimes, StreamRecord};
use ew_model::workload::WorkloadKind;
use ew_proto::message::{EndState, FlowOrder, FlowReport, Role};
use ew_proto::round::RoundSpec;
use ew_sys::socket::TcpReading;
use socket2::SockRef;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is known of one flow of a round.
pub(crate) struct Flow<'a> {
    pub(crate) order: &'a FlowOrder,
    pub(crate) streams: &'a [Arc<Stream>],
    pub(crate) window: &'a FlowWindow,
    /// The whole host's.
    pub(crate) cpu: Option<CpuUse>,
    /// Of the threads that drove its streams.
    pub(crate) tallies: Vec<&'a Tally>,
    pub(crate) standing: Option<EndState>,
}

/// The report of a flow without a figure.
pub(crate) fn failed(order: &FlowOrder, error: String) -> FlowReport {
    FlowReport {
        flow: order.flow,
        sender: None,
        receiver: None,
        standing: None,
        error: Some(error),
    }
}

/// State of every flow at the window's end, in the order of the flows.
pub(crate) fn standings(
    orders: &[FlowOrder],
    windows: &[FlowWindow],
    link_up: bool,
) -> Vec<Option<EndState>> {
    let flows = orders.iter().zip(windows);
    let ends: Vec<_> = flows
        .map(|(o, w)| (o.role, w.last.tcp.as_slice()))
        .collect();
    let arrivals: Vec<_> = ends
        .iter()
        .map(|(role, tcp)| since_data_ms(*role, tcp))
        .collect();
    ends.iter()
        .zip(min_of_others(&arrivals))
        .map(|((role, tcp), others_ms)| standing(*role, tcp, others_ms, link_up))
        .collect()
}

/// The report of a flow that ran through the window. When no data moved there is an error, and
/// counts, which show that its connections had opened.
pub(crate) fn measured(spec: &RoundSpec, prepared: &dyn Prepared, flow: &Flow<'_>) -> FlowReport {
    let order = flow.order;
    let counts = prepared.counts(order.role);
    let end = Box::new(end_record(spec, flow));
    let error = match counts && !lost_all(order.role, &end) {
        true => standstill(order, flow.window),
        false => None,
    };
    let (sender, receiver) = match order.role {
        Role::Send => (Some(end), None),
        Role::Receive => (None, Some(end)),
    };
    FlowReport {
        flow: order.flow,
        sender,
        receiver,
        // A flow that has done its work, or was stopped, is silent for good reason, as is one that
        // may have no work; one that stood still has its error.
        standing: flow
            .standing
            .filter(|_| error.is_none() && !flow.window.is_done && !flow.window.is_cut && counts),
        error,
    }
}

/// The first error of a flow's streams before the window's end. Later ones are the peer's stop,
/// seen because this host was slow to read its counters; and so are those that cut the window.
pub(crate) fn first_error(spec: &RoundSpec, streams: &[Arc<Stream>]) -> Option<String> {
    if window::peers_stop_ns(spec, streams).is_some() {
        return None;
    }
    let failures = streams.iter().map(|s| s.failure()).enumerate();
    let early = failures.filter_map(|(index, failure)| Some((index, failure?)));
    let (index, failure) = early
        .filter(|(_, failure)| failure.at_ns < spec.window_end_ns())
        .min_by_key(|(_, failure)| failure.at_ns)?;
    Some(name_stream(index, streams.len(), failure.error))
}

/// Whether nothing came because it was lost on the way, which is a figure: 0. The receiver polled,
/// and that its peer is there is known by its connection.
fn lost_all(role: Role, end: &EndRecord) -> bool {
    role == Role::Receive && end.datagrams.is_some()
}

/// An error when data did not move.
fn standstill(order: &FlowOrder, window: &FlowWindow) -> Option<String> {
    let peer = order.peer.ip();
    (moved_bytes(order.role, window) == 0).then(|| match order.role {
        Role::Send => format!("send to {peer}: no data moved in the window"),
        Role::Receive => format!("receive from {peer}: no data came in the window"),
    })
}

/// `None` when no socket could be read.
fn standing(
    role: Role,
    tcp: &[Option<TcpReading>],
    others_silent_ms: Option<u32>,
    link_up: bool,
) -> Option<EndState> {
    let readings = (0..)
        .zip(tcp)
        .filter_map(|(n, tcp)| Some((n, tcp.as_ref()?)));
    // While one of its streams hears its peer, a flow is alive: the others are starved, or on a bad
    // path, and their counts true.
    let (stream, reading) = readings.min_by_key(|(_, reading)| silent_ms(role, reading))?;
    Some(EndState {
        stream,
        silent_ms: silent_ms(role, reading),
        unanswered_timeouts: reading.unanswered_timeouts,
        others_silent_ms,
        link_up,
    })
}

fn silent_ms(role: Role, reading: &TcpReading) -> u32 {
    match role {
        Role::Send => reading.since_last_ack_ms,
        Role::Receive => reading.since_last_data_ms,
    }
}

/// Since any stream of the flow brought this host data, ms.
fn since_data_ms(role: Role, tcp: &[Option<TcpReading>]) -> Option<u32> {
    let arrivals = tcp
        .iter()
        .flatten()
        .map(|reading| reading.since_last_data_ms);
    arrivals.min().filter(|_| role == Role::Receive)
}

/// For each index the min value of all others.
fn min_of_others(values: &[Option<u32>]) -> Vec<Option<u32>> {
    let mut ranked: Vec<(u32, usize)> = (values.iter().enumerate())
        .filter_map(|(at, value)| Some(((*value)?, at)))
        .collect();
    ranked.sort_unstable();
    let min_without = |at| ranked.iter().find(|(_, owner)| *owner != at);
    (0..values.len())
        .map(|at| min_without(at).map(|(value, _)| *value))
        .collect()
}

/// A sender's own count also contains what only went into the send buffer: what the peer
/// acknowledged is better here, but for a flow that has done its work, which may have been
/// acknowledged before the first `TCP_INFO` was read, and where the kernel's count went back, as
/// was seen of MPTCP.
fn moved_bytes(role: Role, window: &FlowWindow) -> u64 {
    let counted = counted_bytes(window);
    if role == Role::Receive || window.is_done {
        return counted;
    }
    let edges = window.first.tcp.iter().zip(&window.last.tcp);
    edges
        .map(|(first, last)| {
            let acked_before = first.as_ref()?.acked_bytes?;
            last.as_ref()?.acked_bytes?.checked_sub(acked_before)
        })
        .sum::<Option<u64>>()
        .unwrap_or(counted)
}

fn counted_bytes(window: &FlowWindow) -> u64 {
    match (window.readings.first(), window.readings.last()) {
        (Some(first), Some(last)) => last.bytes - first.bytes,
        _ => 0,
    }
}

fn end_record(spec: &RoundSpec, flow: &Flow<'_>) -> EndRecord {
    let window = flow.window;
    let times = tally::merged(flow.tallies.iter().map(|t| &t.times));
    let transactions = window.last.transactions - window.first.transactions;
    EndRecord {
        bytes: counted_bytes(window),
        window_ns: elapsed_ns(&window.readings),
        start_skew_ns: start_skew_ns(spec, flow),
        streams: stream_records(flow.streams, window),
        congestion: congestion(flow),
        intervals: intervals(&window.readings),
        transactions: (transactions > 0).then_some(transactions),
        latency: times.map(|times| Latency {
            times,
            uncorrected: tally::merged(flow.tallies.iter().map(|t| &t.uncorrected)),
        }),
        connect_latency: tally::merged(flow.tallies.iter().map(|t| &t.connect_times)),
        completions: completions(spec, &flow.tallies),
        datagrams: tally::datagrams(flow.tallies.iter().copied()),
        one_way_delay: tally::merged(flow.tallies.iter().map(|t| &t.one_way_delays)),
        cpu: flow.cpu,
        notes: notes(flow.streams),
        ..EndRecord::default()
    }
}

/// Of messages by their sizes.
fn completions(spec: &RoundSpec, tallies: &[&Tally]) -> Vec<SizeTimes> {
    match spec.workload.kind {
        WorkloadKind::FlowSizes => tally::sizes(&spec.workload.distribution.classes(), tallies),
        _ => Vec::new(),
    }
}

/// As the first stream's socket has it now.
fn congestion(flow: &Flow<'_>) -> Option<String> {
    // Where the data is not on the connections, theirs was not read.
    flow.window.last.tcp.first()?.as_ref()?;
    let connection = flow.streams.first()?.connection()?;
    let name = SockRef::from(&*connection).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Ascending, each once.
fn notes(streams: &[Arc<Stream>]) -> Vec<FigureNote> {
    let all: BTreeSet<_> = streams.iter().flat_map(|s| s.notes()).collect();
    all.into_iter().collect()
}

fn elapsed_ns(readings: &[Reading]) -> u64 {
    match (readings.first(), readings.last()) {
        (Some(first), Some(last)) => last.now_ns - first.now_ns,
        _ => 0,
    }
}

/// A sender's skew is its last stream's.
fn start_skew_ns(spec: &RoundSpec, flow: &Flow<'_>) -> i64 {
    match flow.order.role {
        Role::Send => (flow.streams.iter())
            .filter_map(|s| s.counters.first_send_ns())
            .map(|at_ns| difference_ns(at_ns, spec.start_ns))
            .max()
            .unwrap_or(0),
        Role::Receive => (flow.window.readings.first())
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
            retransmits: grown(&first.tcp[index], &last.tcp[index], |reading| {
                Some(reading.info.total_retransmits)
            }),
            spurious_retransmits: grown(&first.tcp[index], &last.tcp[index], |reading| {
                reading.duplicates
            }),
            path: stream.path(),
        })
        .collect()
}

/// A count's growth. `None` where the kernel's went back: see [`moved_bytes`].
fn grown(
    first: &Option<TcpReading>,
    last: &Option<TcpReading>,
    count: impl Fn(&TcpReading) -> Option<u32>,
) -> Option<u64> {
    let of = |reading: &Option<TcpReading>| count(reading.as_ref()?);
    of(last)?.checked_sub(of(first)?).map(u64::from)
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

fn name_stream(index: usize, count: usize, text: String) -> String {
    if count == 1 {
        return text;
    }
    format!("stream {} of {count}: {text}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::FlowId;
    use ew_model::record::TcpInfo;
    use std::net::SocketAddr;

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

    fn order(role: Role) -> FlowOrder {
        FlowOrder::new(FlowId(0), role, true, SocketAddr::from(([127, 0, 0, 1], 9)))
    }

    /// A flow whose streams last heard data this long ago, and acknowledgements 1 ms later.
    fn window(since_data_ms: &[u32]) -> FlowWindow {
        let reading = |ms: &u32| TcpReading {
            unanswered_timeouts: 2,
            since_last_ack_ms: ms - 1,
            since_last_data_ms: *ms,
            ..TcpReading::default()
        };
        let mut window = FlowWindow::default();
        window.last.tcp = since_data_ms.iter().map(|ms| Some(reading(ms))).collect();
        window
    }

    #[test]
    fn a_flow_is_as_silent_as_its_least_silent_stream_next_to_what_others_received() {
        let roles = [Role::Receive, Role::Send, Role::Receive, Role::Receive];
        let orders = roles.map(order);
        let mut windows = [&[800, 900][..], &[3], &[70], &[40, 600]].map(window);
        windows[1].last.tcp.push(None);
        let reported: Vec<_> = standings(&orders, &windows, true)
            .into_iter()
            .map(|s| s.map(|s| (s.stream, s.silent_ms, s.others_silent_ms)))
            .collect();
        let expected = [
            Some((0, 800, Some(40))),
            Some((0, 2, Some(40))),
            Some((0, 70, Some(40))),
            Some((0, 40, Some(70))),
        ];
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_host_with_one_receiving_flow_knows_of_no_others() {
        let orders = [Role::Receive, Role::Send].map(order);
        let windows = [&[800][..], &[5]].map(window);
        let standings = standings(&orders, &windows, false);
        let receiver = EndState {
            stream: 0,
            silent_ms: 800,
            unanswered_timeouts: 2,
            others_silent_ms: None,
            link_up: false,
        };
        assert_eq!(standings[0], Some(receiver));
        assert_eq!(standings[1].unwrap().others_silent_ms, Some(800));
        let gone = super::standings(&orders[..1], &[FlowWindow::default()], true);
        assert_eq!(gone, [None]);
    }

    #[test]
    fn counters_of_the_kernel_that_went_back_have_no_difference() {
        let reading = |acked_bytes, total_retransmits| TcpReading {
            acked_bytes: Some(acked_bytes),
            info: TcpInfo {
                total_retransmits,
                ..TcpInfo::default()
            },
            ..TcpReading::default()
        };
        let (first, last) = (reading(900, 7), reading(20, 1));
        let readings = [(0, 100), (9, 150)].map(|(now_ns, bytes)| Reading { now_ns, bytes });
        let mut window = FlowWindow {
            readings: readings.to_vec(),
            ..FlowWindow::default()
        };
        window.first.tcp = vec![Some(first)];
        window.last.tcp = vec![Some(last)];
        assert_eq!(moved_bytes(Role::Send, &window), 50);
        let retransmits = |first: TcpReading, last: Option<TcpReading>| {
            grown(&Some(first), &last, |reading| {
                Some(reading.info.total_retransmits)
            })
        };
        assert_eq!(retransmits(first, Some(last)), None);
        window.last.tcp = vec![Some(reading(930, 9))];
        assert_eq!(moved_bytes(Role::Send, &window), 30);
        assert_eq!(retransmits(first, window.last.tcp[0]), Some(2));
    }

    #[test]
    fn skew_has_a_sign() {
        assert_eq!(difference_ns(5, 7), -2);
        assert_eq!(difference_ns(7, 5), 2);
    }
}
