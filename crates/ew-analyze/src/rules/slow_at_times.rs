//! A host that is slow at times: from moment to moment its flows are as fast as its peers' or far
//! slower, because its CPU time comes and goes or its small buffers suffice only while nothing else
//! delays a packet. Neither of its sides is slow in the median, and what its slow flows show is the
//! host and not the network.

use super::case::Case;
use super::suspect::Suspect;
use super::{core_saturated, cpu_quota, receive_window, send_buffer};
use crate::finding::{bit_rate, finding_of};
use ew_evidence::criteria::{MIN_SAMPLES, SLOW};
use ew_fit::Isolated;
use ew_model::HostId;
use ew_model::finding::details::{LowQuartile, SlowAtTimes, Why};
use ew_model::finding::{Details, Finding, Severity, Subject};
use ew_stats::quantile;
use std::collections::BTreeSet;

/// Why a host is throttled, and what that does to its flows.
struct HeldBack {
    host: HostId,
    why: Why,
    /// `None` where its flows keep up.
    low: Option<LowQuartile>,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let slow_at_times = slow_at_times(case);
    slow_at_times.map(|it| finding(case, it)).collect()
}

/// The hosts that explain by themselves what is slow at them.
pub(super) fn hosts(case: &Case<'_>) -> BTreeSet<HostId> {
    slow_at_times(case).map(|it| it.host).collect()
}

fn slow_at_times(case: &Case<'_>) -> impl Iterator<Item = HeldBack> {
    let hosts = case.observations.inventory().host_ids();
    hosts.filter_map(|host| at(case, host))
}

/// A quota that runs out is worth reporting by itself; all else only where its flows suffer.
fn at(case: &Case<'_>, host: HostId) -> Option<HeldBack> {
    if case.network.is_slow(host) {
        return None;
    }
    let suspect = Suspect {
        host,
        tx: true,
        rx: true,
    };
    let low = low(case, host);
    let why = cpu_quota::explain(case, &suspect).or_else(|| {
        low.as_ref()?;
        core_saturated::explain_at_times(case, &suspect)
            .or_else(|| receive_window::explain(case, &suspect))
            .or_else(|| send_buffer::explain(case, &suspect))
    })?;
    Some(HeldBack { host, why, low })
}

/// Against what each flow's hosts allow, so that a slow peer does not count against the host.
fn low(case: &Case<'_>, host: HostId) -> Option<LowQuartile> {
    let typical = case.network.class_rate(host)?;
    let of_host = |flow: &&Isolated| flow.src == host || flow.dst == host;
    let (own, others): (Vec<&Isolated>, Vec<&Isolated>) =
        case.network.isolated.iter().partition(of_host);
    let shares: Vec<f64> = own
        .iter()
        .map(|flow| flow.bits_per_sec / flow.expected_bits_per_sec)
        .collect();
    let share = quantile(&shares, 0.25)?;
    let is_known = own.len().min(others.len()) >= MIN_SAMPLES;
    (is_known && share < SLOW).then_some(LowQuartile {
        quartile_bits_per_sec: share * typical,
        peers_bits_per_sec: typical,
    })
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
