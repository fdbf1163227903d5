//! One round: its supervisor thread from registration to report.

use crate::Done;
use crate::acceptor::AcceptorShared;
use crate::arrivals::Arrival;
use crate::clock_wait::Cancel;
use crate::connect::{Opener, Opening};
use crate::counters::{ByteTotals, StreamCounters};
use crate::data_ports::DataPorts;
use crate::hello::{Ends, Hello, StreamKey};
use crate::refusal::{MAX_MESSAGE_BYTES, MAX_OUTSTANDING, MAX_STREAMS, MIN_INTERVAL_NS, Refusal};
use crate::registry;
use crate::report;
use crate::running::RunningRound;
use crate::settings::Settings;
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::window::{Observed, observe};
use crate::worker::{Worker, start_thread};
use crate::workload;
use crate::workload::machine::Prepared;
use ew_model::workload::{SourcePorts, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role, RunToken};
use ew_proto::round::RoundSpec;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Streams go on for this long after the window: the peer's window may end a little later, and a
/// peer short of CPU reads its counters late, which is harmless while data still flows.
pub const AFTER_WINDOW_NS: u64 = 20_000_000;
/// How long to wait for stream threads that were ordered to stop. They see the order within
/// [`crate::workload::machine::CALL_TIMEOUT`], once they have a CPU. Without a thread's tallies its
/// flows have no times, datagrams or sizes.
const STOP_PATIENCE_NS: u64 = 1_000_000_000;
const STOP_POLL_NS: u64 = 500_000;
/// By how much accepting ends stop before opening ones where ports are used again: more than clocks
/// and schedulers differ.
const ACCEPTORS_FIRST_NS: u64 = 15_000_000;
/// Open files next to the streams'.
const SPARE_DESCRIPTORS: u64 = 100;
/// How long before the start a CPU is kept awake, above the 17 ms that a virtual one was seen to
/// need to wake, and how long it may nap meanwhile: shorter than what a hypervisor waits for before
/// it takes the CPU away (KVM's halt_poll_ns, 200 us).
const AWAKE_NS: u64 = 60_000_000;
const AWAKE_NAP_NS: u64 = 100_000;
const AWAKE_STACK_BYTES: usize = 64 * 1024;

/// What the engine lends to a round.
#[derive(Debug)]
pub(crate) struct RoundHost {
    pub(crate) address: IpAddr,
    pub(crate) ports: (u16, u16),
    pub(crate) token: RunToken,
    pub(crate) acceptor: Arc<AcceptorShared>,
    pub(crate) totals: Arc<ByteTotals>,
}

/// A round whose accepting streams are registered.
pub(crate) struct Round {
    spec: RoundSpec,
    host: Arc<RoundHost>,
    prepared: Arc<dyn Prepared>,
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
    index: usize,
    thread: Sender<Arrival>,
}

