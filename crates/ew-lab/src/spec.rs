//! What a lab consists of, with every rate and address spelled out.

use std::net::IpAddr;

use ew_model::topology::{HostSpec, PathSpec, RackSpec, Topology};
use ew_model::units;
use serde::{Deserialize, Serialize};

use crate::addresses::Addresses;
use crate::error::LabError;
use crate::problem::Problem;

/// The name of the management host, attached to the topmost routers without a rate limit.
pub const CONTROLLER: &str = "controller";

const MAX_RACKS: usize = 250;
const MAX_PODS: usize = 100;
const MAX_HOSTS_PER_RACK: usize = 240;
pub(crate) const MAX_PATHS: usize = 30;
const MAX_LAG_MEMBERS: usize = 8;
const MAX_STREAMS: u32 = 256;
pub(crate) const MIN_RATE_BITS_PER_SEC: u64 = 1_000_000;
pub(crate) const MAX_RATE_BITS_PER_SEC: u64 = 400_000_000_000;
pub(crate) const DEFAULT_NIC_BITS_PER_SEC: u64 = 1_000_000_000;
const DEFAULT_MTU_BYTES: u32 = 1500;

/// A lab, resolved: faults are already part of its numbers, and every host has its address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabSpec {
    /// Whether every host runs a real sshd; needs root.
    pub sshd: bool,
    /// The network. Its name is unique among the running labs of this user.
    pub topology: Topology,
}

impl LabSpec {
    /// A lab of this network. Hosts get the lab's own addresses.
    ///
    /// # Errors
    /// [`LabError::Spec`] when a part cannot be, or cannot be emulated.
    pub fn of(topology: Topology) -> Result<Self, LabError> {
        let spec = Self {
            sshd: false,
            topology,
        };
        spec.addressed().map_err(|problem| LabError::Spec {
            location: "lab".into(),
            problem,
        })
    }

    /// Racks `r1`.. of equal hosts, each below an uplink of one path.
    ///
    /// # Errors
    /// [`LabError::Spec`] when a count or rate is out of range.
    pub fn uniform(
        name: &str,
        racks: usize,
        hosts_per_rack: usize,
        nic_bits_per_sec: u64,
        uplink_bits_per_sec: u64,
    ) -> Result<Self, LabError> {
        let rack = |number| {
            let paths = vec![PathSpec::healthy(uplink_bits_per_sec)];
            new_rack(
                &format!("r{number}"),
                hosts_per_rack,
                &[nic_bits_per_sec],
                paths,
            )
        };
        Self::of(Topology {
            name: name.into(),
            racks: (1..=racks).map(rack).collect(),
            ..Topology::default()
        })
    }

    /// The lab's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.topology.name
    }

    /// The same lab under another name, so that one file can be up twice.
    ///
    /// # Errors
    /// [`LabError::Spec`] when the name cannot be one.
    pub fn renamed(mut self, name: &str) -> Result<Self, LabError> {
        check_name(name, "lab").map_err(|problem| LabError::Spec {
            location: "--lab".into(),
            problem,
        })?;
        self.topology.name = name.into();
        Ok(self)
    }

    /// All hosts, rack by rack.
    pub fn hosts(&self) -> impl Iterator<Item = &HostSpec> {
        self.topology.hosts()
    }

    /// The management host's address.
    #[must_use]
    pub fn controller_address(&self) -> IpAddr {
        self.addresses().controller()
    }

    pub(crate) fn addresses(&self) -> Addresses {
        Addresses(self.topology.address_family)
    }

    /// Gives every host its address, and checks what the lab relies on.
    pub(crate) fn addressed(mut self) -> Result<Self, Problem> {
        check_topology(&self.topology)?;
        let addresses = self.addresses();
        for (rack, racks_hosts) in self.topology.racks.iter_mut().enumerate() {
            for (number, host) in racks_hosts.hosts.iter_mut().enumerate() {
                host.address = Some(addresses.host(rack, number));
            }
        }
        Ok(self)
    }

    /// Rack index and host, by host name.
    pub(crate) fn find_host(&self, name: &str) -> Option<(usize, &HostSpec)> {
        let racks = self.topology.racks.iter().enumerate();
        racks
            .flat_map(|(index, rack)| rack.hosts.iter().map(move |host| (index, host)))
            .find(|(_, host)| host.name == name)
    }

    /// `r1h[1-4],r2h[1-4]`.
    pub(crate) fn folded_hosts(&self) -> String {
        let folded: Vec<_> = self.topology.racks.iter().map(folded_hosts).collect();
        folded.join(",")
    }
}

