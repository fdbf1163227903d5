//! The data listener: one thread that takes connections, reads their hellos with a deadline, and
//! hands them over.
//!
//! Unauthenticated peers are closed and counted. Nothing an unauthenticated peer does can delay a
//! flow: all sockets are non-blocking here, and when too many connections are undecided, the one
//! that has been silent longest goes first.

use crate::hello::{Ends, HELLO_BYTES, Hello, StreamKey, acknowledgement, may_become_hello};
use crate::registry::{Registry, Slot};
use crate::relay::{Asked, Relay};
use ew_proto::message::{Role, RunToken};
use ew_sys::clock::monotonic_ns;
use ew_sys::epoll::{Epoll, Ready, Watch};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Time from accept to a complete hello that somebody waits for.
pub(crate) const HELLO_DEADLINE_NS: u64 = 2_000_000_000;
/// Bound on undecided connections; openers begin fewer at the same time.
const MAX_PENDING: usize = 2048;
/// Unauthenticated peers get at most this part of the process's descriptors: the rounds need the
/// others.
const PENDING_PART: usize = 4;
/// Connections taken before anything else is checked again.
const MAX_ACCEPTS_PER_TURN: usize = 256;
/// How long to leave the listener alone when the process has no file descriptor left.
const OUT_OF_DESCRIPTORS_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Tokens of the epoll set; pending connections have greater ones.
const LISTENER: u64 = 0;
const WAKE: u64 = 1;
const PROBES: u64 = 2;
const FIRST_PENDING: u64 = 3;
const EVENTS: usize = 256;

/// The acceptor's thread: everything it owns.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: TcpListener,
    /// Receives probes over UDP until the first round: its port is for data then.
    probes: Option<UdpSocket>,
    /// Readable when a round was registered or the engine ends.
    wake: UnixStream,
    epoll: Epoll,
    shared: Arc<AcceptorShared>,
    /// Undecided connections by the order they came in, which is also that of their deadlines.
    pending: BTreeMap<u64, Pending>,
    /// Those of them with an honest hello, for which no round waits yet.
    early: BTreeSet<u64>,
    next: u64,
    is_listening: bool,
    max_pending: usize,
}

/// What the engine and its acceptor share.
#[derive(Debug)]
pub(crate) struct AcceptorShared {
    pub(crate) registry: Registry,
    pub(crate) token: RunToken,
    pub(crate) relay: Option<Relay>,
    /// This host's, by which others know it.
    pub(crate) address: IpAddr,
    pub(crate) rejected_connections: AtomicU64,
    pub(crate) ended: AtomicBool,
}

#[derive(Debug)]
struct Pending {
    socket: TcpStream,
    deadline_ns: u64,
    wire: [u8; HELLO_BYTES],
    filled: usize,
    /// Whether the epoll set watches it.
    is_watched: bool,
    /// A complete and honest hello.
    wants: Option<(StreamKey, Role, Ends)>,
}

/// Why a connection can have no hello.
enum Unfit {
    /// The peer left.
    Gone,
    /// It speaks something else.
    Speech,
}

enum Verdict {
    Keep,
    /// A round waits for it.
    HandOver(Slot),
    /// A probe that was answered.
    Done,
    /// A neighbour wants the agent's program.
    Relay,
    Reject,
}

impl Acceptor {
    /// Watches the listener, the socket for probes and the waker.
    pub(crate) fn new(
        listener: TcpListener,
        probes: Option<UdpSocket>,
        wake: UnixStream,
        shared: Arc<AcceptorShared>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(&listener, Watch::Readable, LISTENER)?;
        epoll.add(&wake, Watch::Readable, WAKE)?;
        if let Some(probes) = &probes {
            epoll.add(probes, Watch::Readable, PROBES)?;
        }
        Ok(Self {
            listener,
            probes,
            wake,
            epoll,
            shared,
            pending: BTreeMap::new(),
            early: BTreeSet::new(),
            next: FIRST_PENDING,
            is_listening: true,
            max_pending: max_pending(),
        })
    }

    /// Runs until `ended` is set and the waker written to.
    pub(crate) fn run(&mut self) {
        let mut ready = Ready::with_capacity(EVENTS);
        while !self.shared.ended.load(Ordering::Acquire) {
            if self.epoll.wait(&mut ready, self.patience()).is_err() {
                // Only a shortage of memory: do not spin on it.
                std::thread::sleep(OUT_OF_DESCRIPTORS_PAUSE);
            }
            self.listen_again();
            let mut must_accept = false;
            for token in ready.tokens() {
                match token {
                    LISTENER => must_accept = true,
                    WAKE => self.wake_up(),
                    PROBES => self.answer_probes(),
                    pending => self.decide(pending),
                }
            }
            if must_accept {
                self.accept_all();
            }
            self.expire();
        }
    }

