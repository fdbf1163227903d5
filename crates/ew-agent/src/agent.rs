//! The agent's own decisions: a session, and what its host is to do about it. Sans-IO: what happens
//! comes in as [`Input`]s with their time, what is to be sent is polled, and the rest is done by a
//! [`Machine`].

use crate::inbox::Input;
use crate::limits;
use crate::machine::Machine;
use crate::problem::Problem;
use ew_model::facts::{HostFacts, HostSample};
use ew_model::plan::{RoundIndex, StageIndex};
use ew_model::storage::{StorageOrder, StorageReport};
use ew_proto::message::{RoundReport, StageOrder, Welcome};
use ew_proto::{AgentEvent, AgentSession, CommandError, Timeline};
use std::collections::{BTreeSet, VecDeque};

/// Samples kept while a stage runs; beyond it the oldest go.
const MAX_HELD_SAMPLES: usize = 3600;

/// Why an agent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The controller took its leave.
    Goodbye,
    /// The host's owner ended it (`eastwest stop`).
    Stopped {
        /// User id of who did.
        user: u32,
    },
    /// The host's owner allows no more time (`/etc/eastwest/limits`).
    TimeIsUp,
    /// The controller is gone, silent or speaks nonsense.
    Lost(String),
}

/// One host's part of a run. Driven by whoever owns the link and the clock: after every input,
/// write out [`Agent::poll_transmit`] at once and see whether [`Agent::ending`] has come.
#[derive(Debug)]
pub struct Agent<M> {
    machine: M,
    session: AgentSession,
    accepted: Option<StageOrder>,
    running: Option<Running>,
    samples: VecDeque<HostSample>,
    /// What the host's owner allows.
    max_bits_per_sec: Option<f64>,
    /// What goes to the host's log when load begins: the run, and the line.
    unlogged_begin: Option<(String, String)>,
    /// Whose begin is in the host's log.
    logged_run: Option<String>,
    ending: Option<Ending>,
}

/// A stage under way.
#[derive(Debug)]
struct Running {
    stage: StageIndex,
    rounds_left: BTreeSet<RoundIndex>,
}

impl<M: Machine> Agent<M> {
    /// An agent that greets its controller first. `build` must be the controller's.
    pub fn new(build: &str, now_ns: u64, machine: M) -> Self {
        Self {
            machine,
            session: AgentSession::new(build, now_ns),
            accepted: None,
            running: None,
            samples: VecDeque::new(),
            max_bits_per_sec: None,
            unlogged_begin: None,
            logged_run: None,
            ending: None,
        }
    }

    /// The host under it.
    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Takes what happened.
    pub fn handle(&mut self, input: Input) {
        self.on_input(input);
        self.obey();
    }

