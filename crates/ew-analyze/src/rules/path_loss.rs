//! Packets are lost on a host's link, or on the way between racks.

use super::case::Case;
use super::side_rates::peers_rate;
use super::suspect::Suspect;
use crate::finding::{finding_of, plain};
use ew_evidence::basis::data_interface;
use ew_evidence::criteria::{LEAST_FILL, LOSSY, MIN_SEEN, TIMES_TYPICAL};
use ew_evidence::telemetry::Cover;
use ew_fit::{RackDirection, Side, are_unhindered, is_scattered};
use ew_model::finding::details::{
    CountedLoss, Directions, LossOnLink, LossyRack, LossyUplinks, Why,
};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::workload::{StreamCount, Workload};
use ew_model::{HostId, RackId};
use ew_stats::median;
use std::collections::BTreeMap;

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let host = suspect.host;
    let tx = side_loss(case, Side::Tx(host)).filter(|_| suspect.tx);
    let rx = side_loss(case, Side::Rx(host)).filter(|_| suspect.rx);
    tx.or(rx)?;
    Some(Why::LossOnLink(LossOnLink {
        host,
        tx_share: tx,
        rx_share: rx,
        typical_share: case.network.typical_loss,
        counted: counted_at(case, host),
    }))
}

/// Racks whose uplinks lose packets at random, those that do in the same directions together: a
/// spine, or a pod's links, may be what they share. Of two racks the same flows cross both's.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let racks = (0..).map(RackId).zip(&case.network.racks);
    let lost = |direction: &RackDirection| direction.lost_shares.clone();
    let losing = racks.map(|(rack, directions)| (rack, directions.each_ref().map(lost)));
    let losing: Vec<(RackId, [Vec<f64>; 2])> = losing.collect();
    if let [(first, [out, into]), (second, [out_of_other, into_other])] = losing.as_slice() {
        let both_ends = [
            [out.as_slice(), into_other].concat(),
            [into.as_slice(), out_of_other].concat(),
        ];
        let lossy = of_rack(*first, &both_ends).into_iter();
        return lossy
            .map(|(directions, rack)| finding(case, directions, vec![rack], Some(*second)))
            .collect();
    }
    let mut alike: BTreeMap<Directions, Vec<LossyRack>> = BTreeMap::new();
    for (directions, lossy) in losing
        .iter()
        .filter_map(|(rack, lost)| of_rack(*rack, lost))
    {
        alike.entry(directions).or_default().push(lossy);
    }
    let alike = alike.into_iter();
    alike
        .map(|(directions, racks)| finding(case, directions, racks, None))
        .collect()
}

/// Median over peers of the share of segments retransmitted, where it stands out, and the share of
/// flows that are steady.
fn stands_out(case: &Case<'_>, side: Side, min: f64) -> Option<(f64, f64)> {
    let mut of_peers: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    let (mut flows, mut steady) = (0.0, 0.0);
    // Cross-rack, queues of the fabric lose, too.
    let intra = case.network.isolated.iter().filter(|flow| !flow.crosses);
    for flow in intra.filter(|flow| flow.is_of(side)) {
        let peer = if matches!(side, Side::Tx(_)) {
            flow.dst
        } else {
            flow.src
        };
        of_peers
            .entry(peer)
            .or_default()
            .extend(flow.retransmitted_share);
        flows += 1.0;
        steady += f64::from(u8::from(flow.is_steady));
    }
    let shares: Vec<f64> = of_peers
        .values()
        .filter_map(|shares| median(shares))
        .collect();
    let share = median(&shares).filter(|_| shares.len() > 1)?;
    (share > min.max(TIMES_TYPICAL * case.network.typical_loss)).then_some((share, steady / flows))
}

/// A slow side that loses at random: a full one loses, too, but its rate is steady, and hardly
/// depends on the number of connections.
fn side_loss(case: &Case<'_>, side: Side) -> Option<f64> {
    let slow = case.network.slow.get(&side)?;
    let (share, steady) = stands_out(case, side, LOSSY)?;
    let own = case.network.isolated.iter().filter(|flow| flow.is_of(side));
    let rates: Vec<f64> = own.map(|flow| flow.bits_per_sec).collect();
    let is_random = steady < 0.5 && is_scattered(&rates)
        || is_left_by_one(case, side.host())
        || case.network.lossy_sides.contains(&side);
    (slow.lossy || is_random).then_some(share)
}

