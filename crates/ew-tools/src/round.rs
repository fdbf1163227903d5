//! One round driven by a tool: servers at the accepting ends, clients at the opening ends.

use crate::discover::find_program;
use crate::flow_error::FlowError;
use crate::idle;
use crate::process::{Cancel, End, Finished, run_kept_until, run_to_end, run_until};
use crate::registry::external;
use crate::tool::{ExternalTool, ServerLife, Site};
use ew_model::record::EndRecord;
use ew_proto::message::{FlowOrder, FlowReport};
use ew_proto::round::RoundSpec;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What a round calls with its reports, once.
pub type Done = Box<dyn FnOnce(Vec<FlowReport>) + Send>;

/// Servers outlast the clients.
const SERVER_GRACE_NS: u64 = 1_000_000_000;
/// How often a wait for the start checks whether the round was aborted.
const SLICE_NS: u64 = 50_000_000;
/// How long a client that finds no server tries again.
const READY_PATIENCE_NS: u64 = 2_000_000_000;
/// What clients report then, in lower case: most, sockperf over UDP, and nuttcp (`ECONNREFUSED`).
const NOT_READY: [&str; 3] = ["connection refused", "is the server down?", "errno=111"];
const SUPERVISOR_STACK_BYTES: usize = 512 * 1024;
const FLOW_STACK_BYTES: usize = 256 * 1024;
const MAX_FLOWS: usize = 256;

/// Why a tool's round did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The workload names the engine.
    #[error("{0} is not an external tool")]
    NotATool(&'static str),
    /// More flows than processes should be started for.
    #[error("{0} flows at once; a host runs at most {MAX_FLOWS} of a tool's")]
    TooManyFlows(usize),
    /// The round's thread could not be started.
    #[error("cannot start a thread for a round: {0}; raise the limit of processes (ulimit -u)")]
    Thread(#[source] std::io::Error),
}

/// What all flows of a round need.
struct ToolRound {
    tool: &'static dyn ExternalTool,
    address: IpAddr,
    spec: RoundSpec,
    cancel: Cancel,
}

/// Runs a round with the tool its workload names and returns at once. `done` is called from the
/// round's thread when all processes are over, with one report per flow in the order of the flows.
/// Raising `cancel` ends the processes at once.
///
/// Opening ends report both ends' figures; accepting ends report an error or nothing.
///
/// # Errors
/// The round cannot be started; `done` is then not called.
pub fn run_round(
    address: IpAddr,
    spec: RoundSpec,
    cancel: Cancel,
    done: Done,
) -> Result<(), ToolError> {
    let name = spec.workload.tool;
    let tool = external(name).ok_or(ToolError::NotATool(name.name()))?;
    if spec.flows.len() > MAX_FLOWS {
        return Err(ToolError::TooManyFlows(spec.flows.len()));
    }
    let round = ToolRound {
        tool,
        address,
        spec,
        cancel,
    };
    std::thread::Builder::new()
        .name("tool-round".to_owned())
        .stack_size(SUPERVISOR_STACK_BYTES)
        .spawn(move || done(round.run()))
        .map_err(ToolError::Thread)?;
    Ok(())
}

impl ToolRound {
    fn run(&self) -> Vec<FlowReport> {
        let Some(refusal) = self.spec.workload.refusal() else {
            return self.run_flows();
        };
        let refused = Err(FlowError::Workload { refusal });
        let orders = self.spec.flows.iter();
        orders.map(|order| report(order, &refused)).collect()
    }

    /// A thread per server and per client: a process dies with the thread that started it.
    fn run_flows(&self) -> Vec<FlowReport> {
        let orders = &self.spec.flows;
        // Clients that drew the same port share a server; where it takes one, all others will hear
        // that it is busy.
        let accepting = orders.iter().filter(|o| !o.opens && o.server_port != 0);
        let ports: BTreeSet<u16> = accepting.map(|o| o.server_port).collect();
        std::thread::scope(|scope| {
            let servers: BTreeMap<u16, _> = ports
                .into_iter()
                .map(|port| (port, spawn(scope, move || self.serve(port))))
                .collect();
            let clients: Vec<_> = orders
                .iter()
                .map(|o| o.opens.then(|| spawn(scope, move || self.ask(o))))
                .collect();
            let clients: Vec<_> = clients.into_iter().map(|c| c.map(result_of)).collect();
            let served: BTreeMap<u16, _> = servers
                .into_iter()
                .map(|(port, server)| (port, result_of(server)))
                .collect();
            let flows = orders.iter().zip(clients);
            flows
                .map(|(o, asked)| {
                    let result = asked.as_ref().or_else(|| served.get(&o.server_port));
                    report(o, result.unwrap_or(&Ok(EndRecords::default())))
                })
                .collect()
        })
    }

    fn serve(&self, port: u16) -> EndResult {
        let program = self.program(self.tool.server_program(&self.spec.workload))?;
        self.wait_until(self.spec.connect_at_ns)?;
        let command = self.tool.server(&self.site(&program), port);
        let deadline_ns = self.last_chance_ns() + SERVER_GRACE_NS;
        let (kind, window_end_ns) = (self.spec.workload.kind, self.spec.window_end_ns());
        let end_ns = self.planned_end_ns();
        let unseen_until_ns = (!self.tool.holds_connection(kind)).then_some(end_ns);
        let mut watch = idle::Watch::new(port, window_end_ns, unseen_until_ns);
        let mut is_needless = || watch.is_over();
        let finished = match self.tool.server_life() {
            ServerLife::OneClient => run_to_end(command, deadline_ns, &self.cancel),
            ServerLife::Ended => run_until(command, deadline_ns, &self.cancel, &mut is_needless),
            ServerLife::EndedWithChildren => {
                run_kept_until(&command, deadline_ns, &self.cancel, &mut is_needless)
            }
        };
        let finished = self.unless_cancelled(finished)?;
        match self.tool.server_error(port, &finished) {
            Some(error) => Err(error),
            None if self.counts_at_server() => {
                let receiver = self.tool.parse_server(&finished)?;
                Ok(EndRecords {
                    sender: None,
                    receiver: Some(receiver),
                })
            }
            None => Ok(EndRecords::default()),
        }
    }

    fn ask(&self, order: &FlowOrder) -> EndResult {
        let program = self.program(self.tool.client_program(&self.spec.workload))?;
        let planned_ns = self.tool.client_start_ns(&self.spec);
        self.wait_until(planned_ns)?;
        let finished = self.ask_until_served(&program, order)?;
        if finished.end == End::TimedOut {
            return Err(self.no_result(order));
        }
        let mut ends = self.tool.parse(&self.spec, order, &finished)?;
        let skew_ns = finished.started_ns.wrapping_sub(planned_ns) as i64;
        ends.sender.start_skew_ns = skew_ns;
        ends.receiver.start_skew_ns = skew_ns;
        Ok(EndRecords {
            sender: Some(ends.sender),
            receiver: (!self.counts_at_server()).then_some(ends.receiver),
        })
    }

    fn counts_at_server(&self) -> bool {
        self.tool.counts_at_server(&self.spec.workload)
    }

    /// On a busy host a server may need longer than the gap until it listens.
    fn ask_until_served(&self, program: &Path, order: &FlowOrder) -> Result<Finished, FlowError> {
        let deadline_ns = self.last_chance_ns();
        let patience_ns = monotonic_ns() + READY_PATIENCE_NS;
        loop {
            let mut command = self.tool.client(&self.site(program), order);
            command.env("LC_ALL", "C");
            let finished = run_to_end(command, deadline_ns, &self.cancel);
            let finished = self.unless_cancelled(finished)?;
            if !is_refused(&finished) || monotonic_ns() >= patience_ns {
                return Ok(finished);
            }
            self.wait_until(monotonic_ns() + SLICE_NS)?;
        }
    }

    fn program(&self, program: &'static str) -> Result<PathBuf, FlowError> {
        let tool = self.tool.tool();
        find_program(program).ok_or(FlowError::NotInstalled { program, tool })
    }

    fn site<'a>(&'a self, program: &'a Path) -> Site<'a> {
        Site {
            program,
            address: self.address,
            spec: &self.spec,
        }
    }

    /// Beyond its planned run a client has time to connect and to exchange results.
    fn last_chance_ns(&self) -> u64 {
        self.planned_end_ns() + self.spec.workload.overrun_ns()
    }

    fn planned_end_ns(&self) -> u64 {
        let start_ns = self.tool.client_start_ns(&self.spec);
        start_ns.saturating_add(self.tool.client_runtime_ns(&self.spec))
    }

    fn no_result(&self, order: &FlowOrder) -> FlowError {
        FlowError::NoResult {
            tool: self.name(),
            peer: order.peer,
            seconds: self.spec.workload.overrun_ns() / 1_000_000_000,
            is_limited: self.spec.workload.limit.is_some(),
        }
    }

    fn unless_cancelled(&self, finished: io::Result<Finished>) -> Result<Finished, FlowError> {
        let tool = self.name();
        let finished = finished.map_err(|source| FlowError::Start { tool, source })?;
        if finished.end == End::Cancelled {
            return Err(self.aborted());
        }
        Ok(finished)
    }

    fn wait_until(&self, deadline_ns: u64) -> Result<(), FlowError> {
        loop {
            if self.cancel.load(Ordering::Acquire) {
                return Err(self.aborted());
            }
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns {
                return Ok(());
            }
            sleep_until_ns(deadline_ns.min(now_ns + SLICE_NS));
        }
    }

    fn aborted(&self) -> FlowError {
        FlowError::Aborted { tool: self.name() }
    }

    fn name(&self) -> &'static str {
        self.tool.tool().name()
    }
}

