//! The controller's side of the link to one agent.
//!
//! ```text
//! AwaitPreamble --preamble--> Greeted --welcome()--> Preparing --Ready--> Ready
//! Ready --goodbye()--> Leaving --Farewell--> Closed
//! ```
//!
//! From the welcome on the agent is asked every 500 ms whether it lives. Its answers keep its clock
//! known, and a running stage's rounds where they belong ([`crate::clock_line`]).
//!
//! An abort crosses whatever the agent is just sending. A clock probe goes out behind it as a
//! fence: links keep their order, so what comes before its reply may still belong to the aborted
//! stage, and what comes after does not.

use crate::clock::{ClockEstimate, ClockEstimator, EXCHANGES, Exchange};
use crate::clock_line::{ClockLine, Timeline};
use crate::frame::FrameDecoder;
use crate::limits::{Message, ROUND_REPORT, STORAGE_REPORT};
use crate::liveness::Liveness;
use crate::message::{
    FlowProgress, OthersTcp, PortAnswer, PortCheck, RoundReport, StageOrder, ToAgent, ToController,
    Welcome,
};
use crate::outbox::{CommandError, MAX_WAITING_EVENTS, Outbox};
use crate::preamble::PreambleScanner;
use crate::stage::{ActiveStage, StagePhase};
use crate::text;
use crate::unasked::Unasked;
use ew_model::facts::{HostFacts, HostSample};
use ew_model::inventory::HostId;
use ew_model::plan::StageIndex;
use ew_model::storage::{FileOutcome, StorageOperation, StorageOrder, StorageReport};
use ew_model::telemetry::{HostReading, QdiscCounters};
use std::collections::{BTreeSet, VecDeque};

/// Time between heartbeats.
pub const HEARTBEAT_INTERVAL_NS: u64 = 500_000_000;

/// Heartbeats without an answer whose times are kept: twice what an agent may be silent for.
const MAX_TIMED_HEARTBEATS: usize = 16;

/// An agent silent for this long is lost.
pub const CONTROLLER_SILENCE_LIMIT_NS: u64 = 4_000_000_000;

/// How long a launched agent may take to its first line, unless the caller specifies otherwise.
pub const HELLO_DEADLINE_NS: u64 = 30_000_000_000;

/// How long an agent may take from its welcome to its facts.
pub const READY_DEADLINE_NS: u64 = 30_000_000_000;

/// How long an agent may take from goodbye to farewell.
pub const FAREWELL_DEADLINE_NS: u64 = 10_000_000_000;

/// An agent learns of its clock's error when it has become greater than this: a tenth of what a
/// start may be late by.
const RETIME_NS: u64 = 100_000;

/// What the controller has to act on.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerEvent {
    /// The agent's first line came and its version fits: [`ControllerSession::welcome`] it.
    Hello,
    /// Facts are read and the data listener is up.
    Ready {
        /// Facts of the host.
        facts: Box<HostFacts>,
        /// The data listener's port.
        data_port: u16,
    },
    /// The outcome of [`ControllerSession::sync`].
    Synced(ClockEstimate),
    /// The agent's clock was found to run differently from the last estimate given.
    ClockMoved(ClockEstimate),
    /// The stage can start: [`ControllerSession::go`].
    StageAccepted {
        /// Which.
        stage: StageIndex,
    },
    /// The stage cannot run on this host.
    StageRefused {
        /// Which.
        stage: StageIndex,
        /// In words, with the remedy.
        reason: String,
    },
    /// A round is over. May also come late for a stage that was aborted.
    RoundReport(RoundReport),
    /// All rounds of the stage are reported.
    StageDone {
        /// Which.
        stage: StageIndex,
        /// Connections the data port refused since the agent's start.
        rejected_connections: u64,
    },
    /// The answer to a heartbeat: the engine's totals since the agent's start.
    Alive {
        /// Payload bytes sent.
        tx_bytes: u64,
        /// Payload bytes received.
        rx_bytes: u64,
        /// What the host's other TCP connections sent.
        others: Option<OthersTcp>,
        /// From the heartbeat to this answer. `None` for one of too many without an answer.
        rtt_ns: Option<u64>,
        /// The agent's clock is known within this. `None` where nothing is known of it.
        clock_error_ns: Option<u64>,
    },
    /// How a followed flow goes.
    FlowProgress(FlowProgress),
    /// Raw host counters.
    Sample(HostSample),
    /// All counters of a watched host.
    Reading(Box<HostReading>),
    /// The answer to [`ControllerSession::check_ports`], in its order.
    PortsChecked {
        /// One per peer.
        answers: Vec<PortAnswer>,
    },
    /// The answer to [`ControllerSession::send_storage`].
    StorageReport(Box<StorageReport>),
    /// How the storage step at hand goes, in words.
    StorageProgress {
        /// In words.
        words: String,
    },
    /// Something went wrong on the host that is not a flow's failure.
    Fault {
        /// In words.
        message: String,
    },
    /// The agent stopped everything and exits. Always the last event.
    Farewell,
    /// The host's owner stopped the agent; it is lost next.
    Stopped,
    /// The agent is gone or broke the protocol. Always the last event.
    Lost {
        /// In words.
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitPreamble,
    Greeted,
    Preparing,
    Ready,
    Leaving,
    Closed,
}

