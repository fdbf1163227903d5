//! A real transfer between two processes over loopback shows up as theirs, with its rate.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use ew_telemetry::HostReader;
use ew_top::{Observer, View};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Makes the copy of this program send there, and do nothing else.
const SEND_TO: &str = "EASTWEST_TEST_SEND_TO";
const CHUNK_BYTES: usize = 50_000;
const CHUNK_EVERY: Duration = Duration::from_millis(10);
/// The sender ends by itself, whatever happens to the test.
const LONGEST: Duration = Duration::from_secs(30);

/// Ends the sender with the test.
struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_transfer_is_shown_as_its_processes_within_a_tenth() {
    if let Ok(address) = std::env::var(SEND_TO) {
        return send(&address);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = start_sender(&listener);
    let (stream, _) = listener.accept().unwrap();
    let received = Arc::new(AtomicU64::new(0));
    receive(stream, Arc::clone(&received));
    while received.load(Ordering::Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (view, least, most) = watch(&received);
    let seconds = view.interval_ns as f64 / 1e9;
    let process = |pid: u32| view.processes.iter().find(|p| p.pid == Some(pid)).unwrap();
    let sent_bits = process(sender.0.id()).tx_bits_per_sec * seconds;
    let got_bits = process(std::process::id()).rx_bits_per_sec * seconds;
    for bits in [sent_bits, got_bits] {
        assert!(
            bits >= least * 0.9 && bits <= most * 1.1,
            "{bits} is not in {least} to {most}"
        );
    }
    let loopback = view.interfaces.iter().find(|i| i.link.loopback).unwrap();
    assert!(loopback.rx_bits_per_sec * seconds >= least * 0.9);
    let port = listener.local_addr().unwrap().port();
    assert!(view.ports.iter().any(|p| p.port == port && p.served_here));
    let flow = view
        .flows
        .iter()
        .find(|f| f.pid == Some(sender.0.id()))
        .unwrap();
    assert_eq!(flow.remote.port(), port);
}

/// A view over a second, and between which numbers of bits arrived while it was made.
fn watch(received: &AtomicU64) -> (View, f64, f64) {
    let count = || received.load(Ordering::Relaxed) as f64 * 8.0;
    let (mut reader, mut observer) = (HostReader::new(Path::new("/")), Observer::new());
    // The second reading knows who holds which socket, however long the first walk was.
    for _ in 0..3 {
        observer.observe(reader.read(0));
    }
    let before_first = count();
    observer.observe(reader.read(0));
    let after_first = count();
    std::thread::sleep(Duration::from_secs(1));
    let before_second = count();
    let view = observer.observe(reader.read(0)).unwrap();
    (view, before_second - after_first, count() - before_first)
}

fn start_sender(listener: &TcpListener) -> Sender {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(SEND_TO, listener.local_addr().unwrap().to_string());
    Sender(command.spawn().unwrap())
}

fn receive(mut stream: TcpStream, received: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            received.fetch_add(read as u64, Ordering::Relaxed);
        }
    });
}

fn send(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let begin = Instant::now();
    while begin.elapsed() < LONGEST && stream.write_all(&[7; CHUNK_BYTES]).is_ok() {
        std::thread::sleep(CHUNK_EVERY);
    }
}
