//! qperf 0.4 (<https://github.com/linux-rdma/qperf>): its socket tests, verbose and in unified
//! units.

use crate::figures::{bulk_of_rate, number_after, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, or_last_words, window_seconds};
use ew_model::record::Reported;
use ew_model::workload::{Tool, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use std::process::Command;

/// Significant digits of what it prints.
const DIGITS: &str = "9";

pub(crate) struct Qperf;

impl ExternalTool for Qperf {
    fn tool(&self) -> Tool {
        Tool::Qperf
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.args(["-lp", &port.to_string()]);
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::EndedWithChildren
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let port = order.peer.port();
        let mut command = Command::new(site.program);
        command.arg(order.peer.ip().to_string());
        command.args([
            "-lp",
            &port.to_string(),
            "-ip",
            &port.saturating_add(1).to_string(),
        ]);
        command.args(["-t", &window_seconds(site.spec).to_string()]);
        command.args(["-m", &workload.message_bytes.to_string()]);
        command.args(["-v", "-uu", "-e", DIGITS]);
        if let Some(bytes) = workload.socket.send_buffer_bytes {
            command.args(["-sb", &bytes.to_string()]);
        }
        if workload.kind.is_bulk() && order.role == Role::Receive {
            command.arg("-f1");
        }
        command.arg(match workload.kind {
            WorkloadKind::UdpStream => "udp_bw",
            WorkloadKind::UdpRr => "udp_lat",
            WorkloadKind::TcpRr => "tcp_lat",
            _ => "tcp_bw",
        });
        command
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let ends = match spec.workload.kind.is_bulk() {
            true => bandwidth(&finished.stdout),
            false => latency(spec, &finished.stdout),
        };
        or_last_words(ends, "qperf", finished)
    }
}

/// `name = value unit` of the line with that name.
fn figure(stdout: &str, name: &str) -> Option<f64> {
    let mut lines = stdout
        .lines()
        .filter_map(|line| line.trim().split_once('='));
    let (_, value) = lines.find(|(known, _)| known.trim() == name)?;
    number_after(value, "")
}

/// TCP has one rate, UDP one of each end.
fn bandwidth(stdout: &str) -> Option<BothEnds> {
    let window_ns = figure(stdout, "time")? as u64;
    let received = figure(stdout, "recv_bw").or_else(|| figure(stdout, "bw"))?;
    let sent = figure(stdout, "send_bw").unwrap_or(received);
    let mut ends = bulk_of_rate(received * 8.0, window_ns, Reported::default());
    ends.sender.bytes = bulk_of_rate(sent * 8.0, window_ns, Reported::default())
        .sender
        .bytes;
    Some(ends)
}

/// Its latency is that of one way: half of the mean round trip. Its messages are those of both
/// ends.
fn latency(spec: &RoundSpec, stdout: &str) -> Option<BothEnds> {
    let window_ns = figure(stdout, "time")? as u64;
    let round_trips_per_sec = figure(stdout, "msg_rate")? / 2.0;
    let count = (round_trips_per_sec * window_ns as f64 / 1e9).round() as u64;
    let reported = Reported {
        mean_ns: Some(figure(stdout, "latency")?.round() as u64),
        ..Reported::default()
    };
    Some(transactions(
        &spec.workload,
        Some((count, window_ns)),
        reported,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_understood() {
        let tcp = "tcp_bw:\n    bw              =   219494400 bytes/sec\n    msg_rate        =        3349 /sec\n    time            =  1000000000 ns\n";
        assert_eq!(bandwidth(tcp).unwrap().receiver.bytes, 219_494_400);
        let udp = "udp_bw:\n    send_bw         =      12534691 bytes/sec\n    recv_bw         =       7174762 bytes/sec\n    time = 2000000000 ns\n";
        let ends = bandwidth(udp).unwrap();
        assert_eq!(
            (ends.sender.bytes, ends.receiver.bytes),
            (25_069_382, 14_349_524)
        );
        assert_eq!(
            figure("tcp_lat:\n    latency        =  1429499.68 ns\n", "latency"),
            Some(1_429_499.68)
        );
        assert!(bandwidth("failed to connect\n").is_none());
    }
}
