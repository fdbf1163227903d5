//! The opening ends of connections: one thread opens thousands at the same time.

use crate::clock_wait::Cancel;
use crate::hello::{ACK_BYTES, Ends, HELLO_BYTES, Hello, acknowledgement, same_secret};
use crate::settings::Settings;
use ew_model::ports::source_port;
use ew_proto::message::RunToken;
use ew_sys::clock::monotonic_ns;
use ew_sys::epoll::{Epoll, Ready, Watch};
use ew_sys::socket::choose_port_at_connect;
use socket2::Socket;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// Pause after a refused or failed attempt.
const RETRY_PAUSE_NS: u64 = 10_000_000;
/// The first attempt's time. Later ones double it: a lost SYN is repeated sooner than the kernel
/// would, and a path with a long round trip still gets its time.
const FIRST_ATTEMPT_NS: u64 = 40_000_000;
const LONGEST_ATTEMPT_NS: u64 = 10_000_000_000;
/// Attempts at the same time: less than the backlog of a listener, so that one peer can take them
/// all.
const AT_ONCE: usize = 1024;
/// How often the wait checks whether it was cut short.
const SLICE: Duration = Duration::from_millis(50);
/// A shorter try shows nothing about the peer.
const TOO_SHORT_NS: u64 = 20_000_000;
const EINPROGRESS: i32 = 115;
const ECONNREFUSED: i32 = 111;
const EVENTS: usize = 256;
/// Chosen source ports to try before the kernel chooses.
const PORT_ATTEMPTS: u32 = 8;

/// A connection to be opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) peer: SocketAddr,
    hello: [u8; HELLO_BYTES],
    /// What the peer must answer to it.
    acknowledgement: [u8; ACK_BYTES],
    /// Where its source ports come from. `None`: the kernel chooses.
    ports: Option<ChosenPorts>,
}

impl Opening {
    /// Of a connection to `peer`, between these ends, that sends `hello`.
    pub(crate) fn new(hello: &Hello, ends: Ends, peer: SocketAddr, token: &RunToken) -> Self {
        let hello = hello.encode(ends, token);
        Self {
            peer,
            hello,
            acknowledgement: acknowledgement(&hello, token),
            ports: None,
        }
    }

    /// The same from source ports of the plan's choice.
    pub(crate) fn with_ports(self, ports: Option<ChosenPorts>) -> Self {
        Self { ports, ..self }
    }
}

/// The source ports of one stream, in the order to be tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChosenPorts {
    pub(crate) seed: u64,
    pub(crate) stream: u32,
}

impl ChosenPorts {
    /// The one to take unless it is busy.
    pub(crate) fn first(self) -> u16 {
        self.attempt(0)
    }

    fn attempt(self, attempt: u32) -> u16 {
        source_port(self.seed, self.stream, attempt)
    }
}

/// Why a connection was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The system refuses, here or at the peer, or another program is there.
    #[error("connect {peer}: {source}")]
    Failed {
        /// Where to.
        peer: SocketAddr,
        /// The last one that says something.
        source: io::Error,
    },
    /// Connections cannot be waited for.
    #[error("connect {peer}: {source}")]
    Watch {
        /// Where to.
        peer: SocketAddr,
        /// The system's, for all of them.
        source: Arc<io::Error>,
    },
    /// Nothing came back.
    #[error(
        "connect {peer}: no answer within {:.1} s; does a firewall drop the data ports?",
        *tried_ns as f64 / 1e9
    )]
    NoAnswer {
        /// Where to.
        peer: SocketAddr,
        /// For how long.
        tried_ns: u64,
    },
    /// There was no time to try.
    #[error(
        "connect {peer}: this host came to it only {:.0} ms before the end of the time for it; is it too busy?",
        *tried_ns as f64 / 1e6
    )]
    Late {
        /// Where to.
        peer: SocketAddr,
        /// For how long it was tried.
        tried_ns: u64,
    },
    /// Whoever asked for it gave it up.
    #[error("connect {peer}: aborted")]
    Aborted {
        /// Where to.
        peer: SocketAddr,
    },
}

/// What all connections have in common.
#[derive(Debug)]
pub(crate) struct Opener<'a> {
    /// This end's address.
    pub(crate) source: IpAddr,
    /// Of every socket.
    pub(crate) settings: &'a Settings,
    /// When to give up.
    pub(crate) deadline_ns: u64,
    pub(crate) cancel: &'a Cancel,
}

