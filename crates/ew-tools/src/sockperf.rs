//! sockperf 3 (<https://github.com/Mellanox/sockperf>): ping-pong and throughput.

use crate::figures::{bulk, micros_ns, number_after, seconds_ns, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{
    BothEnds, ExternalTool, ServerLife, Site, or_last_words, warm_up_seconds, window_seconds,
};
use ew_model::record::Reported;
use ew_model::workload::{Tool, Workload, WorkloadKind};
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::process::Command;

pub(crate) struct Sockperf;

impl ExternalTool for Sockperf {
    fn tool(&self) -> Tool {
        Tool::Sockperf
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.args([
            "server",
            "-i",
            &site.address.to_string(),
            "-p",
            &port.to_string(),
        ]);
        command.args(common_arguments(&site.spec.workload));
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::Ended
    }

    fn holds_connection(&self, kind: WorkloadKind) -> bool {
        kind != WorkloadKind::UdpRr
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let mut command = Command::new(site.program);
        match workload.kind {
            WorkloadKind::TcpStream => command.arg("throughput"),
            _ => command.args(["ping-pong", "--full-rtt"]),
        };
        command.args([
            "-i",
            &order.peer.ip().to_string(),
            "-p",
            &order.peer.port().to_string(),
        ]);
        command.args(["--client_ip", &site.address.to_string()]);
        command.args(["-m", &workload.message_bytes.to_string()]);
        command.args(["-t", &runtime_seconds(site.spec).to_string()]);
        command.args(common_arguments(workload));
        command
    }

    /// It cuts off begin and end itself, most of a second.
    fn client_start_ns(&self, spec: &RoundSpec) -> u64 {
        spec.start_ns
    }

    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        runtime_seconds(spec) * 1_000_000_000
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let ends = match spec.workload.kind {
            WorkloadKind::TcpStream => throughput(&finished.stdout, spec.workload.message_bytes),
            _ => round_trips(&finished.stdout, &spec.workload),
        };
        or_last_words(ends, "sockperf", finished)
    }
}

fn runtime_seconds(spec: &RoundSpec) -> u64 {
    warm_up_seconds(spec) + window_seconds(spec)
}

fn common_arguments(workload: &Workload) -> Vec<String> {
    let is_tcp = workload.kind != WorkloadKind::UdpRr;
    let mut arguments: Vec<String> = is_tcp.then(|| "--tcp".into()).into_iter().collect();
    if let Some(bytes) = workload.socket.send_buffer_bytes {
        arguments.extend(["--buffer-size".into(), bytes.to_string()]);
    }
    if let Some(class) = workload.socket.traffic_class() {
        arguments.extend(["--tos".into(), class.to_string()]);
    }
    arguments
}

/// `Total of 4374 messages sent in 1.056 sec`: what the sender handed to its kernel.
fn throughput(stdout: &str, message_bytes: u64) -> Option<BothEnds> {
    let messages = number_after(stdout, "Total of ")? as u64;
    let window_ns = seconds_ns(number_after(stdout, "messages sent in ")?);
    let bytes = messages.saturating_mul(message_bytes);
    Some(bulk(bytes, window_ns, Reported::default()))
}

/// Begin and end are cut off: it is `[Valid Duration]` that its times are of.
fn round_trips(stdout: &str, workload: &Workload) -> Option<BothEnds> {
    let (_, valid) = stdout.split_once("[Valid Duration]")?;
    let count = number_after(valid, "ReceivedMessages=")? as u64;
    let window_ns = seconds_ns(number_after(valid, "RunTime=")?);
    let time = |label| number_after(valid, label).map(micros_ns);
    let reported = Reported {
        min_ns: time("<MIN> observation ="),
        mean_ns: time("avg-rtt="),
        p50_ns: time("percentile 50.000 ="),
        p90_ns: time("percentile 90.000 ="),
        p99_ns: time("percentile 99.000 ="),
        max_ns: time("<MAX> observation ="),
        ..Reported::default()
    };
    Some(transactions(workload, Some((count, window_ns)), reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING_PONG: &str = "sockperf: [Total Run] RunTime=1.001 sec; Warm up time=400 msec; SentMessages=13010; ReceivedMessages=13009\n\
        sockperf: [Valid Duration] RunTime=0.545 sec; SentMessages=9175; ReceivedMessages=9175\n\
        sockperf: \u{1b}[2;35m====> avg-rtt=59.367 (std-dev=803.040)\u{1b}[0m\n\
        sockperf: ---> <MAX> observation = 44182.265\n\
        sockperf: ---> percentile 99.999 = 44182.265\n\
        sockperf: ---> percentile 99.000 =  128.429\n\
        sockperf: ---> percentile 50.000 =   20.157\n\
        sockperf: ---> <MIN> observation =   15.729\n";

    #[test]
    fn its_lines_are_understood() {
        let ends = round_trips(PING_PONG, &Workload::of(WorkloadKind::TcpRr)).unwrap();
        assert_eq!(ends.sender.transactions, Some(9175));
        assert_eq!(ends.sender.window_ns, 545_000_000);
        let reported = ends.sender.reported.unwrap();
        assert_eq!(
            (reported.mean_ns, reported.p50_ns),
            (Some(59_367), Some(20_157))
        );
        assert_eq!((reported.p90_ns, reported.p99_ns), (None, Some(128_429)));
        let bulk = throughput(
            "sockperf: Total of 4374 messages sent in 1.056 sec\n",
            65_000,
        )
        .unwrap();
        assert_eq!(
            (bulk.receiver.bytes, bulk.receiver.window_ns),
            (284_310_000, 1_056_000_000)
        );
        assert!(throughput("sockperf: ERROR\n", 1).is_none());
    }
}
