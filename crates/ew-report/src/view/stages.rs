//! Stages in words.

use super::ceiling::ceiling_words;
use super::filled_table::filled_table;
use crate::convergence;
use crate::figures::{Figures, mode_notes, stage_name, stages_outside_sweeps};
use crate::words::{MISSING, count, duration, estimated_rate, fine_percent, one_line, plural};
use ew_model::Analysis;
use ew_model::analysis::StageAnalysis;
use ew_model::units::format_duration_ns;

/// What matters first.
const COLUMNS: [&str; 11] = [
    "stage",
    "of expected",
    "% of line rate",
    "aggregate",
    "per flow",
    "rtt",
    "rounds",
    "flows",
    "missing",
    "retrans",
    "skew p99",
];

/// Columns that would be empty all the way down are skipped.
pub(super) fn table(analysis: &Analysis) -> Figures {
    let stages: Vec<&StageAnalysis> = stages_outside_sweeps(analysis).collect();
    let has_missing = stages.iter().any(|s| s.missing > 0);
    let (header, rows) = filled_table(&COLUMNS, &stages, |stage, column| match column {
        "missing" if !has_missing => MISSING.into(),
        column => value(stage, column),
    });
    Figures {
        title: "Stages",
        header,
        rows,
        left: 1,
        notes: notes(analysis),
    }
}

pub(super) fn cautions(analysis: &Analysis) -> Vec<String> {
    let mut notes = mode_notes(analysis);
    notes.extend(convergence::notes(analysis));
    notes
}

/// What the figures do not show by themselves.
fn notes(analysis: &Analysis) -> Vec<String> {
    let mut notes = cautions(analysis);
    for stage in stages_outside_sweeps(analysis) {
        if let Some((min, median, max)) = stage.rtt_ns {
            notes.push(format!(
                "{}: round trips from {} to {} over pairs, median {}.",
                one_line(&stage.name),
                format_duration_ns(min),
                format_duration_ns(max),
                format_duration_ns(median)
            ));
        }
        if let Some(collisions) = stage.random_collisions {
            notes.push(format!(
                "{}: stock iperf3 would have refused {} because the selected server port was taken.",
                one_line(&stage.name),
                plural(collisions as usize, "choice")
            ));
        }
    }
    notes.extend(ceiling_note(analysis));
    let has_more = |s: &StageAnalysis| s.of_expected.is_some_and(|share| share > 1.0005);
    if analysis.stages.iter().any(has_more) {
        notes.push(
            "More than 100% of expected: a short window can give back what buffers held before it."
                .into(),
        );
    }
    if analysis.stages.iter().any(|s| s.retransmits > Some(0)) {
        notes.push(
            "Retransmits are a count of segments: drops are how TCP finds the rate of a full queue, so they are no \
             fault by themselves."
                .into(),
        );
    }
    notes
}

/// What the column "% of line rate" is compared with. `None` where no stage has it.
fn ceiling_note(analysis: &Analysis) -> Option<String> {
    analysis.stages.iter().find_map(|stage| stage.ceiling)?;
    let basis = &analysis.basis;
    let doubt = match basis.nic_rate_source.is_measured() {
        true => {
            ". NIC speed was estimated from this run; set --expect-nic for an absolute comparison"
        }
        false => "",
    };
    Some(format!(
        "% of line rate: goodput divided by the NICs' maximum goodput; {}{doubt}.",
        ceiling_words(analysis)
    ))
}

/// With what the clocks may have added or hidden.
pub(super) fn start_skew_p99(stage: &StageAnalysis) -> Option<String> {
    let (_, p99_ns, _) = stage.start_skew_ns?;
    let p99 = format_duration_ns(p99_ns);
    Some(match stage.start_skew_error_ns {
        Some(error_ns) => format!("{p99} ±{}", format_duration_ns(error_ns)),
        None => p99,
    })
}

fn value(stage: &StageAnalysis, column: &str) -> String {
    match column {
        "stage" => stage_name(stage),
        "of expected" => fine_percent(stage.of_expected),
        "% of line rate" => fine_percent(stage.ceiling.map(|ceiling| ceiling.reached)),
        "aggregate" => estimated_rate(stage.aggregate_bits_per_sec),
        "per flow" => estimated_rate(stage.flow_bits_per_sec),
        "rtt" => duration(stage.rtt_ns.map(|(_, median, _)| median)),
        "rounds" => stage.rounds.to_string(),
        "flows" => stage.flows.to_string(),
        "missing" => stage.missing.to_string(),
        "retrans" => count(stage.retransmits),
        "skew p99" => start_skew_p99(stage).unwrap_or_else(|| MISSING.into()),
        _ => MISSING.into(),
    }
}
