//! Comparisons in words for a ticket.

use ew_model::analysis::Estimate;
use ew_model::finding::Evidence;
use ew_model::pods::PodComparison;
use ew_model::units::format_bits_per_sec;

/// `pods on different nodes: 27% below hostNetwork (25-29%), tcp-stream x8. Cause: ...`. `allowed`
/// is the share that was exceeded.
pub(super) fn sentence(comparison: &PodComparison, allowed: Option<f64>) -> String {
    let path = comparison.path.words();
    let baseline = comparison.baseline_path.words();
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
    let allowed = allowed.map_or_else(String::new, |share| {
        format!(", above the {} allowed", percent(share))
    });
    let difference = format!("{path}: {by} {word} {baseline}{interval}{allowed}, {load}");
    if comparison.causes.is_empty() {
        return difference;
    }
    let causes: Vec<&str> = comparison.causes.iter().map(|c| c.words.as_str()).collect();
    format!("{difference}. Cause: {}", causes.join("; "))
}

/// The figures behind a comparison.
pub(super) fn evidence(comparison: &PodComparison) -> Evidence {
    let p_value = comparison
        .p_value
        .map_or_else(|| "-".to_owned(), |p| format!("{p:.4}"));
    Evidence {
        text: format!(
            "{}: median {}; {}: median {}; {} pairs of repetitions, p = {p_value}",
            comparison.stage,
            rate(comparison, &comparison.figure),
            comparison.baseline_stage,
            rate(comparison, &comparison.baseline),
            comparison.ratio.samples
        ),
        source: format!(
            "flows.parquet: stages `{}` and `{}`",
            comparison.stage, comparison.baseline_stage
        ),
    }
}

fn load(comparison: &PodComparison) -> String {
    match comparison.streams {
        1 => comparison.kind.name().to_owned(),
        streams => format!("{} x{streams}", comparison.kind.name()),
    }
}

pub(super) fn rate(comparison: &PodComparison, estimate: &Estimate) -> String {
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

/// Three significant digits at most, as a reader of percentages expects.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value < 10.0 {
        format!("{value:.1}%")
    } else {
        format!("{value:.0}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::pods::{PodCause, PodCauseKind, PodPath};
    use ew_model::workload::WorkloadKind;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate {
            value,
            low: Some(low),
            high: Some(high),
            samples: 10,
        }
    }

    fn comparison(ratio: Estimate, significant: bool) -> PodComparison {
        let cause = PodCause {
            kind: PodCauseKind::Softirq,
            words: "softirq on CPU 3 of n2 saturated".into(),
            share: None,
            evidence: Vec::new(),
        };
        let mut comparison = PodComparison {
            stage: "pod".into(),
            baseline_stage: "host".into(),
            path: PodPath::OtherNode,
            baseline_path: PodPath::HostNetwork,
            kind: WorkloadKind::TcpStream,
            streams: 8,
            figure: estimate(73e9, 72e9, 75e9),
            baseline: estimate(100e9, 99e9, 101e9),
            ratio,
            p_value: Some(0.004),
            significant,
            node_cpu: [None; 2],
            agent_cpus: [None; 2],
            baseline_node_cpu: [None; 2],
            baseline_agent_cpus: [None; 2],
            causes: if significant { vec![cause] } else { Vec::new() },
            sentence: String::new(),
        };
        comparison.sentence = sentence(&comparison, None);
        comparison
    }

    #[test]
    fn a_difference_is_told_with_interval_load_and_cause() {
        let lower = comparison(estimate(0.73, 0.71, 0.75), true);
        assert_eq!(
            lower.sentence,
            "pods on different nodes: 27% below hostNetwork (25-29%), tcp-stream x8. Cause: softirq on CPU 3 of n2 saturated"
        );
        assert_eq!(
            sentence(&lower, Some(0.1)),
            "pods on different nodes: 27% below hostNetwork (25-29%), above the 10% allowed, tcp-stream x8. Cause: softirq on CPU 3 of n2 saturated"
        );
        let slight = comparison(estimate(0.966, 0.962, 0.969), true);
        assert!(
            slight
                .sentence
                .contains("3.4% below hostNetwork (3.1-3.8%)")
        );
    }

    #[test]
    fn none_is_told_as_none() {
        let alike = comparison(estimate(0.998, 0.99, 1.01), false);
        assert_eq!(
            alike.sentence,
            "pods on different nodes: no significant difference from hostNetwork (73.0 Gb/s vs 100 Gb/s), tcp-stream x8"
        );
    }
}
