//! The server: a listener, and the few connections whose requests have not come yet.

use super::super::machine::{Broken, CALL_TIMEOUT, Io, Machine, Offer, OwnSocket, Slot, Wait};
use super::super::requests::Asking;
use super::prefix::prefix;
use crate::buffer::PageBuffer;
use crate::connect::is_timeout;
use crate::settings::{BACKLOG, tcp_socket};
use crate::stream::Ports;
use crate::stream_error::StreamError;
use ew_sys::clock::monotonic_ns;
use ew_sys::connection::{accept_with_data, receive_now, send_before_more};
use ew_sys::socket::await_readable;
use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Connections accepted in one step.
const ACCEPTS_IN_A_ROW: usize = 32;
/// Connections whose requests are incomplete. When there are more the oldest is closed, whose
/// requester tries again.
const MAX_WAITING: usize = 256;
/// How long a request may take to come and its answer to go.
const WAITING_NS: u64 = 1_000_000_000;
/// How long the kernel keeps connections without data to itself, where this end does not poll for
/// them.
const WITHOUT_DATA_SECONDS: u8 = 3;
/// One stream's connections come one by one: this end wakes when one is up, while its request is on
/// the way, and polls for that for this long before it sets the connection aside. Waking for the
/// request alone costs a tenth of the rate where a sleeping CPU wakes slowly.
const BUSY_POLL_NS: u64 = 50_000;
/// Of the process or the host: no descriptor, or no memory left.
const OUT_OF_RESOURCES: [i32; 4] = [24, 23, 105, 12];
const EBADF: i32 = 9;
const EINVAL: i32 = 22;

pub(super) struct Responder {
    asking: Asking,
    content: Arc<PageBuffer>,
    cookie: u64,
    /// What requests begin with.
    prefix: Vec<u8>,
    listener: Option<TcpListener>,
    /// Oldest first.
    waiting: VecDeque<Call>,
}

/// A connection that has not been answered yet.
struct Call {
    socket: TcpStream,
    until_ns: u64,
    received: usize,
    sent: usize,
}

/// Who is at the listener.
enum Caller {
    Nobody,
    /// Whatever became of its connection (accept(2)); others may be behind it.
    Gone,
    Here(TcpStream),
}

enum Outcome {
    Answered,
    Waiting,
    /// An unauthenticated peer, or a requester that is gone.
    Over,
}

impl Responder {
    pub(super) fn new(asking: Asking, content: Arc<PageBuffer>, cookie: u64) -> Self {
        Self {
            asking,
            content,
            cookie,
            prefix: prefix(cookie, asking.request_bytes),
            listener: None,
            waiting: VecDeque::new(),
        }
    }
}

impl OwnSocket for Responder {
    fn offer(&mut self, slot: &Slot<'_>) -> Result<Offer, StreamError> {
        let address = slot.shared.address;
        let opened = listen(slot);
        let (listener, port) = opened.map_err(|source| StreamError::Listen { address, source })?;
        self.listener = Some(listener);
        slot.stream.set_ports(Ports {
            local: port,
            peer: 0,
        });
        let cookie = self.cookie;
        Ok(Offer { port, cookie })
    }

    /// Requesters come from anywhere.
    fn accept_offer(&mut self, _slot: &Slot<'_>, _peer: Offer) -> Result<(), StreamError> {
        Ok(())
    }
}

impl Machine for Responder {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(self)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(TcpListener::as_fd)
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        if let Some(listener) = &self.listener
            && !busy_polls(io)
        {
            // Without it there is only more to do.
            let _ = accept_with_data(listener, WITHOUT_DATA_SECONDS);
        }
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let mut may_accept = true;
        if !self.waiting.is_empty() {
            may_accept = self.await_any(io)?;
            self.go_on_with_waiting(io);
        }
        if !may_accept {
            return Ok(Wait::Again);
        }
        for _ in 0..ACCEPTS_IN_A_ROW {
            match self.accept()? {
                Caller::Nobody => return Ok(self.patience(io)),
                Caller::Gone => {}
                Caller::Here(socket) => self.answer_fresh(io, socket),
            }
            if io.blocks() {
                break;
            }
        }
        Ok(Wait::Again)
    }
}

