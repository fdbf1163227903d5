//! A host does less than the NIC rate that was configured.

use super::case::Case;
use super::shared_limit;
use crate::finding::{bit_rate, finding_of, quantity};
use ew_evidence::criteria::{MIN_EFFECT, NEGLIGIBLE, SLOW};
use ew_fit::Side;
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{BelowConfiguredNic, SharedLimit};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::median_estimate;
use std::collections::BTreeSet;

/// One finding for the hosts that stay below the statement and are not slow against their peers:
/// those have findings of their own.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let plan = &case.observations.run.plan;
    let stated = plan.expect.nic_bits_per_sec;
    let Some(stated) = stated.filter(|_| plan.rate_limit.is_none()) else {
        return Vec::new();
    };
    let goodput = stated * case.reference.basis.efficiency;
    let classes = case.network.classes.iter();
    let low_classes: BTreeSet<HostId> = classes
        .filter(|(rate, hosts)| {
            is_below(rate, goodput) || is_left_by_buffers(case, rate, hosts, goodput)
        })
        .flat_map(|(_, hosts)| hosts.iter().copied())
        .collect();
    let hosts = case.observations.inventory().host_ids();
    let below: Vec<(HostId, Estimate)> = hosts
        .filter_map(|host| Some((host, below(case, host, goodput, &low_classes)?)))
        .collect();
    let values: Vec<f64> = below.iter().map(|(_, rate)| rate.value).collect();
    let Some(middle) = median_estimate(&values) else {
        return Vec::new();
    };
    vec![finding(case, stated, &below, middle)]
}

/// The host's slower side, when it is surely below what the configured NIC rate gives, or its whole
/// class is: hosts that do alike are judged alike.
fn below(
    case: &Case<'_>,
    host: HostId,
    goodput: f64,
    low_classes: &BTreeSet<HostId>,
) -> Option<Estimate> {
    if case.network.is_slow(host) {
        return None;
    }
    [Side::Tx(host), Side::Rx(host)]
        .into_iter()
        .filter_map(|side| case.network.side_rate(side))
        .filter(|rate| low_classes.contains(&host) || is_below(rate, goodput))
        .min_by(|a, b| a.value.total_cmp(&b.value))
}

/// Whether a class does surely less, be it little, and its flows wait for windows or send buffers
/// nearly all the time: then these are what limits it, and not the links.
fn is_left_by_buffers(case: &Case<'_>, rate: &Estimate, hosts: &[HostId], goodput: f64) -> bool {
    let is_less = |high: f64| high < (1.0 - NEGLIGIBLE) * goodput;
    rate.high.is_some_and(is_less) && shared_limit::are_buffers(case, hosts)
}

fn is_below(rate: &Estimate, goodput: f64) -> bool {
    match rate.high {
        Some(high) => high < (1.0 - MIN_EFFECT) * goodput,
        None => rate.value < SLOW * goodput,
    }
}

fn finding(
    case: &Case<'_>,
    stated: f64,
    below: &[(HostId, Estimate)],
    middle: Estimate,
) -> Finding {
    let goodput = stated * case.reference.basis.efficiency;
    let limit = limit(case, below, middle.value, stated);
    let cause = limit.as_ref().map_or(Cause::SlowHost, SharedLimit::cause);
    Finding {
        measured: quantity(&middle, "bits_per_sec"),
        expected: bit_rate(goodput),
        ..finding_of(
            Severity::Fault,
            match below {
                [(host, _)] => Subject::Host { host: *host },
                _ => Subject::Run,
            },
            cause,
            Details::BelowConfiguredNic(BelowConfiguredNic {
                hosts: below.iter().map(|(host, _)| *host).collect(),
                bits_per_sec: middle.value,
                configured_bits_per_sec: stated,
                goodput_bits_per_sec: goodput,
                limit,
            }),
        )
    }
}

/// What limits them all alike, where it is not one host that is below.
fn limit(
    case: &Case<'_>,
    below: &[(HostId, Estimate)],
    rate: f64,
    stated: f64,
) -> Option<SharedLimit> {
    let hosts: Vec<HostId> = below.iter().map(|(host, _)| *host).collect();
    let with_several = case.network.typical.map_or(0.0, |typical| typical.value);
    let is_alike = 2 * hosts.len() > case.observations.inventory().hosts.len();
    is_alike
        .then(|| shared_limit::limit(case, &hosts, rate.max(with_several), stated))
        .flatten()
}
