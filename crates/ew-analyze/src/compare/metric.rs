//! One metric of a stage in both runs.

use crate::datagrams;
use crate::latency;
use crate::observations::{Observations, StageView};
use crate::significance::{
    adjusted_where_known, interval_over_hosts, mean_estimate, paired_shift, rank_sum,
    rank_sum_can_tell, shift, signed_rank,
};
use crate::stats::{LEAST_FOR_INTERVAL, median, median_estimate, quantile};
use ew_model::analysis::Estimate;
use ew_model::comparison::{
    Change, HostComparison, Method, Metric, MetricComparison, PairComparison, RoleComparison,
    Summary,
};
use ew_model::plan::RoundIndex;
use ew_model::record::FlowRecord;
use std::collections::{BTreeMap, BTreeSet};

/// Seed of the bootstrap: the same runs give the same interval.
const SEED: u64 = 0x000e_a57e_57e5;
/// What has no logarithm counts as so little: a rate of 1/s, a time of 1 ns.
const LEAST: f64 = 1.0;
/// The same of a share, which is never above 1: one datagram in a million.
const LEAST_DELIVERED: f64 = 1e-6;
/// Fewer flows prove less than as many rounds of them: six that all fell are 3 % likely by chance.
const FEW_FLOWS: usize = 10;

/// Sender and receiver by name.
type Pair = (String, String);

/// One run's values of a metric.
struct Values {
    metric: Metric,
    by_pair: BTreeMap<Pair, Vec<f64>>,
    by_round: BTreeMap<RoundIndex, Vec<(Pair, f64)>>,
    /// By repetition of the rounds.
    by_sample: BTreeMap<u32, Vec<(Pair, f64)>>,
}

/// What flows had in the base run, as logarithms.
type Typical<'v> = BTreeMap<&'v Pair, f64>;

/// `None` when a side has no value.
pub(super) fn compare(
    metric: Metric,
    base: (&Observations<'_>, &StageView<'_>),
    other: (&Observations<'_>, &StageView<'_>),
) -> Option<MetricComparison> {
    let (a, b) = (Values::of(metric, base), Values::of(metric, other));
    let flows: Vec<&Pair> = a.common(&b).collect();
    let method = method(&a, &b, flows.len());
    let tested = tested(method, &a, &b, &flows);
    let is_paired = matches!(method, Method::Flows { .. }) || are_same(&a, &b, flows.len());
    Some(MetricComparison {
        metric,
        base: a.summary()?,
        other: b.summary()?,
        method,
        ratio: tested.ratio,
        ratio_over_hosts: is_paired.then(|| over_hosts(&a, &b, &flows)).flatten(),
        p_value: tested.p_value,
        q_value: None,
        change: Change::Unknown,
        beyond_threshold: false,
        reason: tested.p_value.is_none().then(|| too_little(method)),
        pairs: pairs(&a, &b, &flows),
        hosts: hosts(&a, &b, &flows),
    })
}

impl Values {
    fn of(metric: Metric, (observations, stage): (&Observations<'_>, &StageView<'_>)) -> Self {
        let inventory = observations.inventory();
        let mut values = Self {
            metric,
            by_pair: BTreeMap::new(),
            by_round: BTreeMap::new(),
            by_sample: BTreeMap::new(),
        };
        for round in stage.last_step() {
            for row in &round.records {
                let Some(value) = value(metric, row) else {
                    continue;
                };
                let name = |host| inventory.name(host).to_owned();
                let pair = (name(row.src), name(row.dst));
                let sample = values.by_sample.entry(row.sample).or_default();
                sample.push((pair.clone(), value));
                let of_round = values.by_round.entry(round.index).or_default();
                of_round.push((pair.clone(), value));
                values.by_pair.entry(pair).or_default().push(value);
            }
        }
        values
    }

    fn all(&self) -> Vec<f64> {
        self.by_pair.values().flatten().copied().collect()
    }

    fn summary(&self) -> Option<Summary> {
        let all = self.all();
        Some(Summary {
            mean: mean_estimate(&all)?,
            median: median_estimate(&all)?,
            least: quantile(&all, 0.0)?,
            max: quantile(&all, 1.0)?,
        })
    }

    fn common<'v>(&'v self, other: &'v Self) -> impl Iterator<Item = &'v Pair> {
        let pairs = self.by_pair.keys();
        pairs.filter(|pair| other.by_pair.contains_key(*pair))
    }

    /// Logarithm of a flow's median over rounds.
    fn level(&self, pair: &Pair) -> f64 {
        let values = self.by_pair.get(pair).map(Vec::as_slice);
        self.logarithm(median(values.unwrap_or_default()).unwrap_or_default())
    }

    fn levels(&self) -> Vec<f64> {
        self.by_pair.keys().map(|pair| self.level(pair)).collect()
    }

    /// How far each round's flows were from their `typical` levels, by the median over them; from
    /// nothing where those are not known.
    fn rounds(&self, typical: &Typical<'_>) -> Vec<f64> {
        let distance = |(pair, value): &(Pair, f64)| {
            self.logarithm(*value) - typical.get(pair).copied().unwrap_or_default()
        };
        let rounds = self.by_round.values();
        let distances = rounds.map(|rows| rows.iter().map(distance).collect::<Vec<_>>());
        distances.filter_map(|rows| median(&rows)).collect()
    }

