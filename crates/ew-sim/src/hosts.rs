//! The hosts themselves: their clocks, how long their threads wait for a CPU, what they report of
//! themselves.

use crate::dice::Dice;
use crate::network::{CPUS, Network, Site};
use crate::noise::{Noise, Starvation};
use ew_model::HostId;
use ew_model::facts::{
    Bond, CpuCounters, HostFacts, HostSample, InterfaceCounters, InterfaceFacts, OsRelease,
};
use ew_model::record::{CpuUse, FlowRecord};
use ew_model::telemetry::{CauseCounters, CgroupReading};
use std::collections::BTreeMap;

/// The interface with a host's address.
const INTERFACE: &str = "eth0";
/// Clocks of hosts are this far apart, at most.
const CLOCK_RANGE_NS: f64 = 1e9;
/// Where controller clocks begin, so that no agent's is negative.
pub(crate) const ORIGIN_NS: u64 = 10_000_000_000;
/// Waiting of a host with CPU to spare, of the window, one sigma.
const QUIET_WAIT: f64 = 0.02;
const USER_HZ: f64 = 100.0;
/// Readings of all hosts in a run, so that a network of thousands fits a machine's memory.
const MAX_READINGS: usize = 200_000;

/// Every host's clock.
#[derive(Debug)]
pub(crate) struct Clocks {
    pub(crate) offset_ns: Vec<i64>,
}

impl Clocks {
    pub(crate) fn new(hosts: usize, seed: u64) -> Self {
        let mut dice = Dice::new(seed, [0xC10C, 0, 0]);
        let offset_ns = (0..hosts).map(|_| dice.between(-CLOCK_RANGE_NS, CLOCK_RANGE_NS) as i64);
        Self {
            offset_ns: offset_ns.collect(),
        }
    }

    /// All as the controller's.
    pub(crate) fn alike(hosts: usize) -> Self {
        Self {
            offset_ns: vec![0; hosts],
        }
    }

    pub(crate) fn agent_ns(&self, host: HostId, controller_ns: u64) -> u64 {
        controller_ns.saturating_add_signed(self.offset_ns[host.index()])
    }
}

/// How long every host's threads wait for a CPU in one round, in windows.
#[derive(Debug)]
pub(crate) struct Waits {
    of_hosts: Vec<f64>,
    is_starved: bool,
}

impl Waits {
    pub(crate) fn draw(hosts: usize, noise: &Noise, dice: &mut Dice) -> Self {
        let is_starved = dice.chance(noise.starvation.round_share);
        let common = dice.between(0.2, 1.1);
        let of_hosts = (0..hosts).map(|_| match is_starved {
            true => common * dice.factor(0.15),
            false => QUIET_WAIT * noise.level * dice.normal().abs(),
        });
        Self {
            of_hosts: of_hosts.collect(),
            is_starved,
        }
    }

    pub(crate) fn of(&self, host: HostId) -> f64 {
        self.of_hosts[host.index()]
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.is_starved
    }

    /// What waiting leaves of a flow's rate.
    pub(crate) fn left(&self, wait: f64, starvation: &Starvation, dice: &mut Dice) -> f64 {
        match self.is_starved {
            true => 1.0 - (starvation.max_lost * wait * dice.unit()).clamp(0.0, 0.9),
            false => 1.0,
        }
    }
}

/// What every host reports about itself.
pub(crate) fn facts(network: &Network<'_>) -> BTreeMap<HostId, HostFacts> {
    let sites = (0..).map(HostId).zip(&network.hosts);
    sites.map(|(host, site)| (host, facts_of(site))).collect()
}

