//! `eastwest run fan-in --target`: the same files against fewer and fewer storage nodes.

use crate::exit::Failure;
use anyhow::anyhow;
use ew_analyze_storage::limits::{FEWER_SERVERS, NETWORK_STAGES, READ_SUFFIX};
use ew_controller::{DiskTask, StorageTask};
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{End, Flow, FlowId, Plan, Round, Stage};
use ew_model::scenario::Roles;
use ew_model::storage::StorageJob;
use ew_storage::{HdfsTarget, Maintenance, NameNode, Problem, StorageError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The word on the command line. Without --target it is the network's part alone.
pub(crate) const SCENARIO: &str = "fan-in";
/// Hosts of each set that are measured alone.
const MAX_ALONE: usize = 2;

/// What the command line specifies about a fan-in.
pub(crate) struct Wanted<'a> {
    pub(crate) numbers: &'a [u32],
    pub(crate) clients: &'a [u32],
    pub(crate) hosts_file: Option<&'a Path>,
    pub(crate) disk: Option<&'a Path>,
    pub(crate) keep: bool,
    /// Of the network's part.
    pub(crate) overrides: &'a [String],
}

/// Makes a storage task one of many numbers of storage nodes. Asks the NameNode, and changes
/// nothing yet.
pub(crate) fn prepare(
    task: &mut StorageTask,
    wanted: &Wanted<'_>,
    inventory: &Inventory,
    roles: Option<&Roles>,
) -> Result<(), Failure> {
    if wanted.keep {
        return Err(Failure::usage(anyhow!(
            "a fan-in removes its files after each step; leave --keep out"
        )));
    }
    task.client_counts = client_counts(wanted.clients, task)?;
    if task.client_counts.is_empty() || !wanted.numbers.is_empty() {
        take_nodes_out(task, wanted)?;
    }
    let servers = servers(inventory, roles);
    if let Some(disk) = wanted.disk {
        task.disks = Some(disks(task, disk, &servers)?);
    }
    if !servers.is_empty() {
        task.network = Some(network(inventory, roles, task, wanted.overrides)?);
    }
    Ok(())
}

/// Storage nodes one by one.
fn take_nodes_out(task: &mut StorageTask, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let nodes = match name_node(task)? {
        Some(name_node) => {
            let maintenance = maintenance(name_node, task, wanted.hosts_file)?;
            let nodes = maintenance.nodes().len();
            task.maintenance = Some(Arc::new(Mutex::new(maintenance)));
            nodes
        }
        None => task.endpoints.len(),
    };
    task.fan_in = numbers(wanted.numbers, nodes)?;
    Ok(())
}

fn client_counts(wanted: &[u32], task: &StorageTask) -> Result<Vec<usize>, Failure> {
    let (clients, targets) = (task.workers.len(), task.endpoints.len());
    if let Some(few) = wanted.iter().find(|count| (**count as usize) < targets) {
        return Err(Failure::usage(anyhow!(
            "--client-counts {few}: each client uses one target and there are {targets}; give {targets} to {clients}"
        )));
    }
    if let Some(many) = wanted.iter().find(|count| **count as usize > clients) {
        return Err(Failure::usage(anyhow!(
            "--client-counts {many}: there are {clients} clients; give 1 to {clients}"
        )));
    }
    Ok(wanted.iter().map(|count| *count as usize).collect())
}

/// Of the one target, if it is in HDFS. Several targets are dropped one by one, whatever they are.
fn name_node(task: &StorageTask) -> Result<Option<NameNode>, Failure> {
    let [target] = task.endpoints.as_slice() else {
        return Ok(None);
    };
    let Some(rest) = target.strip_prefix("hdfs://") else {
        return Ok(None);
    };
    let target = HdfsTarget::parse(rest).map_err(Failure::usage)?;
    let address = target.name_node().ok_or_else(|| {
        Failure::usage(anyhow!(
            "a fan-in asks the NameNode itself; write --target hdfs://HOST:PORT/DIRECTORY with the active one's RPC port"
        ))
    })?;
    NameNode::new(address).map(Some).map_err(failure)
}

/// The NameNode's DataNodes, to be taken out and put back. The job gets the NameNode's replication
/// if it has none.
fn maintenance(
    name_node: NameNode,
    task: &mut StorageTask,
    hosts_file: Option<&Path>,
) -> Result<Maintenance, Failure> {
    let hosts_file = hosts_file.ok_or_else(|| {
        Failure::usage(anyhow!(
            "a fan-in on HDFS takes DataNodes out of service through the NameNode's hosts file; run it where that file is, and give --dfs-hosts FILE (dfs.hosts)"
        ))
    })?;
    if task.job.replication.is_none() {
        let default = name_node.default_replication().map_err(failure)?;
        task.job.replication = Some(default);
    }
    Maintenance::begin(name_node, hosts_file).map_err(failure)
}

