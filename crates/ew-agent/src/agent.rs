//! The loop that owns the session: one inbox, one decision at a time.

use crate::claim::Slot;
use crate::dial::{self, DialBack};
use crate::inbox::Input;
use crate::limits::{self, Limits};
use crate::link::{self, Writer};
use crate::offer;
use crate::sampler;
use crate::stage::{Host, RunningStage};
use crate::storage::RunningStep;
use crate::syslog;
use ew_engine::{Engine, EngineConfig};
use ew_model::facts::{HostFacts, HostSample};
use ew_model::plan::StageIndex;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_proto::message::{PortCheck, RoundReport, StageOrder, Welcome};
use ew_proto::{AgentEvent, AgentSession, CommandError, Timeline};
use ew_sys::clock;
use ew_telemetry::OwnConnections;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Samples kept while a stage runs; beyond it the oldest go.
const MAX_HELD_SAMPLES: usize = 3600;
/// Longest sleep of the loop.
const IDLE_NS: u64 = 1_000_000_000;
/// How long the last words may take.
const FAREWELL_LIMIT: Duration = Duration::from_millis(500);
/// From the end's beginning to the process's end, whatever its threads are at.
const END_LIMIT: Duration = Duration::from_secs(1);
/// How long a storage step that is ended with its agent may take to remove what it has written in
/// part.
const STORAGE_END_LIMIT: Duration = Duration::from_millis(400);
/// How long one connection of a port check may take.
const PORT_CHECK_LIMIT: Duration = Duration::from_secs(2);

/// Variables in which batch systems name the job that a process is part of.
const OWN_JOB: [&str; 4] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"];

/// How an agent is started.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Version and build, which must equal the controller's.
    pub build: String,
    /// Remove the running executable and its private directory at once (a launcher put it there for
    /// us).
    pub remove_self: bool,
    /// Dial the controller. `None`: it is at the other end of stdin and stdout.
    pub dial_back: Option<DialBack>,
}

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

/// Serves one controller until it leaves. Stops every flow and child before it returns.
#[must_use]
pub fn run(options: &AgentOptions) -> Ending {
    let work_dir_free_bytes = ew_telemetry::free_bytes_beside_executable();
    if options.remove_self {
        // The launcher's trap removes what cannot be removed here.
        let _ = ew_sys::process::unlink_self();
        // The directory that the launcher started it in is gone.
        let _ = std::env::set_current_dir("/");
    }
    // Else it would be `exe`: launchers start the agent by a descriptor. Without /proc it stays so.
    let _ = std::fs::write("/proc/self/comm", "eastwest");
    ew_sys::process::raise_open_files_limit();
    let (sender, inbox) = channel();
    let slot = Slot::hold(&sender);
    let writer = match &options.dial_back {
        None => {
            link::spawn_reader(std::io::stdin(), sender.clone());
            Writer::spawn(std::io::stdout(), sender.clone())
        }
        Some(dial_back) => match dial::dial(dial_back) {
            Ok(dialled) => {
                link::spawn_reader(dialled.reader, sender.clone());
                Writer::spawn(dialled.writer, sender.clone())
            }
            Err(problem) => return Ending::Lost(problem),
        },
    };
    let agent = Agent {
        session: AgentSession::new(&options.build, clock::monotonic_ns()),
        writer,
        sender,
        host: None,
        accepted: None,
        running: None,
        step: None,
        samples: VecDeque::new(),
        own: OwnConnections::default(),
        work_dir_free_bytes,
        max_bits_per_sec: None,
        unlogged_begin: None,
        logged_run: None,
        ending: None,
        slot,
        limits: Limits::default(),
    };
    agent.serve(&inbox)
}

struct Agent {
    session: AgentSession,
    writer: Writer,
    sender: Sender<Input>,
    host: Option<Host>,
    accepted: Option<StageOrder>,
    running: Option<RunningStage>,
    step: Option<RunningStep>,
    samples: VecDeque<HostSample>,
    own: OwnConnections,
    work_dir_free_bytes: Option<u64>,
    /// What the host's owner allows.
    max_bits_per_sec: Option<f64>,
    /// What goes to the host's log when load begins: the run, and the line.
    unlogged_begin: Option<(String, String)>,
    /// Whose begin is in the host's log.
    logged_run: Option<String>,
    ending: Option<Ending>,
    slot: Slot,
    limits: Limits,
}