    fn patience(&self) -> Duration {
        if !self.is_listening {
            return OUT_OF_DESCRIPTORS_PAUSE;
        }
        let earliest = self.pending.first_key_value();
        earliest.map_or(LONGEST_WAIT, |(_, pending)| {
            let left_ns = pending.deadline_ns.saturating_sub(monotonic_ns());
            Duration::from_nanos(left_ns).min(LONGEST_WAIT)
        })
    }

    /// Rounds may wait now for connections that came before them.
    fn wake_up(&mut self) {
        let mut sink = [0; 256];
        while matches!(self.wake.read(&mut sink), Ok(count) if count == sink.len()) {}
        self.probes = None;
        self.renew_listener();
        for token in self.early.clone() {
            self.decide(token);
        }
    }

    /// Puts a listener with other settings in the place of the old one, when a round wants it.
    /// Where that fails, the old one goes on, and the connections show that they are not as wanted.
    fn renew_listener(&mut self) {
        let Some(wanted) = self.shared.registry.new_listener() else {
            return;
        };
        if let Ok(renewed) = wanted.listen_beside(&self.listener)
            && self.epoll.add(&renewed, Watch::Readable, LISTENER).is_ok()
        {
            // What came through the old one must not be lost with it.
            self.accept_all();
            self.listener = renewed;
            self.is_listening = true;
        }
        self.shared.registry.set_listener(wanted);
    }

