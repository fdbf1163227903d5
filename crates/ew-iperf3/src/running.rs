//! The time between "running" and the end, the same for both roles: intervals, the omitted time,
//! what ends it.

use crate::control::{Control, Heard};
use crate::error::Error;
use crate::goal::Goal;
use crate::meter::Meter;
use crate::report::{Event, Interval, Observer};
use crate::stream::{EndOptions, Stream, Work};
use crate::wire::params::Params;
use crate::wire::results::CpuPercent;
use crate::wire::state::State;
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{Interest, wait_ready};
use ew_sys::thread::{CpuTimes, cpu_times, prefer_scheduling};
use ew_sys::transfer::unacknowledged_bytes;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// Senders that are not stuck end within this time of the order.
const SENDERS_END_NS: u64 = 5_000_000;
/// A peer's kernel has the end of a file within this time, and the peer has read it after another.
const FILE_ARRIVES_NS: u64 = 5 * SECOND_NS;
const FILE_IS_READ: Duration = Duration::from_millis(200);
/// Threads are ready within this time, or start late.
const READY: Duration = Duration::from_secs(10);
/// A last interval shorter than this share of the others is skipped when nothing was moved in it.
const SHORT_INTERVAL: f64 = 0.1;

/// What ended it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The time is over, or all is sent.
    Reached,
    /// The peer sends something.
    State(State),
    /// Stopped from outside.
    Interrupted,
    /// Nothing was received for too long.
    Idle,
}

/// The limits of one end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Between reports; 0 is never.
    pub(crate) interval_ns: u64,
    /// How long it takes at most, with the omitted time.
    pub(crate) lasts_ns: Option<u64>,
    /// How long receivers may hear nothing.
    pub(crate) idle_ns: u64,
    /// Whether this end decides that all is through.
    pub(crate) ends_at_goal: bool,
}

/// A test in progress, at one end.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) streams: Vec<Stream>,
    pub(crate) work: Work,
    meter: Option<Meter>,
    leader_cpu: CpuTimes,
}

impl Running {
    pub(crate) fn new(params: Params, goal: Goal, options: EndOptions, is_client: bool) -> Self {
        Self {
            streams: Vec::new(),
            work: Work::new(params, goal, options, is_client),
            meter: None,
            leader_cpu: cpu_times(),
        }
    }

    /// Takes the streams, and gets their threads ready.
    pub(crate) fn prepare(&mut self, streams: Vec<Stream>) -> Result<(), Error> {
        self.streams = streams;
        for stream in &mut self.streams {
            stream.start(&self.work).map_err(Error::Init)?;
        }
        let lost = || {
            self.streams
                .iter()
                .filter(|stream| stream.is_over())
                .count()
        };
        self.work.gate.await_ready(self.streams.len(), READY, lost);
        Ok(())
    }

    /// Lets the streams go and watches them until something ends it.
    pub(crate) fn run(
        &mut self,
        control: &Control<'_>,
        bounds: Bounds,
        observer: &mut dyn Observer,
    ) -> Result<Ending, Error> {
        let params = Arc::clone(&self.work.params);
        let now_ns = monotonic_ns();
        let omits = params.omit_s > 0;
        let meter = Meter::new(params.protocol, self.streams.len(), omits, now_ns);
        let meter = self.meter.insert(meter);
        if !omits {
            self.work.goal.arm();
        }
        // This thread seldom runs, but it ends the test. The streams' threads are
        // started already.
        prefer_scheduling();
        self.work.gate.open();
        let mut watch = Watch {
            streams: &self.streams,
            goal: &self.work.goal,
            meter,
            observer,
            bounds,
            end_ns: bounds
                .lasts_ns
                .map(|lasts_ns| now_ns.saturating_add(lasts_ns)),
            next_ns: next_interval(now_ns, bounds),
            omitted_until_ns: omits.then(|| now_ns + u64::from(params.omit_s) * SECOND_NS),
            heard_ns: now_ns,
            heard_bytes: 0,
        };
        let ending = watch.until_the_end(control);
        self.stop_senders();
        ending
    }

    /// The last interval, up to the end (CLOCK_MONOTONIC).
    pub(crate) fn last_interval(
        &mut self,
        end_ns: u64,
        bounds: Bounds,
        observer: &mut dyn Observer,
    ) {
        let Some(meter) = &mut self.meter else {
            return;
        };
        let news = meter.has_news(&self.streams);
        let interval = meter.interval(&self.streams, end_ns.max(meter.start_ns()));
        let shown = bounds.interval_ns > 0 && (news || is_long(&interval, bounds));
        if shown {
            observer.observe(&Event::Interval(interval));
        }
    }

    /// Orders all threads to end, and waits for them.
    pub(crate) fn stop(&mut self) {
        self.work.stop_senders.store(true, Ordering::Relaxed);
        self.work.stop_receivers.store(true, Ordering::Relaxed);
        self.work.gate.open();
        for stream in &self.streams {
            // Wakes a thread that waits for its socket.
            let _ = stream.socket.shutdown(std::net::Shutdown::Both);
        }
        for stream in &mut self.streams {
            stream.join();
        }
    }

    /// Whether something has come that no receiver has taken yet.
    pub(crate) fn has_unread(&self) -> bool {
        let receivers = self.streams.iter().filter(|s| !s.sends && !s.is_over());
        let interests: Vec<_> = receivers
            .map(|stream| Interest {
                fd: stream.socket.as_fd(),
                write: false,
            })
            .collect();
        let ready = wait_ready(&interests, Duration::ZERO).unwrap_or_default();
        ready.contains(&true)
    }

