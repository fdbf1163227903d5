//! A single ordered pair is slow although both its hosts are not.

use super::case::Case;
use super::slow_at_times;
use crate::finding::{MAX_EVIDENCE, bit_rate, finding_of, plain};
use ew_evidence::criteria::MIN_EFFECT;
use ew_fit::{Direction, Effect, Location, PartFound};
use ew_model::HostId;
use ew_model::finding::details::{self, PairRate};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};

/// A slow pair as the fit found it.
pub(super) struct SlowPair<'a> {
    src: HostId,
    dst: HostId,
    bits_per_sec: f64,
    expected: f64,
    part: &'a PartFound,
    /// Both hosts were seen with other peers.
    is_distinguished: bool,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut slow: Vec<SlowPair<'_>> = case
        .network
        .parts
        .iter()
        .filter_map(|part| slow_pair(case, part))
        .collect();
    let hosts = case.observations.inventory().host_ids();
    slow.extend(hosts.filter_map(|host| ambiguous(case, host)));
    // What slows a host at times slows some of its pairs more often than others.
    let slow_at_times = slow_at_times::hosts(case);
    slow.retain(|pair| !slow_at_times.contains(&pair.src) && !slow_at_times.contains(&pair.dst));
    slow.sort_by(|a, b| (a.bits_per_sec / a.expected).total_cmp(&(b.bits_per_sec / b.expected)));
    // Of few pairs each is a finding.
    if 2 * slow.len() > MAX_EVIDENCE {
        return vec![folded(&slow)];
    }
    slow.iter().map(finding).collect()
}

/// A host found slow that met so few others that the peer, or the path between them, explains it as
/// well.
pub(super) fn ambiguous<'a>(case: &Case<'a>, host: HostId) -> Option<SlowPair<'a>> {
    let of_host =
        |part: &&PartFound| matches!(part.location, Location::Host(own, _) if own == host);
    let part = case.network.parts.iter().find(of_host)?;
    let Effect::Capacity(bits_per_sec) = part.effect else {
        return None;
    };
    let (src, dst) = part.rivals.iter().find_map(|location| match *location {
        Location::Host(other, Direction::Tx) if other != host => Some((other, host)),
        Location::Host(other, Direction::Rx) if other != host => Some((host, other)),
        _ => None,
    })?;
    below_class(case, part, (src, dst), bits_per_sec, false)
}

fn slow_pair<'a>(case: &Case<'a>, part: &'a PartFound) -> Option<SlowPair<'a>> {
    let (Location::Pair(src, dst), Effect::Capacity(bits_per_sec)) = (part.location, part.effect)
    else {
        return None;
    };
    below_class(case, part, (src, dst), bits_per_sec, true)
}

/// `None` where the rate is what the slower of both classes does.
fn below_class<'a>(
    case: &Case<'a>,
    part: &'a PartFound,
    (src, dst): (HostId, HostId),
    bits_per_sec: f64,
    is_distinguished: bool,
) -> Option<SlowPair<'a>> {
    let class_rate = |host| case.network.class_rate(host);
    let expected = class_rate(src)?.min(class_rate(dst)?);
    (bits_per_sec < (1.0 - MIN_EFFECT) * expected).then_some(SlowPair {
        src,
        dst,
        bits_per_sec,
        expected,
        part,
        is_distinguished,
    })
}

fn finding(pair: &SlowPair<'_>) -> Finding {
    Finding {
        measured: bit_rate(pair.bits_per_sec),
        expected: bit_rate(pair.expected),
        ..finding_of(
            Severity::Fault,
            Subject::Pair {
                src: pair.src,
                dst: pair.dst,
            },
            Cause::SlowPair,
            Details::SlowPair(details::SlowPair {
                pair: rate_of(pair),
                expected_bits_per_sec: pair.expected,
                is_distinguished: pair.is_distinguished,
            }),
        )
    }
}

fn folded(slow: &[SlowPair<'_>]) -> Finding {
    Finding {
        measured: plain(slow.len() as f64, "count"),
        expected: plain(0.0, "count"),
        ..finding_of(
            Severity::Fault,
            Subject::Run,
            Cause::SlowPair,
            Details::SlowPairs(details::SlowPairs {
                count: slow.len(),
                pairs: slow.iter().take(MAX_EVIDENCE).map(rate_of).collect(),
                expected_bits_per_sec: slow[0].expected,
            }),
        )
    }
}

fn rate_of(pair: &SlowPair<'_>) -> PairRate {
    PairRate {
        src: pair.src,
        dst: pair.dst,
        bits_per_sec: pair.bits_per_sec,
        rounds: pair.part.rounds,
    }
}