impl Agent {
    fn serve(mut self, inbox: &Receiver<Input>) -> Ending {
        loop {
            self.flush();
            if let Some(ending) = self.ending.take() {
                self.stop(&ending);
                return ending;
            }
            match inbox.recv_timeout(self.time_to_wait()) {
                Ok(input) => self.on_input(input),
                Err(RecvTimeoutError::Timeout) => {
                    self.session.handle_timeout(clock::monotonic_ns());
                }
                Err(RecvTimeoutError::Disconnected) => self.lose("the agent's threads ended"),
            }
            while let Some(event) = self.session.poll_event() {
                self.on_event(event);
            }
        }
    }

    fn time_to_wait(&self) -> Duration {
        let now_ns = clock::monotonic_ns();
        let due_ns = self.session.poll_timeout().unwrap_or(now_ns + IDLE_NS);
        Duration::from_nanos(due_ns.saturating_sub(now_ns).min(IDLE_NS))
    }

    fn flush(&mut self) {
        while let Some(bytes) = self.session.poll_transmit() {
            if !self.writer.send(bytes) {
                self.lose("the control link does not take what the agent writes");
            }
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
                if let Some(running) = &self.running {
                    running.retime(timeline);
                }
            }
            AgentEvent::Abort => self.abort(),
            AgentEvent::CheckPorts(check) => self.check_ports(check),
            AgentEvent::Storage(order) => self.on_storage(order),
            AgentEvent::Goodbye => self.ending = Some(Ending::Goodbye),
            AgentEvent::ControllerLost { reason } => self.lose(&reason),
        }
    }

    fn on_welcome(&mut self, mut welcome: Welcome) {
        match Limits::read().and_then(|limits| limits.admit(&welcome, clock::realtime_ns())) {
            Ok(limits) => self.limits = limits,
            Err(problem) => return self.fault(problem),
        }
        self.end_when_time_is_up();
        if let Some(network) = &welcome.network {
            match ew_telemetry::address_on(network) {
                Ok(address) => welcome.address = address,
                Err(problem) => return self.fault(problem),
            }
        }
        let config = EngineConfig {
            address: welcome.address,
            ports: welcome.data_ports,
            token: welcome.token,
            relay_key: welcome.relay_key,
        };
        let engine = match Engine::start(config) {
            Ok(engine) => Arc::new(engine),
            Err(error) => return self.fault(error.to_string()),
        };
        if let Some(port) = welcome.offer_iperf3_port
            && let Err(problem) = offer::start(welcome.address, port)
        {
            return self.fault(problem);
        }
        self.own = OwnConnections::new(welcome.data_ports);
        self.host = Some(Host {
            engine,
            address: welcome.address,
            inbox: self.sender.clone(),
        });
        self.read_facts(welcome);
    }

    /// What the host's owner allows is over at some time, whatever the controller wants.
    fn end_when_time_is_up(&self) {
        let Some(left) = self.limits.time_left(clock::realtime_ns()) else {
            return;
        };
        let inbox = self.sender.clone();
        thread::spawn(move || {
            thread::sleep(left);
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::TimeIsUp);
        });
    }

    /// The host takes no part, for a reason in words.
    fn fault(&mut self, problem: String) {
        let said = self.session.fault(problem);
        self.said(said);
    }

    /// On a thread of its own: tools may be asked for their versions, and meanwhile the controller
    /// wants to hear that the agent lives.
    fn read_facts(&self, welcome: Welcome) {
        let (inbox, work_dir_free_bytes) = (self.sender.clone(), self.work_dir_free_bytes);
        let slot = self.slot.clone();
        thread::spawn(move || {
            let mut facts = ew_telemetry::facts(Path::new("/"), Some(welcome.address));
            facts.work_dir_free_bytes = work_dir_free_bytes;
            facts.tools = ew_tools::discover(&welcome.tools);
            let own_jobs = OWN_JOB.iter().filter_map(|name| std::env::var(name).ok());
            let own_jobs: Vec<String> = own_jobs.collect();
            facts.other_work = ew_telemetry::other_work(Path::new("/"), &own_jobs);
            facts.in_use_by = (welcome.claim.as_ref())
                .and_then(|own| slot.take(own))
                .map(Box::new);
            // The loop may have ended the agent meanwhile.
            let _ = inbox.send(Input::Facts(Box::new((welcome, facts))));
        });
    }

    fn on_facts(&mut self, welcome: &Welcome, mut facts: HostFacts) {
        let Some(host) = &self.host else { return };
        match self.limits.max_bits_per_sec(&facts, welcome.address) {
            Ok(max) => facts.max_bits_per_sec = max,
            Err(problem) => return self.fault(problem),
        }
        self.max_bits_per_sec = facts.max_bits_per_sec;
        if let Some(claim) = welcome.claim.as_ref().filter(|_| welcome.syslog) {
            let (run, by) = (&claim.run, &claim.by);
            let address = welcome.address;
            let line = format!("run {run} of {by} begins: network load on {address}");
            self.unlogged_begin = Some((run.clone(), line));
        }
        let said = self.session.ready(facts, host.engine.port());
        self.said(said);
        sampler::spawn(
            welcome.sample_interval_ns,
            self.own.clone(),
            self.sender.clone(),
        );
        if let Some(interval_ns) = welcome.watch_interval_ns {
            sampler::spawn_watch(interval_ns, self.sender.clone());
        }
    }

    fn on_stage(&mut self, mut order: StageOrder) {
        let stage = order.stage;
        if let Some(max) = self.max_bits_per_sec
            && let Err(why) = limits::enforce(max, &mut order)
        {
            let said = self.session.refuse(stage, &why);
            return self.said(said);
        }
        if self.running.is_some() {
            let said = self.session.refuse(stage, "another stage is still running");
            self.said(said);
            return;
        }
        for flow in order.rounds.iter().flat_map(|round| &round.flows) {
            self.own.expect(flow.peer, flow.server_port);
        }
        self.accepted = Some(order);
        let said = self.session.accept(stage);
        self.said(said);
    }

    fn on_go(&mut self, stage: StageIndex, timeline: Timeline) {
        let (Some(order), Some(host)) = (self.accepted.take(), &self.host) else {
            return self.lose("the controller started a stage it had not sent");
        };
        log_begin(&mut self.unlogged_begin, &mut self.logged_run);
        self.running = Some(RunningStage::start(order, timeline, host));
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
            let rejected_connections = self
                .host
                .as_ref()
                .map_or(0, |host| host.engine.totals().rejected_connections);
            let said = self.session.stage_done(stage, rejected_connections);
            self.said(said);
            self.release_samples();
        }
    }

    fn on_storage(&mut self, order: StorageOrder) {
        if self.max_bits_per_sec.is_some() {
            return self.on_storage_done(Box::new(StorageReport {
                step: order.step,
                error: Some(limits::refuses("files on storage")),
                ..StorageReport::default()
            }));
        }
        log_begin(&mut self.unlogged_begin, &mut self.logged_run);
        match RunningStep::start(order, self.sender.clone()) {
            Ok(step) => self.step = Some(step),
            Err(report) => self.on_storage_done(report),
        }
    }

    fn on_storage_done(&mut self, report: Box<StorageReport>) {
        self.step = None;
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

    fn check_ports(&self, check: PortCheck) {
        let Some(host) = &self.host else { return };
        let (engine, inbox) = (Arc::clone(&host.engine), host.inbox.clone());
        thread::spawn(move || {
            let _ = inbox.send(Input::PortsChecked(
                engine.check_ports(&check, PORT_CHECK_LIMIT),
            ));
        });
    }

    fn update_totals(&mut self) {
        if let Some(host) = &self.host {
            let totals = host.engine.totals();
            self.session.set_totals(totals.tx_bytes, totals.rx_bytes);
        }
    }

    fn abort(&mut self) {
        self.accepted = None;
        if let Some(step) = &self.step {
            step.cancel();
        }
        if let Some(running) = self.running.take() {
            running.cancel();
        }
        if let Some(host) = &self.host {
            host.engine.abort();
        }
    }

    /// What the session refuses to send means that the two sides disagree: there is no way on.
    fn said(&mut self, said: Result<(), CommandError>) {
        if let Err(error) = said {
            self.lose(&error.to_string());
        }
    }

    fn lose(&mut self, reason: &str) {
        self.ending
            .get_or_insert_with(|| Ending::Lost(reason.to_owned()));
    }

    fn stop(mut self, ending: &Ending) {
        end_at_the_latest();
        self.abort();
        if let Some(step) = &self.step {
            step.wait(STORAGE_END_LIMIT);
        }
        if let Some(run) = &self.logged_run {
            syslog::write(&format!("run {run} ends"));
        }
        if !matches!(ending, Ending::Lost(_)) {
            // A closed session has nobody left to hear it.
            let _ = self.session.farewell();
            while let Some(bytes) = self.session.poll_transmit() {
                self.writer.send(bytes);
            }
            self.writer.drain(FAREWELL_LIMIT);
        }
    }
}

/// Only where load begins: a run that is refused before loads nothing.
fn log_begin(unlogged: &mut Option<(String, String)>, logged: &mut Option<String>) {
    if let Some((run, line)) = unlogged.take() {
        syslog::write(&line);
        *logged = Some(run);
    }
}

/// An agent promises to be gone within 5 s of its controller. Threads that do not end, such as one
/// that unauthenticated peers keep busy, must not hold it; children die with it.
fn end_at_the_latest() {
    thread::spawn(|| {
        thread::sleep(END_LIMIT);
        std::process::exit(1);
    });
}
