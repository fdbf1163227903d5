//! Which hosts get the agent's program from a neighbour that is up already, and from which: it then
//! travels over the controller's uplink once a rack and not once a host.
//!
//! The first host of a group gets it from the controller. Every host that is up hands it on, so
//! their number doubles; who can get it from nobody yet, waits.

use ew_model::Inventory;
use ew_model::inventory::{Host, RackId};
use ew_proto::message::RelayKey;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Hosts of a group where no racks are known. Names of neighbours mostly follow each other.
const HOSTS_PER_GROUP: usize = 32;
/// Hosts that get the program from the same neighbour at the same time: as many as are launched at
/// once at first. An agent serves up to 16.
const MAX_PER_NEIGHBOUR: usize = 8;

/// An agent that hands its program on, at its data port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its data listener.
    pub address: SocketAddr,
    /// What it wants to be shown.
    pub key: RelayKey,
}

/// Who has the program, who gets it, and from whom.
#[derive(Debug)]
pub struct Relay {
    key: RelayKey,
    /// By host.
    group_of: BTreeMap<String, usize>,
    groups: Mutex<Vec<Group>>,
    /// Some host has it from an earlier run, so most will.
    is_kept: AtomicBool,
    changed: Notify,
}

/// Hosts that give the program to each other.
#[derive(Clone, Debug, Default)]
struct Group {
    /// Gets it from the controller, for all.
    first: Option<String>,
    /// By host.
    sources: BTreeMap<String, Source>,
}

#[derive(Clone, Debug)]
struct Source {
    address: SocketAddr,
    serves: BTreeSet<String>,
}

/// From where a host that is to be launched gets the program.
enum Assignment {
    Controller,
    Neighbour(SocketAddr),
    Wait,
}

