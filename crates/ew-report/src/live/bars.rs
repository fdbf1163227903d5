//! Bars for a terminal: one while launching, one per stage, and a status line below. Stages that
//! are interleaved keep theirs.

use super::lines::{progress, trouble};
use super::storage;
use super::tally::Tally;
use crate::words::outcome;
use ew_model::{RunEvent, StageIndex};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Redraws a second at most; more only costs CPU that belongs to the run.
const REDRAWS_PER_SEC: u8 = 8;

pub(super) struct Bars {
    all: MultiProgress,
    launch: ProgressBar,
    stages: BTreeMap<StageIndex, ProgressBar>,
    status: ProgressBar,
    color: bool,
}

impl Bars {
    pub(super) fn new<W: Write + Send + 'static>(out: W, color: bool) -> Self {
        let terminal = Terminal {
            out: Mutex::new(out),
        };
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(terminal), REDRAWS_PER_SEC);
        let all = MultiProgress::with_draw_target(target);
        let launch = all.add(
            ProgressBar::new(0)
                .with_style(bar_style(color))
                .with_prefix("launch"),
        );
        let status = all.add(ProgressBar::new_spinner().with_style(line_style()));
        Self {
            all,
            launch,
            stages: BTreeMap::new(),
            status,
            color,
        }
    }

    pub(super) fn show(&mut self, at_ns: u64, event: &RunEvent, tally: &Tally) {
        for line in tally.failures.iter().chain(&trouble(event, tally)) {
            // A closed terminal is no reason to stop measuring.
            let _ = self
                .all
                .println(format!("[{:>7.1} s] {line}", at_ns as f64 / 1e9));
        }
        match event {
            RunEvent::RunStarted { .. } => {
                self.launch.set_length(tally.inventory.hosts.len() as u64);
                self.show_launch(tally);
            }
            RunEvent::HostUp { .. } | RunEvent::HostFailed { .. } => self.show_launch(tally),
            RunEvent::StageStarted { stage, .. } if !self.stages.contains_key(stage) => {
                self.begin_stage(*stage, tally);
            }
            RunEvent::RoundFinished { stage, .. } => self.show_round(*stage, tally),
            RunEvent::StageFinished { stage } => self.end_stage(*stage, tally),
            RunEvent::Progress {
                bits_per_sec,
                hosts_alive,
                left_ns,
            } => {
                self.status
                    .set_message(progress(*bits_per_sec, *hosts_alive, *left_ns));
            }
            RunEvent::StorageStepStarted { .. } => {
                let began = storage::began(event);
                self.status.set_message(began.unwrap_or_default());
            }
            RunEvent::StorageProgress { operation, words } => {
                self.status.set_message(storage::goes(*operation, words));
            }
            RunEvent::StorageStepFinished(step) => self.status.set_message(storage::ended(step)),
            RunEvent::RunFinished { outcome: how, .. } => {
                self.abandon_stages();
                self.status
                    .finish_with_message(format!("run ended: {}", outcome(*how)));
            }
            _ => {}
        }
    }

    pub(super) fn finish(&mut self) {
        self.abandon_stages();
        if !self.launch.is_finished() {
            self.launch.abandon();
        }
        if !self.status.is_finished() {
            self.status.finish_and_clear();
        }
    }

    fn show_launch(&self, tally: &Tally) {
        self.launch.set_position(tally.up.len() as u64);
        let mut message = tally.launch_result();
        if !tally.failed.is_empty() {
            message.push_str(&format!(", {} failed", tally.failed.len()));
        }
        if tally.launch_is_over() {
            self.launch.abandon_with_message(message);
        } else {
            self.launch.set_message(message);
        }
    }

    fn begin_stage(&mut self, stage: StageIndex, tally: &Tally) {
        let rounds = tally.stage(stage).map_or(0, |s| s.rounds.len() as u64);
        let bar = ProgressBar::new(rounds).with_style(bar_style(self.color));
        let bar = self.all.insert_before(&self.status, bar);
        bar.set_prefix(tally.stage_name(stage));
        bar.set_message(tally.stage_size(stage));
        bar.tick();
        self.stages.insert(stage, bar);
    }

    fn show_round(&self, stage: StageIndex, tally: &Tally) {
        let Some(bar) = self.stages.get(&stage) else {
            return;
        };
        let done = tally.rounds_done(stage);
        // Repair rounds come on top of the planned ones.
        bar.set_length(bar.length().unwrap_or(0).max(done));
        bar.set_position(done);
        bar.set_message(tally.stage_result(stage));
    }

    fn end_stage(&mut self, stage: StageIndex, tally: &Tally) {
        if let Some(bar) = self.stages.remove(&stage) {
            bar.abandon_with_message(tally.stage_result(stage));
        }
    }

    fn abandon_stages(&mut self) {
        for bar in std::mem::take(&mut self.stages).into_values() {
            bar.abandon();
        }
    }
}

/// Without colour the same shapes; the numbers next to the bar are the same figure.
fn bar_style(color: bool) -> ProgressStyle {
    let bar = if color { "{bar:14.cyan/8}" } else { "{bar:14}" };
    ProgressStyle::with_template(&format!(
        "{{prefix:<18!}} {bar} {{pos:>4}}/{{len:<4}} {{wide_msg}}"
    ))
    .unwrap_or_else(|_| ProgressStyle::default_bar())
    .progress_chars("━╸─")
}

fn line_style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// A writer that understands the few ANSI movements the bars need (ECMA-48 CUU, CUD, CUF, CUB, EL).
struct Terminal<W> {
    out: Mutex<W>,
}

impl<W: Write> Terminal<W> {
    /// A writer that panicked elsewhere is still the only terminal there is.
    fn out(&self) -> MutexGuard<'_, W> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, n: usize, direction: char) -> io::Result<()> {
        if n == 0 {
            return Ok(());
        }
        write!(self.out(), "\x1b[{n}{direction}")
    }
}

impl<W> fmt::Debug for Terminal<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Terminal")
    }
}

impl<W: Write + Send> TermLike for Terminal<W> {
    fn width(&self) -> u16 {
        console::Term::stderr().size().1
    }

    fn height(&self) -> u16 {
        console::Term::stderr().size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.step(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.step(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.step(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.step(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(self.out(), "{text}")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.out().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        write!(self.out(), "\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        self.out().flush()
    }
}
