//! Hosts below the NIC rate that was configured.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::details::BelowConfiguredNic;
use ew_model::finding::{Details, Evidence, Worded};

#[test]
fn one_some_and_all() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let all: Vec<HostId> = (1..=4).flat_map(|h| [host(1, h), host(2, h)]).collect();
    let of = |hosts: &[HostId]| Details::BelowConfiguredNic(below(hosts));
    let limited = BelowConfiguredNic {
        limit: Some(limit()),
        ..below(&all)
    };
    vec![
        ("one host", of(&all[..1])),
        ("two hosts", of(&all[..2])),
        ("all hosts", of(&all)),
        (
            "all hosts, limited alike",
            Details::BelowConfiguredNic(limited),
        ),
    ]
}

fn below(hosts: &[HostId]) -> BelowConfiguredNic {
    BelowConfiguredNic {
        hosts: hosts.to_vec(),
        bits_per_sec: 2.31e9,
        configured_bits_per_sec: 10e9,
        goodput_bits_per_sec: 9.41e9,
        limit: None,
    }
}

fn limit() -> Worded {
    Worded {
        sentence: "Cause: one core per connection saturated".into(),
        evidence: vec![Evidence {
            text: "I/O threads: median 98% of a CPU per connection".into(),
            source: "flows.parquet: tx_cpu_engine_ns and rx_cpu_engine_ns over the window".into(),
        }],
        hint: "use more connections (`--set streams=8`), so that more cores share the work".into(),
    }
}
