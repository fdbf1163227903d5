//! One stream of a flow: its thread, and what the round's supervisor sees of it.

use crate::clock_wait::Cancel;
use crate::connect::Opening;
use crate::hello::{Hello, StreamKey};
use crate::lane::Lane;
use crate::workload::{Driver, Link};
use ew_proto::message::{Role, RunToken};
use ew_sys::clock::monotonic_ns;
use hdrhistogram::Histogram;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Blocking calls come back at least this often to see whether they shall stop.
const CALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Deep enough for a driver and an error message; there may be many threads.
const STACK_BYTES: usize = 128 * 1024;

/// What a round and all its streams share.
#[derive(Debug)]
pub(crate) struct RoundShared {
    pub(crate) address: IpAddr,
    pub(crate) token: RunToken,
    /// When senders begin.
    pub(crate) start_ns: u64,
    pub(crate) window_ns: Range<u64>,
    /// The round is given up.
    pub(crate) cancel: Arc<Cancel>,
    /// The window is over.
    pub(crate) stopping: AtomicBool,
    /// Stream threads that still run.
    pub(crate) running: AtomicUsize,
}

impl RoundShared {
    /// A connection that needs a second try may come late, as long as half of the warm-up is left to it: its lateness
    /// is in its start skew.
    fn connect_by_ns(&self) -> u64 {
        self.start_ns + self.window_ns.start.saturating_sub(self.start_ns) / 2
    }
}

/// One stream as the supervisor sees it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    pub(crate) role: Role,
    pub(crate) peer: SocketAddr,
    pub(crate) lane: Arc<Lane>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    socket: Option<Arc<TcpStream>>,
    ports: Ports,
    failure: Option<Failure>,
    latency: Option<Histogram<u64>>,
}

/// How a stream ended before it was stopped.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// When it was noticed, CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// In words.
    pub(crate) error: String,
}

/// A connection's ports; 0 before it is connected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) peer: u16,
}

/// Where a stream's connection comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// This end opens it.
    Open,
    /// The peer opens it and the acceptor hands it over.
    Accept(Receiver<TcpStream>),
}

