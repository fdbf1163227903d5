//! The main flow.

use crate::abort;
use crate::busy_links;
use crate::claim::{check_sharing, claim};
use crate::drive::drive;
use crate::host_limits;
use crate::job::Job;
use crate::journal::{Journal, JournalEnds, max_waiting_bytes};
use crate::launch::{bring_up, check_enough, plan_among};
use crate::load;
use crate::max_rate;
use crate::members::Members;
use crate::missing_tools;
use crate::outside::{Clock, Outside};
use crate::ports;
use crate::recorder::record;
use crate::run_error::RunError;
use crate::storage::{self, StorageTask};
use ew_model::analysis::Analysis;
use ew_model::event::RunEvent;
use ew_model::inventory::Inventory;
use ew_model::plan::Plan;
use ew_model::run::{Outcome, Run, RunManifest};
use ew_store::{RunWriter, StoreError};
use ew_sys::clock;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

/// A run that took place.
#[derive(Debug)]
pub struct Finished {
    /// The run directory.
    pub dir: PathBuf,
    /// What it reports.
    pub analysis: Analysis,
    /// Whether the user cut it short.
    pub interrupted: bool,
    /// The first failure to write the run directory: the analysis is of what could be written.
    pub unwritten: Option<StoreError>,
}

/// A storage run that took place.
#[derive(Debug)]
pub struct StoredRun {
    /// The run directory.
    pub dir: PathBuf,
    /// Its content.
    pub run: Run,
    /// Whether the user cut it short.
    pub interrupted: bool,
    /// The first failure to write the run directory.
    pub unwritten: Option<StoreError>,
}

/// What agents are launched for.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// The plan's flows.
    Flows,
    /// Files.
    Storage(&'a StorageTask),
}

/// Plans, launches, drives, collects, tears down and analyses one run. Whatever happens after the
/// launch, the fleet is torn down and what was measured is kept; where the disk is full, what it
/// took is analysed.
///
/// Three threads: one keeps the agents alive and drives the plan, one writes the run directory, and
/// the caller's shows what happens. The first never waits for the others.
///
/// # Errors
/// [`RunError`] when nothing could be measured or kept.
pub fn run(job: &Job, listener: &mut dyn FnMut(u64, &RunEvent)) -> Result<Finished, RunError> {
    let plan = ew_plan::plan(&job.scenario, &job.inventory, job.seed)?;
    let (dir, run, unwritten) = carry_out(job, plan, Work::Flows, listener)?;
    let analysis = ew_analyze::analyze(&run);
    let kept = ew_store::write_findings(&dir, ew_report::findings_json(&analysis));
    let interrupted = analysis.run.outcome == Outcome::Interrupted;
    Ok(Finished {
        dir,
        analysis,
        interrupted,
        unwritten: unwritten.or(kept.err()),
    })
}

/// As [`run`], of a storage job in place of the scenario's flows: launches, does its steps, removes
/// its files, tears down.
///
/// # Errors
/// [`RunError`] when nothing could be measured or kept.
pub fn run_storage(
    job: &Job,
    task: &StorageTask,
    listener: &mut dyn FnMut(u64, &RunEvent),
) -> Result<StoredRun, RunError> {
    let plan = task.network.clone().unwrap_or_else(|| Plan {
        scenario: job.scenario.name.clone(),
        seed: job.seed,
        expect: job.scenario.expect,
        ..Plan::default()
    });
    let (dir, run, unwritten) = carry_out(job, plan, Work::Storage(task), listener)?;
    Ok(StoredRun {
        interrupted: run.manifest.outcome == Outcome::Interrupted,
        dir,
        run,
        unwritten,
    })
}

