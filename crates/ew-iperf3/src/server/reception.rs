//! The thread that accepts: whose a connection is, and a thread for each new client.

use super::registry::Delivery;
use super::session;
use super::{Server, hear_greetings};
use crate::error::Error;
use crate::wire::cookie::{COOKIE_BYTES, Cookie};
use crate::wire::state::State;
use ew_sys::clock::monotonic_ns;
use ew_sys::socket::{Interest, wait_ready};
use socket2::Socket;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// A connection must identify its client within this time.
const COOKIE_NS: u64 = 10_000_000_000;
/// Connections that have not identified themselves yet.
const MAX_PENDING: usize = 256;
/// A stop is noticed within this time.
const STOP: Duration = Duration::from_millis(100);

impl Server {
    /// Serves until `stop` is raised, or one client is through when it is to be one only. Clients
    /// that are being served then are answered that the server has terminated.
    ///
    /// # Errors
    /// When the sockets fail for good.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let mut reception = Reception {
                server: self,
                stop,
                pending: Vec::new(),
                accepted: 0,
                sessions: 0,
            };
            reception.serve(scope)
        })
    }
}

/// The accepting thread.
struct Reception<'run> {
    server: &'run Server,
    stop: &'run AtomicBool,
    pending: Vec<Pending>,
    accepted: u64,
    sessions: u64,
}

/// A connection that has not identified itself.
struct Pending {
    socket: Socket,
    order: u64,
    cookie: [u8; COOKIE_BYTES],
    filled: usize,
    deadline_ns: u64,
}

/// What has become of a pending connection.
enum Progress {
    Waits,
    Gone,
    Knows(Cookie),
}

impl<'run> Reception<'run> {
    fn serve<'scope>(&mut self, scope: &'scope Scope<'scope, 'run>) -> Result<(), Error> {
        while !self.stop.load(Ordering::Relaxed) && !self.is_through() {
            let ready = self.wait()?;
            if ready.first() == Some(&true) {
                self.accept()?;
            }
            if ready.get(1) == Some(&true) {
                hear_greetings(&self.server.udp_listener, &self.server.registry);
            }
            self.read_cookies(scope);
        }
        Ok(())
    }

    /// One client was to be served, and it was.
    fn is_through(&self) -> bool {
        self.server.options.one_off && self.sessions > 0 && self.server.registry.is_empty()
    }

    fn wait(&self) -> Result<Vec<bool>, Error> {
        let read = |fd| Interest { fd, write: false };
        let mut interests = vec![
            read(self.server.listener.as_fd()),
            read(self.server.udp_listener.as_fd()),
        ];
        interests.extend(self.pending.iter().map(|p| read(p.socket.as_fd())));
        wait_ready(&interests, STOP).map_err(Error::Init)
    }

    fn accept(&mut self) -> Result<(), Error> {
        loop {
            match self.server.listener.accept() {
                Ok((socket, _)) => self.take_in(socket),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // A client that gave up, or no descriptors left: neither is the end of the server.
                Err(error) if is_passing(&error) => {
                    std::thread::sleep(Duration::from_millis(1));
                    return Ok(());
                }
                Err(error) => {
                    let address = self.server.address;
                    return Err(Error::Listen { address, error });
                }
            }
        }
    }

    fn take_in(&mut self, socket: Socket) {
        // The oldest has had its time.
        if self.pending.len() >= MAX_PENDING {
            self.pending.remove(0);
        }
        if socket.set_nonblocking(true).is_err() {
            return;
        }
        self.accepted += 1;
        self.pending.push(Pending {
            socket,
            order: self.accepted,
            cookie: [0; COOKIE_BYTES],
            filled: 0,
            deadline_ns: monotonic_ns() + COOKIE_NS,
        });
    }

    fn read_cookies<'scope>(&mut self, scope: &'scope Scope<'scope, 'run>) {
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.read() {
                Progress::Waits => self.pending.push(pending),
                Progress::Gone => {}
                Progress::Knows(cookie) => self.admit(scope, pending, cookie),
            }
        }
    }

    fn admit<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'run>,
        pending: Pending,
        cookie: Cookie,
    ) {
        let Pending { socket, order, .. } = pending;
        let socket = match self.server.registry.deliver(&cookie, order, socket) {
            Delivery::Taken => return,
            Delivery::Refused(socket) => return refuse(&socket),
            Delivery::Unknown(socket) => socket,
        };
        let one_off_is_taken = self.server.options.one_off && self.sessions > 0;
        let Some(slot) = self
            .server
            .registry
            .enter(cookie)
            .filter(|_| !one_off_is_taken)
        else {
            return refuse(&socket);
        };
        self.sessions += 1;
        let (server, stop, number) = (self.server, self.stop, self.sessions);
        let name = format!("iperf3-{number}");
        let thread = std::thread::Builder::new().name(name);
        // Without a thread the client sees its connection closed.
        let _ = thread.spawn_scoped(scope, move || {
            session::serve(server, &slot, socket, number, stop);
        });
    }
}

impl Pending {
    fn read(&mut self) -> Progress {
        while self.filled < COOKIE_BYTES {
            match (&self.socket).read(&mut self.cookie[self.filled..]) {
                Ok(0) => return Progress::Gone,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if monotonic_ns() < self.deadline_ns {
                        return Progress::Waits;
                    }
                    return Progress::Gone;
                }
                Err(_) => return Progress::Gone,
            }
        }
        Progress::Knows(Cookie::from_wire(self.cookie))
    }
}

/// Answers a client that there is no slot, without waiting for it.
fn refuse(socket: &Socket) {
    let _ = socket.send(&[State::AccessDenied.to_wire()]);
}

/// Whether the listener itself is unharmed. accept(2) hands on what befell the new connection, and
/// names what is to be tried again; only a socket that is none any more is not.
fn is_passing(error: &io::Error) -> bool {
    const EBADF: i32 = 9;
    const EINVAL: i32 = 22;
    const ENOTSOCK: i32 = 88;
    !matches!(error.raw_os_error(), Some(EBADF | EINVAL | ENOTSOCK))
}
