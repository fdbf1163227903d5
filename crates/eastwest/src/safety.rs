//! What a run does not do to hosts and networks that others use.

use anyhow::{Context, anyhow};
use clap::Args;
use ew_controller::{AbortLimits, LaunchOptions, MaxRate, RunError};
use ew_model::units::{parse_bits_per_sec, parse_duration_ns};
use ew_model::{Scenario, Tool, Workload};
use std::time::{Duration, Instant};

/// Requests of this size load no link worth limiting.
const LARGEST_FREE_MESSAGE_BYTES: u64 = 4096;
/// Between two tries to get hosts that another run is loading.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORTEST_PAUSE: Duration = Duration::from_secs(2);

/// `--abort-rtt`; `None` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct AbortRtt(Option<u64>);

/// `--abort-retransmits`, a share; `None` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct AbortRetransmits(Option<f64>);

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Safety")]
pub(crate) struct SafetyArgs {
    /// The most to load every host's link with, in each direction: `10%` of its line rate, or `1G`.
    /// Bulk flows of eastwest's own engine only
    #[arg(long, value_name = "RATE", value_parser = parse_max_rate)]
    pub(crate) max_rate: Option<MaxRate>,
    /// Load hosts that another run is loading, too; rates are then of both together
    #[arg(long)]
    force: bool,
    /// Wait for hosts that another run is loading, at most this long
    #[arg(long, value_name = "TIME", value_parser = parse_wait, conflicts_with = "force")]
    wait: Option<Duration>,
    /// Stop all flows when this command fails or takes 5 s; it runs every second by `sh -c`, on
    /// this host
    #[arg(long, value_name = "COMMAND")]
    abort_command: Option<String>,
    /// Stop all flows when a control link's round trip is above this, and above 10 times that of
    /// before load, in three heartbeats in a row; `off` does not
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_abort_rtt)]
    abort_rtt: AbortRtt,
    /// Stop all flows when other processes' TCP connections on a host retransmit more than this
    /// share of their segments within 5 s of load, and 3 times that of before; `off` does not
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_abort_retransmits)]
    abort_retransmits: AbortRetransmits,
    /// Load public addresses and hosts that are far away (round trips of 10 ms and more), too
    #[arg(long)]
    allow_wan: bool,
    /// Mark all traffic as lower effort (DSCP LE, RFC 8622), short for --set dscp=le
    #[arg(long)]
    pub(crate) polite: bool,
    /// Write no line to the hosts' syslog when the run begins and ends
    #[arg(long)]
    no_syslog: bool,
}

impl SafetyArgs {
    /// The options with what is asked for. On loopback nothing is shared with other runs.
    pub(crate) fn apply(&self, options: LaunchOptions, is_local: bool) -> LaunchOptions {
        LaunchOptions {
            claimed_by: (!is_local).then(user_at_host),
            force: self.force,
            abort_command: self.abort_command.clone(),
            abort_limits: AbortLimits {
                rtt_ns: self.abort_rtt.0,
                retransmits: self.abort_retransmits.0,
            },
            allow_wan: self.allow_wan,
            max_rate: self.max_rate,
            syslog: !self.no_syslog,
            ..options
        }
    }

    /// A test that --max-rate was given for and that nothing limits: an external tool, or requests
    /// that are large.
    pub(crate) fn cannot_limit<'s>(&self, scenario: &'s Scenario) -> Option<&'s str> {
        self.max_rate?;
        let is_unlimited = |workload: &Workload| {
            let is_small = workload.message_bytes <= LARGEST_FREE_MESSAGE_BYTES;
            workload.tool != Tool::Engine || !(workload.kind.keeps_to_a_rate() || is_small)
        };
        let mut tests = scenario.tests.iter();
        let test = tests.find(|test| is_unlimited(&test.workload))?;
        Some(&test.name)
    }

    /// Carries a run out, again and again while another one has its hosts and time to wait is left.
    pub(crate) fn wait_for_hosts<T>(
        &self,
        mut run: impl FnMut() -> Result<T, RunError>,
        mut say: impl FnMut(&str),
    ) -> Result<T, RunError> {
        let began = Instant::now();
        loop {
            let refused = match run() {
                Err(error @ RunError::InUse { .. }) => error,
                other => return other,
            };
            let left = self.wait.unwrap_or_default().checked_sub(began.elapsed());
            let (
                Some(left),
                RunError::InUse {
                    hosts,
                    times,
                    left: planned,
                    ..
                },
            ) = (left, &refused)
            else {
                return Err(refused);
            };
            if left.is_zero() {
                return Err(refused);
            }
            say(&format!("waiting for {hosts}: another run {times}"));
            let pause = (*planned).clamp(SHORTEST_PAUSE, LONGEST_PAUSE).min(left);
            std::thread::sleep(pause);
        }
    }
}

/// Who runs it, as others know them: `alice@head`.
fn user_at_host() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let user = user.unwrap_or_else(|| format!("uid {}", ew_sys::process::user()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{user}@{}", host.trim())
}

fn parse_wait(text: &str) -> anyhow::Result<Duration> {
    let ns = parse_duration_ns(text).map_err(|error| anyhow!("{error}"));
    ns.map(Duration::from_nanos)
        .context("expected a time, such as 10m")
}

fn parse_abort_rtt(text: &str) -> anyhow::Result<AbortRtt> {
    if text == "off" {
        return Ok(AbortRtt(None));
    }
    let ns = parse_duration_ns(text).map_err(|error| anyhow!("{error}"));
    let ns = ns.context("expected a time, such as 500ms, or `off`")?;
    anyhow::ensure!(ns > 0, "expected a time above 0, such as 500ms, or `off`");
    Ok(AbortRtt(Some(ns)))
}

fn parse_abort_retransmits(text: &str) -> anyhow::Result<AbortRetransmits> {
    if text == "off" {
        return Ok(AbortRetransmits(None));
    }
    let percent = text
        .strip_suffix('%')
        .and_then(|text| text.trim().parse::<f64>().ok());
    let share = percent.map(|percent| percent / 100.0);
    let share = share.filter(|share| *share > 0.0 && *share < 1.0);
    let share = share.context("expected a percentage between 0% and 100%, such as 5%, or `off`")?;
    Ok(AbortRetransmits(Some(share)))
}

fn parse_max_rate(text: &str) -> anyhow::Result<MaxRate> {
    if let Some(percent) = text.strip_suffix('%') {
        let share = percent.trim().parse::<f64>().unwrap_or(f64::NAN) / 100.0;
        anyhow::ensure!(
            share > 0.0 && share <= 1.0,
            "expected more than 0% and at most 100%"
        );
        return Ok(MaxRate::Share(share));
    }
    let rate = parse_bits_per_sec(text).map_err(|error| anyhow!("{error}"))?;
    anyhow::ensure!(rate > 0.0, "expected a rate above 0, such as 1G or 10%");
    Ok(MaxRate::BitsPerSec(rate))
}
