//! All readers together: one host, again and again.

use crate::cost::Meter;
use crate::file::FileBuffer;
use crate::frequency::{FrequencyReader, max_frequency_hz};
use crate::network::NetworkReader;
use crate::proc_stat::cpu_counters;
use crate::processes::ProcessReader;
use crate::sockets::SocketReader;
use crate::{cgroup, cpu, disks, interrupts, memory, pressure, protocols};
use ew_model::telemetry::{CpuReading, HostReading};
use ew_sys::clock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads everything of one host; for the network namespace of the thread that made it, which must
/// be the one that reads.
#[derive(Debug)]
pub struct HostReader {
    root: PathBuf,
    numa_nodes: BTreeMap<u32, u32>,
    max_frequencies_hz: BTreeMap<u32, u64>,
    frequencies: FrequencyReader,
    buffer: FileBuffer,
    network: NetworkReader,
    sockets: SocketReader,
    processes: ProcessReader,
}

impl HostReader {
    /// `root` is `/` on a real host: readers of files read below it.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        let cpus = cpu_counters(root).into_iter().map(|cpu| cpu.cpu);
        let max_frequencies = cpus.filter_map(|cpu| Some((cpu, max_frequency_hz(root, cpu)?)));
        Self {
            root: root.to_owned(),
            numa_nodes: cpu::numa_nodes(root),
            max_frequencies_hz: max_frequencies.collect(),
            frequencies: FrequencyReader::default(),
            buffer: FileBuffer::default(),
            network: NetworkReader::new(),
            sockets: SocketReader::new(),
            processes: ProcessReader::default(),
        }
    }

    /// One reading. `due_ns` is when it should begin, on the monotonic clock; how late it began is
    /// recorded.
    pub fn read(&mut self, due_ns: u64) -> HostReading {
        let monotonic_ns = clock::monotonic_ns();
        let meter = Meter::start();
        let mut reading = self.counters();
        reading.monotonic_ns = monotonic_ns;
        reading.late_ns = monotonic_ns.saturating_sub(due_ns);
        reading.cost = meter.cost();
        reading
    }

    /// What moves fastest is read first and together, so that rates of bytes share one time base.
    fn counters(&mut self) -> HostReading {
        let (root, buffer) = (self.root.as_path(), &mut self.buffer);
        let mut unseen = Vec::new();
        let interfaces = self.network.interfaces(root, buffer);
        let sockets = self.sockets.read(root, &mut unseen);
        let protocols = protocols::protocols(root, buffer);
        let cpus = cpu::cpus(root, buffer);
        let processes = self.processes.read(root, buffer);
        let refused = self.processes.refused();
        if refused > 0 {
            unseen.push(format!(
                "the disk traffic of {refused} process(es) (needs root or CAP_SYS_PTRACE)"
            ));
        }
        let mut reading = HostReading {
            realtime_ns: clock::realtime_ns(),
            interrupts: interrupts::interrupts(root, buffer),
            qdiscs: self.network.qdiscs(),
            memory: memory::memory(root, buffer),
            disks: disks::disks(root, buffer),
            pressure: pressure::pressure(root, buffer),
            cgroup: cgroup::cgroup(root, buffer),
            interfaces,
            sockets,
            protocols,
            cpus,
            processes,
            unseen,
            ..HostReading::default()
        };
        self.describe(&mut reading.cpus);
        reading
    }

    /// Adds where the CPUs are and how fast they run; last, because the kernel may take its time to
    /// report.
    fn describe(&mut self, cpus: &mut [CpuReading]) {
        let (root, buffer) = (self.root.as_path(), &mut self.buffer);
        let frequencies = self.frequencies.latest_hz(root, buffer, cpus);
        let frequencies: BTreeMap<u32, u64> = frequencies.into_iter().collect();
        for cpu in cpus {
            let number = cpu.times.cpu;
            cpu.numa_node = self.numa_nodes.get(&number).copied();
            cpu.max_frequency_hz = self.max_frequencies_hz.get(&number).copied();
            cpu.frequency_hz = frequencies.get(&number).copied();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    #[test]
    fn where_cpus_are_and_how_fast() {
        let read = |tree| HostReader::new(&recorded(tree)).read(0).cpus;
        let cpus = read("linux-6.12");
        assert_eq!(cpus[1].times.cpu, 2);
        assert_eq!(cpus[1].frequency_hz, Some(2_400_000_000));
        assert_eq!(cpus[1].max_frequency_hz, Some(3_900_000_000));
        assert_eq!((cpus[0].numa_node, cpus[1].numa_node), (Some(0), Some(1)));
        let old = read("linux-4.18")[1];
        assert_eq!((old.frequency_hz, old.max_frequency_hz), (None, None));
        assert_eq!(old.numa_node, None);
    }

    #[test]
    fn this_host_tells_everything_that_every_linux_tells() {
        let mut reader = HostReader::new(Path::new("/"));
        let first = reader.read(0);
        assert_eq!(first.late_ns, first.monotonic_ns);
        assert!(first.cpus[0].softnet.is_some());
        assert!(first.memory.total_bytes > Some(1 << 20));
        assert!(first.protocols.tcp_out_segments.is_some());
        let own = |p: &&ew_model::telemetry::ProcessCounters| p.pid == std::process::id();
        assert!(first.processes.iter().find(own).unwrap().threads > 0);
        let second = reader.read(0);
        assert!(second.monotonic_ns > first.monotonic_ns);
        assert!(second.cost.wall_ns > 0);
    }
}
