//! `eastwest top`: this host, or others, now; or as they were.

mod intervals;
mod record;
mod source;
mod table;

use crate::exit::{Failure, Outcome};
use crate::fleet::FleetArgs;
use crate::full_screen::{self, Left, News};
use crate::hosts::HostArgs;
use crate::output::{self, PlainArgs};
use anyhow::anyhow;
use clap::Args;
use ew_controller::Watched;
use ew_model::units;
use ew_top::View;
use intervals::Intervals;
use record::Record;
use source::{Seen, Source};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use table::Table;

/// Shorter intervals would measure the clock ticks of the kernel, and this program.
const SHORTEST_INTERVAL_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// To the upper left corner, and nothing below (ECMA-48: CUP, ED).
const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Hosts to show, by agents that read once a second: one like this host, several with a line
    /// each, the worst first [default: this host]
    #[arg(value_name = "HOST")]
    at: Vec<String>,
    /// Time between readings of this host, at least 100ms [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    interval: Option<u64>,
    /// Stop after this time; with --once, the length of the one interval
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_ns)]
    duration: Option<u64>,
    /// Print one interval and stop
    #[arg(long)]
    once: bool,
    /// Write every reading to a new file, for --replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show a recorded file: on a terminal as fast as it was recorded, else at once
    #[arg(long, value_name = "FILE", conflicts_with_all = ["at", "record", "interval", "duration", "hosts", "group", "racks", "cluster", "hosts_file"])]
    replay: Option<PathBuf>,
    #[command(flatten)]
    plain: PlainArgs,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    fleet: FleetArgs,
}

pub(crate) fn run(mut args: TopArgs) -> Outcome {
    args.hosts.add(std::mem::take(&mut args.at));
    let is_terminal = std::io::stdout().is_terminal() && output::can_move_cursor();
    let draws = !args.once && !args.plain.is_json() && is_terminal;
    let source = source(&args, draws)?;
    if source.hosts.len() > 1 {
        return show_many(source, &args, draws);
    }
    let host = source.hosts.first().cloned().unwrap_or_default();
    let views = views(source, host, args.once);
    match draws {
        true => watch(views),
        false => print_all(views, args.plain.is_json()),
    }
}

fn source(args: &TopArgs, draws: bool) -> Result<Source, Failure> {
    if let Some(file) = &args.replay {
        return Source::file(file, draws);
    }
    let is_elsewhere = args.hosts.names_any(&[]) || args.fleet.attach_lab()?.is_some();
    check_interval(args, is_elsewhere)?;
    let record = args.record.as_deref().map(Record::create).transpose()?;
    if is_elsewhere {
        // The first reading begins the first interval.
        let once_ns = args.duration.unwrap_or(SECOND_NS) + SECOND_NS;
        let limit_ns = if args.once {
            Some(once_ns)
        } else {
            args.duration
        };
        return Source::fleet(&args.hosts, &args.fleet, limit_ns, record);
    }
    let (interval_ns, readings) = schedule(args);
    Ok(Source::here(interval_ns, readings, record))
}

fn check_interval(args: &TopArgs, is_elsewhere: bool) -> Result<(), Failure> {
    match args.interval {
        Some(_) if is_elsewhere => Err(Failure::usage(anyhow!(
            "--interval is for this host; agents read once a second: leave it out"
        ))),
        Some(short) if short < SHORTEST_INTERVAL_NS => Err(Failure::usage(anyhow!(
            "--interval {} is too short to measure anything; give at least 100ms",
            units::format_duration_ns(short)
        ))),
        _ => Ok(()),
    }
}

/// The interval, and how many; without an end for ever.
fn schedule(args: &TopArgs) -> (u64, Option<u64>) {
    let interval_ns = args.interval.unwrap_or(SECOND_NS);
    if args.once {
        let interval_ns = args.duration.unwrap_or(interval_ns);
        return (interval_ns.max(SHORTEST_INTERVAL_NS), Some(1));
    }
    // Whole intervals, and at least one.
    let intervals = args.duration.map(|time| (time / interval_ns).max(1));
    (interval_ns, intervals)
}

/// One host's views.
struct Views {
    news: Receiver<News>,
    /// What the source ended with.
    ended: JoinHandle<Result<(), Failure>>,
    must_end: bool,
}

