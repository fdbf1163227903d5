//! A host sends or receives slower than its peers.

use super::case::Case;
use super::side_rates::{peers_rate, side_rates};
use super::suspect::Suspect;
use super::{link_speed, path_loss, slow_pair, why};
use crate::finding::{finding_of, quantity};
use ew_evidence::criteria::{MIN_EFFECT, SLOW};
use ew_fit::{Side, SlowSide};
use ew_model::analysis::Estimate;
use ew_model::finding::details::{Directions, SlowDirection, SlowHost, Why};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, Symptom};
use ew_model::{HostId, RackId};

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let unexplained = hosts.filter(|host| {
        !link_speed::explains(case, *host) && slow_pair::ambiguous(case, *host).is_none()
    });
    unexplained
        .flat_map(|host| findings(case, host).unwrap_or_default())
        .collect()
}

/// One finding for a host, unless its sides are slow for different reasons.
fn findings(case: &Case<'_>, host: HostId) -> Option<Vec<Finding>> {
    let typical = &peers_rate(case, host)?;
    let slow = &case.network.slow;
    let tx = slow.get(&Side::Tx(host));
    let rx = slow.get(&Side::Rx(host));
    // Why is asked of few: each question compares a host with all others.
    let worse = worse((tx, rx))?;
    if !(is_slow(worse, typical) || path_loss::is_proven(case, host)) {
        return None;
    }
    let why = |tx: bool, rx: bool| why::explain(case, &Suspect { host, tx, rx });
    let of_tx = tx.and_then(|_| why(true, false));
    let of_rx = rx.and_then(|_| why(false, true));
    let found = match (of_tx, of_rx) {
        (Some(a), Some(b)) if a.cause() != b.cause() && !is_one_link(tx, rx, &a) => vec![
            finding(case, host, (tx, None), typical, Some(a)),
            finding(case, host, (None, rx), typical, Some(b)),
        ],
        (a, b) => vec![finding(case, host, (tx, rx), typical, a.or(b))],
    };
    Some(found.into_iter().flatten().collect())
}

/// A link that is known to be slow and is as slow the other way needs no other reason there.
fn is_one_link(tx: Option<&SlowSide>, rx: Option<&SlowSide>, of_tx: &Why) -> bool {
    let (Some(tx), Some(rx)) = (tx, rx) else {
        return false;
    };
    of_tx.cause() == Cause::LinkSpeed && (tx.rate.value / rx.rate.value).ln().abs() < -SLOW.ln()
}

/// `None` when neither side is slow enough. A link that loses packets is reported whatever TCP
/// makes of it.
fn finding(
    case: &Case<'_>,
    host: HostId,
    (tx, rx): (Option<&SlowSide>, Option<&SlowSide>),
    typical: &Estimate,
    why: Option<Why>,
) -> Option<Finding> {
    let worse = worse((tx, rx))?;
    let is_lossy = matches!(why, Some(Why::LossOnLink(_))) && path_loss::is_proven(case, host);
    if !(is_slow(worse, typical) || is_lossy) {
        return None;
    }
    let (symptom, alone) = kinds(tx.is_some(), rx.is_some());
    let cause = why.as_ref().map_or(alone, Why::cause);
    Some(Finding {
        symptom: Some(symptom),
        measured: quantity(&worse.rate, "bits_per_sec"),
        expected: quantity(typical, "bits_per_sec"),
        ..finding_of(
            Severity::Fault,
            Subject::Host { host },
            cause,
            Details::SlowHost(SlowHost {
                host,
                sides: slow_directions(tx, rx),
                peers_bits_per_sec: typical.value,
                flows: side_rates(case, host),
                alone_in: alone_in(case, host).filter(|_| why.is_none()),
                why,
            }),
        )
    })
}

/// The host's rack, among others, where it has no other host.
fn alone_in(case: &Case<'_>, host: HostId) -> Option<RackId> {
    let inventory = case.observations.inventory();
    let own = inventory.rack_of(host)?;
    let is_alone = inventory.hosts_in(own).len() == 1;
    (is_alone && inventory.racks.len() > 1).then_some(own)
}

/// The slower side.
fn worse<'a>(sides: (Option<&'a SlowSide>, Option<&'a SlowSide>)) -> Option<&'a SlowSide> {
    let sides = [sides.0, sides.1].into_iter().flatten();
    sides.min_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
}

/// Whether it is slow enough to be reported.
fn is_slow(side: &SlowSide, typical: &Estimate) -> bool {
    side.rate.value <= (1.0 - MIN_EFFECT) * typical.value
}

/// What it does to the rates, and the cause where no deeper one is found.
fn kinds(tx: bool, rx: bool) -> (Symptom, Cause) {
    match (tx, rx) {
        (true, false) => (Symptom::SlowSender, Cause::SlowSender),
        (false, true) => (Symptom::SlowReceiver, Cause::SlowReceiver),
        _ => (Symptom::SlowHost, Cause::SlowHost),
    }
}

/// One for both sides where they are alike.
fn slow_directions(tx: Option<&SlowSide>, rx: Option<&SlowSide>) -> Vec<SlowDirection> {
    let slow = |directions, side: &SlowSide| SlowDirection {
        directions,
        bits_per_sec: side.rate.value,
    };
    let tx = tx.map(|side| slow(Directions::Tx, side));
    let rx = rx.map(|side| slow(Directions::Rx, side));
    match (tx, rx) {
        (Some(tx), Some(rx)) if (tx.bits_per_sec / rx.bits_per_sec).ln().abs() < -SLOW.ln() => {
            vec![SlowDirection {
                directions: Directions::Both,
                bits_per_sec: tx.bits_per_sec.min(rx.bits_per_sec),
            }]
        }
        (tx, rx) => tx.into_iter().chain(rx).collect(),
    }
}
