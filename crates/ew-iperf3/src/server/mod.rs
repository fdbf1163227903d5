//! A server: many clients at once, on one port, TCP and UDP.
//!
//! One thread accepts. A TCP connection identifies its client by the 37 bytes it begins with: those
//! of a known client are a stream of it, others are a new client. A UDP stream has nothing of the
//! kind, so clients of one address set up their UDP streams one after another, and a greeting from
//! an address whose turn it is not is not answered: what a server sends by UDP goes only to an
//! address that holds a control connection open, and ends with it.

mod options;
mod reception;
mod registry;
mod session;

use crate::error::Error;
use crate::net;
use crate::wire::datagram::GREETING_BYTES;
pub use options::{Limits, ServerOptions, Watcher};
use registry::Registry;
use socket2::Socket;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Greetings taken in one go.
const MAX_GREETINGS: usize = 64;

/// A server that has its port.
pub struct Server {
    listener: Socket,
    udp_listener: UdpSocket,
    address: SocketAddr,
    options: ServerOptions,
    registry: Registry,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Takes the port for TCP and UDP. Port 0 lets the kernel choose. Sockets belong to the
    /// caller's network namespace.
    ///
    /// # Errors
    /// When the port is taken, or may not be used.
    pub fn bind(address: SocketAddr, options: ServerOptions) -> Result<Self, Error> {
        let listener = net::listen(address, options.only_v6, options.multipath)?;
        let bound = listener.local_addr().map_err(Error::Init)?;
        let address = bound.as_socket().unwrap_or(address);
        Ok(Self {
            udp_listener: net::udp_listener(address, options.only_v6)?,
            listener,
            address,
            registry: Registry::new(options.limits),
            options,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// Takes what there is from a socket that does not wait, and hands it to whose turn it is.
fn hear_greetings(socket: &UdpSocket, registry: &Registry) {
    for _ in 0..MAX_GREETINGS {
        if !hear_greeting(socket, registry) {
            return;
        }
    }
}

/// One datagram. False when there is none.
fn hear_greeting(socket: &UdpSocket, registry: &Registry) -> bool {
    let mut datagram = [0; GREETING_BYTES + 1];
    match socket.recv_from(&mut datagram) {
        Ok((GREETING_BYTES, peer)) => {
            let [a, b, c, d, _] = datagram;
            registry.greet(net::canonical(peer), [a, b, c, d]);
            true
        }
        // Neither too much nor too little is a greeting.
        Ok(_) => true,
        // Errors of earlier answers (ICMP) are reported here, too.
        Err(error) => error.kind() != io::ErrorKind::WouldBlock,
    }
}
