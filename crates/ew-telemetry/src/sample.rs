//! Raw counters at one instant, as agents send them.

use crate::busiest::BusiestCpus;
use crate::cost::Meter;
use crate::file::FileBuffer;
use crate::frequency::FrequencyReader;
use crate::interrupts::InterruptReader;
use crate::network::NetworkReader;
use crate::own::OwnConnections;
use crate::paced::Paced;
use crate::traffic::{Traffic, TrafficReader};
use crate::{cgroup, conntrack, cpu, disks, memory, pressure, protocols};
use ew_model::facts::HostSample;
use ew_model::telemetry::{
    CauseCounters, CpuReading, InterfaceReading, InterruptCounters, SoftnetCounters,
};
use std::path::{Path, PathBuf};

/// Samples one host, for the network namespace of the thread that made it. Cheap enough to stay
/// during a measurement: links are not asked for, and sockets, interrupts and frequencies are read
/// as seldom as their cost asks.
#[derive(Debug)]
pub struct Sampler {
    root: PathBuf,
    buffer: FileBuffer,
    network: NetworkReader,
    traffic_reader: TrafficReader,
    traffic: Paced<Traffic>,
    interrupt_reader: InterruptReader,
    interrupts: Paced<Vec<InterruptCounters>>,
    frequencies: FrequencyReader,
    busiest: BusiestCpus,
}

impl Sampler {
    /// `root` is `/` on a real host; `own`: which connections are the run's.
    #[must_use]
    pub fn new(root: &Path, own: OwnConnections) -> Self {
        Self {
            root: root.to_owned(),
            buffer: FileBuffer::default(),
            network: NetworkReader::of_counters(),
            traffic_reader: TrafficReader::new(own),
            traffic: Paced::default(),
            interrupt_reader: InterruptReader::default(),
            interrupts: Paced::default(),
            frequencies: FrequencyReader::default(),
            busiest: BusiestCpus::default(),
        }
    }

    /// Reads the host's counters. `now_ns` and `late_ns` are recorded as given: the caller's
    /// monotonic clock, and how far it was behind its schedule.
    pub fn sample(&mut self, now_ns: u64, late_ns: u64) -> HostSample {
        let meter = Meter::start();
        let (root, buffer) = (self.root.as_path(), &mut self.buffer);
        let cpus = cpu::cpus(root, buffer);
        let interfaces = self.network.interfaces(root, buffer);
        let interfaces: Vec<InterfaceReading> = interfaces
            .into_iter()
            .filter(|interface| interface.counters.name != "lo")
            .collect();
        let causes = self.causes(now_ns, &cpus, &interfaces);
        let mut sample = HostSample {
            agent_ns: now_ns,
            late_ns,
            cpus: cpus.into_iter().map(|cpu| cpu.times).collect(),
            all_cpus: None,
            interfaces: interfaces.into_iter().map(|i| i.counters).collect(),
            causes: Some(Box::new(causes)),
            cost: None,
        };
        self.busiest.keep(&mut sample);
        sample.cost = Some(meter.cost());
        sample
    }

    /// Segments that TCP connections other than the run's sent since the first sample, and
    /// retransmissions among them, as of the last sample. `None` when sockets cannot be listed.
    #[must_use]
    pub fn others_segments(&self) -> Option<(u64, u64)> {
        let traffic = self.traffic.last();
        traffic.read_ns?;
        Some((traffic.others.sent, traffic.others.retransmitted))
    }

