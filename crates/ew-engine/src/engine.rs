//! The engine: a data listener and the rounds that run.

use crate::Done;
use crate::acceptor::{Acceptor, AcceptorShared};
use crate::clock_wait::Cancel;
use crate::error::EngineError;
use crate::port_check;
use crate::registry::Registry;
use crate::relay::Relay;
use crate::round::{Round, RoundHost};
use crate::running::RunningRound;
use crate::settings::BACKLOG;
use ew_proto::message::{PortAnswer, PortCheck, RelayKey, RunToken};
use ew_proto::round::RoundSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Stack for what the caller does in its `done`.
const SUPERVISOR_STACK_BYTES: usize = 512 * 1024;
const ACCEPTOR_STACK_BYTES: usize = 256 * 1024;
/// EADDRINUSE of errno(3).
const ADDRESS_IN_USE: i32 = 98;

/// What an engine needs to know.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// The data listener's address, and the source of connections.
    pub address: IpAddr,
    /// First and last port that the listener and streams' own sockets may take; (0, 0) for any.
    pub ports: (u16, u16),
    /// What connections must present.
    pub token: RunToken,
    /// Hand this program on, at the data listener, to who presents this.
    pub relay_key: Option<RelayKey>,
}

/// Cumulative counts since the engine's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Payload bytes sent.
    pub tx_bytes: u64,
    /// Payload bytes received.
    pub rx_bytes: u64,
    /// Connections that were closed because they did not belong to the run.
    pub rejected_connections: u64,
}

/// Moves bytes. Dropping it ends its rounds and closes the listener.
#[derive(Debug)]
pub struct Engine {
    host: Arc<RoundHost>,
    port: u16,
    acceptor: Option<JoinHandle<()>>,
    rounds: Mutex<Vec<Weak<Cancel>>>,
}

impl Engine {
    /// Binds the data listener and starts its thread.
    ///
    /// # Errors
    /// The address is not this host's, no port of the range is free, or the process has no socket
    /// or thread left.
    pub fn start(config: EngineConfig) -> Result<Self, EngineError> {
        let (listener, probes) = bind_first_free(config.address, config.ports)?;
        let port = listener.local_addr().map_err(EngineError::Sockets)?.port();
        let (waker, wake) = wake_pair().map_err(EngineError::Sockets)?;
        let shared = Arc::new(AcceptorShared {
            registry: Registry::new(waker),
            token: config.token,
            relay: config.relay_key.as_ref().map(Relay::new),
            address: config.address,
            rejected_connections: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let acceptor = Acceptor::new(listener, probes, wake, Arc::clone(&shared));
        let mut acceptor = acceptor.map_err(EngineError::Sockets)?;
        let thread = std::thread::Builder::new()
            .name("acceptor".to_owned())
            .stack_size(ACCEPTOR_STACK_BYTES)
            .spawn(move || acceptor.run())
            .map_err(|source| EngineError::Thread {
                purpose: "the data listener",
                source,
            })?;
        Ok(Self {
            host: Arc::new(RoundHost {
                address: config.address,
                ports: config.ports,
                token: config.token,
                acceptor: shared,
                totals: Arc::default(),
            }),
            port,
            acceptor: Some(thread),
            rounds: Mutex::default(),
        })
    }

    /// The data listener's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Payload of all rounds, running ones included, and unauthenticated peers turned away.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let (tx_bytes, rx_bytes) = self.host.totals.sum();
        Totals {
            tx_bytes,
            rx_bytes,
            rejected_connections: self
                .host
                .acceptor
                .rejected_connections
                .load(Ordering::Relaxed),
        }
    }

    /// Runs a round on threads of its own and returns at once. `done` is called from the round's
    /// thread some 20 ms after the window's end, with one report per flow in the order of the
    /// flows.
    ///
    /// # Errors
    /// The round asks for something impossible, or its thread cannot be started; `done` is then not
    /// called.
    pub fn run_round(&self, spec: RoundSpec, done: Done) -> Result<RunningRound, EngineError> {
        let cancel = Arc::new(Cancel::default());
        let round = Round::register(spec, Arc::clone(&self.host), Arc::clone(&cancel))?;
        let running = round.running();
        self.remember(&cancel);
        std::thread::Builder::new()
            .name("round".to_owned())
            .stack_size(SUPERVISOR_STACK_BYTES)
            .spawn(move || round.run(done))
            .map_err(|source| EngineError::Thread {
                purpose: "a round",
                source,
            })?;
        Ok(running)
    }

    /// Ends all running rounds within 200 ms; their flows report errors.
    pub fn abort(&self) {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        for cancel in rounds.drain(..).filter_map(|weak| weak.upgrade()) {
            cancel.raise();
        }
    }

    /// Asks whether peers' data ports can be reached and belong to the run. One answer per peer, in
    /// their order. Blocks for at most `timeout`, with UDP for twice that.
    #[must_use]
    pub fn check_ports(&self, check: &PortCheck, timeout: Duration) -> Vec<PortAnswer> {
        port_check::check_ports(&self.host, check, timeout)
    }

    fn remember(&self, cancel: &Arc<Cancel>) {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        rounds.retain(|weak| weak.strong_count() > 0);
        rounds.push(Arc::downgrade(cancel));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.abort();
        self.host.acceptor.ended.store(true, Ordering::Release);
        self.host.acceptor.registry.wake();
        if let Some(thread) = self.acceptor.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

/// The listener, and a UDP socket for probes at the same port: the first that is free for both, or
/// else for TCP.
fn bind_first_free(
    address: IpAddr,
    ports: (u16, u16),
) -> Result<(TcpListener, Option<UdpSocket>), EngineError> {
    let (first, last) = ports;
    let mut for_tcp = None;
    let mut failure = io::Error::from_raw_os_error(ADDRESS_IN_USE);
    for port in first..=last {
        match listen(SocketAddr::new(address, port)) {
            Ok(listener) => match bind_beside(&listener) {
                Ok(probes) => return Ok((listener, Some(probes))),
                Err(_) => for_tcp = for_tcp.or(Some(listener)),
            },
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                return Err(EngineError::Address {
                    address,
                    source: error,
                });
            }
            Err(error) => failure = error,
        }
    }
    let listener = for_tcp.ok_or(EngineError::NoFreePort {
        address,
        first,
        last,
        source: failure,
    })?;
    Ok((listener, None))
}

fn bind_beside(listener: &TcpListener) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(listener.local_addr()?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of an earlier run may still be in TIME-WAIT at this port.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn wake_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (waker, wake) = UnixStream::pair()?;
    waker.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    Ok((waker, wake))
}
