//! Who holds UDP sockets, and what these dropped since the first reading. Pure.
//!
//! The kernel counts no bytes of a UDP socket and reports no death of one: what it dropped between
//! the last reading of its life and its end is not in any figure.

use ew_model::telemetry::UdpSocket;
use std::collections::BTreeMap;

/// Processes remembered of sockets that closed; what exceeds it counts for "unseen".
const MAX_PROCESSES: usize = 1024;

/// The UDP sockets of one network namespace.
#[derive(Debug, Default)]
pub(crate) struct UdpTotals {
    begun: bool,
    living: BTreeMap<u64, SocketAccounting>,
    closed_drops: BTreeMap<Option<u32>, u64>,
}

#[derive(Clone, Copy, Debug)]
struct SocketAccounting {
    inode: u32,
    pid: Option<u32>,
    /// Its count when it was first seen, if that was at the first reading; else nothing.
    base_drops: u32,
    drops: u32,
    readings: u32,
}

/// What is reported for one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UdpUse {
    pub(crate) sockets: u32,
    pub(crate) drops: u64,
}

impl UdpTotals {
    /// Takes the sockets that live.
    pub(crate) fn take(&mut self, living: &[UdpSocket]) {
        let mut before = std::mem::take(&mut self.living);
        for socket in living {
            let drops = socket.drops.unwrap_or(0);
            let new = SocketAccounting {
                inode: socket.inode,
                pid: None,
                base_drops: if self.begun { 0 } else { drops },
                drops,
                readings: 0,
            };
            let socket_totals = before.remove(&socket.cookie).unwrap_or(new);
            let socket_totals = SocketAccounting {
                drops,
                readings: socket_totals.readings.saturating_add(1),
                ..socket_totals
            };
            self.living.insert(socket.cookie, socket_totals);
        }
        for socket_totals in before
            .values()
            .filter(|socket_totals| socket_totals.dropped() > 0)
        {
            let closed = &self.closed_drops;
            let has_space = closed.len() < MAX_PROCESSES || closed.contains_key(&socket_totals.pid);
            let pid = socket_totals.pid.filter(|_| has_space);
            *self.closed_drops.entry(pid).or_default() += socket_totals.dropped();
        }
        self.begun = true;
    }

    /// Inodes of sockets whose owner is not known.
    pub(crate) fn ownerless(&self) -> impl Iterator<Item = u32> {
        self.without_owner()
            .map(|socket_totals| socket_totals.inode)
    }

    /// Those of them that are worth a search of /proc: most UDP sockets ask one question and are
    /// gone.
    pub(crate) fn worth_a_search(&self) -> impl Iterator<Item = u32> {
        let stays = |a: &&SocketAccounting| a.readings > 1 || a.dropped() > 0;
        self.without_owner().filter(stays).map(|a| a.inode)
    }

    fn without_owner(&self) -> impl Iterator<Item = &SocketAccounting> {
        let sockets = self.living.values();
        sockets.filter(|socket_totals| socket_totals.pid.is_none() && socket_totals.inode != 0)
    }

    /// Names owners by inode.
    pub(crate) fn name_owners(&mut self, owner: &dyn Fn(u32) -> Option<u32>) {
        for socket_totals in self.living.values_mut() {
            socket_totals.pid = socket_totals.pid.or_else(|| owner(socket_totals.inode));
        }
    }

    /// By process; `None` gathers sockets whose owner was not seen.
    pub(crate) fn uses(&self) -> BTreeMap<Option<u32>, UdpUse> {
        let mut uses: BTreeMap<Option<u32>, UdpUse> = BTreeMap::new();
        for socket_totals in self.living.values() {
            let used = uses.entry(socket_totals.pid).or_default();
            used.sockets += 1;
            used.drops += socket_totals.dropped();
        }
        for (pid, drops) in &self.closed_drops {
            uses.entry(*pid).or_default().drops += drops;
        }
        uses
    }
}

impl SocketAccounting {
    /// The kernel's counter is 32 bits wide and wraps.
    fn dropped(&self) -> u64 {
        u64::from(self.drops.wrapping_sub(self.base_drops))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(cookie: u64, drops: u32) -> UdpSocket {
        UdpSocket {
            cookie,
            local: ([192, 0, 2, 1], 9).into(),
            remote: ([0, 0, 0, 0], 0).into(),
            inode: cookie as u32 + 100,
            pid: None,
            receive_queue: 0,
            send_queue: 0,
            drops: Some(drops),
        }
    }

    fn used(totals: &UdpTotals, pid: Option<u32>) -> (u32, u64) {
        let used = totals.uses().get(&pid).copied().unwrap_or_default();
        (used.sockets, used.drops)
    }

    #[test]
    fn drops_count_from_the_first_reading_and_outlive_their_socket() {
        let mut totals = UdpTotals::default();
        totals.take(&[socket(1, 50)]);
        assert_eq!(used(&totals, None), (1, 0), "dropped before");
        totals.take(&[socket(1, 53), socket(2, 7)]);
        totals.name_owners(&|inode| (inode == 101).then_some(9));
        assert_eq!(used(&totals, Some(9)), (1, 3));
        assert_eq!(used(&totals, None), (1, 7), "born since");
        totals.take(&[socket(2, 8)]);
        assert_eq!(used(&totals, Some(9)), (0, 3));
        totals.take(&[]);
        assert_eq!(used(&totals, None), (0, 8));
        totals.take(&[]);
        assert_eq!(used(&totals, None), (0, 8), "once");
    }

    #[test]
    fn a_process_that_is_remembered_stays_so_when_there_is_no_space_for_others() {
        let mut totals = UdpTotals::default();
        totals.take(&[]);
        let many = u64::try_from(MAX_PROCESSES).unwrap() + 5;
        for _ in 0..2 {
            let all: Vec<UdpSocket> = (1..=many).map(|cookie| socket(cookie, 1)).collect();
            totals.take(&all);
            totals.name_owners(&Some);
            totals.take(&[]);
        }
        assert_eq!(used(&totals, Some(101)), (0, 2));
        assert_eq!(used(&totals, None), (0, 10));
    }

    #[test]
    fn owners_are_sought_of_what_stays_or_drops() {
        let mut totals = UdpTotals::default();
        totals.take(&[]);
        totals.take(&[socket(1, 0), socket(2, 1)]);
        assert_eq!(totals.ownerless().count(), 2);
        assert_eq!(totals.worth_a_search().collect::<Vec<_>>(), [102]);
        totals.take(&[socket(1, 0), socket(2, 1)]);
        assert_eq!(totals.worth_a_search().collect::<Vec<_>>(), [101, 102]);
        totals.name_owners(&|_| Some(9));
        assert_eq!(totals.ownerless().count(), 0);
    }
}
