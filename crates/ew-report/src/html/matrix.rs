//! The pair matrix as compact data for the page's script.
//!
//! One object per host pair would cost 100 bytes each and 100 MB at 1000 hosts. Instead each figure
//! is a *plane*: one byte a pair into a small dictionary when there are few distinct values, else
//! two bytes a pair on a logarithmic scale between min and max value (0 is "none", 1 is zero, the
//! other 65534 codes are evenly spaced in the logarithm: over six decades the error stays below
//! 0.02%). Which pairs there are is a list of distances in row order, in LEB128, so that a sampled
//! mesh costs by its pairs and not by N squared.

use super::hosts::FAULT_BELOW;
use super::pack::{Stage, base64, leb128, packed_json, script_json, stages};
use crate::figures::stage_name;
use crate::words::{host_name, one_line, percent, plural, rack_name};
use ew_model::analysis::{HostPair, PairAnalysis, PairDetail, PairSample};
use ew_model::record::TcpInfo;
use ew_model::{Analysis, HostId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Index 255 in a dictionary plane is "none".
const NONE: u8 = 255;
/// Texts beyond this many are distinguished only in the JSON report.
const TEXTS: usize = 254;
/// Codes of the logarithmic scale.
const CODES: f64 = 65_533.0;
/// Host pairs of all maps but the first; stages beyond it are in the JSON report only.
const MAX_CELLS: usize = 200_000;

/// What the page shows of pairs.
#[derive(Serialize)]
pub(super) struct MapsView {
    /// For the page's script.
    data: String,
    /// Of the map that is shown first.
    note: String,
    /// Names of the stages with a map, as the reader chooses among them.
    stages: Vec<String>,
    left_out: usize,
    /// Of the expected, what is no fault: in words.
    fault_below: String,
}

/// `None` without any pair.
pub(super) fn view(analysis: &Analysis) -> Result<Option<MapsView>, serde_json::Error> {
    let all = maps(analysis);
    let mut free = MAX_CELLS;
    let count = all.len();
    let mut shown = Vec::new();
    for map in all {
        if !shown.is_empty() && map.pairs.len() > free {
            continue;
        }
        if !shown.is_empty() {
            free -= map.pairs.len();
        }
        shown.push(map);
    }
    let Some(first) = shown.first() else {
        return Ok(None);
    };
    Ok(Some(MapsView {
        note: note(analysis, first),
        stages: shown.iter().map(|map| map.name.clone()).collect(),
        left_out: count - shown.len(),
        fault_below: percent(Some(FAULT_BELOW)),
        data: script_json(&document(analysis, &shown)?)?,
    }))
}

/// The figures of one stage's ordered pairs.
struct Map<'a> {
    name: String,
    /// By `src * n + dst`.
    pairs: BTreeMap<u64, Pair<'a>>,
}

#[derive(Clone, Copy, Default)]
struct Pair<'a> {
    rate: Option<f64>,
    expected: Option<f64>,
    samples: u32,
    retransmits: Option<f64>,
    rtt_us: Option<f64>,
    loss: Option<f64>,
    missing: Option<&'a str>,
}

impl<'a> From<&'a HostPair> for Pair<'a> {
    fn from(host_pair: &'a HostPair) -> Self {
        Self {
            rate: host_pair.bits_per_sec,
            expected: host_pair.expected_bits_per_sec,
            samples: host_pair.samples,
            retransmits: host_pair.retransmits.map(|count| count as f64),
            rtt_us: host_pair.rtt_us.map(f64::from),
            loss: None,
            missing: host_pair.missing.as_deref(),
        }
    }
}

/// The stage whose rates are compared with the expectation first, then the others in their order.
fn maps(analysis: &Analysis) -> Vec<Map<'_>> {
    let n = analysis.inventory().hosts.len();
    let main = analysis.host_pairs_stage.as_deref();
    let mut maps = Vec::new();
    for (index, stage) in analysis.stages.iter().enumerate() {
        let is_main = main == Some(stage.name.as_str());
        let others = analysis.pair_maps.iter();
        let other = others.filter(|map| map.stage as usize == index);
        let host_pairs: Vec<&HostPair> = match is_main {
            true => analysis.host_pairs.iter().collect(),
            false => other.flat_map(|map| &map.host_pairs).collect(),
        };
        let pairs = pairs(&host_pairs, &stage.pairs, n);
        if !pairs.is_empty() {
            let name = stage_name(stage);
            maps.push((!is_main, Map { name, pairs }));
        }
    }
    let is_named = analysis
        .stages
        .iter()
        .any(|stage| main == Some(&stage.name));
    if !is_named && !analysis.host_pairs.is_empty() {
        let pairs = pairs(&analysis.host_pairs.iter().collect::<Vec<_>>(), &[], n);
        let name = main.map_or_else(|| "-".to_owned(), one_line);
        maps.push((false, Map { name, pairs }));
    }
    maps.sort_by_key(|(is_other, _)| *is_other);
    maps.into_iter().map(|(_, map)| map).collect()
}

