//! Flows without a figure.

use super::{golden, host};
use ew_model::analysis::ConntrackRefusals;
use ew_model::finding::Details;
use ew_model::finding::details::{
    FlowsMissing, MissingWith, RefusingHost, StageMissing, StagesMissing,
};

#[test]
fn of_one_and_of_many_and_of_an_interrupted_run() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let cases = [
        ("one flow of a pair", of_a_pair()),
        ("flows of a pair and with missing hosts", with_hosts()),
        ("of many pairs", of_many()),
        ("interrupted, and all reasons", interrupted()),
        (
            "interrupted before the only flow",
            FlowsMissing {
                is_interrupted: true,
                planned: 1,
                ..of_a_pair()
            },
        ),
    ];
    cases
        .map(|(case, found)| (case, Details::FlowsMissing(found)))
        .to_vec()
}

fn pair(src: u32, dst: u32) -> MissingWith {
    MissingWith::Pair {
        src: host(1, src),
        dst: host(2, dst),
    }
}

fn of_a_pair() -> FlowsMissing {
    FlowsMissing {
        missing: 1,
        planned: 56,
        is_interrupted: false,
        named: vec![pair(2, 1)],
        to_name: 1,
        stages: vec![StageMissing {
            stage: "mesh".into(),
            missing: 1,
            planned: 56,
            reason: "connection refused".into(),
        }],
        empty_stages: Vec::new(),
        refusing: Vec::new(),
        barriers: Vec::new(),
    }
}

fn with_hosts() -> FlowsMissing {
    let with = |rack, number, flows| MissingWith::Host {
        host: host(rack, number),
        flows,
    };
    FlowsMissing {
        missing: 27,
        named: vec![pair(2, 1), with(1, 4, 12), with(2, 4, 14)],
        to_name: 3,
        ..of_a_pair()
    }
}

fn of_many() -> FlowsMissing {
    FlowsMissing {
        missing: 40,
        named: (1..=4).flat_map(|n| [pair(n, 1), pair(n, 2)]).collect(),
        to_name: 16,
        ..of_a_pair()
    }
}

fn interrupted() -> FlowsMissing {
    let refusing = |host, max_entries| RefusingHost {
        host,
        refused: ConntrackRefusals {
            packets: 1200,
            entries: 65_000,
            max_entries,
        },
    };
    FlowsMissing {
        missing: 81,
        planned: 112,
        is_interrupted: true,
        empty_stages: vec![StagesMissing {
            stages: vec!["incast".into(), "bisection".into()],
            reason: "the run was interrupted".into(),
        }],
        refusing: vec![
            refusing(host(1, 1), Some(65_536)),
            refusing(host(1, 2), None),
        ],
        barriers: vec!["NetworkPolicy `deny-all` selects the pods; allow them".into()],
        ..of_a_pair()
    }
}
