//! Idle round trips longer than configured, or far longer than the peers'.

use super::{Case, evidence};
use crate::precision::confidence;
use crate::stats::median;
use crate::words::{host_list, plain};
use ew_model::HostId;
use ew_model::finding::{Cause, Finding, Severity, Subject, Worded};
use ew_model::units::format_duration_ns;

/// A host stands out when its median round trip is this many times its peers' ...
const TIMES_PEERS: f64 = 4.0;
/// ... and longer by this: below, scheduling on a busy host explains it.
const LEAST_EXCESS_NS: f64 = 500_000.0;
/// Peers needed before a host can stand out among them.
const LEAST_PEERS: usize = 4;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let known: Vec<(HostId, f64)> = case
        .hosts
        .iter()
        .filter_map(|host| Some((host.host, host.idle_rtt_ns? as f64)))
        .collect();
    let rtts: Vec<f64> = known.iter().map(|(_, rtt)| *rtt).collect();
    let Some(typical) = median(&rtts) else {
        return Vec::new();
    };
    let stated = case.observations.run.plan.expect.rtt_ns.map(|ns| ns as f64);
    let (limit, against) = match stated {
        Some(stated) => (
            stated,
            format!("expected {}", format_duration_ns(stated as u64)),
        ),
        None if known.len() > LEAST_PEERS => (
            (TIMES_PEERS * typical).max(typical + LEAST_EXCESS_NS),
            format!("peers {}", format_duration_ns(typical as u64)),
        ),
        None => return Vec::new(),
    };
    let slow: Vec<(HostId, f64)> = known.into_iter().filter(|(_, rtt)| *rtt > limit).collect();
    if slow.is_empty() {
        return Vec::new();
    }
    vec![finding(
        case,
        &slow,
        stated.unwrap_or(typical),
        &against,
        stated.is_some(),
    )]
}

fn finding(
    case: &Case<'_>,
    slow: &[(HostId, f64)],
    expected: f64,
    against: &str,
    is_stated: bool,
) -> Finding {
    let inventory = case.observations.inventory();
    let names = host_list(inventory, slow.iter().map(|(host, _)| *host));
    let worst = slow.iter().map(|(_, rtt)| *rtt).fold(0.0, f64::max);
    let up_to = if slow.len() == 1 { "" } else { "up to " };
    Finding {
        severity: if is_stated { Severity::Fault } else { Severity::Notice },
        subject: match slow {
            [(host, _)] => Subject::Host { host: *host },
            _ => Subject::Run,
        },
        cause: Cause::Latency,
        symptom: None,
        measured: Some(plain(worst, "ns")),
        expected: Some(plain(expected, "ns")),
        confidence: confidence(Cause::Latency),
        details: Worded::details(format!(
            "{names}: idle RTT {up_to}{} ({against})",
            format_duration_ns(worst as u64)
        ), slow
            .iter()
            .take(20)
            .map(|(host, rtt)| {
                let name = inventory.name(*host);
                evidence(
                    format!("{name}: median idle round trip {}", format_duration_ns(*rtt as u64)),
                    format!("flows.parquet: tcp-rr stages, src or dst = {name}"),
                )
            })
            .collect(), "look at power saving (C-states), interrupt coalescing (`ethtool -c`), and the route to the host; a \
               busy CPU shows in hosts.parquet"
            .into()),
        cables: Vec::new(),
    }
}
