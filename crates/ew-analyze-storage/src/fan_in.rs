//! The same job against fewer and fewer storage nodes or endpoints, or by fewer clients.

use super::fit::{self, Fit, Observation};
use super::limits::{self, Alone, Binding, StepLimit};
use super::nodes::{NodeRole, variation};
use super::step::StepAnalysis;
use super::testdfsio::HadoopJob;
use ew_model::Run;
use ew_model::analysis::Estimate;
use ew_model::storage::StorageOperation;
use serde::{Deserialize, Serialize};

/// An aggregate from this share of the highest on is as high: one run per step has no interval.
const AS_HIGH: f64 = 0.9;
/// A common window of at least this share of the time is the step; of less, it is a part of it.
const MIN_OVERLAP: f64 = 0.3;
/// A plateau is a term's where the term is not higher by more than this.
const SAME_TERM: f64 = 1.1;

/// What varied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Storage nodes or endpoints, with the clients fixed.
    #[default]
    StorageNodes,
    /// Clients, with the storage fixed.
    Clients,
}

/// One operation against the number of storage nodes or clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanIn {
    /// Which.
    pub operation: StorageOperation,
    /// What varied.
    #[serde(default)]
    pub axis: Axis,
    /// In the order of the run.
    pub points: Vec<FanInPoint>,
    /// The fewest storage nodes (or clients) whose aggregate is at least 90% of the highest one.
    /// `None`: a step has no whole aggregate.
    pub enough_endpoints: Option<u32>,
    /// T(S) = min(S s, P), or T(C) = min(C c, P). `None`: a step has no rate.
    #[serde(default)]
    pub fit: Option<Fit>,
    /// Of T(C, S) = min(C c, S s, U), as far as the run's steps show them.
    #[serde(default)]
    pub terms: Terms,
    /// Rates without the rest.
    #[serde(default)]
    pub alone: Alone,
}

/// The model's terms, bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// c: one client. `None` unless clients varied.
    pub client: Option<Estimate>,
    /// s: one storage node. `None` unless storage nodes varied.
    pub node: Option<Estimate>,
    /// U: all together, where a plateau is neither the clients' nor the storage nodes', and the
    /// network alone, if it was measured, carries no more.
    pub network: Option<Estimate>,
}

/// A term of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// C c.
    Clients,
    /// S s.
    StorageNodes,
    /// U.
    Network,
    /// A plateau of which it is not known whose it is.
    Plateau,
}

/// The model's figures of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// T.
    pub bytes_per_sec: f64,
    /// The lowest term.
    pub term: Term,
}

/// One number of storage nodes and clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanInPoint {
    /// Endpoints, or storage nodes in service; 1 where nobody knows what is behind the target.
    pub endpoints: u32,
    /// Hosts with workers.
    pub clients: u32,
    /// All bytes from the first open to the last close; of Hadoop's TestDFSIO over the job's map
    /// phase, start of the tasks included. `None` unless every file is whole.
    pub bytes_per_sec: Option<f64>,
    /// That over the number of endpoints.
    pub endpoint_bytes_per_sec: Option<f64>,
    /// Standard deviation over the mean: of the endpoints' rates, or of the storage nodes' NICs.
    /// `None` for one of them.
    pub variation: Option<f64>,
    /// The endpoint with the lowest rate, or the storage node furthest from the mean. `None` for
    /// one of them.
    pub slowest: Option<String>,
    /// TestDFSIO's `Test exec time sec`.
    pub exec_s: f64,
    /// While all workers were active, where that is most of the step: without start and stragglers.
    #[serde(default)]
    pub steady_bytes_per_sec: Option<f64>,
    /// What the step cannot exceed, as far as it was measured.
    #[serde(default)]
    pub limits: Vec<StepLimit>,
    /// The lowest of them.
    #[serde(default)]
    pub binding: Option<Binding>,
    /// By the fitted model.
    #[serde(default)]
    pub modelled: Option<Modelled>,
}

impl FanInPoint {
    /// The steady rate where there is one, else that of the whole step.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.steady_bytes_per_sec.or(self.bytes_per_sec)
    }

    /// On an axis.
    #[must_use]
    pub fn count(&self, axis: Axis) -> u32 {
        match axis {
            Axis::StorageNodes => self.endpoints,
            Axis::Clients => self.clients,
        }
    }
}

/// Empty unless the number of storage nodes or clients varied.
#[must_use]
pub fn analyze(run: &Run, steps: &[StepAnalysis]) -> Vec<FanIn> {
    let of = |operation| {
        let same = steps
            .iter()
            .filter(|step| step.operation == operation && !step.is_disk_alone);
        let same: Vec<&StepAnalysis> = same.collect();
        let is_moving = operation != StorageOperation::Clean;
        let alone = is_moving.then(|| limits::alone(run, steps, operation));
        alone.map_or_else(Vec::new, |alone| of_operation(run, &same, &alone))
    };
    StorageOperation::ALL.into_iter().flat_map(of).collect()
}

