//! What is assumed of a network: what each class of hosts can do, how racks are tied together, and
//! single things that are off.

use super::obs::Obs;
use super::rounds::Rounds;
use ew_model::HostId;
use ew_model::finding::details::Directions;
use std::collections::BTreeMap;

/// Which way, seen from the host or the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Sending; out of a rack.
    Tx,
    /// Receiving; into a rack.
    Rx,
    /// Both, with one value.
    Both,
}

impl Direction {
    /// Sending, or both.
    pub fn has_tx(self) -> bool {
        self != Self::Rx
    }

    /// Receiving, or both.
    pub fn has_rx(self) -> bool {
        self != Self::Tx
    }

    /// One or both.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        let meant = [(Self::Tx, self.has_tx()), (Self::Rx, self.has_rx())];
        meant
            .into_iter()
            .filter_map(|(way, is_meant)| is_meant.then_some(way))
    }
}

impl From<Direction> for Directions {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Tx => Self::Tx,
            Direction::Rx => Self::Rx,
            Direction::Both => Self::Both,
        }
    }
}

/// Where something is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A host's link.
    Host(HostId, Direction),
    /// All uplinks of a rack, by its index.
    Rack(usize, Direction),
    /// One of a rack's parallel uplinks.
    Member(usize, Direction),
    /// What leads from a pod, by its index, to the others.
    Pod(usize, Direction),
    /// From one host to another.
    Pair(HostId, HostId),
    /// Every single connection: a core, a window, or a provider's cap on flows.
    Connection,
}

impl Location {
    /// Whether a flow passes, as far as its hosts show.
    pub(super) fn carries(self, obs: &Obs) -> bool {
        match self {
            Self::Host(host, direction) => {
                direction.has_tx() && obs.src == host || direction.has_rx() && obs.dst == host
            }
            Self::Rack(rack, direction) | Self::Member(rack, direction) => {
                obs.racks.is_some_and(|(from, to)| {
                    direction.has_tx() && from == rack || direction.has_rx() && to == rack
                })
            }
            Self::Pair(src, dst) => obs.src == src && obs.dst == dst,
            Self::Pod(..) | Self::Connection => false,
        }
    }
}

/// What is off there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// It carries so many bits per second of payload.
    Capacity(f64),
    /// Random loss leaves this share of a flow's rate, more or less.
    Loss(f64),
}

/// A departure from "all alike".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    pub location: Location,
    pub effect: Effect,
}

impl Part {
    /// Whether it is about links that hosts share.
    pub(super) fn is_of_racks(&self) -> bool {
        matches!(
            self.location,
            Location::Rack(..) | Location::Member(..) | Location::Pod(..)
        )
    }
}

/// How racks are tied to one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fabric {
    /// By more than was asked of it.
    Unlimited,
    /// Every rack by the same capacity, bits per second each way.
    Equal(f64),
    /// Every rack by what its hosts can do, over this ratio.
    Proportional(f64),
    /// Every rack by `paths` parallel members of so many bits per second each, one of which a
    /// connection's hash picks.
    Paths {
        /// How many.
        paths: usize,
        /// Each.
        each_bits_per_sec: f64,
    },
}

/// A whole explanation.
#[derive(Clone, Debug)]
pub struct Hypothesis {
    /// Bits per second of payload that a host of the class sends, and receives, ascending.
    pub classes: Vec<f64>,
    /// Per host.
    pub class_of: Vec<usize>,
    pub fabric: Fabric,
    pub parts: Vec<Part>,
    /// How unevenly TCP splits a bottleneck: fitted, since a wrong guess decides how many paths
    /// there seem to be.
    pub(super) split_sigma: f64,
    /// Spread of isolated flows, of this run.
    pub(super) isolated_sigma: f64,
}

/// A hypothesis spelled out by resource.
#[derive(Clone, Debug)]
pub(super) struct Capacities {
    /// By resource: hosts' tx, hosts' rx, racks' members out, racks' members in, pods out, pods in.
    pub(super) bits_per_sec: Vec<f64>,
    pub(super) paths: usize,
    /// What one connection carries at most at each host: one link of several. Infinite where the
    /// host has one link, which is its capacity.
    pub(super) link_bits_per_sec: Vec<f64>,
    pub(super) pairs: BTreeMap<(HostId, HostId), f64>,
    /// What one connection carries at most.
    pub(super) connection_bits_per_sec: f64,
    /// Share of the rate that random loss leaves; 1 is none. By host, then by rack.
    pub(super) loss: [Vec<f64>; 4],
    hosts: usize,
    racks: usize,
    pods: usize,
}

impl Hypothesis {
    /// What the hosts of a rack could send, or receive, together, if each did what its class does.
    pub fn hosts_bits_per_sec(&self, rounds: &Rounds, rack: usize) -> f64 {
        let hosts = (0..rounds.hosts).filter(|host| rounds.rack_of[*host] == Some(rack));
        hosts.map(|host| self.class_rate(host)).sum()
    }

    /// What a host, by its index, does if it does what its class does.
    pub(super) fn class_rate(&self, host: usize) -> f64 {
        self.classes[self.class_of[host]]
    }

    pub(super) fn has(&self, location: Location) -> bool {
        self.parts.iter().any(|part| part.location == location)
    }

    pub(super) fn with(&self, part: Part) -> Self {
        let mut other = self.clone();
        other.parts.push(part);
        other
    }

