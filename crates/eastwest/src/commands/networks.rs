//! `run --network A --network B`: each network measured alone, one after the other, and compared.

use crate::commands::run::RunArgs;
use crate::commands::run::sequel::{Sequel, drive_and_conclude};
use crate::exit::{Failure, Outcome, interrupted};
use crate::http::Endpoint;
use crate::output;
use crate::run_report;
use anyhow::anyhow;
use ew_analyze::compare::{CompareOptions, Runs};
use ew_controller::Job;
use ew_model::Run;
use ew_report::render_comparison;
use std::process::ExitCode;

/// A result for every network, then every further one against the first. Fails as the first one
/// that does.
pub(super) fn run(
    args: &RunArgs,
    mut job: Job,
    sequel: Sequel,
    endpoint: Option<Endpoint>,
) -> Outcome {
    if args.show.has_file() {
        return Err(Failure::usage(anyhow!(
            "-O is one file, and every network has a result of its own; leave -O out, and write each with `eastwest report RUN -O FILE`"
        )));
    }
    let mut code = ExitCode::SUCCESS;
    let mut results: Vec<(String, Run)> = Vec::new();
    let mut first = Some((sequel, endpoint));
    for choice in args.hosts.networks() {
        let (sequel, endpoint) = match first.take() {
            Some(first) => first,
            None => (Sequel::of(args, &job.scenario)?, args.metrics_endpoint()?),
        };
        let name = choice.to_string();
        output::say(&format!("network {name}"));
        job.options.network = Some(choice);
        let (ended, finished) = drive_and_conclude(args, &job, sequel, endpoint)?;
        if finished.interrupted {
            return Ok(interrupted());
        }
        if code == ExitCode::SUCCESS {
            code = ended;
        }
        let run = ew_store::load(&finished.dir).map_err(Failure::failed)?;
        results.push((name, run));
    }
    let mut results = results.into_iter();
    if let Some((name, base)) = results.next() {
        for (other_name, other) in results {
            compare(args, (&name, &base), (&other_name, &other))?;
        }
    }
    Ok(code)
}

fn compare(
    args: &RunArgs,
    (name, base): (&str, &Run),
    (other_name, other): (&str, &Run),
) -> Result<(), Failure> {
    let options = CompareOptions {
        names: Some((name.to_owned(), other_name.to_owned())),
        threshold: None,
        each_host: false,
    };
    let runs = Runs {
        base: std::slice::from_ref(base),
        other: std::slice::from_ref(other),
        // Earlier runs of either network show nothing about how the two differ.
        history: &[],
    };
    let comparison = ew_analyze::compare::compare(&runs, &options);
    let comparison = comparison.map_err(|error| {
        Failure::failed(anyhow!(
            "{name} and {other_name} cannot be compared: {error}"
        ))
    })?;
    let style = output::text_style(args.show.color);
    let format = args.show.format().report_format();
    let text = render_comparison(&comparison, format, &style).map_err(run_report::unreportable)?;
    output::print(&text);
    Ok(())
}
