//! Bulk TCP: one end sends as fast as it can or may, the other receives.
//!
//! With a limit nothing but the first small send happens before the window, so that what both ends count in the window is
//! exactly the limit.

use super::pacer::Pacer;
use super::tcp::{receive, send};
use super::{Broken, Io, Machine, Prepared, Seat, Wait};
use crate::buffer::PageBuffer;
use crate::round::RoundShared;
use ew_model::workload::{Limit, Pace, Workload};
use ew_proto::message::Role;
use ew_sys::clock::monotonic_ns;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

const LEAST_RECEIVE_BYTES: usize = 256 * 1024;
const MOST_RECEIVE_BYTES: usize = 1024 * 1024;
/// The first send is small, so that senders that share a CPU start within microseconds of each other.
const FIRST_SEND_BYTES: usize = 1024;
/// Limited senders begin this much after the window does, so that the receiver has read its counters.
const AFTER_WINDOW_START_NS: u64 = 2_000_000;

pub(super) struct TcpStreams {
    /// Read-only, so that all senders share one that stays in the cache.
    content: Arc<PageBuffer>,
    stream_bits_per_sec: Option<f64>,
    /// Payload of a stream after its first send.
    limit_bytes: Option<u64>,
}

struct Sender {
    socket: Arc<TcpStream>,
    content: Arc<PageBuffer>,
    load_from_ns: u64,
    is_loading: bool,
    pacer: Option<Pacer>,
    left_bytes: Option<u64>,
}

struct Receiver {
    socket: Arc<TcpStream>,
    left_bytes: Option<u64>,
}

impl TcpStreams {
    pub(super) fn new(workload: &Workload) -> Result<Self, String> {
        let message_bytes = workload.message_bytes;
        Ok(Self {
            content: Arc::new(PageBuffer::incompressible(message_bytes as usize)),
            stream_bits_per_sec: stream_rate(&workload.pace, workload.streams)?,
            limit_bytes: workload.limit.map(|limit| match limit {
                Limit::Bytes(bytes) => bytes,
                Limit::Messages(messages) => messages.saturating_mul(message_bytes),
            }),
        })
    }

    fn first_send_bytes(&self) -> usize {
        self.content.as_slice().len().min(FIRST_SEND_BYTES)
    }

    fn sender(&self, shared: &RoundShared, socket: Arc<TcpStream>) -> Sender {
        let load_from_ns = match self.limit_bytes {
            Some(_) => shared.window_ns.start + AFTER_WINDOW_START_NS,
            None => shared.load_from_ns(),
        };
        let message_bytes = self.content.as_slice().len();
        Sender {
            socket,
            content: Arc::clone(&self.content),
            load_from_ns,
            is_loading: false,
            pacer: self
                .stream_bits_per_sec
                .map(|rate| Pacer::new(rate, load_from_ns, message_bytes)),
            left_bytes: self.limit_bytes,
        }
    }
}

/// The lower of a stream's own rate and its part of the flow's.
fn stream_rate(pace: &Pace, streams: u32) -> Result<Option<f64>, String> {
    let of_flow = pace.flow_bits_per_sec.map(|rate| rate / f64::from(streams));
    let rates = [pace.stream_bits_per_sec, of_flow];
    let rate = rates.into_iter().flatten().reduce(f64::min);
    match rate {
        Some(rate) if !(rate.is_finite() && rate >= 1.0) => {
            Err(format!("a stream cannot go at {rate} b/s"))
        }
        _ => Ok(rate),
    }
}

impl Prepared for TcpStreams {
    fn machine(
        &self,
        seat: &Seat<'_>,
        connection: Arc<TcpStream>,
    ) -> Result<Box<dyn Machine>, String> {
        Ok(match seat.stream.role {
            Role::Send => Box::new(self.sender(seat.shared, connection)),
            Role::Receive => Box::new(Receiver {
                socket: connection,
                left_bytes: self
                    .limit_bytes
                    .map(|bytes| bytes.saturating_add(self.first_send_bytes() as u64)),
            }),
        })
    }

    fn buffer_bytes(&self, role: Role) -> usize {
        let message_bytes = self.content.as_slice().len();
        match role {
            Role::Send => 0,
            Role::Receive => message_bytes.clamp(LEAST_RECEIVE_BYTES, MOST_RECEIVE_BYTES),
        }
    }
}

impl Machine for Sender {
    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn start(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        let content = self.content.as_slice();
        io.note_start();
        let sent = send(
            &self.socket,
            &content[..content.len().min(FIRST_SEND_BYTES)],
        )?;
        io.lane.add_sent(sent as u64);
        Ok(())
    }

    fn step(&mut self, io: &mut Io<'_>) -> Result<Wait, Broken> {
        if !self.is_loading {
            self.is_loading = true;
            return Ok(Wait::Until(self.load_from_ns));
        }
        let mut count = self.content.as_slice().len();
        if let Some(left) = self.left_bytes {
            if left == 0 {
                io.lane.note_done(monotonic_ns());
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
            count = count.min(pacer.most_bytes());
        }
        let sent = send(&self.socket, &self.content.as_slice()[..count])?;
        self.count(io, sent);
        Ok(if sent < count {
            Wait::Socket
        } else {
            Wait::Again
        })
    }
}

impl Sender {
    fn count(&mut self, io: &Io<'_>, sent: usize) {
        io.lane.add_sent(sent as u64);
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
        let received = receive(&self.socket, io.buffer)?;
        io.lane.add_received(received as u64);
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(received as u64);
            if *left == 0 {
                io.lane.note_done(monotonic_ns());
                return Ok(Wait::Done);
            }
        }
        Ok(match received < io.buffer.len() {
            true => Wait::Socket,
            false => Wait::Again,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_rate_holds() {
        let rate = |stream_bits_per_sec, flow_bits_per_sec| {
            let pace = Pace {
                stream_bits_per_sec,
                flow_bits_per_sec,
                requests_per_sec: None,
            };
            stream_rate(&pace, 4)
        };
        assert_eq!(rate(None, None), Ok(None));
        assert_eq!(rate(Some(100.0), Some(800.0)), Ok(Some(100.0)));
        assert_eq!(rate(Some(300.0), Some(800.0)), Ok(Some(200.0)));
        assert!(rate(Some(0.0), None).is_err());
        assert!(rate(None, Some(f64::NAN)).is_err());
    }
}