    /// How far a host's flows were from their `typical` levels, by the median over them, once for
    /// every repetition: flows of one repetition are alike, so the repetitions are what can be
    /// counted.
    fn repetitions(
        &self,
        typical: &Typical<'_>,
        end: fn(&Pair) -> &String,
    ) -> BTreeMap<&String, Vec<f64>> {
        let mut hosts: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
        for sample in self.by_sample.values() {
            let mut distances: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
            for (pair, value) in sample {
                if let Some(typical) = typical.get(pair) {
                    let distance = self.logarithm(*value) - typical;
                    distances.entry(end(pair)).or_default().push(distance);
                }
            }
            for (host, distances) in distances {
                hosts.entry(host).or_default().extend(median(&distances));
            }
        }
        hosts
    }

    /// A value of zero has no ratio: a flow that did not move, one of which no
    /// datagram came.
    fn logarithm(&self, value: f64) -> f64 {
        let least = match self.metric {
            Metric::Delivered => LEAST_DELIVERED,
            _ => LEAST,
        };
        value.max(least).ln()
    }
}

fn value(metric: Metric, row: &FlowRecord) -> Option<f64> {
    let end = row.sender.as_ref();
    let times = || latency::figures(&end?.latency.as_ref()?.times);
    let reported = || end?.reported;
    let ns = match metric {
        Metric::Throughput => return row.bits_per_sec(),
        Metric::Transactions => return latency::transactions_per_sec(row),
        Metric::Delivered => return datagrams::delivered(row),
        Metric::LatencyMedian => times().map(|t| t.p50_ns).or_else(|| reported()?.p50_ns),
        Metric::LatencyP99 => times()
            .and_then(|t| t.p99_ns)
            .or_else(|| reported()?.p99_ns),
        Metric::LatencyP999 => times()?.p999_ns,
        Metric::ConnectMedian => Some(latency::figures(end?.connect_latency.as_ref()?)?.p50_ns),
        Metric::Jitter => Some(datagrams::counts(row)?.jitter_ns),
    };
    Some(ns? as f64)
}

/// By flow where both runs have enough of the same; by round where the same few flows were
/// repeated; else by different flows.
fn method(a: &Values, b: &Values, common: usize) -> Method {
    let (base, other) = (a.by_pair.len(), b.by_pair.len());
    let rounds = (a.by_round.len(), b.by_round.len());
    let are_same = are_same(a, b, common);
    let are_repeated = are_same && common < FEW_FLOWS && rounds.0.min(rounds.1) >= common;
    if common >= LEAST_FOR_INTERVAL && 2 * common >= base.max(other) && !are_repeated {
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

struct Tested {
    ratio: Option<Estimate>,
    p_value: Option<f64>,
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
        Method::Rounds { .. } => {
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

fn too_little(method: Method) -> String {
    let (base, other, what) = match method {
        Method::Flows { flows } => (flows, flows, "flows"),
        Method::DifferentFlows { base, other } => (base, other, "flows"),
        Method::Rounds { base, other } => (base, other, "rounds"),
    };
    format!(
        "{base} against {other} {what} cannot show a difference at 95 %; repeat with `--set samples=6`, or with more hosts"
    )
}

/// Each flow by its own repetitions, the worst change first.
fn pairs(a: &Values, b: &Values, flows: &[&Pair]) -> Vec<PairComparison> {
    let rounds = |pair: &Pair| (&a.by_pair[pair], &b.by_pair[pair]);
    let p_value = |pair: &Pair| {
        let (base, other) = rounds(pair);
        rank_sum(base, other).filter(|_| rank_sum_can_tell(base.len(), other.len()))
    };
    let p_values: Vec<Option<f64>> = flows.iter().map(|pair| p_value(pair)).collect();
    let mut pairs: Vec<PairComparison> = flows
        .iter()
        .zip(adjusted_where_known(&p_values))
        .map(|(pair, q_value)| {
            let (base, other) = rounds(pair);
            PairComparison {
                src: pair.0.clone(),
                dst: pair.1.clone(),
                base: median(base).unwrap_or_default(),
                other: median(other).unwrap_or_default(),
                ratio: (b.level(pair) - a.level(pair)).exp(),
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

fn hosts(a: &Values, b: &Values, flows: &[&Pair]) -> Vec<HostComparison> {
    let mut sending = roles(a, b, flows, |pair| &pair.0);
    let mut receiving = roles(a, b, flows, |pair| &pair.1);
    let both = || sending.values().chain(receiving.values());
    let p_values: Vec<Option<f64>> = both().map(|role| role.q_value).collect();
    let adjusted = adjusted_where_known(&p_values);
    let all = sending.values_mut().chain(receiving.values_mut());
    for (role, q_value) in all.zip(adjusted) {
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

/// All hosts at one end of their flows, with p-values that are not adjusted yet.
fn roles<'v>(
    a: &Values,
    b: &Values,
    flows: &[&'v Pair],
    end: fn(&Pair) -> &String,
) -> BTreeMap<&'v String, RoleComparison> {
    let typical = typical(a, flows);
    let (before, after) = (a.repetitions(&typical, end), b.repetitions(&typical, end));
    let mut differences: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
    for &pair in flows {
        let difference = b.level(pair) - typical[pair];
        differences.entry(end(pair)).or_default().push(difference);
    }
    let role = |(name, differences): (&'v String, Vec<f64>)| {
        let (before, after) = (before.get(name)?, after.get(name)?);
        let can_tell = rank_sum_can_tell(before.len(), after.len());
        let role = RoleComparison {
            ratio: median(&differences)?.exp(),
            flows: differences.len() as u32,
            q_value: rank_sum(before, after).filter(|_| can_tell),
            beyond_threshold: false,
        };
        Some((name, role))
    };
    differences.into_iter().filter_map(role).collect()
}
