//! Shell commands as root on one host: what installs packages.

use crate::error::LaunchError;
use crate::launcher::Launcher;
use crate::tail::Tail;
use ew_model::Host;
use ew_sys::process::{Signal, die_with_parent, kill_group, new_process_group};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Why commands did not do their work.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// There is no process to run them.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// sudo would have asked for a password, or does not know the user.
    #[error(
        "sudo refuses ({words}); allow it without a password there (NOPASSWD), log in as root with --ssh-user root, or run the commands by hand"
    )]
    SudoRefuses {
        /// In sudo's own words.
        words: String,
    },
    /// One of them failed, and those behind it were not run.
    #[error("a command failed ({status}): {words}")]
    Failed {
        /// The shell's.
        status: ExitStatus,
        /// The last message.
        words: String,
    },
    /// They took too long.
    #[error("not done within {}: {words}", ew_model::units::format_duration_ns(limit.as_nanos() as u64))]
    TooLong {
        /// How long they had.
        limit: Duration,
        /// The last message.
        words: String,
    },
    /// The process could not be run.
    #[error("the shell could not be run: {0}")]
    System(#[from] std::io::Error),
}

/// Runs commands as root on a host, one after the other, and stops at the first that fails. On this
/// side nothing outlives the returned future; on the far side a package manager that was begun goes
/// on to its end.
///
/// # Errors
/// [`RootError`], in words for the user.
pub async fn run_as_root(
    launcher: &dyn Launcher,
    host: &Host,
    commands: &[String],
    limit: Duration,
) -> Result<(), RootError> {
    let mut shell = launcher.root_shell(host)?;
    shell
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    new_process_group(&mut shell);
    // Last, because entering a user namespace would make the kernel forget it.
    die_with_parent(&mut shell);
    let mut child = Command::from(shell).kill_on_drop(true).spawn()?;
    let _group = Group(child.id());
    let said = Tail::default();
    let script = script(commands);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let hand_over = async {
        if let Some(mut stdin) = stdin {
            // A shell that did not start reports why on its standard error.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
    };
    let listen = async {
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            tokio::join!(said.clone().drain(stdout), said.clone().drain(stderr));
        }
    };
    let work = async { tokio::join!(hand_over, listen, child.wait()).2 };
    let Ok(status) = tokio::time::timeout(limit, work).await else {
        let words = said.words();
        return Err(RootError::TooLong { limit, words });
    };
    judge(status?, said.words())
}

/// The whole is read before any of it runs, and no command reads what is left of it.
fn script(commands: &[String]) -> String {
    format!("set -e\n{{\n{}\n}} </dev/null\n", commands.join("\n"))
}

/// Ends the shell and what it started when the work is given up.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // Fails only when nothing is left of it.
            let _ = kill_group(pid, Signal::Kill);
        }
    }
}

fn judge(status: ExitStatus, words: String) -> Result<(), RootError> {
    if status.success() {
        Ok(())
    } else if words.contains("sudo:") {
        Err(RootError::SudoRefuses { words })
    } else {
        Err(RootError::Failed { status, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launcher::AgentCommand;
    use crate::slots::FanOut;
    use std::process::Command as Process;

    /// A host whose root shell is this user's own.
    struct Here;

    impl Launcher for Here {
        fn name(&self) -> &'static str {
            "here"
        }

        fn fan_out(&self) -> FanOut {
            FanOut::fixed(1)
        }

        fn agent_command(&self, _: &Host) -> Result<AgentCommand, LaunchError> {
            unreachable!("no agent is asked for")
        }

        fn root_shell(&self, _: &Host) -> Result<Process, LaunchError> {
            let mut shell = Process::new("sh");
            shell.arg("-s");
            Ok(shell)
        }
    }

    fn run(commands: &[&str], limit: Duration) -> Result<(), RootError> {
        let commands: Vec<String> = commands.iter().map(|c| (*c).to_owned()).collect();
        let host = Host {
            name: "here".into(),
            address: None,
            rack: None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(run_as_root(&Here, &host, &commands, limit))
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_failure_ends_it_in_its_own_words() {
        assert!(run(&["cat", "exit 0"], LONG).is_ok());
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("trace");
        let after = format!("echo late >{}", trace.display());
        let error = run(&["echo E: no such package >&2; false", &after], LONG).unwrap_err();
        assert!(error.to_string().contains("E: no such package"), "{error}");
        assert!(!trace.exists());
    }

    #[test]
    fn sudo_that_asks_is_told_with_the_remedy() {
        let refusal = "echo 'sudo: a password is required' >&2; exit 1";
        let error = run(&[refusal], LONG).unwrap_err().to_string();
        assert!(error.contains("NOPASSWD") && error.contains("a password is required"));
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let error = run(&["echo waiting; sleep 1000"], Duration::from_millis(500)).unwrap_err();
        assert!(matches!(error, RootError::TooLong { .. }), "{error}");
    }
}
