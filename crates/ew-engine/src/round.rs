//! One round: its supervisor thread from registration to report.

use crate::Done;
use crate::acceptor::AcceptorShared;
use crate::arrivals::Arrival;
use crate::clock_wait::Cancel;
use crate::connect::{Opener, Opening};
use crate::error::EngineError;
use crate::hello::{Hello, StreamKey};
use crate::lane::{Lane, Ledger};
use crate::registry;
use crate::report;
use crate::settings::Settings;
use crate::stream::Stream;
use crate::tally::Tally;
use crate::window::{FlowWindow, observe};
use crate::worker::{Worker, start_thread};
use crate::workload::{self, Prepared, Seat};
use ew_model::workload::Workload;
use ew_proto::message::{FlowOrder, FlowReport, Role, RunToken};
use ew_proto::round::RoundSpec;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Streams go on for this long after the window: the peer's window may end a little later, and a peer short of CPU reads its
/// counters late, which is harmless while data still flows.
const AFTER_WINDOW_NS: u64 = 20_000_000;
/// How long to wait for stream threads that were told to stop.
const STOP_PATIENCE_NS: u64 = 150_000_000;
const STOP_POLL_NS: u64 = 500_000;
const MAX_STREAMS: usize = 16_384;
const MAX_MESSAGE_BYTES: u64 = 64 * 1024 * 1024;
const LEAST_INTERVAL_NS: u64 = 1_000_000;
/// Within this time after the start all senders make their first send, and none loads the network.
const FIRST_SENDS_NS: u64 = 2_000_000;

/// What the engine lends to a round.
#[derive(Debug)]
pub(crate) struct RoundHost {
    pub(crate) address: IpAddr,
    pub(crate) token: RunToken,
    pub(crate) acceptor: Arc<AcceptorShared>,
    pub(crate) ledger: Arc<Ledger>,
}

/// What a round and all its threads share.
pub(crate) struct RoundShared {
    pub(crate) address: IpAddr,
    pub(crate) token: RunToken,
    pub(crate) workload: Workload,
    pub(crate) settings: Settings,
    pub(crate) prepared: Arc<dyn Prepared>,
    /// When senders begin.
    pub(crate) start_ns: u64,
    pub(crate) window_ns: Range<u64>,
    /// The round is given up.
    pub(crate) cancel: Arc<Cancel>,
    /// The window is over.
    pub(crate) stopping: AtomicBool,
    /// Threads that still run.
    pub(crate) running: AtomicUsize,
    /// The kernel's numbers of the threads that drive streams.
    pub(crate) threads: Mutex<Vec<i32>>,
    /// By flow, from threads that have ended.
    pub(crate) tallies: Mutex<Vec<(usize, Tally)>>,
}

/// A round whose accepting streams are registered.
pub(crate) struct Round {
    spec: RoundSpec,
    host: Arc<RoundHost>,
    shared: Arc<RoundShared>,
    /// In the order of the spec's flows.
    flows: Vec<Vec<Arc<Stream>>>,
    /// Until they start.
    workers: Vec<Worker>,
    /// Connections that this end opens, until it begins to.
    openings: Vec<OwnOpening>,
}

/// A connection to open, and who waits for it.
struct OwnOpening {
    opening: Opening,
    place: usize,
    thread: Sender<Arrival>,
}

impl RoundShared {
    /// Whether machines shall stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether the round is stopped or given up.
    pub(crate) fn is_over(&self) -> bool {
        self.is_stopping() || self.cancel.is_raised()
    }

    /// Bulk senders hold their load until all senders have begun. On hosts that share CPUs (a lab) the kernel handles the
    /// first one's packets before it lets the next one send its first byte.
    pub(crate) fn load_from_ns(&self) -> u64 {
        let warm_up_ns = self.window_ns.start.saturating_sub(self.start_ns);
        self.start_ns + FIRST_SENDS_NS.min(warm_up_ns / 2)
    }

    pub(crate) fn seat<'a>(&'a self, stream: &'a Stream) -> Seat<'a> {
        Seat {
            shared: self,
            stream,
        }
    }

    pub(crate) fn note_thread(&self, id: i32) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(id);
    }

    /// A connection that needs a second try may come late, as long as half of the warm-up is left to it: its lateness
    /// is in its start skew.
    fn connect_by_ns(&self) -> u64 {
        self.start_ns + self.window_ns.start.saturating_sub(self.start_ns) / 2
    }
}

