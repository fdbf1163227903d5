//! The agent in eastwest's place in an image: what a pod runs besides the agent.

#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn agent(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eastwest-agent"));
    command.args(words);
    command
}

/// It sleeps nowhere but where it waits for signals; a signal before that would end it in another
/// way. The kernel shows signals that are waited for as not blocked.
fn sleeps(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit_once(") ").unwrap().1.starts_with('S')
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_pod_is_held_until_it_is_ordered_to_end() {
    let mut held = agent(&["kubernetes", "hold", "--seconds", "600"])
        .spawn()
        .unwrap();
    let mut times_asleep = 0;
    wait_until("sleep", || {
        times_asleep = if sleeps(&held) { times_asleep + 1 } else { 0 };
        times_asleep == 5
    });
    assert!(held.try_wait().unwrap().is_none());
    let pid = held.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    let mut status = None;
    wait_until("the end", || {
        status = held.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success(), "{status:?}");
}

#[test]
fn a_pod_is_held_no_longer_than_it_may() {
    let ended = agent(&["kubernetes", "hold", "--seconds", "0"]).status();
    assert!(ended.unwrap().success());
}

#[test]
fn the_routes_are_the_kernels() {
    let printed = agent(&["kubernetes", "routes"])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(printed.status.success());
    assert_eq!(printed.stdout, std::fs::read("/proc/net/route").unwrap());
}

#[test]
fn an_agent_that_waits_for_its_secret_has_removed_its_file() {
    let copy = std::env::temp_dir().join(format!("eastwest.test-{}", std::process::id()));
    // While we had it open for writing, nobody could start it.
    let copied = Command::new("cp")
        .args([Path::new(env!("CARGO_BIN_EXE_eastwest-agent")), &copy])
        .status();
    assert!(copied.unwrap().success());
    let mut waiting = Command::new(&copy)
        .args(["agent", "--remove-self", "--dial-back", "9"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("removal", || !copy.exists());
    assert!(waiting.try_wait().unwrap().is_none());
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
