//! The opening end of a connection.

use crate::clock_wait::Cancel;
use crate::hello::{ACK, HELLO_BYTES};
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{Interest, choose_port_at_connect, wait_ready};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

/// Pause after a refused or failed attempt.
const RETRY_PAUSE_NS: u64 = 10_000_000;
/// The first attempt's time. Later ones double it: a lost SYN is repeated sooner than the kernel would, and a path
/// with a long round trip still gets its time.
const FIRST_ATTEMPT_NS: u64 = 40_000_000;
const LONGEST_ATTEMPT_NS: u64 = 10_000_000_000;
/// How often a wait looks whether it was cut short.
const SLICE: Duration = Duration::from_millis(50);
/// A shorter try says nothing about the peer.
const TOO_SHORT_NS: u64 = 20_000_000;
const EINPROGRESS: i32 = 115;

/// A connection to be opened.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    /// This end's address.
    pub(crate) source: IpAddr,
    pub(crate) peer: SocketAddr,
    pub(crate) hello: [u8; HELLO_BYTES],
    /// When to give up.
    pub(crate) deadline_ns: u64,
    pub(crate) cancel: &'a Cancel,
}

impl Opening<'_> {
    /// Connects, says hello and waits for the answer; tries again until the deadline. The error is in words, with the
    /// peer and the system's message.
    pub(crate) fn run(&self) -> Result<TcpStream, String> {
        let mut attempt_ns = FIRST_ATTEMPT_NS;
        let begun_ns = monotonic_ns();
        let mut told: Option<io::Error> = None;
        loop {
            let attempt_end_ns = (monotonic_ns() + attempt_ns).min(self.deadline_ns);
            match self.attempt(attempt_end_ns) {
                Ok(socket) => return Ok(socket),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    attempt_ns = (attempt_ns * 2).min(LONGEST_ATTEMPT_NS);
                    // It says less than what the peer's system said before.
                    told.get_or_insert(error);
                }
                Err(error) => told = Some(error),
            }
            let next_ns = monotonic_ns() + RETRY_PAUSE_NS;
            if next_ns >= self.deadline_ns || self.cancel.sleep_until(next_ns).is_err() {
                return Err(self.describe(told, monotonic_ns() - begun_ns));
            }
        }
    }

    fn describe(&self, error: Option<io::Error>, tried_ns: u64) -> String {
        if self.cancel.is_raised() {
            return format!("connect {}: aborted", self.peer);
        }
        if tried_ns < TOO_SHORT_NS {
            return format!(
                "connect {}: this host came to it only {:.0} ms before the end of the time for it; is it too busy?",
                self.peer,
                tried_ns as f64 / 1e6
            );
        }
        let message = match error {
            Some(error) if error.kind() != io::ErrorKind::TimedOut => error.to_string(),
            _ => format!(
                "no answer within {:.1} s; does a firewall drop the data ports?",
                tried_ns as f64 / 1e9
            ),
        };
        format!("connect {}: {message}", self.peer)
    }

    fn attempt(&self, connected_by_ns: u64) -> io::Result<TcpStream> {
        let socket = self.begin()?;
        self.wait_connected(&socket, connected_by_ns)?;
        let mut stream = TcpStream::from(socket);
        // Where nobody listens on a port of the ephemeral range, TCP can connect a socket to itself.
        if stream.local_addr()? == self.peer {
            return Err(io::Error::from_raw_os_error(111));
        }
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.write_all(&self.hello)?;
        self.wait_acknowledged(&mut stream)?;
        Ok(stream)
    }

    fn begin(&self) -> io::Result<Socket> {
        let domain = Domain::for_address(self.peer);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        // Without it only the number of local ports shrinks.
        let _ = choose_port_at_connect(&socket);
        socket.bind(&SocketAddr::new(self.source, 0).into())?;
        socket.set_nonblocking(true)?;
        match socket.connect(&self.peer.into()) {
            Err(error) if error.raw_os_error() != Some(EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    }

    fn wait_connected(&self, socket: &Socket, deadline_ns: u64) -> io::Result<()> {
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= deadline_ns || self.cancel.is_raised() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let left = Duration::from_nanos(deadline_ns - now_ns);
            let interest = Interest {
                fd: socket.as_fd(),
                write: true,
            };
            if wait_ready(&[interest], left.min(SLICE))? == [true] {
                return socket.take_error()?.map_or(Ok(()), Err);
            }
        }
    }

    fn wait_acknowledged(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(SLICE))?;
        let mut answer = [0];
        while !self.cancel.is_raised() && monotonic_ns() < self.deadline_ns {
            match stream.read(&mut answer) {
                Ok(1) if answer == [ACK] => return Ok(()),
                Ok(1) => return Err(io::Error::other("another program answers at this port")),
                Ok(_) => {
                    return Err(io::Error::other(
                        "the peer does not wait for this connection",
                    ));
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// Whether a blocking call only came back because its time was over or a signal came.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
