//! All readers together: one host, again and again.

use crate::cost::Meter;
use crate::file::FileBuffer;
use crate::network::NetworkReader;
use crate::processes::ProcessReader;
use crate::sockets::SocketReader;
use crate::{cgroup, cpu, disks, interrupts, memory, pressure, protocols};
use ew_model::telemetry::HostReading;
use ew_sys::clock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Reads everything of one host; for the network namespace of the thread that made it, which must be the one that reads.
#[derive(Debug)]
pub struct HostReader {
    root: PathBuf,
    numa_nodes: BTreeMap<u32, u32>,
    buffer: FileBuffer,
    network: NetworkReader,
    sockets: SocketReader,
    processes: ProcessReader,
}

impl HostReader {
    /// `root` is `/` on a real host: readers of files look below it.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            numa_nodes: cpu::numa_nodes(root),
            buffer: FileBuffer::default(),
            network: NetworkReader::new(),
            sockets: SocketReader::new(),
            processes: ProcessReader::default(),
        }
    }

    /// One reading. `due_ns` is when it should begin, on the monotonic clock; how late it began is recorded.
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
        let mut cpus = cpu::cpus(root, buffer);
        cpu::describe(&mut cpus, root, &self.numa_nodes);
        let processes = self.processes.read(root, buffer);
        let refused = self.processes.refused();
        if refused > 0 {
            unseen.push(format!(
                "the disk traffic of {refused} process(es) (needs root or CAP_SYS_PTRACE)"
            ));
        }
        HostReading {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
