//! One stream of a flow as its round sees it: counters, socket, failure. Its driver is elsewhere.

use crate::clock_wait::Cancel;
use crate::connect::ChosenPorts;
use crate::counters::StreamCounters;
use crate::hello::{ACK_BYTES, HELLO_BYTES, StreamKey};
use crate::stream_error::StreamError;
use ew_model::record::{FigureNote, TracedPath};
use ew_proto::message::{FlowOrder, Role, ServicePorts};
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::tcp_received_bytes;
use std::collections::BTreeSet;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One stream as the supervisor sees it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: StreamKey,
    /// Index of its flow in the round.
    pub(crate) flow: usize,
    pub(crate) role: Role,
    /// Whether this end opens the connection.
    pub(crate) opens: bool,
    pub(crate) peer: SocketAddr,
    /// The peer's address in the run's inventory.
    pub(crate) peer_host: IpAddr,
    /// Where its port comes from. `None`: the kernel chooses.
    pub(crate) chosen_ports: Option<ChosenPorts>,
    /// Payload, at most, where flows of the round differ in it.
    pub(crate) bits_per_sec: Option<f64>,
    /// Through which ports the accepting end's own sockets are reached.
    pub(crate) service: Option<Box<ServicePorts>>,
    pub(crate) counters: Arc<StreamCounters>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<TcpStream>>,
    ports: Ports,
    failure: Option<Failure>,
    notes: BTreeSet<FigureNote>,
    path: Option<TracedPath>,
    /// At the last look.
    arrived_bytes: u64,
    /// No connection may begin to be used any more.
    is_over: bool,
}

/// How a stream ended before it was stopped.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// When it was noticed, CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// In words, which reports contain.
    pub(crate) error: String,
    /// The peer ended the connection, as it does when its round is over.
    pub(crate) is_peers_stop: bool,
}

/// A connection's ports; 0 before it is connected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ports {
    pub(crate) local: u16,
    pub(crate) peer: u16,
}

impl Stream {
    /// One of so many streams of a flow.
    pub(crate) fn new(key: StreamKey, flow: usize, order: &FlowOrder, streams: u32) -> Self {
        // The two ends' ports differ, since some switches hash the exclusive or of both.
        let of_end = |seed: u64| ChosenPorts {
            seed: if order.opens { seed } else { !seed },
            stream: u32::from(order.first_stream) + u32::from(key.stream),
        };
        Self {
            key,
            flow,
            role: order.role,
            opens: order.opens,
            peer: order.peer,
            peer_host: order.peer_host,
            chosen_ports: order.port_seed.map(of_end),
            bits_per_sec: order.bits_per_sec.map(|rate| rate / f64::from(streams)),
            service: order.service.clone(),
            counters: Arc::default(),
            state: Mutex::default(),
        }
    }

    /// Payload in this end's direction: what a sender sent, what a receiver received.
    pub(crate) fn counted_bytes(&self) -> u64 {
        match self.role {
            Role::Send => self.counters.sent_bytes(),
            Role::Receive => self.counters.received_bytes(),
        }
    }

    /// As [`Stream::counted_bytes`], with what has come to this host and was not read yet: what a
    /// receiver without CPU time reads late has not come late.
    pub(crate) fn arrived_bytes(&self) -> u64 {
        let read_bytes = self.counted_bytes();
        if self.role == Role::Send {
            return read_bytes;
        }
        let handshake_bytes = if self.opens { ACK_BYTES } else { HELLO_BYTES };
        let connection = self.connection();
        let came_bytes = connection.and_then(|socket| tcp_received_bytes(&*socket).ok()?);
        let payload_bytes = came_bytes
            .unwrap_or(0)
            .saturating_sub(handshake_bytes as u64);
        let mut state = self.lock();
        // With the connection the kernel forgets what came and was not read.
        state.arrived_bytes = state.arrived_bytes.max(payload_bytes).max(read_bytes);
        state.arrived_bytes
    }

    /// `None` until it is connected.
    pub(crate) fn connection(&self) -> Option<Arc<TcpStream>> {
        self.lock().connection.clone()
    }

    pub(crate) fn ports(&self) -> Ports {
        self.lock().ports
    }

