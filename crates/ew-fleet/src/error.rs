//! What can go wrong between here and a host, in words a person can act on.

use ew_model::units::format_bytes;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// A host whose agent could not be started. `words` are the other side's own, cleaned of control
/// characters.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// Our own binary cannot be read.
    #[error("cannot read the binary {} to copy it to the hosts: {source}", path.display())]
    ReadBinary {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Our own binary would not start on hosts with other libraries.
    #[error(
        "this eastwest is dynamically linked (it needs {interpreter}), so it would not start on hosts with other libraries; use a \
         released binary, or build with `RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target \
         x86_64-unknown-linux-gnu`"
    )]
    DynamicBinary {
        /// The loader that it asks for.
        interpreter: String,
    },
    /// An option that ssh or we would take for something else.
    #[error("ssh option `{option}`: {reason}")]
    BadSshOption {
        /// As given.
        option: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The name would be taken for an option, or cannot be a host.
    #[error("`{name}` cannot be a host's name: {reason}")]
    BadHostName {
        /// As given.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The directory's name cannot be handed to a remote shell safely.
    #[error(
        "the remote directory `{directory}` has a character that a remote shell may take for something else ({character:?}); give --remote-dir a plain path"
    )]
    BadRemoteDir {
        /// As given.
        directory: String,
        /// The first such character.
        character: char,
    },
    /// The local process does not start.
    #[error("{host}: cannot start {program}: {source}")]
    Spawn {
        /// The host's name.
        host: String,
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The agent's directory or namespace cannot be entered.
    #[error("{host}: cannot enter the host's namespace: {source}")]
    Enter {
        /// The host's name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// ssh gave up (its exit status 255).
    #[error("{host}: {words}{}", remedy(hint))]
    Ssh {
        /// The host's name.
        host: String,
        /// ssh's own.
        words: String,
        /// What to do about it, when we know.
        hint: Option<&'static str>,
    },
    /// The remote shell ended before it reached our part.
    #[error("{host}: the remote shell ended with {status} before the agent could start: {words}")]
    RemoteShell {
        /// The host's name.
        host: String,
        /// Exit status or signal.
        status: String,
        /// The remote shell's own.
        words: String,
    },
    /// No private directory could be made on the host.
    #[error(
        "{host}: no temporary directory could be made in {directory}: {words}; choose a writable one with --remote-dir"
    )]
    NoDirectory {
        /// The host's name.
        host: String,
        /// As asked for.
        directory: String,
        /// mktemp's own.
        words: String,
    },
    /// Others could exchange the binary before it is started.
    #[error(
        "{host}: others may write in {directory}, so they could put a program of theirs in the place of the agent; choose a directory that \
         is yours alone or sticky as /tmp is (chmod +t), for example --remote-dir /tmp"
    )]
    UnsafeDirectory {
        /// The host's name.
        host: String,
        /// As asked for.
        directory: String,
    },
    /// The binary did not arrive whole.
    #[error(
        "{host}: the binary did not arrive whole in {directory}: {words}; check the free space there (df), or choose another with --remote-dir"
    )]
    CopyIncomplete {
        /// The host's name.
        host: String,
        /// Where to.
        directory: String,
        /// head's own.
        words: String,
    },
    /// The binary was on its way, and nothing more came.
    #[error(
        "{host}: stalled while {step}, then nothing more came{}; look for loss or a cut on the path to the host, for an MTU that \
         does not fit (`ping -M do -s 1472 {host}`) and at the disk there, and run again",
        said(words)
    )]
    CopyStalled {
        /// The host's name.
        host: String,
        /// How far the copy was.
        step: Step,
        /// What the other side had sent by then; may be empty.
        words: String,
    },
    /// The directory does not allow programs to run.
    #[error(
        "{host}: {directory} does not allow programs to run (mounted noexec?){}; choose another directory with --remote-dir, for example --remote-dir '~'",
        said(words)
    )]
    NotExecutable {
        /// The host's name.
        host: String,
        /// The directory.
        directory: String,
        /// The remote shell's own; may be empty.
        words: String,
    },
    /// The host is another kind of machine than the binary is built for.
    #[error(
        "{host}: the host is {system} on {machine}, this eastwest brings agents for Linux on {built_for}; releases bring those for x86_64 and aarch64, or build eastwest for {machine} and start it there"
    )]
    Architecture {
        /// The host's name.
        host: String,
        /// Its `uname -s`.
        system: String,
        /// Its `uname -m`.
        machine: String,
        /// The binary's machine.
        built_for: String,
    },
    /// Its pod does not run.
    #[error("{host}: {words}")]
    Pod {
        /// The host's name.
        host: String,
        /// The cluster's, with the remedy.
        words: String,
    },
    /// Its part of a step of the job does not run.
    #[error("{host}: {words}")]
    Slurm {
        /// The host's name.
        host: String,
        /// Slurm's own, with what we know of it.
        words: String,
    },
    /// What this launcher cannot do.
    #[error("{host}: {what} is not possible in pods; {remedy}")]
    NotInPods {
        /// The host's name.
        host: String,
        /// What was asked for.
        what: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// It took too long.
    #[error(
        "{host}: no agent within {:.1} s (stopped while {step}){}; give a slow host more time with --launch-timeout",
        waited.as_secs_f32(),
        said(words)
    )]
    TooLate {
        /// The host's name.
        host: String,
        /// How long it was waited.
        waited: Duration,
        /// What was being done.
        step: Step,
        /// What the other side had sent by then; may be empty.
        words: String,
    },
    /// The other side talks, but not our language.
    #[error(
        "{host}: more than {limit_bytes} bytes came before our own greeting, for example: {words}; make the login scripts on the host silent for commands"
    )]
    TooNoisy {
        /// The host's name.
        host: String,
        /// The limit.
        limit_bytes: u64,
        /// The end of what came.
        words: String,
    },
}

