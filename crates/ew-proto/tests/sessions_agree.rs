//! Both sessions against each other, over a pipe cut at random, under random commands: whatever
//! commands are taken, neither side may see a broken protocol, and once the pipes are empty both
//! know the same.

use ew_model::facts::{HostFacts, HostSample};
use ew_model::inventory::HostId;
use ew_model::plan::StageIndex;
use ew_proto::fuzzing::seeds::{report, stage_order, welcome};
use ew_proto::message::{PortAnswer, PortCheck, StageOrder};
use ew_proto::{AgentEvent, AgentSession, ControllerEvent, ControllerSession, StagePhase};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Step {
    SendStage(u32, u32),
    Go,
    Abort,
    Sync,
    CheckPorts(usize),
    Goodbye,
    AgentReady,
    AgentAccept,
    AgentRefuse,
    AgentReport,
    AgentDone,
    AgentSample,
    AgentFault,
    AgentPorts,
    AgentFarewell,
    ToAgent(usize),
    ToController(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..3u32, 0..4u32).prop_map(|(stage, rounds)| Step::SendStage(stage, rounds)),
        3 => Just(Step::Go),
        1 => Just(Step::Abort),
        1 => Just(Step::Sync),
        1 => (0..4usize).prop_map(Step::CheckPorts),
        1 => Just(Step::Goodbye),
        2 => Just(Step::AgentReady),
        4 => Just(Step::AgentAccept),
        1 => Just(Step::AgentRefuse),
        4 => Just(Step::AgentReport),
        3 => Just(Step::AgentDone),
        1 => Just(Step::AgentSample),
        1 => Just(Step::AgentFault),
        1 => Just(Step::AgentPorts),
        1 => Just(Step::AgentFarewell),
        12 => (1..200usize).prop_map(Step::ToAgent),
        12 => (1..200usize).prop_map(Step::ToController),
        4 => (1..400u64).prop_map(Step::Wait),
    ]
}

/// Both ends and the bytes between them.
struct Link {
    controller: ControllerSession,
    agent: AgentSession,
    to_agent: VecDeque<u8>,
    to_controller: VecDeque<u8>,
    now_ns: u64,
    /// What the agent side does next, as its engine would know it.
    offered: Option<StageOrder>,
    next_report: usize,
    asked_ports: Option<usize>,
    said_goodbye: bool,
    controller_events: Vec<ControllerEvent>,
    agent_events: Vec<AgentEvent>,
}

impl Link {
    fn new() -> Self {
        Self {
            controller: ControllerSession::new("build", HostId(0), 0),
            agent: AgentSession::new("build", 0),
            to_agent: VecDeque::new(),
            to_controller: VecDeque::new(),
            now_ns: 1,
            offered: None,
            next_report: 0,
            asked_ports: None,
            said_goodbye: false,
            controller_events: vec![],
            agent_events: vec![],
        }
    }

    /// Commands may be refused; a refused one must have no effect.
    fn step(&mut self, step: Step) {
        match step {
            Step::SendStage(stage, rounds) => {
                let _ = self.controller.send_stage(stage_order(stage, rounds, 2));
            }
            Step::Go => {
                let stage = self.controller.stage().map_or(StageIndex(0), |s| s.0);
                let _ = self.controller.go(stage, self.now_ns);
            }
            Step::Abort => {
                let _ = self.controller.abort();
            }
            Step::Sync => {
                let _ = self.controller.sync(self.now_ns);
            }
            Step::CheckPorts(count) => {
                let peers = vec![std::net::SocketAddr::from(([127, 0, 0, 1], 1)); count];
                let _ = self.controller.check_ports(PortCheck {
                    peers,
                    with_udp: false,
                });
            }
            Step::Goodbye => {
                let _ = self.controller.goodbye();
            }
            Step::ToAgent(bytes) => self.deliver_to_agent(bytes),
            Step::ToController(bytes) => self.deliver_to_controller(bytes),
            Step::Wait(ms) => self.wait(ms * 1_000_000),
            agent_step => self.agent_step(agent_step),
        }
        self.pump();
    }

    fn agent_step(&mut self, step: Step) {
        let stage = self.offered.as_ref().map_or(StageIndex(0), |o| o.stage);
        let _ = match step {
            Step::AgentReady => self.agent.ready(HostFacts::default(), 4000),
            Step::AgentAccept => self.agent.accept(stage),
            Step::AgentRefuse => self.agent.refuse(stage, "no iperf3 here"),
            Step::AgentDone => self.agent.stage_done(stage, 0),
            Step::AgentSample => self.agent.sample(HostSample::default()),
            Step::AgentFault => self.agent.fault("odd"),
            Step::AgentPorts => {
                let count = self.asked_ports.unwrap_or(9);
                let reached = PortAnswer::Reached {
                    round_trip_ns: None,
                };
                self.agent.ports_checked(vec![reached; count])
            }
            Step::AgentFarewell if self.said_goodbye => self.agent.farewell(),
            Step::AgentReport => self.agent_report(),
            _ => Ok(()),
        };
    }

    fn agent_report(&mut self) -> Result<(), ew_proto::CommandError> {
        let Some(order) = self.offered.clone() else {
            return Ok(());
        };
        let result = self.agent.report(report(&order, self.next_report));
        self.next_report += usize::from(result.is_ok());
        result
    }

