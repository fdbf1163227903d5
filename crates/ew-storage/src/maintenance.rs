//! DataNodes out of service and back: the NameNode's hosts file, and a lease next to it that states
//! how to undo it.
//!
//! Nodes go into maintenance (HDFS-7877): they take no new blocks and nothing of theirs is copied.
//! The lease is written before the first change and removed after the last, so that whoever finds
//! one finds nodes that somebody forgot. Should nobody find it, the NameNode itself ends each
//! maintenance when it expires.

use crate::error::{StorageError, of_system};
use crate::hosts_file_error::{HostsFileError, STATE_LIMIT};
use crate::name_node::NameNode;
use ew_model::storage::{DataNode, DataNodeState};
use ew_sys::clock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Suffix of the lease file: the hosts file's name comes before it.
const LEASE_SUFFIX: &str = ".eastwest-lease";
const LEASE_VERSION: u32 = 1;
/// The NameNode puts nodes back in service by itself after this long.
const EXPIRY_MS: u64 = 12 * 3_600_000;
/// A node whose blocks are still being copied takes no new ones: after this long that is enough.
const ENTERING_LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(300);
const MAX_HOSTS_FILE_BYTES: u64 = 64 << 20;

/// What was changed, and how to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    version: u32,
    /// Whom to notify.
    pub name_node: NameNode,
    /// What it reads.
    pub hosts_file: PathBuf,
    /// DataNodes of the run, by name.
    pub nodes: Vec<DataNode>,
    /// When, ns since 1970.
    pub taken_unix_ns: u64,
    /// The process that took it.
    pub pid: u32,
    /// The hosts file before.
    original: String,
    /// The hosts file since.
    written: String,
}

impl Lease {
    /// The lease on a hosts file, if nodes were taken out and not put back.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(hosts_file: &Path) -> Result<Option<Self>, StorageError> {
        let path = lease_path(hosts_file);
        let shown = path.display().to_string();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(of_system("read", &shown))?,
        };
        let lease = serde_json::from_str(&text)
            .map_err(|error| StorageError::new("use", shown, HostsFileError::Damaged(error)))?;
        Ok(Some(lease))
    }

    /// Puts the nodes back in service, and removes the lease. Where somebody changed the hosts file
    /// meanwhile, only the run's nodes are changed in it. Returns the nodes that are not in service
    /// yet.
    ///
    /// # Errors
    /// The file's or the NameNode's, by name; the lease then stays.
    pub fn restore(&self) -> Result<Vec<String>, StorageError> {
        let now = read_hosts(&self.hosts_file)?;
        let text = match now == self.written {
            true => self.original.clone(),
            false => self.merged(&now)?,
        };
        replace(&self.hosts_file, &text)?;
        self.name_node.refresh_nodes()?;
        let is_ours = |host: &str| self.nodes.iter().any(|node| node.host == host);
        let waiting =
            |node: &DataNode| is_ours(&node.host) && node.state != DataNodeState::InService;
        let end = Instant::now() + STATE_LIMIT;
        loop {
            let nodes = self.name_node.data_nodes()?;
            let late: Vec<String> = nodes
                .into_iter()
                .filter(waiting)
                .map(|node| node.host)
                .collect();
            if late.is_empty() || Instant::now() > end {
                let path = lease_path(&self.hosts_file);
                let shown = path.display().to_string();
                fs::remove_file(path).map_err(of_system("remove", &shown))?;
                return Ok(late);
            }
            thread::sleep(POLL);
        }
    }

    /// The hosts file as it is now, with the entries of the run's nodes as they were.
    fn merged(&self, now: &str) -> Result<String, StorageError> {
        let (mut entries, before) = (
            entries(&self.hosts_file, now)?,
            entries(&self.hosts_file, &self.original)?,
        );
        for node in &self.nodes {
            entries.retain(|entry| !is_of(entry, node));
            entries.extend(before.iter().filter(|entry| is_of(entry, node)).cloned());
        }
        Ok(text_of(&entries))
    }
}

/// DataNodes that a run takes out of service, step by step.
#[derive(Debug)]
pub struct Maintenance {
    lease: Lease,
    is_changed: bool,
}

