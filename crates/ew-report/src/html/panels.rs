//! The hosts' panels as compact data for the page's script: counters over time, and a row of figures for each stage.
//!
//! A point takes seven bytes and its time: each figure is one byte on a linear scale from 0 to the host's greatest value (254;
//! 255 is "none"), which is finer than a chart can show, and times are distances in LEB128. The rows of figures are words, made
//! where the text report makes them.

use super::accused::{Accused, Mark};
use super::pack::{base64, leb128, script_json};
use crate::figures::stage_name;
use crate::host_figures::{is_shared, stage_table};
use crate::words::{host_name, one_line, or_missing, rack_of, rate};
use ew_model::Analysis;
use ew_model::analysis::{HostAnalysis, HostPoint};
use serde::Serialize;
use std::collections::BTreeMap;

/// Points of all hosts together; above it neighbours are joined.
const POINTS: usize = 250_000;
/// Points of one host: more are not visible.
const POINTS_OF_HOST: usize = 600;
/// Times are told in these.
const TICK_NS: u64 = 10_000_000;
/// The byte for the greatest value of a scale.
const FULL: f64 = 254.0;
/// The byte for "none".
const NONE: u8 = 255;

/// The document; `None` when no host has anything to show.
pub(super) fn data(
    analysis: &Analysis,
    accused: &Accused<'_>,
) -> Result<Option<String>, serde_json::Error> {
    let hosts = analysis.hosts.iter().filter(|host| has_panel(host));
    let most = (POINTS / analysis.hosts.len().max(1)).clamp(1, POINTS_OF_HOST);
    let hosts: BTreeMap<u32, Panel> = hosts
        .map(|host| {
            (
                host.host.0,
                panel(analysis, host, accused.host(host.host), most),
            )
        })
        .collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let span = |ns: u64| ns as f64 / 1e9;
    let stages = analysis.stages.iter().map(|stage| Stage {
        name: stage_name(stage),
        span: stage.span_ns.map(|(from, to)| [span(from), span(to)]),
    });
    let document = Document {
        stages: stages.collect(),
        hosts,
        shared: is_shared(analysis),
    };
    script_json(&document).map(Some)
}

/// Whether a host has a panel: one that never came up has nothing to show.
pub(super) fn has_panel(host: &HostAnalysis) -> bool {
    !host.series.is_empty() || !host.stages.is_empty()
}

#[derive(Serialize)]
struct Document {
    stages: Vec<Stage>,
    hosts: BTreeMap<u32, Panel>,
    /// All hosts share one machine's CPUs and disks.
    shared: bool,
}

#[derive(Serialize)]
struct Stage {
    name: String,
    /// Begin and end in seconds.
    span: Option<[f64; 2]>,
}

#[derive(Serialize)]
struct Panel {
    name: String,
    about: String,
    /// Findings that accuse it.
    marks: Vec<Mark>,
    /// Bits a second of the link, for the line above the rates.
    link: Option<f64>,
    count: usize,
    /// How many readings a point stands for, at most.
    joined: usize,
    times: String,
    cpu: Plane,
    softirq: Plane,
    steal: Plane,
    tx: Plane,
    rx: Plane,
    disk: Plane,
    retransmits: Plane,
    header: Vec<&'static str>,
    /// Index of the stage, then its cells.
    rows: Vec<(u32, Vec<String>)>,
}

#[derive(Serialize)]
struct Plane {
    /// The greatest value; 0 when there is none.
    top: f64,
    data: String,
}

fn panel(analysis: &Analysis, host: &HostAnalysis, marks: Vec<Mark>, most: usize) -> Panel {
    let joined = host.series.len().div_ceil(most).max(1);
    let points: Vec<HostPoint> = host.series.chunks(joined).map(join).collect();
    let plane = |of: fn(&HostPoint) -> Option<f64>| plane(&points, of);
    let (header, rows) = stage_table(analysis, host);
    let stages = host.stages.iter().map(|stage| stage.stage);
    let links = host.stages.iter().filter_map(|s| s.link_bits_per_sec);
    Panel {
        name: host_name(analysis.inventory(), host.host),
        about: about(analysis, host),
        marks,
        link: links.reduce(f64::max).filter(|link| link.is_finite()),
        count: points.len(),
        joined,
        times: base64(&times(&points)),
        cpu: plane(|p| p.busiest_cpu),
        softirq: plane(|p| p.softirq_share),
        steal: plane(|p| p.steal_share),
        tx: plane(|p| p.tx_bits_per_sec),
        rx: plane(|p| p.rx_bits_per_sec),
        disk: plane(|p| p.disk_busy_share),
        retransmits: plane(|p| p.retransmits_per_sec),
        header,
        rows: stages.zip(rows).collect(),
    }
}

