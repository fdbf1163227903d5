//! Hosts have a faster network than the measured one, and it lay idle: another one may be meant.

use super::case::Case;
use crate::finding::{bit_rate, finding_of};
use ew_evidence::basis::data_interface;
use ew_evidence::criteria::NEGLIGIBLE;
use ew_model::HostId;
use ew_model::facts::{HostSample, InterfaceFacts};
use ew_model::finding::details::{FasterNetwork, InterfaceRate};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::network::faster_interface;

/// Kinds of virtual links that represent ports of NICs; others report any speed.
const OF_PORTS: [&str; 3] = ["bond", "team", "vlan"];

/// A host's two interfaces.
struct Found {
    host: HostId,
    measured: InterfaceFacts,
    faster: InterfaceFacts,
}

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let all: Vec<Found> = hosts.filter_map(|host| found(case, host)).collect();
    let first = all.first()?;
    let (measured, faster) = (rate(&first.measured)?, rate(&first.faster)?);
    Some(Finding {
        measured: bit_rate(measured.bits_per_sec),
        expected: bit_rate(faster.bits_per_sec),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            Cause::FasterNetwork,
            Details::FasterNetwork(FasterNetwork {
                hosts: all.iter().map(|found| found.host).collect(),
                measured,
                faster,
                idle_share: NEGLIGIBLE,
            }),
        )
    })
}

/// `None` where its speed is not known, and then it is neither faster nor slower.
fn rate(interface: &InterfaceFacts) -> Option<InterfaceRate> {
    Some(InterfaceRate {
        interface: interface.name.clone(),
        bits_per_sec: interface.speed_bits_per_sec?,
    })
}

fn found(case: &Case<'_>, host: HostId) -> Option<Found> {
    let run = case.observations.run;
    let samples = case.telemetry.samples(host);
    let with_speed = |interface: &InterfaceFacts| InterfaceFacts {
        speed_bits_per_sec: speed(interface, samples),
        ..interface.clone()
    };
    let measured = with_speed(data_interface(run, host)?);
    let interfaces: Vec<InterfaceFacts> = run
        .facts
        .get(&host)?
        .interfaces
        .iter()
        .map(with_speed)
        .collect();
    let faster = faster_interface(&interfaces, &measured)?.clone();
    is_idle(&faster, samples).then_some(Found {
        host,
        measured,
        faster,
    })
}

/// What it lets pass: its shaper's rate, else what a link that is not only virtual reports.
fn speed(interface: &InterfaceFacts, samples: &[HostSample]) -> Option<f64> {
    let causes = samples.last().and_then(|sample| sample.causes.as_ref());
    let mut qdiscs = causes.iter().flat_map(|causes| &causes.qdiscs);
    let root = qdiscs.find(|qdisc| qdisc.root && qdisc.interface == interface.name);
    let shaped = root.and_then(|root| root.rate_bytes_per_sec);
    let kind = interface.kind.as_deref();
    let has_ports = kind.is_none_or(|kind| OF_PORTS.contains(&kind));
    let reported = interface.speed_bits_per_sec.filter(|_| has_ports);
    shaped.map(|rate| rate as f64 * 8.0).or(reported)
}

fn is_idle(interface: &InterfaceFacts, samples: &[HostSample]) -> bool {
    let bytes = |sample: &HostSample| {
        let mut interfaces = sample.interfaces.iter();
        let own = interfaces.find(|own| own.name == interface.name)?;
        Some(own.rx_bytes + own.tx_bytes)
    };
    let ends = samples.first().zip(samples.last());
    let Some((first, last)) = ends.filter(|(first, last)| first.agent_ns < last.agent_ns) else {
        return false;
    };
    let (Some(before), Some(after), Some(speed)) =
        (bytes(first), bytes(last), interface.speed_bits_per_sec)
    else {
        return false;
    };
    let seconds = (last.agent_ns - first.agent_ns) as f64 / 1e9;
    after.saturating_sub(before) as f64 * 8.0 / seconds < NEGLIGIBLE * speed
}
