//! The agent's side of a control link.
//!
//! ```text
//! AwaitWelcome --Welcome--> Preparing --ready()--> Ready (stages, port checks)
//! Ready --Goodbye--> Leaving --farewell()--> Closed
//! ```
//!
//! `Goodbye` and the loss of the controller are possible everywhere.

use crate::clock_line::Timeline;
use crate::frame::FrameDecoder;
use crate::liveness::Liveness;
use crate::message::{
    FlowProgress, OthersTcp, PortAnswer, PortCheck, RoundReport, StageOrder, ToAgent, ToController,
    Welcome,
};
use crate::outbox::{CommandError, MAX_WAITING_EVENTS, Outbox};
use crate::preamble::preamble;
use crate::stage::{ActiveStage, StagePhase};
use crate::text;
use ew_model::facts::{HostFacts, HostSample};
use ew_model::plan::StageIndex;
use ew_model::storage::{StorageOrder, StorageReport};
use ew_model::telemetry::HostReading;
use std::collections::VecDeque;

/// A controller silent for this long is gone. An agent must be gone itself within 5 s of that
/// moment's start, so the last second is for stopping flows and children.
pub const AGENT_SILENCE_LIMIT_NS: u64 = 4_000_000_000;

/// How long an agent waits for its welcome.
pub const WELCOME_DEADLINE_NS: u64 = 30_000_000_000;

/// What the agent has to act on. An event that [`AgentSession::poll_event`] hands out can be
/// answered at once: one that was overtaken before it was polled (a stage by its abort, anything by
/// goodbye) is not handed out at all.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentEvent {
    /// Read the facts, open the data listener, then [`AgentSession::ready`].
    Welcomed(Welcome),
    /// Answer with [`AgentSession::accept`] or [`AgentSession::refuse`].
    Stage(StageOrder),
    /// Run the accepted stage, reporting each round, then [`AgentSession::stage_done`].
    Go {
        /// Which.
        stage: StageIndex,
        /// On this agent's monotonic clock.
        timeline: Timeline,
    },
    /// The running stage's rounds that have not begun follow this timeline.
    Retime(Timeline),
    /// Drop the stage at hand; nothing more of it is sent. A storage step is ended, and reported
    /// all the same.
    Abort,
    /// Do this, then [`AgentSession::storage_done`].
    Storage(StorageOrder),
    /// Probe these data ports, then [`AgentSession::ports_checked`] in the same order.
    CheckPorts(PortCheck),
    /// Stop everything, then [`AgentSession::farewell`], then exit.
    Goodbye,
    /// Stop everything and exit: nobody listens any more. Always the last event.
    ControllerLost {
        /// In words.
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitWelcome,
    Preparing,
    Ready,
    Leaving,
    Closed,
}

/// The agent's session; see the crate's documentation for how it is driven.
#[derive(Debug)]
pub struct AgentSession {
    state: State,
    stage: Option<ActiveStage>,
    /// Number of peers of an unanswered port check.
    port_check: Option<usize>,
    /// The storage step at hand.
    storage: Option<u32>,
    totals: (u64, u64),
    others: Option<OthersTcp>,
    welcome_deadline_ns: u64,
    liveness: Liveness,
    decoder: FrameDecoder,
    outbox: Outbox,
    events: VecDeque<AgentEvent>,
}

impl AgentSession {
    /// A session that transmits the preamble and waits for its welcome. `build` must be the
    /// controller's.
    #[must_use]
    pub fn new(build: &str, now_ns: u64) -> Self {
        let mut outbox = Outbox::default();
        outbox.push_bytes(preamble(build));
        Self {
            state: State::AwaitWelcome,
            stage: None,
            port_check: None,
            storage: None,
            totals: (0, 0),
            others: None,
            welcome_deadline_ns: now_ns.saturating_add(WELCOME_DEADLINE_NS),
            liveness: Liveness::new(AGENT_SILENCE_LIMIT_NS, now_ns),
            decoder: FrameDecoder::new(),
            outbox,
            events: VecDeque::new(),
        }
    }

