//! netperf and netserver, 2.6 and later (<https://hewlettpackard.github.io/netperf/>): the omni
//! tests' own selection of figures, except for TCP_SENDFILE, which is not among them.

use crate::figures::{bulk, micros_ns, seconds_ns, time_of_bytes_ns, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{
    BothEnds, ExternalTool, SECOND_NS, ServerLife, Site, or_last_words, window_seconds,
};
use ew_model::record::{EndRecord, Reported, StreamRecord};
use ew_model::workload::{SendMode, Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use std::collections::BTreeMap;
use std::process::Command;

/// What is asked of the omni tests (-k).
const SELECTORS: &str = "THROUGHPUT,ELAPSED_TIME,LOCAL_BYTES_SENT,LOCAL_BYTES_RECVD,REMOTE_BYTES_SENT,\
     REMOTE_BYTES_RECVD,RESPONSE_SIZE,LOCAL_RECV_SIZE,REMOTE_RECV_SIZE,LSS_SIZE_END,LSR_SIZE_END,RSS_SIZE_END,RSR_SIZE_END,\
     LOCAL_TRANSPORT_RETRANS,REMOTE_TRANSPORT_RETRANS,MIN_LATENCY,MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,\
     MAX_LATENCY,CONFIDENCE_ITERATION,THROUGHPUT_CONFID";
/// The bounds of its `-i`, beyond which it goes silently to them.
const MIN_TESTS: u64 = 3;
const MAX_TESTS: u64 = 30;

pub(crate) struct Netperf;

impl ExternalTool for Netperf {
    fn tool(&self) -> Tool {
        Tool::Netperf
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("-V")
    }

    fn server_program(&self, _workload: &Workload) -> &'static str {
        "netserver"
    }

    /// -f: it serves itself instead of having children; -N: it writes no file for debugging.
    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.args(["-D", "-f", "-N", "-p", &port.to_string()]);
        command.args(["-L", &site.address.to_string()]);
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::Ended
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let mut command = Command::new(site.program);
        command.args(["-H", &order.peer.ip().to_string()]);
        command.args(["-p", &order.peer.port().to_string()]);
        command.args(["-L", &site.address.to_string()]);
        command.args(["-t", test(workload, order.role), "-P", "0"]);
        command.args(length_arguments(workload, window_seconds(site.spec)));
        if let Some(dscp) = workload.socket.dscp {
            command.args(["-Y", &format!("{dscp},{dscp}")]);
        }
        if is_sendfile(workload) {
            // Any large file does. Ours is there even after it was removed.
            command
                .arg("-F")
                .arg(format!("/proc/{}/exe", std::process::id()));
        }
        command.arg("--");
        command.args(size_arguments(workload, order.role));
        command.args(socket_arguments(workload, order.role));
        if !is_sendfile(workload) {
            command.args(["-k", SELECTORS]);
        }
        command
    }

    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        let (tests, seconds) = tests_of_seconds(&spec.workload, window_seconds(spec));
        tests * seconds * SECOND_NS
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let ends = match is_sendfile(&spec.workload) {
            true => sendfile_ends(&finished.stdout),
            false => Omni::of(&finished.stdout).ends(&spec.workload, order.role),
        };
        or_last_words(ends, "netperf", finished)
    }
}

fn is_sendfile(workload: &Workload) -> bool {
    workload.send_mode == SendMode::Sendfile
}

/// How many tests at most share a window of so many seconds, and how many each has.
fn tests_of_seconds(workload: &Workload, seconds: u64) -> (u64, u64) {
    match workload.confidence_width {
        None => (1, seconds),
        Some(_) => {
            let tests = seconds.clamp(MIN_TESTS, MAX_TESTS);
            (tests, (seconds / tests).max(1))
        }
    }
}

/// `-I` takes the interval's width from end to end, in percent of the mean.
fn length_arguments(workload: &Workload, seconds: u64) -> Vec<String> {
    let (tests, seconds) = tests_of_seconds(workload, seconds);
    let mut arguments = vec!["-l".into(), seconds.to_string()];
    if let Some(width) = workload.confidence_width {
        arguments.extend(["-I".into(), format!("95,{}", width * 100.0)]);
        arguments.extend(["-i".into(), format!("{tests},{MIN_TESTS}")]);
    }
    arguments
}

/// The test by its name in the manual. The client receives in TCP_MAERTS (STREAM read backwards).
fn test(workload: &Workload, role: Role) -> &'static str {
    match (workload.kind, role) {
        (WorkloadKind::UdpStream, _) => "UDP_STREAM",
        (WorkloadKind::TcpRr, _) => "TCP_RR",
        (WorkloadKind::UdpRr, _) => "UDP_RR",
        (WorkloadKind::TcpCrr, _) => "TCP_CRR",
        (_, Role::Receive) => "TCP_MAERTS",
        (_, Role::Send) if is_sendfile(workload) => "TCP_SENDFILE",
        (_, Role::Send) => "TCP_STREAM",
    }
}

