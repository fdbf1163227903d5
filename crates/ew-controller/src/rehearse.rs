//! A run whose world is simulated: the same controller, on the runtime and the clock of who calls.

use crate::journal::{Journal, JournalEnds};
use crate::outside::{Clock, Interrupts, Outside};
use crate::run::{Controlled, Job, RunError, Work, control_from};
use ew_model::event::RecordedEvent;
use ew_model::run::Outcome;
use std::sync::Arc;
use tokio::sync::mpsc;

/// What a simulated run takes from outside.
#[derive(Debug)]
pub struct Surroundings {
    /// The run's secret, which its pauses depend on, too.
    pub secret: [u8; 16],
    /// The user's wishes to end; at most one waits.
    pub interrupts: mpsc::Receiver<()>,
}

/// A simulated run that is over.
#[derive(Debug)]
pub struct Rehearsed {
    /// How it went.
    pub driven: Result<Outcome, RunError>,
    /// What a run directory would have, in order.
    pub events: Vec<Arc<RecordedEvent>>,
}

/// Plans, launches, drives and tears down, on the runtime at hand, which has its time paused and
/// one thread. Nobody reads what happens before the end: the disk and the terminal of a simulated
/// run are stalled all the time.
///
/// # Errors
/// [`RunError`] when there is no run at all.
pub async fn rehearse(job: &Job, surroundings: Surroundings) -> Result<Rehearsed, RunError> {
    let plan = ew_plan::plan(&job.scenario, &job.inventory, job.seed)?;
    let clock = Clock::simulated();
    let (journal, ends) = Journal::new(clock);
    let outside = Outside {
        clock,
        secret: surroundings.secret,
        interrupts: Interrupts::Simulated(surroundings.interrupts),
    };
    let id = "rehearsed".to_owned();
    let controlled = control_from(job, Work::Flows, id, plan, journal, outside).await?;
    let Controlled { driven, .. } = controlled;
    let JournalEnds { recorded, .. } = ends;
    Ok(Rehearsed {
        driven,
        events: recorded.collect(),
    })
}
