//! Which tools there are.

use crate::iperf::Iperf;
use crate::iperf3::Iperf3;
use crate::lmbench::Lmbench;
use crate::netperf::Netperf;
use crate::netpipe::Netpipe;
use crate::nuttcp::Nuttcp;
use crate::ping::Ping;
use crate::qperf::Qperf;
use crate::sockperf::Sockperf;
use crate::tool::ExternalTool;
use ew_model::workload::Tool;

/// The registration of tools. `None` for the engine, which is no external tool.
pub(crate) fn external(tool: Tool) -> Option<&'static dyn ExternalTool> {
    match tool {
        Tool::Engine => None,
        Tool::Iperf3 => Some(&Iperf3),
        Tool::Iperf => Some(&Iperf),
        Tool::Netperf => Some(&Netperf),
        Tool::Lmbench => Some(&Lmbench),
        Tool::Netpipe => Some(&Netpipe),
        Tool::Nuttcp => Some(&Nuttcp),
        Tool::Sockperf => Some(&Sockperf),
        Tool::Qperf => Some(&Qperf),
        Tool::Ping => Some(&Ping),
    }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn ExternalTool> {
    Tool::ALL.into_iter().filter_map(external)
}
