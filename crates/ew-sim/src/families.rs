//! Random networks of a kind, with their truth.

use crate::dice::Dice;
use crate::family::Family;
use crate::network::router;
use crate::noise::{Drift, Noise};
use crate::truth::{Fault, LinkDirection, MemberFault, Truth, UniformCause, ratios};
use ew_model::topology::{
    AddressFamily, BackgroundSpec, BucketSpec, BurstSpec, CongestionControl, DirectionSpec,
    HostSpec, PathSpec, PodSpec, Queue, RackSpec, Topology,
};
use ew_model::{HostId, RackId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A random network, the noise to measure it with, and its truth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The network.
    pub topology: Topology,
    /// How it is measured.
    pub noise: Noise,
    /// The right answer.
    pub truth: Truth,
}

/// A network of a family. Same seed, same network.
#[must_use]
pub fn draw(seed: u64, family: Family) -> Case {
    draw_of(seed, family, Shapes::Common)
}

/// The same of any shape: racks, hosts, rates, paths and ratios that the lists of [`draw`] lack.
#[must_use]
pub fn draw_any_shape(seed: u64, family: Family) -> Case {
    draw_of(seed, family, Shapes::Any)
}

fn draw_of(seed: u64, family: Family, shapes: Shapes) -> Case {
    let dice = Dice::new(seed, [0xFA311, family as u64, shapes as u64]);
    let mut drawing = Drawing::new(dice, shapes);
    let faults = match family {
        Family::Healthy => drawing.healthy(),
        Family::Oversubscribed => drawing.oversubscribed(),
        Family::BadMember => drawing.bad_member(),
        Family::SlowHosts => drawing.slow_hosts(),
        Family::UniformlySlow => drawing.uniformly_slow(),
    };
    drawing.finish(family, faults)
}

/// Racks that users have: equal ones, and the unequal ones of real clusters.
const SHAPES: [&[usize]; 9] = [
    &[4, 4],
    &[8, 8],
    &[4, 4, 4],
    &[8, 8, 8, 8],
    &[16, 16],
    &[6, 6, 6, 6],
    &[4, 6, 9],
    &[20, 20, 31],
    &[40, 10],
];
/// With a rack more than two, so that the two ends of a member can be distinguished.
const FROM_THREE_RACKS: [&[usize]; 5] = [
    &[4, 4, 4],
    &[8, 8, 8],
    &[8, 8, 8, 8],
    &[6, 6, 6, 6],
    &[4, 6, 9],
];
const NICS_BITS_PER_SEC: [u64; 4] = [200_000_000, 10_000_000_000, 25_000_000_000, 100_000_000_000];
/// From this rate on a NIC is a real one, which reports its speed.
const REPORTED_FROM_BITS_PER_SEC: u64 = 10_000_000_000;
const MAX_DRIFT: f64 = 0.05;
const MIN_OF_CLASS: usize = 3;

/// What networks are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shapes {
    /// Lists of what is common.
    Common,
    /// Ranges.
    Any,
}

struct Drawing {
    dice: Dice,
    shapes: Shapes,
    topology: Topology,
    noise: Noise,
    axes: Vec<String>,
    paths: u32,
}

impl Drawing {
    fn new(dice: Dice, shapes: Shapes) -> Self {
        Self {
            dice,
            shapes,
            topology: Topology::default(),
            noise: Noise::default(),
            axes: Vec::new(),
            paths: 1,
        }
    }

    fn healthy(&mut self) -> Vec<Fault> {
        let shape = self.shape(&SHAPES);
        self.build(&shape, 1.0, &[1, 2, 4, 8, 16]);
        if self.dice.chance(0.25) && shape.iter().sum::<usize>() >= 2 * MIN_OF_CLASS {
            self.split_classes();
        }
        if self.dice.chance(0.1) {
            self.bond(2);
        }
        if shape.len() >= 4 && self.dice.chance(0.4) {
            self.add_pods();
        }
        match self.dice.below(12) {
            0 => self.weigh_unevenly(),
            1 => self.add_background(),
            2 => self.add_buckets(),
            _ => {}
        }
        if self.dice.chance(0.1) {
            self.axes.push("starved".into());
            self.noise = Noise::starved();
        }
        self.disturb();
        Vec::new()
    }

    fn oversubscribed(&mut self) -> Vec<Fault> {
        let shape = self.shape(&SHAPES);
        let (ratio, one_lost) = self.ratio_or_one_lost();
        let faults = if one_lost {
            self.build(&shape, 1.0, &[8]);
            self.axes.push("one of eight lost".into());
            let rack = self.dice.below(shape.len());
            let member = self.dice.below(8);
            vec![self.break_member(Some(rack), member, LinkDirection::Both, MemberFault::Down)]
        } else {
            self.axes.push(format!("{ratio}:1"));
            self.build(&shape, ratio, &[1, 2, 4, 8]);
            Vec::new()
        };
        self.disturb();
        faults
    }

