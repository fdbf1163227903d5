//! Reading the counters at the window's edges and in between.

use crate::clock_wait::Cancelled;
use crate::cpu::CpuReading;
use crate::shared::RoundShared;
use crate::stream::Stream;
use ew_model::record::CpuUse;
use ew_proto::round::RoundSpec;
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{TcpReading, tcp_info};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A window may lose one part in so many to the peer's stop.
const MAX_CUT: u64 = 4;

/// What was read in a window.
#[derive(Debug)]
pub(crate) struct Observed {
    /// One entry per flow.
    pub(crate) flows: Vec<FlowWindow>,
    /// `None` where the host's counters cannot be read.
    pub(crate) cpu: Option<CpuUse>,
}

/// What was read of one flow.
#[derive(Debug, Default)]
pub(crate) struct FlowWindow {
    pub(crate) first: Edge,
    /// The flow's bytes and the time of their reading: first edge, intervals, last edge.
    pub(crate) readings: Vec<Reading>,
    pub(crate) last: Edge,
    /// All its streams did all they were to do.
    pub(crate) is_done: bool,
    /// The peer stopped all its streams before the end.
    pub(crate) is_cut: bool,
}

/// All streams at one edge of the window.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    pub(crate) stream_bytes: Vec<u64>,
    pub(crate) transactions: u64,
    /// `None` where the socket is gone.
    pub(crate) tcp: Vec<Option<TcpReading>>,
}

/// A flow's counters, summed over its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) now_ns: u64,
    pub(crate) bytes: u64,
}

/// Sleeps through the window and reads.
pub(crate) fn observe(
    spec: &RoundSpec,
    shared: &RoundShared,
    flows: &[Vec<Arc<Stream>>],
) -> Result<Observed, Cancelled> {
    let cancel = &shared.cancel;
    let has_tcp = shared.data_is_on_the_connection;
    let mut windows = allocate(spec, flows);
    cancel.sleep_until(spec.window_start_ns)?;
    let bytes_of = match shared.counts_what_comes {
        true => Stream::arrived_bytes,
        false => Stream::counted_bytes,
    };
    read_counters(bytes_of, flows, &mut windows, |w| &mut w.first);
    shared.window_open.store(true, Ordering::Release);
    let cpu_at_first = CpuReading::take(shared, flows);
    read_tcp(has_tcp, flows, &mut windows, |w| &mut w.first);
    for at_ns in interval_times(spec) {
        cancel.sleep_until(at_ns)?;
        for (streams, window) in flows.iter().zip(&mut windows) {
            let now_ns = monotonic_ns();
            let bytes = streams.iter().map(|s| bytes_of(s)).sum();
            window.readings.push(Reading { now_ns, bytes });
        }
    }
    cancel.sleep_until(spec.window_end_ns())?;
    read_counters(bytes_of, flows, &mut windows, |w| &mut w.last);
    let cpu_at_last = CpuReading::take(shared, flows);
    read_tcp(has_tcp, flows, &mut windows, |w| &mut w.last);
    let edges = cpu_at_first.zip(cpu_at_last);
    Ok(Observed {
        flows: windows,
        cpu: edges.map(|(first, last)| last.since(&first)),
    })
}

impl Observed {
    /// Ends each flow's window with its streams, where these ended first. To be called when the
    /// peers have stopped, so that every stream has noticed.
    pub(crate) fn end_with_streams(&mut self, spec: &RoundSpec, flows: &[Vec<Arc<Stream>>]) {
        for (streams, window) in flows.iter().zip(&mut self.flows) {
            end_with_streams(spec, streams, window);
        }
    }
}

/// Where a window ends that the peer's stop cuts: its clock and this host's differ by more than the
/// streams go on for. `None`: so early that something else is the matter.
#[must_use]
pub fn cut_ns(window_ns: &Range<u64>, stopped_ns: u64) -> Option<u64> {
    let length_ns = window_ns.end.saturating_sub(window_ns.start);
    let is_near = window_ns.end.saturating_sub(stopped_ns) <= length_ns / MAX_CUT;
    is_near.then(|| stopped_ns.min(window_ns.end))
}

