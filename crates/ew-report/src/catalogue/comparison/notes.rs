//! What differs between two runs besides their figures.

use crate::catalogue::basis::efficiency_source;
use crate::catalogue::settings::settings;
use crate::words::plural;
use ew_model::comparison::{
    ComparisonNote, MIN_RUNS, Method, MetricComparison, NotCompared, RunSpread, StageNote,
};
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use ew_model::{Outcome, Setting};

/// So many names are reported.
const NAMES_TOLD: usize = 4;

/// Of the runs as a whole.
pub(crate) fn note(note: &ComparisonNote) -> String {
    match note {
        ComparisonNote::NotWhole { run, outcome } => format!("{run} {}", how(*outcome)),
        ComparisonNote::LineRate { base, other } => {
            let rate = |rate: &Option<f64>| rate.map_or("not known".into(), format_bits_per_sec);
            against("line rate", &rate(base), &rate(other))
        }
        ComparisonNote::Frames { base, other } => against(
            "frames",
            &efficiency_source(base),
            &efficiency_source(other),
        ),
        ComparisonNote::Version { base, other } => against("eastwest", base, other),
        ComparisonNote::Kernels { base, other } => {
            against("kernels", &or_not_known(base), &or_not_known(other))
        }
        ComparisonNote::Fleet { base, other } => against("fleet", base, other),
        ComparisonNote::Hosts { base, other } => {
            against("hosts only in one run", &few(base), &few(other))
        }
        ComparisonNote::Seeds {
            base,
            other,
            base_run,
        } => format!(
            "seeds {base} and {other}: random pairs may differ; `eastwest runs repeat {base_run}` runs the same flows"
        ),
        ComparisonNote::Spread {
            metric,
            stage,
            spread,
        } => format!(
            "run-to-run spread of {} in `{stage}`: {:.2}% ({})",
            metric.name(),
            100.0 * spread.deviation,
            spread_source(spread)
        ),
        ComparisonNote::TooFewRuns => format!(
            "\"different\" describes the runs; for a change of the network give {MIN_RUNS} runs or more of each, \
             such as `eastwest compare A1,A2,A3 B1,B2,B3`"
        ),
    }
}

/// Of a stage of both runs.
pub(crate) fn stage_note(note: &StageNote) -> String {
    match note {
        StageNote::Name { base, other } => {
            against("stage", &format!("`{base}`"), &format!("`{other}`"))
        }
        StageNote::Pattern { base, other } => against("pattern", base, other),
        StageNote::Tool { base, other } => against("tool", base.name(), other.name()),
        StageNote::Settings { base, other } => {
            against("settings", &or_defaults(base), &or_defaults(other))
        }
        StageNote::Window { base_ns, other_ns } => {
            let [base, other] = [*base_ns, *other_ns].map(format_duration_ns);
            against("window", &base, &other)
        }
        StageNote::Rounds { base, other } => {
            against("rounds", &base.to_string(), &other.to_string())
        }
    }
}

/// Of a stage without comparison.
pub(crate) fn not_compared(found: &NotCompared) -> String {
    match found {
        NotCompared::OnlyIn { stage, run } => format!("`{stage}` is only in {run}"),
        NotCompared::NoFigure { stage } => format!("`{stage}` has no figure in one of the runs"),
    }
}

/// Why a figure has no conclusion. `None` where it has one.
pub(crate) fn no_conclusion(metric: &MetricComparison) -> Option<String> {
    if metric.p_value.is_some() {
        return None;
    }
    let (base, other, what) = match metric.method {
        Method::Flows { flows } => (flows, flows, "flows"),
        Method::DifferentFlows { base, other } => (base, other, "flows"),
        Method::Rounds { base, other } => (base, other, "rounds"),
        Method::Runs { base, other } => (base, other, "runs"),
    };
    Some(format!(
        "{base} against {other} {what} cannot show a difference at 95%; repeat with `--set samples=6`, or with more hosts"
    ))
}

fn against(what: &str, base: &str, other: &str) -> String {
    format!("{what}: {base} against {other}")
}

/// How a run was not whole.
fn how(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "is whole",
        Outcome::Partial => "is partial: hosts or pairs are missing",
        Outcome::Interrupted => "was interrupted",
        Outcome::Failed => "failed",
        Outcome::Unfinished => "was cut short",
    }
}

fn or_not_known(kernels: &[String]) -> String {
    match kernels {
        [] => "not known".into(),
        kernels => kernels.join(", "),
    }
}

fn or_defaults(set: &[Setting]) -> String {
    match set {
        [] => "the defaults".into(),
        set => settings(set).join(", "),
    }
}

fn few(names: &[String]) -> String {
    match names {
        [] => "none".into(),
        few if few.len() <= NAMES_TOLD => few.join(", "),
        many => plural(many.len(), "host"),
    }
}

fn spread_source(spread: &RunSpread) -> String {
    match (spread.degrees, spread.history) {
        (None, _) => "assumed: too few runs show it".into(),
        (Some(_), 0) => "from the runs compared".into(),
        (Some(_), history) => format!("from the runs compared and {history} earlier ones"),
    }
}
