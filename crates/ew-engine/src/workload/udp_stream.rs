//! Bulk UDP: one end sends numbered datagrams, the other reports what became of them.
//!
//! Datagrams leave in batches: with segmentation one train (GSO) a call, which the receiving kernel
//! may hand out as it came (GRO); without it as many datagrams as a call takes. Every datagram
//! begins with cookie, number and time since the round's start, big endian, 8 bytes each. The start
//! is one moment, which each end knows in its own clock: so the time that a datagram was under way
//! is known as well as the clocks are. The rate is that of the payload, these bytes included, as it
//! came for the first time.

use super::busy_poll::BusyPoll;
use super::machine::{Broken, Io, Machine, OwnSocket, Prepared, Slot, Wait};
use super::pacer::{Pacer, stream_rate};
use super::sequence::{Jitter, Phase, Sequence};
use super::udp::{Channel, HEADER_BYTES, PAUSE_NS, Sent, check_bytes};
use crate::refusal::Refusal;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use ew_model::record::{DatagramCounts, FigureNote};
use ew_model::workload::{Limit, Workload};
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use ew_sys::datagram::{
    MAX_AT_ONCE, MAX_BYTES, MAX_SEGMENTS, Received, receive_trains, segment_sends,
};
use std::io;
use std::net::TcpStream;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// [`HEADER_BYTES`] and the time.
const MIN_BYTES: usize = HEADER_BYTES + 8;
/// Datagrams of one call are at most this much, and so is what they are received into, but for one
/// of each.
const BATCH_BYTES: usize = 128 * 1024;
/// What a train is received into.
const TRAIN_SLOT_BYTES: usize = 64 * 1024;
const TRAIN_SLOTS: usize = 4;
/// A paced sender's bursts are so short that this many leave in a second.
const BURSTS_PER_SEC: f64 = 4000.0;
/// Limited senders begin this much after their window does, so that receivers' windows have begun,
/// too.
const AFTER_WINDOW_START_NS: u64 = 2_000_000;
/// How often limited streams check whether the window's first counters have been read.
const WINDOW_POLL_NS: u64 = 100_000;
/// How long a receiver polls for the next datagram.
const BUSY_POLL_NS: u64 = 50_000;
/// How often a receiver that shares a thread checks whether the peer is still there.
const PEER_CHECK_NS: u64 = 1_000_000_000;

const EIO: i32 = 5;
const EINVAL: i32 = 22;
const EMSGSIZE: i32 = 90;
const EOPNOTSUPP: i32 = 95;

pub(super) struct UdpStreams {
    message_bytes: usize,
    /// Whether trains are wanted and datagrams are short enough.
    has_trains: bool,
    stream_bits_per_sec: Option<f64>,
    /// Datagrams of a stream after its first one.
    limit: Option<u64>,
}

struct Sender {
    channel: Channel,
    message_bytes: usize,
    has_trains: bool,
    /// Whether a train has left, and was counted.
    has_told: bool,
    pacer: Option<Pacer>,
    /// Datagrams of one call.
    burst: usize,
    start_ns: u64,
    load_from_ns: u64,
    is_loading: bool,
    left: Option<u64>,
    /// Number of the next datagram.
    next: u64,
}

struct Receiver {
    channel: Channel,
    /// Whether a train has come, and was counted.
    has_told: bool,
    /// Whether it polled in vain since the window's start, before anything came.
    found_nothing: bool,
    slot_bytes: usize,
    received: Vec<Received>,
    sequence: Sequence,
    jitter: Jitter,
    is_limited: bool,
    peer_check_ns: u64,
    busy_poll: BusyPoll,
}

impl UdpStreams {
    pub(super) fn new(workload: &Workload) -> Result<Self, Refusal> {
        let message_bytes = check_bytes("datagrams", workload.message_bytes, MIN_BYTES)?;
        Ok(Self {
            message_bytes,
            has_trains: workload.segmentation && message_bytes * 2 <= MAX_BYTES,
            stream_bits_per_sec: stream_rate(&workload.pace, workload.streams)?,
            limit: workload.limit.map(|limit| match limit {
                Limit::Bytes(bytes) => bytes.div_ceil(message_bytes as u64),
                Limit::Messages(messages) => messages,
            }),
        })
    }

    /// Datagrams of one call.
    fn batch(&self) -> usize {
        match self.has_trains {
            true => (MAX_BYTES / self.message_bytes).min(MAX_SEGMENTS),
            false => (BATCH_BYTES / self.message_bytes).clamp(1, MAX_AT_ONCE),
        }
    }

