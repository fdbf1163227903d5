//! `--watch HOST`: what `eastwest top` shows, of one host of a run, while the run goes on.

use crate::exit::Failure;
use crate::full_screen::{self, Ended, Left, News};
use anyhow::anyhow;
use ew_model::telemetry::HostReading;
use ew_model::{HostId, Inventory, RunEvent};
use ew_sys::process::{Signal, kill_process};
use ew_top::{Observer, View};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Hosts named in an error.
const MAX_NAMED: usize = 8;
/// Without a full screen, a view is printed this often.
const TEXT_INTERVAL_NS: u64 = 5_000_000_000;
/// What a full screen buffers for the terminal at most: the newest stays.
const MAX_HELD_BYTES: usize = 256 << 10;

/// The host that is to be watched.
pub(crate) fn find(inventory: &Inventory, name: &str) -> Result<HostId, Failure> {
    let hosts = &inventory.hosts;
    let found = inventory.find(name);
    found.ok_or_else(|| {
        let named: Vec<&str> = hosts.iter().map(|h| h.name.as_str()).collect();
        let more = if named.len() > MAX_NAMED { ", ..." } else { "" };
        let named = named[..named.len().min(MAX_NAMED)].join(", ");
        Failure::usage(anyhow!(
            "--watch `{name}`: the run has no such host; it has {} ({named}{more})",
            hosts.len()
        ))
    })
}

/// Shows one host's readings.
pub(crate) struct Watch {
    host: HostId,
    name: String,
    observer: Observer,
    log: Log,
    screen: Option<FullScreen>,
    next_text_ns: u64,
}

impl Watch {
    /// On a full screen when stderr is a terminal that may be drawn on, else as text from time to
    /// time. What the run reports besides goes through `log`.
    pub(crate) fn start(host: HostId, name: String, log: Log, draws: bool) -> Self {
        Self {
            host,
            observer: Observer::new(),
            screen: draws.then(|| FullScreen::open(log.clone())),
            name,
            log,
            next_text_ns: 0,
        }
    }

    /// Takes one event; `at_ns` is the time since the run began.
    pub(crate) fn handle(&mut self, at_ns: u64, event: &RunEvent) {
        if let Some(screen) = &self.screen {
            let headline = format!("{} · {} · q leaves", self.name, self.log.last_line());
            screen.show(News::Headline(headline));
        }
        match event {
            RunEvent::HostRead { host, reading } if *host == self.host => {
                self.take(at_ns, reading.as_ref().clone());
            }
            _ => {}
        }
    }

    /// Gives the terminal back.
    pub(crate) fn finish(self) {
        if let Some(screen) = self.screen {
            screen.close();
        }
    }

    fn take(&mut self, at_ns: u64, reading: HostReading) {
        let Some(view) = self.observer.observe(reading) else {
            return;
        };
        match &self.screen {
            Some(screen) => screen.show(News::View(Box::new(view))),
            None => self.print(at_ns, &view),
        }
    }

    fn print(&mut self, at_ns: u64, view: &View) {
        if at_ns < self.next_text_ns {
            return;
        }
        self.next_text_ns = at_ns + TEXT_INTERVAL_NS;
        let seconds = at_ns as f64 / 1e9;
        let text = ew_top::text(view);
        // A closed stderr must not end a run.
        let _ = write!(self.log, "\n{} after {seconds:.1} s: {text}\n", self.name);
    }
}

/// The thread that draws and takes keys.
struct FullScreen {
    news: Sender<News>,
    ended: Ended,
    thread: JoinHandle<()>,
}

impl FullScreen {
    fn open(log: Log) -> Self {
        let (news, receiver) = channel();
        let ended = Ended::default();
        log.hold();
        let thread = {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || draw(&receiver, &ended, &log))
        };
        Self {
            news,
            ended,
            thread,
        }
    }

    fn show(&self, news: News) {
        // After `q` nobody listens any more.
        let _ = self.news.send(news);
    }

    fn close(self) {
        self.ended.store(true, std::sync::atomic::Ordering::Relaxed);
        drop(self.news);
        // A thread that panicked has given the terminal back, too.
        let _ = self.thread.join();
    }
}

fn draw(news: &Receiver<News>, ended: &Ended, log: &Log) {
    let left = full_screen::show(io::stderr(), news, ended);
    log.release();
    let was_asked = ended.load(std::sync::atomic::Ordering::Relaxed);
    if matches!(left, Ok(Left::Interrupt)) && !was_asked {
        // In raw mode Ctrl-C is a key; the run takes it as the signal it means.
        let _ = kill_process(std::process::id(), Signal::Interrupt);
    }
}

/// A run's lines on their way to stderr: kept while a full screen is there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    state: Arc<Mutex<LogState>>,
}

#[derive(Debug, Default)]
struct LogState {
    held: Option<Vec<u8>>,
    last_line: String,
    /// What of the next line has come.
    begun_line: String,
}

impl Log {
    fn hold(&self) {
        self.state().held = Some(Vec::new());
    }

    fn release(&self) {
        if let Some(held) = self.state().held.take() {
            // A closed stderr must not end a run.
            let _ = io::stderr().write_all(&held);
        }
    }

    fn last_line(&self) -> String {
        self.state().last_line.clone()
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.begun_line);
        if !line.trim().is_empty() {
            self.last_line = line.trim().to_owned();
        }
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state();
        let Some(held) = &mut state.held else {
            return io::stderr().write(bytes);
        };
        held.extend_from_slice(bytes);
        let excess = held.len().saturating_sub(MAX_HELD_BYTES);
        held.drain(..excess);
        for piece in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            state.begun_line.push_str(piece);
            if piece.ends_with('\n') {
                state.end_line();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::Host;

    #[test]
    fn unknown_hosts_are_named_with_those_there_are() {
        let mut inventory = Inventory::default();
        for number in 1..=9 {
            inventory.hosts.push(Host {
                name: format!("n{number}"),
                address: None,
                rack: None,
            });
        }
        assert_eq!(find(&inventory, "n2").unwrap(), HostId(1));
        let message = find(&inventory, "n22").unwrap_err().message();
        assert_eq!(
            message,
            "--watch `n22`: the run has no such host; it has 9 (n1, n2, n3, n4, n5, n6, n7, n8, ...)"
        );
    }

    #[test]
    fn what_is_held_back_is_bounded_and_its_last_line_known() {
        let mut log = Log::default();
        log.hold();
        for number in 0..20_000 {
            writeln!(log, "line number {number}").unwrap();
        }
        assert_eq!(log.last_line(), "line number 19999");
        let held = log.state().held.take().unwrap();
        assert!(held.len() <= MAX_HELD_BYTES && held.ends_with(b"19999\n"));
    }
}
