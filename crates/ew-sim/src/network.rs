//! A topology as resources with capacities, and the way of every connection through them.

use crate::paths::{FiveTuple, pick};
use crate::sharing::Way;
use ew_model::record::TracedPath;
use ew_model::topology::{AddressFamily, DirectionSpec, HostSpec, PathSpec, Topology};
use ew_model::{HostId, Inventory};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Time over one link where the topology does not specify.
const LINK_DELAY_NS: u64 = 5_000;
/// First host of a rack, as the lab numbers them.
const FIRST_HOST: u32 = 10;
/// CPUs of a host where the topology does not specify.
pub(crate) const CPUS: u32 = 8;

/// Hosts, links and what they carry.
#[derive(Debug)]
pub(crate) struct Network<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) hosts: Vec<Site<'a>>,
    /// Frames, bits per second, by resource.
    pub(crate) capacities: Vec<f64>,
    kinds: Vec<Kind>,
    racks: Vec<Uplink>,
    pods: Vec<Uplink>,
}

/// One host with its resources.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    pub(crate) spec: &'a HostSpec,
    pub(crate) rack: u32,
    pub(crate) address: IpAddr,
    /// First member's sending side.
    pub(crate) tx: u32,
    /// First member's receiving side.
    rx: u32,
    /// `None` when the CPU does not limit the host as a whole.
    cpu: Option<u32>,
}

/// First members' resources.
#[derive(Clone, Copy, Debug)]
struct Uplink {
    up: u32,
    down: u32,
}

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Time of a host's CPUs.
    Cpu,
    /// A host's own queue: what does not fit waits there and is not lost.
    Tx,
    /// A switch port.
    Port,
}

/// The way of a connection's data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) way: Way,
    /// Packets lost at random on it.
    pub(crate) loss_share: f64,
    /// Whether nothing arrives.
    pub(crate) is_dead: bool,
    /// Links it crosses.
    links: u32,
}

impl<'a> Network<'a> {
    pub(crate) fn new(topology: &'a Topology, cpu_ns_per_byte: f64) -> Self {
        let mut network = Self {
            topology,
            hosts: Vec::new(),
            capacities: Vec::new(),
            kinds: Vec::new(),
            racks: Vec::new(),
            pods: Vec::new(),
        };
        for (number, rack) in (0..).zip(&topology.racks) {
            for (index, spec) in (0..).zip(&rack.hosts) {
                let own = || address(topology.address_family, number, index);
                let site = Site {
                    spec,
                    rack: number,
                    address: spec.address.unwrap_or_else(own),
                    tx: network.add_lag(Kind::Tx, spec, spec.nic.tx_bits_per_sec),
                    rx: network.add_lag(Kind::Port, spec, spec.nic.rx_bits_per_sec),
                    cpu: network.add_cpu(spec, cpu_ns_per_byte),
                };
                network.hosts.push(site);
            }
            let uplink = network.add_uplink(&rack.paths);
            network.racks.push(uplink);
        }
        for pod in &topology.pods {
            let uplink = network.add_uplink(&pod.paths);
            network.pods.push(uplink);
        }
        network
    }

    fn add(&mut self, kind: Kind, capacity: f64) -> u32 {
        self.capacities.push(capacity);
        self.kinds.push(kind);
        self.capacities.len() as u32 - 1
    }

    fn add_lag(&mut self, kind: Kind, spec: &HostSpec, all_bits_per_sec: u64) -> u32 {
        let members = spec.nic.lag_members.max(1);
        let first = self.capacities.len() as u32;
        for _ in 0..members {
            self.add(kind, all_bits_per_sec as f64 / f64::from(members));
        }
        first
    }

    fn add_cpu(&mut self, spec: &HostSpec, cpu_ns_per_byte: f64) -> Option<u32> {
        let cores = match (spec.cpu_quota_cores, spec.cpu_hog_share) {
            (None, None) => return None,
            (quota, hog) => {
                let left = hog.map_or(f64::INFINITY, |share| 1.0 - share);
                quota.unwrap_or(f64::INFINITY).min(left)
            }
        };
        let capacity = cores * 8e9 / cpu_ns_per_byte;
        capacity
            .is_finite()
            .then(|| self.add(Kind::Cpu, capacity.max(1e3)))
    }

    fn add_uplink(&mut self, paths: &[PathSpec]) -> Uplink {
        let up = self.capacities.len() as u32;
        for path in paths {
            self.add(Kind::Port, path.up.rate_bits_per_sec as f64);
        }
        let down = self.capacities.len() as u32;
        for path in paths {
            self.add(Kind::Port, path.down.rate_bits_per_sec as f64);
        }
        Uplink { up, down }
    }

