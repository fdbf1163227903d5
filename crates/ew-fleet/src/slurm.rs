//! Agents as tasks of one step of a Slurm job: `srun` copies the binary to all nodes at once
//! (`--bcast`) and starts it there, and the agents dial back. Standard streams of tasks are merged,
//! so that they cannot be links; one `srun` for every node would be one process and one step for
//! each.

mod launcher;
pub(crate) mod step;

use crate::dial::{Desk, Dialled};
use crate::error::LaunchError;
use crate::link::{Link, LinkGuard};
use ew_model::Host;
use ew_proto::sealed::LinkSecret;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use step::{DialledGuard, Step, over};
use tokio::io::BufReader;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::sleep;

/// The agent's executable on the nodes begins with this, so that it removes itself.
const BINARY_PREFIX: &str = "eastwest.";
/// Where it lies for a moment.
const DIRECTORY: &str = "/tmp";

/// How agents are started in a job.
#[derive(Clone, Debug)]
pub struct SlurmOptions {
    /// The job.
    pub job: String,
    /// This binary: a path that exists as long as this process.
    pub binary: PathBuf,
    /// Where the binary lies on the nodes for a moment. `None`: `/tmp`.
    pub remote_dir: Option<String>,
    /// Ports to listen at for agents, first and last; 0 is any.
    pub dial_ports: (u16, u16),
    /// This host's addresses, for nodes to which Slurm gives none that leads here.
    pub addresses: Vec<IpAddr>,
    /// Nodes of the first step: all hosts of the run.
    pub nodes: Vec<String>,
}

/// Starts agents by `srun`.
#[derive(Debug)]
pub struct Slurm {
    options: SlurmOptions,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the latest run. Several runs of one command have a runtime each, with which this closes.
    desk: Option<(Desk, LinkSecret)>,
    /// By node: its call, and the step that it is part of.
    started: BTreeMap<String, (oneshot::Receiver<Dialled>, Arc<Step>)>,
}

impl Slurm {
    /// Starts nothing yet.
    #[must_use]
    pub fn new(options: SlurmOptions) -> Self {
        Self {
            options,
            state: Mutex::default(),
        }
    }

    /// The link that the host's agent dials. The first host's starts all of them.
    pub(crate) async fn link(&self, host: &Host, limit: Duration) -> Result<Link, LaunchError> {
        let failed = |words: String| LaunchError::Slurm {
            host: host.name.clone(),
            words,
        };
        let starting = self.start(&host.name).await;
        let (call, step) = starting.map_err(|error| failed(error.to_string()))?;
        let mut ended = step.ended.clone();
        let dialled = tokio::select! {
            dialled = while_others_arrive(call, step.arrived.subscribe(), limit) => dialled,
            how = over(&mut ended) => return Err(failed(step.with_words(&how))),
        };
        match dialled {
            Some(Ok(dialled)) => Ok(step.link(&host.name, dialled)),
            Some(Err(_)) => Err(failed("launched anew meanwhile".into())),
            None => Err(failed(step.with_words(&format!(
                "no agent dialled back for {:.0} s; a firewall between the nodes and this host may drop TCP to the ports of --dial-ports",
                limit.as_secs_f32()
            )))),
        }
    }

    async fn start(&self, node: &str) -> io::Result<(oneshot::Receiver<Dialled>, Arc<Step>)> {
        let mut state = self.state.lock().await;
        if let Some(started) = state.started.remove(node) {
            return Ok(started);
        }
        let is_first = !state.desk.as_ref().is_some_and(|(desk, _)| desk.is_open());
        if is_first {
            // Steps of an earlier run ended with it.
            state.started.clear();
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(io::Error::other)?;
            let secret = LinkSecret::new(bytes);
            let desk = Desk::open(self.options.dial_ports, secret.clone()).await?;
            state.desk = Some((desk, secret));
        }
        let nodes: Vec<&str> = match is_first {
            true => self.options.nodes.iter().map(String::as_str).collect(),
            false => vec![node],
        };
        let Some((desk, secret)) = &state.desk else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let calls: Vec<_> = nodes.iter().map(|name| desk.expect(name)).collect();
        let command = self.step_command(&nodes, desk.port())?;
        let step = Arc::new(Step::spawn(command, secret)?);
        for (name, call) in nodes.into_iter().zip(calls) {
            let started = (call, Arc::clone(&step));
            state.started.insert(name.to_owned(), started);
        }
        let own = state.started.remove(node);
        own.ok_or_else(|| io::Error::other("it is no node of this job"))
    }

