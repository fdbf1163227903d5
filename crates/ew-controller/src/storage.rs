//! Drives a storage job: one step after the other, all workers of a step from one common start.

use crate::busy_links;
use crate::claim::check_sharing;
use crate::command::Command;
use crate::fleet_event::FleetEvent;
use crate::job::Job;
use crate::journal::Journal;
use crate::launch::bring_up;
use crate::members::{Members, State};
use crate::run_error::RunError;
use ew_model::event::RunEvent;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::Plan;
use ew_model::run::Outcome;
use ew_model::storage::{
    DataNode, DataNodeState, FileOutcome, HdfsFacts, StorageJob, StorageOperation, StorageOrder,
    StorageReport, StorageStep,
};
use ew_proto::controller_session::ControllerEvent;
use ew_storage::{HdfsTarget, Maintenance, NameNode, StorageError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Clock estimates may take this long; who has none by then takes no part.
const SYNC_LIMIT_NS: u64 = 3_000_000_000;
/// From sending the orders to the common start: the last order must have arrived.
const LEAD_NS: u64 = 300_000_000;
/// Additional lead per host.
const LEAD_PER_HOST_NS: u64 = 1_000_000;
/// After an interrupt workers have this long to report: a call to a server that is gone may never
/// return.
const END_LIMIT_NS: u64 = 8_000_000_000;
/// The same of a job of Hadoop's, which is killed by a program of its own: a JVM has to start.
const END_JOB_LIMIT_NS: u64 = 40_000_000_000;
/// After an interrupt removing the files may take this long.
const CLEAN_LIMIT_NS: u64 = 30_000_000_000;

/// How often it is seen whether work on another thread is done.
const POLL_NS: u64 = 50_000_000;

/// What a storage run does.
#[derive(Clone, Debug)]
pub struct StorageTask {
    /// Step by step.
    pub operations: Vec<StorageOperation>,
    /// How files are written and read.
    pub job: StorageJob,
    /// Files, all hosts; file `f` is of host `f` modulo the number of workers.
    pub files: u32,
    /// Hosts with workers, in order. The others are only watched.
    pub workers: Vec<HostId>,
    /// Reads go to files of the host so many further, so that no client has them in its page cache.
    /// Shared storage only.
    pub read_shift: u32,
    /// Where the files go: worker `i` uses endpoint `i` modulo their number. One at least; the
    /// first is the job's target.
    pub endpoints: Vec<String>,
    /// All operations with so many endpoints, or DataNodes, one number after the other. Empty:
    /// once, with all.
    pub fan_in: Vec<usize>,
    /// All operations with so many workers, the first of them, and all endpoints, one number after
    /// the other, after the fan-in; each worker has as many files as with all of them.
    pub client_counts: Vec<usize>,
    /// Takes DataNodes out of service for each step of a fan-in, and puts them back. `None`:
    /// endpoints are skipped instead.
    pub maintenance: Option<Arc<Mutex<Maintenance>>>,
    /// What the network alone carries, measured first. Empty: it is not.
    pub network: Option<Plan>,
    /// What the storage nodes' disks do alone, measured after the network.
    pub disks: Option<DiskTask>,
    /// The files stay when the run ends.
    pub keep: bool,
}

/// Files on the storage nodes' own disks, without a network.
#[derive(Clone, Debug)]
pub struct DiskTask {
    /// The storage nodes.
    pub hosts: Vec<HostId>,
    /// Files of each node, as many as its disk has to serve at once in the run.
    pub files_per_host: u32,
    /// How they are written and read.
    pub job: StorageJob,
}

/// Brings the hosts up.
pub(crate) async fn launch(
    job: &Job,
    task: &StorageTask,
    members: &mut Members,
    journal: &mut Journal,
) -> Result<(), RunError> {
    let hosts: Vec<HostId> = job.inventory.host_ids().collect();
    bring_up(members, &hosts, journal).await?;
    check_sharing(members, &job.options, journal)?;
    if job.options.claimed_by.is_some() {
        let expected = job.scenario.expect.nic_bits_per_sec;
        busy_links::check(members, expected, job.options.force, journal).await?;
    }
    let alive = members.alive();
    let failed = hosts.len() - alive.len();
    if failed > 0 && job.options.require_all {
        return Err(RunError::NotAllHosts { failed });
    }
    match alive.iter().any(|host| task.workers.contains(host)) {
        true => Ok(()),
        false => Err(RunError::NoWorkers),
    }
}

/// All steps, and the removal of the files whatever happened before.
pub(crate) async fn drive(
    job: &Job,
    task: &StorageTask,
    members: &mut Members,
    journal: &mut Journal,
) -> Outcome {
    let mut next_step = 0;
    if let Some(disks) = task.disks.as_ref().map(DiskTask::as_storage) {
        let mut drive = Drive::new(job, &disks, members, journal);
        drive.is_disk_alone = true;
        drive.run_with(1).await;
        if drive.interrupted {
            return Outcome::Interrupted;
        }
        next_step = drive.next_step;
    }
    let mut drive = Drive::new(job, task, members, journal);
    drive.next_step = next_step;
    drive.ask_name_node().await;
    if task.fan_in.is_empty() && task.client_counts.is_empty() {
        drive.run_with(task.endpoints.len()).await;
    }
    if !task.fan_in.is_empty() {
        drive.fan_in().await;
    }
    drive.vary_clients().await;
    match (drive.interrupted, drive.all_done) {
        (true, _) => Outcome::Interrupted,
        (false, true) => Outcome::Complete,
        (false, false) => Outcome::Partial,
    }
}

/// Of the one target, if it is in HDFS and names a NameNode's port.
fn hdfs_of(endpoints: &[String]) -> Option<(String, HdfsTarget)> {
    let [target] = endpoints else { return None };
    let target = HdfsTarget::parse(target.strip_prefix("hdfs://")?).ok()?;
    Some((target.name_node()?.to_owned(), target))
}

/// How far a job is.
struct Drive<'a> {
    inventory: &'a Inventory,
    task: &'a StorageTask,
    members: &'a mut Members,
    journal: &'a mut Journal,
    next_step: u32,
    /// How many of the endpoints are used.
    endpoints: usize,
    /// How many of the workers are used.
    clients: usize,
    /// Bytes each whole file has.
    present_bytes: u64,
    /// Files that later steps may read.
    whole: BTreeSet<u32>,
    /// Files that a step began to write, by the host that did.
    written: BTreeSet<(HostId, u32)>,
    all_done: bool,
    interrupted: bool,
    is_disk_alone: bool,
    /// DataNodes in service, where the run takes them out or the NameNode reported them.
    storage_nodes: Vec<String>,
    /// Those that the NameNode reported.
    all_storage_nodes: Vec<String>,
    /// NameNode and target, once it has answered. `None`: it is not asked.
    hdfs: Option<(String, HdfsTarget)>,
}

