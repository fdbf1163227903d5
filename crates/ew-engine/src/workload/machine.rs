//! What a workload defines: its streams' machines, and what they work with.
//!
//! * [`Prepared`] is what a round's streams share. It makes one [`Machine`] per stream once the
//!   stream's connection is up.
//! * [`Machine`] is one stream: [`Machine::start`] at the round's start, then [`Machine::step`]
//!   again and again. A step makes a few system calls, counts in [`Io::counters`] and
//!   [`Io::tally`], and returns what it waits for. The same machine runs under two drivers: alone
//!   on a thread, where its calls block, so that a step simply comes again; and next to thousands
//!   of others on an edge-triggered epoll set, where a step must go on until its socket would
//!   block, or return [`Wait::Again`]. A machine that waits for a time and a socket at once returns
//!   false from [`Prepared::may_block`].
//! * Every stream begins with a TCP connection that was authenticated by its hello. Where the data
//!   goes over something else, the two ends exchange their ports over that connection: both
//!   have a [`Machine::own_socket`] (UDP socket, listener), which gives its port and cookie, gets
//!   the peer's and connects. [`Machine::socket`] then is the new socket, and [`Io::adopt`] makes
//!   later ones fit the driver. The connection stays open, so that the supervisor sees that the
//!   peer lives, and is shut down at the end.
//! * A workload without a peer's stream (ICMP echo) returns false from [`Prepared::connects`] and
//!   makes its machines in [`Prepared::alone`]; those of the receiving end are [`Wait::Done`] at
//!   once.
//! * What is counted besides bytes and transactions goes into [`Tally`]: while running through
//!   [`Io::tally`], at the end in [`Machine::finish`].

use crate::counters::StreamCounters;
use crate::data_ports::DataPorts;
use crate::shared::RoundShared;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use ew_model::record::FigureNote;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use ew_sys::epoll::{Epoll, Watch};
use socket2::SockRef;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Length of an [`Offer`] on the wire.
pub(crate) const OFFER_BYTES: usize = 16;
/// Waits that the round's end does not wake come back at least this often to see whether they shall
/// stop.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);

/// What a round's streams share, made before any of them starts.
pub(crate) trait Prepared: Send + Sync {
    /// A connected stream's machine, with all the memory it will need.
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError>;

    /// Bytes of [`Io::buffer`] that a stream with this role needs; the streams of a thread share
    /// one buffer.
    fn buffer_bytes(&self, role: Role) -> usize;

    /// Whether a machine that has a thread for itself may block in its calls.
    fn may_block(&self) -> bool {
        true
    }

    /// Up to this many streams on a host go faster with a thread for each than on a thread per
    /// core.
    fn streams_with_own_threads(&self) -> usize {
        0
    }

    /// Whether the two ends connect at all.
    fn connects(&self) -> bool {
        true
    }

    /// A stream's machine where the ends do not connect.
    fn alone(&self, _slot: &Slot<'_>) -> Result<Box<dyn Machine>, StreamError> {
        Err(StreamError::Alone)
    }

    /// Whether this end counts payload, so that none is a failure.
    fn counts(&self, _role: Role) -> bool {
        true
    }

    /// Whether the connection's `TCP_INFO` is the data's.
    fn data_is_on_the_connection(&self) -> bool {
        true
    }

    /// Whether a receiver's bytes are those that came over the connection after the handshake, and
    /// nothing else.
    fn counts_what_comes(&self) -> bool {
        false
    }
}

/// Moves one stream's bytes.
pub(crate) trait Machine: Send {
    /// The stream's own socket. `None`: the data goes over the connection.
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        None
    }

    /// What the driver watches from the start on. `None`: nothing yet.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// The round's start. Senders send a little at once ([`Io::note_start`] first); bulk senders
    /// then wait until [`Io::load_from_ns`], so that all begin together.
    fn start(&mut self, _io: &mut Io<'_>) -> Result<(), Broken> {
        Ok(())
    }

    /// Goes on.
    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken>;

    /// The end, however it came about: adds to the tally and to the stream's notes what was not
    /// added while running.
    fn finish(&mut self, _stream: &Stream, _tally: &mut Tally) {}
}

/// A stream's socket for the data besides its connection, over which the two ends exchange
/// where theirs are.
pub(crate) trait OwnSocket {
    /// Where the peer finds it, open from now on.
    fn offer(&mut self, slot: &Slot<'_>) -> Result<Offer, StreamError>;

    /// Learns where the peer's is.
    fn accept_offer(&mut self, slot: &Slot<'_>, peer: Offer) -> Result<(), StreamError>;
}

/// What a machine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing: it could go on, but others may come first.
    Again,
    /// A change of its sockets.
    Socket,
    /// CLOCK_MONOTONIC.
    Until(u64),
    /// Whichever comes first. Only where it may not block.
    SocketOrUntil(u64),
    /// The end of the round: it has done its work.
    Done,
}

/// The receiving end of a workload without a peer's stream.
pub(super) struct Bystander;

impl Machine for Bystander {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn step(&mut self, _io: &mut Io<'_>) -> Result<Wait, Broken> {
        Ok(Wait::Done)
    }
}

/// How a stream ended before it was stopped.
#[derive(Debug)]
pub(crate) struct Broken {
    /// For example "send to".
    pub(crate) action: &'static str,
    pub(crate) error: io::Error,
}

/// Where the data of a stream goes, when it does not go over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) port: u16,
    /// What datagrams or connections must begin with to belong to the stream.
    pub(crate) cookie: u64,
}

