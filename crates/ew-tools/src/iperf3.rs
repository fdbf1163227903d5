//! The stock iperf3, 3.9 and later (<https://software.es.net/iperf/>).

use crate::process::{End, Finished};
use crate::tool::{BothEnds, ExternalTool};
use ew_model::record::{EndRecord, Interval, StreamRecord, TcpInfo};
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// iperf3's own bounds: MAX_STREAMS, MAX_TCP_BLOCKSIZE.
const MAX_STREAMS: u32 = 128;
const MAX_MESSAGE_BYTES: u64 = 1024 * 1024;
const CONNECT_TIMEOUT_MS: &str = "2000";
const SECOND_NS: u64 = 1_000_000_000;
/// Headers of IP and TCP without options, and the length of TCP's timestamps option with padding (RFC 7323).
const IPV4_TCP_HEADERS_BYTES: u32 = 40;
const IPV6_TCP_HEADERS_BYTES: u32 = 60;
const TIMESTAMPS_BYTES: u32 = 12;

pub(crate) struct Iperf3;

impl ExternalTool for Iperf3 {
    fn program(&self) -> &'static str {
        "iperf3"
    }

    fn install_hint(&self) -> &'static str {
        "apt install iperf3 (Debian, Ubuntu) or dnf install iperf3 (Fedora, RHEL)"
    }

    fn refusal(&self, workload: &Workload) -> Option<String> {
        if workload.kind != WorkloadKind::TcpStream {
            let kind = workload.kind.name();
            return Some(format!(
                "iperf3 cannot carry {kind}: leave out --tool for this test"
            ));
        }
        if !(1..=MAX_STREAMS).contains(&workload.streams) {
            let streams = workload.streams;
            return Some(format!(
                "iperf3 has 1 to {MAX_STREAMS} streams per flow, not {streams}"
            ));
        }
        (!(1..=MAX_MESSAGE_BYTES).contains(&workload.message_bytes)).then(|| {
            let bytes = workload.message_bytes;
            format!("iperf3's messages are 1 to {MAX_MESSAGE_BYTES} bytes long, not {bytes}")
        })
    }

    fn server(&self, program: &Path, address: IpAddr, port: u16) -> Command {
        let mut command = Command::new(program);
        command.args(["-s", "-1", "--forceflush"]);
        command.args(["-p", &port.to_string(), "-B", &address.to_string()]);
        command
    }

    fn client(
        &self,
        program: &Path,
        address: IpAddr,
        spec: &RoundSpec,
        order: &FlowOrder,
    ) -> Command {
        let mut command = Command::new(program);
        command.args(["-J", "--connect-timeout", CONNECT_TIMEOUT_MS]);
        command.args(["-c", &order.peer.ip().to_string()]);
        command.args(["-p", &order.peer.port().to_string()]);
        command.args(["-B", &address.to_string()]);
        command.args(["-t", &window_seconds(spec).to_string()]);
        command.args(["-O", &warm_up_seconds(spec).to_string()]);
        command.args(["-P", &spec.workload.streams.to_string()]);
        command.args(["-l", &spec.workload.message_bytes.to_string()]);
        if order.role == Role::Receive {
            command.arg("-R");
        }
        command
    }

    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        (window_seconds(spec) + warm_up_seconds(spec)) * SECOND_NS
    }

    fn server_error(&self, port: u16, finished: &Finished) -> Option<String> {
        let said = last_line(&finished.stderr);
        match finished.end {
            End::Exited(status) if status.success() => None,
            End::Exited(_) if !said.is_empty() => {
                Some(format!("iperf3 server on port {port}: {said}"))
            }
            End::Exited(status) => Some(format!("iperf3 server on port {port}: {status}")),
            _ if finished.stdout.contains("Accepted connection") => Some(format!(
                "iperf3 server on port {port}: its client did not end the test"
            )),
            _ => Some(format!("iperf3 server on port {port}: no client came")),
        }
    }

    fn parse(&self, order: &FlowOrder, finished: &Finished) -> Result<BothEnds, String> {
        let output: Output = serde_json::from_str(&finished.stdout).map_err(|error| {
            let said = last_line(&finished.stderr);
            format!(
                "iperf3: no JSON result ({error}; {:?}) {said}",
                finished.end
            )
        })?;
        if let Some(error) = output.error {
            return Err(format!("iperf3: {error}"));
        }
        output.into_ends(order)
    }
}

