//! Throughput against storage nodes, T(S) = min(S s, P), or against clients, T(C) = min(C c, P): a
//! line through the origin until a plateau.
//!
//! s is what one storage node serves, c what one client moves, P what limits apart from them. The
//! model is that of a closed system with one bottleneck (operational analysis: the asymptotic
//! bounds of Denning and Buzen, 1978).

use ew_model::analysis::Estimate;
use ew_stats::significance::mean_estimate;
use serde::{Deserialize, Serialize};

/// A plateau lies at least this far below the line at its end, or the line is the simpler answer.
const MIN_BEND: f64 = 0.05;
/// So much less than a whole node is no reason for one more.
const NODE_SLACK: f64 = 0.05;
/// A model that a step departs from by more describes nothing.
const MAX_RESIDUAL: f64 = 0.25;

/// What was found at one number of storage nodes: rates of equal parts of the measurement, bytes
/// per second.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Storage nodes, or clients.
    pub nodes: u32,
    /// Mean over the measurement.
    pub rate: f64,
    /// Its parts, for the intervals.
    pub parts: Vec<f64>,
}

/// The model with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// s or c: one storage node, or one client, bytes per second.
    pub node: Estimate,
    /// P: bytes per second that more of them do not raise. `None`: the line did not bend.
    pub plateau: Option<Estimate>,
    /// Where both meet.
    pub knee: Option<Knee>,
    /// Largest departure of a step from the model, as a share of the model.
    pub worst_residual: f64,
}

/// From here on nodes do not raise the aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    /// Fewest whole nodes that reach the plateau.
    pub nodes: u32,
    /// P / s.
    pub exact: f64,
    /// Of the estimates' 95% intervals.
    pub low: Option<f64>,
    /// As the previous.
    pub high: Option<f64>,
}

/// Min relative squares over all positions of the bend. `None` for fewer than two numbers of nodes,
/// and where no such model is within a quarter of every step.
#[must_use]
pub fn fit(observations: &[Observation]) -> Option<Fit> {
    let mut sorted = observations.to_vec();
    sorted.sort_by_key(|seen| seen.nodes);
    let numbers = sorted.windows(2).all(|two| two[0].nodes < two[1].nodes);
    let is_usable = |seen: &Observation| seen.nodes > 0 && seen.rate > 0.0;
    if sorted.len() < 2 || !numbers || !sorted.iter().all(is_usable) {
        return None;
    }
    let bends = (1..=sorted.len()).filter_map(|line| Candidate::new(&sorted, line));
    let best = bends.min_by(|a, b| a.cost.total_cmp(&b.cost))?;
    Some(best.into_fit(&sorted)).filter(|fit| fit.worst_residual <= MAX_RESIDUAL)
}

/// A line through the first so many observations, and a plateau through the others.
struct Candidate {
    line: usize,
    slope: f64,
    plateau: Option<f64>,
    cost: f64,
}

impl Candidate {
    fn new(sorted: &[Observation], line: usize) -> Option<Self> {
        let (below, above) = sorted.split_at(line);
        // Both minimise the sum of (1 - model / rate)^2.
        let ratios = below.iter().map(|seen| f64::from(seen.nodes) / seen.rate);
        let (sum, squares) = sums(ratios);
        let slope = sum / squares;
        let (sum, squares) = sums(above.iter().map(|seen| 1.0 / seen.rate));
        let plateau = (!above.is_empty()).then(|| sum / squares);
        let at_end = slope * f64::from(sorted.last()?.nodes);
        if plateau.is_some_and(|level| level > at_end * (1.0 - MIN_BEND)) {
            return None;
        }
        let model = |seen: &Observation| modelled(slope, plateau, seen.nodes);
        let cost = sorted
            .iter()
            .map(|seen| (1.0 - model(seen) / seen.rate).powi(2));
        Some(Self {
            line,
            slope,
            plateau,
            cost: cost.sum(),
        })
    }