impl DiskTask {
    /// As a task of its own, whose workers are the storage nodes.
    fn as_storage(&self) -> StorageTask {
        StorageTask {
            operations: vec![StorageOperation::Write, StorageOperation::Read],
            job: self.job.clone(),
            files: self.files_per_host * self.hosts.len() as u32,
            workers: self.hosts.clone(),
            read_shift: 0,
            endpoints: vec![self.job.target.clone()],
            fan_in: Vec::new(),
            client_counts: Vec::new(),
            maintenance: None,
            network: None,
            disks: None,
            keep: false,
        }
    }
}

impl<'a> Drive<'a> {
    fn new(
        job: &'a Job,
        task: &'a StorageTask,
        members: &'a mut Members,
        journal: &'a mut Journal,
    ) -> Self {
        Self {
            inventory: &job.inventory,
            task,
            members,
            journal,
            next_step: 0,
            endpoints: task.endpoints.len(),
            clients: task.workers.len(),
            present_bytes: task.job.file_bytes,
            whole: BTreeSet::new(),
            written: BTreeSet::new(),
            all_done: true,
            interrupted: false,
            is_disk_alone: false,
            storage_nodes: Vec::new(),
            all_storage_nodes: Vec::new(),
            hdfs: None,
        }
    }
}

impl Drive<'_> {
    /// Once, from here: agents know nothing of it. What could not be asked is a warning; the agents
    /// report themselves what is wrong with HDFS.
    async fn ask_name_node(&mut self) {
        let Some((address, target)) = hdfs_of(&self.task.endpoints) else {
            return;
        };
        let asked = self
            .meanwhile(move || NameNode::new(&address)?.facts())
            .await;
        match asked {
            Ok(facts) => {
                self.hdfs = Some((facts.name_node.clone(), target));
                self.warn_of_maintenance(&facts);
                let nodes = facts.in_service().map(|node| node.host.clone());
                self.all_storage_nodes = nodes.collect();
                self.storage_nodes.clone_from(&self.all_storage_nodes);
                self.journal.emit(RunEvent::StorageFacts(Box::new(facts)));
            }
            Err(error) => self.journal.warn(format!(
                "DataNodes, capacity and defaults of HDFS are unknown: {error}"
            )),
        }
    }

    /// Who measures with fewer DataNodes than there are should know it.
    fn warn_of_maintenance(&mut self, facts: &HdfsFacts) {
        let is_out = |node: &&DataNode| {
            let state = node.state;
            state == DataNodeState::InMaintenance || state == DataNodeState::EnteringMaintenance
        };
        let nodes = facts.data_nodes.iter().flatten().filter(is_out);
        let names: Vec<&str> = nodes.map(|node| node.host.as_str()).collect();
        if !names.is_empty() {
            self.journal.warn(format!(
                "in maintenance and not measured: {}; if a fan-in that was killed left them there, `eastwest storage restore --dfs-hosts FILE` puts them back",
                names.join(", ")
            ));
        }
    }

    /// One number of workers after the other, the storage as it is.
    async fn vary_clients(&mut self) {
        self.storage_nodes.clone_from(&self.all_storage_nodes);
        for count in &self.task.client_counts {
            if self.interrupted {
                break;
            }
            self.clients = *count;
            self.run_with(self.task.endpoints.len()).await;
        }
    }

    /// One number of endpoints or DataNodes after the other. DataNodes are put back whatever
    /// happens.
    async fn fan_in(&mut self) {
        for count in &self.task.fan_in {
            if self.interrupted {
                break;
            }
            match &self.task.maintenance {
                None => {
                    self.storage_nodes.clear();
                    self.run_with(*count).await;
                }
                Some(maintenance) => {
                    let maintenance = Arc::clone(maintenance);
                    let kept = self.keep_data_nodes(maintenance, *count).await;
                    if let Err(error) = kept {
                        self.journal.warn(error.to_string());
                        self.all_done = false;
                        break;
                    }
                    if !self.interrupted {
                        self.run_with(self.task.endpoints.len()).await;
                    }
                }
            }
        }
        if let Some(maintenance) = &self.task.maintenance {
            self.restore_data_nodes(Arc::clone(maintenance)).await;
        }
    }

    async fn keep_data_nodes(
        &mut self,
        maintenance: Arc<Mutex<Maintenance>>,
        count: usize,
    ) -> Result<(), StorageError> {
        let keep = move || {
            let mut maintenance = maintenance.lock().unwrap_or_else(PoisonError::into_inner);
            let entering = maintenance.keep(count)?;
            let nodes = maintenance.nodes().iter().take(count);
            let nodes: Vec<String> = nodes.map(|node| node.host.clone()).collect();
            Ok((nodes, entering))
        };
        let (nodes, entering) = self.meanwhile(keep).await?;
        self.storage_nodes = nodes;
        if !entering.is_empty() {
            self.journal.warn(format!(
                "{count} DataNodes: blocks of {} are still being copied to the others, which costs them bandwidth",
                entering.join(", ")
            ));
        }
        Ok(())
    }

    async fn restore_data_nodes(&mut self, maintenance: Arc<Mutex<Maintenance>>) {
        let restore = move || {
            let mut maintenance = maintenance.lock().unwrap_or_else(PoisonError::into_inner);
            maintenance.restore()
        };
        match self.meanwhile(restore).await {
            Ok(late) if late.is_empty() => {}
            Ok(late) => self.journal.warn(format!(
                "DataNodes are in the hosts file again but not in service yet: {}",
                late.join(", ")
            )),
            Err(error) => {
                self.all_done = false;
                self.journal.warn(format!(
                    "DataNodes may still be in maintenance ({error}); run `eastwest storage restore --dfs-hosts FILE`"
                ));
            }
        }
    }

    /// What may wait, on a thread of its own while the agents are kept alive.
    async fn meanwhile<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let working = tokio::task::spawn_blocking(work);
        while !working.is_finished() {
            match self.members.next(self.members.now_ns() + POLL_NS).await {
                FleetEvent::Interrupt => self.interrupted = true,
                FleetEvent::Deadline => {}
                other => {
                    self.note(other);
                }
            }
        }
        match working.await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// All operations on the first so many endpoints, and the removal of their files.
    async fn run_with(&mut self, endpoints: usize) {
        self.endpoints = endpoints;
        self.present_bytes = self.task.job.file_bytes;
        self.whole = (0..self.files()).collect();
        for operation in &self.task.operations {
            if !self.interrupted {
                self.take_step(*operation).await;
            }
        }
        if !self.task.keep && !self.written.is_empty() {
            self.clean().await;
            self.written.clear();
        }
    }

    /// As many for each worker, whatever their number.
    fn files(&self) -> u32 {
        let all = self.task.workers.len().max(1) as u64;
        let files = u64::from(self.task.files) * self.clients as u64 / all;
        files.max(self.clients as u64) as u32
    }

    /// Where the files are that a host works on: its own, or with a shift those of the host so many
    /// before it.
    fn endpoint_of(&self, host: HostId, operation: StorageOperation) -> &str {
        let workers = &self.task.workers;
        let count = self.clients.max(1);
        let at = workers.iter().position(|id| *id == host).unwrap_or(0);
        let owner = (at + count - self.shift(operation) % count) % count;
        &self.task.endpoints[owner % self.endpoints.max(1)]
    }

    /// DataNodes in service, or endpoints in use. `None` where storage has one name and nobody
    /// knows what is behind it.
    fn storage_node_count(&self) -> Option<u32> {
        match (self.storage_nodes.len(), self.task.endpoints.len()) {
            (0, 0 | 1) => None,
            (0, _) => Some(self.endpoints as u32),
            (nodes, _) => Some(nodes as u32),
        }
    }

    fn shift(&self, operation: StorageOperation) -> usize {
        match operation.reads() {
            true => self.task.read_shift as usize,
            false => 0,
        }
    }

    async fn take_step(&mut self, operation: StorageOperation) {
        let mut orders: BTreeMap<HostId, Vec<u32>> = BTreeMap::new();
        for file in &self.whole {
            let host = self.host_of(*file, operation);
            orders.entry(host).or_default().push(*file);
        }
        if operation == StorageOperation::Clean {
            // Whatever is there, on every host.
            let workers = self.task.workers.iter().take(self.clients);
            orders = workers.map(|host| (*host, Vec::new())).collect();
        }
        if orders.is_empty() {
            let name = operation.name();
            self.journal
                .warn(format!("{name}: skipped, no file was written whole"));
            self.all_done = false;
            return;
        }
        if operation == StorageOperation::Write {
            let pairs = orders.iter();
            let pairs = pairs.flat_map(|(host, files)| files.iter().map(|file| (*host, *file)));
            self.written.extend(pairs);
        }
        let mut step = self.run_step(operation, &orders, u64::MAX).await;
        step.data_node_of_file = self.locate_files(operation).await;
        for (host, report) in &step.reports {
            // No worker started there.
            if report.error.is_some() && report.files.is_empty() {
                self.written.retain(|(owner, _)| owner != host);
            }
        }
        self.take_over(&step);
        self.journal
            .emit(RunEvent::StorageStepFinished(Box::new(step)));
    }

    /// Files that are on one DataNode each. `None`: not HDFS, not files of workers, or the NameNode
    /// did not show it, which is a warning once.
    async fn locate_files(&mut self, operation: StorageOperation) -> Option<Vec<(u32, String)>> {
        let is_of_workers = self.task.job.testdfsio.is_none();
        let is_needed = is_of_workers && operation != StorageOperation::Clean;
        if !is_needed || self.interrupted {
            return None;
        }
        let (address, target) = self.hdfs.clone()?;
        let ask = move || NameNode::new(&address)?.data_node_of_files(&target);
        match self.meanwhile(ask).await {
            Ok(found) => Some(found),
            Err(error) => {
                self.journal.warn(format!(
                    "DataNodes of the files are unknown, so no times per storage node: {error}"
                ));
                self.hdfs = None;
                None
            }
        }
    }

    /// Removes what was written, and lists what may be left.
    async fn clean(&mut self) {
        let mut orders: BTreeMap<HostId, Vec<u32>> = BTreeMap::new();
        for (host, file) in &self.written {
            orders.entry(*host).or_default().push(*file);
        }
        let limit_ns = match self.interrupted {
            true => self.members.now_ns() + CLEAN_LIMIT_NS,
            false => u64::MAX,
        };
        let step = self
            .run_step(StorageOperation::Clean, &orders, limit_ns)
            .await;
        for (host, reason) in &step.missing {
            self.tell_left(*host, orders[host].len(), reason);
        }
        for (host, report) in &step.reports {
            let is_left = |outcome: &FileOutcome| *outcome != FileOutcome::Done;
            let left = report.files.iter().filter(|f| is_left(&f.outcome));
            // Of a job that ends by time, a file may be there more than once.
            let silent = orders[host].len().saturating_sub(report.files.len());
            let count = silent + left.clone().count();
            let why = left.clone().find_map(|record| match &record.outcome {
                FileOutcome::Failed { error } => Some(error.clone()),
                _ => None,
            });
            if count > 0 {
                let why = report.error.clone().or(why);
                self.tell_left(*host, count, &why.unwrap_or_else(|| "stopped".into()));
            }
        }
        self.journal
            .emit(RunEvent::StorageStepFinished(Box::new(step)));
    }

    fn tell_left(&mut self, host: HostId, count: usize, reason: &str) {
        let name = self.inventory.name(host);
        let target = self.endpoint_of(host, StorageOperation::Clean);
        let scenario = match self.task.job.testdfsio {
            Some(_) => "testdfsio",
            None => "dfsio",
        };
        self.journal.warn(format!(
            "{count} test file(s) of {name} may be left below {target}/eastwest-{scenario} ({reason}); remove them with `eastwest run {scenario} --operations clean --target {target} --hosts {name}`"
        ));
    }

    fn host_of(&self, file: u32, operation: StorageOperation) -> HostId {
        let count = self.clients.max(1);
        let at = (file as usize + self.shift(operation)) % count;
        self.task.workers[at]
    }

    /// What a step means for those that follow.
    fn take_over(&mut self, step: &StorageStep) {
        let done = step.whole_files();
        let failed = step
            .reports
            .iter()
            .any(|(_, report)| report.error.is_some());
        if step.operation != StorageOperation::Clean {
            self.all_done &= done.len() == step.files as usize;
        }
        self.all_done &= step.missing.is_empty() && !failed;
        match step.operation {
            StorageOperation::Write => {
                self.present_bytes = self.task.job.file_bytes;
                self.whole = done;
            }
            StorageOperation::Append => {
                self.present_bytes += self.task.job.file_bytes;
                self.whole = done;
            }
            StorageOperation::Clean => self.written.clear(),
            StorageOperation::Read | StorageOperation::RandomRead => {}
        }
    }

    async fn run_step(
        &mut self,
        operation: StorageOperation,
        orders: &BTreeMap<HostId, Vec<u32>>,
        limit_ns: u64,
    ) -> StorageStep {
        let began_ns = self.members.now_ns();
        let files: usize = orders.values().map(Vec::len).sum();
        let bytes_per_file = match operation {
            StorageOperation::Clean => 0,
            _ if operation.writes() => self.task.job.file_bytes,
            _ => self.present_bytes,
        };
        self.journal.emit(RunEvent::StorageStepStarted {
            operation,
            storage_nodes: self.storage_node_count(),
            hosts: orders.len() as u32,
            files: files as u32,
            bytes: bytes_per_file.saturating_mul(files as u64),
        });
        let mut step = StorageStep {
            step: self.next_step,
            operation,
            job: self.task.job.clone(),
            files: files as u32,
            exec_ns: 0,
            started_unix_ns: 0,
            reports: Vec::new(),
            missing: Vec::new(),
            interrupted: false,
            endpoints: Vec::new(),
            storage_nodes: self.storage_nodes.clone(),
            is_disk_alone: self.is_disk_alone,
            start_ns: None,
            data_node_of_file: None,
        };
        if self.task.endpoints.len() > 1 {
            let hosts = orders.keys().copied();
            let used = hosts.map(|id| (id, self.endpoint_of(id, operation).to_owned()));
            step.endpoints = used.collect();
        }
        self.next_step += 1;
        self.sync_clocks().await;
        if self.interrupted && operation != StorageOperation::Clean {
            step.interrupted = true;
        } else {
            let waiting = self.send(&mut step, orders);
            self.listen(&mut step, waiting, limit_ns).await;
        }
        step.reports.sort_by_key(|(host, _)| *host);
        step.exec_ns = self.members.now_ns() - began_ns;
        step
    }

    /// Storage nodes, too: their counters are laid against the step.
    async fn sync_clocks(&mut self) {
        let mut waiting: BTreeSet<HostId> = self.members.alive().into_iter().collect();
        for id in &waiting {
            self.members.send(*id, Command::Sync);
        }
        let deadline_ns = self.members.now_ns() + SYNC_LIMIT_NS;
        while !waiting.is_empty() {
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(host, ControllerEvent::Synced(estimate)) => {
                    waiting.remove(&host);
                    self.journal.clock_synced(host, &estimate);
                }
                FleetEvent::Interrupt => self.interrupted = true,
                FleetEvent::Deadline => break,
                other => {
                    if let Some(lost) = self.note(other) {
                        waiting.remove(&lost);
                    }
                }
            }
        }
    }

    /// Orders to everybody who is up, with one common start. Returns who will report, to what.
    fn send(
        &mut self,
        step: &mut StorageStep,
        orders: &BTreeMap<HostId, Vec<u32>>,
    ) -> BTreeMap<HostId, StorageOrder> {
        let lead_ns = LEAD_NS + LEAD_PER_HOST_NS * orders.len() as u64;
        let start_ns = self.members.now_ns() + lead_ns;
        step.started_unix_ns = self.members.realtime_ns() + lead_ns;
        step.start_ns = Some(start_ns);
        let alive = self.members.alive();
        let mut waiting = BTreeMap::new();
        for (host, files) in orders {
            let estimate = self.members.get(*host).and_then(|member| member.clock);
            let (Some(estimate), true) = (estimate, alive.contains(host)) else {
                step.missing.push((*host, self.why_down(*host)));
                continue;
            };
            let order = StorageOrder {
                step: step.step,
                operation: step.operation,
                job: StorageJob {
                    target: self.endpoint_of(*host, step.operation).to_owned(),
                    ..step.job.clone()
                },
                files: files.clone(),
                present_bytes: self.present_bytes,
                start_ns: estimate.to_agent_ns(start_ns),
            };
            self.members.send(*host, Command::Storage(order.clone()));
            waiting.insert(*host, order);
        }
        waiting
    }

    /// Until the last report. After an interrupt, or when the limit is over, workers are asked to
    /// end.
    async fn listen(
        &mut self,
        step: &mut StorageStep,
        mut waiting: BTreeMap<HostId, StorageOrder>,
        limit_ns: u64,
    ) {
        let mut deadline_ns = limit_ns;
        while !waiting.is_empty() {
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(host, ControllerEvent::StorageReport(report))
                    if report.step == step.step =>
                {
                    if waiting.remove(&host).is_some() {
                        self.keep(step, host, *report);
                    }
                }
                // Of the step before, which the host was still at when it was ordered this one.
                FleetEvent::Agent(host, ControllerEvent::StorageReport(_)) => {
                    if let Some(order) = waiting.get(&host).filter(|_| !step.interrupted) {
                        self.members.send(host, Command::Storage(order.clone()));
                    }
                }
                FleetEvent::Agent(_, ControllerEvent::StorageProgress { words }) => {
                    let operation = step.operation;
                    self.journal
                        .emit(RunEvent::StorageProgress { operation, words });
                }
                FleetEvent::Interrupt | FleetEvent::Deadline if step.interrupted => break,
                FleetEvent::Interrupt | FleetEvent::Deadline => {
                    step.interrupted = true;
                    self.interrupted = true;
                    let limit_ns = match step.job.testdfsio {
                        Some(_) => END_JOB_LIMIT_NS,
                        None => END_LIMIT_NS,
                    };
                    deadline_ns = self.members.now_ns() + limit_ns;
                    for host in waiting.keys() {
                        self.members.send(*host, Command::EndStorage);
                    }
                }
                other => {
                    if let Some(lost) = self.note(other)
                        && waiting.remove(&lost).is_some()
                    {
                        step.missing.push((lost, self.why_down(lost)));
                    }
                }
            }
        }
        for host in waiting.into_keys() {
            let reason = "no report in time after the run was stopped".to_owned();
            step.missing.push((host, reason));
        }
    }

    fn keep(&mut self, step: &mut StorageStep, host: HostId, report: StorageReport) {
        if let Some(error) = &report.error {
            let name = self.inventory.name(host);
            let operation = step.operation.name();
            self.journal.warn(format!("{name}: {operation}: {error}"));
        }
        step.reports.push((host, report));
    }

    fn why_down(&self, id: HostId) -> String {
        match self.members.get(id).map(|member| &member.state) {
            Some(State::Down { message }) => format!("lost: {message}"),
            Some(State::Up { .. }) => "no clock estimate in time".into(),
            Some(State::Launching) | None => "it took no part".into(),
        }
    }

    /// Handles what matters at any time; returns a host that was lost.
    fn note(&mut self, event: FleetEvent) -> Option<HostId> {
        self.journal.note(event, self.inventory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::puppets::{CLOCK, Puppets};
    use crate::outside::Clock;

    const HOST: HostId = HostId(0);

    fn task() -> StorageTask {
        StorageTask {
            operations: Vec::new(),
            job: StorageJob {
                target: "file:///mnt/share".into(),
                file_bytes: 1,
                buffer_bytes: 1,
                parallel: 1,
                direct: false,
                sync: false,
                drop_cache: false,
                verify: false,
                seed: 1,
                replication: None,
                block_bytes: None,
                time_ns: None,
                testdfsio: None,
            },
            files: 1,
            workers: vec![HOST],
            read_shift: 0,
            endpoints: vec!["file:///mnt/share".into()],
            fan_in: Vec::new(),
            client_counts: Vec::new(),
            maintenance: None,
            network: None,
            disks: None,
            keep: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_late_report_is_not_taken_for_the_next_steps() {
        let mut puppets = Puppets::up(1);
        puppets.say_of(HOST, ControllerEvent::Synced(CLOCK));
        for step in [0, 1] {
            let report = StorageReport {
                step,
                ..StorageReport::default()
            };
            puppets.say_of(HOST, ControllerEvent::StorageReport(Box::new(report)));
        }
        let (mut journal, _ends) = Journal::new(Clock::simulated(), 1 << 20);
        let (task, members) = (task(), &mut puppets.members);
        let mut drive = Drive::new(&puppets.job, &task, members, &mut journal);
        drive.next_step = 1;
        let orders = BTreeMap::from([(HOST, vec![0])]);
        let cleaned = drive.run_step(StorageOperation::Clean, &orders, u64::MAX);
        let step = cleaned.await;
        let steps: Vec<u32> = step.reports.iter().map(|(_, report)| report.step).collect();
        assert_eq!(steps, [1]);
        // The host was still at the step before when it was ordered this one.
        let is_order = |command: &Option<Command>| matches!(command, Some(Command::Storage(_)));
        let ordered = puppets.orders(HOST);
        let ordered = ordered.iter().filter(|command| is_order(command)).count();
        assert_eq!(ordered, 2);
    }
}
