//! What does not change during a run.

use crate::cpu::numa_nodes;
use crate::frequency::max_frequency_hz;
use crate::limits::open_files_limit;
use crate::lldp::switch_ports;
use crate::network::links_now;
use crate::proc_stat::cpu_counters;
use ew_model::facts::{HardwareFacts, HostFacts, InterfaceFacts, OsRelease};
use ew_model::network::NetworkChoice;
use ew_sys::clock::{realtime_ns, synchronised};
use ew_sys::disk::free_bytes;
use ew_sys::net::interfaces;
use std::net::IpAddr;
use std::path::Path;

/// The host's facts: kernel, names and limits from `root`, interfaces and clock from the kernel
/// itself, for the network namespace of the calling thread. The loopback interface is skipped
/// unless it carries `address`.
///
/// What the agent must ask elsewhere stays empty: the tools, and the work directory's free space,
/// which [`free_bytes_beside_executable`] reports only while the binary is in place.
#[must_use]
pub fn facts(root: &Path, address: Option<IpAddr>) -> HostFacts {
    let mut interfaces = relevant_interfaces(address);
    let mut switch_ports = switch_ports(root);
    for interface in &mut interfaces {
        interface.switch_port = switch_ports.remove(&interface.name);
    }
    HostFacts {
        interfaces,
        hardware: Some(Box::new(HardwareFacts {
            links: links_now().into_iter().collect(),
            ..hardware(root)
        })),
        realtime_ns: realtime_ns(),
        clock_synchronised: synchronised(),
        ..facts_below(root)
    }
}

/// Free bytes of the parent of the running binary's directory: where a launcher put
/// it. Ask before the binary removes itself. `None` when unknown.
#[must_use]
pub fn free_bytes_beside_executable() -> Option<u64> {
    let executable = std::env::current_exe().ok()?;
    free_bytes(executable.parent()?.parent()?).ok()
}

pub(crate) fn facts_below(root: &Path) -> HostFacts {
    let kernel_name = |name: &str| {
        let path = root.join("proc/sys/kernel").join(name);
        std::fs::read_to_string(path).map(|text| text.trim().to_owned())
    };
    HostFacts {
        kernel: kernel_name("osrelease").unwrap_or_default(),
        hostname: kernel_name("hostname").unwrap_or_default(),
        // Kernels before 6.1 do not have the file; the binary's own architecture is the host's.
        architecture: kernel_name("arch").unwrap_or_else(|_| std::env::consts::ARCH.to_owned()),
        cpus: cpu_counters(root).len() as u32,
        open_files_limit: open_files_limit(root),
        os: os_release(root),
        ..HostFacts::default()
    }
}

/// All but the links.
pub(crate) fn hardware(root: &Path) -> HardwareFacts {
    let cpus = cpu_counters(root).into_iter().map(|cpu| cpu.cpu);
    HardwareFacts {
        numa_nodes: numa_nodes(root).into_iter().collect(),
        max_frequency_hz: cpus.filter_map(|cpu| max_frequency_hz(root, cpu)).max(),
        ..HardwareFacts::default()
    }
}

/// os-release(5): the first of the two files that is there.
fn os_release(root: &Path) -> Option<Box<OsRelease>> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let text = read("etc/os-release").or_else(|| read("usr/lib/os-release"))?;
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let (_, value) = lines.find(|(name, _)| *name == key)?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let id_like = value("ID_LIKE").unwrap_or_default();
    Some(Box::new(OsRelease {
        id: value("ID").unwrap_or_default(),
        id_like: id_like.split_whitespace().map(str::to_owned).collect(),
        name: value("PRETTY_NAME").unwrap_or_default(),
    }))
}

/// This host is not on the network that was chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", network.missing_on(interfaces))]
pub struct NoAddress {
    /// As chosen.
    pub network: NetworkChoice,
    /// What the host has instead.
    pub interfaces: Vec<InterfaceFacts>,
}

/// This host's address on a network.
///
/// # Errors
/// [`NoAddress`], with the interfaces and addresses that there are instead.
pub fn address_on(network: &NetworkChoice) -> Result<IpAddr, NoAddress> {
    let interfaces = relevant_interfaces(None);
    network.address_on(&interfaces).ok_or_else(|| NoAddress {
        network: network.clone(),
        interfaces,
    })
}

fn relevant_interfaces(address: Option<IpAddr>) -> Vec<InterfaceFacts> {
    let all = interfaces().unwrap_or_default();
    let carries = |facts: &InterfaceFacts| address.is_some_and(|a| facts.addresses.contains(&a));
    all.into_iter()
        .filter(|i| !i.loopback || carries(&i.facts))
        .map(|i| i.facts)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;
    use std::net::Ipv4Addr;

    #[test]
    fn where_cpus_are_and_how_fast() {
        let facts = hardware(&recorded("linux-6.12"));
        assert_eq!(facts.numa_nodes[..2], [(0, 0), (1, 0)]);
        assert!(facts.numa_nodes.contains(&(2, 1)), "{:?}", facts.numa_nodes);
        assert_eq!(facts.max_frequency_hz, Some(3_900_000_000));
        let old = hardware(&recorded("linux-4.18"));
        assert_eq!((old.numa_nodes, old.max_frequency_hz), (vec![], None));
    }

    #[test]
    fn a_recorded_host() {
        let facts = facts_below(&recorded("host"));
        assert_eq!(facts.kernel, "6.1.0-18-amd64");
        assert_eq!(facts.hostname, "node7");
        assert_eq!(facts.architecture, "x86_64");
        assert_eq!(facts.cpus, 3);
        assert_eq!(facts.open_files_limit, Some(20_000));
        let os = facts.os.unwrap();
        assert_eq!(
            (os.id.as_str(), os.name.as_str()),
            ("rocky", "Rocky Linux 9.4")
        );
        assert_eq!(os.id_like, ["rhel", "centos", "fedora"]);
    }

    #[test]
    fn an_empty_tree_has_no_facts() {
        let facts = facts_below(&recorded("nothing-here"));
        assert_eq!((facts.kernel.as_str(), facts.open_files_limit), ("", None));
    }

    #[test]
    fn loopback_is_told_only_when_flows_use_it() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let named_lo = |facts: &[InterfaceFacts]| facts.iter().any(|i| i.name == "lo");
        assert!(!named_lo(&relevant_interfaces(None)));
        assert!(named_lo(&relevant_interfaces(Some(loopback))));
    }

    #[test]
    fn this_host_has_facts() {
        let facts = facts(Path::new("/"), None);
        assert!(!facts.kernel.is_empty() && !facts.architecture.is_empty());
        assert!(facts.cpus > 0 && facts.open_files_limit > Some(0));
        assert!(facts.realtime_ns > 1_700_000_000_000_000_000);
    }
}
