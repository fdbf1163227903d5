//! iperf3's JSON: its field names, in its order, one valid document also when a test failed.

use super::{
    Connected, Ended, Figures, Head, Interval, Report, Role, StreamInterval, StreamTotal,
    TcpExtremes,
};
use crate::wire::params::{Direction, End, Protocol};
use crate::wire::results::{CpuPercent, ServerOutput};
use serde::Serialize;
use serde_json::Value;

/// Who wrote it; not "iperf 3.x", which it is not.
const VERSION: &str = concat!("eastwest ", env!("CARGO_PKG_VERSION"), " (speaks iperf 3)");

/// The document as text, on several lines.
#[must_use]
pub fn document(report: &Report) -> String {
    // Only maps with keys that are no text fail, and there are none.
    serde_json::to_string_pretty(&Document::of(report)).unwrap_or_default()
}

/// The document as a value.
#[must_use]
pub fn value(report: &Report) -> Value {
    serde_json::to_value(Document::of(report)).unwrap_or_default()
}

/// What a stream of JSON reports about a test (`--json-stream` of iperf3 3.17), one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPart {
    /// When the streams are connected.
    Start,
    /// The last interval so far.
    LastInterval,
    /// The summary.
    End,
    /// What went wrong.
    Error,
}

/// `{"event":"interval","data":{...}}`, without a line end. `None` where the report has no such
/// part.
#[must_use]
pub fn line(report: &Report, part: StreamPart) -> Option<String> {
    let head = report.head.as_ref();
    let protocol = head.map(|head| head.params.protocol).unwrap_or_default();
    let (event, data) = match part {
        StreamPart::Start => ("start", serde_json::to_value(Start::of(report))),
        StreamPart::LastInterval => {
            let interval = IntervalJson::of(report.intervals.last()?, protocol);
            ("interval", serde_json::to_value(interval))
        }
        StreamPart::End => ("end", serde_json::to_value(EndJson::of(report, protocol))),
        StreamPart::Error => ("error", serde_json::to_value(report.error.as_ref()?)),
    };
    let line = serde_json::json!({ "event": event, "data": data.ok()? });
    Some(line.to_string())
}

#[derive(Serialize)]
struct Document<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_data: Option<&'r str>,
    start: Start<'r>,
    intervals: Vec<IntervalJson>,
    end: EndJson<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_json: Option<&'r Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_output_text: Option<&'r str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'r str>,
}

