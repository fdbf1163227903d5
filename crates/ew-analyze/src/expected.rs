//! Max-min fair rates per flow, from the flows that actually ran together.

use crate::ceiling;
use ew_evidence::basis::Reference;
use ew_evidence::flow_pace;
use ew_evidence::observations::{Observations, RoundView};
use ew_fit::Network;
use ew_model::analysis::StageCeiling;
use ew_plan::expectation::{Bottleneck, Capacities, Share, max_min};
use std::collections::BTreeMap;

/// Expectations by stage, round and flow, in the order of the observations.
#[derive(Debug)]
pub(crate) struct Expected {
    /// With every host healthy and the paths as measured. `None` when no reference is known.
    healthy: Option<Vec<Vec<Vec<Share>>>>,
    /// Per stage, what the hosts' links alone would carry.
    ceilings: Vec<Option<StageCeiling>>,
}

impl Expected {
    pub(crate) fn new(
        observations: &Observations<'_>,
        reference: &Reference,
        network: &Network,
    ) -> Self {
        let hosts = observations.inventory().hosts.len();
        let several_classes = network.classes.len() > 1;
        let healthy = reference.goodput_bits_per_sec.map(|goodput| {
            let of_host = |host| network.class_rate(host).filter(|_| several_classes);
            let capacities = network.healthy(hosts, |host| of_host(host).unwrap_or(goodput));
            shares(observations, &capacities)
        });
        Self {
            healthy,
            ceilings: ceiling::ceilings(observations, reference),
        }
    }

    /// A stage against what its hosts' links alone would carry.
    pub(crate) fn ceiling(&self, stage: usize) -> Option<StageCeiling> {
        *self.ceilings.get(stage)?
    }

    /// The shares of a round's flows among reference hosts, none above its pace. `None` for stages
    /// that are compared with nothing.
    pub(crate) fn of_round(&self, stage: usize, round: usize) -> Option<&[Share]> {
        Some(self.healthy.as_ref()?.get(stage)?.get(round)?.as_slice())
    }

    /// Measured over expected per flow of a round. Flows that share a bottleneck all get the
    /// quotient of the sums over it: how TCP splits a bottleneck among them shows nothing about the
    /// network.
    pub(crate) fn ratios(&self, stage: usize, index: usize, round: &RoundView<'_>) -> Vec<f64> {
        let Some(shares) = self.of_round(stage, index) else {
            return Vec::new();
        };
        let mut sums: BTreeMap<Bottleneck, (f64, f64)> = BTreeMap::new();
        for ((_, rate), share) in round.rates().zip(shares) {
            let sum = sums.entry(share.bottleneck).or_default();
            sum.0 += rate;
            sum.1 += share.bits_per_sec;
        }
        shares
            .iter()
            .filter_map(|share| sums.get(&share.bottleneck))
            .filter(|(_, expected)| *expected > 0.0)
            .map(|(measured, expected)| measured / expected)
            .collect()
    }
}

fn shares(observations: &Observations<'_>, capacities: &Capacities) -> Vec<Vec<Vec<Share>>> {
    let inventory = observations.inventory();
    observations
        .stages
        .iter()
        .map(|stage| {
            let pace = flow_pace(&stage.stage.workload);
            let rounds = stage
                .rounds
                .iter()
                .filter(|_| stage.judged || pace.is_some());
            rounds
                .map(|round| {
                    let mut shares = max_min(&round.flows, inventory, capacities);
                    for share in &mut shares {
                        share.bits_per_sec = share.bits_per_sec.min(pace.unwrap_or(f64::INFINITY));
                    }
                    shares
                })
                .collect()
        })
        .collect()
}