    fn bad_member(&mut self) -> Vec<Fault> {
        let shape = self.shape(&FROM_THREE_RACKS);
        self.build(&shape, 1.0, &[2, 4, 8, 16]);
        let member = self.dice.below(self.paths as usize);
        let (narrow, loss) = (
            self.dice.between(0.25, 0.6),
            self.dice.between(0.001f64.ln(), 0.02f64.ln()).exp(),
        );
        let kind = self.pick(&[
            MemberFault::Narrow(narrow),
            MemberFault::Loss(loss),
            MemberFault::BlackHole,
            MemberFault::Down,
            MemberFault::OneSided,
        ]);
        let rack = Some(self.dice.below(shape.len())).filter(|_| !self.dice.chance(0.25));
        let direction = match kind {
            MemberFault::Down => LinkDirection::Both,
            _ if rack.is_none() => LinkDirection::Both,
            _ => self.pick(&[LinkDirection::Up, LinkDirection::Down]),
        };
        // A route that all racks lost in both directions is a member that is down.
        let kind = match (kind, rack) {
            (MemberFault::OneSided, None) => MemberFault::Down,
            (kind, _) => kind,
        };
        let fault = self.break_member(rack, member, direction, kind);
        self.disturb();
        vec![fault]
    }

    fn slow_hosts(&mut self) -> Vec<Fault> {
        let shape = self.shape(&SHAPES);
        let ratio = self.pick(&[1.0, 1.0, 2.0, 4.0]);
        self.axes.push(format!("{ratio}:1"));
        self.build(&shape, ratio, &[1, 4]);
        let hosts = self.topology.hosts().count();
        let mut faults: Vec<Fault> = Vec::new();
        for _ in 0..=self.dice.below(3) {
            let host = HostId(self.dice.below(hosts) as u32);
            let is_taken =
                |fault: &Fault| matches!(fault, Fault::Host { host: other, .. } if *other == host);
            if faults.iter().any(is_taken) {
                continue;
            }
            let direction =
                self.pick(&[LinkDirection::Up, LinkDirection::Down, LinkDirection::Both]);
            let share = self.dice.between(0.2, 0.85);
            self.axes
                .push(format!("host {} at {share:.2} {direction:?}", host.0));
            let nic = &mut self.host(host).nic;
            if direction.covers(LinkDirection::Up) {
                nic.tx_bits_per_sec = (nic.tx_bits_per_sec as f64 * share) as u64;
            }
            if direction.covers(LinkDirection::Down) {
                nic.rx_bits_per_sec = (nic.rx_bits_per_sec as f64 * share) as u64;
            }
            faults.push(Fault::Host {
                host,
                direction,
                share,
            });
        }
        self.disturb();
        faults
    }

    fn uniformly_slow(&mut self) -> Vec<Fault> {
        let shape = self.shape(&SHAPES[..7]);
        // Of 100G hosts one core would be the limit before most of these are.
        let nic = self.nic(&NICS_BITS_PER_SEC[1..3]);
        self.build_with(&shape, 1.0, &[1, 2, 4, 8], nic);
        let cause = self.pick(&[
            UniformCause::FlowCap,
            UniformCause::ReceiveWindow,
            UniformCause::CpuQuota,
            UniformCause::LagMember,
        ]);
        let share = self.dice.between(0.15, 0.5);
        self.axes.push(format!("{cause:?} at {share:.2}"));
        let cpu_ns_per_byte = self.noise.cpu_ns_per_byte;
        // Of the longest way: idle round trips are tens of microseconds.
        let round_trip_sec = 1e-4;
        self.topology.link_delay_ns = Some(10_000);
        for host in self
            .topology
            .racks
            .iter_mut()
            .flat_map(|rack| &mut rack.hosts)
        {
            let rate = host.nic.tx_bits_per_sec as f64 * share;
            match cause {
                UniformCause::FlowCap => host.shaper.flow_bits_per_sec = Some(rate as u64),
                UniformCause::ReceiveWindow => {
                    host.receive_buffer_bytes = Some((rate * round_trip_sec / 8.0 * 2.0) as u64);
                }
                // Both directions are work.
                UniformCause::CpuQuota => {
                    host.cpu_quota_cores = Some(2.0 * rate / 8e9 * cpu_ns_per_byte);
                }
                UniformCause::LagMember => {
                    host.nic.lag_members = (1.0 / share).round().max(2.0) as u32;
                }
            }
        }
        self.disturb();
        vec![Fault::Uniform { cause }]
    }

