//! Sweeps over message sizes as tables, notes and CSV: the same curve in every view.

use crate::catalogue::{WordedStep, curve_note, worded_step};
use crate::csv_line::{push_line, whole};
use crate::figures::{Figures, micros, mode_parts, stages_outside_sweeps};
use crate::words::{MISSING, duration, one_line, or_missing, plural, rate};
use ew_model::Analysis;
use ew_model::sweep::{SweepAnalysis, SweepPoint, SweepStep};
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns, format_whole_bytes};

/// A curve of more sizes than this is reported by its powers of two and the sizes at its breaks.
const SIZES_LISTED: usize = 30;
/// Up to this many breaks of a curve are reported.
const STEPS_LISTED: usize = 8;
/// Characters of the longest bar.
const BAR_WIDTH: f64 = 16.0;

const CSV_HEADER: &str = "sweep,workload,message_bytes,bits_per_sec,bits_per_sec_low,bits_per_sec_high,samples,message_ns,\
    rtt_count,rtt_min_ns,rtt_mean_ns,rtt_p50_ns,rtt_p99_ns,rtt_max_ns,flows_missing\n";

/// What the curves amount to, and the curves; none without sweeps.
pub(crate) fn tables(analysis: &Analysis) -> Vec<Figures> {
    if analysis.sweeps.is_empty() {
        return Vec::new();
    }
    vec![amounts(analysis), curves(analysis)]
}

/// What a curve amounts to, for the sentence on top: "15.3 µs one way at 1 B, 9.41 Gb/s from 64 KiB
/// on, half of it at 2.1 KiB".
pub(crate) fn in_words(sweep: &SweepAnalysis) -> String {
    let mut parts = Vec::new();
    let first = sweep.points.iter().find(|point| point.message_ns.is_some());
    if let Some((point, ns)) = first.and_then(|p| Some((p, p.message_ns?)))
        && !sweep.kind.is_bulk()
    {
        let time = format_duration_ns(ns as u64);
        let size = format_whole_bytes(point.message_bytes);
        parts.push(format!("{time} one way at {size}"));
    }
    if let Some(saturation) = &sweep.saturation {
        let rate = format_bits_per_sec(saturation.bits_per_sec);
        let size = format_whole_bytes(saturation.message_bytes);
        parts.push(format!("{rate} from {size} on"));
    }
    if let Some(half) = &sweep.half_performance {
        let rate = format_bits_per_sec(half.endless_bits_per_sec);
        let size = format_bytes(half.bytes as u64);
        parts.push(format!("half of {rate} at {size}"));
    }
    match parts.is_empty() {
        true => format!("`{}` has no curve", sweep.name),
        false => format!("`{}` {}", sweep.name, parts.join(", ")),
    }
}

/// Whether the run is nothing but sweeps.
pub(crate) fn is_all(analysis: &Analysis) -> bool {
    !analysis.sweeps.is_empty() && stages_outside_sweeps(analysis).next().is_none()
}

/// One row per size.
pub(crate) fn csv(analysis: &Analysis) -> String {
    let mut text = String::from(CSV_HEADER);
    for sweep in &analysis.sweeps {
        for point in &sweep.points {
            push_line(&mut text, csv_fields(sweep, point).into_iter());
        }
    }
    text
}

/// The breaks of a curve in words, with what they rest on.
pub(crate) fn step_words(step: &SweepStep) -> String {
    let WordedStep {
        sentence, evidence, ..
    } = worded_step(step);
    let reported: Vec<String> = evidence.iter().map(|e| one_line(&e.text)).collect();
    format!("{} ({})", one_line(&sentence), reported.join("; "))
}

fn amounts(analysis: &Analysis) -> Figures {
    let row = |sweep: &SweepAnalysis| {
        let first = sweep.points.iter().find(|point| point.message_ns.is_some());
        let half = sweep.half_performance.as_ref();
        let line = half.and_then(|half| half.line);
        vec![
            one_line(&sweep.name),
            one_line(&sweep.workload),
            or_missing(first, |point| {
                let time = duration(point.message_ns.map(|ns| ns as u64));
                format!("{time} at {}", format_whole_bytes(point.message_bytes))
            }),
            rate(half.map(|half| half.endless_bits_per_sec)),
            or_missing(half, |half| format_bytes(half.bytes as u64)),
            or_missing(line, |line| format_duration_ns(line.start_ns as u64)),
            or_missing(sweep.saturation.as_ref(), |saturation| {
                format_whole_bytes(saturation.message_bytes)
            }),
        ]
    };
    let mut notes = vec![
        "Ping-pong: a message's time is half the median round trip, median over rounds, and its rate is size over that, as NetPIPE has it. n1/2 is \
         the size with half the rate of endless messages; t0 what a message costs however small; saturated from where the \
         rate keeps 90% of its max."
            .to_owned(),
    ];
    notes.extend(
        analysis
            .sweeps
            .iter()
            .flat_map(|sweep| notes_of(analysis, sweep)),
    );
    Figures {
        title: "Sweep over message sizes",
        header: vec![
            "test",
            "workload",
            "least",
            "endless",
            "n1/2",
            "t0",
            "saturated from",
        ],
        rows: analysis.sweeps.iter().map(row).collect(),
        left: 2,
        notes,
    }
}

