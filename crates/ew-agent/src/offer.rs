//! An iperf3 server for stock clients, next to the run: only where the user asks for it.

use ew_iperf3::Server;
use ew_iperf3::server::ServerOptions;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;

/// Serves until the agent's process ends. The error is in words, with the remedy.
pub(crate) fn start(address: IpAddr, port: u16) -> Result<(), String> {
    let at = SocketAddr::new(address, port);
    let server = Server::bind(at, ServerOptions::default()).map_err(|error| {
        format!("cannot offer iperf3 at {at}: {error}; choose a free port with --offer-iperf3")
    })?;
    let serve = move || {
        // Its end is the process's end; when its sockets fail before, clients see that nobody
        // answers.
        let _ = server.run(&AtomicBool::new(false));
    };
    let spawned = thread::Builder::new()
        .name("iperf3".to_owned())
        .spawn(serve);
    spawned
        .map(|_| ())
        .map_err(|error| format!("cannot start a thread for the iperf3 server: {error}"))
}
