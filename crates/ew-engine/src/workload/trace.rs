//! The routers on a stream's path: TCP SYNs with growing TTL from the stream's own 5-tuple, so that
//! switches which hash it send them where they send the stream's data. The sending end traces; the
//! receiving end's acceptor answers.
//!
//! A router that lets a TTL run out reports it by ICMP, and the kernel keeps that for the socket,
//! without a privilege ([`ew_sys::error_queue`]). The SYN that gets through opens a connection,
//! which proves itself as any other of the run ([`Hello::Probe`]) and ends by a reset, so that its
//! ports are free again at once. Its round trip is the stream's one transaction.
//!
//! Routers limit the ICMP errors they send (Linux: one a second to a host after a burst of six,
//! icmp(7)): streams begin one after the other, and a hop that does not answer is asked once more.

use super::machine::{Broken, Bystander, Io, Machine, Prepared, Slot, Wait};
use super::requests;
use crate::connect::is_busy;
use crate::hello::{ACK_BYTES, Ends, HELLO_BYTES, Hello, acknowledgement, same_secret};
use crate::stream::{Ports, Stream};
use crate::stream_error::StreamError;
use ew_model::record::{FigureNote, TracedPath};
use ew_proto::message::{Role, RunToken};
use ew_sys::clock::monotonic_ns;
use ew_sys::error_queue::{icmp_error_from, keep_icmp_errors};
use ew_sys::socket::tcp_info;
use socket2::Socket;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// From the start of one stream to the next one's, at most: shorter where the last would have less
/// than a quarter of the window left.
const MAX_SPACING_NS: u64 = 10_000_000;
/// How long after a question its answer is first polled for. Every pause is twice the one before,
/// since what has not come in a round trip within a site may be lost, and hosts that share CPUs
/// would spend them on polling. The round trip is the kernel's figure, whenever it is read.
const FIRST_POLL_NS: u64 = 1_000_000;
const MAX_POLL_NS: u64 = 16_000_000;
/// How long an answer is waited for: far above a round trip within a site.
const PATIENCE_NS: u64 = 250_000_000;
/// Times that a hop is asked.
const ATTEMPTS: u32 = 2;
/// Two tiers above the racks, and a few more, have fewer hops.
const MAX_HOPS: usize = 10;
/// After so many hops in a row without an answer none is expected.
const MAX_SILENT: usize = 4;
const EINPROGRESS: i32 = 115;

pub(super) struct Traces;

/// One stream's trace.
struct Tracer {
    source: SocketAddr,
    peer: SocketAddr,
    hello: [u8; HELLO_BYTES],
    acknowledgement: [u8; ACK_BYTES],
    settings: crate::settings::Settings,
    begin_ns: u64,
    path: TracedPath,
    attempt: u32,
    probe: Option<Probe>,
    /// The pause before the next poll.
    poll_ns: u64,
    /// There is nothing to trace from.
    is_port_busy: bool,
}

/// What is under way.
enum Probe {
    /// A SYN, until the time.
    Syn(TcpStream, u64),
    /// A connection that came about, until the peer has proved itself.
    Greeting(TcpStream, u64),
}

/// When a stream's trace begins, among all that this host traces.
fn begin_ns(slot: &Slot<'_>) -> u64 {
    let shared = slot.shared;
    let streams = u64::from(shared.workload.streams);
    let flow = shared
        .sent_flows
        .partition_point(|flow| *flow < slot.stream.flow);
    let number = flow as u64 * streams + u64::from(slot.stream.key.stream);
    let traces = (shared.sent_flows.len() as u64 * streams).max(1);
    let window_ns = shared.window_ns.end - shared.window_ns.start;
    shared.window_ns.start + number * spacing_ns(traces, window_ns)
}

fn spacing_ns(traces: u64, window_ns: u64) -> u64 {
    MAX_SPACING_NS.min(window_ns / 4 * 3 / traces)
}

