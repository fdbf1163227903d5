//! Running a tool's process to its end, which comes in any case.

use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use ew_sys::process::{Signal, die_with_parent, kill_group, new_process_group};
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bound on what is kept of a tool's output.
const MAX_OUTPUT_BYTES: u64 = 32 * 1024 * 1024;
/// How often a wait checks whether the process has ended or shall end.
const POLL_NS: u64 = 20_000_000;
const READER_STACK_BYTES: usize = 128 * 1024;

/// Raised by the agent when the round shall end now.
pub(crate) type Cancel = Arc<AtomicBool>;

/// A process that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) end: End,
    /// When it was started, CLOCK_MONOTONIC.
    pub(crate) started_ns: u64,
}

/// Why it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// Killed at its deadline.
    TimedOut,
    /// Killed because the round was aborted.
    Cancelled,
    /// Killed because it was no longer needed.
    Dismissed,
}

/// Kills the process with its group and reaps it when dropped, so that no path leaks it.
struct Reaped(Child);

/// Runs the program of a command and then waits for the end of its input, upon which it kills its
/// whole group, itself included. A program that goes into the background or has children leaves
/// nothing behind so, however we end: input ends with the process that holds it.
const KEEPER: &str = r#""$@" </dev/null & read -r _; kill -KILL 0"#;

/// Starts the command and waits for its end, killing it at the deadline or when cancelled. The
/// process also dies with the calling thread.
///
/// # Errors
/// The system's, when the process or a thread to read from it cannot be started.
pub(crate) fn run_to_end(
    mut command: Command,
    deadline_ns: u64,
    cancel: &Cancel,
) -> io::Result<Finished> {
    command.stdin(Stdio::null());
    die_with_parent(&mut command);
    watch(command, deadline_ns, cancel, &mut || false)
}

/// The same, until it is needed no more.
///
/// # Errors
/// As [`run_to_end`].
pub(crate) fn run_until(
    mut command: Command,
    deadline_ns: u64,
    cancel: &Cancel,
    is_needless: &mut dyn FnMut() -> bool,
) -> io::Result<Finished> {
    command.stdin(Stdio::null());
    die_with_parent(&mut command);
    watch(command, deadline_ns, cancel, is_needless)
}

/// The same for a program that goes into the background or has children. It never ends by itself.
///
/// # Errors
/// As [`run_to_end`].
pub(crate) fn run_kept_until(
    command: &Command,
    deadline_ns: u64,
    cancel: &Cancel,
    is_needless: &mut dyn FnMut() -> bool,
) -> io::Result<Finished> {
    let mut keeper = Command::new("/bin/sh");
    keeper.args(["-c", KEEPER, "keeper"]);
    keeper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        keeper.env(name, value.unwrap_or_default());
    }
    keeper.stdin(Stdio::piped());
    watch(keeper, deadline_ns, cancel, is_needless)
}

fn watch(
    mut command: Command,
    deadline_ns: u64,
    cancel: &Cancel,
    is_needless: &mut dyn FnMut() -> bool,
) -> io::Result<Finished> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    new_process_group(&mut command);
    let mut child = Reaped(command.spawn()?);
    let started_ns = monotonic_ns();
    // Held until it is over: its end ends a keeper.
    let input = child.0.stdin.take();
    let stdout = collect(child.0.stdout.take())?;
    let stderr = collect(child.0.stderr.take())?;
    let end = wait(&mut child.0, deadline_ns, cancel, is_needless)?;
    drop(child);
    drop(input);
    Ok(Finished {
        stdout: text_of(stdout),
        stderr: text_of(stderr),
        end,
        started_ns,
    })
}

fn wait(
    child: &mut Child,
    deadline_ns: u64,
    cancel: &Cancel,
    is_needless: &mut dyn FnMut() -> bool,
) -> io::Result<End> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        if cancel.load(Ordering::Acquire) {
            return Ok(End::Cancelled);
        }
        let now_ns = monotonic_ns();
        if now_ns >= deadline_ns {
            return Ok(End::TimedOut);
        }
        if is_needless() {
            return Ok(End::Dismissed);
        }
        sleep_until_ns(deadline_ns.min(now_ns + POLL_NS));
    }
}

/// Reads in a thread of its own, so that a full pipe never blocks the process.
fn collect(pipe: Option<impl Read + Send + 'static>) -> io::Result<JoinHandle<Vec<u8>>> {
    std::thread::Builder::new()
        .name("tool-output".to_owned())
        .stack_size(READER_STACK_BYTES)
        .spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut pipe) = pipe {
                // What was read before an error is kept; what is beyond the bound is thrown away.
                let _ = pipe.by_ref().take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
                let _ = io::copy(&mut pipe, &mut io::sink());
            }
            bytes
        })
}

/// The pipe has ended with the process.
fn text_of(reader: JoinHandle<Vec<u8>>) -> String {
    let bytes = reader.join().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // All fail only when it is over. The group goes first: a child that is reaped may have left
        // children.
        let _ = kill_group(self.0.id(), Signal::Kill);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_of_both_kinds_is_kept() {
        let far_ns = monotonic_ns() + 60_000_000_000;
        let finished = run_to_end(
            shell("echo out; echo err >&2; exit 3"),
            far_ns,
            &Cancel::default(),
        )
        .unwrap();
        assert_eq!(finished.stdout, "out\n");
        assert_eq!(finished.stderr, "err\n");
        assert!(matches!(finished.end, End::Exited(status) if status.code() == Some(3)));
    }

    #[test]
    fn more_output_than_a_pipe_holds_does_not_block() {
        let far_ns = monotonic_ns() + 60_000_000_000;
        let command = shell("head -c 300000 /dev/zero | tr '\\0' x");
        let finished = run_to_end(command, far_ns, &Cancel::default()).unwrap();
        assert_eq!(finished.stdout.len(), 300_000);
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let soon_ns = monotonic_ns() + 50_000_000;
        let finished = run_to_end(shell("exec sleep 1000"), soon_ns, &Cancel::default()).unwrap();
        assert_eq!(finished.end, End::TimedOut);
    }

    #[test]
    fn what_went_into_the_background_ends_with_its_keeper() {
        let far_ns = monotonic_ns() + 60_000_000_000;
        let marker = format!("1000.{}", std::process::id());
        let command = shell(&format!("sleep {marker} & exit 0"));
        let is_running = || {
            let ps = std::process::Command::new("ps")
                .args(["-eo", "args"])
                .output()
                .unwrap();
            String::from_utf8_lossy(&ps.stdout).contains(&format!("sleep {marker}"))
        };
        let mut seen = false;
        let finished = run_kept_until(&command, far_ns, &Cancel::default(), &mut || {
            seen = is_running();
            seen
        });
        assert_eq!(finished.unwrap().end, End::Dismissed);
        assert!(seen && !is_running());
    }

    #[test]
    fn a_cancelled_process_is_ended() {
        let far_ns = monotonic_ns() + 60_000_000_000;
        let cancel = Arc::new(AtomicBool::new(true));
        let finished = run_to_end(shell("exec sleep 1000"), far_ns, &cancel).unwrap();
        assert_eq!(finished.end, End::Cancelled);
    }
}