/// A stream and its surroundings, when its machine is made.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) shared: &'a RoundShared,
    pub(crate) stream: &'a Stream,
}

impl RoundShared {
    pub(crate) fn slot<'a>(&'a self, stream: &'a Stream) -> Slot<'a> {
        Slot {
            shared: self,
            stream,
        }
    }
}

impl Slot<'_> {
    /// Binds a socket of the stream's own to a data port of this host, so that firewalls let it
    /// through.
    pub(super) fn bind(&self, bind: impl Fn(SocketAddr) -> io::Result<()>) -> io::Result<()> {
        if let Some(ports) = self.served_ports() {
            return match ports.bind(self.shared.address, None, bind)? {
                true => Ok(()),
                false => Err(io::Error::other(
                    "no port that the Service leads to is free",
                )),
            };
        }
        let chosen = self.stream.chosen_ports.map(|ports| ports.first());
        let ports = &self.shared.ports;
        let is_in_range = ports.bind(self.shared.address, chosen, bind)?;
        if !is_in_range {
            self.stream.note(FigureNote::PortOutsideRange);
        }
        Ok(())
    }

    /// The ports that a Service leads to, at the end behind it.
    pub(super) fn served_ports(&self) -> Option<&DataPorts> {
        let is_served = !self.stream.opens && self.stream.service.is_some();
        self.shared.served_ports.as_ref().filter(|_| is_served)
    }

    /// Where a port of the peer is reached from here.
    pub(super) fn reached_at(&self, port: u16) -> Result<SocketAddr, StreamError> {
        let mut peer = self.stream.peer;
        let service = self.stream.service.as_ref().filter(|_| self.stream.opens);
        let translated = service.map_or(Some(port), |service| service.translated(port));
        let port = translated.ok_or(StreamError::Service { peer, port })?;
        peer.set_port(port);
        Ok(peer)
    }
}

/// What a machine works with.
pub(crate) struct Io<'a> {
    pub(crate) shared: &'a RoundShared,
    pub(crate) stream: &'a Stream,
    /// The stream's.
    pub(crate) counters: &'a StreamCounters,
    /// Shared by the thread's streams: what is in it is gone with the next step.
    pub(crate) buffer: &'a mut [u8],
    /// Of the thread's streams of one flow.
    pub(crate) tally: &'a mut Tally,
    pub(crate) poll: Poll<'a>,
}

/// How a stream is driven.
#[derive(Clone, Copy)]
pub(crate) enum Poll<'a> {
    /// Calls block.
    Blocking,
    /// Changes are reported under this token.
    Watched(&'a Epoll, u64),
}

impl Io<'_> {
    /// Notes the start: a sender calls it right before its first send.
    pub(crate) fn note_start(&self) {
        self.counters.note_first_send(monotonic_ns());
    }

    /// Whether calls block.
    pub(crate) fn blocks(&self) -> bool {
        matches!(self.poll, Poll::Blocking)
    }

    /// Whether a time lies in the window.
    pub(crate) fn in_window(&self, at_ns: u64) -> bool {
        (self.shared.window_ns.start..=self.shared.window_ns.end).contains(&at_ns)
    }

    /// Makes a socket fit the driver.
    pub(crate) fn adopt(&self, socket: &impl AsFd) -> io::Result<()> {
        let handle = SockRef::from(socket);
        match self.poll {
            Poll::Blocking => {
                // The round's end wakes whoever waits for the connection; a time to wait would cost
                // a timer per call.
                let is_woken = self.shared.data_is_on_the_connection;
                let timeout = Some(CALL_TIMEOUT).filter(|_| !is_woken);
                handle.set_nonblocking(false)?;
                handle.set_read_timeout(timeout)?;
                handle.set_write_timeout(timeout)
            }
            Poll::Watched(epoll, token) => {
                handle.set_nonblocking(true)?;
                epoll.add(socket, Watch::Changes, token)
            }
        }
    }
}

impl Offer {
    /// Big endian: port 2, zero 6, cookie 8.
    pub(crate) fn encode(self) -> [u8; OFFER_BYTES] {
        let mut wire = [0; OFFER_BYTES];
        wire[..2].copy_from_slice(&self.port.to_be_bytes());
        wire[8..].copy_from_slice(&self.cookie.to_be_bytes());
        wire
    }

    pub(crate) fn decode(wire: &[u8; OFFER_BYTES]) -> Self {
        let [p0, p1, .., c0, c1, c2, c3, c4, c5, c6, c7] = *wire;
        Self {
            port: u16::from_be_bytes([p0, p1]),
            cookie: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_understood() {
        let offer = Offer {
            port: 0x1234,
            cookie: 0x0102_0304_0506_0708,
        };
        assert_eq!(Offer::decode(&offer.encode()), offer);
    }
}