/// Whether single connections, on a host's slow sides, leave more of what several reach than they
/// leave of what is full. On fast links loss makes TCP swing many times in an interval, and rates
/// are steady.
fn is_left_by_one(case: &Case<'_>, host: HostId) -> bool {
    let is_slow = |side: &Side| case.network.slow.contains_key(side);
    let slow: Vec<Side> = [Side::Tx(host), Side::Rx(host)]
        .into_iter()
        .filter(is_slow)
        .collect();
    let median_of = |is_meant: fn(&Workload) -> bool| {
        let isolated = case.network.isolated.iter();
        let own = isolated.filter(|flow| slow.iter().any(|side| flow.is_of(*side)));
        let own = own.filter(|flow| {
            let workload = &case.observations.stages[flow.stage].stage.workload;
            workload.stream_count != StreamCount::Doubling && is_meant(workload)
        });
        let rates: Vec<f64> = own.map(|flow| flow.bits_per_sec).collect();
        median(&rates).filter(|_| rates.len() >= MIN_SEEN)
    };
    let one = median_of(|workload| workload.streams == 1);
    let several = median_of(|workload| workload.streams > 1);
    one.zip(several)
        .is_some_and(|(one, several)| one < LEAST_FILL * several)
}

/// Whether a host's link loses at random, which flows that fill it prove, whatever is left of their
/// rates.
pub(super) fn is_proven(case: &Case<'_>, host: HostId) -> bool {
    [Side::Tx(host), Side::Rx(host)].into_iter().any(|side| {
        let is_lossy = case.network.slow.get(&side).is_some_and(|slow| slow.lossy);
        let own = case.network.isolated.iter().filter(|flow| flow.is_of(side));
        let shares = own.filter_map(|flow| {
            let link = peers_rate(case, flow.src)?.value;
            Some((flow.bits_per_sec / link, flow.retransmitted_share?))
        });
        is_lossy && are_unhindered(shares, case.network.typical_loss, case.network.scatter)
    })
}

fn of_rack(rack: RackId, lost: &[Vec<f64>; 2]) -> Option<(Directions, LossyRack)> {
    let directions = Directions::of(!lost[0].is_empty(), !lost[1].is_empty())?;
    let shares = lost.concat();
    let lossy = LossyRack {
        rack,
        retransmitted_share: median(&shares)?,
        flows: shares.len(),
    };
    Some((directions, lossy))
}

fn finding(
    case: &Case<'_>,
    directions: Directions,
    racks: Vec<LossyRack>,
    or_rack: Option<RackId>,
) -> Finding {
    let shares: Vec<f64> = racks
        .iter()
        .map(|lossy| lossy.retransmitted_share)
        .collect();
    Finding {
        measured: plain(median(&shares).unwrap_or_default(), "share"),
        expected: plain(case.network.typical_loss, "share"),
        ..finding_of(
            Severity::Fault,
            match (racks.as_slice(), or_rack) {
                ([LossyRack { rack: from, .. }], Some(to)) => Subject::RackPair { from: *from, to },
                ([LossyRack { rack, .. }], None) => Subject::Rack { rack: *rack },
                _ => Subject::Run,
            },
            Cause::Loss,
            Details::LossyUplinks(LossyUplinks {
                racks,
                or_rack,
                directions,
                typical_share: case.network.typical_loss,
            }),
        )
    }
}

/// What the host's own counters saw of it: errors and drops of its interface and queueing
/// disciplines.
fn counted_at(case: &Case<'_>, host: HostId) -> Option<CountedLoss> {
    let interface = data_interface(case.observations.run, host)?.name.as_str();
    let cover = case.telemetry.cover(host, |_| true)?;
    let errors = interface_errors(&cover, interface);
    let qdiscs = cover.grown_by_key(None, |sample| {
        let qdiscs = sample.causes.iter().flat_map(|causes| &causes.qdiscs);
        let own = qdiscs.filter(|qdisc| qdisc.interface == interface);
        own.map(|qdisc| ((qdisc.kind.as_str(), qdisc.handle), u64::from(qdisc.drops)))
            .collect()
    });
    let drops: f64 = qdiscs.values().sum();
    (errors + drops >= 1.0).then(|| CountedLoss {
        interface: interface.to_owned(),
        errors: errors as u64,
        drops: drops as u64,
    })
}

fn interface_errors(cover: &Cover<'_>, interface: &str) -> f64 {
    let errors = cover.grown(|sample| {
        let found = sample.interfaces.iter().find(|i| i.name == interface)?;
        Some(found.rx_errors + found.tx_errors)
    });
    errors.unwrap_or(0.0)
}
