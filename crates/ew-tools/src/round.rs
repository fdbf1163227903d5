//! One round driven by a tool: servers at the accepting ends, clients at the opening ends.

use crate::discover::find_program;
use crate::process::{Cancel, End, Finished, run_to_end};
use crate::tool::{BothEnds, ExternalTool, external};
use ew_proto::message::{FlowOrder, FlowReport};
use ew_proto::round::RoundSpec;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

/// What a round calls with its reports, once.
pub type Done = Box<dyn FnOnce(Vec<FlowReport>) + Send>;

/// Time a client has beyond its planned run to connect and to exchange results.
const CLIENT_GRACE_NS: u64 = 3_000_000_000;
/// Servers outlast the clients.
const SERVER_GRACE_NS: u64 = 4_000_000_000;
/// How often a wait for the start looks whether the round was aborted.
const SLICE_NS: u64 = 50_000_000;
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

/// Runs a round with the tool its workload names and returns at once. `done` is called from the round's thread when all
/// processes are over, with one report per flow in the order of the flows. Raising `cancel` ends the processes at once.
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
        let tool = self.tool;
        if let Some(refusal) = self.spec.workload.refusal() {
            let (key, problem, expected) = (refusal.key, refusal.problem, refusal.expected);
            return self.all_failed(&format!("{key}: {problem}; expected {expected}"));
        }
        let Some(program) = find_program(tool.program()) else {
            return self.all_failed(&format!(
                "{} is not installed on this host: {}, or leave out --tool",
                tool.program(),
                tool.install_hint()
            ));
        };
        self.run_flows(&program)
    }

    /// A thread per server and per client: a process dies with the thread that started it.
    fn run_flows(&self, program: &Path) -> Vec<FlowReport> {
        let orders = &self.spec.flows;
        // Clients that drew the same port share a server, and all but one will hear that it is busy.
        let accepting = orders.iter().filter(|o| !o.opens);
        let ports: BTreeSet<u16> = accepting.map(|o| o.server_port).collect();
        std::thread::scope(|scope| {
            let servers: BTreeMap<u16, _> = ports
                .into_iter()
                .map(|port| (port, spawn(scope, move || self.serve(program, port))))
                .collect();
            let clients: Vec<_> = orders
                .iter()
                .map(|o| o.opens.then(|| spawn(scope, move || self.ask(program, o))))
                .collect();
            let clients: Vec<_> = clients.into_iter().map(|c| c.map(result_of)).collect();
            let served: BTreeMap<u16, _> = servers
                .into_iter()
                .map(|(port, server)| (port, result_of(server)))
                .collect();
            let flows = orders.iter().zip(clients);
            flows
                .map(|(o, asked)| {
                    let result = asked.or_else(|| served.get(&o.server_port).cloned());
                    report(o, result.unwrap_or(Ok(None)))
                })
                .collect()
        })
    }

    fn serve(&self, program: &Path, port: u16) -> EndResult {
        self.wait_until(self.spec.connect_at_ns)?;
        let command = self.tool.server(program, self.address, port);
        let finished = self.finish(command, SERVER_GRACE_NS)?;
        match self.tool.server_error(port, &finished) {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    fn ask(&self, program: &Path, order: &FlowOrder) -> EndResult {
        let mut command = self.tool.client(program, self.address, &self.spec, order);
        command.env("LC_ALL", "C");
        self.wait_until(self.spec.start_ns)?;
        let finished = self.finish(command, CLIENT_GRACE_NS)?;
        if finished.end == End::TimedOut {
            return Err(self.no_result(order));
        }
        let mut ends = self.tool.parse(order, &finished)?;
        let skew_ns = finished.started_ns.wrapping_sub(self.spec.start_ns) as i64;
        ends.sender.start_skew_ns = skew_ns;
        ends.receiver.start_skew_ns = skew_ns;
        Ok(Some(ends))
    }

    fn no_result(&self, order: &FlowOrder) -> String {
        let remedy = match self.spec.workload.limit {
            Some(_) => "; if only the limit was not reached by then, raise `duration` or lower it",
            None => "",
        };
        format!(
            "{}: no result from {} {} s after the planned end{remedy}",
            self.tool.program(),
            order.peer,
            CLIENT_GRACE_NS / 1_000_000_000
        )
    }

    fn finish(&self, command: Command, grace_ns: u64) -> Result<Finished, String> {
        let planned_end_ns = self.spec.start_ns + self.tool.client_runtime_ns(&self.spec);
        let finished = run_to_end(command, planned_end_ns + grace_ns, &self.cancel)
            .map_err(|error| format!("{}: cannot be started: {error}", self.tool.program()))?;
        if finished.end == End::Cancelled {
            return Err(self.aborted());
        }
        Ok(finished)
    }

    fn wait_until(&self, deadline_ns: u64) -> Result<(), String> {
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

    fn aborted(&self) -> String {
        format!("{}: aborted", self.tool.program())
    }

    fn all_failed(&self, reason: &str) -> Vec<FlowReport> {
        let orders = self.spec.flows.iter();
        orders.map(|o| report(o, Err(reason.to_owned()))).collect()
    }
}

/// One flow's result at this end: figures where it opened, else nothing; or an error in words.
type EndResult = Result<Option<BothEnds>, String>;

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
    result.unwrap_or_else(|| {
        Err("cannot start a thread for a process; raise the limit of processes (ulimit -u)".into())
    })
}

fn report(order: &FlowOrder, result: EndResult) -> FlowReport {
    let (ends, error) = match result {
        Ok(ends) => (ends, None),
        Err(error) => (None, Some(error)),
    };
    let (sender, receiver) = ends.map(|e| (e.sender, e.receiver)).unzip();
    FlowReport {
        flow: order.flow,
        sender,
        receiver,
        standing: None,
        error,
    }
}
