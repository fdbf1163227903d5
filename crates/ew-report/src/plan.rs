//! What a run would do, before it does it.

mod knobs;

use crate::format::TextStyle;
use crate::table::{table, wrap};
use crate::words::{MISSING, one_line, or_missing, plural};
use ew_model::units::{format_bytes, format_duration_ns, format_whole_bytes};
use ew_model::{Inventory, Plan, Stage, Workload};

/// More stages than this, with the same settings, are counted.
const MAX_NAMES: usize = 4;
/// Longer names of stages have a line of their own, so that settings keep the width.
const MAX_INDENT: usize = 24;

/// The plan as a table: stages (all sizes of a sweep in one line), rounds, flows, expected duration
/// ([`Stage::planned_ns`], with the min where rounds run until they converge) and bytes; below it
/// the workloads' settings that are not the default ones, in words.
///
/// `network` is the network, as far as that is known before hosts are asked. `stage_bytes`
/// has the payload the caller expects each stage to move, in stage order; `None` or a missing
/// entry is shown as "-", and then the total is a lower bound, marked as such. Nothing is decided
/// here.
#[must_use]
pub fn dry_run(
    plan: &Plan,
    inventory: &Inventory,
    network: &str,
    stage_bytes: &[Option<u64>],
    style: &TextStyle,
) -> String {
    let width = style.width.max(40);
    let mut out = wrap(&headline(plan, inventory), width, "");
    out.push_str(&wrap(&one_line(network), width, "network: "));
    out.push('\n');
    let header = [
        "stage", "pattern", "workload", "rounds", "flows", "at once", "duration", "bytes",
    ];
    let lines = lines(plan, stage_bytes);
    let mut rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    rows.push(total(plan, &lines));
    out.push_str(&table(&header, &rows, 3, width));
    for (names, words) in settings(&lines) {
        out.push_str(&of_stages(&names, &words, width));
    }
    if plan.random_order {
        let words =
            "the stages are interleaved, one repetition each, in a new random order every time";
        out.push_str(&wrap(words, width, "order: "));
    }
    for tests in plan.skipped_tests() {
        out.push_str(&wrap(&one_line(&tests), width, "skipped: "));
    }
    out
}

/// What has a line of its own: a stage, or all sizes of a sweep.
struct Line<'a> {
    name: String,
    /// The first one's.
    stage: &'a Stage,
    stages: Vec<&'a Stage>,
    /// `None` when one of them is unknown.
    bytes: Option<u64>,
}

impl Line<'_> {
    fn sum(&self, of: impl Fn(&Stage) -> u64) -> u64 {
        let add = |sum: u64, stage: &&Stage| sum.saturating_add(of(stage));
        self.stages.iter().fold(0, add)
    }

    /// "30 s", or "5.00 s to 30 s" where rounds run until they converge.
    fn duration(&self) -> String {
        span(self.sum(Stage::min_planned_ns), self.sum(Stage::planned_ns))
    }
}

fn lines<'a>(plan: &'a Plan, stage_bytes: &[Option<u64>]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (at, stage) in plan.stages.iter().enumerate() {
        let bytes = stage_bytes.get(at).copied().flatten();
        match lines.last_mut() {
            Some(line) if stage.sweep.is_some() && line.stage.sweep == stage.sweep => {
                line.stages.push(stage);
                line.bytes = line.bytes.zip(bytes).map(|(a, b)| a.saturating_add(b));
            }
            _ => lines.push(Line {
                name: one_line(stage.sweep.as_ref().unwrap_or(&stage.name)),
                stage,
                stages: vec![stage],
                bytes,
            }),
        }
    }
    lines
}

fn span(min_ns: u64, max_ns: u64) -> String {
    match min_ns == max_ns {
        true => format_duration_ns(max_ns),
        false => format!(
            "{} to {}",
            format_duration_ns(min_ns),
            format_duration_ns(max_ns)
        ),
    }
}

fn headline(plan: &Plan, inventory: &Inventory) -> String {
    let racks = match inventory.racks.len() {
        0 => String::from("no racks given"),
        n => format!("in {}", plural(n, "rack")),
    };
    format!(
        "{}: {} ({racks}), seed {}, estimated time {} (excluding agent start-up)",
        one_line(&plan.scenario),
        plural(inventory.hosts.len(), "host"),
        plan.seed,
        planned(plan),
    )
}

