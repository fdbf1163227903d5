//! Agents over the system's ssh client, so that the user's configuration, keys, agent, jump hosts
//! and Kerberos keep working.

use crate::bootstrap::{Bootstrap, Keeping};
use crate::error::LaunchError;
use crate::jump::{HopClient, Jumps};
use crate::launcher::{AgentCommand, Launcher, ROOT_SHELL};
use crate::payload::Payloads;
use crate::relay::Neighbour;
use crate::slots::FanOut;
use crate::starting::COPY_LIMIT;
use ew_model::Host;
use ew_model::inventory::Login;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Hosts that are launched at once, unless the user says otherwise.
const FAN_OUT: FanOut = FanOut { first: 8, most: 64 };
/// Connections through one jump host that have not logged in yet: sshd's default `MaxStartups
/// 10:30:100` turns some away from the tenth on, and others may use it as well.
const LOGINS_PER_JUMP_HOST: usize = 8;
/// Look-ups of jump hosts at the same time.
const LOOK_UPS: usize = 16;

/// Settings of our own that the user's ssh configuration must not override: no questions, no
/// terminal, nothing forwarded, no master process that outlives the run (an existing one is used),
/// and only errors on standard error. Heartbeats share the NIC with the load: they go ahead of it
/// where switches use DSCP, not behind it as ssh would have it (CS1). All are known to every
/// OpenSSH since 6; an unknown one would be fatal.
const FIXED_OPTIONS: [&str; 8] = [
    "BatchMode=yes",
    "RequestTTY=no",
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "ForwardAgent=no",
    "PermitLocalCommand=no",
    "LogLevel=ERROR",
];
/// What the user's own `-o` may change.
const DEFAULT_OPTIONS: [&str; 1] = ["IPQoS=cs6"];

/// What the user may say about ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshOptions {
    /// The client.
    pub program: PathBuf,
    /// `-F`: a configuration file instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// `-l`: the user there.
    pub user: Option<String>,
    /// `-p`: the port there.
    pub port: Option<u16>,
    /// Where the binary lies for a moment; the host's `$TMPDIR` or `/tmp` when not given.
    pub remote_dir: Option<String>,
    /// ssh's `ConnectTimeout`, rounded up to whole seconds.
    pub connect_timeout: Duration,
    /// How long the copy may take on the far side before it removes itself, rounded up to whole
    /// seconds. A copy that does not move at all does so after 4 s.
    pub copy_timeout: Duration,
    /// Hosts that are launched at once.
    pub fan_out: FanOut,
    /// `-i`: keys, before those of the configuration.
    pub identities: Vec<PathBuf>,
    /// `-o`: settings of the client, each `KEY=VALUE`.
    pub settings: Vec<String>,
    /// `-J`: jump hosts, in place of the configuration's.
    pub jump: Option<String>,
    /// What stays on the hosts.
    pub keeping: Keeping,
    /// How single hosts are reached, by name; goes before the settings above.
    pub logins: BTreeMap<String, Login>,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            program: PathBuf::from("ssh"),
            ssh_config: None,
            user: None,
            port: None,
            remote_dir: None,
            connect_timeout: Duration::from_secs(10),
            copy_timeout: COPY_LIMIT,
            fan_out: FAN_OUT,
            identities: Vec::new(),
            settings: Vec::new(),
            jump: None,
            keeping: Keeping::Nothing,
            logins: BTreeMap::new(),
        }
    }
}

/// Copies the binary over ssh and starts it, with one connection per host.
#[derive(Clone, Debug)]
pub struct Ssh {
    payloads: Payloads,
    options: SshOptions,
    /// By host.
    ways: BTreeMap<String, Way>,
    /// By jump host.
    login_slots: BTreeMap<String, Arc<Semaphore>>,
    jumps: Arc<Jumps>,
}

/// How a host is reached that is not reached at once.
#[derive(Clone, Debug)]
enum Way {
    /// Through jump hosts, as `ProxyJump` has them.
    Jump(String),
    /// By a command, which may go through any.
    Command(String),
}

