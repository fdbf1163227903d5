//! The link to an agent, and what ends it.

use crate::error::Unclean;
use crate::in_process::guard::InProcessGuard;
use crate::slurm::step::DialledGuard;
use crate::tail::Tail;
use ew_sys::process::{Signal, kill_group};
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What the agent reports; ends when the agent or the connection ends.
pub type LinkReader = Box<dyn AsyncBufRead + Send + Unpin>;
/// What the agent hears. Dropping it ends the agent's input, and with it the agent.
pub type LinkWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// How long a process that has closed its output may take to be gone, and its last words to be
/// read.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);

/// A started agent.
pub struct Link {
    /// From the agent.
    pub reader: LinkReader,
    /// To the agent.
    pub writer: LinkWriter,
    /// Ends the agent's process at the latest when dropped.
    pub guard: LinkGuard,
    /// The host has kept the program from an earlier run.
    pub was_kept: bool,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("guard", &self.guard)
            .finish_non_exhaustive()
    }
}

/// Owns what is behind a link: the agent itself, the client that carries it, or the connection that
/// it dialled. Dropped, it ends that.
#[derive(Debug)]
pub struct LinkGuard(Carrier);

#[derive(Debug)]
enum Carrier {
    Process(Process),
    Dialled(DialledGuard),
    InProcess(InProcessGuard),
}

/// The process behind a link. Dropped, it kills the process' group.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) host: String,
    pub(crate) remote: bool,
    pub(crate) child: Child,
    pub(crate) tail: Tail,
    pub(crate) drained: Option<JoinHandle<()>>,
}

impl LinkGuard {
    pub(crate) fn process(process: Process) -> Self {
        Self(Carrier::Process(process))
    }

    pub(crate) fn dialled(guard: DialledGuard) -> Self {
        Self(Carrier::Dialled(guard))
    }

    pub(crate) fn in_process(guard: InProcessGuard) -> Self {
        Self(Carrier::InProcess(guard))
    }

    /// Waits until the agent has ended by itself, as it does after a farewell or when the link's
    /// writer is dropped; kills it when the deadline passes.
    ///
    /// # Errors
    /// [`Unclean`] when it was killed, or ended otherwise than in order: then the host is not
    /// confirmed clean.
    pub async fn finish(self, deadline: Duration) -> Result<(), Unclean> {
        match self.0 {
            Carrier::Process(process) => process.finish(deadline).await,
            Carrier::Dialled(mut dialled) => dialled.finish(deadline).await,
            Carrier::InProcess(guard) => guard.finish(deadline).await,
        }
    }

    /// Kills the process and everything in its group, at once. For ssh this is the client, and for
    /// dialled links the connection: the agent then ends by itself.
    pub fn kill(&mut self) {
        match &mut self.0 {
            Carrier::Process(process) => process.kill(),
            Carrier::Dialled(dialled) => dialled.kill(),
            Carrier::InProcess(guard) => guard.kill(),
        }
    }

    /// The last 4 KiB of standard error, without control characters.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        match &self.0 {
            Carrier::Process(process) => process.tail.text(),
            Carrier::Dialled(dialled) => dialled.words(),
            Carrier::InProcess(_) => String::new(),
        }
    }
}

impl Process {
    async fn finish(mut self, deadline: Duration) -> Result<(), Unclean> {
        let ended = timeout(deadline, self.child.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => {
                self.drain_stderr().await;
                let message = self.with_words(&self.say_end(status));
                Err(self.unclean(message))
            }
            Ok(Err(error)) => {
                Err(self.unclean(format!("the agent's end could not be seen: {error}")))
            }
            Err(_) => {
                self.kill();
                let what = self.killed_words(deadline);
                let _gone = timeout(LAST_WORDS, self.child.wait()).await;
                Err(self.unclean(what))
            }
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(pid) = self.child.id() {
            // The group may be gone already, which is what we want.
            let _ = kill_group(pid, Signal::Kill);
        }
    }

    fn say_end(&self, status: ExitStatus) -> String {
        if self.remote && status.code() == Some(255) {
            "the ssh connection broke".to_owned()
        } else {
            format!("the agent ended with {}", say(status))
        }
    }

    fn killed_words(&self, deadline: Duration) -> String {
        let seconds = deadline.as_secs_f32();
        self.with_words(&if self.remote {
            format!(
                "the agent did not end within {seconds} s and its ssh client was killed; an agent without a controller ends itself \
                 within 5 s, which was not seen: find a process named eastwest there"
            )
        } else {
            format!("the agent did not end within {seconds} s and was killed")
        })
    }

    fn with_words(&self, what: &str) -> String {
        let words = self.tail.words();
        if words.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {words}")
        }
    }

    fn unclean(&self, message: String) -> Unclean {
        Unclean {
            host: self.host.clone(),
            message,
        }
    }

    /// Lets the last words arrive; a grandchild that holds standard error open does not stop us.
    pub(crate) async fn drain_stderr(&mut self) {
        if let Some(drained) = self.drained.take() {
            let _ = timeout(LAST_WORDS, drained).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// `status 1`, or `signal 9`.
pub(crate) fn say(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
