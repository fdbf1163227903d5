//! Shell completions and the manual page, made from the command line's own definition.

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "eastwest", &mut script);
    output::print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man() -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(Failure::failed)?;
    output::print(&String::from_utf8_lossy(&page));
    Ok(ExitCode::SUCCESS)
}
