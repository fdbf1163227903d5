//! What all parts of a simulated world share: its time, its hosts, and what was seen of them.

use crate::clock::HostClock;
use crate::draw::Drawn;
use crate::faults::Fault;
use crate::taken::Rounds;
use ew_model::facts::HostFacts;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// A simulated world.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) drawn: Drawn,
    pub(crate) inventory: Inventory,
    pub(crate) facts: BTreeMap<HostId, HostFacts>,
    began: Instant,
    by_address: BTreeMap<IpAddr, HostId>,
    seen: Mutex<Seen>,
    rounds: Mutex<Rounds>,
}

/// What was seen of the hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Launches of each host so far.
    pub(crate) launches: BTreeMap<HostId, u32>,
    /// Agents that are there.
    pub(crate) alive: BTreeSet<HostId>,
    /// Agents that ended by themselves.
    pub(crate) ends: Vec<End>,
    /// Ends of flows that an agent reported.
    pub(crate) reported: BTreeSet<(HostId, StageIndex, RoundIndex, FlowId)>,
    /// When the hosts of a round began, the world's time.
    pub(crate) begins: BTreeMap<(StageIndex, RoundIndex), BTreeMap<HostId, u64>>,
}

/// The end of an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) host: HostId,
    /// When the last byte from the controller came; its begin, where none did.
    pub(crate) heard_ns: u64,
    /// Whether one came at all.
    pub(crate) was_welcome: bool,
    pub(crate) at_ns: u64,
}

impl World {
    /// On a runtime whose time is paused: it is 0 now.
    pub(crate) fn new(drawn: Drawn) -> Self {
        let inventory = ew_sim::inventory(&drawn.topology);
        let hosts = inventory.host_ids().zip(&inventory.hosts);
        let by_address = hosts.filter_map(|(id, host)| Some((host.address?, id)));
        Self {
            by_address: by_address.collect(),
            facts: ew_sim::facts(&drawn.topology),
            inventory,
            drawn,
            began: Instant::now(),
            seen: Mutex::default(),
            rounds: Mutex::default(),
        }
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    pub(crate) async fn sleep_until(&self, world_ns: u64) {
        sleep_until(self.began + Duration::from_nanos(world_ns)).await;
    }

    pub(crate) fn clock(&self, host: HostId) -> HostClock {
        self.drawn.hosts[host.index()].clock
    }

    /// The host's own clock, now.
    pub(crate) fn agent_ns(&self, host: HostId) -> u64 {
        self.clock(host).at(self.now_ns())
    }

    pub(crate) fn faults(&self, host: HostId) -> &[Fault] {
        &self.drawn.hosts[host.index()].faults
    }

    pub(crate) fn host_at(&self, address: IpAddr) -> Option<HostId> {
        self.by_address.get(&address).copied()
    }

    pub(crate) fn host_named(&self, name: &str) -> Option<HostId> {
        let mut ids = self.inventory.host_ids();
        ids.find(|id| self.inventory.name(*id) == name)
    }

    /// Whether others reach the host's data port.
    pub(crate) fn is_reachable(&self, host: HostId) -> bool {
        self.seen().alive.contains(&host) && !self.faults(host).contains(&Fault::Blocks)
    }

    /// Until the host's agent is not stopped.
    pub(crate) async fn awake(&self, host: HostId) {
        let now_ns = self.now_ns();
        let stops = self.faults(host).iter().filter_map(Fault::stopped_ns);
        for (at_ns, for_ns) in stops {
            if (at_ns..at_ns + for_ns).contains(&now_ns) {
                self.sleep_until(at_ns + for_ns).await;
            }
        }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn rounds(&self) -> MutexGuard<'_, Rounds> {
        self.rounds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
