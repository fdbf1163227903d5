//! The rates of a host's sides and of its peers.

use super::case::Case;
use ew_fit::{Side, SlowSide};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::details::{Directions, PeersRate, SideRate, SideRates, StageRate};
use std::collections::{BTreeMap, BTreeSet};

/// What the other hosts of its class do.
pub(super) fn peers_rate(case: &Case<'_>, host: HostId) -> Option<Estimate> {
    let classes = case.network.classes.iter();
    let own = classes
        .filter(|(_, hosts)| hosts.contains(&host))
        .map(|(rate, _)| *rate);
    own.chain(case.network.typical).next()
}

/// The host's isolated flows on its slow sides, and the peers' figure.
pub(super) fn side_rates(case: &Case<'_>, host: HostId) -> SideRates {
    let network = case.network;
    let sides = [Side::Tx(host), Side::Rx(host)].into_iter();
    SideRates {
        host,
        sides: sides
            .filter_map(|side| Some(one_side(case, side, network.slow.get(&side)?)))
            .collect(),
        peers: peers_rate(case, host).map(|typical| PeersRate {
            median_bits_per_sec: typical.value,
            hosts: typical.samples,
            stages: isolated_stages(case),
        }),
    }
}

fn isolated_stages(case: &Case<'_>) -> Vec<String> {
    let stages: BTreeSet<usize> = case
        .network
        .isolated
        .iter()
        .map(|flow| flow.stage)
        .collect();
    let names = stages.iter().map(|stage| stage_name(case, *stage));
    names.collect()
}

fn one_side(case: &Case<'_>, side: Side, slow: &SlowSide) -> SideRate {
    let of_stage = |(stage, rates): (&usize, &Vec<f64>)| {
        Some(StageRate {
            stage: stage_name(case, *stage),
            median_bits_per_sec: ew_stats::median(rates)?,
            flows: rates.len(),
        })
    };
    SideRate {
        direction: match side {
            Side::Tx(_) => Directions::Tx,
            Side::Rx(_) => Directions::Rx,
        },
        stages: rates_by_stage(case, side)
            .iter()
            .filter_map(of_stage)
            .collect(),
        peers: slow.partners,
        gain_nats: slow.gain,
    }
}

fn stage_name(case: &Case<'_>, stage: usize) -> String {
    case.observations.stages[stage].stage.name.clone()
}

fn rates_by_stage(case: &Case<'_>, side: Side) -> BTreeMap<usize, Vec<f64>> {
    let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for flow in case.network.isolated.iter().filter(|flow| flow.is_of(side)) {
        rates.entry(flow.stage).or_default().push(flow.bits_per_sec);
    }
    rates
}
