//! What a tool must say to be driven.

use crate::iperf3::Iperf3;
use crate::process::Finished;
use ew_model::record::EndRecord;
use ew_model::workload::Tool;
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

/// One external tool: how to start it and what its output says.
pub(crate) trait ExternalTool: Sync {
    /// The program's name on PATH.
    fn program(&self) -> &'static str;

    /// What to type where it is missing.
    fn install_hint(&self) -> &'static str;

    /// A server for one client.
    fn server(&self, program: &Path, address: IpAddr, port: u16) -> Command;

    /// The client of one flow.
    fn client(
        &self,
        program: &Path,
        address: IpAddr,
        spec: &RoundSpec,
        order: &FlowOrder,
    ) -> Command;

    /// How long the client runs when all goes well, warm-up included.
    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64;

    /// Why a server that has ended, or was ended, did not serve.
    fn server_error(&self, port: u16, finished: &Finished) -> Option<String>;

    /// What the client measured. The error is in words and names the tool.
    fn parse(&self, order: &FlowOrder, finished: &Finished) -> Result<BothEnds, String>;
}

/// What a client knows of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BothEnds {
    pub(crate) sender: EndRecord,
    pub(crate) receiver: EndRecord,
}

/// The registration of tools. `None` for the engine, which is no external tool.
pub(crate) fn external(tool: Tool) -> Option<&'static dyn ExternalTool> {
    match tool {
        Tool::Iperf3 => Some(&Iperf3),
        _ => None,
    }
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static dyn ExternalTool> {
    [Tool::Iperf3].into_iter().filter_map(external)
}