impl Maintenance {
    /// All DataNodes in service, and nothing changed yet.
    ///
    /// # Errors
    /// [`HostsFileError`] when an earlier run's nodes are still out, or the hosts file is none of
    /// `CombinedHostFileManager`; the NameNode's, by name.
    pub fn begin(name_node: NameNode, hosts_file: &Path) -> Result<Self, StorageError> {
        let shown = hosts_file.display().to_string();
        let hosts_file = hosts_file
            .canonicalize()
            .map_err(of_system("use", &shown))?;
        if let Some(lease) = Lease::find(&hosts_file)? {
            let taken = HostsFileError::Taken {
                pid: lease.pid,
                hosts_file: shown.clone(),
            };
            return Err(StorageError::new("use", shown, taken));
        }
        let original = read_hosts(&hosts_file)?;
        entries(&hosts_file, &original)?;
        let mut nodes = name_node.data_nodes()?;
        nodes.retain(|node| node.state == DataNodeState::InService);
        Ok(Self {
            lease: Lease {
                version: LEASE_VERSION,
                name_node,
                hosts_file,
                nodes,
                taken_unix_ns: clock::realtime_ns(),
                pid: std::process::id(),
                written: original.clone(),
                original,
            },
            is_changed: false,
        })
    }

    /// Those of the run, by name.
    #[must_use]
    pub fn nodes(&self) -> &[DataNode] {
        &self.lease.nodes
    }

    /// Exactly the first so many nodes are in service when this returns. Returns those whose blocks
    /// are still being copied away.
    ///
    /// # Errors
    /// The file's or the NameNode's, by name; [`HostsFileError`] when the NameNode does not
    /// follow the file.
    pub fn keep(&mut self, count: usize) -> Result<Vec<String>, StorageError> {
        let out: Vec<&DataNode> = self.lease.nodes.iter().skip(count).collect();
        let mut entries = entries(&self.lease.hosts_file, &self.lease.original)?;
        for node in &out {
            take_out(
                &mut entries,
                node,
                clock::realtime_ns() / 1_000_000 + EXPIRY_MS,
            );
        }
        self.lease.written = match out.is_empty() {
            true => self.lease.original.clone(),
            false => text_of(&entries),
        };
        let path = lease_path(&self.lease.hosts_file);
        replace(&path, &json!(self.lease).to_string())?;
        self.is_changed = true;
        replace(&self.lease.hosts_file, &self.lease.written)?;
        self.lease.name_node.refresh_nodes()?;
        self.wait_for(count)
    }

    /// All back in service. Returns those that are not yet.
    ///
    /// # Errors
    /// As [`Lease::restore`].
    pub fn restore(&mut self) -> Result<Vec<String>, StorageError> {
        if !self.is_changed {
            return Ok(Vec::new());
        }
        let late = self.lease.restore()?;
        self.is_changed = false;
        Ok(late)
    }

    fn wait_for(&self, count: usize) -> Result<Vec<String>, StorageError> {
        let begin = Instant::now();
        loop {
            let found = self.lease.name_node.data_nodes()?;
            let state = |node: &DataNode| {
                let found = found.iter().find(|now| now.host == node.host);
                found.map(|node| node.state)
            };
            let (inside, outside) = self.lease.nodes.split_at(count.min(self.lease.nodes.len()));
            let serves = |node: &&DataNode| state(node) == Some(DataNodeState::InService);
            let enters = |node: &&DataNode| state(node) == Some(DataNodeState::EnteringMaintenance);
            let wrong = inside.iter().filter(|node| !serves(node));
            let wrong = wrong.chain(outside.iter().filter(serves));
            let wrong: Vec<&str> = wrong.map(|node| node.host.as_str()).collect();
            let entering: Vec<String> = outside
                .iter()
                .filter(enters)
                .map(|node| node.host.clone())
                .collect();
            let is_long = begin.elapsed() > ENTERING_LIMIT;
            if wrong.is_empty() && (entering.is_empty() || is_long) {
                return Ok(entering);
            }
            if begin.elapsed() > STATE_LIMIT {
                let nodes = wrong.into_iter().map(str::to_owned).collect();
                let name = self.lease.hosts_file.display().to_string();
                let problem = HostsFileError::NotFollowed { nodes };
                return Err(StorageError::new("use", name, problem));
            }
            thread::sleep(POLL);
        }
    }
}

fn lease_path(hosts_file: &Path) -> PathBuf {
    let mut path = hosts_file.as_os_str().to_owned();
    path.push(LEASE_SUFFIX);
    path.into()
}

