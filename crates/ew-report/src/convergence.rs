//! `samples: auto` in words: what converged, and which numbers did not.

use crate::figures::stages_outside_sweeps;
use crate::words::{host_name, one_line, plural};
use ew_model::Analysis;
use ew_model::analysis::{Estimate, StageAnalysis, UnconvergedFigure};
use ew_model::units::{format_bits_per_sec, format_duration_ns};

/// Up to this many figures of a stage are named, the widest first.
const FIGURES_LISTED: usize = 4;

/// A line for each stage that was repeated until its figures converged, or did not; one for all
/// sizes of a sweep.
pub(crate) fn notes(analysis: &Analysis) -> Vec<String> {
    let mut notes: Vec<String> = stages_outside_sweeps(analysis)
        .filter_map(|stage| note(analysis, stage))
        .collect();
    notes.extend(analysis.sweeps.iter().filter_map(|sweep| {
        let stages: Vec<&StageAnalysis> = analysis
            .stages
            .iter()
            .filter(|stage| stage.sweep.as_ref() == Some(&sweep.name))
            .collect();
        sweep_note(&sweep.name, &stages)
    }));
    notes
}

fn note(analysis: &Analysis, stage: &StageAnalysis) -> Option<String> {
    let auto = stage.auto?;
    let name = one_line(&stage.name);
    let width = 100.0 * auto.width;
    let rounds = plural(stage.rounds as usize, "round");
    if stage.unconverged.is_empty() {
        return Some(format!(
            "{name}: every figure converged, its 95% interval no wider than {width}%, in {rounds}."
        ));
    }
    let reported = stage.unconverged.iter().take(FIGURES_LISTED);
    let mut reported: Vec<String> = reported
        .map(|figure| in_words(analysis, stage, figure))
        .collect();
    if stage.unconverged.len() > FIGURES_LISTED {
        reported.push("...".into());
    }
    Some(format!(
        "{name}: {} did not converge within {width}% in {rounds}: {}.",
        plural(stage.unconverged.len(), "figure"),
        reported.join(", ")
    ))
}

/// "a to b 941 Mb/s (930 Mb/s to 960 Mb/s, 3.2% wide)".
fn in_words(analysis: &Analysis, stage: &StageAnalysis, figure: &UnconvergedFigure) -> String {
    let inventory = analysis.inventory();
    let value = |value: f64| match stage.kind.is_bulk() {
        true => format_bits_per_sec(value),
        false => format_duration_ns(value as u64),
    };
    let Estimate { low, high, .. } = figure.estimate;
    let interval = match (low, high, figure.width) {
        (Some(low), Some(high), Some(width)) => {
            format!(
                "{} to {}, {:.1}% wide",
                value(low),
                value(high),
                100.0 * width
            )
        }
        _ => format!(
            "no interval from {}",
            plural(figure.estimate.samples as usize, "sample")
        ),
    };
    let senders = figure.senders_per_rack.map_or(String::new(), |n| {
        format!(" with {}", plural(n as usize, "sender"))
    });
    format!(
        "{} to {}{senders} {} ({interval})",
        host_name(inventory, figure.src),
        host_name(inventory, figure.dst),
        value(figure.estimate.value)
    )
}

fn sweep_note(name: &str, stages: &[&StageAnalysis]) -> Option<String> {
    let auto = stages.first()?.auto?;
    let open: Vec<String> = stages
        .iter()
        .filter(|stage| !stage.unconverged.is_empty())
        .map(|stage| one_line(&stage.name))
        .collect();
    let (name, width) = (one_line(name), 100.0 * auto.width);
    Some(match open.as_slice() {
        [] => format!("{name}: the figures of all sizes converged within {width}%."),
        open => {
            let listed = open
                .iter()
                .take(FIGURES_LISTED)
                .cloned()
                .collect::<Vec<_>>();
            let more = if open.len() > FIGURES_LISTED {
                ", ..."
            } else {
                ""
            };
            format!(
                "{name}: the figures of {} did not converge within {width}%: {}{more}.",
                plural(open.len(), "size"),
                listed.join(", ")
            )
        }
    })
}