    /// The topology's, with every host's address.
    pub(crate) fn inventory(&self) -> Inventory {
        let mut inventory = self.topology.inventory();
        for (host, site) in inventory.hosts.iter_mut().zip(&self.hosts) {
            host.address = Some(site.address);
        }
        inventory
    }

    pub(crate) fn host(&self, id: HostId) -> &Site<'a> {
        &self.hosts[id.index()]
    }

    pub(crate) fn kind(&self, resource: u32) -> Kind {
        self.kinds[resource as usize]
    }

    /// The way from host to host. `None` when no switch has a route.
    pub(crate) fn route(&self, src: HostId, dst: HostId, tuple: FiveTuple) -> Option<Route> {
        let (from, to) = (self.host(src), self.host(dst));
        let mut route = Route::new();
        route.way_through_cpu(from);
        let (sending, receiving) = (&from.spec.nic, &to.spec.nic);
        let seed = 0x1000 + u64::from(src.0);
        route.cross(from.tx + member_of(tuple, seed, sending.lag_members));
        route.lose(sending.tx_loss_share, !sending.link_up);
        if from.rack != to.rack {
            self.climb(&mut route, from.rack, to.rack, tuple)?;
        }
        let seed = 0x2000_0000 + u64::from(to.rack);
        route.cross(to.rx + member_of(tuple, seed, receiving.lag_members));
        route.lose(receiving.rx_loss_share, !receiving.link_up);
        route.way_through_cpu(to);
        Some(route)
    }

    /// The way between hosts of two racks that take no part: only what is above the racks.
    pub(crate) fn route_between(&self, from: u32, to: u32, tuple: FiveTuple) -> Option<Route> {
        let mut route = Route::new();
        self.climb(&mut route, from, to, tuple)?;
        Some(route)
    }

    /// The way of a host's traffic to somewhere outside of the run.
    pub(crate) fn route_out(&self, src: HostId, tuple: FiveTuple) -> Option<Route> {
        let from = self.host(src);
        let mut route = Route::new();
        route.cross(from.tx + member_of(tuple, u64::from(src.0), from.spec.nic.lag_members));
        let rack = from.rack as usize;
        let paths = &self.topology.racks[rack].paths;
        let hash = tuple.hash(self.seed(Tier::Leaf, from.rack));
        let member = pick(hash, paths.iter().map(|path| weight(path, &path.up)))?;
        route.take(self.racks[rack].up, member, &paths[member].up);
        Some(route)
    }

    /// The routers that a SYN with growing TTL finds: the source's leaf, then who is above, and the
    /// destination's leaf, with the addresses that labs give them. A leaf answers from any of its
    /// uplinks.
    pub(crate) fn trace(&self, src: HostId, dst: HostId, tuple: FiveTuple) -> TracedPath {
        let family = self.topology.address_family;
        let (from, to) = (self.host(src).rack, self.host(dst).rack);
        let mut path = TracedPath {
            hops: vec![Some(router(family, from, 0))],
            is_complete: true,
        };
        if from == to {
            return path;
        }
        let mut route = Route::new();
        if self.climb(&mut route, from, to, tuple).is_none() {
            return TracedPath {
                is_complete: false,
                ..path
            };
        }
        let own = self.racks[from as usize];
        let way = route.way.resources();
        let spine = way[0] - own.up;
        let answers = |is_reached: bool, router| is_reached.then_some(router);
        let above = !self.topology.racks[from as usize].paths[spine as usize]
            .up
            .black_hole;
        path.hops
            .push(answers(above, router(family, from, 1 + spine)));
        // A pod's border, a core and the other pod's spine come between.
        let between = way.get(1..way.len().saturating_sub(1)).unwrap_or_default();
        for (tier, resource) in (0xF1..).zip(between) {
            path.hops
                .push(answers(above, router(family, tier, *resource)));
        }
        let far_paths = self.topology.racks[to as usize].paths.iter();
        let far_leaf = pick(tuple.hash(7), far_paths.map(|path| weight(path, &path.up)));
        let far_leaf = 1 + far_leaf.unwrap_or(0) as u32;
        path.hops
            .push(answers(!route.is_dead, router(family, to, 0x80 + far_leaf)));
        let back = self.route(dst, src, tuple.reversed());
        path.is_complete = !route.is_dead && back.is_some_and(|back| !back.is_dead);
        path
    }

    fn climb(&self, route: &mut Route, from: u32, to: u32, tuple: FiveTuple) -> Option<()> {
        let (leaf, other) = (
            &self.topology.racks[from as usize],
            &self.topology.racks[to as usize],
        );
        let (own, far) = (self.racks[from as usize], self.racks[to as usize]);
        if leaf.pod == other.pod {
            let hash = tuple.hash(self.seed(Tier::Leaf, from));
            let member = pick(hash, both_ways(&leaf.paths, &other.paths))?;
            route.take(own.up, member, &leaf.paths[member].up);
            route.take(far.down, member, &other.paths[member].down);
            return Some(());
        }
        let (pod_from, pod_to) = (leaf.pod?, other.pod?);
        let hash = tuple.hash(self.seed(Tier::Leaf, from));
        let spine = pick(hash, leaf.paths.iter().map(|path| weight(path, &path.up)))?;
        route.take(own.up, spine, &leaf.paths[spine].up);
        let (below, above) = (pod_from as usize, pod_to as usize);
        let (cores, far_cores) = (
            &self.topology.pods[below].paths,
            &self.topology.pods[above].paths,
        );
        let hash = tuple.hash(self.seed(Tier::Spine, pod_from * 64 + spine as u32));
        let core = pick(hash, both_ways(cores, far_cores))?;
        route.take(self.pods[below].up, core, &cores[core].up);
        route.take(self.pods[above].down, core, &far_cores[core].down);
        let hash = tuple.hash(self.seed(Tier::Core, pod_to * 64 + core as u32));
        let spine = pick(
            hash,
            other.paths.iter().map(|path| weight(path, &path.down)),
        )?;
        route.take(far.down, spine, &other.paths[spine].down);
        Some(())
    }

    /// Of one switch's hash.
    fn seed(&self, tier: Tier, switch: u32) -> u64 {
        match self.topology.polarised {
            true => 0x5EED,
            false => (tier as u64) << 32 | u64::from(switch),
        }
    }

    /// Round-trip time without a queue.
    pub(crate) fn round_trip_ns(&self, route: &Route, stack_ns: u64) -> u64 {
        let link_ns = self.topology.link_delay_ns.unwrap_or(LINK_DELAY_NS);
        stack_ns + 2 * u64::from(route.links) * link_ns
    }
}

