//! Racks that nobody named, guessed from simulated runs whose racks are known.

use ew_analyze::racks::{RackEvidence, RackGuess, guess};
use ew_model::inventory::{HostId, Inventory};
use ew_model::topology::{HostSpec, PathSpec, RackSpec, Topology};
use ew_sim::{Noise, simulate};
use std::collections::BTreeMap;

const NIC: u64 = 1_000_000_000;

fn topology(racks: usize, hosts: usize, ratio: u64) -> Topology {
    let rack = |number: usize| RackSpec {
        name: format!("r{number}"),
        hosts: (1..=hosts)
            .map(|host| HostSpec::healthy(&format!("r{number}h{host}"), NIC))
            .collect(),
        paths: vec![PathSpec::healthy(NIC * hosts as u64 / ratio / 2); 2],
        ..RackSpec::default()
    };
    Topology {
        racks: (1..=racks).map(rack).collect(),
        ..Topology::default()
    }
}

/// Racks and agreement from rates, by who knows no racks.
fn guessed(topology: &Topology, samples: u32, seed: u64) -> Option<(Vec<usize>, f64)> {
    let text = format!(
        "name: x\ndefaults: {{samples: {samples}, streams: 8}}\ntests:\n  - {{name: all, pattern: permutation}}\n"
    );
    let found = guessed_by(&text, topology, seed, &Noise::default())?;
    assert_eq!(found.evidence, RackEvidence::Rates);
    Some((groups(&found), found.agreement))
}

fn guessed_by(text: &str, topology: &Topology, seed: u64, noise: &Noise) -> Option<RackGuess> {
    let scenario = ew_plan::scenario::parse(text, "test.yaml", &[]).expect("a scenario");
    let blind = Inventory {
        racks: Vec::new(),
        hosts: (topology.inventory().hosts.into_iter())
            .map(|host| ew_model::Host { rack: None, ..host })
            .collect(),
    };
    let plan = ew_plan::plan(&scenario, &blind, seed).expect("a plan");
    let mut run = simulate(topology, &plan, seed, noise);
    run.manifest.inventory = blind;
    guess(&run)
}

/// By host, the number of its rack.
fn groups(found: &RackGuess) -> Vec<usize> {
    let mut groups = vec![0; found.racks.iter().map(Vec::len).sum()];
    for (number, rack) in found.racks.iter().enumerate() {
        rack.iter()
            .for_each(|host: &HostId| groups[host.index()] = number);
    }
    groups
}

/// Adjusted Rand index (Hubert and Arabie, 1985): 1 for the same division, about 0 for a random
/// one.
fn adjusted_rand_index(a: &[usize], b: &[usize]) -> f64 {
    let pairs = |count: usize| (count * count.saturating_sub(1)) as f64 / 2.0;
    let sum = |keys: Vec<(usize, usize)>| {
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        keys.into_iter()
            .for_each(|key| *counts.entry(key).or_default() += 1);
        counts.values().map(|count| pairs(*count)).sum::<f64>()
    };
    let both = sum(a.iter().copied().zip(b.iter().copied()).collect());
    let of_a = sum(a.iter().map(|group| (*group, 0)).collect());
    let of_b = sum(b.iter().map(|group| (*group, 0)).collect());
    let chance = of_a * of_b / pairs(a.len());
    (both - chance) / (f64::midpoint(of_a, of_b) - chance)
}

fn truth(racks: usize, hosts: usize) -> Vec<usize> {
    (0..racks * hosts).map(|host| host / hosts).collect()
}

#[test]
fn ten_racks_of_ten_at_4_to_1_are_found() {
    let topology = topology(10, 10, 4);
    for seed in 1..=5 {
        let (groups, agreement) = guessed(&topology, 40, seed).expect("a guess");
        let index = adjusted_rand_index(&truth(10, 10), &groups);
        println!("seed {seed}: adjusted Rand index {index:.3}, agreement {agreement:.3}");
        assert!(index >= 0.95, "seed {seed}: {index:.3}");
        assert!(agreement >= 0.95, "seed {seed}: {agreement:.3}");
    }
}

#[test]
fn three_racks_of_three_are_right_in_nine_of_ten() {
    let topology = topology(3, 3, 3);
    let right = (1..=10).filter(|seed| {
        let found = guessed(&topology, 24, *seed);
        found.is_some_and(|(groups, _)| adjusted_rand_index(&truth(3, 3), &groups) > 0.999)
    });
    let right = right.count();
    assert!(right >= 9, "{right} of 10");
}

#[test]
fn where_uplinks_limit_nobody_nothing_is_guessed() {
    for seed in 1..=5 {
        let found = guessed(&topology(4, 5, 1), 24, seed);
        let index = found.map(|(groups, _)| adjusted_rand_index(&truth(4, 5), &groups));
        assert_eq!(index, None, "seed {seed}");
    }
}

/// 1:1, where rates are the same for all pairs.
fn guessed_at_1_to_1(workload: &str, racks: usize, seed: u64, level: f64) -> Option<RackGuess> {
    let text = format!(
        "name: x\ntests:\n  - {{name: all, pattern: mesh, workload: {workload}, samples: 1}}\n"
    );
    let noise = Noise {
        level,
        ..Noise::default()
    };
    guessed_by(&text, &topology(racks, 4, 1), seed, &noise)
}

#[test]
fn routers_on_traced_paths_show_racks_of_any_fabric() {
    let found = guessed_at_1_to_1("trace", 3, 1, 1.0).expect("a guess");
    assert_eq!(
        (found.evidence, found.agreement),
        (RackEvidence::Routers, 1.0)
    );
    assert!(adjusted_rand_index(&truth(3, 4), &groups(&found)) > 0.999);
    assert_eq!(guessed_at_1_to_1("trace", 1, 1, 1.0), None, "one rack");
}

#[test]
fn round_trips_show_racks_where_switches_add_more_than_hosts_vary() {
    for seed in 1..=10 {
        let found = guessed_at_1_to_1("tcp-rr", 3, seed, 0.2).expect("a guess");
        assert_eq!(found.evidence, RackEvidence::RoundTrips);
        assert!(adjusted_rand_index(&truth(3, 4), &groups(&found)) > 0.999);
    }
}

#[test]
fn round_trips_that_hosts_vary_more_than_switches_add_show_nothing_wrong() {
    for seed in 1..=50 {
        assert_eq!(guessed_at_1_to_1("tcp-rr", 1, seed, 1.0), None, "{seed}");
        if let Some(found) = guessed_at_1_to_1("tcp-rr", 3, seed, 3.0) {
            let index = adjusted_rand_index(&truth(3, 4), &groups(&found));
            assert!(index > 0.999, "seed {seed}: {index:.3}");
        }
    }
}