/// Names of stages and what is set for them; neighbours with the same are reported together.
fn settings(lines: &[Line<'_>]) -> Vec<(Vec<String>, String)> {
    let mut reported: Vec<(Vec<String>, String)> = Vec::new();
    for line in lines {
        let (name, words) = (line.name.clone(), line_words(line));
        match reported.last_mut() {
            Some((names, same)) if *same == words => names.push(name),
            _ => reported.push((vec![name], words)),
        }
    }
    reported.retain(|(_, words)| !words.is_empty());
    reported
}

/// Next to the stages' names, or below them.
fn of_stages(names: &[String], words: &str, width: usize) -> String {
    let names = match names.len() > MAX_NAMES {
        true => {
            let (shown, more) = names.split_at(MAX_NAMES - 1);
            format!("{} and {} more", shown.join(", "), more.len())
        }
        false => names.join(", "),
    };
    let first = format!("{names}: ");
    match first.chars().count() <= MAX_INDENT {
        true => wrap(words, width, &first),
        false => wrap(&first, width, "") + &wrap(words, width, "  "),
    }
}

/// The workload's settings, a sweep's sizes, and how long rounds are repeated.
fn line_words(line: &Line<'_>) -> String {
    let workload = &line.stage.workload;
    let mut words = match line.stage.sweep {
        // Its own size is one of many.
        Some(_) => knobs::in_words(&Workload {
            message_bytes: Workload::of(workload.kind).message_bytes,
            ..workload.clone()
        }),
        None => knobs::in_words(workload),
    };
    let mut add = |more: String| {
        words = match words.is_empty() {
            true => more,
            false => format!("{words}, {more}"),
        };
    };
    if let (Some(_), Some(last)) = (&line.stage.sweep, line.stages.last()) {
        add(format!(
            "{} from {} to {}",
            plural(line.stages.len(), "message size"),
            format_whole_bytes(workload.message_bytes),
            format_whole_bytes(last.workload.message_bytes)
        ));
    }
    if let Some(auto) = line.stage.auto {
        add(format!(
            "each round {} to {} times, until every figure's 95% interval is within {}% of it",
            auto.at_least,
            auto.at_most,
            100.0 * auto.width
        ));
    }
    words
}

fn row(line: &Line<'_>) -> Vec<String> {
    let stage = line.stage;
    let at_once = stage.rounds.iter().map(|r| r.flows.len()).max();
    vec![
        line.name.clone(),
        stage.pattern.name().into(),
        format!(
            "{} x{} ({})",
            stage.workload.kind.name(),
            stage.workload.streams,
            stage.workload.tool.name()
        ),
        line.sum(|stage| stage.rounds.len() as u64).to_string(),
        line.sum(flows).to_string(),
        or_missing(at_once, |n| n.to_string()),
        line.duration(),
        or_missing(line.bytes, format_bytes),
    ]
}

fn flows(stage: &Stage) -> u64 {
    stage.rounds.iter().map(|r| r.flows.len() as u64).sum()
}

fn total(plan: &Plan, lines: &[Line<'_>]) -> Vec<String> {
    let known: Vec<u64> = lines.iter().filter_map(|line| line.bytes).collect();
    let sum = known.iter().fold(0_u64, |sum, b| sum.saturating_add(*b));
    let bytes = match known.len() {
        0 => MISSING.to_owned(),
        n if n == lines.len() => format_bytes(sum),
        _ => format!("at least {}", format_bytes(sum)),
    };
    let rounds: usize = plan.stages.iter().map(|s| s.rounds.len()).sum();
    vec![
        "total".into(),
        String::new(),
        String::new(),
        rounds.to_string(),
        plan.stages.iter().map(flows).sum::<u64>().to_string(),
        String::new(),
        planned(plan),
        bytes,
    ]
}

fn planned(plan: &Plan) -> String {
    let sum = |of: fn(&Stage) -> u64| {
        let add = |sum: u64, stage: &Stage| sum.saturating_add(of(stage));
        plan.stages.iter().fold(0, add)
    };
    span(sum(Stage::min_planned_ns), sum(Stage::planned_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_many_stages_keep_the_width() {
        let names: Vec<String> = (1..=20).map(|n| format!("stage number {n}")).collect();
        let words = "as many streams as fill hosts and paths, the same 5-tuples in every round";
        assert_eq!(
            of_stages(&names, words, 60),
            "stage number 1, stage number 2, stage number 3 and 17 more:\n  as many streams as fill hosts and paths, the same 5-tuples\n  \
             in every round\n"
        );
        assert_eq!(
            of_stages(&names[..1], words, 60),
            "stage number 1: as many streams as fill hosts and paths, the\n                same 5-tuples in every round\n"
        );
    }
}