#[derive(Clone, Copy, Debug)]
enum Tier {
    Leaf = 1,
    Spine = 2,
    Core = 3,
}

impl Route {
    fn new() -> Self {
        Self {
            way: Way::default(),
            loss_share: 0.0,
            is_dead: false,
            links: 0,
        }
    }

    fn way_through_cpu(&mut self, site: &Site<'_>) {
        if let Some(cpu) = site.cpu {
            self.way.push(cpu);
        }
    }

    fn cross(&mut self, resource: u32) {
        self.way.push(resource);
        self.links += 1;
    }

    fn take(&mut self, first: u32, member: usize, direction: &DirectionSpec) {
        self.cross(first + member as u32);
        self.lose(direction.loss_share, direction.black_hole);
    }

    fn lose(&mut self, share: f64, all: bool) {
        self.loss_share = 1.0 - (1.0 - self.loss_share) * (1.0 - share);
        self.is_dead |= all || self.loss_share >= 1.0;
    }
}

fn member_of(tuple: FiveTuple, seed: u64, members: u32) -> u32 {
    (tuple.hash(seed) % u64::from(members.max(1))) as u32
}

/// 0 for a member that is not used.
fn weight(path: &PathSpec, direction: &DirectionSpec) -> u64 {
    match path.link_up && direction.routed {
        true => u64::from(direction.weight),
        false => 0,
    }
}

/// Weights of the switches above, seen from one end to the other.
fn both_ways<'a>(
    from: &'a [PathSpec],
    to: &'a [PathSpec],
) -> impl Iterator<Item = u64> + Clone + 'a {
    let pairs = from.iter().zip(to);
    pairs.map(|(up, down)| weight(up, &up.up) * weight(down, &down.down))
}

/// The address of a router towards a rack, as labs number links: 0 is the rack's own leaf, then its
/// members.
pub(crate) fn router(family: AddressFamily, rack: u32, link: u32) -> IpAddr {
    let number = rack + 1;
    match family {
        AddressFamily::Ipv4 => {
            let start = Ipv4Addr::new(198, 19, 0, 0).to_bits();
            IpAddr::V4(Ipv4Addr::from_bits(start + (number << 8) + link))
        }
        AddressFamily::Ipv6 => {
            let (number, link) = (0xff00 + number as u16, link as u16);
            IpAddr::V6(Ipv6Addr::new(0x2001, 0x2, 0, number, 0, 0, 0, link))
        }
    }
}

