//! `run --compare-with`: the run before as the bar for this one.

use crate::commands::compare;
use crate::exit::Failure;
use crate::history;
use crate::output;
use crate::run_report;
use anyhow::{Context as _, anyhow};
use clap::Args;
use ew_analyze::compare::{CompareOptions, Runs};
use ew_model::Run;
use ew_model::comparison::ComparisonVerdict;
use ew_report::{Format, render_comparison};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Clone, Debug, Args)]
pub(crate) struct PredecessorArgs {
    /// Compare with an earlier run afterwards: a run's name, or `last`, the last complete one of
    /// this scenario. Its report goes to stderr
    #[arg(long, value_name = "RUN")]
    compare_with: Option<String>,
    /// With --compare-with: end with 1 when something differs and is worse by more than this, for
    /// example 10%
    #[arg(long, value_name = "PERCENT", requires = "compare_with", value_parser = compare::parse_share)]
    threshold: Option<f64>,
}

impl PredecessorArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.compare_with.is_some()
    }
}

/// The run to compare with, found before the new one begins. `None` where there is nothing to
/// compare with.
#[derive(Debug)]
pub(crate) struct Predecessor {
    base: Run,
    threshold: Option<f64>,
}

impl PredecessorArgs {
    /// Finds the run. Without one of this scenario `last` is none, and a message is printed.
    pub(crate) fn find(
        &self,
        runs_dir: &Path,
        scenario: &str,
    ) -> Result<Option<Predecessor>, Failure> {
        let Some(wanted) = &self.compare_with else {
            return Ok(None);
        };
        let dir = match wanted.as_str() {
            "last" => last_of(runs_dir, scenario)?,
            name => Some(ew_store::resolve(runs_dir, name).map_err(Failure::usage)?),
        };
        let Some(dir) = dir else {
            output::say(&format!(
                "compare: no complete run of `{scenario}` in {} yet: nothing to compare this one with",
                runs_dir.display()
            ));
            return Ok(None);
        };
        let base = ew_store::load(&dir).map_err(Failure::failed)?;
        let threshold = self.threshold;
        Ok(Some(Predecessor { base, threshold }))
    }
}

/// Newest first. A directory that is not there yet has no runs.
fn last_of(runs_dir: &Path, scenario: &str) -> Result<Option<PathBuf>, Failure> {
    if !runs_dir.exists() {
        return Ok(None);
    }
    let mut runs = history::complete(runs_dir)?.into_iter();
    let found = runs.find(|run| run.scenario == scenario);
    Ok(found.map(|run| run.path))
}

impl Predecessor {
    /// Compares the new run with it. `Some`: the exit code of a regression.
    pub(crate) fn judge(&self, dir: &Path) -> Result<Option<ExitCode>, Failure> {
        let run = ew_store::load(dir).map_err(Failure::failed)?;
        let options = CompareOptions {
            names: None,
            threshold: self.threshold,
            each_host: false,
        };
        let runs_dir = dir.parent().unwrap_or(dir);
        let history = history::before(runs_dir, &[&self.base, &run], history::USUAL)?;
        let runs = Runs {
            base: std::slice::from_ref(&self.base),
            other: std::slice::from_ref(&run),
            history: &history,
        };
        let comparison = ew_analyze::compare::compare(&runs, &options)
            .map_err(|error| anyhow!(error))
            .with_context(|| format!("this run cannot be compared with {}", self.base.manifest.id))
            .map_err(Failure::failed)?;
        let style = ew_report::TextStyle::default();
        let text = render_comparison(&comparison, Format::Text, &style)
            .map_err(run_report::unreportable)?;
        output::say(text.trim_end());
        let is_worse = comparison.verdict != ComparisonVerdict::NotWorse;
        Ok(is_worse.then(|| compare::code(comparison.verdict)))
    }
}
