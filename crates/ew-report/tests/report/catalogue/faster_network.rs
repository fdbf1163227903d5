//! Faster networks that lay idle.

use super::{golden, host};
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{FasterNetwork, InterfaceRate};

#[test]
fn of_one_host_and_of_several() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let of = |hosts: &[HostId]| Details::FasterNetwork(faster_network(hosts));
    vec![
        ("one host", of(&[host(1, 1)])),
        ("two hosts", of(&[host(1, 1), host(2, 1)])),
    ]
}

fn faster_network(hosts: &[HostId]) -> FasterNetwork {
    let at = |interface: &str, bits_per_sec| InterfaceRate {
        interface: interface.into(),
        bits_per_sec,
    };
    FasterNetwork {
        hosts: hosts.to_vec(),
        measured: at("eno1", 1e9),
        faster: at("ens3f0", 25e9),
        idle_share: 0.01,
    }
}