impl Way {
    /// The jump hosts, each once, sorted.
    fn hosts(&self) -> Vec<String> {
        match self {
            Self::Jump(hosts) => jump_hosts(hosts),
            Self::Command(command) => vec![command.clone()],
        }
    }
}

impl Ssh {
    /// A launcher that copies one of `payloads`.
    ///
    /// # Errors
    /// [`LaunchError::BadRemoteDir`] and [`LaunchError::BadSshOption`], so that they are reported
    /// once and not once per host.
    pub fn new(payloads: impl Into<Payloads>, options: SshOptions) -> Result<Self, LaunchError> {
        let ssh = Self {
            payloads: payloads.into(),
            options,
            ways: BTreeMap::new(),
            login_slots: BTreeMap::new(),
            jumps: Arc::default(),
        };
        ssh.remote_command(None)?;
        ssh.options
            .settings
            .iter()
            .try_for_each(|s| check_setting(s))?;
        Ok(ssh)
    }

    /// Asks the client's configuration which of the hosts are reached through a jump host (`ssh -G`
    /// for each), and logs in there once for all of them; where that fails, few connections at once
    /// wait there to log in. Blocks until it is logged in.
    #[must_use]
    pub fn with_ways_to(mut self, hosts: &[Host]) -> Self {
        let open = Mutex::new(hosts.iter());
        let next = || open.lock().unwrap_or_else(PoisonError::into_inner).next();
        let look = || {
            let mut found = Vec::new();
            while let Some(host) = next() {
                found.extend(self.way_to(host).map(|way| (host.name.clone(), way)));
            }
            found
        };
        self.ways = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..LOOK_UPS.min(hosts.len()))
                .map(|_| scope.spawn(look))
                .collect();
            let found = threads.into_iter().filter_map(|thread| thread.join().ok());
            found.flatten().collect()
        });
        for jump_host in self.ways.values().flat_map(Way::hosts) {
            self.login_slots
                .entry(jump_host)
                .or_insert_with(|| Arc::new(Semaphore::new(LOGINS_PER_JUMP_HOST)));
        }
        let jumps = self.ways.values().filter_map(|way| match way {
            Way::Jump(hosts) => Some(hosts.as_str()),
            Way::Command(_) => None,
        });
        self.jumps = Arc::new(Jumps::open(jumps, &self.hop_client()));
        self
    }

    fn hop_client(&self) -> HopClient<'_> {
        HopClient {
            program: &self.options.program,
            ssh_config: self.options.ssh_config.as_deref(),
            connect_seconds: whole_seconds(self.options.connect_timeout),
        }
    }

    /// What a host's client runs to go on from where we are logged in already.
    fn proxy_command(&self, host: &Host) -> Option<&str> {
        match self.ways.get(&host.name)? {
            Way::Jump(hosts) => self.jumps.proxy_command(hosts),
            Way::Command(_) => None,
        }
    }

    fn way_to(&self, host: &Host) -> Option<Way> {
        let mut command = self.client(host, &["-G"]).ok()?;
        let answer = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let answer = String::from_utf8_lossy(&answer.ok()?.stdout).into_owned();
        let value = |key: &str| {
            let line = answer.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim)
                .filter(|value| !value.is_empty() && *value != "none")
        };
        let jump = value("proxyjump ").map(|hosts| Way::Jump(hosts.to_owned()));
        jump.or_else(|| Some(Way::Command(value("proxycommand ")?.to_owned())))
    }

    fn remote_command(&self, neighbour: Option<&Neighbour>) -> Result<String, LaunchError> {
        Bootstrap {
            directory: self.options.remote_dir.as_deref(),
            payloads: &self.payloads,
            copy_seconds: whole_seconds(self.options.copy_timeout),
            keeping: self.options.keeping,
            neighbour,
        }
        .command()
    }

    fn command(
        &self,
        host: &Host,
        neighbour: Option<&Neighbour>,
    ) -> Result<AgentCommand, LaunchError> {
        let mut command = self.client(host, &[])?;
        command.arg(self.remote_command(neighbour)?);
        Ok(AgentCommand {
            command,
            payloads: Some(self.payloads.clone()),
        })
    }
}