fn facts_of(site: &Site<'_>) -> HostFacts {
    let nic = &site.spec.nic;
    let speed = nic.reported_bits_per_sec.map(|speed| speed as f64);
    let bond = bond(site);
    let (driver, kind) = match (speed, &bond) {
        (None, _) => ("veth", Some("veth")),
        (Some(_), None) => ("mlx5_core", None),
        (Some(_), Some(_)) => ("bonding", Some("bond")),
    };
    HostFacts {
        kernel: "6.12.0".into(),
        hostname: site.spec.name.clone(),
        architecture: "x86_64".into(),
        cpus: site.spec.cpus.unwrap_or(CPUS),
        interfaces: vec![InterfaceFacts {
            name: INTERFACE.into(),
            speed_bits_per_sec: speed,
            mtu_bytes: Some(nic.mtu_bytes),
            driver: Some(driver.into()),
            duplex: speed.map(|_| "full".into()),
            addresses: vec![site.address],
            up: nic.link_up,
            kind: kind.map(str::to_owned),
            bond,
            ..InterfaceFacts::default()
        }],
        clock_synchronised: Some(true),
        os: Some(Box::new(OsRelease {
            id: "debian".into(),
            id_like: Vec::new(),
            name: "Debian GNU/Linux 13 (trixie)".into(),
        })),
        ..HostFacts::default()
    }
}

/// As the kernel reports the LAG of a real NIC. What a virtual one is made of, its host does not
/// see.
fn bond(site: &Site<'_>) -> Option<Bond> {
    let nic = &site.spec.nic;
    let is_seen = nic.lag_members > 1 && nic.reported_bits_per_sec.is_some();
    is_seen.then(|| Bond {
        members: (1..=nic.lag_members).map(|at| format!("eth{at}")).collect(),
        mode: Some("802.3ad".into()),
        hash_policy: Some("layer3+4".into()),
    })
}

/// Every host's counters, which grow from round to round.
#[derive(Debug)]
pub(crate) struct Counters {
    hosts: Vec<HostCounters>,
    /// Whether control groups are read: where a host has a quota.
    has_quotas: bool,
    /// Rounds that ran.
    rounds: usize,
    /// Hosts are read during one of so many rounds.
    every: usize,
}

#[derive(Clone, Debug, Default)]
struct HostCounters {
    tx_bytes: f64,
    rx_bytes: f64,
    work_ns: f64,
    softirq_ns: f64,
    steal_ns: f64,
    throttled_us: f64,
    throttled_periods: f64,
    samples: Vec<HostSample>,
}

/// A round's time on the controller's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

impl Counters {
    pub(crate) fn new(network: &Network<'_>, planned_rounds: usize) -> Self {
        let readings = 2 * planned_rounds * network.hosts.len();
        Self {
            rounds: 0,
            every: readings.div_ceil(MAX_READINGS).max(1),
            hosts: vec![HostCounters::default(); network.hosts.len()],
            has_quotas: network
                .hosts
                .iter()
                .any(|site| site.spec.cpu_quota_cores.is_some()),
        }
    }

    /// A reading where a round's load begins and one where it ends.
    pub(crate) fn add_round(
        &mut self,
        network: &Network<'_>,
        clocks: &Clocks,
        span: Span,
        records: &[FlowRecord],
    ) {
        self.rounds += 1;
        let is_read = self.rounds.is_multiple_of(self.every);
        if is_read {
            self.sample_all(network, clocks, span.start_ns);
        }
        let ends = records.iter().flat_map(|row| {
            let sender = row.sender.as_ref().map(|end| (row.src, true, end));
            let receiver = row.receiver.as_ref().map(|end| (row.dst, false, end));
            [sender, receiver].into_iter().flatten()
        });
        let mut used: BTreeMap<HostId, (CpuUse, u64)> = BTreeMap::new();
        for (host, is_sender, end) in ends {
            // The warm-up is load too.
            let stretch = (span.end_ns - span.start_ns) as f64 / end.window_ns.max(1) as f64;
            let counters = &mut self.hosts[host.index()];
            let bytes = end.bytes as f64 * stretch;
            match is_sender {
                true => counters.tx_bytes += bytes,
                false => counters.rx_bytes += bytes,
            }
            if let Some(cpu) = end.cpu {
                used.insert(host, (cpu, end.window_ns));
            }
        }
        for (host, (cpu, window_ns)) in used {
            self.hosts[host.index()].work(&cpu, window_ns, network.host(host), span);
        }
        if is_read {
            self.sample_all(network, clocks, span.end_ns);
        }
    }