/// What became of a SYN.
enum Answer {
    None,
    Router(IpAddr),
    Connected,
    /// The peer's host answers, and nothing listens there.
    Refused,
    Failed,
}

impl Tracer {
    fn new(slot: &Slot<'_>) -> Self {
        let ends = Ends {
            opener: slot.shared.address,
            acceptor: slot.stream.peer_host,
        };
        let token: &RunToken = &slot.shared.token;
        let hello = Hello::Probe.encode(ends, token);
        let port = slot.stream.chosen_ports.map_or(0, |ports| ports.first());
        Self {
            source: SocketAddr::new(slot.shared.address, port),
            peer: slot.stream.peer,
            acknowledgement: acknowledgement(&hello, token),
            hello,
            settings: slot.shared.settings.clone(),
            begin_ns: begin_ns(slot),
            path: TracedPath::default(),
            attempt: 0,
            probe: None,
            poll_ns: FIRST_POLL_NS,
            is_port_busy: false,
        }
    }

    /// The TTL that is asked for now.
    fn ttl(&self) -> u32 {
        self.path.hops.len() as u32 + 1
    }

    fn send_syn(&self) -> io::Result<TcpStream> {
        let socket = self.settings.tcp_socket(self.peer)?;
        socket.set_reuse_address(true)?;
        // A reset at the end leaves no TIME_WAIT behind that would keep the port busy.
        socket.set_linger(Some(Duration::ZERO))?;
        keep_icmp_errors(&socket, self.peer.is_ipv4())?;
        set_ttl(&socket, self.peer, self.ttl())?;
        socket.bind(&self.source.into())?;
        socket.set_nonblocking(true)?;
        match socket.connect(&self.peer.into()) {
            Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
            _ => Ok(socket.into()),
        }
    }

    /// Goes on to the next hop, or to the end.
    fn note_hop(&mut self, hop: Option<IpAddr>) {
        self.path.hops.push(hop);
        self.attempt = 0;
    }

    /// A SYN that nobody answered.
    fn note_silence(&mut self) {
        self.attempt += 1;
        if self.attempt == ATTEMPTS {
            self.note_hop(None);
        }
    }

    fn is_over(&self) -> bool {
        let hops = &self.path.hops;
        let silent = hops.iter().rev().take_while(|hop| hop.is_none()).count();
        self.path.is_complete || self.is_port_busy || hops.len() == MAX_HOPS || silent == MAX_SILENT
    }

    fn begin(&mut self, io: &Io<'_>) -> Result<(), Broken> {
        match self.send_syn() {
            Ok(socket) => {
                let local = socket.local_addr().map_or(0, |address| address.port());
                io.stream.set_ports(Ports {
                    local,
                    peer: self.peer.port(),
                });
                self.ask(Probe::Syn(socket, monotonic_ns() + PATIENCE_NS));
                Ok(())
            }
            Err(error) if is_busy(&error) => {
                io.stream.note(FigureNote::SourcePortBusy);
                self.is_port_busy = true;
                Ok(())
            }
            Err(error) => Err(Broken {
                action: "trace",
                error,
            }),
        }
    }