    fn sender(&self, slot: &Slot<'_>, channel: Channel) -> Sender {
        let load_from_ns = match self.limit {
            Some(_) => slot.shared.window_ns.start + AFTER_WINDOW_START_NS,
            None => slot.shared.load_from_ns(),
        };
        let mut burst = self.batch();
        let rate = slot.stream.bits_per_sec.or(self.stream_bits_per_sec);
        let pacer = rate.map(|rate| {
            slot.stream.note(FigureNote::PacedByEngine);
            let per_burst = rate / 8.0 / BURSTS_PER_SEC / self.message_bytes as f64;
            burst = (per_burst as usize).clamp(1, burst);
            let pacer = Pacer::new(rate, load_from_ns, self.message_bytes);
            match self.limit {
                Some(_) => pacer,
                None => pacer.staggered(slot.stream.key, burst * self.message_bytes),
            }
        });
        let segment_bytes = u16::try_from(self.message_bytes).unwrap_or(0);
        Sender {
            // Older kernels refuse.
            has_trains: self.has_trains && segment_sends(channel.socket(), segment_bytes).is_ok(),
            has_told: false,
            channel,
            message_bytes: self.message_bytes,
            pacer,
            burst,
            start_ns: slot.shared.start_ns,
            load_from_ns,
            is_loading: false,
            left: self.limit,
            next: 0,
        }
    }

    fn receiver(&self, slot: &Slot<'_>, channel: Channel) -> Receiver {
        let has_trains = self.has_trains && receive_trains(channel.socket()).is_ok();
        let (slot_bytes, slots) = match has_trains {
            true => (TRAIN_SLOT_BYTES, TRAIN_SLOTS),
            false => (self.message_bytes, self.batch()),
        };
        Receiver {
            channel,
            has_told: false,
            found_nothing: false,
            slot_bytes,
            received: vec![Received::default(); slots],
            sequence: match self.limit {
                // 0 is the one at the start.
                Some(limit) => Sequence::of_numbers(1..limit.saturating_add(1)),
                None => Sequence::new(),
            },
            jitter: Jitter::default(),
            is_limited: self.limit.is_some(),
            peer_check_ns: 0,
            busy_poll: BusyPoll::new(slot, BUSY_POLL_NS),
        }
    }
}

impl Prepared for UdpStreams {
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        let channel = Channel::open(slot, connection)?;
        Ok(match slot.stream.role {
            Role::Send => Box::new(self.sender(slot, channel)),
            Role::Receive => Box::new(self.receiver(slot, channel)),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        let batch_bytes = self.batch() * self.message_bytes;
        match role {
            Role::Receive if self.has_trains => batch_bytes.max(TRAIN_SLOT_BYTES * TRAIN_SLOTS),
            // Where the kernel refuses trains, the sender's batches are as long as those of trains.
            Role::Receive | Role::Send => batch_bytes,
        }
    }

    fn data_is_on_the_connection(&self) -> bool {
        false
    }
}

impl Machine for Sender {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(&mut self.channel)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.note_start();
        let is_counted = self.left.is_none();
        let datagram = &mut io.buffer[..self.message_bytes];
        self.write_header(datagram, 0, monotonic_ns());
        let mut outcome = self.channel.socket().send(datagram);
        if let Err(refusal) = &outcome
            && self.has_trains
            && is_refusal(refusal)
        {
            self.do_without_trains(outcome)?;
            outcome = self.channel.socket().send(datagram);
        }
        let outcome = outcome.map(|_| 1);
        // Where it could not leave, nobody misses it but the numbers: it is lost.
        let sent = self.channel.sent(outcome)?;
        if is_counted && sent == Sent::Some(1) {
            io.counters.add_sent(self.message_bytes as u64);
        }
        self.next = 1;
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if !self.is_loading {
            self.is_loading = true;
            return Ok(Wait::Until(self.load_from_ns));
        }
        let now_ns = monotonic_ns();
        let mut count = self.burst;
        if let Some(left) = self.left {
            if !io.shared.is_window_open() {
                return Ok(Wait::Until(now_ns + WINDOW_POLL_NS));
            }
            if left == 0 {
                io.counters.note_done(now_ns);
                return Ok(Wait::Done);
            }
            count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        if let Some(pacer) = &mut self.pacer {
            let due_ns = pacer.due_ns(now_ns);
            if due_ns > now_ns {
                return Ok(Wait::Until(due_ns));
            }
        }
        Ok(match self.send(io, count, now_ns)? {
            Sent::Some(sent) => {
                self.count(io, sent);
                Wait::Again
            }
            Sent::Full => Wait::Socket,
            Sent::Later => Wait::Until(now_ns + PAUSE_NS),
        })
    }
}

impl Sender {
    /// Headers in place: what is between them in the buffer is payload as it is.
    fn send(&mut self, io: &mut Io<'_>, count: usize, now_ns: u64) -> Result<Sent, Broken> {
        let bytes = self.message_bytes;
        for (number, datagram) in (self.next..).zip(io.buffer.chunks_exact_mut(bytes).take(count)) {
            self.write_header(datagram, number, now_ns);
        }
        if !self.has_trains {
            return self.channel.send(io.buffer, bytes, bytes, count);
        }
        // A train of one, too: the kernel refuses it where the datagram does not fit the MTU.
        match self.channel.socket().send(&io.buffer[..count * bytes]) {
            Err(error) if is_refusal(&error) => self.do_without_trains(Err(error)),
            outcome => {
                if outcome.is_ok() && count > 1 && !self.has_told {
                    self.has_told = true;
                    io.stream.note(FigureNote::Segmented);
                }
                self.channel.sent(outcome.map(|_| count))
            }
        }
    }

