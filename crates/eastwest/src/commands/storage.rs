//! `eastwest storage`: what a run left behind in a storage system.

use crate::exit::{self, Failure, Outcome};
use crate::output;
use anyhow::anyhow;
use clap::{Args, Subcommand};
use ew_storage::Lease;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct StorageCommandArgs {
    #[command(subcommand)]
    command: StorageCommand,
}

#[derive(Debug, Subcommand)]
enum StorageCommand {
    /// Put DataNodes back in service that a fan-in took out and could not put back
    Restore {
        /// The NameNode's hosts file (dfs.hosts), as given to the fan-in; its lease lies next to it
        #[arg(long, value_name = "FILE")]
        dfs_hosts: PathBuf,
    },
}

pub(crate) fn run(args: &StorageCommandArgs) -> Outcome {
    let StorageCommand::Restore { dfs_hosts } = &args.command;
    let found = dfs_hosts.canonicalize();
    let path = found.as_deref().unwrap_or(dfs_hosts);
    let Some(lease) = Lease::find(path).map_err(Failure::failed)? else {
        if let Err(error) = &found {
            return Err(Failure::usage(anyhow!(
                "--dfs-hosts `{}`: {error}; give the file that the fan-in had, on the host where it ran",
                dfs_hosts.display()
            )));
        }
        output::print(&format!(
            "nothing to restore: no lease next to {}",
            path.display()
        ));
        return Ok(ExitCode::SUCCESS);
    };
    if is_at_work(lease.pid) {
        return Err(Failure::usage(anyhow!(
            "process {} still runs the fan-in; end it with Ctrl-C, and it puts the DataNodes back",
            lease.pid
        )));
    }
    let late = lease.restore().map_err(Failure::failed)?;
    let names: Vec<&str> = lease.nodes.iter().map(|node| node.host.as_str()).collect();
    if late.is_empty() {
        output::print(&format!("in service again: {}", names.join(", ")));
        return Ok(ExitCode::SUCCESS);
    }
    output::say(&format!(
        "warning: not in service yet: {}; see `hdfs dfsadmin -report`",
        late.join(", ")
    ));
    Ok(ExitCode::from(exit::PARTIAL))
}

/// Whether the process is there and one of ours: numbers are given again.
fn is_at_work(pid: u32) -> bool {
    let of = |name: &str| std::fs::read_link(Path::new("/proc").join(name).join("exe"));
    let file = |link: std::io::Result<PathBuf>| {
        link.ok()
            .and_then(|path| path.file_name().map(ToOwned::to_owned))
    };
    let theirs = file(of(&pid.to_string()));
    theirs.is_some() && theirs == file(of("self")) && pid != std::process::id()
}
