//! `eastwest run testdfsio`: Hadoop's own TestDFSIO, as a job on its cluster.

use crate::commands::dfsio::StorageArgs;
use crate::exit::Failure;
use anyhow::anyhow;
use clap::Args;
use ew_controller::StorageTask;
use ew_model::inventory::{HostId, Inventory};
use ew_model::run::Run;
use ew_model::storage::TestDfsio;
use std::path::Path;

/// Flags of `run testdfsio`.
#[derive(Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Hadoop's TestDFSIO (run testdfsio)")]
pub(crate) struct TestDfsioArgs {
    /// Host that submits the job [default: the first client]
    #[arg(long, value_name = "HOST")]
    submit_on: Option<String>,
    /// HADOOP_HOME on that host, or its yarn or hadoop program [default: of its environment]
    #[arg(long, value_name = "PATH")]
    hadoop: Option<String>,
    /// Jar with TestDFSIO on that host [default: hadoop-mapreduce-client-jobclient-*-tests.jar
    /// below --hadoop]
    #[arg(long, value_name = "FILE")]
    testdfsio_jar: Option<String>,
    /// Set a property of Hadoop for the job, such as mapreduce.map.memory.mb=2048; repeatable
    #[arg(short = 'D', long = "hadoop-set", value_name = "KEY=VALUE")]
    hadoop_set: Vec<String>,
}

impl TestDfsioArgs {
    /// The host that submits, if it was chosen.
    pub(crate) fn submitter_name(&self) -> Option<&str> {
        self.submit_on.as_deref()
    }

    /// A flag of these that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--submit-on", self.submit_on.is_some()),
            ("--hadoop", self.hadoop.is_some()),
            ("--testdfsio-jar", self.testdfsio_jar.is_some()),
            ("--hadoop-set", !self.hadoop_set.is_empty()),
        ];
        let given = flags.into_iter().find(|(_, given)| *given);
        given.map(|(name, _)| name)
    }

    /// Leaves the files to a job that one host submits.
    pub(crate) fn prepare(
        &self,
        task: &mut StorageTask,
        storage: &StorageArgs,
        inventory: &Inventory,
    ) -> Result<(), Failure> {
        if let Some(flag) = storage.flag_of_workers() {
            return Err(Failure::usage(anyhow!(
                "{flag} does not work with run testdfsio, whose map tasks move the files; leave it out, or run dfsio"
            )));
        }
        let [target] = task.endpoints.as_slice() else {
            return Err(Failure::usage(anyhow!(
                "run testdfsio takes one --target; give hdfs://NAMENODE:PORT/DIRECTORY"
            )));
        };
        if !target.starts_with("hdfs://") {
            return Err(Failure::usage(anyhow!(
                "--target {target}: Hadoop's TestDFSIO needs HDFS; give hdfs://NAMENODE:PORT/DIRECTORY, or run dfsio"
            )));
        }
        if let Some(odd) = self.hadoop_set.iter().find(|pair| !is_setting(pair)) {
            return Err(Failure::usage(anyhow!(
                "--hadoop-set {odd}: expected KEY=VALUE, such as mapreduce.map.memory.mb=2048"
            )));
        }
        if let Some(key) = self.hadoop_set.iter().find_map(|pair| place_of(pair)) {
            return Err(Failure::usage(anyhow!(
                "--hadoop-set {key}: the files are at --target, and what is there is removed at the end; leave it out, and give --target hdfs://NAMENODE:PORT/DIRECTORY"
            )));
        }
        task.workers = vec![self.submitter(task, inventory)?];
        task.job.verify = false;
        task.job.testdfsio = Some(TestDfsio {
            hadoop: self.hadoop.clone(),
            jar: self.testdfsio_jar.clone(),
            settings: self.hadoop_set.clone(),
        });
        Ok(())
    }

    fn submitter(&self, task: &StorageTask, inventory: &Inventory) -> Result<HostId, Failure> {
        let Some(name) = &self.submit_on else {
            let first = task.workers.first().copied();
            return first.ok_or_else(|| Failure::usage(anyhow!("no host to submit the job on")));
        };
        let found = inventory.host_ids().find(|id| inventory.name(*id) == name);
        found.ok_or_else(|| {
            Failure::usage(anyhow!(
                "--submit-on {name}: no such host in this run; add it to --hosts"
            ))
        })
    }
}

fn is_setting(pair: &str) -> bool {
    pair.split_once('=').is_some_and(|(key, _)| !key.is_empty())
}

/// The key of a setting that would move the job's files away from `--target`.
fn place_of(pair: &str) -> Option<&str> {
    let (key, _) = pair.split_once('=')?;
    ["fs.defaultFS", "fs.default.name", "test.build.data"]
        .into_iter()
        .find(|place| *place == key.trim())
}

/// Logs and result files next to the data: `testdfsio-0-write.log`, and `TestDFSIO_results.log` as
/// TestDFSIO itself names it.
///
/// # Errors
/// The store's.
pub(crate) fn keep_logs(run: &Run, dir: &Path) -> Result<(), ew_store::StoreError> {
    let mut results = String::new();
    for step in &run.storage {
        let logs = step.reports.iter().map(|(_, report)| &report.testdfsio);
        for log in logs.flatten() {
            let mut text = format!("$ {}\n", log.command.join(" "));
            for line in &log.lines {
                text.push_str(&line.text);
                text.push('\n');
            }
            if log.skipped_lines > 0 {
                text.push_str(&format!("({} lines skipped)\n", log.skipped_lines));
            }
            let name = format!("testdfsio-{}-{}.log", step.step, step.operation.name());
            ew_store::write_file(dir, &name, text.as_bytes())?;
            if !log.result.is_empty() {
                results.push_str(&log.result);
                results.push('\n');
            }
        }
    }
    if !results.is_empty() {
        ew_store::write_file(dir, "TestDFSIO_results.log", results.as_bytes())?;
    }
    Ok(())
}