fn notes_of(analysis: &Analysis, sweep: &SweepAnalysis) -> Vec<String> {
    let name = one_line(&sweep.name);
    let mut notes: Vec<String> = Vec::new();
    let common = common_parts(analysis, sweep);
    if !common.is_empty() {
        notes.push(format!("{name}: {}.", common.join("; ")));
    }
    let steps = sweep.steps.iter().take(STEPS_LISTED);
    notes.extend(steps.map(|step| format!("{name}: {}.", step_words(step))));
    let more = sweep.steps.len().saturating_sub(STEPS_LISTED);
    if more > 0 {
        let more = plural(more, "more break");
        notes.push(format!("{name}: {more}; the JSON report lists all."));
    }
    if sweep.steps.is_empty() {
        notes.push(format!("{name}: no break was found in the curve."));
    }
    notes.extend(
        sweep
            .notes
            .iter()
            .map(|note| format!("{name}: {}.", curve_note(note))),
    );
    notes
}

/// Notes on all stages of a sweep alike.
fn common_parts(analysis: &Analysis, sweep: &SweepAnalysis) -> Vec<String> {
    let mut stages = analysis
        .stages
        .iter()
        .filter(|stage| stage.sweep.as_ref() == Some(&sweep.name))
        .map(mode_parts);
    let Some(mut common) = stages.next() else {
        return Vec::new();
    };
    for parts in stages {
        common.retain(|part| parts.contains(part));
    }
    common
}

fn curves(analysis: &Analysis) -> Figures {
    let mut rows = Vec::new();
    let mut left_out = 0;
    for sweep in &analysis.sweeps {
        let points: Vec<&SweepPoint> = sweep
            .points
            .iter()
            .filter(|p| is_listed(sweep, p))
            .collect();
        left_out += sweep.points.len() - points.len();
        let max = sweep.points.iter().filter_map(rate_of).fold(0.0, f64::max);
        rows.extend(points.iter().map(|point| curve_row(sweep, point, max)));
    }
    let note = || {
        format!(
            "{}; the CSV and JSON reports have all.",
            plural(left_out, "more size")
        )
    };
    Figures {
        title: "Curves, times in µs",
        header: vec![
            "test",
            "size",
            "",
            "rate",
            "one message",
            "round trip p50",
            "p99",
            "max",
        ],
        rows,
        left: 3,
        notes: (left_out > 0).then(note).into_iter().collect(),
    }
}

fn curve_row(sweep: &SweepAnalysis, point: &SweepPoint, max: f64) -> Vec<String> {
    let times = point.round_trip;
    vec![
        one_line(&sweep.name),
        format_whole_bytes(point.message_bytes),
        bar(rate_of(point), max),
        rate(rate_of(point)),
        or_missing(point.message_ns, precise_micros),
        or_missing(times.map(|t| t.p50_ns), micros),
        or_missing(times.and_then(|t| t.p99_ns), micros),
        or_missing(times.map(|t| t.max_ns), micros),
    ]
}

/// Small messages back to back take nanoseconds.
fn precise_micros(ns: f64) -> String {
    match ns < 1000.0 {
        true => format!("{:.3}", ns / 1000.0),
        false => micros(ns as u64),
    }
}

fn rate_of(point: &SweepPoint) -> Option<f64> {
    point
        .bits_per_sec
        .map(|e| e.value)
        .filter(|v| v.is_finite())
}

/// Says nothing that the rate next to it does not.
fn bar(value: Option<f64>, max: f64) -> String {
    let share = value.unwrap_or_default() / max.max(f64::MIN_POSITIVE);
    let length = (share * BAR_WIDTH).round().clamp(0.0, BAR_WIDTH) as usize;
    match length {
        0 => "▏".into(),
        length => "█".repeat(length),
    }
}

fn is_listed(sweep: &SweepAnalysis, point: &SweepPoint) -> bool {
    let bytes = point.message_bytes;
    let ends = [sweep.points.first(), sweep.points.last()];
    let is_end = ends
        .into_iter()
        .flatten()
        .any(|end| end.message_bytes == bytes);
    let is_break = |step: &SweepStep| step.from_bytes == bytes || step.to_bytes == bytes;
    sweep.points.len() <= SIZES_LISTED
        || bytes.is_power_of_two()
        || is_end
        || sweep.steps.iter().any(is_break)
}

fn csv_fields(sweep: &SweepAnalysis, point: &SweepPoint) -> Vec<String> {
    let estimate = point.bits_per_sec;
    let times = point.round_trip;
    let number = |value: Option<u64>| or_missing(value, |v| v.to_string());
    vec![
        one_line(&sweep.name),
        one_line(&sweep.workload),
        point.message_bytes.to_string(),
        whole(estimate.map(|e| e.value)),
        whole(estimate.and_then(|e| e.low)),
        whole(estimate.and_then(|e| e.high)),
        or_missing(estimate, |e| e.samples.to_string()),
        point
            .message_ns
            .map_or(MISSING.into(), |ns| format!("{ns:.1}")),
        number(times.map(|t| t.count)),
        number(times.map(|t| t.min_ns)),
        number(times.map(|t| t.mean_ns)),
        number(times.map(|t| t.p50_ns)),
        number(times.and_then(|t| t.p99_ns)),
        number(times.map(|t| t.max_ns)),
        point.missing.to_string(),
    ]
}
