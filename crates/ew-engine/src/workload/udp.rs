//! What UDP workloads share: a stream's own socket and what its datagrams begin with.
//!
//! Both ends open a socket and exchange its port and a secret cookie over the stream's
//! authenticated connection; then each socket is connected to the other. A datagram counts only
//! when it bears the cookie of the end it comes to. So nobody else's datagram is counted or
//! answered, and answers go to an address that has proved itself.
//!
//! Behind a Service the peer's address may be translated: this end then waits for the first
//! datagram that bears its cookie, and connects to where that came from.

use super::cookie;
use super::machine::{Broken, Io, Offer, OwnSocket, Slot};
use crate::connect::is_timeout;
use crate::refusal::Refusal;
use crate::stream::Ports;
use crate::stream_error::StreamError;
use ew_model::record::FigureNote;
use ew_sys::datagram::{MAX_BYTES, Received, enlarge_receive_buffer, receive_many, send_many};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Cookie and number.
pub(super) const HEADER_BYTES: usize = 16;
/// Unless another size is asked for. The kernel's own default (`net.core.rmem_default`, 208 KiB)
/// holds 90 full frames: a receiver that sleeps for a millisecond loses datagrams then, which shows
/// nothing of the network.
const RECEIVE_BUFFER_BYTES: u32 = 4 * 1024 * 1024;
/// A blocking receive comes back this soon to see whether the round is over.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(20);
/// How long to leave a socket alone that cannot send for another reason than its own buffer.
pub(super) const PAUSE_NS: u64 = 1_000_000;
/// Errors that came with earlier datagrams, taken before a receive is left for later.
const STALE_ERRORS: usize = 8;
const ENOBUFS: i32 = 105;

/// A stream's own socket.
pub(super) struct Channel {
    socket: UdpSocket,
    /// Datagrams to this end bear it.
    cookie: u64,
    /// Datagrams to the peer bear it.
    peer_cookie: u64,
    /// Its end is the peer's end.
    connection: Arc<TcpStream>,
    /// Whether the peer's address is known only from its first datagram.
    awaits_peer: Cell<bool>,
}

/// What became of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// So many datagrams, or calls' worth of bytes, at least one.
    Some(usize),
    /// None: the send buffer is full, and the socket reports when it is not.
    Full,
    /// None, for a reason whose end nobody reports: to be tried again in a while.
    Later,
}

/// Refuses datagrams that are too short for the header or do not fit into an IP packet.
pub(super) fn check_bytes(what: &'static str, bytes: u64, least: usize) -> Result<usize, Refusal> {
    let fits = usize::try_from(bytes).ok();
    fits.filter(|b| (least..=MAX_BYTES).contains(b))
        .ok_or(Refusal::DatagramSize { what, bytes, least })
}

impl OwnSocket for Channel {
    fn offer(&mut self, _slot: &Slot<'_>) -> Result<Offer, StreamError> {
        let address = self.socket.local_addr().map_err(StreamError::UdpPort)?;
        Ok(Offer {
            port: address.port(),
            cookie: self.cookie,
        })
    }

    /// Takes datagrams of this peer only from now on.
    fn accept_offer(&mut self, slot: &Slot<'_>, offer: Offer) -> Result<(), StreamError> {
        self.peer_cookie = offer.cookie;
        let is_served = slot.served_ports().is_some();
        self.awaits_peer.set(is_served);
        if !is_served {
            let peer = slot.reached_at(offer.port)?;
            let connected = self.socket.connect(peer);
            connected.map_err(|source| StreamError::UdpPeer { peer, source })?;
        }
        let local = self.socket.local_addr().map_or(0, |a| a.port());
        slot.stream.set_ports(Ports {
            local,
            peer: offer.port,
        });
        let chosen = slot.stream.chosen_ports.filter(|_| !is_served);
        if chosen.is_some_and(|ports| slot.shared.ports.within(ports.first()) != local) {
            slot.stream.note(FigureNote::SourcePortBusy);
        }
        Ok(())
    }
}

impl Channel {
    /// Opens the socket.
    pub(super) fn open(slot: &Slot<'_>, connection: Arc<TcpStream>) -> Result<Self, StreamError> {
        let peer = slot.stream.peer.ip();
        let cookie = cookie::fresh()?;
        let socket = bind(slot).map_err(|source| StreamError::UdpSocket { peer, source })?;
        Ok(Self {
            socket,
            cookie,
            peer_cookie: 0,
            connection,
            awaits_peer: Cell::new(false),
        })
    }