    /// Does what is due at `now_ns`, the host's monotonic clock.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.session.handle_timeout(now_ns);
        self.obey();
    }

    /// When [`Agent::handle_timeout`] wants to be called. `None`: never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        self.session.poll_timeout()
    }

    /// Next bytes to write.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.session.poll_transmit()
    }

    /// Why it is over. `None`: it goes on.
    #[must_use]
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// The controller cannot be reached any more; `reason` in words.
    pub fn lose(&mut self, reason: &str) {
        self.ending
            .get_or_insert_with(|| Ending::Lost(reason.to_owned()));
    }

    /// Ends all that runs. The last words, where somebody hears them, are then to be polled.
    pub fn stop(&mut self) {
        self.abort();
        if let Some(run) = &self.logged_run {
            self.machine.log(&format!("run {run} ends"));
        }
        if !matches!(self.ending, Some(Ending::Lost(_))) {
            // A closed session has nobody left to hear it.
            let _ = self.session.farewell();
        }
    }

    fn obey(&mut self) {
        while let Some(event) = self.session.poll_event() {
            self.on_event(event);
        }
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Bytes { bytes, read_ns } => {
                self.update_totals();
                self.session.handle_bytes(&bytes, read_ns);
            }
            Input::Facts(read) => {
                let (welcome, facts) = *read;
                self.on_facts(&welcome, facts);
            }
            Input::LinkClosed => self.lose("the control link closed"),
            Input::RoundDone(report) => self.on_round_done(report),
            Input::FlowProgress(progress) => {
                // What comes too late for its round is of no use to anybody.
                let _ = self.session.flow_progress(progress);
            }
            Input::Sample(sample, others) => {
                self.session.set_others(others);
                self.hold_sample(sample);
            }
            Input::Reading(reading) => {
                // One that does not fit its frame is missed by who watches, and by nobody else.
                let _ = self.session.reading(reading);
            }
            Input::StorageDone(report) => self.on_storage_done(report),
            Input::StorageProgress { step, words } => {
                // The report has what matters.
                let _ = self.session.storage_progress(step, words);
            }
            Input::Stop { user } => self.ending = Some(Ending::Stopped { user }),
            Input::TimeIsUp => self.ending = Some(Ending::TimeIsUp),
            Input::PortsChecked(answers) => {
                let said = self.session.ports_checked(answers);
                self.said(said);
            }
        }
    }

    fn on_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Welcomed(welcome) => self.on_welcome(welcome),
            AgentEvent::Stage(order) => self.on_stage(order),
            AgentEvent::Go { stage, timeline } => self.on_go(stage, timeline),
            AgentEvent::Retime(timeline) => {
                if self.running.is_some() {
                    self.machine.retime(timeline);
                }
            }
            AgentEvent::Abort => self.abort(),
            AgentEvent::CheckPorts(check) => self.machine.check_ports(check),
            AgentEvent::Storage(order) => self.on_storage(order),
            AgentEvent::Goodbye => self.ending = Some(Ending::Goodbye),
            AgentEvent::ControllerLost { reason } => self.lose(&reason),
        }
    }

    fn on_welcome(&mut self, welcome: Welcome) {
        let admitted = self.machine.admit(&welcome);
        if let Err(problem) = admitted.and_then(|()| self.machine.prepare(welcome)) {
            self.fault(&problem);
        }
    }

    /// The host takes no part.
    fn fault(&mut self, problem: &Problem) {
        let said = self.session.fault(problem.to_string());
        self.said(said);
    }

    fn on_facts(&mut self, welcome: &Welcome, mut facts: HostFacts) {
        let max = self.machine.max_bits_per_sec(&facts, welcome.address);
        match max {
            Ok(max) => facts.max_bits_per_sec = max,
            Err(problem) => return self.fault(&problem),
        }
        self.max_bits_per_sec = facts.max_bits_per_sec;
        if let Some(claim) = welcome.claim.as_ref().filter(|_| welcome.syslog) {
            let (run, by) = (&claim.run, &claim.by);
            let address = welcome.address;
            let line = format!("run {run} of {by} begins: network load on {address}");
            self.unlogged_begin = Some((run.clone(), line));
        }
        let said = self.session.ready(facts, self.machine.data_port());
        self.said(said);
        self.machine
            .begin_sampling(welcome.sample_interval_ns, welcome.watch_interval_ns);
    }

    fn on_stage(&mut self, mut order: StageOrder) {
        let stage = order.stage;
        if let Some(max) = self.max_bits_per_sec
            && let Err(why) = limits::enforce(max, &mut order)
        {
            let said = self.session.refuse(stage, why.to_string());
            return self.said(said);
        }
        if self.running.is_some() {
            let said = self.session.refuse(stage, "another stage is still running");
            self.said(said);
            return;
        }
        for flow in order.rounds.iter().flat_map(|round| &round.flows) {
            self.machine.expect_peer(flow.peer, flow.server_port);
        }
        self.accepted = Some(order);
        let said = self.session.accept(stage);
        self.said(said);
    }

    fn on_go(&mut self, stage: StageIndex, timeline: Timeline) {
        let Some(order) = self.accepted.take() else {
            return self.lose("the controller started a stage it had not sent");
        };
        self.log_begin();
        self.running = Some(Running {
            stage: order.stage,
            rounds_left: order.rounds.iter().map(|round| round.round).collect(),
        });
        self.machine.begin_stage(order, timeline);
        self.finish_stage_if_over(stage);
    }

    fn on_round_done(&mut self, report: RoundReport) {
        let Some(running) = &mut self.running else {
            return;
        };
        // A straggler of an aborted stage is nobody's business any more.
        if running.stage != report.stage || !running.rounds_left.remove(&report.round) {
            return;
        }
        let stage = report.stage;
        self.report(report);
        self.release_samples();
        self.finish_stage_if_over(stage);
    }

    /// A report that is too long for its round loses what is long in it: first the intervals, then
    /// the figures.
    fn report(&mut self, report: RoundReport) {
        let mut shorter = report.clone();
        let mut said = self.session.report(report);
        if let Err(CommandError::Frame(_)) = said {
            let flows = shorter.flows.iter_mut();
            let ends = flows.flat_map(|flow| [&mut flow.sender, &mut flow.receiver]);
            ends.flatten().for_each(|end| end.intervals.clear());
            said = self.session.report(shorter.clone());
        }
        if let Err(CommandError::Frame(error)) = &said {
            let error = error.to_string();
            for flow in &mut shorter.flows {
                (flow.sender, flow.receiver) = (None, None);
                flow.error = Some(error.clone());
            }
            said = self.session.report(shorter);
        }
        self.said(said);
    }

    fn finish_stage_if_over(&mut self, stage: StageIndex) {
        if self
            .running
            .as_ref()
            .is_some_and(|running| running.rounds_left.is_empty())
        {
            self.running = None;
            let rejected_connections = self.machine.totals().rejected_connections;
            let said = self.session.stage_done(stage, rejected_connections);
            self.said(said);
            self.release_samples();
        }
    }

    fn on_storage(&mut self, order: StorageOrder) {
        if self.max_bits_per_sec.is_some() {
            return self.on_storage_done(Box::new(StorageReport {
                step: order.step,
                error: Some(limits::refuses("files on storage").to_string()),
                ..StorageReport::default()
            }));
        }
        self.log_begin();
        if let Err(report) = self.machine.begin_step(order) {
            self.on_storage_done(report);
        }
    }

    fn on_storage_done(&mut self, report: Box<StorageReport>) {
        let said = self.session.storage_done(report);
        // One that ends with its agent is nobody's business any more.
        if !matches!(said, Err(CommandError::OutOfOrder { .. })) {
            self.said(said);
        }
    }

    /// Samples wait for the end of a round, so that they do not travel inside a window.
    fn hold_sample(&mut self, sample: HostSample) {
        if self.samples.len() == MAX_HELD_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if self.running.is_none() {
            self.release_samples();
        }
    }

    fn release_samples(&mut self) {
        while let Some(sample) = self.samples.pop_front() {
            let mut without_traffic = sample.clone();
            let mut said = self.session.sample(sample);
            if let (Err(CommandError::Frame(_)), Some(causes)) =
                (&said, &mut without_traffic.causes)
            {
                causes.traffic.clear();
                causes.traffic_ns = None;
                causes.unseen.push("traffic: too many sockets".into());
                said = self.session.sample(without_traffic);
            }
            self.said(said);
        }
    }

    fn update_totals(&mut self) {
        let totals = self.machine.totals();
        self.session.set_totals(totals.tx_bytes, totals.rx_bytes);
    }

    fn abort(&mut self) {
        self.accepted = None;
        self.running = None;
        self.machine.end_step();
        self.machine.end_stage();
    }

    /// Only where load begins: a run that is refused before loads nothing.
    fn log_begin(&mut self) {
        if let Some((run, line)) = self.unlogged_begin.take() {
            self.machine.log(&line);
            self.logged_run = Some(run);
        }
    }

    /// What the session refuses to send means that the two sides disagree: there is no way on.
    fn said(&mut self, said: Result<(), CommandError>) {
        if let Err(error) = said {
            self.lose(&error.to_string());
        }
    }
}