/// From the run directory's creation to its end. Returns it, its content and the first failure to
/// write it.
fn carry_out(
    job: &Job,
    plan: Plan,
    work: Work<'_>,
    listener: &mut dyn FnMut(u64, &RunEvent),
) -> Result<(PathBuf, Run, Option<StoreError>), RunError> {
    let mut manifest = manifest(job, &plan);
    let mut writer = RunWriter::create(&job.runs_dir, manifest.clone())?;
    let id = writer.id().to_owned();
    let clock = Clock::system();
    let (journal, ends) = Journal::new(clock, max_waiting_bytes(&plan));
    let JournalEnds {
        recorded,
        shown,
        to_shown,
    } = ends;
    let (controlled, failure) = thread::scope(|scope| {
        let events = writer.events();
        let recorder = scope.spawn(|| record(recorded, events, to_shown));
        let controller = scope.spawn(|| control(job, work, id, plan, journal, clock));
        shown.for_each(|shown| listener(shown.at_ns, &shown.event));
        (joined(controller), joined(recorder))
    });
    if job.signals_end_analysis {
        ew_sys::process::restore_signals();
    }
    ew_sys::process::give_back_memory();
    let Controlled {
        driven,
        plan_hash,
        inventory,
    } = controlled?;
    manifest.inventory = inventory;
    manifest.outcome = outcome_of(&driven);
    manifest.plan_hash = plan_hash;
    let dir = writer.path().to_owned();
    let finished = finish(writer, manifest);
    let refused = matches!(
        driven,
        Err(RunError::InUse { .. }
            | RunError::PublicAddresses { .. }
            | RunError::FarHosts { .. }
            | RunError::PortsBlocked { .. }
            | RunError::AtWork { .. }
            | RunError::LinksInUse { .. }
            | RunError::MuchLoad { .. }
            | RunError::NoLineRate { .. }
            | RunError::NoRateToLoad { .. })
    );
    if refused {
        // Nothing was measured, and a later try makes a directory of its own.
        let _ = std::fs::remove_dir_all(&dir);
    }
    driven?;
    let (run, unfinished) = match finished {
        Ok(run) => (run, None),
        Err(error) => (ew_store::load(&dir)?, Some(error)),
    };
    Ok((dir, run, failure.or(unfinished)))
}

/// What the thread that keeps the agents alive leaves behind.
pub(crate) struct Controlled {
    pub(crate) driven: Result<Outcome, RunError>,
    plan_hash: String,
    /// With the addresses that hosts found.
    pub(crate) inventory: Inventory,
}

/// Everything between the plan and the end of the last agent. Runs on a thread of its own, to which
/// the agents' processes are tied ([`ew_sys::process::die_with_parent`]): it ends after them.
fn control(
    job: &Job,
    work: Work<'_>,
    id: String,
    plan: Plan,
    journal: Journal,
    clock: Clock,
) -> Result<Controlled, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let outside = Outside::real(clock)?;
        control_from(job, work, id, plan, journal, outside).await
    })
}

/// The same on the runtime at hand.
pub(crate) async fn control_from(
    job: &Job,
    work: Work<'_>,
    id: String,
    mut plan: Plan,
    mut journal: Journal,
    outside: Outside,
) -> Result<Controlled, RunError> {
    let id_of_run = id.clone();
    journal.emit(RunEvent::RunStarted {
        id,
        inventory: job.inventory.clone(),
        plan: plan.clone(),
    });
    let launcher = Arc::clone(&job.launcher);
    let mut members = Members::new(&job.inventory, launcher, job.options.clone(), outside)?;
    members.look_for(plan.external_tools());
    if let Some(by) = &job.options.claimed_by {
        members.claim_hosts(claim(id_of_run, by, &plan));
    }
    if let Some(command) = &job.options.abort_command {
        members.abort_on(abort::when_it_fails(command.clone()));
    }
    let driven = match work {
        Work::Flows => drive_flows(job, &mut plan, &mut members, &mut journal).await,
        Work::Storage(task) => drive_storage(job, task, &plan, &mut members, &mut journal).await,
    };
    members.tear_down().await;
    if let Some(why) = members.aborted_because.take() {
        journal.warn(format!("aborted: {why}"));
    }
    journal.emit(RunEvent::RunFinished {
        outcome: outcome_of(&driven),
        unclean: std::mem::take(&mut members.unclean),
    });
    Ok(Controlled {
        driven,
        plan_hash: ew_store::plan_hash(&plan),
        inventory: members.inventory().clone(),
    })
}