impl Round {
    /// Checks the round and registers what it will accept, so that early connections find it.
    pub(crate) fn register(
        spec: RoundSpec,
        host: Arc<RoundHost>,
        cancel: Arc<Cancel>,
    ) -> Result<Self, EngineError> {
        check(&spec)?;
        let shared = Arc::new(RoundShared {
            address: host.address,
            token: host.token,
            workload: spec.workload.clone(),
            settings: Settings(spec.workload.socket.clone()),
            prepared: workload::prepare(&spec.workload).map_err(EngineError::Round)?,
            start_ns: spec.start_ns,
            window_ns: spec.window_start_ns..spec.window_end_ns(),
            cancel,
            stopping: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            threads: Mutex::default(),
            tallies: Mutex::default(),
        });
        let mut round = Self {
            flows: Vec::with_capacity(spec.flows.len()),
            workers: Vec::new(),
            openings: Vec::new(),
            spec,
            host,
            shared,
        };
        round.make_streams();
        round.seat_streams();
        round.host.acceptor.registry.wake();
        Ok(round)
    }

    /// The supervisor's thread. Everything is bounded by the window's end plus the two waits above.
    pub(crate) fn run(mut self, done: Done) {
        ew_sys::thread::use_exact_timers();
        let windows = self.move_data();
        let errors = |streams: &Vec<_>| report::first_error(&self.spec, streams);
        let failures: Vec<_> = self.flows.iter().map(errors).collect();
        if windows.is_some() {
            // Cut short or not, the figures are taken.
            let _ = self
                .shared
                .cancel
                .sleep_until(self.spec.window_end_ns() + AFTER_WINDOW_NS);
        }
        self.stop();
        let reports = self.reports(windows.as_deref(), failures);
        self.release();
        drop(self);
        done(reports);
    }

    fn make_streams(&mut self) {
        for (flow, order) in self.spec.flows.iter().enumerate() {
            let stream = |stream: u32| {
                let key = StreamKey {
                    stage: self.spec.stage,
                    round: self.spec.round,
                    flow: order.flow,
                    stream: stream as u16,
                };
                Arc::new(Stream::new(key, flow, order.role, order.opens, order.peer))
            };
            let streams = (0..self.spec.workload.streams).map(stream);
            self.flows.push(streams.collect());
        }
    }

    /// Deals the streams out to threads and says where their connections shall come.
    fn seat_streams(&mut self) {
        let streams: Vec<_> = self.flows.iter().flatten().cloned().collect();
        let count = thread_count(self.spec.workload.threads, streams.len());
        for first in 0..count {
            let (thread, arrivals) = channel();
            let own: Vec<_> = streams.iter().skip(first).step_by(count).cloned().collect();
            for (place, stream) in own.iter().enumerate() {
                self.expect(stream, place, thread.clone());
            }
            self.workers.push(Worker {
                shared: Arc::clone(&self.shared),
                streams: own,
                arrivals,
            });
        }
    }

    fn expect(&mut self, stream: &Stream, place: usize, thread: Sender<Arrival>) {
        if !self.shared.prepared.connects() {
            return;
        }
        if !stream.opens {
            let opener = opposite(stream.role);
            let seat = registry::Seat {
                opener,
                place,
                thread,
            };
            self.host.acceptor.registry.expect(stream.key, seat);
            return;
        }
        let hello = Hello::Stream {
            key: stream.key,
            role: stream.role,
        };
        self.openings.push(OwnOpening {
            opening: Opening {
                peer: stream.peer,
                hello: hello.encode(&self.shared.token),
            },
            place,
            thread,
        });
    }

    /// `None` when the round was cut short.
    fn move_data(&mut self) -> Option<Vec<FlowWindow>> {
        self.shared
            .cancel
            .sleep_until(self.spec.connect_at_ns)
            .ok()?;
        self.host.ledger.open(self.lanes().into_iter());
        self.start_threads();
        // After the other threads, which would inherit it.
        ew_sys::thread::prefer_scheduling();
        observe(&self.spec, &self.shared, &self.flows).ok()
    }

    fn start_threads(&mut self) {
        for worker in std::mem::take(&mut self.workers) {
            worker.spawn();
        }
        let openings = std::mem::take(&mut self.openings);
        if openings.is_empty() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let opened = start_thread("opener", &self.shared, move || open(&shared, &openings));
        if let Err(error) = opened {
            for stream in self.flows.iter().flatten().filter(|s| s.opens) {
                stream.fail(error.clone());
            }
        }
    }

    fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        for stream in self.flows.iter().flatten() {
            stream.shut_down();
        }
        let give_up_ns = monotonic_ns() + STOP_PATIENCE_NS;
        while self.shared.running.load(Ordering::Acquire) > 0 && monotonic_ns() < give_up_ns {
            sleep_until_ns(monotonic_ns() + STOP_POLL_NS);
        }
    }

    fn reports(
        &self,
        windows: Option<&[FlowWindow]>,
        failures: Vec<Option<String>>,
    ) -> Vec<FlowReport> {
        let orders = self.spec.flows.iter().zip(failures).enumerate();
        let tallies = self.shared.tallies.lock();
        let tallies = tallies.unwrap_or_else(PoisonError::into_inner);
        let link_up = ew_sys::net::link_is_up(self.host.address).unwrap_or(false);
        let standings = report::standings(&self.spec.flows, windows.unwrap_or_default(), link_up);
        orders
            .map(|(index, (order, failure))| match (failure, windows) {
                (Some(error), _) => report::failed(order, error),
                (None, None) => report::failed(order, format!("flow with {}: aborted", order.peer)),
                (None, Some(windows)) => {
                    let flow = report::Flow {
                        order,
                        streams: &self.flows[index],
                        window: &windows[index],
                        tallies: tallies
                            .iter()
                            .filter(|(f, _)| *f == index)
                            .map(|(_, t)| t)
                            .collect(),
                        standing: standings[index],
                    };
                    report::measured(&self.spec, &self.shared, &flow)
                }
            })
            .collect()
    }

    fn release(&self) {
        for stream in self.flows.iter().flatten() {
            stream.release();
        }
        self.host.ledger.close(&self.lanes());
    }

    fn lanes(&self) -> Vec<Arc<Lane>> {
        let streams = self.flows.iter().flatten();
        streams.map(|s| Arc::clone(&s.lane)).collect()
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        for stream in self.flows.iter().flatten() {
            self.host.acceptor.registry.forget(stream.key);
        }
    }
}

fn open(shared: &RoundShared, openings: &[OwnOpening]) {
    let opener = Opener {
        source: shared.address,
        settings: &shared.settings,
        deadline_ns: shared.connect_by_ns(),
        cancel: &shared.cancel,
    };
    let wanted: Vec<_> = openings.iter().map(|o| o.opening).collect();
    opener.run(&wanted, |index, connection| {
        let OwnOpening { place, thread, .. } = &openings[index];
        let place = *place;
        // The thread ends early when the round is given up.
        let _ = thread.send(Arrival { place, connection });
    });
}

/// One thread per stream, up to the cores; or as many as asked for, none of them idle.
fn thread_count(asked: Option<u32>, streams: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = asked.map_or_else(cores, |threads| threads as usize);
    wanted.clamp(1, streams.max(1))
}

fn opposite(role: Role) -> Role {
    match role {
        Role::Send => Role::Receive,
        Role::Receive => Role::Send,
    }
}

fn check(spec: &RoundSpec) -> Result<(), EngineError> {
    let refuse = |problem: String| Err(EngineError::Round(problem));
    let workload = &spec.workload;
    if workload.streams == 0 || spec.flows.len() * workload.streams as usize > MAX_STREAMS {
        return refuse(format!(
            "{} flows of {} streams; a host runs 1 to {MAX_STREAMS} streams at a time",
            spec.flows.len(),
            workload.streams
        ));
    }
    if !(1..=MAX_MESSAGE_BYTES).contains(&workload.message_bytes) {
        return refuse(format!(
            "message size {} bytes; 1 to {MAX_MESSAGE_BYTES} are possible",
            workload.message_bytes
        ));
    }
    let in_order = spec.connect_at_ns <= spec.start_ns && spec.start_ns <= spec.window_start_ns;
    if !in_order || spec.window_ns == 0 {
        return refuse("its connect, start and window times are not in order".to_owned());
    }
    if spec.interval_ns != 0 && spec.interval_ns < LEAST_INTERVAL_NS {
        return refuse(format!(
            "interval {} ns; at least {LEAST_INTERVAL_NS}, or 0 for none",
            spec.interval_ns
        ));
    }
    check_unique(&spec.flows)
}

fn check_unique(flows: &[FlowOrder]) -> Result<(), EngineError> {
    let mut accepted: Vec<_> = flows.iter().filter(|f| !f.opens).map(|f| f.flow).collect();
    accepted.sort_unstable();
    match accepted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(EngineError::Round(format!(
            "flow {} is there twice",
            pair[0].0
        ))),
        None => Ok(()),
    }
}