    fn step_command(&self, nodes: &[&str], port: u16) -> io::Result<Command> {
        let options = &self.options;
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let directory = options.remote_dir.as_deref().unwrap_or(DIRECTORY);
        let count = nodes.len().to_string();
        let mut command = self.srun(&nodes.join(","));
        command.args(["--nodes", &count, "--ntasks", &count]);
        // A node that fails, or an agent that ends, ends no other.
        command.args(["--no-kill", "--kill-on-bad-exit=0", "--wait=0"]);
        command.args(["--input=all", "--label", "--quiet"]);
        let name = u64::from_be_bytes(name);
        command.arg(format!("--bcast={directory}/{BINARY_PREFIX}{name:016x}"));
        command.arg(&options.binary);
        command.args(["agent", "--remove-self", "--dial-back"]);
        command.arg(port.to_string());
        for address in &options.addresses {
            command.arg("--dial-address").arg(address.to_string());
        }
        Ok(command)
    }

    /// In the job, next to its other steps.
    fn srun(&self, nodes: &str) -> Command {
        let mut command = Command::new("srun");
        command.arg(format!("--jobid={}", self.options.job));
        command.args(["--overlap", "--ntasks-per-node=1", "--mpi=none"]);
        command.args(["--chdir=/", "--nodelist", nodes]);
        command
    }
}

impl Step {
    fn link(self: Arc<Self>, host: &str, dialled: Dialled) -> Link {
        self.links.fetch_add(1, Ordering::Relaxed);
        self.arrived.send_modify(|arrived| *arrived += 1);
        let Dialled {
            reader,
            writer,
            incoming,
            outgoing,
        } = dialled;
        Link {
            was_kept: false,
            reader: Box::new(BufReader::new(reader)),
            writer: Box::new(writer),
            guard: LinkGuard::dialled(DialledGuard {
                host: host.to_owned(),
                incoming,
                outgoing,
                step: self,
            }),
        }
    }
}

/// The call's end, or `None` once neither it nor another agent of the step has come for `limit`: a
/// step of many nodes takes its time, and none of them is at fault.
async fn while_others_arrive<T>(
    mut call: oneshot::Receiver<T>,
    mut arrived: watch::Receiver<usize>,
    limit: Duration,
) -> Option<Result<T, oneshot::error::RecvError>> {
    loop {
        tokio::select! {
            ended = &mut call => return Some(ended),
            Ok(()) = arrived.changed() => {}
            () = sleep(limit) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_limit_is_on_silence_and_not_on_the_whole_launch() {
        let limit = Duration::from_millis(400);
        let arrivals = watch::Sender::new(0);
        let (caller, call) = oneshot::channel();
        let others = async {
            for _ in 0..4 {
                sleep(limit / 2).await;
                arrivals.send_modify(|arrived| *arrived += 1);
            }
            caller.send("n5").unwrap();
        };
        let waiting = while_others_arrive(call, arrivals.subscribe(), limit);
        let (dialled, ()) = tokio::join!(waiting, others);
        assert_eq!(dialled, Some(Ok("n5")), "twice the limit in all");
        let (_caller, call) = oneshot::channel::<()>();
        let nobody = while_others_arrive(call, arrivals.subscribe(), limit);
        assert_eq!(nobody.await, None);
    }

    #[test]
    fn one_step_has_all_nodes_and_the_secret_is_not_on_its_command_line() {
        let slurm = Slurm::new(SlurmOptions {
            job: "77".into(),
            binary: "/proc/1/exe".into(),
            remote_dir: Some("/scratch".into()),
            dial_ports: (0, 0),
            addresses: vec!["10.0.0.9".parse().unwrap()],
            nodes: vec!["n1".into(), "n2".into()],
        });
        let command = slurm.step_command(&["n1", "n2"], 4001).unwrap();
        let words: Vec<_> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        for pair in [["--nodelist", "n1,n2"], ["--nodes", "2"], ["--ntasks", "2"]] {
            assert!(words.windows(2).any(|two| two == pair), "{words:?}");
        }
        for word in ["--jobid=77", "--overlap", "--no-kill", "--input=all"] {
            assert!(words.contains(&word), "{word} in {words:?}");
        }
        let copied = words
            .iter()
            .find_map(|word| word.strip_prefix("--bcast=/scratch/eastwest."));
        assert_eq!(copied.map(str::len), Some(16));
        let end = &words[words.len() - 7..];
        assert_eq!(end[0], "/proc/1/exe");
        assert_eq!(
            end[1..],
            [
                "agent",
                "--remove-self",
                "--dial-back",
                "4001",
                "--dial-address",
                "10.0.0.9"
            ]
        );
        let other = slurm.step_command(&["n2"], 4001).unwrap();
        let copied = |command: &Command| {
            let words = command.get_args().map(|word| word.to_owned());
            words
                .into_iter()
                .find(|w| w.to_string_lossy().starts_with("--bcast"))
                .unwrap()
        };
        assert_ne!(
            copied(&command),
            copied(&other),
            "a file is never written twice"
        );
    }
}
