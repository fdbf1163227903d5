//! How what one side says contradicts what was ordered.

use ew_model::plan::{FlowId, RoundIndex, StageIndex};

/// What contradicts an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// An order with a round that it has already.
    #[error("the order of stage {} contains round {} twice", stage.0, round.0)]
    RoundTwice {
        /// Of the order.
        stage: StageIndex,
        /// Which.
        round: RoundIndex,
    },
    /// An answer to an order that was not given, or had been answered.
    #[error("stage {} was {verb}, which was not offered", stage.0)]
    NotOffered {
        /// Which.
        stage: StageIndex,
        /// Accepted or refused.
        verb: &'static str,
    },
    /// A report of a round of another stage, or before its start.
    #[error("round {} of stage {} was reported, which is not running", round.0, stage.0)]
    NotRunning {
        /// Of the report.
        stage: StageIndex,
        /// Of the report.
        round: RoundIndex,
    },
    /// A report of a round that nobody waits for.
    #[error(
        "round {} of stage {} was reported, which was not ordered or had been reported before",
        round.0, stage.0
    )]
    NotAwaited {
        /// Of the report.
        stage: StageIndex,
        /// Of the report.
        round: RoundIndex,
    },
    /// A report with a flow that is not the order's, or not in its place.
    #[error(
        "the report of round {} of stage {} contains flow {} against the order",
        round.0, stage.0, flow.0
    )]
    StrayFlow {
        /// Of the report.
        stage: StageIndex,
        /// Of the report.
        round: RoundIndex,
        /// Which.
        flow: FlowId,
    },
    /// Progress of a flow that does not run.
    #[error(
        "progress was reported for flow {} in round {} of stage {}, which does not run",
        flow.0, round.0, stage.0
    )]
    StrayProgress {
        /// As reported.
        stage: StageIndex,
        /// As reported.
        round: RoundIndex,
        /// As reported.
        flow: FlowId,
    },
    /// The end of a stage that does not run.
    #[error("stage {} was declared done, which is not running", stage.0)]
    DoneNotRunning {
        /// Which.
        stage: StageIndex,
    },
    /// The end of a stage before all its reports.
    #[error("stage {} was declared done with {rounds} rounds unreported", stage.0)]
    DoneEarly {
        /// Which.
        stage: StageIndex,
        /// How many are missing.
        rounds: usize,
    },
    /// A report of a storage step that nobody waits for.
    #[error("storage step {step} was reported, which is not at hand")]
    StepNotAtHand {
        /// Which.
        step: u32,
    },
    /// A report of another storage step than the ordered one.
    #[error("storage step {step} was reported, ordered was {ordered}")]
    OtherStep {
        /// As reported.
        step: u32,
        /// As ordered.
        ordered: u32,
    },
    /// A report with a file that is not the order's, or with one twice.
    #[error("the report of a storage step contains file {file} against the order")]
    StrayFile {
        /// Its number.
        file: u32,
    },
    /// Answers about ports that were not asked for, or not as many.
    #[error("{answers} ports were checked, asked for were {asked}")]
    OtherPorts {
        /// How many were answered.
        answers: usize,
        /// How many were asked for.
        asked: usize,
    },
}