impl Responder {
    /// Where calls block, nobody may block on one socket while others wait. Returns whether there
    /// may be somebody to accept.
    fn await_any(&self, io: &Io<'_>) -> Result<bool, Broken> {
        if !io.blocks() {
            return Ok(true);
        }
        let calls = self.waiting.iter().map(|call| call.socket.as_fd());
        let sockets = self.socket().into_iter().chain(calls);
        await_readable::<{ 1 + MAX_WAITING }>(sockets, CALL_TIMEOUT).map_err(cannot_accept)
    }

    fn go_on_with_waiting(&mut self, io: &mut Io<'_>) {
        let now_ns = monotonic_ns();
        for _ in 0..self.waiting.len() {
            let Some(mut call) = self.waiting.pop_front() else {
                return;
            };
            match self.advance(io, &mut call) {
                Outcome::Answered => self.count(io),
                Outcome::Waiting if call.until_ns > now_ns => self.waiting.push_back(call),
                Outcome::Waiting | Outcome::Over => {}
            }
        }
    }

    fn accept(&mut self) -> Result<Caller, Broken> {
        let Some(listener) = &self.listener else {
            return Ok(Caller::Nobody);
        };
        let error = match listener.accept() {
            Ok((socket, _)) => return Ok(Caller::Here(socket)),
            Err(error) => error,
        };
        match error.raw_os_error() {
            _ if is_timeout(&error) => Ok(Caller::Nobody),
            Some(code) if OUT_OF_RESOURCES.contains(&code) => self.make_room(&error),
            Some(EINVAL | EBADF) => Err(cannot_accept(error)),
            _ => Ok(Caller::Gone),
        }
    }

    /// Nothing is left for another connection. The oldest that waits may be anybody's, who sends
    /// nothing: its place is free then.
    fn make_room(&mut self, error: &io::Error) -> Result<Caller, Broken> {
        match self.waiting.pop_front() {
            Some(_) => Ok(Caller::Gone),
            None => Err(cannot_accept(io::Error::other(format!(
                "{error}; raise the limit of open files (ulimit -n)"
            )))),
        }
    }

    fn answer_fresh(&mut self, io: &mut Io<'_>, socket: TcpStream) {
        let mut call = Call {
            socket,
            until_ns: 0,
            received: 0,
            sent: 0,
        };
        match self.poll(io, &mut call) {
            Outcome::Answered => self.count(io),
            Outcome::Over => {}
            Outcome::Waiting => {
                call.until_ns = monotonic_ns() + WAITING_NS;
                // Where it cannot be watched it closes here, and its requester tries again.
                if io.blocks() || io.adopt(&call.socket).is_ok() {
                    self.waiting.push_back(call);
                }
                if self.waiting.len() > MAX_WAITING {
                    self.waiting.pop_front();
                }
            }
        }
    }

    /// As [`Self::advance`], again and again for a moment where it may.
    fn poll(&self, io: &mut Io<'_>, call: &mut Call) -> Outcome {
        let mut outcome = self.advance(io, call);
        if busy_polls(io) && matches!(outcome, Outcome::Waiting) {
            let poll_until_ns = monotonic_ns() + BUSY_POLL_NS;
            while matches!(outcome, Outcome::Waiting) && monotonic_ns() < poll_until_ns {
                outcome = self.advance(io, call);
            }
        }
        outcome
    }

