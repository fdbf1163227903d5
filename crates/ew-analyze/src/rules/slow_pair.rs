//! A single ordered pair is slow although both its hosts are not.

use super::{Case, evidence, held_back};
use crate::capacity::{CellRates, LEAST_EFFECT, Side};
use crate::stats::{confidence, log_half_width, median_estimate};
use crate::words::{count, list, plain, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

/// Fewest rounds in which a pair must be seen before it is called a fault.
const LEAST_ROUNDS: usize = 3;
/// A pair seen fewer times than that must stay below this share in most of each window: a hash collision halves a rate
/// from end to end, noise does not, and one retransmission timeout is a pause of 200 ms.
const PLAIN_SHARE: f64 = 0.6;
/// A pair seen often enough is slow below this share.
const SLOW_SHARE: f64 = 0.85;
/// Pairs told one by one; more are folded into one finding.
const MOST_FINDINGS: usize = 8;

/// What the steady rounds that measured a pair allow to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    /// Slow in round after round.
    Sure,
    /// Plainly slow in both rounds that measured it, while the others in those rounds were not.
    Likely,
    /// Plainly slow, but in a single round, or in rounds too small to show whether they were slow as a whole. What
    /// happened in them explains it as well as the pair does, so nobody is accused.
    Open,
}

/// One slow pair.
struct SlowPair {
    src: HostId,
    dst: HostId,
    rate: Estimate,
    expected: f64,
    certainty: Certainty,
    /// Whether each end was also seen with other partners.
    is_told_apart: bool,
}

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let (open, slow): (Vec<_>, Vec<_>) = slow_pairs(case)
        .into_iter()
        .partition(|pair| pair.certainty == Certainty::Open);
    let mut findings: Vec<Finding> = if slow.len() > MOST_FINDINGS {
        vec![folded(case, &slow)]
    } else {
        slow.iter().map(|pair| finding(case, pair)).collect()
    };
    findings.extend(measure_again(case, &open));
    findings
}

/// All pairs that look slow, the slowest first.
fn slow_pairs(case: &Case<'_>) -> Vec<SlowPair> {
    let fit = &case.network.fit;
    let mut partners: BTreeMap<Side, u32> = BTreeMap::new();
    for (src, dst) in fit.cells.keys() {
        *partners.entry(Side::Tx(*src)).or_default() += 1;
        *partners.entry(Side::Rx(*dst)).or_default() += 1;
    }
    let has_others = |side: Side| partners.get(&side).is_some_and(|count| *count > 1);
    let held_back = held_back::hosts(case);
    let mut slow: Vec<SlowPair> = fit
        .cells
        .iter()
        .filter(|((src, dst), _)| !case.losses.touch(case.observations.inventory(), *src, *dst))
        .filter_map(|((src, dst), cell)| {
            let is_told_apart = has_others(Side::Tx(*src)) && has_others(Side::Rx(*dst));
            slow_pair(case, (*src, *dst), cell, is_told_apart)
        })
        .filter(|pair| !held_back.contains(&pair.src) && !held_back.contains(&pair.dst))
        .collect();
    slow.sort_by(|a, b| (a.rate.value / a.expected).total_cmp(&(b.rate.value / b.expected)));
    slow
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
    Some(SlowPair {
        src,
        dst,
        rate,
        expected,
        certainty: certainty(cell, &rate, least_expected)?,
        is_told_apart,
    })
}

