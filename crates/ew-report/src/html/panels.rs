//! The hosts' panels as compact data for the page's script: counters over time, and a row of
//! figures for each stage.
//!
//! A point takes seven bytes and its time: each figure is one byte on a linear scale from 0 to the
//! host's largest value (254; 255 is "none"), which is finer than a chart can show, and times are
//! distances in LEB128. The rows of figures are words, made where the text report makes them.

use super::accused::{Accused, Mark};
use super::pack::{Stage, base64, leb128, script_json, stages};
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
/// Unit of the times.
const TICK_NS: u64 = 10_000_000;
/// The byte for the largest value of a scale.
const FULL: f64 = 254.0;
/// The byte for "none".
const NONE: u8 = 255;

type Figure = fn(&HostPoint) -> Option<f64>;
type Join = fn(&[f64]) -> f64;

/// What is drawn over time, by the script's name for it. Neighbours are joined: rates in the mean,
/// shares at their max, so that no full CPU or disk is hidden.
const PLANES: [(&str, Figure, Join); 7] = [
    ("cpu", |p| p.busiest_cpu, max),
    ("softirq", |p| p.softirq_share, max),
    ("steal", |p| p.steal_share, max),
    ("tx", |p| p.tx_bits_per_sec, mean),
    ("rx", |p| p.rx_bits_per_sec, mean),
    ("disk", |p| p.disk_busy_share, max),
    ("retransmits", |p| p.retransmits_per_sec, mean),
];

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
    let document = Document {
        stages: stages(analysis),
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
struct Panel {
    name: String,
    about: String,
    /// Findings that accuse it.
    marks: Vec<Mark>,
    /// Bits a second of the link, for the line above the rates.
    link: Option<f64>,
    count: usize,
    /// How many readings a point covers, at most.
    joined: usize,
    times: String,
    #[serde(flatten)]
    planes: BTreeMap<&'static str, Plane>,
    header: Vec<&'static str>,
    /// Index of the stage, then its values.
    rows: Vec<(u32, Vec<String>)>,
}

#[derive(Serialize)]
struct Plane {
    /// The largest value; 0 when there is none.
    top: f64,
    data: String,
}

fn panel(analysis: &Analysis, host: &HostAnalysis, marks: Vec<Mark>, most: usize) -> Panel {
    let joined = host.series.len().div_ceil(most).max(1);
    let points: Vec<&[HostPoint]> = host.series.chunks(joined).collect();
    let planes = PLANES.iter().map(|(name, of, join)| {
        let values = points.iter().map(|near| joined_value(near, *of, *join));
        (*name, plane(&values.collect::<Vec<_>>()))
    });
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
        planes: planes.collect(),
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

/// Neighbours as one value, of those that have one.
fn joined_value(near: &[HostPoint], of: Figure, join: Join) -> Option<f64> {
    let values: Vec<f64> = near.iter().filter_map(of).collect();
    (!values.is_empty()).then(|| join(&values))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Distances between the times of the last of each neighbours.
fn times(points: &[&[HostPoint]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for point in points.iter().filter_map(|near| near.last()) {
        let tick = (point.t_ns / TICK_NS).max(before);
        leb128(&mut bytes, tick - before);
        before = tick;
    }
    bytes
}

fn plane(values: &[Option<f64>]) -> Plane {
    let value = |value: &Option<f64>| value.filter(|v| v.is_finite() && *v >= 0.0);
    let top = values.iter().filter_map(value).fold(0.0, f64::max);
    let code = |one| match value(one) {
        None => NONE,
        Some(_) if top <= 0.0 => 0,
        Some(value) => (value / top * FULL).round() as u8,
    };
    let bytes: Vec<u8> = values.iter().map(code).collect();
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
        let point = |cpu, tx| HostPoint {
            busiest_cpu: cpu,
            tx_bits_per_sec: tx,
            ..HostPoint::default()
        };
        let near = [
            point(Some(0.2), Some(4.0)),
            point(Some(1.0), Some(2.0)),
            point(None, None),
        ];
        let joined = |wanted: &str, near: &[HostPoint]| {
            let (_, of, join) = PLANES.iter().find(|(name, ..)| *name == wanted).unwrap();
            joined_value(near, *of, *join)
        };
        assert_eq!(joined("cpu", &near), Some(1.0));
        assert_eq!(joined("tx", &near), Some(3.0));
        assert_eq!(joined("cpu", &near[2..]), None);
    }

    #[test]
    fn none_and_zero_are_told_apart() {
        let plane = plane(&[None, Some(0.0), Some(8.0), Some(2.0)]);
        assert_eq!(plane.top, 8.0);
        assert_eq!(plane.data, base64(&[255, 0, 254, 64]));
    }
}
