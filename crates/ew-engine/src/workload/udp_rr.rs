//! UDP request and response: the sending end asks, the receiving end answers each request once.
//!
//! Closed and open loop are those of [`super::tcp_rr`]. Nothing is retransmitted: a request that
//! has no answer after four times the longest time so far is lost, and the next one takes its
//! slot; its answer counts no more, should it come after all. Requests and answers begin with
//! cookie and number, big endian, 8 bytes each.

mod in_flight;

use self::in_flight::InFlight;
use super::machine::{Broken, Io, Machine, OwnSocket, Prepared, Slot, Wait};
use super::requests::{Asking, Schedule, record};
use super::sequence::Jitter;
use super::udp::{Channel, HEADER_BYTES, PAUSE_NS, Sent, check_bytes};
use crate::refusal::Refusal;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use ew_model::record::DatagramCounts;
use ew_model::workload::Workload;
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use ew_sys::datagram::{MAX_AT_ONCE, Received};
use std::net::TcpStream;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Datagrams of one call are at most this much together, but for one.
const BATCH_BYTES: usize = 256 * 1024;
/// How often requests are checked for lost ones.
const LOSS_CHECK_NS: u64 = 20_000_000;

pub(super) struct UdpRequests {
    asking: Asking,
    /// Datagrams of one call.
    batch: usize,
}

struct Requester {
    channel: Channel,
    asking: Asking,
    in_flight: InFlight,
    schedule: Option<Schedule>,
    asked: u64,
    left: Option<u64>,
    received: Vec<Received>,
    loss_check_ns: u64,
    window_ns: Range<u64>,
    counts: DatagramCounts,
    /// Of the round trips.
    jitter: Jitter,
}

struct Responder {
    channel: Channel,
    asking: Asking,
    received: Vec<Received>,
    /// Numbers of requests still to be answered.
    owed: Vec<u64>,
}

impl UdpRequests {
    pub(super) fn new(workload: &Workload) -> Result<Self, Refusal> {
        let request_bytes = check_bytes("requests", workload.message_bytes, HEADER_BYTES)?;
        let response_bytes = check_bytes("responses", workload.answer_bytes(), HEADER_BYTES)?;
        if response_bytes > request_bytes {
            return Err(Refusal::LongResponses {
                request_bytes,
                response_bytes,
            });
        }
        let asking = Asking::new(workload);
        let fits = (BATCH_BYTES / request_bytes).clamp(1, MAX_AT_ONCE);
        Ok(Self {
            asking,
            batch: fits.min(asking.most_in_flight),
        })
    }

    fn requester(&self, slot: &Slot<'_>, channel: Channel) -> Requester {
        Requester {
            channel,
            asking: self.asking,
            in_flight: InFlight::with_capacity(self.asking.most_in_flight),
            schedule: self.asking.schedule(slot),
            asked: 0,
            left: self.asking.limit,
            received: vec![Received::default(); self.batch],
            loss_check_ns: 0,
            window_ns: slot.shared.window_ns.clone(),
            counts: DatagramCounts::default(),
            jitter: Jitter::default(),
        }
    }
}

impl Prepared for UdpRequests {
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        let channel = Channel::open(slot, connection)?;
        Ok(match slot.stream.role {
            Role::Send => Box::new(self.requester(slot, channel)),
            Role::Receive => Box::new(Responder {
                channel,
                asking: self.asking,
                received: vec![Received::default(); self.batch],
                owed: Vec::with_capacity(self.batch),
            }),
        })
    }

    fn buffer_bytes(&self, _role: Role) -> usize {
        self.batch * self.asking.request_bytes
    }

    /// In an open loop a request may be due while answers are waited for.
    fn may_block(&self) -> bool {
        !self.asking.is_open_loop()
    }

    fn data_is_on_the_connection(&self) -> bool {
        false
    }
}

