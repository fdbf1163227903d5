//! A long stage of two hosts whose clocks drift apart: the real sessions, the real times of rounds
//! and the real decision what a peer's stop means, in virtual time.

use super::*;
use ew_engine::{AFTER_WINDOW_NS, cut_ns};
use ew_model::facts::HostFacts;
use ew_model::inventory::HostId;
use ew_proto::fuzzing::seeds::{stage_order, welcome};
use ew_proto::{AgentEvent, AgentSession, ControllerEvent, ControllerSession};
use std::collections::VecDeque;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const TICK_NS: u64 = MS;
/// From when on the stage runs, on the controller's clock.
const START_NS: u64 = 10 * S;
const LONG_NS: u64 = 1800 * S;
/// What a message takes on an idle link.
const IDLE_NS: u64 = 50_000;
/// And at most longer while flows load it.
const QUEUE_NS: u64 = 8 * MS;

/// A host, and both ends of its control link.
struct Drifting {
    controller: ControllerSession,
    agent: AgentSession,
    ahead_ns: i128,
    rate_ppb: i128,
    to_agent: VecDeque<(u64, Vec<u8>)>,
    to_controller: VecDeque<(u64, Vec<u8>)>,
    dice: u64,
    /// Whether it obeys the controller's timelines, or knows a start alone.
    follows: bool,
    timeline: Option<Timeline>,
    specs: Vec<RoundSpec>,
}

/// What became of a round's flow.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    whole: usize,
    cut: usize,
    lost: usize,
    /// How far apart the ends began, at most.
    apart_ns: u64,
    /// What the deepest cut took.
    cut_off_ns: u64,
}

impl Drifting {
    /// By so much faster than the controller's clock, and ready.
    fn new(host: u32, rate_ppb: i128, follows: bool) -> Self {
        Self {
            controller: ControllerSession::new("build", HostId(host), 0),
            agent: AgentSession::new("build", 0),
            ahead_ns: i128::from(500 * S) * (1 + i128::from(host)),
            rate_ppb,
            to_agent: VecDeque::new(),
            to_controller: VecDeque::new(),
            dice: u64::from(host) + 1,
            follows,
            timeline: None,
            specs: Vec::new(),
        }
    }

    fn shown_ns(&self, now_ns: u64) -> u64 {
        let now_ns = i128::from(now_ns);
        (self.ahead_ns + now_ns + now_ns * self.rate_ppb / 1_000_000_000) as u64
    }

    fn true_ns(&self, shown_ns: u64) -> u64 {
        let passed_ns = i128::from(shown_ns) - self.ahead_ns;
        (passed_ns * 1_000_000_000 / (1_000_000_000 + self.rate_ppb)) as u64
    }

    /// Load makes queues in one direction or the other.
    fn delay_ns(&mut self, is_loaded: bool) -> u64 {
        // Knuth's MMIX, as a linear congruential generator.
        let product = self.dice.wrapping_mul(6_364_136_223_846_793_005);
        self.dice = product.wrapping_add(1_442_695_040_888_963_407);
        let queue_ns = (self.dice >> 33) % QUEUE_NS;
        IDLE_NS + if is_loaded { queue_ns } else { queue_ns / 400 }
    }

    fn tick(&mut self, now_ns: u64, order: &StageOrder, is_loaded: bool) {
        if self
            .controller
            .poll_timeout()
            .is_some_and(|at_ns| at_ns <= now_ns)
        {
            self.controller.handle_timeout(now_ns);
        }
        self.send(now_ns, is_loaded);
        while let Some((at_ns, bytes)) = self.to_agent.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            self.agent.handle_bytes(&bytes, self.shown_ns(at_ns));
            while let Some(event) = self.agent.poll_event() {
                self.on_event(event);
            }
            self.send(at_ns, is_loaded);
        }
        let is_due = |(at_ns, _): &mut (u64, Vec<u8>)| *at_ns <= now_ns;
        while let Some((at_ns, bytes)) = self.to_controller.pop_front_if(is_due) {
            self.controller.handle_bytes(&bytes, at_ns);
            while let Some(event) = self.controller.poll_event() {
                match event {
                    ControllerEvent::Hello => self.controller.welcome(welcome()).unwrap(),
                    ControllerEvent::Lost { reason } => panic!("{reason}"),
                    _ => {}
                }
            }
            self.send(at_ns, is_loaded);
        }
        self.hand_over(now_ns, order);
    }

    /// Messages keep their order.
    fn send(&mut self, now_ns: u64, is_loaded: bool) {
        while let Some(bytes) = self.controller.poll_transmit() {
            let last_ns = self.to_agent.back().map_or(0, |(at_ns, _)| *at_ns);
            let at_ns = last_ns.max(now_ns + self.delay_ns(is_loaded));
            self.to_agent.push_back((at_ns, bytes));
        }
        while let Some(bytes) = self.agent.poll_transmit() {
            let last_ns = self.to_controller.back().map_or(0, |(at_ns, _)| *at_ns);
            let at_ns = last_ns.max(now_ns + self.delay_ns(is_loaded));
            self.to_controller.push_back((at_ns, bytes));
        }
    }

    fn on_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::Welcomed(_) => self.agent.ready(HostFacts::default(), 1).unwrap(),
            AgentEvent::Stage(order) => self.agent.accept(order.stage).unwrap(),
            AgentEvent::Go { timeline, .. } if self.follows => self.timeline = Some(timeline),
            AgentEvent::Go { timeline, .. } => {
                self.timeline = Some(Timeline::from_start(timeline.start_ns));
            }
            AgentEvent::Retime(timeline) if self.follows => self.timeline = Some(timeline),
            AgentEvent::Retime(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// As `walk` does.
    fn hand_over(&mut self, now_ns: u64, order: &StageOrder) {
        let next = order.rounds.get(self.specs.len());
        if let (Some(timeline), Some(round)) = (self.timeline, next)
            && self.shown_ns(now_ns) >= hand_over_ns(order, round, timeline)
        {
            self.specs.push(spec(order, round, timeline));
        }
    }
}