/// `-m` is what the client sends at once, `-M` what the server does.
fn size_arguments(workload: &Workload, role: Role) -> Vec<String> {
    if !workload.kind.is_bulk() {
        let sizes = format!("{},{}", workload.message_bytes, workload.answer_bytes());
        return vec!["-r".into(), sizes];
    }
    let option = match role {
        Role::Send => "-m",
        Role::Receive => "-M",
    };
    let mut arguments = vec![option.into(), workload.message_bytes.to_string()];
    if workload.kind == WorkloadKind::UdpStream {
        // Without it datagrams do not leave the local network.
        arguments.extend(["-R".into(), "1".into()]);
    }
    arguments
}

fn socket_arguments(workload: &Workload, role: Role) -> Vec<String> {
    let socket = &workload.socket;
    let mut arguments = Vec::new();
    let (local, remote) = match role {
        Role::Send => ("-s", "-S"),
        Role::Receive => ("-S", "-s"),
    };
    for (option, bytes) in [
        (local, socket.send_buffer_bytes),
        (remote, socket.receive_buffer_bytes),
    ] {
        if let Some(bytes) = bytes {
            arguments.extend([option.into(), bytes.to_string()]);
        }
    }
    if let Some(congestion) = &socket.congestion {
        arguments.extend(["-K".into(), congestion.clone()]);
    }
    if socket.nodelay
        && workload.kind != WorkloadKind::UdpStream
        && workload.kind != WorkloadKind::UdpRr
    {
        arguments.push("-D".into());
    }
    arguments
}

/// `recv-buffer send-buffer message seconds 10^6bits/s`, the table of the tests of before omni (-P
/// 0: without its head).
fn sendfile_ends(stdout: &str) -> Option<BothEnds> {
    let row = stdout.lines().rfind(|line| !line.trim().is_empty())?;
    let figures: Vec<f64> = row
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let [receive_buffer, send_buffer, _, seconds, megabits] = figures[..] else {
        return None;
    };
    let window_ns = seconds_ns(seconds);
    let bytes = (megabits * 1e6 / 8.0 * seconds).round() as u64;
    let reported = Reported {
        send_buffer_bytes: Some(send_buffer as u64),
        receive_buffer_bytes: Some(receive_buffer as u64),
        ..Reported::default()
    };
    Some(bulk(bytes, window_ns, reported))
}

