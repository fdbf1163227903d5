//! NetPIPE over TCP, NPtcp 3.7 (<https://netpipe.cs.ksu.edu/>): one message size at a time.

use crate::figures::{bulk_of_rate, number_after, seconds_ns, transactions};
use crate::flow_error::FlowError;
use crate::process::Finished;
use crate::tool::{BothEnds, ExternalTool, ServerLife, Site, or_last_words};
use ew_model::record::Reported;
use ew_model::workload::{Tool, WorkloadKind};
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::process::Command;

pub(crate) struct Netpipe;

impl ExternalTool for Netpipe {
    fn tool(&self) -> Tool {
        Tool::Netpipe
    }

    fn version_argument(&self) -> Option<&'static str> {
        None
    }

    /// Both ends walk through the same sizes and must be given the same.
    fn server(&self, site: &Site<'_>, port: u16) -> Command {
        let mut command = Command::new(site.program);
        command.args(common_arguments(site.spec, port));
        command.args(["-o", "/dev/null"]);
        command
    }

    fn server_life(&self) -> ServerLife {
        ServerLife::OneClient
    }

    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command {
        let mut command = Command::new(site.program);
        command.args(["-h", &order.peer.ip().to_string()]);
        command.args(common_arguments(site.spec, order.peer.port()));
        command.args(["-o", "/dev/stdout"]);
        command
    }

    fn parse(
        &self,
        spec: &RoundSpec,
        _order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError> {
        or_last_words(ends(spec, finished), "netpipe", finished)
    }
}

/// One size, without its neighbours (-p 0), always back and forth, as it does by itself: streaming
/// (-s) sets up a new connection for every trial, and on a short path the client is there before
/// its server has closed the old listener (connection reset).
fn common_arguments(spec: &RoundSpec, port: u16) -> Vec<String> {
    let size = spec.workload.message_bytes.to_string();
    let mut arguments: Vec<String> = ["-P", &port.to_string(), "-l", &size, "-u", &size, "-p", "0"]
        .map(Into::into)
        .into();
    if let Some(bytes) = spec.workload.socket.send_buffer_bytes {
        arguments.extend(["-b".into(), bytes.to_string()]);
    }
    arguments
}

/// `64 36.841662 0.00001325`: bytes, megabits of 2^20 bits a second, and the seconds of one way:
/// half of a round trip. It is the best of its trials.
fn ends(spec: &RoundSpec, finished: &Finished) -> Option<BothEnds> {
    let size = spec.workload.message_bytes;
    let row = finished.stdout.lines().rev().find_map(|line| {
        let figures: Vec<f64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        <[f64; 3]>::try_from(figures)
            .ok()
            .filter(|[bytes, ..]| *bytes == size as f64)
    })?;
    let [bytes, _, seconds] = row;
    let reported = Reported {
        send_buffer_bytes: buffer(&finished.stderr, "buffers are "),
        receive_buffer_bytes: buffer(&finished.stderr, " and "),
        ..Reported::default()
    };
    if spec.workload.kind == WorkloadKind::TcpStream {
        let bits_per_sec = bytes * 8.0 / (seconds > 0.0).then_some(seconds)?;
        return Some(bulk_of_rate(bits_per_sec, spec.window_ns, reported));
    }
    let reported = Reported {
        min_ns: Some(seconds_ns(seconds)),
        ..reported
    };
    Some(transactions(&spec.workload, None, reported))
}

/// `Send and receive buffers are 16384 and 131072 bytes`.
fn buffer(said: &str, label: &str) -> Option<u64> {
    let line = said
        .lines()
        .find(|line| line.starts_with("Send and receive buffers"))?;
    let after = line.split_once("buffers are").map(|(_, after)| after)?;
    let text = format!("buffers are{after}");
    number_after(&text, label).map(|bytes| bytes as u64)
}
