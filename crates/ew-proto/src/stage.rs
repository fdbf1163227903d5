//! The one stage at hand, as both sides keep it.

use crate::contradiction::Contradiction;
use crate::limits::report_limit_bytes;
use crate::message::{FlowProgress, RoundReport, StageOrder};
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use std::collections::BTreeMap;

/// How far the stage at hand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagePhase {
    /// Sent, not answered.
    Offered,
    /// Accepted, not started.
    Accepted,
    /// Go was given.
    Running,
}

/// A stage between its order and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ActiveStage {
    pub(crate) stage: StageIndex,
    pub(crate) phase: StagePhase,
    /// Longest report of any of its rounds.
    pub(crate) report_limit_bytes: usize,
    /// Rounds without a report, with the flows of the order.
    unreported: BTreeMap<RoundIndex, Vec<FlowId>>,
}

impl ActiveStage {
    /// `Err` explains what is wrong with the order.
    pub(crate) fn new(order: &StageOrder) -> Result<Self, Contradiction> {
        let mut unreported = BTreeMap::new();
        for round in &order.rounds {
            let flows = round.flows.iter().map(|f| f.flow).collect();
            if unreported.insert(round.round, flows).is_some() {
                return Err(Contradiction::RoundTwice {
                    stage: order.stage,
                    round: round.round,
                });
            }
        }
        Ok(Self {
            stage: order.stage,
            phase: StagePhase::Offered,
            report_limit_bytes: report_limit_bytes(order),
            unreported,
        })
    }

    /// `Err` explains how the report contradicts the order.
    pub(crate) fn check_report(&self, report: &RoundReport) -> Result<(), Contradiction> {
        let (stage, round) = (report.stage, report.round);
        if stage != self.stage || self.phase != StagePhase::Running {
            return Err(Contradiction::NotRunning { stage, round });
        }
        let Some(ordered) = self.unreported.get(&round) else {
            return Err(Contradiction::NotAwaited { stage, round });
        };
        let mut ordered = ordered.iter();
        if let Some(stray) = report.flows.iter().find(|f| !ordered.any(|o| *o == f.flow)) {
            let flow = stray.flow;
            return Err(Contradiction::StrayFlow { stage, round, flow });
        }
        Ok(())
    }

    /// `Err` explains how what is reported for a flow contradicts the order.
    pub(crate) fn check_progress(&self, progress: &FlowProgress) -> Result<(), Contradiction> {
        let round = self.unreported.get(&progress.round);
        let is_running = progress.stage == self.stage && self.phase == StagePhase::Running;
        if is_running && round.is_some_and(|flows| flows.contains(&progress.flow)) {
            return Ok(());
        }
        Err(Contradiction::StrayProgress {
            stage: progress.stage,
            round: progress.round,
            flow: progress.flow,
        })
    }

    /// Strikes a reported round off.
    pub(crate) fn strike(&mut self, round: RoundIndex) {
        self.unreported.remove(&round);
    }

    /// `Err` explains why the stage is not over.
    pub(crate) fn check_done(&self, stage: StageIndex) -> Result<(), Contradiction> {
        if stage != self.stage || self.phase != StagePhase::Running {
            return Err(Contradiction::DoneNotRunning { stage });
        }
        match self.unreported.len() {
            0 => Ok(()),
            rounds => Err(Contradiction::DoneEarly { stage, rounds }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::seeds::{progress, report, stage_order};

    #[test]
    fn each_ordered_round_is_reported_once() {
        let order = stage_order(3, 2, 2);
        let mut active = ActiveStage::new(&order).unwrap();
        assert!(
            active.check_report(&report(&order, 0)).is_err(),
            "not running"
        );
        active.phase = StagePhase::Running;
        assert!(active.check_done(StageIndex(3)).is_err());
        active.check_report(&report(&order, 0)).unwrap();
        active.strike(RoundIndex(0));
        assert!(active.check_report(&report(&order, 0)).is_err(), "twice");
        active.strike(RoundIndex(1));
        active.check_done(StageIndex(3)).unwrap();
        assert!(active.check_done(StageIndex(4)).is_err());
    }

    #[test]
    fn flows_must_be_those_of_the_order() {
        let order = stage_order(0, 1, 3);
        let running = || {
            let mut active = ActiveStage::new(&order).unwrap();
            active.phase = StagePhase::Running;
            active
        };
        let mut swapped = report(&order, 0);
        swapped.flows.swap(0, 1);
        assert!(running().check_report(&swapped).is_err());
        let mut part = report(&order, 0);
        part.flows.remove(1);
        running().check_report(&part).unwrap();
        let mut foreign = report(&order, 0);
        foreign.flows[0].flow = FlowId(999);
        assert!(running().check_report(&foreign).is_err());
    }

    #[test]
    fn progress_is_of_rounds_that_run() {
        let order = stage_order(3, 2, 2);
        let mut active = ActiveStage::new(&order).unwrap();
        assert!(active.check_progress(&progress(&order)).is_err(), "not yet");
        active.phase = StagePhase::Running;
        active.check_progress(&progress(&order)).unwrap();
        let foreign = FlowProgress {
            flow: FlowId(3),
            ..progress(&order)
        };
        assert!(active.check_progress(&foreign).is_err(), "another round's");
        active.strike(RoundIndex(0));
        assert!(active.check_progress(&progress(&order)).is_err(), "over");
    }

    #[test]
    fn a_round_cannot_be_ordered_twice() {
        let mut order = stage_order(0, 2, 1);
        order.rounds[1].round = order.rounds[0].round;
        assert!(ActiveStage::new(&order).is_err());
    }
}
