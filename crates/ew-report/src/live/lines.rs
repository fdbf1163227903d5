//! Plain lines with the time since the start, for logs and pipes.

use super::storage;
use super::tally::Tally;
use crate::words::{one_line, outcome, plural, rate};
use ew_model::units::{format_bytes, format_duration_ns};
use ew_model::{RunEvent, StageIndex};
use std::collections::BTreeSet;
use std::io::Write;

/// The min time between two progress lines.
const PROGRESS_EVERY_NS: u64 = 10_000_000_000;

pub(super) struct Lines<W> {
    out: W,
    quiet: bool,
    last_progress_ns: u64,
    launch_told: bool,
    begun: BTreeSet<StageIndex>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W, quiet: bool) -> Self {
        Self {
            out,
            quiet,
            last_progress_ns: 0,
            launch_told: false,
            begun: BTreeSet::new(),
        }
    }

    pub(super) fn show(&mut self, at_ns: u64, event: &RunEvent, tally: &Tally) {
        for line in tally.failures.iter().chain(&trouble(event, tally)) {
            self.line(at_ns, line);
        }
        if self.quiet {
            return;
        }
        if let Some(line) = self.progress(at_ns, event, tally) {
            self.line(at_ns, &line);
        }
    }

    /// A closed pipe is no reason to stop measuring.
    pub(super) fn flush(&mut self) {
        let _ = self.out.flush();
    }

    fn line(&mut self, at_ns: u64, text: &str) {
        let _ = writeln!(self.out, "[{:>7.1} s] {text}", at_ns as f64 / 1e9);
        self.flush();
    }

    fn progress(&mut self, at_ns: u64, event: &RunEvent, tally: &Tally) -> Option<String> {
        match event {
            RunEvent::RunStarted { plan, .. } if plan.stages.is_empty() => {
                Some(format!("{}: {}", one_line(&plan.scenario), tally.size()))
            }
            RunEvent::RunStarted { plan, .. } => Some(format!(
                "{}: {}, {}, estimated time {}",
                one_line(&plan.scenario),
                tally.size(),
                plural(plan.stages.len(), "stage"),
                format_duration_ns(tally.planned_ns())
            )),
            RunEvent::HostUp { .. } | RunEvent::HostFailed { .. } => self.launched(tally),
            RunEvent::StageStarted { stage, hosts_alive } => {
                self.last_progress_ns = at_ns;
                // Its later turns are not reported.
                self.begun.insert(*stage).then(|| {
                    format!(
                        "stage {} begins: {}, {} alive",
                        tally.stage_name(*stage),
                        tally.stage_size(*stage),
                        plural(*hosts_alive as usize, "host")
                    )
                })
            }
            RunEvent::StageFinished { stage } => Some(format!(
                "stage {} ended: {}, {}",
                tally.stage_name(*stage),
                plural(tally.rounds_done(*stage) as usize, "round"),
                tally.stage_result(*stage)
            )),
            RunEvent::Progress {
                bits_per_sec,
                hosts_alive,
                left_ns,
            } => {
                if at_ns.saturating_sub(self.last_progress_ns) < PROGRESS_EVERY_NS {
                    return None;
                }
                self.last_progress_ns = at_ns;
                Some(progress(*bits_per_sec, *hosts_alive, *left_ns))
            }
            RunEvent::StorageStepStarted { .. } => storage::began(event),
            RunEvent::StorageProgress { operation, words } => {
                Some(storage::goes(*operation, words))
            }
            RunEvent::StorageStepFinished(step) => Some(storage::ended(step)),
            RunEvent::FlowProgress { .. } => {
                // It shows what a line of progress would show.
                self.last_progress_ns = at_ns;
                flow_progress(event, tally)
            }
            RunEvent::RunFinished { outcome: how, .. } => {
                Some(format!("run ended: {}", outcome(*how)))
            }
            _ => None,
        }
    }

    fn launched(&mut self, tally: &Tally) -> Option<String> {
        if self.launch_told || !tally.launch_is_over() {
            return None;
        }
        self.launch_told = true;
        Some(tally.launch_result())
    }
}

/// `1.53 Gb/s now, 8 hosts alive, 42 s left`.
pub(super) fn progress(bits_per_sec: Option<f64>, hosts_alive: u32, left_ns: u64) -> String {
    let now = bits_per_sec.map(|bits| format!("{} now, ", rate(Some(bits))));
    format!(
        "{}{} alive, {} left",
        now.unwrap_or_default(),
        plural(hosts_alive as usize, "host"),
        whole_seconds(left_ns)
    )
}

/// `a -> b   1.00-2.00 s  1.09 GiB  9.41 Gb/s     12 retr`, the segments retransmitted where they
/// are reported, or with transactions `48211 transactions/s` at the end.
fn flow_progress(event: &RunEvent, tally: &Tally) -> Option<String> {
    let RunEvent::FlowProgress {
        src,
        dst,
        offset_ns,
        length_ns,
        bytes,
        transactions,
        retransmits,
        ..
    } = event
    else {
        return None;
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    let per_second = |count: u64| count as f64 / seconds(*length_ns).max(1e-9);
    let speed = match transactions {
        Some(count) => format!("{:.0} transactions/s", per_second(*count)),
        None => rate(Some(per_second(*bytes) * 8.0)),
    };
    let again = retransmits.map_or_else(String::new, |count| format!(" {count:>6} retr"));
    Some(format!(
        "{} -> {} {:>6.2}-{:.2} s {:>10}  {speed:>9}{again}",
        tally.host(*src),
        tally.host(*dst),
        seconds(*offset_ns),
        seconds(offset_ns + length_ns),
        format_bytes(*bytes),
    ))
}

/// What the user must see even when quiet.
pub(super) fn trouble(event: &RunEvent, tally: &Tally) -> Vec<String> {
    match event {
        RunEvent::HostLost { host, message } => {
            vec![format!("{} lost: {}", tally.host(*host), one_line(message))]
        }
        RunEvent::HostReturned { host } => vec![format!("{} is back", tally.host(*host))],
        RunEvent::Warning { message } => vec![format!("warning: {}", one_line(message))],
        RunEvent::Interrupted => {
            vec![String::from(
                "interrupted: stopping in order; once more stops at once",
            )]
        }
        RunEvent::RunFinished { unclean, .. } => unclean
            .iter()
            .map(|(host, reason)| {
                format!(
                    "{}: cleanup not confirmed: {}",
                    one_line(host),
                    one_line(reason)
                )
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Seconds without decimals: an estimate that pretends to more is noise.
fn whole_seconds(ns: u64) -> String {
    match ns.div_ceil(1_000_000_000) {
        s if s < 120 => format!("{s} s"),
        s => format_duration_ns(s * 1_000_000_000),
    }
}
