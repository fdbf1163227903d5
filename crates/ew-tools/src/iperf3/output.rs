//! The output of `iperf3 -J`, turned into records of both ends.

use crate::flow_error::FlowError;
use crate::tool::{BothEnds, SECOND_NS};
use ew_model::record::{DatagramCounts, EndRecord, Interval, StreamRecord, TcpInfo};
use ew_proto::message::{FlowOrder, Role};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::net::IpAddr;

/// Headers of IP and TCP without options, and the length of TCP's timestamps option with padding
/// (RFC 7323).
const IPV4_TCP_HEADERS_BYTES: u32 = 40;
const IPV6_TCP_HEADERS_BYTES: u32 = 60;
const TIMESTAMPS_BYTES: u32 = 12;

/// `MAX_STREAMS` of iperf_api.h, in both directions.
const MAX_STREAMS: usize = 2 * 128;

/// What is used of `iperf3 -J`.
#[derive(Deserialize)]
pub(super) struct Output {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    intervals: Intervals,
    #[serde(default)]
    end: EndBlock,
    /// Its own words, when it failed.
    pub(super) error: Option<String>,
}

#[derive(Default, Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
    tcp_mss_default: Option<u32>,
}

#[derive(Deserialize)]
struct Connected {
    socket: i64,
    local_port: u16,
    remote_port: u16,
}

/// The intervals that count, and the last of all.
#[derive(Default)]
struct Intervals {
    counted: Vec<Interval>,
    last: Option<IntervalBlock>,
}

#[derive(Deserialize)]
struct IntervalBlock {
    #[serde(default)]
    streams: Vec<StreamInterval>,
    sum: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamInterval {
    socket: i64,
    snd_cwnd: Option<u32>,
    rtt: Option<u32>,
    rttvar: Option<u32>,
    pmtu: Option<u32>,
}

#[derive(Clone, Copy, Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bytes: u64,
    #[serde(default)]
    omitted: bool,
    #[serde(default)]
    jitter_ms: f64,
}

#[derive(Default, Deserialize)]
struct EndBlock {
    #[serde(default, deserialize_with = "stream_ends")]
    streams: Vec<StreamEnds>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
    /// Of UDP: all that versions before 3.11 have, with the bytes of what was sent.
    sum: Option<Sum>,
}

/// TCP has two parts, UDP one.
#[derive(Deserialize)]
struct StreamEnds {
    sender: Option<StreamEnd>,
    receiver: Option<StreamEnd>,
    udp: Option<UdpEnds>,
}

/// What was sent, by the sender, and what became of it, by the receiver. Datagrams that came out of
/// order are not among the lost ones; duplicates count as out of order.
#[derive(Deserialize)]
struct UdpEnds {
    socket: i64,
    bytes: u64,
    packets: u64,
    #[serde(default)]
    lost_packets: i64,
    #[serde(default)]
    out_of_order: i64,
}

#[derive(Deserialize)]
struct StreamEnd {
    socket: i64,
    bytes: u64,
    retransmits: Option<i64>,
    min_rtt: Option<u32>,
    mean_rtt: Option<u32>,
}

impl Output {
    /// The client's own end has the intervals; the other end's figures came over iperf3's control
    /// connection.
    pub(super) fn into_ends(mut self, order: &FlowOrder) -> Result<BothEnds, FlowError> {
        let (sent, received) = self.totals().ok_or(FlowError::NoTotals)?;
        if received.bytes == 0 {
            return Err(FlowError::NothingMoved { peer: order.peer });
        }
        let intervals = std::mem::take(&mut self.intervals.counted);
        let (sender_intervals, receiver_intervals) = match order.role {
            Role::Send => (intervals, Vec::new()),
            Role::Receive => (Vec::new(), intervals),
        };
        Ok(BothEnds {
            sender: EndRecord {
                intervals: sender_intervals,
                streams: self.sender_streams(order),
                ..end_record(&sent)
            },
            receiver: EndRecord {
                intervals: receiver_intervals,
                streams: self.receiver_streams(order),
                datagrams: self.datagrams(&received),
                ..end_record(&received)
            },
        })
    }

