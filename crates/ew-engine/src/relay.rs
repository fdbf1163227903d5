//! Hands this agent's own program on to hosts that are being launched: it then travels once from
//! the controller to a rack, and from host to host inside of it.
//!
//! Who asks is a shell script with `curl`, `wget` or bash, so it asks by HTTP, at the data port,
//! which is open between hosts already. What it gets is no secret, and it compares the digest that
//! the controller has given it; the key keeps unauthenticated peers from making a host send.

use crate::hello::same_secret;
use ew_proto::message::RelayKey;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The program as it runs, also after its file was removed (proc(5)).
const PROGRAM: &str = "/proc/self/exe";
const METHOD: &[u8] = b"GET /";
/// Neighbours that are given the program at the same time; the controller sends fewer.
const MAX_AT_ONCE: usize = 16;
/// Longest request.
const MAX_REQUEST_BYTES: usize = 4096;
/// For a neighbour that neither asks to the end nor takes what it asked for.
const PATIENCE: Duration = Duration::from_secs(5);
const STACK_BYTES: usize = 128 * 1024;

/// The program, for those who know the key.
#[derive(Debug)]
pub(crate) struct Relay {
    /// What a request begins with.
    request: Vec<u8>,
    busy: Arc<AtomicUsize>,
}

/// What the first bytes of a connection ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The program.
    Program,
    /// That will be seen when more has come.
    Unclear,
    /// Something else.
    Other,
}

impl Relay {
    pub(crate) fn new(key: &RelayKey) -> Self {
        Self {
            request: [METHOD, key.to_string().as_bytes()].concat(),
            busy: Arc::default(),
        }
    }

    pub(crate) fn judge(&self, start: &[u8]) -> Asked {
        let method = start.len().min(METHOD.len());
        if start[..method] != METHOD[..method] {
            return Asked::Other;
        }
        match start.get(..self.request.len()) {
            None => Asked::Unclear,
            Some(asked) if same_secret(asked, &self.request) => Asked::Program,
            Some(_) => Asked::Other,
        }
    }

    /// Answers a request that begins so, on a thread of its own. Who comes when too many are served
    /// is closed, and gets the program from the controller.
    pub(crate) fn hand_on(&self, socket: TcpStream, start: Vec<u8>) {
        let busy = Arc::clone(&self.busy);
        if busy.fetch_add(1, Ordering::AcqRel) >= MAX_AT_ONCE {
            busy.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let thread = std::thread::Builder::new().name("relay".to_owned());
        let released = Arc::clone(&busy);
        let spawned = thread.stack_size(STACK_BYTES).spawn(move || {
            // The neighbour sees by the digest what it did not get.
            let _ = answer(socket, start);
            released.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            busy.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// HTTP/1.0 (RFC 1945); without the version, as bash asks, its Simple-Request, which is answered by
/// the body alone.
fn answer(mut socket: TcpStream, start: Vec<u8>) -> io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let wants_head = read_request(&mut socket, start)?;
    let mut program = File::open(PROGRAM)?;
    if wants_head {
        let bytes = program.metadata()?.len();
        let head =
            format!("HTTP/1.0 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
        socket.write_all(head.as_bytes())?;
    }
    io::copy(&mut program, &mut socket)?;
    socket.shutdown(Shutdown::Write)
}

/// Reads a request to its end; whether it is one of HTTP/1, whose answer has a head. What is left
/// unread would reset the connection when it is closed.
fn read_request(socket: &mut impl Read, mut request: Vec<u8>) -> io::Result<bool> {
    loop {
        if let Some(line_end) = request.iter().position(|byte| *byte == b'\n') {
            let line = &request[..line_end];
            if !line.windows(6).any(|word| word == b" HTTP/") {
                return Ok(false);
            }
            if request.ends_with(b"\r\n\r\n") || request.ends_with(b"\n\n") {
                return Ok(true);
            }
        }
        if request.len() >= MAX_REQUEST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut more = [0; 512];
        let count = socket.read(&mut more)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&more[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: RelayKey = RelayKey([0xab; 16]);

    #[test]
    fn only_the_key_asks_for_the_program() {
        let relay = Relay::new(&KEY);
        let request = format!("GET /{KEY} HTTP/1.1\r\n");
        assert_eq!(relay.judge(request.as_bytes()), Asked::Program);
        assert_eq!(relay.judge(&request.as_bytes()[..36]), Asked::Unclear);
        assert_eq!(relay.judge(b""), Asked::Unclear);
        let other = format!("GET /{} HTTP/1.1\r\n", RelayKey([0xac; 16]));
        assert_eq!(relay.judge(other.as_bytes()), Asked::Other);
        assert_eq!(relay.judge(b"POST /"), Asked::Other);
    }

    #[test]
    fn requests_are_read_to_their_end() {
        let read = |start: &str, rest: &str| read_request(&mut rest.as_bytes(), start.into());
        assert!(read("GET /k HTTP/1.1\r\nHo", "st: a\r\n\r\n").unwrap());
        assert!(!read("GET /k\n", "").unwrap());
        assert!(read("GET /k HTTP/1.1\r\n", "").is_err());
        assert!(read("GET /k HTTP/1.1\r\n", &"a".repeat(10_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_request_makes_it_panic(
            start in proptest::collection::vec(any::<u8>(), 0..80),
            rest in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let relay = Relay::new(&KEY);
            prop_assert_ne!(relay.judge(&start), Asked::Program);
            let _ = read_request(&mut rest.as_slice(), start);
        }
    }
}
