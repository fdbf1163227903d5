//! How a tool takes part in a round: where its server listens, who opens, how much longer than the
//! window it takes.

use crate::plan::End;
use crate::workload::{SendMode, Tool, Workload, WorkloadKind};

/// The ports that a flow's server takes at the accepting end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerPorts {
    /// None: the engine has its own listener, and the kernel answers a ping.
    None,
    /// So many in a row, from the range for tools.
    Range(u16),
    /// One that cannot be chosen, so that all of a host's flows share one server.
    Fixed(u16),
}

const SECOND_NS: u64 = 1_000_000_000;
/// lmbench's (bench.h): `TCP_XACT`, `TCP_DATA`, `TCP_CONNECT`.
const LAT_TCP_PORT: u16 = 31234;
const BW_TCP_PORT: u16 = 31236;
const LAT_CONNECT_PORT: u16 = 31237;
/// Its `UDP_XACT` is -31238, which udp_server uses as it is, in 16 bits.
const LAT_UDP_PORT: u16 = (1_u32 << 16).wrapping_sub(31238) as u16;

/// Time for a stream to connect next to many others: 10,000 took between 60 and 100 us each on two
/// slow cores that served both ends.
const CONNECT_NS: u64 = 150_000;

impl Workload {
    /// Where the workload's tool listens.
    #[must_use]
    pub fn server_ports(&self) -> ServerPorts {
        match self.tool {
            Tool::Engine | Tool::Ping => ServerPorts::None,
            Tool::Lmbench => ServerPorts::Fixed(lmbench_port(self.kind)),
            // One for control, and one for a test's data.
            Tool::Qperf => ServerPorts::Range(2),
            // One for control, and one for each stream.
            Tool::Nuttcp => ServerPorts::Range(
                u16::try_from(self.streams)
                    .unwrap_or(u16::MAX)
                    .saturating_add(1),
            ),
            Tool::Iperf3 | Tool::Iperf | Tool::Netperf | Tool::Netpipe | Tool::Sockperf => {
                ServerPorts::Range(1)
            }
        }
    }

    /// The end that opens, whatever the direction of the test: a tool whose client only sends, or
    /// only receives, is started so that data goes where it shall. `None` for one whose client does
    /// either.
    #[must_use]
    pub fn opener(&self) -> Option<End> {
        let is_tcp_stream = self.kind == WorkloadKind::TcpStream;
        match self.tool {
            Tool::Engine => None,
            _ if !self.kind.is_bulk() => Some(End::Src),
            Tool::Lmbench => Some(End::Dst),
            Tool::Sockperf | Tool::Netpipe => Some(End::Src),
            Tool::Netperf if self.send_mode == SendMode::Sendfile => Some(End::Src),
            Tool::Netperf | Tool::Iperf if !is_tcp_stream => Some(End::Src),
            _ => None,
        }
    }

    /// How long after the window its processes may still be at work: connecting late, finishing,
    /// exchanging results. 0 for the engine, which ends with the window.
    #[must_use]
    pub fn overrun_ns(&self) -> u64 {
        match self.tool {
            Tool::Engine => 0,
            // It measures until it is content, and waits a second or two besides.
            Tool::Lmbench => 8 * SECOND_NS,
            // It waits for its last datagrams.
            Tool::Nuttcp if self.kind == WorkloadKind::UdpStream => 8 * SECOND_NS,
            _ => 6 * SECOND_NS,
        }
    }

    /// The min pause between rounds: the engine's streams connect in it, and tools' servers must be
    /// up before. One that cannot choose its port must be gone, too: what its rounds take is
    /// planned, since the next one begins when it is over.
    #[must_use]
    pub fn min_gap_ns(&self) -> u64 {
        match self.server_ports() {
            ServerPorts::Fixed(_) => 6 * SECOND_NS,
            // Its tests are three at least and a second long at least, however short the window is.
            _ if self.confidence_width.is_some() => 4 * SECOND_NS,
            _ if self.tool == Tool::Engine => u64::from(self.streams) * CONNECT_NS,
            _ => SECOND_NS,
        }
    }
}

fn lmbench_port(kind: WorkloadKind) -> u16 {
    match kind {
        WorkloadKind::TcpRr => LAT_TCP_PORT,
        WorkloadKind::UdpRr => LAT_UDP_PORT,
        WorkloadKind::TcpCrr => LAT_CONNECT_PORT,
        _ => BW_TCP_PORT,
    }
}
