//! Stored runs of one scenario, oldest first: what runs of one network differ by, and their trend.

use crate::exit::Failure;
use crate::output;
use anyhow::anyhow;
use ew_analyze::trend::RunFigures;
use ew_model::{Inventory, Outcome, Run};
use ew_store::RunSummary;
use std::collections::BTreeSet;
use std::path::Path;

/// As many earlier runs show how much runs of one network differ.
pub(crate) const USUAL: usize = 12;

/// Up to `most` complete runs like those compared, the newest of them, from before the first of
/// these: of the same scenario with the same settings, launcher and hosts.
pub(crate) fn before(runs_dir: &Path, compared: &[&Run], most: usize) -> Result<Vec<Run>, Failure> {
    let Some(like) = compared.first().map(|run| &run.manifest) else {
        return Ok(Vec::new());
    };
    if most == 0 || !runs_dir.exists() {
        return Ok(Vec::new());
    }
    let is_like = |run: &RunSummary| {
        run.scenario == like.scenario.name
            && run.fleet == like.fleet
            && run.hosts as usize == like.inventory.hosts.len()
            && compared
                .iter()
                .all(|other| run.started_unix_ns < other.manifest.started_unix_ns)
    };
    let has_settings = |run: &&RunSummary| {
        ew_store::load_manifest(&run.path).is_ok_and(|manifest| {
            manifest.scenario == like.scenario
                && host_names(&manifest.inventory) == host_names(&like.inventory)
        })
    };
    let mut runs = Vec::new();
    let complete = complete(runs_dir)?;
    let alike = complete
        .iter()
        .filter(|run| is_like(run))
        .filter(has_settings);
    for run in alike.take(most) {
        // What cannot be read is missing in a spread, and stops nothing.
        match ew_store::load(&run.path) {
            Ok(run) => runs.push(run),
            Err(error) => output::say(&format!("warning: {error}")),
        }
    }
    runs.reverse();
    Ok(runs)
}

fn host_names(inventory: &Inventory) -> BTreeSet<&str> {
    let hosts = inventory.hosts.iter();
    hosts.map(|host| host.name.as_str()).collect()
}

/// All complete runs, newest first.
pub(crate) fn complete(runs_dir: &Path) -> Result<Vec<RunSummary>, Failure> {
    let mut runs = ew_store::list(runs_dir).map_err(Failure::failed)?.runs;
    runs.retain(|run| run.outcome == Outcome::Complete);
    Ok(runs)
}

/// The figures of the newest `last` complete runs of a scenario, oldest first; of the newest run's
/// where none is named.
pub(crate) fn figures(
    runs_dir: &Path,
    scenario: Option<&str>,
    last: usize,
) -> Result<Vec<RunFigures>, Failure> {
    let runs = complete(runs_dir)?;
    let newest = runs.first().map(|run| run.scenario.as_str());
    let Some(scenario) = scenario.or(newest) else {
        return Err(Failure::usage(anyhow!(
            "no complete run in {}; `eastwest run` makes one, --runs-dir names another directory",
            runs_dir.display()
        )));
    };
    let mut found = Vec::new();
    for summary in runs
        .iter()
        .filter(|run| run.scenario == scenario)
        .take(last)
    {
        match ew_store::load(&summary.path) {
            Ok(run) => found.push(figures_of(&run)),
            Err(error) => output::say(&format!("warning: {error}")),
        }
    }
    if found.is_empty() {
        return Err(Failure::usage(anyhow!(
            "no complete run of `{scenario}` in {}; `eastwest runs list` shows what there is",
            runs_dir.display()
        )));
    }
    found.reverse();
    Ok(found)
}

/// One run's part of a trend.
pub(crate) fn figures_of(run: &Run) -> RunFigures {
    RunFigures {
        run_id: run.manifest.id.clone(),
        started_unix_ns: run.manifest.started_unix_ns,
        figures: ew_analyze::compare::figures(run),
    }
}