/// A clock estimate in the making.
#[derive(Clone, Copy, Debug)]
struct Sync {
    estimator: ClockEstimator,
    sequence: u32,
    sent_ns: u64,
}

/// The line of the agent's clock that the caller was given, and the agent with its running stage.
#[derive(Clone, Copy, Debug)]
struct GivenClock {
    /// Controller's clock: of the stage's start, or of the estimate.
    from_ns: u64,
    timeline: Timeline,
}

/// A storage step under way.
#[derive(Clone, Debug)]
struct ActiveStorage {
    step: u32,
    /// Whether files may come more than once.
    repeats: bool,
    /// `None`: whichever are there.
    files: Option<BTreeSet<u32>>,
}

/// An aborted stage whose end the agent has not confirmed.
#[derive(Clone, Debug)]
struct Aborted {
    active: ActiveStage,
    fence: u32,
}

/// The session with one agent; see the crate's documentation for how it is driven.
#[derive(Debug)]
pub struct ControllerSession {
    host: HostId,
    state: State,
    /// `None` once the agent's first line has come.
    scanner: Option<PreambleScanner>,
    stage: Option<ActiveStage>,
    aborted: Option<Aborted>,
    port_check: Option<usize>,
    /// Stays after a goodbye: the report may be on its way.
    storage: Option<ActiveStorage>,
    /// Longest report of any stage that was ordered: one may come after its stage's end.
    report_limit_bytes: usize,
    /// Whether the agent was asked for readings.
    watched: bool,
    unasked: Unasked,
    sync: Option<Sync>,
    clock: ClockLine,
    given_clock: Option<GivenClock>,
    next_sequence: u32,
    unanswered_heartbeats: u32,
    /// When the first of them were sent.
    heartbeats_sent_ns: VecDeque<u64>,
    next_heartbeat_ns: Option<u64>,
    /// Until when the present state must have been left, if there is a limit.
    state_deadline_ns: Option<u64>,
    /// The welcome or goodbye just given starts its clocks at the next call that passes the time.
    clocks_start_pending: bool,
    liveness: Option<Liveness>,
    latest_ns: u64,
    decoder: FrameDecoder,
    outbox: Outbox,
    events: VecDeque<ControllerEvent>,
}

impl ControllerSession {
    /// A session that waits for the agent's first line for [`HELLO_DEADLINE_NS`]. `build` is what
    /// the agent must be.
    #[must_use]
    pub fn new(build: &str, host: HostId, now_ns: u64) -> Self {
        Self::with_hello_deadline(
            build,
            host,
            now_ns,
            now_ns.saturating_add(HELLO_DEADLINE_NS),
        )
    }

