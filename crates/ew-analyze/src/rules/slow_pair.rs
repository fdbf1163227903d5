//! A single ordered pair is slow although both its hosts are not.

use super::{Case, evidence};
use crate::capacity::{CellRates, LEAST_EFFECT, Side};
use crate::stats::{confidence, log_half_width, median_estimate};
use crate::words::{count, list, plain, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

/// Fewest rounds in which a pair must be slow before it is called a fault.
const LEAST_ROUNDS: usize = 3;
/// A pair seen fewer times than that is mentioned below this share: a hash collision halves a rate, noise does not.
const PLAIN_SHARE: f64 = 0.6;
/// A pair seen often enough is slow below this share.
const SLOW_SHARE: f64 = 0.85;
/// Pairs told one by one; more are folded into one finding.
const MOST_FINDINGS: usize = 8;

/// One slow pair.
struct SlowPair {
    src: HostId,
    dst: HostId,
    rate: Estimate,
    expected: f64,
    is_sure: bool,
    /// Whether each end was also seen with other partners.
    is_told_apart: bool,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let fit = &case.network.fit;
    let mut partners: BTreeMap<Side, u32> = BTreeMap::new();
    for (src, dst) in fit.cells.keys() {
        *partners.entry(Side::Tx(*src)).or_default() += 1;
        *partners.entry(Side::Rx(*dst)).or_default() += 1;
    }
    let has_others = |side: Side| partners.get(&side).is_some_and(|count| *count > 1);
    let mut slow: Vec<SlowPair> = fit
        .cells
        .iter()
        .filter_map(|((src, dst), cell)| {
            let is_told_apart = has_others(Side::Tx(*src)) && has_others(Side::Rx(*dst));
            slow_pair(case, (*src, *dst), cell, is_told_apart)
        })
        .collect();
    slow.sort_by(|a, b| (a.rate.value / a.expected).total_cmp(&(b.rate.value / b.expected)));
    if slow.len() > MOST_FINDINGS {
        return vec![folded(case, &slow)];
    }
    slow.iter().map(|pair| finding(case, pair)).collect()
}

fn slow_pair(
    case: &Case<'_>,
    (src, dst): (HostId, HostId),
    cell: &CellRates,
    is_told_apart: bool,
) -> Option<SlowPair> {
    let fit = &case.network.fit;
    let expected = fit.pair_expectation(src, dst).filter(|rate| *rate > 0.0)?;
    let rate = median_estimate(&cell.rates)?;
    let least_expected = least_expected(case, (src, dst), expected);
    let share = rate.value / least_expected;
    let healthy = (1.0 - LEAST_EFFECT) * least_expected;
    let is_sure = cell.rates.len() >= LEAST_ROUNDS
        && share < SLOW_SHARE
        && match rate.high {
            Some(high) => high < healthy,
            None => cell.rates.iter().all(|rate| *rate < healthy),
        };
    let is_plain = cell.rates.len() < LEAST_ROUNDS && share < PLAIN_SHARE;
    (is_sure || is_plain).then_some(SlowPair {
        src,
        dst,
        rate,
        expected,
        is_sure,
        is_told_apart,
    })
}

/// A slow host's own spread is no evidence against one of its partners: the pair is held against the lower end of what
/// the slow side does with all of them.
fn least_expected(case: &Case<'_>, (src, dst): (HostId, HostId), expected: f64) -> f64 {
    let slow = &case.network.fit.slow;
    [Side::Tx(src), Side::Rx(dst)]
        .iter()
        .filter_map(|side| slow.get(side)?.rate.low)
        .fold(expected, f64::min)
}

fn finding(case: &Case<'_>, pair: &SlowPair) -> Finding {
    let inventory = case.observations.inventory();
    let (src, dst) = (inventory.name(pair.src), inventory.name(pair.dst));
    let (rate, expected) = (
        format_bits_per_sec(pair.rate.value),
        format_bits_per_sec(pair.expected),
    );
    let but = if pair.is_told_apart {
        "both do better with other partners"
    } else {
        "sender, receiver and path cannot be told apart with so few partners"
    };
    let once = if pair.is_sure {
        ""
    } else {
        ", seen in too few rounds to be sure"
    };
    Finding {
        severity: if pair.is_sure {
            Severity::Fault
        } else {
            Severity::Notice
        },
        subject: Subject::Pair {
            src: pair.src,
            dst: pair.dst,
        },
        cause: Cause::SlowPair,
        sentence: format!(
            "{src} to {dst} is slow: {rate} where {expected} is expected; {but}{once}"
        ),
        measured: Some(quantity(&pair.rate, "bits_per_sec")),
        expected: Some(plain(pair.expected, "bits_per_sec")),
        confidence: confidence(
            (pair.rate.value.max(1.0) / pair.expected).ln(),
            log_half_width(&pair.rate, if pair.is_sure { 0.2 } else { 0.6 }),
        ),
        evidence: vec![evidence(
            format!(
                "median {rate} over {}",
                count(pair.rate.samples as usize, "round")
            ),
            format!(
                "flows.parquet: src = {src}, dst = {dst}, {}",
                count(pair.rate.samples as usize, "row")
            ),
        )],
        hint: if pair.is_told_apart {
            "run the pair again with several streams (`--set streams=8`): if the rate spreads, a hash puts flows on a \
             bad or busy member link; then look at per-member counters of the LAG or ECMP group"
                .into()
        } else {
            format!(
                "run a mesh, or a pair test of {src} and {dst} with other hosts, to tell the sides apart"
            )
        },
    }
}

fn folded(case: &Case<'_>, slow: &[SlowPair]) -> Finding {
    let inventory = case.observations.inventory();
    let name = |pair: &SlowPair| {
        format!(
            "{} to {}",
            inventory.name(pair.src),
            inventory.name(pair.dst)
        )
    };
    let names: Vec<String> = slow.iter().map(name).collect();
    let worst = &slow[0];
    let is_sure = slow.iter().any(|pair| pair.is_sure);
    Finding {
        severity: if is_sure { Severity::Fault } else { Severity::Notice },
        subject: Subject::Run,
        cause: Cause::SlowPair,
        sentence: format!(
            "{} are slow although their hosts do better with other partners: {}; the slowest does {} where {} is \
             expected",
            count(slow.len(), "pair"),
            list(&names),
            format_bits_per_sec(worst.rate.value),
            format_bits_per_sec(worst.expected),
        ),
        measured: Some(plain(slow.len() as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: if is_sure { 0.9 } else { 0.5 },
        evidence: slow
            .iter()
            .take(2 * MOST_FINDINGS)
            .map(|pair| {
                let rate = format_bits_per_sec(pair.rate.value);
                evidence(
                    format!("{}: median {rate}", name(pair)),
                    format!(
                        "flows.parquet: src = {}, dst = {}, {}",
                        inventory.name(pair.src),
                        inventory.name(pair.dst),
                        count(pair.rate.samples as usize, "row")
                    ),
                )
            })
            .collect(),
        hint: "look whether the slow pairs share a leaf, a spine or a LAG: per-member counters and hashing come first; \
               if no racks were given, give them with --racks"
            .into(),
    }
}
