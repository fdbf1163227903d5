//! ping of iputils (<https://github.com/iputils/iputils>): the kernel of the other host answers.

use crate::figures::{number_after, seconds_ns, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, no_figures, window_seconds};
use ew_model::latency::{Histogram, Latency};
use ew_model::record::Reported;
use ew_model::workload::{Limit, Tool};
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::process::Command;

pub(crate) struct Ping;

impl ExternalTool for Ping {
    fn tool(&self) -> Tool {
        Tool::Ping
    }

    fn version_argument(&self) -> Option<&'static str> {
        Some("-V")
    }

    /// Never started: nothing listens.
    fn server(&self, site: &Site<'_>, _port: u16) -> Command {
        Command::new(site.program)
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::Ended
    }

    /// Without an interval it asks again when the answer is there (-A), as the engine does.
    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let workload = &site.spec.workload;
        let mut command = Command::new(site.program);
        command.args(["-n", "-I", &site.address.to_string()]);
        command.args(["-s", &workload.message_bytes.to_string()]);
        command.args(["-w", &window_seconds(site.spec).to_string()]);
        match workload.pace.requests_per_sec {
            Some(rate) => command.args(["-i", &format!("{:.6}", 1.0 / rate)]),
            None => command.arg("-A"),
        };
        if let Some(Limit::Messages(count)) = workload.limit {
            command.args(["-c", &count.to_string()]);
        }
        if let Some(class) = workload.socket.traffic_class() {
            command.args(["-Q", &class.to_string()]);
        }
        command.arg(order.peer.ip().to_string());
        command
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        let times = times(&finished.stdout);
        let Some(summary) = times.summary() else {
            return Err(no_figures("ping", finished, "no answer came"));
        };
        let reported = Reported {
            min_ns: Some(summary.min_ns),
            mean_ns: Some(summary.mean_ns),
            max_ns: Some(summary.max_ns),
            ..Reported::default()
        };
        let planned_ns = window_seconds(spec) * 1_000_000_000;
        let window_ns = window_ns(&finished.stdout).unwrap_or(planned_ns);
        let mut ends = transactions(&spec.workload, Some((summary.count, window_ns)), reported);
        ends.sender.latency = Some(Latency {
            times,
            uncorrected: None,
        });
        Ok(ends)
    }
}

/// `64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.043 ms`, each echo; printed with three or
/// four digits.
fn times(stdout: &str) -> Histogram {
    let mut times: Vec<u64> = stdout
        .lines()
        .filter_map(|line| number_after(line, " time="))
        .map(|ms| seconds_ns(ms / 1e3))
        .collect();
    times.sort_unstable();
    let mut histogram = Histogram::default();
    for same in times.chunk_by(|a, b| a == b) {
        histogram.buckets.push((same[0], same.len() as u64));
    }
    histogram.sum_ns = times.iter().copied().fold(0, u64::saturating_add);
    histogram.min_ns = times.first().copied().unwrap_or(0);
    histogram.max_ns = times.last().copied().unwrap_or(0);
    histogram
}

/// `5 packets transmitted, 5 received, 0% packet loss, time 35ms`.
fn window_ns(stdout: &str) -> Option<u64> {
    let line = stdout
        .lines()
        .rev()
        .find(|line| line.contains("packets transmitted"))?;
    let ms = number_after(line, ", time ")?;
    (ms > 0.0).then(|| seconds_ns(ms / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_echo_counts() {
        let text = "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.\n\
            64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.043 ms\n\
            64 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=0.022 ms\n\
            64 bytes from 127.0.0.1: icmp_seq=3 ttl=64 time=0.022 ms\n\n\
            --- 127.0.0.1 ping statistics ---\n3 packets transmitted, 3 received, 0% packet loss, time 35ms\n";
        let summary = times(text).summary().unwrap();
        assert_eq!(
            (summary.count, summary.min_ns, summary.p50_ns),
            (3, 22_000, 22_000)
        );
        assert_eq!(summary.max_ns, 43_000);
        assert_eq!(window_ns(text), Some(35_000_000));
        assert_eq!(
            times("ping: connect: Network is unreachable\n").summary(),
            None
        );
    }
}
