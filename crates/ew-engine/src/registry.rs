//! Which connections the rounds wait for.

use crate::hello::StreamKey;
use ew_proto::message::Role;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// Rounds write here what they wait for; the acceptor takes from it.
#[derive(Debug)]
pub(crate) struct Registry {
    seats: Mutex<BTreeMap<StreamKey, Seat>>,
    /// Wakes the acceptor: connections may have come before their round.
    waker: UnixStream,
}

#[derive(Debug)]
struct Seat {
    /// The opener's part in the stream.
    opener: Role,
    hand_over: Sender<TcpStream>,
}

impl Registry {
    pub(crate) fn new(waker: UnixStream) -> Self {
        Self {
            seats: Mutex::default(),
            waker,
        }
    }

    /// Waits for a stream whose opener has the given role. The connection comes through the receiver.
    pub(crate) fn expect(&self, key: StreamKey, opener: Role) -> Receiver<TcpStream> {
        let (hand_over, receiver) = channel();
        self.lock().insert(key, Seat { opener, hand_over });
        receiver
    }

    /// No longer waits for a stream.
    pub(crate) fn forget(&self, key: StreamKey) {
        self.lock().remove(&key);
    }

    /// Whether somebody waits for this stream with this opener.
    pub(crate) fn claim(&self, key: StreamKey, opener: Role) -> Option<Sender<TcpStream>> {
        let mut seats = self.lock();
        if seats.get(&key)?.opener != opener {
            return None;
        }
        seats.remove(&key).map(|seat| seat.hand_over)
    }

    /// Makes the acceptor look again.
    pub(crate) fn wake(&self) {
        // A full pipe is a wake-up that is already under way.
        let _ = (&self.waker).write(&[0]);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<StreamKey, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