    /// As [`ControllerSession::new`], with the agent's first line due at `deadline_ns`.
    #[must_use]
    pub fn with_hello_deadline(build: &str, host: HostId, now_ns: u64, deadline_ns: u64) -> Self {
        Self {
            host,
            state: State::AwaitPreamble,
            scanner: Some(PreambleScanner::new(build)),
            stage: None,
            aborted: None,
            port_check: None,
            storage: None,
            report_limit_bytes: 0,
            watched: false,
            unasked: Unasked::default(),
            sync: None,
            clock: ClockLine::default(),
            given_clock: None,
            next_sequence: 0,
            unanswered_heartbeats: 0,
            heartbeats_sent_ns: VecDeque::new(),
            next_heartbeat_ns: None,
            state_deadline_ns: Some(deadline_ns),
            clocks_start_pending: false,
            liveness: None,
            latest_ns: now_ns,
            decoder: FrameDecoder::new(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
        }
    }

    /// Takes bytes from the agent. During [`ControllerSession::sync`] `now_ns` ends a round trip,
    /// so read the clock right after the read returned, and write
    /// [`ControllerSession::poll_transmit`] out at once.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        if self.state == State::Closed || bytes.is_empty() {
            return;
        }
        self.advance(now_ns);
        match self.scan(bytes) {
            Some(rest) => self.decoder.push(&rest),
            None if self.scanner.is_some() || self.state == State::Closed => return,
            None => self.decoder.push(bytes),
        }
        let mut completed = false;
        while self.state != State::Closed {
            let report_limit = self.report_limit_bytes;
            let is_storing = self.storage.is_some();
            let limits = |kind| match kind {
                ROUND_REPORT => report_limit,
                STORAGE_REPORT if !is_storing => 0,
                other => ToController::limit_bytes(other),
            };
            match self.decoder.next_within(limits) {
                Ok(Some(message)) => {
                    completed = true;
                    self.handle_message(message, now_ns);
                }
                Ok(None) => break,
                Err(error) => self.violation(&error.to_string()),
            }
        }
        let inside_frame = self.decoder.is_inside_frame();
        if let Some(liveness) = &mut self.liveness {
            liveness.heard(now_ns, completed, inside_frame);
        }
    }

    /// The link ended.
    pub fn handle_eof(&mut self, now_ns: u64) {
        if self.state == State::Closed {
            return;
        }
        self.advance(now_ns);
        let reason = match &self.scanner {
            Some(scanner) if scanner.said().is_empty() => {
                "the link ended before the agent spoke".into()
            }
            Some(scanner) => format!(
                "the link ended before the agent spoke; the host printed: `{}`",
                scanner.said()
            ),
            None => {
                "the link to the agent was closed: the agent ended or the connection was cut".into()
            }
        };
        self.close(reason);
    }

    /// Does what is due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if self.state == State::Closed {
            return;
        }
        self.advance(now_ns);
        if let Some(gone) = self.liveness.as_mut().and_then(|l| l.check(now_ns)) {
            self.close(gone.reason("the agent", CONTROLLER_SILENCE_LIMIT_NS));
            return;
        }
        if self.state_deadline_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.close(self.missed_deadline_words());
            return;
        }
        if self.next_heartbeat_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.next_heartbeat_ns = Some(now_ns.saturating_add(HEARTBEAT_INTERVAL_NS));
            self.unanswered_heartbeats = self.unanswered_heartbeats.saturating_add(1);
            if self.heartbeats_sent_ns.len() < MAX_TIMED_HEARTBEATS {
                self.heartbeats_sent_ns.push_back(now_ns);
            }
            self.transmit(&ToAgent::Heartbeat);
        }
    }

    /// When [`ControllerSession::handle_timeout`] wants to be called; in the past when at once.
    /// `None` when the session is over or waits for a command.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        if self.state == State::Closed {
            return None;
        }
        let pending_ns = self.clocks_start_pending.then_some(self.latest_ns);
        let liveness_ns = self.liveness.map(|l| l.deadline_ns());
        [
            pending_ns,
            liveness_ns,
            self.state_deadline_ns,
            self.next_heartbeat_ns,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Next bytes to write. What waits when the session ends may still be written.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop()
    }

    /// Next event.
    pub fn poll_event(&mut self) -> Option<ControllerEvent> {
        self.events.pop_front()
    }

    /// Whose session it is.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// Whether the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The stage at hand and how far it is.
    #[must_use]
    pub fn stage(&self) -> Option<(StageIndex, StagePhase)> {
        self.stage.as_ref().map(|s| (s.stage, s.phase))
    }

    /// Answers [`ControllerEvent::Hello`].
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] unless just greeted.
    pub fn welcome(&mut self, welcome: Welcome) -> Result<(), CommandError> {
        self.require("welcome", self.state == State::Greeted)?;
        self.watched = welcome.watch_interval_ns.is_some();
        self.unasked = Unasked::new(&welcome, self.latest_ns);
        self.outbox.send(&ToAgent::Welcome(welcome))?;
        self.state = State::Preparing;
        self.clocks_start_pending = true;
        Ok(())
    }

    /// Begins a clock estimate of 16 exchanges, one after the other; [`ControllerEvent::Synced`]
    /// follows.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] while a stage runs, another estimate is being made, or the
    /// agent is not ready.
    pub fn sync(&mut self, now_ns: u64) -> Result<(), CommandError> {
        let running = matches!(&self.stage, Some(s) if s.phase == StagePhase::Running);
        let free = self.state == State::Ready && !running && self.sync.is_none();
        self.require("sync", free)?;
        self.advance(now_ns);
        let sequence = self.next_sequence();
        self.outbox.send(&ToAgent::ClockProbe { sequence })?;
        self.sync = Some(Sync {
            estimator: ClockEstimator::new(),
            sequence,
            sent_ns: now_ns,
        });
        Ok(())
    }

    /// Sends a stage's rounds. A stage may be ordered again (repair rounds) when it is over.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] while a stage or a port check is at hand or the agent is not
    /// ready; [`CommandError::Contradiction`] for an order that contains a round twice;
    /// [`CommandError::Frame`] when it is too large.
    pub fn send_stage(&mut self, order: StageOrder) -> Result<(), CommandError> {
        self.require("send_stage", self.is_free())?;
        let active = ActiveStage::new(&order).map_err(CommandError::Contradiction)?;
        self.outbox.send(&ToAgent::Stage(order))?;
        self.report_limit_bytes = self.report_limit_bytes.max(active.report_limit_bytes);
        self.stage = Some(active);
        Ok(())
    }

    /// Starts the accepted stage at `start_ns` of the controller's clock. While it runs, the agent
    /// learns how its own clock runs.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] unless this stage was accepted and not started, and something
    /// is known of the agent's clock.
    pub fn go(&mut self, stage: StageIndex, start_ns: u64) -> Result<(), CommandError> {
        let accepted = self.stage() == Some((stage, StagePhase::Accepted));
        let given = self.clock_from(start_ns).filter(|_| accepted);
        self.require("go", given.is_some())?;
        if let (Some(given), Some(active)) = (given, &mut self.stage) {
            let timeline = given.timeline;
            self.outbox.send(&ToAgent::Go { stage, timeline })?;
            active.phase = StagePhase::Running;
            self.given_clock = Some(given);
        }
        Ok(())
    }

    /// Drops the stage at hand; without one nothing is sent.
    ///
    /// # Errors
    /// [`CommandError::Closed`], or [`CommandError::OutOfOrder`] while an earlier abort is
    /// unconfirmed (one round trip).
    pub fn abort(&mut self) -> Result<(), CommandError> {
        self.require("abort", self.stage.is_none() || self.aborted.is_none())?;
        if self.stage.is_none() {
            return Ok(());
        }
        let fence = self.next_sequence();
        self.outbox.send(&ToAgent::Abort)?;
        self.outbox.send(&ToAgent::ClockProbe { sequence: fence })?;
        self.aborted = self.stage.take().map(|active| Aborted { active, fence });
        Ok(())
    }

    /// Asks the agent to probe peers' data ports; [`ControllerEvent::PortsChecked`] follows.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] while a stage or a port check is at hand or the agent is not
    /// ready.
    pub fn check_ports(&mut self, check: PortCheck) -> Result<(), CommandError> {
        self.require("check_ports", self.is_free())?;
        let count = check.peers.len();
        self.outbox.send(&ToAgent::CheckPorts(check))?;
        self.port_check = Some(count);
        Ok(())
    }

    /// Orders a storage step, whose start is **on the agent's clock**;
    /// [`ControllerEvent::StorageReport`] follows, however long the step takes.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] while a stage, a port check or a step is at hand or the agent
    /// is not ready; [`CommandError::Frame`] when it is too large.
    pub fn send_storage(&mut self, order: StorageOrder) -> Result<(), CommandError> {
        self.require("send_storage", self.is_free())?;
        let lists = order.operation == StorageOperation::Clean && order.files.is_empty();
        let active = ActiveStorage {
            step: order.step,
            repeats: order.job.time_ns.is_some(),
            files: (!lists).then(|| order.files.iter().copied().collect()),
        };
        self.outbox.send(&ToAgent::Storage(order))?;
        self.storage = Some(active);
        Ok(())
    }

    /// Asks the agent to end the storage step at hand; its report still follows. Without one
    /// nothing is sent.
    ///
    /// # Errors
    /// [`CommandError::Closed`] when the session is over.
    pub fn end_storage(&mut self) -> Result<(), CommandError> {
        self.require("end_storage", true)?;
        match self.storage {
            Some(_) => self.outbox.send(&ToAgent::Abort),
            None => Ok(()),
        }
    }

    /// Asks the agent to clean up and exit, at any time; [`ControllerEvent::Farewell`] follows, or
    /// [`ControllerEvent::Lost`] within [`FAREWELL_DEADLINE_NS`]. A second goodbye is of no effect.
    ///
    /// # Errors
    /// [`CommandError::Closed`] when the session is over.
    pub fn goodbye(&mut self) -> Result<(), CommandError> {
        self.require("goodbye", true)?;
        if self.state == State::Leaving {
            return Ok(());
        }
        self.outbox.send(&ToAgent::Goodbye)?;
        self.state = State::Leaving;
        self.state_deadline_ns = None;
        self.stage = None;
        self.sync = None;
        self.clocks_start_pending = true;
        Ok(())
    }

    /// Notes the time, and starts the clocks of a command that came without one.
    fn advance(&mut self, now_ns: u64) {
        self.latest_ns = self.latest_ns.max(now_ns);
        if !self.clocks_start_pending {
            return;
        }
        self.clocks_start_pending = false;
        let wait_ns = match self.state {
            State::Leaving => FAREWELL_DEADLINE_NS,
            _ => READY_DEADLINE_NS,
        };
        self.state_deadline_ns = Some(now_ns.saturating_add(wait_ns));
        if self.state == State::Preparing {
            self.next_heartbeat_ns = Some(now_ns);
            self.liveness = Some(Liveness::new(CONTROLLER_SILENCE_LIMIT_NS, now_ns));
        }
    }

    /// Searches the agent's first line. `Some` are the bytes behind it, the first time it is
    /// complete.
    fn scan(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self.scanner.as_mut()?.push(bytes) {
            Ok(rest) => {
                rest.as_ref()?;
                self.scanner = None;
                if self.state == State::AwaitPreamble {
                    self.state = State::Greeted;
                    self.state_deadline_ns = None;
                    self.event(ControllerEvent::Hello);
                }
                rest
            }
            Err(error) => {
                self.close(error.to_string());
                None
            }
        }
    }

    fn handle_message(&mut self, message: ToController, now_ns: u64) {
        match message {
            ToController::Fault { message } => {
                if !self.unasked.faults.take(now_ns) {
                    return self.excess(now_ns);
                }
                let message = text::printable(&message);
                self.event(ControllerEvent::Fault { message });
            }
            ToController::Farewell => self.farewell(),
            ToController::ClockReply { sequence, agent_ns } => {
                self.clock_reply(sequence, agent_ns, now_ns);
            }
            ToController::Alive {
                agent_ns,
                tx_bytes,
                rx_bytes,
                others,
            } if self.unanswered_heartbeats > 0 => {
                let exchange = self.heartbeat_answered(agent_ns, now_ns);
                let estimate = self.clock.estimate(now_ns);
                self.event(ControllerEvent::Alive {
                    tx_bytes,
                    rx_bytes,
                    others,
                    rtt_ns: exchange.map(Exchange::rtt_ns),
                    clock_error_ns: estimate.map(|estimate| estimate.error_ns),
                });
            }
            ToController::Ready { facts, data_port } if self.state == State::Preparing => {
                self.state = State::Ready;
                self.state_deadline_ns = None;
                let facts = Box::new(text::printable_facts(facts));
                self.event(ControllerEvent::Ready { facts, data_port });
            }
            ToController::Sample(sample) if self.may_sample() => {
                if !self.unasked.samples.take(now_ns) {
                    return self.excess(now_ns);
                }
                self.event(ControllerEvent::Sample(printable_sample(sample)));
            }
            ToController::Reading(reading) if self.watched && self.may_sample() => {
                if !self.unasked.readings.take(now_ns) {
                    return self.excess(now_ns);
                }
                self.event(ControllerEvent::Reading(printable_reading(reading)));
            }
            // What was on its way when the agent was asked to go.
            _ if self.state == State::Leaving => {}
            ToController::PortsChecked { answers } if self.port_check == Some(answers.len()) => {
                self.port_check = None;
                let answers = answers.into_iter().map(printable_answer).collect();
                self.event(ControllerEvent::PortsChecked { answers });
            }
            ToController::StorageReport(report) if self.storage.is_some() => {
                if let Err(reason) = self.stored(report) {
                    self.violation(&reason);
                }
            }
            ToController::StorageProgress { step, words } if self.is_storing(step) => {
                if !self.unasked.progress.take(now_ns) {
                    return self.excess(now_ns);
                }
                let words = text::printable(&words);
                self.event(ControllerEvent::StorageProgress { words });
            }
            message if self.state == State::Ready => self.handle_stage_message(message, now_ns),
            unexpected => self.unexpected(&unexpected),
        }
    }

    fn is_storing(&self, step: u32) -> bool {
        self.storage
            .as_ref()
            .is_some_and(|active| active.step == step)
    }

    fn may_sample(&self) -> bool {
        matches!(self.state, State::Ready | State::Leaving)
    }

    fn handle_stage_message(&mut self, message: ToController, now_ns: u64) {
        if self.aborted.is_some() {
            self.handle_late_message(message);
            return;
        }
        let result = match message {
            ToController::StageAccepted { stage } => self.accepted(stage),
            ToController::StageRefused { stage, reason } => self.refused(stage, &reason),
            ToController::RoundReport(report) => self.reported(report),
            ToController::StageDone {
                stage,
                rejected_connections,
            } => self.done(stage, rejected_connections),
            ToController::FlowProgress(progress) => {
                if !self.unasked.progress.take(now_ns) {
                    return self.excess(now_ns);
                }
                self.progressed(progress)
            }
            unexpected => {
                self.unexpected(&unexpected);
                return;
            }
        };
        if let Err(reason) = result {
            self.violation(&reason);
        }
    }

    /// Before the fence's reply: of the aborted stage only reports are of use.
    fn handle_late_message(&mut self, message: ToController) {
        let Some(aborted) = &mut self.aborted else {
            return;
        };
        match message {
            ToController::RoundReport(report) => match aborted.active.check_report(&report) {
                Ok(()) => {
                    aborted.active.strike(report.round);
                    self.event(ControllerEvent::RoundReport(printable_report(report)));
                }
                Err(reason) => self.violation(&reason),
            },
            ToController::StageAccepted { stage }
            | ToController::StageRefused { stage, .. }
            | ToController::StageDone { stage, .. }
                if stage == aborted.active.stage => {}
            ToController::FlowProgress(progress) if progress.stage == aborted.active.stage => {}
            unexpected => self.unexpected(&unexpected),
        }
    }

    fn accepted(&mut self, stage: StageIndex) -> Result<(), String> {
        self.offered(stage, "accepted")?.phase = StagePhase::Accepted;
        self.event(ControllerEvent::StageAccepted { stage });
        Ok(())
    }

    fn refused(&mut self, stage: StageIndex, reason: &str) -> Result<(), String> {
        self.offered(stage, "refused")?;
        self.stage = None;
        let reason = text::printable(reason);
        self.event(ControllerEvent::StageRefused { stage, reason });
        Ok(())
    }

    fn offered(&mut self, stage: StageIndex, verb: &str) -> Result<&mut ActiveStage, String> {
        match &mut self.stage {
            Some(s) if s.stage == stage && s.phase == StagePhase::Offered => Ok(s),
            _ => Err(format!(
                "stage {} was {verb}, which was not offered",
                stage.0
            )),
        }
    }

    fn reported(&mut self, report: RoundReport) -> Result<(), String> {
        let Some(active) = &mut self.stage else {
            return Err(format!(
                "round {} of stage {} was reported, which is not at hand",
                report.round.0, report.stage.0
            ));
        };
        active.check_report(&report)?;
        active.strike(report.round);
        self.event(ControllerEvent::RoundReport(printable_report(report)));
        Ok(())
    }

    fn progressed(&mut self, progress: FlowProgress) -> Result<(), String> {
        let Some(active) = &self.stage else {
            return Err("progress was reported while no stage is at hand".into());
        };
        active.check_progress(&progress)?;
        self.event(ControllerEvent::FlowProgress(progress));
        Ok(())
    }

    fn done(&mut self, stage: StageIndex, rejected_connections: u64) -> Result<(), String> {
        let Some(active) = &self.stage else {
            return Err(format!(
                "stage {} was declared done, which is not at hand",
                stage.0
            ));
        };
        active.check_done(stage)?;
        self.stage = None;
        self.event(ControllerEvent::StageDone {
            stage,
            rejected_connections,
        });
        Ok(())
    }

    /// `Err` explains how the report contradicts the order.
    fn stored(&mut self, report: Box<StorageReport>) -> Result<(), String> {
        let Some(active) = self.storage.take() else {
            return Err("a storage step was reported, which was not ordered".into());
        };
        let mut left = active.files;
        let stray = report.files.iter().find(|record| match &mut left {
            Some(ordered) if active.repeats => !ordered.contains(&record.file),
            Some(ordered) => !ordered.remove(&record.file),
            None => false,
        });
        if let Some(stray) = stray {
            return Err(format!(
                "the report of a storage step contains file {} against the order",
                stray.file
            ));
        }
        if report.step != active.step {
            return Err(format!(
                "storage step {} was reported, ordered was {}",
                report.step, active.step
            ));
        }
        self.event(ControllerEvent::StorageReport(printable_storage(report)));
        Ok(())
    }

    fn clock_reply(&mut self, sequence: u32, agent_ns: u64, now_ns: u64) {
        if matches!(&self.aborted, Some(aborted) if aborted.fence == sequence) {
            self.aborted = None;
            return;
        }
        match self.sync {
            Some(sync) if sync.sequence == sequence => self.exchange(sync, agent_ns, now_ns),
            _ if self.state == State::Leaving => {}
            _ => self.violation("the agent answered a clock probe that was not sent"),
        }
    }

    fn exchange(&mut self, mut sync: Sync, agent_ns: u64, now_ns: u64) {
        sync.estimator.add(Exchange {
            sent_ns: sync.sent_ns,
            agent_ns,
            received_ns: now_ns,
        });
        self.sync = None;
        if sync.estimator.exchanges() >= EXCHANGES {
            if let Some(best) = sync.estimator.best() {
                self.clock.settle(best);
            }
            self.given_clock = self.clock_from(now_ns);
            if let Some(estimate) = self.clock.estimate(now_ns) {
                self.event(ControllerEvent::Synced(estimate));
            }
            return;
        }
        sync.sequence = self.next_sequence();
        sync.sent_ns = now_ns;
        self.sync = Some(sync);
        self.transmit(&ToAgent::ClockProbe {
            sequence: sync.sequence,
        });
    }

    /// The exchange that a heartbeat and its answer are; `None` where too many had no answer.
    fn heartbeat_answered(&mut self, agent_ns: u64, now_ns: u64) -> Option<Exchange> {
        self.unanswered_heartbeats -= 1;
        let exchange = Exchange {
            sent_ns: self.heartbeats_sent_ns.pop_front()?,
            agent_ns,
            received_ns: now_ns,
        };
        self.clock.follow(exchange);
        self.give_clock(now_ns);
        Some(exchange)
    }

    /// Where the clock has left the line that was given, gives the line that it is on.
    fn give_clock(&mut self, now_ns: u64) {
        let Some(given) = self.given_clock else {
            return;
        };
        let passed_ns = now_ns.saturating_sub(given.from_ns);
        let line = self.clock_from(given.from_ns);
        let shown_ns = given.timeline.at(passed_ns);
        let has_left =
            |line: &GivenClock| line.timeline.at(passed_ns).abs_diff(shown_ns) > RETIME_NS;
        let Some(line) = line.filter(has_left) else {
            return;
        };
        self.given_clock = Some(line);
        if let Some(estimate) = self.clock.estimate(now_ns) {
            self.event(ControllerEvent::ClockMoved(estimate));
        }
        if let Some((stage, StagePhase::Running)) = self.stage() {
            let timeline = line.timeline;
            self.transmit(&ToAgent::Retime { stage, timeline });
        }
    }

    fn clock_from(&self, from_ns: u64) -> Option<GivenClock> {
        let timeline = self.clock.timeline(from_ns)?;
        Some(GivenClock { from_ns, timeline })
    }

    fn farewell(&mut self) {
        if self.state == State::Leaving {
            self.end();
            self.events.push_back(ControllerEvent::Farewell);
        } else {
            self.event(ControllerEvent::Stopped);
            self.close("the agent was stopped on its host (`eastwest stop`)".into());
        }
    }

    fn next_sequence(&mut self) -> u32 {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        sequence
    }

    fn transmit(&mut self, message: &ToAgent) {
        if let Err(error) = self.outbox.send(message) {
            self.close(error.to_string());
        }
    }

    fn event(&mut self, event: ControllerEvent) {
        if self.state == State::Closed {
            return;
        }
        if self.events.len() >= MAX_WAITING_EVENTS {
            self.violation("the agent sent more than this controller can take");
            return;
        }
        self.events.push_back(event);
    }

    /// The agent reports more by itself than it was asked for: that is passed over, up to a point.
    fn excess(&mut self, now_ns: u64) {
        if !self.unasked.excess.take(now_ns) {
            self.violation("the agent sends much more than it was asked for");
        }
    }

    fn unexpected(&mut self, message: &ToController) {
        let (what, state) = (message.name(), self.state_words());
        self.violation(&format!("the agent sent {what} while {state}"));
    }

    /// The agent broke the protocol: it is ordered to go, and nothing it sends counts any more.
    fn violation(&mut self, reason: &str) {
        // When even this does not fit, the end of the link is enough.
        let _ = self.outbox.send(&ToAgent::Goodbye);
        self.close(format!("protocol broken: {reason}"));
    }

    fn close(&mut self, reason: String) {
        self.end();
        // A greeting that the caller has not seen cannot be answered any more.
        self.events.retain(|e| *e != ControllerEvent::Hello);
        self.events.push_back(ControllerEvent::Lost { reason });
    }

    fn end(&mut self) {
        self.state = State::Closed;
        self.stage = None;
        self.storage = None;
        self.aborted = None;
        self.sync = None;
    }

    fn is_free(&self) -> bool {
        let nothing_at_hand =
            self.stage.is_none() && self.port_check.is_none() && self.storage.is_none();
        self.state == State::Ready && nothing_at_hand
    }

    fn require(&self, command: &'static str, possible: bool) -> Result<(), CommandError> {
        match self.state {
            State::Closed => Err(CommandError::Closed { command }),
            _ if possible => Ok(()),
            _ => Err(CommandError::OutOfOrder {
                command,
                state: self.state_words(),
            }),
        }
    }

    fn missed_deadline_words(&self) -> String {
        let said = self.scanner.as_ref().map(PreambleScanner::said);
        match (self.state, said) {
            (State::Leaving, _) => "the agent did not stop in time after it was asked to".into(),
            (State::Preparing, _) => format!(
                "the agent did not get ready within {} s",
                READY_DEADLINE_NS / 1_000_000_000
            ),
            (_, Some(said)) if !said.is_empty() => {
                format!("no agent spoke before its deadline; the host printed: `{said}`")
            }
            _ => "no agent spoke before its deadline".into(),
        }
    }

    fn state_words(&self) -> &'static str {
        match (self.state, self.stage()) {
            (State::AwaitPreamble, _) => "the agent has not spoken",
            (State::Greeted, _) => "the agent waits for its welcome",
            (State::Preparing, _) => "the agent prepares",
            (State::Ready, Some((_, StagePhase::Running))) => "a stage runs",
            (State::Ready, Some(_)) => "a stage is offered or accepted",
            (State::Ready, None) if self.port_check.is_some() => "ports are checked",
            (State::Ready, None) if self.storage.is_some() => "a storage step runs",
            (State::Ready, None) => "no stage is at hand",
            (State::Leaving, _) => "the agent is leaving",
            (State::Closed, _) => "the session is over",
        }
    }
}

