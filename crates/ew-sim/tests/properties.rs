//! What must never be, whatever the network: properties of the analysis over random networks of
//! all families, and of starved and congested ones.

use ew_model::finding::details::Directions;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, VerdictStatus};
use ew_model::plan::Plan;
use ew_model::topology::{HostSpec, PathSpec, RackSpec, Topology};
use ew_model::{Analysis, HostId, RackId};
use ew_sim::{Case, Family, Fault, MemberFault, Noise, draw, judge, simulate};
use std::collections::BTreeSet;

const SEEDS: std::ops::Range<u64> = 3001..3009;
const OTHER_SCENARIOS: [&str; 8] = [
    "permutation",
    "cross-rack",
    "random-cross-rack",
    "mesh",
    "mesh-loaded",
    "incast",
    "outcast",
    "bisection",
];
const OTHER_SEEDS: std::ops::Range<u64> = 3001..3006;
/// A ratio whose whole interval is above this is a finding.
const A_FINDING: f64 = 1.2;
/// "Not limiting" allows for uplinks of 90% of what hosts do, and for 5% of error.
const NOT_LIMITING: f64 = 1.17;
/// Window edges and buffers.
const MEASUREMENT: f64 = 1.01;

fn qualify(seed: u64, topology: &Topology, noise: &Noise) -> Analysis {
    analyzed("qualify", seed, topology, noise)
}

fn analyzed(name: &str, seed: u64, topology: &Topology, noise: &Noise) -> Analysis {
    let text = ew_plan::scenario::builtin(name).expect("a built-in");
    let scenario = ew_plan::scenario::parse(text, name, &[]).expect("a scenario");
    let plan: Plan = ew_plan::plan(&scenario, &topology.inventory(), seed).expect("a plan");
    ew_analyze::analyze(&simulate(topology, &plan, seed, noise))
}

#[test]
fn nothing_that_must_never_be() {
    for family in Family::ALL {
        for seed in SEEDS {
            let case = draw(seed, family);
            let analysis = qualify(seed, &case.topology, &case.noise);
            let name = format!("{} {seed}: {}", family.name(), case.truth.axes.join(", "));
            proven_ratios_are_findings(&analysis, &name);
            not_limiting_is_true(&case, &analysis, &name);
            no_loss_from_queues(&case, &analysis, &name);
            nothing_above_its_link(&case, &analysis, &name);
            nothing_contradicts(&analysis, &name);
        }
    }
}

/// What a plan shows depends on what it asks: with single connections, without intra-rack flows,
/// or of one receiver at a time, less than `qualify` does. What is not shown accuses nobody, and is
/// not called fine.
#[test]
fn no_scenario_claims_what_it_does_not_show() {
    for scenario in OTHER_SCENARIOS {
        for family in [Family::Healthy, Family::Oversubscribed, Family::SlowHosts] {
            for seed in OTHER_SEEDS {
                let case = draw(seed, family);
                let analysis = analyzed(scenario, seed, &case.topology, &case.noise);
                let judged = judge(&case.truth, &analysis);
                let name = format!("{scenario}, {} {seed}", family.name());
                let accuses = judged.checks.contains(&("no false accusation", false));
                assert!(!accuses, "{name}: {:?}", judged.wrong);
                not_limiting_is_true(&case, &analysis, &name);
            }
        }
    }
}

/// Hosts that are starved in every round show nothing about the network, whatever is wrong with it.
#[test]
fn nobody_is_accused_where_all_hosts_are_starved() {
    let mut noise = Noise::starved();
    noise.starvation.round_share = 1.0;
    for family in [Family::Healthy, Family::Oversubscribed] {
        for seed in SEEDS {
            let case = draw(seed, family);
            let analysis = qualify(seed, &case.topology, &noise);
            let accused = accusing(&analysis).filter(|finding| {
                matches!(finding.subject, Subject::Host { .. } | Subject::Pair { .. })
                    && !matches!(finding.cause, Cause::PairsMissing | Cause::HostMissing)
            });
            let sentences: Vec<String> = accused
                .map(|finding| sentence(&analysis, finding))
                .collect();
            assert!(
                sentences.is_empty(),
                "{} {seed}: {sentences:?}",
                family.name()
            );
        }
    }
}