    fn into_fit(self, sorted: &[Observation]) -> Fit {
        let (below, above) = sorted.split_at(self.line);
        let per_node = below.iter().flat_map(|seen| {
            let nodes = f64::from(seen.nodes);
            seen.parts.iter().map(move |rate| rate / nodes)
        });
        let node = estimate(self.slope, &per_node.collect::<Vec<f64>>());
        let parts = above.iter().flat_map(|seen| seen.parts.iter().copied());
        let parts: Vec<f64> = parts.collect();
        let plateau = self.plateau.map(|level| estimate(level, &parts));
        let knee = plateau.map(|plateau| {
            let exact = plateau.value / node.value;
            let ratio = |above: Option<f64>, below: Option<f64>| {
                Some(above? / below?).filter(|ratio| ratio.is_finite())
            };
            Knee {
                nodes: (exact - NODE_SLACK).ceil().max(1.0) as u32,
                exact,
                low: ratio(plateau.low, node.high),
                high: ratio(plateau.high, node.low),
            }
        });
        let residual = |seen: &Observation| {
            let model = modelled(self.slope, self.plateau, seen.nodes);
            (seen.rate / model - 1.0).abs()
        };
        Fit {
            node,
            plateau,
            knee,
            worst_residual: sorted.iter().map(residual).fold(0.0, f64::max),
        }
    }
}

fn modelled(slope: f64, plateau: Option<f64>, nodes: u32) -> f64 {
    let line = slope * f64::from(nodes);
    plateau.map_or(line, |level| line.min(level))
}

fn sums(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((0.0, 0.0), |(sum, squares), value| {
        (sum + value, squares + value * value)
    })
}

/// The fitted value with the parts' interval around it.
pub(super) fn estimate(value: f64, parts: &[f64]) -> Estimate {
    let of_parts = mean_estimate(parts);
    let shifted = |end: fn(&Estimate) -> Option<f64>| {
        let parts = of_parts.as_ref()?;
        Some(value + end(parts)? - parts.value)
    };
    Estimate {
        value,
        low: shifted(|parts| parts.low).map(|low| low.max(0.0)),
        high: shifted(|parts| parts.high),
        samples: parts.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(nodes: u32, rate: f64) -> Observation {
        Observation {
            nodes,
            rate,
            parts: vec![rate * 0.99, rate * 1.01, rate],
        }
    }

    #[test]
    fn the_bend_is_where_it_was_made() {
        let rates = [(4, 478.0), (3, 478.0), (2, 382.6), (1, 191.3)];
        let found = fit(&rates.map(|(nodes, rate)| seen(nodes, rate))).unwrap();
        assert!((found.node.value - 191.3).abs() < 1e-9);
        assert!((found.plateau.unwrap().value - 478.0).abs() < 1e-9);
        let knee = found.knee.unwrap();
        assert_eq!(knee.nodes, 3);
        assert!(knee.low.unwrap() < 2.5 && knee.high.unwrap() > 2.49);
        assert!(found.worst_residual < 1e-9);
    }

    #[test]
    fn a_line_stays_a_line_and_a_plateau_from_the_start_has_its_knee_at_one() {
        let line = fit(&[seen(1, 100.0), seen(2, 198.0), seen(3, 301.0)]).unwrap();
        assert!(line.knee.is_none());
        let flat = fit(&[seen(1, 100.0), seen(2, 101.0), seen(3, 99.0)]).unwrap();
        assert_eq!(flat.knee.unwrap().nodes, 1);
        assert!(fit(&[seen(2, 1.0)]).is_none());
        assert!(fit(&[seen(1, 1.0), seen(2, 0.0)]).is_none());
    }

    proptest! {
        /// With noise of 3% the knee is right to one node.
        #[test]
        fn noise_moves_the_knee_by_one_at_most(
            node in 10.0..1e9, knee in 1.2f64..7.0, noise in prop::collection::vec(-0.03..0.03, 8),
        ) {
            let rates: Vec<Observation> = (1..=8u32)
                .zip(noise)
                .map(|(nodes, noise)| seen(nodes, node * f64::from(nodes).min(knee) * (1.0 + noise)))
                .collect();
            let found = fit(&rates).unwrap().knee.unwrap();
            prop_assert!((f64::from(found.nodes) - knee.ceil()).abs() <= 1.0, "{found:?}");
        }
    }
}
