//! The run over time: what all hosts' interfaces sent, by their own counters, and its stages.

use super::chart::{escaped, line, nice_step, short_rate, text, trimmed};
use crate::figures::stage_name;
use crate::words::plural;
use ew_model::Analysis;
use ew_model::analysis::HostPoint;
use ew_model::units::format_bits_per_sec;
use serde::Serialize;
use std::fmt::Write;

const HEIGHT: f64 = 150.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 22.0;
/// Points of the line; more are not visible.
const POINTS: usize = 300;
/// A stage narrower than this, in pixels, has no number above it.
const NUMBERED: f64 = 10.0;

/// The line for two widths of the page, and the names of the stages by their numbers.
#[derive(Serialize)]
pub(super) struct RunLine {
    wide: String,
    narrow: String,
    stages: Vec<String>,
}

/// Stages that ran interleaved.
struct Band {
    from: f64,
    to: f64,
    stages: Vec<usize>,
}

/// `None` where no host's counters were read, or no stage has a time.
pub(super) fn view(analysis: &Analysis) -> Option<RunLine> {
    let points = sums(analysis);
    let bands = bands(analysis);
    if points.len() < 2 || bands.is_empty() {
        return None;
    }
    Some(RunLine {
        wide: draw(&points, &bands, 1004.0, "wide"),
        narrow: draw(&points, &bands, 330.0, "narrow"),
        stages: analysis.stages.iter().map(stage_name).collect(),
    })
}

fn bands(analysis: &Analysis) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for (index, stage) in analysis.stages.iter().enumerate() {
        let Some((from, to)) = stage.span_ns else {
            continue;
        };
        let (from, to) = (from as f64 / 1e9, to as f64 / 1e9);
        let shared = bands.iter_mut().find(|band| {
            let both = band.to.min(to) - band.from.max(from);
            both > 0.5 * (band.to - band.from).min(to - from)
        });
        match shared {
            Some(band) => {
                band.from = band.from.min(from);
                band.to = band.to.max(to);
                band.stages.push(index);
            }
            None => bands.push(Band {
                from,
                to,
                stages: vec![index],
            }),
        }
    }
    bands
}

/// Seconds, and the sum over hosts of what their interfaces sent, bits per second; `None` at times
/// that no reading covers.
fn sums(analysis: &Analysis) -> Vec<(f64, Option<f64>)> {
    let series = || analysis.hosts.iter().map(|host| host.series.as_slice());
    let ends = || series().filter_map(|points| Some(points.last()?.t_ns as f64 / 1e9));
    let end = ends().fold(0.0, f64::max);
    if end <= 0.0 {
        return Vec::new();
    }
    let steps: Vec<f64> = series().map(typical_step).collect();
    let at = |point: usize| end * (point as f64 + 0.5) / POINTS as f64;
    let sum = |seconds: f64| {
        let of_hosts = series().zip(&steps);
        let values = of_hosts.filter_map(|(points, step)| value_at(points, *step, seconds));
        values.fold(None, |sum: Option<f64>, value| {
            Some(sum.unwrap_or(0.0) + value)
        })
    };
    (0..POINTS)
        .map(|point| (at(point), sum(at(point))))
        .collect()
}

fn typical_step(points: &[HostPoint]) -> f64 {
    let mut steps: Vec<u64> = points
        .windows(2)
        .map(|pair| pair[1].t_ns.saturating_sub(pair[0].t_ns))
        .collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied().unwrap_or(1_000_000_000) as f64 / 1e9
}

/// Of the reading that covers a time: it is valid since the one before it.
fn value_at(points: &[HostPoint], step: f64, seconds: f64) -> Option<f64> {
    let next = points.partition_point(|point| (point.t_ns as f64) < seconds * 1e9);
    let point = points.get(next)?;
    let covers = point.t_ns as f64 / 1e9 - seconds <= 2.5 * step;
    point
        .tx_bits_per_sec
        .filter(|rate| covers && rate.is_finite())
}

fn draw(points: &[(f64, Option<f64>)], bands: &[Band], width: f64, class: &str) -> String {
    let end = bands.iter().map(|band| band.to).fold(0.0, f64::max);
    let end = points.last().map_or(end, |(at, _)| at.max(end));
    let max = points
        .iter()
        .filter_map(|(_, rate)| *rate)
        .fold(0.0, f64::max);
    let step = nice_step(max, 3.0);
    let top = (max / step).ceil().max(1.0) * step;
    let x = |seconds: f64| LEFT + seconds / end * (width - LEFT - RIGHT);
    let y = |rate: f64| HEIGHT - BOTTOM - rate / top * (HEIGHT - TOP - BOTTOM);
    let stages = bands.iter().map(|band| band.stages.len()).sum();
    let summary = format!(
        "The run over time: all hosts together send at most {} in {end:.0} s and {}.",
        format_bits_per_sec(max),
        plural(stages, "stage")
    );
    let mut svg = format!(
        "<svg class=\"chart run-line {class}\" viewBox=\"0 0 {width:.0} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(&summary)
    );
    for (at, band) in bands.iter().enumerate() {
        draw_band(&mut svg, band, at, (x(band.from), x(band.to)));
    }
    let mut value = 0.0;
    while value <= top * 1.001 {
        line(
            &mut svg,
            "grid",
            (LEFT, y(value)),
            (width - RIGHT, y(value)),
        );
        let label = if value > 0.0 {
            short_rate(value)
        } else {
            "0".into()
        };
        text(&mut svg, (LEFT - 7.0, y(value) + 4.0), "end", &label);
        value += step;
    }
    let every = nice_step(end, (width / 110.0).floor().max(2.0));
    let mut seconds = 0.0;
    while seconds <= end {
        let anchor = if x(seconds) > width - 30.0 {
            "end"
        } else {
            "middle"
        };
        text(
            &mut svg,
            (x(seconds), HEIGHT - 5.0),
            anchor,
            &format!("{} s", trimmed(seconds)),
        );
        seconds += every;
    }
    for run in points.split(|(_, rate)| rate.is_none()) {
        let run: Vec<(f64, f64)> = run
            .iter()
            .filter_map(|(at, rate)| Some((x(*at), y((*rate)?))))
            .collect();
        super::chart::draw_area(&mut svg, &run, y(0.0));
    }
    svg.push_str("</svg>");
    svg
}

fn draw_band(svg: &mut String, band: &Band, at: usize, (from, to): (f64, f64)) {
    let class = if at.is_multiple_of(2) {
        "band"
    } else {
        "band odd"
    };
    let _ = write!(
        svg,
        "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        (to - from).max(1.0),
        HEIGHT - TOP - BOTTOM
    );
    let (first, last) = (band.stages.first(), band.stages.last());
    let (Some(first), Some(last)) = (first, last) else {
        return;
    };
    let number = match first == last {
        true => format!("{}", first + 1),
        false => format!("{}\u{2013}{}", first + 1, last + 1),
    };
    if to - from >= NUMBERED * number.chars().count() as f64 * 0.7 {
        text(svg, ((from + to) / 2.0, TOP - 6.0), "middle", &number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_has_an_axis_and_one_stage() {
        let band = Band {
            from: 0.0,
            to: 2.0,
            stages: vec![0],
        };
        let svg = draw(
            &[(0.0, Some(1e9)), (2.0, Some(1e9))],
            &[band],
            1004.0,
            "wide",
        );
        for label in ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"] {
            assert_eq!(
                svg.matches(&format!(">{label}<")).count(),
                1,
                "{label}: {svg}"
            );
        }
        assert!(svg.contains("in 2 s and 1 stage."), "{svg}");
    }
}
