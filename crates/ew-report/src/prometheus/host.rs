//! What the events report about one host.

use super::busiest::Busiest;
use crate::words::{host_name, one_line};
use ew_model::facts::{HostSample, InterfaceCounters};
use ew_model::telemetry::CauseCounters;
use ew_model::{FlowRecord, HostFacts, HostId, Inventory, RunEvent};
use std::net::IpAddr;

/// Whether a host takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Launching,
    Up,
    Failed,
    Lost,
}

/// One host's series.
#[derive(Debug)]
pub(super) struct HostSeries {
    pub(super) name: String,
    /// Empty without racks.
    pub(super) rack: String,
    address: Option<IpAddr>,
    pub(super) state: State,
    pub(super) launch_ns: Option<u64>,
    pub(super) clock_error_ns: Option<u64>,
    pub(super) rejected_connections: Option<u64>,
    /// The interface that carries the host's address.
    pub(super) device: Option<String>,
    pub(super) sample: Option<HostSample>,
    /// When the last sample came, wall clock.
    pub(super) sampled_unix_ns: Option<u64>,
    pub(super) samples: u64,
    pub(super) sampling_cpu_ns: u64,
    pub(super) busiest: Busiest,
    pub(super) sent: Flows,
    pub(super) received: Flows,
}

/// The measured flows that a host sent, or those it received.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Inside the windows, by the receivers' count.
    pub(super) bytes: u64,
    /// All windows in which it had such flows.
    pub(super) window_ns: u64,
    /// Of the sending end.
    pub(super) retransmits: u64,
    /// In the last round with such flows.
    pub(super) bits_per_sec: Option<f64>,
}

impl State {
    pub(super) const ALL: [Self; 4] = [Self::Launching, Self::Up, Self::Failed, Self::Lost];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::Up => "up",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

/// The host an event is about, where it is about one.
pub(super) fn subject(event: &RunEvent) -> Option<HostId> {
    match event {
        RunEvent::HostUp { host, .. }
        | RunEvent::HostFailed { host, .. }
        | RunEvent::HostLost { host, .. }
        | RunEvent::HostReturned { host }
        | RunEvent::HostSampled { host, .. }
        | RunEvent::ClockSynced { host, .. }
        | RunEvent::ConnectionsRejected { host, .. } => Some(*host),
        _ => None,
    }
}

impl HostSeries {
    pub(super) fn new(inventory: &Inventory, host: HostId) -> Self {
        let rack = inventory.rack_of(host);
        Self {
            name: host_name(inventory, host),
            rack: rack.map_or_else(String::new, |rack| one_line(inventory.rack_name(rack))),
            address: inventory.host(host).address,
            state: State::Launching,
            launch_ns: None,
            clock_error_ns: None,
            rejected_connections: None,
            device: None,
            sample: None,
            sampled_unix_ns: None,
            samples: 0,
            sampling_cpu_ns: 0,
            busiest: Busiest::default(),
            sent: Flows::default(),
            received: Flows::default(),
        }
    }

    /// An event about this host; see [`subject`].
    pub(super) fn take(&mut self, unix_ns: u64, event: &RunEvent) {
        match event {
            RunEvent::HostUp {
                facts,
                launch_ns,
                address,
                ..
            } => {
                self.address = address.or(self.address);
                self.state = State::Up;
                self.launch_ns = Some(*launch_ns);
                self.device = self.device_of(facts);
            }
            RunEvent::HostFailed { .. } => self.state = State::Failed,
            RunEvent::HostLost { .. } => self.state = State::Lost,
            RunEvent::HostReturned { .. } => self.state = State::Up,
            RunEvent::ClockSynced { error_ns, .. } => self.clock_error_ns = Some(*error_ns),
            RunEvent::ConnectionsRejected { count, .. } => self.rejected_connections = Some(*count),
            RunEvent::HostSampled { sample, .. } => self.take_sample(unix_ns, sample),
            _ => {}
        }
    }

    /// A round's records, those of other hosts among them.
    pub(super) fn take_round(&mut self, host: HostId, records: &[FlowRecord]) {
        self.sent.take(records, |record| record.src == host);
        self.received.take(records, |record| record.dst == host);
    }

    pub(super) fn causes(&self) -> Option<&CauseCounters> {
        self.sample.as_ref()?.causes.as_deref()
    }

    /// Counters of the interface that carries the host's address.
    pub(super) fn interface(&self) -> Option<&InterfaceCounters> {
        let device = self.device.as_ref()?;
        let mut all = self.sample.as_ref()?.interfaces.iter();
        all.find(|interface| interface.name == *device)
    }

    fn device_of(&self, facts: &HostFacts) -> Option<String> {
        Some(facts.interface_with(self.address?)?.name.clone())
    }

    fn take_sample(&mut self, unix_ns: u64, sample: &HostSample) {
        self.samples += 1;
        self.sampling_cpu_ns += sample.cost.map_or(0, |cost| cost.cpu_ns);
        self.busiest.take(sample);
        self.sampled_unix_ns = Some(unix_ns);
        self.sample = Some(sample.clone());
    }
}

impl Flows {
    fn take(&mut self, records: &[FlowRecord], is_ours: impl Fn(&FlowRecord) -> bool) {
        let (mut window_ns, mut rate) = (0, None);
        for record in records.iter().filter(|record| is_ours(record)) {
            let (Some(bits_per_sec), Some(receiver)) = (record.bits_per_sec(), &record.receiver)
            else {
                continue;
            };
            self.bytes += receiver.bytes;
            self.retransmits += record.retransmits().unwrap_or(0);
            window_ns = window_ns.max(receiver.window_ns);
            rate = Some(rate.unwrap_or(0.0) + bits_per_sec);
        }
        self.window_ns += window_ns;
        self.bits_per_sec = rate.or(self.bits_per_sec);
    }
}