/// How far a connection is.
#[derive(Debug)]
enum Phase {
    /// To be tried, or tried again.
    Idle,
    /// Waiting for the peer's kernel.
    Connecting(TcpStream),
    /// Waiting for the peer's answer to the hello.
    Acknowledging(TcpStream, Answer),
    /// Its outcome is reported.
    Over,
}

/// What of the answer has come.
#[derive(Debug, Default)]
struct Answer {
    bytes: [u8; ACK_BYTES],
    filled: usize,
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    /// When the phase ends by itself.
    until_ns: u64,
    begun_ns: u64,
    attempt_ns: u64,
    /// The error when time is over.
    reported: Option<io::Error>,
}

/// The work of one [`Opener::run`].
struct Work<'a, Report: FnMut(usize, Result<TcpStream, ConnectError>)> {
    opener: &'a Opener<'a>,
    openings: &'a [Opening],
    progress: Vec<Progress>,
    epoll: Epoll,
    /// Ends of phases, earliest first; those that were moved since are passed over.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Openings to be tried now, longest due first.
    due: VecDeque<usize>,
    /// Attempts.
    under_way: usize,
    over: usize,
    report: Report,
}

impl Opener<'_> {
    /// Connects, sends hello and waits for the answer; tries again until the deadline. Every
    /// opening is reported once, in any order. Sockets are non-blocking.
    pub(crate) fn run(
        &self,
        openings: &[Opening],
        mut report: impl FnMut(usize, Result<TcpStream, ConnectError>),
    ) {
        let epoll = match Epoll::new() {
            Ok(epoll) => epoll,
            Err(error) => {
                let error = Arc::new(error);
                for (index, Opening { peer, .. }) in openings.iter().enumerate() {
                    let (peer, source) = (*peer, Arc::clone(&error));
                    report(index, Err(ConnectError::Watch { peer, source }));
                }
                return;
            }
        };
        self.work(openings, epoll, report).run();
    }

    fn work<'a, Report: FnMut(usize, Result<TcpStream, ConnectError>)>(
        &'a self,
        openings: &'a [Opening],
        epoll: Epoll,
        report: Report,
    ) -> Work<'a, Report> {
        Work {
            opener: self,
            openings,
            progress: openings.iter().map(|_| Progress::new()).collect(),
            epoll,
            timers: BinaryHeap::new(),
            due: (0..openings.len()).collect(),
            under_way: 0,
            over: 0,
            report,
        }
    }

    fn begin(&self, opening: &Opening) -> io::Result<TcpStream> {
        if let Some(ports) = opening.ports {
            for attempt in 0..PORT_ATTEMPTS {
                match self.begin_from(ports.attempt(attempt), opening.peer) {
                    Err(error) if is_busy(&error) => {}
                    outcome => return outcome,
                }
            }
        }
        self.begin_from(0, opening.peer)
    }

    /// From a source port; 0 for one of the kernel's choice.
    fn begin_from(&self, port: u16, peer: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.settings.tcp_socket(peer)?;
        match port {
            // Without it only the number of local ports shrinks.
            0 => drop(choose_port_at_connect(&socket)),
            // Connections to several peers may have one port in common.
            _ => socket.set_reuse_address(true)?,
        }
        socket.bind(&SocketAddr::new(self.source, port).into())?;
        socket.set_nonblocking(true)?;
        connect(&socket, peer)?;
        Ok(socket.into())
    }

    fn why(&self, peer: SocketAddr, error: Option<io::Error>, tried_ns: u64) -> ConnectError {
        if self.cancel.is_raised() {
            return ConnectError::Aborted { peer };
        }
        if tried_ns < TOO_SHORT_NS {
            return ConnectError::Late { peer, tried_ns };
        }
        match error {
            Some(source) if source.kind() != io::ErrorKind::TimedOut => {
                ConnectError::Failed { peer, source }
            }
            _ => ConnectError::NoAnswer { peer, tried_ns },
        }
    }
}

