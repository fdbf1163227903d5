//! What is typical of retransmissions in a run.

use super::obs::Obs;
use ew_evidence::criteria::MIN_SEEN;
use ew_stats::median;

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
        let all: Vec<&Obs> = isolated.iter().map(|at| &obs[*at]).collect();
        let (inside, crossing): (Vec<&Obs>, Vec<&Obs>) =
            all.iter().partition(|obs| obs.racks.is_none());
        // Of few racks the uplinks may lose on most ways: what loses less is typical.
        let groups = [inside, crossing].map(|flows| shares_of(&flows));
        let shares = (groups.into_iter())
            .filter(|shares| shares.len() >= MIN_SEEN)
            .min_by(|a, b| typical_of(a).total_cmp(&typical_of(b)))
            .unwrap_or_else(|| shares_of(&all));
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
            typical_share: typical_of(&shares),
        }
    }

    /// Median share of segments that isolated flows retransmit, intra-rack or cross-rack.
    pub(super) fn typical_share(&self) -> f64 {
        self.typical_share
    }
}

fn typical_of(shares: &[f64]) -> f64 {
    median(shares).unwrap_or(0.0)
}

fn shares_of(flows: &[&Obs]) -> Vec<f64> {
    let shares = flows.iter().filter_map(|obs| obs.retransmitted_share);
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;

    fn flow(racks: Option<(usize, usize)>, retransmitted_share: f64) -> Obs {
        Obs {
            src: HostId(0),
            dst: HostId(1),
            racks,
            bits_per_sec: 1e9,
            ln_rate: 1e9_f64.ln(),
            starvation: 0.0,
            doubt: 0.0,
            streams: 1.0,
            pace_bits_per_sec: f64::INFINITY,
            asks_what_it_got: false,
            retransmitted_share: Some(retransmitted_share),
            is_steady: true,
        }
    }

    #[test]
    fn of_two_racks_a_lossy_uplink_is_not_typical() {
        let inside = [0.0, 0.0, 0.001].map(|share| flow(None, share));
        let crossing = [0.02, 0.03, 0.02, 0.01, 0.03].map(|share| flow(Some((0, 1)), share));
        let obs = [&inside[..], &crossing].concat();
        let index = Index::new(&obs, (0..obs.len()).collect());
        assert!(index.typical_share() < 1e-9);
        // Two intra-rack flows say nothing of what is typical.
        let index = Index::new(&obs, (1..obs.len()).collect());
        assert!((index.typical_share() - 0.02).abs() < 1e-9);
    }
}
