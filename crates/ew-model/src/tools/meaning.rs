//! What a tool's figures mean, so that those of different tools can be compared. What a tool
//! fixes itself (a socket option, half of a round trip) was seen with strace, or is in its source
//! where that is documented.

use crate::workload::{Tool, Workload, WorkloadKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the figures of a workload's tool are figures of.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// What is timed or counted.
    pub measures: Measures,
    /// Which figure of many it is.
    pub statistic: Statistic,
    /// What to multiply a time with to have a round trip.
    pub round_trips: f64,
    /// Who counts the bytes or the transactions.
    pub counted_by: CountedBy,
    /// How connections are used.
    pub connections: Connections,
    /// Payload of one message; headers are in no tool's figures.
    pub message_bytes: u64,
    /// Whether small messages leave at once. `None` where there is no such choice.
    pub nodelay: Option<bool>,
    /// Socket buffers in bytes where the tool fixes them itself, as it asks for them.
    pub fixed_buffers_bytes: Option<u64>,
}

/// What a tool times or counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// Payload in one direction.
    OneWayPayload,
    /// A message over half of its round trip, the best of trials; each direction is idle half of
    /// the time.
    MessageOverHalfRoundTrip,
    /// A round trip.
    RoundTrip,
    /// Half of a round trip.
    HalfRoundTrip,
    /// A round trip of the kernel's answer, up to the answer's time stamp.
    EchoToTimestamp,
    /// A round trip of the kernel's answer, up to the process.
    EchoToProcess,
    /// A round trip of a SYN that reached the peer.
    SynRoundTrip,
    /// A new socket, connect and close, nothing sent: one round trip.
    ConnectAndClose,
    /// Connect, request, response: two round trips. The close, a reset, and the socket, which
    /// connects again, are not in it.
    ConnectAndRequest,
    /// A new socket, connect, request, response: two round trips; then until the peer has closed,
    /// too, and close.
    ConnectUntilClosed,
    /// Completion of a message: from its arrival to the answer to its end.
    Completion,
}

/// Who counts the bytes or the transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedBy {
    /// The client.
    Client,
    /// The sender.
    Sender,
    /// The sender, as time per message.
    SenderPerMessage,
    /// The receiver.
    Receiver,
}

/// How connections are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connections {
    /// There are none.
    None,
    /// One, kept.
    OneKept,
    /// One socket without a connection, kept.
    OneSocketKept,
    /// One for each transaction.
    PerTransaction,
    /// One for each hop, reset.
    PerHop,
}

/// Which figure of many a tool reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Bytes or transactions over time.
    Rate,
    /// Half are below. Also reported: the mean.
    Median,
    /// Arithmetic mean, which a few slow ones raise.
    Mean,
    /// The best of its trials.
    #[serde(rename = "best of trials")]
    Least,
}

/// What bw_tcp asks for at both ends (SO_SNDBUF and SO_RCVBUF by strace).
const BW_TCP_BUFFERS_BYTES: u64 = 1_048_576;
/// What lat_connect moves: nothing.
const NO_PAYLOAD: u64 = 0;