    fn write_header(&self, datagram: &mut [u8], number: u64, now_ns: u64) {
        self.channel.write_header(datagram, number);
        if let Some(time) = datagram.get_mut(HEADER_BYTES..MIN_BYTES) {
            time.copy_from_slice(&now_ns.wrapping_sub(self.start_ns).to_be_bytes());
        }
    }

    /// A device without checksums, or datagrams that only fit in fragments.
    fn do_without_trains(&mut self, refused: io::Result<usize>) -> Result<Sent, Broken> {
        self.has_trains = false;
        match segment_sends(self.channel.socket(), 0) {
            Ok(()) => Ok(Sent::Later),
            Err(_) => self.channel.sent(refused),
        }
    }

    fn count(&mut self, io: &Io<'_>, sent: usize) {
        self.next += sent as u64;
        let bytes = sent * self.message_bytes;
        io.counters.add_sent(bytes as u64);
        if let Some(left) = &mut self.left {
            *left -= sent as u64;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.add_sent(bytes);
        }
    }
}

/// Whether the kernel reports that it cannot cut this train.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(EIO | EINVAL | EMSGSIZE | EOPNOTSUPP)
    )
}

impl Machine for Receiver {
    fn own_socket(&mut self) -> Option<&mut dyn OwnSocket> {
        Some(&mut self.channel)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.channel.fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.tally.one_way_delays.allocate();
        self.channel.start(io)
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if self.is_limited && !io.shared.is_window_open() {
            return Ok(Wait::Until(monotonic_ns() + WINDOW_POLL_NS));
        }
        let came = self.channel.receive(
            io.buffer,
            self.slot_bytes,
            &mut self.received,
            !self.busy_poll.is_on(),
        )?;
        let now_ns = monotonic_ns();
        if came > 0 {
            self.take(io, came, now_ns);
        } else if Phase::of(&io.shared.window_ns, now_ns) != Phase::Before {
            self.found_nothing |= !self.sequence.has_begun();
        }
        self.busy_poll.note(|| now_ns, came > 0);
        if came == self.received.len() {
            return Ok(Wait::Again);
        }
        if io.blocks() {
            return Ok(Wait::Socket);
        }
        if now_ns >= self.peer_check_ns {
            self.channel.check_peer()?;
            self.peer_check_ns = now_ns + PEER_CHECK_NS;
        }
        Ok(Wait::SocketOrUntil(self.peer_check_ns))
    }

    /// A thread that waited for a CPU all through the window cannot know what came inside.
    fn finish(&mut self, _stream: &Stream, tally: &mut Tally) {
        let counts = self.sequence.counts();
        let is_known = self.found_nothing || counts.received + counts.lost > 0;
        tally.datagrams.extend(is_known.then(|| DatagramCounts {
            jitter_ns: self.jitter.ns(),
            ..counts
        }));
    }
}

impl Receiver {
    fn take(&mut self, io: &mut Io<'_>, came: usize, now_ns: u64) {
        let phase = Phase::of(&io.shared.window_ns, now_ns);
        let since_start_ns = now_ns.wrapping_sub(io.shared.start_ns);
        let slots = io.buffer.chunks_exact(self.slot_bytes);
        let (mut payload, mut has_train) = (0, false);
        for (slot, received) in slots.zip(&self.received[..came]) {
            let datagrams = slot[..received.bytes].chunks(received.segment_bytes.max(1));
            has_train |= datagrams.len() > 1;
            for datagram in datagrams {
                let Some(number) = self.channel.read_header(datagram) else {
                    continue;
                };
                let Some(time) = datagram.get(HEADER_BYTES..).and_then(<[u8]>::first_chunk) else {
                    continue;
                };
                if !self.sequence.note(number, phase) {
                    continue;
                }
                if number > 0 || !self.is_limited {
                    payload += datagram.len();
                }
                let sent_ns = u64::from_be_bytes(*time);
                if phase != Phase::After {
                    self.jitter.note(sent_ns, since_start_ns);
                }
                if phase == Phase::Inside {
                    let delay_ns = since_start_ns.wrapping_sub(sent_ns).cast_signed();
                    // By clocks that are off it may have come before it was sent.
                    io.tally
                        .one_way_delays
                        .record(delay_ns.max(0).cast_unsigned());
                }
            }
        }
        io.counters.add_received(payload as u64);
        if has_train && !self.has_told {
            self.has_told = true;
            io.stream.note(FigureNote::Segmented);
        }
        // The last one may be lost: so far this is the end.
        if self.is_limited {
            io.counters.note_done(now_ns);
        }
    }
}
