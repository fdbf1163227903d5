//! Line charts as inline SVG: throughput over time, and the ramp of senders with its knee.

use crate::words::{healthy_knee, rack_name, rate};
use ew_model::Analysis;
use ew_model::analysis::{RackPairAnalysis, StageAnalysis, TimePoint};
use ew_model::units::{format_bits_per_sec, format_duration_ns};
use std::fmt::Write;

pub(super) const WIDTH: f64 = 400.0;
pub(super) const HEIGHT: f64 = 190.0;
pub(super) const LEFT: f64 = 66.0;
pub(super) const RIGHT: f64 = 12.0;
pub(super) const TOP: f64 = 14.0;
pub(super) const BOTTOM: f64 = 34.0;
/// More points than this are not visible; neighbours are then joined, keeping min and max.
const POINTS_SHOWN: usize = 480;

/// Throughput over time of a stage. `None` with fewer than two points.
pub(super) fn timeline(stage: &StageAnalysis) -> Option<String> {
    let points: Vec<TimePoint> = stage
        .timeline
        .iter()
        .copied()
        .filter(|p| p.bits_per_sec.is_finite())
        .collect();
    let (first, last) = (points.first()?, points.last()?);
    if first.t_ns >= last.t_ns {
        return None;
    }
    let top = points.iter().map(|p| p.bits_per_sec).fold(0.0, f64::max);
    let axes = Axes::new(first.t_ns as f64 / 1e9, last.t_ns as f64 / 1e9, top);
    let summary = format!(
        "Sum of all flows over {}, at most {}.",
        format_duration_ns(last.t_ns - first.t_ns),
        format_bits_per_sec(top)
    );
    let mut svg = open(&summary);
    axes.draw(&mut svg, "seconds");
    for run in runs(&points) {
        let run = thinned(run);
        let line: Vec<(f64, f64)> = run
            .iter()
            .map(|p| (axes.x(p.t_ns as f64 / 1e9), axes.y(p.bits_per_sec)))
            .collect();
        draw_area(&mut svg, &line, axes.y(0.0));
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// Aggregate rate over the number of senders of a rack pair. `None` without a ramp.
pub(super) fn ramp(analysis: &Analysis, pair: &RackPairAnalysis) -> Option<String> {
    let max = pair.ramp.iter().map(|p| p.0).max()?;
    let per_host = pair.inside_bits_per_sec.map(|e| e.value);
    let measured = pair.ramp.iter().map(|p| p.1).fold(0.0, f64::max);
    let top = per_host.map_or(measured, |rate| measured.max(rate * f64::from(max)));
    let axes = Axes::new(0.0, f64::from(max), top);
    let mut svg = open(&ramp_summary(analysis, pair));
    axes.draw(&mut svg, "senders");
    if let Some(rate) = per_host {
        let end = (axes.x(f64::from(max)), axes.y(rate * f64::from(max)));
        line(&mut svg, "ideal", (axes.x(0.0), axes.y(0.0)), end);
    }
    if let Some(uplink) = pair.uplink_bits_per_sec {
        let y = axes.y(uplink);
        line(&mut svg, "uplink", (axes.x(0.0), y), (WIDTH - RIGHT, y));
        text(
            &mut svg,
            (WIDTH - RIGHT, y - 8.0),
            "end",
            &format!("uplink {}", format_bits_per_sec(uplink)),
        );
    }
    if let Some(senders) = pair.knee_senders {
        let x = axes.x(senders);
        line(&mut svg, "knee", (x, TOP), (x, HEIGHT - BOTTOM));
        text(
            &mut svg,
            (x + 5.0, HEIGHT - BOTTOM - 6.0),
            "start",
            &format!("full with {}", healthy_knee(senders)),
        );
    }
    let points: Vec<(f64, f64)> = pair
        .ramp
        .iter()
        .map(|(n, rate)| (axes.x(f64::from(*n)), axes.y(*rate)))
        .collect();
    draw_area(&mut svg, &points, axes.y(0.0));
    for ((n, bits_per_sec), (x, y)) in pair.ramp.iter().zip(&points) {
        let _ = write!(
            svg,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{n} senders: {}</title></circle>",
            format_bits_per_sec(*bits_per_sec)
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// What the ramp shows, in words: the chart's text alternative and its caption.
pub(super) fn ramp_summary(analysis: &Analysis, pair: &RackPairAnalysis) -> String {
    let mut summary = format!(
        "{} to {}: {}",
        rack_name(analysis.inventory(), pair.from),
        rack_name(analysis.inventory(), pair.to),
        pair.ramp
            .iter()
            .map(|(n, bits_per_sec)| format!("{n} at {}", rate(Some(*bits_per_sec))))
            .collect::<Vec<_>>()
            .join(", ")
    );
    if let Some(senders) = pair.knee_senders {
        let _ = write!(summary, "; full with {}", healthy_knee(senders));
    }
    summary
}

/// Escapes for text and attribute values, for what that does not pass through the template.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

struct Axes {
    x0: f64,
    x1: f64,
    top: f64,
    step: f64,
}

impl Axes {
    fn new(x0: f64, x1: f64, top: f64) -> Self {
        let step = nice_step(top, 4.0);
        Self {
            x0,
            x1,
            top: (top / step).ceil().max(1.0) * step,
            step,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let span = (self.x1 - self.x0).max(f64::MIN_POSITIVE);
        LEFT + (value - self.x0) / span * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String, x_name: &str) {
        for i in 0..=ticks(self.top, self.step) {
            let value = f64::from(i) * self.step;
            let y = self.y(value);
            line(svg, "grid", (LEFT, y), (WIDTH - RIGHT, y));
            let label = if i == 0 {
                "0".into()
            } else {
                short_rate(value)
            };
            text(svg, (LEFT - 7.0, y + 4.0), "end", &label);
        }
        let step =
            nice_step(self.x1 - self.x0, 6.0).max(if x_name == "senders" { 1.0 } else { 0.0 });
        for i in 0..=ticks(self.x1 - self.x0, step) {
            let value = f64::from(i) * step;
            text(
                svg,
                (self.x(self.x0 + value), HEIGHT - 17.0),
                "middle",
                &trimmed(value),
            );
        }
        text(svg, (WIDTH - RIGHT, HEIGHT - 2.0), "end", x_name);
    }
}

pub(super) fn open(summary: &str) -> String {
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(summary)
    )
}

pub(super) fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let _ = write!(
        svg,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

pub(super) fn text(svg: &mut String, at: (f64, f64), anchor: &str, words: &str) {
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
        at.0,
        at.1,
        escaped(words)
    );
}

/// Straight lines from point to point, as the `d` of a path.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (i, (x, y)) in points.enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
    }
    path
}

pub(super) fn draw_area(svg: &mut String, points: &[(f64, f64)], bottom: f64) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let path = path(points.iter().copied());
    let _ = write!(
        svg,
        "<path class=\"area\" d=\"{path}L{:.1} {bottom:.1}L{:.1} {bottom:.1}Z\"/><path class=\"line\" d=\"{path}\"/>",
        last.0, first.0
    );
}

/// Cuts where the time between two points is more than 2.5 times the typical one: rounds do not
/// touch.
fn runs(points: &[TimePoint]) -> Vec<&[TimePoint]> {
    let mut steps: Vec<u64> = points
        .windows(2)
        .map(|w| w[1].t_ns.saturating_sub(w[0].t_ns))
        .collect();
    steps.sort_unstable();
    let typical = steps.get(steps.len() / 2).copied().unwrap_or(0);
    points
        .chunk_by(|a, b| b.t_ns.saturating_sub(a.t_ns) as f64 <= typical as f64 * 2.5)
        .collect()
}

/// At most [`POINTS_SHOWN`] points: of each bucket the minimum and the maximum, so that
/// no dip is hidden.
fn thinned(points: &[TimePoint]) -> Vec<TimePoint> {
    if points.len() <= POINTS_SHOWN {
        return points.to_vec();
    }
    let bucket = points.len().div_ceil(POINTS_SHOWN / 2);
    points
        .chunks(bucket)
        .flat_map(|chunk| {
            let by_rate =
                |a: &&TimePoint, b: &&TimePoint| a.bits_per_sec.total_cmp(&b.bits_per_sec);
            let mut pair: Vec<TimePoint> = chunk
                .iter()
                .min_by(by_rate)
                .into_iter()
                .chain(chunk.iter().max_by(by_rate))
                .copied()
                .collect();
            pair.sort_by_key(|p| p.t_ns);
            pair
        })
        .collect()
}

/// 1, 2 or 5 times a power of ten, so that about `count` steps cover the span.
pub(super) fn nice_step(span: f64, count: f64) -> f64 {
    if !(span.is_finite() && span > 0.0) {
        return 1.0;
    }
    let raw = span / count;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

fn ticks(span: f64, step: f64) -> u32 {
    (span / step + 1e-9).floor().clamp(0.0, 20.0) as u32
}

pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An axis label without digits that show nothing: `200 Mb/s`, `1.5 Gb/s`.
pub(super) fn short_rate(bits_per_sec: f64) -> String {
    let text = format_bits_per_sec(bits_per_sec);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(nice_step(191e6, 4.0), 50e6);
        assert_eq!(nice_step(7.0, 6.0), 2.0);
        assert_eq!(nice_step(0.0, 4.0), 1.0);
        assert_eq!(nice_step(f64::NAN, 4.0), 1.0);
    }

    #[test]
    fn rounds_are_drawn_apart_and_dips_survive() {
        let at = |t: u64, rate: f64| TimePoint {
            t_ns: t * 100_000_000,
            bits_per_sec: rate,
        };
        let points: Vec<_> = (0..10).chain(30..40).map(|t| at(t, 1e9)).collect();
        assert_eq!(runs(&points).len(), 2);
        let mut long: Vec<_> = (0..10_000).map(|t| at(t, 1e9)).collect();
        long[777].bits_per_sec = 1.0;
        let thin = thinned(&long);
        assert!(thin.len() <= POINTS_SHOWN + 2);
        assert!(thin.iter().any(|p| p.bits_per_sec == 1.0));
        assert!(thin.is_sorted_by_key(|p| p.t_ns));
    }
}