impl Stream {
    pub(crate) fn new(key: StreamKey, role: Role, peer: SocketAddr) -> Self {
        Self {
            key,
            role,
            peer,
            lane: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// Payload in this end's direction: what a sender sent, what a receiver received.
    pub(crate) fn counted_bytes(&self) -> u64 {
        match self.role {
            Role::Send => self.lane.sent_bytes(),
            Role::Receive => self.lane.received_bytes(),
        }
    }

    /// `None` until it is connected.
    pub(crate) fn socket(&self) -> Option<Arc<TcpStream>> {
        self.lock().socket.clone()
    }

    pub(crate) fn ports(&self) -> Ports {
        self.lock().ports
    }

    /// Why it broke, and when.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// Once its thread is over.
    pub(crate) fn take_latency(&self) -> Option<Histogram<u64>> {
        self.lock().latency.take()
    }

    /// Keeps the first error: it is the cause of later ones.
    pub(crate) fn fail(&self, error: String) {
        let at_ns = monotonic_ns();
        self.lock().failure.get_or_insert(Failure { at_ns, error });
    }

    /// Wakes a thread that is blocked in a call. What is unsent is dropped when the socket closes, so that it does not
    /// load the network in the next round.
    pub(crate) fn shut_down(&self) {
        if let Some(socket) = self.socket() {
            let _ = socket2::SockRef::from(&*socket).set_linger(Some(Duration::ZERO));
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Lets go of the socket, so that it closes with its thread.
    pub(crate) fn release(&self) {
        self.lock().socket = None;
    }

    fn publish(&self, socket: TcpStream) -> Arc<TcpStream> {
        let socket = Arc::new(socket);
        let mut state = self.lock();
        state.ports = Ports {
            local: socket.local_addr().map_or(0, |a| a.port()),
            peer: socket.peer_addr().map_or(0, |a| a.port()),
        };
        state.socket = Some(Arc::clone(&socket));
        socket
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the stream's thread. A failure to start it is the stream's error.
pub(crate) fn spawn(
    stream: &Arc<Stream>,
    shared: &Arc<RoundShared>,
    source: Source,
    driver: Box<dyn Driver>,
) {
    shared.running.fetch_add(1, Ordering::AcqRel);
    let task = (Arc::clone(stream), Arc::clone(shared));
    let spawned = std::thread::Builder::new()
        .name("stream".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let (stream, shared) = task;
            let _leaving = Leaving(&shared);
            run(&stream, &shared, source, driver);
        });
    if let Err(error) = spawned {
        shared.running.fetch_sub(1, Ordering::AcqRel);
        stream.fail(format!(
            "cannot start a thread for a stream: {error}; raise the limit of processes (ulimit -u)"
        ));
    }
}

/// Counts a stream's thread out, however it ends.
struct Leaving<'a>(&'a RoundShared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

fn run(stream: &Stream, shared: &RoundShared, source: Source, mut driver: Box<dyn Driver>) {
    let connected = match source {
        Source::Open => open(stream, shared),
        Source::Accept(receiver) => accept(stream, shared, &receiver),
    };
    let socket = match connected.and_then(|socket| make_ready(stream, socket)) {
        Ok(socket) => stream.publish(socket),
        Err(error) => return stream.fail(error),
    };
    ew_sys::thread::use_exact_timers();
    if stream.role == Role::Send {
        ew_sys::thread::schedule_first();
    }
    if shared.cancel.sleep_until(shared.start_ns).is_err() {
        return;
    }
    let mut link = Link {
        socket: &socket,
        lane: &stream.lane,
        stopping: &shared.stopping,
        start_ns: shared.start_ns,
        window_ns: shared.window_ns.clone(),
    };
    let ended = driver.run(&mut link);
    stream.lock().latency = driver.take_latency();
    match ended {
        // Also the peer's end of the round, or our own shutdown.
        _ if shared.stopping.load(Ordering::Acquire) => {}
        Ok(()) => {}
        Err(broken) => stream.fail(format!(
            "{} {}: {}",
            broken.action, stream.peer, broken.error
        )),
    }
}

fn open(stream: &Stream, shared: &RoundShared) -> Result<TcpStream, String> {
    let hello = Hello::Stream {
        key: stream.key,
        role: stream.role,
    };
    Opening {
        source: shared.address,
        peer: stream.peer,
        hello: hello.encode(&shared.token),
        deadline_ns: shared.connect_by_ns(),
        cancel: &shared.cancel,
    }
    .run()
}

/// Waits a little beyond the start: the opener's clock may be later than ours.
fn accept(
    stream: &Stream,
    shared: &RoundShared,
    receiver: &Receiver<TcpStream>,
) -> Result<TcpStream, String> {
    let from = stream.peer.ip();
    let deadline_ns = shared.window_ns.start.max(shared.start_ns);
    loop {
        let now_ns = monotonic_ns();
        if shared.cancel.is_raised() {
            return Err(format!("accept from {from}: aborted"));
        }
        if now_ns >= deadline_ns {
            return Err(format!(
                "accept from {from}: no connection came before the round's start"
            ));
        }
        let left = Duration::from_nanos(deadline_ns - now_ns);
        match receiver.recv_timeout(left.min(CALL_TIMEOUT)) {
            Ok(socket) => return Ok(socket),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(format!("accept from {from}: the engine ended"));
            }
        }
    }
}

fn make_ready(stream: &Stream, socket: TcpStream) -> Result<TcpStream, String> {
    let set = || {
        socket.set_nonblocking(false)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(CALL_TIMEOUT))?;
        socket.set_write_timeout(Some(CALL_TIMEOUT))
    };
    match set() {
        Ok(()) => Ok(socket),
        Err(error) => Err(format!("connection with {}: {error}", stream.peer)),
    }
}