/// Whether a client ended because nothing listened yet.
fn is_refused(finished: &Finished) -> bool {
    let text = format!("{}{}", finished.stdout, finished.stderr).to_ascii_lowercase();
    NOT_READY.iter().any(|words| text.contains(words))
}

/// What this end knows of a flow: as a rule everything where it opened, and nothing where it
/// accepted.
#[derive(Clone, Debug, Default)]
struct EndRecords {
    sender: Option<EndRecord>,
    receiver: Option<EndRecord>,
}

type EndResult = Result<EndRecords, FlowError>;

/// `None` when no thread could be started.
type FlowThread<'scope> = Option<std::thread::ScopedJoinHandle<'scope, EndResult>>;

fn spawn<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    work: impl FnOnce() -> EndResult + Send + 'scope,
) -> FlowThread<'scope> {
    let builder = std::thread::Builder::new().stack_size(FLOW_STACK_BYTES);
    builder.spawn_scoped(scope, work).ok()
}

fn result_of(thread: FlowThread<'_>) -> EndResult {
    let result = thread.and_then(|t| t.join().ok());
    result.unwrap_or(Err(FlowError::Thread))
}

/// A server's result is that of all flows to its port.
fn report(order: &FlowOrder, result: &EndResult) -> FlowReport {
    let (ends, error) = match result {
        Ok(ends) => (ends.clone(), None),
        Err(error) => (EndRecords::default(), Some(error.to_string())),
    };
    FlowReport {
        flow: order.flow,
        sender: ends.sender.map(Box::new),
        receiver: ends.receiver.map(Box::new),
        standing: None,
        error,
    }
}