    fn deliver_to_agent(&mut self, bytes: usize) {
        let bytes: Vec<u8> = self
            .to_agent
            .drain(..bytes.min(self.to_agent.len()))
            .collect();
        self.agent.handle_bytes(&bytes, self.now_ns + 5_000_000_000);
    }

    fn deliver_to_controller(&mut self, bytes: usize) {
        let bytes: Vec<u8> = self
            .to_controller
            .drain(..bytes.min(self.to_controller.len()))
            .collect();
        self.controller.handle_bytes(&bytes, self.now_ns);
    }

    /// Time passes; what is on the way arrives before anybody loses patience.
    fn wait(&mut self, ns: u64) {
        self.now_ns += ns;
        self.deliver_to_agent(usize::MAX);
        self.pump();
        self.deliver_to_controller(usize::MAX);
        if self
            .controller
            .poll_timeout()
            .is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            self.controller.handle_timeout(self.now_ns);
        }
    }

    /// Moves what both want to send into the pipes, and notes their events.
    fn pump(&mut self) {
        while let Some(event) = self.controller.poll_event() {
            if event == ControllerEvent::Hello {
                let _ = self.controller.welcome(welcome());
            }
            self.controller_events.push(event);
        }
        while let Some(event) = self.agent.poll_event() {
            match &event {
                AgentEvent::Stage(order) => {
                    let offered = Some((order.stage, StagePhase::Offered));
                    assert_eq!(self.agent.stage(), offered, "can be answered at once");
                    self.offered = Some(order.clone());
                    self.next_report = 0;
                }
                AgentEvent::Go { stage, .. } => {
                    let running = Some((*stage, StagePhase::Running));
                    assert_eq!(self.agent.stage(), running, "can be reported at once");
                }
                AgentEvent::CheckPorts(check) => self.asked_ports = Some(check.peers.len()),
                AgentEvent::Goodbye => self.said_goodbye = true,
                _ => {}
            }
            self.agent_events.push(event);
        }
        self.to_agent
            .extend(std::iter::from_fn(|| self.controller.poll_transmit()).flatten());
        self.to_controller
            .extend(std::iter::from_fn(|| self.agent.poll_transmit()).flatten());
    }

    fn quiesce(&mut self) {
        for _ in 0..200 {
            self.pump();
            self.deliver_to_agent(usize::MAX);
            self.pump();
            self.deliver_to_controller(usize::MAX);
            self.pump();
            if self.to_agent.is_empty() && self.to_controller.is_empty() {
                return;
            }
        }
        panic!("the link does not come to rest");
    }

    fn check(&self) {
        let farewell = self.controller_events.last() == Some(&ControllerEvent::Farewell);
        for event in &self.controller_events {
            assert!(!matches!(event, ControllerEvent::Lost { .. }), "{event:?}");
        }
        for event in &self.agent_events {
            assert!(
                !matches!(event, AgentEvent::ControllerLost { .. }),
                "{event:?}"
            );
        }
        assert_eq!(self.controller.is_closed(), farewell);
        assert_eq!(self.controller.is_closed(), self.agent.is_closed());
        assert_eq!(self.controller.stage(), self.agent.stage());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn both_sides_agree(warm in any::<bool>(), steps in prop::collection::vec(step(), 0..150)) {
        let mut link = Link::new();
        if warm {
            link.quiesce();
            link.step(Step::AgentReady);
            link.quiesce();
        }
        for step in steps {
            link.step(step);
        }
        link.quiesce();
        link.check();
    }
}

#[test]
fn the_random_commands_do_reach_the_end_of_a_stage() {
    let mut link = Link::new();
    link.quiesce();
    for step in [
        Step::AgentReady,
        Step::Sync,
        Step::SendStage(1, 1),
        Step::AgentAccept,
        Step::Go,
        Step::AgentReport,
        Step::AgentDone,
        Step::Goodbye,
        Step::AgentFarewell,
    ] {
        link.step(step);
        link.quiesce();
    }
    link.check();
    let synced = |e: &ControllerEvent| match e {
        ControllerEvent::Synced(estimate) => Some(*estimate),
        _ => None,
    };
    let estimate = link.controller_events.iter().find_map(synced).unwrap();
    assert_eq!(estimate.offset_ns, 5_000_000_000);
    let done = ControllerEvent::StageDone {
        stage: StageIndex(1),
        rejected_connections: 0,
    };
    assert!(link.controller_events.contains(&done));
    assert!(link.controller.is_closed() && link.agent.is_closed());
}

#[test]
fn phases_are_seen_by_both() {
    let mut link = Link::new();
    link.quiesce();
    link.step(Step::AgentReady);
    link.quiesce();
    link.check();
    link.step(Step::SendStage(2, 1));
    link.quiesce();
    assert_eq!(
        link.agent.stage(),
        Some((StageIndex(2), StagePhase::Offered))
    );
    link.check();
    link.step(Step::AgentAccept);
    link.quiesce();
    assert_eq!(
        link.controller.stage(),
        Some((StageIndex(2), StagePhase::Accepted))
    );
    link.check();
}