/// Pairs inside the inventory; of two with the same hosts the first.
fn pairs<'a>(
    host_pairs: &[&'a HostPair],
    others: &[PairAnalysis],
    n: usize,
) -> BTreeMap<u64, Pair<'a>> {
    let at = |src: HostId, dst: HostId| {
        let (src, dst) = (src.index(), dst.index());
        (src < n && dst < n).then_some((src * n + dst) as u64)
    };
    let mut pairs: BTreeMap<u64, Pair<'_>> = BTreeMap::new();
    for host_pair in host_pairs {
        if let Some(at) = at(host_pair.src, host_pair.dst) {
            pairs.entry(at).or_insert_with(|| Pair::from(*host_pair));
        }
    }
    for pair in others {
        let Some(at) = at(pair.src, pair.dst) else {
            continue;
        };
        let known = pairs.entry(at).or_default();
        known.samples = known.samples.max(pair.samples);
        known.rate = known.rate.or(pair.bits_per_sec);
        known.loss = pair.datagrams.and_then(|datagrams| datagrams.loss);
        let times = pair.times.map(|times| times.p50_ns as f64 / 1e3);
        known.rtt_us = known.rtt_us.or(times);
    }
    pairs
}

/// `All 56 ordered pairs, stage mesh.`, `A sample: 96 of 552 ordered pairs, stage mesh.`
fn note(analysis: &Analysis, map: &Map<'_>) -> String {
    let n = analysis.inventory().hosts.len();
    let all = n * n.saturating_sub(1);
    let count = map.pairs.len();
    let missing = map.pairs.values().filter(|pair| pair.is_missing()).count();
    let of = match count >= all {
        true => format!("All {}", plural(all, "ordered pair")),
        false => format!("A sample: {count} of {}", plural(all, "ordered pair")),
    };
    let without = match missing {
        0 => String::new(),
        missing => format!(", {missing} without a figure"),
    };
    format!("{of}, stage {}{without}.", map.name)
}

impl Pair<'_> {
    fn is_missing(&self) -> bool {
        self.rate.is_none() && self.rtt_us.is_none() && self.loss.is_none()
    }
}