impl Launcher for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn fan_out(&self) -> FanOut {
        self.options.fan_out
    }

    fn login_slots(&self, host: &Host) -> Vec<Arc<Semaphore>> {
        if self.proxy_command(host).is_some() {
            return Vec::new();
        }
        let way = self.ways.get(&host.name).into_iter().flat_map(Way::hosts);
        way.filter_map(|jump_host| self.login_slots.get(&jump_host).cloned())
            .collect()
    }

    fn agent_command(&self, host: &Host) -> Result<AgentCommand, LaunchError> {
        self.command(host, None)
    }

    fn relays(&self) -> bool {
        true
    }

    fn max_hosts_behind_one(&self) -> usize {
        let mut behind: BTreeMap<String, usize> = BTreeMap::new();
        for jump_host in self.ways.values().flat_map(Way::hosts) {
            *behind.entry(jump_host).or_default() += 1;
        }
        behind.into_values().max().unwrap_or(0)
    }

    fn agent_command_from(
        &self,
        host: &Host,
        neighbour: &Neighbour,
    ) -> Result<AgentCommand, LaunchError> {
        self.command(host, Some(neighbour))
    }

    /// In single quotes without anything that a login shell such as tcsh or fish would see.
    fn root_shell(&self, host: &Host) -> Result<Command, LaunchError> {
        let [option, script] = ROOT_SHELL;
        let mut command = self.client(host, &[])?;
        command.arg(format!("exec sh {option} '{script}'"));
        Ok(command)
    }
}

impl Ssh {
    /// The client, up to what is to be run on the host.
    fn client(&self, host: &Host, flags: &[&str]) -> Result<Command, LaunchError> {
        let options = &self.options;
        let unchanged = Login::default();
        let login = options.logins.get(&host.name).unwrap_or(&unchanged);
        let target = login.target.as_ref().unwrap_or(&host.name);
        check_name(target)?;
        let mut command = Command::new(&options.program);
        command.args(flags);
        if let Some(config) = &options.ssh_config {
            command.arg("-F").arg(config);
        }
        let timeout = whole_seconds(options.connect_timeout);
        let timeout = format!("ConnectTimeout={timeout}");
        // The client takes the first value that it is given.
        let settings = FIXED_OPTIONS
            .into_iter()
            .chain(options.settings.iter().map(String::as_str))
            .chain(DEFAULT_OPTIONS)
            .chain([timeout.as_str()]);
        for setting in settings {
            command.arg("-o").arg(setting);
        }
        if let Some(user) = login.user.as_ref().or(options.user.as_ref()) {
            command.arg("-l").arg(user);
        }
        if let Some(port) = login.port.or(options.port) {
            command.arg("-p").arg(port.to_string());
        }
        for identity in &options.identities {
            command.arg("-i").arg(identity);
        }
        // The client takes one of the two.
        if let Some(through) = self.proxy_command(host) {
            command.arg("-o").arg(format!("ProxyCommand={through}"));
        } else if let Some(jump) = &options.jump {
            command.arg("-J").arg(jump);
        }
        command.arg("--").arg(target);
        Ok(command)
    }
}

/// The hosts of `[user@]host[:port],...`, each once, sorted. Whoever logs in, and by whatever
/// spelling of ssh's own port, it is the same sshd that counts.
fn jump_hosts(proxy_jump: &str) -> Vec<String> {
    let host = |hop: &str| {
        let hop = hop.trim().trim_start_matches("ssh://");
        let host = hop.rsplit_once('@').map_or(hop, |(_, host)| host);
        let host = host.strip_suffix(":22").unwrap_or(host);
        host.to_ascii_lowercase()
    };
    let hosts: BTreeSet<String> = proxy_jump.split(',').map(host).collect();
    hosts.into_iter().collect()
}

