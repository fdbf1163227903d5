//! TCP request and response: the sending end asks, the receiving end answers.
//!
//! In a closed loop a stream keeps a number of requests in flight and sends the next one when an answer has come. In an open
//! loop every request has a time at which it is sent whether or not answers came; its latency counts from that time, so
//! that a stall of the network counts for all requests that fell into it.

use super::tcp::{receive, send};
use super::{Broken, Io, Machine, Prepared, Seat, Wait};
use crate::buffer::PageBuffer;
use ew_model::workload::{Limit, Workload};
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use std::collections::VecDeque;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

const LEAST_RECEIVE_BYTES: usize = 64 * 1024;
const MOST_RECEIVE_BYTES: usize = 1024 * 1024;
/// Several small messages leave in one send of at most this length.
const TRAIN_BYTES: usize = 64 * 1024;
/// Open loop: requests in flight on a stream; more are sent when answers came, and count from their times all the same.
const MOST_IN_FLIGHT: usize = 1024;

pub(super) struct TcpRequests {
    request_bytes: usize,
    response_bytes: usize,
    outstanding: usize,
    /// Time between the requests of a stream, ns.
    open_loop_gap_ns: Option<f64>,
    limit: Option<u64>,
    /// Read-only, and as long as the longest send.
    content: Arc<PageBuffer>,
}

struct Requester {
    socket: Arc<TcpStream>,
    content: Arc<PageBuffer>,
    request_bytes: usize,
    response_bytes: usize,
    /// What is still to be sent of requests that were begun.
    unsent_bytes: usize,
    /// What has come of the next answer.
    received_bytes: usize,
    /// When the requests in flight were sent, oldest first.
    sent_ns: VecDeque<u64>,
    most_in_flight: usize,
    schedule: Option<Schedule>,
    left: Option<u64>,
}

/// The times of an open loop's requests.
struct Schedule {
    first_ns: u64,
    gap_ns: f64,
    sent: u64,
    answered: u64,
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
        let request_bytes = workload.message_bytes as usize;
        let response_bytes = workload.answer_bytes() as usize;
        let content_bytes = TRAIN_BYTES.max(request_bytes).max(response_bytes);
        let rate = workload.pace.requests_per_sec;
        Self {
            request_bytes,
            response_bytes,
            outstanding: workload.outstanding.max(1) as usize,
            open_loop_gap_ns: rate.map(|rate| 1e9 * f64::from(workload.streams) / rate),
            limit: workload.limit.map(|limit| match limit {
                Limit::Bytes(bytes) => bytes.div_ceil(request_bytes as u64),
                Limit::Messages(messages) => messages,
            }),
            content: Arc::new(PageBuffer::incompressible(content_bytes)),
        }
    }

    fn requester(&self, seat: &Seat<'_>, socket: Arc<TcpStream>) -> Requester {
        let most_in_flight = match self.open_loop_gap_ns {
            Some(_) => MOST_IN_FLIGHT,
            None => self.outstanding,
        };
        // The streams of a flow take turns.
        let share = f64::from(seat.stream.key.stream) / f64::from(seat.shared.workload.streams);
        Requester {
            socket,
            content: Arc::clone(&self.content),
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            unsent_bytes: 0,
            received_bytes: 0,
            sent_ns: VecDeque::with_capacity(most_in_flight),
            most_in_flight,
            schedule: self.open_loop_gap_ns.map(|gap_ns| Schedule {
                first_ns: seat.shared.start_ns + (gap_ns * share) as u64,
                gap_ns,
                sent: 0,
                answered: 0,
            }),
            left: self.limit,
        }
    }
}

impl Prepared for TcpRequests {
    fn machine(
        &self,
        seat: &Seat<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, String> {
        Ok(match seat.stream.role {
            Role::Send => Box::new(self.requester(seat, connection)),
            Role::Receive => Box::new(Responder {
                socket: connection,
                content: Arc::clone(&self.content),
                request_bytes: self.request_bytes,
                response_bytes: self.response_bytes,
                received_bytes: 0,
                owed_bytes: 0,
            }),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        let message_bytes = match role {
            Role::Send => self.response_bytes,
            Role::Receive => self.request_bytes,
        };
        message_bytes.clamp(LEAST_RECEIVE_BYTES, MOST_RECEIVE_BYTES)
    }

    /// With several requests in flight both ends could wait for each other to receive.
    fn may_block(&self) -> bool {
        self.outstanding == 1 && self.open_loop_gap_ns.is_none()
    }
}

impl Machine for Requester {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.tally.times.make_room();
        if self.schedule.is_some() {
            io.tally.uncorrected.make_room();
        }
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
            io.lane.note_done(now_ns.unwrap_or_else(monotonic_ns));
            return Ok(Wait::Done);
        }
        self.ask(io, now_ns.unwrap_or_else(monotonic_ns))?;
        if may_have_more {
            return Ok(Wait::Again);
        }
        Ok(match &self.schedule {
            Some(schedule) if self.sent_ns.len() < self.most_in_flight && self.left != Some(0) => {
                Wait::SocketOrUntil(schedule.due_ns(schedule.sent))
            }
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
            io.lane.add_sent(sent as u64);
            self.unsent_bytes -= sent;
            if sent < count {
                break;
            }
        }
        Ok(())
    }

    fn begin_requests(&mut self, io: &Io<'_>, now_ns: u64) {
        while self.sent_ns.len() < self.most_in_flight && self.left != Some(0) {
            if let Some(schedule) = &mut self.schedule {
                if schedule.due_ns(schedule.sent) > now_ns {
                    return;
                }
                schedule.sent += 1;
            }
            if let Some(left) = &mut self.left
                && io.shared.is_window_open()
            {
                *left -= 1;
            }
            self.sent_ns.push_back(now_ns);
            self.unsent_bytes += self.request_bytes;
        }
    }

    fn take(&mut self, io: &mut Io<'_>, received: usize, now_ns: u64) {
        io.lane.add_received(received as u64);
        self.received_bytes += received;
        while self.received_bytes >= self.response_bytes {
            let Some(sent_ns) = self.sent_ns.pop_front() else {
                // More than was asked for: it belongs to nothing.
                self.received_bytes = 0;
                return;
            };
            self.received_bytes -= self.response_bytes;
            self.record(io, sent_ns, now_ns);
        }
    }

    fn record(&mut self, io: &mut Io<'_>, sent_ns: u64, now_ns: u64) {
        io.lane.add_transactions(1);
        let mut due_ns = sent_ns;
        if let Some(schedule) = &mut self.schedule {
            due_ns = schedule.due_ns(schedule.answered);
            schedule.answered += 1;
        }
        if !io.in_window(now_ns) {
            return;
        }
        io.tally.times.record(now_ns.saturating_sub(due_ns));
        if self.schedule.is_some() {
            io.tally.uncorrected.record(now_ns.saturating_sub(sent_ns));
        }
    }
}

impl Schedule {
    fn due_ns(&self, request: u64) -> u64 {
        self.first_ns + (request as f64 * self.gap_ns) as u64
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
            io.lane.add_received(received as u64);
            may_have_more = received == io.buffer.len();
            self.received_bytes += received;
            let requests = self.received_bytes / self.request_bytes;
            self.received_bytes %= self.request_bytes;
            self.owed_bytes = requests * self.response_bytes;
        }
        while self.owed_bytes > 0 {
            let count = self.owed_bytes.min(self.content.as_slice().len());
            let sent = send(&self.socket, &self.content.as_slice()[..count])?;
            io.lane.add_sent(sent as u64);
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
