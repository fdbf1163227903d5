//! Saved clusters: `-c prod` means the options under `prod` in
//! `~/.config/eastwest/clusters.yaml`.

use crate::exit::Failure;
use crate::input_file::read_text;
use anyhow::{Context, anyhow};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Headings of the options that a cluster may state.
const HEADINGS: [&str; 5] = [
    "Hosts",
    "Connection",
    "Advanced",
    "Kubernetes (--via kubernetes)",
    "Slurm",
];
/// Ids of options and arguments that name hosts: any of them goes before the saved hosts.
const NAMING: [&str; 3] = ["hosts", "group", "more_hosts"];
/// Options whose value is a file: relative to the directory of clusters.yaml.
const PATHS: [&str; 7] = [
    "hosts-file",
    "addresses",
    "ssh-config",
    "identity",
    "topology",
    "kubeconfig",
    "pod-overrides",
];
/// The subcommand that knows every option of a cluster.
const FULLEST: &str = "run";

/// The command line with the saved cluster's options in it; those that are given on it go first.
/// Unchanged where none is named, or where the words do not parse, which the caller then reports.
///
/// # Errors
/// A usage failure when the file or the cluster is not there, or states something that is no option
/// of hosts or fleets.
pub(crate) fn with_saved_options(
    words: Vec<OsString>,
    cli: &Command,
) -> Result<Vec<OsString>, Failure> {
    let Ok(matches) = cli.clone().try_get_matches_from(&words) else {
        return Ok(words);
    };
    let Some((subcommand, given)) = matches.subcommand() else {
        return Ok(words);
    };
    let Some(cluster) = given.try_get_one::<String>("cluster").ok().flatten() else {
        return Ok(words);
    };
    let file = clusters_file()?;
    let saved = read(&file, cluster)?;
    let directory = file.parent().unwrap_or(Path::new("."));
    let wrong = |problem: String| {
        Failure::usage(anyhow!(
            "cluster `{cluster}` in {}: {problem}",
            file.display()
        ))
    };
    let options = options(&saved, cli, subcommand, given, directory).map_err(wrong)?;
    let position = words
        .iter()
        .position(|word| word.to_str() == Some(subcommand))
        .map_or(words.len(), |at| at + 1);
    let (before, after) = words.split_at(position);
    let words = [before, &options, after].concat();
    match cli.clone().try_get_matches_from(&words) {
        Ok(_) => Ok(words),
        Err(error) => Err(wrong(first_paragraph(&error.to_string()))),
    }
}

/// Of clap's words, without its own beginning and its hints.
fn first_paragraph(words: &str) -> String {
    let words = words.split("\n\n").next().unwrap_or_default();
    words.trim_start_matches("error: ").trim().to_owned()
}

fn clusters_file() -> Result<PathBuf, Failure> {
    let directory = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let config = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")));
    let config = config.ok_or_else(|| {
        Failure::usage(anyhow!(
            "-c needs HOME or XDG_CONFIG_HOME, to find eastwest/clusters.yaml"
        ))
    })?;
    Ok(config.join("eastwest/clusters.yaml"))
}

fn read(file: &Path, cluster: &str) -> Result<Map<String, Value>, Failure> {
    let text = read_text(file)
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(Failure::usage)?;
    let clusters: Map<String, Value> = serde_saphyr::from_str(&text).map_err(|error| {
        let problem = match error.without_snippet() {
            serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
                format!("the key `{key}` is there twice; keep one")
            }
            other => format!("not a mapping of clusters: {other}"),
        };
        Failure::usage(anyhow!("{}: {problem}", file.display()))
    })?;
    match clusters.get(cluster) {
        Some(Value::Object(options)) => Ok(options.clone()),
        Some(_) => Err(Failure::usage(anyhow!(
            "cluster `{cluster}` in {} has no options; write `hosts: SET` below it",
            file.display()
        ))),
        None => {
            let known: Vec<&str> = clusters.keys().map(String::as_str).collect();
            Err(Failure::usage(anyhow!(
                "no cluster `{cluster}` in {}; there are: {}",
                file.display(),
                known.join(", ")
            )))
        }
    }
}

fn options(
    saved: &Map<String, Value>,
    cli: &Command,
    subcommand: &str,
    given: &ArgMatches,
    directory: &Path,
) -> Result<Vec<OsString>, String> {
    let known = known_options(cli, FULLEST);
    let here = known_options(cli, subcommand);
    let refused = refused(cli, subcommand, given);
    let mut words = Vec::new();
    for (key, value) in saved {
        if !known.iter().any(|(long, _)| long == key) {
            let names: Vec<&str> = known.iter().map(|(long, _)| long.as_str()).collect();
            return Err(format!("no option `{key}`; known are {}", names.join(", ")));
        }
        let Some((_, id)) = here.iter().find(|(long, _)| long == key) else {
            continue;
        };
        if is_given(given, id) || refused.contains(id) {
            continue;
        }
        let values = match value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            words.extend(option(key, &value, directory)?);
        }
    }
    Ok(words)
}

/// Whether the command line specifies it, or names hosts in another way.
fn is_given(given: &ArgMatches, id: &str) -> bool {
    match NAMING.contains(&id) {
        true => NAMING.iter().any(|id| is_on_the_line(given, id)),
        false => is_on_the_line(given, id),
    }
}

fn is_on_the_line(given: &ArgMatches, id: &str) -> bool {
    let known = given.try_contains_id(id).is_ok();
    known && given.value_source(id) == Some(ValueSource::CommandLine)
}

/// Ids of options that do not go with one on the command line, such as --ipv4 with --ipv6.
fn refused(cli: &Command, subcommand: &str, given: &ArgMatches) -> BTreeSet<String> {
    let Some(command) = cli.find_subcommand(subcommand) else {
        return BTreeSet::new();
    };
    let mut refused = BTreeSet::new();
    for option in command.get_arguments() {
        for other in command.get_arg_conflicts_with(option) {
            let (id, other) = (option.get_id().as_str(), other.get_id().as_str());
            if is_on_the_line(given, id) {
                refused.insert(other.to_owned());
            }
            if is_on_the_line(given, other) {
                refused.insert(id.to_owned());
            }
        }
    }
    refused
}

fn option(key: &str, value: &Value, directory: &Path) -> Result<Option<OsString>, String> {
    let text = match value {
        Value::Bool(true) => return Ok(Some(format!("--{key}").into())),
        Value::Bool(false) | Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        other => {
            return Err(format!(
                "`{key}` is {other}; give a word or a list of words"
            ));
        }
    };
    let mut word = OsString::from(format!("--{key}="));
    match PATHS.contains(&key) {
        true => word.push(path(&text, directory)),
        false => word.push(text),
    }
    Ok(Some(word))
}

fn path(text: &str, directory: &Path) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => directory.join(text),
    }
}

/// Long names and ids of a subcommand's options that a cluster may state.
fn known_options(cli: &Command, subcommand: &str) -> Vec<(String, String)> {
    let options = cli
        .find_subcommand(subcommand)
        .into_iter()
        .flat_map(Command::get_arguments);
    let of_clusters = options.filter(|option| {
        let heading = option.get_help_heading();
        heading.is_some_and(|heading| HEADINGS.contains(&heading)) && option.get_id() != "cluster"
    });
    let names = |option: &clap::Arg| -> Vec<(String, String)> {
        let aliases = option.get_all_aliases().unwrap_or_default();
        let names = option.get_long().into_iter().chain(aliases);
        names
            .map(|name| (name.to_owned(), option.get_id().to_string()))
            .collect()
    };
    of_clusters.flat_map(names).collect()
}
