//! The pair matrix as compact data for the page's script.
//!
//! One object per cell would cost 100 bytes a cell and 100 MB at 1000 hosts. Instead each figure is
//! a *plane*: one byte a cell into a small dictionary when there are few distinct values, else two
//! bytes a cell on a logarithmic scale between min and max value (0 is "none", 1 is
//! zero, the other 65534 codes are evenly spaced in the logarithm: over six decades the error stays
//! below 0.02 %). Which cells there are is a list of distances in row order, in LEB128, so that a
//! sampled mesh costs by its cells and not by N squared.

use super::pack::{base64, leb128, script_json};
use crate::words::{host_name, one_line, rack_name};
use ew_model::Analysis;
use ew_model::analysis::Cell;
use serde::Serialize;
use std::collections::BTreeMap;

/// Index 255 in a dictionary plane is "none".
const NONE: u8 = 255;
/// Texts beyond this many are distinguished only in the JSON report.
const TEXTS: usize = 254;
/// Codes of the logarithmic scale.
const CODES: f64 = 65_533.0;

/// The document for the page's script.
pub(super) fn data(analysis: &Analysis) -> Result<String, serde_json::Error> {
    let inventory = analysis.inventory();
    let n = inventory.hosts.len();
    let cells = by_position(analysis, n);
    let numbers = |of: fn(&Cell) -> Option<f64>| plane(&cells, of);
    let document = Document {
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
        count: cells.len(),
        at: base64(&distances(&cells)),
        rate: numbers(|c| c.bits_per_sec),
        expected: numbers(|c| c.expected_bits_per_sec),
        samples: numbers(|c| Some(f64::from(c.samples))),
        retransmits: numbers(|c| c.retransmits.map(|r| r as f64)),
        rtt_us: numbers(|c| c.rtt_us.map(f64::from)),
        missing: texts(&cells),
    };
    script_json(&document)
}

#[derive(Serialize)]
struct Document {
    hosts: Vec<String>,
    racks: Vec<String>,
    rack: Vec<i64>,
    count: usize,
    at: String,
    rate: Plane,
    expected: Plane,
    samples: Plane,
    retransmits: Plane,
    rtt_us: Plane,
    missing: Texts,
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

/// Cells inside the inventory, by `src * n + dst`; of two at one place the first.
fn by_position(analysis: &Analysis, n: usize) -> BTreeMap<u64, &Cell> {
    let mut cells = BTreeMap::new();
    for cell in &analysis.cells {
        let (src, dst) = (cell.src.index(), cell.dst.index());
        if src < n && dst < n {
            cells.entry((src * n + dst) as u64).or_insert(cell);
        }
    }
    cells
}

fn distances(cells: &BTreeMap<u64, &Cell>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(cells.len());
    let mut before = 0;
    for position in cells.keys() {
        leb128(&mut bytes, position - before);
        before = *position;
    }
    bytes
}

fn plane(cells: &BTreeMap<u64, &Cell>, of: fn(&Cell) -> Option<f64>) -> Plane {
    let values: Vec<Option<f64>> = cells
        .values()
        .map(|c| of(c).filter(|v| v.is_finite() && *v >= 0.0))
        .collect();
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

fn texts(cells: &BTreeMap<u64, &Cell>) -> Texts {
    let mut codes: BTreeMap<&str, u8> = BTreeMap::new();
    let mut dict: Vec<String> = Vec::new();
    let mut data = Vec::with_capacity(cells.len());
    for cell in cells.values() {
        let Some(reason) = cell.missing.as_deref() else {
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
    Texts {
        dict,
        data: base64(&data),
    }
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
}