    pub(super) fn without(&self, index: usize) -> Self {
        let mut other = self.clone();
        other.parts.remove(index);
        other
    }

    /// Parts lower what is there, but for racks that have more than the others.
    pub(super) fn capacities(&self, rounds: &Rounds) -> Capacities {
        let mut capacities = Capacities::new(self, rounds);
        for part in &self.parts {
            capacities.apply(part);
        }
        capacities
    }
}

impl Capacities {
    fn new(hypothesis: &Hypothesis, rounds: &Rounds) -> Self {
        let (hosts, racks) = (rounds.hosts, rounds.racks);
        let paths = match hypothesis.fabric {
            Fabric::Paths { paths, .. } => paths,
            _ => 1,
        };
        let of_host = |host: usize| hypothesis.class_rate(host);
        let of_rack = |rack: usize| match hypothesis.fabric {
            Fabric::Unlimited => f64::INFINITY,
            Fabric::Equal(value) => value,
            Fabric::Proportional(ratio) => hypothesis.hosts_bits_per_sec(rounds, rack) / ratio,
            Fabric::Paths {
                each_bits_per_sec, ..
            } => each_bits_per_sec,
        };
        let own: Vec<f64> = (0..hosts).map(of_host).collect();
        let links = own
            .iter()
            .zip(&rounds.members)
            .map(|(own, members)| match members {
                0 | 1 => f64::INFINITY,
                members => own / f64::from(*members),
            });
        let members: Vec<f64> = (0..racks)
            .flat_map(|rack| std::iter::repeat_n(of_rack(rack), paths))
            .collect();
        let pods = vec![f64::INFINITY; rounds.paths.pods()];
        Self {
            bits_per_sec: [own.as_slice(), &own, &members, &members, &pods, &pods].concat(),
            paths,
            link_bits_per_sec: links.collect(),
            pairs: BTreeMap::new(),
            connection_bits_per_sec: f64::INFINITY,
            loss: [
                vec![1.0; hosts],
                vec![1.0; hosts],
                vec![1.0; racks],
                vec![1.0; racks],
            ],
            hosts,
            racks,
            pods: pods.len(),
        }
    }

    /// What the connections of a flow may carry together by themselves.
    pub(super) fn limit_of(&self, obs: &Obs) -> f64 {
        let link = |host: HostId| self.link_bits_per_sec[host.index()];
        let connection = self.connection_bits_per_sec;
        let each = connection.min(link(obs.src)).min(link(obs.dst));
        obs.pace_bits_per_sec.min(obs.streams * each)
    }

    pub(super) fn tx(host: HostId) -> usize {
        host.index()
    }

    pub(super) fn rx(&self, host: HostId) -> usize {
        self.hosts + host.index()
    }

    pub(super) fn up(&self, rack: usize, member: usize) -> usize {
        2 * self.hosts + rack * self.paths + member
    }

    pub(super) fn down(&self, rack: usize, member: usize) -> usize {
        2 * self.hosts + (self.racks + rack) * self.paths + member
    }

    pub(super) fn pod_up(&self, pod: usize) -> usize {
        self.down(self.racks, 0) + pod
    }

    pub(super) fn pod_down(&self, pod: usize) -> usize {
        self.pod_up(self.pods) + pod
    }

    fn apply(&mut self, part: &Part) {
        let (direction, resources, losses) = match part.location {
            Location::Pair(src, dst) => {
                if let Effect::Capacity(value) = part.effect {
                    self.pairs.insert((src, dst), value);
                }
                return;
            }
            Location::Connection => {
                if let Effect::Capacity(value) = part.effect {
                    self.connection_bits_per_sec = value;
                }
                return;
            }
            Location::Pod(pod, direction) => {
                if let Effect::Capacity(value) = part.effect {
                    let (out, into) = (self.pod_up(pod), self.pod_down(pod));
                    for (resource, is_meant) in
                        [(out, direction.has_tx()), (into, direction.has_rx())]
                    {
                        if is_meant {
                            self.bits_per_sec[resource] = value;
                        }
                    }
                }
                return;
            }
            Location::Host(host, direction) => {
                let resources = [
                    Self::tx(host)..Self::tx(host) + 1,
                    self.rx(host)..self.rx(host) + 1,
                ];
                (direction, resources, [(0, host.index()), (1, host.index())])
            }
            Location::Rack(rack, direction) => {
                let members = |first: usize| first..first + self.paths;
                let resources = [members(self.up(rack, 0)), members(self.down(rack, 0))];
                (direction, resources, [(2, rack), (3, rack)])
            }
            Location::Member(rack, direction) => {
                let one = |first: usize| first..first + 1;
                let resources = [one(self.up(rack, 0)), one(self.down(rack, 0))];
                (direction, resources, [(2, rack), (3, rack)])
            }
        };
        let meant = [direction.has_tx(), direction.has_rx()];
        for ((resources, (kind, at)), is_meant) in resources.into_iter().zip(losses).zip(meant) {
            match part.effect {
                _ if !is_meant => {}
                Effect::Loss(left) => self.loss[kind][at] = left.min(1.0),
                Effect::Capacity(value) => {
                    let each = value / resources.len() as f64;
                    self.bits_per_sec[resources].fill(each);
                }
            }
        }
    }
}
