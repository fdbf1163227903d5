//! What a run would do, before it does it.

mod knobs;

use crate::TextStyle;
use crate::table::{table, wrap};
use crate::words::{MISSING, one_line, or_missing, plural};
use ew_model::units::{format_bytes, format_duration_ns};
use ew_model::{Inventory, Plan, Stage};

/// The plan as a table: stages, rounds, flows, expected duration ([`Stage::planned_ns`]) and bytes; below it the workloads'
/// settings that are not the usual ones, in words.
///
/// `stage_bytes` holds the payload the caller expects each stage to move, in stage order; `None` or a missing entry
/// is shown as "-", and then the total is a lower bound and says so. Nothing is decided here.
#[must_use]
pub fn dry_run(
    plan: &Plan,
    inventory: &Inventory,
    stage_bytes: &[Option<u64>],
    style: &TextStyle,
) -> String {
    let width = style.width.max(40);
    let mut out = wrap(&headline(plan, inventory), width, "");
    out.push('\n');
    let header = [
        "stage", "pattern", "workload", "rounds", "flows", "at once", "duration", "bytes",
    ];
    let mut rows: Vec<Vec<String>> = plan
        .stages
        .iter()
        .enumerate()
        .map(|(i, stage)| row(stage, stage_bytes.get(i).copied().flatten()))
        .collect();
    rows.push(total(plan, stage_bytes));
    out.push_str(&table(&header, &rows, 3, width));
    for (names, words) in settings(plan) {
        out.push_str(&wrap(&words, width, &format!("{names}: ")));
    }
    for test in &plan.dropped_tests {
        out.push_str(&wrap(&one_line(test), width, "left out: "));
    }
    out
}

fn headline(plan: &Plan, inventory: &Inventory) -> String {
    let racks = match inventory.racks.len() {
        0 => String::from("no racks given"),
        n => format!("in {}", plural(n, "rack")),
    };
    format!(
        "{}: {} ({racks}), seed {}, about {} of load, launch and clock exchange not included",
        one_line(&plan.scenario),
        plural(inventory.hosts.len(), "host"),
        plan.seed,
        format_duration_ns(planned_ns(plan)),
    )
}

/// Names of stages and what is set for them; neighbours with the same are told together.
fn settings(plan: &Plan) -> Vec<(String, String)> {
    let mut told: Vec<(String, String)> = Vec::new();
    for stage in &plan.stages {
        let (name, words) = (one_line(&stage.name), knobs::in_words(&stage.workload));
        match told.last_mut() {
            Some((names, same)) if *same == words => {
                names.push_str(", ");
                names.push_str(&name);
            }
            _ => told.push((name, words)),
        }
    }
    told.retain(|(_, words)| !words.is_empty());
    told
}

fn row(stage: &Stage, bytes: Option<u64>) -> Vec<String> {
    let flows: usize = stage.rounds.iter().map(|r| r.flows.len()).sum();
    let at_once = stage.rounds.iter().map(|r| r.flows.len()).max();
    vec![
        one_line(&stage.name),
        stage.pattern.name().into(),
        format!(
            "{} x{} ({})",
            stage.workload.kind.name(),
            stage.workload.streams,
            stage.workload.tool.name()
        ),
        stage.rounds.len().to_string(),
        flows.to_string(),
        or_missing(at_once, |n| n.to_string()),
        format_duration_ns(stage.planned_ns()),
        or_missing(bytes, format_bytes),
    ]
}

fn total(plan: &Plan, stage_bytes: &[Option<u64>]) -> Vec<String> {
    let rounds: usize = plan.stages.iter().map(|s| s.rounds.len()).sum();
    let flows: usize = plan
        .stages
        .iter()
        .flat_map(|s| &s.rounds)
        .map(|r| r.flows.len())
        .sum();
    let known: Vec<u64> = (0..plan.stages.len())
        .filter_map(|i| stage_bytes.get(i).copied().flatten())
        .collect();
    let sum = known.iter().fold(0_u64, |sum, b| sum.saturating_add(*b));
    let bytes = match known.len() {
        0 => MISSING.to_owned(),
        n if n == plan.stages.len() => format_bytes(sum),
        _ => format!("at least {}", format_bytes(sum)),
    };
    vec![
        "total".into(),
        String::new(),
        String::new(),
        rounds.to_string(),
        flows.to_string(),
        String::new(),
        format_duration_ns(planned_ns(plan)),
        bytes,
    ]
}

fn planned_ns(plan: &Plan) -> u64 {
    plan.stages
        .iter()
        .fold(0, |sum, s| sum.saturating_add(s.planned_ns()))
}