/// Whole seconds are all it takes.
fn window_seconds(spec: &RoundSpec) -> u64 {
    spec.window_ns.div_ceil(SECOND_NS).max(1)
}

fn warm_up_seconds(spec: &RoundSpec) -> u64 {
    let warm_up_ns = spec.window_start_ns.saturating_sub(spec.start_ns);
    warm_up_ns.div_ceil(SECOND_NS)
}

fn last_line(text: &str) -> &str {
    let mut lines = text.lines().rev().map(str::trim);
    // Its last words say nothing.
    lines
        .find(|line| !line.is_empty() && *line != "iperf3: exiting")
        .unwrap_or("")
}

/// What is used of `iperf3 -J`.
#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    intervals: Vec<IntervalBlock>,
    #[serde(default)]
    end: EndBlock,
    error: Option<String>,
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

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bytes: u64,
    #[serde(default)]
    omitted: bool,
}

#[derive(Default, Deserialize)]
struct EndBlock {
    #[serde(default)]
    streams: Vec<StreamEnds>,
    sum_sent: Option<Sum>,
    sum_received: Option<Sum>,
}

#[derive(Deserialize)]
struct StreamEnds {
    sender: StreamEnd,
    receiver: StreamEnd,
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
    /// The client's own end has the intervals; the other end's figures came over iperf3's control connection.
    fn into_ends(self, order: &FlowOrder) -> Result<BothEnds, String> {
        let sent = self.end.sum_sent.as_ref();
        let received = self.end.sum_received.as_ref();
        let (Some(sent), Some(received)) = (sent, received) else {
            return Err("iperf3: the result has no totals".to_owned());
        };
        if received.bytes == 0 {
            return Err(format!(
                "iperf3: no data moved between this host and {}",
                order.peer
            ));
        }
        let intervals = self.intervals();
        let (sender_intervals, receiver_intervals) = match order.role {
            Role::Send => (intervals, Vec::new()),
            Role::Receive => (Vec::new(), intervals),
        };
        let sends = order.role == Role::Send;
        let ends = self.end.streams.iter();
        let sender_streams = ends.clone().map(|s| self.stream(&s.sender, sends, order));
        let receiver_streams = ends.map(|s| StreamRecord {
            tcp_info: None,
            retransmits: None,
            ..self.stream(&s.receiver, !sends, order)
        });
        Ok(BothEnds {
            sender: end_record(sent, sender_streams.collect(), sender_intervals),
            receiver: end_record(received, receiver_streams.collect(), receiver_intervals),
        })
    }

    fn intervals(&self) -> Vec<Interval> {
        let sums = self.intervals.iter().filter_map(|i| i.sum.as_ref());
        sums.filter(|sum| !sum.omitted)
            .map(|sum| Interval {
                offset_ns: nanoseconds(sum.start),
                length_ns: nanoseconds(sum.end - sum.start),
                bytes: sum.bytes,
            })
            .collect()
    }

    /// One stream at the client's own end, or with the ports swapped at the other end.
    fn stream(&self, end: &StreamEnd, own: bool, order: &FlowOrder) -> StreamRecord {
        let connected = self.start.connected.iter();
        let ports = connected.clone().find(|c| c.socket == end.socket);
        let (local_port, peer_port) = ports.map_or((0, 0), |c| (c.local_port, c.remote_port));
        StreamRecord {
            bytes: end.bytes,
            local_port: if own { local_port } else { peer_port },
            peer_port: if own { peer_port } else { local_port },
            tcp_info: if own {
                self.tcp_info(end, order.peer.ip())
            } else {
                None
            },
            retransmits: end.retransmits.and_then(|r| u64::try_from(r).ok()),
        }
    }

