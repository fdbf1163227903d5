//! `eastwest compare`: two runs held against each other.

use crate::commands::report;
use crate::exit::{self, Failure, Outcome};
use crate::output::{self, RunsDirArg, ShowArgs};
use anyhow::Context;
use clap::Args;
use ew_analyze::compare::CompareOptions;
use ew_model::Run;
use ew_model::comparison::ComparisonVerdict;
use ew_report::{Format, render_comparison};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The run to compare with: a directory, an id or the beginning of it, `last`, or `last~1` for
    /// the one before
    #[arg(value_name = "RUN_A", default_value = "last~1")]
    base: String,
    /// The run to compare
    #[arg(value_name = "RUN_B", default_value = "last")]
    other: String,
    /// End with 1 when something is significantly worse by more than this, for example 5%
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    threshold: Option<f64>,
    /// The same when it is only a single host that is worse by more than the threshold
    #[arg(long, requires = "threshold")]
    each_host: bool,
    /// What to call the two, for example "1 GbE,10 GbE"
    #[arg(long, value_name = "A,B", value_parser = parse_names)]
    names: Option<(String, String)>,
    /// Write the page with bars to this file, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsDirArg,
    #[command(flatten)]
    show: ShowArgs,
}

pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let (base, other) = (load(args, &args.base)?, load(args, &args.other)?);
    if base.manifest.id == other.manifest.id {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} and {} are the same run; name two",
            args.base,
            args.other
        )));
    }
    let options = CompareOptions {
        names: args.names.clone(),
        threshold: args.threshold,
        each_host: args.each_host,
    };
    let comparison =
        ew_analyze::compare::compare(&base, &other, &options).map_err(Failure::usage)?;
    let style = output::text_style(args.show.color);
    let format = args.show.format.report_format();
    output::print(&render_comparison(&comparison, format, &style).map_err(report::unreportable)?);
    if let Some(path) = &args.html {
        let page = render_comparison(&comparison, Format::Html, &style).map_err(Failure::failed)?;
        std::fs::write(path, page)
            .with_context(|| format!("{} cannot be written", path.display()))
            .map_err(Failure::failed)?;
    }
    Ok(match comparison.verdict {
        ComparisonVerdict::Worse => ExitCode::from(exit::WORSE),
        ComparisonVerdict::NotWorse => ExitCode::SUCCESS,
    })
}

fn load(args: &CompareArgs, wanted: &str) -> Result<Run, Failure> {
    let dir = ew_store::resolve(&args.runs.runs_dir, wanted).map_err(Failure::usage)?;
    ew_store::load(&dir).map_err(Failure::failed)
}

/// `5%`, `5 %`, `0.5%`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) && text.contains('%') => {
            Ok(percent / 100.0)
        }
        _ => Err(format!("`{text}` is not a share; write it like 5% or 0.5%")),
    }
}

fn parse_names(text: &str) -> Result<(String, String), String> {
    match text.split_once(',') {
        Some((a, b)) if !a.trim().is_empty() && !b.trim().is_empty() && !b.contains(',') => {
            Ok((a.trim().to_owned(), b.trim().to_owned()))
        }
        _ => Err(format!(
            "`{text}` is not two names; write them like \"1 GbE,10 GbE\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_its_sign() {
        assert_eq!(parse_share("5%"), Ok(0.05));
        assert_eq!(parse_share(" 0.5 % "), Ok(0.005));
        for wrong in ["5", "0.05", "-5%", "%", "five%", ""] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_names_and_no_more() {
        let names = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(parse_names("1 GbE, 10 GbE"), names("1 GbE", "10 GbE"));
        assert!(parse_names("one").is_err() && parse_names("a,").is_err());
        assert!(parse_names("a,b,c").is_err());
    }
}
