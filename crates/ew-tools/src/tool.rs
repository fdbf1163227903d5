//! What a tool must define to be driven.

use crate::flow_error::FlowError;
use crate::process::{End, Finished};
use ew_model::record::EndRecord;
use ew_model::workload::{Tool, Workload, WorkloadKind};
use ew_proto::message::FlowOrder;
use ew_proto::round::RoundSpec;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// One external tool: how to start it and what its output means. What it can carry and where its
/// server listens is in `ew_model::tools`, because the planner asks, too.
pub(crate) trait ExternalTool: Sync {
    /// Which one.
    fn tool(&self) -> Tool;

    /// The option that prints its program's version. `None`: it does not report.
    fn version_argument(&self) -> Option<&'static str>;

    /// The program of the opening end.
    fn client_program(&self, _workload: &Workload) -> &'static str {
        self.tool().programs()[0]
    }

    /// The program of the accepting end.
    fn server_program(&self, workload: &Workload) -> &'static str {
        self.client_program(workload)
    }

    /// A server.
    fn server(&self, site: &Site<'_>, port: u16) -> Command;

    /// How it ends.
    fn server_life(&self) -> ServerLife;

    /// The client of one flow.
    fn client(&self, site: &Site<'_>, order: &FlowOrder) -> Command;

    /// When the client starts: with the window, unless the tool has a warm-up of its own.
    fn client_start_ns(&self, spec: &RoundSpec) -> u64 {
        spec.window_start_ns
    }

    /// How long the client runs when all goes well.
    fn client_runtime_ns(&self, spec: &RoundSpec) -> u64 {
        window_seconds(spec) * SECOND_NS
    }

    /// Why a server that has ended, or was ended, did not serve.
    fn server_error(&self, port: u16, finished: &Finished) -> Option<FlowError> {
        let tool = self.tool().name();
        match (finished.end, self.server_life()) {
            (End::Exited(status), ServerLife::OneClient) if status.success() => None,
            (End::Exited(status), _) => Some(FlowError::ServerEnded {
                tool,
                port,
                words: said(finished, &status),
            }),
            (_, ServerLife::OneClient) => Some(FlowError::NoClientOrStayed { tool, port }),
            (_, _) => None,
        }
    }

    /// Whether its clients hold a connection to the server's port as long as they need it.
    fn holds_connection(&self, _kind: WorkloadKind) -> bool {
        true
    }

    /// Whether what was received is reported by the server alone.
    fn counts_at_server(&self, _workload: &Workload) -> bool {
        false
    }

    /// What a server that counts received.
    fn parse_server(&self, _finished: &Finished) -> Result<EndRecord, FlowError> {
        let tool = self.tool().name();
        Err(FlowError::ServerSilent { tool })
    }

    /// What the client measured.
    fn parse(
        &self,
        spec: &RoundSpec,
        order: &FlowOrder,
        finished: &Finished,
    ) -> Result<BothEnds, FlowError>;
}

/// What commands are made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) program: &'a Path,
    /// This host's.
    pub(crate) address: IpAddr,
    pub(crate) spec: &'a RoundSpec,
}

/// How a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerLife {
    /// By itself, after one client.
    OneClient,
    /// It is ended when its clients are gone.
    Ended,
    /// The same, and it goes into the background or has children.
    EndedWithChildren,
}

/// What a client knows of a flow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BothEnds {
    pub(crate) sender: EndRecord,
    pub(crate) receiver: EndRecord,
}

/// Whole seconds are all that most take.
pub(crate) fn window_seconds(spec: &RoundSpec) -> u64 {
    spec.window_ns.div_ceil(SECOND_NS).max(1)
}

/// The same of the warm-up.
pub(crate) fn warm_up_seconds(spec: &RoundSpec) -> u64 {
    let warm_up_ns = spec.window_start_ns.saturating_sub(spec.start_ns);
    warm_up_ns.div_ceil(SECOND_NS)
}

/// What a client reported for both ends, else an error of its last words.
pub(crate) fn or_last_words(
    ends: Option<BothEnds>,
    program: &str,
    finished: &Finished,
) -> Result<BothEnds, FlowError> {
    ends.ok_or_else(|| no_figures(program, finished, "it reported nothing"))
}

/// An error of a process' last words, else of what is missing.
pub(crate) fn no_figures(program: &str, finished: &Finished, missing: &str) -> FlowError {
    FlowError::NoFigures {
        program: program.to_owned(),
        words: said(finished, &missing),
    }
}

/// A process' last words, else how it ended.
fn said(finished: &Finished, otherwise: &dyn std::fmt::Display) -> String {
    let last = |text: &'_ str| {
        let mut lines = text.lines().rev().map(str::trim);
        lines.find(|line| !line.is_empty()).map(str::to_owned)
    };
    let words = last(&finished.stderr).or_else(|| last(&finished.stdout));
    words.unwrap_or_else(|| otherwise.to_string())
}