    /// Sent and received.
    fn totals(&self) -> Option<(Sum, Sum)> {
        let end = &self.end;
        let both = end.sum_sent.zip(end.sum_received);
        both.or_else(|| {
            let of_streams = end.streams.iter().flat_map(|stream| &stream.udp);
            let bytes = of_streams.map(UdpEnds::received_bytes);
            let bytes = bytes.fold(0, u64::saturating_add);
            end.sum.map(|sent| (sent, Sum { bytes, ..sent }))
        })
    }

    fn sender_streams(&self, order: &FlowOrder) -> Vec<StreamRecord> {
        let own = order.role == Role::Send;
        let of = |ends: &StreamEnds| match (&ends.sender, &ends.udp) {
            (Some(end), _) => StreamRecord {
                tcp_info: own.then(|| self.tcp_info(end, order.peer.ip())).flatten(),
                retransmits: end.retransmits.and_then(|r| u64::try_from(r).ok()),
                ..self.stream(end.socket, end.bytes, own)
            },
            (None, Some(udp)) => self.stream(udp.socket, udp.bytes, own),
            (None, None) => StreamRecord::default(),
        };
        self.end.streams.iter().map(of).collect()
    }

    fn receiver_streams(&self, order: &FlowOrder) -> Vec<StreamRecord> {
        let own = order.role == Role::Receive;
        let of = |ends: &StreamEnds| match (&ends.receiver, &ends.udp) {
            (Some(end), _) => self.stream(end.socket, end.bytes, own),
            (None, Some(udp)) => self.stream(udp.socket, udp.received_bytes(), own),
            (None, None) => StreamRecord::default(),
        };
        self.end.streams.iter().map(of).collect()
    }

    /// `None` for TCP.
    fn datagrams(&self, received: &Sum) -> Option<DatagramCounts> {
        let streams: Vec<&UdpEnds> = self.end.streams.iter().flat_map(|s| &s.udp).collect();
        let sum = |count: fn(&UdpEnds) -> u64| {
            let counts = streams.iter().map(|s| count(s));
            counts.fold(0, u64::saturating_add)
        };
        (!streams.is_empty()).then(|| DatagramCounts {
            received: sum(UdpEnds::received),
            lost: sum(UdpEnds::lost),
            reordered: sum(|s| u64::try_from(s.out_of_order).unwrap_or(0)),
            duplicates: 0,
            jitter_ns: nanoseconds(received.jitter_ms / 1e3),
        })
    }

    /// One stream at the client's own end, or with the ports swapped at the other end.
    fn stream(&self, socket: i64, bytes: u64, own: bool) -> StreamRecord {
        let mut connected = self.start.connected.iter();
        let ports = connected.find(|c| c.socket == socket);
        let (local_port, peer_port) = ports.map_or((0, 0), |c| (c.local_port, c.remote_port));
        StreamRecord {
            bytes,
            local_port: if own { local_port } else { peer_port },
            peer_port: if own { peer_port } else { local_port },
            ..StreamRecord::default()
        }
    }

    /// As much of `TCP_INFO` as iperf3 reports about a sender: from the last interval and the end.
    /// The MSS is that of its control connection, and is taken for both directions, as the two ends
    /// agree on it.
    fn tcp_info(&self, end: &StreamEnd, peer: IpAddr) -> Option<TcpInfo> {
        let last = self.intervals.last.as_ref()?;
        let last = last.streams.iter().find(|s| s.socket == end.socket)?;
        let mss = self.start.tcp_mss_default.filter(|mss| *mss > 0)?;
        let path_mtu_bytes = last.pmtu?;
        let headers = match peer {
            IpAddr::V4(_) => IPV4_TCP_HEADERS_BYTES,
            IpAddr::V6(_) => IPV6_TCP_HEADERS_BYTES,
        };
        Some(TcpInfo {
            total_retransmits: u32::try_from(end.retransmits?).ok()?,
            rtt_us: end.mean_rtt.filter(|rtt| *rtt > 0).or(last.rtt)?,
            rtt_variation_us: last.rttvar?,
            min_rtt_us: end.min_rtt.filter(|rtt| *rtt > 0),
            congestion_window_segments: last.snd_cwnd? / mss,
            send_mss_bytes: mss,
            receive_mss_bytes: mss,
            path_mtu_bytes,
            timestamps: path_mtu_bytes.checked_sub(headers + TIMESTAMPS_BYTES) == Some(mss),
            ..TcpInfo::default()
        })
    }
}

