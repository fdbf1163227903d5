//! Bulk TCP: one end sends as fast as it can or may, the other receives.
//!
//! With a limit nothing but the first small send happens before the window, and that is not
//! counted: what both ends count in the window is exactly the limit.

use super::machine::{Broken, Io, Machine, Prepared, Slot, Wait};
use super::pacer::{Pacer, stream_rate};
use super::transfer::{Content, ReceivePath, SendPath};
use crate::refusal::Refusal;
use crate::stream::Stream;
use crate::stream_error::StreamError;
use crate::tally::Tally;
use ew_model::record::FigureNote;
use ew_model::workload::{Limit, ReceiveMode, SendMode, Workload};
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Beyond this the kernel's changes of threads cost more than what blocking calls save
/// (docs/decisions/0012).
const STREAMS_WITH_OWN_THREADS: usize = 64;
/// What fits a core's cache, whatever the messages: copying into more is slower.
const RECEIVE_BYTES: usize = 256 * 1024;
/// The first send is small, so that senders that share a CPU start within microseconds of each
/// other.
const FIRST_SEND_BYTES: usize = 1024;
/// How often limited streams check whether the window's first counters have been read.
const WINDOW_POLL_NS: u64 = 100_000;

pub(super) struct TcpStreams {
    /// Read-only, so that all senders share one that stays in the cache.
    content: Content,
    send_mode: SendMode,
    receive_mode: ReceiveMode,
    stream_bits_per_sec: Option<f64>,
    /// Payload of a stream after its first send.
    limit_bytes: Option<u64>,
}

struct Sender {
    socket: Arc<TcpStream>,
    content: Content,
    send_path: SendPath,
    load_from_ns: u64,
    is_loading: bool,
    pacer: Option<Pacer>,
    left_bytes: Option<u64>,
}

struct Receiver {
    socket: Arc<TcpStream>,
    receive_path: ReceivePath,
    /// Of the first send, which does not count where there is a limit.
    uncounted_bytes: usize,
    left_bytes: Option<u64>,
}

impl TcpStreams {
    pub(super) fn new(workload: &Workload) -> Result<Self, Refusal> {
        let message_bytes = workload.message_bytes;
        Ok(Self {
            content: Content::new(message_bytes as usize, workload.send_mode)?,
            send_mode: workload.send_mode,
            receive_mode: workload.receive_mode,
            stream_bits_per_sec: stream_rate(&workload.pace, workload.streams)?,
            limit_bytes: workload.limit.map(|limit| match limit {
                Limit::Bytes(bytes) => bytes,
                Limit::Messages(messages) => messages.saturating_mul(message_bytes),
            }),
        })
    }

    fn first_send_bytes(&self) -> usize {
        self.content.len().min(FIRST_SEND_BYTES)
    }

    fn sender(&self, slot: &Slot<'_>, socket: Arc<TcpStream>) -> Sender {
        let load_from_ns = match self.limit_bytes {
            Some(_) => slot.shared.window_ns.start,
            None => slot.shared.load_from_ns(),
        };
        let rate = slot.stream.bits_per_sec.or(self.stream_bits_per_sec);
        let pacer = rate.map(|rate| {
            slot.stream.note(FigureNote::PacedByEngine);
            let pacer = Pacer::new(rate, load_from_ns, self.content.len());
            match self.limit_bytes {
                Some(_) => pacer,
                None => pacer.staggered(slot.stream.key, pacer.max_bytes()),
            }
        });
        Sender {
            send_path: SendPath::new(self.send_mode, &self.content, &socket, slot.stream),
            socket,
            content: self.content.clone(),
            load_from_ns,
            is_loading: false,
            pacer,
            left_bytes: self.limit_bytes,
        }
    }
}

impl Prepared for TcpStreams {
    fn machine(
        &self,
        slot: &Slot<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, StreamError> {
        Ok(match slot.stream.role {
            Role::Send => Box::new(self.sender(slot, connection)),
            Role::Receive => Box::new(Receiver {
                receive_path: ReceivePath::new(slot, self.receive_mode, &connection),
                socket: connection,
                uncounted_bytes: self.limit_bytes.map_or(0, |_| self.first_send_bytes()),
                left_bytes: self.limit_bytes,
            }),
        })
    }

    /// With a limit the first send is not counted.
    fn counts_what_comes(&self) -> bool {
        self.limit_bytes.is_none()
    }

    fn streams_with_own_threads(&self) -> usize {
        STREAMS_WITH_OWN_THREADS
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        match role {
            Role::Send => 0,
            Role::Receive if self.receive_mode == ReceiveMode::Discard => 0,
            Role::Receive => RECEIVE_BYTES,
        }
    }
}

impl Machine for Sender {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        io.note_start();
        let count = self.content.len().min(FIRST_SEND_BYTES);
        let sent = self
            .send_path
            .send(io, &self.socket, &self.content, count)?;
        if self.left_bytes.is_none() {
            io.counters.add_sent(sent as u64);
        }
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if !self.is_loading {
            self.is_loading = true;
            return Ok(Wait::Until(self.load_from_ns));
        }
        let mut count = self.content.len();
        if let Some(left) = self.left_bytes {
            if !io.shared.is_window_open() {
                return Ok(Wait::Until(monotonic_ns() + WINDOW_POLL_NS));
            }
            if left == 0 {
                io.counters.note_done(monotonic_ns());
                return Ok(Wait::Done);
            }
            count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        if let Some(pacer) = &mut self.pacer {
            let now_ns = monotonic_ns();
            let due_ns = pacer.due_ns(now_ns);
            if due_ns > now_ns {
                return Ok(Wait::Until(due_ns));
            }
            count = count.min(pacer.max_bytes());
        }
        let sent = self
            .send_path
            .send(io, &self.socket, &self.content, count)?;
        self.count(io, sent);
        // A short send is no sign of a full socket in every mode: only a send of nothing is.
        Ok(match sent {
            0 => Wait::Socket,
            _ => Wait::Again,
        })
    }
}

impl Sender {
    fn count(&mut self, io: &Io<'_>, sent: usize) {
        io.counters.add_sent(sent as u64);
        if let Some(left) = &mut self.left_bytes {
            *left -= sent as u64;
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.add_sent(sent);
        }
    }
}

impl Machine for Receiver {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if self.left_bytes.is_some() && !io.shared.is_window_open() {
            return Ok(Wait::Until(monotonic_ns() + WINDOW_POLL_NS));
        }
        let (mut received, may_have_more) = self.receive_path.receive(io, &self.socket)?;
        let uncounted = received.min(self.uncounted_bytes);
        self.uncounted_bytes -= uncounted;
        received -= uncounted;
        io.counters.add_received(received as u64);
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(received as u64);
            if *left == 0 {
                io.counters.note_done(monotonic_ns());
                return Ok(Wait::Done);
            }
        }
        Ok(match may_have_more {
            true => Wait::Again,
            false => Wait::Socket,
        })
    }

    fn finish(&mut self, stream: &Stream, _tally: &mut Tally) {
        self.receive_path.finish(stream);
    }
}
