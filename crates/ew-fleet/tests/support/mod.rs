//! What the tests of the ssh launcher share: payloads, hosts, and checks that all is clean.

use ew_fleet::{LaunchError, LaunchSlots, Launcher, Link, Payload, launch_from};
use ew_model::Host;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

/// Longer than anything may take; nothing is measured against it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// From a cut to a clean host.
pub(crate) const CLEAN_WITHIN: Duration = Duration::from_secs(6);

/// Removes itself as the agent does, sends hello, and repeats what it hears until its input ends.
pub(crate) const SPEAKS: &str = r#"[ "$*" = "agent --remove-self" ] || exit 9
own=$(pwd -P); rm "$0"; cd /; rmdir "$own"
echo hello
cat
exit 0
"#;

/// A script in place of the binary, padded so that it does not fit any pipe's buffer, also
/// compressed. Like the binary it can be tried without harm.
pub(crate) fn payload(script: &str) -> Payload {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
    let mut state = 1_u64;
    let padding: String = (0..750_000)
        .map(|_| {
            // Knuth's MMIX generator.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(LETTERS[(state >> 58) as usize])
        })
        .collect();
    Payload::new(
        format!("#!/bin/sh\n[ \"$1\" = agent ] || exit 0\n{script}\n#{padding}\n").into_bytes(),
    )
}

pub(crate) fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        address: None,
        rack: None,
    }
}

/// Without a neighbour.
pub(crate) async fn launch(launcher: &dyn Launcher, host: &Host) -> Result<Link, LaunchError> {
    launch_from(launcher, host, PATIENCE, None).await
}

/// As many at once as the launcher allows; in the hosts' order.
pub(crate) async fn launch_all(
    launcher: Arc<dyn Launcher>,
    hosts: &[Host],
) -> Vec<Result<Link, LaunchError>> {
    let slots = Arc::new(LaunchSlots::new(launcher.fan_out()));
    let mut tasks = JoinSet::new();
    for (index, host) in hosts.iter().cloned().enumerate() {
        let (launcher, slots) = (Arc::clone(&launcher), Arc::clone(&slots));
        tasks.spawn(async move {
            let _slot = slots.take().await.unwrap();
            let began = tokio::time::Instant::now();
            let launched = launch(launcher.as_ref(), &host).await;
            if launched.is_ok() {
                slots.launched_after(began.elapsed());
            }
            (index, launched)
        });
    }
    let mut all = tasks.join_all().await;
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, launched)| launched).collect()
}

/// Hears the hello and one echo.
pub(crate) async fn converse(link: &mut Link) {
    let mut line = String::new();
    link.reader.read_line(&mut line).await.unwrap();
    if line.is_empty() {
        panic!("no hello: {}", link.guard.stderr_tail());
    }
    assert_eq!(line, "hello\n");
    link.writer.write_all(b"ping\n").await.unwrap();
    line.clear();
    link.reader.read_line(&mut line).await.unwrap();
    assert_eq!(line, "ping\n");
}

pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// Waits until a condition holds; fails when it does not within `PATIENCE`.
pub(crate) async fn eventually(what: &str, holds: impl FnMut() -> bool) {
    within(PATIENCE, what, holds).await;
}

/// Waits until a condition holds; fails when it does not within `limit`.
pub(crate) async fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < limit, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether a process runs (a zombie does not).
pub(crate) fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").starts_with(" Z"))
}

/// The pid a script wrote into a file, once it has.
pub(crate) async fn written_pid(path: &Path) -> u32 {
    let read = || fs::read_to_string(path).ok()?.trim().parse().ok();
    eventually("a pid is written", || read().is_some()).await;
    read().unwrap()
}

/// How much of the binary is in the remote directory.
pub(crate) fn arrived_bytes(remote: &Path) -> u64 {
    let size =
        |directory: &PathBuf| fs::metadata(directory.join("eastwest.gz")).map_or(0, |m| m.len());
    entries(remote).iter().map(size).sum()
}

/// The processes that name a directory in their command line or hold a file in it open, also a
/// removed one.
pub(crate) fn processes_of(remote: &Path) -> Vec<u32> {
    let pids = entries(Path::new("/proc"))
        .into_iter()
        .filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    pids.filter(|pid| belongs_to(*pid, remote)).collect()
}

fn belongs_to(pid: u32, remote: &Path) -> bool {
    let remote = remote.to_str().unwrap();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut open_files = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    String::from_utf8_lossy(&line).contains(remote)
        || open_files.any(|file| file.to_string_lossy().starts_with(remote))
}

/// Whether a program is installed; where scripts/setup.sh has run it must be.
pub(crate) fn installed(program: &str) -> bool {
    let found = path_of(program).is_some();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "CI must have {program}");
        println!("skipped: no {program} here");
    }
    found
}

/// Where a program is; sbin is not on every user's path.
pub(crate) fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// How a mount namespace of one's own is entered here: as root, or through a user namespace.
/// `None`, with the reason printed, where neither works.
pub(crate) fn mount_namespace() -> Option<&'static str> {
    let works = |command: &&str| {
        let mut words = command.split(' ');
        let mut command = Command::new(words.next()?);
        let done = command
            .args(words)
            .arg("true")
            .stderr(Stdio::null())
            .status();
        done.ok().filter(ExitStatus::success)
    };
    let mut ways = ["unshare --mount", "unshare --mount --map-root-user"].into_iter();
    let way = ways.find(|way| works(way).is_some());
    if way.is_none() {
        assert!(std::env::var_os("CI").is_none(), "CI must allow mounts");
        println!("skipped: no mount namespace of one's own is allowed here");
    }
    way
}