/// Hosts `NAMEh1`.. that have the NICs in turn.
pub(crate) fn new_rack(
    name: &str,
    hosts: usize,
    nics_bits_per_sec: &[u64],
    paths: Vec<PathSpec>,
) -> RackSpec {
    let nics = nics_bits_per_sec.iter().cycle();
    let hosts = (1..=hosts).zip(nics);
    RackSpec {
        name: name.into(),
        pod: None,
        hosts: hosts
            .map(|(number, nic)| HostSpec::healthy(&format!("{name}h{number}"), *nic))
            .collect(),
        paths,
    }
}

/// `r1h[1-4]`, or `r1h1` for one.
pub(crate) fn folded_hosts(rack: &RackSpec) -> String {
    match rack.hosts.len() {
        1 => format!("{}h1", rack.name),
        count => format!("{}h[1-{count}]", rack.name),
    }
}

/// What is wrong with a host besides its rates, in words as a lab file's: `mtu 1400`, `loss 2%`.
#[must_use]
pub fn troubles(host: &HostSpec) -> Vec<String> {
    let (nic, rate) = (&host.nic, units::format_bits_per_sec);
    let percent = |share: f64| format!("{}%", (share * 1e4).round() / 1e2);
    let buffer = |word: &str, bytes: u64| format!("{word} {}", units::format_bytes(bytes));
    let bucket = host.shaper.bucket;
    let troubles = [
        (!nic.link_up).then(|| "link down".into()),
        (nic.lag_members > 1).then(|| format!("{} links", nic.lag_members)),
        (nic.tx_loss_share > 0.0).then(|| format!("loss {}", percent(nic.tx_loss_share))),
        (nic.mtu_bytes != DEFAULT_MTU_BYTES).then(|| format!("mtu {}", nic.mtu_bytes)),
        (host.congestion_control != Default::default())
            .then(|| host.congestion_control.name().into()),
        (host.shaper.flow_bits_per_sec).map(|cap| format!("flow-cap {}", rate(cap as f64))),
        bucket.map(|b| format!("bucket {}", rate(b.sustained_bits_per_sec as f64))),
        host.receive_buffer_bytes
            .map(|bytes| buffer("receive-buffer", bytes)),
        host.send_buffer_bytes
            .map(|bytes| buffer("send-buffer", bytes)),
        host.cpu_quota_cores
            .map(|cores| format!("cpu-quota {}", percent(cores))),
        host.cpu_hog_share
            .map(|share| format!("cpu-hog {}", percent(share))),
        host.neighbour_bits_per_sec
            .map(|neighbour| format!("neighbour {}", rate(neighbour as f64))),
        host.disk_writer.then(|| "disk-writer".into()),
    ];
    troubles.into_iter().flatten().collect()
}

fn check_topology(topology: &Topology) -> Result<(), Problem> {
    check_name(&topology.name, "lab")?;
    topology.validate()?;
    check_count(&topology.name, "racks", topology.racks.len(), MAX_RACKS)?;
    check_count(&topology.name, "pods", topology.pods.len(), MAX_PODS)?;
    if topology.link_delay_ns.is_some() {
        return Err(Problem::Setting {
            owner: topology.name.clone(),
            rule: "a lab cannot delay packets; give no link delay",
        });
    }
    for pod in &topology.pods {
        check_name(&pod.name, "pod")?;
        check_paths(&pod.name, &pod.paths)?;
    }
    for traffic in &topology.background {
        check_rate("background", traffic.rate_bits_per_sec)?;
        if !(1..=MAX_STREAMS).contains(&traffic.streams) {
            return Err(Problem::Range("background traffic has 1 to 256 streams"));
        }
    }
    topology.racks.iter().try_for_each(check_rack)
}

