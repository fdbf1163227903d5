//! One metric of a stage in both states.

use super::levels::{Levels, Tested};
use super::outliers;
use super::values::{Measured, Pair, Typical, Values};
use ew_model::analysis::Estimate;
use ew_model::comparison::{
    Change, HostComparison, Method, Metric, MetricComparison, PairComparison, RoleComparison,
};
use ew_stats::significance::{
    adjusted_where_known, interval_over_hosts, paired_shift, rank_sum, rank_sum_can_tell, shift,
    signed_rank,
};
use ew_stats::{MIN_FOR_INTERVAL, median};
use std::collections::{BTreeMap, BTreeSet};

/// Seed of the bootstrap: the same runs give the same interval.
const SEED: u64 = 0x000e_a57e_57e5;
/// Fewer flows prove less than as many rounds of them: six that all fell are 3% likely by chance.
const FEW_FLOWS: usize = 10;

/// `None` when a side has no value.
pub(super) fn compare(
    metric: Metric,
    base: &[Measured<'_, '_>],
    other: &[Measured<'_, '_>],
    history: &[Measured<'_, '_>],
) -> Option<MetricComparison> {
    let [base, other, history] = [base, other, history].map(|runs| values(metric, runs));
    let summaries = (Values::summary(&base)?, Values::summary(&other)?);
    let levels = Levels::of(&base, &other, &history);
    let spread = levels.spread(metric);
    let a = Values::together(metric, &base);
    let b = Values::together(metric, &other);
    let flows: Vec<&Pair> = a.common(&b).collect();
    let is_single = base.len() == 1 && other.len() == 1;
    let (method, tested) = if is_single {
        let method = method(&a, &b, flows.len());
        let within = tested(method, &a, &b, &flows);
        (method, within.allowing_for(&spread))
    } else {
        let (base, other) = (base.len() as u32, other.len() as u32);
        (Method::Runs { base, other }, levels.tested(&spread))
    };
    let is_paired = matches!(method, Method::Flows { .. }) || are_same(&a, &b, flows.len());
    Some(MetricComparison {
        metric,
        base: summaries.0,
        other: summaries.1,
        method,
        spread,
        ratio: tested.ratio,
        ratio_over_hosts: is_paired.then(|| over_hosts(&a, &b, &flows)).flatten(),
        p_value: tested.p_value,
        q_value: None,
        change: Change::Unknown,
        beyond_threshold: false,
        pairs: pairs(&a, &b, &flows),
        hosts: hosts(&a, &b, &flows),
    })
}

/// Of the runs that have any.
fn values(metric: Metric, runs: &[Measured<'_, '_>]) -> Vec<Values> {
    let all = runs.iter().map(|run| Values::of(metric, *run));
    all.filter(|run| !run.by_pair.is_empty()).collect()
}

/// By flow where both runs have enough of the same; by round where the same few flows were
/// repeated; else by different flows.
fn method(a: &Values, b: &Values, common: usize) -> Method {
    let (base, other) = (a.by_pair.len(), b.by_pair.len());
    let rounds = (a.by_round.len(), b.by_round.len());
    let are_same = are_same(a, b, common);
    let are_repeated = are_same && common < FEW_FLOWS && rounds.0.min(rounds.1) >= common;
    if common >= MIN_FOR_INTERVAL && 2 * common >= base.max(other) && !are_repeated {
        return Method::Flows {
            flows: common as u32,
        };
    }
    if !are_same && rank_sum_can_tell(base, other) {
        return Method::DifferentFlows {
            base: base as u32,
            other: other as u32,
        };
    }
    Method::Rounds {
        base: rounds.0 as u32,
        other: rounds.1 as u32,
    }
}

/// Whether both runs have the same flows and no others.
fn are_same(a: &Values, b: &Values, common: usize) -> bool {
    common == a.by_pair.len() && common == b.by_pair.len()
}

fn typical<'v>(base: &Values, flows: &[&'v Pair]) -> Typical<'v> {
    let level = |pair: &&'v Pair| (*pair, base.level(pair));
    flows.iter().map(level).collect()
}

fn tested(method: Method, a: &Values, b: &Values, flows: &[&Pair]) -> Tested {
    let unpaired = |a: &[f64], b: &[f64]| Tested {
        ratio: shift(a, b).map(|shift| exponential(&shift)),
        p_value: rank_sum(a, b).filter(|_| rank_sum_can_tell(a.len(), b.len())),
    };
    match method {
        Method::Flows { .. } => {
            let differences: Vec<f64> = flows.iter().map(|p| b.level(p) - a.level(p)).collect();
            Tested {
                ratio: paired_shift(&differences).map(|shift| exponential(&shift)),
                // Nothing but equal pairs is no difference.
                p_value: Some(signed_rank(&differences).unwrap_or(1.0)),
            }
        }
        Method::DifferentFlows { .. } => unpaired(&a.levels(), &b.levels()),
        Method::Rounds { .. } | Method::Runs { .. } => {
            let is_usual_known = are_same(a, b, flows.len());
            let known = if is_usual_known { flows } else { &[] };
            let typical = typical(a, known);
            unpaired(&a.rounds(&typical), &b.rounds(&typical))
        }
    }
}

