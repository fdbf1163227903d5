//! A host that is slow at times: from moment to moment its flows are as fast as its peers' or far
//! slower, because its CPU time comes and goes or its small buffers suffice only while nothing else
//! delays a packet. Neither of its sides is slow in the median, and what its slow flows show is the
//! host and not the network.

use super::case::Case;
use super::suspect::Suspect;
use super::{core_saturated, cpu_quota, receive_window, send_buffer};
use crate::finding::{bit_rate, finding_of};
use ew_evidence::criteria::{MIN_SAMPLES, MIN_SEEN, SLOW};
use ew_fit::Isolated;
use ew_model::HostId;
use ew_model::finding::details::{LowQuartile, SlowAtTimes, Why};
use ew_model::finding::{Details, Finding, Severity, Subject};
use ew_stats::{median, quantile};
use std::collections::{BTreeMap, BTreeSet};

/// Why a host is throttled, and what that does to its flows.
struct HeldBack {
    host: HostId,
    why: Why,
    /// `None` where its flows keep up.
    low: Option<LowQuartile>,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let slow_at_times = slow_at_times(case).into_iter();
    slow_at_times.map(|it| finding(case, it)).collect()
}

/// The hosts that explain by themselves what is slow at them.
pub(super) fn hosts(case: &Case<'_>) -> BTreeSet<HostId> {
    slow_at_times(case).iter().map(|it| it.host).collect()
}

fn slow_at_times(case: &Case<'_>) -> Vec<HeldBack> {
    let mut low = low_quartiles(case);
    let hosts = case.observations.inventory().host_ids();
    hosts
        .filter_map(|host| at(case, host, low.remove(&host)))
        .collect()
}

/// A quota that runs out is worth reporting by itself; all else only where its flows suffer.
fn at(case: &Case<'_>, host: HostId, low: Option<LowQuartile>) -> Option<HeldBack> {
    if case.network.is_slow(host) {
        return None;
    }
    let suspect = Suspect::both(host);
    let why = cpu_quota::explain(case, &suspect).or_else(|| {
        low.as_ref()?;
        core_saturated::explain_at_times(case, &suspect)
            .or_else(|| receive_window::explain(case, &suspect))
            .or_else(|| send_buffer::explain(case, &suspect))
    })?;
    Some(HeldBack { host, why, low })
}

/// What flows do of what their hosts allow; where most flows of a round do less, of that: then all
/// hosts are slow, as on a machine that they share. What is lost between racks is no host's.
fn shares<'c>(case: &'c Case<'_>) -> Vec<(&'c Isolated, f64)> {
    let share = |flow: &Isolated| flow.bits_per_sec / flow.expected_bits_per_sec;
    let mut rounds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for flow in &case.network.isolated {
        rounds.entry(flow.round).or_default().push(share(flow));
    }
    let usual = |shares: Vec<f64>| match shares.len() {
        0..=MIN_SEEN => 1.0,
        _ => median(&shares)
            .filter(|usual| *usual > 0.0)
            .map_or(1.0, |usual| usual.min(1.0)),
    };
    let usual: BTreeMap<usize, f64> = rounds
        .into_iter()
        .map(|(at, all)| (at, usual(all)))
        .collect();
    let inventory = case.observations.inventory();
    let lost = |flow: &Isolated| {
        case.network
            .loses_between(inventory.racks_between(flow.src, flow.dst))
    };
    let flows = case.network.isolated.iter().filter(|flow| !lost(flow));
    flows
        .map(|flow| (flow, share(flow) / usual[&flow.round]))
        .collect()
}

/// Of the hosts a quarter of whose flows are slow. A slow peer does not count against a host, nor
/// one that a quota throttles.
fn low_quartiles(case: &Case<'_>) -> BTreeMap<HostId, LowQuartile> {
    let hosts = case.observations.inventory().host_ids();
    let is_throttled = |host: &HostId| cpu_quota::explain(case, &Suspect::both(*host)).is_some();
    let throttled: BTreeSet<HostId> = hosts.filter(is_throttled).collect();
    let shares = shares(case);
    let mut of_hosts: BTreeMap<HostId, (usize, Vec<f64>)> = BTreeMap::new();
    for (flow, share) in &shares {
        for (host, peer) in [(flow.src, flow.dst), (flow.dst, flow.src)] {
            let (flows, own) = of_hosts.entry(host).or_default();
            *flows += 1;
            own.extend(Some(*share).filter(|_| !throttled.contains(&peer)));
        }
    }
    let low = |(host, (flows, own)): (HostId, (usize, Vec<f64>))| {
        let typical = case.network.class_rate(host)?;
        let share = quantile(&own, 0.25)?;
        let is_known = own.len().min(shares.len() - flows) >= MIN_SAMPLES;
        let low = LowQuartile {
            quartile_bits_per_sec: share * typical,
            peers_bits_per_sec: typical,
        };
        (is_known && share < SLOW).then_some((host, low))
    };
    of_hosts.into_iter().filter_map(low).collect()
}

fn finding(case: &Case<'_>, HeldBack { host, why, low }: HeldBack) -> Finding {
    let cause = why.cause();
    let typical = case.network.class_rate(host);
    Finding {
        measured: low.and_then(|low| bit_rate(low.quartile_bits_per_sec)),
        expected: typical.and_then(bit_rate),
        ..finding_of(
            match low {
                Some(_) => Severity::Fault,
                None => Severity::Notice,
            },
            Subject::Host { host },
            cause,
            Details::SlowAtTimes(SlowAtTimes { host, low, why }),
        )
    }
}