impl Round {
    /// Checks the round and registers what it will accept, so that early connections find it.
    pub(crate) fn register(
        spec: RoundSpec,
        host: Arc<RoundHost>,
        cancel: Arc<Cancel>,
    ) -> Result<Self, Refusal> {
        check(&spec)?;
        let prepared = workload::prepare(&spec.workload)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let thread_count = thread_count(&spec, &*prepared, cores);
        let shared = Arc::new(RoundShared {
            address: host.address,
            ports: DataPorts::new(host.ports),
            served_ports: served_range(&spec.flows).map(DataPorts::new),
            token: host.token,
            workload: spec.workload.clone(),
            settings: Settings(spec.workload.socket.clone()),
            data_is_on_the_connection: prepared.data_is_on_the_connection(),
            // Of multipath TCP the kernel shows the first subflow's count.
            counts_what_comes: prepared.counts_what_comes() && !spec.workload.socket.mptcp,
            thread_count,
            leaves_cpus: thread_count * 2 <= cores,
            start_ns: spec.start_ns,
            window_ns: spec.window_start_ns..spec.window_end_ns(),
            sent_flows: sent_flows(&spec.flows),
            cancel,
            window_open: AtomicBool::new(false),
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
            prepared,
            shared,
        };
        round.make_streams();
        round.assign_slots();
        round.prepare_listener();
        Ok(round)
    }

    /// For who follows it.
    pub(crate) fn running(&self) -> RunningRound {
        RunningRound {
            flows: self.flows.clone(),
        }
    }

    /// The supervisor's thread. Everything is bounded by the window's end plus the two waits above.
    pub(crate) fn run(mut self, done: Done) {
        ew_sys::thread::use_exact_timers();
        let mut observed = self.move_data();
        if let Some(observed) = &mut observed {
            // Cut short or not, the figures are taken.
            let _ = self
                .shared
                .cancel
                .sleep_until(self.spec.window_end_ns() + AFTER_WINDOW_NS);
            observed.end_with_streams(&self.spec, &self.flows);
        }
        let errors = |streams: &Vec<_>| report::first_error(&self.spec, streams);
        let failures: Vec<_> = self.flows.iter().map(errors).collect();
        self.stop();
        let reports = self.reports(observed.as_ref(), failures);
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
                Arc::new(Stream::new(key, flow, order, self.spec.workload.streams))
            };
            let streams = (0..self.spec.workload.streams).map(stream);
            self.flows.push(streams.collect());
        }
    }

    /// Deals the streams out to threads and registers where their connections shall come.
    fn assign_slots(&mut self) {
        let streams: Vec<_> = self.flows.iter().flatten().cloned().collect();
        let count = self.shared.thread_count;
        for number in 0..count {
            let (thread, arrivals) = channel();
            let own: Vec<_> = streams
                .iter()
                .skip(number)
                .step_by(count)
                .cloned()
                .collect();
            for (index, stream) in own.iter().enumerate() {
                self.expect(stream, index, thread.clone());
            }
            self.workers.push(Worker {
                prepared: Arc::clone(&self.prepared),
                shared: Arc::clone(&self.shared),
                number,
                streams: own,
                arrivals,
            });
        }
    }

    /// What is accepted from now on comes through a listener with this round's settings.
    fn prepare_listener(&self) {
        let registry = &self.host.acceptor.registry;
        let accepts = self.spec.flows.iter().any(|order| !order.opens);
        if accepts && registry.want_listener(self.shared.settings.listener()) {
            registry.wake();
            registry.wait_for_listener();
        }
        registry.wake();
    }

    fn expect(&mut self, stream: &Stream, index: usize, thread: Sender<Arrival>) {
        if !self.prepared.connects() {
            return;
        }
        if !stream.opens {
            let opener = opposite(stream.role);
            let slot = registry::Slot {
                opener,
                peer: stream.peer_host,
                index,
                thread,
            };
            self.host.acceptor.registry.expect(stream.key, slot);
            return;
        }
        let hello = Hello::Stream {
            key: stream.key,
            role: stream.role,
        };
        let ends = Ends {
            opener: self.shared.address,
            acceptor: stream.peer_host,
        };
        let opening = Opening::new(&hello, ends, stream.peer, &self.shared.token);
        self.openings.push(OwnOpening {
            opening: opening.with_ports(stream.chosen_ports),
            index,
            thread,
        });
    }

    /// `None` when the round was cut short.
    fn move_data(&mut self) -> Option<Observed> {
        self.shared
            .cancel
            .sleep_until(self.spec.connect_at_ns)
            .ok()?;
        self.host.totals.open(self.counters().into_iter());
        self.start_threads();
        self.keep_awake();
        // After the other threads, which would inherit it.
        ew_sys::thread::prefer_scheduling();
        observe(&self.spec, &self.shared, &self.flows).ok()
    }

    /// Keeps a CPU awake for the last part before the start, so that timers for it fire at once: an
    /// idle CPU first leaves its sleep state, and a virtual one waits until its host runs it again,
    /// often for over a millisecond. The thread gives way to all others, holds no lock, and ends by
    /// itself; it naps rather than spins, since a container's CPU quota may not last for that.
    /// Without it the start is less exact.
    fn keep_awake(&self) {
        let cancel = Arc::clone(&self.shared.cancel);
        let start_ns = self.spec.start_ns;
        let thread = std::thread::Builder::new().name("awake".to_owned());
        let _ = thread.stack_size(AWAKE_STACK_BYTES).spawn(move || {
            let awake_ns = start_ns.saturating_sub(AWAKE_NS);
            if cancel.sleep_until(awake_ns).is_ok() {
                ew_sys::thread::give_way();
                while monotonic_ns() < start_ns {
                    sleep_until_ns(start_ns.min(monotonic_ns() + AWAKE_NAP_NS));
                }
            }
        });
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
                stream.fail(&error);
            }
        }
    }

    fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        let streams = || self.flows.iter().flatten();
        streams().filter(|s| !s.opens).for_each(|s| s.shut_down());
        if self.shared.workload.source_ports == SourcePorts::Pinned {
            // Who ends a connection first remembers it (`TIME_WAIT`). At the opening end that would
            // keep its port busy for the next round.
            sleep_until_ns(monotonic_ns() + ACCEPTORS_FIRST_NS);
        }
        streams().filter(|s| s.opens).for_each(|s| s.shut_down());
        let give_up_ns = monotonic_ns() + STOP_PATIENCE_NS;
        while self.shared.running.load(Ordering::Acquire) > 0 && monotonic_ns() < give_up_ns {
            sleep_until_ns(monotonic_ns() + STOP_POLL_NS);
        }
    }

    fn reports(
        &self,
        observed: Option<&Observed>,
        failures: Vec<Option<String>>,
    ) -> Vec<FlowReport> {
        let orders = self.spec.flows.iter().zip(failures).enumerate();
        let tallies = self.shared.tallies.lock();
        let tallies = tallies.unwrap_or_else(PoisonError::into_inner);
        let link_up = ew_sys::net::link_is_up(self.host.address).unwrap_or(false);
        let windows = observed.map_or(&[][..], |observed| &observed.flows);
        let standings = report::standings(&self.spec.flows, windows, link_up);
        orders
            .map(|(index, (order, failure))| match (failure, observed) {
                (Some(error), _) => report::failed(order, error),
                (None, None) => report::failed(order, format!("flow with {}: aborted", order.peer)),
                (None, Some(observed)) => {
                    let flow = report::Flow {
                        order,
                        streams: &self.flows[index],
                        window: &observed.flows[index],
                        cpu: observed.cpu,
                        tallies: tallies
                            .iter()
                            .filter(|(f, _)| *f == index)
                            .map(|(_, t)| t)
                            .collect(),
                        standing: standings[index],
                    };
                    report::measured(&self.spec, &*self.prepared, &flow)
                }
            })
            .collect()
    }

    fn release(&self) {
        for stream in self.flows.iter().flatten() {
            stream.release();
        }
        self.host.totals.close(&self.counters());
    }

    fn counters(&self) -> Vec<Arc<StreamCounters>> {
        let streams = self.flows.iter().flatten();
        streams.map(|s| Arc::clone(&s.counters)).collect()
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
        let OwnOpening { index, thread, .. } = &openings[index];
        let index = *index;
        // The thread ends early when the round is given up.
        let _ = thread.send(Arrival { index, connection });
    });
}

