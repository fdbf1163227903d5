//! The same job against fewer and fewer storage nodes, or endpoints.

use super::fit::{self, Fit, Observation};
use super::job::StepAnalysis;
use super::limits::{self, Alone, Binding, Limit};
use ew_model::Run;
use ew_model::storage::StorageOperation;
use serde::{Deserialize, Serialize};

/// An aggregate from this share of the highest on is as high: one run per step has no interval.
const AS_HIGH: f64 = 0.9;
/// A common window of at least this share of the time is the step; of less, it is a part of it.
const LEAST_OVERLAP: f64 = 0.3;

/// One operation against the number of endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanIn {
    /// Which.
    pub operation: StorageOperation,
    /// Most endpoints first.
    pub points: Vec<FanInPoint>,
    /// The fewest endpoints whose aggregate is at least 90 % of the highest one. `None`: a step has
    /// no whole aggregate.
    pub enough_endpoints: Option<u32>,
    /// T(S) = min(S s, P). `None`: a step has no rate.
    #[serde(default)]
    pub fit: Option<Fit>,
    /// Rates without the rest.
    #[serde(default)]
    pub alone: Alone,
}

/// One number of endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FanInPoint {
    /// Endpoints, or storage nodes in service.
    pub endpoints: u32,
    /// Hosts with workers.
    pub clients: u32,
    /// All bytes from the first open to the last close. `None` unless every file is whole.
    pub bytes_per_sec: Option<f64>,
    /// That over the number of endpoints.
    pub endpoint_bytes_per_sec: Option<f64>,
    /// Standard deviation of the endpoints' rates over their mean. `None` for one endpoint.
    pub variation: Option<f64>,
    /// The endpoint with the lowest rate. `None` for one endpoint.
    pub slowest: Option<String>,
    /// TestDFSIO's `Test exec time sec`.
    pub exec_s: f64,
    /// While all workers were active, where that is most of the step: without start and stragglers.
    #[serde(default)]
    pub steady_bytes_per_sec: Option<f64>,
    /// What the step cannot exceed, as far as it was measured.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// The lowest of them.
    #[serde(default)]
    pub binding: Option<Binding>,
}

impl FanInPoint {
    /// The steady rate where there is one, else that of the whole step.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.steady_bytes_per_sec.or(self.bytes_per_sec)
    }
}

/// Empty unless the number of endpoints varied.
#[must_use]
pub fn analyze(run: &Run, steps: &[StepAnalysis]) -> Vec<FanIn> {
    let is_one = |step: &&StepAnalysis| {
        step.operation != StorageOperation::Clean && !step.is_disk_alone && count(step) > 0
    };
    let moving = || steps.iter().filter(is_one);
    let first = moving().map(count).next();
    if moving().all(|step| Some(count(step)) == first) {
        return Vec::new();
    }
    let of = |operation| {
        let alone = limits::alone(run, steps, operation);
        let same: Vec<&StepAnalysis> = moving()
            .filter(|step| step.operation == operation)
            .collect();
        let points: Vec<FanInPoint> = same.iter().map(|step| point(run, step, &alone)).collect();
        (!points.is_empty()).then(|| FanIn {
            operation,
            enough_endpoints: enough(&points),
            fit: observations(&same, &points).and_then(|seen| fit::fit(&seen)),
            points,
            alone,
        })
    };
    StorageOperation::ALL.into_iter().filter_map(of).collect()
}

/// Storage nodes in service, or else endpoints.
fn count(step: &StepAnalysis) -> usize {
    match step.storage_nodes.len() {
        0 => step.endpoints.len(),
        nodes => nodes,
    }
}

fn point(run: &Run, step: &StepAnalysis, alone: &Alone) -> FanInPoint {
    let endpoints = count(step) as u32;
    let clients = step.clients.len() as u32;
    let is_whole = step.files_done == step.files_ordered && step.missing.is_empty();
    let bytes_per_sec = step.aggregate_bytes_per_sec.filter(|_| is_whole);
    let common = step
        .common
        .as_ref()
        .filter(|common| common.overlap >= LEAST_OVERLAP);
    let steady_bytes_per_sec = common.and_then(|c| c.bytes_per_sec).filter(|_| is_whole);
    let rate = |at: usize| step.endpoints[at].bytes_per_sec;
    let rates: Option<Vec<f64>> = (0..step.endpoints.len()).map(rate).collect();
    let rates = rates.filter(|rates| rates.len() > 1);
    let slowest = rates.as_ref().and_then(|rates| {
        let lowest = (0..rates.len()).min_by(|a, b| rates[*a].total_cmp(&rates[*b]))?;
        Some(step.endpoints[lowest].target.clone())
    });
    let job = run.storage.iter().find(|step| !step.is_disk_alone);
    let copies = job.and_then(|step| step.job.replication);
    let copies = copies.filter(|_| step.operation.writes()).unwrap_or(1);
    let limits = alone.limits(clients, endpoints, copies);
    let rate = steady_bytes_per_sec.or(bytes_per_sec);
    FanInPoint {
        endpoints,
        clients,
        bytes_per_sec,
        endpoint_bytes_per_sec: bytes_per_sec.map(|rate| rate / f64::from(endpoints)),
        variation: rates.as_deref().and_then(variation),
        slowest,
        exec_s: step.exec_s,
        steady_bytes_per_sec,
        binding: rate.and_then(|rate| limits::binding(&limits, rate)),
        limits,
    }
}

/// `None` unless every step has a rate.
fn observations(steps: &[&StepAnalysis], points: &[FanInPoint]) -> Option<Vec<Observation>> {
    let seen = steps.iter().zip(points).map(|(step, point)| {
        let common = step.common.as_ref();
        let parts = common.map_or_else(Vec::new, |common| common.parts_bytes_per_sec.clone());
        Some(Observation {
            nodes: point.endpoints,
            rate: point.rate()?,
            parts,
        })
    });
    seen.collect()
}

fn variation(rates: &[f64]) -> Option<f64> {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (mean > 0.0).then(|| (squares / count).sqrt() / mean)
}

fn enough(points: &[FanInPoint]) -> Option<u32> {
    let rates: Option<Vec<f64>> = points.iter().map(FanInPoint::rate).collect();
    let highest = rates?.into_iter().reduce(f64::max)?;
    let is_high = |point: &&FanInPoint| point.rate() >= Some(AS_HIGH * highest);
    points.iter().filter(is_high).map(|p| p.endpoints).min()
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
        assert_eq!(enough(&points([300.0, 298.0, 200.0, 100.0])), Some(3));
        assert_eq!(enough(&points([400.0, 300.0, 200.0, 100.0])), Some(4));
        assert_eq!(enough(&points([100.0, 101.0, 99.0, 100.0])), Some(1));
        assert_eq!(enough(&[point(2, Some(1.0)), point(1, None)]), None);
    }

    #[test]
    fn variation_is_of_the_population() {
        assert_eq!(variation(&[100.0, 100.0]), Some(0.0));
        let found = variation(&[50.0, 150.0]).unwrap();
        assert!((found - 0.5).abs() < 1e-12);
    }
}