impl<'r> Document<'r> {
    fn of(report: &'r Report) -> Self {
        let params = report.head.as_ref().map(|head| &head.params);
        let output = report
            .ended
            .as_ref()
            .and_then(|ended| ended.server_output.as_ref());
        let protocol = params.map(|params| params.protocol).unwrap_or_default();
        let text = |text: &'r str| Some(text).filter(|text| !text.is_empty());
        Self {
            title: params.and_then(|params| text(&params.title)),
            extra_data: params.and_then(|params| text(&params.extra_data)),
            start: Start::of(report),
            intervals: report
                .intervals
                .iter()
                .map(|i| IntervalJson::of(i, protocol))
                .collect(),
            end: EndJson::of(report, protocol),
            server_output_json: output.and_then(|output| match output {
                ServerOutput::Json(value) => Some(value),
                ServerOutput::Text(_) => None,
            }),
            server_output_text: output.and_then(|output| match output {
                ServerOutput::Json(_) => None,
                ServerOutput::Text(text) => Some(text.as_str()),
            }),
            warnings: &report.warnings,
            error: report.error.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Start<'r> {
    connected: Vec<ConnectedJson>,
    version: &'static str,
    system_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<HostPort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<HostPort>,
    #[serde(flatten)]
    test: Option<TestFacts<'r>>,
}

impl<'r> Start<'r> {
    fn of(report: &'r Report) -> Self {
        let head = report.head.as_ref();
        let is_client = head.is_none_or(|head| head.role == Role::Client);
        let connected = head.map(|head| head.streams.iter().map(ConnectedJson::of).collect());
        Self {
            connected: connected.unwrap_or_default(),
            version: VERSION,
            system_info: system_info(),
            timestamp: head.map(Timestamp::of),
            connecting_to: report
                .connecting
                .as_ref()
                .filter(|_| is_client)
                .map(|(host, port)| HostPort {
                    host: host.clone(),
                    port: *port,
                }),
            accepted_connection: report.accepted.map(|peer| HostPort {
                host: peer.ip().to_string(),
                port: peer.port(),
            }),
            test: head.map(TestFacts::of),
        }
    }
}

#[derive(Serialize)]
struct ConnectedJson {
    socket: u32,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

impl ConnectedJson {
    fn of(stream: &Connected) -> Self {
        Self {
            socket: stream.shown,
            local_host: stream.local.ip().to_string(),
            local_port: stream.local.port(),
            remote_host: stream.remote.ip().to_string(),
            remote_port: stream.remote.port(),
        }
    }
}

#[derive(Serialize)]
struct Timestamp {
    time: String,
    timesecs: u64,
    timemillisecs: u64,
}

impl Timestamp {
    fn of(head: &Head) -> Self {
        let seconds = head.started_unix_ms / 1000;
        let stamp = jiff::Timestamp::from_second(seconds.cast_signed()).unwrap_or_default();
        Self {
            time: stamp.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            timesecs: seconds,
            timemillisecs: head.started_unix_ms,
        }
    }
}

#[derive(Serialize)]
struct HostPort {
    host: String,
    port: u16,
}

#[derive(Serialize)]
struct TestFacts<'r> {
    cookie: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss_default: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_mss: Option<u32>,
    target_bitrate: u64,
    fq_rate: u64,
    sock_bufsize: usize,
    sndbuf_actual: usize,
    rcvbuf_actual: usize,
    test_start: TestStart<'r>,
}

impl<'r> TestFacts<'r> {
    fn of(head: &'r Head) -> Self {
        let params = &head.params;
        let is_tcp = params.protocol == Protocol::Tcp;
        let given = params.mss_bytes > 0;
        Self {
            cookie: &head.cookie,
            tcp_mss_default: (is_tcp && !given).then_some(head.control_mss_bytes),
            tcp_mss: (is_tcp && given).then_some(params.mss_bytes),
            target_bitrate: params.bits_per_sec,
            fq_rate: params.fq_bits_per_sec,
            sock_bufsize: params.window_bytes,
            sndbuf_actual: head.send_buffer_bytes,
            rcvbuf_actual: head.receive_buffer_bytes,
            test_start: TestStart::of(head),
        }
    }
}

#[derive(Serialize)]
struct TestStart<'r> {
    protocol: &'static str,
    num_streams: usize,
    blksize: usize,
    omit: u32,
    duration: u32,
    bytes: u64,
    blocks: u64,
    reverse: u8,
    tos: u8,
    target_bitrate: u64,
    bidir: u8,
    fqrate: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<&'r str>,
    zerocopy: u8,
    skip_rx_copy: u8,
}

impl<'r> TestStart<'r> {
    fn of(head: &'r Head) -> Self {
        let params = &head.params;
        let (duration, bytes, blocks) = match params.end {
            End::Time(seconds) => (seconds, 0, 0),
            End::Bytes(bytes) => (0, bytes, 0),
            End::Blocks(blocks) => (0, 0, blocks),
        };
        Self {
            protocol: match params.protocol {
                Protocol::Tcp => "TCP",
                Protocol::Udp => "UDP",
            },
            num_streams: params.streams,
            blksize: params.block_bytes,
            omit: params.omit_s,
            duration,
            bytes,
            blocks,
            reverse: u8::from(params.direction == Direction::Reverse),
            tos: params.tos,
            target_bitrate: params.bits_per_sec,
            bidir: u8::from(params.direction == Direction::Both),
            fqrate: params.fq_bits_per_sec,
            congestion: Some(params.congestion.as_str()).filter(|name| !name.is_empty()),
            zerocopy: params.zerocopy.into(),
            skip_rx_copy: params.skip_rx_copy.into(),
        }
    }
}

#[derive(Serialize)]
struct IntervalJson {
    streams: Vec<Part>,
    sum: Part,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Part>,
}

impl IntervalJson {
    fn of(interval: &Interval, protocol: Protocol) -> Self {
        let omitted = interval.omitted;
        let sum = |sends| {
            let group: Vec<_> = interval
                .streams
                .iter()
                .filter(|s| s.sends == sends)
                .collect();
            let figures = Figures::sum(group.iter().map(|stream| &stream.figures));
            let kind = Kind::of(protocol, sends);
            (!group.is_empty()).then(|| Part::of(&figures, kind, sends).omitted(omitted))
        };
        let (sent, received) = (sum(true), sum(false));
        let (sum, sum_bidir_reverse) = match (sent, received) {
            (Some(sent), received) => (sent, received),
            (None, received) => (received.unwrap_or_default(), None),
        };
        let part = |stream: &StreamInterval| Part::of_stream(stream, protocol).omitted(omitted);
        Self {
            streams: interval.streams.iter().map(part).collect(),
            sum,
            sum_bidir_reverse,
        }
    }
}

/// Which figures a span has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// TCP, with retransmissions.
    Sent,
    /// TCP.
    Received,
    /// UDP, while it is sent.
    Datagrams,
    /// UDP, as received or at the end.
    Arrivals,
}

