//! Readings in a file: a JSON document a line, each with its host.

use crate::exit::Failure;
use anyhow::{Context, anyhow};
use ew_model::telemetry::HostReading;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file that is being written.
pub(super) struct Record {
    path: PathBuf,
    file: Mutex<BufWriter<File>>,
}

impl Record {
    /// A new file; one that is there already is not overwritten.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let created = File::create_new(path);
        let context = || format!("--record {}: cannot be created", path.display());
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(BufWriter::new(
                created.with_context(context).map_err(Failure::usage)?,
            )),
        })
    }

    /// Whole at once, so that an interrupted recording ends with a whole line.
    pub(super) fn write(&self, host: &str, reading: &HostReading) -> Result<(), Failure> {
        let mut line = json!({ "host": host, "reading": reading })
            .to_string()
            .into_bytes();
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(&line).and_then(|()| file.flush());
        let context = || format!("--record {}: cannot be written", self.path.display());
        written.with_context(context).map_err(Failure::failed)
    }
}

/// Every line's host and reading.
pub(super) fn lines_of(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(String, HostReading), Failure>>, Failure> {
    let file_name = format!("--replay {}", path.display());
    let file = File::open(path).with_context(|| format!("{file_name}: cannot be read"));
    let lines = BufReader::new(file.map_err(Failure::usage)?).lines();
    Ok((1..).zip(lines).map(move |(number, line)| {
        let line = line.with_context(|| format!("{file_name}: line {number} cannot be read"));
        let line = line.map_err(Failure::failed)?;
        let other =
            || format!("{file_name}: line {number} is no reading of `eastwest top --record`");
        parse(&line).with_context(other).map_err(Failure::usage)
    }))
}

fn parse(line: &str) -> anyhow::Result<(String, HostReading)> {
    let mut line: Value = serde_json::from_str(line)?;
    let host = line["host"]
        .as_str()
        .context("it names no host")?
        .to_owned();
    Ok((host, serde_json::from_value(line["reading"].take())?))
}

/// Whose readings there are, in the order in which they come.
pub(super) fn hosts_in(path: &Path) -> Result<Vec<String>, Failure> {
    let mut hosts: Vec<String> = Vec::new();
    for line in lines_of(path)? {
        let (host, _) = line?;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    match hosts.is_empty() {
        true => Err(Failure::usage(anyhow!(
            "--replay {}: it has no readings",
            path.display()
        ))),
        false => Ok(hosts),
    }
}
