//! What the tests of the ssh launcher share: payloads, hosts, and looking whether all is clean.

use ew_fleet::{Link, Payload};
use ew_model::Host;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

/// Longer than anything may take; nothing is measured against it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Removes itself as the agent does, says hello, and repeats what it hears until its input ends.
pub(crate) const SPEAKS: &str = r#"[ "$*" = "agent --remove-self" ] || exit 9
rm "$0"; rmdir "${0%/*}"
echo hello
cat
exit 0
"#;

/// A script in place of the binary, padded so that it does not fit any pipe's buffer.
pub(crate) fn payload(script: &str) -> Payload {
    let padding = "x".repeat(500_000);
    Payload::new(format!("#!/bin/sh\n{script}\n#{padding}\n").into_bytes())
}

pub(crate) fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        address: None,
        rack: None,
    }
}

/// Hears the hello and one echo.
pub(crate) async fn converse(link: &mut Link) {
    let mut line = String::new();
    link.reader.read_line(&mut line).await.unwrap();
    if line.is_empty() {
        panic!("no hello: {}", link.guard.explain().await);
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
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
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