    fn accept_all(&mut self) {
        // epoll reports the rest again at the next turn.
        for _ in 0..MAX_ACCEPTS_PER_TURN {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    if out_of_descriptors(&error) {
                        self.evict_silent();
                        self.pause_listening();
                    }
                    return;
                }
            };
            if self.pending.len() >= self.max_pending {
                self.evict_silent();
            }
            if self.pending.len() < self.max_pending && socket.set_nonblocking(true).is_ok() {
                self.pending.insert(self.next, Pending::new(socket));
                self.next += 1;
                // The hello mostly comes right behind the connection.
                self.decide(self.next - 1);
            } else {
                self.count_rejected();
            }
        }
    }

    /// With less than was asked, and only whom the run's token vouches for.
    fn answer_probes(&self) {
        let Some(probes) = &self.probes else { return };
        let mut datagram = [0; HELLO_BYTES + 1];
        for _ in 0..MAX_ACCEPTS_PER_TURN {
            let Ok((length, from)) = probes.recv_from(&mut datagram) else {
                return;
            };
            let whole = datagram.first_chunk().filter(|_| length == HELLO_BYTES);
            let Some(wire) = whole else { continue };
            if let Some((Hello::Probe, ends)) = Hello::decode(wire, &self.shared.token)
                && ends.acceptor == self.shared.address.to_canonical()
            {
                let _ = probes.send_to(&acknowledgement(wire, &self.shared.token), from);
            }
        }
    }

    /// For want of descriptors.
    fn pause_listening(&mut self) {
        if self.is_listening && self.epoll.remove(&self.listener).is_ok() {
            self.is_listening = false;
        }
    }

    fn listen_again(&mut self) {
        if !self.is_listening {
            let watched = self.epoll.add(&self.listener, Watch::Readable, LISTENER);
            self.is_listening = watched.is_ok();
        }
    }

    /// Reads what came and acts on it.
    fn decide(&mut self, token: u64) {
        let Some(mut connection) = self.pending.remove(&token) else {
            return;
        };
        self.early.remove(&token);
        match self.judge(&mut connection) {
            Verdict::Keep => self.keep(token, connection),
            Verdict::HandOver(slot) => {
                connection.acknowledge(&self.shared.token);
                if connection.is_watched {
                    // It lives on elsewhere; if it stays in the set, that is only noise.
                    let _ = self.epoll.remove(&connection.socket);
                }
                slot.hand_over(connection.socket);
            }
            Verdict::Done => {}
            Verdict::Relay => self.hand_on(connection),
            Verdict::Reject => self.count_rejected(),
        }
    }

    fn hand_on(&self, connection: Pending) {
        let Pending {
            socket,
            wire,
            filled,
            is_watched,
            ..
        } = connection;
        if is_watched {
            let _ = self.epoll.remove(&socket);
        }
        if let Some(relay) = &self.shared.relay {
            relay.hand_on(socket, wire[..filled].to_vec());
        }
    }

    fn judge(&self, connection: &mut Pending) -> Verdict {
        if connection.wants.is_none() {
            match connection.read_hello() {
                Err(Unfit::Gone) => return Verdict::Reject,
                Err(Unfit::Speech) => return self.judge_request(connection),
                Ok(false) => return Verdict::Keep,
                Ok(true) => match Hello::decode(&connection.wire, &self.shared.token) {
                    None => return Verdict::Reject,
                    // Meant for another host: somebody hands on what he has heard.
                    Some((_, ends)) if ends.acceptor != self.shared.address.to_canonical() => {
                        return Verdict::Reject;
                    }
                    Some((Hello::Probe, _)) => {
                        connection.acknowledge(&self.shared.token);
                        return Verdict::Done;
                    }
                    Some((Hello::Stream { key, role }, ends)) => {
                        connection.wants = Some((key, role, ends));
                    }
                },
            }
        }
        let slot = connection
            .wants
            .and_then(|(key, role, ends)| self.shared.registry.claim(key, role, ends.opener));
        slot.map_or(Verdict::Keep, Verdict::HandOver)
    }

    /// Of what is no hello.
    fn judge_request(&self, connection: &Pending) -> Verdict {
        let start = &connection.wire[..connection.filled];
        match self.shared.relay.as_ref().map(|relay| relay.judge(start)) {
            Some(Asked::Program) => Verdict::Relay,
            Some(Asked::Unclear) => Verdict::Keep,
            Some(Asked::Other) | None => Verdict::Reject,
        }
    }

    fn keep(&mut self, token: u64, mut connection: Pending) {
        if connection.wants.is_some() {
            // Nothing more is to come: what does come would be notified again and again.
            if connection.is_watched && self.epoll.remove(&connection.socket).is_ok() {
                connection.is_watched = false;
            }
            self.early.insert(token);
        } else if !connection.is_watched {
            let watched = self.epoll.add(&connection.socket, Watch::Readable, token);
            if watched.is_err() {
                return self.count_rejected();
            }
            connection.is_watched = true;
        }
        self.pending.insert(token, connection);
    }

    /// Turns those away whose time is over.
    fn expire(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let now_ns = monotonic_ns();
        while let Some(first) = self.pending.first_entry()
            && first.get().deadline_ns <= now_ns
        {
            let (token, _) = first.remove_entry();
            self.early.remove(&token);
            self.count_rejected();
        }
    }

    /// Closes the connection that has been without a hello longest.
    fn evict_silent(&mut self) {
        let silent = self.pending.iter().find(|(_, p)| p.wants.is_none());
        if let Some(token) = silent.map(|(token, _)| *token) {
            self.pending.remove(&token);
            self.count_rejected();
        }
    }

    fn count_rejected(&self) {
        self.shared
            .rejected_connections
            .fetch_add(1, Ordering::Relaxed);
    }
}

impl Pending {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            deadline_ns: monotonic_ns() + HELLO_DEADLINE_NS,
            wire: [0; HELLO_BYTES],
            filled: 0,
            is_watched: false,
            wants: None,
        }
    }

    /// Whether the hello is complete.
    fn read_hello(&mut self) -> Result<bool, Unfit> {
        while self.filled < HELLO_BYTES {
            match self.socket.read(&mut self.wire[self.filled..]) {
                Ok(0) => return Err(Unfit::Gone),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Unfit::Gone),
            }
        }
        if !may_become_hello(&self.wire[..self.filled]) {
            return Err(Unfit::Speech);
        }
        Ok(self.filled == HELLO_BYTES)
    }

    fn acknowledge(&mut self, token: &RunToken) {
        // The send buffer of a fresh connection has space for it; if the peer is gone, the stream's
        // thread sees it.
        let _ = self.socket.write(&acknowledgement(&self.wire, token));
    }
}

fn max_pending() -> usize {
    let limit = ew_sys::process::raise_open_files_limit();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    MAX_PENDING.min(limit / PENDING_PART)
}

fn out_of_descriptors(error: &io::Error) -> bool {
    // EMFILE and ENFILE of errno(3).
    matches!(error.raw_os_error(), Some(23 | 24))
}
