//! A job carried out, with what is shown of it while it goes on.

use super::args::LiveArgs;
use crate::exit::{self, Failure, Outcome};
use crate::http::Endpoint;
use crate::metrics;
use crate::output::{self, ColorChoice};
use crate::run_report;
use crate::safety::SafetyArgs;
use crate::watch::{Log, Watch};
use ew_controller::{Finished, Job, RunError};
use ew_model::RunEvent;
use ew_report::live::Live;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Runs a job with the live view on stderr, its metrics at the endpoint and its events also to
/// `also`, and writes the HTML report next to the data.
pub(crate) fn drive(
    job: &Job,
    args: LiveArgs,
    safety: &SafetyArgs,
    color: ColorChoice,
    endpoint: Option<Endpoint>,
    also: &mut dyn FnMut(u64, &RunEvent),
) -> Result<Finished, Failure> {
    let finished = watched_run(job, args, color, endpoint, |listener| {
        let run = || {
            ew_controller::run(job, &mut |at_ns, event| {
                also(at_ns, event);
                listener(at_ns, event);
            })
        };
        safety.wait_for_hosts(run, output::say)
    })?;
    let written = run_report::write_html(&finished.analysis, &finished.dir);
    // A disk that is full has cost enough: the verdict is shown all the same.
    if finished.unwritten.is_none() {
        written?;
    }
    Ok(finished)
}

/// Carries a job out with the live view on stderr and its metrics at the endpoint.
pub(crate) fn watched_run<T>(
    job: &Job,
    args: LiveArgs,
    color: ColorChoice,
    endpoint: Option<Endpoint>,
    carry_out: impl FnOnce(&mut dyn FnMut(u64, &RunEvent)) -> Result<T, RunError>,
) -> Result<T, Failure> {
    let color = color.enabled(std::io::stderr().is_terminal());
    let metrics = endpoint
        .map(|endpoint| {
            if !args.quiet {
                output::say(&format!("metrics: http://{}/metrics", endpoint.address()));
            }
            metrics::serve(endpoint, &job.options.build)
        })
        .transpose()?;
    let log = Log::default();
    let mut watch = job.options.watched.first().map(|host| {
        let name = job.inventory.name(*host).to_owned();
        Watch::start(*host, name, log.clone(), args.draws_bars())
    });
    // Where a watched host is shown, there is no space for bars.
    let draws_bars = args.draws_bars() && watch.is_none();
    let mut live = Live::new(log, draws_bars, color, args.quiet);
    let finished = carry_out(&mut |at_ns, event| {
        if let Some(metrics) = &metrics {
            metrics.take(at_ns, event);
        }
        live.handle(at_ns, event);
        if let Some(watch) = &mut watch {
            watch.handle(at_ns, event);
        }
    });
    drop(metrics);
    live.finish();
    if let Some(watch) = watch {
        watch.finish();
    }
    finished.map_err(|error| match error {
        RunError::Interrupted => Failure::Interrupted,
        RunError::Plan(_) => Failure::usage(error),
        _ => Failure::failed(error),
    })
}

/// Prints where everything is unless it is to be quiet, and turns the verdict into the exit code.
pub(crate) fn conclude(finished: &Finished, quiet: bool) -> Outcome {
    if let Some(error) = &finished.unwritten {
        output::say(&format!(
            "error: the run directory is not whole ({error}): the verdict is of what could be written to {}",
            finished.dir.display()
        ));
        return Ok(exit::failed());
    }
    if !quiet {
        output::say(&format!(
            "report: {}",
            finished.dir.join("report.html").display()
        ));
    }
    if finished.interrupted {
        return Ok(exit::interrupted());
    }
    Ok(ExitCode::from(finished.analysis.verdict.status.exit_code()))
}
