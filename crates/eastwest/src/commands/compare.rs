//! `eastwest compare`: two states of a network, each by one run or by several.

use crate::exit::{self, Failure, Outcome};
use crate::history;
use crate::output::{self, ColorChoice, Destination, OutputFormat, RunsDirArg};
use crate::run_report;
use anyhow::anyhow;
use clap::{Args, ValueEnum};
use ew_analyze::compare::{CompareOptions, Runs};
use ew_model::Run;
use ew_model::comparison::ComparisonVerdict;
use ew_report::{Format, render_comparison};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

/// More runs of a state show nothing that these do not.
const MAX_RUNS: usize = 50;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The runs to compare with, separated by commas: a directory, an id or the beginning of it,
    /// `last`, or `last~1` for the one before
    #[arg(value_name = "RUN_A,...", default_value = "last~1")]
    base: RunNames,
    /// The runs to compare. Three or more of each state separate a change of the network from one
    /// of the moment
    #[arg(value_name = "RUN_B,...", default_value = "last")]
    other: RunNames,
    /// End with 1 when something differs and is worse by more than this, for example 5%
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    threshold: Option<f64>,
    /// End with 1 also when a single host is worse by more than the threshold
    #[arg(long, requires = "threshold")]
    each_host: bool,
    /// Take the spread from run to run from this many earlier runs of the scenario, too
    #[arg(long, value_name = "N", default_value_t = history::USUAL)]
    history: usize,
    /// Names of the two states in the report, for example "1 GbE,10 GbE"
    #[arg(long, value_name = "A,B", value_parser = parse_names)]
    names: Option<(String, String)>,
    /// Write the HTML page to this file, besides the result
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsDirArg,
    /// Format of the result [default: text, or by the ending of --output]
    #[arg(long, value_enum, help_heading = "Output")]
    format: Option<CompareFormat>,
    /// Short for --format json
    #[arg(long, hide = true, conflicts_with = "format")]
    json: bool,
    #[command(flatten, next_help_heading = "Output")]
    destination: Destination,
    /// When to colour
    #[arg(long, value_enum, default_value = "auto")]
    color: ColorChoice,
}

/// `--format` of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompareFormat {
    /// For people
    Text,
    /// One JSON document, also on failure
    Json,
    /// One row per figure
    Csv,
    /// For a pull request or a ticket
    Md,
    /// One self-contained page
    Html,
}

impl CompareArgs {
    fn format(&self) -> Format {
        let by_ending = || self.destination.format().map(OutputFormat::report_format);
        match self.format {
            _ if self.json => Format::Json,
            None => by_ending().unwrap_or(Format::Text),
            Some(CompareFormat::Text) => Format::Text,
            Some(CompareFormat::Json) => Format::Json,
            Some(CompareFormat::Csv) => Format::Csv,
            Some(CompareFormat::Md) => Format::Markdown,
            Some(CompareFormat::Html) => Format::Html,
        }
    }
}

/// The runs of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RunNames(Vec<String>);

impl FromStr for RunNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            return Err("a name between commas is empty; write them like last~2,last~1".into());
        }
        if names.len() > MAX_RUNS {
            return Err(format!(
                "{} runs of one state; {MAX_RUNS} are enough, skip the others",
                names.len()
            ));
        }
        Ok(Self(names))
    }
}

pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let (base, other) = (load(args, &args.base)?, load(args, &args.other)?);
    refuse_twice(&base, &other)?;
    let all: Vec<&Run> = base.iter().chain(&other).collect();
    let history = history::before(&args.runs.runs_dir, &all, args.history)?;
    let options = CompareOptions {
        names: args.names.clone(),
        threshold: args.threshold,
        each_host: args.each_host,
    };
    let runs = Runs {
        base: &base,
        other: &other,
        history: &history,
    };
    let comparison = ew_analyze::compare::compare(&runs, &options).map_err(Failure::usage)?;
    let style = args.destination.style(args.color);
    let text = render_comparison(&comparison, args.format(), &style);
    args.destination
        .put(&text.map_err(run_report::unreportable)?)?;
    if let Some(path) = &args.html {
        let page = render_comparison(&comparison, Format::Html, &style).map_err(Failure::failed)?;
        output::write_file(path, &page)?;
    }
    Ok(code(comparison.verdict))
}

/// What a comparison ends with.
pub(crate) fn code(verdict: ComparisonVerdict) -> ExitCode {
    match verdict {
        ComparisonVerdict::Worse | ComparisonVerdict::Different => ExitCode::from(exit::WORSE),
        ComparisonVerdict::NotWorse => ExitCode::SUCCESS,
    }
}

fn load(args: &CompareArgs, wanted: &RunNames) -> Result<Vec<Run>, Failure> {
    let load = |name: &String| {
        let dir = ew_store::resolve(&args.runs.runs_dir, name).map_err(Failure::usage)?;
        ew_store::load(&dir).map_err(Failure::failed)
    };
    wanted.0.iter().map(load).collect()
}

fn refuse_twice(base: &[Run], other: &[Run]) -> Result<(), Failure> {
    let mut ids: Vec<&str> = base
        .iter()
        .chain(other)
        .map(|run| run.manifest.id.as_str())
        .collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::usage(anyhow!(
            "{} is given twice, but a run is compared with others; name the same run once",
            pair[0]
        ))),
        None => Ok(()),
    }
}

/// `5%`, `5%`, `0.5%`.
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
        assert_eq!(parse_share(" 0.5% "), Ok(0.005));
        for wrong in ["5", "0.05", "-5%", "%", "five%", ""] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn runs_of_a_state_are_separated_by_commas() {
        let names = |text: &str| text.parse::<RunNames>().map(|names| names.0);
        assert_eq!(names("last").unwrap(), ["last"]);
        assert_eq!(names("last~2, last~1").unwrap(), ["last~2", "last~1"]);
        assert!(names("a,,b").is_err() && names("").is_err());
        assert!(names(&vec!["a"; 51].join(",")).is_err());
    }

    #[test]
    fn two_names_and_no_more() {
        let names = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(parse_names("1 GbE, 10 GbE"), names("1 GbE", "10 GbE"));
        assert!(parse_names("one").is_err() && parse_names("a,").is_err());
        assert!(parse_names("a,b,c").is_err());
    }
}
