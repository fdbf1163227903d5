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
    directory: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs) -> Outcome {
    if let Some(dir) = &args.directory {
        std::fs::create_dir_all(dir)
            .and_then(|()| clap_mangen::generate_to(cli::definition(), dir))
            .with_context(|| format!("cannot write manual pages to `{}`", dir.display()))
            .map_err(Failure::usage)?;
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

    /// Options below a heading of a help text.
    fn group<'h>(help: &'h str, heading: &str) -> &'h str {
        let start = help.find(&format!("\n{heading}:\n")).unwrap();
        let rest = &help[start + heading.len() + 3..];
        let end = rest.find("\n\n\n").or_else(|| {
            let mut lines = rest.match_indices('\n').map(|(at, _)| at + 1);
            lines.find(|at| rest[*at..].starts_with(|c: char| c.is_ascii_uppercase()))
        });
        &rest[..end.unwrap_or(rest.len())]
    }

    #[test]
    fn the_help_of_run_is_in_groups() {
        let mut cli = cli::definition().term_width(100);
        cli.build();
        let run = cli.find_subcommand_mut("run").unwrap();
        let help = run.render_long_help().to_string();
        for (heading, options) in [
            ("Hosts", &["--hosts", "--racks", "--network"][..]),
            ("Connection", &["--via", "--ssh-user", "--jump"]),
            (
                "Test",
                &["--duration", "--streams", "--expect-nic", "--set"],
            ),
            ("Safety", &["--max-rate", "--dry-run", "--yes"]),
            ("Output", &["--format", "--output", "--runs-dir", "--quiet"]),
            (
                "Advanced",
                &["--data-ports", "--sample-interval", "--remote-dir"],
            ),
        ] {
            let group = group(&help, heading);
            for option in options {
                assert!(
                    group.contains(&format!("{option} ")) || group.contains(&format!("{option}\n")),
                    "{heading}: no {option}\n{group}"
                );
            }
        }
        assert!(!group(&help, "Output").contains("--hosts"));
    }

    #[test]
    fn every_command_has_its_manual_page() {
        let dir = tempfile::tempdir().unwrap();
        man(&ManArgs {
            directory: Some(dir.path().to_owned()),
        })
        .unwrap();
        let page = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(page("eastwest.1").contains("eastwest\\-pair(1)"));
        assert!(page("eastwest-pair.1").contains("bidir"));
        assert!(page("eastwest-lab-up.1").contains("Racks, hosts"));
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
