//! Shell completions and the manual page, made from the command line's own definition.

use crate::cli::Cli;
use crate::exit::{Failure, Outcome};
use crate::output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::path::PathBuf;
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

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages of all subcommands into this directory instead
    directory: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs) -> Outcome {
    if let Some(directory) = &args.directory {
        clap_mangen::generate_to(Cli::command(), directory).map_err(Failure::failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(Failure::failed)?;
    output::print(&String::from_utf8_lossy(&page));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_has_a_page_but_hidden_ones() {
        let work = tempfile::tempdir().unwrap();
        let args = ManArgs {
            directory: Some(work.path().to_owned()),
        };
        man(&args).unwrap();
        let has = |name: &str| work.path().join(format!("{name}.1")).exists();
        assert!(has("eastwest") && has("eastwest-run") && has("eastwest-lab-up"));
        assert!(!has("eastwest-agent"));
    }

    #[test]
    fn help_of_run() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let run = cli.find_subcommand_mut("run").unwrap();
        insta::assert_snapshot!(run.render_long_help());
    }

    #[test]
    fn every_shell_is_told_the_workloads() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "eastwest", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["--workload", "--streams", "--live"] {
                // fish and elvish write options without their dashes.
                let bare = word.trim_start_matches('-');
                assert!(script.contains(bare), "{shell}: no {word}");
            }
            let knows_values = !matches!(shell, Shell::Elvish | Shell::PowerShell);
            assert!(script.contains("udp-stream") || !knows_values, "{shell}");
        }
    }
}