/// By storage nodes with the most clients, and by clients with the most storage nodes.
fn of_operation(run: &Run, steps: &[&StepAnalysis], alone: &Alone) -> Vec<FanIn> {
    let max = |of: fn(&StepAnalysis) -> u32| steps.iter().map(|step| of(step)).max();
    let (Some(max_nodes), Some(max_clients)) = (max(nodes), max(clients)) else {
        return Vec::new();
    };
    let along = |axis| {
        let is_on = |step: &&&StepAnalysis| match axis {
            Axis::StorageNodes => clients(step) == max_clients,
            Axis::Clients => nodes(step) == max_nodes,
        };
        let on_axis: Vec<&StepAnalysis> = steps.iter().filter(is_on).copied().collect();
        along(run, axis, &on_axis, alone)
    };
    let axes = [Axis::StorageNodes, Axis::Clients];
    let mut found: Vec<FanIn> = axes.into_iter().filter_map(along).collect();
    let terms = terms(&found);
    for fan_in in &mut found {
        fan_in.terms = terms;
        for point in &mut fan_in.points {
            point.modelled = modelled(fan_in.axis, fan_in.fit.as_ref(), &terms, alone, point);
        }
    }
    found
}

/// Each number once. `None` for one number.
fn along(run: &Run, axis: Axis, steps: &[&StepAnalysis], alone: &Alone) -> Option<FanIn> {
    let mut points: Vec<FanInPoint> = Vec::new();
    let mut seen = Some(Vec::new());
    for step in steps {
        let point = point(run, step, alone);
        let count = point.count(axis);
        if points.iter().any(|known| known.count(axis) == count) {
            continue;
        }
        seen = seen.and_then(|mut seen| {
            seen.push(observation(step, &point, count)?);
            Some(seen)
        });
        points.push(point);
    }
    (points.len() > 1).then(|| FanIn {
        operation: steps[0].operation,
        axis,
        enough_endpoints: enough(&points, axis),
        fit: seen.and_then(|seen| fit::fit(&seen)),
        terms: Terms::default(),
        points,
        alone: alone.clone(),
    })
}

/// Storage nodes in service, or else endpoints.
fn nodes(step: &StepAnalysis) -> u32 {
    let count = match step.storage_nodes.len() {
        0 => step.endpoints.len(),
        nodes => nodes,
    };
    count.max(1) as u32
}

/// Hosts that were given files; of a job of Hadoop's, those where its map tasks may run.
fn clients(step: &StepAnalysis) -> u32 {
    let of_job = || {
        let clients = step.nodes.iter().filter(|n| n.role == NodeRole::Client);
        clients.count().max(1)
    };
    let given = step.clients.len() + step.missing.len();
    (step.hadoop.as_ref().map_or(given, |_| of_job())) as u32
}

/// Of a job of Hadoop's, which shows no times of its files, over its map phase.
fn aggregate(step: &StepAnalysis) -> Option<f64> {
    let of_job = |job: &HadoopJob| job.map_phase_bytes_per_sec;
    let job = step.hadoop.as_ref();
    job.map_or(step.aggregate_bytes_per_sec, of_job)
}

fn point(run: &Run, step: &StepAnalysis, alone: &Alone) -> FanInPoint {
    let (endpoints, clients) = (nodes(step), clients(step));
    let is_whole = step.files_done == step.files_ordered && step.missing.is_empty();
    let bytes_per_sec = aggregate(step).filter(|_| is_whole);
    let common = step
        .common
        .as_ref()
        .filter(|common| common.overlap >= MIN_OVERLAP);
    let steady_bytes_per_sec = common.and_then(|c| c.bytes_per_sec).filter(|_| is_whole);
    let (variation, slowest) = balance(step);
    let job = run.storage.iter().find(|step| !step.is_disk_alone);
    let of_hdfs = || run.hdfs.as_ref()?.replication;
    let copies = job.and_then(|step| step.job.replication).or_else(of_hdfs);
    let copies = copies.filter(|_| step.operation.writes()).unwrap_or(1);
    let limits = alone.limits(clients, endpoints, copies);
    let rate = steady_bytes_per_sec.or(bytes_per_sec);
    FanInPoint {
        endpoints,
        clients,
        bytes_per_sec,
        endpoint_bytes_per_sec: bytes_per_sec.map(|rate| rate / f64::from(endpoints)),
        variation,
        slowest,
        exec_s: step.exec_s,
        steady_bytes_per_sec,
        binding: rate.and_then(|rate| limits::binding(&limits, rate, busiest_share(step))),
        limits,
        modelled: None,
    }
}

