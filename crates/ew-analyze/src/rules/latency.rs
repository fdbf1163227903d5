//! Idle round trips longer than configured, or far longer than the peers'.

use super::case::Case;
use crate::finding::{MAX_EVIDENCE, finding_of, plain};
use ew_evidence::criteria::{MIN_SAMPLES, SCHEDULING_NS, TIMES_TYPICAL};
use ew_model::HostId;
use ew_model::finding::details::{IdleRoundTrip, LongRoundTrips};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_stats::median;

pub(super) fn find(case: &Case<'_>) -> Option<Finding> {
    let known: Vec<(HostId, f64)> = case
        .hosts
        .iter()
        .filter_map(|host| Some((host.host, host.idle_rtt_ns? as f64)))
        .collect();
    let rtts: Vec<f64> = known.iter().map(|(_, rtt)| *rtt).collect();
    let typical = median(&rtts)?;
    let configured = case.observations.run.plan.expect.rtt_ns.map(|ns| ns as f64);
    let limit = match configured {
        Some(configured) => configured,
        None if known.len() > MIN_SAMPLES => (TIMES_TYPICAL * typical).max(typical + SCHEDULING_NS),
        None => return None,
    };
    let slow: Vec<(HostId, f64)> = known.into_iter().filter(|(_, rtt)| *rtt > limit).collect();
    (!slow.is_empty()).then(|| finding(&slow, configured, typical))
}

fn finding(slow: &[(HostId, f64)], configured: Option<f64>, typical: f64) -> Finding {
    let worst = slow.iter().map(|(_, rtt)| *rtt).fold(0.0, f64::max);
    let expected = configured.unwrap_or(typical);
    Finding {
        measured: plain(worst, "ns"),
        expected: plain(expected, "ns"),
        ..finding_of(
            if configured.is_some() {
                Severity::Fault
            } else {
                Severity::Notice
            },
            match slow {
                [(host, _)] => Subject::Host { host: *host },
                _ => Subject::Run,
            },
            Cause::Latency,
            Details::LongRoundTrips(LongRoundTrips {
                hosts: slow.iter().map(|(host, _)| *host).collect(),
                worst_rtt_ns: worst as u64,
                expected_rtt_ns: expected as u64,
                is_configured: configured.is_some(),
                round_trips: slow.iter().take(MAX_EVIDENCE).map(round_trip).collect(),
            }),
        )
    }
}

fn round_trip((host, rtt): &(HostId, f64)) -> IdleRoundTrip {
    IdleRoundTrip {
        host: *host,
        rtt_ns: *rtt as u64,
    }
}