    fn sample_all(&mut self, network: &Network<'_>, clocks: &Clocks, at_ns: u64) {
        for host in (0..self.hosts.len() as u32).map(HostId) {
            self.sample(network, clocks, host, at_ns);
        }
    }

    pub(crate) fn into_samples(self) -> BTreeMap<HostId, Vec<HostSample>> {
        let hosts = (0..).map(HostId).zip(self.hosts);
        hosts
            .map(|(host, counters)| (host, counters.samples))
            .collect()
    }

    fn sample(&mut self, network: &Network<'_>, clocks: &Clocks, host: HostId, at_ns: u64) {
        let spec = network.host(host).spec;
        let counters = &mut self.hosts[host.index()];
        let ticks = |ns: f64| (ns * USER_HZ / 1e9) as u64;
        let cpus = if spec.cpu_hog_share.is_some() {
            1
        } else {
            spec.cpus.unwrap_or(CPUS)
        };
        let part = |ns: f64| ticks(ns / f64::from(cpus));
        let hog_ns = spec.cpu_hog_share.unwrap_or(0.0) * (at_ns - ORIGIN_NS) as f64;
        let cpu = |number: u32| {
            let user = part(counters.work_ns * 0.1) + ticks(hog_ns);
            let system = part(counters.work_ns * 0.9);
            let softirq = part(counters.softirq_ns);
            let steal = part(counters.steal_ns);
            CpuCounters {
                cpu: number,
                user_ticks: user,
                system_ticks: system,
                softirq_ticks: Some(softirq),
                steal_ticks: Some(steal),
                idle_ticks: ticks(at_ns as f64).saturating_sub(user + system + softirq + steal),
                iowait_ticks: Some(0),
                irq_ticks: Some(0),
                ..CpuCounters::default()
            }
        };
        let causes = self.has_quotas.then(|| {
            Box::new(CauseCounters {
                cgroup: CgroupReading {
                    version: Some(2),
                    cpu_quota_us: spec.cpu_quota_cores.map(|cores| (cores * 100_000.0) as u64),
                    cpu_period_us: Some(100_000),
                    cpu_periods: Some((at_ns - ORIGIN_NS) / 100_000_000),
                    cpu_throttled_periods: Some(counters.throttled_periods as u64),
                    cpu_throttled_us: Some(counters.throttled_us as u64),
                    ..CgroupReading::default()
                },
                ..CauseCounters::default()
            })
        });
        let sample = HostSample {
            agent_ns: clocks.agent_ns(host, at_ns),
            cpus: (0..cpus).map(cpu).collect(),
            interfaces: vec![InterfaceCounters {
                name: INTERFACE.into(),
                rx_bytes: counters.rx_bytes as u64,
                rx_packets: (counters.rx_bytes / 1448.0) as u64,
                tx_bytes: counters.tx_bytes as u64,
                tx_packets: (counters.tx_bytes / 1448.0) as u64,
                ..InterfaceCounters::default()
            }],
            causes,
            ..HostSample::default()
        };
        counters.samples.push(sample);
    }
}

impl HostCounters {
    fn work(&mut self, cpu: &CpuUse, window_ns: u64, site: &Site<'_>, span: Span) {
        let wall_ns = (span.end_ns - span.start_ns) as f64;
        self.work_ns += cpu.engine_ns as f64;
        self.softirq_ns += cpu.softirq_ns as f64;
        self.steal_ns += cpu.steal_ns as f64;
        let Some(cores) = site.spec.cpu_quota_cores else {
            return;
        };
        // A quota that is all used throttles the group for what is left of each period, which
        // comes the sooner the more CPUs work.
        let used_cores = (cpu.engine_ns + cpu.softirq_ns) as f64 / window_ns.max(1) as f64;
        let cpus = f64::from(site.spec.cpus.unwrap_or(CPUS));
        if used_cores >= 0.9 * cores && cores < cpus {
            self.throttled_us += wall_ns * (1.0 - cores / cpus) / 1e3;
            self.throttled_periods += wall_ns / 1e8;
        }
    }
}