/// When the peer stopped all streams of a flow inside the window, where that can be cut there.
pub(crate) fn peers_stop_ns(spec: &RoundSpec, streams: &[Arc<Stream>]) -> Option<u64> {
    let stops: Option<Vec<u64>> = streams
        .iter()
        .map(|stream| stream.failure().filter(|f| f.is_peers_stop))
        .map(|failure| failure.map(|f| f.at_ns))
        .collect();
    let stops = stops?;
    let window_ns = spec.window_start_ns..spec.window_end_ns();
    cut_ns(&window_ns, stops.iter().copied().min()?)?;
    // Until the last one data moved.
    stops.into_iter().max().filter(|at| *at < window_ns.end)
}

/// When this host read so late that the peer had stopped already, the counts belong to the time
/// until then; and so they do when all streams had ended, or done their work, before the end.
fn end_with_streams(spec: &RoundSpec, streams: &[Arc<Stream>], window: &mut FlowWindow) {
    let failures = streams.iter().filter_map(|s| s.failure());
    let after_window = failures
        .map(|f| f.at_ns)
        .filter(|at| *at >= spec.window_end_ns());
    let cut = peers_stop_ns(spec, streams);
    let done: Option<Vec<_>> = streams.iter().map(|s| s.counters.done_ns()).collect();
    let done_ns = done.and_then(|at| at.into_iter().max());
    (window.is_done, window.is_cut) = (done_ns.is_some(), cut.is_some());
    let Some(last) = window.readings.last_mut() else {
        return;
    };
    for ended_ns in after_window.min().into_iter().chain(cut).chain(done_ns) {
        last.now_ns = last.now_ns.min(ended_ns);
    }
    let end_ns = last.now_ns;
    // Nothing moved after the end.
    window.readings.dedup_by(|later, earlier| {
        let is_after = earlier.now_ns >= end_ns;
        if is_after {
            earlier.now_ns = end_ns;
            earlier.bytes = later.bytes;
        }
        is_after
    });
}

/// The times strictly inside the window.
fn interval_times(spec: &RoundSpec) -> impl Iterator<Item = u64> + use<> {
    let (start_ns, end_ns, step_ns) =
        (spec.window_start_ns, spec.window_end_ns(), spec.interval_ns);
    (1..)
        .map_while(move |k: u64| start_ns.checked_add(step_ns.checked_mul(k)?))
        .take_while(move |at_ns| step_ns > 0 && *at_ns < end_ns)
}

fn allocate(spec: &RoundSpec, flows: &[Vec<Arc<Stream>>]) -> Vec<FlowWindow> {
    let intervals = interval_times(spec).count();
    let mut windows = Vec::with_capacity(flows.len());
    for streams in flows {
        let edge = || Edge {
            stream_bytes: Vec::with_capacity(streams.len()),
            transactions: 0,
            tcp: Vec::with_capacity(streams.len()),
        };
        windows.push(FlowWindow {
            first: edge(),
            readings: Vec::with_capacity(intervals + 2),
            last: edge(),
            is_done: false,
            is_cut: false,
        });
    }
    windows
}

fn read_counters(
    bytes_of: fn(&Stream) -> u64,
    flows: &[Vec<Arc<Stream>>],
    windows: &mut [FlowWindow],
    edge: impl Fn(&mut FlowWindow) -> &mut Edge,
) {
    for (streams, window) in flows.iter().zip(windows) {
        let now_ns = monotonic_ns();
        let edge = edge(window);
        let counts = streams.iter().map(|s| bytes_of(s));
        edge.stream_bytes.extend(counts);
        edge.transactions = streams.iter().map(|s| s.counters.transactions()).sum();
        let bytes = edge.stream_bytes.iter().sum();
        window.readings.push(Reading { now_ns, bytes });
    }
}

/// Where the data does not go over the connections, theirs shows nothing.
fn read_tcp(
    has_tcp: bool,
    flows: &[Vec<Arc<Stream>>],
    windows: &mut [FlowWindow],
    edge: impl Fn(&mut FlowWindow) -> &mut Edge,
) {
    for (streams, window) in flows.iter().zip(windows) {
        let tcp = &mut edge(window).tcp;
        tcp.extend(
            streams
                .iter()
                .map(|s| s.connection().filter(|_| has_tcp))
                .map(|connection| tcp_info(&*connection?).ok()),
        );
    }
}
