//! Scenarios that are commands, too: `eastwest pair A B` is `eastwest run pair --hosts A,B`.

use std::ffi::OsString;

/// Scenarios that people ask for by name. Their words are no subcommand's.
const SCENARIOS: [&str; 4] = ["pair", "latency", "mesh", "congestion"];

/// A command line as `run` reads it: what is between the scenario and the first option are
/// hosts.
pub(crate) fn spelled_out(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    let is_short = |word: &OsString| SCENARIOS.iter().any(|name| word == name);
    if !words.get(1).is_some_and(is_short) {
        return words;
    }
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let end = words[2..]
        .iter()
        .position(is_option)
        .map_or(words.len(), |at| at + 2);
    let hosts: Vec<OsString> = words.drain(2..end).collect();
    if !hosts.is_empty() {
        let hosts = hosts.join(OsString::from(",").as_os_str());
        words.splice(2..2, [OsString::from("--hosts"), hosts]);
    }
    words.insert(1, "run".into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let words = spelled_out(words).into_iter();
        let words: Vec<String> = words.map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_scenario_as_a_command_takes_hosts() {
        assert_eq!(
            of("eastwest pair a b -P 4"),
            "eastwest run pair --hosts a,b -P 4"
        );
        assert_eq!(
            of("eastwest mesh n[1-4]"),
            "eastwest run mesh --hosts n[1-4]"
        );
        assert_eq!(of("eastwest latency --help"), "eastwest run latency --help");
        assert_eq!(of("eastwest pair"), "eastwest run pair");
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "eastwest",
            "eastwest run pair --hosts a,b",
            "eastwest hosts pair",
        ] {
            assert_eq!(of(line), line);
        }
    }
}