impl Machine for Requester {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(&mut self.channel)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.asking.allocate(io);
        self.channel.start(io)?;
        io.note_start();
        self.ask(io, monotonic_ns()).map(|_| ())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let mut came = 0;
        if !self.in_flight.is_empty() {
            let slot_bytes = self.asking.request_bytes;
            came = self
                .channel
                .receive(io.buffer, slot_bytes, &mut self.received, true)?;
        }
        let now_ns = monotonic_ns();
        self.take(io, came, now_ns);
        self.give_up_lost(now_ns);
        if self.left == Some(0) && self.in_flight.is_empty() {
            io.counters.note_done(now_ns);
            return Ok(Wait::Done);
        }
        let sent = self.ask(io, now_ns)?;
        if came == self.received.len() || (io.blocks() && sent != Some(Sent::Later)) {
            return Ok(Wait::Again);
        }
        Ok(self.wait(io, sent, now_ns))
    }

    fn finish(&mut self, _stream: &Stream, tally: &mut Tally) {
        let patience_ns = self.in_flight.patience_ns();
        let lost_before_ns = monotonic_ns().saturating_sub(patience_ns);
        self.count_lost(lost_before_ns);
        self.counts.jitter_ns = self.jitter.ns();
        tally.datagrams.push(self.counts);
    }
}

impl Requester {
    /// Counts the answers. What answers no request in flight came too late, or is a duplicate.
    fn take(&mut self, io: &mut Io<'_>, came: usize, now_ns: u64) {
        for at in 0..came {
            let slot = at * self.asking.request_bytes;
            let bytes = self.received[at].bytes;
            let answer = &io.buffer[slot..slot + bytes];
            let number = self.channel.read_header(answer);
            let Some((request, is_late)) =
                number.and_then(|number| self.in_flight.answered(number, now_ns))
            else {
                continue;
            };
            io.counters.add_received(bytes as u64);
            let due_ns = self.schedule.as_ref().map(|_| request.due_ns);
            record(io, due_ns, request.sent_ns, now_ns);
            if self.window_ns.contains(&now_ns) {
                self.counts.received += 1;
                self.counts.reordered += u64::from(is_late);
                self.jitter.note(request.sent_ns, now_ns);
            }
        }
    }

    /// Sends all requests that may be sent. `None` when there were none.
    fn ask(&mut self, io: &mut Io<'_>, now_ns: u64) -> Result<Option<Sent>, Broken> {
        let bytes = self.asking.request_bytes;
        let mut last = None;
        loop {
            let count = self.may_ask(now_ns);
            if count == 0 {
                return Ok(last);
            }
            let slots = io.buffer.chunks_exact_mut(bytes).take(count);
            for (offset, datagram) in slots.enumerate() {
                let number = self.in_flight.number(self.asked, offset);
                self.channel.write_header(datagram, number);
            }
            last = Some(self.channel.send(io.buffer, bytes, bytes, count)?);
            match last {
                Some(Sent::Some(sent)) => self.note_asked(io, sent, now_ns),
                _ => return Ok(last),
            }
        }
    }

