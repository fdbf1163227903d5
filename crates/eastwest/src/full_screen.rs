//! A terminal taken over as a whole, and given back whatever ends it: a key, the news, or a signal.

use ew_top::{Screen, View, Wish};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long a key or a signal may wait for the screen.
const KEY_WAIT: Duration = Duration::from_millis(50);

/// What the screen is to show.
#[derive(Debug)]
pub(crate) enum News {
    View(Box<View>),
    Headline(String),
}

/// Why the screen was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The key for it.
    Quit,
    /// Ctrl-C, which on a terminal in raw mode is a key, or a signal.
    Interrupt,
    /// There is no more news.
    NoMoreNews,
}

/// Set when the process is asked to end: without this, a signal would leave the terminal as it is.
pub(crate) type Ended = Arc<AtomicBool>;

/// From now on SIGTERM, SIGHUP and SIGINT do not end the process, but are reported.
pub(crate) fn listen_for_signals() -> io::Result<Ended> {
    let ended = Ended::default();
    let reported = Arc::clone(&ended);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = {
        let _inside = runtime.enter();
        [
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::interrupt())?,
        ]
    };
    std::thread::spawn(move || {
        let [terminate, hangup, interrupt] = &mut signals;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        reported.store(true, Ordering::Relaxed);
    });
    Ok(ended)
}

/// Shows the news on the terminal behind `out` until something ends it.
pub(crate) fn show<W: Write>(
    out: W,
    news: &Receiver<News>,
    ended: &AtomicBool,
) -> io::Result<Left> {
    let mut taken = Taken::over(out)?;
    let mut screen = Screen::new();
    taken.terminal.draw(|frame| screen.draw(frame))?;
    loop {
        let mut changed = false;
        match news.recv_timeout(KEY_WAIT) {
            Ok(News::View(view)) => {
                screen.update(*view);
                changed = true;
            }
            Ok(News::Headline(line)) => {
                screen.set_headline(line);
                changed = true;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Left::NoMoreNews),
        }
        if ended.load(Ordering::Relaxed) {
            return Ok(Left::Interrupt);
        }
        while event::poll(Duration::ZERO)? {
            changed = true;
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Release => {}
                Event::Key(key) if is_interrupt(key) => return Ok(Left::Interrupt),
                Event::Key(key) if screen.press(key) == Wish::Quit => return Ok(Left::Quit),
                _ => {}
            }
        }
        if changed {
            taken.terminal.draw(|frame| screen.draw(frame))?;
        }
    }
}

fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// A terminal in raw mode on its alternate screen; dropping it gives it back.
struct Taken<W: Write> {
    terminal: Terminal<CrosstermBackend<W>>,
}

impl<W: Write> Taken<W> {
    fn over(mut out: W) -> io::Result<Self> {
        enable_raw_mode()?;
        let entered = execute!(out, EnterAlternateScreen)
            .and_then(|()| Terminal::new(CrosstermBackend::new(out)));
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                let _ = disable_raw_mode();
                Err(error)
            }
        }
    }
}

impl<W: Write> Drop for Taken<W> {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen);
        let _ = self.terminal.show_cursor();
        let _ = disable_raw_mode();
    }
}
