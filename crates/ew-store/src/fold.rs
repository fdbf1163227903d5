//! A run read back: the manifest, and all events folded into one value.

use crate::error::{StoreError, io_error};
use crate::events::EventReader;
use crate::thinned::Thinning;
use crate::unknown::drop_unknown;
use crate::{FORMAT_VERSION, MANIFEST_FILE};
use ew_model::{Outcome, Plan, RecordedEvent, Run, RunEvent, RunManifest};
use serde::Deserialize;
use std::io;
use std::path::Path;

/// Reads a run directory: `run.json` and everything in `events.jsonl`. A torn last line and kinds
/// of events that only a newer version knows become warnings of the run, and so does what names
/// hosts that it does not have.
///
/// # Errors
/// [`StoreError::NotARun`], [`StoreError::NewerVersion`], or where and how a file is damaged.
pub fn load(directory: &Path) -> Result<Run, StoreError> {
    let manifest = load_manifest(directory)?;
    let mut events = EventReader::open(directory)?;
    let mut fold = Fold::new(manifest);
    while let Some(event) = events.next()? {
        fold.take(event);
    }
    Ok(fold.finish(events.warnings()))
}

/// Reads only `run.json`.
///
/// # Errors
/// As [`load`].
pub fn load_manifest(directory: &Path) -> Result<RunManifest, StoreError> {
    let path = directory.join(MANIFEST_FILE);
    let bytes = std::fs::read(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => StoreError::NotARun {
            path: directory.to_path_buf(),
        },
        _ => io_error("read", &path)(source),
    })?;
    // The version first: a newer manifest may have any other shape.
    let damaged = |source| StoreError::BadManifest {
        path: path.clone(),
        source,
    };
    let version: VersionOnly = serde_json::from_slice(&bytes).map_err(damaged)?;
    if version.format_version > FORMAT_VERSION {
        return Err(StoreError::NewerVersion {
            path: directory.to_path_buf(),
            found: version.format_version,
            newest: FORMAT_VERSION,
        });
    }
    serde_json::from_slice(&bytes).map_err(damaged)
}

#[derive(Deserialize)]
struct VersionOnly {
    format_version: u32,
}

/// What is known before the first event.
fn empty(manifest: RunManifest) -> Run {
    Run {
        plan: Plan {
            scenario: manifest.scenario.name.clone(),
            seed: manifest.seed,
            expect: manifest.scenario.expect,
            stages: Vec::new(),
            random_order: false,
            interleaved: Vec::new(),
            host_rates: Vec::new(),
            rate_limit: None,
            line_rates: Vec::new(),
            dropped_tests: Vec::new(),
        },
        manifest,
        facts: Default::default(),
        failed: Default::default(),
        lost: Default::default(),
        returned: Default::default(),
        flows: Vec::new(),
        clock_offset_ns: Default::default(),
        clock_error_ns: Default::default(),
        samples: Default::default(),
        rejected_connections: Default::default(),
        warnings: Vec::new(),
        unclean: Vec::new(),
        storage: Vec::new(),
        hdfs: None,
    }
}

/// Events folded into a run.
pub(crate) struct Fold {
    run: Run,
    thinning: Thinning,
}

impl Fold {
    pub(crate) fn new(manifest: RunManifest) -> Self {
        Self {
            run: empty(manifest),
            thinning: Thinning::default(),
        }
    }

    /// With what there is to know of the reading.
    pub(crate) fn finish(mut self, warnings: Vec<String>) -> Run {
        self.run.warnings.extend(warnings);
        let unknown = drop_unknown(&mut self.run);
        if unknown > 0 {
            self.run.warnings.push(format!(
                "{unknown} entries name hosts or racks that this run does not have, and were skipped: its directory is damaged"
            ));
        }
        self.run
    }

    pub(crate) fn take(&mut self, recorded: RecordedEvent) {
        match recorded.event {
            RunEvent::HostSampled { host, sample } => {
                self.thinning
                    .take_sample(&mut self.run.samples, host, sample);
            }
            event => {
                if let RunEvent::RoundFinished { records, .. } = &event {
                    records
                        .iter()
                        .for_each(|flow| self.thinning.take_flow(flow));
                }
                fold(&mut self.run, event);
            }
        }
    }
}

fn fold(run: &mut Run, event: RunEvent) {
    match event {
        RunEvent::RunStarted { plan, .. } | RunEvent::Replanned { plan } => run.plan = plan,
        RunEvent::HostUp {
            host,
            facts,
            address,
            ..
        } => {
            if let Some(own) = run.manifest.inventory.hosts.get_mut(host.index()) {
                own.address = address.or(own.address);
            }
            run.facts.insert(host, facts);
            run.failed.remove(&host);
            run.lost.remove(&host);
        }
        RunEvent::HostFailed { host, message } => {
            run.failed.insert(host, message);
        }
        RunEvent::ClockSynced {
            host,
            offset_ns,
            error_ns,
            rate_ppb: _,
        } => {
            run.clock_offset_ns.insert(host, offset_ns);
            run.clock_error_ns.insert(host, error_ns);
        }
        RunEvent::RoundFinished { records, .. } => run.flows.extend(records),
        RunEvent::ConnectionsRejected { host, count } => {
            // Counted from the agent's start; a host that came back begins again.
            let most = run.rejected_connections.entry(host).or_default();
            *most = count.max(*most);
        }
        RunEvent::HostLost { host, message } => {
            run.lost.insert(host, message);
        }
        RunEvent::HostReturned { host } => {
            if let Some(message) = run.lost.remove(&host) {
                run.returned.insert(host, message);
            }
        }
        RunEvent::Warning { message } => run.warnings.push(message),
        RunEvent::EventsLost { count } => run.warnings.push(format!(
            "{count} events could not be written: the disk was full or did not keep up; their content is missing here"
        )),
        RunEvent::RunFinished { outcome, unclean } => {
            // The manifest is replaced after this event: a kill in between leaves it behind.
            if run.manifest.outcome == Outcome::Unfinished {
                run.manifest.outcome = outcome;
            }
            run.unclean = unclean;
        }
        RunEvent::StorageStepFinished(step) => run.storage.push(*step),
        RunEvent::StorageFacts(facts) => run.hdfs = Some(*facts),
        RunEvent::HostSampled { .. }
        | RunEvent::StorageStepStarted { .. }
        | RunEvent::StorageProgress { .. }
        | RunEvent::StageStarted { .. }
        | RunEvent::StageFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::FlowProgress { .. }
        | RunEvent::HostRead { .. }
        | RunEvent::Interrupted => {}
    }
}