fn printable_answer(answer: PortAnswer) -> PortAnswer {
    match answer {
        PortAnswer::Unreached { error } => PortAnswer::Unreached {
            error: text::printable(&error),
        },
        reached @ PortAnswer::Reached { .. } => reached,
    }
}

/// Names of processes are whatever their authors like.
fn printable_sample(mut sample: HostSample) -> HostSample {
    let interfaces = sample.interfaces.iter_mut().map(|i| &mut i.name);
    interfaces.for_each(text::make_printable);
    if let Some(causes) = &mut sample.causes {
        let commands = causes.traffic.iter_mut().map(|t| &mut t.command);
        let counters = causes.driver_counters.iter_mut();
        let disks = causes.disks.iter_mut().map(|d| &mut d.name);
        let interrupts = causes.interrupts.iter_mut().map(|i| &mut i.name);
        commands
            .chain(counters.flat_map(|(interface, counter, _)| [interface, counter]))
            .chain(disks)
            .chain(interrupts)
            .chain(qdisc_words(&mut causes.qdiscs))
            .chain(&mut causes.unseen)
            .for_each(text::make_printable);
    }
    sample
}

fn printable_reading(mut reading: Box<HostReading>) -> Box<HostReading> {
    for interface in &mut reading.interfaces {
        text::make_printable(&mut interface.counters.name);
        text::printable_link(&mut interface.link);
        let counters = interface.driver_counters.iter_mut().map(|(name, _)| name);
        counters.for_each(text::make_printable);
    }
    let processes = reading.processes.iter_mut().map(|p| &mut p.name);
    let disks = reading.disks.iter_mut().map(|d| &mut d.name);
    let interrupts = reading.interrupts.iter_mut().map(|i| &mut i.name);
    processes
        .chain(disks)
        .chain(interrupts)
        .chain(qdisc_words(&mut reading.qdiscs))
        .chain(&mut reading.unseen)
        .for_each(text::make_printable);
    reading
}