/// Out of 198.18.0.0/15 (RFC 2544) or 2001:2::/48 (RFC 5180), the ranges for benchmarks: the lab's
/// numbers where they reach.
fn address(family: AddressFamily, rack: u32, index: u32) -> IpAddr {
    match family {
        AddressFamily::Ipv4 => {
            let start = Ipv4Addr::new(198, 18, 0, 0).to_bits();
            let offset = ((rack + 1) << 8) + FIRST_HOST + index;
            IpAddr::V4(Ipv4Addr::from_bits(start + (offset & 0x1_FFFF)))
        }
        AddressFamily::Ipv6 => {
            let rack = (rack + 1) as u16;
            let index = (FIRST_HOST + index) as u16;
            IpAddr::V6(Ipv6Addr::new(0x2001, 0x2, 0, rack, 0, 0, 0, index))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::topology::{PodSpec, RackSpec};

    fn racks(count: u32, paths: usize) -> Vec<RackSpec> {
        let rack = |number: u32| RackSpec {
            name: format!("r{number}"),
            hosts: vec![HostSpec::healthy(&format!("r{number}h1"), 10_000_000_000); 2],
            paths: vec![PathSpec::healthy(5_000_000_000); paths],
            pod: None,
        };
        (1..=count).map(rack).collect()
    }

    fn tuple(network: &Network<'_>, src: u32, dst: u32, port: u16) -> FiveTuple {
        FiveTuple {
            src: network.host(HostId(src)).address,
            dst: network.host(HostId(dst)).address,
            src_port: port,
            dst_port: 5001,
        }
    }

    #[test]
    fn a_spine_takes_up_and_down_together() {
        let topology = Topology {
            racks: racks(2, 4),
            ..Topology::default()
        };
        let network = Network::new(&topology, 0.25);
        let mut seen = [0; 4];
        for port in 1..400 {
            let route = network.route(HostId(0), HostId(2), tuple(&network, 0, 2, port));
            let route = route.unwrap();
            let [_, up, down, _] = route.way.resources()[..] else {
                panic!("{route:?}");
            };
            let member = up - network.racks[0].up;
            assert_eq!(down - network.racks[1].down, member);
            assert_eq!(route.links, 4);
            seen[member as usize] += 1;
        }
        assert!(seen.iter().all(|count| *count > 60), "{seen:?}");
    }

    #[test]
    fn lost_routes_are_one_sided_and_dead_members_swallow() {
        let mut topology = Topology {
            racks: racks(2, 2),
            ..Topology::default()
        };
        topology.racks[0].paths[0].up.routed = false;
        topology.racks[0].paths[1].down.black_hole = true;
        let network = Network::new(&topology, 0.25);
        for port in 1..100 {
            let out = network.route(HostId(0), HostId(2), tuple(&network, 0, 2, port));
            assert_eq!(out.unwrap().way.resources()[1], network.racks[0].up + 1);
            let back = network.route(HostId(2), HostId(0), tuple(&network, 2, 0, port));
            let back = back.unwrap();
            assert_eq!(
                back.is_dead,
                back.way.resources()[2] == network.racks[0].down + 1
            );
        }
        topology.racks[1].paths[1].link_up = false;
        let network = Network::new(&topology, 0.25);
        let none = network.route(HostId(0), HostId(2), tuple(&network, 0, 2, 1));
        assert!(none.is_none());
    }

    #[test]
    fn pods_add_a_tier_that_chooses_apart() {
        let mut racks = racks(4, 2);
        (0..)
            .zip(&mut racks)
            .for_each(|(r, rack)| rack.pod = Some(r / 2));
        let pod = PodSpec {
            name: String::new(),
            paths: vec![PathSpec::healthy(1_000_000_000); 2],
        };
        let mut topology = Topology {
            racks,
            pods: vec![pod.clone(), pod],
            ..Topology::default()
        };
        let choices = |topology: &Topology| -> usize {
            let network = Network::new(topology, 0.25);
            let mut ways: Vec<Vec<u32>> = (1..200)
                .map(|port| {
                    let route = network.route(HostId(0), HostId(7), tuple(&network, 0, 7, port));
                    route.unwrap().way.resources().to_vec()
                })
                .collect();
            ways.sort_unstable();
            ways.dedup();
            ways.len()
        };
        assert_eq!(choices(&topology), 8);
        topology.polarised = true;
        assert_eq!(choices(&topology), 2);
    }
}