/// Flows that start when others are half over were not measured together.
#[test]
fn an_invalid_run_says_so_first_and_blames_nobody() {
    let mut noise = Noise::starved();
    noise.starvation.round_share = 1.0;
    noise.starvation.skew_ns = 2_000_000_000;
    for family in [Family::Healthy, Family::SlowHosts] {
        for seed in 3001..3003 {
            let analysis = qualify(seed, &draw(seed, family).topology, &noise);
            let verdict = &analysis.verdict;
            let said = ew_report::in_words(&analysis).sentence;
            assert_eq!(verdict.findings[0].cause, Cause::MeasurementQuality);
            assert_eq!(verdict.status, VerdictStatus::Partial);
            assert!(said.starts_with("measurement invalid"), "{said}");
            let others = accusing(&analysis).skip(1);
            let blamed = others.filter(|finding| finding.cause != Cause::PairsMissing);
            assert_eq!(blamed.count(), 0, "{said}");
        }
    }
}

/// One host has no CPU to spare in any round, and its rates are as good as the others'.
#[test]
fn a_host_that_is_always_starved_is_a_finding_of_its_own() {
    const NIC_BITS_PER_SEC: u64 = 200_000_000;
    let rack = |rack: usize| RackSpec {
        name: format!("r{rack}"),
        hosts: (1..=5)
            .map(|host| HostSpec::healthy(&format!("r{rack}h{host}"), NIC_BITS_PER_SEC))
            .collect(),
        paths: vec![PathSpec::healthy(5 * NIC_BITS_PER_SEC)],
        ..RackSpec::default()
    };
    let mut topology = Topology {
        racks: vec![rack(1), rack(2)],
        ..Topology::default()
    };
    topology.racks[1].hosts[2].cpu_hog_share = Some(0.7);
    let analysis = qualify(5, &topology, &Noise::default());
    let found: Vec<&Finding> = accusing(&analysis).collect();
    assert_eq!(
        found.len(),
        1,
        "{}",
        ew_report::in_words(&analysis).sentence
    );
    assert_eq!(found[0].subject, Subject::Host { host: HostId(7) });
    assert_eq!(found[0].cause, Cause::CoreSaturated);
}

fn accusing(analysis: &Analysis) -> impl Iterator<Item = &Finding> {
    let findings = analysis.verdict.findings.iter();
    findings.filter(|finding| finding.severity > Severity::Info)
}

/// Whether a finding of an uplink is about a rack.
fn concerns(finding: &Finding, rack: RackId) -> bool {
    finding.cause == Cause::Uplink
        && match finding.subject {
            Subject::Rack { rack: named } => named == rack,
            Subject::RackPair { from, to } => from == rack || to == rack,
            _ => true,
        }
}

fn proven_ratios_are_findings(analysis: &Analysis, name: &str) {
    for rack in &analysis.racks {
        for direction in [rack.tx, rack.rx] {
            let low = direction.oversubscription.and_then(|ratio| ratio.low);
            if low.is_some_and(|low| low > A_FINDING) {
                let mut findings = accusing(analysis);
                assert!(
                    findings.any(|finding| concerns(finding, rack.rack)),
                    "{name}: {rack:?} without a finding: {}",
                    ew_report::in_words(analysis).sentence
                );
            }
        }
    }
}

fn not_limiting_is_true(case: &Case, analysis: &Analysis, name: &str) {
    for rack in &analysis.racks {
        let truth = case.truth.ratios[rack.rack.index()];
        for (shown, truth) in [(rack.tx, truth.up), (rack.rx, truth.down)] {
            let is_wrong = shown.limited == Some(false) && truth > NOT_LIMITING;
            assert!(!is_wrong, "{name}: truth {truth}, shown {shown:?}");
        }
    }
}