    fn finish(self, family: Family, faults: Vec<Fault>) -> Case {
        let via = self.via(&faults);
        let truth = Truth {
            family,
            axes: self.axes,
            faults,
            ratios: ratios(&self.topology),
            pod_ratio: 1.0,
            paths: self.paths,
            via,
            is_starved: self.noise.starvation.round_share > 0.0,
        };
        Case {
            topology: self.topology,
            noise: self.noise,
            truth,
        }
    }

    /// Routers of bad members, as racks that send over them see them.
    fn via(&self, faults: &[Fault]) -> Vec<IpAddr> {
        let racks = 0..self.topology.racks.len() as u32;
        let mut via = Vec::new();
        for fault in faults {
            let Fault::Member { member, .. } = fault else {
                continue;
            };
            let family = self.topology.address_family;
            via.extend(racks.clone().map(|from| router(family, from, 1 + member)));
        }
        via
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len())]
    }

    fn host(&mut self, id: HostId) -> &mut HostSpec {
        let mut hosts = self
            .topology
            .racks
            .iter_mut()
            .flat_map(|rack| &mut rack.hosts);
        match hosts.nth(id.index()) {
            Some(host) => host,
            None => unreachable!("{id} was selected among the hosts"),
        }
    }

    /// Hosts of each rack. At least as many racks as each of the list has.
    fn shape(&mut self, common: &[&[usize]]) -> Vec<usize> {
        if self.shapes == Shapes::Common {
            return self.pick(common).to_vec();
        }
        let fewest = common.iter().map(|shape| shape.len()).min().unwrap_or(2);
        let racks = fewest + self.dice.below(7);
        let most = self.dice.between(2f64.ln(), 40f64.ln()).exp() as usize;
        if self.dice.chance(0.6) {
            return vec![1 + self.dice.below(most); racks];
        }
        (0..racks).map(|_| 1 + self.dice.below(most)).collect()
    }

    fn nic(&mut self, common: &[u64]) -> u64 {
        match self.shapes {
            Shapes::Common => self.pick(common),
            Shapes::Any => {
                let (least, most) = (common[0] as f64, common[common.len() - 1] as f64);
                self.dice.between(least.ln(), most.ln()).exp() as u64
            }
        }
    }

    fn path_count(&mut self, common: &[u32]) -> u32 {
        match self.shapes {
            Shapes::Common => self.pick(common),
            Shapes::Any => loop {
                let (least, most) = (common[0], common[common.len() - 1]);
                let count = least + self.dice.below((most - least + 1) as usize) as u32;
                // Nobody can know that those are all.
                if !looks_short(count) {
                    return count;
                }
            },
        }
    }

    /// How far uplinks block, and whether one of eight members is missing instead.
    fn ratio_or_one_lost(&mut self) -> (f64, bool) {
        if self.shapes == Shapes::Any {
            let ratio = self.dice.between(1.3f64.ln(), 10f64.ln()).exp();
            return ((100.0 * ratio).round() / 100.0, false);
        }
        let ratio = self.pick(&[1.0, 8.0 / 7.0, 1.5, 2.0, 4.0, 8.0]);
        (ratio, ratio > 1.0 && ratio < 1.2)
    }

    fn build(&mut self, shape: &[usize], ratio: f64, paths: &[u32]) {
        let nic = self.nic(&NICS_BITS_PER_SEC);
        self.build_with(shape, ratio, paths, nic);
    }

    /// Racks whose members carry what the ratio leaves of their hosts' sum. A 1:1 member is never
    /// narrower than a NIC.
    fn build_with(&mut self, shape: &[usize], ratio: f64, paths: &[u32], nic: u64) {
        self.paths = self.path_count(paths);
        let members = f64::from(self.paths);
        let rack = |number: usize, size: usize| {
            let even = size as f64 * nic as f64 / ratio / members;
            let rate = if ratio > 1.0 {
                even
            } else {
                even.max(nic as f64)
            };
            RackSpec {
                name: format!("rack{number}"),
                hosts: (1..=size)
                    .map(|host| healthy_host(number, host, nic))
                    .collect(),
                paths: vec![PathSpec::healthy(rate as u64); self.paths as usize],
                ..RackSpec::default()
            }
        };
        self.topology.racks = (1..)
            .zip(shape)
            .map(|(number, size)| rack(number, *size))
            .collect();
        let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
        self.axes.push(format!("{} hosts", sizes.join("/")));
        self.axes.push(format!("nic {} Mb/s", nic / 1_000_000));
        self.axes.push(format!("{} paths", self.paths));
    }

    /// A third of the hosts has a slower NIC, and reports it where NICs do. Three at least, on
    /// either side: one host with a slower NIC is also what a link that came up slower looks like.
    fn split_classes(&mut self) {
        let share = self.pick(&[0.25, 0.4, 0.5]);
        self.axes.push(format!("nic classes 1 and {share}"));
        let count = self.topology.hosts().count();
        let slower: Vec<bool> = loop {
            let slower: Vec<bool> = (0..count).map(|_| self.dice.chance(0.35)).collect();
            let slow = slower.iter().filter(|is| **is).count();
            if (MIN_OF_CLASS..=count - MIN_OF_CLASS).contains(&slow) {
                break slower;
            }
        };
        let racks = self.topology.racks.iter_mut();
        for (host, is_slower) in racks.flat_map(|rack| &mut rack.hosts).zip(slower) {
            if !is_slower {
                continue;
            }
            let nic = &mut host.nic;
            nic.tx_bits_per_sec = (nic.tx_bits_per_sec as f64 * share) as u64;
            nic.rx_bits_per_sec = nic.tx_bits_per_sec;
            nic.reported_bits_per_sec = nic.reported_bits_per_sec.map(|_| nic.tx_bits_per_sec);
        }
    }

    fn bond(&mut self, members: u32) {
        self.axes.push(format!("lag of {members}"));
        let hosts = self
            .topology
            .racks
            .iter_mut()
            .flat_map(|rack| &mut rack.hosts);
        hosts.for_each(|host| host.nic.lag_members = members);
    }

    /// Two pods that do not block.
    fn add_pods(&mut self) {
        self.axes.push("pods".into());
        let half = self.topology.racks.len().div_ceil(2);
        for (number, rack) in self.topology.racks.iter_mut().enumerate() {
            rack.pod = Some(u32::from(number >= half));
        }
        for pod in 0..2_u32 {
            let racks = self
                .topology
                .racks
                .iter()
                .filter(|rack| rack.pod == Some(pod));
            let all: u64 = racks.map(RackSpec::up_bits_per_sec).sum();
            let path = PathSpec::healthy(all / u64::from(self.paths));
            self.topology.pods.push(PodSpec {
                name: format!("pod{}", pod + 1),
                paths: vec![path; self.paths as usize],
            });
        }
    }

    /// The first member of every rack takes twice as many connections as another one, and carries
    /// twice as much.
    fn weigh_unevenly(&mut self) {
        if self.paths < 2 {
            return;
        }
        self.axes.push("uneven weights".into());
        for rack in &mut self.topology.racks {
            let path = &mut rack.paths[0];
            // The senders' weights times the receivers' count.
            path.up.weight = 2;
            path.up.rate_bits_per_sec *= 2;
            path.down.rate_bits_per_sec *= 2;
        }
    }

    /// Production traffic between two racks that comes and goes; the uplinks have headroom for it.
    fn add_background(&mut self) {
        if !self.topology.pods.is_empty() {
            return;
        }
        let racks = self.topology.racks.len();
        let from = self.dice.below(racks);
        let to = (from + 1 + self.dice.below(racks - 1)) % racks;
        let share = self.dice.between(0.1, 0.4);
        let carried = self.topology.racks[from].up_bits_per_sec();
        let carried = carried.min(self.topology.racks[to].down_bits_per_sec());
        let racks = self.topology.racks.iter_mut();
        for path in racks.flat_map(|rack| &mut rack.paths) {
            path.up.rate_bits_per_sec *= 2;
            path.down.rate_bits_per_sec *= 2;
        }
        self.axes.push(format!("background {share:.2}"));
        self.topology.background.push(BackgroundSpec {
            from: RackId(from as u32),
            to: RackId(to as u32),
            rate_bits_per_sec: (carried as f64 * share) as u64,
            streams: 32,
            bursts: Some(BurstSpec {
                on_ns: 3_000_000_000,
                off_ns: 5_000_000_000,
            }),
        });
    }

    /// Hosts as clouds have them: full rate while there are credits, which last for a part of the
    /// run, then half of it.
    fn add_buckets(&mut self) {
        self.axes.push("token buckets".into());
        let seconds = self.dice.between(10.0, 40.0);
        let racks = self.topology.racks.iter_mut();
        for host in racks.flat_map(|rack| &mut rack.hosts) {
            let rate = host.nic.tx_bits_per_sec;
            host.shaper.bucket = Some(BucketSpec {
                sustained_bits_per_sec: rate / 2,
                capacity_bytes: (rate as f64 * seconds / 8.0) as u64,
            });
        }
    }

    /// What measuring is like, whatever the network.
    fn disturb(&mut self) {
        if self.dice.chance(0.7) {
            self.topology.queue = Queue::Fifo;
            self.axes.push("fifo".into());
        }
        if self.dice.chance(0.3) {
            let share = self.dice.between(0.01, MAX_DRIFT);
            self.noise.drift =
                self.pick(&[Drift::Falling, Drift::Rising, Drift::Step, Drift::Wave])(share);
            self.axes.push(format!("drift {:?}", self.noise.drift));
        }
        if self.dice.chance(0.15) {
            self.noise.level = self.dice.between(1.0, 3.0);
            self.axes.push(format!("noise x {:.1}", self.noise.level));
        }
        if self.dice.chance(0.1) {
            self.topology.address_family = AddressFamily::Ipv6;
            self.axes.push("ipv6".into());
        }
        let is_bbr = self.dice.chance(0.15);
        let is_jumbo = self.dice.chance(0.2);
        for host in self
            .topology
            .racks
            .iter_mut()
            .flat_map(|rack| &mut rack.hosts)
        {
            if is_bbr {
                host.congestion_control = CongestionControl::Bbr;
            }
            if is_jumbo {
                host.nic.mtu_bytes = 9000;
            }
        }
        if is_bbr {
            self.axes.push("bbr".into());
        }
        if is_jumbo {
            self.axes.push("mtu 9000".into());
        }
    }

    fn break_member(
        &mut self,
        rack: Option<usize>,
        member: usize,
        direction: LinkDirection,
        kind: MemberFault,
    ) -> Fault {
        self.axes.push(format!(
            "member {member} of {rack:?} {direction:?} {kind:?}"
        ));
        for (number, of_rack) in self.topology.racks.iter_mut().enumerate() {
            if rack.is_some_and(|only| only != number) {
                continue;
            }
            let path = &mut of_rack.paths[member];
            if kind == MemberFault::Down {
                path.link_up = false;
            }
            if direction.covers(LinkDirection::Up) {
                break_direction(&mut path.up, kind);
            }
            if direction.covers(LinkDirection::Down) {
                break_direction(&mut path.down, kind);
            }
        }
        Fault::Member {
            rack: rack.map(|rack| RackId(rack as u32)),
            member: member as u32,
            direction,
            kind,
        }
    }
}