fn failure(error: StorageError) -> Failure {
    match error.problem {
        Problem::BadTarget(_)
        | Problem::NoClient(_)
        | Problem::HostsFile(_)
        | Problem::NotFound => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

fn numbers(wanted: &[u32], nodes: usize) -> Result<Vec<usize>, Failure> {
    if nodes < 2 {
        return Err(Failure::usage(anyhow!(
            "a fan-in takes storage nodes away one by one and there is {nodes}; give --target URL,URL, or a NameNode with DataNodes in service"
        )));
    }
    if let Some(many) = wanted.iter().find(|number| **number as usize > nodes) {
        return Err(Failure::usage(anyhow!(
            "--storage-nodes {many}: there are {nodes}; give 1 to {nodes}"
        )));
    }
    Ok(match wanted {
        [] => (1..=nodes).rev().collect(),
        given => given.iter().map(|number| *number as usize).collect(),
    })
}

fn servers(inventory: &Inventory, roles: Option<&Roles>) -> Vec<HostId> {
    let serves = |id: &HostId| {
        roles.is_some_and(|roles| roles.servers.iter().any(|name| name == inventory.name(*id)))
    };
    inventory.host_ids().filter(serves).collect()
}

/// Each disk serves as many files, and as many of them at once, as it would with all files on it
/// evenly. DataNodes sync at a block's end, as the close of a file does here, and do not drop it
/// from their page cache, so on HDFS the disk alone is read the same way.
fn disks(task: &StorageTask, disk: &Path, servers: &[HostId]) -> Result<DiskTask, Failure> {
    if servers.is_empty() {
        return Err(Failure::usage(anyhow!(
            "--disk is measured on the storage nodes; name them with --servers"
        )));
    }
    let at_once = match task.job.testdfsio {
        // As many map tasks as files.
        Some(_) => task.files,
        None => task.job.parallel * task.workers.len() as u32,
    };
    let is_hdfs = task.job.target.starts_with("hdfs://");
    let job = StorageJob {
        target: format!("file://{}", disk.display()),
        parallel: at_once.div_ceil(servers.len() as u32),
        sync: task.job.sync || is_hdfs,
        drop_cache: task.job.drop_cache && !is_hdfs,
        // Written again, a file's bytes would be gone before they reach the disk.
        time_ns: None,
        replication: None,
        block_bytes: None,
        testdfsio: None,
        ..task.job.clone()
    };
    ew_storage::check_target(&job).map_err(Failure::usage)?;
    Ok(DiskTask {
        hosts: servers.to_vec(),
        files_per_host: task.files.div_ceil(servers.len() as u32).max(job.parallel),
        job,
    })
}

/// The built-in scenario of this name, with each of its stages in both directions.
fn network(
    inventory: &Inventory,
    roles: Option<&Roles>,
    task: &StorageTask,
    overrides: &[String],
) -> Result<Plan, Failure> {
    let text = ew_plan::scenario::builtin(SCENARIO).unwrap_or_default();
    let file = ew_plan::scenario::parse_file(text, SCENARIO, overrides).map_err(Failure::usage)?;
    let mut scenario = file.scenario;
    scenario.roles = roles.cloned();
    let mut plan = ew_plan::plan(&scenario, inventory, task.job.seed).map_err(Failure::usage)?;
    for stage in &mut plan.stages {
        keep_some(stage, &task.fan_in);
    }
    plan.stages.retain(|stage| !stage.rounds.is_empty());
    let mut next = ew_plan::plan::next_flow_id(&plan).0;
    let reversed: Vec<Stage> = plan
        .stages
        .iter()
        .map(|stage| reversed(stage, &mut next))
        .collect();
    plan.stages.extend(reversed);
    Ok(plan)
}

/// Hosts alone are alike until shown otherwise; all of them one by one would take longer than the
/// storage. Of fewer and fewer servers those numbers that the storage is measured with.
fn keep_some(stage: &mut Stage, numbers: &[usize]) {
    if stage.name == FEWER_SERVERS {
        let servers = |round: &Round| {
            let servers: BTreeSet<HostId> = round.flows.iter().map(|flow| flow.dst).collect();
            servers.len()
        };
        stage
            .rounds
            .retain(|round| numbers.contains(&servers(round)));
    } else if stage.name != NETWORK_STAGES[0] {
        stage.rounds.truncate(MAX_ALONE);
    }
}

/// Data the other way over connections that the same side opens.
fn reversed(stage: &Stage, next: &mut u32) -> Stage {
    let mut flow = |flow: &Flow| {
        *next += 1;
        Flow {
            id: FlowId(*next - 1),
            src: flow.dst,
            dst: flow.src,
            opened_by: match flow.opened_by {
                End::Src => End::Dst,
                End::Dst => End::Src,
            },
            ..flow.clone()
        }
    };
    let rounds = stage.rounds.iter().map(|round| Round {
        flows: round.flows.iter().map(&mut flow).collect(),
        ..round.clone()
    });
    Stage {
        name: format!("{}{READ_SUFFIX}", stage.name),
        rounds: rounds.collect(),
        ..stage.clone()
    }
}
