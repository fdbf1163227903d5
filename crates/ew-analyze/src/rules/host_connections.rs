//! One host's single connections stay far below those of others, though several fill its link: a
//! cap on each of its flows, or a window.

use super::case::Case;
use crate::finding::{bit_rate, finding_of};
use ew_evidence::criteria::{LOSSY, MANY, MIN_EFFECT, MIN_SEEN, SURE, UNIFORMLY_SLOW};
use ew_evidence::quality::{LITTLE_STARVATION, starvation};
use ew_fit::{Side, retransmitted_share};
use ew_model::HostId;
use ew_model::finding::details::{SharedLimit, SingleConnections};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Symptom};
use ew_model::record::FlowRecord;
use ew_model::workload::{Pace, WorkloadKind};
use ew_stats::{median, quantile};
use std::collections::{BTreeMap, BTreeSet};

/// An isolated flow of one connection.
struct Single<'a> {
    row: &'a FlowRecord,
    bits_per_sec: f64,
    way: Way,
}

/// The racks that a flow leads from and to, and what the classes of its hosts allow, bits per
/// second.
type Way = (Option<(usize, usize)>, u64);

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    // What limits every connection is reported once.
    if case.network.connection_limit().is_some() {
        return Vec::new();
    }
    let singles = singles(case);
    let typical = typical_rates(&singles);
    let mut of_hosts: BTreeMap<HostId, Vec<&Single<'_>>> = BTreeMap::new();
    for single in &singles {
        of_hosts.entry(single.row.src).or_default().push(single);
    }
    let hosts = of_hosts.len();
    let capped = of_hosts.into_iter().filter_map(|(host, own)| {
        let below = |one: &&Single<'_>| one.bits_per_sec / typical[&one.way];
        let below: Vec<f64> = own.iter().map(below).collect();
        Some((host, limit(case, host, &own, &below)?))
    });
    let capped: Vec<(HostId, f64)> = capped.collect();
    // What many have is no odd one's.
    if capped.len() as f64 > MANY * hosts as f64 {
        return Vec::new();
    }
    let findings = capped.into_iter();
    findings
        .filter_map(|(host, limit)| finding(case, host, limit))
        .collect()
}

fn singles<'a>(case: &Case<'a>) -> Vec<Single<'a>> {
    let quality = &case.network.quality;
    let mut singles = Vec::new();
    for (index, stage) in case.observations.stages.iter().enumerate() {
        let workload = &stage.stage.workload;
        let is_meant = workload.kind == WorkloadKind::TcpStream && workload.pace == Pace::default();
        if !(is_meant && stage.judged) {
            continue;
        }
        let rounds = stage.rounds.iter().enumerate();
        for (_, round) in rounds.filter(|(at, _)| !quality.is_void(index, *at)) {
            let ends = round.isolated.iter().zip(starvation(round));
            let rows = round.records.iter().zip(ends);
            let fit =
                rows.filter(|(_, (isolated, starved))| **isolated && *starved < LITTLE_STARVATION);
            singles.extend(fit.filter_map(|(row, _)| single(case, row)));
        }
    }
    singles
}

fn single<'a>(case: &Case<'a>, row: &'a FlowRecord) -> Option<Single<'a>> {
    let network = case.network;
    let is_one = row.sender.as_ref()?.streams.len() == 1;
    let is_slow = network.is_slow(row.src) || network.is_slow(row.dst);
    let bits_per_sec = row.bits_per_sec().filter(|_| is_one && !is_slow)?;
    let allowed = network
        .class_rate(row.src)?
        .min(network.class_rate(row.dst)?);
    let racks = case
        .observations
        .inventory()
        .racks_between(row.src, row.dst);
    Some(Single {
        row,
        bits_per_sec,
        way: (racks, allowed as u64),
    })
}

/// Of each way: whatever uplinks, hashes and cores leave of single connections there.
fn typical_rates(singles: &[Single<'_>]) -> BTreeMap<Way, f64> {
    let mut rates: BTreeMap<Way, Vec<f64>> = BTreeMap::new();
    for one in singles {
        rates.entry(one.way).or_default().push(one.bits_per_sec);
    }
    let typical = rates.into_iter();
    typical
        .filter_map(|(way, rates)| Some((way, median(&rates)?)))
        .collect()
}

/// What limits a host's connections, if hardly one of several to different hosts does more, and all
/// are far below what others do on the same way.
fn limit(case: &Case<'_>, host: HostId, own: &[&Single<'_>], below: &[f64]) -> Option<f64> {
    let peers: BTreeSet<HostId> = own.iter().map(|one| one.row.dst).collect();
    if own.len() < 2 * MIN_SEEN || peers.len() < MIN_SEEN {
        return None;
    }
    let rates: Vec<f64> = own.iter().map(|one| one.bits_per_sec).collect();
    let lost: Vec<f64> = (own.iter())
        .filter_map(|one| retransmitted_share(one.row))
        .collect();
    let loses = median(&lost).is_some_and(|share| share > LOSSY)
        || case.network.lossy_sides.contains(&Side::Tx(host));
    let middle = median(&rates)?;
    let is_cap = quantile(&rates, SURE)? < (1.0 + MIN_EFFECT) * middle;
    let is_odd = quantile(below, SURE)? < UNIFORMLY_SLOW;
    (is_cap && is_odd && !loses).then_some(middle)
}

fn finding(case: &Case<'_>, host: HostId, limit: f64) -> Option<Finding> {
    let several = case.network.class_rate(host)?;
    Some(Finding {
        symptom: Some(Symptom::SlowStage),
        measured: bit_rate(limit),
        expected: bit_rate(several),
        ..finding_of(
            Severity::Fault,
            Subject::Host { host },
            Cause::ConnectionLimit,
            Details::SingleConnections(SingleConnections {
                host: Some(host),
                bits_per_sec: limit,
                several_bits_per_sec: several,
                limit: SharedLimit::Connection {
                    bits_per_sec: limit,
                    several_bits_per_sec: several,
                },
            }),
        )
    })
}