fn read_hosts(path: &Path) -> Result<String, StorageError> {
    let shown = path.display().to_string();
    let bytes = fs::metadata(path).map_err(of_system("use", &shown))?.len();
    if bytes > MAX_HOSTS_FILE_BYTES {
        let long = HostsFileError::Long { bytes };
        return Err(StorageError::new("use", shown, long));
    }
    fs::read_to_string(path).map_err(of_system("read", &shown))
}

/// One JSON array of nodes, or, as old versions have it, one object after the other.
pub(crate) fn entries(path: &Path, text: &str) -> Result<Vec<Value>, StorageError> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect();
    let nodes = values.map(|mut values| match values.as_mut_slice() {
        [Value::Array(nodes)] => std::mem::take(nodes),
        _ => values,
    });
    match nodes {
        Ok(nodes) if nodes.iter().all(|node| node["hostName"].is_string()) => Ok(nodes),
        _ => {
            let name = path.display().to_string();
            Err(StorageError::new("use", name, HostsFileError::Form))
        }
    }
}

/// Entries name a host or its address.
fn is_of(entry: &Value, node: &DataNode) -> bool {
    let name = entry["hostName"].as_str().unwrap_or("");
    name.eq_ignore_ascii_case(&node.host) || name == node.address
}

pub(crate) fn take_out(entries: &mut Vec<Value>, node: &DataNode, until_ms: u64) {
    if !entries.iter().any(|entry| is_of(entry, node)) {
        entries.push(json!({"hostName": node.host}));
    }
    for entry in entries.iter_mut().filter(|entry| is_of(entry, node)) {
        entry["adminState"] = json!("IN_MAINTENANCE");
        entry["maintenanceExpireTimeInMS"] = json!(until_ms);
    }
}

pub(crate) fn text_of(entries: &[Value]) -> String {
    let lines: Vec<String> = entries.iter().map(|entry| format!("  {entry}")).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// A reader sees the old text or the new one, also when the power fails, and what is replaced next
/// is on disk later than this. Owner and rights stay.
fn replace(path: &Path, text: &str) -> Result<(), StorageError> {
    let shown = path.display().to_string();
    let failed = || of_system("write", &shown);
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let mut file = File::create(&new).map_err(failed())?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(fs::Permissions::from_mode(old.mode()))
            .map_err(failed())?;
        // Only root may give a file away; anybody else owned it already.
        let _ = chown(&new, Some(old.uid()), Some(old.gid()));
    }
    file.write_all(text.as_bytes()).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    fs::rename(&new, path).map_err(failed())?;
    sync_folder(path).map_err(failed())
}

