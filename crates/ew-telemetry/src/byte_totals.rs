//! Who carried how much since the first reading, from sockets that count for themselves. Pure.
//!
//! A socket counts from its birth and reports its last counts when it dies. What it carried is its
//! owner's as soon as the owner is known, also what it carried before.

use ew_model::telemetry::{PeerTraffic, PortTraffic, ProcessTraffic, ServicePort, TcpSocket};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// The kernel reports a death a little after it: a socket may be in neither the list nor the
/// deaths of so many readings.
const MAX_MISSED_READINGS: u8 = 2;
/// Processes remembered of sockets that closed; what exceeds it counts for "unseen".
const MAX_PROCESSES: usize = 1024;
/// Peers of a process remembered, and ports; what exceeds it counts for the process alone.
const MAX_SHARES: usize = 256;
/// Processes reported, and peers and ports of each.
const PROCESSES_TOLD: usize = 16;
const SHARES_TOLD: usize = 8;

/// The likely owner of a connection between two addresses: local, remote.
pub(crate) type Guess<'a> = &'a dyn Fn(SocketAddr, SocketAddr) -> Option<u32>;

/// The sockets of one network namespace.
#[derive(Debug, Default)]
pub(crate) struct ByteTotals {
    begun: bool,
    living: BTreeMap<u64, SocketAccounting>,
    closed: BTreeMap<Option<u32>, Total>,
    closed_segments: BTreeMap<Option<u32>, Segments>,
}

/// One socket that lives, or did a moment ago.
#[derive(Clone, Debug)]
struct SocketAccounting {
    local: SocketAddr,
    remote: SocketAddr,
    service: ServicePort,
    inode: u32,
    pid: Option<u32>,
    /// Its counts when it was first seen, if that was at the first reading; else nothing.
    base: Bytes,
    now: Bytes,
    /// Since it was first seen, or from its birth on, as bytes.
    segments: Segments,
    counted: SegmentCounts,
    missed_readings: u8,
}

/// The kernel's counters of a socket's segments: 32 bits wide, they wrap.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentCounts {
    sent: u32,
    retransmitted: u32,
}

/// Segments with payload that left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    /// Retransmitted ones included.
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bytes {
    sent: u64,
    received: u64,
}

#[derive(Clone, Debug, Default)]
struct Total {
    bytes: Bytes,
    peers: Shares<IpAddr>,
    ports: Shares<ServicePort>,
}

/// What a process moved, apart by peer or by port.
#[derive(Clone, Debug)]
struct Shares<Key>(BTreeMap<Key, Bytes>);

impl ByteTotals {
    /// Takes the sockets that live and those that died since the last call. `guess` names the owner
    /// of a connection by its ends when it closed before its owner could be read.
    pub(crate) fn take(&mut self, living: &[TcpSocket], died: &[TcpSocket], guess: Guess<'_>) {
        for socket_totals in self.living.values_mut() {
            socket_totals.missed_readings = socket_totals.missed_readings.saturating_add(1);
        }
        let listening = living.iter().filter(|s| s.state == TcpSocket::LISTEN);
        let listened: BTreeSet<u16> = listening.map(|s| s.local.port()).collect();
        for socket in living.iter().filter(|socket| leaves_the_host(socket)) {
            self.see(socket, &listened, guess);
        }
        // A socket that died between the list and the deaths is in both.
        for socket in died.iter().filter(|socket| leaves_the_host(socket)) {
            self.see(socket, &listened, guess);
            self.close(socket.cookie, guess);
        }
        let is_gone =
            |socket_totals: &SocketAccounting| socket_totals.missed_readings > MAX_MISSED_READINGS;
        let gone = self
            .living
            .iter()
            .filter(|(_, socket_totals)| is_gone(socket_totals));
        let gone: Vec<u64> = gone.map(|(cookie, _)| *cookie).collect();
        for cookie in gone {
            self.close(cookie, guess);
        }
        self.begun = true;
    }

    /// Inodes of living sockets that carried at least so many bytes and whose owner is not known.
    pub(crate) fn ownerless(&self, least_bytes: u64) -> impl Iterator<Item = u32> {
        let wanted = move |socket_totals: &&SocketAccounting| {
            socket_totals.pid.is_none()
                && socket_totals.inode != 0
                && socket_totals.carried().sum() >= least_bytes
        };
        self.living.values().filter(wanted).map(|a| a.inode)
    }

    /// Names owners by inode.
    pub(crate) fn name_owners(&mut self, owner: &dyn Fn(u32) -> Option<u32>) {
        for socket_totals in self.living.values_mut() {
            socket_totals.pid = socket_totals.pid.or_else(|| owner(socket_totals.inode));
        }
    }

    /// The largest movers, without their names.
    pub(crate) fn traffic(&self) -> Vec<ProcessTraffic> {
        let mut totals = self.closed.clone();
        for socket_totals in self.living.values() {
            add(&mut totals, socket_totals.pid, socket_totals);
        }
        let mut moved: Vec<(Option<u32>, Total)> = totals.into_iter().collect();
        moved.retain(|(_, total)| total.bytes.sum() > 0);
        moved.sort_by_key(|(_, total)| std::cmp::Reverse(total.bytes.sum()));
        moved.truncate(PROCESSES_TOLD);
        moved
            .into_iter()
            .map(|(pid, total)| process_traffic(pid, &total))
            .collect()
    }

    /// What each process sent since the first reading.
    pub(crate) fn segments(&self, guess: Guess<'_>) -> BTreeMap<Option<u32>, Segments> {
        let mut totals = self.closed_segments.clone();
        for socket_totals in self.living.values() {
            let pid = socket_totals
                .pid
                .or_else(|| guess(socket_totals.local, socket_totals.remote));
            totals.entry(pid).or_default().add(socket_totals.segments);
        }
        totals
    }

