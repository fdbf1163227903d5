//! Where readings come from: this host, agents on others, or a file of before.

use super::record::{self, Record};
use crate::exit::Failure;
use crate::fleet::FleetArgs;
use crate::hosts::HostArgs;
use crate::runtime::block_on;
use ew_controller::Watched;
use ew_fleet::Launcher;
use ew_model::Inventory;
use ew_model::telemetry::HostReading;
use ew_sys::clock;
use ew_telemetry::HostReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// Readings that may wait to be shown.
const MAX_WAITING: usize = 64;

/// One thing that was seen of a host.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) host: String,
    pub(super) what: Watched,
}

/// A thread that reads, until nobody receives any more or all is read.
pub(super) struct Source {
    pub(super) hosts: Vec<String>,
    pub(super) seen: Receiver<Seen>,
    pub(super) thread: JoinHandle<Result<(), Failure>>,
    /// Agents are to be taken down; other sources may end with the process.
    pub(super) must_end: bool,
}

impl Source {
    fn spawn(
        hosts: Vec<String>,
        read: impl FnOnce(&Sink) -> Result<(), Failure> + Send + 'static,
        record: Option<Record>,
    ) -> Self {
        let (sender, seen) = mpsc::sync_channel(MAX_WAITING);
        let sink = Sink { sender, record };
        Self {
            hosts,
            seen,
            thread: std::thread::spawn(move || read(&sink)),
            must_end: false,
        }
    }

    /// After nobody receives any more.
    pub(super) fn finish(
        thread: JoinHandle<Result<(), Failure>>,
        must_end: bool,
    ) -> Result<(), Failure> {
        match must_end || thread.is_finished() {
            // A panic has its own message on stderr.
            true => thread.join().unwrap_or(Ok(())),
            false => Ok(()),
        }
    }

    /// This host's counters, read on a thread of their own, so that keys and slow terminals make no
    /// reading late. Without a count, for ever.
    pub(super) fn here(interval_ns: u64, readings: Option<u64>, record: Option<Record>) -> Self {
        let name = own_name();
        let hosts = vec![name.clone()];
        let read = move |sink: &Sink| {
            ew_sys::thread::use_exact_timers();
            let mut reader = HostReader::new(Path::new("/"));
            let mut due_ns = clock::monotonic_ns();
            let mut left = readings.map(|intervals| intervals + 1);
            while left != Some(0) && sink.reading(&name, reader.read(due_ns))? {
                left = left.map(|left| left - 1);
                if left != Some(0) {
                    // A late reading does not shift the schedule, and missed ones are skipped, not
                    // made up.
                    due_ns = (due_ns + interval_ns).max(clock::monotonic_ns());
                    clock::sleep_until_ns(due_ns);
                }
            }
            Ok(())
        };
        Self::spawn(hosts, read, record)
    }

    /// Agents' readings, one a second and host.
    pub(super) fn fleet(
        hosts: &HostArgs,
        fleet: &FleetArgs,
        limit_ns: Option<u64>,
        record: Option<Record>,
    ) -> Result<Self, Failure> {
        let (inventory, launcher) = who(hosts, fleet)?;
        let names = inventory.hosts.iter().map(|host| host.name.clone());
        let names: Vec<String> = names.collect();
        let mut options = fleet.options();
        options.network = hosts.network()?;
        let limit = limit_ns.map(Duration::from_nanos);
        let read = move |sink: &Sink| {
            let mut failure = None;
            let watched = block_on(async {
                let take = |host, what| {
                    let handed_on = sink.hand_on(inventory.name(host), what);
                    handed_on.unwrap_or_else(|error| {
                        failure = Some(error);
                        false
                    })
                };
                let watched = ew_controller::watch(&inventory, launcher, options, limit, take);
                watched.await.map_err(failure_of)
            });
            failure.map_or(watched, Err)
        };
        Ok(Self {
            must_end: true,
            ..Self::spawn(names, read, record)
        })
    }

    /// A file's readings, as fast as they were taken, or at once.
    pub(super) fn file(file: &Path, paced: bool) -> Result<Self, Failure> {
        let hosts = record::hosts_in(file)?;
        let file: PathBuf = file.to_owned();
        let read = move |sink: &Sink| {
            let mut shift_ns: Option<i128> = None;
            for line in record::lines_of(&file)? {
                let (host, reading) = line?;
                let taken_ns = i128::from(reading.realtime_ns);
                let now_ns = i128::from(clock::monotonic_ns());
                let due_ns = taken_ns + *shift_ns.get_or_insert(now_ns - taken_ns);
                if paced && due_ns > now_ns {
                    clock::sleep_until_ns(due_ns as u64);
                }
                if !sink.reading(&host, reading)? {
                    break;
                }
            }
            Ok(())
        };
        Ok(Self::spawn(hosts, read, None))
    }
}

/// Where a source's readings go.
struct Sink {
    sender: SyncSender<Seen>,
    record: Option<Record>,
}

impl Sink {
    fn reading(&self, host: &str, reading: HostReading) -> Result<bool, Failure> {
        self.hand_on(host, Watched::Reading(Box::new(reading)))
    }

    /// Whether the receiver is still there.
    fn hand_on(&self, host: &str, what: Watched) -> Result<bool, Failure> {
        if let (Some(record), Watched::Reading(reading)) = (&self.record, &what) {
            record.write(host, reading)?;
        }
        let host = host.to_owned();
        Ok(self.sender.send(Seen { host, what }).is_ok())
    }
}

fn who(hosts: &HostArgs, fleet: &FleetArgs) -> Result<(Inventory, Arc<dyn Launcher>), Failure> {
    let lab = fleet.attach_lab()?.map(Arc::new);
    let mut roster = hosts.roster(fleet, lab.as_deref(), &[], None)?;
    let launcher = fleet.launcher(lab, &roster)?;
    block_on(hosts.resolve(&mut roster, fleet))?;
    Ok((roster.inventory, launcher))
}

fn failure_of(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Interrupted => Failure::Interrupted,
        _ => Failure::failed(error),
    }
}

fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "this host".into(), |name| name.trim().to_owned())
}
