//! The streams of a test: one thread each, moving bytes and counting them, nothing else.

mod gate;
mod pace;
mod payload;
mod tcp;
mod udp;

use crate::goal::Goal;
use crate::wire::params::{Params, Protocol};
use ew_sys::thread::{cpu_times, run_on_cpu, use_exact_timers};
pub(crate) use gate::Gate;
use payload::payload;
use socket2::Socket;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that waits for its socket looks at the stop flag this often.
const WAIT: Duration = Duration::from_millis(100);

/// What one thread counts. On cache lines of its own, written by that thread only.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    bytes: AtomicU64,
    packets: AtomicU64,
    lost: AtomicU64,
    out_of_order: AtomicU64,
    jitter_s_bits: AtomicU64,
    cpu_user_ns: AtomicU64,
    cpu_system_ns: AtomicU64,
}

/// One reading of a stream's counters, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counted {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) jitter_s: f64,
}

impl Counters {
    pub(crate) fn read(&self) -> Counted {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            bytes: read(&self.bytes),
            packets: read(&self.packets),
            lost: read(&self.lost),
            out_of_order: read(&self.out_of_order),
            jitter_s: f64::from_bits(read(&self.jitter_s_bits)),
        }
    }
}

/// What all streams of a test share.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) params: Arc<Params>,
    pub(crate) goal: Arc<Goal>,
    /// Ends the senders.
    pub(crate) stop_senders: Arc<AtomicBool>,
    /// Ends the receivers, which go on for longer so that no sender is stuck.
    pub(crate) stop_receivers: Arc<AtomicBool>,
    /// CPU of the threads.
    pub(crate) cpu: Option<usize>,
    /// Where the threads wait until all are ready.
    pub(crate) gate: Arc<Gate>,
    /// One block of what senders send.
    content: Arc<Vec<u8>>,
}

impl Work {
    pub(crate) fn new(params: Params, goal: Goal, cpu: Option<usize>) -> Self {
        Self {
            content: Arc::new(payload(params.block_bytes, params.repeating_payload)),
            params: Arc::new(params),
            goal: Arc::new(goal),
            stop_senders: Arc::default(),
            stop_receivers: Arc::default(),
            cpu,
            gate: Arc::default(),
        }
    }
}

/// A connected stream and, once started, its thread.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Number in results.
    pub(crate) id: u32,
    /// Number shown to people, like iperf3's file descriptors.
    pub(crate) shown: u32,
    /// Whether this end sends.
    pub(crate) sends: bool,
    pub(crate) socket: Arc<Socket>,
    pub(crate) counters: Arc<Counters>,
    failure: Arc<Mutex<Option<io::Error>>>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    pub(crate) fn new(place: usize, sends: bool, socket: Socket) -> Self {
        Self {
            id: crate::wire::results::stream_id(place),
            shown: 5 + 2 * place as u32,
            sends,
            socket: Arc::new(socket),
            counters: Arc::default(),
            failure: Arc::default(),
            thread: None,
        }
    }

    /// Starts the thread, which moves bytes as soon as the gate opens.
    pub(crate) fn start(&mut self, work: &Work) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(WAIT))?;
        self.socket.set_write_timeout(Some(WAIT))?;
        let mover = Mover {
            socket: Arc::clone(&self.socket),
            counters: Arc::clone(&self.counters),
            work: work.clone(),
        };
        let (sends, failure) = (self.sends, Arc::clone(&self.failure));
        let name = format!("iperf3-{}", self.id);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            if let Err(error) = mover.run(sends) {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            mover.note_cpu();
            mover.work.goal.wake();
        })?;
        self.thread = Some(thread);
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What broke the stream, once.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// Waits for the thread, whose stop flag is raised.
    pub(crate) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// CPU time of the finished thread: user and system, ns.
    pub(crate) fn cpu_ns(&self) -> (u64, u64) {
        (
            self.counters.cpu_user_ns.load(Ordering::Relaxed),
            self.counters.cpu_system_ns.load(Ordering::Relaxed),
        )
    }
}

/// What a stream's thread has in its hands.
struct Mover {
    socket: Arc<Socket>,
    counters: Arc<Counters>,
    work: Work,
}

impl Mover {
    fn run(&self, sends: bool) -> io::Result<()> {
        if let Some(cpu) = self.work.cpu {
            run_on_cpu(cpu)?;
        }
        use_exact_timers();
        let result = match (self.work.params.protocol, sends) {
            (Protocol::Tcp, true) => tcp::send(self),
            (Protocol::Tcp, false) => tcp::receive(self),
            (Protocol::Udp, true) => udp::send(self),
            (Protocol::Udp, false) => udp::receive(self),
        };
        // A peer that is through closes its end: no failure when we are through as well.
        result.or_else(|error| {
            if self.stopped(sends) {
                Ok(())
            } else {
                Err(error)
            }
        })
    }

    fn stopped(&self, sends: bool) -> bool {
        let flag = if sends {
            &self.work.stop_senders
        } else {
            &self.work.stop_receivers
        };
        flag.load(Ordering::Relaxed)
    }

    fn note_cpu(&self) {
        let times = cpu_times();
        let counters = &self.counters;
        counters.cpu_user_ns.store(times.user_ns, Ordering::Relaxed);
        counters
            .cpu_system_ns
            .store(times.system_ns, Ordering::Relaxed);
    }
}

/// Whether a call only waited too long, or was disturbed: to be tried again.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
