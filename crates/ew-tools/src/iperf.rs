//! iperf 2, 2.0.13 and later (<https://sourceforge.net/projects/iperf2/>): comma-separated lines
//! (-y C).

use crate::figures::{bulk, time_of_bytes_ns};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, no_figures, window_seconds};
use ew_model::record::{DatagramCounts, EndRecord, Reported, StreamRecord};
use ew_model::workload::{Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use std::process::Command;

pub(crate) struct Iperf;

impl ExternalTool for Iperf {
    fn tool(&self) -> Tool {
        Tool::Iperf
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("-v")
    }

    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let workload = &site.spec.workload;
        let mut command = Command::new(site.program);
        command.args([
            "-s",
            "-p",
            &port.to_string(),
            "-B",
            &site.address.to_string(),
        ]);
        command.args(["-y", "C", "-l", &workload.message_bytes.to_string()]);
        command.args(family_and_protocol(site));
        command.args(window(workload));
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::Ended
    }

    fn holds_connection(&self, kind: WorkloadKind) -> bool {
        kind != WorkloadKind::UdpStream
    }

    /// Its servers' words about datagrams often do not come back to the client.
    fn counts_at_server(&self, workload: &Workload) -> bool {
        workload.kind == WorkloadKind::UdpStream
    }

    fn parse_server(&self, finished: &Finished) -> Result<EndRecord, FlowError> {
        received(&lines_of(finished))
            .ok_or_else(|| no_figures("iperf", finished, "no datagram came"))
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let mut command = Command::new(site.program);
        command.args([
            "-c",
            &order.peer.ip().to_string(),
            "-p",
            &order.peer.port().to_string(),
        ]);
        command.args(["-B", &site.address.to_string(), "-y", "C"]);
        command.args(["-t", &window_seconds(site.spec).to_string()]);
        command.args(["-P", &workload.streams.to_string()]);
        command.args(["-l", &workload.message_bytes.to_string()]);
        command.args(family_and_protocol(site));
        command.args(window(workload));
        command.args(socket_arguments(workload));
        if let Some(rate) = bits_per_sec_of_a_stream(workload) {
            command.args(["-b", &format!("{rate:.0}")]);
        }
        if order.role == Role::Receive {
            command.arg("-R");
        }
        if workload.kind == WorkloadKind::UdpStream {
            // It does not wait for the server's words.
            command.arg("--no-udp-fin");
        }
        command
    }

    fn parse(
        &self,
        _spec: &RoundSpec,
        order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let mut ends = sum(&lines_of(finished));
        if order.role == Role::Receive {
            std::mem::swap(&mut ends.sender.streams, &mut ends.receiver.streams);
        }
        match ends.receiver.bytes {
            0 => Err(no_figures("iperf", finished, "no data moved")),
            _ => Ok(ends),
        }
    }
}

fn lines_of(finished: &Finished) -> Vec<Line> {
    finished.stdout.lines().filter_map(Line::read).collect()
}

fn family_and_protocol(site: &Site<'_>) -> Vec<&'static str> {
    let mut arguments = Vec::new();
    arguments.extend(site.address.is_ipv6().then_some("-V"));
    arguments.extend((site.spec.workload.kind == WorkloadKind::UdpStream).then_some("-u"));
    arguments
}

fn window(workload: &Workload) -> Vec<String> {
    let bytes = workload.socket.send_buffer_bytes;
    bytes.map_or_else(Vec::new, |bytes| vec!["-w".into(), bytes.to_string()])
}

fn socket_arguments(workload: &Workload) -> Vec<String> {
    let socket = &workload.socket;
    let options = [
        ("-Z", socket.congestion.clone()),
        ("-M", socket.mss_bytes.map(|bytes| bytes.to_string())),
        ("-S", socket.traffic_class().map(|class| class.to_string())),
    ];
    let given = options
        .into_iter()
        .filter_map(|(name, value)| Some([name.into(), value?]));
    let mut arguments: Vec<String> = given.flatten().collect();
    if socket.nodelay && workload.kind == WorkloadKind::TcpStream {
        arguments.push("-N".into());
    }
    arguments
}

/// Left to itself it sends UDP at 1 Mb/s. What no link carries is as fast as it goes.
const UNLIMITED_BITS_PER_SEC: f64 = 1e12;

fn bits_per_sec_of_a_stream(workload: &Workload) -> Option<f64> {
    let pace = &workload.pace;
    let share = pace
        .flow_bits_per_sec
        .map(|rate| rate / f64::from(workload.streams));
    let rates = [pace.stream_bits_per_sec, share].into_iter().flatten();
    let unlimited = (workload.kind == WorkloadKind::UdpStream).then_some(UNLIMITED_BITS_PER_SEC);
    rates.min_by(f64::total_cmp).or(unlimited)
}

/// `time,address,port,address,port,id,0.0-1.0,bytes,bits a second`, and of UDP
/// `,jitter ms,lost,total,percent,out of order`.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    local_port: u16,
    peer_port: u16,
    bytes: u64,
    bits_per_sec: f64,
    /// At a receiver: jitter in ns, lost, total, out of order.
    datagrams: Option<(u64, u64, u64, u64)>,
}

