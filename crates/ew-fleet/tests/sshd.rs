//! The ssh launcher against a real sshd that the test starts on a loopback port, with keys and
//! configuration of its own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails panics, and one that is skipped prints why"
)]

mod support;

use ew_fleet::{LaunchError, Launcher, Ssh, SshOptions};
use ew_model::Host;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use support::{
    CLEAN_WITHIN, PATIENCE, SPEAKS, arrived_bytes, converse, entries, eventually, host, installed,
    launch, launch_all, mount_namespace, path_of, payload, processes_of, runs, within, written_pid,
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn an_agent_is_copied_started_and_ends_with_its_input() {
    let Some(sshd) = Sshd::start("") else { return };
    let mut link = launch(&sshd.ssh(SPEAKS), &host("target")).await.unwrap();
    converse(&mut link).await;
    assert!(entries(&sshd.remote()).is_empty());
    drop(link.writer);
    link.guard.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn several_links_at_once() {
    let Some(sshd) = Sshd::start("") else { return };
    let hosts = vec![host("target"); 4];
    for launched in launch_all(Arc::new(sshd.ssh(SPEAKS)), &hosts).await {
        let mut link = launched.unwrap();
        converse(&mut link).await;
        drop(link.writer);
        link.guard.finish(PATIENCE).await.unwrap();
    }
    assert!(entries(&sshd.remote()).is_empty());
}

#[tokio::test]
async fn one_login_at_a_jump_host_is_enough_for_the_hosts_behind_it() {
    let (Some(jump), Some(target)) = (Sshd::start(""), Sshd::start("")) else {
        return;
    };
    let hosts = ["a", "b", "c"].map(host);
    let ssh = Arc::new(target.ssh_through(&jump, SPEAKS).with_ways_to(&hosts));
    assert_eq!(ssh.max_hosts_behind_one(), 3);
    launch_and_converse(&ssh, &hosts).await;
    assert_eq!((jump.logins(), target.logins()), (1, 3));
    // Without the master, lost as any connection may be, each host has a login of its own.
    let clients = || processes_of(&target.path("ssh_config.jump"));
    let is_ssh =
        |pid: &u32| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"ssh\n");
    let master = clients().into_iter().find(is_ssh).unwrap();
    let killed = Command::new("kill").arg(master.to_string()).status();
    assert!(killed.unwrap().success());
    eventually("the master is gone", || !runs(master)).await;
    launch_and_converse(&ssh, &hosts).await;
    assert_eq!((jump.logins(), target.logins()), (4, 6));
    drop(ssh);
    let again = target.ssh_through(&jump, SPEAKS).with_ways_to(&hosts);
    assert_eq!(jump.logins(), 5);
    drop(again);
    eventually("no client is left", || clients().is_empty()).await;
}

async fn launch_and_converse(ssh: &Arc<Ssh>, hosts: &[Host]) {
    for launched in launch_all(Arc::<Ssh>::clone(ssh), hosts).await {
        let mut link = launched.unwrap();
        converse(&mut link).await;
        drop(link.writer);
        link.guard.finish(PATIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn a_killed_client_leaves_neither_file_nor_process() {
    let Some(sshd) = Sshd::start("") else { return };
    // This agent keeps its file, so that it is the bootstrap that has to clean up.
    let script = sshd.keeping_script();
    let mut link = launch(&sshd.ssh(&script), &host("target")).await.unwrap();
    converse(&mut link).await;
    let agent = written_pid(&sshd.path("pid")).await;
    assert!(runs(agent) && entries(&sshd.remote()).len() == 1);
    link.guard.kill();
    sshd.is_clean(agent).await;
    let unclean = link.guard.finish(PATIENCE).await.unwrap_err().to_string();
    assert!(unclean.contains("signal 9"), "{unclean}");
}

#[test]
fn a_controller_that_dies_leaves_neither_file_nor_process() {
    let Some(sshd) = Sshd::start("") else { return };
    let ssh = sshd.ssh(&sshd.keeping_script());
    // Nothing in this thread cleans up; the kernel ends the client with the thread that started it.
    let controller = std::thread::spawn(move || {
        let runtime = runtime();
        let mut link = runtime.block_on(launch(&ssh, &host("target"))).unwrap();
        runtime.block_on(converse(&mut link));
        std::mem::forget((link, runtime));
    });
    controller.join().unwrap();
    runtime().block_on(async {
        let agent = written_pid(&sshd.path("pid")).await;
        sshd.is_clean(agent).await;
    });
}

#[tokio::test]
async fn a_copy_cut_by_the_clients_death_leaves_nothing() {
    let Some(sshd) = Sshd::start("") else { return };
    let (mut client, _input) = sshd.half_a_copy().await;
    client.kill().unwrap();
    client.wait().unwrap();
    within(CLEAN_WITHIN, "all is gone", || sshd.holds_nothing()).await;
}

#[tokio::test]
async fn a_copy_that_nobody_ends_nor_goes_on_with_leaves_nothing() {
    let Some(sshd) = Sshd::start("") else { return };
    let (client, _input) = sshd.half_a_copy().await;
    within(CLEAN_WITHIN, "all is gone", || sshd.holds_nothing()).await;
    let out = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("-failed stalled"), "{said}");
}

#[tokio::test]
async fn login_shells_of_other_kinds_hand_the_script_on() {
    for shell in ["tcsh", "fish"] {
        if !installed(shell) {
            continue;
        }
        let Some(sshd) = Sshd::start_with_login_shell(&path_of(shell).unwrap()) else {
            return;
        };
        let seen = sshd.run("echo $SHELL");
        assert!(seen.contains(shell), "the login shell is {seen}");
        let mut link = launch(&sshd.ssh(SPEAKS), &host("target"))
            .await
            .unwrap_or_else(|error| panic!("{shell}: {error}"));
        converse(&mut link).await;
        assert!(entries(&sshd.remote()).is_empty(), "{shell}");
        drop(link.writer);
        link.guard.finish(PATIENCE).await.unwrap();
        // What ends a copy early has to work through them as well.
        let (mut client, _input) = sshd.half_a_copy().await;
        within(CLEAN_WITHIN, "all is gone", || sshd.holds_nothing()).await;
        client.wait().unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_the_server_drops_is_explained() {
    let Some(sshd) = Sshd::start("") else { return };
    let script = sshd.keeping_script();
    let mut link = launch(&sshd.ssh(&script), &host("target")).await.unwrap();
    converse(&mut link).await;
    let agent = written_pid(&sshd.path("pid")).await;
    Sshd::kill_session_of(agent);
    let mut rest = Vec::new();
    link.reader.read_to_end(&mut rest).await.unwrap();
    let unclean = link.guard.finish(PATIENCE).await.unwrap_err().to_string();
    assert!(unclean.contains("connection broke"), "{unclean}");
    sshd.is_clean(agent).await;
}

#[tokio::test]
async fn refusals_are_told_in_sshs_own_words() {
    let Some(sshd) = Sshd::start("AllowUsers nobody-at-all\n") else {
        return;
    };
    let error = launch(&sshd.ssh(SPEAKS), &host("target"))
        .await
        .unwrap_err();
    assert!(
        matches!(error, LaunchError::Ssh { hint: Some(_), .. }),
        "{error}"
    );
    assert!(error.to_string().contains("Permission denied"), "{error}");
    let closed = sshd.ssh_to(free_port(), SPEAKS);
    let error = launch(&closed, &host("target")).await.unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

/// A server of our own and everything it needs, in a directory of its own.
struct Sshd {
    directory: TempDir,
    port: u16,
    server: Child,
}

impl Sshd {
    /// `None`, with the reason printed, where there is no sshd.
    fn start(more_configuration: &str) -> Option<Self> {
        Self::start_as(more_configuration, Command::new)
    }

    /// A server that sees a user database of its own, in which our login shell is this one. `None`,
    /// with the reason printed, where we are not root or there is no sshd.
    fn start_with_login_shell(shell: &Path) -> Option<Self> {
        if mount_namespace() != Some("unshare --mount") {
            assert!(std::env::var_os("CI").is_none(), "CI must be root");
            println!("skipped: another login shell needs root");
            return None;
        }
        let passwd = tempfile::NamedTempFile::new().unwrap();
        let users = fs::read_to_string("/etc/passwd").unwrap();
        fs::write(&passwd, with_roots_shell(&users, shell)).unwrap();
        Self::start_as("", |program| {
            let mut command = Command::new("unshare");
            let mounting = "mount --bind \"$0\" /etc/passwd && exec \"$@\"";
            command
                .args(["--mount", "sh", "-c", mounting])
                .arg(passwd.path())
                .arg(program);
            command
        })
    }

    fn start_as(
        more_configuration: &str,
        command: impl FnOnce(PathBuf) -> Command,
    ) -> Option<Self> {
        let (Some(program), Some(keygen)) = (path_of("sshd"), path_of("ssh-keygen")) else {
            assert!(
                std::env::var_os("CI").is_none(),
                "CI must have sshd and ssh-keygen"
            );
            println!("skipped: no sshd or ssh-keygen here");
            return None;
        };
        let directory = TempDir::new().unwrap();
        for key in ["host_key", "user_key"] {
            make_key(&keygen, &directory.path().join(key));
        }
        fs::create_dir(directory.path().join("remote")).unwrap();
        // As root, sshd wants this directory, which the system's start script makes elsewhere.
        if fs::create_dir("/run/sshd").is_ok() {
            println!("made /run/sshd for sshd");
        }
        let port = free_port();
        let configuration = server_configuration(directory.path(), port, more_configuration);
        let file = directory.path().join("sshd_config");
        fs::write(&file, configuration).unwrap();
        let server = command(program)
            .args(["-D", "-e", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let sshd = Self {
            directory,
            port,
            server,
        };
        sshd.await_listening();
        Some(sshd)
    }

    /// Half of the binary is on the host, the client waits for more.
    async fn half_a_copy(&self) -> (Child, ChildStdin) {
        let agent = self.ssh(SPEAKS).agent_command(&host("target")).unwrap();
        let (mut command, payload) = (agent.command, payload(SPEAKS));
        let mut client = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let half = &payload.compressed()[..payload.compressed().len() / 2];
        let mut input = client.stdin.take().unwrap();
        input.write_all(half).unwrap();
        eventually("the copy has begun", || arrived_bytes(&self.remote()) > 0).await;
        (client, input)
    }

    /// The output of a command that the login shell runs.
    fn run(&self, command: &str) -> String {
        let agent = self.ssh(SPEAKS).agent_command(&host("target")).unwrap();
        let arguments: Vec<_> = agent.command.get_args().collect();
        let (_bootstrap, before) = arguments.split_last().unwrap();
        let mut ssh = Command::new(agent.command.get_program());
        let out = ssh.args(before).arg(command).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    fn await_listening(&self) {
        let began = std::time::Instant::now();
        loop {
            let log = fs::read_to_string(self.path("log")).unwrap_or_default();
            if log.contains("Server listening") {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "sshd does not start: {log}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn remote(&self) -> PathBuf {
        self.path("remote")
    }

    fn ssh(&self, script: &str) -> Ssh {
        self.ssh_to(self.port, script)
    }

    fn ssh_to(&self, port: u16, script: &str) -> Ssh {
        let key = self.path("user_key");
        let configuration = format!(
            "Host target\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n \
             StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n",
            key.display()
        );
        let file = self.path(&format!("ssh_config.{port}"));
        fs::write(&file, configuration).unwrap();
        let options = SshOptions {
            ssh_config: Some(file),
            remote_dir: Some(self.remote().to_str().unwrap().to_owned()),
            ..SshOptions::default()
        };
        Ssh::new(payload(script), options).unwrap()
    }

    /// To hosts `a`, `b` and `c` on this server, which are reached through the other one.
    fn ssh_through(&self, jump: &Self, script: &str) -> Ssh {
        let host = |names: &str, server: &Self, more: &str| {
            format!(
                "Host {names}\n HostName 127.0.0.1\n Port {}\n IdentityFile {}\n{more}",
                server.port,
                server.path("user_key").display()
            )
        };
        let configuration = [
            host("bastion", jump, ""),
            host("a b c", self, " ProxyJump bastion\n"),
            "Host *\n IdentitiesOnly yes\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n"
                .to_owned(),
        ];
        let file = self.path("ssh_config.jump");
        fs::write(&file, configuration.concat()).unwrap();
        let options = SshOptions {
            ssh_config: Some(file),
            remote_dir: Some(self.remote().to_str().unwrap().to_owned()),
            ..SshOptions::default()
        };
        Ssh::new(payload(script), options).unwrap()
    }

    fn logins(&self) -> usize {
        let log = fs::read_to_string(self.path("log")).unwrap();
        log.matches("Accepted publickey").count()
    }

    /// An agent that writes its pid and does not remove itself.
    fn keeping_script(&self) -> String {
        let pid = self.path("pid");
        format!("echo $$ > {}\necho hello\ncat\nexit 0\n", pid.display())
    }

    fn holds_nothing(&self) -> bool {
        entries(&self.remote()).is_empty() && processes_of(&self.remote()).is_empty()
    }

    async fn is_clean(&self, agent: u32) {
        eventually("the agent is gone", || !runs(agent)).await;
        eventually("the file is gone", || entries(&self.remote()).is_empty()).await;
    }

    /// Kills the sshd process that carries an agent's session: bootstrap's parent.
    fn kill_session_of(agent: u32) {
        let session = parent(parent(agent));
        let name = fs::read_to_string(format!("/proc/{session}/comm")).unwrap();
        assert!(name.starts_with("sshd"), "{name}");
        let killed = Command::new("kill")
            .args(["-9", &session.to_string()])
            .status();
        assert!(killed.unwrap().success());
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn server_configuration(directory: &Path, port: u16, more: &str) -> String {
    let directory = directory.display();
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {directory}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n\
         PermitRootLogin yes\nPubkeyAuthentication yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         AuthorizedKeysFile {directory}/user_key.pub\nMaxStartups 100\n{more}"
    )
}

fn make_key(keygen: &Path, path: &Path) {
    let made = Command::new(keygen)
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

/// A user database with another shell for root.
fn with_roots_shell(users: &str, shell: &Path) -> String {
    let line = |user: &str| match (user.strip_prefix("root:"), user.rsplit_once(':')) {
        (Some(_), Some((rest, _))) => format!("{rest}:{}\n", shell.display()),
        _ => format!("{user}\n"),
    };
    users.lines().map(line).collect()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn parent(pid: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    after_name.split(' ').nth(1).unwrap().parse().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