    /// Takes bytes from the controller. Clock probes and heartbeats are answered with `now_ns`, so
    /// read the clock right after the read returned, and write [`AgentSession::poll_transmit`] out
    /// at once.
    pub fn handle_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        if self.state == State::Closed || bytes.is_empty() {
            return;
        }
        self.decoder.push(bytes);
        let mut completed = false;
        while self.state != State::Closed {
            match self.decoder.next() {
                Ok(Some(message)) => {
                    completed = true;
                    self.handle_message(message, now_ns);
                }
                Ok(None) => break,
                Err(error) => self.violation(&error.to_string()),
            }
        }
        let inside_frame = self.decoder.is_inside_frame();
        self.liveness.heard(now_ns, completed, inside_frame);
    }

    /// The link ended.
    pub fn handle_eof(&mut self, _now_ns: u64) {
        if self.state != State::Closed {
            self.close("the link to the controller was closed");
        }
    }

    /// Does what is due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        match self.state {
            State::Closed => {}
            State::AwaitWelcome => {
                if now_ns >= self.welcome_deadline_ns {
                    let seconds = WELCOME_DEADLINE_NS / 1_000_000_000;
                    self.close(&format!("no controller spoke within {seconds} s"));
                }
            }
            State::Preparing | State::Ready | State::Leaving => {
                if let Some(gone) = self.liveness.check(now_ns) {
                    self.close(&gone.reason("the controller", AGENT_SILENCE_LIMIT_NS));
                }
            }
        }
    }

    /// When [`AgentSession::handle_timeout`] wants to be called. `None` when the session is over.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        match self.state {
            State::Closed => None,
            State::AwaitWelcome => Some(self.welcome_deadline_ns),
            State::Preparing | State::Ready | State::Leaving => Some(self.liveness.deadline_ns()),
        }
    }

    /// Next bytes to write. What waits when the session ends may still be written.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop()
    }

    /// Next event.
    pub fn poll_event(&mut self) -> Option<AgentEvent> {
        self.events.pop_front()
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

    /// The engine's payload totals since the agent's start, for the answers to heartbeats.
    pub fn set_totals(&mut self, tx_bytes: u64, rx_bytes: u64) {
        self.totals = (tx_bytes, rx_bytes);
    }

    /// What the host's other TCP connections sent, for the answers to heartbeats.
    pub fn set_others(&mut self, others: Option<OthersTcp>) {
        self.others = others;
    }

    /// Facts are read and the data listener is up on `data_port`.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] unless just welcomed.
    pub fn ready(&mut self, facts: HostFacts, data_port: u16) -> Result<(), CommandError> {
        self.require("ready", State::Preparing)?;
        self.outbox
            .send(&ToController::Ready { facts, data_port })?;
        self.state = State::Ready;
        Ok(())
    }

    /// The offered stage is understood and can start.
    ///
    /// # Errors
    /// [`CommandError::StageOver`] when it is not on offer (aborted meanwhile).
    pub fn accept(&mut self, stage: StageIndex) -> Result<(), CommandError> {
        self.active("accept", stage, StagePhase::Offered)?;
        self.outbox.send(&ToController::StageAccepted { stage })?;
        self.active("accept", stage, StagePhase::Offered)?.phase = StagePhase::Accepted;
        Ok(())
    }

    /// The offered stage cannot run here; `reason` explains why and what would help.
    ///
    /// # Errors
    /// [`CommandError::StageOver`] when it is not on offer (aborted meanwhile).
    pub fn refuse(
        &mut self,
        stage: StageIndex,
        reason: impl Into<String>,
    ) -> Result<(), CommandError> {
        self.active("refuse", stage, StagePhase::Offered)?;
        let reason = reason.into();
        self.outbox
            .send(&ToController::StageRefused { stage, reason })?;
        self.stage = None;
        Ok(())
    }

    /// A round of the running stage is over.
    ///
    /// # Errors
    /// [`CommandError::StageOver`] when the stage is not running (aborted meanwhile),
    /// [`CommandError::Contradiction`] when the round or its flows are not those of the order,
    /// [`CommandError::Frame`] when the report is too large (report the round again with less in
    /// it).
    pub fn report(&mut self, report: RoundReport) -> Result<(), CommandError> {
        let (stage, round) = (report.stage, report.round);
        let active = self.active("report", stage, StagePhase::Running)?;
        active
            .check_report(&report)
            .map_err(CommandError::Contradiction)?;
        let limit = active.report_limit_bytes;
        self.outbox
            .send_within(&ToController::RoundReport(report), limit)?;
        self.active("report", stage, StagePhase::Running)?
            .strike(round);
        Ok(())
    }

    /// How a followed flow goes.
    ///
    /// # Errors
    /// [`CommandError::StageOver`] when the stage is not running (aborted meanwhile),
    /// [`CommandError::Contradiction`] when the round is reported or the flow is not its own.
    pub fn flow_progress(&mut self, progress: FlowProgress) -> Result<(), CommandError> {
        self.active("flow_progress", progress.stage, StagePhase::Running)?
            .check_progress(&progress)
            .map_err(CommandError::Contradiction)?;
        self.outbox.send(&ToController::FlowProgress(progress))
    }

    /// All rounds are reported. `rejected_connections`: those that the data port refused since
    /// the agent's start.
    ///
    /// # Errors
    /// [`CommandError::StageOver`] when the stage is not running (aborted meanwhile),
    /// [`CommandError::Contradiction`] when rounds are unreported.
    pub fn stage_done(
        &mut self,
        stage: StageIndex,
        rejected_connections: u64,
    ) -> Result<(), CommandError> {
        self.active("stage_done", stage, StagePhase::Running)?
            .check_done(stage)
            .map_err(CommandError::Contradiction)?;
        self.outbox.send(&ToController::StageDone {
            stage,
            rejected_connections,
        })?;
        self.stage = None;
        Ok(())
    }

    /// Raw host counters.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] before [`AgentSession::ready`].
    pub fn sample(&mut self, sample: HostSample) -> Result<(), CommandError> {
        if self.state != State::Leaving {
            self.require("sample", State::Ready)?;
        }
        self.outbox.send(&ToController::Sample(sample))
    }

    /// All counters of this host, for who watches it.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] before [`AgentSession::ready`], [`CommandError::Frame`] when it
    /// is too large.
    pub fn reading(&mut self, reading: Box<HostReading>) -> Result<(), CommandError> {
        if self.state != State::Leaving {
            self.require("reading", State::Ready)?;
        }
        self.outbox.send(&ToController::Reading(reading))
    }

    /// The answer to [`AgentEvent::CheckPorts`], in its order.
    ///
    /// # Errors
    /// [`CommandError::Contradiction`] when none is asked for or the number differs.
    pub fn ports_checked(&mut self, answers: Vec<PortAnswer>) -> Result<(), CommandError> {
        self.require("ports_checked", State::Ready)?;
        if self.port_check != Some(answers.len()) {
            return Err(CommandError::Contradiction(format!(
                "{} ports were checked, asked for were {}",
                answers.len(),
                self.port_check.map_or("none".into(), |n| n.to_string()),
            )));
        }
        self.outbox.send(&ToController::PortsChecked { answers })?;
        self.port_check = None;
        Ok(())
    }

    /// The answer to [`AgentEvent::Storage`].
    ///
    /// # Errors
    /// [`CommandError::Contradiction`] when this step is not at hand, [`CommandError::OutOfOrder`]
    /// when the agent is leaving, [`CommandError::Frame`] when it is too large.
    pub fn storage_done(&mut self, report: Box<StorageReport>) -> Result<(), CommandError> {
        self.require("storage_done", State::Ready)?;
        if self.storage != Some(report.step) {
            return Err(CommandError::Contradiction(format!(
                "storage step {} is done, which is not at hand",
                report.step
            )));
        }
        self.outbox.send(&ToController::StorageReport(report))?;
        self.storage = None;
        Ok(())
    }

    /// How the step at hand goes; of one that is over nothing is sent.
    ///
    /// # Errors
    /// [`CommandError::OutOfOrder`] when the agent is leaving, [`CommandError::Frame`] when it is
    /// too large.
    pub fn storage_progress(&mut self, step: u32, words: String) -> Result<(), CommandError> {
        self.require("storage_progress", State::Ready)?;
        match self.storage == Some(step) {
            true => {
                let said = ToController::StorageProgress { step, words };
                self.outbox.send(&said)
            }
            false => Ok(()),
        }
    }

    /// Something went wrong that is not a flow's failure.
    ///
    /// # Errors
    /// [`CommandError::Closed`] when the session is over.
    pub fn fault(&mut self, message: impl Into<String>) -> Result<(), CommandError> {
        self.require_open("fault")?;
        let message = message.into();
        self.outbox.send(&ToController::Fault { message })
    }

    /// Everything is stopped; ends the session. Write the rest of [`AgentSession::poll_transmit`],
    /// then exit.
    ///
    /// # Errors
    /// [`CommandError::Closed`] when the session is over.
    pub fn farewell(&mut self) -> Result<(), CommandError> {
        self.require_open("farewell")?;
        self.state = State::Closed;
        self.stage = None;
        self.outbox.send(&ToController::Farewell)
    }

    fn handle_message(&mut self, message: ToAgent, now_ns: u64) {
        match message {
            ToAgent::Goodbye if self.state != State::Leaving => self.leave(),
            ToAgent::Welcome(welcome) if self.state == State::AwaitWelcome => {
                self.state = State::Preparing;
                self.event(AgentEvent::Welcomed(welcome));
            }
            ToAgent::Heartbeat if self.is_welcomed() => self.answer_heartbeat(now_ns),
            ToAgent::ClockProbe { sequence } if self.is_welcomed() => {
                self.answer(&ToController::ClockReply {
                    sequence,
                    agent_ns: now_ns,
                });
            }
            ToAgent::Stage(order) if self.is_free() => self.offer(order),
            ToAgent::Go { stage, timeline } => self.go(stage, timeline),
            ToAgent::Retime { stage, timeline } if self.is_welcomed() => {
                self.retime(stage, timeline);
            }
            ToAgent::Abort if self.is_welcomed() => self.abort(),
            ToAgent::CheckPorts(check) if self.is_free() => {
                self.port_check = Some(check.peers.len());
                self.event(AgentEvent::CheckPorts(check));
            }
            ToAgent::Storage(order) if self.is_free() => {
                self.storage = Some(order.step);
                self.event(AgentEvent::Storage(order));
            }
            unexpected => {
                let what = unexpected.name();
                let state = self.state_words();
                self.violation(&format!("the controller sent {what} while {state}"));
            }
        }
    }

    fn leave(&mut self) {
        self.state = State::Leaving;
        self.stage = None;
        self.port_check = None;
        self.storage = None;
        self.forget_overtaken();
        self.event(AgentEvent::Goodbye);
    }

    fn answer_heartbeat(&mut self, now_ns: u64) {
        let (tx_bytes, rx_bytes) = self.totals;
        self.answer(&ToController::Alive {
            agent_ns: now_ns,
            tx_bytes,
            rx_bytes,
            others: self.others,
        });
    }

    fn offer(&mut self, order: StageOrder) {
        match ActiveStage::new(&order) {
            Ok(active) => {
                self.stage = Some(active);
                self.event(AgentEvent::Stage(order));
            }
            Err(reason) => self.violation(&reason),
        }
    }

    fn go(&mut self, stage: StageIndex, timeline: Timeline) {
        match &mut self.stage {
            Some(active) if active.stage == stage && active.phase == StagePhase::Accepted => {
                active.phase = StagePhase::Running;
                self.event(AgentEvent::Go { stage, timeline });
            }
            _ => self.violation(&format!(
                "the controller started stage {}, which was not accepted",
                stage.0
            )),
        }
    }

    /// It may cross the end of its stage, and is then of no effect.
    fn retime(&mut self, stage: StageIndex, timeline: Timeline) {
        if self.stage() == Some((stage, StagePhase::Running)) {
            self.event(AgentEvent::Retime(timeline));
        }
    }

    /// An abort may cross the end of its stage, and is then of no effect.
    fn abort(&mut self) {
        if self.storage.is_some() {
            self.event(AgentEvent::Abort);
            return;
        }
        if self.stage.take().is_none() {
            return;
        }
        let unseen = |e: &AgentEvent| matches!(e, AgentEvent::Stage(_));
        let was_seen = !self.events.iter().any(unseen);
        let is_of_stage = |e: &AgentEvent| {
            matches!(
                e,
                AgentEvent::Stage(_) | AgentEvent::Go { .. } | AgentEvent::Retime(_)
            )
        };
        self.events.retain(|e| !is_of_stage(e));
        if was_seen {
            self.event(AgentEvent::Abort);
        }
    }

    /// Drops requests that the caller has not seen and could not answer any more.
    fn forget_overtaken(&mut self) {
        self.events
            .retain(|e| matches!(e, AgentEvent::Abort | AgentEvent::Goodbye));
    }

    fn answer(&mut self, message: &ToController) {
        if let Err(error) = self.outbox.send(message) {
            self.close(&error.to_string());
        }
    }

    fn event(&mut self, event: AgentEvent) {
        if self.events.len() >= MAX_WAITING_EVENTS {
            self.violation("the controller sent more than this agent can take");
            return;
        }
        self.events.push_back(event);
    }

    /// The controller broke the protocol: report it, as it may be a defect that somebody wants to
    /// find.
    fn violation(&mut self, reason: &str) {
        // When even this does not fit, the end of the link is enough.
        let _ = self.outbox.send(&ToController::Fault {
            message: format!("the agent gave up: {reason}"),
        });
        self.close(reason);
    }

    fn close(&mut self, reason: &str) {
        self.state = State::Closed;
        self.stage = None;
        self.forget_overtaken();
        self.events.push_back(AgentEvent::ControllerLost {
            reason: text::printable(reason),
        });
    }

    fn is_welcomed(&self) -> bool {
        matches!(self.state, State::Preparing | State::Ready | State::Leaving)
    }

    fn is_free(&self) -> bool {
        let nothing_at_hand =
            self.stage.is_none() && self.port_check.is_none() && self.storage.is_none();
        self.state == State::Ready && nothing_at_hand
    }

    fn active(
        &mut self,
        command: &'static str,
        stage: StageIndex,
        phase: StagePhase,
    ) -> Result<&mut ActiveStage, CommandError> {
        self.require_open(command)?;
        match &mut self.stage {
            Some(active) if active.stage == stage && active.phase == phase => Ok(active),
            _ => Err(CommandError::StageOver { stage }),
        }
    }

    fn require(&self, command: &'static str, state: State) -> Result<(), CommandError> {
        self.require_open(command)?;
        if self.state == state {
            return Ok(());
        }
        Err(CommandError::OutOfOrder {
            command,
            state: self.state_words(),
        })
    }

    fn require_open(&self, command: &'static str) -> Result<(), CommandError> {
        match self.state {
            State::Closed => Err(CommandError::Closed { command }),
            _ => Ok(()),
        }
    }

    fn state_words(&self) -> &'static str {
        match (self.state, &self.stage) {
            (State::AwaitWelcome, _) => "the agent waits for its welcome",
            (State::Preparing, _) => "the agent prepares",
            (State::Ready, Some(_)) => "the agent has a stage at hand",
            (State::Ready, None) if self.port_check.is_some() => "the agent checks ports",
            (State::Ready, None) if self.storage.is_some() => {
                "the agent has a storage step at hand"
            }
            (State::Ready, None) => "the agent is ready",
            (State::Leaving, _) => "the agent is leaving",
            (State::Closed, _) => "the session is over",
        }
    }
}

#[cfg(test)]
mod tests;
