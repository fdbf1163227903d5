//! Thresholds on a run's metrics, and whether they were met.

use crate::units::{
    format_bits_per_sec, format_duration_ns, parse_bits_per_sec, parse_duration_ns, three_digits,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// A figure of a run that a threshold can be set on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Goodput of the slowest host pair, bits per second.
    PairMin,
    /// Goodput of the median host pair.
    PairMedian,
    /// What the slowest sender sends when only hosts limit.
    HostTxMin,
    /// What the slowest receiver receives when only hosts limit.
    HostRxMin,
    /// Sum of a stage's flows, the lowest of all bulk stages.
    AggregateMin,
    /// Percentiles of round-trip times (tcp-rr, udp-rr, ping), ns.
    RttP50,
    /// 90th percentile.
    RttP90,
    /// 99th percentile.
    RttP99,
    /// 99.9th percentile.
    RttP999,
    /// The longest.
    RttMax,
    /// Datagrams lost over those sent, 0 to 1 (udp-stream).
    Loss,
    /// Interarrival jitter (RFC 3550), ns (udp-stream).
    Jitter,
}

/// What a metric is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Rate,
    Time,
    Share,
}

impl Metric {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 12] = [
        Self::PairMin,
        Self::PairMedian,
        Self::HostTxMin,
        Self::HostRxMin,
        Self::AggregateMin,
        Self::RttP50,
        Self::RttP90,
        Self::RttP99,
        Self::RttP999,
        Self::RttMax,
        Self::Loss,
        Self::Jitter,
    ];

    /// Its name below `expect:`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PairMin => "pair.min",
            Self::PairMedian => "pair.median",
            Self::HostTxMin => "host.tx.min",
            Self::HostRxMin => "host.rx.min",
            Self::AggregateMin => "aggregate.min",
            Self::RttP50 => "rtt.p50",
            Self::RttP90 => "rtt.p90",
            Self::RttP99 => "rtt.p99",
            Self::RttP999 => "rtt.p99.9",
            Self::RttMax => "rtt.max",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::PairMin
            | Self::PairMedian
            | Self::HostTxMin
            | Self::HostRxMin
            | Self::AggregateMin => Unit::Rate,
            Self::Loss => Unit::Share,
            _ => Unit::Time,
        }
    }

    /// A value of it in words: `94.1 Mb/s`, `312 µs`, `0.02%`.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self.unit() {
            Unit::Rate => format_bits_per_sec(value),
            Unit::Time => format_duration_ns(value.max(0.0) as u64),
            Unit::Share => format!("{}%", three_digits(100.0 * value)),
        }
    }
}

/// A bound of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// In the metric's unit.
    Value(f64),
    /// So many times the NICs' line rate.
    OfNic(f64),
}

/// `pair.min: ">0.9*nic"`.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Threshold {
    /// The stage it is about. `None`: all stages that have the metric, and of round trips the
    /// first.
    pub stage: Option<String>,
    /// The metric.
    pub metric: Metric,
    /// Whether the metric must lie below the bound, or above it.
    pub is_upper: bool,
    /// The bound.
    pub bound: Bound,
}

/// A threshold that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ThresholdError(pub String);

impl Threshold {
    /// Reads a key below `expect:`, such as `rtt.p99` or `incast/rtt.p99`. `None` when it is no
    /// metric's.
    #[must_use]
    pub fn key(key: &str) -> Option<(Option<&str>, Metric)> {
        let (stage, name) = match key.rsplit_once('/') {
            Some((stage, name)) => (Some(stage.trim()), name.trim()),
            None => (None, key),
        };
        let metric = Metric::ALL.into_iter().find(|m| m.name() == name)?;
        Some((stage, metric))
    }

    /// Reads `<300us`, `>0.9*nic` or `<0.01%` for a metric.
    ///
    /// # Errors
    /// [`ThresholdError`] when there is no `<` or `>`, or the bound is not of the metric's unit.
    pub fn parse(stage: Option<&str>, metric: Metric, text: &str) -> Result<Self, ThresholdError> {
        let text = text.trim();
        let (is_upper, bound) = match (text.strip_prefix('<'), text.strip_prefix('>')) {
            (Some(bound), _) => (true, bound.trim()),
            (_, Some(bound)) => (false, bound.trim()),
            _ => {
                return Err(ThresholdError(format!(
                    "`{text}` begins with neither < nor >"
                )));
            }
        };
        Ok(Self {
            stage: stage.map(str::to_owned),
            metric,
            is_upper,
            bound: bound_of(metric, bound)?,
        })
    }