fn document(analysis: &Analysis, maps: &[Map<'_>]) -> Result<Document, serde_json::Error> {
    let inventory = analysis.inventory();
    let n = inventory.hosts.len();
    Ok(Document {
        hosts: inventory
            .host_ids()
            .map(|id| host_name(inventory, id))
            .collect(),
        racks: inventory
            .rack_ids()
            .map(|id| rack_name(inventory, id))
            .collect(),
        rack: inventory
            .hosts
            .iter()
            .map(|h| h.rack.map_or(-1, |r| i64::from(r.0)))
            .collect(),
        maps: maps.iter().map(|map| packed(analysis, map, n)).collect(),
        stages: stages(analysis),
        fault_below: FAULT_BELOW,
        details: packed_json(&details(analysis))?,
        paths: paths(analysis),
    })
}

fn packed(analysis: &Analysis, map: &Map<'_>, n: usize) -> PackedMap {
    let pairs = &map.pairs;
    let numbers = |of: fn(&Pair<'_>) -> Option<f64>| {
        let values = pairs.values().map(of);
        plane(&values.collect::<Vec<_>>())
    };
    let is_whole = pairs.len() == n * n.saturating_sub(1)
        && pairs.keys().all(|at| *at as usize / n != *at as usize % n);
    PackedMap {
        name: map.name.clone(),
        note: note(analysis, map),
        count: pairs.len(),
        at: match is_whole {
            true => String::new(),
            false => base64(&distances(pairs.keys())),
        },
        rate: numbers(|p| p.rate),
        expected: numbers(|p| p.expected),
        samples: numbers(|p| Some(f64::from(p.samples))),
        retransmits: numbers(|p| p.retransmits),
        rtt_us: numbers(|p| p.rtt_us),
        loss: numbers(|p| p.loss),
        missing: texts(&pairs.values().map(|p| p.missing).collect::<Vec<_>>()),
    }
}

#[derive(Serialize)]
struct Document {
    hosts: Vec<String>,
    racks: Vec<String>,
    rack: Vec<i64>,
    maps: Vec<PackedMap>,
    stages: Vec<Stage>,
    fault_below: f64,
    /// Packed, since a pair's measurements are asked for one pair at a time: [`Detail`]s by
    /// `src,dst`.
    details: String,
    /// By `src,dst`.
    paths: BTreeMap<String, Vec<Path>>,
}

#[derive(Serialize)]
struct PackedMap {
    name: String,
    note: String,
    count: usize,
    /// Empty: all ordered pairs.
    at: String,
    rate: Plane,
    expected: Plane,
    samples: Plane,
    retransmits: Plane,
    rtt_us: Plane,
    loss: Plane,
    missing: Texts,
}

/// The measurements of a pair in one stage.
#[derive(Serialize)]
struct Detail {
    stage: u32,
    /// Seconds, bits per second, segments, µs, µs, share.
    samples: Vec<[Option<f64>; 6]>,
    tcp: Option<TcpInfo>,
    streams: Option<u32>,
}

#[derive(Serialize)]
struct Path {
    hops: Vec<Option<String>>,
    connections: u32,
}

fn details(analysis: &Analysis) -> BTreeMap<String, Vec<Detail>> {
    let mut details: BTreeMap<String, Vec<Detail>> = BTreeMap::new();
    for detail in &analysis.pair_details {
        let key = format!("{},{}", detail.src.0, detail.dst.0);
        details.entry(key).or_default().push(packed_detail(detail));
    }
    details
}

fn packed_detail(detail: &PairDetail) -> Detail {
    // To the millisecond, the bit and the tenth of a microsecond.
    let sample = |sample: &PairSample| {
        [
            sample.t_ns.map(|ns| (ns as f64 / 1e6).round() / 1e3),
            sample.bits_per_sec.map(f64::round),
            sample.retransmits.map(|count| count as f64),
            sample.rtt_us.map(f64::from),
            sample.time_ns.map(|ns| (ns as f64 / 1e2).round() / 10.0),
            sample.loss,
        ]
    };
    Detail {
        stage: detail.stage,
        samples: detail.samples.iter().map(sample).collect(),
        tcp: detail.tcp,
        streams: detail.streams,
    }
}

fn paths(analysis: &Analysis) -> BTreeMap<String, Vec<Path>> {
    let mut paths: BTreeMap<String, Vec<Path>> = BTreeMap::new();
    for path in &analysis.pair_paths {
        let key = format!("{},{}", path.src.0, path.dst.0);
        let hops = path.hops.iter();
        paths.entry(key).or_default().push(Path {
            hops: hops.map(|hop| hop.map(|ip| ip.to_string())).collect(),
            connections: path.connections,
        });
    }
    paths
}

#[derive(Serialize)]
struct Plane {
    dict: Option<Vec<f64>>,
    low: f64,
    high: f64,
    data: String,
}

#[derive(Serialize)]
struct Texts {
    dict: Vec<String>,
    data: String,
}

fn distances<'a>(positions: impl Iterator<Item = &'a u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = 0;
    for position in positions {
        leb128(&mut bytes, position - before);
        before = *position;
    }
    bytes
}

/// Where all host pairs are equal, there is a dictionary of that one value, or of none, and no
/// data.
fn plane(values: &[Option<f64>]) -> Plane {
    let values: Vec<Option<f64>> = values
        .iter()
        .map(|value| value.filter(|v| v.is_finite() && *v >= 0.0))
        .collect();
    let first = values.first().copied().flatten();
    if values.iter().all(|value| *value == first) {
        return Plane {
            dict: Some(first.into_iter().collect()),
            low: 0.0,
            high: 0.0,
            data: String::new(),
        };
    }
    dictionary_plane(&values).unwrap_or_else(|| logarithmic_plane(&values))
}

