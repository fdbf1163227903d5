//! A link came up slower than its peers' or than configured, at half duplex, or is shaped to less.

use super::case::Case;
use super::peers::compared;
use super::side_rates::side_rates;
use super::suspect::Suspect;
use crate::finding::{bit_rate, finding_of};
use ew_evidence::basis::{data_interface, most_common, shaper};
use ew_evidence::criteria::{LEAST_FILL, NEGLIGIBLE};
use ew_fit::Side;
use ew_model::HostId;
use ew_model::finding::details::{HalfDuplex, LowLinkSpeed, Shaper, Why};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    hosts.filter_map(|host| finding(case, host)).collect()
}

/// What slows a link whose reported speed is that of its peers.
pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    half_duplex(case, suspect.host).or_else(|| shaped(case, suspect))
}

fn half_duplex(case: &Case<'_>, host: HostId) -> Option<Why> {
    let interface = data_interface(case.observations.run, host)?;
    if interface.duplex.as_deref() != Some("half") {
        return None;
    }
    Some(Why::HalfDuplex(HalfDuplex {
        host,
        interface: interface.name.clone(),
    }))
}

/// A queueing discipline of the host's own lets less pass than its peers'.
fn shaped(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let host = suspect.host;
    let rate = compared(case, host, |host| {
        Some(shaper(case.observations.run, host)?.0)
    })?;
    let typical = rate.peers.or(case.reference.basis.nic_bits_per_sec)?;
    let sends = case.network.slow.get(&Side::Tx(host))?.rate.value;
    let is_it = rate.own < (1.0 - NEGLIGIBLE) * typical
        && sends >= LEAST_FILL * rate.own * case.reference.basis.efficiency;
    if !suspect.tx || !is_it {
        return None;
    }
    let (own, kind) = shaper(case.observations.run, host)?;
    Some(Why::Shaper(Shaper {
        host,
        interface: data_interface(case.observations.run, host)?.name.clone(),
        discipline: kind.to_owned(),
        bits_per_sec: own,
        peers_bits_per_sec: typical,
    }))
}

/// Whether the link speed alone accounts for a slow host, so that no other rule needs to name it.
pub(super) fn explains(case: &Case<'_>, host: HostId) -> bool {
    let Some((speed, _)) = lower_speed(case, host) else {
        return false;
    };
    let own = LEAST_FILL * speed * case.reference.basis.efficiency;
    let slow = &case.network.slow;
    [Side::Tx(host), Side::Rx(host)]
        .iter()
        .filter_map(|side| slow.get(side))
        .all(|side| side.rate.value >= own)
}

/// The host's link speed and what it should be, when it is lower.
fn lower_speed(case: &Case<'_>, host: HostId) -> Option<(f64, f64)> {
    let run = case.observations.run;
    let speed_of = |host| {
        data_interface(run, host)?
            .speed_bits_per_sec
            .filter(|speed: &f64| *speed > 0.0)
    };
    // A NIC class of its own is no fault: a host is compared with the hosts of its class.
    let classes = case.network.classes.iter().map(|(_, hosts)| hosts);
    let own = classes
        .filter(|hosts| hosts.contains(&host))
        .flatten()
        .copied();
    let own: Vec<HostId> = own.collect();
    let peers = if own.is_empty() {
        run.manifest.inventory.host_ids().collect()
    } else {
        own
    };
    let speeds = peers.into_iter().filter_map(speed_of);
    let typical = most_common(speeds.map(|speed| speed.round() as u64)).map(|speed| speed as f64);
    let wanted = run.plan.expect.nic_bits_per_sec.or(typical)?;
    let speed = speed_of(host)?;
    let hosts = run.manifest.inventory.host_ids();
    let alike = hosts
        .filter_map(speed_of)
        .filter(|other| (other / speed - 1.0).abs() < NEGLIGIBLE);
    let is_class = run.plan.expect.nic_bits_per_sec.is_none()
        && ew_fit::is_class(alike.count(), run.manifest.inventory.hosts.len());
    (speed < (1.0 - NEGLIGIBLE) * wanted && !is_class).then_some((speed, wanted))
}

fn finding(case: &Case<'_>, host: HostId) -> Option<Finding> {
    let (speed, wanted) = lower_speed(case, host)?;
    let run = case.observations.run;
    let interface = data_interface(run, host)?;
    let rate = |side| Some(case.network.slow.get(&side)?.rate.value);
    Some(Finding {
        measured: bit_rate(speed),
        expected: bit_rate(wanted),
        ..finding_of(
            Severity::Fault,
            Subject::Host { host },
            Cause::LinkSpeed,
            Details::LowLinkSpeed(LowLinkSpeed {
                host,
                interface: interface.name.clone(),
                bits_per_sec: speed,
                duplex: interface.duplex.clone(),
                expected_bits_per_sec: wanted,
                is_configured: run.plan.expect.nic_bits_per_sec.is_some(),
                tx_bits_per_sec: rate(Side::Tx(host)),
                rx_bits_per_sec: rate(Side::Rx(host)),
                flows: side_rates(case, host),
            }),
        )
    })
}