    /// After the driver's [`Io::adopt`].
    pub(super) fn start(&self, io: &Io<'_>) -> Result<(), Broken> {
        if !io.blocks() {
            return Ok(());
        }
        let set = self.socket.set_read_timeout(Some(RECEIVE_TIMEOUT));
        set.map_err(|error| Broken {
            action: "prepare the UDP socket to",
            error,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Writes what a datagram to the peer begins with. Shorter ones stay as they are.
    pub(super) fn write_header(&self, datagram: &mut [u8], number: u64) {
        if let Some(header) = datagram.first_chunk_mut::<HEADER_BYTES>() {
            header[..8].copy_from_slice(&self.peer_cookie.to_be_bytes());
            header[8..].copy_from_slice(&number.to_be_bytes());
        }
    }

    /// The number of a datagram that is for this stream.
    pub(super) fn read_header(&self, datagram: &[u8]) -> Option<u64> {
        let (cookie, rest) = datagram.split_first_chunk::<8>()?;
        let number = rest.first_chunk::<8>()?;
        (u64::from_be_bytes(*cookie) == self.cookie).then(|| u64::from_be_bytes(*number))
    }

    /// Sends the first `bytes` of each of the first `count` slots of `slot_bytes`.
    pub(super) fn send(
        &self,
        slots: &[u8],
        slot_bytes: usize,
        bytes: usize,
        count: usize,
    ) -> Result<Sent, Broken> {
        let outcome = match count {
            1 => self.socket.send(&slots[..bytes]).map(|_| 1),
            _ => send_many(&self.socket, slots, slot_bytes, bytes, count),
        };
        self.sent(outcome)
    }

    /// The outcome of a call that sends.
    pub(super) fn sent(&self, outcome: io::Result<usize>) -> Result<Sent, Broken> {
        let error = match outcome {
            Ok(count) => return Ok(Sent::Some(count)),
            Err(error) => error,
        };
        match error.raw_os_error() {
            // It reports an earlier datagram: the peer may not be ready, and may be gone.
            _ if is_refused(&error) => self.check_peer().map(|()| Sent::Later),
            Some(ENOBUFS) => Ok(Sent::Later),
            _ if is_timeout(&error) => Ok(Sent::Full),
            _ => Err(Broken {
                action: "send to",
                error,
            }),
        }
    }

    /// Receives into slots, and waits for the first datagram if it may; 0 when nothing came for
    /// now.
    pub(super) fn receive(
        &self,
        slots: &mut [u8],
        slot_bytes: usize,
        received: &mut [Received],
        waits: bool,
    ) -> Result<usize, Broken> {
        if self.awaits_peer.get() && !self.meet_peer()? {
            return Ok(0);
        }
        for _ in 0..STALE_ERRORS {
            let outcome = match received {
                [one] if waits => self.socket.recv(&mut slots[..slot_bytes]).map(|bytes| {
                    let segment_bytes = bytes;
                    *one = Received {
                        bytes,
                        segment_bytes,
                    };
                    1
                }),
                _ => receive_many(&self.socket, slots, slot_bytes, received, waits),
            };
            let error = match outcome {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            if !is_timeout(&error) && !is_refused(&error) {
                let action = "receive from";
                return Err(Broken { action, error });
            }
            if !waits && is_timeout(&error) {
                return Ok(0);
            }
            self.check_peer()?;
            if is_timeout(&error) {
                return Ok(0);
            }
        }
        Ok(0)
    }

    /// Connects to the sender of the first datagram with the cookie, which only the peer knows.
    /// Returns whether it has come.
    fn meet_peer(&self) -> Result<bool, Broken> {
        let broken = |error| Broken {
            action: "receive from",
            error,
        };
        let mut header = [0; HEADER_BYTES];
        for _ in 0..STALE_ERRORS {
            let (bytes, sender) = match self.socket.peek_from(&mut header) {
                Ok(found) => found,
                Err(error) if is_timeout(&error) => return self.check_peer().map(|()| false),
                Err(error) => return Err(broken(error)),
            };
            if self.read_header(&header[..bytes]).is_some() {
                self.socket.connect(sender).map_err(broken)?;
                self.awaits_peer.set(false);
                return Ok(true);
            }
            // Somebody else's.
            let _ = self.socket.recv(&mut header);
        }
        Ok(false)
    }

    /// An end of the connection is the peer's end: its silence then is none of the network's.
    pub(super) fn check_peer(&self) -> Result<(), Broken> {
        match self.connection.peek(&mut [0]) {
            Ok(0) => Err(Broken {
                action: "hear from",
                error: super::tcp::peer_closed(),
            }),
            _ => Ok(()),
        }
    }
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn bind(slot: &Slot<'_>) -> io::Result<UdpSocket> {
    let (own, peer) = (slot.shared.address, slot.stream.peer.ip());
    let domain = Domain::for_address(SocketAddr::new(own, 0));
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    let settings = &slot.shared.settings;
    settings.apply_to_any(&SockRef::from(&socket), peer)?;
    let asked = &settings.0;
    match asked.receive_buffer_bytes {
        // What became of it is compared below.
        Some(bytes) => drop(socket.set_recv_buffer_size(bytes as usize)),
        None => enlarge_receive_buffer(&socket, RECEIVE_BUFFER_BYTES),
    }
    // The kernel doubles what it grants (socket(7)).
    let is_less =
        |asked: Option<u32>, got: usize| asked.is_some_and(|bytes| got < bytes as usize * 2);
    if is_less(asked.send_buffer_bytes, socket.send_buffer_size()?)
        || is_less(asked.receive_buffer_bytes, socket.recv_buffer_size()?)
    {
        slot.stream.note(FigureNote::SettingRefused);
    }
    slot.bind(|at| socket.bind(&at.into()))?;
    Ok(socket.into())
}