impl Line {
    fn read(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim().split(',').collect();
        let [
            _,
            _,
            local_port,
            _,
            peer_port,
            id,
            _,
            bytes,
            rate,
            rest @ ..,
        ] = &fields[..]
        else {
            return None;
        };
        // A sum over streams is not a stream.
        if id.parse::<i64>().ok()? < 0 {
            return None;
        }
        Some(Self {
            local_port: local_port.parse().ok()?,
            peer_port: peer_port.parse().ok()?,
            bytes: bytes.parse().ok()?,
            bits_per_sec: rate.parse().ok()?,
            datagrams: datagrams(rest),
        })
    }
}

/// A sender writes -1 for what it cannot know.
fn datagrams(fields: &[&str]) -> Option<(u64, u64, u64, u64)> {
    let [jitter_ms, lost, total, _, reordered] = fields else {
        return None;
    };
    let total: u64 = total.parse().ok()?;
    let jitter_ms: f64 = jitter_ms.parse().ok()?;
    let jitter_ns = (jitter_ms.max(0.0) * 1e6).round() as u64;
    Some((
        jitter_ns,
        lost.parse().ok()?,
        total,
        reordered.parse().unwrap_or(0),
    ))
}

/// Streams run side by side: bytes add up, the longest gives the time.
fn sum<'a>(lines: impl IntoIterator<Item = &'a Line>) -> BothEnds {
    let (mut bytes, mut window_ns, mut streams) = (0_u64, 0, Vec::new());
    for line in lines {
        bytes = bytes.saturating_add(line.bytes);
        window_ns = time_of_bytes_ns(line.bytes, line.bits_per_sec).max(window_ns);
        streams.push(StreamRecord {
            bytes: line.bytes,
            local_port: line.local_port,
            peer_port: line.peer_port,
            ..StreamRecord::default()
        });
    }
    let mut ends = bulk(bytes, window_ns, Reported::default());
    ends.sender.streams = streams;
    ends
}

/// What a server of datagrams counted. `None` without a stream.
fn received(lines: &[Line]) -> Option<EndRecord> {
    type Counts = (u64, u64, u64, u64);
    let counts: Vec<Counts> = lines.iter().filter_map(|line| line.datagrams).collect();
    let all = |count: fn(&Counts) -> u64| counts.iter().map(count).fold(0, u64::saturating_add);
    let mean_jitter_ns = all(|(jitter_ns, ..)| *jitter_ns).checked_div(counts.len() as u64)?;
    Some(EndRecord {
        datagrams: Some(DatagramCounts {
            received: all(|(_, lost, total, _)| total.saturating_sub(*lost)),
            lost: all(|(_, lost, ..)| *lost),
            reordered: all(|(.., reordered)| *reordered),
            duplicates: 0,
            jitter_ns: mean_jitter_ns,
        }),
        ..sum(lines).receiver
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line> {
        text.lines().filter_map(Line::read).collect()
    }

    #[test]
    fn streams_add_up_and_their_sum_is_left_out() {
        let text = "19700101000000,127.0.0.1,48082,127.0.0.1,15220,1,0.0-1.0,76677180,594343760\n\
                    19700101000000,127.0.0.1,48086,127.0.0.1,15220,2,0.0-1.0,111411260,852011497\n\
                    19700101000000,127.0.0.1,0,127.0.0.1,15220,-1,0.0-1.0,188088440,1446355257\n";
        let ends = sum(&lines(text));
        assert_eq!(ends.receiver.bytes, 188_088_440);
        assert_eq!(ends.receiver.window_ns / 1_000_000, 1046);
        assert_eq!(ends.sender.streams[1].local_port, 48086);
    }

    #[test]
    fn datagrams_are_counted_where_they_arrive() {
        let sent = "19700101000000,127.0.0.1,41589,127.0.0.1,15221,1,0.0-1.0,6253800,50025497,0.000,0,-1,-0.000,0\n";
        assert_eq!(received(&lines(sent)), None);
        let text = "19700101000000,127.0.0.1,41589,127.0.0.1,15221,1,0.0-1.0,6113800,48905621,0.002,100,4467,2.239,3\n";
        let receiver = received(&lines(text)).unwrap();
        assert_eq!(receiver.bytes, 6_113_800);
        let counts = receiver.datagrams.unwrap();
        assert_eq!(
            (counts.received, counts.lost, counts.reordered),
            (4367, 100, 3)
        );
    }
}
