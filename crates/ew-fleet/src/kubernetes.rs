//! Agents in pods that run already: the link of each is an exec stream through the API server,
//! carried by a process of our own, as ssh's client carries its own. Whoever made the pods
//! specifies which they are.

use crate::bootstrap::{Bootstrap, Keeping};
use crate::error::LaunchError;
use crate::launcher::{AgentCommand, Launcher};
use crate::payload::Payloads;
use crate::slots::FanOut;
use ew_model::Host;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Pods that are entered at once: API servers of small clusters give out no more.
const FAN_OUT: usize = 32;
/// Where the binary lies in an image of ours.
const BINARY_IN_IMAGE: &str = "/eastwest";
/// Made for the copy, where every pod may write: a pod's volume is open to everybody in the pod,
/// and not sticky.
const PRIVATE: &str = "/tmp/eastwest";

/// The way into one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodLink {
    /// The pod's name.
    Pod(String),
    /// There is none, in the words of whoever made the pods.
    NotRunning(String),
}

/// Enters pods by exec.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The eastwest binary, which carries the streams.
    pub binary: PathBuf,
    /// What it needs to know of the cluster: options of `eastwest kubernetes link`.
    pub access: Vec<String>,
    /// By the host's name.
    pub pods: BTreeMap<String, PodLink>,
    /// The binaries, where the image has none.
    pub payloads: Option<Payloads>,
    /// How long a copy may take.
    pub copy_timeout: Duration,
}

impl Launcher for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn fan_out(&self) -> FanOut {
        FanOut::fixed(FAN_OUT)
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        let failed = |words: &str| LaunchError::Pod {
            host: host.name.clone(),
            words: words.to_owned(),
        };
        let pod = match self.pods.get(&host.name) {
            Some(PodLink::Pod(pod)) => pod,
            Some(PodLink::NotRunning(words)) => return Err(failed(words)),
            None => return Err(failed("it has no pod")),
        };
        let mut command = Command::new(&self.binary);
        command.args(["kubernetes", "link", "--pod", pod]);
        command.args(&self.access).arg("--");
        match &self.payloads {
            None => command.args([BINARY_IN_IMAGE, "agent"]),
            Some(payloads) => {
                let seconds = self.copy_timeout.as_secs().max(1);
                let script = Bootstrap {
                    directory: Some(PRIVATE),
                    payloads,
                    copy_seconds: seconds,
                    keeping: Keeping::Nothing,
                    neighbour: None,
                }
                .command()?;
                // One that somebody else made is refused by the script.
                let script = format!("mkdir -m 700 {PRIVATE} 2>/dev/null; {script}");
                command.args(["sh", "-c", &script])
            }
        };
        Ok(AgentCommand {
            command,
            payloads: self.payloads.clone(),
        })
    }

    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError> {
        Err(LaunchError::NotInPods {
            host: host.name.clone(),
            what: "installing tools",
            remedy: "use an image that has them, with --image and --bootstrap copy",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Payload;

    fn host(name: &str) -> Host {
        Host {
            name: name.into(),
            address: None,
            rack: None,
        }
    }

    fn launcher(payloads: Option<Payloads>) -> Kubernetes {
        let pods = [
            ("n1", PodLink::Pod("eastwest-x-n1".to_owned())),
            ("n2", PodLink::NotRunning("ErrImagePull".to_owned())),
        ];
        Kubernetes {
            binary: "/bin/eastwest".into(),
            access: vec!["--namespace".into(), "net".into()],
            pods: pods.map(|(name, pod)| (name.to_owned(), pod)).into(),
            payloads,
            copy_timeout: Duration::from_secs(30),
        }
    }

    #[test]
    fn the_link_enters_the_hosts_pod() {
        let agent = launcher(None).agent_command(&host("n1")).unwrap();
        let words: Vec<_> = agent
            .command
            .get_args()
            .map(|a| a.to_str().unwrap())
            .collect();
        assert_eq!(words[..4], ["kubernetes", "link", "--pod", "eastwest-x-n1"]);
        assert_eq!(
            words[4..],
            ["--namespace", "net", "--", "/eastwest", "agent"]
        );
        let payloads = Payload::new(vec![0; 9]).into();
        let agent = launcher(Some(payloads)).agent_command(&host("n1")).unwrap();
        let script = agent.command.get_args().last().unwrap().to_str().unwrap();
        assert!(
            script.contains("full=9") && script.contains("parent=\"/tmp/eastwest\""),
            "{script}"
        );
    }

    /// A controller on x86-64, a pod on aarch64: its own `uname` chooses.
    #[test]
    fn a_pod_gets_the_agent_of_its_nodes_architecture() {
        let built_for = |machine: u16, bytes: usize| {
            let mut program = b"\x7fELF".to_vec();
            program.resize(bytes, 0);
            program[18..20].copy_from_slice(&machine.to_le_bytes());
            Payload::new(program)
        };
        let payloads = [built_for(62, 100), built_for(183, 200)];
        let launcher = launcher(Some(payloads.into_iter().collect()));
        let agent = launcher.agent_command(&host("n1")).unwrap();
        let script = agent.command.get_args().last().unwrap().to_str().unwrap();
        let of_arm = script.split_once("aarch64|arm64) ").unwrap().1;
        let of_arm = of_arm.split_once(";;").unwrap().0;
        assert!(of_arm.contains("full=200;"), "{of_arm}");
    }

    #[test]
    fn a_pod_that_does_not_run_is_a_host_that_does_not_come_up() {
        let error = launcher(None).agent_command(&host("n2")).unwrap_err();
        assert_eq!(error.to_string(), "n2: ErrImagePull");
    }
}
