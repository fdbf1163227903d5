//! A single ordered pair is slow although both its hosts are not.

use super::{Case, evidence, slow_at_times};
use crate::fit::{Direction, Effect, LEAST_EFFECT, PartFound, Place};
use crate::precision::confidence;
use crate::words::{count, list, plain};
use ew_model::HostId;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
use ew_model::units::format_bits_per_sec;

/// Pairs reported one by one; more are folded into one finding.
const MOST_FINDINGS: usize = 8;

/// A slow pair as the fit found it.
pub(super) struct SlowPair<'a> {
    src: HostId,
    dst: HostId,
    bits_per_sec: f64,
    expected: f64,
    part: &'a PartFound,
    /// Both hosts were seen with other peers.
    is_told_apart: bool,
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
    // What holds a host back at times holds some of its pairs back more often than others.
    let slow_at_times = slow_at_times::hosts(case);
    slow.retain(|pair| !slow_at_times.contains(&pair.src) && !slow_at_times.contains(&pair.dst));
    slow.sort_by(|a, b| (a.bits_per_sec / a.expected).total_cmp(&(b.bits_per_sec / b.expected)));
    if slow.len() > MOST_FINDINGS {
        return vec![folded(case, &slow)];
    }
    slow.iter().map(|pair| finding(case, pair)).collect()
}

/// A host found slow that met so few others that the peer, or the path between them, explains it as
/// well.
pub(super) fn ambiguous<'a>(case: &Case<'a>, host: HostId) -> Option<SlowPair<'a>> {
    let of_host = |part: &&PartFound| matches!(part.place, Place::Host(own, _) if own == host);
    let part = case.network.parts.iter().find(of_host)?;
    let Effect::Capacity(bits_per_sec) = part.effect else {
        return None;
    };
    let (src, dst) = part.rivals.iter().find_map(|place| match *place {
        Place::Host(other, Direction::Tx) if other != host => Some((other, host)),
        Place::Host(other, Direction::Rx) if other != host => Some((host, other)),
        _ => None,
    })?;
    below_class(case, part, (src, dst), bits_per_sec, false)
}

fn slow_pair<'a>(case: &Case<'a>, part: &'a PartFound) -> Option<SlowPair<'a>> {
    let (Place::Pair(src, dst), Effect::Capacity(bits_per_sec)) = (part.place, part.effect) else {
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
    is_told_apart: bool,
) -> Option<SlowPair<'a>> {
    let class_rate = |host| case.network.class_rate(host);
    let expected = class_rate(src)?.min(class_rate(dst)?);
    (bits_per_sec < (1.0 - LEAST_EFFECT) * expected).then_some(SlowPair {
        src,
        dst,
        bits_per_sec,
        expected,
        part,
        is_told_apart,
    })
}

fn finding(case: &Case<'_>, pair: &SlowPair<'_>) -> Finding {
    let rate = format_bits_per_sec(pair.bits_per_sec);
    let expected = format_bits_per_sec(pair.expected);
    let percent = 100.0 * pair.bits_per_sec / pair.expected;
    let but = if pair.is_told_apart {
        "both hosts faster with other peers"
    } else {
        "client, server and path not distinguished with so few peers"
    };
    Finding {
        severity: Severity::Fault,
        subject: Subject::Pair {
            src: pair.src,
            dst: pair.dst,
        },
        cause: Cause::SlowPair,
        symptom: None,
        measured: Some(plain(pair.bits_per_sec, "bits_per_sec")),
        expected: Some(plain(pair.expected, "bits_per_sec")),
        confidence: confidence(Cause::SlowPair),
        details: Worded::details(
            format!(
                "{}: {percent:.0}% of expected ({rate} vs {expected}), {but}",
                name(case, pair)
            ),
            vec![proof(case, pair)],
            if pair.is_told_apart {
                "run the pair again with several streams (`--set streams=8`): if their rates spread, a hash puts connections on a bad path; \
             then compare per-member counters of the LAG or ECMP group"
                .into()
            } else {
                "run a mesh, or these two hosts with others, to distinguish the sides".into()
            },
        ),
        cables: Vec::new(),
    }
}

fn folded(case: &Case<'_>, slow: &[SlowPair<'_>]) -> Finding {
    let names: Vec<String> = slow.iter().map(|pair| name(case, pair)).collect();
    let worst = &slow[0];
    Finding {
        severity: Severity::Fault,
        subject: Subject::Run,
        cause: Cause::SlowPair,
        symptom: None,
        measured: Some(plain(slow.len() as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: confidence(Cause::SlowPair),
        details: Worded::details(format!(
            "{} slow, their hosts not: {}; min {} (expected {})",
            count(slow.len(), "pair"),
            list(&names),
            format_bits_per_sec(worst.bits_per_sec),
            format_bits_per_sec(worst.expected),
        ), slow.iter().take(2 * MOST_FINDINGS).map(|pair| proof(case, pair)).collect(), "look whether the slow pairs share a leaf, a spine or a LAG: per-member counters and hashing first; without racks, give \
               them with --racks"
            .into()),
        cables: Vec::new(),
    }
}

fn name(case: &Case<'_>, pair: &SlowPair<'_>) -> String {
    let inventory = case.observations.inventory();
    format!(
        "{} to {}",
        inventory.name(pair.src),
        inventory.name(pair.dst)
    )
}

fn proof(case: &Case<'_>, pair: &SlowPair<'_>) -> Evidence {
    let inventory = case.observations.inventory();
    evidence(
        format!(
            "{}: {} in {}",
            name(case, pair),
            format_bits_per_sec(pair.bits_per_sec),
            count(pair.part.rounds, "round")
        ),
        format!(
            "flows.parquet: src = {}, dst = {}",
            inventory.name(pair.src),
            inventory.name(pair.dst)
        ),
    )
}