/// Between endpoints, or else between storage nodes.
fn balance(step: &StepAnalysis) -> (Option<f64>, Option<String>) {
    let rates: Option<Vec<f64>> = step.endpoints.iter().map(|e| e.bytes_per_sec).collect();
    let rates = rates.filter(|rates| rates.len() > 1);
    let Some(rates) = rates else {
        let balance = step.balance.as_ref();
        let worst = balance.map(|balance| balance.worst.clone());
        return (balance.map(|balance| balance.variation), worst);
    };
    let lowest = (0..rates.len()).min_by(|a, b| rates[*a].total_cmp(&rates[*b]));
    let slowest = lowest.map(|at| step.endpoints[at].target.clone());
    (variation(&rates), slowest)
}

/// Of the storage nodes' rates over their mean.
fn busiest_share(step: &StepAnalysis) -> Option<f64> {
    step.balance.as_ref()?.busiest_share
}

/// `None` without a rate.
fn observation(step: &StepAnalysis, point: &FanInPoint, count: u32) -> Option<Observation> {
    let common = step.common.as_ref();
    Some(Observation {
        nodes: count,
        rate: point.rate()?,
        parts: common.map_or_else(Vec::new, |common| common.parts_bytes_per_sec.clone()),
    })
}

/// c and s are the lines' slopes. U is a plateau that both lie above where they were found, unless
/// the network alone carried more: then something else is in the way, CPUs or the NameNode.
fn terms(found: &[FanIn]) -> Terms {
    let on = |axis| found.iter().find(|fan_in| fan_in.axis == axis);
    let slope = |axis| on(axis).and_then(|f: &FanIn| Some(f.fit.as_ref()?.node));
    let (client, node) = (slope(Axis::Clients), slope(Axis::StorageNodes));
    let max = |of: fn(&FanInPoint) -> u32| {
        let points = found.iter().flat_map(|fan_in| &fan_in.points);
        points.map(of).max().map(f64::from)
    };
    let lines = [
        client
            .zip(max(|p| p.clients))
            .map(|(c, count)| c.value * count),
        node.zip(max(|p| p.endpoints))
            .map(|(s, count)| s.value * count),
    ];
    let plateaus = found.iter().filter_map(|f| f.fit.as_ref()?.plateau);
    let lowest = plateaus.min_by(|a, b| a.value.total_cmp(&b.value));
    let alone = found.iter().find_map(|fan_in| fan_in.alone.network);
    let is_apart = |plateau: &Estimate| {
        let as_high = SAME_TERM * plateau.value;
        let is_network = alone.is_none_or(|alone| alone.value <= as_high);
        match lines {
            [Some(clients), Some(nodes)] => is_network && clients.min(nodes) > as_high,
            _ => false,
        }
    };
    Terms {
        client,
        node,
        network: lowest.filter(is_apart),
    }
}

/// The fit at a step, and which term it is; whose a plateau is show the other axis, or the rates
/// measured alone.
fn modelled(
    axis: Axis,
    fit: Option<&Fit>,
    terms: &Terms,
    alone: &Alone,
    point: &FanInPoint,
) -> Option<Modelled> {
    let fit = fit?;
    let (own, other) = match axis {
        Axis::StorageNodes => (Term::StorageNodes, Term::Clients),
        Axis::Clients => (Term::Clients, Term::StorageNodes),
    };
    let line = fit.node.value * f64::from(point.count(axis));
    let Some(plateau) = fit.plateau.map(|p| p.value).filter(|p| *p < line) else {
        return Some(Modelled {
            bytes_per_sec: line,
            term: own,
        });
    };
    let reaches = |rate: f64| rate <= SAME_TERM * plateau;
    let times = |rate: Option<Estimate>, count: u32| Some(rate?.value * f64::from(count));
    let other_rate = match axis {
        Axis::StorageNodes => times(terms.client.or(alone.client), point.clients),
        Axis::Clients => times(terms.node.or(alone.node), point.endpoints),
    };
    let network = alone.network.map(|rate| rate.value);
    let term = match (terms.network, other_rate, network) {
        (Some(_), ..) => Term::Network,
        (_, Some(rate), _) if reaches(rate) => other,
        (.., Some(rate)) if reaches(rate) => Term::Network,
        _ => Term::Plateau,
    };
    Some(Modelled {
        bytes_per_sec: plateau,
        term,
    })
}

