//! What streams do. One file per workload, and one line in [`prepare`].

mod tcp_rr;
mod tcp_stream;

use crate::connect::is_timeout;
use crate::lane::Lane;
use ew_model::workload::{Workload, WorkloadKind};
use ew_proto::message::Role;
use ew_sys::clock::{monotonic_ns, sleep_until_ns};
use hdrhistogram::Histogram;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Within this time after the start all senders make their first send, and none loads the network.
const FIRST_SENDS_NS: u64 = 2_000_000;

/// What a round's streams share, made before any of them starts.
pub(crate) trait Prepared {
    /// One stream's driver, with all the memory it will need. The error is in words.
    fn driver(&self, role: Role) -> Result<Box<dyn Driver>, String>;
}

/// Moves one stream's bytes on the stream's own thread.
pub(crate) trait Driver: Send {
    /// Runs from the round's start until the link stops.
    fn run(&mut self, link: &mut Link<'_>) -> Result<(), Broken>;

    /// Round-trip times inside the window, where the workload has them. Asked once, after the run, however it ended.
    fn take_latency(&mut self) -> Option<Histogram<u64>> {
        None
    }
}

/// A connected stream.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    pub(crate) socket: &'a TcpStream,
    pub(crate) lane: &'a Lane,
    pub(crate) stopping: &'a AtomicBool,
    /// When senders begin, CLOCK_MONOTONIC.
    pub(crate) start_ns: u64,
    /// CLOCK_MONOTONIC.
    pub(crate) window_ns: Range<u64>,
}

/// How a stream ended before it was stopped.
#[derive(Debug)]
pub(crate) struct Broken {
    /// For example "send to".
    pub(crate) action: &'static str,
    pub(crate) error: io::Error,
}

/// The registration of workloads.
pub(crate) fn prepare(workload: &Workload) -> Result<Box<dyn Prepared>, String> {
    match workload.kind {
        WorkloadKind::TcpStream => Ok(Box::new(tcp_stream::TcpStreams::new(workload))),
        WorkloadKind::TcpRr => Ok(Box::new(tcp_rr::TcpRequests::new(workload))),
        other => Err(format!("the engine has no {} yet", other.name())),
    }
}

impl Link<'_> {
    pub(crate) fn stops(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Notes the start: a sender calls it right before its first send, and [`Link::settle`] right after.
    fn start(&self) {
        self.lane.note_first_send(monotonic_ns());
    }

    /// From the first send on, a sender is scheduled like everybody else.
    fn settle(&self) {
        ew_sys::thread::schedule_ordinarily();
    }

    /// Holds a bulk sender's load until all senders have begun. On hosts that share CPUs (a lab) the kernel handles the
    /// first one's packets before it lets the next one send its first byte.
    fn await_others(&self) {
        let warm_up_ns = self.window_ns.start.saturating_sub(self.start_ns);
        sleep_until_ns(self.start_ns + FIRST_SENDS_NS.min(warm_up_ns / 2));
    }

    /// One send; 0 when nothing could be sent for a while.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        match self.socket.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if is_timeout(&error) => Ok(0),
            Err(error) => Err(Broken {
                action: "send to",
                error,
            }),
        }
    }

    /// One receive; 0 when nothing came for a while. The peer's end of stream is an error.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, Broken> {
        let error = match self.socket.read(into) {
            Ok(0) => io::Error::other("the peer closed the connection"),
            Ok(count) => return Ok(count),
            Err(error) if is_timeout(&error) => return Ok(0),
            Err(error) => error,
        };
        Err(Broken {
            action: "receive from",
            error,
        })
    }

    /// Sends everything. False when the link stops first.
    fn send_all(&mut self, bytes: &[u8]) -> Result<bool, Broken> {
        let mut sent = 0;
        while sent < bytes.len() {
            if self.stops() {
                return Ok(false);
            }
            sent += self.send(&bytes[sent..])?;
        }
        Ok(true)
    }

    /// Fills the buffer. False when the link stops first.
    fn receive_all(&mut self, into: &mut [u8]) -> Result<bool, Broken> {
        let mut received = 0;
        while received < into.len() {
            if self.stops() {
                return Ok(false);
            }
            received += self.receive(&mut into[received..])?;
        }
        Ok(true)
    }
}
