//! One login at a jump host for all hosts behind it: a client that stays there as a master
//! (`ControlMaster` of ssh_config(5)), through which the clients of the hosts go on. Without it
//! every host costs two logins, of which a jump host rejects some, or wants a second factor for
//! each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A jump host for fewer hosts is logged in at by each.
const MIN_HOSTS: usize = 2;
/// As ssh's own client for `-W` has them.
const SETTINGS: [&str; 4] = [
    "BatchMode=yes",
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "LogLevel=ERROR",
];
/// Between two polls for the socket of a master that logs in.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Longest path of a socket (unix(7)), less what ssh adds to it while it makes it.
const MAX_SOCKET_PATH_BYTES: usize = 108 - 20;
/// Ends the client when our end of its standard input closes, however this process ends, and
/// removes the directory `$0`, which the client's socket was in. A client that ends by itself takes
/// the watch with it, which would signal whatever has its number by then. Shells give what runs in
/// the background an empty standard input, hence the detour.
const KEEPER: &str = "exec 3<&0; \"$@\" 3<&- </dev/null & client=$!; \
    { read end <&3; kill $client; } >/dev/null 2>&1 & watch=$!; exec 3<&-; \
    wait $client; kill $watch; rmdir \"$0\"";

/// How the clients for jump hosts are called.
#[derive(Debug)]
pub(crate) struct HopClient<'a> {
    pub(crate) program: &'a Path,
    pub(crate) ssh_config: Option<&'a Path>,
    pub(crate) connect_seconds: u64,
}

/// Masters that have logged in, by the way that hosts name (`ProxyJump`).
#[derive(Debug, Default)]
pub(crate) struct Jumps(BTreeMap<String, Master>);

#[derive(Debug)]
struct Master {
    keeper: Child,
    /// Of a host's client: how it gets to the host.
    proxy_command: String,
    socket: PathBuf,
    /// Private, with the socket in it.
    _directory: TempDir,
}

/// The last jump host of a way, and how to get there.
#[derive(Debug, PartialEq, Eq)]
struct Hop<'a> {
    /// `[user@]host`
    target: String,
    port: Option<&'a str>,
    /// Jump hosts before it.
    before: Option<&'a str>,
}

impl Jumps {
    /// Logs in where several hosts of `ways` go through, to all at once, and waits until each has
    /// succeeded or failed. Where it fails, hosts are reached as they would have been.
    pub(crate) fn open<'a>(ways: impl Iterator<Item = &'a str>, client: &HopClient<'_>) -> Self {
        let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
        ways.for_each(|way| *hosts.entry(way).or_default() += 1);
        let shared = hosts.into_iter().filter(|(_, count)| *count >= MIN_HOSTS);
        let masters = shared.filter_map(|(way, _)| Some((way.to_owned(), client.master(way)?)));
        let mut masters: BTreeMap<String, Master> = masters.collect();
        let deadline = Instant::now() + Duration::from_secs(client.connect_seconds);
        while masters.values_mut().any(Master::is_logging_in) && Instant::now() < deadline {
            std::thread::sleep(POLL_INTERVAL);
        }
        masters.retain(|_, master| master.socket.exists());
        Self(masters)
    }

    /// What a host's client runs to get there by this way.
    pub(crate) fn proxy_command(&self, way: &str) -> Option<&str> {
        let master = self.0.get(way).filter(|master| master.socket.exists());
        master.map(|master| master.proxy_command.as_str())
    }
}

impl Master {
    fn is_logging_in(&mut self) -> bool {
        !self.socket.exists() && matches!(self.keeper.try_wait(), Ok(None))
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // It ends by itself now.
        let _ = self.keeper.wait();
    }
}

impl HopClient<'_> {
    /// `None` where the user's configuration has a master of its own for the jump host, or where
    /// the way cannot be put into a command line.
    fn master(&self, way: &str) -> Option<Master> {
        let hop = Hop::parse(way);
        if self.has_own_master(&hop) {
            return None;
        }
        let directory = tempfile::Builder::new()
            .prefix("eastwest-jump.")
            .tempdir()
            .ok()?;
        let socket = directory.path().join("s");
        if socket.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
            return None;
        }
        let path = format!("ControlPath={}", socket.to_str()?);
        let mut words = self.words(&hop);
        words.splice(1..1, ["-o".to_owned(), path]);
        let proxy_command = proxy_command(&words)?;
        // The first value counts.
        words.splice(1..1, ["-N", "-o", "ControlMaster=yes"].map(str::to_owned));
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", KEEPER])
            .arg(directory.path())
            .args(&words);
        keeper.stdin(Stdio::piped());
        keeper.stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in a terminal is for us: agents are asked to end, through this master.
        ew_sys::process::new_process_group(&mut keeper);
        Some(Master {
            keeper: keeper.spawn().ok()?,
            proxy_command,
            socket,
            _directory: directory,
        })
    }

    fn has_own_master(&self, hop: &Hop<'_>) -> bool {
        let mut command = Command::new(self.program);
        if let Some(config) = self.ssh_config {
            command.arg("-F").arg(config);
        }
        let answer = command.args(["-G", "--", &hop.target]);
        let answer = answer.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let Ok(answer) = answer else { return true };
        let answer = String::from_utf8_lossy(&answer.stdout);
        let path = answer
            .lines()
            .find_map(|line| line.strip_prefix("controlpath "));
        path.is_some_and(|path| path != "none")
    }

    /// The client and its arguments, the jump host last. As ssh itself calls one for `ProxyJump`:
    /// with the same configuration, and nothing else of the host's.
    fn words(&self, hop: &Hop<'_>) -> Vec<String> {
        let mut words = vec![self.program.to_string_lossy().into_owned()];
        let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
        if let Some(config) = self.ssh_config {
            add("-F", config.to_string_lossy().into_owned());
        }
        for setting in SETTINGS {
            add("-o", setting.to_owned());
        }
        add("-o", format!("ConnectTimeout={}", self.connect_seconds));
        if let Some(before) = hop.before {
            add("-J", before.to_owned());
        }
        if let Some(port) = hop.port {
            add("-p", port.to_owned());
        }
        add("--", hop.target.clone());
        words
    }
}

