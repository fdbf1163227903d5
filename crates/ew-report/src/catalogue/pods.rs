//! What pods pay against their nodes, in words for a ticket.

mod causes;

use super::{Headline, proof};
use causes::percent;
use ew_model::Inventory;
use ew_model::analysis::Estimate;
use ew_model::finding::Evidence;
use ew_model::pods::{PodCause, PodCauseKind, PodComparison, PodFigures, PodPath};
use ew_model::units::format_bits_per_sec;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Deref;

/// Where the documentation says what hostNetwork means for security.
const SECURITY: &str = "docs/guide/kubernetes.md#before-you-use-hostnetwork";

/// One path against its baseline with its sentences, as the JSON report holds it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedPodComparison {
    /// What was measured.
    #[serde(flatten)]
    pub figures: PodFigures,
    /// Why it is lower, as far as counters say; empty where it is not.
    pub causes: Vec<WordedPodCause>,
    /// In words for a ticket.
    pub sentence: String,
}

impl Deref for WordedPodComparison {
    type Target = PodFigures;

    /// What is compared is what was measured.
    fn deref(&self) -> &PodFigures {
        &self.figures
    }
}

/// One cause of a difference, with what a person reads of it.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct WordedPodCause {
    /// Which.
    pub kind: PodCauseKind,
    /// As facts.
    #[serde(flatten)]
    pub cause: PodCause,
    /// As the sentence has it.
    pub words: String,
    /// The counters behind it.
    pub evidence: Vec<Evidence>,
}

impl Deref for WordedPodCause {
    type Target = PodCause;

    /// A cause with words is a cause.
    fn deref(&self) -> &PodCause {
        &self.cause
    }
}

/// The comparison with its sentences.
#[must_use]
pub fn worded_pods(comparison: &PodComparison, names: &Inventory) -> WordedPodComparison {
    let worded = |cause: &PodCause| WordedPodCause {
        kind: cause.kind(),
        cause: cause.clone(),
        words: causes::words(cause, comparison, names),
        evidence: causes::evidence(cause, comparison, names),
    };
    WordedPodComparison {
        figures: comparison.figures.clone(),
        causes: comparison.causes.iter().map(worded).collect(),
        sentence: headline(comparison, names).sentence(),
    }
}

/// `pods on different nodes: 27% below hostNetwork (25-29%), tcp-stream x8`, and why.
pub(crate) fn headline(comparison: &PodComparison, names: &Inventory) -> Headline {
    let difference = Headline::new(difference(comparison));
    if !comparison.significant || comparison.causes.is_empty() {
        return difference;
    }
    let causes = comparison.causes.iter();
    let causes = causes.map(|cause| causes::words(cause, comparison, names));
    difference.because(causes.collect::<Vec<_>>().join("; "))
}

/// As a sentence has it.
pub(crate) fn path_words(path: PodPath) -> &'static str {
    match path {
        PodPath::HostNetwork => "hostNetwork",
        PodPath::HostOtherZone => "hostNetwork across zones",
        PodPath::SameNode => "pods on the same node",
        PodPath::OtherNode => "pods on different nodes",
        PodPath::OtherZone => "pods in different zones",
        PodPath::ClusterIp => "pods through a Service (ClusterIP)",
        PodPath::NodePort => "pods through a NodePort",
        PodPath::Headless => "pods through a headless Service",
    }
}

fn difference(comparison: &PodFigures) -> String {
    let path = path_words(comparison.path);
    let baseline = path_words(comparison.baseline_path);
    let load = load(comparison);
    let ratio = &comparison.ratio;
    if !comparison.significant {
        let figure = rate(comparison, &comparison.figure);
        let reference = rate(comparison, &comparison.baseline);
        return format!(
            "{path}: no significant difference from {baseline} ({figure} vs {reference}), {load}"
        );
    }
    let word = if ratio.value < 1.0 { "below" } else { "above" };
    let by = percent((ratio.value - 1.0).abs());
    let interval = interval(ratio);
    let exceeded = comparison.exceeded_loss_share;
    let allowed = exceeded.map_or_else(String::new, |share| {
        format!(", above the {} allowed", percent(share))
    });
    format!("{path}: {by} {word} {baseline}{interval}{allowed}, {load}")
}

/// The figures behind a comparison, and the counters behind its causes.
pub(in crate::catalogue) fn evidence(
    comparison: &PodComparison,
    names: &Inventory,
) -> Vec<Evidence> {
    let causes = comparison.causes.iter();
    let of_causes = causes.flat_map(|cause| causes::evidence(cause, comparison, names));
    std::iter::once(figures(comparison))
        .chain(of_causes)
        .collect()
}

fn figures(comparison: &PodFigures) -> Evidence {
    let p_value = comparison
        .p_value
        .map_or_else(|| "-".to_owned(), |p| format!("{p:.4}"));
    proof(
        format!(
            "{}: median {}; {}: median {}; {} pairs of repetitions, p = {p_value}",
            comparison.stage,
            rate(comparison, &comparison.figure),
            comparison.baseline_stage,
            rate(comparison, &comparison.baseline),
            comparison.ratio.samples
        ),
        format!(
            "flows.parquet: stages `{}` and `{}`",
            comparison.stage, comparison.baseline_stage
        ),
    )
}

/// What a person can do about the first of these causes that was found.
pub(in crate::catalogue) fn next_step(comparison: &PodComparison) -> String {
    let has = |kind| comparison.causes.iter().any(|cause| cause.kind() == kind);
    let text = if has(PodCauseKind::CpuLimit) {
        "raise or drop the pods' CPU limit (resources.limits.cpu)"
    } else if has(PodCauseKind::Encapsulation) || has(PodCauseKind::Mtu) {
        "raise the nodes' MTU so that pods keep theirs, or route pods without a tunnel where the network allows"
    } else if has(PodCauseKind::Softirq) {
        "spread receive queues over CPUs (RSS, RPS), and check that the NIC offloads the tunnel"
    } else if has(PodCauseKind::Conntrack) {
        "raise net.netfilter.nf_conntrack_max, give address translation more addresses or ports, or exempt the pods' traffic from it"
    } else if has(PodCauseKind::ServicePath) {
        "use headless Services for traffic that matters, or a data path without address translation"
    } else if has(PodCauseKind::NodeNic) {
        "check the NIC's rings, offloads and errors (ethtool -S), and what else uses its link"
    } else {
        "compare the nodes' CPU time and counters of both paths"
    };
    format!("{text}; before you answer with hostNetwork, read {SECURITY}")
}

fn load(comparison: &PodFigures) -> String {
    match comparison.streams {
        1 => comparison.kind.name().to_owned(),
        streams => format!("{} x{streams}", comparison.kind.name()),
    }
}

fn rate(comparison: &PodFigures, estimate: &Estimate) -> String {
    if comparison.kind.is_bulk() {
        return format_bits_per_sec(estimate.value);
    }
    format!("{:.0} transactions/s", estimate.value)
}

fn interval(ratio: &Estimate) -> String {
    match (ratio.low, ratio.high) {
        (Some(low), Some(high)) => {
            let (a, b) = ((1.0 - low).abs() * 100.0, (1.0 - high).abs() * 100.0);
            let digits = usize::from(a.min(b) < 10.0);
            format!(" ({:.digits$}-{:.digits$}%)", a.min(b), a.max(b))
        }
        _ => String::new(),
    }
}
