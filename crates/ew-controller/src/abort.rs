//! Conditions that end a run for the sake of others.

use crate::losses::Losses;
use crate::retransmits::{ManyRetransmits, Retransmits};
use crate::round_trips::{LongRoundTrips, RoundTrips};
use ew_model::inventory::{HostId, Inventory};
use ew_model::units::format_duration_ns;
use ew_proto::clock::ClockEstimate;
use ew_proto::controller_session::ControllerEvent;
use ew_sys::process::{Signal, kill_group, new_process_group};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// What ends a run by itself, where it rises under load. `None`: not checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbortLimits {
    /// Round trip of a control link.
    pub rtt_ns: Option<u64>,
    /// Share of the segments of TCP connections other than the run's that are retransmitted.
    pub retransmits: Option<f64>,
}

impl AbortLimits {
    /// Above 1 s, TCP's first retransmission timeout (RFC 6298, section 2), every new connection of
    /// the management network retransmits its SYN, and clusters with heartbeats elect new leaders.
    /// Above 10% retransmissions TCP's window is below four segments (sqrt(3 / 2p), Mathis et al.
    /// 1997), so that losses cost timeouts of 200 ms and more in place of fast retransmits (RFC
    /// 5681, section 3.2): such connections stall. A run's own queues stay far below both.
    pub const DEFAULT: Self = Self {
        rtt_ns: Some(1_000_000_000),
        retransmits: Some(0.1),
    };
}

/// What is seen of the hosts by the way, and ends a run.
#[derive(Debug)]
pub(crate) struct Conditions {
    limits: AbortLimits,
    losses: Losses,
    round_trips: RoundTrips,
    retransmits: Retransmits,
    /// Why the run must end; the first reason stays.
    reason: Option<String>,
    /// The run ends anyway.
    is_silent: bool,
}

impl Conditions {
    pub(crate) fn new(limits: AbortLimits) -> Self {
        Self {
            limits,
            losses: Losses::default(),
            round_trips: RoundTrips::default(),
            retransmits: Retransmits::default(),
            reason: None,
            is_silent: false,
        }
    }

    /// Flows begin or end.
    pub(crate) fn load(&mut self, is_on: bool) {
        self.retransmits.load(is_on);
    }

    /// A host was lost of so many that were up.
    pub(crate) fn lost(&mut self, now_ns: u64, up: usize) {
        let reason = self.losses.add(now_ns, up);
        self.end(reason);
    }

