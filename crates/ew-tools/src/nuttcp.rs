//! nuttcp 6 and later (<https://www.nuttcp.net/>): `key=value` words (-fparse).

use crate::figures::{bulk, number_after, time_of_bytes_ns};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, or_last_words, window_seconds};
use ew_model::record::{DatagramCounts, Reported, StreamRecord};
use ew_model::workload::{Tool, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, Role};
use ew_proto::round::RoundSpec;
use std::process::Command;

const MIB: f64 = 1_048_576.0;

pub(crate) struct Nuttcp;

impl ExternalTool for Nuttcp {
    fn tool(&self) -> Tool {
        Tool::Nuttcp
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("-V")
    }

    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        // Else an unauthenticated peer could have the host send to a third one.
        command.args([family(site), "-1", "--no3rdparty"]);
        command.args(port_arguments(port));
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::OneClient
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let direction = match order.role {
            Role::Send => "-t",
            Role::Receive => "-r",
        };
        let mut command = Command::new(site.program);
        command.args([family(site), direction, "-fparse"]);
        command.args(port_arguments(order.peer.port()));
        command.args([
            format!("-T{}", window_seconds(site.spec)),
            format!("-l{}", workload.message_bytes),
        ]);
        command.args(traffic_arguments(workload));
        command.arg(order.peer.ip().to_string());
        command
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let is_udp = spec.workload.kind == WorkloadKind::UdpStream;
        or_last_words(ends(&finished.stdout, is_udp), "nuttcp", finished)
    }
}

fn family(site: &Site<'_>) -> &'static str {
    if site.address.is_ipv6() { "-6" } else { "-4" }
}

/// Control, and data next to it. The client announces to the server where data goes, but a server
/// whose control takes the default port of data, 5001, refuses to begin unless it is given, too.
fn port_arguments(control: u16) -> [String; 4] {
    let data = control.saturating_add(1);
    [
        "-P".into(),
        control.to_string(),
        "-p".into(),
        data.to_string(),
    ]
}

/// Sizes of buffers are in KiB. Left to itself it sends UDP at 1 Mb/s; `u` is as fast as it goes.
fn traffic_arguments(workload: &Workload) -> Vec<String> {
    let socket = &workload.socket;
    let is_udp = workload.kind == WorkloadKind::UdpStream;
    let rate = match workload.pace.flow_bits_per_sec {
        Some(rate) => Some(format!("-R{:.0}", rate / 1e3)),
        None => is_udp.then(|| "-Ru".into()),
    };
    let options = [
        is_udp.then(|| "-u".into()),
        rate,
        (workload.streams > 1).then(|| format!("-N{}", workload.streams)),
        socket
            .send_buffer_bytes
            .map(|bytes| format!("-w{}", bytes.div_ceil(1024))),
        socket
            .send_buffer_bytes
            .map(|bytes| format!("-ws{}", bytes.div_ceil(1024))),
        socket.mss_bytes.map(|bytes| format!("-M{bytes}")),
        socket.dscp.map(|dscp| format!("-c{dscp}")),
        (socket.nodelay && !is_udp).then(|| "-D".into()),
    ];
    options.into_iter().flatten().collect()
}

/// `megabytes=142.6763 real_seconds=1.13 rate_Mbps=1059.8806 ... retrans=0`, by the receiver.
/// Megabytes are 2^20 bytes.
fn ends(stdout: &str, is_udp: bool) -> Option<BothEnds> {
    let line = stdout
        .lines()
        .rev()
        .find(|line| line.contains("rate_Mbps="))?;
    let figure = |label| number_after(line, label);
    let bytes = (figure("megabytes=")? * MIB).round() as u64;
    let window_ns = time_of_bytes_ns(bytes, figure("rate_Mbps=")? * 1e6);
    let mut ends = bulk(bytes, window_ns, Reported::default());
    ends.sender.streams = vec![StreamRecord {
        bytes,
        retransmits: figure("retrans=").map(|count| count as u64),
        ..StreamRecord::default()
    }];
    if is_udp {
        let (lost, packets) = (figure("drop=")? as u64, figure("pkt=")? as u64);
        // Its packets are those that were sent.
        let received = packets.saturating_sub(lost);
        ends.sender.bytes = bytes.checked_div(received)?.saturating_mul(packets);
        ends.receiver.datagrams = Some(DatagramCounts {
            received,
            lost,
            ..DatagramCounts::default()
        });
    }
    Some(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_words_are_understood() {
        let tcp = "megabytes=142.6763 real_seconds=1.13 rate_Mbps=1059.8806 tx_cpu=1 rx_cpu=7 retrans=2 rtt_ms=0.12\n";
        let ends = ends(tcp, false).unwrap();
        assert_eq!(ends.receiver.bytes, 149_606_944);
        assert_eq!(ends.receiver.window_ns / 1_000_000, 1129);
        assert_eq!(ends.sender.streams[0].retransmits, Some(2));
    }

    #[test]
    fn datagrams_that_came_are_those_sent_less_those_lost() {
        let udp = "megabytes=3.1282 real_seconds=2.99 rate_Mbps=8.7667 tx_cpu=2 rx_cpu=0 drop=12990 pkt=15333 data_loss=84.7\n";
        let ends = ends(udp, true).unwrap();
        let counts = ends.receiver.datagrams.unwrap();
        assert_eq!((counts.received, counts.lost), (2343, 12_990));
        assert!(super::ends("Error: server not found\n", true).is_none());
    }
}
