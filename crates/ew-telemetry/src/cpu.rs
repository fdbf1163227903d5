//! Per CPU: `/proc/stat`, `/proc/net/softnet_stat`, NUMA node below `/sys/devices/system`, see
//! proc(5).

use crate::file::{FileBuffer, read_net};
use crate::proc_stat::cpu_lines;
use ew_model::telemetry::{CpuReading, SoftnetCounters};
use std::collections::BTreeMap;
use std::path::Path;

/// Columns of a softnet line, hexadecimal. Lines are of online CPUs; the CPU's own number is the
/// column since Linux 5.10.
const SOFTNET_RECEIVED_RPS: usize = 9;
const SOFTNET_FLOW_LIMITED: usize = 10;
const SOFTNET_BACKLOG: usize = 11;
const SOFTNET_CPU: usize = 12;

/// `CONFIG_NR_CPUS` of the largest kernels; more is not believed.
const MAX_CPUS: u32 = 8192;

/// One entry per online CPU: times and packets.
pub(crate) fn cpus(root: &Path, buffer: &mut FileBuffer) -> Vec<CpuReading> {
    let text = buffer.read(root.join("proc/stat")).unwrap_or_default();
    let of_times = |times| CpuReading {
        times,
        ..CpuReading::default()
    };
    let mut cpus: Vec<CpuReading> = cpu_lines(text).map(of_times).collect();
    let text = read_net(buffer, root, "softnet_stat").unwrap_or_default();
    let softnet = softnet_lines(text, &cpus);
    for cpu in &mut cpus {
        let number = cpu.times.cpu;
        cpu.softnet = softnet.get(&number).copied();
    }
    cpus
}

/// CPU number to NUMA node, from `/sys/devices/system/node/nodeN/cpulist`.
pub(crate) fn numa_nodes(root: &Path) -> BTreeMap<u32, u32> {
    let mut nodes = BTreeMap::new();
    let entries = std::fs::read_dir(root.join("sys/devices/system/node"));
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let node = name.to_str().and_then(|n| n.strip_prefix("node"));
        let Some(node) = node.and_then(|n| n.parse().ok()) else {
            continue;
        };
        let list = crate::file::trimmed(entry.path().join("cpulist")).unwrap_or_default();
        nodes.extend(cpu_list(&list).map(|cpu| (cpu, node)));
    }
    nodes
}

/// `0-3,8,10-11`.
fn cpu_list(text: &str) -> impl Iterator<Item = u32> {
    text.split(',').flat_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.trim().parse().ok().zip(last.trim().parse().ok());
        range
            .map(|(first, last): (u32, u32)| first..=last.min(MAX_CPUS - 1))
            .into_iter()
            .flatten()
    })
}

/// Kernels that do not name the CPU list them in the order of `/proc/stat`.
fn softnet_lines(text: &str, cpus: &[CpuReading]) -> BTreeMap<u32, SoftnetCounters> {
    let lines = text.lines().zip(0_usize..);
    let named = lines.filter_map(|(line, index)| {
        let words: Vec<u32> = line
            .split_whitespace()
            .map_while(|word| u32::from_str_radix(word, 16).ok())
            .collect();
        let in_order = cpus.get(index).map(|cpu| cpu.times.cpu);
        let cpu = words.get(SOFTNET_CPU).copied().or(in_order)?;
        Some((cpu, softnet(&words)?))
    });
    named.collect()
}

fn softnet(words: &[u32]) -> Option<SoftnetCounters> {
    Some(SoftnetCounters {
        processed: *words.first()?,
        dropped: *words.get(1)?,
        squeezed: *words.get(2)?,
        received_rps: words.get(SOFTNET_RECEIVED_RPS).copied(),
        flow_limited: words.get(SOFTNET_FLOW_LIMITED).copied(),
        backlog: words.get(SOFTNET_BACKLOG).copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    fn read(tree: &str) -> Vec<CpuReading> {
        cpus(&recorded(tree), &mut FileBuffer::default())
    }

    #[test]
    fn a_kernel_of_today_names_the_cpu_of_a_softnet_line() {
        let cpus = read("linux-6.12");
        // CPU 1 is offline: the second line is of CPU 2.
        let softnet = cpus[1].softnet.unwrap();
        assert_eq!(cpus[1].times.cpu, 2);
        assert_eq!((softnet.processed, softnet.squeezed), (0x0894_1369, 0x3cf));
        assert_eq!((softnet.backlog, softnet.received_rps), (Some(7), Some(0)));
        assert_eq!(cpus[1].times.guest_ticks, Some(12));
    }

    #[test]
    fn linux_4_18_lists_them_in_order_and_has_no_backlog() {
        let cpus = read("linux-4.18");
        let softnet = cpus[1].softnet.unwrap();
        assert_eq!((softnet.dropped, softnet.flow_limited), (0x2a, Some(3)));
        assert_eq!(softnet.backlog, None);
    }

    #[test]
    fn nothing_there_is_nothing() {
        assert!(read("nothing-here").is_empty());
        assert_eq!(cpu_list("").count(), 0);
        assert_eq!(cpu_list("0-2,9").collect::<Vec<_>>(), [0, 1, 2, 9]);
        assert_eq!(cpu_list("0-4294967295").count(), 8192, "no kernel has more");
        assert_eq!(softnet(&[1, 2]), None);
    }
}
