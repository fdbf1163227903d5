//! Ordered pairs: what each could do and did.

use crate::expected::Expected;
use ew_evidence::observations::{MissingFlow, Observations, StageView};
use ew_model::HostId;
use ew_model::analysis::{HostPair, PairMap};
use ew_model::scenario::Pattern;
use ew_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// What was measured of one pair.
#[derive(Debug, Default)]
struct Gathered {
    rates: Vec<f64>,
    expected: Vec<f64>,
    retransmits: Option<u64>,
    rtt_us: Vec<f64>,
    missing: Option<String>,
}

/// The host pairs and the name of the stage they come from: of the capacity tests, else of all with
/// rates, the mesh, else the stage without shared hosts that covers most pairs, else the one that
/// covers most pairs.
pub(crate) fn host_pairs(
    observations: &Observations<'_>,
    expected: &Expected,
) -> (Option<String>, Vec<HostPair>) {
    let Some((index, stage)) = chosen(observations) else {
        return (None, Vec::new());
    };
    (
        Some(stage.stage.name.clone()),
        of_stage(index, stage, expected),
    )
}

/// The host pairs of the other stages with rates, in order.
pub(crate) fn other_maps(observations: &Observations<'_>, expected: &Expected) -> Vec<PairMap> {
    let first = chosen(observations).map(|(index, _)| index);
    let stages = observations.stages.iter().enumerate();
    stages
        .filter(|(index, stage)| stage.is_bulk() && Some(*index) != first)
        .map(|(index, stage)| PairMap {
            stage: index as u32,
            host_pairs: of_stage(index, stage, expected),
        })
        .filter(|map| {
            map.host_pairs
                .iter()
                .any(|host_pair| host_pair.bits_per_sec.is_some())
        })
        .collect()
}

fn of_stage(index: usize, stage: &StageView<'_>, expected: &Expected) -> Vec<HostPair> {
    let mut pairs: BTreeMap<(HostId, HostId), Gathered> = BTreeMap::new();
    for flow in stage.stage.rounds.iter().flat_map(|round| &round.flows) {
        pairs.entry((flow.src, flow.dst)).or_default();
    }
    for (at, round) in stage.rounds.iter().enumerate() {
        let shares = expected.of_round(index, at);
        for (slot, (row, rate)) in round.rates().enumerate() {
            let host_pair = pairs.entry((row.src, row.dst)).or_default();
            host_pair.rates.push(rate);
            let share = shares.and_then(|shares| shares.get(slot));
            host_pair
                .expected
                .extend(share.map(|share| share.bits_per_sec));
            if let Some(count) = row.retransmits() {
                *host_pair.retransmits.get_or_insert(0) += count;
            }
            let streams = row.sender.iter().flat_map(|end| &end.streams);
            host_pair.rtt_us.extend(
                streams
                    .filter_map(|s| s.tcp_info)
                    .map(|info| f64::from(info.rtt_us)),
            );
        }
    }
    for MissingFlow {
        src, dst, reason, ..
    } in &stage.missing
    {
        pairs.entry((*src, *dst)).or_default().missing = Some(reason.clone());
    }
    pairs
        .into_iter()
        .map(|((src, dst), gathered)| host_pair(src, dst, gathered))
        .collect()
}

fn host_pair(src: HostId, dst: HostId, gathered: Gathered) -> HostPair {
    let bits_per_sec = median(&gathered.rates);
    HostPair {
        src,
        dst,
        bits_per_sec,
        expected_bits_per_sec: median(&gathered.expected),
        samples: gathered.rates.len() as u32,
        retransmits: gathered.retransmits,
        rtt_us: median(&gathered.rtt_us).map(|us| us.round() as u32),
        missing: gathered.missing.filter(|_| bits_per_sec.is_none()),
    }
}

fn chosen<'o, 'a>(observations: &'o Observations<'a>) -> Option<(usize, &'o StageView<'a>)> {
    observations
        .stages
        .iter()
        .enumerate()
        .filter(|(_, stage)| stage.is_bulk() && !stage.has_aggressors())
        .max_by_key(|(index, stage)| {
            let is_mesh = matches!(stage.stage.pattern, Pattern::Mesh { .. });
            (
                stage.judged,
                is_mesh,
                is_single(stage),
                pair_count(stage),
                std::cmp::Reverse(*index),
            )
        })
}

/// Whether no host ever has two flows in one direction.
fn is_single(stage: &StageView<'_>) -> bool {
    stage.stage.rounds.iter().all(|round| {
        let mut sending = BTreeSet::new();
        let mut receiving = BTreeSet::new();
        round
            .flows
            .iter()
            .all(|flow| sending.insert(flow.src) && receiving.insert(flow.dst))
    })
}

fn pair_count(stage: &StageView<'_>) -> usize {
    let flows = stage.stage.rounds.iter().flat_map(|round| &round.flows);
    flows
        .map(|flow| (flow.src, flow.dst))
        .collect::<BTreeSet<_>>()
        .len()
}
