//! One world from its beginning to its end.

use crate::disk::SimulatedFile;
use crate::draw::Drawn;
use crate::faults::Fault;
use crate::process::{self, BUILD};
use crate::world::{Seen, World};
use ew_controller::{
    Job, LaunchOptions, Pauses, RelayChoice, RunError, Surroundings, rehearse as rehearse_job,
};
use ew_fleet::{AgentCommand, FanOut, InProcess, InProcessLaunch, LaunchError, Launcher, Step};
use ew_model::Host;
use ew_model::event::RecordedEvent;
use ew_model::inventory::Inventory;
use ew_model::run::Outcome;
use ew_store::{EventWriter, StoreError};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// After the controller's end no agent is left.
const GONE_WITHIN: Duration = Duration::from_secs(6);
/// As by default on the command line.
const LAUNCH_LIMIT: Duration = Duration::from_secs(30);
const SAMPLE_INTERVAL_NS: u64 = 1_000_000_000;

/// What a world left behind.
#[derive(Debug)]
pub struct Trace {
    /// Which world it was.
    pub drawn: Drawn,
    /// Its hosts.
    pub inventory: Inventory,
    /// How the run went.
    pub driven: Result<Outcome, RunError>,
    /// What the disk was given, in order.
    pub events: Vec<Arc<RecordedEvent>>,
    /// `events.jsonl`.
    pub file: Vec<u8>,
    /// The first failure to write it.
    pub unwritten: Option<StoreError>,
    /// What the terminal was given, in order.
    pub shown: Vec<Arc<RecordedEvent>>,
    /// The most that waited for the disk, and for the terminal, in bytes.
    pub most_waiting: [usize; 2],
    /// The world's time at the end of the controller.
    pub took_ns: u64,
    /// Agents that were there some seconds later.
    pub(crate) left: BTreeSet<ew_model::HostId>,
    pub(crate) seen: Seen,
}

impl Trace {
    /// The same for the same trace: SHA-256 over all events, in hexadecimal digits.
    ///
    /// # Errors
    /// When an event cannot be written as JSON.
    pub fn hash(&self) -> serde_json::Result<String> {
        let mut hash = Sha256::new();
        for event in &self.events {
            hash.update(serde_json::to_vec(event.as_ref())?);
        }
        let digits = hash.finalize();
        Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Runs the world.
///
/// # Errors
/// When the system gives no runtime, or there is no run at all.
pub fn rehearse(drawn: Drawn) -> Result<Trace, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    runtime.block_on(in_world(drawn))
}

async fn in_world(drawn: Drawn) -> Result<Trace, RunError> {
    let world = Arc::new(World::new(drawn));
    let job = job(&world);
    let file = SimulatedFile::new(&world);
    let rehearsed = rehearse_job(&job, surroundings(&world, &file)).await?;
    // Whoever is still there has lost its controller, and ends by itself.
    tokio::time::sleep(GONE_WITHIN).await;
    let seen = world.seen().clone();
    Ok(Trace {
        drawn: world.drawn.clone(),
        inventory: world.inventory.clone(),
        driven: rehearsed.driven,
        events: rehearsed.events,
        file: file.take(),
        unwritten: rehearsed.unwritten,
        shown: rehearsed.shown,
        most_waiting: rehearsed.most_waiting,
        took_ns: rehearsed.took.as_nanos() as u64,
        left: seen.alive.clone(),
        seen,
    })
}

fn surroundings(world: &Arc<World>, file: &SimulatedFile) -> Surroundings {
    let desk = &world.drawn.desk;
    let pace = |stalls_ns: &[Range<u64>]| {
        let stalls = stalls_ns.iter();
        let stalls = stalls.map(|s| Duration::from_nanos(s.start)..Duration::from_nanos(s.end));
        Pauses {
            stalls: stalls.collect(),
        }
    };
    let file = Box::new(file.clone());
    let hosts = world.inventory.hosts.len();
    Surroundings {
        secret: u128::from(world.drawn.seed).to_le_bytes(),
        interrupts: interrupts(world),
        record: EventWriter::new(file, ew_store::EVENTS_FILE.into(), hosts),
        disk: pace(&desk.disk_stalls_ns),
        terminal: pace(&desk.terminal_stalls_ns),
        max_waiting_bytes: desk.max_waiting_bytes,
    }
}

fn interrupts(world: &Arc<World>) -> mpsc::Receiver<()> {
    let (user, interrupts) = mpsc::channel(1);
    let world = Arc::clone(world);
    tokio::spawn(async move {
        for at_ns in world.drawn.interrupts_ns.clone() {
            world.sleep_until(at_ns).await;
            // The run may be over.
            let _ = user.try_send(());
        }
        std::future::pending::<()>().await;
    });
    interrupts
}

fn job(world: &Arc<World>) -> Job {
    Job {
        scenario: world.drawn.scenario.clone(),
        inventory: world.inventory.clone(),
        seed: world.drawn.seed,
        launcher: Arc::new(SimulatedFleet(Arc::clone(world))),
        options: LaunchOptions {
            build: BUILD.into(),
            data_ports: (crate::machine::DATA_PORT, crate::machine::DATA_PORT),
            sample_interval_ns: SAMPLE_INTERVAL_NS,
            launch_limit: LAUNCH_LIMIT,
            relay: RelayChoice::Never,
            ..LaunchOptions::default()
        },
        runs_dir: PathBuf::new(),
        command: Vec::new(),
        follow_flows: false,
        signals_end_analysis: false,
        detours: BTreeMap::new(),
        node_labels: BTreeMap::new(),
    }
}

/// Launches the world's agents.
struct SimulatedFleet(Arc<World>);

impl Launcher for SimulatedFleet {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn fan_out(&self) -> FanOut {
        FanOut::fixed(64)
    }

