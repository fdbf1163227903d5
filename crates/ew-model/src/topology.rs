//! A network as it is, every rate spelled out: what the lab builds, what the simulator computes,
//! and the truth that an analysis is compared with.
//!
//! Hosts sit below a leaf (their rack). A leaf has one or more parallel paths, each over a spine of
//! its own; path `i` of every rack leads to spine `i` of its pod (without pods: of the network).
//! Above the pods, path `j` of every pod leads to core `j`. Each tier hashes a connection's 5-tuple
//! with a seed of its own. Within a pod a flow from rack a to rack b takes spine `i` with a share
//! proportional to `a.paths[i].up.weight * b.paths[i].down.weight`, among the spines to which both
//! have a link that is up and routed; between pods the same applies to cores, and the spines at
//! both ends are chosen apart.
//!
//! A fault is not listed: it is in the numbers. A spine at half of its speed is path `i` at half of
//! its rate in every rack.

use crate::inventory::{Host, Inventory, Rack, RackId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use thiserror::Error;

/// A network with its hosts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Topology {
    /// For people.
    pub name: String,
    /// How switch ports share their rate.
    pub queue: Queue,
    /// Of the hosts' addresses.
    pub address_family: AddressFamily,
    /// Time that a packet takes over one link without a queue. `None`: as the medium has it.
    pub link_delay_ns: Option<u64>,
    /// All tiers hash alike, so that a part of the paths above stays unused.
    pub polarised: bool,
    /// In order; [`RackId`] indexes this.
    pub racks: Vec<RackSpec>,
    /// The tier above racks. Empty: all racks share one set of spines.
    pub pods: Vec<PodSpec>,
    /// Production traffic next to the run's own.
    pub background: Vec<BackgroundSpec>,
}

/// How a switch port shares its rate among the hosts that send through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Evenly: the truth is the max-min fair share.
    #[default]
    Fair,
    /// First in, first out: shares are what TCP makes of it.
    Fifo,
}

/// A kernel's congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// The kernel's own choice: loss-based.
    #[default]
    Cubic,
    /// Model-based; random loss hardly slows it.
    Bbr,
}

impl CongestionControl {
    /// The kernel's word, as in `net.ipv4.tcp_congestion_control`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// IP version of the data flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressFamily {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Hosts below one leaf.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RackSpec {
    /// For example `r1`.
    pub name: String,
    /// Index of its pod in [`Topology::pods`]. `None` without pods.
    pub pod: Option<u32>,
    /// In order; racks may differ in size.
    pub hosts: Vec<HostSpec>,
    /// Its uplink: one member per spine.
    pub paths: Vec<PathSpec>,
}

/// Racks below one set of spines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PodSpec {
    /// For example `pod1`.
    pub name: String,
    /// Its uplink to the other pods: one member per core.
    pub paths: Vec<PathSpec>,
}

/// One member of an uplink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PathSpec {
    /// Whether the link is up. When not, routing has converged: neither end sends to it.
    pub link_up: bool,
    /// From the rack, or pod, upwards.
    pub up: DirectionSpec,
    /// Into the rack, or pod.
    pub down: DirectionSpec,
}

/// One direction of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DirectionSpec {
    /// Frames, headers included.
    pub rate_bits_per_sec: u64,
    /// Packets lost at random, 0 to 1.
    pub loss_share: f64,
    /// Every packet vanishes, and both ends take the link to be good.
    pub black_hole: bool,
    /// Senders use it. When not, routes in this direction are lost although the link is up, and the
    /// other direction is used.
    pub routed: bool,
    /// Share of the hash buckets, relative to the other members'. 1 for all: even.
    pub weight: u32,
}

/// Production traffic between hosts that take no part in the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BackgroundSpec {
    /// Rack that it leaves.
    pub from: RackId,
    /// Rack that it enters.
    pub to: RackId,
    /// Payload of all streams together, at most.
    pub rate_bits_per_sec: u64,
    /// TCP connections, each hashed to a path of its own.
    pub streams: u32,
    /// Alternates between on and off. `None`: always on.
    #[serde(default)]
    pub bursts: Option<BurstSpec>,
}

