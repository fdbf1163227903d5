//! The ways to hand bulk bytes to the kernel and to take them from it. A way that is not there
//! becomes ordinary copying, with a note on the stream.

use super::busy_poll::BusyPoll;
use super::machine::{Broken, CALL_TIMEOUT, Io, Slot};
use super::tcp::{received, send, sent};
use crate::buffer::PageBuffer;
use crate::refusal::Refusal;
use crate::stream::Stream;
use ew_model::record::FigureNote;
use ew_model::workload::{ReceiveMode, SendMode};
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::await_readable;
use ew_sys::transfer::{nameless_file, receive_discarding, send_file};
use ew_sys::zerocopy::{ReceiveMapping, allow_zerocopy, completions, send_zerocopy};
use std::fs::File;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Bytes discarded by one call at most.
const DISCARD_BYTES: usize = 4 * 1024 * 1024;
/// How long a receiver that discards polls for more. One that copies has enough to do, and a sender
/// that waits for it.
const BUSY_POLL_NS: u64 = 20_000;
/// Bytes mapped by one call at most.
const MAPPING_BYTES: usize = 2 * 1024 * 1024;
/// Completions are taken after this many sends.
const SENDS_PER_HARVEST: u32 = 16;
const EIO: i32 = 5;
const ENOBUFS: i32 = 105;

/// What all senders of a round send.
#[derive(Clone)]
pub(super) struct Content {
    memory: Arc<PageBuffer>,
    /// The same bytes as a file, for sendfile.
    file: Option<Arc<File>>,
}

/// How a stream sends.
pub(super) enum SendPath {
    Copy,
    File(Arc<File>),
    Zerocopy {
        since_harvest: u32,
        /// Whether a copy was seen and reported.
        is_noted: bool,
    },
}

/// How a stream receives.
pub(super) enum ReceivePath {
    Copy,
    Discard(BusyPoll),
    Map {
        mapping: ReceiveMapping,
        mapped_bytes: u64,
        copied_bytes: u64,
    },
}

impl Content {
    /// One message, which does not compress.
    pub(super) fn new(message_bytes: usize, mode: SendMode) -> Result<Self, Refusal> {
        let memory = PageBuffer::incompressible(message_bytes);
        let file = match mode {
            SendMode::Sendfile => {
                let made = nameless_file(memory.as_slice());
                Some(made.map_err(|source| Refusal::ContentFile {
                    bytes: message_bytes,
                    source,
                })?)
            }
            SendMode::Copy | SendMode::Zerocopy => None,
        };
        Ok(Self {
            memory: Arc::new(memory),
            file: file.map(Arc::new),
        })
    }

    /// Bytes of a message.
    pub(super) fn len(&self) -> usize {
        self.memory.as_slice().len()
    }
}

impl SendPath {
    pub(super) fn new(
        mode: SendMode,
        content: &Content,
        socket: &TcpStream,
        stream: &Stream,
    ) -> Self {
        match (mode, &content.file) {
            (SendMode::Sendfile, Some(file)) => {
                stream.note(FigureNote::SenderDidNotTouchBytes);
                Self::File(Arc::clone(file))
            }
            (SendMode::Zerocopy, _) if allow_zerocopy(socket).is_ok() => Self::Zerocopy {
                since_harvest: 0,
                is_noted: false,
            },
            (SendMode::Zerocopy, _) => {
                stream.note(FigureNote::ZerocopyUnavailable);
                Self::Copy
            }
            _ => Self::Copy,
        }
    }

    /// Sends the first `count` bytes of the content; 0 when nothing could be sent for now.
    pub(super) fn send(
        &mut self,
        io: &Io<'_>,
        socket: &TcpStream,
        content: &Content,
        count: usize,
    ) -> Result<usize, Broken> {
        let bytes = &content.memory.as_slice()[..count];
        match self {
            Self::Copy => send(socket, bytes),
            Self::File(file) => sent(send_file(&socket, file, 0, count)),
            Self::Zerocopy {
                since_harvest,
                is_noted,
            } => {
                *since_harvest += 1;
                if *since_harvest >= SENDS_PER_HARVEST {
                    *since_harvest = 0;
                    harvest(io, socket, is_noted)?;
                }
                match send_zerocopy(&socket, bytes) {
                    Err(error) if error.raw_os_error() == Some(ENOBUFS) => {
                        harvest(io, socket, is_noted)?;
                        // Too many are under way: this one is copied.
                        send(socket, bytes)
                    }
                    outcome => sent(outcome),
                }
            }
        }
    }
}

