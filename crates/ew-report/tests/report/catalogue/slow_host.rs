//! Hosts that are slower than their peers.

use super::why::reason;
use super::{golden, host};
use ew_model::RackId;
use ew_model::finding::Details;
use ew_model::finding::details::{
    Directions, PeersRate, SideRate, SideRates, SlowDirection, SlowHost, StageRate,
};

#[test]
fn on_each_side_and_on_both() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let (tx, rx) = ((Directions::Tx, 47.3e6), (Directions::Rx, 23.6e6));
    let explained = SlowHost {
        why: Some(reason("CPU quota")),
        ..slow(&[rx])
    };
    let alone = SlowHost {
        alone_in: Some(RackId(0)),
        ..slow(&[tx])
    };
    vec![
        ("it sends slowly", Details::SlowHost(slow(&[tx]))),
        ("it receives slowly", Details::SlowHost(slow(&[rx]))),
        (
            "both sides alike",
            Details::SlowHost(slow(&[(Directions::Both, 47.3e6)])),
        ),
        ("both sides", Details::SlowHost(slow(&[tx, rx]))),
        ("it is known why", Details::SlowHost(explained)),
        ("its rack has no other host", Details::SlowHost(alone)),
        ("without flows", Details::SlowHost(without_flows())),
        ("without peers", Details::SlowHost(without_peers())),
    ]
}

/// Its peers' rate is known from flows that were not isolated.
fn without_peers() -> SlowHost {
    let mut slow = slow(&[(Directions::Tx, 47.3e6)]);
    slow.flows.peers = Some(PeersRate {
        median_bits_per_sec: 94.6e6,
        hosts: 0,
        stages: Vec::new(),
    });
    slow
}

/// One that sends slowly, and nothing is known of its flows.
pub(super) fn without_flows() -> SlowHost {
    SlowHost {
        flows: no_flows(),
        ..slow(&[(Directions::Tx, 47.3e6)])
    }
}

pub(super) fn no_flows() -> SideRates {
    SideRates {
        host: host(1, 2),
        sides: Vec::new(),
        peers: None,
    }
}

/// Flows of these sides, the first in one stage and with one peer.
pub(super) fn of_sides(directions: &[Directions]) -> SideRates {
    let stages = [("intra-rack", 6), ("mesh", 7)].map(|(name, flows)| StageRate {
        stage: name.into(),
        median_bits_per_sec: 47.3e6,
        flows,
    });
    let more = directions
        .iter()
        .skip(1)
        .map(|direction| side(*direction, &stages, 5));
    let mut one_flow = stages[0].clone();
    one_flow.flows = 1;
    SideRates {
        host: host(1, 2),
        sides: std::iter::once(side(directions[0], &[one_flow], 1))
            .chain(more)
            .collect(),
        peers: Some(PeersRate {
            median_bits_per_sec: 94.6e6,
            hosts: if directions.len() == 1 { 1 } else { 7 },
            stages: stages.map(|stage| stage.stage).into(),
        }),
    }
}

fn side(direction: Directions, stages: &[StageRate], peers: u32) -> SideRate {
    SideRate {
        direction,
        stages: stages.to_vec(),
        peers,
        gain_nats: 34.4,
    }
}

fn slow(sides: &[(Directions, f64)]) -> SlowHost {
    let flows = match sides {
        [(Directions::Both, _)] | [_, _] => of_sides(&[Directions::Tx, Directions::Rx]),
        [(one, _), ..] => of_sides(&[*one]),
        [] => no_flows(),
    };
    let sides = sides
        .iter()
        .map(|&(directions, bits_per_sec)| SlowDirection {
            directions,
            bits_per_sec,
        });
    SlowHost {
        host: host(1, 2),
        sides: sides.collect(),
        peers_bits_per_sec: 94.6e6,
        flows,
        why: None,
        alone_in: None,
    }
}
