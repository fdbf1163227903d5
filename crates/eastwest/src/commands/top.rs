//! `eastwest top`: this host, now.

use crate::exit::{Failure, Outcome};
use crate::full_screen::{self, Left, News};
use crate::output::{self, PlainArgs};
use clap::Args;
use ew_model::units;
use ew_sys::clock;
use ew_telemetry::HostReader;
use ew_top::Observer;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};

/// Shorter intervals would measure the clock ticks of the kernel, and this program.
const SHORTEST_INTERVAL_NS: u64 = 100_000_000;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Time between readings, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::parse_duration_ns)]
    interval: u64,
    /// Stop after this time; with --once, the length of the one interval
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    duration: Option<u64>,
    /// Print one interval and stop
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    plain: PlainArgs,
}

pub(crate) fn run(args: &TopArgs) -> Outcome {
    if args.interval < SHORTEST_INTERVAL_NS {
        return Err(Failure::usage(anyhow::anyhow!(
            "--interval {} is too short to measure anything; give at least 100ms",
            units::format_duration_ns(args.interval)
        )));
    }
    let schedule = Schedule::new(args);
    let views = spawn_reader(schedule);
    let is_terminal = std::io::stdout().is_terminal() && output::can_move_cursor();
    let full_screen = !args.once && !args.plain.is_json() && is_terminal;
    if full_screen {
        return watch(&views);
    }
    print_all(&views, args.plain.is_json())
}

/// When to read, on the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    interval_ns: u64,
    readings: Option<u64>,
}

impl Schedule {
    fn new(args: &TopArgs) -> Self {
        if args.once {
            let interval_ns = args
                .duration
                .unwrap_or(args.interval)
                .max(SHORTEST_INTERVAL_NS);
            return Self {
                interval_ns,
                readings: Some(1),
            };
        }
        Self {
            interval_ns: args.interval,
            // Whole intervals, and at least one.
            readings: args.duration.map(|time| (time / args.interval).max(1)),
        }
    }
}

/// Reads on a thread of its own, so that keys and slow terminals make no reading late. Ends with
/// the receiver.
fn spawn_reader(schedule: Schedule) -> Receiver<News> {
    let (sender, receiver) = mpsc::sync_channel(4);
    std::thread::spawn(move || {
        ew_sys::thread::use_exact_timers();
        let mut reader = HostReader::new(Path::new("/"));
        let mut observer = Observer::new();
        let mut due_ns = clock::monotonic_ns();
        observer.observe(reader.read(due_ns));
        let mut left = schedule.readings;
        while left != Some(0) {
            // A late reading does not shift the schedule, and missed ones are skipped, not made up.
            due_ns = (due_ns + schedule.interval_ns).max(clock::monotonic_ns());
            clock::sleep_until_ns(due_ns);
            let view = observer.observe(reader.read(due_ns));
            if view.is_some_and(|view| sender.send(News::View(Box::new(view))).is_err()) {
                return;
            }
            left = left.map(|left| left - 1);
        }
    });
    receiver
}

/// Until the readings end or nobody reads on (`| head`).
fn print_all(news: &Receiver<News>, json: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    let views = news.iter().filter_map(|news| match news {
        News::View(view) => Some(view),
        News::Headline(_) => None,
    });
    for (index, view) in views.enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let text = if json {
            format!(
                "{}\n",
                serde_json::to_string(&view).map_err(Failure::failed)?
            )
        } else {
            format!("{gap}{}", ew_top::text(&view))
        };
        if out
            .write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .is_err()
        {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Until a key ends it, a signal, or the readings do.
fn watch(views: &Receiver<News>) -> Outcome {
    let ended = full_screen::listen_for_signals().map_err(Failure::failed)?;
    let left = full_screen::show(std::io::stdout(), views, &ended).map_err(Failure::failed)?;
    if left == Left::Interrupt && ended.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    Ok(ExitCode::SUCCESS)
}
