//! What a run contains of one metric, by flow and by round.

use crate::datagrams;
use crate::latency;
use ew_evidence::observations::{Observations, StageView};
use ew_model::comparison::{Metric, Summary};
use ew_model::plan::RoundIndex;
use ew_model::record::FlowRecord;
use ew_stats::significance::mean_estimate;
use ew_stats::{median, median_estimate, quantile};
use std::collections::BTreeMap;

/// What has no logarithm counts as so little: a rate of 1/s, a time of 1 ns.
const MIN: f64 = 1.0;
/// The same of a share, which is never above 1: one datagram in a million.
const MIN_DELIVERED: f64 = 1e-6;

/// A run, and the stage of it that is compared.
pub(super) type Measured<'v, 'a> = (&'v Observations<'a>, &'v StageView<'a>);

/// What flows had in the base run, as logarithms.
pub(super) type Typical<'v> = BTreeMap<&'v Pair, f64>;

/// Sender and receiver by name.
pub(super) type Pair = (String, String);

/// One run's values of a metric, or those of a side's runs together.
pub(super) struct Values {
    pub(super) metric: Metric,
    pub(super) by_pair: BTreeMap<Pair, Vec<f64>>,
    /// By run and round.
    pub(super) by_round: BTreeMap<(usize, RoundIndex), Vec<(Pair, f64)>>,
}

impl Values {
    pub(super) fn of(metric: Metric, (observations, stage): Measured<'_, '_>) -> Self {
        let inventory = observations.inventory();
        let mut values = Self {
            metric,
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
                let of_round = values.by_round.entry((0, round.index)).or_default();
                of_round.push((pair.clone(), value));
                values.by_pair.entry(pair).or_default().push(value);
            }
        }
        values
    }

    /// All runs of a side as one.
    pub(super) fn together(metric: Metric, runs: &[Self]) -> Self {
        let mut all = Self {
            metric,
            by_pair: BTreeMap::new(),
            by_round: BTreeMap::new(),
        };
        for (index, run) in runs.iter().enumerate() {
            for (pair, values) in &run.by_pair {
                let known = all.by_pair.entry(pair.clone()).or_default();
                known.extend_from_slice(values);
            }
            let rounds = run.by_round.iter();
            all.by_round
                .extend(rounds.map(|((_, round), rows)| ((index, *round), rows.clone())));
        }
        all
    }

    pub(super) fn all(&self) -> Vec<f64> {
        self.by_pair.values().flatten().copied().collect()
    }

    /// Of a single run its values are summed up, of several their medians: runs are what was
    /// repeated.
    pub(super) fn summary(runs: &[Self]) -> Option<Summary> {
        let all: Vec<f64> = runs.iter().flat_map(Self::all).collect();
        let medians: Vec<f64> = runs.iter().filter_map(|run| median(&run.all())).collect();
        let counted = if runs.len() == 1 { &all } else { &medians };
        Some(Summary {
            mean: mean_estimate(counted)?,
            median: median_estimate(counted)?,
            min: quantile(&all, 0.0)?,
            max: quantile(&all, 1.0)?,
        })
    }

    pub(super) fn common<'v>(&'v self, other: &'v Self) -> impl Iterator<Item = &'v Pair> {
        let pairs = self.by_pair.keys();
        pairs.filter(|pair| other.by_pair.contains_key(*pair))
    }

    /// Logarithm of a flow's median over rounds.
    pub(super) fn level(&self, pair: &Pair) -> f64 {
        let values = self.by_pair.get(pair).map(Vec::as_slice);
        self.logarithm(median(values.unwrap_or_default()).unwrap_or_default())
    }

    pub(super) fn levels(&self) -> Vec<f64> {
        self.by_pair.keys().map(|pair| self.level(pair)).collect()
    }

    /// How far each round's flows were from their `typical` levels, by the median over them; from
    /// nothing where those are not known.
    pub(super) fn rounds(&self, typical: &Typical<'_>) -> Vec<f64> {
        let distance = |(pair, value): &(Pair, f64)| {
            self.logarithm(*value) - typical.get(pair).copied().unwrap_or_default()
        };
        let rounds = self.by_round.values();
        let distances = rounds.map(|rows| rows.iter().map(distance).collect::<Vec<_>>());
        distances.filter_map(|rows| median(&rows)).collect()
    }

    /// A value of zero has no ratio: a flow that did not move, one of which no
    /// datagram came.
    fn logarithm(&self, value: f64) -> f64 {
        let min = match self.metric {
            Metric::Delivered => MIN_DELIVERED,
            _ => MIN,
        };
        value.max(min).ln()
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
