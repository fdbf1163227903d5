//! All hosts of a class stay well below their links' own speed: never fine, whatever they agree on.

use super::case::Case;
use super::shared_limit::{Flows, core, limit, per_connection, send_buffer, window};
use super::stated_nic;
use crate::finding::{bit_rate, finding_of};
use ew_evidence::basis::{most_common, physical_speed};
use ew_evidence::criteria::UNIFORMLY_SLOW;
use ew_model::HostId;
use ew_model::finding::details::{BelowLinkSpeed, SharedLimit, SingleConnections};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Symptom};

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
        .filter(|limit| *limit < UNIFORMLY_SLOW * typical)?;
    let single = Flows::SingleConnections;
    let found = core(case, single)
        .or_else(|| window(case, single))
        .or_else(|| send_buffer(case, single))
        .or_else(|| per_connection(case, typical))?;
    Some(Finding {
        symptom: Some(Symptom::SlowStage),
        measured: bit_rate(limit),
        expected: bit_rate(typical),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            found.cause(),
            Details::SingleConnections(SingleConnections {
                host: None,
                bits_per_sec: limit,
                several_bits_per_sec: typical,
                limit: found,
            }),
        )
    })
}

fn of_class(case: &Case<'_>, rate: f64, hosts: &[HostId]) -> Option<Finding> {
    let speeds = hosts
        .iter()
        .filter_map(|host| physical_speed(case.observations.run, *host));
    let link = most_common(speeds.map(|speed| speed.round() as u64))? as f64;
    let goodput = link * case.reference.basis.efficiency;
    if rate >= UNIFORMLY_SLOW * goodput {
        return None;
    }
    let found = limit(case, hosts, rate, link);
    let cause = found
        .as_ref()
        .map_or(Cause::BelowLinkSpeed, SharedLimit::cause);
    Some(Finding {
        symptom: Some(Symptom::SlowStage),
        measured: bit_rate(rate),
        expected: bit_rate(goodput),
        ..finding_of(
            Severity::Notice,
            Subject::Run,
            cause,
            Details::BelowLinkSpeed(BelowLinkSpeed {
                hosts: hosts.len(),
                bits_per_sec: rate,
                goodput_bits_per_sec: goodput,
                limit: found,
            }),
        )
    })
}