    /// How many requests may be sent by one call.
    fn may_ask(&self, now_ns: u64) -> usize {
        let mut most = self.in_flight.free_slots().min(self.received.len());
        if let Some(left) = self.left {
            most = most.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        match &self.schedule {
            None => most,
            Some(schedule) => (0..most)
                .take_while(|offset| schedule.due_ns(self.asked + *offset as u64) <= now_ns)
                .count(),
        }
    }

    fn note_asked(&mut self, io: &Io<'_>, sent: usize, now_ns: u64) {
        for _ in 0..sent {
            let schedule = self.schedule.as_ref();
            let due_ns = schedule.map_or(now_ns, |schedule| schedule.due_ns(self.asked));
            self.in_flight.sent(self.asked, due_ns, now_ns);
            self.asked += 1;
        }
        io.counters
            .add_sent((sent * self.asking.request_bytes) as u64);
        if let Some(left) = &mut self.left
            && io.shared.is_window_open()
        {
            *left -= sent as u64;
        }
    }

    fn give_up_lost(&mut self, now_ns: u64) {
        if now_ns < self.loss_check_ns {
            return;
        }
        self.loss_check_ns = now_ns + LOSS_CHECK_NS;
        self.count_lost(now_ns.saturating_sub(self.in_flight.patience_ns()));
    }

    /// Those sent before the time are lost. Those of the window count.
    fn count_lost(&mut self, sent_before_ns: u64) {
        let (window_ns, counts) = (&self.window_ns, &mut self.counts);
        self.in_flight.give_up(sent_before_ns, |request| {
            counts.lost += u64::from(window_ns.contains(&request.sent_ns));
        });
    }

    /// Where calls do not block, and where nothing can be sent.
    fn wait(&self, io: &Io<'_>, sent: Option<Sent>, now_ns: u64) -> Wait {
        if sent == Some(Sent::Later) {
            let again_ns = now_ns + PAUSE_NS;
            return match io.blocks() {
                true => Wait::Until(again_ns),
                false => Wait::SocketOrUntil(again_ns),
            };
        }
        let has_space = self.in_flight.free_slots() > 0 && self.left != Some(0);
        Wait::SocketOrUntil(match &self.schedule {
            Some(schedule) if has_space && sent != Some(Sent::Full) => {
                schedule.due_ns(self.asked).min(self.loss_check_ns)
            }
            _ => self.loss_check_ns,
        })
    }
}

impl Machine for Responder {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(&mut self.channel)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.channel.start(io)
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        let mut may_have_more = true;
        if self.owed.is_empty() {
            let slot_bytes = self.asking.request_bytes;
            let came = self
                .channel
                .receive(io.buffer, slot_bytes, &mut self.received, true)?;
            may_have_more = came == self.received.len();
            self.take(io, came);
        }
        Ok(match self.answer(io)? {
            Some(Sent::Full) => Wait::Socket,
            Some(Sent::Later) => Wait::Until(monotonic_ns() + PAUSE_NS),
            _ if may_have_more => Wait::Again,
            _ => Wait::Socket,
        })
    }
}

impl Responder {
    /// Only whole requests are answered, so that no answer is longer than what it answers.
    fn take(&mut self, io: &Io<'_>, came: usize) {
        let slots = io.buffer.chunks_exact(self.asking.request_bytes);
        let mut payload = 0;
        for (slot, received) in slots.zip(&self.received[..came]) {
            let request = &slot[..received.bytes];
            if request.len() < slot.len() {
                continue;
            }
            if let Some(number) = self.channel.read_header(request) {
                payload += request.len();
                self.owed.push(number);
            }
        }
        io.counters.add_received(payload as u64);
    }

    /// Answers what is owed. `None` when nothing was.
    fn answer(&mut self, io: &mut Io<'_>) -> Result<Option<Sent>, Broken> {
        let bytes = self.asking.response_bytes;
        let mut last = None;
        while !self.owed.is_empty() {
            let slots = io.buffer.chunks_exact_mut(bytes);
            for (number, datagram) in self.owed.iter().zip(slots) {
                self.channel.write_header(datagram, *number);
            }
            let count = self.owed.len();
            last = Some(self.channel.send(io.buffer, bytes, bytes, count)?);
            match last {
                Some(Sent::Some(sent)) => {
                    io.counters.add_sent((sent * bytes) as u64);
                    self.owed.drain(..sent);
                }
                _ => return Ok(last),
            }
        }
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_responder_never_sends_more_than_it_received() {
        let workload = |message_bytes, response_bytes| Workload {
            message_bytes,
            response_bytes,
            ..Workload::of(ew_model::workload::WorkloadKind::UdpRr)
        };
        assert!(UdpRequests::new(&workload(64, None)).is_ok());
        assert!(UdpRequests::new(&workload(1400, Some(16))).is_ok());
        for (request, response) in [(64, Some(65)), (15, None), (64, Some(15)), (65_508, None)] {
            assert!(UdpRequests::new(&workload(request, response)).is_err());
        }
    }
}