/// `NAME=value` lines.
struct Omni<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Omni<'a> {
    fn of(stdout: &'a str) -> Self {
        Self(
            stdout
                .lines()
                .filter_map(|line| line.trim().split_once('='))
                .collect(),
        )
    }

    /// -1 is "not known".
    fn figure(&self, name: &str) -> Option<f64> {
        let value: f64 = self.0.get(name)?.parse().ok()?;
        (value >= 0.0).then_some(value)
    }

    fn whole(&self, name: &str) -> Option<u64> {
        self.figure(name).map(|value| value as u64)
    }

    fn ends(&self, workload: &Workload, role: Role) -> Option<BothEnds> {
        match workload.kind.is_bulk() {
            true => self.bulk_ends(role),
            false => self.transactions(workload),
        }
    }

    /// Its throughput is of the bytes that came, and more exact than its elapsed time.
    fn bulk_ends(&self, role: Role) -> Option<BothEnds> {
        let (sent, received, retransmits) = match role {
            Role::Send => (
                "LOCAL_BYTES_SENT",
                "REMOTE_BYTES_RECVD",
                "LOCAL_TRANSPORT_RETRANS",
            ),
            Role::Receive => (
                "REMOTE_BYTES_SENT",
                "LOCAL_BYTES_RECVD",
                "REMOTE_TRANSPORT_RETRANS",
            ),
        };
        let (sent, received) = (self.whole(sent)?, self.whole(received)?);
        let window_ns = time_of_bytes_ns(received, self.figure("THROUGHPUT")? * 1e6);
        let mut ends = bulk(received, window_ns, self.reported(role));
        ends.sender.bytes = sent;
        ends.sender.streams = vec![StreamRecord {
            bytes: sent,
            retransmits: self.whole(retransmits),
            ..StreamRecord::default()
        }];
        Some(ends)
    }

    fn transactions(&self, workload: &Workload) -> Option<BothEnds> {
        let per_second = self.figure("THROUGHPUT").filter(|rate| *rate > 0.0)?;
        let count = self
            .whole("LOCAL_BYTES_RECVD")?
            .checked_div(self.whole("RESPONSE_SIZE")?)?;
        let window_ns = seconds_ns(count as f64 / per_second);
        let time = |name| self.figure(name).map(micros_ns);
        let reported = Reported {
            min_ns: time("MIN_LATENCY"),
            mean_ns: time("MEAN_LATENCY"),
            p50_ns: time("P50_LATENCY"),
            p90_ns: time("P90_LATENCY"),
            p99_ns: time("P99_LATENCY"),
            max_ns: time("MAX_LATENCY"),
            ..self.reported(Role::Send)
        };
        let ends = transactions(workload, Some((count, window_ns)), reported);
        Some(BothEnds {
            sender: EndRecord {
                bytes: self.whole("LOCAL_BYTES_SENT")?,
                ..ends.sender
            },
            ..ends
        })
    }

    /// Socket buffers as they were at the end.
    fn reported(&self, role: Role) -> Reported {
        let (send, receive, receive_call) = match role {
            Role::Send => ("LSS_SIZE_END", "RSR_SIZE_END", "REMOTE_RECV_SIZE"),
            Role::Receive => ("RSS_SIZE_END", "LSR_SIZE_END", "LOCAL_RECV_SIZE"),
        };
        Reported {
            send_buffer_bytes: self.whole(send),
            receive_buffer_bytes: self.whole(receive),
            receive_bytes: self.whole(receive_call),
            ..self.confidence().unwrap_or_default()
        }
    }

    /// The width in percent; -1 where none was asked for.
    fn confidence(&self) -> Option<Reported> {
        let percent = self.figure("THROUGHPUT_CONFID")?;
        Some(Reported {
            tests: self
                .figure("CONFIDENCE_ITERATION")
                .map(|tests| tests as u32),
            width_ppm: Some((percent * 1e4).round() as u32),
            ..Reported::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::workload::Workload;

    #[test]
    fn the_omni_figures_are_understood() {
        let text = "THROUGHPUT=5621.07\nELAPSED_TIME=1.01\nLOCAL_BYTES_SENT=5663\nLOCAL_BYTES_RECVD=5663\nRESPONSE_SIZE=1\n\
            MEAN_LATENCY=177.19\nP50_LATENCY=20\nP99_LATENCY=-1\nLSS_SIZE_END=4194304\nRSR_SIZE_END=131072\n";
        let workload = Workload::of(WorkloadKind::TcpRr);
        let ends = Omni::of(text).ends(&workload, Role::Send).unwrap();
        assert_eq!(ends.sender.transactions, Some(5663));
        assert_eq!(ends.sender.window_ns / 1000, 1_007_459);
        let reported = ends.sender.reported.unwrap();
        assert_eq!(
            (reported.mean_ns, reported.p50_ns, reported.p99_ns),
            (Some(177_190), Some(20_000), None)
        );
        assert_eq!(reported.receive_buffer_bytes, Some(131_072));
    }

    #[test]
    fn its_tests_share_the_window() {
        let arguments = |seconds, confidence_width| {
            let workload = Workload {
                confidence_width,
                ..Workload::of(WorkloadKind::TcpStream)
            };
            length_arguments(&workload, seconds).join(" ")
        };
        assert_eq!(arguments(10, None), "-l 10");
        assert_eq!(arguments(10, Some(0.05)), "-l 1 -I 95,5 -i 10,3");
        assert_eq!(arguments(90, Some(0.025)), "-l 3 -I 95,2.5 -i 30,3");
        assert_eq!(arguments(1, Some(0.05)), "-l 1 -I 95,5 -i 3,3");
    }

    #[test]
    fn its_own_confidence_is_told() {
        let reported = |text| Omni::of(text).reported(Role::Send);
        let asked = reported("CONFIDENCE_ITERATION=4\nTHROUGHPUT_CONFID=3.125\n");
        assert_eq!((asked.tests, asked.width_ppm), (Some(4), Some(31_250)));
        let unasked = reported("CONFIDENCE_ITERATION=1\nTHROUGHPUT_CONFID=-1.000\n");
        assert_eq!((unasked.tests, unasked.width_ppm), (None, None));
    }

    #[test]
    fn received_bytes_are_the_receivers() {
        let text = "THROUGHPUT=102.78\nLOCAL_BYTES_SENT=108283071\nREMOTE_BYTES_RECVD=13494442\n";
        let workload = Workload::of(WorkloadKind::UdpStream);
        let ends = Omni::of(text).ends(&workload, Role::Send).unwrap();
        assert_eq!(
            (ends.sender.bytes, ends.receiver.bytes),
            (108_283_071, 13_494_442)
        );
        assert_eq!(ends.receiver.window_ns / 1_000_000, 1050);
    }

    #[test]
    fn sendfile_has_its_old_table() {
        let ends = sendfile_ends("131072  16384  16384    1.40      784.06   \n").unwrap();
        assert_eq!(ends.receiver.window_ns, 1_400_000_000);
        assert_eq!(ends.receiver.bytes, 137_210_500);
        assert_eq!(
            sendfile_ends("establish control: are you sure there is a netserver\n"),
            None
        );
    }
}
