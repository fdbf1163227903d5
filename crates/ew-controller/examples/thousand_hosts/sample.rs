//! Counters of a host with many CPUs: this machine's own reading, widened, and growing as under
//! load.

use ew_model::facts::{CpuCounters, HostSample, InterfaceCounters};
use ew_model::telemetry::{
    CauseCounters, InterruptCounters, PeerTraffic, PortTraffic, ProcessTraffic, ServicePort,
    SoftnetCounters,
};
use ew_telemetry::{BusiestCpus, OwnConnections, Sampler};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// CPUs that a flow's threads and its packets keep busy.
const BUSY_CPUS: usize = 4;
/// Queues of the NIC.
const QUEUES: u32 = 32;
const PEERS: u8 = 8;
/// What a busy link moves in a second.
const BYTES: u64 = 2_900_000_000;
const PACKETS: u64 = BYTES / 1448;

/// Counters of one host, at the last sample.
pub(crate) struct Counters {
    last: HostSample,
    taken: u64,
    busiest: BusiestCpus,
}

/// What this machine reports besides what is widened. Read once, since a reading looks at all
/// processes: the thousand hosts, too.
pub(crate) fn read() -> HostSample {
    let mut read = Sampler::new(Path::new("/"), OwnConnections::default()).sample(0, 0);
    read.cpus.clear();
    read.all_cpus = None;
    if let Some(causes) = &mut read.causes {
        causes.softnet.clear();
        causes.all_softnet = None;
        causes.interrupts.clear();
        causes.traffic.clear();
    }
    read
}

impl Counters {
    /// Of a host with so many CPUs, and else what was [`read`].
    pub(crate) fn new(cpus: u32, read: HostSample) -> Self {
        let mut last = read;
        last.cpus = (0..cpus).map(cpu).collect();
        last.interfaces = ["eth0", "eth1", "bond0"].map(interface).into();
        let causes = last.causes.get_or_insert_default();
        causes.softnet = (0..cpus).map(|cpu| (cpu, softnet())).collect();
        causes.interrupts = (0..QUEUES).map(|queue| interrupt(queue, cpus)).collect();
        causes.traffic = vec![traffic()];
        Self {
            last,
            taken: 0,
            busiest: BusiestCpus::default(),
        }
    }

    /// A second later, by the agent's clock at this time.
    pub(crate) fn sample(&mut self, agent_ns: u64) -> HostSample {
        self.taken += 1;
        self.last.agent_ns = agent_ns;
        for (number, cpu) in self.last.cpus.iter_mut().enumerate() {
            let busy = if number < BUSY_CPUS {
                60
            } else {
                self.taken.is_multiple_of(7).into()
            };
            cpu.system_ticks += busy / 2;
            *cpu.softirq_ticks.get_or_insert(0) += busy - busy / 2;
            cpu.idle_ticks += 100 - busy;
        }
        for interface in &mut self.last.interfaces {
            interface.rx_bytes += BYTES;
            interface.tx_bytes += BYTES;
            interface.rx_packets += PACKETS;
            interface.tx_packets += PACKETS;
        }
        if let Some(causes) = &mut self.last.causes {
            grow(causes, agent_ns, self.taken);
        }
        let mut sample = self.last.clone();
        self.busiest.keep(&mut sample);
        sample
    }
}

fn grow(causes: &mut CauseCounters, agent_ns: u64, taken: u64) {
    for (number, (_, softnet)) in causes.softnet.iter_mut().enumerate() {
        let share = if number < BUSY_CPUS { 4 } else { 4000 };
        softnet.processed = softnet.processed.wrapping_add(PACKETS as u32 / share);
    }
    let protocols = &mut causes.protocols;
    for counter in [
        &mut protocols.tcp_out_segments,
        &mut protocols.tcp_in_segments,
    ] {
        *counter.get_or_insert(0) += PACKETS;
    }
    for (number, interrupt) in causes.interrupts.iter_mut().enumerate() {
        for (_, count) in &mut interrupt.per_cpu {
            *count += 20_000 + number as u64;
        }
    }
    // Read every few seconds where there are many sockets.
    if taken % 3 == 1 {
        causes.traffic_ns = Some(agent_ns);
        for process in &mut causes.traffic {
            process.sent_bytes += 3 * BYTES;
            process.received_bytes += 3 * BYTES;
            for peer in &mut process.peers {
                peer.sent_bytes += BYTES / 3;
                peer.received_bytes += BYTES / 3;
            }
        }
    }
}

fn cpu(cpu: u32) -> CpuCounters {
    CpuCounters {
        cpu,
        user_ticks: 1_234_567 + u64::from(cpu),
        nice_ticks: 12,
        system_ticks: 345_678,
        idle_ticks: 987_654_321,
        iowait_ticks: Some(1234),
        irq_ticks: Some(0),
        softirq_ticks: Some(56_789),
        steal_ticks: Some(0),
        guest_ticks: Some(0),
        guest_nice_ticks: Some(0),
    }
}

fn softnet() -> SoftnetCounters {
    SoftnetCounters {
        processed: 123_456_789,
        received_rps: Some(0),
        flow_limited: Some(0),
        backlog: Some(0),
        ..SoftnetCounters::default()
    }
}

fn interface(name: &str) -> InterfaceCounters {
    InterfaceCounters {
        name: name.to_owned(),
        rx_bytes: 1 << 45,
        rx_packets: 1 << 35,
        rx_fifo_errors: Some(0),
        tx_bytes: 1 << 45,
        tx_packets: 1 << 35,
        ..InterfaceCounters::default()
    }
}

fn interrupt(queue: u32, cpus: u32) -> InterruptCounters {
    InterruptCounters {
        interrupt: 200 + queue,
        name: format!("mlx5_comp{queue}@pci:0000:17:00.0"),
        per_cpu: vec![(queue % cpus, 1_000_000)],
    }
}

fn traffic() -> ProcessTraffic {
    let peer = |number: u8| PeerTraffic {
        address: IpAddr::V4(Ipv4Addr::new(10, 0, 1, number)),
        sent_bytes: 0,
        received_bytes: 0,
    };
    let service = ServicePort {
        port: 5401,
        served_here: true,
    };
    ProcessTraffic {
        pid: Some(4711),
        command: "eastwest".into(),
        is_ours: true,
        peers: (0..PEERS).map(peer).collect(),
        ports: vec![PortTraffic {
            service,
            sent_bytes: 0,
            received_bytes: 0,
        }],
        ..ProcessTraffic::default()
    }
}