impl Kind {
    fn of(protocol: Protocol, sends: bool) -> Self {
        match (protocol, sends) {
            (Protocol::Tcp, true) => Self::Sent,
            (Protocol::Tcp, false) => Self::Received,
            (Protocol::Udp, true) => Self::Datagrams,
            (Protocol::Udp, false) => Self::Arrivals,
        }
    }
}

/// Any span of time: a stream's interval, a sum, a summary. What does not belong is skipped.
#[derive(Default, Serialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    socket: Option<u32>,
    start: f64,
    end: f64,
    seconds: f64,
    bytes: u64,
    bits_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    retransmits: Option<u64>,
    #[serde(flatten)]
    window: Option<WindowNow>,
    #[serde(flatten)]
    extremes: Option<WindowOverall>,
    #[serde(flatten)]
    arrivals: Option<ArrivalsJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    out_of_order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    omitted: Option<bool>,
    sender: bool,
}

#[derive(Serialize)]
struct WindowNow {
    snd_cwnd: u64,
    snd_wnd: u64,
    rtt: u32,
    rttvar: u32,
    pmtu: u32,
}

#[derive(Serialize)]
struct WindowOverall {
    max_snd_cwnd: u64,
    max_snd_wnd: u64,
    max_rtt: u32,
    min_rtt: u32,
    mean_rtt: u32,
}

#[derive(Serialize)]
struct ArrivalsJson {
    jitter_ms: f64,
    lost_packets: u64,
    packets: u64,
    lost_percent: f64,
}

impl Part {
    fn of(figures: &Figures, kind: Kind, sender: bool) -> Self {
        Self {
            start: figures.start_s,
            end: figures.end_s,
            seconds: figures.duration_s(),
            bytes: figures.bytes,
            bits_per_second: figures.bits_per_sec(),
            retransmits: figures.retransmits.filter(|_| kind == Kind::Sent),
            arrivals: (kind == Kind::Arrivals).then(|| ArrivalsJson {
                jitter_ms: figures.jitter_s * 1000.0,
                lost_packets: figures.lost,
                packets: figures.packets,
                lost_percent: figures.lost_percent(),
            }),
            packets: (kind == Kind::Datagrams).then_some(figures.packets),
            sender,
            ..Self::default()
        }
    }

    fn of_stream(stream: &StreamInterval, protocol: Protocol) -> Self {
        let kind = Kind::of(protocol, stream.sends);
        Self {
            socket: Some(stream.shown),
            window: stream.tcp.map(|state| WindowNow {
                snd_cwnd: state.congestion_window_bytes,
                snd_wnd: state.send_window_bytes,
                rtt: state.rtt_us,
                rttvar: state.rtt_variation_us,
                pmtu: state.path_mtu_bytes,
            }),
            ..Self::of(&stream.figures, kind, stream.sends)
        }
    }

    fn omitted(self, omitted: bool) -> Self {
        Self {
            omitted: Some(omitted),
            ..self
        }
    }
}

#[derive(Default, Serialize)]
struct EndJson<'r> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    streams: Vec<StreamEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_bidir_reverse: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent_bidir_reverse: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received_bidir_reverse: Option<Part>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilization_percent: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_tcp_congestion: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver_tcp_congestion: Option<&'r str>,
}

impl<'r> EndJson<'r> {
    fn of(report: &'r Report, protocol: Protocol) -> Self {
        let (Some(ended), Some(head)) = (&report.ended, &report.head) else {
            return Self::default();
        };
        let is_first =
            |total: &&StreamTotal| head.params.direction != Direction::Both || total.sends;
        let (first, second): (Vec<_>, Vec<_>) = ended.streams.iter().partition(is_first);
        let [sum, sum_sent, sum_received] = sums(&first, protocol);
        let [sum_reverse, sent_reverse, received_reverse] = sums(&second, protocol);
        let (ours, theirs) = (&ended.local_congestion, &ended.remote_congestion);
        let sends = ended.streams.iter().any(|stream| stream.sends);
        let (sender, receiver) = if sends {
            (ours, theirs)
        } else {
            (theirs, ours)
        };
        Self {
            streams: ended
                .streams
                .iter()
                .map(|total| StreamEnd::of(total, protocol))
                .collect(),
            sum,
            sum_sent,
            sum_received,
            sum_bidir_reverse: sum_reverse,
            sum_sent_bidir_reverse: sent_reverse,
            sum_received_bidir_reverse: received_reverse,
            cpu_utilization_percent: Some(Cpu::of(ended)),
            sender_tcp_congestion: sender.as_deref(),
            receiver_tcp_congestion: receiver.as_deref(),
        }
    }
}