    /// For workloads whose data goes over sockets of their own: where it goes.
    pub(crate) fn set_ports(&self, ports: Ports) {
        self.lock().ports = ports;
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    /// The first failure counts.
    pub(crate) fn fail(&self, error: &StreamError) {
        self.end(error, false);
    }

    /// As [`Stream::fail`], where the peer ended the connection.
    pub(crate) fn stopped_by_peer(&self, error: &StreamError) {
        self.end(error, true);
    }

    fn end(&self, error: &StreamError, is_peers_stop: bool) {
        let at_ns = monotonic_ns();
        self.lock().failure.get_or_insert_with(|| Failure {
            at_ns,
            error: error.to_string(),
            is_peers_stop,
        });
    }

    pub(crate) fn note(&self, note: FigureNote) {
        self.lock().notes.insert(note);
    }

    pub(crate) fn notes(&self) -> BTreeSet<FigureNote> {
        self.lock().notes.clone()
    }

    /// What is known of the stream's path so far.
    pub(crate) fn note_path(&self, path: &TracedPath) {
        self.lock().path = Some(path.clone());
    }

    pub(crate) fn path(&self) -> Option<TracedPath> {
        self.lock().path.clone()
    }

    /// Ends the connection, and one that comes later, and so wakes whoever waits for it.
    pub(crate) fn shut_down(&self) {
        let mut state = self.lock();
        state.is_over = true;
        if let Some(connection) = &state.connection {
            // It may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Lets go of the connection, so that it closes with its driver.
    pub(crate) fn release(&self) {
        self.lock().connection = None;
    }

    /// Shows the connection to the supervisor.
    pub(crate) fn publish(&self, connection: TcpStream) -> Arc<TcpStream> {
        let connection = Arc::new(connection);
        let mut state = self.lock();
        if state.is_over {
            let _ = connection.shutdown(Shutdown::Both);
        }
        state.ports = Ports {
            local: connection.local_addr().map_or(0, |a| a.port()),
            peer: connection.peer_addr().map_or(0, |a| a.port()),
        };
        let chosen = self.chosen_ports.filter(|_| self.opens);
        if chosen.is_some_and(|ports| ports.first() != state.ports.local) {
            state.notes.insert(FigureNote::SourcePortBusy);
        }
        state.connection = Some(Arc::clone(&connection));
        connection
    }

    /// Why the connection did not come in time.
    pub(crate) fn missed(&self, cancel: &Cancel) -> StreamError {
        let (verb, peer) = match self.opens {
            true => ("connect", self.peer.to_string()),
            false => ("accept from", self.peer.ip().to_string()),
        };
        match cancel.is_raised() {
            true => StreamError::Aborted { verb, peer },
            false => StreamError::Missed { verb, peer },
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{FlowId, RoundIndex, StageIndex};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn receiver(opens: bool) -> Stream {
        let key = StreamKey {
            stage: StageIndex(0),
            round: RoundIndex(0),
            flow: FlowId(0),
            stream: 0,
        };
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let order = FlowOrder::new(key.flow, Role::Receive, opens, peer);
        Stream::new(key, 0, &order, 1)
    }

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn what_waits_to_be_read_has_arrived() {
        for (opens, handshake_bytes) in [(false, HELLO_BYTES), (true, ACK_BYTES)] {
            let (mut sender, socket) = connected_pair();
            let stream = receiver(opens);
            let socket = stream.publish(socket);
            assert_eq!(stream.arrived_bytes(), 0);
            sender.write_all(&vec![1; handshake_bytes + 500]).unwrap();
            // Reads all but 400 bytes, of which it counts the payload.
            let mut read = vec![0; handshake_bytes + 100];
            (&*socket).read_exact(&mut read).unwrap();
            stream.counters.add_received(100);
            assert_eq!((stream.counted_bytes(), stream.arrived_bytes()), (100, 500));
            stream.release();
            assert_eq!(stream.arrived_bytes(), 500);
        }
    }

    #[test]
    fn what_was_read_of_a_closed_connection_has_arrived() {
        let stream = receiver(false);
        stream.counters.add_received(7);
        assert_eq!(stream.arrived_bytes(), 7);
    }
}
