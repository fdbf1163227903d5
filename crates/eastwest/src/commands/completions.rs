//! Shell completions and the manual page, made from the command line's own definition.

use crate::cli;
use crate::exit::{Failure, Outcome};
use crate::output;
use anyhow::Context;
use clap::Args;
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
    clap_complete::generate(args.shell, &mut cli::definition(), "eastwest", &mut script);
    output::print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per command into this directory, for example /usr/local/share/man/man1
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs) -> Outcome {
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(cli::definition(), dir))
            .with_context(|| format!("cannot write manual pages to `{}`", dir.display()))
            .map_err(Failure::failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(cli::definition())
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
        cli::definition().debug_assert();
    }

    #[test]
    fn help_of_run() {
        let mut cli = cli::definition().term_width(100);
        cli.build();
        let run = cli.find_subcommand_mut("run").unwrap();
        insta::assert_snapshot!(run.render_long_help());
    }

    #[test]
    fn every_command_has_its_manual_page() {
        let dir = tempfile::tempdir().unwrap();
        man(&ManArgs {
            dir: Some(dir.path().to_owned()),
        })
        .unwrap();
        let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(page("eastwest.1").contains("eastwest\\-pair(1)"));
        assert!(page("eastwest-pair.1").contains("bidir"));
        assert!(page("eastwest-lab-up.1").contains("racks"));
        assert!(!dir.path().join("eastwest-agent.1").exists());
    }

    #[test]
    fn every_shell_completes_the_workloads() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut cli::definition(), "eastwest", &mut script);
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
