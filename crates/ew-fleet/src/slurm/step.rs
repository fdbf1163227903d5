//! One `srun`, and what ends the links of its agents.

use crate::error::Unclean;
use crate::tail::Tail;
use ew_proto::sealed::LinkSecret;
use ew_sys::process::{die_with_parent, new_process_group};
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::time::timeout;

/// The last agent's link waits this long for the step's end.
const STEP_END: Duration = Duration::from_secs(2);

/// One `srun`. Dropped with the runtime, it is killed, and Slurm ends its tasks.
#[derive(Debug)]
pub(crate) struct Step {
    pub(super) tail: Tail,
    /// How it ended, once it has.
    pub(super) ended: watch::Receiver<Option<String>>,
    pub(super) links: AtomicUsize,
    /// Agents that have dialled back.
    pub(super) arrived: watch::Sender<usize>,
}

impl Step {
    pub(super) fn spawn(mut command: Command, secret: &LinkSecret) -> io::Result<Self> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        new_process_group(&mut command);
        die_with_parent(&mut command);
        let mut command = tokio::process::Command::from(command);
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot start srun: {error}")))?;
        let tail = Tail::default();
        if let Some(errors) = child.stderr.take() {
            tokio::spawn(tail.clone().drain(errors));
        }
        let (sender, ended) = watch::channel(None);
        tokio::spawn(attend(child, format!("{}\n", secret.to_hex()), sender));
        Ok(Self {
            tail,
            ended,
            links: AtomicUsize::new(0),
            arrived: watch::Sender::new(0),
        })
    }

    pub(super) fn with_words(&self, what: &str) -> String {
        let words = self.tail.words();
        match words.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: {words}"),
        }
    }
}

/// Hands the secret over, and waits for the end.
async fn attend(mut child: Child, secret: String, ended: watch::Sender<Option<String>>) {
    if let Some(mut input) = child.stdin.take() {
        // A step that does not start reports why itself. Its input stays open while it runs: some
        // versions end tasks whose input ends.
        let _ = input.write_all(secret.as_bytes()).await;
        let _ = input.flush().await;
        let status = child.wait().await;
        drop(input);
        let _ = ended.send(Some(how(status)));
    }
}

fn how(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("srun ended with {status} before the agent dialled back"),
        Err(error) => format!("srun's end could not be seen: {error}"),
    }
}

/// How a step ended, once it has.
pub(super) async fn over(ended: &mut watch::Receiver<Option<String>>) -> String {
    match ended.wait_for(Option::is_some).await {
        Ok(how) => how.clone().unwrap_or_default(),
        Err(_) => "srun was ended".to_owned(),
    }
}

/// Owns a dialled link.
#[derive(Debug)]
pub(crate) struct DialledGuard {
    pub(super) host: String,
    pub(super) incoming: tokio::task::JoinHandle<()>,
    pub(super) outgoing: tokio::task::JoinHandle<()>,
    pub(super) step: Arc<Step>,
}

impl DialledGuard {
    /// Hangs up: the agent ends by itself.
    pub(crate) fn kill(&self) {
        self.incoming.abort();
        self.outgoing.abort();
    }

    pub(crate) fn words(&self) -> String {
        self.step.tail.text()
    }

    /// Waits until the agent has hung up; the last one of its step waits for the step, too.
    ///
    /// # Errors
    /// [`Unclean`] when it did not in time.
    pub(crate) async fn finish(&mut self, limit: Duration) -> Result<(), Unclean> {
        let hung_up = timeout(limit, &mut self.incoming).await.is_ok();
        self.kill();
        let is_last = self.step.links.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last && !limit.is_zero() {
            let mut ended = self.step.ended.clone();
            // A node that failed keeps srun waiting; then it is killed with the runtime.
            let _ = timeout(STEP_END, over(&mut ended)).await;
        }
        match hung_up {
            true => Ok(()),
            false => Err(Unclean {
                host: self.host.clone(),
                message: format!(
                    "the agent did not hang up within {} s; an agent without a controller ends itself within 5 s, which was not seen: find a process named eastwest there",
                    limit.as_secs_f32()
                ),
            }),
        }
    }
}

impl Drop for DialledGuard {
    fn drop(&mut self) {
        self.kill();
    }
}