    /// Receives and answers as far as it goes without waiting.
    fn advance(&self, io: &mut Io<'_>, call: &mut Call) -> Outcome {
        while call.received < self.asking.request_bytes {
            let count = (self.asking.request_bytes - call.received).min(io.buffer.len());
            let into = &mut io.buffer[..count];
            let received = match receive_now(&call.socket, into) {
                Ok(received) => received,
                Err(error) if is_timeout(&error) => return Outcome::Waiting,
                Err(_) => return Outcome::Over,
            };
            if received == 0 || !continues(&self.prefix, call.received, &into[..received]) {
                return Outcome::Over;
            }
            call.received += received;
        }
        while call.sent < self.asking.response_bytes {
            let content = self.content.as_slice();
            let count = (self.asking.response_bytes - call.sent).min(content.len());
            match send_before_more(&call.socket, &content[..count]) {
                Ok(sent) => call.sent += sent,
                Err(error) if is_timeout(&error) => return Outcome::Waiting,
                Err(_) => return Outcome::Over,
            }
        }
        Outcome::Answered
    }

    fn count(&self, io: &Io<'_>) {
        io.counters.add_received(self.asking.request_bytes as u64);
        io.counters.add_sent(self.asking.response_bytes as u64);
        io.counters.add_transactions(1);
    }

    fn patience(&self, io: &Io<'_>) -> Wait {
        match self.waiting.front() {
            Some(oldest) if !io.blocks() => Wait::SocketOrUntil(oldest.until_ns),
            Some(_) => Wait::Again,
            None => Wait::Socket,
        }
    }
}

/// Whether nobody else waits for the thread, or for its CPU.
fn busy_polls(io: &Io<'_>) -> bool {
    io.blocks() && io.shared.leaves_cpus
}

/// At this end's address, at a data port of this host.
fn listen(slot: &Slot<'_>) -> io::Result<(TcpListener, u16)> {
    let (settings, peer) = (&slot.shared.settings, slot.stream.peer.ip());
    let socket = tcp_socket(slot.shared.address, settings.0.mptcp)?;
    settings.listener().apply(&socket);
    // Accepted connections inherit it.
    settings.apply(&socket, peer)?;
    slot.bind(|at| socket.bind(&at.into()))?;
    socket.listen(BACKLOG)?;
    let listener = TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Whether bytes from this offset of a request on are what they must be.
fn continues(prefix: &[u8], offset: usize, bytes: &[u8]) -> bool {
    let expected = prefix.get(offset..).unwrap_or_default();
    let compared = expected.len().min(bytes.len());
    expected[..compared] == bytes[..compared]
}

fn cannot_accept(error: io::Error) -> Broken {
    Broken {
        action: "accept connections from",
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::workload::Workload;
    use proptest::prelude::*;

    #[test]
    fn whoever_only_waits_gives_way_where_resources_are_short() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let content = Arc::new(PageBuffer::incompressible(1));
        let mut responder = Responder::new(Asking::new(&Workload::default()), content, 7);
        responder.waiting.push_back(Call {
            socket,
            until_ns: 0,
            received: 0,
            sent: 0,
        });
        let error = io::Error::from_raw_os_error(OUT_OF_RESOURCES[0]);
        assert!(matches!(responder.make_room(&error), Ok(Caller::Gone)));
        assert!(responder.waiting.is_empty());
        assert!(responder.make_room(&error).is_err());
    }

    proptest! {
        #[test]
        fn a_request_is_known_however_it_is_cut(cookie: [u8; 8], rest: Vec<u8>, cuts: Vec<u8>) {
            let request = [&cookie[..], &rest].concat();
            let mut offset = 0;
            for cut in cuts.into_iter().map(usize::from).chain([request.len()]) {
                let end = (offset + cut).min(request.len());
                prop_assert!(continues(&cookie, offset, &request[offset..end]));
                offset = end;
            }
        }

        #[test]
        fn a_wrong_bit_is_seen(cookie: [u8; 8], bit in 0_usize..64, cut in 0_usize..8) {
            let mut wrong = cookie;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let whole = continues(&cookie, 0, &wrong[..cut]) && continues(&cookie, cut, &wrong[cut..]);
            prop_assert!(!whole);
        }
    }
}