/// Times of traffic that comes and goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BurstSpec {
    /// How long it sends.
    pub on_ns: u64,
    /// How long it then pauses.
    pub off_ns: u64,
}

/// One host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostSpec {
    /// For example `r1h3`.
    pub name: String,
    /// The address that data flows use. `None`: the lab's or simulator's own scheme.
    pub address: Option<IpAddr>,
    /// The link to its leaf.
    pub nic: NicSpec,
    /// A shaper of the platform, as in clouds.
    pub shaper: ShaperSpec,
    /// What its kernel does by default.
    pub congestion_control: CongestionControl,
    /// Upper limit of a TCP receive buffer (`net.ipv4.tcp_rmem`). `None`: the kernel's own.
    pub receive_buffer_bytes: Option<u64>,
    /// Upper limit of a TCP send buffer (`net.ipv4.tcp_wmem`). `None`: the kernel's own.
    pub send_buffer_bytes: Option<u64>,
    /// Online CPUs. `None`: the machine's.
    pub cpus: Option<u32>,
    /// Share of one core that its processes together may use (control group). `None`: all of it.
    pub cpu_quota_cores: Option<f64>,
    /// The host has one CPU, of which another process takes this share first. `None`: no such
    /// process.
    pub cpu_hog_share: Option<f64>,
    /// A process of the host sends at this rate to a host outside the run. `None`: no such process.
    pub neighbour_bits_per_sec: Option<u64>,
    /// A process of the host writes to its disk without pause.
    pub disk_writer: bool,
}

/// A host's link to its leaf. Hosts of one class have the same rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NicSpec {
    /// Frames that it sends, all members together.
    pub tx_bits_per_sec: u64,
    /// Frames that it receives, all members together.
    pub rx_bits_per_sec: u64,
    /// Link speed as the interface reports it. `None`: it reports none, as virtual interfaces.
    pub reported_bits_per_sec: Option<u64>,
    /// Links of a LAG with equal parts of the rates. The host hashes what it sends, the leaf what
    /// the host receives; a stream has one member each way. 1: no LAG.
    pub lag_members: u32,
    /// Maximum transmission unit.
    pub mtu_bytes: u32,
    /// Packets lost at random that the host sends, 0 to 1.
    pub tx_loss_share: f64,
    /// Packets lost at random on the way into the host, 0 to 1.
    pub rx_loss_share: f64,
    /// Whether its cable is plugged in.
    pub link_up: bool,
}

/// What a platform does to the traffic a host sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShaperSpec {
    /// One connection gets at most this. `None`: no cap.
    pub flow_bits_per_sec: Option<u64>,
    /// Credits above a sustained rate. `None`: no bucket.
    pub bucket: Option<BucketSpec>,
}

/// A token bucket: the NIC's rate while there are credits, then the sustained one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BucketSpec {
    /// Rate at which credits come.
    pub sustained_bits_per_sec: u64,
    /// Credits when full, and at the start.
    pub capacity_bytes: u64,
}

/// Why a topology cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{subject}: {problem}")]
pub struct TopologyError {
    /// Which part: a rack's, host's or pod's name.
    pub subject: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

const DEFAULT_RATE_BITS_PER_SEC: u64 = 1_000_000_000;
const DEFAULT_MTU_BYTES: u32 = 1500;

impl Topology {
    /// All hosts, rack by rack; [`crate::HostId`] indexes this.
    pub fn hosts(&self) -> impl Iterator<Item = &HostSpec> {
        self.racks.iter().flat_map(|rack| &rack.hosts)
    }