impl<'de> Deserialize<'de> for Intervals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(IntervalsVisitor)
    }
}

/// Keeps no block but the last: a day has many.
struct IntervalsVisitor;

impl<'de> Visitor<'de> for IntervalsVisitor {
    type Value = Intervals;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of intervals")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Intervals, A::Error> {
        let mut intervals = Intervals::default();
        while let Some(block) = blocks.next_element::<IntervalBlock>()? {
            let sum = block.sum.as_ref().filter(|sum| !sum.omitted);
            intervals.counted.extend(sum.map(|sum| Interval {
                offset_ns: nanoseconds(sum.start),
                length_ns: nanoseconds(sum.end - sum.start),
                bytes: sum.bytes,
            }));
            intervals.last = Some(block);
        }
        Ok(intervals)
    }
}

fn stream_ends<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StreamEnds>, D::Error> {
    deserializer.deserialize_seq(StreamsVisitor)
}

struct StreamsVisitor;

impl<'de> Visitor<'de> for StreamsVisitor {
    type Value = Vec<StreamEnds>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of streams")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<StreamEnds>, A::Error> {
        let mut streams = Vec::new();
        while let Some(stream) = all.next_element()? {
            if streams.len() == MAX_STREAMS {
                return Err(A::Error::custom(format!("more than {MAX_STREAMS} streams")));
            }
            streams.push(stream);
        }
        Ok(streams)
    }
}

impl UdpEnds {
    fn lost(&self) -> u64 {
        u64::try_from(self.lost_packets).unwrap_or(0)
    }

    fn received(&self) -> u64 {
        self.packets.saturating_sub(self.lost())
    }

    /// All datagrams of a test are of one size.
    fn received_bytes(&self) -> u64 {
        let size_bytes = self.bytes.checked_div(self.packets).unwrap_or(0);
        size_bytes.saturating_mul(self.received())
    }
}