    fn in_process(&self) -> Option<&dyn InProcess> {
        Some(self)
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        Err(refused(host, "a simulated host has no processes"))
    }

    fn root_shell(&self, host: &Host) -> Result<std::process::Command, LaunchError> {
        Err(refused(host, "a simulated host has no shell"))
    }
}

impl InProcess for SimulatedFleet {
    fn launch<'a>(&'a self, host: &'a Host, limit: Duration) -> InProcessLaunch<'a> {
        Box::pin(self.launched(host, limit))
    }
}

impl SimulatedFleet {
    async fn launched(
        &self,
        host: &Host,
        limit: Duration,
    ) -> Result<ew_fleet::InProcessLink, LaunchError> {
        let world = &self.0;
        let unknown = || refused(host, "Could not resolve hostname");
        let id = world.host_named(&host.name).ok_or_else(unknown)?;
        let before = {
            let mut seen = world.seen();
            let launches = seen.launches.entry(id).or_default();
            *launches += 1;
            *launches - 1
        };
        let mut takes = Duration::from_nanos(world.drawn.hosts[id.index()].launch_ns);
        for fault in world.faults(id) {
            match *fault {
                Fault::LaunchesSlowly { for_ns } => takes += Duration::from_nanos(for_ns),
                Fault::Refuses { times } if before < times => {
                    tokio::time::sleep(takes).await;
                    return Err(refused(host, "Connection refused"));
                }
                // Like a host that is off.
                Fault::LosesPower { at_ns } if world.now_ns() >= at_ns => {
                    takes += limit;
                }
                _ => {}
            }
        }
        if takes > limit {
            tokio::time::sleep(limit).await;
            return Err(LaunchError::TooLate {
                host: host.name.clone(),
                waited: limit,
                step: Step::Connecting,
                words: String::new(),
            });
        }
        tokio::time::sleep(takes).await;
        Ok(process::start(world, id))
    }
}

fn refused(host: &Host, words: &str) -> LaunchError {
    LaunchError::Ssh {
        host: host.name.clone(),
        words: words.into(),
        hint: None,
    }
}