    fn causes(
        &mut self,
        now_ns: u64,
        cpus: &[CpuReading],
        interfaces: &[InterfaceReading],
    ) -> CauseCounters {
        let (root, buffer) = (self.root.as_path(), &mut self.buffer);
        let protocols = protocols::protocols(root, buffer);
        let traffic = &mut self.traffic_reader;
        let traffic = self.traffic.latest(now_ns, || traffic.read(root, buffer));
        let interrupts = &mut self.interrupt_reader;
        let interrupts = self
            .interrupts
            .latest(now_ns, || interrupts.read(root, buffer));
        CauseCounters {
            softnet: softnet(cpus),
            all_softnet: None,
            qdiscs: self.network.qdiscs(),
            driver_counters: driver_counters(interfaces),
            protocols,
            memory: memory::memory(root, buffer),
            disks: disks::disks(root, buffer),
            pressure: pressure::pressure(root, buffer),
            cgroup: cgroup::cgroup(root, buffer),
            conntrack: conntrack::conntrack(root, buffer),
            interrupts,
            traffic: traffic.processes,
            traffic_ns: traffic.read_ns,
            unseen: traffic.unseen,
            // Last, because the kernel may take its time.
            frequencies_hz: self.frequencies.latest_hz(root, buffer, cpus),
        }
    }
}

fn softnet(cpus: &[CpuReading]) -> Vec<(u32, SoftnetCounters)> {
    let pairs = cpus.iter().map(|cpu| (cpu.times.cpu, cpu.softnet));
    pairs
        .filter_map(|(cpu, softnet)| Some((cpu, softnet?)))
        .collect()
}

fn driver_counters(interfaces: &[InterfaceReading]) -> Vec<(String, String, u64)> {
    let mut counters = Vec::new();
    for interface in interfaces {
        let moved = interface
            .driver_counters
            .iter()
            .filter(|(_, count)| *count > 0);
        let name = &interface.counters.name;
        counters.extend(moved.map(|(counter, count)| (name.clone(), counter.clone(), *count)));
    }
    counters
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A recorded tree.
    pub(crate) fn recorded(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(name)
    }

    fn sampler(root: impl AsRef<Path>) -> Sampler {
        Sampler::new(root.as_ref(), OwnConnections::default())
    }

    #[test]
    fn a_recorded_host() {
        let sample = sampler(recorded("host")).sample(5, 6);
        assert_eq!((sample.agent_ns, sample.late_ns), (5, 6));
        // CPU 2 is offline.
        let cpus: Vec<_> = sample.cpus.iter().map(|c| c.cpu).collect();
        assert_eq!(cpus, [0, 1, 3]);
        assert_eq!(sample.cpus[1].softirq_ticks, Some(90_731));
        let names: Vec<_> = sample.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["eth0", "bond0.12"]);
        assert_eq!(sample.interfaces[0].rx_bytes, 18_446_744_073_709);
        assert_eq!(sample.interfaces[1].tx_drops, 7);
    }

    #[test]
    fn the_threads_own_network_goes_first() {
        let sample = sampler(recorded("thread")).sample(0, 0);
        let names: Vec<_> = sample.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["inside0"]);
    }

    #[test]
    fn an_empty_tree_has_no_counters() {
        let sample = sampler(recorded("nothing-here")).sample(0, 0);
        assert!(sample.cpus.is_empty() && sample.interfaces.is_empty());
        let causes = sample.causes.unwrap();
        assert!(causes.softnet.is_empty() && causes.disks.is_empty());
    }

    #[test]
    fn this_host_has_counters() {
        let sample = sampler(Path::new("/")).sample(0, 0);
        let causes = sample.causes.unwrap();
        assert!(!sample.cpus.is_empty() && !causes.softnet.is_empty());
        assert!(causes.protocols.tcp_retransmitted_segments.is_some());
    }

    #[test]
    fn a_sample_carries_what_tells_causes() {
        let causes = sampler(recorded("linux-6.12")).sample(0, 0).causes.unwrap();
        assert_eq!(causes.softnet[1].0, 2);
        assert_eq!(causes.protocols.listen_drops, Some(17));
        assert_eq!(causes.cgroup.cpu_throttled_periods, Some(200));
        assert!(causes.pressure.io.is_some() && causes.memory.total_bytes.is_some());
        assert_eq!(causes.disks.len(), 2);
        assert_eq!(causes.frequencies_hz[1], (2, 2_400_000_000));
        assert_eq!(causes.conntrack.unwrap().dropped, 3);
    }
}
