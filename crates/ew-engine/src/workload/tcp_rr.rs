//! TCP request and response: the sending end asks, the receiving end answers.
//!
//! In a closed loop a stream keeps a number of requests in flight and sends the next one when an
//! answer has come. In an open loop every request has a time at which it is sent whether or not
//! answers came; its latency counts from that time, so that a stall of the network counts for all
//! requests that fell into it.

use super::machine::{Broken, Io, Machine, Prepared, Slot, Wait};
use super::requests::{Asking, Schedule, record};
use super::tcp::{receive, send};
use crate::buffer::PageBuffer;
use crate::stream_error::StreamError;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use std::collections::VecDeque;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

const MIN_RECEIVE_BYTES: usize = 64 * 1024;
const MAX_RECEIVE_BYTES: usize = 1024 * 1024;
/// Several small messages leave in one send of at most this length.
const TRAIN_BYTES: usize = 64 * 1024;

pub(super) struct TcpRequests {
    asking: Asking,
    /// Read-only, and as long as the longest send.
    content: Arc<PageBuffer>,
}

struct Requester {
    socket: Arc<TcpStream>,
    content: Arc<PageBuffer>,
    asking: Asking,
    /// What is still to be sent of requests that were begun.
    unsent_bytes: usize,
    /// What has come of the next answer.
    received_bytes: usize,
    /// When the requests in flight were sent, oldest first.
    sent_ns: VecDeque<u64>,
    schedule: Option<Schedule>,
    answered: u64,
    left: Option<u64>,
}

struct Responder {
    socket: Arc<TcpStream>,
    content: Arc<PageBuffer>,
    request_bytes: usize,
    response_bytes: usize,
    received_bytes: usize,
    /// What is still to be sent.
    owed_bytes: usize,
}

impl TcpRequests {
    pub(super) fn new(workload: &Workload) -> Self {
        let asking = Asking::new(workload);
        let content_bytes = TRAIN_BYTES
            .max(asking.request_bytes)
            .max(asking.response_bytes);
        Self {
            asking,
            content: Arc::new(PageBuffer::incompressible(content_bytes)),
        }
    }

    fn requester(&self, slot: &Slot<'_>, socket: Arc<TcpStream>) -> Requester {
        Requester {
            socket,
            content: Arc::clone(&self.content),
            asking: self.asking,
            unsent_bytes: 0,
            received_bytes: 0,
            sent_ns: VecDeque::with_capacity(self.asking.most_in_flight),
            schedule: self.asking.schedule(slot),
            answered: 0,
            left: self.asking.limit,
        }
    }
}

impl Prepared for TcpRequests {
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        Ok(match slot.stream.role {
            Role::Send => Box::new(self.requester(slot, connection)),
            Role::Receive => Box::new(Responder {
                socket: connection,
                content: Arc::clone(&self.content),
                request_bytes: self.asking.request_bytes,
                response_bytes: self.asking.response_bytes,
                received_bytes: 0,
                owed_bytes: 0,
            }),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        let message_bytes = match role {
            Role::Send => self.asking.response_bytes,
            Role::Receive => self.asking.request_bytes,
        };
        message_bytes.clamp(MIN_RECEIVE_BYTES, MAX_RECEIVE_BYTES)
    }

    /// With several requests in flight both ends could wait for each other to receive.
    fn may_block(&self) -> bool {
        self.asking.most_in_flight == 1
    }
}

impl Machine for Requester {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.asking.allocate(io);
        io.note_start();
        self.ask(io, monotonic_ns())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let mut may_have_more = false;
        let mut now_ns = None;
        // Where calls block, the request must be on its way before its answer is waited for.
        let must_send = self.unsent_bytes > 0 && io.blocks();
        if !self.sent_ns.is_empty() && !must_send {
            let received = receive(&self.socket, io.buffer)?;
            may_have_more = received == io.buffer.len();
            if received > 0 {
                let at_ns = monotonic_ns();
                now_ns = Some(at_ns);
                self.take(io, received, at_ns);
            }
        }
        if self.left == Some(0) && self.sent_ns.is_empty() {
            io.counters.note_done(now_ns.unwrap_or_else(monotonic_ns));
            return Ok(Wait::Done);
        }
        self.ask(io, now_ns.unwrap_or_else(monotonic_ns))?;
        if may_have_more {
            return Ok(Wait::Again);
        }
        Ok(match &self.schedule {
            Some(schedule) if self.may_ask() => Wait::SocketOrUntil(schedule.due_ns(self.asked())),
            _ => Wait::Socket,
        })
    }
}

impl Requester {
    /// Sends all requests that may be sent.
    fn ask(&mut self, io: &mut Io<'_>, now_ns: u64) -> Result<(), Broken> {
        self.begin_requests(io, now_ns);
        while self.unsent_bytes > 0 {
            let count = self.unsent_bytes.min(self.content.as_slice().len());
            let sent = send(&self.socket, &self.content.as_slice()[..count])?;
            io.counters.add_sent(sent as u64);
            self.unsent_bytes -= sent;
            if sent < count {
                break;
            }
        }
        Ok(())
    }

    fn begin_requests(&mut self, io: &Io<'_>, now_ns: u64) {
        while self.may_ask() {
            let is_due = |schedule: &Schedule| schedule.due_ns(self.asked()) <= now_ns;
            if !self.schedule.as_ref().is_none_or(is_due) {
                return;
            }
            if let Some(left) = &mut self.left
                && io.shared.is_window_open()
            {
                *left -= 1;
            }
            self.sent_ns.push_back(now_ns);
            self.unsent_bytes += self.asking.request_bytes;
        }
    }

    fn may_ask(&self) -> bool {
        self.sent_ns.len() < self.asking.most_in_flight && self.left != Some(0)
    }

    /// Requests asked so far: answers come in order.
    fn asked(&self) -> u64 {
        self.answered + self.sent_ns.len() as u64
    }

    fn take(&mut self, io: &mut Io<'_>, received: usize, now_ns: u64) {
        io.counters.add_received(received as u64);
        self.received_bytes += received;
        while self.received_bytes >= self.asking.response_bytes {
            let Some(sent_ns) = self.sent_ns.pop_front() else {
                // More than was asked for: it belongs to nothing.
                self.received_bytes = 0;
                return;
            };
            self.received_bytes -= self.asking.response_bytes;
            let schedule = self.schedule.as_ref();
            let due_ns = schedule.map(|schedule| schedule.due_ns(self.answered));
            self.answered += 1;
            record(io, due_ns, sent_ns, now_ns);
        }
    }
}

impl Machine for Responder {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        // While answers were owed nobody listened to what came.
        let mut may_have_more = self.owed_bytes > 0;
        if self.owed_bytes == 0 {
            let received = receive(&self.socket, io.buffer)?;
            io.counters.add_received(received as u64);
            may_have_more = received == io.buffer.len();
            self.received_bytes += received;
            let requests = self.received_bytes / self.request_bytes;
            self.received_bytes %= self.request_bytes;
            self.owed_bytes = requests * self.response_bytes;
        }
        while self.owed_bytes > 0 {
            let count = self.owed_bytes.min(self.content.as_slice().len());
            let sent = send(&self.socket, &self.content.as_slice()[..count])?;
            io.counters.add_sent(sent as u64);
            self.owed_bytes -= sent;
            if sent < count {
                return Ok(Wait::Socket);
            }
        }
        Ok(if may_have_more {
            Wait::Again
        } else {
            Wait::Socket
        })
    }
}
