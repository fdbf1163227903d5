//! One metric of a stage in both runs.

use crate::latency;
use crate::observations::{Observations, StageView};
use crate::significance::{
    adjusted, interval_over_hosts, mean_estimate, paired_shift, rank_sum, rank_sum_can_tell, shift,
    signed_rank,
};
use crate::stats::{LEAST_FOR_INTERVAL, median, median_estimate, quantile};
use ew_model::analysis::Estimate;
use ew_model::comparison::{
    Change, HostComparison, Method, Metric, MetricComparison, PairComparison, Summary,
};
use ew_model::plan::RoundIndex;
use ew_model::record::FlowRecord;
use std::collections::{BTreeMap, BTreeSet};

/// Seed of the bootstrap: the same runs give the same interval.
const SEED: u64 = 0x000e_a57e_57e5;

/// Sender and receiver by name.
type Pair = (String, String);

/// One run's values of a metric.
struct Values {
    by_pair: BTreeMap<Pair, Vec<f64>>,
    by_round: BTreeMap<RoundIndex, Vec<f64>>,
}

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
    let is_paired = matches!(method, Method::Flows { .. });
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
        pairs: pairs(metric, &a, &b, &flows),
        hosts: hosts(&a, &b, &flows),
    })
}

impl Values {
    fn of(metric: Metric, (observations, stage): (&Observations<'_>, &StageView<'_>)) -> Self {
        let inventory = observations.inventory();
        let mut values = Self {
            by_pair: BTreeMap::new(),
            by_round: BTreeMap::new(),
        };
        for round in stage.last_step() {
            for row in &round.records {
                let Some(value) = value(metric, row) else {
                    continue;
                };
                let name = |host| inventory.name(host).to_owned();
                let pair = (name(row.src), name(row.dst));
                values.by_pair.entry(pair).or_default().push(value);
                values.by_round.entry(round.index).or_default().push(value);
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
            greatest: quantile(&all, 1.0)?,
        })
    }

    fn common<'v>(&'v self, other: &'v Self) -> impl Iterator<Item = &'v Pair> {
        let pairs = self.by_pair.keys();
        pairs.filter(|pair| other.by_pair.contains_key(*pair))
    }

    /// Logarithm of a flow's median over rounds.
    fn level(&self, pair: &Pair) -> f64 {
        let values = self.by_pair.get(pair).map(Vec::as_slice);
        logarithm(median(values.unwrap_or_default()).unwrap_or_default())
    }

    fn levels(&self) -> Vec<f64> {
        self.by_pair.keys().map(|pair| self.level(pair)).collect()
    }

    /// Logarithm of each round's median over flows.
    fn rounds(&self) -> Vec<f64> {
        let medians = self.by_round.values().filter_map(|values| median(values));
        medians.map(logarithm).collect()
    }
}

fn value(metric: Metric, row: &FlowRecord) -> Option<f64> {
    let times = || latency::figures(&row.sender.as_ref()?.latency.as_ref()?.times);
    match metric {
        Metric::Throughput => row.bits_per_sec(),
        Metric::Transactions => latency::transactions_per_sec(row),
        Metric::LatencyMedian => Some(times()?.p50_ns as f64),
        Metric::LatencyP99 => Some(times()?.p99_ns? as f64),
    }
}

/// Of a rate or a time; a flow that stood still is as slow as can be told.
fn logarithm(value: f64) -> f64 {
    value.max(1.0).ln()
}

/// By flow where both runs have enough of the same; by round where the same few flows were repeated; else by different flows.
fn method(a: &Values, b: &Values, common: usize) -> Method {
    let (base, other) = (a.by_pair.len(), b.by_pair.len());
    if common >= LEAST_FOR_INTERVAL && 2 * common >= base.max(other) {
        return Method::Flows {
            flows: common as u32,
        };
    }
    let are_same = common == base && common == other;
    if !are_same && rank_sum_can_tell(base, other) {
        return Method::DifferentFlows {
            base: base as u32,
            other: other as u32,
        };
    }
    Method::Rounds {
        base: a.by_round.len() as u32,
        other: b.by_round.len() as u32,
    }
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
        Method::Rounds { .. } => unpaired(&a.rounds(), &b.rounds()),
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
fn pairs(metric: Metric, a: &Values, b: &Values, flows: &[&Pair]) -> Vec<PairComparison> {
    let rounds = |pair: &Pair| (&a.by_pair[pair], &b.by_pair[pair]);
    let p_value = |pair: &Pair| {
        let (base, other) = rounds(pair);
        rank_sum(base, other).filter(|_| rank_sum_can_tell(base.len(), other.len()))
    };
    let p_values: Vec<Option<f64>> = flows.iter().map(|pair| p_value(pair)).collect();
    let known: Vec<f64> = p_values.iter().copied().flatten().collect();
    let mut q_values = adjusted(&known).into_iter();
    let mut pairs: Vec<PairComparison> = flows
        .iter()
        .zip(p_values)
        .map(|(pair, p_value)| {
            let (base, other) = rounds(pair);
            PairComparison {
                src: pair.0.clone(),
                dst: pair.1.clone(),
                base: median(base).unwrap_or_default(),
                other: median(other).unwrap_or_default(),
                ratio: (b.level(pair) - a.level(pair)).exp(),
                base_rounds: base.len() as u32,
                other_rounds: other.len() as u32,
                q_value: p_value.and_then(|_| q_values.next()),
            }
        })
        .collect();
    pairs.sort_by(|x, y| x.ratio.total_cmp(&y.ratio));
    if !metric.more_is_better() {
        pairs.reverse();
    }
    pairs
}

fn hosts(a: &Values, b: &Values, flows: &[&Pair]) -> Vec<HostComparison> {
    let mut sending: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut receiving: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for pair in flows {
        let difference = b.level(pair) - a.level(pair);
        sending.entry(&pair.0).or_default().push(difference);
        receiving.entry(&pair.1).or_default().push(difference);
    }
    let names: BTreeSet<&str> = sending.keys().chain(receiving.keys()).copied().collect();
    let of = |side: &BTreeMap<&str, Vec<f64>>, name: &str| median(side.get(name)?).map(f64::exp);
    let count = |side: &BTreeMap<&str, Vec<f64>>, name: &str| side.get(name).map_or(0, Vec::len);
    names
        .into_iter()
        .map(|name| HostComparison {
            name: name.to_owned(),
            sending: of(&sending, name),
            receiving: of(&receiving, name),
            flows: (count(&sending, name) + count(&receiving, name)) as u32,
        })
        .collect()
}