impl Relay {
    /// One group a rack, or of hosts that follow each other.
    #[must_use]
    pub fn new(inventory: &Inventory, key: RelayKey) -> Self {
        let hosts = inventory.hosts.iter().enumerate();
        let without_rack = inventory.racks.len();
        let group = |(position, host): (usize, &Host)| {
            let rack = host.rack.map(|RackId(rack)| rack as usize);
            let group = rack.unwrap_or(without_rack + position / HOSTS_PER_GROUP);
            (host.name.clone(), group)
        };
        let group_of: BTreeMap<String, usize> = hosts.map(group).collect();
        let groups = group_of.values().max().map_or(0, |last| last + 1);
        Self {
            key,
            group_of,
            groups: Mutex::new(vec![Group::default(); groups]),
            is_kept: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Waits until a host can be given a source. `None`: the controller.
    pub async fn assign(&self, host: &str) -> Option<Neighbour> {
        loop {
            let changed = self.changed.notified();
            match self.assign_now(host) {
                Assignment::Controller => return None,
                Assignment::Neighbour(address) => {
                    let key = self.key;
                    return Some(Neighbour { address, key });
                }
                Assignment::Wait => changed.await,
            }
        }
    }

    /// A host has the program, and hands it on at this address.
    pub fn is_up(&self, host: &str, address: SocketAddr) {
        self.change(host, |group| {
            let serves = BTreeSet::new();
            group
                .sources
                .insert(host.to_owned(), Source { address, serves });
        });
    }

    /// A host has kept the program from an earlier run: nobody waits for a neighbour any more.
    pub fn was_kept(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// A host is not launched any more, or was lost.
    pub fn is_gone(&self, host: &str) {
        self.change(host, |_| ());
    }

    fn assign_now(&self, host: &str) -> Assignment {
        let mut groups = self.lock();
        let Some(group) = self.group_of.get(host).map(|group| &mut groups[*group]) else {
            return Assignment::Controller;
        };
        // Whose launch is tried again has not got far with its neighbour.
        let tried = group.sources.values().any(|s| s.serves.contains(host));
        if tried || group.first.as_deref() == Some(host) {
            return Assignment::Controller;
        }
        let idlest = group.sources.values_mut().min_by_key(|s| s.serves.len());
        match idlest {
            Some(source) if source.serves.len() < MAX_PER_NEIGHBOUR => {
                source.serves.insert(host.to_owned());
                Assignment::Neighbour(source.address)
            }
            None if group.first.is_none() => {
                group.first = Some(host.to_owned());
                Assignment::Controller
            }
            Some(_) | None if self.is_kept.load(Ordering::Relaxed) => Assignment::Controller,
            Some(_) | None => Assignment::Wait,
        }
    }

    /// A host is no longer what it was, and something else happens to its group.
    fn change(&self, host: &str, and: impl FnOnce(&mut Group)) {
        if let Some(group) = self.group_of.get(host) {
            let group = &mut self.lock()[*group];
            group.first.take_if(|first| first == host);
            group.sources.remove(host);
            for source in group.sources.values_mut() {
                source.serves.remove(host);
            }
            and(group);
        }
        self.changed.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::inventory::Rack;

    fn relay(hosts: u32, racks: u32) -> Relay {
        let host = |number: u32| Host {
            name: format!("n{number}"),
            address: None,
            rack: (racks > 0).then(|| RackId(number % racks)),
        };
        let rack = |number| Rack {
            name: format!("r{number}"),
        };
        let inventory = Inventory {
            hosts: (0..hosts).map(host).collect(),
            racks: (0..racks).map(rack).collect(),
        };
        Relay::new(&inventory, RelayKey([1; 16]))
    }

    fn address(number: u16) -> SocketAddr {
        SocketAddr::from(([198, 18, 0, 1], number))
    }

    /// "c" from the controller, a port from the neighbour with it, "-" not yet.
    fn assigned(relay: &Relay, hosts: &[&str]) -> Vec<String> {
        let one = |host: &&str| match relay.assign_now(host) {
            Assignment::Controller => "c".to_owned(),
            Assignment::Neighbour(address) => address.port().to_string(),
            Assignment::Wait => "-".to_owned(),
        };
        hosts.iter().map(one).collect()
    }

    #[test]
    fn one_host_of_each_rack_asks_the_controller_and_the_others_ask_it() {
        let relay = relay(6, 2);
        assert_eq!(
            assigned(&relay, &["n0", "n1", "n2", "n3"]),
            ["c", "c", "-", "-"]
        );
        relay.is_up("n1", address(1));
        assert_eq!(assigned(&relay, &["n2", "n3", "n5"]), ["-", "1", "1"]);
        relay.is_up("n3", address(3));
        relay.is_up("n0", address(7));
        assert_eq!(assigned(&relay, &["n2", "n4"]), ["7", "7"]);
    }

    #[test]
    fn nobody_waits_where_hosts_have_kept_it() {
        let relay = relay(4, 1);
        assert_eq!(assigned(&relay, &["n0", "n1"]), ["c", "-"]);
        relay.was_kept();
        assert_eq!(assigned(&relay, &["n1", "n2"]), ["c", "c"]);
        relay.is_up("n0", address(7));
        assert_eq!(assigned(&relay, &["n3"]), ["7"]);
    }

    #[test]
    fn the_next_one_takes_the_place_of_a_first_host_that_fails() {
        let relay = relay(3, 1);
        assert_eq!(assigned(&relay, &["n0", "n0", "n1"]), ["c", "c", "-"]);
        relay.is_gone("n0");
        assert_eq!(assigned(&relay, &["n1", "n2"]), ["c", "-"]);
        relay.is_up("n1", address(1));
        relay.is_gone("n1");
        assert_eq!(assigned(&relay, &["n2"]), ["c"]);
    }

    #[test]
    fn a_neighbour_has_few_at_once_and_a_second_try_is_the_controllers() {
        let relay = relay(12, 0);
        assert_eq!(assigned(&relay, &["n0"]), ["c"]);
        relay.is_up("n0", address(1));
        let all = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"];
        let expected = ["1", "1", "1", "1", "1", "1", "1", "1", "-"];
        assert_eq!(assigned(&relay, &all), expected);
        assert_eq!(assigned(&relay, &["n1"]), ["c"]);
        relay.is_up("n2", address(2));
        assert_eq!(assigned(&relay, &["n9", "n10"]), ["2", "2"]);
    }

    #[tokio::test]
    async fn a_waiting_host_is_woken_when_a_source_is_up() {
        let relay = relay(2, 1);
        assert_eq!(relay.assign("n0").await, None);
        let (assigned, ()) = tokio::join!(relay.assign("n1"), async {
            relay.is_up("n0", address(4));
        });
        assert_eq!(
            assigned.map(|neighbour| neighbour.address),
            Some(address(4))
        );
    }
}
