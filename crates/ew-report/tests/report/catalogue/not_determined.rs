//! What nothing explains.

use super::{golden, host};
use ew_model::finding::Details;
use ew_model::finding::details::{
    FlowsUnexplained, NoCpuLeft, StageBelow, UnexplainedHost, UnexplainedPair,
};

#[test]
fn of_flows_and_of_stages() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let below = |rounds, cpu| {
        Details::StageBelow(StageBelow {
            stage: "mesh".into(),
            reached_share: 0.715,
            explained_share: 0.734,
            rounds,
            cpu,
        })
    };
    let busy_share = 0.974;
    let starved = |starved_flows, flows| NoCpuLeft::Starvation {
        starved_flows,
        flows,
    };
    vec![
        ("one flow", Details::FlowsUnexplained(unexplained(1, 1))),
        ("three pairs", Details::FlowsUnexplained(unexplained(3, 2))),
        ("many pairs", Details::FlowsUnexplained(unexplained(12, 2))),
        ("a stage, open, one round", below(1, None)),
        ("a stage, open", below(6, None)),
        (
            "a stage, senders busy",
            below(6, Some(NoCpuLeft::BusySenders { busy_share })),
        ),
        (
            "a stage, receivers busy",
            below(6, Some(NoCpuLeft::BusyReceivers { busy_share })),
        ),
        (
            "a stage, the only flow starved",
            below(1, Some(starved(1, 1))),
        ),
        ("a stage, flows starved", below(6, Some(starved(40, 56)))),
    ]
}

fn unexplained(pair_count: usize, flows_of_each: usize) -> FlowsUnexplained {
    let pair = |number: usize| UnexplainedPair {
        src: host(1, number as u32 % 4 + 1),
        dst: host(2, number as u32 / 4 + 1),
        flows: flows_of_each,
        bits_per_sec: 61e6 + 1e6 * number as f64,
        expected_bits_per_sec: 94.6e6,
    };
    let hosts = [(host(2, 1), 4 * flows_of_each), (host(1, 1), flows_of_each)];
    FlowsUnexplained {
        flows: pair_count * flows_of_each,
        pair_count,
        pairs: (0..pair_count.min(8)).map(pair).collect(),
        worst_share: 61e6 / 94.6e6,
        hosts: hosts
            .map(|(host, flows)| UnexplainedHost { host, flows })
            .to_vec(),
    }
}