fn check_rack(rack: &RackSpec) -> Result<(), Problem> {
    check_name(&rack.name, "rack")?;
    check_host_count(&rack.name, rack.hosts.len())?;
    check_paths(&rack.name, &rack.paths)?;
    rack.hosts.iter().try_for_each(|host| {
        check_rate("tx", host.nic.tx_bits_per_sec)?;
        check_rate("rx", host.nic.rx_bits_per_sec)?;
        let links = host.nic.lag_members as usize;
        check_count(&host.name, "links", links, MAX_LAG_MEMBERS)
    })
}

pub(crate) fn check_host_count(rack: &str, hosts: usize) -> Result<(), Problem> {
    check_count(rack, "hosts", hosts, MAX_HOSTS_PER_RACK)
}

fn check_paths(owner: &str, paths: &[PathSpec]) -> Result<(), Problem> {
    check_count(owner, "paths", paths.len(), MAX_PATHS)?;
    paths.iter().try_for_each(|path| {
        check_rate("a path", path.up.rate_bits_per_sec)?;
        check_rate("a path", path.down.rate_bits_per_sec)
    })
}

fn check_count(owner: &str, what: &'static str, count: usize, max: usize) -> Result<(), Problem> {
    if count <= max {
        return Ok(());
    }
    Err(Problem::TooMany {
        owner: owner.into(),
        what,
        count,
        max,
    })
}

/// Names become directories, interface peers and host names.
pub(crate) fn check_name(name: &str, what: &'static str) -> Result<(), Problem> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let made_of = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if starts_well && name.len() <= 32 && name.chars().all(made_of) {
        return Ok(());
    }
    Err(Problem::Name {
        name: name.into(),
        what,
    })
}

pub(crate) fn check_rate(what: &'static str, bits_per_sec: u64) -> Result<(), Problem> {
    if (MIN_RATE_BITS_PER_SEC..=MAX_RATE_BITS_PER_SEC).contains(&bits_per_sec) {
        return Ok(());
    }
    Err(Problem::Rate { what, bits_per_sec })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_get_the_addresses_the_guide_promises() {
        let spec = LabSpec::uniform("t", 2, 3, 200_000_000, 150_000_000).unwrap();
        let (rack, host) = spec.find_host("r2h3").unwrap();
        assert_eq!(rack, 1);
        assert_eq!(host.address, Some("198.18.2.12".parse().unwrap()));
        assert_eq!(spec.folded_hosts(), "r1h[1-3],r2h[1-3]");
        assert_eq!(spec.controller_address().to_string(), "198.19.255.2");
    }

    #[test]
    fn the_largest_lab_has_unique_addresses_in_range() {
        let spec = LabSpec::uniform("t", MAX_RACKS, MAX_HOSTS_PER_RACK, 10_000_000, 10_000_000);
        let addresses: std::collections::BTreeSet<_> =
            spec.unwrap().hosts().map(|host| host.address).collect();
        assert_eq!(addresses.len(), MAX_RACKS * MAX_HOSTS_PER_RACK);
        let in_range = |text: String| text.starts_with("198.18.");
        assert!(addresses.iter().all(|a| in_range(a.unwrap().to_string())));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(LabSpec::uniform("Bad_Name", 1, 1, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 0, 1, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 1, 0, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 1, 241, 10_000_000, 10_000_000).is_err());
        assert!(LabSpec::uniform("t", 1, 1, 10, 10_000_000).is_err());
    }
}