    /// As much of `TCP_INFO` as iperf3 tells of a sender: from the last interval and the end. The MSS is that of its control
    /// connection, and is taken for both directions, as the two ends agree on it.
    fn tcp_info(&self, end: &StreamEnd, peer: IpAddr) -> Option<TcpInfo> {
        let last = self.intervals.last()?;
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

fn end_record(sum: &Sum, streams: Vec<StreamRecord>, intervals: Vec<Interval>) -> EndRecord {
    EndRecord {
        bytes: sum.bytes,
        // "seconds" of older versions is the sender's at both ends.
        window_ns: nanoseconds(sum.end - sum.start),
        start_skew_ns: 0,
        streams,
        intervals,
        ..EndRecord::default()
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * SECOND_NS as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{FlowId, RoundIndex, StageIndex};
    use ew_model::workload::Tool;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const FORWARD: &str = include_str!("../tests/data/iperf3-forward.json");
    const REVERSE: &str = include_str!("../tests/data/iperf3-reverse.json");
    const THREE_STREAMS: &str = include_str!("../tests/data/iperf3-three-streams.json");
    const REFUSED: &str = include_str!("../tests/data/iperf3-refused.json");

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
    fn errors_are_its_own_words() {
        let refused = parse(Role::Send, REFUSED).unwrap_err();
        assert_eq!(
            refused,
            "iperf3: unable to connect to server: Connection refused"
        );
        let cut_short = parse(Role::Send, &FORWARD[..FORWARD.len() / 2]).unwrap_err();
        assert!(
            cut_short.starts_with("iperf3: no JSON result"),
            "{cut_short}"
        );
        assert!(parse(Role::Send, "{}").unwrap_err().contains("no totals"));
    }

    #[test]
    fn durations_are_rounded_up_to_seconds() {
        let mut spec = spec();
        assert_eq!((window_seconds(&spec), warm_up_seconds(&spec)), (2, 1));
        spec.window_ns = 1;
        spec.window_start_ns = spec.start_ns;
        assert_eq!((window_seconds(&spec), warm_up_seconds(&spec)), (1, 0));
        assert_eq!(Iperf3.client_runtime_ns(&spec), SECOND_NS);
    }

    #[test]
    fn the_client_is_called_as_the_flow_says() {
        let address = IpAddr::from([198, 18, 0, 1]);
        let command = Iperf3.client(Path::new("iperf3"), address, &spec(), &order(Role::Receive));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        assert_eq!(
            arguments.join(" "),
            "-J --connect-timeout 2000 -c 198.18.0.2 -p 5001 -B 198.18.0.1 -t 2 -O 1 -P 4 -l 131072 -R"
        );
    }

    #[test]
    fn what_it_cannot_do_is_refused() {
        let workload = spec().workload;
        assert_eq!(Iperf3.refusal(&workload), None);
        let changed = |change: fn(&mut Workload)| {
            let mut other = workload.clone();
            change(&mut other);
            Iperf3.refusal(&other)
        };
        assert!(changed(|w| w.kind = WorkloadKind::TcpRr).is_some());
        assert!(changed(|w| w.streams = 129).is_some());
        assert!(changed(|w| w.message_bytes = 2 * MAX_MESSAGE_BYTES).is_some());
    }

    #[test]
    fn a_server_says_why_it_did_not_serve() {
        let mut ended = finished("");
        assert_eq!(Iperf3.server_error(5001, &ended), None);
        ended.end = End::TimedOut;
        assert!(
            Iperf3
                .server_error(5001, &ended)
                .unwrap()
                .contains("no client came")
        );
        ended.end = End::Exited(ExitStatus::from_raw(256));
        ended.stderr = "iperf3: error - unable to start listener\niperf3: exiting\n".to_owned();
        let expected = "iperf3 server on port 5001: iperf3: error - unable to start listener";
        assert_eq!(Iperf3.server_error(5001, &ended).unwrap(), expected);
    }

    fn parse(role: Role, json: &str) -> Result<BothEnds, String> {
        Iperf3.parse(&order(role), &finished(json))
    }

    fn finished(stdout: &str) -> Finished {
        Finished {
            stdout: stdout.to_owned(),
            stderr: String::new(),
            end: End::Exited(ExitStatus::default()),
            started_ns: 0,
        }
    }

    fn order(role: Role) -> FlowOrder {
        FlowOrder {
            flow: FlowId(1),
            role,
            opens: true,
            peer: "198.18.0.2:5001".parse().unwrap(),
            server_port: 0,
        }
    }

    fn spec() -> RoundSpec {
        RoundSpec {
            stage: StageIndex(0),
            round: RoundIndex(0),
            workload: Workload {
                streams: 4,
                message_bytes: 128 * 1024,
                tool: Tool::Iperf3,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            connect_at_ns: 0,
            start_ns: 100,
            window_start_ns: 100 + SECOND_NS / 2,
            window_ns: 3 * SECOND_NS / 2,
            interval_ns: SECOND_NS / 10,
            flows: Vec::new(),
        }
    }
}
