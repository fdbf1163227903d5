//! Pods: racks that are nearer to one another than to the rest, which they share links to.

use super::fitted::Fitted;
use super::hypothesis::{Direction, Effect, Hypothesis, Location, Part};
use super::rounds::Rounds;
use super::search::Search;
use super::sums::{ABOVE, OWN_QUANTILES, SUM_QUANTILES, sums};
use super::uplinks::{self, Limiting, Tier};
use ew_stats::quantile;
use std::f64::consts::TAU;

/// One direction of a pod's links that limits its racks.
#[derive(Clone, Debug)]
pub struct PodLimit {
    /// By index.
    pub racks: Vec<usize>,
    /// The racks of the other pod where there are two: its links, the other way, explain the same
    /// flows.
    pub other: Option<Vec<usize>>,
    /// Out of the pod, or into it.
    pub direction: Direction,
    /// What they carry.
    pub limiting: Limiting,
}

/// All pods tied alike, at the best of a few values; as many parts as pods.
pub(super) fn alike(search: &mut Search<'_>, hosts: &Hypothesis) -> Option<Hypothesis> {
    let rounds = search.rounds;
    let pods = rounds.paths.pods();
    let all = sums(rounds, |racks| Some(rounds.paths.pods_between(racks)?.0));
    let all: Vec<f64> = all.into_values().flatten().collect();
    let values = SUM_QUANTILES
        .iter()
        .filter_map(|share| quantile(&all, *share));
    let tied = values.map(|value| {
        let mut tied = hosts.clone();
        tied.parts
            .extend((0..pods).map(|pod| limit(pod, Direction::Both, ABOVE * value)));
        tied
    });
    let scored: Vec<(f64, Hypothesis)> = tied.map(|one| (search.score(&one), one)).collect();
    let best = scored.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, best)| best)
}

fn limit(pod: usize, direction: Direction, bits_per_sec: f64) -> Part {
    Part {
        location: Location::Pod(pod, direction),
        effect: Effect::Capacity(bits_per_sec),
    }
}

/// Limits of single pods that may explain what is low.
pub(super) fn candidates(rounds: &Rounds, hypothesis: &Hypothesis) -> Vec<Part> {
    let between = |racks| rounds.paths.pods_between(racks);
    let out = sums(rounds, |racks| Some(between(racks)?.0));
    let into = sums(rounds, |racks| Some(between(racks)?.1));
    let is_limited = |pod: usize| {
        let mut parts = hypothesis.parts.iter();
        parts.any(|part| matches!(part.location, Location::Pod(other, _) if other == pod))
    };
    let mut parts = Vec::new();
    for pod in (0..rounds.paths.pods()).filter(|pod| !is_limited(*pod)) {
        for (direction, sums) in [
            (Direction::Tx, &out),
            (Direction::Rx, &into),
            (Direction::Both, &out),
        ] {
            let own = sums.get(&pod).into_iter();
            let values = own.flat_map(|sums| OWN_QUANTILES.map(|share| quantile(sums, share)));
            parts.extend(
                values
                    .flatten()
                    .map(|value| limit(pod, direction, ABOVE * value)),
            );
        }
    }
    parts
}

/// Every pod, every direction.
pub(super) fn rivals(rounds: &Rounds) -> Vec<Location> {
    let pods = 0..rounds.paths.pods();
    let all = [Direction::Tx, Direction::Rx, Direction::Both];
    pods.flat_map(|pod| all.map(|direction| Location::Pod(pod, direction)))
        .collect()
}

/// The directions of pods that limit their racks.
pub(super) fn limits(fitted: &Fitted<'_>) -> Vec<PodLimit> {
    let pods = 0..fitted.rounds.paths.pods();
    pods.flat_map(|pod| [0, 1].map(|index| of_direction(fitted, pod, index)))
        .flatten()
        .collect()
}

fn of_direction(fitted: &Fitted<'_>, pod: usize, index: usize) -> Option<PodLimit> {
    let paths = &fitted.rounds.paths;
    let racks_of = |pod: usize| -> Vec<usize> {
        let racks = paths.pod_of.iter().enumerate();
        let own = racks.filter(|(_, other)| **other == pod);
        own.map(|(rack, _)| rack).collect()
    };
    let racks = racks_of(pod);
    let hosts: usize = racks
        .iter()
        .map(|rack| fitted.rounds.hosts_in(*rack).count())
        .sum();
    let left = |connections: f64| left_by_hashes(connections, hosts as f64);
    let tier = Tier::Pod(pod, racks.clone());
    let limiting = uplinks::limiting(fitted, &tier, index, left)?;
    let is_refuted = tier.exceeds(fitted, index, limiting.capacity.value)
        || tier.may_be_left_by_loss(fitted, index);
    (!is_refuted).then(|| PodLimit {
        racks,
        other: (paths.pods() == 2).then(|| racks_of(1 - pod)),
        direction: [Direction::Tx, Direction::Rx][index],
        limiting,
    })
}

/// Part of what connections ask of parallel links that they carry, if no link is narrower than a
/// host and the links together carry all of it: what is above the mean on one is below it on
/// others. Half the mean deviation of a binomial count over its mean, normally approximated.
fn left_by_hashes(connections: f64, links: f64) -> f64 {
    1.0 - ((links - 1.0) / (TAU * connections)).sqrt().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::left_by_hashes;

    #[test]
    fn hashes_leave_as_much_as_counts_spread() {
        // 32 connections over 4 links, thrown 100,000 times: 87.9% of the links' places are taken.
        assert!((left_by_hashes(32.0, 4.0) - 0.879).abs() < 0.01);
        assert!((left_by_hashes(32.0, 1.0) - 1.0).abs() < f64::EPSILON);
        assert!(left_by_hashes(1.0, 64.0) < 0.01);
    }
}
