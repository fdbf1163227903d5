//! Which connections the rounds wait for.

use crate::arrivals::Arrival;
use crate::hello::StreamKey;
use ew_proto::message::Role;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

/// Rounds write here what they wait for; the acceptor takes from it.
#[derive(Debug)]
pub(crate) struct Registry {
    seats: Mutex<BTreeMap<StreamKey, Seat>>,
    /// Wakes the acceptor: connections may have come before their round.
    waker: UnixStream,
}

/// Where a connection belongs.
#[derive(Debug)]
pub(crate) struct Seat {
    /// The opener's part in the stream.
    pub(crate) opener: Role,
    /// The stream's place on its thread.
    pub(crate) place: usize,
    pub(crate) thread: Sender<Arrival>,
}

impl Seat {
    /// When the round has just ended nobody takes the connection, and it closes here.
    pub(crate) fn hand_over(self, connection: TcpStream) {
        let _ = self.thread.send(Arrival {
            place: self.place,
            connection: Ok(connection),
        });
    }
}

impl Registry {
    pub(crate) fn new(waker: UnixStream) -> Self {
        Self {
            seats: Mutex::default(),
            waker,
        }
    }

    /// Waits for a stream's connection.
    pub(crate) fn expect(&self, key: StreamKey, seat: Seat) {
        self.lock().insert(key, seat);
    }

    /// No longer waits for a stream.
    pub(crate) fn forget(&self, key: StreamKey) {
        self.lock().remove(&key);
    }

    /// The seat of this stream with this opener, if somebody waits for it.
    pub(crate) fn claim(&self, key: StreamKey, opener: Role) -> Option<Seat> {
        let mut seats = self.lock();
        if seats.get(&key)?.opener != opener {
            return None;
        }
        seats.remove(&key)
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