impl LaunchError {
    /// Whether another try may go better, and how many are worth it: sshd and jump hosts turn
    /// connections away while there are too many (`MaxStartups`), and a path may be lost for a
    /// moment.
    #[must_use]
    pub fn worthwhile_retries(&self) -> u32 {
        match self {
            _ if self.is_turned_away() => 4,
            Self::Ssh { words, .. } if is_any_of(words, &FOR_A_MOMENT) => 1,
            Self::TooLate { .. } | Self::CopyStalled { .. } => 1,
            // The connection broke while the binary was on its way.
            Self::CopyIncomplete { words, .. } if words.is_empty() => 1,
            _ => 0,
        }
    }

    /// Whether the other side closed the connection before anybody had logged in: fewer at once may
    /// get through.
    #[must_use]
    pub fn is_turned_away(&self) -> bool {
        matches!(self, Self::Ssh { words, .. } if is_any_of(words, &TURNED_AWAY))
    }
}

/// What ssh prints when the other side closed the connection before it asked who we are.
const TURNED_AWAY: [&str; 4] = [
    "kex_exchange_identification",
    "Connection closed by",
    "Connection reset by",
    "Exceeded MaxStartups",
];

/// What ssh prints about a host or a path that may be back in a second: one that boots, or a switch
/// that is busy with many new connections.
const FOR_A_MOMENT: [&str; 6] = [
    "timed out",
    "No route to host",
    "Connection refused",
    "Network is unreachable",
    "Broken pipe",
    "ended without a word",
];

fn is_any_of(words: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| words.contains(phrase))
}

/// What was being done on the way to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The other side has not greeted yet.
    Connecting,
    /// The binary is on its way.
    Copying {
        /// What the host has reported to have.
        arrived_bytes: u64,
        /// The whole binary.
        size_bytes: u64,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Connecting => write!(f, "connecting"),
            Self::Copying {
                arrived_bytes,
                size_bytes,
            } => {
                let (arrived, size) = (format_bytes(arrived_bytes), format_bytes(size_bytes));
                write!(
                    f,
                    "copying the binary, of which {arrived} of {size} had arrived"
                )
            }
        }
    }
}

/// A host whose cleanup is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Unclean {
    /// The host's name.
    pub host: String,
    /// What was seen, and what to look for.
    pub message: String,
}

/// What to do about ssh's best-known refusals, by a phrase of OpenSSH's own messages.
#[must_use]
pub(crate) fn ssh_hint(words: &str) -> Option<&'static str> {
    const TOO_MANY: &str = "sshd there, or on a jump host, takes no more connections at once: raise its MaxStartups, or launch fewer \
         hosts at once with --fanout";
    const HINTS: [(&str, &str); 12] = [
        (
            "Host key verification failed",
            "the host's key is unknown or has changed: connect once by hand, or accept unknown ones with -o StrictHostKeyChecking=accept-new",
        ),
        (
            "Permission denied",
            "eastwest never asks for a password: `ssh-copy-id HOST` gives the host your key; else check the key (-i FILE, ssh-add -l) and \
             the user (-l USER)",
        ),
        (
            "Too many authentication failures",
            "name the key with -i FILE -o IdentitiesOnly=yes, or in the ssh configuration",
        ),
        (
            "Could not resolve hostname",
            "check the name, or give its HostName in the ssh configuration (--ssh-config)",
        ),
        (
            "Connection refused",
            "check that sshd runs there, and its port (--ssh-port)",
        ),
        ("kex_exchange_identification", TOO_MANY),
        ("Connection closed by", TOO_MANY),
        ("Connection reset by", TOO_MANY),
        (
            "timed out",
            "check that the host is up and that no firewall blocks the connection",
        ),
        (
            "No route to host",
            "check that the host is up and its network is configured",
        ),
        (
            "Cannot execute command-line and remote command",
            "the ssh configuration has a RemoteCommand for this host: take it out, or give another configuration with --ssh-config",
        ),
        (
            "Can't open user config file",
            "check the path given with --ssh-config",
        ),
    ];
    HINTS
        .iter()
        .find(|(phrase, _)| words.contains(phrase))
        .map(|(_, hint)| *hint)
}

fn remedy(hint: &Option<&'static str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

fn said(words: &str) -> String {
    if words.is_empty() {
        String::new()
    } else {
        format!(": {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(words: &str) -> LaunchError {
        LaunchError::Ssh {
            host: "n1".into(),
            words: words.into(),
            hint: None,
        }
    }

    #[test]
    fn what_may_go_better_is_tried_again_and_what_cannot_is_not() {
        for (words, retries) in [
            (
                "kex_exchange_identification: Connection closed by remote host",
                4,
            ),
            ("ssh: connect to host n1 port 22: Connection timed out", 1),
            ("ssh: connect to host n1 port 22: No route to host", 1),
            ("ssh: connect to host n1 port 22: Connection refused", 1),
            ("Permission denied (publickey)", 0),
            ("Host key verification failed", 0),
            ("Could not resolve hostname n1", 0),
        ] {
            assert_eq!(ssh(words).worthwhile_retries(), retries, "{words}");
        }
    }
}