impl Workload {
    /// What its tool's figures mean.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        Meaning {
            measures: self.measures(),
            statistic: self.statistic(),
            round_trips: self.round_trips(),
            counted_by: self.counted_by(),
            connections: self.connections(),
            message_bytes: match self.is_lat_connect() {
                true => NO_PAYLOAD,
                false => self.message_bytes,
            },
            nodelay: self.sends_at_once(),
            fixed_buffers_bytes: match (self.tool, self.kind) {
                (Tool::Lmbench, WorkloadKind::TcpStream) => Some(BW_TCP_BUFFERS_BYTES),
                _ => self.socket.send_buffer_bytes.map(u64::from),
            },
        }
    }

    fn is_lat_connect(&self) -> bool {
        (self.tool, self.kind) == (Tool::Lmbench, WorkloadKind::TcpCrr)
    }

    fn measures(&self) -> Measures {
        match (self.kind, self.tool) {
            (WorkloadKind::TcpStream, Tool::Netpipe) => Measures::MessageOverHalfRoundTrip,
            (WorkloadKind::TcpStream | WorkloadKind::UdpStream, _) => Measures::OneWayPayload,
            (WorkloadKind::TcpCrr, Tool::Lmbench) => Measures::ConnectAndClose,
            // By strace the last call before close waits for the peer's end of the connection,
            // which has a segment of its own.
            (WorkloadKind::TcpCrr, Tool::Netperf) => Measures::ConnectUntilClosed,
            (WorkloadKind::TcpCrr, _) => Measures::ConnectAndRequest,
            (_, Tool::Netpipe | Tool::Qperf) => Measures::HalfRoundTrip,
            (WorkloadKind::Ping, Tool::Ping) => Measures::EchoToTimestamp,
            (WorkloadKind::Ping, _) => Measures::EchoToProcess,
            (WorkloadKind::Trace, _) => Measures::SynRoundTrip,
            (WorkloadKind::FlowSizes, _) => Measures::Completion,
            (_, _) => Measures::RoundTrip,
        }
    }

    fn round_trips(&self) -> f64 {
        match (self.kind, self.tool) {
            (WorkloadKind::TcpRr | WorkloadKind::UdpRr, Tool::Netpipe | Tool::Qperf) => 2.0,
            _ => 1.0,
        }
    }

    fn statistic(&self) -> Statistic {
        match self.tool {
            _ if self.kind.is_bulk() => Statistic::Rate,
            Tool::Lmbench | Tool::Qperf => Statistic::Mean,
            // NetPIPE keeps the best of its trials, each the mean of many (TRIALS of netpipe.c).
            Tool::Netpipe => Statistic::Least,
            _ => Statistic::Median,
        }
    }

    fn counted_by(&self) -> CountedBy {
        match (self.tool, self.kind.is_bulk()) {
            (_, false) => CountedBy::Client,
            (Tool::Sockperf | Tool::Iperf, true) if self.kind == WorkloadKind::TcpStream => {
                CountedBy::Sender
            }
            (Tool::Netpipe, true) => CountedBy::SenderPerMessage,
            (_, true) => CountedBy::Receiver,
        }
    }

    fn connections(&self) -> Connections {
        match self.kind {
            WorkloadKind::TcpCrr => Connections::PerTransaction,
            WorkloadKind::Ping => Connections::None,
            WorkloadKind::Trace => Connections::PerHop,
            WorkloadKind::UdpStream | WorkloadKind::UdpRr => Connections::OneSocketKept,
            WorkloadKind::TcpStream | WorkloadKind::TcpRr | WorkloadKind::FlowSizes => {
                Connections::OneKept
            }
        }
    }

    /// sockperf (ping-pong) and NetPIPE set `TCP_NODELAY` unasked.
    fn sends_at_once(&self) -> Option<bool> {
        match self.kind {
            WorkloadKind::TcpRr if matches!(self.tool, Tool::Sockperf | Tool::Netpipe) => {
                Some(true)
            }
            WorkloadKind::TcpStream if self.tool == Tool::Netpipe => Some(true),
            WorkloadKind::TcpStream
            | WorkloadKind::TcpRr
            | WorkloadKind::TcpCrr
            | WorkloadKind::FlowSizes => Some(self.socket.nodelay),
            WorkloadKind::UdpStream
            | WorkloadKind::UdpRr
            | WorkloadKind::Ping
            | WorkloadKind::Trace => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(tool: Tool, kind: WorkloadKind) -> Meaning {
        let workload = Workload {
            tool,
            ..Workload::of(kind)
        };
        workload.meaning()
    }

    #[test]
    fn halves_are_told_from_wholes() {
        let netpipe = meaning(Tool::Netpipe, WorkloadKind::TcpRr);
        assert_eq!(
            (netpipe.round_trips, netpipe.statistic),
            (2.0, Statistic::Least)
        );
        assert_eq!(meaning(Tool::Lmbench, WorkloadKind::TcpRr).round_trips, 1.0);
        assert_eq!(
            meaning(Tool::Lmbench, WorkloadKind::TcpCrr).message_bytes,
            0
        );
        assert_eq!(
            meaning(Tool::Netperf, WorkloadKind::TcpStream).statistic,
            Statistic::Rate
        );
    }
}
