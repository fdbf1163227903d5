//! What every host can send and receive, and which side of which host is slow.
//!
//! A lone flow runs at the slower of its two ends. A low cell therefore accuses either end, while a high cell acquits
//! both. So each side is first judged by the upper quartile of its cells (medians over rounds), worst side first; the
//! side found slow is put into the expectation, its partners' cells are thereby explained, and the rest is judged
//! again. A median polish over what remains gives the effects that reports show.

use crate::disturbance::LEAST_FLOWS;
use crate::solo::Solo;
use crate::stats::{mad, median, median_estimate, modified_z, quantile};
use crate::two_way::{TwoWay, median_polish};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use std::collections::BTreeMap;

/// Modified z-score beyond which a side stands apart from its peers.
const Z_LIMIT: f64 = 3.5;
/// A side is only called slow when it loses more than this share.
pub(crate) const LEAST_EFFECT: f64 = 0.05;
/// With fewer than six observations there is no interval, and the effect must be plainer.
const LEAST_EFFECT_UNSURE: f64 = 0.10;
/// Least spread assumed among healthy sides, as a logarithm: repetition noise of a good network.
const SPREAD_FLOOR: f64 = 0.01;
/// A side needs observations with this many different partners before it is told from its partner.
const LEAST_PARTNERS: usize = 2;
/// Share of a side's cells that may be slowed by partners without hiding a healthy side.
pub(crate) const UPPER: f64 = 0.75;
/// Above this many hosts, several slow sides are taken in one pass.
const MANY_HOSTS: usize = 64;
/// Effects (logarithms) this close are alike.
const ALIKE: f64 = 0.1;
/// Up to this many hosts, one slow side is a large part of all.
const FEW_HOSTS: usize = 4;
/// Keeps logarithms finite for a flow that carried nothing.
const LEAST_RATE: f64 = 1.0;

/// One direction of a host's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// Sending.
    Tx(HostId),
    /// Receiving.
    Rx(HostId),
}

/// A side found slow.
#[derive(Clone, Debug)]
pub(crate) struct SlowSide {
    /// Its own rate towards partners that are not slow themselves.
    pub(crate) rate: Estimate,
    /// Observations and partners it rests on.
    pub(crate) partners: u32,
    /// Modified z-score among all sides.
    pub(crate) z: f64,
}

/// The fitted hosts.
#[derive(Clone, Debug)]
pub(crate) struct HostFit {
    /// Median rate of sides that are not slow. `None` without lone flows.
    pub(crate) typical: Option<Estimate>,
    pub(crate) slow: BTreeMap<Side, SlowSide>,
    /// All observations of a side, over partners.
    pub(crate) rates: BTreeMap<Side, Vec<f64>>,
    /// Medians over rounds per ordered pair, with what limits the pair besides hosts.
    pub(crate) cells: BTreeMap<(HostId, HostId), CellRates>,
    /// The two-way model of what the slow sides leave unexplained.
    pub(crate) model: TwoWay,
}

/// One ordered pair's lone flows.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellRates {
    pub(crate) rates: Vec<f64>,
    /// The most that any of them did in most of its window.
    pub(crate) upper_bits_per_sec: f64,
    /// In how many of them an end lacked CPU time.
    pub(crate) without_cpu: usize,
    /// How many of them ran in company large enough to show that their round was not slow as a whole.
    pub(crate) in_company: usize,
    /// The least share the path left in any of them. `None` when no path limits.
    pub(crate) path_bits_per_sec: Option<f64>,
}

impl HostFit {
    /// What a side can carry: its own rate when slow, else the typical one.
    pub(crate) fn capacity(&self, side: Side) -> Option<f64> {
        match self.slow.get(&side) {
            Some(slow) => Some(slow.rate.value),
            None => self.typical.map(|typical| typical.value),
        }
    }

    /// What an ordered pair should do alone, by the hosts as measured and the path.
    pub(crate) fn pair_expectation(&self, src: HostId, dst: HostId) -> Option<f64> {
        let hosts = self
            .capacity(Side::Tx(src))?
            .min(self.capacity(Side::Rx(dst))?);
        let path = self
            .cells
            .get(&(src, dst))
            .and_then(|cell| cell.path_bits_per_sec);
        Some(path.map_or(hosts, |path| hosts.min(path)))
    }

    /// A side's rate towards partners that are not slow themselves; towards all when every partner is.
    pub(crate) fn side_rate(&self, side: Side) -> Option<Estimate> {
        if let Some(slow) = self.slow.get(&side) {
            return Some(slow.rate);
        }
        let cells = self.cells.iter().filter(|((src, dst), _)| match side {
            Side::Tx(host) => *src == host && !self.slow.contains_key(&Side::Rx(*dst)),
            Side::Rx(host) => *dst == host && !self.slow.contains_key(&Side::Tx(*src)),
        });
        let rates: Vec<f64> = cells
            .flat_map(|(_, cell)| cell.rates.iter().copied())
            .collect();
        median_estimate(&rates).or_else(|| median_estimate(self.rates.get(&side)?))
    }

