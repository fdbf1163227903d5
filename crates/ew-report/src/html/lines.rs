//! Line charts of any quantity as inline SVG: several series on one scale.

use super::chart::{escaped, line, nice_step, path, text};
use std::fmt::Write;

const LEFT: f64 = 62.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 32.0;
/// Ticks of an axis at most.
const MAX_TICKS: u32 = 20;
/// Series have styles of their own up to this many.
pub(super) const STYLES: usize = 8;

/// A chart.
pub(super) struct Plot<'a> {
    /// Width and height, in the SVG's own units.
    pub(super) size: (f64, f64),
    /// In words, for who does not see it.
    pub(super) summary: &'a str,
    /// What the x axis counts.
    pub(super) x_name: &'a str,
    /// Its ends.
    pub(super) x: (f64, f64),
    /// Whether only whole numbers are on it.
    pub(super) x_whole: bool,
    /// The largest value of the y axis, which begins at 0.
    pub(super) top: f64,
    /// A value of the y axis in words.
    pub(super) format: fn(f64) -> String,
    pub(super) series: Vec<Series>,
    /// A mark across the chart.
    pub(super) mark_x: Option<f64>,
}

/// One line.
pub(super) struct Series {
    /// Of its style: `line-0` to `line-7`, or another word of the style sheet.
    pub(super) class: String,
    /// In order of x.
    pub(super) points: Vec<(f64, f64)>,
    /// Whether each point has a dot with its value.
    pub(super) dots: bool,
}

impl Plot<'_> {
    pub(super) fn svg(&self) -> String {
        let (width, height) = self.size;
        let mut svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
            escaped(self.summary)
        );
        let step = nice_step(self.top, 3.0);
        let top = (self.top / step - 1e-9).ceil().max(1.0) * step;
        self.draw_axes(&mut svg, top, step);
        if let Some(mark) = self.mark_x {
            let x = self.x_of(mark);
            line(&mut svg, "knee", (x, TOP), (x, height - BOTTOM));
        }
        for series in &self.series {
            self.draw(&mut svg, series, top);
        }
        svg.push_str("</svg>");
        svg
    }

    fn draw_axes(&self, svg: &mut String, top: f64, step: f64) {
        let (width, height) = self.size;
        for tick in 0..=count(top, step) {
            let value = f64::from(tick) * step;
            let y = self.y_of(value, top);
            line(svg, "grid", (LEFT, y), (width - RIGHT, y));
            let label = match tick {
                0 => "0".to_owned(),
                _ => (self.format)(value),
            };
            text(svg, (LEFT - 6.0, y + 4.0), "end", &label);
        }
        let span = self.x.1 - self.x.0;
        let step = nice_step(span, 5.0).max(if self.x_whole { 1.0 } else { 0.0 });
        let first = (self.x.0 / step).ceil() * step;
        for tick in 0..=count(self.x.1 - first, step) {
            let value = first + f64::from(tick) * step;
            text(
                svg,
                (self.x_of(value), height - 16.0),
                "middle",
                &short(value),
            );
        }
        text(svg, (width - RIGHT, height - 3.0), "end", self.x_name);
    }

    fn draw(&self, svg: &mut String, series: &Series, top: f64) {
        let points = series.points.iter();
        let path = path(points.map(|(x, y)| (self.x_of(*x), self.y_of(*y, top))));
        let class = &series.class;
        if series.points.len() > 1 {
            let _ = write!(svg, "<path class=\"line {class}\" d=\"{path}\"/>");
        }
        // A single point has no line.
        let has_dots = series.dots || series.points.len() == 1;
        for (x, y) in series.points.iter().filter(|_| has_dots) {
            let words = format!("{} {}: {}", short(*x), self.x_name, (self.format)(*y));
            let _ = write!(
                svg,
                "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.2\"><title>{}</title></circle>",
                self.x_of(*x),
                self.y_of(*y, top),
                escaped(&words)
            );
        }
    }

    fn x_of(&self, value: f64) -> f64 {
        let span = (self.x.1 - self.x.0).max(f64::MIN_POSITIVE);
        let share = ((value - self.x.0) / span).clamp(0.0, 1.0);
        LEFT + share * (self.size.0 - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64, top: f64) -> f64 {
        let share = (value / top).clamp(0.0, 1.0);
        self.size.1 - BOTTOM - share * (self.size.1 - TOP - BOTTOM)
    }
}

/// Steps that fit a span.
fn count(span: f64, step: f64) -> u32 {
    (span / step + 1e-9)
        .floor()
        .clamp(0.0, f64::from(MAX_TICKS)) as u32
}

/// Without digits that show nothing.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> String {
        Plot {
            size: (300.0, 150.0),
            summary: "a <b>",
            x_name: "nodes",
            x: (1.0, 4.0),
            x_whole: true,
            top: 100.0,
            format: short,
            series: vec![Series {
                class: "line-0".into(),
                points,
                dots: true,
            }],
            mark_x: Some(2.0),
        }
        .svg()
    }

    #[test]
    fn points_stay_inside_and_words_are_escaped() {
        let svg = plot(vec![(1.0, 50.0), (4.0, 1e9)]);
        assert!(svg.contains("a &lt;b&gt;") && svg.ends_with("</svg>"));
        assert!(svg.contains("M62.0 64.0L290.0 10.0"), "{svg}");
        assert!(svg.contains("4 nodes: 1000000000"), "{svg}");
        assert_eq!(svg.matches(">1</text>").count(), 1, "whole numbers: {svg}");
    }

    #[test]
    fn one_point_is_a_dot_and_none_is_an_empty_chart() {
        let one = plot(vec![(2.0, 1.0)]);
        assert!(!one.contains("<path") && one.contains("<circle"));
        assert!(!plot(Vec::new()).contains("NaN"));
    }
}