    /// The hosts and racks as a user would name them.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let hosts = self.racks.iter().zip(0..).flat_map(|(rack, number)| {
            rack.hosts.iter().map(move |host| Host {
                name: host.name.clone(),
                address: host.address,
                rack: Some(RackId(number)),
            })
        });
        let racks = self.racks.iter().map(|rack| Rack {
            name: rack.name.clone(),
        });
        Inventory {
            hosts: hosts.collect(),
            racks: racks.collect(),
        }
    }

    /// Checks what everybody who builds or computes a network relies on: names, references, rates
    /// and shares.
    ///
    /// # Errors
    /// [`TopologyError`] with the first part that cannot be.
    pub fn validate(&self) -> Result<(), TopologyError> {
        if self.racks.is_empty() {
            return Err(wrong(&self.name, "a topology needs at least one rack"));
        }
        let mut names: Vec<&str> = self.racks.iter().map(|rack| rack.name.as_str()).collect();
        names.extend(self.hosts().map(|host| host.name.as_str()));
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(
                twice[0],
                "the name is given twice; racks and hosts need their own",
            ));
        }
        for rack in &self.racks {
            rack.validate(self.pods.len())?;
        }
        for pod in &self.pods {
            validate_paths(&pod.name, &pod.paths)?;
        }
        self.background.iter().try_for_each(|traffic| {
            let is_known = |rack: RackId| rack.index() < self.racks.len();
            if !is_known(traffic.from) || !is_known(traffic.to) || traffic.from == traffic.to {
                return Err(wrong(
                    "background",
                    "it needs two different racks of the topology",
                ));
            }
            Ok(())
        })
    }
}

impl RackSpec {
    /// What its members carry upwards together, those that are down or not routed skipped.
    #[must_use]
    pub fn up_bits_per_sec(&self) -> u64 {
        usable(&self.paths, |path| &path.up)
    }

    /// What its members carry into it together, those that are down or not routed skipped.
    #[must_use]
    pub fn down_bits_per_sec(&self) -> u64 {
        usable(&self.paths, |path| &path.down)
    }

    fn validate(&self, pods: usize) -> Result<(), TopologyError> {
        if self.hosts.is_empty() {
            return Err(wrong(&self.name, "a rack needs at least one host"));
        }
        let is_placed = match self.pod {
            Some(pod) => (pod as usize) < pods,
            None => pods == 0,
        };
        if !is_placed {
            return Err(wrong(
                &self.name,
                "with pods, every rack names one of them by its index",
            ));
        }
        validate_paths(&self.name, &self.paths)?;
        self.hosts.iter().try_for_each(HostSpec::validate)
    }
}

fn usable(paths: &[PathSpec], direction: impl Fn(&PathSpec) -> &DirectionSpec) -> u64 {
    let usable = paths
        .iter()
        .filter(|path| path.link_up)
        .map(direction)
        .filter(|direction| direction.routed);
    let rates = usable.map(|direction| direction.rate_bits_per_sec);
    rates.fold(0, u64::saturating_add)
}

fn validate_paths(owner: &str, paths: &[PathSpec]) -> Result<(), TopologyError> {
    if paths.is_empty() {
        return Err(wrong(owner, "it needs at least one path upwards"));
    }
    for direction in paths.iter().flat_map(|path| [&path.up, &path.down]) {
        if direction.rate_bits_per_sec == 0 {
            return Err(wrong(
                owner,
                "a path's rate is 0; for a dead one set `link-up: false`",
            ));
        }
        if direction.weight == 0 {
            return Err(wrong(owner, "a path's weight is 0; set `routed: false`"));
        }
        check_share(owner, "a path's loss", direction.loss_share)?;
    }
    Ok(())
}

impl HostSpec {
    fn validate(&self) -> Result<(), TopologyError> {
        let nic = &self.nic;
        if nic.tx_bits_per_sec == 0 || nic.rx_bits_per_sec == 0 || nic.lag_members == 0 {
            return Err(wrong(
                &self.name,
                "a NIC's rates and members are at least 1",
            ));
        }
        check_share(&self.name, "its NIC's loss", nic.tx_loss_share)?;
        check_share(&self.name, "its NIC's loss", nic.rx_loss_share)?;
        check_share(&self.name, "the CPU hog", self.cpu_hog_share.unwrap_or(0.0))?;
        if self
            .cpu_quota_cores
            .is_some_and(|cores| cores.is_nan() || cores <= 0.0)
        {
            return Err(wrong(&self.name, "a CPU quota is above 0"));
        }
        Ok(())
    }
}

fn check_share(owner: &str, what: &str, share: f64) -> Result<(), TopologyError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(wrong(
        owner,
        &format!("{what} is {share}; a share is 0 to 1"),
    ))
}

fn wrong(subject: &str, problem: &str) -> TopologyError {
    TopologyError {
        subject: subject.into(),
        problem: problem.into(),
    }
}

