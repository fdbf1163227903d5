//! What an agent reports about its host, and raw host counters.

pub use crate::telemetry::{CpuCounters, InterfaceCounters};

use crate::claim::Claim;
use crate::subnet::Subnet;
use crate::telemetry::{CauseCounters, InterfaceLink, NAME_BYTES, ReadingCost};
use crate::tunnel::Tunnel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Facts that do not change during a run, read by the agent at start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -n`.
    pub hostname: String,
    /// `uname -m`.
    pub architecture: String,
    /// Online CPUs.
    pub cpus: u32,
    /// Soft limit of open files.
    pub open_files_limit: Option<u64>,
    /// Network interfaces except loopback, in kernel order.
    pub interfaces: Vec<InterfaceFacts>,
    /// Wall clock when the facts were read, ns since 1970.
    pub realtime_ns: u64,
    /// Whether the kernel reports the clock is disciplined (adjtimex). `None` when unknown.
    pub clock_synchronised: Option<bool>,
    /// Free bytes where the agent's binary was put (the directory above it). `None` when unknown.
    pub work_dir_free_bytes: Option<u64>,
    /// Of the tools that were looked for, those found on PATH with their version lines, for example
    /// ("iperf3", "iperf 3.12 ...").
    pub tools: Vec<(String, String)>,
    /// The operating system. `None` when it does not report, and in runs of before it was asked.
    #[serde(default)]
    pub os: Option<Box<OsRelease>>,
    /// CPUs and links in detail. `None` in runs of before they were asked for.
    #[serde(default)]
    pub hardware: Option<Box<HardwareFacts>>,
    /// The max that the host's owner lets runs load its data interface with, in each direction,
    /// bits per second on the wire (`/etc/eastwest/limits`).
    #[serde(default)]
    pub max_bits_per_sec: Option<f64>,
    /// Another run that loads this host.
    #[serde(default)]
    pub in_use_by: Option<Box<Claim>>,
    /// What else the host does, each in words: jobs, maintenance.
    #[serde(default)]
    pub other_work: Vec<String>,
}

/// What the hardware is and how it is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HardwareFacts {
    /// Interfaces by name with their rings, coalescing, flow control, queues and offloads.
    pub links: Vec<(String, InterfaceLink)>,
    /// CPUs and the NUMA nodes they belong to: (CPU, node). Empty where there are no nodes.
    pub numa_nodes: Vec<(u32, u32)>,
    /// The max `cpufreq/cpuinfo_max_freq` of any CPU. `None` where nothing scales it, as in
    /// most virtual machines.
    pub max_frequency_hz: Option<u64>,
}

/// The content of `/etc/os-release` (os-release(5)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsRelease {
    /// `ID`, for example `debian`, `rocky`, `opensuse-leap`.
    pub id: String,
    /// `ID_LIKE`: what it is made of, the closest first.
    pub id_like: Vec<String>,
    /// `PRETTY_NAME`, for people.
    pub name: String,
}

/// One network interface.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// For example `eth0`.
    pub name: String,
    /// `/sys/class/net/*/speed`. `None` when unknown or not meaningful (virtual devices such as
    /// veth report a constant).
    pub speed_bits_per_sec: Option<f64>,
    /// Maximum transmission unit.
    pub mtu_bytes: Option<u32>,
    /// Driver name, for example `mlx5_core`, `veth`.
    pub driver: Option<String>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Length of each address' network prefix, in the same order. Empty in runs of before it was
    /// read.
    #[serde(default)]
    pub prefix_bits: Vec<u8>,
    /// Whether the link is up.
    pub up: bool,
    /// The kernel's word for a virtual link (`IFLA_INFO_KIND`): `veth`, `vlan`, `vxlan`. `None` for
    /// ports of a NIC, and in runs of before it was read.
    #[serde(default)]
    pub kind: Option<String>,
    /// The interface below it, where that is in the same network namespace and has a name there.
    #[serde(default)]
    pub lower: Option<String>,
    /// What it puts around every packet, when it is a tunnel that the kernel reports.
    #[serde(default)]
    pub tunnel: Option<Tunnel>,
    /// What it consists of, when it is a bond or a team.
    #[serde(default)]
    pub bond: Option<Bond>,
    /// Where its cable ends, when the switch reports it by LLDP.
    #[serde(default)]
    pub switch_port: Option<SwitchPort>,
}

/// A link over several others (bonding, team).
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Bond {
    /// Interfaces that share its traffic.
    pub members: Vec<String>,
    /// The kernel's word, for example `802.3ad` or `active-backup`. `None` for a team.
    pub mode: Option<String>,
    /// By what a member is chosen, for example `layer2` or `layer3+4`. `None` for a team.
    pub hash_policy: Option<String>,
}

/// Where a cable ends (LLDP, IEEE 802.1AB).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
pub struct SwitchPort {
    /// The switch's name, or its chassis ID.
    pub switch: String,
    /// The port's ID, or its description.
    pub port: String,
}

/// Raw host counters at one instant, as the kernel keeps them since boot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostSample {
    /// Agent's monotonic clock.
    pub agent_ns: u64,
    /// How late the reading was against its schedule.
    pub late_ns: u64,
    /// What the reading cost. `None` in runs of before it was measured.
    #[serde(default)]
    pub cost: Option<ReadingCost>,
    /// One per online CPU, in order; of hosts with many the busiest few ([`HostSample::all_cpus`]).
    pub cpus: Vec<CpuCounters>,
    /// All CPUs together, where `cpus` has only the busiest few: those that worked most since the
    /// sample before, and those that did then. `None` where `cpus` has all of them.
    #[serde(default)]
    pub all_cpus: Option<Box<AllCpus>>,
    /// One per interface except loopback.
    pub interfaces: Vec<InterfaceCounters>,
    /// What shows causes. `None` in runs of before it was read.
    #[serde(default)]
    pub causes: Option<Box<CauseCounters>>,
}

/// The CPUs of a host as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllCpus {
    /// Online CPUs.
    pub count: u32,
    /// Sums over them; without a number.
    pub times: CpuCounters,
}

impl HostSample {
    /// What it takes in memory, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let causes = self.causes.as_ref().map_or(0, |causes| causes.held_bytes());
        let names = NAME_BYTES * self.interfaces.len();
        let lists = size_of_val(&*self.cpus) + size_of_val(&*self.interfaces);
        size_of::<Self>() + lists + names + causes
    }

    /// Online CPUs.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        let all = self.all_cpus.as_ref();
        all.map_or(self.cpus.len(), |all| all.count as usize)
    }

    /// A counter's sum over all CPUs. `None` where the kernel does not report it, or no CPU at all.
    #[must_use]
    pub fn over_cpus(&self, counter: impl Fn(&CpuCounters) -> Option<u64>) -> Option<u64> {
        match &self.all_cpus {
            Some(all) => counter(&all.times),
            None if self.cpus.is_empty() => None,
            None => self.cpus.iter().map(counter).sum(),
        }
    }
}

impl InterfaceFacts {
    /// The subnet that one of its addresses is in. `None` for other addresses, and where the prefix
    /// is not known.
    #[must_use]
    pub fn subnet_of(&self, address: IpAddr) -> Option<Subnet> {
        let at = self.addresses.iter().position(|own| *own == address)?;
        Some(Subnet::of(address, *self.prefix_bits.get(at)?))
    }
}

impl HostFacts {
    /// The interface that carries an address.
    #[must_use]
    pub fn interface_with(&self, address: IpAddr) -> Option<&InterfaceFacts> {
        self.interfaces
            .iter()
            .find(|i| i.addresses.contains(&address))
    }

    /// The bond that carries an interface's traffic: itself, or one below it.
    #[must_use]
    pub fn bond_of<'a>(
        &'a self,
        interface: &'a InterfaceFacts,
    ) -> Option<(&'a InterfaceFacts, &'a Bond)> {
        let mut way = self.way_down(interface).into_iter();
        way.find_map(|link| Some((link, link.bond.as_ref()?)))
    }

    /// The switch ports that an interface's traffic uses, with the interfaces they are of: one, or
    /// a bond's.
    pub fn switch_ports<'a>(
        &'a self,
        interface: &'a InterfaceFacts,
    ) -> impl Iterator<Item = (&'a str, &'a SwitchPort)> {
        let bond = self.bond_of(interface).map(|(_, bond)| bond);
        let members = bond.map_or(&[][..], |bond| &bond.members);
        let named = |name: &String| self.interfaces.iter().find(|i| i.name == *name);
        let way = self.way_down(interface).into_iter();
        let all = way.chain(members.iter().filter_map(named));
        all.filter_map(|link| Some((link.name.as_str(), link.switch_port.as_ref()?)))
    }

    /// An interface and those below it, the highest first.
    #[must_use]
    pub fn way_down<'a>(&'a self, interface: &'a InterfaceFacts) -> Vec<&'a InterfaceFacts> {
        /// More than anybody stacks; links that lie about each other must not hang us.
        const MAX_LINKS: usize = 8;
        let below = |upper: &&'a InterfaceFacts| {
            let name = upper.lower.as_ref()?;
            self.interfaces.iter().find(|i| i.name == *name)
        };
        let way = std::iter::successors(Some(interface), below);
        way.take(MAX_LINKS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_down_ends() {
        let named = |name: &str, lower: Option<&str>| InterfaceFacts {
            name: name.into(),
            lower: lower.map(str::to_owned),
            ..InterfaceFacts::default()
        };
        let facts = HostFacts {
            interfaces: vec![
                named("vx0", Some("vlan7")),
                named("eth0", None),
                named("vlan7", Some("eth0")),
                named("a", Some("a")),
            ],
            ..HostFacts::default()
        };
        let names = |at: usize| -> Vec<&str> {
            let way = facts.way_down(&facts.interfaces[at]);
            way.iter().map(|i| i.name.as_str()).collect()
        };
        assert_eq!(names(0), ["vx0", "vlan7", "eth0"]);
        assert_eq!(names(1), ["eth0"]);
        assert!(names(3).len() <= 8);
    }

    #[test]
    fn samples_of_older_runs_can_be_read() {
        let old = r#"{"agent_ns": 5, "late_ns": 0, "cpus": [], "interfaces": []}"#;
        let sample: HostSample = serde_json::from_str(old).unwrap();
        assert_eq!((sample.agent_ns, sample.causes), (5, None));
    }
}