/// As many as asked for, but none idle; else one per stream, up to the cores or to what the
/// workload is faster with.
fn thread_count(spec: &RoundSpec, prepared: &dyn Prepared, cores: usize) -> usize {
    let streams = spec.flows.len() * spec.workload.streams as usize;
    let wanted = match spec.workload.threads {
        Some(threads) => threads as usize,
        None if streams <= prepared.streams_with_own_threads() => streams,
        None => cores,
    };
    wanted.clamp(1, streams.max(1))
}

fn sent_flows(orders: &[FlowOrder]) -> Vec<usize> {
    let sends = orders.iter().map(|order| order.role == Role::Send);
    let numbered = sends.enumerate().filter(|(_, sends)| *sends);
    numbered.map(|(flow, _)| flow).collect()
}

/// A host is behind one Service in a round.
fn served_range(flows: &[FlowOrder]) -> Option<(u16, u16)> {
    let mut accepted = flows.iter().filter(|flow| !flow.opens);
    accepted.find_map(|flow| flow.service.as_ref()?.range())
}

fn opposite(role: Role) -> Role {
    match role {
        Role::Send => Role::Receive,
        Role::Receive => Role::Send,
    }
}

fn check(spec: &RoundSpec) -> Result<(), Refusal> {
    check_workload(&spec.workload)?;
    let (flows, workload) = (spec.flows.len(), &spec.workload);
    if workload.streams == 0 || flows * workload.streams as usize > MAX_STREAMS {
        let streams = workload.streams;
        return Err(Refusal::Streams { flows, streams });
    }
    let per_stream = match workload.kind {
        WorkloadKind::TcpStream
        | WorkloadKind::TcpRr
        | WorkloadKind::FlowSizes
        | WorkloadKind::Ping
        | WorkloadKind::Trace => 1,
        // The connection and a socket of their own.
        WorkloadKind::UdpStream | WorkloadKind::UdpRr | WorkloadKind::TcpCrr => 2,
    };
    check_descriptors(flows * workload.streams as usize * per_stream)?;
    let in_order = spec.connect_at_ns <= spec.start_ns && spec.start_ns <= spec.window_start_ns;
    if !in_order || spec.window_ns == 0 {
        return Err(Refusal::Times);
    }
    let interval_ns = spec.interval_ns;
    if interval_ns != 0 && interval_ns < MIN_INTERVAL_NS {
        return Err(Refusal::Interval { interval_ns });
    }
    check_unique(&spec.flows)
}

fn check_workload(workload: &Workload) -> Result<(), Refusal> {
    for bytes in [workload.message_bytes, workload.answer_bytes()] {
        if !(1..=MAX_MESSAGE_BYTES).contains(&bytes) {
            return Err(Refusal::MessageSize { bytes });
        }
    }
    let requests = workload.outstanding;
    if !(1..=MAX_OUTSTANDING).contains(&requests) {
        return Err(Refusal::Outstanding { requests });
    }
    if let Some(rate) = workload.pace.requests_per_sec
        && !(rate.is_finite() && rate > 0.0)
    {
        return Err(Refusal::RequestRate { rate });
    }
    Ok(())
}

/// Every stream has a socket, and some workloads one more; the process needs a few for itself.
fn check_descriptors(sockets: usize) -> Result<(), Refusal> {
    let limit = ew_sys::process::raise_open_files_limit();
    let needed = sockets as u64 + SPARE_DESCRIPTORS;
    if limit != 0 && limit < needed {
        return Err(Refusal::OpenFiles {
            sockets,
            needed,
            limit,
        });
    }
    Ok(())
}

fn check_unique(flows: &[FlowOrder]) -> Result<(), Refusal> {
    let mut accepted: Vec<_> = flows.iter().filter(|f| !f.opens).map(|f| f.flow).collect();
    accepted.sort_unstable();
    match accepted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Refusal::FlowTwice { flow: pair[0] }),
        None => Ok(()),
    }
}