    /// `rtt.p99 < 300 µs`, with the NICs' line rate where it is needed and known.
    #[must_use]
    pub fn words(&self) -> String {
        let sign = if self.is_upper { '<' } else { '>' };
        let bound = match self.bound {
            Bound::Value(value) => self.metric.show(value),
            Bound::OfNic(share) => format!("{} of the NIC", Metric::Loss.show(share)),
        };
        let stage = self.stage.as_ref().map(|stage| format!("{stage}/"));
        let stage = stage.unwrap_or_default();
        format!("{stage}{} {sign} {bound}", self.metric.name())
    }

    /// Whether a value meets it. `None` where the bound needs a line rate that is not known.
    #[must_use]
    pub fn is_met_by(&self, value: f64, nic_bits_per_sec: Option<f64>) -> Option<bool> {
        let bound = match self.bound {
            Bound::Value(bound) => bound,
            Bound::OfNic(share) => share * nic_bits_per_sec?,
        };
        Some(if self.is_upper {
            value < bound
        } else {
            value > bound
        })
    }
}

fn bound_of(metric: Metric, text: &str) -> Result<Bound, ThresholdError> {
    let wrong = |expected: &str| ThresholdError(format!("`{text}` is no {expected}"));
    match metric.unit() {
        Unit::Rate => {
            if let Some(factor) = text.strip_suffix("nic") {
                let factor = factor.trim().trim_end_matches('*').trim();
                let share = if factor.is_empty() {
                    Ok(1.0)
                } else {
                    factor.parse::<f64>()
                };
                return match share {
                    Ok(share) if share > 0.0 && share <= 1.0 => Ok(Bound::OfNic(share)),
                    _ => Err(wrong("share of the NIC, such as 0.9*nic")),
                };
            }
            let rate =
                parse_bits_per_sec(text).map_err(|error| ThresholdError(error.to_string()))?;
            Ok(Bound::Value(rate))
        }
        Unit::Time => {
            let ns = parse_duration_ns(text).map_err(|error| ThresholdError(error.to_string()))?;
            Ok(Bound::Value(ns as f64))
        }
        Unit::Share => {
            let percent = text
                .strip_suffix('%')
                .and_then(|n| n.trim().parse::<f64>().ok());
            match percent {
                Some(percent) if (0.0..=100.0).contains(&percent) => {
                    Ok(Bound::Value(percent / 100.0))
                }
                _ => Err(wrong("share in percent, such as 0.01%")),
            }
        }
    }
}

/// A threshold and the run's figure for it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Checked {
    /// What was set.
    pub threshold: Threshold,
    /// The metric's value. `None` when the run has none.
    pub value: Option<f64>,
    /// Whether it was met. `None` without a value, or without the line rate that the bound needs.
    pub is_met: Option<bool>,
}

impl fmt::Display for Checked {
    /// `rtt.p99 < 300 µs: 412 µs`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self.value {
            Some(value) => self.threshold.metric.show(value),
            None => "not measured".into(),
        };
        write!(f, "{}: {value}", self.threshold.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: &str, text: &str) -> Result<Threshold, ThresholdError> {
        let (stage, metric) = Threshold::key(key).unwrap();
        Threshold::parse(stage, metric, text)
    }

    #[test]
    fn thresholds_are_read_in_the_units_of_their_metric() {
        let words = |key: &str, text: &str| of(key, text).unwrap().words();
        assert_eq!(words("rtt.p99", "<300us"), "rtt.p99 < 300 µs");
        assert_eq!(
            words("pair.min", "> 0.9*nic"),
            "pair.min > 90.0% of the NIC"
        );
        assert_eq!(words("incast/loss", "<0.01%"), "incast/loss < 0.01%");
        assert_eq!(words("host.tx.min", ">9G"), "host.tx.min > 9.00 Gb/s");
        for (key, text) in [
            ("rtt.p99", "300us"),
            ("rtt.p99", "<fast"),
            ("pair.min", ">10"),
            ("pair.min", ">2*nic"),
            ("loss", "<0.01"),
        ] {
            assert!(of(key, text).is_err(), "{key}: {text}");
        }
        assert_eq!(Threshold::key("rtt.p98"), None);
    }

    #[test]
    fn a_share_of_the_nic_needs_the_nic() {
        let threshold = of("pair.min", ">0.9*nic").unwrap();
        assert_eq!(threshold.is_met_by(9.1e9, Some(10e9)), Some(true));
        assert_eq!(threshold.is_met_by(8.9e9, Some(10e9)), Some(false));
        assert_eq!(threshold.is_met_by(8.9e9, None), None);
        assert_eq!(
            of("rtt.max", "<1ms").unwrap().is_met_by(1e6, None),
            Some(false)
        );
    }
}