    /// A clock estimate or an answer to a heartbeat came.
    pub(crate) fn heard(
        &mut self,
        inventory: &Inventory,
        host: HostId,
        event: &ControllerEvent,
        now_ns: u64,
    ) {
        match event {
            ControllerEvent::Synced(ClockEstimate { rtt_ns, .. }) => {
                self.round_trips.estimated(host, *rtt_ns);
            }
            ControllerEvent::Alive { others, rtt_ns, .. } => {
                if let (Some(rtt_ns), Some(limit_ns)) = (*rtt_ns, self.limits.rtt_ns) {
                    let long = (self.round_trips).answered(host, rtt_ns, now_ns, limit_ns);
                    self.end(long.map(|long| long.words(inventory, limit_ns)));
                }
                if let (Some(others), Some(limit)) = (*others, self.limits.retransmits) {
                    let many = self.retransmits.take(host, others, now_ns, limit);
                    self.end(many.map(|many| many.words(inventory, limit)));
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|_| !self.is_silent) {
            self.is_silent = true;
            self.reason = Some(format!(
                "{reason}; the load may be the cause (limit it with --max-rate)"
            ));
        }
    }

    /// Why the run must end, once.
    pub(crate) fn take_reason(&mut self) -> Option<String> {
        self.reason.take()
    }

    /// Nothing is a reason any more.
    pub(crate) fn silence(&mut self) {
        self.is_silent = true;
        self.reason = None;
    }
}

impl LongRoundTrips {
    fn words(self, inventory: &Inventory, limit_ns: u64) -> String {
        format!(
            "{}: control link round trip {} in three heartbeats ({} before load; limit {}, --abort-rtt)",
            inventory.name(self.host),
            format_duration_ns(self.rtt_ns),
            format_duration_ns(self.before_load_ns),
            format_duration_ns(limit_ns)
        )
    }
}

impl ManyRetransmits {
    fn words(self, inventory: &Inventory, limit: f64) -> String {
        let percent = |share: Option<f64>| match share {
            Some(share) => format!("{:.1}%", 100.0 * share),
            None => "unknown".to_owned(),
        };
        format!(
            "{}: {} of the segments of other processes' TCP connections retransmitted ({} of {} in {}; {} before load; limit {}, --abort-retransmits)",
            inventory.name(self.host),
            percent(self.sent.share()),
            self.sent.retransmitted_segments,
            self.sent.sent_segments,
            format_duration_ns(self.interval_ns),
            percent(self.before_load),
            percent(Some(limit))
        )
    }
}

/// From the end of one check to the next one.
const INTERVAL: Duration = Duration::from_secs(1);
/// A check that takes longer has failed: what it checks does not answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Runs the command again and again by the shell until it fails, and reports how.
pub(crate) fn when_it_fails(command: String) -> oneshot::Receiver<String> {
    let (sender, failed) = oneshot::channel();
    tokio::spawn(async move {
        while !sender.is_closed() {
            if let Err(how) = check(&command).await {
                // The run may be over meanwhile.
                let _ = sender.send(format!("`{command}` {how}"));
                return;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    });
    failed
}

/// How a check failed.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error("ended with {0}")]
    Failed(ExitStatus),
    #[error("did not start: {0}")]
    NotStarted(#[source] std::io::Error),
    #[error("took more than {} s", LIMIT.as_secs())]
    TooLong,
}

/// Dropped before its end is seen, it is killed with all that it started.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(pid) = self.0.id() {
            // The group may be gone already, which is what we want.
            let _ = kill_group(pid, Signal::Kill);
        }
    }
}

async fn check(command: &str) -> Result<(), CheckError> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell.stdin(Stdio::null());
    shell.stdout(Stdio::null());
    shell.stderr(Stdio::null());
    // Ctrl-C in a terminal is for us: a check that it ended would look failed.
    new_process_group(shell.as_std_mut());
    let mut shell = Shell(shell.spawn().map_err(CheckError::NotStarted)?);
    match tokio::time::timeout(LIMIT, shell.0.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(CheckError::Failed(status)),
        Ok(Err(error)) => Err(CheckError::NotStarted(error)),
        Err(_) => Err(CheckError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use tokio::time::{Instant, sleep};

    /// Process group and state of a process, as proc_pid_stat(5) has them.
    fn group_and_state(pid: &str) -> Option<(String, String)> {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, group) = (fields.next()?, fields.nth(1)?);
        Some((group.to_owned(), state.to_owned()))
    }

    #[tokio::test]
    async fn a_check_has_its_own_group_and_ends_whole() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pids");
        let path = file.display();
        let command =
            format!("sleep 600 & echo $$ $! >'{path}.new'; mv '{path}.new' '{path}'; wait");
        let begun = async {
            while !file.exists() {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ended = check(&command) => panic!("{ended:?}"),
            () = begun => {}
        }
        let pids = fs::read_to_string(&file).unwrap();
        let (shell, child) = pids.trim().split_once(' ').unwrap();
        let until = Instant::now() + LIMIT;
        while let Some((group, state)) = group_and_state(child) {
            assert_eq!(group, shell);
            if state == "Z" {
                break;
            }
            assert!(Instant::now() < until, "it runs on");
            sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_check_that_fails_is_reported() {
        assert!(check("true").await.is_ok());
        let failed = check("exit 3").await.unwrap_err().to_string();
        assert_eq!(failed, "ended with exit status: 3");
    }
}
