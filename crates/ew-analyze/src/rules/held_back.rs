//! A host that is slow at times: from moment to moment its flows are as fast as its peers' or far slower, because its CPU time comes
//! and goes or its small buffers suffice only while nothing else delays a packet. Neither of its sides is slow in the median, and what
//! its slow flows tell is the host and not the network.

use super::slow_host::rate_quantity;
use super::why::{Reason, Suspect};
use super::{Case, core_saturated, cpu_quota, receive_window, send_buffer};
use crate::capacity::Side;
use crate::stats::quantile;
use ew_model::HostId;
use ew_model::finding::{Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;

/// A lone flow below this share of the usual rate is slow.
const SLOW_SHARE: f64 = 0.85;
/// A host is slow at times when so many of its lone flows are: the lower quartile of them.
const LOWER: f64 = 0.25;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    hosts
        .filter_map(|host| Some(finding(case, host, reason(case, host)?)))
        .collect()
}

/// Whether what is slow at a host is explained by the host itself.
pub(super) fn explains(case: &Case<'_>, host: HostId) -> bool {
    reason(case, host).is_some()
}

/// Why it is held back. A quota that runs out is worth telling by itself; all else only where its flows suffer.
fn reason(case: &Case<'_>, host: HostId) -> Option<Reason> {
    let slow = &case.network.fit.slow;
    if slow.contains_key(&Side::Tx(host)) || slow.contains_key(&Side::Rx(host)) {
        return None;
    }
    let suspect = Suspect {
        host,
        tx: true,
        rx: true,
    };
    cpu_quota::explain(case, &suspect).or_else(|| {
        low_rate(case, host)?;
        core_saturated::explain(case, &suspect)
            .or_else(|| receive_window::explain(case, &suspect))
            .or_else(|| send_buffer::explain(case, &suspect))
    })
}

/// What its slower lone flows did, where that is well below the usual rate.
fn low_rate(case: &Case<'_>, host: HostId) -> Option<f64> {
    let typical = case.network.fit.typical?.value;
    let solos = case.network.solos.iter();
    let own = solos.filter(|solo| solo.src == host || solo.dst == host);
    let rates: Vec<f64> = own.map(|solo| solo.bits_per_sec).collect();
    quantile(&rates, LOWER).filter(|rate| *rate < SLOW_SHARE * typical)
}

fn finding(case: &Case<'_>, host: HostId, why: Reason) -> Finding {
    let name = case.observations.inventory().name(host);
    let typical = case.network.fit.typical.map(|typical| typical.value);
    let low = low_rate(case, host);
    let (severity, sentence) = match (low, typical) {
        (Some(low), Some(typical)) => (
            Severity::Fault,
            format!(
                "{name} is slow at times: a quarter of its flows do at most {} where its peers do {}, because {}",
                format_bits_per_sec(low),
                format_bits_per_sec(typical),
                why.because,
            ),
        ),
        _ => (
            Severity::Notice,
            format!("{name} keeps up with its peers although {}", why.because),
        ),
    };
    Finding {
        severity,
        subject: Subject::Host { host },
        cause: why.cause,
        symptom: None,
        sentence,
        measured: low.map(rate_quantity),
        expected: typical.map(rate_quantity),
        confidence: why.confidence,
        evidence: why.evidence,
        hint: why.hint,
    }
}