/// Rounds of 300 ms windows, or one window, for half an hour.
fn long_order(is_one_window: bool) -> StageOrder {
    let rounds = if is_one_window { 1 } else { 3000 };
    let mut order = stage_order(0, rounds, 1);
    (order.gap_ns, order.warm_up_ns) = (200 * MS, 100 * MS);
    order.duration_ns = LONG_NS / u64::from(rounds) - order.gap_ns - order.warm_up_ns;
    let round_ns = LONG_NS / u64::from(rounds);
    for (number, round) in (0..).zip(&mut order.rounds) {
        round.offset_ns = number * round_ns;
    }
    order
}

/// Runs a stage between a host whose clock is right and one that drifts.
fn run_apart(rate_ppb: i128, order: &StageOrder, follows: bool) -> Outcome {
    let mut hosts = [
        Drifting::new(0, 0, follows),
        Drifting::new(1, rate_ppb, follows),
    ];
    let end_ns = START_NS + LONG_NS + 10 * S;
    for now_ns in (TICK_NS..end_ns).step_by(TICK_NS as usize) {
        let in_round_ns = now_ns.saturating_sub(START_NS) % (600 * MS);
        let is_loaded = (1..400 * MS).contains(&in_round_ns);
        for host in &mut hosts {
            match now_ns {
                ns if ns == 2 * S => host.controller.sync(now_ns).unwrap(),
                ns if ns == 8 * S => host.controller.send_stage(order.clone()).unwrap(),
                ns if ns == 9 * S => host.controller.go(order.stage, START_NS).unwrap(),
                _ => {}
            }
            host.tick(now_ns, order, is_loaded);
        }
    }
    let mut outcome = Outcome::default();
    let [sender, receiver] = &hosts;
    assert_eq!(sender.specs.len(), order.rounds.len());
    assert_eq!(receiver.specs.len(), order.rounds.len());
    for (sent, received) in sender.specs.iter().zip(&receiver.specs) {
        let begun = [
            sender.true_ns(sent.start_ns),
            receiver.true_ns(received.start_ns),
        ];
        outcome.apart_ns = outcome.apart_ns.max(begun[0].abs_diff(begun[1]));
        outcome.note((sender, sent), (receiver, received));
    }
    outcome
}

impl Outcome {
    /// Each end stops a little after its own window; the other one's must have ended, or is cut.
    fn note(&mut self, sender: (&Drifting, &RoundSpec), receiver: (&Drifting, &RoundSpec)) {
        let stopped_at = |(host, spec): (&Drifting, &RoundSpec), other: &Drifting| {
            other.shown_ns(host.true_ns(spec.window_end_ns() + AFTER_WINDOW_NS))
        };
        let left = |(host, spec): (&Drifting, &RoundSpec), peer| {
            let window_ns = spec.window_start_ns..spec.window_end_ns();
            let cut_at_ns = cut_ns(&window_ns, stopped_at(peer, host))?;
            Some(window_ns.end - cut_at_ns)
        };
        match (left(sender, receiver), left(receiver, sender)) {
            (Some(0), Some(0)) => self.whole += 1,
            (Some(at_sender_ns), Some(at_receiver_ns)) => {
                self.cut += 1;
                let deeper_ns = at_sender_ns.max(at_receiver_ns);
                self.cut_off_ns = self.cut_off_ns.max(deeper_ns);
            }
            _ => self.lost += 1,
        }
    }
}

#[test]
fn clocks_that_drift_apart_for_half_an_hour_lose_no_flow() {
    let order = long_order(false);
    for rate_ppb in [100_000, -100_000] {
        let outcome = run_apart(rate_ppb, &order, true);
        assert_eq!((outcome.whole, outcome.cut, outcome.lost), (3000, 0, 0));
        assert!(outcome.apart_ns < 2 * MS, "{outcome:?}");
    }
}

/// What the same half hour was without: the test can fail.
#[test]
fn hosts_that_do_not_follow_lose_flows() {
    let outcome = run_apart(100_000, &long_order(false), false);
    assert!(outcome.lost > 1000 && outcome.cut > 500, "{outcome:?}");
}

#[test]
fn one_window_of_half_an_hour_is_cut_at_most_a_little() {
    for rate_ppb in [100_000, -100_000] {
        let outcome = run_apart(rate_ppb, &long_order(true), false);
        assert_eq!(outcome.lost, 0);
        assert!(outcome.cut_off_ns < 200 * MS, "{outcome:?}");
    }
}