    fn check(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        match self.probe.take() {
            Some(Probe::Syn(socket, until_ns)) => match answer(&socket, self.peer) {
                Answer::None if monotonic_ns() < until_ns => {
                    self.probe = Some(Probe::Syn(socket, until_ns));
                }
                Answer::None => self.note_silence(),
                Answer::Router(address) => self.note_hop(Some(address)),
                Answer::Refused => self.path.is_complete = true,
                Answer::Connected => self.connected(socket, io),
                // An answer without its sender: a kernel before 5.11, or a host that cannot be
                // reached.
                Answer::Failed => self.note_silence(),
            },
            Some(Probe::Greeting(mut socket, until_ns)) => {
                let mut proof = [0; ACK_BYTES];
                match socket.peek(&mut proof) {
                    Ok(ACK_BYTES) if same_secret(&proof, &self.acknowledgement) => {
                        // Taken, so that the reset is not for unread data.
                        let _ = socket.read(&mut proof);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if monotonic_ns() < until_ns {
                            self.probe = Some(Probe::Greeting(socket, until_ns));
                        }
                    }
                    Ok(count) if (1..ACK_BYTES).contains(&count) && monotonic_ns() < until_ns => {
                        self.probe = Some(Probe::Greeting(socket, until_ns));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            None => {}
        }
        Ok(())
    }

    fn connected(&mut self, mut socket: TcpStream, io: &mut Io<'_>) {
        self.path.is_complete = true;
        let now_ns = monotonic_ns();
        if let Ok(reading) = tcp_info(&socket) {
            let round_trip_ns = u64::from(reading.info.rtt_us) * 1000;
            requests::record(io, None, now_ns.saturating_sub(round_trip_ns), now_ns);
        }
        // The send buffer of a fresh connection has space for a hello.
        if socket.write_all(&self.hello).is_ok() {
            self.ask(Probe::Greeting(socket, now_ns + PATIENCE_NS));
        }
    }

    fn ask(&mut self, probe: Probe) {
        self.probe = Some(probe);
        self.poll_ns = FIRST_POLL_NS;
    }
}

impl Prepared for Traces {
    fn machine(
        &self,
        slot: &Slot<'_>,
        _connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        self.alone(slot)
    }

    fn alone(&self, slot: &Slot<'_>) -> Result<Box<dyn Machine>, StreamError> {
        Ok(match slot.stream.role {
            Role::Send => Box::new(Tracer::new(slot)),
            Role::Receive => Box::new(Bystander),
        })
    }

    fn buffer_bytes(&self, _role: Role) -> usize {
        0
    }

    fn may_block(&self) -> bool {
        false
    }

    fn connects(&self) -> bool {
        false
    }

    fn counts(&self, _role: Role) -> bool {
        false
    }

    fn data_is_on_the_connection(&self) -> bool {
        false
    }
}

impl Machine for Tracer {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.tally.times.allocate();
        io.note_start();
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let now_ns = monotonic_ns();
        if now_ns < self.begin_ns {
            return Ok(Wait::Until(self.begin_ns));
        }
        self.check(io)?;
        if self.probe.is_none() {
            if self.is_over() {
                io.counters.note_done(now_ns);
                return Ok(Wait::Done);
            }
            self.begin(io)?;
        }
        io.stream.note_path(&self.path);
        let poll_at_ns = monotonic_ns() + self.poll_ns;
        self.poll_ns = (2 * self.poll_ns).min(MAX_POLL_NS);
        Ok(Wait::Until(poll_at_ns))
    }

    fn finish(&mut self, stream: &Stream, _tally: &mut crate::tally::Tally) {
        stream.note_path(&self.path);
    }
}

fn answer(socket: &TcpStream, peer: SocketAddr) -> Answer {
    match socket.take_error() {
        Ok(None) if socket.peer_addr().is_ok_and(|address| address == peer) => Answer::Connected,
        Ok(None) => Answer::None,
        Ok(Some(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Answer::Refused,
        Ok(Some(_)) | Err(_) => match icmp_error_from(socket) {
            Ok(Some(router)) => Answer::Router(router),
            Ok(None) | Err(_) => Answer::Failed,
        },
    }
}

fn set_ttl(socket: &Socket, peer: SocketAddr, ttl: u32) -> io::Result<()> {
    match peer {
        SocketAddr::V4(_) => socket.set_ttl_v4(ttl),
        SocketAddr::V6(_) => socket.set_unicast_hops_v6(ttl),
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SPACING_NS, spacing_ns};

    /// More than fit at the widest spacing, and few.
    #[test]
    fn the_last_trace_has_a_quarter_of_the_window() {
        let window_ns = 800_000_000;
        assert!(87 * spacing_ns(88, window_ns) <= window_ns / 4 * 3);
        assert_eq!(spacing_ns(4, window_ns), MAX_SPACING_NS);
    }
}
