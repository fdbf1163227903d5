//! lmbench 3: bw_tcp, lat_tcp, lat_udp and lat_connect
//! (<https://sourceforge.net/projects/lmbench/>).

use crate::figures::{bulk_of_rate, micros_ns, number_after, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, or_last_words};
use ew_model::record::Reported;
use ew_model::workload::{Tool, Workload, WorkloadKind};
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::process::Command;

/// A measurement has three equal parts (benchmp of lib_timing.c): warming up, measuring, and
/// letting others end.
const PARTS: u64 = 3;
/// What bw_tcp moves between readings of the clock; left to itself 10 MB. Much less would come out
/// of the receive buffer at memory speed where the reader had to wait for a CPU.
const MOVED_AT_ONCE_BYTES: u64 = 4 << 20;
/// What a measurement takes besides its parts: a second or two of waiting, and what a busy host
/// adds.
const BESIDE_NS: u64 = 4_000_000_000;

pub(crate) struct Lmbench;

impl ExternalTool for Lmbench {
    fn tool(&self) -> Tool {
        Tool::Lmbench
    }

    fn version_argument(&self) -> Option<&'static str> {
        None
    }

    fn client_program(&self, workload: &Workload) -> &'static str {
        match workload.kind {
            WorkloadKind::TcpRr => "lat_tcp",
            WorkloadKind::UdpRr => "lat_udp",
            WorkloadKind::TcpCrr => "lat_connect",
            _ => "bw_tcp",
        }
    }

    /// It takes its port, all addresses, and goes into the background.
    fn server(&self, site: &Site<'_>, _port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.arg("-s");
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::EndedWithChildren
    }

    fn holds_connection(&self, kind: WorkloadKind) -> bool {
        !matches!(kind, WorkloadKind::UdpRr | WorkloadKind::TcpCrr)
    }

    /// How long a measurement takes, and what reading the clock and a loop cost, it would find
    /// out by itself in a minute and more; all three matter below a microsecond only. bw_tcp and
    /// lat_udp would warm up for 7 s and more, whatever the window.
    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let part_us = (site.spec.window_ns / PARTS / 1000).to_string();
        let mut command = Command::new(site.program);
        command.env("ENOUGH", &part_us);
        command.env("TIMING_O", "0").env("LOOP_O", "0");
        command.args(["-N", "1"]);
        if workload.kind != WorkloadKind::TcpCrr {
            command.args(["-W", &part_us]);
            command.args(["-m", &workload.message_bytes.to_string()]);
            command.args(["-P", &workload.streams.to_string()]);
        }
        if workload.kind == WorkloadKind::TcpStream {
            let whole = MOVED_AT_ONCE_BYTES.next_multiple_of(workload.message_bytes.max(1));
            command.args(["-M", &whole.to_string()]);
        }
        command.arg(order.peer.ip().to_string());
        command
    }

    /// It waits a second or two besides its parts, and on a busy host finding how often fits takes
    /// several times its part.
    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        spec.window_ns.saturating_add(BESIDE_NS)
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let ends = match spec.workload.kind {
            WorkloadKind::TcpStream => bandwidth(&finished.stderr, spec.window_ns),
            _ => latency(&finished.stderr, &spec.workload),
        };
        let program = self.client_program(&spec.workload);
        or_last_words(ends, &format!("lmbench's {program}"), finished)
    }
}

/// `0.065536 877.03 MB/sec`: megabytes are 10^6 (lib_timing.c).
fn bandwidth(said: &str, window_ns: u64) -> Option<BothEnds> {
    let line = said.lines().find(|line| line.contains("MB/sec"))?;
    let megabytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(bulk_of_rate(
        megabytes * 8e6,
        window_ns,
        Reported::default(),
    ))
}

/// `TCP latency using 127.0.0.1: 45.4689 microseconds`, of a round trip; over `-P` connections the
/// mean of all.
fn latency(said: &str, workload: &Workload) -> Option<BothEnds> {
    let line = said.lines().find(|line| line.contains("microseconds"))?;
    let (_, figure) = line.rsplit_once(": ")?;
    let micros = number_after(figure, "")?;
    let reported = Reported {
        mean_ns: Some(micros_ns(micros)),
        ..Reported::default()
    };
    Some(transactions(workload, None, reported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_lines_are_understood() {
        let workload = Workload::of(WorkloadKind::TcpRr);
        let mean = |line: &str| {
            latency(line, &workload)
                .unwrap()
                .sender
                .reported
                .unwrap()
                .mean_ns
        };
        assert_eq!(
            mean("TCP latency using 127.0.0.1: 45.4689 microseconds\n"),
            Some(45_469)
        );
        let connect = "TCP/IP connection cost to 127.0.0.1: 893.8513 microseconds\n";
        assert_eq!(mean(connect), Some(893_851));
        assert_eq!(mean("TCP latency using ::1: 1 microseconds\n"), Some(1000));
        assert!(latency("lat_tcp: no answer\n", &workload).is_none());
        let ends = bandwidth("0.065536 877.03 MB/sec\n", 2_000_000_000).unwrap();
        assert_eq!(ends.receiver.bytes, 1_754_060_000);
    }
}