impl<Report: FnMut(usize, Result<TcpStream, ConnectError>)> Work<'_, Report> {
    fn run(&mut self) {
        let mut ready = Ready::with_capacity(EVENTS);
        while self.over < self.openings.len() {
            let now_ns = monotonic_ns();
            if now_ns >= self.opener.deadline_ns || self.opener.cancel.is_raised() {
                return self.give_up(now_ns);
            }
            self.end_phases(now_ns);
            while self.under_way < AT_ONCE
                && let Some(index) = self.due.pop_front()
            {
                self.attempt(index);
            }
            if self.epoll.wait(&mut ready, self.patience()).is_err() {
                // Only a shortage of memory: do not spin on it.
                std::thread::sleep(SLICE);
            }
            let changed: Vec<u64> = ready.tokens().collect();
            for index in changed {
                self.advance(index as usize);
            }
        }
    }

    fn patience(&self) -> Duration {
        let now_ns = monotonic_ns();
        let earliest_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let until_ns = earliest_ns.min(self.opener.deadline_ns);
        Duration::from_nanos(until_ns.saturating_sub(now_ns)).min(SLICE)
    }

    fn attempt(&mut self, index: usize) {
        self.under_way += 1;
        let now_ns = monotonic_ns();
        let opening = &self.openings[index];
        let progress = &mut self.progress[index];
        if progress.begun_ns == 0 {
            progress.begun_ns = now_ns;
        }
        let begun = self.opener.begin(opening).and_then(|socket| {
            self.epoll.add(&socket, Watch::Changes, index as u64)?;
            Ok(socket)
        });
        match begun {
            Ok(socket) => {
                let until_ns = now_ns + progress.attempt_ns;
                self.enter(index, Phase::Connecting(socket), until_ns);
            }
            Err(error) => self.try_later(index, error),
        }
    }

    /// The socket has changed.
    fn advance(&mut self, index: usize) {
        match std::mem::replace(&mut self.progress[index].phase, Phase::Over) {
            Phase::Connecting(socket) => self.connected(index, socket),
            Phase::Acknowledging(socket, answer) => self.answered(index, socket, answer),
            unchanged => self.progress[index].phase = unchanged,
        }
    }

    fn connected(&mut self, index: usize, mut socket: TcpStream) {
        let opening = &self.openings[index];
        let outcome = match socket.take_error() {
            Ok(Some(error)) | Err(error) => Err(error),
            // Where nobody listens on a port of the ephemeral range, TCP can connect a socket to
            // itself.
            Ok(None) if socket.local_addr().is_ok_and(|near| near == opening.peer) => {
                Err(io::Error::from_raw_os_error(ECONNREFUSED))
            }
            Ok(None) if socket.peer_addr().is_err() => {
                self.progress[index].phase = Phase::Connecting(socket);
                return;
            }
            // The send buffer of a fresh connection has space for a hello.
            Ok(None) => socket.write_all(&opening.hello),
        };
        match outcome {
            Ok(()) => {
                let phase = Phase::Acknowledging(socket, Answer::default());
                self.enter(index, phase, self.opener.deadline_ns);
            }
            Err(error) => self.try_later(index, error),
        }
    }

    fn answered(&mut self, index: usize, mut socket: TcpStream, mut answer: Answer) {
        // Not a byte more: what follows is the stream's.
        let error = match socket.read(&mut answer.bytes[answer.filled..]) {
            Ok(0) => io::Error::other("the peer does not wait for this connection"),
            Ok(count) if answer.filled + count < ACK_BYTES => {
                answer.filled += count;
                return self.answered(index, socket, answer);
            }
            Ok(_) if same_secret(&answer.bytes, &self.openings[index].acknowledgement) => {
                // It lives on elsewhere; if it stays in the set, that is only noise.
                let _ = self.epoll.remove(&socket);
                return self.finish(index, Ok(socket));
            }
            Ok(_) => io::Error::other("another program answers at this port"),
            Err(error) if is_timeout(&error) => {
                self.progress[index].phase = Phase::Acknowledging(socket, answer);
                return;
            }
            Err(error) => error,
        };
        self.try_later(index, error);
    }

    /// Ends the phases whose time is over.
    fn end_phases(&mut self, now_ns: u64) {
        while let Some(Reverse((at_ns, index))) = self.timers.peek().copied()
            && at_ns <= now_ns
        {
            self.timers.pop();
            if self.progress[index].until_ns != at_ns {
                continue;
            }
            match std::mem::replace(&mut self.progress[index].phase, Phase::Over) {
                Phase::Idle => {
                    self.progress[index].phase = Phase::Idle;
                    self.due.push_back(index);
                }
                // It is up, and this thread comes to it only now.
                Phase::Connecting(socket) if socket.peer_addr().is_ok() => {
                    self.connected(index, socket);
                }
                Phase::Connecting(_) => {
                    let progress = &mut self.progress[index];
                    progress.attempt_ns = (progress.attempt_ns * 2).min(LONGEST_ATTEMPT_NS);
                    self.try_later(index, io::ErrorKind::TimedOut.into());
                }
                unchanged => self.progress[index].phase = unchanged,
            }
        }
    }

    /// Makes way for those that were not tried yet: peers that are gone do not keep them waiting.
    fn try_later(&mut self, index: usize, error: io::Error) {
        self.under_way -= 1;
        let progress = &mut self.progress[index];
        if error.kind() == io::ErrorKind::TimedOut {
            // It is less precise than what the peer's system reported before.
            progress.reported.get_or_insert(error);
        } else {
            progress.reported = Some(error);
        }
        self.enter(index, Phase::Idle, monotonic_ns() + RETRY_PAUSE_NS);
    }

    fn enter(&mut self, index: usize, phase: Phase, until_ns: u64) {
        let progress = &mut self.progress[index];
        progress.phase = phase;
        progress.until_ns = until_ns;
        self.timers.push(Reverse((until_ns, index)));
    }

    fn finish(&mut self, index: usize, outcome: Result<TcpStream, ConnectError>) {
        self.progress[index].phase = Phase::Over;
        self.over += 1;
        self.under_way -= 1;
        (self.report)(index, outcome);
    }

    fn give_up(&mut self, now_ns: u64) {
        for index in 0..self.openings.len() {
            let progress = &mut self.progress[index];
            if matches!(progress.phase, Phase::Over) {
                continue;
            }
            progress.phase = Phase::Over;
            let tried_ns = match progress.begun_ns {
                0 => 0,
                begun_ns => now_ns - begun_ns,
            };
            let (reported, peer) = (progress.reported.take(), self.openings[index].peer);
            (self.report)(index, Err(self.opener.why(peer, reported, tried_ns)));
        }
        self.over = self.openings.len();
    }
}

