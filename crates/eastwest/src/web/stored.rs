//! `eastwest serve`: stored runs, their reports, trends and comparisons.

use super::{Token, decoded, parameter, without_token};
use crate::history;
use crate::http::{Answer, HTML, Site};
use anyhow::{Context as _, anyhow};
use ew_analyze::compare::{CompareOptions, Runs};
use ew_analyze::trend::RunFigures;
use ew_model::Outcome;
use ew_model::finding::WordedVerdict;
use ew_report::{Format, RunLine, RunsPage, TextStyle};
use ew_store::RunSummary;
use hyper::StatusCode;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Runs that are listed, the newest.
const MAX_LISTED: usize = 1000;
/// Runs of a trend, the newest.
const MAX_IN_TREND: usize = 100;
/// Runs whose figures are kept, so that a trend does not read all of them again.
const MAX_KEPT: usize = 1000;

/// What is served.
pub(crate) struct StoredRuns {
    token: Token,
    runs_dir: PathBuf,
    /// By the run's id; runs that are over do not change.
    figures: Mutex<BTreeMap<String, RunFigures>>,
}

impl StoredRuns {
    pub(crate) fn new(token: Token, runs_dir: PathBuf) -> Self {
        Self {
            token,
            runs_dir,
            figures: Mutex::default(),
        }
    }

    fn page(&self, page: &str, query: &str) -> anyhow::Result<Option<String>> {
        match page {
            "" => self.list(query).map(Some),
            "trends" => self.trends(query).map(Some),
            "compare" => self.compare(query).map(Some),
            other => match other.strip_prefix("run/").and_then(decoded) {
                Some(id) => self.report(&id).map(Some),
                None => Ok(None),
            },
        }
    }

    fn list(&self, query: &str) -> anyhow::Result<String> {
        let listing = ew_store::list(&self.runs_dir)?;
        let page = RunsPage {
            runs: listing.runs.iter().take(MAX_LISTED).map(line).collect(),
            left_out: listing.runs.len().saturating_sub(MAX_LISTED),
            base: parameter(query, "base"),
            problems: listing.unreadable.iter().map(ToString::to_string).collect(),
        };
        Ok(ew_report::runs_page(&page)?)
    }

    /// As it was written, else made now.
    fn report(&self, id: &str) -> anyhow::Result<String> {
        let dir = self.find(id)?.path;
        if let Ok(page) = std::fs::read_to_string(dir.join("report.html")) {
            return Ok(page);
        }
        let analysis = ew_analyze::analyze(&ew_store::load(&dir)?);
        Ok(ew_report::render(
            &analysis,
            Format::Html,
            &TextStyle::default(),
        )?)
    }

    fn trends(&self, query: &str) -> anyhow::Result<String> {
        let runs = ew_store::list(&self.runs_dir)?.runs;
        let complete = || runs.iter().filter(|run| run.outcome == Outcome::Complete);
        let newest = || complete().next().map(|run| run.scenario.clone());
        let scenario = parameter(query, "scenario").or_else(newest);
        let scenario = scenario.context("there is no complete run yet")?;
        let of_scenario = complete().filter(|run| run.scenario == scenario);
        let mut figures = of_scenario
            .take(MAX_IN_TREND)
            .map(|run| self.figures_of(run))
            .collect::<anyhow::Result<Vec<_>>>()?;
        figures.reverse();
        let trends = ew_analyze::trend::trends(&figures, |_, _| true);
        Ok(ew_report::trends_page(&scenario, &trends)?)
    }

    fn figures_of(&self, run: &RunSummary) -> anyhow::Result<RunFigures> {
        let kept = || self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&run.id) {
            return Ok(known.clone());
        }
        let figures = history::figures_of(&ew_store::load(&run.path)?);
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.pop_first();
        }
        kept.insert(run.id.clone(), figures.clone());
        Ok(figures)
    }

    fn compare(&self, query: &str) -> anyhow::Result<String> {
        let load = |side| {
            let id = parameter(query, side).with_context(|| format!("`{side}` names no run"))?;
            anyhow::Ok(ew_store::load(&self.find(&id)?.path)?)
        };
        let (base, other) = (load("base")?, load("other")?);
        let history = history::before(&self.runs_dir, &[&base, &other], history::USUAL);
        let history = history.map_err(|failure| anyhow!(failure.message()))?;
        let runs = Runs {
            base: &[base],
            other: &[other],
            history: &history,
        };
        let comparison = ew_analyze::compare::compare(&runs, &CompareOptions::default())?;
        let style = TextStyle::default();
        Ok(ew_report::render_comparison(
            &comparison,
            Format::Html,
            &style,
        )?)
    }

    /// Only what the list has: an id never becomes a path.
    fn find(&self, id: &str) -> anyhow::Result<RunSummary> {
        let mut runs = ew_store::list(&self.runs_dir)?.runs.into_iter();
        runs.find(|run| run.id == id)
            .with_context(|| format!("there is no run `{}`", crate::output::plain(id)))
    }
}

impl Site for StoredRuns {
    fn answer(&self, path: &str, query: &str) -> Answer {
        let Some(page) = self.token.opens(path) else {
            return without_token();
        };
        match self.page(page, query) {
            Ok(Some(page)) => Answer::html(page),
            Ok(None) => Answer::not_found("only the list, run/ID, trends and compare"),
            Err(error) => Answer::Page(
                StatusCode::NOT_FOUND,
                HTML,
                ew_report::notice_page(&format!("{error:#}")),
            ),
        }
    }
}

fn line(run: &RunSummary) -> RunLine {
    let outcome = match (run.outcome, run.being_written) {
        (_, true) => "running",
        (Outcome::Unfinished, _) => "cut short",
        (Outcome::Complete, _) => "complete",
        (Outcome::Partial, _) => "partial",
        (Outcome::Interrupted, _) => "interrupted",
        (Outcome::Failed, _) => "failed",
    };
    RunLine {
        id: run.id.clone(),
        started_unix_ns: run.started_unix_ns,
        scenario: run.scenario.clone(),
        fleet: run.fleet.clone(),
        hosts: run.hosts,
        outcome: outcome.to_owned(),
        status: verdict(&run.path).map(|verdict| verdict.status),
    }
}

/// As it was written after the run; none of a run that goes on.
fn verdict(dir: &Path) -> Option<WordedVerdict> {
    let bytes = std::fs::read(dir.join(ew_store::FINDINGS_FILE)).ok()?;
    serde_json::from_slice(&bytes).ok()
}