fn enough(points: &[FanInPoint], axis: Axis) -> Option<u32> {
    let rates: Option<Vec<f64>> = points.iter().map(FanInPoint::rate).collect();
    let highest = rates?.into_iter().reduce(f64::max)?;
    let is_high = |point: &&FanInPoint| point.rate() >= Some(AS_HIGH * highest);
    let high = points.iter().filter(is_high);
    high.map(|point| point.count(axis)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(endpoints: u32, rate: Option<f64>) -> FanInPoint {
        FanInPoint {
            endpoints,
            clients: 4,
            bytes_per_sec: rate,
            endpoint_bytes_per_sec: None,
            variation: None,
            slowest: None,
            exec_s: 1.0,
            steady_bytes_per_sec: None,
            limits: Vec::new(),
            binding: None,
            modelled: None,
        }
    }

    /// Clients carry 300, an endpoint 100: three are enough.
    #[test]
    fn enough_endpoints_are_the_fewest_that_are_as_fast() {
        let points = |rates: [f64; 4]| {
            let numbered = (1..=4).rev().zip(rates);
            numbered
                .map(|(n, rate)| point(n, Some(rate)))
                .collect::<Vec<_>>()
        };
        let enough = |points: &[FanInPoint]| enough(points, Axis::StorageNodes);
        assert_eq!(enough(&points([300.0, 298.0, 200.0, 100.0])), Some(3));
        assert_eq!(enough(&points([400.0, 300.0, 200.0, 100.0])), Some(4));
        assert_eq!(enough(&points([100.0, 101.0, 99.0, 100.0])), Some(1));
        assert_eq!(enough(&[point(2, Some(1.0)), point(1, None)]), None);
    }

    fn fan_in(axis: Axis, rates: &[(u32, u32, f64)]) -> FanIn {
        let points = rates.iter().map(|(endpoints, clients, rate)| FanInPoint {
            clients: *clients,
            ..point(*endpoints, Some(*rate))
        });
        let points: Vec<FanInPoint> = points.collect();
        let seen = points.iter().map(|point| Observation {
            nodes: point.count(axis),
            rate: point.rate().unwrap(),
            parts: Vec::new(),
        });
        FanIn {
            operation: StorageOperation::Read,
            axis,
            enough_endpoints: enough(&points, axis),
            fit: fit::fit(&seen.collect::<Vec<_>>()),
            terms: Terms::default(),
            points,
            alone: Alone::default(),
        }
    }

    /// c = 100, s = 200: with 4 storage nodes and 4 clients the clients bind, below 2 storage nodes
    /// the nodes do. U is nowhere.
    #[test]
    fn both_axes_name_each_others_plateau() {
        let nodes = [(4, 4, 400.0), (3, 4, 400.0), (2, 4, 400.0), (1, 4, 200.0)];
        let clients = [(4, 1, 100.0), (4, 2, 200.0), (4, 4, 400.0)];
        let found = [
            fan_in(Axis::StorageNodes, &nodes),
            fan_in(Axis::Clients, &clients),
        ];
        let terms = terms(&found);
        assert!((terms.client.unwrap().value - 100.0).abs() < 1e-9);
        assert!((terms.node.unwrap().value - 200.0).abs() < 1e-9);
        assert_eq!(terms.network, None);
        let term = |axis: usize, at: usize| {
            let FanIn {
                axis, fit, points, ..
            } = &found[axis];
            modelled(*axis, fit.as_ref(), &terms, &Alone::default(), &points[at])
                .unwrap()
                .term
        };
        assert_eq!(
            [term(0, 0), term(0, 3)],
            [Term::Clients, Term::StorageNodes]
        );
        assert_eq!(term(1, 0), Term::Clients);
    }

    /// A link of 250 between both: U.
    #[test]
    fn a_plateau_below_both_is_the_network() {
        let nodes = [(4, 4, 250.0), (2, 4, 250.0), (1, 4, 200.0)];
        let clients = [(4, 1, 100.0), (4, 2, 200.0), (4, 4, 250.0)];
        let found = [
            fan_in(Axis::StorageNodes, &nodes),
            fan_in(Axis::Clients, &clients),
        ];
        let terms = terms(&found);
        assert!((terms.network.unwrap().value - 250.0).abs() < 1e-9);
        let FanIn {
            axis, fit, points, ..
        } = &found[0];
        let model = modelled(*axis, fit.as_ref(), &terms, &Alone::default(), &points[0]);
        assert_eq!(model.unwrap().term, Term::Network);
        // The network carries 480 alone: it is not what is in the way.
        let mut measured = found.clone();
        for fan_in in &mut measured {
            fan_in.alone.network = Some(fit::estimate(480.0, &[]));
        }
        assert_eq!(super::terms(&measured).network, None);
        let alone = fan_in(Axis::StorageNodes, &nodes);
        let model = modelled(
            alone.axis,
            alone.fit.as_ref(),
            &Terms::default(),
            &Alone::default(),
            &alone.points[0],
        );
        assert_eq!(model.unwrap().term, Term::Plateau, "nobody knows whose");
    }
}