/// Both ends together (UDP only), the senders' figures and the receivers'. What the peer has not
/// reported is 0, as iperf3 has it: readers take these fields for granted.
fn sums(totals: &[&StreamTotal], protocol: Protocol) -> [Option<Part>; 3] {
    let Some(sends) = totals.first().map(|total| total.sends) else {
        return [None, None, None];
    };
    let sum = |pick: fn(&StreamTotal) -> Option<Figures>| {
        let all: Vec<Figures> = totals.iter().filter_map(|total| pick(total)).collect();
        Figures::sum(&all)
    };
    let (sent, received) = (sum(|total| total.sender), sum(|total| total.receiver));
    if protocol == Protocol::Tcp {
        let sent = Part::of(&sent, Kind::Sent, sends);
        return [
            None,
            Some(sent),
            Some(Part::of(&received, Kind::Received, sends)),
        ];
    }
    let as_sent = Figures {
        lost: 0,
        jitter_s: 0.0,
        ..sent
    };
    [
        Some(Part::of(&both(&sent, &received), Kind::Arrivals, sends)),
        Some(Part::of(&as_sent, Kind::Arrivals, true)),
        Some(Part::of(&received, Kind::Arrivals, false)),
    ]
}

/// What was sent, and what the receiver reports about it.
fn both(sent: &Figures, received: &Figures) -> Figures {
    Figures {
        jitter_s: received.jitter_s,
        lost: received.lost,
        out_of_order: received.out_of_order,
        ..*sent
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum StreamEnd {
    Tcp {
        sender: Box<Part>,
        receiver: Box<Part>,
    },
    Udp {
        udp: Box<Part>,
    },
}

impl StreamEnd {
    fn of(total: &StreamTotal, protocol: Protocol) -> Self {
        let (sent, received) = (
            total.sender.unwrap_or_default(),
            total.receiver.unwrap_or_default(),
        );
        if protocol == Protocol::Udp {
            let figures = both(&sent, &received);
            return Self::Udp {
                udp: Box::new(Part {
                    socket: Some(total.shown),
                    out_of_order: Some(figures.out_of_order),
                    ..Part::of(&figures, Kind::Arrivals, total.sends)
                }),
            };
        }
        let TcpExtremes {
            max_congestion_window_bytes,
            max_send_window_bytes,
            max_rtt_us,
            min_rtt_us,
            mean_rtt_us,
        } = total.extremes;
        Self::Tcp {
            sender: Box::new(Part {
                socket: Some(total.shown),
                extremes: Some(WindowOverall {
                    max_snd_cwnd: max_congestion_window_bytes,
                    max_snd_wnd: max_send_window_bytes,
                    max_rtt: max_rtt_us,
                    min_rtt: min_rtt_us,
                    mean_rtt: mean_rtt_us,
                }),
                ..Part::of(&sent, Kind::Sent, total.sends)
            }),
            receiver: Box::new(Part {
                socket: Some(total.shown),
                ..Part::of(&received, Kind::Received, total.sends)
            }),
        }
    }
}

#[derive(Serialize)]
struct Cpu {
    host_total: f64,
    host_user: f64,
    host_system: f64,
    remote_total: f64,
    remote_user: f64,
    remote_system: f64,
}

impl Cpu {
    fn of(ended: &Ended) -> Self {
        let CpuPercent {
            total,
            user,
            system,
        } = ended.local_cpu;
        Self {
            host_total: total,
            host_user: user,
            host_system: system,
            remote_total: ended.remote_cpu.total,
            remote_user: ended.remote_cpu.user,
            remote_system: ended.remote_cpu.system,
        }
    }
}

/// What `uname -a` prints, without libc.
fn system_info() -> String {
    let names = ["ostype", "hostname", "osrelease", "version"];
    let read = |name: &&str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let mut words: Vec<String> = names.iter().filter_map(read).collect();
    words.push(std::env::consts::ARCH.to_owned());
    let words: Vec<&str> = words.iter().map(|word| word.trim()).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_never_began_is_a_document() {
        let report = Report {
            connecting: Some(("a \"host\"".into(), 5201)),
            error: Some("unable to connect to server".into()),
            ..Report::default()
        };
        let read: Value = serde_json::from_str(&document(&report)).unwrap();
        assert_eq!(read["start"]["connected"], serde_json::json!([]));
        assert_eq!(read["start"]["connecting_to"]["port"], 5201);
        assert_eq!(read["intervals"], serde_json::json!([]));
        assert_eq!(read["end"], serde_json::json!({}));
        assert_eq!(read["error"], "unable to connect to server");
    }

    #[test]
    fn numbers_that_json_cannot_hold_are_null() {
        let part = Part {
            bits_per_second: f64::NAN,
            ..Part::default()
        };
        assert!(
            serde_json::to_string(&part)
                .unwrap()
                .contains("\"bits_per_second\":null")
        );
    }
}
