//! Agents over the system's ssh client, so that the user's configuration, keys, agent, jump hosts and Kerberos keep working.

use crate::bootstrap::remote_command;
use crate::error::LaunchError;
use crate::launcher::{AgentCommand, Launcher, Payload, ROOT_SHELL};
use crate::link::COPY_LIMIT;
use ew_model::Host;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Hosts that are launched at once, unless the user says otherwise.
const FAN_OUT: usize = 64;

/// Settings of our own that the user's ssh configuration must not override: no questions, no terminal, nothing forwarded, no
/// master process that outlives the run (an existing one is used), and only errors on standard error. Heartbeats share the NIC with
/// the load: they go ahead of it where switches look at DSCP, not behind it as ssh would have it (CS1). All are known to every OpenSSH since 6; an unknown one would be fatal.
const FIXED_OPTIONS: [&str; 9] = [
    "BatchMode=yes",
    "RequestTTY=no",
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
    "IPQoS=cs6",
];

/// What the user may say about ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshOptions {
    /// The client.
    pub program: PathBuf,
    /// `-F`: a configuration file instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// `-l`: the user there.
    pub user: Option<String>,
    /// Where the binary lies for a moment; the host's `$TMPDIR` or `/tmp` when not given.
    pub remote_dir: Option<String>,
    /// ssh's `ConnectTimeout`, rounded up to whole seconds.
    pub connect_timeout: Duration,
    /// How long the copy may take on the far side before it removes itself, rounded up to whole seconds. A copy that does not move at
    /// all does so after 4 s.
    pub copy_timeout: Duration,
    /// Hosts that are launched at once.
    pub fan_out: usize,
    /// Further arguments for the client, before the host.
    pub extra: Vec<String>,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            program: PathBuf::from("ssh"),
            ssh_config: None,
            user: None,
            remote_dir: None,
            connect_timeout: Duration::from_secs(10),
            copy_timeout: COPY_LIMIT,
            fan_out: FAN_OUT,
            extra: Vec::new(),
        }
    }
}

/// Copies the binary over ssh and starts it, with one connection per host.
#[derive(Clone, Debug)]
pub struct Ssh {
    payload: Payload,
    options: SshOptions,
}

impl Ssh {
    /// A launcher that copies `payload`.
    ///
    /// # Errors
    /// [`LaunchError::BadRemoteDir`], so that it is said once and not once per host.
    pub fn new(payload: Payload, options: SshOptions) -> Result<Self, LaunchError> {
        let ssh = Self { payload, options };
        ssh.remote_command()?;
        Ok(ssh)
    }

    fn remote_command(&self) -> Result<String, LaunchError> {
        remote_command(
            self.options.remote_dir.as_deref(),
            self.payload.bytes().len(),
            whole_seconds(self.options.copy_timeout),
        )
    }
}

impl Launcher for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn fan_out(&self) -> usize {
        self.options.fan_out
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        let mut command = self.client(host)?;
        command.arg(self.remote_command()?);
        Ok(AgentCommand {
            command,
            payload: Some(self.payload.clone()),
        })
    }

    /// In single quotes without anything that a login shell such as tcsh or fish would see.
    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError> {
        let [option, script] = ROOT_SHELL;
        let mut command = self.client(host)?;
        command.arg(format!("exec sh {option} '{script}'"));
        Ok(command)
    }
}

impl Ssh {
    /// The client, up to what is to be run on the host.
    fn client(&self, host: &Host) -> Result<Command, LaunchError> {
        check_name(&host.name)?;
        let mut command = Command::new(&self.options.program);
        if let Some(config) = &self.options.ssh_config {
            command.arg("-F").arg(config);
        }
        for option in FIXED_OPTIONS {
            command.arg("-o").arg(option);
        }
        let seconds = whole_seconds(self.options.connect_timeout);
        command.arg("-o").arg(format!("ConnectTimeout={seconds}"));
        if let Some(user) = &self.options.user {
            command.arg("-l").arg(user);
        }
        command.args(&self.options.extra).arg("--").arg(&host.name);
        Ok(command)
    }
}

fn check_name(name: &str) -> Result<(), LaunchError> {
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.starts_with('-') {
        "ssh would take it for an option"
    } else if name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        "it has a blank or a control character"
    } else {
        return Ok(());
    };
    Err(LaunchError::BadHostName {
        name: name.escape_debug().to_string(),
        reason,
    })
}

fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_carries_every_option() {
        let options = SshOptions {
            ssh_config: Some("/etc/lab.ssh".into()),
            user: Some("ops".into()),
            remote_dir: Some("/scratch".into()),
            connect_timeout: Duration::from_millis(2500),
            copy_timeout: Duration::from_secs(60),
            extra: vec!["-v".into()],
            ..SshOptions::default()
        };
        let ssh = Ssh::new(Payload::new(vec![0; 77]), options).unwrap();
        let agent = ssh.agent_command(&host("node1")).unwrap();
        let arguments: Vec<_> = agent
            .command
            .get_args()
            .map(|a| a.to_str().unwrap())
            .collect();
        assert_eq!(arguments[..2], ["-F", "/etc/lab.ssh"]);
        assert!(arguments.windows(2).any(|w| w == ["-l", "ops"]));
        assert!(arguments.contains(&"ConnectTimeout=3"));
        assert!(arguments.contains(&"BatchMode=yes"));
        let end = &arguments[arguments.len() - 4..];
        assert_eq!(end[..3], ["-v", "--", "node1"]);
        assert!(end[3].contains("parent=\"/scratch\"; size=77; limit=60;"));
    }

    #[test]
    fn a_root_shell_asks_no_question_and_means_the_same_to_every_login_shell() {
        let ssh = Ssh::new(Payload::new(vec![0]), SshOptions::default()).unwrap();
        let shell = ssh.root_shell(&host("node1")).unwrap();
        let last = shell.get_args().last().unwrap().to_str().unwrap();
        assert!(last.contains("sudo -n sh -s"));
        let quoted = last.strip_prefix("exec sh -c '").unwrap();
        assert!(!quoted.trim_end_matches('\'').contains(['\'', '!', '\n']));
    }

    #[test]
    fn names_that_ssh_would_misread_are_refused() {
        let ssh = Ssh::new(Payload::new(vec![0]), SshOptions::default()).unwrap();
        for name in ["", "-oProxyCommand=x", "a b", "a\nb"] {
            assert!(ssh.agent_command(&host(name)).is_err(), "{name:?}");
        }
        let options = SshOptions {
            remote_dir: Some("$(reboot)".into()),
            ..SshOptions::default()
        };
        let error = Ssh::new(Payload::new(vec![0]), options).unwrap_err();
        assert!(error.to_string().contains("--remote-dir"), "{error}");
    }

    fn host(name: &str) -> Host {
        Host {
            name: name.into(),
            address: None,
            rack: None,
        }
    }
}
