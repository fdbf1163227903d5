//! The percentile spectrum of a stage's transactions as inline SVG: percentiles spaced by the
//! logarithm of what lies above them, so that 99%, 99.9% and 99.99% have as much space as 90%;
//! times on a logarithmic scale.

use super::chart::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, escaped, line, open, path, text};
use ew_model::analysis::{LatencyFigures, SpectrumPoint, StageAnalysis};
use ew_model::units::format_duration_ns;
use std::fmt::Write;

/// Labels that the axis of times has space for.
const LABELS: usize = 6;

/// `None` for stages without transactions, and with too few for a curve.
pub(super) fn spectrum(stage: &StageAnalysis) -> Option<String> {
    let latency = stage.latency.as_ref()?;
    let scale = Scale::new(&[&latency.spectrum, &latency.uncorrected_spectrum])?;
    let mut svg = open(&summary(&latency.times));
    scale.draw(&mut svg);
    if !latency.uncorrected_spectrum.is_empty() {
        curve(&mut svg, "other", &scale, &latency.uncorrected_spectrum);
    }
    curve(&mut svg, "line", &scale, &latency.spectrum);
    for (share, name, time_ns) in reported(&latency.times) {
        let (x, y) = (scale.x(1.0 - share), scale.y(time_ns));
        let _ = write!(
            svg,
            "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{name}: {}</title></circle>",
            format_duration_ns(time_ns)
        );
    }
    svg.push_str("</svg>");
    Some(svg)
}

/// What the chart shows, in words: its text alternative.
fn summary(times: &LatencyFigures) -> String {
    let reported: Vec<String> = reported(times)
        .map(|(_, name, time_ns)| format!("{name} {}", format_duration_ns(time_ns)))
        .collect();
    format!(
        "Times of {} transactions by percentile: {}, max {}.",
        times.count,
        reported.join(", "),
        format_duration_ns(times.max_ns)
    )
}

/// The percentiles that are known.
fn reported(times: &LatencyFigures) -> impl Iterator<Item = (f64, &'static str, u64)> {
    [
        (0.5, "p50", Some(times.p50_ns)),
        (0.9, "p90", times.p90_ns),
        (0.99, "p99", times.p99_ns),
        (0.999, "p99.9", times.p999_ns),
        (0.9999, "p99.99", times.p9999_ns),
    ]
    .into_iter()
    .filter_map(|(share, name, time_ns)| Some((share, name, time_ns?)))
}

/// Both axes in decades.
struct Scale {
    /// Of the share above.
    decades: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn new(curves: &[&Vec<SpectrumPoint>]) -> Option<Self> {
        let points = || curves.iter().flat_map(|curve| curve.iter());
        let min = points().map(|p| p.time_ns.max(1)).min()? as f64;
        let max = points().map(|p| p.time_ns.max(1)).max()? as f64;
        let rarest = points().map(|p| p.share_above).fold(1.0, f64::min);
        (rarest > 0.0 && rarest < 0.1).then(|| Self {
            decades: -rarest.log10(),
            low: (min * 0.9).log10(),
            // At least a factor of two, so that a steady time is not drawn as a mountain.
            high: (max * 1.1).max(min * 2.0).log10(),
        })
    }

    fn x(&self, share_above: f64) -> f64 {
        let fraction = -share_above.max(f64::MIN_POSITIVE).log10() / self.decades;
        LEFT + fraction.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, time_ns: u64) -> f64 {
        let fraction = ((time_ns.max(1) as f64).log10() - self.low) / (self.high - self.low);
        HEIGHT - BOTTOM - fraction * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String) {
        for time_ns in self.ticks() {
            let y = self.y(time_ns);
            line(svg, "grid", (LEFT, y), (WIDTH - RIGHT, y));
            text(svg, (LEFT - 7.0, y + 4.0), "end", &round_time(time_ns));
        }
        let nines = self.decades.floor() as i32;
        // Five labels fit next to each other.
        let step = usize::try_from(nines / 5 + 1).unwrap_or(1);
        for nines in (0..=nines).step_by(step) {
            let share_above = 10_f64.powi(-nines);
            let decimals = usize::try_from(nines - 2).unwrap_or(0);
            let label = format!("{:.decimals$}%", 100.0 * (1.0 - share_above));
            let x = self.x(share_above);
            line(svg, "grid", (x, TOP), (x, HEIGHT - BOTTOM));
            let anchor = if nines == 0 { "start" } else { "middle" };
            text(svg, (x, HEIGHT - 17.0), anchor, &label);
        }
        text(svg, (WIDTH - RIGHT, HEIGHT - 2.0), "end", "of transactions");
    }

    /// 1, 2 and 5 times powers of ten; fewer where those are too many.
    fn ticks(&self) -> Vec<u64> {
        let of = |factors: &[u64]| -> Vec<u64> {
            (0..19_u32)
                .flat_map(|power| factors.iter().map(move |factor| factor * 10_u64.pow(power)))
                .filter(|time| (self.low..=self.high).contains(&(*time as f64).log10()))
                .collect()
        };
        let fitting = [of(&[1, 2, 5]), of(&[1, 3])]
            .into_iter()
            .find(|ticks| ticks.len() <= LABELS);
        fitting.unwrap_or_else(|| of(&[1]))
    }
}

fn curve(svg: &mut String, class: &str, scale: &Scale, points: &[SpectrumPoint]) {
    let points = points.iter();
    let path = path(points.map(|point| (scale.x(point.share_above), scale.y(point.time_ns))));
    let _ = write!(svg, "<path class=\"{}\" d=\"{path}\"/>", escaped(class));
}

/// `20 µs`: a tick has no digits that show nothing.
pub(super) fn round_time(time_ns: u64) -> String {
    match time_ns {
        0..1_000 => format!("{time_ns} ns"),
        1_000..1_000_000 => format!("{} µs", time_ns / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", time_ns / 1_000_000),
        _ => format!("{} s", time_ns / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_have_equal_width() {
        let at = |share_above, time_ns| SpectrumPoint {
            share_above,
            time_ns,
        };
        let curve = vec![at(1.0, 40_000), at(1e-2, 60_000), at(1e-4, 900_000)];
        let scale = Scale::new(&[&curve]).unwrap();
        let gap = |a: f64, b: f64| scale.x(b) - scale.x(a);
        assert!((gap(0.1, 0.01) - gap(0.001, 0.0001)).abs() < 1e-6);
        assert_eq!(scale.ticks(), [50_000, 100_000, 200_000, 500_000]);
        assert!(scale.y(900_000) < scale.y(40_000));
        assert!(Scale::new(&[&vec![at(1.0, 5)]]).is_none());
    }
}