fn end_record(sum: &Sum) -> EndRecord {
    EndRecord {
        bytes: sum.bytes,
        // "seconds" of older versions is the sender's at both ends.
        window_ns: nanoseconds(sum.end - sum.start),
        ..EndRecord::default()
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * SECOND_NS as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::FlowId;

    const FORWARD: &str = include_str!("../../tests/data/iperf3-forward.json");
    const REVERSE: &str = include_str!("../../tests/data/iperf3-reverse.json");
    const THREE_STREAMS: &str = include_str!("../../tests/data/iperf3-three-streams.json");
    const UDP: &str = include_str!("../../tests/data/iperf3-udp-two-streams.json");
    const UDP_REVERSE: &str = include_str!("../../tests/data/iperf3-udp-reverse.json");

    #[test]
    fn a_forward_test_fills_both_ends() {
        let ends = parse(Role::Send, FORWARD).unwrap();
        assert_eq!(ends.sender.bytes, 12_451_840);
        assert_eq!(ends.sender.window_ns, 1_999_114_000);
        assert_eq!(ends.receiver.bytes, 12_451_840);
        assert_eq!(ends.receiver.window_ns, 2_001_272_000);
        // The omitted second is not among the intervals.
        assert_eq!(ends.sender.intervals.len(), 2);
        assert!(ends.receiver.intervals.is_empty());
        let stream = &ends.sender.streams[0];
        assert_eq!((stream.retransmits, stream.peer_port), (Some(0), 5391));
        assert_eq!(stream.tcp_info.unwrap().rtt_us, 135);
        assert_eq!(stream.tcp_info.unwrap().min_rtt_us, Some(84));
        let other = &ends.receiver.streams[0];
        assert_eq!(
            (other.local_port, other.peer_port),
            (5391, stream.local_port)
        );
        assert_eq!((other.retransmits, other.tcp_info), (None, None));
    }

    #[test]
    fn a_reverse_test_has_the_receivers_intervals() {
        let ends = parse(Role::Receive, REVERSE).unwrap();
        assert_eq!(ends.receiver.window_ns, 2_000_022_000);
        assert_eq!(ends.receiver.intervals.len(), 2);
        assert!(ends.sender.intervals.is_empty());
        // iperf3 prints zeroes for the rtt that the client cannot know.
        assert_eq!(ends.sender.streams[0].tcp_info, None);
        assert_eq!(ends.sender.streams[0].retransmits, Some(0));
        assert_eq!(ends.sender.streams[0].local_port, 5391);
    }

    #[test]
    fn streams_add_up() {
        let ends = parse(Role::Send, THREE_STREAMS).unwrap();
        for end in [&ends.sender, &ends.receiver] {
            assert_eq!(end.streams.len(), 3);
            assert_eq!(end.bytes, end.streams.iter().map(|s| s.bytes).sum::<u64>());
        }
    }

    #[test]
    fn datagrams_are_counted_where_they_arrive() {
        let ends = parse(Role::Send, UDP).unwrap();
        assert_eq!(
            (ends.sender.bytes, ends.receiver.bytes),
            (19_999_200, 19_999_200)
        );
        assert_eq!(ends.sender.datagrams, None);
        let counts = ends.receiver.datagrams.unwrap();
        assert_eq!(
            (counts.received, counts.lost, counts.reordered),
            (16_666, 0, 0)
        );
        assert_eq!(counts.jitter_ns, 26_705);
        let stream = &ends.sender.streams[1];
        assert_eq!((stream.bytes, stream.local_port), (9_999_600, 57_875));
        assert_eq!((stream.retransmits, stream.tcp_info), (None, None));
        assert_eq!(ends.sender.intervals.len(), 2);
    }

    #[test]
    fn lost_datagrams_are_not_among_the_receivers_bytes() {
        let ends = parse(Role::Receive, UDP_REVERSE).unwrap();
        assert_eq!(
            (ends.sender.bytes, ends.receiver.bytes),
            (10_000_800, 9_781_200)
        );
        let counts = ends.receiver.datagrams.unwrap();
        assert_eq!((counts.received, counts.lost), (8151, 182));
        assert_eq!(ends.receiver.streams[0].bytes, ends.receiver.bytes);
        assert_eq!(ends.receiver.intervals.len(), 2);
    }

    /// As 3.9 and 3.10 print it: without the two sums.
    #[test]
    fn udp_of_older_versions_has_one_sum() {
        let mut older: serde_json::Value = serde_json::from_str(UDP_REVERSE).unwrap();
        let end = older["end"].as_object_mut().unwrap();
        end.remove("sum_sent").unwrap();
        end.remove("sum_received").unwrap();
        let ends = parse(Role::Receive, &older.to_string()).unwrap();
        assert_eq!(
            (ends.sender.bytes, ends.receiver.bytes),
            (10_000_800, 9_781_200)
        );
        assert_eq!(ends.receiver.datagrams.unwrap().lost, 182);
    }

    fn parse(role: Role, json: &str) -> Result<BothEnds, FlowError> {
        let output: Output = serde_json::from_str(json).unwrap();
        let peer = "198.18.0.2:5001".parse().unwrap();
        let order = FlowOrder::new(FlowId(1), role, true, peer);
        output.into_ends(&order)
    }
}
