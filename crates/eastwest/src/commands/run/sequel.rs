//! What goes with a run, and what follows it.

use super::args::RunArgs;
use super::drive::{conclude, drive};
use crate::exit::{self, Failure, Outcome};
use crate::http::Endpoint;
use crate::output;
use crate::predecessor::Predecessor;
use crate::push::Pusher;
use crate::run_report;
use crate::runtime::block_on;
use crate::sinks::Sinks;
use crate::web::LivePage;
use ew_controller::{Finished, Job};
use ew_model::{RunEvent, Scenario};
use ew_report::prometheus::Exposition;
use std::process::ExitCode;

/// What goes with a run and follows it, next to its report.
pub(in crate::commands) struct Sequel {
    predecessor: Option<Predecessor>,
    pusher: Option<Pusher>,
    /// What is pushed.
    exposition: Option<Exposition>,
    sinks: Sinks,
    page: Option<LivePage>,
}

impl Sequel {
    /// Before the run: afterwards it would be the last one itself.
    pub(in crate::commands) fn of(args: &RunArgs, scenario: &Scenario) -> Result<Self, Failure> {
        let predecessor = args.predecessor.find(&args.runs.runs_dir, &scenario.name)?;
        let began = ew_sys::clock::realtime_ns();
        let pusher = |gateway| Pusher::new(gateway, args.push_ca.as_deref());
        let pusher = args.push.as_ref().map(pusher).transpose();
        let pusher = pusher.map_err(Failure::usage)?;
        let build = args.fleet.options().build;
        let exposition = |_: &Pusher| Exposition::new(&build, began);
        let (webhook, remote_write) = (args.webhook.as_ref(), args.remote_write.as_ref());
        let ca = args.push_ca.as_deref();
        let sinks = Sinks::new(webhook, remote_write, &scenario.name, &build, ca);
        let page = |address| {
            let endpoint = Endpoint::bind(address, "the live page", "--web")?;
            LivePage::serve(endpoint, &args.runs.runs_dir)
        };
        Ok(Self {
            predecessor,
            exposition: pusher.as_ref().map(exposition),
            pusher,
            sinks: sinks.map_err(Failure::usage)?,
            page: args.web.map(page).transpose()?,
        })
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub(in crate::commands) fn take(&mut self, at_ns: u64, event: &RunEvent) {
        if let Some(exposition) = &mut self.exposition {
            exposition.take(at_ns, event);
        }
        self.sinks.take(at_ns, event);
        if let Some(page) = &self.page {
            page.take(at_ns, event);
        }
    }

    /// Shows the report, pushes the metrics, compares, and stays while a page is shown.
    pub(in crate::commands) async fn conclude(
        mut self,
        args: &RunArgs,
        finished: &Finished,
    ) -> Outcome {
        let is_shown = run_report::show_or_print(&finished.analysis, &args.show);
        self.push(finished).await;
        std::mem::take(&mut self.sinks).finish(&finished.analysis);
        let page = self.page.take();
        let code = self.verdict(args, finished)?;
        if let Some(page) = page.filter(|_| !finished.interrupted) {
            page.stay(args.live.quiet).await?;
        }
        Ok(if is_shown { code } else { exit::failed() })
    }

    async fn push(&mut self, finished: &Finished) {
        if let (Some(pusher), Some(exposition)) = (&self.pusher, &mut self.exposition) {
            let metrics = exposition.render_final(&finished.analysis);
            let scenario = &finished.analysis.run.scenario.name;
            if let Err(error) = pusher.push(scenario, metrics).await {
                output::say(&format!("warning: the metrics were not pushed: {error:#}"));
            }
        }
    }

    /// A verdict's exit code other than 0 is kept.
    fn verdict(self, args: &RunArgs, finished: &Finished) -> Outcome {
        let code = conclude(finished, args.live.quiet)?;
        match self.predecessor {
            Some(predecessor) if finished.unwritten.is_none() && !finished.interrupted => {
                let regression = predecessor.judge(&finished.dir)?;
                Ok(regression
                    .filter(|_| code == ExitCode::SUCCESS)
                    .unwrap_or(code))
            }
            _ => Ok(code),
        }
    }
}

/// A run with all that follows it.
pub(in crate::commands) fn drive_and_conclude(
    args: &RunArgs,
    job: &Job,
    mut sequel: Sequel,
    endpoint: Option<Endpoint>,
) -> Result<(ExitCode, Finished), Failure> {
    let (live, color) = (args.live, args.show.color);
    let finished = drive(
        job,
        live,
        &args.safety,
        color,
        endpoint,
        &mut |at_ns, event| sequel.take(at_ns, event),
    )?;
    let code = block_on(sequel.conclude(args, &finished))?;
    Ok((code, finished))
}
