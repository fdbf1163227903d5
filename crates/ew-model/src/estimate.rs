//! The figures that everything measured is shown in: a median with its interval, a distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A median (or a ratio of medians) with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate.
    pub value: f64,
    /// Lower end of the 95% interval. `None` below six samples.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How many samples it rests on.
    pub samples: u32,
}

/// A distribution in a few figures. A percentile is `None` when too few times are behind it: when
/// not even the max of them is above the true percentile with 95% confidence (1 - share^count
/// < 0.95; 299 times for p99, 29,956 for p99.99).
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Number of transactions.
    pub count: u64,
    /// Min.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// 99.99th percentile.
    pub p9999_ns: Option<u64>,
    /// Max.
    pub max_ns: u64,
}