/// With `once`, the interval from the first reading to the last.
fn views(source: Source, host: String, once: bool) -> Views {
    let (sender, news) = mpsc::sync_channel(4);
    let must_end = source.must_end;
    let ended = std::thread::spawn(move || {
        let mut intervals = Intervals::new(once);
        let send = |view| sender.send(News::View(Box::new(view)));
        for Seen { what, .. } in &source.seen {
            let view = match what {
                Watched::Reading(reading) => intervals.take(&host, reading),
                Watched::Down(why) => return Err(Failure::failed(anyhow!("{host}: {why}"))),
            };
            if view.is_some_and(|view| send(view).is_err()) {
                break;
            }
        }
        // Without a receiver the views are of no use.
        let _ = intervals
            .finish()
            .into_iter()
            .try_for_each(|(_, view)| send(view));
        drop(source.seen);
        Source::finish(source.thread, must_end)
    });
    Views {
        news,
        ended,
        must_end,
    }
}

impl Views {
    fn finish(self) -> Result<(), Failure> {
        drop(self.news);
        Source::finish(self.ended, self.must_end)
    }
}

/// Until the readings end or nobody reads on (`| head`).
fn print_all(views: Views, json: bool) -> Outcome {
    let mut out = std::io::stdout().lock();
    let shown = views.news.iter().filter_map(|news| match news {
        News::View(view) => Some(view),
        News::Headline(_) => None,
    });
    for (index, view) in shown.enumerate() {
        let gap = if index > 0 { "\n" } else { "" };
        let text = match json {
            true => in_json(&view, None)?,
            false => format!("{gap}{}", ew_top::text(&view)),
        };
        if !is_written(&mut out, &text) {
            break;
        }
    }
    views.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn is_written(out: &mut impl Write, text: &str) -> bool {
    let written = out.write_all(text.as_bytes());
    written.and_then(|()| out.flush()).is_ok()
}

/// One line; of several hosts with the name of one.
fn in_json(view: &View, host: Option<&str>) -> Result<String, Failure> {
    let mut document = serde_json::to_value(view).map_err(Failure::failed)?;
    if let (Some(host), Some(fields)) = (host, document.as_object_mut()) {
        fields.insert("host".into(), host.into());
    }
    Ok(format!("{document}\n"))
}

/// Until a key ends it, a signal, or the readings do.
fn watch(views: Views) -> Outcome {
    let ended = full_screen::listen_for_signals().map_err(Failure::failed)?;
    let left =
        full_screen::show(std::io::stdout(), &views.news, &ended).map_err(Failure::failed)?;
    let finished = views.finish();
    if left == Left::Interrupt && ended.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    finished.map(|()| ExitCode::SUCCESS)
}

/// Several hosts: a table once a second, or a document for each of their views.
fn show_many(source: Source, args: &TopArgs, draws: bool) -> Outcome {
    let mut intervals = Intervals::new(args.once);
    let mut shown = Shown {
        out: std::io::stdout().lock(),
        table: Table::new(&source.hosts),
        json: args.plain.is_json(),
        draws,
        tables: 0,
        any_down: false,
    };
    for Seen { host, what } in &source.seen {
        let goes_on = match what {
            Watched::Reading(reading) => match intervals.take(&host, reading) {
                Some(view) => shown.view(host, view)?,
                None => true,
            },
            Watched::Down(why) => shown.down(host, why),
        };
        if !goes_on || (!args.once && shown.table.is_due() && !shown.print_table()) {
            break;
        }
    }
    for (host, view) in intervals.finish() {
        shown.view(host, view)?;
    }
    if args.once {
        shown.print_table();
    }
    let any_down = shown.any_down;
    drop(source.seen);
    Source::finish(source.thread, source.must_end)?;
    Ok(match any_down {
        true => ExitCode::from(crate::exit::PARTIAL),
        false => ExitCode::SUCCESS,
    })
}

/// Several hosts on standard output. Each function returns whether somebody reads on.
struct Shown<W> {
    out: W,
    table: Table,
    json: bool,
    draws: bool,
    tables: u64,
    any_down: bool,
}

impl<W: Write> Shown<W> {
    fn view(&mut self, host: String, view: View) -> Result<bool, Failure> {
        if self.json {
            return Ok(is_written(&mut self.out, &in_json(&view, Some(&host))?));
        }
        self.table.update(host, view);
        Ok(true)
    }

    fn down(&mut self, host: String, why: String) -> bool {
        self.any_down = true;
        if self.json {
            let document = serde_json::json!({ "host": host, "down": why });
            return is_written(&mut self.out, &format!("{document}\n"));
        }
        self.table.lose(host, why);
        true
    }

    fn print_table(&mut self) -> bool {
        if self.json {
            return true;
        }
        let before = match (self.draws, self.tables) {
            (true, _) => CLEAR_SCREEN,
            (false, 0) => "",
            (false, _) => "\n",
        };
        self.tables += 1;
        let text = format!("{before}{}", self.table.text());
        is_written(&mut self.out, &text)
    }
}
