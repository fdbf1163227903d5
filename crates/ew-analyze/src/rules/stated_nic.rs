//! A host does less than the NIC rate that was configured.

use super::slow_host::rate_quantity;
use super::{Case, below_link, evidence};
use crate::basis::basis_words;
use crate::fit::{LEAST_EFFECT, Side};
use crate::precision::confidence;
use crate::stats::median_estimate;
use crate::words::{count, host_list, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Finding, Severity, Subject, Worded};
use ew_model::units::format_bits_per_sec;

/// Without an interval the figure must be this far below.
const LEAST_EFFECT_UNSURE: f64 = 0.10;

/// One finding for the hosts that stay below the statement and are not slow against their peers:
/// those have findings of their own.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let plan = &case.observations.run.plan;
    let stated = plan.expect.nic_bits_per_sec;
    let Some(stated) = stated.filter(|_| plan.rate_limit.is_none()) else {
        return Vec::new();
    };
    let efficiency = case.reference.basis.efficiency;
    let below: Vec<(HostId, Estimate)> = case
        .observations
        .inventory()
        .host_ids()
        .filter_map(|host| Some((host, below(case, host, stated * efficiency)?)))
        .collect();
    let values: Vec<f64> = below.iter().map(|(_, rate)| rate.value).collect();
    let Some(middle) = median_estimate(&values) else {
        return Vec::new();
    };
    vec![finding(case, stated, &below, middle)]
}

/// The host's slower side, when it is surely below what the configured NIC rate gives.
fn below(case: &Case<'_>, host: HostId, goodput: f64) -> Option<Estimate> {
    let sides = [Side::Tx(host), Side::Rx(host)];
    if case.network.is_slow(host) {
        return None;
    }
    sides
        .into_iter()
        .filter_map(|side| case.network.side_rate(side))
        .filter(|rate| match rate.high {
            Some(high) => high < (1.0 - LEAST_EFFECT) * goodput,
            None => rate.value < (1.0 - LEAST_EFFECT_UNSURE) * goodput,
        })
        .min_by(|a, b| a.value.total_cmp(&b.value))
}

fn finding(
    case: &Case<'_>,
    stated: f64,
    below: &[(HostId, Estimate)],
    middle: Estimate,
) -> Finding {
    let inventory = case.observations.inventory();
    let goodput = stated * case.reference.basis.efficiency;
    let all = below.len() == inventory.hosts.len();
    let who = if all {
        format!("all {} hosts stay", below.len())
    } else {
        let names = host_list(inventory, below.iter().map(|(host, _)| *host));
        format!(
            "{names} {}",
            if below.len() == 1 { "stays" } else { "stay" }
        )
    };
    let subject = match below {
        [(host, _)] => Subject::Host { host: *host },
        _ => Subject::Run,
    };
    let limit = limit(case, below, middle.value);
    let why = limit
        .as_ref()
        .map_or(String::new(), |limit| format!(". {}", limit.sentence));
    let cause = limit.as_ref().map_or(Cause::SlowHost, |limit| limit.cause);
    let mut rests_on = vec![evidence(
        format!(
            "median of the slower direction of {}: {}; compared with {}",
            count(below.len(), "host"),
            format_bits_per_sec(middle.value),
            basis_words(&case.reference.basis).unwrap_or_default(),
        ),
        "flows.parquet: isolated flows that no path between racks limits".into(),
    )];
    rests_on.extend(limit.as_ref().map(|limit| limit.evidence.clone()));
    Finding {
        severity: Severity::Fault,
        subject,
        cause,
        symptom: None,
        measured: Some(quantity(&middle, "bits_per_sec")),
        expected: Some(rate_quantity(goodput)),
        confidence: confidence(cause),
        details: Worded::details(
            format!(
                "{who} below the expected NIC rate: {} of goodput ({} gives {}){why}",
                format_bits_per_sec(middle.value),
                format_bits_per_sec(stated),
                format_bits_per_sec(goodput),
            ),
            rests_on,
            limit.map_or(HINT, |limit| limit.hint).into(),
        ),
        cables: Vec::new(),
    }
}

const HINT: &str = "check the configured rate, the negotiated link speed (`ethtool`), and whether one TCP stream can fill the link \
                    (`--set streams=4`)";

/// What limits them all alike, where it is not one host that is below.
fn limit(case: &Case<'_>, below: &[(HostId, Estimate)], rate: f64) -> Option<below_link::Limit> {
    let hosts: Vec<HostId> = below.iter().map(|(host, _)| *host).collect();
    let with_several = case.network.typical.map_or(0.0, |typical| typical.value);
    let is_alike = 2 * hosts.len() > case.observations.inventory().hosts.len();
    is_alike
        .then(|| below_link::limit(case, &hosts, rate.max(with_several)))
        .flatten()
}
