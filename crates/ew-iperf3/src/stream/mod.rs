//! The streams of a test: one thread each, moving bytes and counting them, nothing else.

mod blocks;
mod counters;
mod file;
mod gate;
mod mover;
mod pace;
mod payload;
mod tcp;
mod udp;
mod work;

use crate::wire::params::Protocol;
pub(crate) use counters::Counted;
use counters::Counters;
use ew_sys::thread::{cpu_times, run_on_cpu, use_exact_timers};
use mover::Mover;
use socket2::Socket;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
pub use work::EndOptions;
pub(crate) use work::Work;

/// A thread that waits for its socket checks the stop flag this often.
const WAIT: Duration = Duration::from_millis(100);

/// A connected stream and, once started, its thread.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Number in results.
    pub(crate) id: u32,
    /// Among the test's streams, from 0.
    index: usize,
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
    pub(crate) fn new(index: usize, sends: bool, socket: Socket) -> Self {
        Self {
            id: crate::wire::results::stream_id(index),
            index,
            shown: 5 + 2 * index as u32,
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
            index: self.index,
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

impl Mover {
    fn run(&self, sends: bool) -> io::Result<()> {
        if let Some(cpu) = self.work.options.cpu {
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

    fn note_cpu(&self) {
        let times = cpu_times();
        let counters = &self.counters;
        counters.cpu_user_ns.store(times.user_ns, Ordering::Relaxed);
        counters
            .cpu_system_ns
            .store(times.system_ns, Ordering::Relaxed);
    }
}
