//! Who is being served, and to whom what arrives belongs.

use super::Limits;
use crate::wire::cookie::Cookie;
use crate::wire::datagram::GREETING_BYTES;
use crate::wire::params::MAX_STREAMS;
use socket2::Socket;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What arrives for a client that sets up its streams.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A TCP connection, and its number among all that were accepted.
    Tcp(u64, Socket),
    /// The first datagram of a UDP stream.
    Greeting(SocketAddr, [u8; GREETING_BYTES]),
}

/// What becomes of a connection that has identified itself.
#[derive(Debug)]
pub(super) enum Delivery {
    /// A stream of a known client.
    Taken,
    /// A known client, which has all its streams.
    Refused(Socket),
    /// A new client.
    Unknown(Socket),
}

/// All clients of a server.
#[derive(Clone, Debug)]
pub(super) struct Registry {
    limits: Limits,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    clients: BTreeMap<Cookie, Client>,
    /// By address: whose UDP streams are being set up, and who waits for that.
    turns: BTreeMap<IpAddr, VecDeque<Cookie>>,
    streams: usize,
}

#[derive(Debug)]
struct Client {
    inbox: SyncSender<Arrival>,
    /// TCP streams that are still to come.
    awaited: usize,
    /// Streams counted against the limit.
    streams: usize,
}

/// A client's slot. Given up when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    registry: Registry,
    cookie: Cookie,
    inbox: Receiver<Arrival>,
}