    /// A side's share of the typical rate: measured for a slow one, from the two-way model for the others.
    pub(crate) fn effect(&self, side: Side) -> Option<f64> {
        if let (Some(slow), Some(typical)) = (self.slow.get(&side), self.typical) {
            return Some(slow.rate.value / typical.value);
        }
        let (effects, host) = match side {
            Side::Tx(host) => (&self.model.rows, host),
            Side::Rx(host) => (&self.model.columns, host),
        };
        effects.get(host.index()).copied().flatten().map(f64::exp)
    }
}

/// Fits the hosts to lone flows.
pub(crate) fn fit(hosts: usize, solos: &[Solo]) -> HostFit {
    let mut fit = HostFit {
        typical: None,
        slow: BTreeMap::new(),
        rates: BTreeMap::new(),
        cells: cells(solos),
        model: median_polish(0, &BTreeMap::new()),
    };
    for solo in solos {
        for side in [Side::Tx(solo.src), Side::Rx(solo.dst)] {
            fit.rates.entry(side).or_default().push(solo.bits_per_sec);
        }
    }
    let medians = cell_medians(&fit.cells);
    for _ in 0..2 * hosts {
        let judged = judge(&medians, &fit.slow);
        fit.typical = judged.typical;
        let found = worst(&judged, &fit, hosts);
        if found.is_empty() {
            break;
        }
        fit.slow.extend(found);
    }
    fit.typical = typical_rate(hosts, &fit);
    fit.model = rest_model(hosts, &fit, &medians);
    fit
}