impl PathSpec {
    /// The same rate in both directions, without a fault.
    #[must_use]
    pub fn healthy(rate_bits_per_sec: u64) -> Self {
        let direction = DirectionSpec {
            rate_bits_per_sec,
            ..DirectionSpec::default()
        };
        Self {
            link_up: true,
            up: direction.clone(),
            down: direction,
        }
    }
}

impl NicSpec {
    /// The same rate in both directions, without a fault, and no link speed reported.
    #[must_use]
    pub fn healthy(rate_bits_per_sec: u64) -> Self {
        Self {
            tx_bits_per_sec: rate_bits_per_sec,
            rx_bits_per_sec: rate_bits_per_sec,
            ..Self::default()
        }
    }
}

impl HostSpec {
    /// A host with a NIC of this rate and no fault.
    #[must_use]
    pub fn healthy(name: &str, nic_bits_per_sec: u64) -> Self {
        Self {
            name: name.into(),
            nic: NicSpec::healthy(nic_bits_per_sec),
            ..Self::default()
        }
    }
}

impl Default for PathSpec {
    fn default() -> Self {
        Self::healthy(DEFAULT_RATE_BITS_PER_SEC)
    }
}

impl Default for DirectionSpec {
    fn default() -> Self {
        Self {
            rate_bits_per_sec: DEFAULT_RATE_BITS_PER_SEC,
            loss_share: 0.0,
            black_hole: false,
            routed: true,
            weight: 1,
        }
    }
}

impl Default for NicSpec {
    fn default() -> Self {
        Self {
            tx_bits_per_sec: DEFAULT_RATE_BITS_PER_SEC,
            rx_bits_per_sec: DEFAULT_RATE_BITS_PER_SEC,
            reported_bits_per_sec: None,
            lag_members: 1,
            mtu_bytes: DEFAULT_MTU_BYTES,
            tx_loss_share: 0.0,
            rx_loss_share: 0.0,
            link_up: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_racks() -> Topology {
        let rack = |name: &str| RackSpec {
            name: name.into(),
            hosts: vec![HostSpec::healthy(&format!("{name}h1"), 10_000)],
            paths: vec![PathSpec::healthy(4_000); 4],
            ..RackSpec::default()
        };
        Topology {
            name: "pair".into(),
            racks: vec![rack("r1"), rack("r2")],
            ..Topology::default()
        }
    }

    #[test]
    fn members_that_are_not_used_carry_nothing() {
        let mut rack = two_racks().racks.remove(0);
        assert_eq!(rack.up_bits_per_sec(), 16_000);
        rack.paths[0].link_up = false;
        rack.paths[1].up.routed = false;
        assert_eq!(
            (rack.up_bits_per_sec(), rack.down_bits_per_sec()),
            (8_000, 12_000)
        );
    }

    #[test]
    fn the_inventory_has_the_racks() {
        let inventory = two_racks().inventory();
        let host = inventory.find("r2h1").unwrap();
        assert_eq!(inventory.rack_of(host), Some(RackId(1)));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        assert_eq!(two_racks().validate(), Ok(()));
        let refused = |change: &dyn Fn(&mut Topology)| {
            let mut topology = two_racks();
            change(&mut topology);
            topology.validate().unwrap_err().subject
        };
        assert_eq!(refused(&|t| t.racks[1].paths.clear()), "r2");
        assert_eq!(refused(&|t| t.racks[1].pod = Some(0)), "r2");
        assert_eq!(
            refused(&|t| t.racks[0].hosts[0].nic.tx_loss_share = 2.0),
            "r1h1"
        );
        assert_eq!(refused(&|t| t.racks[1].name = "r1".into()), "r1");
        assert_eq!(refused(&|t| t.racks.clear()), "pair");
    }

    #[test]
    fn only_what_differs_must_be_written() {
        let json = r#"{"racks": [{"name": "r1", "hosts": [{"name": "a"}], "paths": [{"up": {"loss-share": 0.01}}]}]}"#;
        let topology: Topology = serde_json::from_str(json).unwrap();
        assert_eq!(topology.validate(), Ok(()));
        assert_eq!(topology.racks[0].paths[0].up.loss_share, 0.01);
        assert_eq!(topology.racks[0].paths[0].down, DirectionSpec::default());
    }
}
