//! Pods against their nodes as a table, the same in every view.

use crate::catalogue::pods::{headline, path_words};
use crate::figures::Figures;
use crate::words::{MISSING, or_missing};
use ew_model::Analysis;
use ew_model::analysis::Estimate;
use ew_model::pods::{PodComparison, PodPath};
use ew_model::units::format_bits_per_sec;

const PAIRED: &str = "Difference: median of the ratios of flows between the same two nodes in the same repetition, with its 95% interval; \"no\" where Wilcoxon's \
     signed-rank test (corrected for the number of comparisons) or the interval does not exclude zero, or it is below 1.5%.";
const SECURITY: &str = "Before you answer a difference with hostNetwork: it takes the pod out of network policies and gives it the node's ports, loopback \
     included (docs/guide/kubernetes.md#before-you-use-hostnetwork).";

/// None but in runs with pods.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    if analysis.pods.is_empty() {
        return Vec::new();
    }
    let lower = |c: &PodComparison| c.significant && c.ratio.value < 1.0;
    let mut notes = vec![PAIRED.to_owned()];
    notes.extend(
        analysis
            .pods
            .iter()
            .filter(|c| lower(c))
            .map(|c| headline(c, analysis.inventory()).sentence()),
    );
    if analysis
        .pods
        .iter()
        .any(|c| lower(c) && c.baseline_path == PodPath::HostNetwork)
    {
        notes.push(SECURITY.to_owned());
    }
    vec![Figures {
        title: "Pods against their nodes",
        header: vec![
            "load",
            "path",
            "rate",
            "baseline",
            "difference",
            "95% interval",
            "p",
            "node CPU (baseline)",
            "agent CPUs (baseline)",
        ],
        rows: analysis.pods.iter().map(row).collect(),
        left: 2,
        notes,
    }]
}

fn row(comparison: &PodComparison) -> Vec<String> {
    let load = match comparison.streams {
        1 => comparison.kind.name().to_owned(),
        streams => format!("{} x{streams}", comparison.kind.name()),
    };
    let rate = |estimate: &Estimate| match comparison.kind.is_bulk() {
        true => format_bits_per_sec(estimate.value),
        false => format!("{:.0}/s", estimate.value),
    };
    let ratio = &comparison.ratio;
    let signed = |value: f64| format!("{:+.1}%", (value - 1.0) * 100.0);
    let difference = match comparison.significant {
        true => signed(ratio.value),
        false => format!("no ({})", signed(ratio.value)),
    };
    let interval = match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => format!("{} to {}", signed(low), signed(high)),
        _ => MISSING.to_owned(),
    };
    vec![
        load,
        path_words(comparison.path).to_owned(),
        rate(&comparison.figure),
        rate(&comparison.baseline),
        difference,
        interval,
        or_missing(comparison.p_value, |p| format!("{p:.3}")),
        next_to(comparison.node_cpu, comparison.baseline_node_cpu, |share| {
            format!("{:.0}%", share * 100.0)
        }),
        next_to(
            comparison.agent_cpus,
            comparison.baseline_agent_cpus,
            |cpus| format!("{cpus:.2}"),
        ),
    ]
}

/// A path's figures, and in parentheses its baseline's.
fn next_to(
    path: [Option<f64>; 2],
    baseline: [Option<f64>; 2],
    words: impl Fn(f64) -> String,
) -> String {
    format!("{} ({})", both(path, &words), both(baseline, &words))
}

/// Client's / server's.
fn both(ends: [Option<f64>; 2], words: impl Fn(f64) -> String) -> String {
    let [client, server] = ends.map(|end| or_missing(end, &words));
    format!("{client} / {server}")
}
