//! Where a tool's server listens.

use crate::workload::{Tool, Workload, WorkloadKind};

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

/// lmbench's (bench.h): `TCP_XACT`, `TCP_DATA`, `TCP_CONNECT`.
const LAT_TCP_PORT: u16 = 31234;
const BW_TCP_PORT: u16 = 31236;
const LAT_CONNECT_PORT: u16 = 31237;
/// Its `UDP_XACT` is -31238, which udp_server uses as it stands, in 16 bits.
const LAT_UDP_PORT: u16 = (1_u32 << 16).wrapping_sub(31238) as u16;

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
}

fn lmbench_port(kind: WorkloadKind) -> u16 {
    match kind {
        WorkloadKind::TcpRr => LAT_TCP_PORT,
        WorkloadKind::UdpRr => LAT_UDP_PORT,
        WorkloadKind::TcpCrr => LAT_CONNECT_PORT,
        _ => BW_TCP_PORT,
    }
}
