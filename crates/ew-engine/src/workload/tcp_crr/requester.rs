//! The client: connect, send, receive, reset, on one socket again and again.

use super::super::machine::{Broken, Io, Machine, Offer, OwnSocket, Slot, Wait};
use super::super::requests::{Asking, Schedule, record};
use super::super::tcp::{receive, send};
use super::prefix::prefix;
use crate::buffer::PageBuffer;
use crate::connect::{ConnectError, is_timeout};
use crate::settings::Settings;
use crate::stream::Ports;
use crate::stream_error::StreamError;
use ew_sys::clock::monotonic_ns;
use ew_sys::connection::dissolve;
use ew_sys::socket::choose_port_at_connect;
use socket2::{SockAddr, SockRef};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Between a failure and the next try.
const PAUSE_NS: u64 = 10_000_000;
/// Failures in a row, and for how long, until the stream is given up.
const MAX_FAILURES: u32 = 3;
const FAILING_FOR_NS: u64 = 1_000_000_000;
/// A connection that is not answered for this long has failed (`TCP_USER_TIMEOUT`, tcp(7)).
const SILENCE: Duration = Duration::from_secs(5);
/// A request's first send, cookie included. The rest, where there is one, comes from what all
/// streams share.
const HEAD_BYTES: usize = 4096;
const EINPROGRESS: i32 = 115;

pub(super) struct Requester {
    asking: Asking,
    content: Arc<PageBuffer>,
    /// What a request begins with.
    head: Vec<u8>,
    route: Route,
    /// `None` after a failure.
    socket: Option<TcpStream>,
    phase: Phase,
    /// The transaction that is under way, over all its tries.
    current: Option<Request>,
    schedule: Option<Schedule>,
    begun: u64,
    left: Option<u64>,
    failing: Option<Failing>,
}

/// From where to where, and how.
struct Route {
    source: IpAddr,
    peer: SocketAddr,
    settings: Settings,
}

enum Phase {
    Idle,
    Connecting {
        since_ns: u64,
        /// Whether the first send waits until the connection is up.
        send_waits: bool,
    },
    /// Bytes sent.
    Asking(usize),
    /// Bytes received.
    Listening(usize),
}

#[derive(Clone, Copy)]
struct Request {
    /// Open loop.
    due_ns: Option<u64>,
    begun_ns: u64,
}

/// Failures in a row.
struct Failing {
    since_ns: u64,
    count: u32,
    next_try_ns: u64,
}

impl Requester {
    pub(super) fn new(slot: &Slot<'_>, asking: Asking, content: Arc<PageBuffer>) -> Self {
        Self {
            asking,
            content,
            head: Vec::new(),
            route: Route {
                source: slot.shared.address,
                peer: slot.stream.peer,
                settings: slot.shared.settings.clone(),
            },
            socket: None,
            phase: Phase::Idle,
            current: None,
            schedule: asking.schedule(slot),
            begun: 0,
            left: asking.limit,
            failing: None,
        }
    }
}

impl OwnSocket for Requester {
    /// It listens nowhere, and only wants to be notified.
    fn offer(&mut self, _slot: &Slot<'_>) -> Result<Offer, StreamError> {
        Ok(Offer { port: 0, cookie: 0 })
    }

    fn accept_offer(&mut self, slot: &Slot<'_>, peer: Offer) -> Result<(), StreamError> {
        let length = self.asking.request_bytes.min(HEAD_BYTES);
        let content = &self.content.as_slice()[..length];
        let prefix = prefix(peer.cookie, self.asking.request_bytes);
        self.head = [&prefix, &content[prefix.len()..]].concat();
        self.route.peer = slot.reached_at(peer.port)?;
        // Its own is another one each time.
        slot.stream.set_ports(Ports {
            local: 0,
            peer: peer.port,
        });
        let peer = self.route.peer;
        let failed = |source| ConnectError::Failed { peer, source };
        self.socket = Some(self.route.socket().map_err(failed)?);
        Ok(())
    }
}

impl Machine for Requester {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(self)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(TcpStream::as_fd)
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.asking.allocate(io);
        io.tally.connect_times.allocate();
        io.note_start();
        self.step(io).map(drop)
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        match self.go_on(io) {
            Ok(wait) => Ok(wait),
            Err(error) => self.try_later(error),
        }
    }
}

impl Requester {
    fn go_on(&mut self, io: &mut Io<'_>) -> io::Result<Wait> {
        if matches!(self.phase, Phase::Idle)
            && let Some(wait) = self.begin(io)?
        {
            return Ok(wait);
        }
        let Some(socket) = &self.socket else {
            return Ok(Wait::Again);
        };
        if let Phase::Connecting {
            since_ns,
            send_waits,
        } = self.phase
        {
            // Where the connection is not up yet this fails, or waits for it.
            let mut up_ns = monotonic_ns();
            let sent = send(socket, &self.head).map_err(|broken| broken.error)?;
            if sent == 0 {
                return Ok(Wait::Socket);
            }
            if send_waits {
                up_ns = monotonic_ns();
            }
            if io.in_window(up_ns) {
                let time_ns = up_ns.saturating_sub(since_ns);
                io.tally.connect_times.record(time_ns);
            }
            self.phase = Phase::Asking(sent);
        }
        if let Phase::Asking(sent) = &mut self.phase {
            let all = self.asking.request_bytes;
            while *sent < all {
                let rest = match self.head.get(*sent..) {
                    Some(head) if !head.is_empty() => head,
                    _ => self.content.as_slice(),
                };
                let count = rest.len().min(all - *sent);
                match send(socket, &rest[..count]).map_err(|broken| broken.error)? {
                    0 => return Ok(Wait::Socket),
                    more => *sent += more,
                }
            }
            io.counters.add_sent(all as u64);
            self.phase = Phase::Listening(0);
            if !io.blocks() {
                return Ok(Wait::Socket);
            }
        }
        self.listen(io)
    }

