//! A sweep's curves as inline SVG: the rate on a linear scale over the logarithm of the size, where
//! saturation shows, and the time of a message with both logarithmic, where its min cost and its
//! breaks show.

use super::chart::{
    BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, line, nice_step, open, path, short_rate, text,
};
use super::spectrum::round_time;
use crate::words::plural;
use ew_model::sweep::SweepAnalysis;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns, format_whole_bytes};
use std::fmt::Write;

/// Labels that the axis of sizes has space for.
const SIZE_LABELS: u32 = 7;

/// The rate over the size, with n1/2 and the discontinuities. `None` with fewer than
/// two sizes.
pub(super) fn rates(sweep: &SweepAnalysis) -> Option<String> {
    let points: Vec<(u64, f64)> = sweep
        .points
        .iter()
        .filter_map(|p| Some((p.message_bytes, p.bits_per_sec?.value)))
        .filter(|(_, rate)| rate.is_finite())
        .collect();
    let sizes = Sizes::new(&points)?;
    let max = points.iter().map(|p| p.1).fold(0.0, f64::max);
    let step = nice_step(max, 4.0);
    let top = (max / step).ceil().max(1.0) * step;
    let y = |rate: f64| HEIGHT - BOTTOM - rate / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = open(&rates_summary(sweep, max));
    for tick in 0..=((top / step).round() as u32) {
        let rate = f64::from(tick) * step;
        let label = if tick == 0 {
            "0".into()
        } else {
            short_rate(rate)
        };
        grid(&mut svg, y(rate), &label);
    }
    sizes.draw(&mut svg);
    if let Some(half) = &sweep.half_performance {
        let (x, at) = (sizes.x(half.bytes), y(half.endless_bits_per_sec / 2.0));
        line(&mut svg, "ideal", (LEFT, at), (x, at));
        line(&mut svg, "ideal", (x, at), (x, HEIGHT - BOTTOM));
        let label = format!("n1/2 {}", format_bytes(half.bytes as u64));
        text(&mut svg, (x + 5.0, HEIGHT - BOTTOM - 6.0), "start", &label);
    }
    breaks(&mut svg, sweep, &sizes);
    curve(&mut svg, &sizes, &points, y, format_bits_per_sec);
    svg.push_str("</svg>");
    Some(svg)
}

/// The time of a message over its size, with the breaks. `None` with fewer than two sizes.
pub(super) fn times(sweep: &SweepAnalysis) -> Option<String> {
    let points: Vec<(u64, f64)> = sweep
        .points
        .iter()
        .filter_map(|p| Some((p.message_bytes, p.message_ns?)))
        .filter(|(_, ns)| ns.is_finite() && *ns > 0.0)
        .collect();
    let sizes = Sizes::new(&points)?;
    let low = points
        .iter()
        .map(|p| p.1)
        .fold(f64::INFINITY, f64::min)
        .log10()
        .floor();
    let high = points
        .iter()
        .map(|p| p.1)
        .fold(1.0, f64::max)
        .log10()
        .ceil()
        .max(low + 1.0);
    let y = |ns: f64| HEIGHT - BOTTOM - (ns.log10() - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let mut svg = open(&times_summary(sweep, &points));
    for decade in (low as i32)..=(high as i32) {
        let ns = 10_f64.powi(decade);
        grid(&mut svg, y(ns), &round_time(ns.max(1.0) as u64));
    }
    sizes.draw(&mut svg);
    breaks(&mut svg, sweep, &sizes);
    let reported = |ns: f64| format_duration_ns(ns as u64);
    curve(&mut svg, &sizes, &points, y, reported);
    svg.push_str("</svg>");
    Some(svg)
}

fn rates_summary(sweep: &SweepAnalysis, max: f64) -> String {
    let mut summary = format!(
        "Rate over message size, {} sizes, at most {}",
        sweep.points.len(),
        format_bits_per_sec(max)
    );
    if let Some(half) = &sweep.half_performance {
        let size = format_bytes(half.bytes as u64);
        let _ = write!(summary, "; half of the asymptotic bandwidth at {size}");
    }
    if let Some(saturation) = &sweep.saturation {
        let size = format_whole_bytes(saturation.message_bytes);
        let _ = write!(summary, "; saturated from {size}");
    }
    summary
}

fn times_summary(sweep: &SweepAnalysis, points: &[(u64, f64)]) -> String {
    let reported = |(bytes, ns): &(u64, f64)| {
        format!(
            "{} at {}",
            format_duration_ns(*ns as u64),
            format_whole_bytes(*bytes)
        )
    };
    let ends: Vec<String> = [points.first(), points.last()]
        .into_iter()
        .flatten()
        .map(reported)
        .collect();
    format!(
        "Time of a message over its size: {}; {}",
        ends.join(", "),
        plural(sweep.steps.len(), "break")
    )
}

/// The axis of sizes, logarithmic.
struct Sizes {
    low: f64,
    high: f64,
}

impl Sizes {
    fn new(points: &[(u64, f64)]) -> Option<Self> {
        let (first, last) = (points.first()?.0, points.last()?.0);
        (first < last).then(|| Self {
            low: (first.max(1) as f64).log2(),
            high: (last as f64).log2(),
        })
    }

    fn x(&self, bytes: f64) -> f64 {
        let fraction = (bytes.max(1.0).log2() - self.low) / (self.high - self.low);
        LEFT + fraction.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, svg: &mut String) {
        let (first, last) = (self.low.ceil() as u32, self.high.floor() as u32);
        let step = (last.saturating_sub(first) / SIZE_LABELS + 1) as usize;
        for exponent in (first..=last).step_by(step) {
            let bytes = 1_u64 << exponent;
            let x = self.x(bytes as f64);
            line(svg, "grid", (x, TOP), (x, HEIGHT - BOTTOM));
            let label = format_whole_bytes(bytes).replace("iB", "");
            text(svg, (x, HEIGHT - 17.0), "middle", &label);
        }
        text(svg, (WIDTH - RIGHT, HEIGHT - 2.0), "end", "message size");
    }
}

fn grid(svg: &mut String, y: f64, label: &str) {
    line(svg, "grid", (LEFT, y), (WIDTH - RIGHT, y));
    text(svg, (LEFT - 7.0, y + 4.0), "end", label);
}

fn breaks(svg: &mut String, sweep: &SweepAnalysis, sizes: &Sizes) {
    for step in &sweep.steps {
        let x = sizes.x(((step.from_bytes * step.to_bytes) as f64).sqrt());
        line(svg, "knee", (x, TOP), (x, HEIGHT - BOTTOM));
    }
}

fn curve(
    svg: &mut String,
    sizes: &Sizes,
    points: &[(u64, f64)],
    y: impl Fn(f64) -> f64,
    reported: impl Fn(f64) -> String,
) {
    let at = |(bytes, value): &(u64, f64)| (sizes.x(*bytes as f64), y(*value));
    let path = path(points.iter().map(at));
    let _ = write!(svg, "<path class=\"line\" d=\"{path}\"/>");
    for point in points {
        let (x, y) = at(point);
        let (size, reported) = (format_whole_bytes(point.0), reported(point.1));
        let _ = write!(
            svg,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2\"><title>{size}: {reported}</title></circle>"
        );
    }
}
