//! What limits hosts that are all alike below what they could do.

use super::case::Case;
use super::peers::of_stages;
use super::receive_window::limited_share;
use ew_evidence::basis::{most_common, shaper};
use ew_evidence::criteria::{FULL, HELD_BACK, LEAST_FILL, NEGLIGIBLE, SLOW, THROTTLED};
use ew_model::HostId;
use ew_model::finding::details::SharedLimit;
use ew_model::record::{EndRecord, FlowRecord};
use ew_stats::median;
use std::collections::BTreeSet;

/// The first limit that most of the hosts share, of hosts that do `rate` bits per second with
/// several connections, and whose links should do `link`.
pub(super) fn limit(
    case: &Case<'_>,
    hosts: &[HostId],
    rate: f64,
    link: f64,
) -> Option<SharedLimit> {
    let members: BTreeSet<HostId> = hosts.iter().copied().collect();
    let between_them = Flows::Among(&members);
    quota(case, hosts)
        .or_else(|| shaped(case, hosts, rate, link))
        .or_else(|| core(case, between_them))
        .or_else(|| window(case, between_them))
        .or_else(|| send_buffer(case, between_them))
        .or_else(|| per_connection(case, rate))
}

fn quota(case: &Case<'_>, hosts: &[HostId]) -> Option<SharedLimit> {
    let shares = hosts
        .iter()
        .filter_map(|host| of_stages(case, *host, |stage| stage.throttled_share));
    let share = median(&shares.collect::<Vec<_>>()).filter(|share| *share >= THROTTLED)?;
    Some(SharedLimit::CpuQuota {
        throttled_share: share,
    })
}

/// The hosts' own shapers, where they fill them.
fn shaped(case: &Case<'_>, hosts: &[HostId], rate: f64, link: f64) -> Option<SharedLimit> {
    let run = case.observations.run;
    let shapers = hosts.iter().filter_map(|host| shaper(run, *host));
    let (rates, kinds): (Vec<f64>, Vec<&str>) = shapers.unzip();
    let of_most = 2 * rates.len() > hosts.len();
    let shaped = median(&rates).filter(|shaped| of_most && *shaped < (1.0 - NEGLIGIBLE) * link)?;
    let fills = rate >= LEAST_FILL * shaped * case.reference.basis.efficiency;
    fills.then_some(SharedLimit::Shaper {
        discipline: most_common(kinds.into_iter())?.to_owned(),
        bits_per_sec: shaped,
        link_bits_per_sec: link,
    })
}

/// Whether windows or send buffers limit most of the hosts' flows nearly all the time.
pub(super) fn are_buffers(case: &Case<'_>, hosts: &[HostId]) -> bool {
    let members: BTreeSet<HostId> = hosts.iter().copied().collect();
    let between_them = Flows::Among(&members);
    let found = window(case, between_them).or_else(|| send_buffer(case, between_them));
    found.is_some_and(|limit| match limit {
        SharedLimit::ReceiveWindow { limited_share, .. }
        | SharedLimit::SendBuffer { limited_share } => limited_share >= FULL,
        _ => false,
    })
}

pub(super) fn core(case: &Case<'_>, which: Flows<'_>) -> Option<SharedLimit> {
    let cpus = cpus_per_connection(case, which)?;
    (cpus >= FULL).then_some(SharedLimit::FullThreads { cpu_share: cpus })
}

pub(super) fn window(case: &Case<'_>, which: Flows<'_>) -> Option<SharedLimit> {
    let share = of_flows(case, which, |row| {
        limited_share(row, |info| info.receive_window_limited_us)
    })?;
    (share >= HELD_BACK).then(|| SharedLimit::ReceiveWindow {
        limited_share: share,
        round_trip_ns: round_trip_ns(case, which),
    })
}

/// The median of isolated flows.
fn round_trip_ns(case: &Case<'_>, which: Flows<'_>) -> Option<u64> {
    let of_row = |row: &FlowRecord| {
        let streams = &row.sender.as_ref()?.streams;
        Some(f64::from(streams.first()?.tcp_info?.rtt_us))
    };
    of_flows(case, which, of_row).map(|rtt_us| (1e3 * rtt_us) as u64)
}

pub(super) fn send_buffer(case: &Case<'_>, which: Flows<'_>) -> Option<SharedLimit> {
    let share = of_flows(case, which, |row| {
        limited_share(row, |info| info.send_buffer_limited_us)
    })?;
    (share >= HELD_BACK).then_some(SharedLimit::SendBuffer {
        limited_share: share,
    })
}

pub(super) fn per_connection(case: &Case<'_>, rate: f64) -> Option<SharedLimit> {
    let limit = case
        .network
        .connection_limit()
        .filter(|limit| *limit < SLOW * rate)?;
    Some(SharedLimit::Connection {
        bits_per_sec: limit,
        several_bits_per_sec: rate,
    })
}

/// Median over isolated flows of the CPUs that the busier end's threads used, per connection.
fn cpus_per_connection(case: &Case<'_>, which: Flows<'_>) -> Option<f64> {
    let mut shares = Vec::new();
    for round in case.observations.judged().flat_map(|stage| &stage.rounds) {
        let threads = round.streams_by_host();
        let of_end = |host: HostId, end: &EndRecord| {
            let used = end.cpu?.engine_ns as f64 / end.window_ns.max(1) as f64;
            Some(used / f64::from(threads.get(&host).copied().unwrap_or(1)))
        };
        let rows = round.records.iter().zip(&round.isolated);
        for (row, _) in rows.filter(|(row, isolated)| **isolated && which.has(row)) {
            let ends = [(row.src, &row.sender), (row.dst, &row.receiver)];
            let known = ends
                .into_iter()
                .filter_map(|(host, end)| of_end(host, end.as_ref()?));
            shares.extend(known.max_by(f64::total_cmp));
        }
    }
    median(&shares)
}

/// Which isolated flows are asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flows<'h> {
    /// Those between these hosts: other hosts have other limits.
    Among(&'h BTreeSet<HostId>),
    /// Several connections fill a link that none of them fills alone, and then wait for it and not
    /// for their windows.
    SingleConnections,
}

impl Flows<'_> {
    fn has(self, row: &FlowRecord) -> bool {
        match self {
            Self::Among(hosts) => hosts.contains(&row.src) && hosts.contains(&row.dst),
            Self::SingleConnections => {
                let streams = row.sender.as_ref().map(|end| end.streams.len());
                streams == Some(1)
            }
        }
    }
}

/// Median over isolated flows of the capacity tests.
fn of_flows(
    case: &Case<'_>,
    which: Flows<'_>,
    figure: impl Fn(&FlowRecord) -> Option<f64>,
) -> Option<f64> {
    let flows = case
        .isolated_flows
        .all
        .iter()
        .filter(|row| which.has(row))
        .copied();
    let flows = flows.filter_map(figure);
    median(&flows.collect::<Vec<_>>())
}
