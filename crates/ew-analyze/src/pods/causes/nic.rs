//! The node's own NIC, which pods and node share.

use super::case::{Case, of_unknown_share};
use ew_evidence::telemetry::Cover;
use ew_model::HostId;
use ew_model::facts::{HostSample, InterfaceCounters};
use ew_model::pods::{NodeNic, PodCause, PodCauseFacts};

/// Fewer drops and errors of a NIC are everyday life.
const MIN_DROPS_PER_SEC: f64 = 10.0;
/// Of its link's speed, in a reading with short pauses in it.
const FULL: f64 = 0.95;

/// A node's NIC that drops more with pods than without, or whose link is full with less payload.
pub(super) fn node_nic(case: &Case<'_, '_, '_>) -> Option<PodCause> {
    let agents = Case::agents(case.found.stage).into_iter();
    let mut nics: Vec<Nic> = agents.filter_map(|pod| Nic::of(case, pod)).collect();
    nics.sort_by(|a, b| b.drops_per_sec.total_cmp(&a.drops_per_sec));
    let dropping = nics.iter().find(|nic| nic.drops_more());
    let nic = dropping.or_else(|| nics.iter().find(|nic| nic.is_full()))?;
    let found = PodCauseFacts::NodeNic(NodeNic {
        host: nic.node,
        interface: nic.name.clone(),
        bits_per_sec: nic.bits_per_sec,
        drops_per_sec: nic.drops_per_sec,
        baseline_drops_per_sec: nic.baseline_drops_per_sec,
        is_dropping: dropping.is_some(),
    });
    Some(of_unknown_share(found))
}

/// A node's interface while pods of it take part.
struct Nic {
    node: HostId,
    name: String,
    speed_bits_per_sec: Option<f64>,
    drops_per_sec: f64,
    baseline_drops_per_sec: f64,
    /// The busier direction.
    bits_per_sec: f64,
}

impl Nic {
    fn of(case: &Case<'_, '_, '_>, pod: HostId) -> Option<Self> {
        let node = case.node_of(pod)?;
        let interface = case.interface(node)?;
        let name = interface.name.clone();
        let (with, without) = (case.found.index, case.found.baseline_index);
        let with = case
            .telemetry
            .cover_beside(node, pod, |index| index == with)?;
        let without = case.telemetry.cover(node, |index| index == without)?;
        let rate = |cover: &Cover<'_>, counter: fn(&InterfaceCounters) -> u64| {
            cover.per_second(|sample: &HostSample| {
                let mut interfaces = sample.interfaces.iter();
                interfaces.find(|i| i.name == name).map(counter)
            })
        };
        let drops = |i: &InterfaceCounters| {
            let received = i.rx_drops + i.rx_errors + i.rx_fifo_errors.unwrap_or(0);
            received + i.tx_drops + i.tx_errors
        };
        let received = rate(&with, |i| i.rx_bytes)?;
        let sent = rate(&with, |i| i.tx_bytes)?;
        Some(Self {
            node,
            speed_bits_per_sec: interface.speed_bits_per_sec,
            drops_per_sec: rate(&with, drops)?,
            baseline_drops_per_sec: rate(&without, drops)?,
            bits_per_sec: 8.0 * received.max(sent),
            name,
        })
    }

    fn drops_more(&self) -> bool {
        self.drops_per_sec >= MIN_DROPS_PER_SEC
            && self.drops_per_sec >= 2.0 * self.baseline_drops_per_sec
    }

    fn is_full(&self) -> bool {
        let speed = self.speed_bits_per_sec.filter(|speed| *speed > 0.0);
        speed.is_some_and(|speed| self.bits_per_sec >= FULL * speed)
    }
}
