//! The live view of a run: bars on a terminal, plain lines elsewhere, a page in a browser.
//!
//! Time is an argument; the view has no clock. What it shows of the run is what is in [`RunEvent`].

mod bars;
mod lines;
mod state;
mod storage;
mod tally;

pub use state::{LiveState, finished_json};

use bars::Bars;
use ew_model::RunEvent;
use lines::Lines;
use std::fmt;
use std::io::Write;
use tally::Tally;

/// Shows a run's events as they happen, usually on stderr.
///
/// On a terminal: launch progress, one bar per stage, the rate now, hosts alive and the time left.
/// Elsewhere: lines with the time since the start, at most one per stage and 10 s besides starts,
/// ends and failures; where agents show how single flows go, one line for each they report. Quiet:
/// only what went wrong. Errors of the writer are ignored: a closed stderr must not end a run.
pub struct Live<W: Write> {
    tally: Tally,
    view: View<W>,
}

enum View<W: Write> {
    Bars(Bars),
    Lines(Lines<W>),
}

impl<W: Write + Send + 'static> Live<W> {
    /// A view that writes to `out`. `bars`: whether bars can be drawn there and are wanted,
    /// `color` whether to colour (no meaning rests on colour alone), `quiet` shows only failures,
    /// losses and warnings.
    pub fn new(out: W, bars: bool, color: bool, quiet: bool) -> Self {
        let view = if bars && !quiet {
            View::Bars(Bars::new(out, color))
        } else {
            View::Lines(Lines::new(out, quiet))
        };
        Self {
            tally: Tally::default(),
            view,
        }
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub fn handle(&mut self, at_ns: u64, event: &RunEvent) {
        self.tally.take(event);
        match &mut self.view {
            View::Bars(bars) => bars.show(at_ns, event, &self.tally),
            View::Lines(lines) => lines.show(at_ns, event, &self.tally),
        }
    }

    /// Leaves the terminal in order: the bars that ended stay, the others go. To be called once,
    /// before anything else writes there; later events are still shown as lines.
    pub fn finish(&mut self) {
        match &mut self.view {
            View::Bars(bars) => bars.finish(),
            View::Lines(lines) => lines.flush(),
        }
    }
}

impl<W: Write> fmt::Debug for Live<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}
