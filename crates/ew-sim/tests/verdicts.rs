//! What the analysis makes of drawn networks: a few seeds of each promise. Rates over many seeds: the example `accuracy`.

use ew_model::Analysis;
use ew_sim::{Case, Family, Fault, MemberFault, UniformCause, draw, judge, simulate};

fn qualify(seed: u64, case: &Case) -> Analysis {
    let text = ew_plan::scenario::builtin("qualify").expect("a built-in");
    let scenario = ew_plan::scenario::parse(text, "qualify", &[]).expect("a scenario");
    let plan = ew_plan::plan(&scenario, &case.topology.inventory(), seed).expect("a plan");
    ew_analyze::analyze(&simulate(&case.topology, &plan, seed, &case.noise))
}

/// The first seeds from 2001 on whose network has what is wanted.
fn drawn(family: Family, count: usize, is_wanted: impl Fn(&Fault) -> bool) -> Vec<(u64, Case)> {
    let cases = (2001..).map(|seed| (seed, draw(seed, family)));
    let wanted = cases.filter(|(_, case)| case.truth.faults.iter().any(&is_wanted));
    wanted.take(count).collect()
}

/// Asks one question of [`judge`] of every network.
fn assert_all_pass(question: &str, cases: &[(u64, Case)]) {
    for (seed, case) in cases {
        let judged = judge(&case.truth, &qualify(*seed, case));
        let axes = case.truth.axes.join(", ");
        let is_right = judged.checks.contains(&(question, true));
        assert!(is_right, "seed {seed}: {axes}: {:?}", judged.wrong);
    }
}

#[test]
fn black_holes_are_named() {
    let cases = drawn(Family::BadMember, 12, |fault| {
        let black_hole = MemberFault::BlackHole;
        matches!(fault, Fault::Member { kind, .. } if *kind == black_hole)
    });
    assert_all_pass("rack of the member named", &cases);
    assert_all_pass("no false accusation", &cases);
}

#[test]
fn a_cpu_quota_of_all_hosts_is_named() {
    let cases = drawn(Family::UniformlySlow, 6, |fault| {
        let quota = UniformCause::CpuQuota;
        matches!(fault, Fault::Uniform { cause } if *cause == quota)
    });
    assert_all_pass("cause of uniform slowness", &cases);
}

/// The bar is one in a hundred over 2,000; see docs/benchmarks.md.
#[test]
fn healthy_networks_accuse_hardly_ever() {
    let accusing = (2001..=2040)
        .filter(|seed| {
            let case = draw(*seed, Family::Healthy);
            !judge(&case.truth, &qualify(*seed, &case)).is_right()
        })
        .count();
    assert!(accusing <= 2, "{accusing} of 40");
}
