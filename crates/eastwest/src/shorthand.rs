//! Scenarios that are commands, too: `eastwest pair A B` is `eastwest run pair A B`.

use clap::Command;
use std::ffi::OsString;

/// Scenarios that people ask for by name, and how many hosts they take.
const SCENARIOS: [(&str, &str); 4] = [
    ("pair", "HOST HOST"),
    ("latency", "HOST HOST"),
    ("mesh", "SET..."),
    ("congestion", "SET..."),
];

/// Whether a command is one of them.
fn is_scenario(name: &str) -> bool {
    SCENARIOS.iter().any(|(scenario, _)| *scenario == name)
}

/// The command line with the scenario as the command's first argument, where `run` has it.
pub(crate) fn spelled_out(mut words: Vec<OsString>) -> Vec<OsString> {
    let command = words.get(1).cloned().unwrap_or_default();
    if command.to_str().is_some_and(is_scenario) {
        words.insert(2, command);
    }
    words
}

/// Their help shows hosts instead of a scenario. `pair` has iperf3's `-w` and `-l`, because its
/// hosts need no option.
pub(crate) fn dress(cli: Command) -> Command {
    cli.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let Some((_, hosts)) = SCENARIOS.iter().find(|(scenario, _)| *scenario == name) else {
            return command;
        };
        let command = command
            .override_usage(format!("eastwest {name} [OPTIONS] {hosts}"))
            .mut_arg("scenario", |scenario| scenario.hide(true));
        if name != "pair" {
            return command;
        }
        command
            .mut_arg("hosts", |hosts| hosts.short(None))
            .mut_arg("ssh_user", |user| user.short(None))
            .mut_arg("window", |window| window.short('w'))
            .mut_arg("length", |length| length.short('l'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn of(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = spelled_out(words).into_iter();
        let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_scenario_as_a_command_is_its_first_argument() {
        assert_eq!(of("eastwest pair -t 5 a b"), "eastwest pair pair -t 5 a b");
        assert_eq!(of("eastwest mesh n[1-4]"), "eastwest mesh mesh n[1-4]");
        for line in ["eastwest", "eastwest run pair a b", "eastwest hosts pair"] {
            assert_eq!(of(line), line);
        }
    }

    #[test]
    fn pair_has_the_flags_of_iperf3_and_run_those_of_clush_and_ssh() {
        let matches = |words: &[&str]| {
            let words = words.iter().map(OsString::from).collect();
            cli::definition().try_get_matches_from(spelled_out(words))
        };
        let pair = [
            "eastwest", "pair", "-P", "4", "-R", "a", "-w", "4M", "b", "-l", "1M", "-t", "5",
        ];
        let (_, pair) = matches(&pair).unwrap().remove_subcommand().unwrap();
        assert_eq!(pair.get_one::<String>("window").unwrap(), "4M");
        assert_eq!(pair.get_one::<String>("length").unwrap(), "1M");
        let hosts: Vec<&String> = pair.get_many("more_hosts").unwrap().collect();
        assert_eq!(hosts, ["a", "b"]);
        let run = [
            "eastwest", "run", "-w", "n[1-4]", "-w", "m1", "-g", "gpu", "-l", "ops", "-n", "6",
        ];
        let (_, run) = matches(&run).unwrap().remove_subcommand().unwrap();
        let hosts: Vec<&String> = run.get_many("hosts").unwrap().collect();
        assert_eq!(hosts, ["n[1-4]", "m1"]);
        assert_eq!(run.get_one::<String>("ssh_user").unwrap(), "ops");
    }
}