/// `KEY=VALUE`, and none that would make the client ask, or send something else than our protocol.
fn check_setting(setting: &str) -> Result<(), LaunchError> {
    let key = setting
        .split(['=', ' '])
        .next()
        .unwrap_or("")
        .to_ascii_lowercase();
    let fixed = FIXED_OPTIONS.iter().any(|fixed| {
        fixed
            .split('=')
            .next()
            .unwrap_or("")
            .eq_ignore_ascii_case(&key)
    });
    let reason = if key.is_empty() || !setting.contains(['=', ' ']) {
        "write KEY=VALUE, for example -o StrictHostKeyChecking=accept-new"
    } else if fixed {
        "eastwest sets it itself: the connection carries its protocol and nobody answers questions"
    } else if [
        "remotecommand",
        "stdinnull",
        "forkafterauthentication",
        "sessiontype",
    ]
    .contains(&key.as_str())
    {
        "the agent could not be started with it"
    } else {
        return Ok(());
    };
    Err(LaunchError::BadSshOption {
        option: setting.to_owned(),
        reason,
    })
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
    use crate::payload::Payload;
    use ew_proto::message::RelayKey;

    #[test]
    fn the_command_carries_every_option() {
        let options = SshOptions {
            ssh_config: Some("/etc/lab.ssh".into()),
            user: Some("ops".into()),
            remote_dir: Some("/scratch".into()),
            connect_timeout: Duration::from_millis(2500),
            copy_timeout: Duration::from_secs(60),
            identities: vec!["/keys/own".into()],
            settings: vec!["StrictHostKeyChecking=accept-new".into()],
            jump: Some("bastion".into()),
            logins: BTreeMap::from([(
                "node1".to_owned(),
                Login {
                    target: Some("10.0.0.1".into()),
                    user: None,
                    port: Some(2222),
                },
            )]),
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
        for pair in [["-i", "/keys/own"], ["-J", "bastion"], ["-p", "2222"]] {
            assert!(arguments.windows(2).any(|w| w == pair), "{pair:?}");
        }
        let of_user = arguments.iter().position(|a| a.starts_with("Strict"));
        let default = arguments.iter().position(|a| a.starts_with("IPQoS"));
        assert!(of_user < default, "the first value counts");
        let end = &arguments[arguments.len() - 3..];
        assert_eq!(end[..2], ["--", "10.0.0.1"]);
        assert!(end[2].contains("parent=\"/scratch\"; "), "{}", end[2]);
        let facts = "; full=77; keep=;; esac; url=; tcp=; path=; limit=60; ";
        assert!(end[2].contains(facts), "{}", end[2]);
        let neighbour = Neighbour {
            address: "[2001:db8::1]:5401".parse().unwrap(),
            key: RelayKey([0x0a; 16]),
        };
        let agent = ssh.agent_command_from(&host("node1"), &neighbour).unwrap();
        let script = agent.command.get_args().last().unwrap().to_str().unwrap();
        let key = "0a".repeat(16);
        let by_http = format!("url=http://[2001:db8::1]:5401/{key}; ");
        let by_bash = format!("tcp=/dev/tcp/2001:db8::1/5401; path=/{key}; ");
        assert!(script.contains(&(by_http + &by_bash)), "{script}");
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
    fn ways_through_the_same_jump_host_share_it() {
        assert_eq!(jump_hosts("ops@A:22,b:2222,a"), ["a", "b:2222"]);
        assert_eq!(
            jump_hosts("ssh://ops@[2001:db8::1]:2222"),
            ["[2001:db8::1]:2222"]
        );
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

    #[test]
    fn settings_that_would_break_the_link_are_refused() {
        for setting in ["batchmode=no", "RemoteCommand=x", "IdentityFile", ""] {
            let options = SshOptions {
                settings: vec![setting.into()],
                ..SshOptions::default()
            };
            let refused = Ssh::new(Payload::new(vec![0]), options);
            assert!(
                matches!(refused, Err(LaunchError::BadSshOption { .. })),
                "{setting}"
            );
        }
    }

    fn host(name: &str) -> Host {
        Host {
            name: name.into(),
            address: None,
            rack: None,
        }
    }
}