/// Only a member that loses may be reported to lose.
fn no_loss_from_queues(case: &Case, analysis: &Analysis, name: &str) {
    let is_lossy = |fault: &Fault| matches!(fault, Fault::Member { kind, .. } if matches!(kind, MemberFault::Loss(_) | MemberFault::BlackHole));
    if case.truth.faults.iter().any(is_lossy) {
        return;
    }
    for finding in accusing(analysis) {
        assert!(
            finding.cause != Cause::Loss,
            "{name}: {}",
            sentence(analysis, finding)
        );
    }
}

fn nothing_above_its_link(case: &Case, analysis: &Analysis, name: &str) {
    let fastest = case
        .topology
        .hosts()
        .map(|host| host.nic.tx_bits_per_sec.max(host.nic.rx_bits_per_sec))
        .max()
        .unwrap_or(0) as f64;
    for (host, spec) in analysis.hosts.iter().zip(case.topology.hosts()) {
        for (shown, link) in [
            (host.tx_bits_per_sec, spec.nic.tx_bits_per_sec),
            (host.rx_bits_per_sec, spec.nic.rx_bits_per_sec),
        ] {
            let shown = shown.map_or(0.0, |rate| rate.value);
            assert!(shown <= MEASUREMENT * link as f64, "{name}: {host:?}");
        }
    }
    for stage in analysis.stages.iter().filter(|stage| stage.judged) {
        let flow = stage.fastest_bits_per_sec.unwrap_or(0.0);
        assert!(flow <= MEASUREMENT * fastest, "{name}: {}", stage.name);
    }
    for (rack, spec) in analysis.racks.iter().zip(&case.topology.racks) {
        for (shown, all) in [
            (rack.tx, spec.up_bits_per_sec()),
            (rack.rx, spec.down_bits_per_sec()),
        ] {
            let capacity = shown.capacity_bits_per_sec.map_or(0.0, |c| c.value);
            let carried = shown.carried_bits_per_sec.max(capacity);
            assert!(
                carried <= MEASUREMENT * all as f64,
                "{name}: {shown:?} of {all}"
            );
        }
    }
}

fn nothing_contradicts(analysis: &Analysis, name: &str) {
    let verdict = &analysis.verdict;
    let said = &ew_report::in_words(analysis).sentence;
    let passes = verdict.status == VerdictStatus::NothingWrong;
    assert_eq!(
        passes,
        accusing(analysis).next().is_none() && verdict.status != VerdictStatus::NotDetermined,
        "{name}: {said}"
    );
    let none = "no rack is oversubscribed";
    let is_limiting = accusing(analysis).any(|finding| finding.cause == Cause::Uplink);
    assert!(!(said.contains(none) && is_limiting), "{name}: {said}");
    for finding in accusing(analysis).filter(|finding| finding.cause == Cause::Uplink) {
        let Subject::Rack { rack } = finding.subject else {
            continue;
        };
        let shown = &analysis.racks[rack.index()];
        let Details::Oversubscribed(found) = &finding.details else {
            panic!("{name}: {finding:?}");
        };
        let ways = match found.directions {
            Directions::Tx => vec![shown.tx],
            Directions::Rx => vec![shown.rx],
            Directions::Both => vec![shown.tx, shown.rx],
        };
        assert!(
            ways.iter().all(|way| way.limited == Some(true)),
            "{name}: {said}"
        );
    }
    let mut seen = BTreeSet::new();
    for finding in accusing(analysis) {
        let key = (
            finding.subject,
            finding.cause,
            sentence(analysis, finding).contains(" TX"),
        );
        let is_first = seen.insert(key) || finding.subject == Subject::Run;
        assert!(is_first, "{name}: reported twice: {said}");
    }
}

fn sentence(analysis: &Analysis, finding: &Finding) -> String {
    ew_report::worded(finding, analysis.inventory()).sentence
}
