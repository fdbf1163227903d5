//! One round: its supervisor thread from registration to report.

use crate::Done;
use crate::clock_wait::Cancel;
use crate::error::EngineError;
use crate::hello::StreamKey;
use crate::lane::{Lane, Ledger};
use crate::registry::Registry;
use crate::report;
use crate::stream::{RoundShared, Source, Stream, spawn};
use crate::window::{FlowWindow, observe};
use crate::workload::prepare;
use ew_proto::message::{FlowOrder, FlowReport, Role, RunToken};
use ew_proto::round::RoundSpec;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Streams go on for this long after the window: the peer's window may end a little later, and a peer short of CPU reads its
/// counters late, which is harmless while data still flows.
const AFTER_WINDOW_NS: u64 = 20_000_000;
/// How long to wait for stream threads that were told to stop.
const STOP_PATIENCE_NS: u64 = 150_000_000;
const STOP_POLL_NS: u64 = 500_000;
const MAX_STREAMS: usize = 4096;
const MAX_MESSAGE_BYTES: u64 = 64 * 1024 * 1024;
const LEAST_INTERVAL_NS: u64 = 1_000_000;

/// What the engine lends to a round.
#[derive(Debug)]
pub(crate) struct RoundHost {
    pub(crate) address: IpAddr,
    pub(crate) token: RunToken,
    pub(crate) registry: Arc<Registry>,
    pub(crate) ledger: Arc<Ledger>,
}

/// A round whose accepting streams are registered.
#[derive(Debug)]
pub(crate) struct Round {
    spec: RoundSpec,
    host: Arc<RoundHost>,
    shared: Arc<RoundShared>,
    /// In the order of the spec's flows.
    flows: Vec<Vec<Arc<Stream>>>,
    /// For each stream in order, until its thread takes it.
    sources: Vec<Source>,
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
            start_ns: spec.start_ns,
            window_ns: spec.window_start_ns..spec.window_end_ns(),
            cancel,
            stopping: AtomicBool::new(false),
            running: AtomicUsize::new(0),
        });
        let mut round = Self {
            flows: Vec::with_capacity(spec.flows.len()),
            sources: Vec::new(),
            spec,
            host,
            shared,
        };
        round.seat_streams();
        round.host.registry.wake();
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

    fn seat_streams(&mut self) {
        for order in &self.spec.flows {
            let mut streams = Vec::new();
            for stream in 0..self.spec.workload.streams {
                let key = StreamKey {
                    stage: self.spec.stage,
                    round: self.spec.round,
                    flow: order.flow,
                    stream: stream as u16,
                };
                streams.push(Arc::new(Stream::new(key, order.role, order.peer)));
                self.sources.push(if order.opens {
                    Source::Open
                } else {
                    Source::Accept(self.host.registry.expect(key, opposite(order.role)))
                });
            }
            self.flows.push(streams);
        }
    }

    /// `None` when the round was cut short.
    fn move_data(&mut self) -> Option<Vec<FlowWindow>> {
        self.shared
            .cancel
            .sleep_until(self.spec.connect_at_ns)
            .ok()?;
        self.host.ledger.open(self.lanes().into_iter());
        self.start_streams();
        // After the streams' threads, which would inherit it.
        ew_sys::thread::prefer_scheduling();
        observe(&self.spec, &self.flows, &self.shared.cancel).ok()
    }

    fn start_streams(&mut self) {
        let prepared = prepare(&self.spec.workload);
        let sources = std::mem::take(&mut self.sources);
        for (stream, source) in self.flows.iter().flatten().zip(sources) {
            let driver = prepared.as_ref().map_err(Clone::clone);
            match driver.and_then(|prepared| prepared.driver(stream.role)) {
                Ok(driver) => spawn(stream, &self.shared, source, driver),
                Err(error) => stream.fail(error),
            }
        }
    }

    fn stop(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        let give_up_ns = monotonic_ns() + STOP_PATIENCE_NS;
        loop {
            // Again each time: a stream may have connected just now.
            for stream in self.flows.iter().flatten() {
                stream.shut_down();
            }
            if self.shared.running.load(Ordering::Acquire) == 0 || monotonic_ns() >= give_up_ns {
                return;
            }
            sleep_until_ns(monotonic_ns() + STOP_POLL_NS);
        }
    }

    fn reports(
        &self,
        windows: Option<&[FlowWindow]>,
        failures: Vec<Option<String>>,
    ) -> Vec<FlowReport> {
        let orders = self.spec.flows.iter().zip(failures).enumerate();
        let link_up = ew_sys::net::link_is_up(self.host.address).unwrap_or(false);
        let standings = report::standings(&self.spec.flows, windows.unwrap_or_default(), link_up);
        orders
            .map(|(index, (order, failure))| match (failure, windows) {
                (Some(error), _) => report::failed(order, error),
                (None, None) => report::failed(order, format!("flow with {}: aborted", order.peer)),
                (None, Some(windows)) => {
                    let (streams, window) = (&self.flows[index], &windows[index]);
                    report::measured(&self.spec, order, streams, window, standings[index])
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
            self.host.registry.forget(stream.key);
        }
    }
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
