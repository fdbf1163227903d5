//! What is typical of retransmissions in a run.

use super::obs::Obs;
use crate::stats::median;

/// Spread of the logarithm of retransmitted shares on one lossy way, and the min spread of
/// typical ones.
pub(super) const SPREAD: f64 = 0.8;
/// Keeps the logarithm of no loss finite.
pub(super) const NO_LOSS: f64 = 1e-5;

/// Isolated flows, and what is typical of their retransmissions.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Indices in [`super::rounds::Rounds::obs`].
    pub(super) isolated: Vec<usize>,
    pub(super) usual_log: f64,
    pub(super) spread: f64,
    pub(super) typical_share: f64,
}

impl Index {
    pub(super) fn new(obs: &[Obs], isolated: Vec<usize>) -> Self {
        let shares: Vec<f64> = isolated
            .iter()
            .filter_map(|at| obs[*at].retransmitted_share)
            .collect();
        let logs: Vec<f64> = shares.iter().map(|share| (share + NO_LOSS).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let squares = logs
            .iter()
            .map(|log| (log - mean) * (log - mean))
            .sum::<f64>();
        Self {
            isolated,
            usual_log: median(&logs).unwrap_or(NO_LOSS.ln()),
            spread: (squares / logs.len().max(1) as f64).sqrt().max(SPREAD),
            typical_share: median(&shares).unwrap_or(0.0),
        }
    }

    /// Median share of segments that isolated flows retransmit.
    pub(super) fn typical_share(&self) -> f64 {
        self.typical_share
    }
}
