//! A host that lacks CPU all along while the others have it: its low rates are excused in the fit,
//! so that CPU starvation is reported of the host itself.

use super::case::Case;
use crate::finding::{bit_rate, finding_of};
use ew_evidence::criteria::{MANY, MIN_EFFECT, MIN_SAMPLES};
use ew_evidence::quality::{LITTLE_STARVATION, starvation_by_host};
use ew_fit::Isolated;
use ew_model::HostId;
use ew_model::finding::details::{StarvedHost, StarvedRate};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::{median, quantile};
use std::collections::BTreeMap;

pub(super) fn find(case: &Case<'_>, found: &[Finding]) -> Vec<Finding> {
    let hosts = starvation_by_host(case.observations);
    let starved: Vec<HostId> = hosts
        .iter()
        .filter(|(_, rounds)| is_starved(rounds))
        .map(|(host, _)| *host)
        .collect();
    let others: Vec<f64> = hosts
        .iter()
        .filter(|(host, _)| !starved.contains(host))
        .filter_map(|(_, rounds)| median(rounds))
        .collect();
    let typical = median(&others).unwrap_or(1.0);
    if typical >= LITTLE_STARVATION
        || starved.len() > 1 && starved.len() as f64 > MANY * hosts.len() as f64
    {
        return Vec::new();
    }
    let is_known = |host: &HostId| {
        let subject = Subject::Host { host: *host };
        found.iter().any(|finding| {
            finding.subject == subject
                && matches!(finding.cause, Cause::CoreSaturated | Cause::CpuQuota)
        })
    };
    let unknown = starved.into_iter().filter(|host| !is_known(host));
    unknown
        .map(|host| finding(case, host, &hosts, typical))
        .collect()
}

fn is_starved(rounds: &[f64]) -> bool {
    rounds.len() >= MIN_SAMPLES
        && quantile(rounds, 0.25).is_some_and(|min| min >= LITTLE_STARVATION)
}

fn finding(
    case: &Case<'_>,
    host: HostId,
    hosts: &BTreeMap<HostId, Vec<f64>>,
    typical: f64,
) -> Finding {
    let own = hosts[&host].as_slice();
    let (flows, expected) = of_flows(case, host);
    let slow = flows.zip(expected).and_then(|(rate, of)| slow(rate, of));
    Finding {
        measured: flows.and_then(bit_rate),
        expected: expected.and_then(bit_rate),
        ..finding_of(
            match slow {
                Some(_) => Severity::Fault,
                None => Severity::Notice,
            },
            Subject::Host { host },
            Cause::CoreSaturated,
            Details::StarvedHost(StarvedHost {
                host,
                starved_rounds: own.iter().filter(|q| **q >= LITTLE_STARVATION).count(),
                rounds: own.len(),
                degree: median(own).unwrap_or(0.0),
                others_degree: typical,
                slow,
            }),
        )
    }
}

/// The rate where it is far enough below what hosts allow.
fn slow(bits_per_sec: f64, peers_bits_per_sec: f64) -> Option<StarvedRate> {
    let is_slow = bits_per_sec / peers_bits_per_sec < 1.0 - MIN_EFFECT;
    is_slow.then_some(StarvedRate {
        bits_per_sec,
        peers_bits_per_sec,
    })
}

/// Medians over the host's isolated flows: rate, and what their hosts allow.
fn of_flows(case: &Case<'_>, host: HostId) -> (Option<f64>, Option<f64>) {
    let own = || {
        let flows = case.network.isolated.iter();
        flows.filter(|flow| flow.src == host || flow.dst == host)
    };
    let of = |figure: fn(&Isolated) -> f64| median(&own().map(figure).collect::<Vec<_>>());
    (
        of(|flow| flow.bits_per_sec),
        of(|flow| flow.expected_bits_per_sec),
    )
}
