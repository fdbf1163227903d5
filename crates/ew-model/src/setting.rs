//! What a workload sets otherwise than by default.

use crate::sizes::SizeDistribution;
use crate::workload::{Limit, Placement, ReceiveMode, SendMode, SocketSettings};
use crate::{Workload, WorkloadKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A setting that differs from the default of its kind of workload and its tool.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Setting {
    /// Messages have the sizes of a published distribution (flow-sizes).
    Sizes(SizeDistribution),
    /// Parallel connections of a flow.
    Streams(u32),
    /// Threads that share a host's streams.
    Threads(u32),
    /// Bytes of a message (bulk).
    MessageBytes(u64),
    /// Bytes of a request.
    RequestBytes(u64),
    /// Bytes of a response.
    ResponseBytes(u64),
    /// Requests in flight.
    Outstanding(u32),
    /// Max rate of a stream, bits per second.
    StreamBitsPerSec(f64),
    /// Max rate of a flow, bits per second.
    FlowBitsPerSec(f64),
    /// Load: the share of the line rate that messages arrive at, 0 to 1.
    LineShare(f64),
    /// Open loop: requests of a flow a second.
    RequestsPerSec(f64),
    /// Bytes after which a stream ends.
    LimitBytes(u64),
    /// Messages after which a stream ends.
    LimitMessages(u64),
    /// The sender's application does not touch the bytes.
    Sendfile,
    /// Zero-copy sending.
    ZerocopySend,
    /// The receiver discards in the kernel.
    DiscardingReceiver,
    /// Mapped receiving.
    MappedReceive,
    /// Neither GSO nor GRO (udp-stream).
    NoSegmentation,
    /// Whether `TCP_NODELAY` is set: Nagle's algorithm is off.
    Nodelay(bool),
    /// `SO_SNDBUF`, bytes.
    SendBufferBytes(u32),
    /// `SO_RCVBUF`, bytes.
    ReceiveBufferBytes(u32),
    /// Congestion control.
    Congestion(String),
    /// `TCP_MAXSEG`, bytes.
    MssBytes(u32),
    /// Differentiated services code point.
    Dscp(u8),
    /// Multipath TCP.
    Mptcp,
    /// The device that sockets are bound to.
    Device(String),
    /// CPUs of the streams' threads.
    Cpus(Vec<u32>),
    /// Threads near the NIC.
    NearNic,
    /// Threads near the receive queue.
    NearReceiveQueue,
}

impl Workload {
    /// What is set otherwise than by default, in the order of the scenario's keys.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = amounts(self);
        settings.extend(pace_and_limit(self));
        settings.extend(way_to_the_bytes(self));
        settings.extend(nodelay(self));
        settings.extend(socket(&self.socket));
        settings.extend(placement(&self.placement));
        settings
    }
}

fn amounts(workload: &Workload) -> Vec<Setting> {
    let typical = Workload::of(workload.kind);
    let is_bulk = workload.kind.is_bulk();
    let bytes = workload.message_bytes;
    let message = match is_bulk {
        true => Setting::MessageBytes(bytes),
        false => Setting::RequestBytes(bytes),
    };
    let streams = workload.streams;
    let outstanding = workload.outstanding;
    let response = workload.response_bytes.filter(|_| !is_bulk);
    let sizes = workload.distribution;
    let settings = [
        (sizes != typical.distribution).then_some(Setting::Sizes(sizes)),
        (streams != typical.streams).then_some(Setting::Streams(streams)),
        workload.threads.map(Setting::Threads),
        (bytes != typical.message_bytes).then_some(message),
        response.map(Setting::ResponseBytes),
        (outstanding != typical.outstanding).then_some(Setting::Outstanding(outstanding)),
    ];
    settings.into_iter().flatten().collect()
}

