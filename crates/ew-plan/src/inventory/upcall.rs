//! Group sources that are asked through shell commands, as `groups.conf` allows: bounded in time
//! and output.

use super::group_files::substitute;
use super::groups_error::LookupError;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a command may take: batch systems can be slow, but somebody is waiting.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const MAX_OUTPUT_BYTES: u64 = 16 << 20;
const MAX_ERROR_BYTES: u64 = 4096;

/// Why a command has printed nothing that can be used.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    /// There is no shell, or no process left.
    #[error("sh cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It ended with an error and no words.
    #[error("its command failed")]
    Failed,
    /// It ended with an error.
    #[error("its command failed: {words}")]
    FailedWith {
        /// Its own.
        words: String,
    },
    /// What it printed is lost.
    #[error("its output cannot be read: {0}")]
    Output(#[source] io::Error),
    /// It printed more than any group is.
    #[error("its command printed {} MiB or more", MAX_OUTPUT_BYTES >> 20)]
    TooMuch,
    /// Its end cannot be waited for.
    #[error(transparent)]
    Wait(io::Error),
    /// It did not end.
    #[error("its command took longer than {} s and was ended", limit.as_secs())]
    TooLong {
        /// What it was given.
        limit: Duration,
    },
}

/// The commands of one group source.
#[derive(Debug)]
pub(super) struct Upcalls {
    pub(super) source: String,
    /// Prints the nodes of `$GROUP`.
    pub(super) map: String,
    /// Prints all nodes.
    pub(super) all: Option<String>,
    /// Prints all groups.
    pub(super) list: Option<String>,
    /// `$CFGDIR`, where the commands run.
    pub(super) directory: PathBuf,
}

impl Upcalls {
    pub(super) fn map(&self, group: &str) -> Result<String, LookupError> {
        let harmless = |c: char| c.is_ascii_alphanumeric() || "_-.+=/:".contains(c);
        if group.starts_with('-') || !group.chars().all(harmless) {
            return Err(LookupError {
                problem: format!("group name `{group}` would be put into a shell command"),
                remedy: format!(
                    "group names for the source `{}` may contain letters, digits and _-.+=/:",
                    self.source
                ),
            });
        }
        self.run(&self.map, Some(group))
    }

    pub(super) fn all(&self) -> Result<Option<String>, LookupError> {
        self.all
            .as_deref()
            .map(|command| self.run(command, None))
            .transpose()
    }

    pub(super) fn list(&self) -> Result<Option<Vec<String>>, LookupError> {
        let output = self
            .list
            .as_deref()
            .map(|command| self.run(command, None))
            .transpose()?;
        Ok(output.map(|text| text.split_whitespace().map(str::to_owned).collect()))
    }

    fn run(&self, template: &str, group: Option<&str>) -> Result<String, LookupError> {
        let directory = self.directory.to_string_lossy();
        let mut variables = vec![("CFGDIR", &*directory), ("SOURCE", self.source.as_str())];
        variables.extend(group.map(|g| ("GROUP", g)));
        let command = substitute(template, &variables);
        run_shell(&command, &self.directory, TIME_LIMIT).map_err(|reason| LookupError {
            problem: format!("group source `{}`: {reason}", self.source),
            remedy: format!("run it by hand to see why: {command}"),
        })
    }
}

/// What a command printed.
fn run_shell(command: &str, directory: &PathBuf, limit: Duration) -> Result<String, CommandError> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0) // so that a pipeline can be ended as a whole
        .spawn()
        .map_err(CommandError::Start)?;
    let process_group = child.id();
    let errors = child
        .stderr
        .take()
        .map(|pipe| read_aside(pipe, MAX_ERROR_BYTES));
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(collect(&mut child)));
    match result.recv_timeout(limit) {
        Ok(Ok((output, true))) => Ok(output),
        Ok(Ok((_, false))) => {
            let said = errors
                .and_then(|e| e.recv_timeout(Duration::from_secs(1)).ok())
                .unwrap_or_default();
            Err(match said.trim() {
                "" => CommandError::Failed,
                words => CommandError::FailedWith {
                    words: words.to_owned(),
                },
            })
        }
        Ok(Err(reason)) => Err(reason),
        Err(_) => {
            end_process_group(process_group);
            Err(CommandError::TooLong { limit })
        }
    }
}

/// The output, and whether the command ended well.
fn collect(child: &mut Child) -> Result<(String, bool), CommandError> {
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        pipe.take(MAX_OUTPUT_BYTES)
            .read_to_end(&mut output)
            .map_err(CommandError::Output)?;
    }
    if output.len() as u64 == MAX_OUTPUT_BYTES {
        end_process_group(child.id());
        child.wait().map_err(CommandError::Wait)?;
        return Err(CommandError::TooMuch);
    }
    let status = child.wait().map_err(CommandError::Wait)?;
    Ok((
        String::from_utf8_lossy(&output).into_owned(),
        status.success(),
    ))
}

/// Reads a pipe to its end on a thread of its own and keeps the beginning.
fn read_aside(mut pipe: impl Read + Send + 'static, keep_bytes: u64) -> mpsc::Receiver<String> {
    let (done, result) = mpsc::channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        // A pipe that fails simply has no more output.
        let _ = pipe.by_ref().take(keep_bytes).read_to_end(&mut kept);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        let _ = done.send(String::from_utf8_lossy(&kept).into_owned());
    });
    result
}

fn end_process_group(group: u32) {
    // The shell's own kill, because sending signals to a group is not in the standard library.
    let _ = Command::new("sh")
        .args(["-c", "kill -s KILL -- \"-$0\"", &group.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, limit: Duration) -> Result<String, CommandError> {
        run_shell(command, &PathBuf::from("/"), limit)
    }

    #[test]
    fn output_and_failure() {
        let long = Duration::from_secs(60);
        assert_eq!(run("echo n1; echo n2", long).unwrap(), "n1\nn2\n");
        let refused = |command| run(command, long).unwrap_err().to_string();
        assert!(refused("echo oh no >&2; exit 3").contains("oh no"));
        assert_eq!(refused("exit 1"), "its command failed");
        assert!(refused("yes").contains("MiB"));
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display();
        let command = format!("sleep 1000 & echo $! > {path}; wait");
        let error = run(&command, Duration::from_secs(2))
            .unwrap_err()
            .to_string();
        assert!(error.contains("longer"), "{error}");
        let child = std::fs::read_to_string(file.path()).unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        for _ in 0..100 {
            // gone, or a zombie that its new parent has not collected yet
            if std::fs::read_to_string(&stat).map_or(true, |s| s.contains(") Z")) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("the child {} is still running", child.trim());
    }
}