fn harvest(io: &Io<'_>, socket: &TcpStream, is_noted: &mut bool) -> Result<(), Broken> {
    let done = completions(&socket).map_err(|error| Broken {
        action: "learn what was sent to",
        error,
    })?;
    if done.copied && !*is_noted {
        *is_noted = true;
        io.stream.note(FigureNote::ZerocopySendCopied);
    }
    Ok(())
}

impl ReceivePath {
    pub(super) fn new(slot: &Slot<'_>, mode: ReceiveMode, socket: &TcpStream) -> Self {
        let stream = slot.stream;
        match mode {
            ReceiveMode::Copy => Self::Copy,
            ReceiveMode::Discard => {
                stream.note(FigureNote::ReceiverDidNotSeeBytes);
                Self::Discard(BusyPoll::new(slot, BUSY_POLL_NS))
            }
            ReceiveMode::Mmap => match ReceiveMapping::new(&socket, MAPPING_BYTES) {
                Ok(mapping) => Self::Map {
                    mapping,
                    mapped_bytes: 0,
                    copied_bytes: 0,
                },
                Err(_) => {
                    stream.note(FigureNote::ZerocopyUnavailable);
                    Self::Copy
                }
            },
        }
    }

    /// One receive: how much came, and whether there may be more.
    pub(super) fn receive(
        &mut self,
        io: &mut Io<'_>,
        socket: &TcpStream,
    ) -> Result<(usize, bool), Broken> {
        match self {
            Self::Copy => {
                let count = super::tcp::receive(socket, io.buffer)?;
                Ok((count, count == io.buffer.len()))
            }
            Self::Discard(busy_poll) => {
                let discarded = receive_discarding(&socket, DISCARD_BYTES, !busy_poll.is_on());
                let count = received(discarded)?;
                busy_poll.note(monotonic_ns, count > 0);
                Ok((count, count == DISCARD_BYTES))
            }
            Self::Map {
                mapping,
                mapped_bytes,
                copied_bytes,
            } => {
                let (mapped, copied) = map(mapping, io, socket)?;
                *mapped_bytes += mapped as u64;
                *copied_bytes += copied as u64;
                Ok((mapped + copied, mapped + copied > 0))
            }
        }
    }

    /// At the end: whether mapping was more than a name.
    pub(super) fn finish(&self, stream: &Stream) {
        if let Self::Map {
            mapped_bytes,
            copied_bytes,
            ..
        } = self
            && copied_bytes > mapped_bytes
        {
            stream.note(FigureNote::MappedReceiveCopied);
        }
    }
}

/// Bytes mapped and bytes copied.
fn map(
    mapping: &mut ReceiveMapping,
    io: &mut Io<'_>,
    socket: &TcpStream,
) -> Result<(usize, usize), Broken> {
    if io.blocks() {
        // Not even a shortage of memory is worth more than another try.
        let _ = await_readable::<1>([socket.as_fd()].into_iter(), CALL_TIMEOUT);
    }
    let got = match mapping.receive(&socket) {
        Ok(got) => got,
        Err(error) if error.raw_os_error() == Some(EIO) => {
            return received(Ok(0)).map(|count| (count, 0));
        }
        Err(error) => return received(Err(error)).map(|count| (count, 0)),
    };
    let unmapped = got.unmapped_bytes.min(io.buffer.len());
    if unmapped > 0 {
        let copied = super::tcp::receive(socket, &mut io.buffer[..unmapped])?;
        return Ok((got.mapped_bytes, copied));
    }
    Ok((got.mapped_bytes, 0))
}