/// The right to set up UDP streams from an address. Given up when dropped.
#[derive(Debug)]
pub(super) struct Turn<'slot> {
    slot: &'slot Slot,
    address: IpAddr,
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            shared: Arc::default(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().clients.is_empty()
    }

    /// A slot for a new client, unless all are taken.
    pub(super) fn enter(&self, cookie: Cookie) -> Option<Slot> {
        let mut shared = self.lock();
        if shared.clients.len() >= self.limits.sessions || shared.clients.contains_key(&cookie) {
            return None;
        }
        let (sender, inbox) = sync_channel(2 * MAX_STREAMS);
        let client = Client {
            inbox: sender,
            awaited: 0,
            streams: 0,
        };
        shared.clients.insert(cookie, client);
        Some(Slot {
            registry: self.clone(),
            cookie,
            inbox,
        })
    }

    /// Hands a connection to the client it belongs to.
    pub(super) fn deliver(&self, cookie: &Cookie, order: u64, socket: Socket) -> Delivery {
        let mut shared = self.lock();
        let Some(client) = shared.clients.get_mut(cookie) else {
            return Delivery::Unknown(socket);
        };
        if client.awaited == 0 {
            return Delivery::Refused(socket);
        }
        client.awaited -= 1;
        // The channel has space for as many as may be awaited.
        let _ = client.inbox.try_send(Arrival::Tcp(order, socket));
        Delivery::Taken
    }

    /// Hands a greeting to the client whose turn it is at that address; others are not answered.
    pub(super) fn greet(&self, peer: SocketAddr, greeting: [u8; GREETING_BYTES]) {
        let shared = self.lock();
        let Some(cookie) = shared.turns.get(&peer.ip()).and_then(VecDeque::front) else {
            return;
        };
        if let Some(client) = shared.clients.get(cookie) {
            // More greetings than a client can have streams are not its own.
            let _ = client.inbox.try_send(Arrival::Greeting(peer, greeting));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    pub(super) fn cookie(&self) -> Cookie {
        self.cookie
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Counts the streams of a test against the limit. False when they are too many.
    pub(super) fn reserve_streams(&self, streams: usize) -> bool {
        let mut shared = self.registry.lock();
        if shared.streams + streams > self.registry.limits.streams {
            return false;
        }
        shared.streams += streams;
        if let Some(client) = shared.clients.get_mut(&self.cookie) {
            client.streams += streams;
        }
        true
    }

    /// From now on so many TCP connections with this cookie are streams.
    pub(super) fn await_streams(&self, streams: usize) {
        if let Some(client) = self.registry.lock().clients.get_mut(&self.cookie) {
            client.awaited = streams;
        }
    }

    /// Queues for the right to set up UDP streams from this address.
    pub(super) fn queue_for_turn(&self, address: IpAddr) -> Turn<'_> {
        let mut shared = self.registry.lock();
        let queue = shared.turns.entry(address).or_default();
        queue.push_back(self.cookie);
        Turn {
            slot: self,
            address,
        }
    }

    /// What has arrived, or `None` after a while.
    pub(super) fn next_arrival(&self, wait: Duration) -> Option<Arrival> {
        self.inbox.recv_timeout(wait).ok()
    }
}

impl Turn<'_> {
    /// Whether it has come.
    pub(super) fn has_come(&self) -> bool {
        let shared = self.slot.registry.lock();
        let first = shared.turns.get(&self.address).and_then(VecDeque::front);
        first == Some(&self.slot.cookie)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut shared = self.slot.registry.lock();
        if let Some(queue) = shared.turns.get_mut(&self.address) {
            queue.retain(|cookie| *cookie != self.slot.cookie);
            if queue.is_empty() {
                shared.turns.remove(&self.address);
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut shared = self.registry.lock();
        if let Some(client) = shared.clients.remove(&self.cookie) {
            shared.streams -= client.streams;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    fn registry(sessions: usize, streams: usize) -> Registry {
        Registry::new(Limits {
            sessions,
            streams,
            ..Limits::default()
        })
    }

    fn socket() -> Socket {
        Socket::new(Domain::IPV4, Type::STREAM, None).unwrap()
    }

    fn arrivals(slot: &Slot) -> Vec<Arrival> {
        std::iter::from_fn(|| slot.next_arrival(Duration::ZERO)).collect()
    }

    #[test]
    fn connections_go_to_whom_they_belong_and_no_more_than_awaited() {
        let registry = registry(2, 10);
        let (one, other) = (Cookie::draw().unwrap(), Cookie::draw().unwrap());
        let slot = registry.enter(one).unwrap();
        let deliver = |cookie| registry.deliver(cookie, 1, socket());
        assert!(matches!(deliver(&one), Delivery::Refused(_)));
        slot.await_streams(1);
        assert!(matches!(deliver(&one), Delivery::Taken));
        assert!(matches!(deliver(&one), Delivery::Refused(_)));
        assert!(matches!(deliver(&other), Delivery::Unknown(_)));
        assert_eq!(arrivals(&slot).len(), 1);
        drop(slot);
        assert!(registry.is_empty());
        assert!(matches!(deliver(&one), Delivery::Unknown(_)));
    }

    #[test]
    fn slots_and_streams_are_limited_and_come_back() {
        let registry = registry(1, 3);
        let slot = registry.enter(Cookie::draw().unwrap()).unwrap();
        assert!(registry.enter(Cookie::draw().unwrap()).is_none());
        assert!(slot.reserve_streams(2));
        assert!(!slot.reserve_streams(2));
        drop(slot);
        let slot = registry.enter(Cookie::draw().unwrap()).unwrap();
        assert!(slot.reserve_streams(3));
    }

    #[test]
    fn greetings_are_answered_only_to_whose_turn_it_is() {
        let registry = registry(2, 10);
        let one = registry.enter(Cookie::draw().unwrap()).unwrap();
        let other = registry.enter(Cookie::draw().unwrap()).unwrap();
        let peer: SocketAddr = "198.18.0.1:1000".parse().unwrap();
        let elsewhere: SocketAddr = "198.18.0.2:1000".parse().unwrap();
        registry.greet(peer, [0; 4]);
        let first = one.queue_for_turn(peer.ip());
        let second = other.queue_for_turn(peer.ip());
        assert!(first.has_come() && !second.has_come());
        registry.greet(peer, [1; 4]);
        registry.greet(elsewhere, [1; 4]);
        assert_eq!((arrivals(&one).len(), arrivals(&other).len()), (1, 0));
        drop(first);
        assert!(second.has_come());
        registry.greet(peer, [2; 4]);
        assert_eq!((arrivals(&one).len(), arrivals(&other).len()), (0, 1));
    }
}