/// A file's new name is on disk once its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn node(host: &str) -> DataNode {
        DataNode {
            host: host.into(),
            address: format!("{host}.addr"),
            state: DataNodeState::InService,
            capacity_bytes: 0,
            remaining_bytes: 0,
        }
    }

    fn lease(original: &str, written: &str, nodes: &[&str]) -> Lease {
        Lease {
            version: LEASE_VERSION,
            name_node: NameNode {
                address: "127.0.0.1:1".into(),
                user: "hdfs".into(),
            },
            hosts_file: "/nowhere".into(),
            nodes: nodes.iter().map(|name| node(name)).collect(),
            taken_unix_ns: 0,
            pid: 1,
            original: original.into(),
            written: written.into(),
        }
    }

    #[test]
    fn both_formats_are_read_and_what_is_none_is_named() {
        let path = Path::new("/x");
        let new = entries(path, r#"[{"hostName":"a"},{"hostName":"b","port":1}]"#).unwrap();
        let old = entries(
            path,
            "{\"hostName\":\"a\"}\n{\"hostName\":\"b\",\"port\":1}",
        )
        .unwrap();
        assert_eq!(new, old);
        assert!(entries(path, "").unwrap().is_empty());
        let plain = entries(path, "dn1\ndn2\n").unwrap_err().to_string();
        assert!(plain.contains("CombinedHostFileManager"), "{plain}");
    }

    #[test]
    fn nodes_go_out_by_name_or_address_and_keep_their_fields() {
        let mut found = entries(
            Path::new("/x"),
            r#"[{"hostName":"A","upgradeDomain":"u"},{"hostName":"b.addr"}]"#,
        )
        .unwrap();
        for host in ["a", "b", "c"] {
            take_out(&mut found, &node(host), 7);
        }
        let out = |host: &str| found.iter().find(|e| e["hostName"] == host).unwrap();
        for host in ["A", "b.addr", "c"] {
            assert_eq!(out(host)["adminState"], "IN_MAINTENANCE");
            assert_eq!(out(host)["maintenanceExpireTimeInMS"], 7);
        }
        assert_eq!(out("A")["upgradeDomain"], "u");
        assert_eq!(found.len(), 3);
    }

    /// Somebody added a node, and decommissioned another, while the run had `b` out.
    #[test]
    fn what_others_changed_meanwhile_stays() {
        let lease = lease(r#"[{"hostName":"a"},{"hostName":"b"}]"#, "", &["a", "b"]);
        let now = r#"[{"hostName":"a"},{"hostName":"b","adminState":"IN_MAINTENANCE"},{"hostName":"z","adminState":"DECOMMISSIONED"}]"#;
        let merged = entries(Path::new("/x"), &lease.merged(now).unwrap()).unwrap();
        let of = |host: &str| merged.iter().find(|e| e["hostName"] == host).unwrap();
        assert!(of("b")["adminState"].is_null());
        assert_eq!(of("z")["adminState"], "DECOMMISSIONED");
        assert_eq!(merged.len(), 3);
    }

    #[test]
    fn a_lease_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("dfs.hosts");
        assert_eq!(Lease::find(&hosts).unwrap(), None);
        let lease = lease("[]", "[ ]", &["a"]);
        replace(&lease_path(&hosts), &json!(lease).to_string()).unwrap();
        assert_eq!(Lease::find(&hosts).unwrap(), Some(lease));
        fs::write(lease_path(&hosts), "{").unwrap();
        let damaged = Lease::find(&hosts).unwrap_err().to_string();
        assert!(damaged.contains("by hand"), "{damaged}");
    }

    /// Folder of the traced process below.
    const TRACED: &str = "EASTWEST_TEST_TRACED_FOLDER";

    /// What a power failure leaves depends on what was synced before what: seen by strace, from
    /// this test run again below it.
    #[test]
    fn the_lease_is_on_disk_before_the_hosts_file_changes() {
        if let Some(folder) = std::env::var_os(TRACED) {
            take_one_node_out(Path::new(&folder));
            return;
        }
        let can_trace = Command::new("strace")
            .args(["-o", "/dev/null", "true"])
            .output();
        if !can_trace.is_ok_and(|out| out.status.success()) {
            println!("skipped: strace is missing, or may not trace here");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("dfs.hosts");
        fs::write(&hosts, "[]").unwrap();
        let trace = folder.path().join("trace");
        let test = "maintenance::tests::the_lease_is_on_disk_before_the_hosts_file_changes";
        let traced = Command::new("strace")
            .args([
                "-f",
                "-y",
                "-s",
                "4096",
                "-e",
                "trace=/fsync,/^rename",
                "-o",
            ])
            .arg(&trace)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env(TRACED, folder.path())
            .output()
            .unwrap();
        let calls = fs::read_to_string(&trace).unwrap();
        assert!(traced.status.success(), "{traced:?} {calls}");
        let (folder, hosts) = (folder.path().display(), hosts.display());
        let lease = format!("{hosts}{LEASE_SUFFIX}");
        let expected = [
            format!("<{lease}.new>)"),
            format!("\"{lease}\")"),
            format!("<{folder}>)"),
            format!("<{hosts}.new>)"),
            format!("\"{hosts}\")"),
            format!("<{folder}>)"),
        ];
        let calls: Vec<&str> = calls.lines().filter(|call| call.contains('(')).collect();
        assert_eq!(calls.len(), expected.len(), "{calls:#?}");
        for (call, end) in calls.iter().zip(&expected) {
            assert!(call.contains(end), "`{end}` is not in {call}");
        }
    }

    /// Nobody listens at the NameNode's address: that is seen when both files are written.
    fn take_one_node_out(folder: &Path) {
        let mut maintenance = Maintenance {
            lease: Lease {
                hosts_file: folder.join("dfs.hosts"),
                ..lease("[]", "[]", &["a", "b"])
            },
            is_changed: false,
        };
        let refused = maintenance.keep(1).unwrap_err().to_string();
        assert!(refused.contains("connection refused"), "{refused}");
    }
}
