//! The control connection: one byte per state, JSON in between. Every wait has an end.

use crate::error::Error;
use crate::wire::cookie::Cookie;
use crate::wire::frame;
use crate::wire::refusal::{REFUSAL_BYTES, Refusal};
use crate::wire::state::State;
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{Interest, wait_ready};
use socket2::{Socket, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A peer that has begun a message, or owes one, has this long.
pub(crate) const ANSWER_NS: u64 = 10_000_000_000;
/// What we send is small: a peer that does not take it in this time is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// A host that vanishes is noticed after the first plus a few of the second.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;
/// A stop is noticed within this time.
const STOP_NS: u64 = 100_000_000;

/// What a wait ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The peer's state byte.
    State(State),
    /// The time is over.
    Nothing,
    /// Something else that was waited for is ready.
    Other,
    /// Stopped from outside.
    Stopped,
}

/// One end of a control connection.
#[derive(Debug)]
pub(crate) struct Control<'stop> {
    stream: TcpStream,
    stop: &'stop AtomicBool,
}

impl<'stop> Control<'stop> {
    /// Prepares a fresh connection.
    pub(crate) fn new(stream: TcpStream, stop: &'stop AtomicBool) -> Result<Self, Error> {
        let prepare = || -> io::Result<()> {
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(SEND_TIMEOUT))?;
            let socket: &Socket = &stream.try_clone()?.into();
            socket.set_tcp_keepalive(
                &TcpKeepalive::new()
                    .with_time(KEEPALIVE_IDLE)
                    .with_interval(KEEPALIVE_INTERVAL)
                    .with_retries(KEEPALIVE_RETRIES),
            )
        };
        prepare().map_err(Error::Control)?;
        Ok(Self { stream, stop })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn send_cookie(&self, cookie: &Cookie) -> Result<(), Error> {
        self.send(cookie.as_bytes())
    }

    pub(crate) fn send_state(&self, state: State) -> Result<(), Error> {
        self.send(&[state.to_wire()])
    }

    pub(crate) fn send_json(&self, text: &str) -> Result<(), Error> {
        self.send(&frame::encode(text))
    }

    pub(crate) fn send_refusal(&self, refusal: Refusal) -> Result<(), Error> {
        let mut message = vec![State::ServerError.to_wire()];
        message.extend_from_slice(&refusal.to_wire());
        self.send(&message)
    }

    /// The text of a frame of at most so many bytes, within the time a peer has for an answer.
    pub(crate) fn read_json(&self, limit: usize) -> Result<Vec<u8>, Error> {
        let deadline_ns = monotonic_ns() + ANSWER_NS;
        let mut header = [0; frame::HEADER_BYTES];
        self.read_exact(&mut header, deadline_ns)?;
        let length = frame::payload_length(header, limit)?;
        let mut text = vec![0; length];
        self.read_exact(&mut text, deadline_ns)?;
        Ok(text)
    }

    pub(crate) fn read_refusal(&self) -> Result<Refusal, Error> {
        let mut bytes = [0; REFUSAL_BYTES];
        self.read_exact(&mut bytes, monotonic_ns() + ANSWER_NS)?;
        Ok(Refusal::from_wire(bytes))
    }

    /// The next state byte, or whatever comes first.
    pub(crate) fn hear(
        &self,
        deadline_ns: u64,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Heard, Error> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Heard::Stopped);
            }
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            let ready = self.wait(left_ns.min(STOP_NS), other)?;
            if ready.first() == Some(&true) {
                return self.read_state().map(Heard::State);
            }
            if ready.get(1) == Some(&true) {
                return Ok(Heard::Other);
            }
            if monotonic_ns() >= deadline_ns {
                return Ok(Heard::Nothing);
            }
        }
    }

    /// Ends our side and waits a little for the peer's end, so that what it has not read is not
    /// lost to a reset.
    pub(crate) fn close_gently(&self, within_ns: u64) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let deadline_ns = monotonic_ns() + within_ns;
        let mut rest = [0; 512];
        while self.wait_until(deadline_ns).is_ok() {
            match (&self.stream).read(&mut rest) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Error> {
        (&self.stream).write_all(bytes).map_err(control_error)
    }

    fn read_state(&self) -> Result<State, Error> {
        let mut byte = [0];
        match (&self.stream).read(&mut byte) {
            Ok(0) => Err(Error::ControlClosed),
            Ok(_) => State::from_wire(byte[0]).ok_or(Error::Unexpected(byte[0])),
            Err(error) => Err(control_error(error)),
        }
    }

    fn read_exact(&self, bytes: &mut [u8], deadline_ns: u64) -> Result<(), Error> {
        let mut filled = 0;
        while filled < bytes.len() {
            self.wait_until(deadline_ns)?;
            match (&self.stream).read(&mut bytes[filled..]) {
                Ok(0) => return Err(Error::ControlClosed),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(control_error(error)),
            }
        }
        Ok(())
    }

    fn wait_until(&self, deadline_ns: u64) -> Result<(), Error> {
        loop {
            let left_ns = deadline_ns.saturating_sub(monotonic_ns());
            if left_ns == 0 {
                return Err(Error::Silent("finish its message"));
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted("stopped while a message was due"));
            }
            if self.wait(left_ns.min(STOP_NS), None)?.first() == Some(&true) {
                return Ok(());
            }
        }
    }

    /// Whether there is something to hear, and whether the other has something to read.
    pub(crate) fn wait(
        &self,
        wait_ns: u64,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Vec<bool>, Error> {
        let read = |fd| Interest { fd, write: false };
        let mut interests = vec![read(self.stream.as_fd())];
        interests.extend(other.map(read));
        wait_ready(&interests, Duration::from_nanos(wait_ns)).map_err(Error::Control)
    }
}

fn control_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::UnexpectedEof => Error::ControlClosed,
        _ => Error::Control(error),
    }
}
