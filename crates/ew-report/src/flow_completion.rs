//! Messages at a load as a table, the same in every view.

use crate::congestion::times;
use crate::figures::Figures;
use crate::words::{fine_percent, one_line, or_missing, percent};
use ew_model::Analysis;
use ew_model::completion::{FlowCompletion, SizeSlowdown};
use ew_model::sizes::SizeDistribution;
use ew_model::units::{format_bytes, format_duration_ns};
use std::collections::BTreeSet;

/// Less than this much of the load that was asked for, by more than chance, is reported.
const CARRIED: f64 = 0.95;

const SLOWDOWN: &str = "Slowdown: a message's completion time over the median completion time of the same size alone on the idle network, in the same \
     pass; p50 is the median over passes, with its 95% interval, and p99 that of all passes together where one has too few messages. Completion time: from \
     the arrival of the message, so that waiting for a free connection counts, to the answer to its end. Share: of the distribution's messages. The rows \
     without a load compare each pass of the messages alone with the others.";

/// None but in runs with messages of a distribution.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    let stages = &analysis.flow_completion;
    if stages.is_empty() {
        return Vec::new();
    }
    let distributions: BTreeSet<&str> = stages.iter().map(|of| source(of.distribution)).collect();
    let notes = [SLOWDOWN.to_owned()].into_iter();
    let notes = notes.chain(distributions.into_iter().map(str::to_owned));
    vec![Figures {
        title: "Flow completion under load",
        header: vec![
            "stage", "load", "message", "share", "count", "alone", "p50", "p99",
        ],
        rows: stages.iter().flat_map(rows).collect(),
        left: 1,
        notes: notes.chain(stages.iter().filter_map(shortfall)).collect(),
    }]
}

/// Where the sizes are from.
fn source(distribution: SizeDistribution) -> &'static str {
    match distribution {
        SizeDistribution::WebSearch => {
            "web-search: Alizadeh et al., DCTCP, SIGCOMM 2010 (W5 of Homa)."
        }
        SizeDistribution::Hadoop => "hadoop: Roy et al., SIGCOMM 2015 (W4 of Homa).",
        SizeDistribution::W1 => "w1: Atikoglu et al., SIGMETRICS 2012 (memcached; W1 of Homa).",
        SizeDistribution::W2 => "w2: Montazeri et al., Homa, SIGCOMM 2018 (search application).",
        SizeDistribution::W3 => "w3: Montazeri et al., Homa, SIGCOMM 2018 (all RPCs).",
    }
}

fn rows(of: &FlowCompletion) -> impl Iterator<Item = Vec<String>> {
    of.sizes.iter().map(|size| row(of, size))
}

fn row(of: &FlowCompletion, size: &SizeSlowdown) -> Vec<String> {
    vec![
        one_line(&of.stage),
        or_missing(of.load, |load| loads(of, load)),
        format_bytes(size.bytes),
        share(size.share),
        size.messages.to_string(),
        format_duration_ns(size.alone_ns as u64),
        or_missing(size.p50.as_ref(), times),
        or_missing(size.p99.as_ref(), times),
    ]
}

/// `29.8 of 30%`.
fn loads(of: &FlowCompletion, load: f64) -> String {
    let achieved = or_missing(of.achieved_load, |achieved| {
        format!("{:.1}", 100.0 * achieved.value)
    });
    format!("{achieved} of {}", percent(Some(load)))
}

/// The largest messages are few.
fn share(of_all: f64) -> String {
    match 100.0 * of_all {
        small if small < 0.1 => format!("{small:.4}%"),
        _ => percent(Some(of_all)),
    }
}

/// Where the load was not carried.
fn shortfall(of: &FlowCompletion) -> Option<String> {
    let (load, achieved) = (of.load?, of.achieved_load?);
    let most = achieved.high.unwrap_or(achieved.value);
    (most < CARRIED * load).then(|| {
        format!(
            "`{}`: {} of {} achieved. Links or hosts are saturated; slowdowns grow with the duration.",
            one_line(&of.stage),
            fine_percent(Some(achieved.value)),
            percent(Some(load))
        )
    })
}
