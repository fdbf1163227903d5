//! A running lab: enter its hosts, change its faults, end it.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ew_sys::namespace::{self, Entrance, ProcessHandle, effective_user_id};
use serde::Serialize;

use crate::addresses::address;
use crate::control_group;
use crate::error::LabError;
use crate::fault::Fault;
use crate::intruder;
use crate::keeper::{self, KeeperCommand, KeeperLine};
use crate::spec::{CONTROLLER, LabSpec};
use crate::state::{self, State};

const KEEPER_END_LIMIT: Duration = Duration::from_secs(10);
pub(crate) const POLITE_END_LIMIT: Duration = Duration::from_millis(500);

/// A running lab. One that [`Lab::up`] returned ends when it is dropped, unless [`Lab::detach`]ed;
/// one that [`Lab::attach`] returned goes on.
#[derive(Debug)]
pub struct Lab {
    pub(crate) dir: PathBuf,
    pub(crate) state: State,
    line: Option<KeeperLine>,
    /// What intruders start as.
    pub(crate) program: KeeperCommand,
}

/// A host of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LabHost {
    /// Such as `r1h3`.
    pub name: String,
    /// Such as `r1`.
    pub rack: String,
    /// Its only address.
    pub address: IpAddr,
}

/// What `lab status` shows.
#[derive(Clone, Debug, Serialize)]
pub struct LabStatus {
    /// The lab's name.
    pub name: String,
    /// Its directory: `hosts`, `groups`, `ssh_config`, keys.
    pub dir: PathBuf,
    /// The process that holds it.
    pub keeper_pid: u32,
    /// Whether it was built without root.
    pub rootless: bool,
    /// As built, with the faults of its file.
    pub declared: LabSpec,
    /// As it is now, with the faults applied since.
    pub current: LabSpec,
    /// What the machine could not give, in words.
    pub notes: Vec<String>,
    /// Processes inside, by host.
    pub processes: BTreeMap<String, Vec<u32>>,
}

/// Builds a lab that outlives the caller.
///
/// # Errors
/// As [`Lab::up`].
pub fn up(spec: &LabSpec, keeper: &KeeperCommand) -> Result<LabStatus, LabError> {
    let mut lab = Lab::up(spec, keeper)?;
    lab.detach()?;
    Ok(lab.status())
}

/// Ends a lab: its processes, namespaces and files.
///
/// # Errors
/// [`LabError::NotUp`].
pub fn down(name: &str) -> Result<(), LabError> {
    Lab::attach(name)?.down()
}

/// Describes a running lab.
///
/// # Errors
/// [`LabError::NotUp`].
pub fn status(name: &str) -> Result<LabStatus, LabError> {
    Ok(Lab::attach(name)?.status())
}