impl<'a> Hop<'a> {
    /// Of `[ssh://][user@]host[:port],...`.
    fn parse(way: &'a str) -> Self {
        let (before, last) = match way.rsplit_once(',') {
            Some((before, last)) => (Some(before), last),
            None => (None, way),
        };
        let last = last.trim().trim_start_matches("ssh://");
        let (user, host) = match last.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, last),
        };
        let (host, port) = match host.rsplit_once(':') {
            // Without brackets an IPv6 address has no port.
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
            _ => (host, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            target: user.map_or(host.to_owned(), |user| format!("{user}@{host}")),
            port,
            before,
        }
    }
}

/// For the user's shell, whichever it is, and with ssh's own percent signs doubled. `None`: no
/// quotes hold it.
fn proxy_command(words: &[String]) -> Option<String> {
    let quoted = |word: &String| {
        let is_plain = !word.contains(['\'', '!', '\\', '\n']);
        is_plain.then(|| format!("'{}'", word.replace('%', "%%")))
    };
    let (target, client) = words.split_last()?;
    let (end_of_options, client) = client.split_last()?;
    let client: Option<Vec<String>> = client.iter().map(quoted).collect();
    let (client, target) = (client?.join(" "), quoted(target)?);
    Some(format!("{client} -W '[%h]:%p' {end_of_options} {target}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Write};

    /// Of a client that runs this script; with its directory.
    fn keeper_of(client: &str) -> (Child, PathBuf) {
        let directory = tempfile::tempdir().unwrap().keep();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER]).arg(&directory);
        keeper.args(["sh", "-c", client]).stdin(Stdio::piped());
        keeper.stdout(Stdio::null()).stderr(Stdio::null());
        (keeper.spawn().unwrap(), directory)
    }

    #[test]
    fn a_client_that_ends_leaves_nothing_that_waits_for_our_end() {
        let (mut keeper, directory) = keeper_of("exit 1");
        // Waiting would close it.
        let mut ours = keeper.stdin.take().unwrap();
        keeper.wait().unwrap();
        assert!(!directory.exists());
        // Killed is not gone yet.
        let deadline = Instant::now() + Duration::from_secs(10);
        let error = loop {
            match ours.write_all(b" ") {
                Ok(()) => assert!(Instant::now() < deadline, "somebody still reads"),
                Err(error) => break error,
            }
            std::thread::sleep(POLL_INTERVAL);
        };
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn our_end_ends_the_client_and_removes_its_directory() {
        let (mut keeper, directory) = keeper_of("exec sleep 600");
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
        assert!(!directory.exists());
    }

    #[test]
    fn ways_are_taken_apart_as_ssh_does() {
        let hop = |way| {
            let Hop {
                target,
                port,
                before,
            } = Hop::parse(way);
            (target, port, before)
        };
        assert_eq!(hop("bastion"), ("bastion".into(), None, None));
        assert_eq!(
            hop("a,ops@b:2222"),
            ("ops@b".into(), Some("2222"), Some("a"))
        );
        assert_eq!(
            hop("ssh://ops@[2001:db8::1]:22"),
            ("ops@2001:db8::1".into(), Some("22"), None)
        );
        assert_eq!(hop("2001:db8::1"), ("2001:db8::1".into(), None, None));
    }

    #[test]
    fn the_proxy_command_means_the_same_to_every_shell() {
        let client = HopClient {
            program: Path::new("ssh"),
            ssh_config: Some(Path::new("/etc/10%.conf")),
            connect_seconds: 10,
        };
        let words = client.words(&Hop::parse("a,b:2222"));
        assert_eq!(
            proxy_command(&words).unwrap(),
            "'ssh' '-F' '/etc/10%%.conf' '-o' 'BatchMode=yes' '-o' 'ControlMaster=no' '-o' 'ClearAllForwardings=yes' \
             '-o' 'LogLevel=ERROR' '-o' 'ConnectTimeout=10' '-J' 'a' '-p' '2222' -W '[%h]:%p' -- 'b'"
        );
        assert_eq!(
            proxy_command(&["a'b".into(), "--".into(), "c".into()]),
            None
        );
    }
}