    /// Begins to connect, for the next transaction or again for the last one. Returns what to wait
    /// for when it does not.
    fn begin(&mut self, io: &mut Io<'_>) -> io::Result<Option<Wait>> {
        let now_ns = monotonic_ns();
        if let Some(failing) = &self.failing
            && failing.next_try_ns > now_ns
        {
            return Ok(Some(Wait::Until(failing.next_try_ns)));
        }
        if self.current.is_none() {
            if self.left == Some(0) {
                io.counters.note_done(now_ns);
                return Ok(Some(Wait::Done));
            }
            let due_ns = self.schedule.map(|s| s.due_ns(self.begun));
            if let Some(due_ns) = due_ns
                && due_ns > now_ns
            {
                return Ok(Some(Wait::Until(due_ns)));
            }
            self.begun += 1;
            if let Some(left) = &mut self.left
                && io.shared.is_window_open()
            {
                *left -= 1;
            }
            self.current = Some(Request {
                due_ns,
                begun_ns: now_ns,
            });
        }
        if self.socket.is_none() {
            let socket = self.route.socket()?;
            io.adopt(&socket)?;
            self.socket = Some(socket);
        }
        let Some(socket) = &self.socket else {
            return Ok(Some(Wait::Again));
        };
        let is_up = connect(socket, &self.route.peer.into())?;
        self.phase = Phase::Connecting {
            since_ns: now_ns,
            send_waits: io.blocks() && !is_up,
        };
        Ok(None)
    }

    fn listen(&mut self, io: &mut Io<'_>) -> io::Result<Wait> {
        let (Some(socket), Phase::Listening(received)) = (&self.socket, &mut self.phase) else {
            return Ok(Wait::Again);
        };
        while *received < self.asking.response_bytes {
            let count = (self.asking.response_bytes - *received).min(io.buffer.len());
            match receive(socket, &mut io.buffer[..count]).map_err(|broken| broken.error)? {
                0 => return Ok(Wait::Socket),
                more => *received += more,
            }
        }
        let now_ns = monotonic_ns();
        self.phase = Phase::Idle;
        self.failing = None;
        if dissolve(socket).is_err() {
            // The next one has a socket of its own then.
            self.socket = None;
        }
        io.counters.add_received(self.asking.response_bytes as u64);
        if let Some(request) = self.current.take() {
            record(io, request.due_ns, request.begun_ns, now_ns);
        }
        Ok(Wait::Again)
    }

    fn try_later(&mut self, error: io::Error) -> Result<Wait, Broken> {
        self.socket = None;
        self.phase = Phase::Idle;
        let now_ns = monotonic_ns();
        let failing = self.failing.get_or_insert(Failing {
            since_ns: now_ns,
            count: 0,
            next_try_ns: 0,
        });
        failing.count += 1;
        if failing.count >= MAX_FAILURES && now_ns >= failing.since_ns + FAILING_FOR_NS {
            let tries = failing.count;
            let port = self.route.peer.port();
            let reported = explain(error);
            return Err(Broken {
                action: "connect",
                error: io::Error::other(format!(
                    "{tries} tries in a row at port {port}: {reported}"
                )),
            });
        }
        failing.next_try_ns = now_ns + PAUSE_NS;
        Ok(Wait::Until(failing.next_try_ns))
    }
}

impl Route {
    /// A socket that can be connected.
    fn socket(&self) -> io::Result<TcpStream> {
        let socket = self.settings.tcp_socket(self.peer)?;
        // Without it only the number of local ports shrinks.
        let _ = choose_port_at_connect(&socket);
        socket.bind(&SocketAddr::new(self.source, 0).into())?;
        // A socket that is closed in the middle leaves nothing behind either.
        socket.set_linger(Some(Duration::ZERO))?;
        // Multipath TCP has none; there silence lasts until the round's end.
        let _ = socket.set_tcp_user_timeout(Some(SILENCE));
        Ok(socket.into())
    }
}

/// Begins to connect, or connects, where the socket blocks and the peer answers in time. Returns
/// whether the connection is up.
fn connect(socket: &TcpStream, peer: &SockAddr) -> io::Result<bool> {
    match SockRef::from(socket).connect(peer) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) || is_timeout(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => io::Error::other(format!(
            "{error}: no local port is free; widen net.ipv4.ip_local_port_range on this host"
        )),
        _ => error,
    }
}