fn exponential(shift: &Estimate) -> Estimate {
    Estimate {
        value: shift.value.exp(),
        low: shift.low.map(f64::exp),
        high: shift.high.map(f64::exp),
        samples: shift.samples,
    }
}

fn over_hosts(a: &Values, b: &Values, flows: &[&Pair]) -> Option<(f64, f64)> {
    let names: BTreeSet<&String> = flows.iter().flat_map(|(src, dst)| [src, dst]).collect();
    let index: BTreeMap<&String, usize> = names.iter().copied().zip(0..).collect();
    let flows: Vec<(usize, usize, f64)> = flows
        .iter()
        .map(|pair| {
            (
                index[&pair.0],
                index[&pair.1],
                b.level(pair) - a.level(pair),
            )
        })
        .collect();
    let (low, high) = interval_over_hosts(&flows, names.len(), SEED)?;
    Some((low.exp(), high.exp()))
}

/// Each flow by its change against those of all, the worst change first.
fn pairs(a: &Values, b: &Values, flows: &[&Pair]) -> Vec<PairComparison> {
    let changes: Vec<f64> = flows.iter().map(|p| b.level(p) - a.level(p)).collect();
    let p_values = outliers::p_values(&from_middle(&changes), 1);
    let mut pairs: Vec<PairComparison> = flows
        .iter()
        .zip(changes)
        .zip(adjusted_where_known(&p_values))
        .map(|((pair, change), q_value)| {
            let (base, other) = (&a.by_pair[*pair], &b.by_pair[*pair]);
            PairComparison {
                src: pair.0.clone(),
                dst: pair.1.clone(),
                base: median(base).unwrap_or_default(),
                other: median(other).unwrap_or_default(),
                ratio: change.exp(),
                base_rounds: base.len() as u32,
                other_rounds: other.len() as u32,
                q_value,
            }
        })
        .collect();
    pairs.sort_by(|x, y| x.ratio.total_cmp(&y.ratio));
    if !a.metric.more_is_better() {
        pairs.reverse();
    }
    pairs
}

fn from_middle(changes: &[f64]) -> Vec<f64> {
    let middle = median(changes).unwrap_or_default();
    changes.iter().map(|change| change - middle).collect()
}

/// Each host at both ends of its flows, by its change against those of all hosts at that end: what
/// moved for all is the stage's.
fn hosts(a: &Values, b: &Values, flows: &[&Pair]) -> Vec<HostComparison> {
    let mut sending = roles(a, b, flows, |pair| &pair.0);
    let mut receiving = roles(a, b, flows, |pair| &pair.1);
    let all = || sending.values().chain(receiving.values());
    let deviations: Vec<f64> = all()
        .filter_map(|role| role.relative)
        .map(f64::ln)
        .collect();
    let has_peers = |roles: &BTreeMap<&String, RoleComparison>| {
        usize::from(roles.values().any(|role| role.relative.is_some()))
    };
    let groups = has_peers(&sending) + has_peers(&receiving);
    let p_values = outliers::p_values(&deviations, groups);
    let adjusted = adjusted_where_known(&p_values);
    let roles = sending.values_mut().chain(receiving.values_mut());
    let known = roles.filter(|role| role.relative.is_some());
    for (role, q_value) in known.zip(adjusted) {
        role.q_value = q_value;
    }
    let names: BTreeSet<&String> = sending.keys().chain(receiving.keys()).copied().collect();
    names
        .into_iter()
        .map(|name| HostComparison {
            name: name.clone(),
            sending: sending.get(name).copied(),
            receiving: receiving.get(name).copied(),
        })
        .collect()
}

/// All hosts at one end of their flows, not tested yet.
fn roles<'v>(
    a: &Values,
    b: &Values,
    flows: &[&'v Pair],
    end: fn(&Pair) -> &String,
) -> BTreeMap<&'v String, RoleComparison> {
    let mut changes: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for &pair in flows {
        let change = b.level(pair) - a.level(pair);
        changes.entry(end(pair)).or_default().push(change);
    }
    let middles: BTreeMap<&String, (f64, usize)> = changes
        .iter()
        .filter_map(|(name, changes)| Some((*name, (median(changes)?, changes.len()))))
        .collect();
    let of_all: Vec<f64> = middles.values().map(|(change, _)| *change).collect();
    let middle = median(&of_all).filter(|_| of_all.len() >= outliers::MIN_PEERS);
    let role = |(name, (change, flows)): (&'v String, (f64, usize))| {
        let role = RoleComparison {
            ratio: change.exp(),
            relative: middle.map(|middle| (change - middle).exp()),
            flows: flows as u32,
            q_value: None,
            beyond_threshold: false,
        };
        (name, role)
    };
    middles.into_iter().map(role).collect()
}
