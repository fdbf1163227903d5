//! What a test reports, on the terminal or in a file.

use super::flags::{Iperf3Args, stamp};
use crate::exit::Failure;
use anyhow::Context;
use ew_iperf3::report::json::{self, StreamPart};
use ew_iperf3::report::text::{TextReport, TextStyle, listening};
use ew_iperf3::report::{Event, Observer, Report};
use ew_iperf3::server::Watcher;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How a test is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// One document at the end.
    Json,
    /// One object per event.
    JsonStream,
}

impl Form {
    fn of(args: &Iperf3Args) -> Self {
        match (args.json, args.json_stream) {
            (true, _) => Self::Json,
            (_, true) => Self::JsonStream,
            _ => Self::Text,
        }
    }
}

/// Where lines go: whole, however many tests run at once.
#[derive(Debug)]
pub(super) struct Console {
    file: Option<Mutex<File>>,
    form: Form,
    /// Before every line of text, see `--timestamps`.
    stamp: Option<String>,
    port: AtomicU16,
    /// Tests in progress.
    active: AtomicU64,
    /// Tests that have begun.
    begun: AtomicU64,
}

impl Console {
    pub(super) fn open(args: &Iperf3Args) -> Result<Self, Failure> {
        let file = match &args.logfile {
            None => None,
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file =
                    file.with_context(|| format!("unable to open log file {}", path.display()));
                Some(Mutex::new(file.map_err(Failure::usage)?))
            }
        };
        Ok(Self {
            file,
            form: Form::of(args),
            stamp: args.timestamps.clone(),
            port: AtomicU16::new(0),
            active: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        })
    }

    /// A server has its port.
    pub(super) fn listening(&self, port: u16) {
        self.port.store(port, Ordering::Relaxed);
        self.banner();
    }

    /// Between tests, not while one runs.
    fn banner(&self) {
        let port = self.port.load(Ordering::Relaxed);
        let idle = self.active.load(Ordering::Relaxed) == 0;
        if self.form == Form::Text && port > 0 && idle {
            let next = self.begun.load(Ordering::Relaxed) + 1;
            self.print(&listening(port, next));
        }
    }

    fn print(&self, text: &str) {
        match &self.stamp {
            Some(format) if self.form == Form::Text => {
                let now = stamp(format).unwrap_or_default();
                let stamped = text.lines().map(|line| format!("{now}{line}\n"));
                self.write(&stamped.collect::<String>());
            }
            _ => self.write(text),
        }
    }

    fn write(&self, text: &str) {
        // A reader that has gone away, or a full disk, does not end the test.
        let _ = match &self.file {
            Some(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.write_all(text.as_bytes()).and_then(|()| file.flush())
            }
            None => {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
        };
    }
}

/// Shows one test: line by line, or as one document at its end.
#[derive(Debug)]
pub(super) struct Shown {
    console: Arc<Console>,
    text: TextReport,
    report: Report,
    /// Of a server's client, from 1; 0 for a client of our own.
    number: u64,
}

impl Shown {
    pub(super) fn new(console: Arc<Console>, args: &Iperf3Args, number: u64) -> Self {
        Self::with_style(console, args.text_style(), number)
    }

    fn with_style(console: Arc<Console>, style: TextStyle, number: u64) -> Self {
        console.active.fetch_add(1, Ordering::Relaxed);
        console.begun.fetch_add(1, Ordering::Relaxed);
        Self {
            console,
            text: TextReport::new(style),
            report: Report::default(),
            number,
        }
    }

    /// Takes an event, and prints the line of what it brought.
    fn stream(&mut self, event: &Event) {
        let begun = self.report.head.is_some();
        self.report.observe(event);
        if !begun && self.report.head.is_some() {
            self.print_part(StreamPart::Start);
        }
        if !self.report.intervals.is_empty() {
            self.print_part(StreamPart::LastInterval);
            // A report keeps so many and no more.
            self.report.intervals.clear();
        }
    }

    fn print_part(&self, part: StreamPart) {
        if let Some(line) = json::line(&self.report, part) {
            self.console.print(&format!("{line}\n"));
        }
    }
}

impl Observer for Shown {
    fn observe(&mut self, event: &Event) {
        match self.console.form {
            Form::Json => return self.report.observe(event),
            Form::JsonStream => return self.stream(event),
            Form::Text => {}
        }
        // A client's failure is reported once, by whoever runs it.
        if self.number == 0 && matches!(event, Event::Failed(_)) {
            return;
        }
        let lines = self.text.lines(event);
        // Lines of tests that run at the same time show which they belong to.
        if self.console.active.load(Ordering::Relaxed) > 1 {
            let number = self.number;
            let marked = lines.lines().map(|line| format!("#{number} {line}\n"));
            self.console.print(&marked.collect::<String>());
        } else {
            self.console.print(&lines);
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.console.active.fetch_sub(1, Ordering::Relaxed);
        match self.console.form {
            Form::Json => {
                let document = json::document(&self.report);
                self.console.print(&format!("{document}\n"));
            }
            Form::JsonStream => {
                self.print_part(StreamPart::Error);
                self.print_part(StreamPart::End);
            }
            Form::Text if self.number > 0 => self.console.banner(),
            Form::Text => {}
        }
    }
}

/// Shows every client of a server.
#[derive(Debug)]
pub(super) struct ShownServer {
    console: Arc<Console>,
    style: TextStyle,
}

impl ShownServer {
    pub(super) fn new(console: Arc<Console>, args: &Iperf3Args) -> Self {
        Self {
            console,
            style: args.text_style(),
        }
    }
}

impl Watcher for ShownServer {
    fn session(&self, number: u64) -> Box<dyn Observer> {
        let console = Arc::clone(&self.console);
        let style = self.style.clone();
        Box::new(Shown::with_style(console, style, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_iperf3::report::Interval;

    #[test]
    fn a_stream_of_json_has_every_interval_and_keeps_none() {
        let path = std::env::temp_dir().join(format!("ew-json-stream-{}", std::process::id()));
        let console = Arc::new(Console {
            file: Some(Mutex::new(File::create(&path).unwrap())),
            form: Form::JsonStream,
            stamp: None,
            port: AtomicU16::new(0),
            active: AtomicU64::new(0),
            begun: AtomicU64::new(0),
        });
        let mut shown = Shown::with_style(console, TextStyle::default(), 0);
        for count in 1..=3 {
            shown.observe(&Event::Interval(Interval {
                omitted: false,
                streams: Vec::new(),
            }));
            let printed = std::fs::read_to_string(&path).unwrap();
            assert_eq!(printed.matches("\"event\":\"interval\"").count(), count);
            assert!(shown.report.intervals.is_empty());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
