//! Victims under load as a table, the same in every view.

use crate::figures::Figures;
use crate::words::or_missing;
use ew_model::Analysis;
use ew_model::analysis::Estimate;
use ew_model::congestion::{CongestionImpact, Impact};
use ew_model::units::{format_bits_per_sec, format_duration_ns, format_factor};

const FACTORS: &str = "Factor: how many times longer the victims' transactions take under the aggressors, or how many times lower their rates are \
     (GPCNeT's congestion impact factor): median over repetitions, each against the same victims alone in the same pass, with its 95% interval. p99: \
     the figure that 99% of the transactions, or of the flows, do better than. Alone and loaded are means; load is what the aggressors carried together.";

/// None but in runs with aggressors.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    if analysis.congestion.is_empty() {
        return Vec::new();
    }
    vec![Figures {
        title: "Victims under load",
        header: vec![
            "victims",
            "aggressors",
            "alone",
            "loaded",
            "mean factor",
            "p99 factor",
            "load",
        ],
        rows: analysis.congestion.iter().map(row).collect(),
        left: 2,
        notes: vec![FACTORS.to_owned()],
    }]
}

fn factor(impact: &Impact) -> String {
    times(&impact.factor)
}

/// `1.92 (1.87-2.01)`.
pub(crate) fn times(factor: &Estimate) -> String {
    let value = format_factor(factor.value);
    match (factor.low, factor.high) {
        (Some(low), Some(high)) => {
            format!("{value} ({}-{})", format_factor(low), format_factor(high))
        }
        _ => value,
    }
}

fn row(impact: &CongestionImpact) -> Vec<String> {
    let figure = |value: f64| match impact.kind.is_bulk() {
        true => format_bits_per_sec(value),
        false => format_duration_ns(value as u64),
    };
    vec![
        impact.baseline_stage.clone(),
        impact.aggressor.name().to_owned(),
        figure(impact.mean.alone),
        figure(impact.mean.loaded),
        factor(&impact.mean),
        or_missing(impact.p99.as_ref(), factor),
        or_missing(impact.aggressors_bits_per_sec, |rate| {
            format_bits_per_sec(rate.value)
        }),
    ]
}