/// `None` when there are more than 255 distinct values.
fn dictionary_plane(values: &[Option<f64>]) -> Option<Plane> {
    // The bits of non-negative floats sort as the floats do.
    let mut codes: BTreeMap<u64, u8> = BTreeMap::new();
    for value in values.iter().flatten() {
        codes.insert(value.to_bits(), 0);
        if codes.len() > usize::from(NONE) {
            return None;
        }
    }
    for (i, code) in codes.values_mut().enumerate() {
        *code = i as u8;
    }
    let data: Vec<u8> = values
        .iter()
        .map(|v| {
            v.and_then(|v| codes.get(&v.to_bits()).copied())
                .unwrap_or(NONE)
        })
        .collect();
    Some(Plane {
        dict: Some(codes.keys().map(|bits| f64::from_bits(*bits)).collect()),
        low: 0.0,
        high: 0.0,
        data: base64(&data),
    })
}

fn logarithmic_plane(values: &[Option<f64>]) -> Plane {
    let positive = || values.iter().flatten().copied().filter(|v| *v > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min);
    let high = positive().fold(low, f64::max);
    let mut data = Vec::with_capacity(values.len() * 2);
    for value in values {
        data.extend_from_slice(&logarithmic_code(*value, low, high).to_le_bytes());
    }
    Plane {
        dict: None,
        low,
        high,
        data: base64(&data),
    }
}

fn logarithmic_code(value: Option<f64>, low: f64, high: f64) -> u16 {
    match value {
        None => 0,
        Some(v) if v <= 0.0 => 1,
        Some(_) if high <= low => 2,
        Some(v) => {
            2 + ((v / low).ln() / (high / low).ln() * CODES)
                .round()
                .clamp(0.0, CODES) as u16
        }
    }
}

/// No data where there is no text at all.
fn texts(missing: &[Option<&str>]) -> Texts {
    let mut codes: BTreeMap<&str, u8> = BTreeMap::new();
    let mut dict: Vec<String> = Vec::new();
    let mut data = Vec::with_capacity(missing.len());
    for reason in missing {
        let Some(reason) = reason else {
            data.push(NONE);
            continue;
        };
        if let Some(code) = codes.get(reason) {
            data.push(*code);
        } else if dict.len() < TEXTS {
            codes.insert(reason, dict.len() as u8);
            data.push(dict.len() as u8);
            dict.push(one_line(reason));
        } else {
            data.push(TEXTS as u8);
        }
    }
    if data.contains(&(TEXTS as u8)) {
        dict.push("another reason; the JSON report has it".into());
    }
    let data = if dict.is_empty() {
        String::new()
    } else {
        base64(&data)
    };
    Texts { dict, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(code: u16, low: f64, high: f64) -> Option<f64> {
        match code {
            0 => None,
            1 => Some(0.0),
            c => Some(low * (high / low).powf(f64::from(c - 2) / CODES)),
        }
    }

    proptest! {
        #[test]
        fn the_logarithmic_scale_is_exact_enough(value in 1e4_f64..1e10) {
            let read = decode(logarithmic_code(Some(value), 1e4, 1e10), 1e4, 1e10).unwrap();
            prop_assert!((read / value - 1.0).abs() < 2e-4, "{value} became {read}");
        }
    }

    #[test]
    fn none_and_zero_are_told_apart() {
        assert_eq!(decode(logarithmic_code(None, 1.0, 9.0), 1.0, 9.0), None);
        assert_eq!(
            decode(logarithmic_code(Some(0.0), 1.0, 9.0), 1.0, 9.0),
            Some(0.0)
        );
        let plane = dictionary_plane(&[None, Some(0.0), Some(3.0)]).unwrap();
        assert_eq!(plane.dict, Some(vec![0.0, 3.0]));
        assert_eq!(plane.data, base64(&[255, 0, 1]));
    }

    #[test]
    fn what_is_equal_everywhere_takes_no_space() {
        let equal = plane(&[Some(5.0), Some(5.0)]);
        assert_eq!((equal.dict, equal.data.as_str()), (Some(vec![5.0]), ""));
        let nothing = plane(&[None, Some(f64::NAN)]);
        assert_eq!((nothing.dict, nothing.data.as_str()), (Some(vec![]), ""));
        assert_eq!(plane(&[None, Some(0.0)]).dict, Some(vec![0.0]));
    }
}
