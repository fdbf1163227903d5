//! What TCP workloads share: calls whose "would block" is an answer and not an error.

use super::machine::Broken;
use crate::connect::is_timeout;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// One send; 0 when nothing could be sent for now.
pub(super) fn send(mut socket: &TcpStream, bytes: &[u8]) -> Result<usize, Broken> {
    sent(socket.write(bytes))
}

/// One receive; 0 when nothing came for now. The peer's end of stream is an error.
pub(super) fn receive(mut socket: &TcpStream, into: &mut [u8]) -> Result<usize, Broken> {
    received(socket.read(into))
}

/// The outcome of a call that sends.
pub(super) fn sent(outcome: io::Result<usize>) -> Result<usize, Broken> {
    match outcome {
        Ok(count) => Ok(count),
        Err(error) if is_timeout(&error) => Ok(0),
        Err(error) => Err(Broken {
            action: "send to",
            error,
        }),
    }
}

/// The peer's end of the connection.
pub(super) fn peer_closed() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the peer closed the connection",
    )
}

/// The outcome of a call that receives.
pub(super) fn received(outcome: io::Result<usize>) -> Result<usize, Broken> {
    let error = match outcome {
        Ok(0) => peer_closed(),
        Ok(count) => return Ok(count),
        Err(error) if is_timeout(&error) => return Ok(0),
        Err(error) => error,
    };
    Err(Broken {
        action: "receive from",
        error,
    })
}
