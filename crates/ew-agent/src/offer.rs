//! An iperf3 server for stock clients, next to the run: only where the user asks for it.

use crate::problem::Problem;
use ew_iperf3::Server;
use ew_iperf3::server::ServerOptions;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::thread;

/// Serves until the agent's process ends.
pub(crate) fn start(address: IpAddr, port: u16) -> Result<(), Problem> {
    let at = SocketAddr::new(address, port);
    let server = Server::bind(at, ServerOptions::default())
        .map_err(|source| Problem::OfferIperf3 { at, source })?;
    let serve = move || {
        // Its end is the process's end; when its sockets fail before, clients see that nobody
        // answers.
        let _ = server.run(&AtomicBool::new(false));
    };
    let spawned = thread::Builder::new()
        .name("iperf3".to_owned())
        .spawn(serve);
    spawned.map(|_| ()).map_err(Problem::Thread)
}