/// `None` for a pair that is not slow, or whose ends lacked CPU time in most of its rounds: then it is not the pair.
fn certainty(cell: &CellRates, rate: &Estimate, least_expected: f64) -> Option<Certainty> {
    let rates = &cell.rates;
    if 2 * cell.without_cpu > rates.len() {
        return None;
    }
    let all_below = |share: f64| rates.iter().all(|rate| *rate < share * least_expected);
    if rates.len() < LEAST_ROUNDS {
        let certainty = if cell.in_company >= 2 {
            Certainty::Likely
        } else {
            Certainty::Open
        };
        let is_plain = cell.upper_bits_per_sec < PLAIN_SHARE * least_expected;
        return is_plain.then_some(certainty);
    }
    let is_low = rate.value < SLOW_SHARE * least_expected;
    let excludes_healthy = match rate.high {
        Some(high) => high < (1.0 - LEAST_EFFECT) * least_expected,
        None => all_below(1.0 - LEAST_EFFECT),
    };
    (is_low && excludes_healthy).then_some(Certainty::Sure)
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
    let is_sure = pair.certainty == Certainty::Sure;
    let but = if pair.is_told_apart {
        "both do better with other partners"
    } else {
        "sender, receiver and path cannot be told apart with so few partners"
    };
    let doubt = if is_sure {
        ""
    } else {
        ", seen in too few rounds to be sure"
    };
    Finding {
        severity: severity(is_sure),
        subject: Subject::Pair {
            src: pair.src,
            dst: pair.dst,
        },
        cause: Cause::SlowPair,
        symptom: None,
        sentence: format!(
            "{src} to {dst} is slow: {} where {} is expected; {but}{doubt}",
            format_bits_per_sec(pair.rate.value),
            format_bits_per_sec(pair.expected),
        ),
        measured: Some(quantity(&pair.rate, "bits_per_sec")),
        expected: Some(plain(pair.expected, "bits_per_sec")),
        confidence: confidence(
            (pair.rate.value.max(1.0) / pair.expected).ln(),
            log_half_width(&pair.rate, if is_sure { 0.2 } else { 0.6 }),
        ),
        evidence: vec![rounds_of(case, pair)],
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
    let is_sure = slow.iter().any(|pair| pair.certainty == Certainty::Sure);
    Finding {
        severity: severity(is_sure),
        subject: Subject::Run,
        cause: Cause::SlowPair,
        symptom: None,
        sentence: format!(
            "{} are slow although their hosts do better with other partners: {}; the slowest does {}",
            count(slow.len(), "pair"),
            names(case, slow),
            worst_rate(&slow[0]),
        ),
        measured: Some(plain(slow.len() as f64, "count")),
        expected: Some(plain(0.0, "count")),
        confidence: if is_sure { 0.9 } else { 0.5 },
        evidence: rounds_of_worst(case, slow),
        hint: "look whether the slow pairs share a leaf, a spine or a LAG: per-member counters and hashing come first; \
               if no racks were given, give them with --racks"
            .into(),
    }
}

/// Pairs seen too seldom are told together: none of them is accused, and a large mesh may have many.
fn measure_again(case: &Case<'_>, open: &[SlowPair]) -> Option<Finding> {
    let [worst, others @ ..] = open else {
        return None;
    };
    let (src, dst) = (worst.src, worst.dst);
    let (subject, was_slow, lasts) = if others.is_empty() {
        (Subject::Pair { src, dst }, "was slow: ", "it stays so")
    } else {
        (Subject::Run, "were slow, at worst ", "they stay so")
    };
    Some(Finding {
        severity: Severity::Notice,
        subject,
        cause: Cause::NotDetermined,
        symptom: None,
        sentence: format!(
            "{} {was_slow}{}; measured too seldom to determine whether {lasts}",
            names(case, open),
            worst_rate(worst),
        ),
        measured: Some(quantity(&worst.rate, "bits_per_sec")),
        expected: Some(plain(worst.expected, "bits_per_sec")),
        confidence: 0.5,
        evidence: rounds_of_worst(case, open),
        hint: "measure each pair at least three times (`--set samples=3`): what stays is a bad member link or a hash \
               collision, what goes was a moment's disturbance"
            .into(),
    })
}

fn severity(is_sure: bool) -> Severity {
    if is_sure {
        Severity::Fault
    } else {
        Severity::Notice
    }
}

/// "40 Mb/s where 95 Mb/s is expected".
fn worst_rate(worst: &SlowPair) -> String {
    format!(
        "{} where {} is expected",
        format_bits_per_sec(worst.rate.value),
        format_bits_per_sec(worst.expected),
    )
}

fn name(case: &Case<'_>, pair: &SlowPair) -> String {
    let inventory = case.observations.inventory();
    let (src, dst) = (inventory.name(pair.src), inventory.name(pair.dst));
    format!("{src} to {dst}")
}

fn names(case: &Case<'_>, pairs: &[SlowPair]) -> String {
    let names: Vec<String> = pairs.iter().map(|pair| name(case, pair)).collect();
    list(&names)
}

fn rounds_of(case: &Case<'_>, pair: &SlowPair) -> Evidence {
    let inventory = case.observations.inventory();
    let rounds = pair.rate.samples as usize;
    evidence(
        format!(
            "{}: median {} over {}",
            name(case, pair),
            format_bits_per_sec(pair.rate.value),
            count(rounds, "steady round"),
        ),
        format!(
            "flows.parquet: src = {}, dst = {}",
            inventory.name(pair.src),
            inventory.name(pair.dst),
        ),
    )
}

fn rounds_of_worst(case: &Case<'_>, pairs: &[SlowPair]) -> Vec<Evidence> {
    let worst = pairs.iter().take(2 * MOST_FINDINGS);
    worst.map(|pair| rounds_of(case, pair)).collect()
}