fn cells(solos: &[Solo]) -> BTreeMap<(HostId, HostId), CellRates> {
    let mut cells: BTreeMap<(HostId, HostId), CellRates> = BTreeMap::new();
    for solo in solos {
        let cell = cells.entry((solo.src, solo.dst)).or_default();
        cell.without_cpu += usize::from(solo.lacked_cpu);
        cell.rates.push(solo.bits_per_sec);
        cell.upper_bits_per_sec = cell.upper_bits_per_sec.max(solo.upper_bits_per_sec);
        cell.in_company += usize::from(solo.company >= LEAST_FLOWS);
        cell.path_bits_per_sec = match (cell.path_bits_per_sec, solo.path_bits_per_sec) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    cells
}

fn cell_medians(cells: &BTreeMap<(HostId, HostId), CellRates>) -> BTreeMap<(HostId, HostId), f64> {
    cells
        .iter()
        .filter_map(|(pair, cell)| Some((*pair, median(&cell.rates)?.max(LEAST_RATE))))
        .collect()
}

/// All sides that are not known to be slow, by the upper quartile of the cells that speak of them.
struct Judged {
    typical: Option<Estimate>,
    center: f64,
    mad: f64,
    sides: BTreeMap<Side, Vec<(HostId, f64)>>,
}

fn judge(medians: &BTreeMap<(HostId, HostId), f64>, slow: &BTreeMap<Side, SlowSide>) -> Judged {
    let mut sides: BTreeMap<Side, Vec<(HostId, f64)>> = BTreeMap::new();
    for ((src, dst), rate) in medians {
        let (tx, rx) = (Side::Tx(*src), Side::Rx(*dst));
        if !slow.contains_key(&tx) && !is_explained(*rate, slow.get(&rx)) {
            sides.entry(tx).or_default().push((*dst, *rate));
        }
        if !slow.contains_key(&rx) && !is_explained(*rate, slow.get(&tx)) {
            sides.entry(rx).or_default().push((*src, *rate));
        }
    }
    let uppers: Vec<f64> = sides
        .values()
        .filter_map(|cells| upper(cells))
        .map(f64::ln)
        .collect();
    let center = median(&uppers).unwrap_or(0.0);
    Judged {
        typical: median_estimate(&uppers.iter().map(|u| u.exp()).collect::<Vec<_>>()),
        center,
        mad: mad(&uppers).unwrap_or(0.0),
        sides,
    }
}

/// Whether a slow partner alone accounts for a cell's rate.
fn is_explained(rate: f64, partner: Option<&SlowSide>) -> bool {
    partner.is_some_and(|slow| rate > 0.85 * slow.rate.value)
}

fn upper(cells: &[(HostId, f64)]) -> Option<f64> {
    let rates: Vec<f64> = cells.iter().map(|(_, rate)| *rate).collect();
    quantile(&rates, UPPER)
}

/// A side that stands apart.
struct Candidate {
    /// Logarithm of its share of the usual rate.
    effect: f64,
    side: Side,
    slow: SlowSide,
}

/// The side that stands out most among those with enough evidence; of two alike the one that explains more cells.
/// Many hosts leave no doubt which of two ends is slow, so there all sides half as bad are taken at once, which bounds
/// the number of passes.
fn worst(judged: &Judged, fit: &HostFit, hosts: usize) -> Vec<(Side, SlowSide)> {
    let candidates: Vec<Candidate> = judged
        .sides
        .iter()
        .filter_map(|(side, cells)| candidate(*side, cells, judged, fit))
        .collect();
    let Some(lowest) = candidates.iter().map(|c| c.effect).min_by(f64::total_cmp) else {
        return Vec::new();
    };
    if hosts > MANY_HOSTS {
        let bad = candidates.into_iter().filter(|c| c.effect <= lowest / 2.0);
        return bad.map(|c| (c.side, c.slow)).collect();
    }
    candidates
        .into_iter()
        .filter(|c| c.effect <= lowest + ALIKE)
        .max_by_key(|c| (c.slow.partners, std::cmp::Reverse(c.side)))
        .map(|c| (c.side, c.slow))
        .into_iter()
        .collect()
}

fn candidate(
    side: Side,
    cells: &[(HostId, f64)],
    judged: &Judged,
    fit: &HostFit,
) -> Option<Candidate> {
    let upper = upper(cells)?.ln();
    let effect = upper - judged.center;
    let z = modified_z(upper, judged.center, judged.mad, SPREAD_FLOOR);
    if cells.len() < LEAST_PARTNERS || z > -Z_LIMIT || effect > (1.0 - LEAST_EFFECT).ln() {
        return None;
    }
    let rate = confirmed(side, cells, judged.center.exp(), fit)?;
    let partners = cells.len() as u32;
    Some(Candidate {
        effect,
        side,
        slow: SlowSide { rate, partners, z },
    })
}

/// The side's own rate, when its observations exclude that it is healthy: with six or more the 95 % interval of their
/// median, with fewer every single one, and then only for a plain effect.
fn confirmed(side: Side, cells: &[(HostId, f64)], center: f64, fit: &HostFit) -> Option<Estimate> {
    let rates: Vec<f64> = cells
        .iter()
        .map(|(partner, _)| match side {
            Side::Tx(host) => (host, *partner),
            Side::Rx(host) => (*partner, host),
        })
        .filter_map(|pair| fit.cells.get(&pair))
        .flat_map(|cell| cell.rates.iter().copied())
        .collect();
    let estimate = median_estimate(&rates)?;
    let is_sure = match estimate.high {
        Some(high) => high < (1.0 - LEAST_EFFECT) * center,
        None => {
            let all_low = rates
                .iter()
                .all(|rate| *rate < (1.0 - LEAST_EFFECT) * center);
            all_low && estimate.value < (1.0 - LEAST_EFFECT_UNSURE) * center
        }
    };
    is_sure.then_some(estimate)
}

/// Median over all lone flows between sides that are not slow. Among very few hosts one slow direction is half of the
/// data and the median means nothing, so pairs well below the better ones are left out.
fn typical_rate(hosts: usize, fit: &HostFit) -> Option<Estimate> {
    let healthy = fit.cells.iter().filter(|((src, dst), _)| {
        !fit.slow.contains_key(&Side::Tx(*src)) && !fit.slow.contains_key(&Side::Rx(*dst))
    });
    let healthy: Vec<(f64, &CellRates)> = healthy
        .filter_map(|(_, cell)| Some((median(&cell.rates)?, cell)))
        .collect();
    let medians: Vec<f64> = healthy.iter().map(|(median, _)| *median).collect();
    let least = match quantile(&medians, UPPER) {
        Some(upper) if hosts <= FEW_HOSTS => 0.9 * upper,
        _ => 0.0,
    };
    let rates: Vec<f64> = healthy
        .iter()
        .filter(|(median, _)| *median >= least)
        .flat_map(|(_, cell)| cell.rates.iter().copied())
        .collect();
    median_estimate(&rates).or(fit.typical)
}

fn rest_model(hosts: usize, fit: &HostFit, medians: &BTreeMap<(HostId, HostId), f64>) -> TwoWay {
    let ratios = medians
        .iter()
        .filter_map(|((src, dst), rate)| {
            let expected = fit.pair_expectation(*src, *dst)?.max(LEAST_RATE);
            Some(((src.index(), dst.index()), (rate / expected).ln()))
        })
        .collect();
    median_polish(hosts, &ratios)
}
