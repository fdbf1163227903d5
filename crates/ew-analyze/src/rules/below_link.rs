//! All hosts of a class stay well below their links' own speed: never fine, whatever they agree on.

use super::peers::of_stages;
use super::receive_window::limited_share;
use super::{Case, stated_nic};
use crate::basis::{data_interface, most_common};
use crate::precision::confidence;
use crate::quality::THROTTLED;
use crate::stats::median;
use crate::words::plain;
use ew_model::HostId;
use ew_model::finding::details::{BelowLinkSpeed, SharedLimit, SingleConnections};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Symptom};
use ew_model::record::{EndRecord, FlowRecord};

/// Share of the link's payload rate below which a class is uniformly slow.
const MIN_SHARE: f64 = 0.80;
/// A connection's thread that uses this much of a CPU has no time left.
const WHOLE_CPU: f64 = 0.90;
/// Share of busy time that a window or buffer limited.
const LIMITED: f64 = 0.3;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let plan = &case.observations.run.plan;
    // Below a limit nobody is slow.
    if plan.rate_limit.is_some() {
        return Vec::new();
    }
    // What was configured is compared with every host by itself.
    let slow: Vec<Finding> = match plan.expect.nic_bits_per_sec {
        Some(_) if stated_nic::find(case).is_empty() => Vec::new(),
        Some(_) => return Vec::new(),
        None => {
            let classes = case.network.classes.iter();
            classes
                .filter_map(|(rate, hosts)| of_class(case, rate.value, hosts))
                .collect()
        }
    };
    if slow.is_empty() {
        return of_connections(case).into_iter().collect();
    }
    slow
}

/// Hosts fill their links with several connections, and no single connection comes near.
fn of_connections(case: &Case<'_>) -> Option<Finding> {
    let typical = case.network.typical?.value;
    let limit = case
        .network
        .connection_limit()
        .filter(|limit| *limit < MIN_SHARE * typical)?;
    let single = Flows::SingleConnections;
    let found = core(case, single)
        .or_else(|| window(case, single))
        .or_else(|| send_buffer(case, single))
        .or_else(|| per_connection(case, typical))?;
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause: found.cause(),
        symptom: Some(Symptom::SlowStage),
        measured: Some(plain(limit, "bits_per_sec")),
        expected: Some(plain(typical, "bits_per_sec")),
        confidence: confidence(found.cause()),
        details: Details::SingleConnections(SingleConnections {
            bits_per_sec: limit,
            several_bits_per_sec: typical,
            limit: found,
        }),
        cables: Vec::new(),
    })
}

fn of_class(case: &Case<'_>, rate: f64, hosts: &[HostId]) -> Option<Finding> {
    let speeds = hosts.iter().filter_map(|host| physical_speed(case, *host));
    let link = most_common(speeds.map(|speed| speed.round() as u64))? as f64;
    let goodput = link * case.reference.basis.efficiency;
    if rate >= MIN_SHARE * goodput {
        return None;
    }
    let found = limit(case, hosts, rate);
    let cause = found
        .as_ref()
        .map_or(Cause::BelowLinkSpeed, SharedLimit::cause);
    Some(Finding {
        severity: Severity::Notice,
        subject: Subject::Run,
        cause,
        symptom: Some(Symptom::SlowStage),
        measured: Some(plain(rate, "bits_per_sec")),
        expected: Some(plain(goodput, "bits_per_sec")),
        confidence: confidence(cause),
        details: Details::BelowLinkSpeed(BelowLinkSpeed {
            hosts: hosts.len(),
            bits_per_sec: rate,
            goodput_bits_per_sec: goodput,
            limit: found,
        }),
        cables: Vec::new(),
    })
}

/// What the host's physical link reports; virtual devices report speeds that nothing has.
fn physical_speed(case: &Case<'_>, host: HostId) -> Option<f64> {
    let interface = data_interface(case.observations.run, host)?;
    let is_physical = interface
        .driver
        .as_deref()
        .is_some_and(|driver| !crate::basis::VIRTUAL.contains(&driver));
    interface
        .speed_bits_per_sec
        .filter(|speed| is_physical && *speed > 0.0)
}

/// A single connection does so much less than several.
const LESS: f64 = 0.85;

/// The first limit that most of the hosts share, of hosts that do `rate` bits per second with
/// several connections.
pub(super) fn limit(case: &Case<'_>, hosts: &[HostId], rate: f64) -> Option<SharedLimit> {
    quota(case, hosts)
        .or_else(|| core(case, Flows::All))
        .or_else(|| window(case, Flows::All))
        .or_else(|| send_buffer(case, Flows::All))
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

fn core(case: &Case<'_>, which: Flows) -> Option<SharedLimit> {
    let cpus = cpus_per_connection(case, which)?;
    (cpus >= WHOLE_CPU).then_some(SharedLimit::FullThreads { cpu_share: cpus })
}

fn window(case: &Case<'_>, which: Flows) -> Option<SharedLimit> {
    let share = of_flows(case, which, |row| {
        limited_share(row, |info| info.receive_window_limited_us)
    })?;
    (share >= LIMITED).then(|| SharedLimit::ReceiveWindow {
        limited_share: share,
        round_trip_ns: round_trip_ns(case, which),
    })
}

/// The median of isolated flows.
fn round_trip_ns(case: &Case<'_>, which: Flows) -> Option<u64> {
    let of_row = |row: &FlowRecord| {
        let streams = &row.sender.as_ref()?.streams;
        Some(f64::from(streams.first()?.tcp_info?.rtt_us))
    };
    of_flows(case, which, of_row).map(|rtt_us| (1e3 * rtt_us) as u64)
}

fn send_buffer(case: &Case<'_>, which: Flows) -> Option<SharedLimit> {
    let share = of_flows(case, which, |row| {
        limited_share(row, |info| info.send_buffer_limited_us)
    })?;
    (share >= LIMITED).then_some(SharedLimit::SendBuffer {
        limited_share: share,
    })
}

fn per_connection(case: &Case<'_>, rate: f64) -> Option<SharedLimit> {
    let limit = case
        .network
        .connection_limit()
        .filter(|limit| *limit < LESS * rate)?;
    Some(SharedLimit::Connection {
        bits_per_sec: limit,
        several_bits_per_sec: rate,
    })
}

/// Median over isolated flows of the CPUs that the busier end's threads used, per connection.
fn cpus_per_connection(case: &Case<'_>, which: Flows) -> Option<f64> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flows {
    All,
    /// Several connections fill a link that none of them fills alone, and then wait for it and not
    /// for their windows.
    SingleConnections,
}

impl Flows {
    fn has(self, row: &FlowRecord) -> bool {
        let connections = row.sender.as_ref().map_or(0, |end| end.streams.len());
        self == Self::All || connections == 1
    }
}

/// Median over isolated flows of the capacity tests.
fn of_flows(
    case: &Case<'_>,
    which: Flows,
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
