//! The bootstrap and the link's life, with a stand-in for the ssh client: it runs the command in a
//! shell on this machine. What only a real sshd can show is in `sshd.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that fails panics, and one that is skipped prints why"
)]

mod support;

use ew_fleet::bootstrap::Keeping;
use ew_fleet::{
    Entered, FanOut, LaunchError, Launcher, Link, Local, Neighbour, Payload, Ssh, SshOptions, Step,
    launch_from,
};
use ew_model::Host;
use ew_proto::message::RelayKey;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use support::{
    CLEAN_WITHIN, PATIENCE, SPEAKS, arrived_bytes, converse, entries, eventually, host, installed,
    launch, launch_all, mount_namespace, path_of, payload, processes_of, runs, within,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt};
use tokio::task::JoinSet;

/// What `sh` may be on a host.
const POSIX_SHELLS: [&str; 3] = ["dash", "bash", "busybox"];
/// As ssh does, hands the last argument to the login shell.
const LAST_ARGUMENT: &str = "#!/bin/sh\nfor command; do :; done\n";

#[tokio::test]
async fn every_login_shell_hands_the_script_on() {
    for shell in ["bash", "busybox sh", "tcsh", "fish"] {
        if !installed(shell.split(' ').next().unwrap()) {
            continue;
        }
        let temp_host = TempHost::new(&format!("exec {shell} -c \"$command\""));
        is_served(&temp_host, shell).await;
    }
}

#[tokio::test]
async fn every_posix_shell_runs_the_script() {
    for shell in POSIX_SHELLS {
        if let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\"") {
            is_served(&temp_host, shell).await;
        }
    }
}

