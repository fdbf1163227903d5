//! From counters to figures: intervals, the omitted time, totals.

use crate::report::{Ended, Figures, Interval, StreamInterval, StreamTotal, TcpExtremes, TcpState};
use crate::stream::{Counted, Stream};
use crate::wire::params::Protocol;
use crate::wire::results::{CpuPercent, Results, StreamResult};
use ew_sys::socket::tcp_info;

/// Watches the streams of one end.
#[derive(Debug)]
pub(crate) struct Meter {
    protocol: Protocol,
    /// When the test began, CLOCK_MONOTONIC.
    began_ns: u64,
    /// When what counts began: after the omitted time.
    start_ns: u64,
    last_ns: u64,
    omitting: bool,
    stream_totals: Vec<StreamTotals>,
}

/// What is known of one stream.
#[derive(Clone, Copy, Debug, Default)]
struct StreamTotals {
    /// At the end of the omitted time.
    base: Reading,
    last: Reading,
    extremes: TcpExtremes,
    rtt_sum_us: u64,
    rtt_count: u64,
}

/// Counters and retransmissions of one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    counted: Counted,
    retransmits: Option<u64>,
}

impl Meter {
    pub(crate) fn new(protocol: Protocol, streams: usize, omits: bool, now_ns: u64) -> Self {
        Self {
            protocol,
            began_ns: now_ns,
            start_ns: now_ns,
            last_ns: now_ns,
            omitting: omits,
            stream_totals: vec![StreamTotals::default(); streams],
        }
    }

    pub(crate) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    pub(crate) fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// Seconds that count, at the last reading.
    pub(crate) fn counted_s(&self) -> f64 {
        seconds(self.last_ns - self.start_ns)
    }

    /// What was moved since the last call.
    pub(crate) fn interval(&mut self, streams: &[Stream], now_ns: u64) -> Interval {
        let (start_ns, last_ns) = (self.start_ns, self.last_ns);
        let span = (seconds(last_ns - start_ns), seconds(now_ns - start_ns));
        self.last_ns = now_ns;
        let protocol = self.protocol;
        let pairs = streams.iter().zip(&mut self.stream_totals);
        Interval {
            omitted: self.omitting,
            streams: pairs
                .map(|(s, own)| own.advance(s, protocol, span))
                .collect(),
        }
    }

    /// From here on it counts. To be called right after [`Meter::interval`].
    pub(crate) fn end_omission(&mut self) {
        self.omitting = false;
        self.start_ns = self.last_ns;
        for own in &mut self.stream_totals {
            *own = StreamTotals {
                base: own.last,
                last: own.last,
                ..StreamTotals::default()
            };
        }
    }

    /// Whether anything moved since the last interval.
    pub(crate) fn has_news(&self, streams: &[Stream]) -> bool {
        let mut pairs = streams.iter().zip(&self.stream_totals);
        pairs.any(|(stream, own)| stream.counters.read().bytes != own.last.counted.bytes)
    }

    /// Bytes received so far, to notice the end of what was on its way.
    pub(crate) fn received_bytes(streams: &[Stream]) -> u64 {
        let receivers = streams.iter().filter(|stream| !stream.sends);
        receivers.map(|stream| stream.counters.read().bytes).sum()
    }

    /// Bytes moved so far, to notice a peer that neither sends nor takes anything.
    pub(crate) fn moved_bytes(streams: &[Stream]) -> u64 {
        let moved = streams.iter().map(|stream| stream.counters.read().bytes);
        moved.sum()
    }

    /// What to report to the peer.
    pub(crate) fn results(&self, streams: &[Stream], cpu: CpuPercent) -> Results {
        let sends = streams.iter().any(|stream| stream.sends);
        let sender_has_retransmits = match (sends, self.protocol) {
            (true, Protocol::Tcp) => 1,
            (true, Protocol::Udp) => 0,
            (false, _) => -1,
        };
        let pairs = streams.iter().zip(&self.stream_totals);
        Results {
            cpu,
            sender_has_retransmits,
            congestion_used: congestion(self.protocol, streams),
            streams: pairs.map(|(s, own)| self.result(s, own)).collect(),
            server_output: None,
        }
    }

    fn result(&self, stream: &Stream, own: &StreamTotals) -> StreamResult {
        let (last, base) = (own.last.counted, own.base.counted);
        StreamResult {
            id: stream.id,
            bytes: last.bytes - base.bytes,
            retransmits: own.retransmits(),
            jitter_s: last.jitter_s,
            errors: last.lost,
            packets: last.packets,
            omitted_errors: Some(base.lost),
            omitted_packets: Some(base.packets),
            duration_s: Some(self.counted_s()),
        }
    }

