//! Which connections the rounds wait for.

use crate::arrivals::Arrival;
use crate::hello::StreamKey;
use crate::settings::ListenerSettings;
use ew_proto::message::Role;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A round begins without its listener rather than to be late.
const LISTENER_PATIENCE: Duration = Duration::from_millis(100);

/// Rounds write here what they wait for; the acceptor takes from it.
#[derive(Debug)]
pub(crate) struct Registry {
    slots: Mutex<BTreeMap<StreamKey, Slot>>,
    listener: Mutex<ListenerState>,
    listener_changed: Condvar,
    /// Wakes the acceptor: connections may have come before their round.
    waker: UnixStream,
}

#[derive(Debug, Default)]
struct ListenerState {
    wanted: ListenerSettings,
    /// What the acceptor has, or has tried to have.
    current: ListenerSettings,
}

/// Where a connection belongs.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The opener's part in the stream.
    pub(crate) opener: Role,
    /// The opener's address in the run's inventory.
    pub(crate) peer: IpAddr,
    /// The stream's index on its thread.
    pub(crate) index: usize,
    pub(crate) thread: Sender<Arrival>,
}

impl Slot {
    /// When the round has just ended nobody takes the connection, and it closes here.
    pub(crate) fn hand_over(self, connection: TcpStream) {
        let _ = self.thread.send(Arrival {
            index: self.index,
            connection: Ok(connection),
        });
    }
}

impl Registry {
    pub(crate) fn new(waker: UnixStream) -> Self {
        Self {
            slots: Mutex::default(),
            listener: Mutex::default(),
            listener_changed: Condvar::new(),
            waker,
        }
    }

    /// Waits for a stream's connection.
    pub(crate) fn expect(&self, key: StreamKey, slot: Slot) {
        self.lock().insert(key, slot);
    }

    /// The round that registers needs a listener with these settings. Whether it must wait for it.
    pub(crate) fn want_listener(&self, settings: ListenerSettings) -> bool {
        let mut state = self.listener();
        state.wanted = settings;
        state.current != settings
    }

    /// Until the acceptor has seen what is wanted; it needs microseconds.
    pub(crate) fn wait_for_listener(&self) {
        let differs = |state: &mut ListenerState| state.current != state.wanted;
        let waited =
            self.listener_changed
                .wait_timeout_while(self.listener(), LISTENER_PATIENCE, differs);
        drop(waited);
    }

    /// What the listener shall have, when that is something new.
    pub(crate) fn new_listener(&self) -> Option<ListenerSettings> {
        let state = self.listener();
        (state.wanted != state.current).then_some(state.wanted)
    }

    /// The acceptor has done what it could.
    pub(crate) fn set_listener(&self, settings: ListenerSettings) {
        self.listener().current = settings;
        self.listener_changed.notify_all();
    }

    /// No longer waits for a stream.
    pub(crate) fn forget(&self, key: StreamKey) {
        self.lock().remove(&key);
    }

    /// The slot of this stream with this opener, if somebody waits for it.
    pub(crate) fn claim(&self, key: StreamKey, opener: Role, from: IpAddr) -> Option<Slot> {
        let mut slots = self.lock();
        let slot = slots.get(&key)?;
        if slot.opener != opener || slot.peer.to_canonical() != from {
            return None;
        }
        slots.remove(&key)
    }

    /// Makes the acceptor check again.
    pub(crate) fn wake(&self) {
        // A full pipe is a wake-up that is already under way.
        let _ = (&self.waker).write(&[0]);
    }

    fn listener(&self) -> MutexGuard<'_, ListenerState> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamKey, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