async fn is_served(temp_host: &TempHost, shell: &str) {
    let mut link = launch(&temp_host.ssh(payload(SPEAKS)), &host("a"))
        .await
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    converse(&mut link).await;
    assert!(entries(&temp_host.remote()).is_empty(), "{shell}");
    drop(link.writer);
    link.guard.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn noisy_login_scripts_do_no_harm_unless_they_never_end() {
    let temp_host = TempHost::new("echo Welcome; printf 'prompt> '; exec sh -c \"$command\"");
    let mut link = launch(&temp_host.ssh(payload(SPEAKS)), &host("a"))
        .await
        .unwrap();
    converse(&mut link).await;
    let endless = TempHost::new("exec yes 'are you there'");
    let error = failure(&endless, SPEAKS).await;
    assert!(matches!(error, LaunchError::TooNoisy { .. }), "{error}");
    assert!(error.to_string().contains("are you there"), "{error}");
}

#[tokio::test]
async fn a_cut_copy_leaves_nothing() {
    let temp_host = TempHost::new("head -c 1000 | sh -c \"$command\"");
    let error = failure(&temp_host, SPEAKS).await;
    assert!(
        matches!(error, LaunchError::CopyIncomplete { .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains(temp_host.remote().to_str().unwrap())
    );
    eventually("the partial file is gone", || {
        entries(&temp_host.remote()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_copy_that_stalls_removes_itself() {
    for shell in POSIX_SHELLS {
        // The connection stays open and silent, as on a host whose link was cut.
        let stalling = "(head -c 100000; exec sleep 60) | sh -c \"$command\"";
        let Some(temp_host) = TempHost::of(shell, stalling) else {
            continue;
        };
        let (error, ()) = tokio::join!(failure(&temp_host, SPEAKS), is_cleaned(&temp_host));
        assert!(
            matches!(error, LaunchError::CopyStalled { .. }),
            "{shell}: {error}"
        );
        let text = error.to_string();
        assert!(text.starts_with("a: stalled while copying"), "{text}");
        assert!(text.contains("KiB had arrived"), "{text}");
        assert!(text.contains("ping -M do -s 1472 a"), "{text}");
    }
}

#[tokio::test]
async fn a_host_that_falls_silent_in_mid_copy_is_given_up() {
    // Nothing comes back after the greeting; here the far side's processes are killed with the
    // client.
    let silent =
        "(head -c 100000; exec sleep 60) | sh -c \"$command\" | (head -n 1; exec sleep 60)";
    let temp_host = TempHost::new(silent);
    let (error, ()) = tokio::join!(failure(&temp_host, SPEAKS), is_cleaned(&temp_host));
    assert!(matches!(error, LaunchError::CopyStalled { .. }), "{error}");
}

#[tokio::test]
async fn a_copy_that_is_slow_but_moves_lives() {
    let part = "head -c 100000; sleep 2;";
    let temp_host = TempHost::new(&format!(
        "({part} {part} {part} exec cat) | sh -c \"$command\""
    ));
    is_served(&temp_host, "sh").await;
}

/// Such as a busy disk, for which a process that is stopped is the stand-in here.
#[tokio::test]
async fn a_copy_that_its_host_holds_up_is_not_taken_for_cut() {
    let mut served = JoinSet::new();
    for shell in POSIX_SHELLS {
        let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\"") else {
            continue;
        };
        for (tool, seconds) in [("head", 5), ("gzip", 6)] {
            let real = path_of(tool).unwrap();
            let held_up = format!(
                "#!/bin/sh\n(sleep {seconds}; kill -CONT $$) >/dev/null & kill -STOP $$\nexec {} \"$@\"\n",
                real.display()
            );
            let _ = fs::remove_file(temp_host.path("bin").join(tool));
            executable(temp_host.path("bin").join(tool), &held_up);
        }
        served.spawn(async move { is_served(&temp_host, shell).await });
    }
    served.join_all().await;
}

#[tokio::test]
async fn a_copy_that_moves_too_slowly_ends_at_its_limit() {
    let temp_host = TempHost::new("(while head -c 20000; do sleep 1; done) | sh -c \"$command\"");
    let options = SshOptions {
        copy_timeout: Duration::from_secs(2),
        ..temp_host.options()
    };
    let ssh = Ssh::new(payload(SPEAKS), options).unwrap();
    let host = host("a");
    let (error, ()) = tokio::join!(launch(&ssh, &host), is_cleaned(&temp_host));
    let error = error.unwrap_err();
    assert!(
        matches!(
            error,
            LaunchError::TooLate {
                step: Step::Copying { .. },
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("--launch-timeout"), "{error}");
}

#[tokio::test]
async fn a_shell_killed_in_mid_copy_leaves_nothing() {
    for shell in POSIX_SHELLS {
        let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\"") else {
            continue;
        };
        let agent = temp_host
            .ssh(payload(SPEAKS))
            .agent_command(&host("a"))
            .unwrap();
        let mut command = agent.command;
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut client = command.spawn().unwrap();
        let mut input = client.stdin.take().unwrap();
        let payload = payload(SPEAKS);
        input.write_all(&payload.compressed()[..200_000]).unwrap();
        eventually("the copy has begun", || {
            arrived_bytes(&temp_host.remote()) > 0
        })
        .await;
        client.kill().unwrap();
        client.wait().unwrap();
        // Its input is still open: this is not what ends it.
        within(CLEAN_WITHIN, "all is gone", || temp_host.is_clean()).await;
        drop(input);
    }
}

/// Waits until the copy has begun, and then until neither file nor process is left.
async fn is_cleaned(temp_host: &TempHost) {
    eventually("the copy has begun", || {
        arrived_bytes(&temp_host.remote()) > 0
    })
    .await;
    within(CLEAN_WITHIN, "the file is gone", || {
        entries(&temp_host.remote()).is_empty()
    })
    .await;
    eventually("the processes are gone", || temp_host.is_clean()).await;
}

#[tokio::test]
async fn another_machine_is_named_before_anything_is_sent() {
    let temp_host = TempHost::new("PATH=${0%/*}:$PATH; export PATH; exec sh -c \"$command\"");
    let uname = "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo sparc64\n";
    executable(temp_host.path("uname"), uname);
    let mut elf = vec![0; 100_000];
    elf[..4].copy_from_slice(b"\x7fELF");
    elf[18] = 62;
    let error = launch(&temp_host.ssh(Payload::new(elf)), &host("a"))
        .await
        .unwrap_err();
    assert!(matches!(error, LaunchError::Architecture { .. }), "{error}");
    assert!(error.to_string().contains("sparc64") && error.to_string().contains("x86_64"));
    eventually("the directory is gone", || {
        entries(&temp_host.remote()).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_directory_that_others_may_write_in_is_refused_unless_it_is_sticky() {
    for (mode, is_safe) in [
        (0o777, false),
        (0o775, false),
        (0o1777, true),
        (0o755, true),
    ] {
        let temp_host = TempHost::new("exec sh -c \"$command\"");
        fs::set_permissions(temp_host.remote(), fs::Permissions::from_mode(mode)).unwrap();
        if is_safe {
            is_served(&temp_host, "sh").await;
            continue;
        }
        let error = failure(&temp_host, SPEAKS).await;
        assert!(
            matches!(error, LaunchError::UnsafeDirectory { .. }),
            "{mode:o}: {error}"
        );
        assert!(error.to_string().contains("--remote-dir"), "{error}");
        eventually("the directory is gone", || temp_host.is_clean()).await;
    }
}

/// What has the name of ours in the login directory is not ours.
#[tokio::test]
async fn a_failed_launch_removes_nothing_of_the_users() {
    let temp_host = TempHost::new("cd \"$HOME\" && exec sh -c \"$command\"");
    let home = TempDir::new().unwrap();
    let kept = home.path().join("eastwest");
    fs::write(&kept, "mine").unwrap();
    let temp_host = TempHost {
        script: format!(
            "HOME={}; export HOME; {}",
            home.path().display(),
            temp_host.script
        ),
        ..temp_host
    };
    fs::set_permissions(temp_host.remote(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = failure(&temp_host, SPEAKS).await;
    assert!(
        matches!(error, LaunchError::UnsafeDirectory { .. }),
        "{error}"
    );
    eventually("the directory is gone", || temp_host.is_clean()).await;
    assert_eq!(fs::read_to_string(&kept).unwrap(), "mine");
}

#[tokio::test]
async fn unusable_directories_are_named_with_the_remedy() {
    let temp_host = TempHost::new("exec sh -c \"$command\"");
    let missing = temp_host.path("missing");
    let error = in_directory(&temp_host, &missing).await;
    assert!(matches!(error, LaunchError::NoDirectory { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("--remote-dir") && text.contains(missing.to_str().unwrap()),
        "{text}"
    );
}

#[tokio::test]
async fn a_directory_that_runs_no_programs_is_named_with_the_remedy() {
    let Some(unshare) = mount_namespace() else {
        return;
    };
    let mounting = format!(
        "temp_host=${{0%/*}}; export temp_host command; exec {unshare} \
         sh -c 'mount -t tmpfs -o noexec none \"$temp_host/remote\" && exec sh -c \"$command\"'"
    );
    for shell in POSIX_SHELLS {
        let Some(temp_host) = TempHost::of(shell, &mounting) else {
            continue;
        };
        let error = failure(&temp_host, SPEAKS).await;
        assert!(
            matches!(error, LaunchError::NotExecutable { .. }),
            "{shell}: {error}"
        );
        let text = error.to_string();
        assert!(
            text.contains(temp_host.remote().to_str().unwrap()),
            "{text}"
        );
        assert!(text.contains("noexec"), "{text}");
        assert!(text.contains("--remote-dir"), "{text}");
    }
}

#[tokio::test]
async fn refusals_come_in_the_other_sides_words() {
    let denied = "echo 'ops@a: Permission denied (publickey).' >&2; exit 255";
    let error = failure(&TempHost::new(denied), SPEAKS).await;
    assert!(
        matches!(error, LaunchError::Ssh { hint: Some(_), .. }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("a: ops@a: Permission denied (publickey).")
    );
    let nologin = "echo This account is currently not available.; exit 1";
    let error = failure(&TempHost::new(nologin), SPEAKS).await;
    assert!(matches!(error, LaunchError::RemoteShell { .. }), "{error}");
    assert!(error.to_string().contains("not available"), "{error}");
    let options = SshOptions {
        program: "/nonexistent/ssh".into(),
        ..SshOptions::default()
    };
    let ssh = Ssh::new(payload(SPEAKS), options).unwrap();
    let error = launch(&ssh, &host("a")).await.unwrap_err();
    assert!(matches!(error, LaunchError::Spawn { .. }), "{error}");
}

/// What an agent that is kept is started with.
const IS_KEPT: &str = "[ \"$*\" = agent ] || exit 9\necho hello\ncat\nexit 0\n";

#[tokio::test]
async fn a_kept_binary_is_not_sent_again_and_not_trusted_when_changed() {
    for shell in POSIX_SHELLS {
        let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\"") else {
            continue;
        };
        let store = temp_host.remote().join("made/on/demand");
        let old = store.join(format!("eastwest-{}", "0a".repeat(32)));
        let of_user = store.join("eastwest-report.html");
        let kept = payload(IS_KEPT);
        let file = store.join(format!("eastwest-{}", kept.digest()));
        let keeping = |temp_host: &TempHost| {
            let options = SshOptions {
                remote_dir: Some(store.to_str().unwrap().to_owned()),
                keeping: Keeping::Binary,
                ..temp_host.options()
            };
            Ssh::new(kept.clone(), options).unwrap()
        };
        fs::create_dir_all(&store).unwrap();
        fs::write(&old, "old").unwrap();
        fs::write(&of_user, "mine").unwrap();
        is_answered(&keeping(&temp_host), shell).await;
        assert!(file.exists() && !old.exists(), "{shell}");
        assert!(of_user.exists(), "{shell}");
        let left = entries(&store).len();
        assert_eq!(left, 2, "{shell}: only the newest binary stays");
        // Nothing but the ping goes through.
        let narrow = TempHost::of(shell, "head -c 5 | exec sh -c \"$command\"").unwrap();
        is_answered(&keeping(&narrow), shell).await;
        fs::OpenOptions::new()
            .append(true)
            .open(&file)
            .and_then(|mut file| file.write_all(b"echo owned"))
            .unwrap();
        is_answered(&keeping(&temp_host), shell).await;
        let whole = fs::metadata(&file).unwrap().len();
        assert_eq!(whole, kept.program_bytes() as u64, "{shell}");
    }
}

#[tokio::test]
async fn a_host_without_gzip_gets_the_binary_as_it_is() {
    if !installed("busybox") {
        return;
    }
    let temp_host = TempHost::of("busybox", "PATH=${0%/*}/bin; exec sh -c \"$command\"").unwrap();
    fs::remove_file(temp_host.path("bin/gzip")).unwrap();
    let cat = path_of("cat").unwrap();
    symlink(cat, temp_host.path("bin/cat")).unwrap();
    is_served(&temp_host, "busybox").await;
}

async fn is_answered(ssh: &Ssh, shell: &str) {
    let mut link = launch(ssh, &host("a"))
        .await
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    converse(&mut link).await;
    drop(link.writer);
    link.guard.finish(PATIENCE).await.unwrap();
}

#[tokio::test]
async fn silence_ends_at_the_deadline_with_all_processes() {
    let temp_host = TempHost::new("echo $$ > \"${0%/*}/pid\"; echo one moment >&2; sleep 600; :");
    let ssh = temp_host.ssh(payload(SPEAKS));
    let deadline = Duration::from_millis(500);
    let launched = launch_from(&ssh, &host("a"), deadline, None).await;
    let error = launched.unwrap_err();
    assert!(matches!(error, LaunchError::TooLate { .. }), "{error}");
    assert!(error.to_string().contains("while connecting"), "{error}");
    if temp_host.path("pid").exists() {
        let pid = support::written_pid(&temp_host.path("pid")).await;
        eventually("the client is gone", || !runs(pid)).await;
    }
}

/// Without `head`, nothing can be received from the launcher.
#[tokio::test]
async fn a_neighbour_hands_the_program_on_to_every_tool() {
    for tool in ["curl", "wget", "bash"] {
        if !installed(tool) {
            println!("skipped: no {tool} here");
            continue;
        }
        let temp_host = TempHost::with_tools(&[&SCRIPT_TOOLS[..], &["cat", tool]].concat());
        let payload = payload(SPEAKS);
        let neighbour = Neighbourhood::serve(payload.program().to_vec());
        let ssh = temp_host.ssh(payload);
        let launched = launch_from(&ssh, &host("a"), PATIENCE, Some(&neighbour)).await;
        let mut link = launched.unwrap_or_else(|error| panic!("{tool}: {error}"));
        converse(&mut link).await;
        assert!(entries(&temp_host.remote()).is_empty(), "{tool}");
    }
}

#[tokio::test]
async fn the_launcher_copies_what_a_neighbour_does_not_have() {
    let closed = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let closed = neighbour_at(closed.local_addr().unwrap());
    let other = Neighbourhood::serve(b"another program".to_vec());
    for neighbour in [closed, other] {
        let temp_host = TempHost::new("exec sh -c \"$command\"");
        let ssh = temp_host.ssh(payload(SPEAKS));
        let launched = launch_from(&ssh, &host("a"), PATIENCE, Some(&neighbour)).await;
        converse(&mut launched.unwrap()).await;
        assert!(entries(&temp_host.remote()).is_empty());
    }
}

#[tokio::test]
async fn a_neighbour_that_sends_without_end_fills_no_disk() {
    for shell in POSIX_SHELLS {
        let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\"") else {
            continue;
        };
        // More than a connection holds that nobody reads.
        let (neighbour, is_sent) = Neighbourhood::serve_once(vec![b'x'; 64 << 20]);
        let ssh = temp_host.ssh(payload(SPEAKS));
        let launched = launch_from(&ssh, &host("a"), PATIENCE, Some(&neighbour)).await;
        converse(&mut launched.unwrap()).await;
        assert!(entries(&temp_host.remote()).is_empty(), "{shell}");
        assert!(!is_sent.join().unwrap(), "{shell}: taken whole");
    }
}

/// Programs that the script runs, without those that receive the binary.
const SCRIPT_TOOLS: [&str; 14] = [
    "sh",
    "chmod",
    "gzip",
    "id",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "rm",
    "rmdir",
    "sha256sum",
    "sleep",
    "uname",
    "wc",
];

fn neighbour_at(address: SocketAddr) -> Neighbour {
    Neighbour {
        address,
        key: RelayKey([0x1f; 16]),
    }
}

/// Agents that hand a program on.
struct Neighbourhood;

impl Neighbourhood {
    /// As an engine does, until the test ends.
    fn serve(program: Vec<u8>) -> Neighbour {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let neighbour = neighbour_at(listener.local_addr().unwrap());
        let asked = format!("GET /{}", neighbour.key);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                let request = Self::read_request(&connection);
                assert!(request[0].starts_with(&asked), "{request:?}");
                let head = "HTTP/1.0 200 OK\r\n\r\n";
                let head = if request.len() > 1 { head } else { "" };
                (&connection).write_all(head.as_bytes()).unwrap();
                (&connection).write_all(&program).unwrap();
            }
        });
        neighbour
    }

    /// Whether one who asks takes all of it.
    fn serve_once(program: Vec<u8>) -> (Neighbour, JoinHandle<bool>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let neighbour = neighbour_at(listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            Self::read_request(&connection);
            let answer = [b"HTTP/1.0 200 OK\r\n\r\n", &program[..]].concat();
            connection.write_all(&answer).is_ok()
        });
        (neighbour, serving)
    }

    /// Its lines; only the first of one that has no version.
    fn read_request(connection: &TcpStream) -> Vec<String> {
        let mut lines = BufReader::new(connection).lines().map(Result::unwrap);
        let first = lines.next().unwrap();
        let rest = lines.take_while(|line| !line.is_empty());
        match first.contains(" HTTP/") {
            true => std::iter::once(first).chain(rest).collect(),
            false => vec![first],
        }
    }
}

#[tokio::test]
async fn an_agent_that_fails_is_explained_and_its_file_removed() {
    let temp_host = TempHost::new("exec sh -c \"$command\"");
    let script = "echo hello; echo 'out of memory' >&2; exit 3";
    let mut link = launch(&temp_host.ssh(payload(script)), &host("a"))
        .await
        .unwrap();
    let mut line = String::new();
    link.reader.read_line(&mut line).await.unwrap();
    eventually("its last words have come", || {
        link.guard.stderr_tail() == "out of memory\n"
    })
    .await;
    let unclean = link.guard.finish(PATIENCE).await.unwrap_err().to_string();
    assert!(
        unclean.contains("status 3") && unclean.contains("out of memory"),
        "{unclean}"
    );
    assert!(entries(&temp_host.remote()).is_empty());
}

#[tokio::test]
async fn an_agent_that_does_not_end_is_killed_and_reported() {
    let (link, pid) = that_does_not_end().await;
    drop(link.writer);
    let unclean = link
        .guard
        .finish(Duration::from_millis(200))
        .await
        .unwrap_err();
    assert!(
        unclean.to_string().contains("did not end within 0.2 s"),
        "{unclean}"
    );
    eventually("the agent is gone", || !runs(pid)).await;
}

#[tokio::test]
async fn a_dropped_link_leaves_no_process() {
    let (link, pid) = that_does_not_end().await;
    drop(link);
    eventually("the agent is gone", || !runs(pid)).await;
}

/// An agent with its process.
async fn that_does_not_end() -> (Link, u32) {
    let temp_host = TempHost::new("exec sh -c \"$command\"");
    let script = "own=$(pwd -P); rm \"$0\"; cd /; rmdir \"$own\"; echo $$; exec sleep 600";
    let mut link = launch(&temp_host.ssh(payload(script)), &host("a"))
        .await
        .unwrap();
    let mut line = String::new();
    link.reader.read_line(&mut line).await.unwrap();
    let pid: u32 = line.trim().parse().unwrap();
    assert!(runs(pid));
    (link, pid)
}

#[tokio::test]
async fn many_hosts_are_launched_and_each_is_answered_for() {
    let temp_host = TempHost::new("case $* in *host3*) exit 255;; esac; exec sh -c \"$command\"");
    let hosts: Vec<_> = (0..6).map(|i| host(&format!("host{i}"))).collect();
    let ssh = Arc::new(temp_host.ssh(payload(SPEAKS)));
    let launched = launch_all(ssh, &hosts).await;
    let failed: Vec<usize> = (0..6).filter(|index| launched[*index].is_err()).collect();
    assert_eq!(failed, [3]);
}

#[tokio::test]
async fn few_wait_at_a_jump_host_to_log_in_by_whatever_way_they_go_through_it() {
    // Hosts with an even number are behind a second jump host. None of them logs in.
    let temp_host = TempHost::new(
        "log=${0%/*}/log
         case $1 in -G) case $* in *[02468]) echo 'proxyjump ops@a,b';; *) echo 'proxyjump A:22';; esac; exit 0;; esac
         echo + >>\"$log\"; sleep 1; echo - >>\"$log\"; exit 255",
    );
    let hosts: Vec<_> = (0..30).map(|i| host(&format!("host{i}"))).collect();
    let options = SshOptions {
        fan_out: FanOut::fixed(hosts.len()),
        ..temp_host.options()
    };
    let ssh = Ssh::new(payload(SPEAKS), options).unwrap();
    let ssh = Arc::new(ssh.with_ways_to(&hosts));
    let launched = launch_all(ssh, &hosts).await;
    assert!(launched.iter().all(Result::is_err));
    let log = fs::read_to_string(temp_host.path("log")).unwrap();
    let waiting = log.lines().scan(0, |waiting, line| {
        *waiting += if line == "+" { 1 } else { -1 };
        Some(*waiting)
    });
    assert_eq!(waiting.max(), Some(8), "as many as may, and no more");
}

#[tokio::test]
async fn copies_that_are_over_at_once_hang_in_no_shell() {
    for shell in POSIX_SHELLS {
        // What watches the copy is ended before it has well begun.
        let Some(temp_host) = TempHost::of(shell, "exec sh -c \"$command\" < /dev/null") else {
            continue;
        };
        let hosts = vec![host("a"); 128];
        let ssh = Arc::new(temp_host.ssh(payload(SPEAKS)));
        for launched in launch_all(ssh, &hosts).await {
            let error = launched.unwrap_err();
            assert!(
                matches!(error, LaunchError::CopyIncomplete { .. }),
                "{shell}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn local_agents_start_where_the_closure_puts_them() {
    let temp_host = TempHost::new("");
    let script = "#!/bin/sh\n[ \"$1\" = agent ] && echo \"hello\"; echo \"$PLACE\"; cat\n";
    let binary = executable(temp_host.path("agent"), script);
    let lab = Entered::new(
        "lab",
        Local { binary },
        |host: &Host, command: &mut Command| {
            if host.name == "b" {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            command.env("PLACE", &host.name);
            Ok(())
        },
    );
    let mut link = launch(&lab, &host("a")).await.unwrap();
    drop(link.writer);
    let mut said = String::new();
    link.reader.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "hello\na\n");
    link.guard.finish(PATIENCE).await.unwrap();
    let error = launch(&lab, &host("b")).await.unwrap_err();
    assert!(matches!(error, LaunchError::Enter { .. }), "{error}");
}

/// A directory with a stand-in for ssh, and one that is the remote temporary directory.
struct TempHost {
    directory: TempDir,
    script: String,
}

impl TempHost {
    fn new(script: &str) -> Self {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("remote")).unwrap();
        let script = script.to_owned();
        Self { directory, script }
    }

    /// Where `sh` and the tools of the script are those of one system; `None`, with the reason
    /// printed, where it is not installed.
    fn of(shell: &str, script: &str) -> Option<Self> {
        if !installed(shell) {
            return None;
        }
        let temp_host = Self::new(&format!("PATH=${{0%/*}}/bin:$PATH; export PATH; {script}"));
        let tools = match shell {
            "busybox" => [&SCRIPT_TOOLS[..], &["head"]].concat(),
            _ => vec!["sh"],
        };
        fs::create_dir(temp_host.path("bin")).unwrap();
        let program = path_of(shell).unwrap();
        for tool in tools {
            symlink(&program, temp_host.path("bin").join(tool)).unwrap();
        }
        Some(temp_host)
    }

    /// Where nothing else is installed.
    fn with_tools(tools: &[&str]) -> Self {
        let temp_host = Self::new("PATH=${0%/*}/bin; export PATH; exec sh -c \"$command\"");
        fs::create_dir(temp_host.path("bin")).unwrap();
        for tool in tools {
            symlink(path_of(tool).unwrap(), temp_host.path("bin").join(tool)).unwrap();
        }
        temp_host
    }

    fn is_clean(&self) -> bool {
        entries(&self.remote()).is_empty() && processes_of(&self.remote()).is_empty()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn remote(&self) -> PathBuf {
        self.path("remote")
    }

    fn options(&self) -> SshOptions {
        let text = format!("{LAST_ARGUMENT}{}\n", self.script);
        SshOptions {
            program: executable(self.path("ssh"), &text),
            remote_dir: Some(self.remote().to_str().unwrap().to_owned()),
            ..SshOptions::default()
        }
    }

    fn ssh(&self, payload: Payload) -> Ssh {
        Ssh::new(payload, self.options()).unwrap()
    }
}

async fn failure(temp_host: &TempHost, script: &str) -> LaunchError {
    launch(&temp_host.ssh(payload(script)), &host("a"))
        .await
        .unwrap_err()
}

async fn in_directory(temp_host: &TempHost, directory: &Path) -> LaunchError {
    let options = SshOptions {
        remote_dir: Some(directory.to_str().unwrap().to_owned()),
        ..temp_host.options()
    };
    let ssh = Ssh::new(payload(SPEAKS), options).unwrap();
    launch(&ssh, &host("a")).await.unwrap_err()
}

/// A script that can be started. cp writes it: while we had it open for writing, a process that
/// another thread forks at that moment would keep it open, and the kernel refuses to start a file
/// that is open for writing.
fn executable(path: PathBuf, text: &str) -> PathBuf {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).unwrap();
    let copied = Command::new("cp").arg(&draft).arg(&path).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