    /// At the end of a file: gives the peer time to take all of it. iperf3's servers drop what they
    /// have not read when the client ends the test.
    pub(crate) fn let_file_arrive(&self) {
        if !self.work.sends_file() {
            return;
        }
        let deadline_ns = monotonic_ns() + FILE_ARRIVES_NS;
        let is_under_way = |stream: &Stream| {
            stream.sends && unacknowledged_bytes(&*stream.socket).is_ok_and(|bytes| bytes > 0)
        };
        while self.streams.iter().any(is_under_way) && monotonic_ns() < deadline_ns {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(FILE_IS_READ);
    }

    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    /// CPU of the finished threads and of the calling one, since the test began.
    pub(crate) fn cpu(&self) -> CpuPercent {
        let began_ns = self.meter.as_ref().map_or(0, Meter::began_ns);
        let wall_ns = monotonic_ns().saturating_sub(began_ns).max(1) as f64;
        let now = cpu_times();
        let mut user_ns = now.user_ns.saturating_sub(self.leader_cpu.user_ns);
        let mut system_ns = now.system_ns.saturating_sub(self.leader_cpu.system_ns);
        for stream in &self.streams {
            let (user, system) = stream.cpu_ns();
            user_ns += user;
            system_ns += system;
        }
        let percent = |ns: u64| ns as f64 * 100.0 / wall_ns;
        CpuPercent {
            total: percent(user_ns + system_ns),
            user: percent(user_ns),
            system: percent(system_ns),
        }
    }

    fn stop_senders(&self) {
        self.work.stop_senders.store(true, Ordering::Relaxed);
        let deadline_ns = monotonic_ns() + SENDERS_END_NS;
        let is_sending = |stream: &Stream| stream.sends && !stream.is_over();
        while self.streams.iter().any(is_sending) && monotonic_ns() < deadline_ns {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Watch<'run> {
    streams: &'run [Stream],
    goal: &'run Goal,
    meter: &'run mut Meter,
    observer: &'run mut dyn Observer,
    bounds: Bounds,
    end_ns: Option<u64>,
    next_ns: u64,
    omitted_until_ns: Option<u64>,
    heard_ns: u64,
    heard_bytes: u64,
}

impl Watch<'_> {
    fn until_the_end(&mut self, control: &Control<'_>) -> Result<Ending, Error> {
        loop {
            let wake_ns = [Some(self.next_ns), self.omitted_until_ns, self.end_ns];
            let wake_ns = wake_ns.into_iter().flatten().min().unwrap_or(u64::MAX);
            match control.hear(wake_ns, Some(self.goal.bell()))? {
                Heard::State(state) => return Ok(Ending::State(state)),
                Heard::Stopped => return Ok(Ending::Interrupted),
                Heard::Other => self.goal.silence(),
                Heard::Nothing => {}
            }
            self.check_streams()?;
            if self.bounds.ends_at_goal && self.goal.reached_ns().is_some() {
                return Ok(Ending::Reached);
            }
            let now_ns = monotonic_ns();
            if self.end_ns.is_some_and(|end_ns| end_ns <= now_ns) {
                return Ok(Ending::Reached);
            }
            self.report(now_ns);
            if self.is_idle(now_ns) {
                return Ok(Ending::Idle);
            }
        }
    }

    fn check_streams(&self) -> Result<(), Error> {
        for stream in self.streams {
            if let Some(error) = stream.take_failure() {
                let verb = if stream.sends {
                    "write to"
                } else {
                    "read from"
                };
                let error = error.to_string();
                return Err(Error::Stream { verb, error });
            }
        }
        Ok(())
    }

    fn report(&mut self, now_ns: u64) {
        let omission_ends = self.omitted_until_ns.is_some_and(|until| until <= now_ns);
        if !omission_ends && now_ns < self.next_ns {
            return;
        }
        let interval = self.meter.interval(self.streams, now_ns);
        if is_long(&interval, self.bounds) {
            self.observer.observe(&Event::Interval(interval));
        }
        if omission_ends {
            self.omitted_until_ns = None;
            self.meter.end_omission();
            self.goal.arm();
            self.next_ns = now_ns;
        }
        while self.next_ns <= now_ns {
            self.next_ns = next_interval(self.next_ns, self.bounds);
        }
    }

    fn is_idle(&mut self, now_ns: u64) -> bool {
        let bytes = Meter::moved_bytes(self.streams);
        if bytes != self.heard_bytes {
            (self.heard_bytes, self.heard_ns) = (bytes, now_ns);
        }
        now_ns - self.heard_ns > self.bounds.idle_ns
    }
}

fn next_interval(from_ns: u64, bounds: Bounds) -> u64 {
    match bounds.interval_ns {
        // Silence is still detected.
        0 => from_ns.saturating_add(SECOND_NS),
        interval_ns => from_ns.saturating_add(interval_ns),
    }
}

fn is_long(interval: &Interval, bounds: Bounds) -> bool {
    let duration_s = interval
        .streams
        .first()
        .map_or(0.0, |s| s.figures.duration_s());
    bounds.interval_ns > 0 && duration_s >= SHORT_INTERVAL * bounds.interval_ns as f64 / 1e9
}
