//! A run whose world is simulated: the same controller, on the runtime and the clock of who calls.

use crate::job::Job;
use crate::journal::{Journal, JournalEnds, max_waiting_bytes};
use crate::outside::{Clock, Interrupts, Outside};
use crate::queue::EventReceiver;
use crate::recorder::Recorder;
use crate::run::{Controlled, Work, control_from};
use crate::run_error::RunError;
use ew_model::event::RecordedEvent;
use ew_model::run::Outcome;
use ew_store::{EventWriter, StoreError};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

/// How often disk and terminal look for more.
const LOOK: Duration = Duration::from_millis(500);

/// What a simulated run takes from outside.
#[derive(Debug)]
pub struct Surroundings {
    /// The run's secret, which its pauses depend on, too.
    pub secret: [u8; 16],
    /// The user's wishes to end; at most one waits.
    pub interrupts: mpsc::Receiver<()>,
    /// Takes the record, in place of a run directory's.
    pub record: EventWriter,
    /// Of who takes the record.
    pub disk: Pauses,
    /// Of who watches.
    pub terminal: Pauses,
    /// What may wait for each of the two, where it is not as in any run.
    pub max_waiting_bytes: Option<usize>,
}

/// When somebody takes nothing, since the run's begin.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// In any order.
    pub stalls: Vec<Range<Duration>>,
}

/// A simulated run that is over.
#[derive(Debug)]
pub struct Rehearsed {
    /// How it went.
    pub driven: Result<Outcome, RunError>,
    /// How long it took, without what disk and terminal still had to take.
    pub took: Duration,
    /// What the disk was given, in order.
    pub events: Vec<Arc<RecordedEvent>>,
    /// The first failure to write it.
    pub unwritten: Option<StoreError>,
    /// What the terminal was given, in order.
    pub shown: Vec<Arc<RecordedEvent>>,
    /// The most that waited for the disk, and for the terminal, in bytes.
    pub most_waiting: [usize; 2],
}

/// Plans, launches, drives and tears down, on the runtime at hand, which has its time paused and
/// one thread.
///
/// # Errors
/// [`RunError`] when there is no run at all.
pub async fn rehearse(job: &Job, surroundings: Surroundings) -> Result<Rehearsed, RunError> {
    let plan = ew_plan::plan(&job.scenario, &job.inventory, job.seed)?;
    let (clock, began) = (Clock::simulated(), Instant::now());
    let limit = surroundings.max_waiting_bytes;
    let (journal, ends) = Journal::new(clock, limit.unwrap_or_else(|| max_waiting_bytes(&plan)));
    let outside = Outside {
        clock,
        secret: surroundings.secret,
        interrupts: Interrupts::Simulated(surroundings.interrupts),
    };
    let JournalEnds {
        recorded,
        shown,
        to_shown,
    } = ends;
    let (mut record, disk) = (surroundings.record, surroundings.disk);
    let disk = tokio::spawn(async move {
        let mut recorder = Recorder::new(&mut record, to_shown);
        let taken = disk.take_all(recorded, |event| recorder.take(event)).await;
        (taken, recorder.close())
    });
    let terminal = surroundings.terminal;
    let terminal = tokio::spawn(async move { terminal.take_all(shown, |_| ()).await });
    let id = "rehearsed".to_owned();
    let controlled = control_from(job, Work::Flows, id, plan, journal, outside).await?;
    let (Controlled { driven, .. }, took) = (controlled, began.elapsed());
    let (kept, unwritten) = disk.await.map_err(std::io::Error::other)?;
    let shown = terminal.await.map_err(std::io::Error::other)?;
    Ok(Rehearsed {
        driven,
        took,
        unwritten,
        most_waiting: [kept.most_waiting, shown.most_waiting],
        events: kept.events,
        shown: shown.events,
    })
}

/// What somebody took.
#[derive(Debug, Default)]
struct Taken {
    events: Vec<Arc<RecordedEvent>>,
    most_waiting: usize,
}

impl Pauses {
    /// Until nobody sends any more.
    async fn take_all(
        self,
        mut from: EventReceiver,
        mut take: impl FnMut(&RecordedEvent),
    ) -> Taken {
        let (began, mut taken) = (Instant::now(), Taken::default());
        loop {
            self.while_stalled(began).await;
            taken.most_waiting = taken.most_waiting.max(from.waiting_bytes());
            match from.poll() {
                Ok(event) => {
                    take(&event);
                    taken.events.push(event);
                }
                Err(TryRecvError::Empty) => sleep(LOOK).await,
                Err(TryRecvError::Disconnected) => return taken,
            }
        }
    }

    async fn while_stalled(&self, began: Instant) {
        let stalled = |stall: &&Range<Duration>| stall.contains(&began.elapsed());
        while let Some(stall) = self.stalls.iter().find(stalled) {
            sleep_until(began + stall.end).await;
        }
    }
}