/// Runs a command on a host with the caller's own input and output, and returns what a shell would:
/// its exit status, or 128 plus the signal that ended it.
///
/// # Errors
/// [`LabError::NotUp`], [`LabError::UnknownHost`], or the command does not start.
pub fn exec(name: &str, host: &str, command_line: &[std::ffi::OsString]) -> Result<i32, LabError> {
    let lab = Lab::attach(name)?;
    let (program, arguments) = command_line
        .split_first()
        .ok_or_else(|| LabError::Command {
            command: format!("lab exec {host}"),
            output: "there is nothing to run; write it after `--`".into(),
        })?;
    let mut command = Command::new(program);
    command.args(arguments);
    lab.enter_command(host, &mut command)?;
    let status = command
        .status()
        .map_err(LabError::io_named("run", program.to_string_lossy()))?;
    Ok(status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// The labs of this user that are up, in order.
///
/// # Errors
/// When their directory cannot be read.
pub fn names() -> Result<Vec<String>, LabError> {
    state::names()
}

impl Lab {
    /// Builds a lab and waits until it is up. It ends when the returned value is dropped, and also
    /// when this process ends in any way.
    ///
    /// # Errors
    /// [`LabError::AlreadyUp`]; [`LabError::Unsupported`] when this machine does not allow it;
    /// otherwise what failed.
    pub fn up(spec: &LabSpec, keeper: &KeeperCommand) -> Result<Self, LabError> {
        let rootless = effective_user_id() != 0;
        if rootless && spec.sshd {
            return Err(LabError::Unsupported {
                problem:
                    "`sshd: true` needs root, because sshd must change to the users that log in; \
                          run as root, or leave it out and use `--fleet lab`"
                        .into(),
            });
        }
        let dir = state::claim(spec, rootless)?;
        let built = keeper::start(keeper, &dir, rootless).and_then(|line| {
            let state = State::load(&dir).ok_or_else(|| LabError::Build {
                problem: "the keeper left no state".into(),
            })?;
            Ok((line, state))
        });
        match built {
            Ok((line, state)) => {
                let lab = Self {
                    dir,
                    state,
                    line: Some(line),
                    program: keeper.clone(),
                };
                lab.start_intruders()?;
                Ok(lab)
            }
            Err(error) => {
                state::remove(&dir, spec.name());
                Err(error)
            }
        }
    }

    /// Takes hold of a running lab by name.
    ///
    /// # Errors
    /// [`LabError::NotUp`].
    pub fn attach(name: &str) -> Result<Self, LabError> {
        let (dir, state) = state::find(name)?;
        Ok(Self {
            dir,
            state,
            line: None,
            program: KeeperCommand::current_exe(),
        })
    }

    /// Lets the lab go on after this process.
    ///
    /// # Errors
    /// When the keeper has ended.
    pub fn detach(&mut self) -> Result<(), LabError> {
        match self.line.take() {
            Some(line) => line
                .let_go()
                .map_err(LabError::io_named("detach", self.name())),
            None => Ok(()),
        }
    }

    /// Ends the lab: its processes, namespaces and files.
    ///
    /// # Errors
    /// When the keeper cannot be ended.
    pub fn down(mut self) -> Result<(), LabError> {
        self.line = None;
        self.end()
    }

    /// The lab's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.state.declared.name()
    }

    /// The lab's directory: `hosts` (hosts(5)), `groups` (ClusterShell's flat format),
    /// `ssh_config`, keys.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The lab as it is now, faults included.
    #[must_use]
    pub fn spec(&self) -> &LabSpec {
        &self.state.current
    }

    /// All hosts, rack by rack, without the controller.
    #[must_use]
    pub fn hosts(&self) -> Vec<LabHost> {
        let racks = self.state.current.topology.racks.iter();
        racks
            .flat_map(|rack| {
                rack.hosts.iter().map(|host| LabHost {
                    name: host.name.clone(),
                    rack: rack.name.clone(),
                    address: address(host),
                })
            })
            .collect()
    }

    /// What `lab status` shows.
    #[must_use]
    pub fn status(&self) -> LabStatus {
        LabStatus {
            name: self.name().into(),
            dir: self.dir.clone(),
            keeper_pid: self.state.keeper_pid,
            rootless: self.state.rootless,
            declared: self.state.declared.clone(),
            current: self.state.current.clone(),
            notes: self.state.notes.clone(),
            processes: self.processes(),
        }
    }

    /// Makes `command` start on `host` (or [`CONTROLLER`]): in its network, with its host name, the
    /// lab's names in /etc/hosts, its own interfaces in /sys, its CPU quota, and
    /// `CLUSTERSHELL_CFGDIR` naming the lab's directory.
    ///
    /// # Errors
    /// [`LabError::UnknownHost`], or the keeper has ended.
    pub fn enter_command(&self, host: &str, command: &mut Command) -> Result<(), LabError> {
        let entrance = self.entrance(host)?;
        command
            .env("CLUSTERSHELL_CFGDIR", &self.dir)
            .env("EASTWEST_LAB", self.name());
        namespace::enter_before_exec(command, entrance);
        let lab = &self.state.current;
        let found = lab.find_host(host);
        if let Some(cpus) = found.and_then(|(_, host)| intruder::cpus_of(lab, host)) {
            namespace::pin_before_exec(command, cpus);
        }
        Ok(())
    }

    /// Changes a rate, a link or another property while the lab runs.
    ///
    /// # Errors
    /// [`LabError::Fault`] when the target does not exist or the value is out of range; otherwise
    /// what failed.
    pub fn apply_fault(&mut self, fault: &Fault) -> Result<(), LabError> {
        let changed = self.state.current.clone().with_fault(fault)?;
        self.change_to(changed)
    }

    /// Puts a host or rack back to what the lab was built with.
    ///
    /// # Errors
    /// [`LabError::Fault`] when the target does not exist; otherwise what failed.
    pub fn clear_faults(&mut self, target: &str) -> Result<(), LabError> {
        let mut changed = self.state.current.clone();
        let restored = changed.restore(target, &self.state.declared);
        restored.map_err(|problem| LabError::Fault {
            target: target.into(),
            problem,
        })?;
        self.change_to(changed)
    }

    pub(crate) fn entrance(&self, node: &str) -> Result<Entrance, LabError> {
        let descriptors = self.state.namespaces.get(node);
        let descriptors = *descriptors.ok_or_else(|| self.unknown_host(node))?;
        // Held while the files are opened, so that they are the keeper's and nobody else's.
        let _keeper = self.state.keeper().ok_or_else(|| self.not_up())?;
        let user = if self.state.rootless {
            Some(self.open("ns/user")?)
        } else {
            None
        };
        Ok(Entrance {
            user,
            mount: self.open(&format!("fd/{}", descriptors.mount))?,
            host_name: self.open(&format!("fd/{}", descriptors.host_name))?,
            network: self.open(&format!("fd/{}", descriptors.network))?,
            control_groups: control_group::entry(self.name(), node)?,
        })
    }

    pub(crate) fn open(&self, file: &str) -> Result<OwnedFd, LabError> {
        let path = PathBuf::from(format!("/proc/{}/{file}", self.state.keeper_pid));
        let file = fs::File::open(&path).map_err(LabError::io("open", &path))?;
        Ok(OwnedFd::from(file))
    }

    pub(crate) fn unknown_host(&self, host: &str) -> LabError {
        LabError::UnknownHost {
            lab: self.name().into(),
            host: host.into(),
            known: format!("{},{CONTROLLER}", self.state.current.folded_hosts()),
        }
    }

    fn not_up(&self) -> LabError {
        LabError::NotUp {
            name: self.name().into(),
            others: String::new(),
        }
    }

    /// Processes inside the lab, by node.
    pub(crate) fn processes(&self) -> BTreeMap<String, Vec<u32>> {
        match self.state.keeper() {
            Some(_keeper) => processes_in(&self.networks()),
            None => BTreeMap::new(),
        }
    }

    /// The network namespaces, held open: while they are, nobody else's can have their numbers.
    fn networks(&self) -> Vec<(String, fs::File)> {
        let namespaces = self.state.namespaces.iter();
        namespaces
            .filter_map(|(node, descriptors)| {
                let file = self.open(&format!("fd/{}", descriptors.network)).ok()?;
                Some((node.clone(), fs::File::from(file)))
            })
            .collect()
    }

    fn end(&mut self) -> Result<(), LabError> {
        let Some(keeper) = self.state.keeper() else {
            state::remove(&self.dir, self.state.declared.name());
            return Ok(());
        };
        let networks = self.networks();
        // A keeper that ends by itself in this moment is as good.
        let _ = keeper.end(true);
        if !keeper.wait_ended(KEEPER_END_LIMIT) {
            let error = std::io::Error::from(std::io::ErrorKind::TimedOut);
            return Err(LabError::io_named("end", "the lab's keeper")(error));
        }
        namespace::reap_child(self.state.keeper_pid);
        end_processes(&networks);
        state::remove(&self.dir, self.state.declared.name());
        Ok(())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.line.take().is_some() {
            // Nobody is left to notify; the next `lab` command removes what remains.
            let _ = self.end();
        }
    }
}

/// Ends what callers started inside: asked first, then at once.
fn end_processes(networks: &[(String, fs::File)]) {
    let mut deadline = Instant::now() + POLITE_END_LIMIT;
    for at_once in [false, true] {
        let handles: Vec<_> = processes_in(networks)
            .into_values()
            .flatten()
            .filter(|pid| *pid != std::process::id())
            .filter_map(|pid| ProcessHandle::open(pid).ok())
            .collect();
        for handle in &handles {
            let _ = handle.end(at_once);
        }
        for handle in &handles {
            let _ = handle.wait_ended(deadline.saturating_duration_since(Instant::now()));
        }
        deadline += KEEPER_END_LIMIT;
    }
}

fn processes_in(networks: &[(String, fs::File)]) -> BTreeMap<String, Vec<u32>> {
    let key = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let nodes: BTreeMap<_, _> = networks
        .iter()
        .filter_map(|(node, file)| Some((key(file.metadata().ok()?), node)))
        .collect();
    let mut found: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let node = fs::metadata(entry.path().join("ns/net"))
            .ok()
            .and_then(|metadata| nodes.get(&key(metadata)));
        if let Some(node) = node {
            found.entry((*node).clone()).or_default().push(pid);
        }
    }
    found
}