impl Progress {
    fn new() -> Self {
        Self {
            phase: Phase::Idle,
            until_ns: 0,
            begun_ns: 0,
            attempt_ns: FIRST_ATTEMPT_NS,
            reported: None,
        }
    }
}

/// Whether another socket has the port, or the connection's four numbers are still remembered
/// (`TIME_WAIT`).
pub(crate) fn is_busy(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable
    )
}

fn connect(socket: &Socket, peer: SocketAddr) -> io::Result<()> {
    match socket.connect(&peer.into()) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// Whether a call only came back because it would block, its time was over or a signal came.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn opening(peer: SocketAddr) -> Opening {
        let ends = Ends {
            opener: Ipv4Addr::LOCALHOST.into(),
            acceptor: Ipv4Addr::LOCALHOST.into(),
        };
        Opening::new(&Hello::Probe, ends, peer, &RunToken([7; 16]))
    }

    fn opener<'a>(settings: &'a Settings, cancel: &'a Cancel) -> Opener<'a> {
        Opener {
            source: Ipv4Addr::LOCALHOST.into(),
            settings,
            deadline_ns: monotonic_ns() + PATIENCE.as_nanos() as u64,
            cancel,
        }
    }

    /// This thread may come to it late: its time is over, and the connection is up.
    #[test]
    fn a_connection_that_is_up_is_not_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let openings = [opening(listener.local_addr().unwrap())];
        let (settings, cancel) = (Settings::default(), Cancel::default());
        let opener = opener(&settings, &cancel);
        let mut work = opener.work(&openings, Epoll::new().unwrap(), |_, _| {});
        work.attempt(0);
        let (mut far, _) = listener.accept().unwrap();
        work.end_phases(u64::MAX);
        assert!(matches!(work.progress[0].phase, Phase::Acknowledging(..)));
        far.set_read_timeout(Some(PATIENCE)).unwrap();
        far.read_exact(&mut [0; HELLO_BYTES]).unwrap();
    }

    #[test]
    fn peers_that_are_gone_keep_nobody_waiting() {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut openings = vec![opening(gone.unwrap()); AT_ONCE];
        openings.push(opening(listener.local_addr().unwrap()));
        let (settings, cancel) = (Settings::default(), Cancel::default());
        let opener = opener(&settings, &cancel);
        let began = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| opener.run(&openings, |_, _| {}));
            listener.set_nonblocking(true).unwrap();
            while listener.accept().is_err() {
                assert!(began.elapsed() < PATIENCE, "it was never tried");
                std::thread::sleep(Duration::from_millis(1));
            }
            cancel.raise();
        });
    }
}
