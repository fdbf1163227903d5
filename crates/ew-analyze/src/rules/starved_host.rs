//! A host that lacks CPU all along while the others have it: its low rates are excused in the fit,
//! so that CPU starvation is reported of the host itself.

use super::peers::percent;
use super::slow_host::rate_quantity;
use super::{Case, evidence};
use crate::fit::{Isolated, LEAST_EFFECT};
use crate::precision::confidence;
use crate::quality::{LITTLE_STARVATION, starvation_by_host};
use crate::stats::{median, quantile};
use ew_model::HostId;
use ew_model::finding::{Cause, Finding, Severity, Subject, Worded};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

/// Starved in three quarters of its rounds is all along.
const NEARLY_ALL: f64 = 0.25;
/// Fewest rounds that show it.
const LEAST_ROUNDS: usize = 4;
/// More than one host in so many is the run's CPU starvation, and not theirs.
const ONE_IN: usize = 4;

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
    if typical >= LITTLE_STARVATION || ONE_IN * starved.len() > hosts.len().max(ONE_IN) {
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
    rounds.len() >= LEAST_ROUNDS
        && quantile(rounds, NEARLY_ALL).is_some_and(|least| least >= LITTLE_STARVATION)
}

fn finding(
    case: &Case<'_>,
    host: HostId,
    hosts: &BTreeMap<HostId, Vec<f64>>,
    typical: f64,
) -> Finding {
    let name = case.observations.inventory().name(host);
    let own = hosts[&host].as_slice();
    let starved = own.iter().filter(|q| **q >= LITTLE_STARVATION).count();
    let (flows, expected) = of_flows(case, host);
    let share = flows.zip(expected).map(|(rate, of)| rate / of);
    let is_slow = share.is_some_and(|share| share < 1.0 - LEAST_EFFECT);
    let rates = match flows.zip(expected) {
        Some((rate, of)) if is_slow => format!(
            ", {} of peers ({} vs {})",
            percent(rate / of),
            format_bits_per_sec(rate),
            format_bits_per_sec(of)
        ),
        _ => ", not slower than peers".into(),
    };
    Finding {
        severity: if is_slow { Severity::Fault } else { Severity::Notice },
        subject: Subject::Host { host },
        cause: Cause::CoreSaturated,
        symptom: None,
        measured: flows.map(rate_quantity),
        expected: expected.map(rate_quantity),
        confidence: confidence(Cause::CoreSaturated),
        details: Worded::details(format!("{name}: CPU-starved in {starved} of {} rounds{rates}", own.len()), vec![evidence(
            format!(
                "{name}: I/O threads without CPU, degree 0 to 1 by round: median {:.2} (other hosts {typical:.2})",
                median(own).unwrap_or(0.0)
            ),
            format!("flows.parquet: src or dst = {name}, tx_cpu_engine_wait_ns, rx_cpu_engine_wait_ns, tx_cpu_steal_ns"),
        )], "look at `top -1` on the host for what else runs there, at the CPU limit of the agent's control group, and at steal \
               if it is a virtual machine; its rates say little of the network until it has CPU to spare"
            .into()),
        cables: Vec::new(),
    }
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