async fn drive_flows(
    job: &Job,
    plan: &mut Plan,
    members: &mut Members,
    journal: &mut Journal,
) -> Result<Outcome, RunError> {
    launch(job, plan, members, journal).await?;
    Ok(drive(job, plan, members, journal).await)
}

async fn drive_storage(
    job: &Job,
    task: &StorageTask,
    network: &Plan,
    members: &mut Members,
    journal: &mut Journal,
) -> Result<Outcome, RunError> {
    storage::launch(job, task, members, journal).await?;
    if drive(job, network, members, journal).await == Outcome::Interrupted {
        return Ok(Outcome::Interrupted);
    }
    Ok(storage::drive(job, task, members, journal).await)
}

fn outcome_of(driven: &Result<Outcome, RunError>) -> Outcome {
    match driven {
        Ok(outcome) => *outcome,
        Err(RunError::Interrupted) => Outcome::Interrupted,
        Err(_) => Outcome::Failed,
    }
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn manifest(job: &Job, plan: &Plan) -> RunManifest {
    let started_unix_ns = clock::realtime_ns();
    RunManifest {
        format_version: ew_store::FORMAT_VERSION,
        id: ew_store::make_run_id(started_unix_ns, &job.scenario.name),
        version: job.options.build.clone(),
        started_unix_ns,
        finished_unix_ns: None,
        fleet: job.launcher.name().to_owned(),
        command: job.command.clone(),
        scenario: job.scenario.clone(),
        inventory: job.inventory.clone(),
        seed: job.seed,
        node_labels: job.node_labels.clone(),
        barriers: Vec::new(),
        plan_hash: ew_store::plan_hash(plan),
        outcome: Outcome::Unfinished,
        controller_peak_bytes: None,
        controller_cpu_ns: None,
    }
}

/// Brings the hosts up and cuts the plan to what can run on them.
async fn launch(
    job: &Job,
    plan: &mut Plan,
    members: &mut Members,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let hosts: Vec<_> = job.inventory.host_ids().collect();
    bring_up(members, &hosts, journal).await?;
    check_sharing(members, &job.options, journal)?;
    check_enough(&job.inventory, members, job.options.require_all)?;
    ew_plan::inventory::check_addresses(members.inventory())?;
    let alive = members.alive();
    if alive.len() < hosts.len() {
        *plan = plan_among(&job.scenario, &job.inventory, &alive, job.seed)?;
        journal.warn(format!(
            "{} of {} hosts did not come up; the run goes on with the others (--require-all refuses instead)",
            hosts.len() - alive.len(),
            hosts.len()
        ));
    }
    let has_tool = |host, tool| members.has_tool(host, tool);
    let missing = missing_tools::leave_out(plan, &job.inventory, has_tool);
    if plan.stages.is_empty() {
        return Err(RunError::NoTool(missing.join("; ")));
    }
    ports::check(plan, members, &job.options, journal).await?;
    if job.options.claimed_by.is_some() {
        let expected = plan.expect.nic_bits_per_sec;
        busy_links::check(members, expected, job.options.force, journal).await?;
    }
    plan.rate_limit = host_limits::limit(job.options.max_rate, plan, members)?;
    max_rate::hold_requests(plan);
    plan.line_rates = host_limits::loaded_lines(plan, members)?;
    load::check(plan, members, job.options.max_bytes)?;
    if let Some(warning) = host_limits::owners_words(members) {
        journal.warn(warning);
    }
    let is_limited = plan.rate_limit.is_some() || !plan.line_rates.is_empty();
    if alive.len() < hosts.len() || !missing.is_empty() || is_limited {
        journal.emit(RunEvent::Replanned { plan: plan.clone() });
    }
    for words in missing {
        journal.warn(words);
    }
    Ok(())
}

fn finish(writer: RunWriter, mut manifest: RunManifest) -> Result<Run, StoreError> {
    let usage = ew_sys::process::usage();
    manifest.finished_unix_ns = Some(clock::realtime_ns());
    manifest.controller_peak_bytes = Some(usage.peak_rss_bytes);
    manifest.controller_cpu_ns = Some(usage.cpu_ns);
    writer.finish(manifest)
}