fn pace_and_limit(workload: &Workload) -> impl Iterator<Item = Setting> {
    let pace = workload.pace;
    let settings = [
        pace.stream_bits_per_sec.map(Setting::StreamBitsPerSec),
        pace.flow_bits_per_sec.map(Setting::FlowBitsPerSec),
        pace.line_share.map(Setting::LineShare),
        pace.requests_per_sec.map(Setting::RequestsPerSec),
        workload.limit.map(|limit| match limit {
            Limit::Bytes(bytes) => Setting::LimitBytes(bytes),
            Limit::Messages(count) => Setting::LimitMessages(count),
        }),
    ];
    settings.into_iter().flatten()
}

fn way_to_the_bytes(workload: &Workload) -> impl Iterator<Item = Setting> {
    let send = match workload.send_mode {
        SendMode::Copy => None,
        SendMode::Sendfile => Some(Setting::Sendfile),
        SendMode::Zerocopy => Some(Setting::ZerocopySend),
    };
    let receive = match workload.receive_mode {
        ReceiveMode::Copy => None,
        ReceiveMode::Discard => Some(Setting::DiscardingReceiver),
        ReceiveMode::Mmap => Some(Setting::MappedReceive),
    };
    let is_whole = workload.kind == WorkloadKind::UdpStream && !workload.segmentation;
    let whole = is_whole.then_some(Setting::NoSegmentation);
    [send, receive, whole].into_iter().flatten()
}

/// Only TCP has it: what older runs kept for UDP shows nothing.
fn nodelay(workload: &Workload) -> Option<Setting> {
    let nodelay = workload.socket.nodelay;
    let is_set = nodelay != workload.tool.usual_nodelay(workload.kind) && workload.kind.is_tcp();
    is_set.then_some(Setting::Nodelay(nodelay))
}

fn socket(socket: &SocketSettings) -> impl Iterator<Item = Setting> {
    let settings = [
        socket.send_buffer_bytes.map(Setting::SendBufferBytes),
        socket.receive_buffer_bytes.map(Setting::ReceiveBufferBytes),
        socket.congestion.clone().map(Setting::Congestion),
        socket.mss_bytes.map(Setting::MssBytes),
        socket.dscp.map(Setting::Dscp),
        socket.mptcp.then_some(Setting::Mptcp),
        socket.device.clone().map(Setting::Device),
    ];
    settings.into_iter().flatten()
}

fn placement(placement: &Placement) -> Option<Setting> {
    match placement {
        Placement::Free => None,
        Placement::Cpus(cpus) => Some(Setting::Cpus(cpus.clone())),
        Placement::NearNic => Some(Setting::NearNic),
        Placement::NearReceiveQueue => Some(Setting::NearReceiveQueue),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Tool;

    #[test]
    fn what_a_tool_does_by_itself_is_no_setting() {
        let mut workload = Workload {
            tool: Tool::Netperf,
            ..Workload::of(WorkloadKind::TcpRr)
        };
        workload.socket.nodelay = false;
        assert_eq!(workload.settings(), []);
        workload.socket.nodelay = true;
        assert_eq!(workload.settings(), [Setting::Nodelay(true)]);
    }

    #[test]
    fn defaults_are_no_settings() {
        for kind in WorkloadKind::ALL {
            assert_eq!(Workload::of(kind).settings(), []);
        }
    }

    #[test]
    fn only_tcp_has_nagles_algorithm() {
        for kind in WorkloadKind::ALL {
            let mut workload = Workload::of(kind);
            workload.socket.nodelay ^= true;
            let count = workload.settings().len();
            assert_eq!(count, usize::from(kind.is_tcp()), "{kind:?}");
        }
    }

    #[test]
    fn what_was_set_is_in_the_order_of_the_scenarios_keys() {
        let mut workload = Workload {
            streams: 4,
            receive_mode: ReceiveMode::Discard,
            ..Workload::of(WorkloadKind::TcpStream)
        };
        workload.pace.flow_bits_per_sec = Some(1e9);
        workload.socket.nodelay = true;
        assert_eq!(
            workload.settings(),
            [
                Setting::Streams(4),
                Setting::FlowBitsPerSec(1e9),
                Setting::DiscardingReceiver,
                Setting::Nodelay(true)
            ]
        );
    }
}