/// One less than 8 or 16, as where a path is lost.
fn looks_short(paths: u32) -> bool {
    paths > 4 && (paths + 1).is_power_of_two()
}

fn healthy_host(rack: usize, host: usize, nic_bits_per_sec: u64) -> HostSpec {
    let mut spec = HostSpec::healthy(&format!("rack{rack}host{host}"), nic_bits_per_sec);
    spec.nic.reported_bits_per_sec =
        (nic_bits_per_sec >= REPORTED_FROM_BITS_PER_SEC).then_some(nic_bits_per_sec);
    spec
}

fn break_direction(direction: &mut DirectionSpec, kind: MemberFault) {
    match kind {
        MemberFault::Narrow(share) => {
            direction.rate_bits_per_sec = (direction.rate_bits_per_sec as f64 * share) as u64;
        }
        MemberFault::Loss(share) => direction.loss_share = share,
        MemberFault::BlackHole => direction.black_hole = true,
        MemberFault::OneSided => direction.routed = false,
        MemberFault::Down => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_can_be_and_repeats() {
        for family in Family::ALL {
            for seed in 0..200 {
                for draw in [draw, draw_any_shape] {
                    let case = draw(seed, family);
                    assert_eq!(case.topology.validate(), Ok(()), "{} {seed}", family.name());
                    assert_eq!(case, draw(seed, family));
                }
            }
        }
    }

    #[test]
    fn faults_are_in_the_numbers() {
        for seed in 0..100 {
            let healthy = draw(seed, Family::Healthy).truth;
            assert!(healthy.faults.is_empty());
            assert!(
                healthy
                    .ratios
                    .iter()
                    .all(|r| r.up <= 1.001 && r.down <= 1.001),
                "{healthy:?}"
            );
            let truth = draw(seed, Family::Oversubscribed).truth;
            assert!(truth.ratios.iter().all(|r| r.up <= 8.01));
            assert_eq!(draw(seed, Family::BadMember).truth.faults.len(), 1);
            assert!(!draw(seed, Family::SlowHosts).truth.faults.is_empty());
        }
    }
}
