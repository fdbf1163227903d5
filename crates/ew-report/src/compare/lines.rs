//! Lines of a comparison that every form shows: its status, both sides, and the notes.

use crate::catalogue::basis::nic_source;
use crate::catalogue::comparison::{no_conclusion, not_compared, note, side_name, stage_note};
use crate::words::{one_line, plural, rate};
use ew_model::comparison::{Comparison, ComparisonVerdict, Side};

/// "Worse", "Different", "Not worse"; without a threshold nobody asked.
pub(super) fn status(comparison: &Comparison) -> &'static str {
    match (comparison.verdict, comparison.threshold) {
        (ComparisonVerdict::Worse, _) => "Worse",
        (ComparisonVerdict::Different, _) => "Different",
        (ComparisonVerdict::NotWorse, Some(_)) => "Not worse",
        (ComparisonVerdict::NotWorse, None) => "Compared",
    }
}

/// "A: 1 GbE (run 20261122-..., mesh, 4 hosts; line rate 1.00 Gb/s, link speed)" for both sides.
pub(super) fn sides(comparison: &Comparison) -> [String; 2] {
    [
        one_side("A", &comparison.base),
        one_side("B", &comparison.other),
    ]
}

fn one_side(letter: &str, side: &Side) -> String {
    let name = side_name(side);
    let run = match side.run_ids.as_slice() {
        [id] if *id == name => String::new(),
        [id] => format!("run {}, ", one_line(id)),
        ids => format!("runs {}, ", one_line(&ids.join(" "))),
    };
    format!(
        "{letter}: {} ({run}{}, {}; line rate {}, {})",
        one_line(&name),
        one_line(&side.scenario),
        plural(side.hosts as usize, "host"),
        rate(side.nic_bits_per_sec),
        nic_source(side.nic_rate_source),
    )
}

/// Notes on the runs and on the stages, and what could not be compared.
pub(super) fn notes(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = comparison.notes.iter().map(note).collect();
    for stage in &comparison.stages {
        let reason = stage.metrics.iter().find_map(no_conclusion);
        let notes = stage.notes.iter().map(stage_note).chain(reason);
        lines.extend(notes.map(|note| format!("`{}`: {note}", stage.name)));
    }
    let skipped = comparison.not_compared.iter().map(not_compared);
    lines.extend(skipped.map(|line| format!("not compared: {line}")));
    lines.iter().map(|line| one_line(line)).collect()
}
