//! The data listener: one thread that takes connections, reads their hellos with a deadline, and hands them over.
//!
//! Strangers are closed and counted. Nothing a stranger does can hold up a flow: all sockets are non-blocking here,
//! and when too many connections are undecided, the one that has been silent longest goes first.

use crate::hello::{ACK, HELLO_BYTES, Hello, StreamKey, may_become_hello};
use crate::registry::Registry;
use ew_proto::message::{Role, RunToken};
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{Interest, wait_ready};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Time from accept to a complete hello that somebody waits for.
pub(crate) const HELLO_DEADLINE_NS: u64 = 2_000_000_000;
/// Bound on undecided connections.
const MAX_PENDING: usize = 4096;
/// How long to leave the listener alone when the process has no file descriptor left.
const OUT_OF_DESCRIPTORS_PAUSE_NS: u64 = 50_000_000;
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The acceptor's thread: everything it owns.
#[derive(Debug)]
pub(crate) struct Acceptor {
    pub(crate) listener: TcpListener,
    /// Readable when a round was registered or the engine ends.
    pub(crate) wake: UnixStream,
    pub(crate) registry: Arc<Registry>,
    pub(crate) token: RunToken,
    pub(crate) strangers: Arc<AtomicU64>,
    pub(crate) ended: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Pending {
    socket: TcpStream,
    deadline_ns: u64,
    wire: [u8; HELLO_BYTES],
    filled: usize,
    /// A complete and honest hello, for which no round waits yet.
    wants: Option<(StreamKey, Role)>,
}

enum Verdict {
    Keep,
    /// A round waits for it.
    HandOver(Sender<TcpStream>),
    /// A probe that was answered.
    Settled,
    Stranger,
}

impl Acceptor {
    /// Runs until `ended` is set and the waker written to.
    pub(crate) fn run(&mut self) {
        let mut pending: Vec<Pending> = Vec::new();
        let mut listen_again_ns = 0;
        while !self.ended.load(Ordering::Acquire) {
            let now_ns = monotonic_ns();
            let ready = self.wait(&pending, now_ns, now_ns >= listen_again_ns);
            self.drain_wakes();
            self.advance(&mut pending, &ready);
            if let Err(error) = self.accept_all(&mut pending)
                && out_of_descriptors(&error)
            {
                self.evict_silent(&mut pending);
                listen_again_ns = monotonic_ns() + OUT_OF_DESCRIPTORS_PAUSE_NS;
            }
        }
    }

    /// One flag per pending connection.
    fn wait(&self, pending: &[Pending], now_ns: u64, listen: bool) -> Vec<bool> {
        let mut interests = vec![readable(&self.wake)];
        interests.extend(
            pending
                .iter()
                .filter(|p| p.wants.is_none())
                .map(|p| readable(&p.socket)),
        );
        if listen {
            interests.push(readable(&self.listener));
        }
        let mut timeout = earliest_timeout(pending, now_ns);
        if !listen {
            timeout = timeout.min(Duration::from_nanos(OUT_OF_DESCRIPTORS_PAUSE_NS));
        }
        let Ok(ready) = wait_ready(&interests, timeout) else {
            // Only a shortage of memory or descriptors: do not spin on it.
            std::thread::sleep(Duration::from_nanos(OUT_OF_DESCRIPTORS_PAUSE_NS));
            return vec![true; pending.len()];
        };
        let mut readiness = ready.into_iter().skip(1);
        pending
            .iter()
            .map(|p| p.wants.is_none() && readiness.next().unwrap_or(false))
            .collect()
    }

    fn drain_wakes(&mut self) {
        let mut sink = [0; 256];
        while matches!(self.wake.read(&mut sink), Ok(count) if count == sink.len()) {}
    }

    fn advance(&self, pending: &mut Vec<Pending>, ready: &[bool]) {
        let now_ns = monotonic_ns();
        let mut readiness = ready.iter().copied();
        let mut kept = Vec::with_capacity(pending.len());
        for mut connection in pending.drain(..) {
            let is_ready = readiness.next().unwrap_or(false);
            match self.judge(&mut connection, is_ready, now_ns) {
                Verdict::Keep => kept.push(connection),
                Verdict::HandOver(seat) => {
                    connection.acknowledge();
                    // When the round has just ended nobody takes it, and it closes here.
                    let _ = seat.send(connection.socket);
                }
                Verdict::Settled => {}
                Verdict::Stranger => self.count_stranger(),
            }
        }
        *pending = kept;
    }

    fn judge(&self, connection: &mut Pending, is_ready: bool, now_ns: u64) -> Verdict {
        if is_ready && connection.wants.is_none() {
            match connection.read_hello() {
                Err(()) => return Verdict::Stranger,
                Ok(false) => {}
                Ok(true) => match Hello::decode(&connection.wire, &self.token) {
                    None => return Verdict::Stranger,
                    Some(Hello::Probe) => {
                        connection.acknowledge();
                        return Verdict::Settled;
                    }
                    Some(Hello::Stream { key, role }) => connection.wants = Some((key, role)),
                },
            }
        }
        if let Some((key, role)) = connection.wants
            && let Some(seat) = self.registry.claim(key, role)
        {
            return Verdict::HandOver(seat);
        }
        if now_ns >= connection.deadline_ns {
            return Verdict::Stranger;
        }
        Verdict::Keep
    }

    fn accept_all(&self, pending: &mut Vec<Pending>) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            if pending.len() >= MAX_PENDING {
                self.evict_silent(pending);
            }
            if pending.len() < MAX_PENDING && socket.set_nonblocking(true).is_ok() {
                pending.push(Pending::new(socket));
            } else {
                self.count_stranger();
            }
        }
    }

    /// Closes the connection that has been without a hello longest.
    fn evict_silent(&self, pending: &mut Vec<Pending>) {
        // Connections are kept in the order they came.
        if let Some(index) = pending.iter().position(|p| p.wants.is_none()) {
            pending.remove(index);
            self.count_stranger();
        }
    }

    fn count_stranger(&self) {
        self.strangers.fetch_add(1, Ordering::Relaxed);
    }
}

impl Pending {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            deadline_ns: monotonic_ns() + HELLO_DEADLINE_NS,
            wire: [0; HELLO_BYTES],
            filled: 0,
            wants: None,
        }
    }

    /// Whether the hello is complete. An error is a peer that left or that speaks something else.
    fn read_hello(&mut self) -> Result<bool, ()> {
        while self.filled < HELLO_BYTES {
            match self.socket.read(&mut self.wire[self.filled..]) {
                Ok(0) => return Err(()),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(()),
            }
        }
        if !may_become_hello(&self.wire[..self.filled]) {
            return Err(());
        }
        Ok(self.filled == HELLO_BYTES)
    }

    fn acknowledge(&mut self) {
        // The send buffer of a fresh connection holds one byte; if the peer is gone, the stream's thread sees it.
        let _ = self.socket.write(&[ACK]);
    }
}

fn readable(socket: &impl AsFd) -> Interest<'_> {
    Interest {
        fd: socket.as_fd(),
        write: false,
    }
}

fn earliest_timeout(pending: &[Pending], now_ns: u64) -> Duration {
    let earliest = pending.iter().map(|p| p.deadline_ns).min();
    earliest.map_or(LONGEST_WAIT, |deadline| {
        Duration::from_nanos(deadline.saturating_sub(now_ns)).min(LONGEST_WAIT)
    })
}

fn out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE of errno(3).
    matches!(error.raw_os_error(), Some(23 | 24))
}