    /// The summary, with the peer's results when they have come.
    pub(crate) fn ended(
        &self,
        streams: &[Stream],
        local_cpu: CpuPercent,
        peer: Option<Results>,
    ) -> Ended {
        let totals = streams
            .iter()
            .zip(&self.stream_totals)
            .map(|(stream, own)| {
                let theirs = peer.as_ref().and_then(|peer| {
                    let found = peer.streams.iter().find(|result| result.id == stream.id);
                    found.map(|result| self.their_figures(result, own))
                });
                let ours = Some(self.our_figures(own));
                let (sender, receiver) = if stream.sends {
                    (ours, theirs)
                } else {
                    (theirs, ours)
                };
                StreamTotal {
                    shown: stream.shown,
                    sends: stream.sends,
                    sender,
                    receiver,
                    extremes: own.extremes(),
                }
            });
        Ended {
            streams: totals.collect(),
            local_cpu,
            local_congestion: congestion(self.protocol, streams),
            complete: peer.is_some(),
            remote_cpu: peer.as_ref().map(|peer| peer.cpu).unwrap_or_default(),
            remote_congestion: peer.as_ref().and_then(|peer| peer.congestion_used.clone()),
            server_output: peer.and_then(|peer| peer.server_output),
        }
    }

    fn our_figures(&self, own: &StreamTotals) -> Figures {
        let (last, base) = (own.last.counted, own.base.counted);
        Figures {
            retransmits: own.retransmits(),
            ..difference(&last, &base, (0.0, self.counted_s()))
        }
    }

    /// Peers before 3.13 do not report what they omitted: then our own count of the omitted time
    /// is used instead.
    fn their_figures(&self, result: &StreamResult, own: &StreamTotals) -> Figures {
        let base = own.base.counted;
        let omitted_packets = result.omitted_packets.unwrap_or(base.packets);
        let omitted_errors = result.omitted_errors.unwrap_or(0);
        Figures {
            start_s: 0.0,
            end_s: result.duration_s.unwrap_or_else(|| self.counted_s()),
            bytes: result.bytes,
            packets: result.packets.saturating_sub(omitted_packets),
            lost: result.errors.saturating_sub(omitted_errors),
            out_of_order: 0,
            jitter_s: result.jitter_s,
            retransmits: result.retransmits,
        }
    }
}

impl StreamTotals {
    fn advance(
        &mut self,
        stream: &Stream,
        protocol: Protocol,
        (start_s, end_s): (f64, f64),
    ) -> StreamInterval {
        let before = self.last;
        let counted = stream.counters.read();
        let tcp = self.read_tcp(stream, protocol);
        self.last.counted = counted;
        let retransmits = self
            .last
            .retransmits
            .map(|total| total.saturating_sub(before.retransmits.unwrap_or(0)));
        StreamInterval {
            shown: stream.shown,
            sends: stream.sends,
            figures: Figures {
                retransmits,
                ..difference(&counted, &before.counted, (start_s, end_s))
            },
            tcp,
        }
    }

    fn read_tcp(&mut self, stream: &Stream, protocol: Protocol) -> Option<TcpState> {
        if protocol != Protocol::Tcp || !stream.sends {
            return None;
        }
        let reading = tcp_info(&*stream.socket).ok()?;
        let info = reading.info;
        let window = u64::from(info.congestion_window_segments) * u64::from(info.send_mss_bytes);
        let state = TcpState {
            congestion_window_bytes: window,
            send_window_bytes: reading.send_window_bytes.unwrap_or(0).into(),
            rtt_us: info.rtt_us,
            rtt_variation_us: info.rtt_variation_us,
            path_mtu_bytes: info.path_mtu_bytes,
        };
        self.last.retransmits = Some(info.total_retransmits.into());
        self.note_extremes(&state);
        Some(state)
    }

    fn note_extremes(&mut self, state: &TcpState) {
        let e = &mut self.extremes;
        let window = state.congestion_window_bytes;
        e.max_congestion_window_bytes = e.max_congestion_window_bytes.max(window);
        e.max_send_window_bytes = e.max_send_window_bytes.max(state.send_window_bytes);
        e.max_rtt_us = e.max_rtt_us.max(state.rtt_us);
        e.min_rtt_us = match self.rtt_count {
            0 => state.rtt_us,
            _ => e.min_rtt_us.min(state.rtt_us),
        };
        self.rtt_sum_us += u64::from(state.rtt_us);
        self.rtt_count += 1;
    }

    fn extremes(&self) -> TcpExtremes {
        TcpExtremes {
            mean_rtt_us: (self.rtt_sum_us / self.rtt_count.max(1)) as u32,
            ..self.extremes
        }
    }

    fn retransmits(&self) -> Option<u64> {
        let total = self.last.retransmits?;
        Some(total.saturating_sub(self.base.retransmits.unwrap_or(0)))
    }
}

fn difference(later: &Counted, earlier: &Counted, (start_s, end_s): (f64, f64)) -> Figures {
    Figures {
        start_s,
        end_s,
        bytes: later.bytes - earlier.bytes,
        packets: later.packets - earlier.packets,
        // Late datagrams take losses back, also those of an earlier interval.
        lost: later.lost.saturating_sub(earlier.lost),
        out_of_order: later.out_of_order - earlier.out_of_order,
        jitter_s: later.jitter_s,
        retransmits: None,
    }
}

fn congestion(protocol: Protocol, streams: &[Stream]) -> Option<String> {
    if protocol != Protocol::Tcp {
        return None;
    }
    let name = streams.first()?.socket.tcp_congestion().ok()?;
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8(name).ok()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