    fn see(&mut self, socket: &TcpSocket, listened: &BTreeSet<u16>, guess: Guess<'_>) {
        let now = Bytes {
            sent: socket.acked_bytes.unwrap_or(0),
            received: socket.received_bytes.unwrap_or(0),
        };
        let counted = SegmentCounts {
            sent: socket.data_segments_out.unwrap_or(0),
            retransmitted: socket.info.total_retransmits,
        };
        if let Some(socket_totals) = self.living.get_mut(&socket.cookie) {
            // A socket that was disconnected and connected again counts from 0, perhaps with
            // another peer.
            let is_same = socket_totals.remote == socket.remote
                && now.covers(socket_totals.now)
                && counted.goes_on_from(socket_totals.counted);
            if is_same {
                socket_totals.now = now;
                let since = counted.since(socket_totals.counted);
                socket_totals.segments.add(since);
                socket_totals.counted = counted;
                socket_totals.missed_readings = 0;
                return;
            }
        }
        let before = self.living.get(&socket.cookie).cloned();
        if before.is_some() {
            self.close(socket.cookie, guess);
        }
        let socket_totals = SocketAccounting {
            local: socket.local,
            remote: socket.remote,
            service: ServicePort::of(socket.local.port(), socket.remote.port(), listened),
            inode: socket.inode,
            pid: before.and_then(|socket_totals| socket_totals.pid),
            base: if self.begun { Bytes::default() } else { now },
            now,
            segments: if self.begun {
                counted.since(SegmentCounts::default())
            } else {
                Segments::default()
            },
            counted,
            missed_readings: 0,
        };
        self.living.insert(socket.cookie, socket_totals);
    }

    fn close(&mut self, cookie: u64, guess: Guess<'_>) {
        if let Some(socket_totals) = self.living.remove(&cookie) {
            let pid = socket_totals
                .pid
                .or_else(|| guess(socket_totals.local, socket_totals.remote));
            let known = &self.closed_segments;
            let has_space = known.len() < MAX_PROCESSES || known.contains_key(&pid);
            let pid = if has_space { pid } else { None };
            let segments = self.closed_segments.entry(pid).or_default();
            segments.add(socket_totals.segments);
            add(&mut self.closed, pid, &socket_totals);
        }
    }
}

impl SocketAccounting {
    fn carried(&self) -> Bytes {
        Bytes {
            sent: self.now.sent.saturating_sub(self.base.sent),
            received: self.now.received.saturating_sub(self.base.received),
        }
    }
}

impl SegmentCounts {
    /// A count that fell by less than half its range began again; one that wrapped fell by more.
    fn goes_on_from(self, before: Self) -> bool {
        let since = self.since(before);
        since.sent.max(since.retransmitted) < 1 << 31
    }

    fn since(self, before: Self) -> Segments {
        let retransmitted = self.retransmitted.wrapping_sub(before.retransmitted);
        Segments {
            sent: self.sent.wrapping_sub(before.sent).into(),
            retransmitted: retransmitted.into(),
        }
    }
}

impl Segments {
    pub(crate) fn add(&mut self, other: Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.retransmitted = self.retransmitted.saturating_add(other.retransmitted);
    }
}

impl<Key> Default for Shares<Key> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Key: Copy + Ord> Shares<Key> {
    fn add(&mut self, key: Key, carried: Bytes) {
        if self.0.len() < MAX_SHARES || self.0.contains_key(&key) {
            self.0.entry(key).or_default().add(carried);
        }
    }

    /// The largest first.
    fn max<Reported>(&self, report: impl Fn(Key, Bytes) -> Reported) -> Vec<Reported> {
        let mut shares: Vec<(Key, Bytes)> = self.0.iter().map(|(k, b)| (*k, *b)).collect();
        shares.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.sum()));
        let reported = shares.into_iter().take(SHARES_TOLD);
        reported.map(|(key, bytes)| report(key, bytes)).collect()
    }
}

impl Bytes {
    fn sum(self) -> u64 {
        self.sent.saturating_add(self.received)
    }

    fn covers(self, before: Self) -> bool {
        self.sent >= before.sent && self.received >= before.received
    }

    fn add(&mut self, other: Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
    }
}

/// Traffic of a host with itself meets no network.
fn leaves_the_host(socket: &TcpSocket) -> bool {
    let (local, remote) = (socket.local.ip(), socket.remote.ip());
    socket.state != TcpSocket::LISTEN && !remote.is_loopback() && local != remote
}

fn add(
    totals: &mut BTreeMap<Option<u32>, Total>,
    pid: Option<u32>,
    socket_totals: &SocketAccounting,
) {
    let carried = socket_totals.carried();
    if carried.sum() == 0 {
        return;
    }
    let total = totals.entry(pid).or_default();
    total.bytes.add(carried);
    total.peers.add(socket_totals.remote.ip(), carried);
    total.ports.add(socket_totals.service, carried);
}

fn process_traffic(pid: Option<u32>, total: &Total) -> ProcessTraffic {
    ProcessTraffic {
        pid,
        sent_bytes: total.bytes.sent,
        received_bytes: total.bytes.received,
        peers: total.peers.max(|address, bytes| PeerTraffic {
            address,
            sent_bytes: bytes.sent,
            received_bytes: bytes.received,
        }),
        ports: total.ports.max(|service, bytes| PortTraffic {
            service,
            sent_bytes: bytes.sent,
            received_bytes: bytes.received,
        }),
        ..ProcessTraffic::default()
    }
}

#[cfg(test)]
mod tests;
