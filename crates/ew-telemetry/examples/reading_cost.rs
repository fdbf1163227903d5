//! What one reading costs on this host with so many TCP connections:
//!
//! ```text
//! cargo run --release -p ew-telemetry --example reading_cost -- [SOCKETS] [READINGS] [INTERVAL_MS]
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

fn main() -> std::io::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let mut next = |otherwise| numbers.next().and_then(Result::ok).unwrap_or(otherwise);
    let (sockets, readings, interval_ms) = (next(1000), next(20), next(1000));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let mut held = Vec::new();
    // Both ends live here, so half as many connections are as many sockets.
    for _ in 0..sockets / 2 {
        held.push((TcpStream::connect(address)?, listener.accept()?));
    }
    let mut reader = ew_telemetry::HostReader::new(Path::new("/"));
    let first = reader.read(ew_sys::clock::monotonic_ns());
    let mut cpu_ns = Vec::new();
    for _ in 0..readings {
        std::thread::sleep(Duration::from_millis(interval_ms));
        cpu_ns.push(reader.read(ew_sys::clock::monotonic_ns()).cost.cpu_ns);
    }
    cpu_ns.sort_unstable();
    let median_ns = cpu_ns.get(cpu_ns.len() / 2).copied().unwrap_or(0);
    println!(
        "{} TCP sockets, {} processes: first reading {:.2} ms of CPU, then median {:.2} ms, at most {:.2} ms: {:.2}% of one core every {interval_ms} ms",
        first.sockets.tcp.len(),
        first.processes.len(),
        first.cost.cpu_ns as f64 / 1e6,
        median_ns as f64 / 1e6,
        cpu_ns.last().copied().unwrap_or(0) as f64 / 1e6,
        median_ns as f64 / 1e4 / interval_ms as f64,
    );
    Ok(())
}