/// `rack r2, eth0, 10.0 Gb/s, MTU 1500, veth, Linux 6.12.0`.
fn about(analysis: &Analysis, host: &HostAnalysis) -> String {
    let mut parts = Vec::new();
    if !analysis.inventory().racks.is_empty() {
        parts.push(match rack_of(analysis.inventory(), host.host) {
            name if name.contains("rack") => name,
            name => format!("rack {name}"),
        });
    }
    parts.extend(host.interface.as_ref().map(|_| link_words(host)));
    let kernel = host.kernel.as_deref().map(one_line);
    parts.extend(kernel.map(|kernel| format!("Linux {kernel}")));
    parts.join(", ")
}

/// The interface that carries the data: `eth0, 10.0 Gb/s, MTU 1500, veth`, or "-".
pub(super) fn link_words(host: &HostAnalysis) -> String {
    or_missing(host.interface.as_ref(), |interface| {
        let mut parts = vec![one_line(&interface.name)];
        let speed = interface.speed_bits_per_sec;
        parts.extend(speed.map(|speed| rate(Some(speed))));
        parts.extend(interface.mtu_bytes.map(|mtu| format!("MTU {mtu}")));
        parts.extend(interface.driver.as_deref().map(one_line));
        parts.join(", ")
    })
}

/// Neighbours as one point: rates in the mean, shares at their greatest, so that no full CPU or disk is hidden.
fn join(points: &[HostPoint]) -> HostPoint {
    let values = |of: fn(&HostPoint) -> Option<f64>| {
        let values: Vec<f64> = points.iter().filter_map(of).collect();
        (!values.is_empty()).then_some(values)
    };
    let mean = |of| values(of).map(|values| values.iter().sum::<f64>() / values.len() as f64);
    let greatest = |of| values(of).and_then(|values| values.into_iter().reduce(f64::max));
    HostPoint {
        t_ns: points.last().map_or(0, |point| point.t_ns),
        busiest_cpu: greatest(|p| p.busiest_cpu),
        softirq_share: greatest(|p| p.softirq_share),
        steal_share: greatest(|p| p.steal_share),
        tx_bits_per_sec: mean(|p| p.tx_bits_per_sec),
        rx_bits_per_sec: mean(|p| p.rx_bits_per_sec),
        disk_busy_share: greatest(|p| p.disk_busy_share),
        retransmits_per_sec: mean(|p| p.retransmits_per_sec),
    }
}

/// Distances between the points' times.
fn times(points: &[HostPoint]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for point in points {
        let tick = (point.t_ns / TICK_NS).max(before);
        leb128(&mut bytes, tick - before);
        before = tick;
    }
    bytes
}

fn plane(points: &[HostPoint], of: fn(&HostPoint) -> Option<f64>) -> Plane {
    let value = |point| of(point).filter(|v| v.is_finite() && *v >= 0.0);
    let top = points.iter().filter_map(value).fold(0.0, f64::max);
    let code = |point| match value(point) {
        None => NONE,
        Some(_) if top <= 0.0 => 0,
        Some(value) => (value / top * FULL).round() as u8,
    };
    let bytes: Vec<u8> = points.iter().map(code).collect();
    Plane {
        top,
        data: base64(&bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_points_hide_no_full_cpu_and_no_gap() {
        let point = |t_ns, cpu, tx| HostPoint {
            t_ns,
            busiest_cpu: cpu,
            tx_bits_per_sec: tx,
            ..HostPoint::default()
        };
        let joined = join(&[point(1, Some(0.2), Some(4.0)), point(2, Some(1.0), None)]);
        assert_eq!(joined, point(2, Some(1.0), Some(4.0)));
        assert_eq!(join(&[point(3, None, None)]).busiest_cpu, None);
    }

    #[test]
    fn none_and_zero_are_told_apart() {
        let point = |retransmits_per_sec| HostPoint {
            retransmits_per_sec,
            ..HostPoint::default()
        };
        let points = [
            point(None),
            point(Some(0.0)),
            point(Some(8.0)),
            point(Some(2.0)),
        ];
        let plane = plane(&points, |p| p.retransmits_per_sec);
        assert_eq!(plane.top, 8.0);
        assert_eq!(plane.data, base64(&[255, 0, 254, 64]));
    }
}