fn qdisc_words(qdiscs: &mut [QdiscCounters]) -> impl Iterator<Item = &mut String> {
    qdiscs
        .iter_mut()
        .flat_map(|qdisc| [&mut qdisc.interface, &mut qdisc.kind])
}

fn printable_storage(mut report: Box<StorageReport>) -> Box<StorageReport> {
    for record in &mut report.files {
        match &mut record.outcome {
            FileOutcome::Failed { error: words } | FileOutcome::Corrupt { found: words, .. } => {
                text::make_printable(words);
            }
            FileOutcome::Done | FileOutcome::Cancelled => {}
        }
    }
    let words = report.notes.iter_mut().chain(&mut report.error);
    words.for_each(text::make_printable);
    if let Some(log) = &mut report.testdfsio {
        log.command.iter_mut().for_each(text::make_printable);
        for line in &mut log.lines {
            line.text = text::printable_indented(&line.text);
        }
        let result = log.result.lines().map(text::printable_indented);
        log.result = result.map(|line| line + "\n").collect();
    }
    report
}

fn printable_report(mut report: RoundReport) -> RoundReport {
    for flow in &mut report.flows {
        let ends = [&mut flow.sender, &mut flow.receiver];
        let congestion = ends.into_iter().flatten().map(|end| &mut end.congestion);
        let words = congestion.chain([&mut flow.error]).flatten();
        words.for_each(text::make_printable);
    }
    report
}

#[cfg(test)]
mod tests;
