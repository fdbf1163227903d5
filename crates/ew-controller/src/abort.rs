//! Conditions that end a run for the sake of others.

use crate::losses::Losses;
use crate::retransmits::{ManyRetransmits, Retransmits};
use crate::round_trips::{LongRoundTrips, RoundTrips};
use ew_model::inventory::{HostId, Inventory};
use ew_model::units::format_duration_ns;
use ew_proto::clock::ClockEstimate;
use ew_proto::controller_session::ControllerEvent;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::Command;
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
    is_reported: bool,
}

impl Conditions {
    pub(crate) fn new(limits: AbortLimits) -> Self {
        Self {
            limits,
            losses: Losses::default(),
            round_trips: RoundTrips::default(),
            retransmits: Retransmits::default(),
            reason: None,
            is_reported: false,
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
        if let Some(reason) = reason.filter(|_| !self.is_reported) {
            self.is_reported = true;
            self.reason = Some(format!(
                "{reason}; the load may be the cause (limit it with --max-rate)"
            ));
        }
    }

    /// Why the run must end, once.
    pub(crate) fn take_reason(&mut self) -> Option<String> {
        self.reason.take()
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

async fn check(command: &str) -> Result<(), CheckError> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).kill_on_drop(true);
    shell.stdin(Stdio::null());
    shell.stdout(Stdio::null());
    shell.stderr(Stdio::null());
    match tokio::time::timeout(LIMIT, shell.status()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(CheckError::Failed(status)),
        Ok(Err(error)) => Err(CheckError::NotStarted(error)),
        Err(_) => Err(CheckError::TooLong),
    }
}
