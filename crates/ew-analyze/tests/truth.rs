//! The analysis compared with simulated clusters whose truth is known. Seeds 0..60 were looked at
//! while the rules were written; the assertions run on others.

#[cfg(test)]
mod compare;
mod disturbance;
mod simulator;

use ew_model::analysis::{Expectation, HostState, NicRateSource, Warning};
use ew_model::barrier::{Barrier, BarrierKind};
use ew_model::finding::{Cause, Finding, Severity, Subject, VerdictStatus};
use ew_model::record::FlowOutcome;
use ew_model::{Analysis, HostId, Plan, Run, Scenario};
use simulator::{GOODPUT, Truth};

/// The built-in `qualify`, as the user gets it.
fn scenario(name: &str, overrides: &[&str]) -> Scenario {
    let text = ew_plan::scenario::builtin(name).unwrap_or_default();
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    match ew_plan::scenario::parse(text, name, &overrides) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}"),
    }
}

fn run(truth: &Truth, name: &str, overrides: &[&str], seed: u64) -> Run {
    let scenario = scenario(name, overrides);
    let plan: Plan = match ew_plan::plan(&scenario, &truth.inventory, seed) {
        Ok(plan) => plan,
        Err(error) => panic!("{error}"),
    };
    truth.run(scenario, plan, seed)
}

fn qualify(truth: &Truth, seed: u64) -> Analysis {
    ew_analyze::analyze(&run(truth, "qualify", &[], seed))
}

/// Findings that accuse a host, a pair or a path.
fn accusations(analysis: &Analysis) -> Vec<&Finding> {
    let is_accusation = |finding: &&Finding| finding.severity > Severity::Info;
    analysis
        .verdict
        .findings
        .iter()
        .filter(is_accusation)
        .collect()
}

/// Hosts named slow, with the cause.
fn slow_hosts(analysis: &Analysis) -> Vec<(String, Cause)> {
    let slow = analysis
        .verdict
        .findings
        .iter()
        .filter_map(|finding| match finding.subject {
            Subject::Host { host } => {
                Some((analysis.run.inventory.name(host).to_owned(), finding.cause))
            }
            _ => None,
        });
    slow.collect()
}

fn check_oversubscription(sizes: &[usize], truth_ratio: f64, seeds: std::ops::Range<u64>) {
    let truth = Truth::new(sizes, truth_ratio);
    for seed in seeds {
        let analysis = qualify(&truth, seed);
        assert_eq!(analysis.rack_pairs.len(), sizes.len() * (sizes.len() - 1));
        for pair in &analysis.rack_pairs {
            let what = format!("{sizes:?} {truth_ratio}:1 seed {seed}: {pair:?}");
            let ratio = pair.oversubscription.expect(&what);
            assert!((ratio.value / truth_ratio - 1.0).abs() < 0.1, "{what}");
            assert!(ratio.low.expect(&what) <= truth_ratio, "{what}");
            assert!(ratio.high.expect(&what) >= truth_ratio, "{what}");
            assert_eq!(pair.limited, Some(truth_ratio > 1.0), "{what}");
        }
        assert!(
            slow_hosts(&analysis).is_empty(),
            "{:?}",
            slow_hosts(&analysis)
        );
        if truth_ratio > 1.0 {
            let accused = accusations(&analysis);
            assert_eq!(accused.len(), 1, "{:#?}", analysis.verdict);
            assert_eq!(accused[0].cause, Cause::Uplink);
            assert_eq!(analysis.verdict.status, VerdictStatus::AsExpected);
        }
    }
}

#[test]
fn a_ramp_shows_where_the_uplink_saturates() {
    for ratio in [1.0, 2.0, 4.0] {
        let truth = Truth::new(&[4, 4], ratio);
        for seed in 100..110 {
            let analysis = ew_analyze::analyze(&run(&truth, "cross-rack", &[], seed));
            for pair in &analysis.rack_pairs {
                let what = format!("{ratio}:1 seed {seed}: {pair:?}");
                assert!(!pair.ramp.is_empty(), "{what}");
                let knee = (ratio > 1.0).then_some(4.0 / ratio);
                assert_eq!(pair.knee_senders.is_some(), knee.is_some(), "{what}");
                let times = pair
                    .knee_senders
                    .zip(knee)
                    .map_or(1.0, |(reported, knee)| reported / knee);
                assert!((times - 1.0).abs() < 0.15, "{what}");
            }
        }
    }
}

#[test]
fn figures_of_pairs_are_those_of_their_measurements() {
    let analysis = qualify(&Truth::new(&[4, 4], 4.0), 900);
    let main = analysis.host_pairs_stage.as_deref();
    let main = analysis
        .stages
        .iter()
        .position(|stage| Some(stage.name.as_str()) == main);
    let main = main.unwrap_or(usize::MAX) as u32;
    assert!(analysis.pair_maps.len() >= 3, "other stages have maps, too");
    assert!(analysis.pair_maps.iter().all(|map| map.stage != main));
    let others = analysis
        .pair_maps
        .iter()
        .map(|map| (map.stage, &map.host_pairs));
    let mut compared = 0;
    for (stage, host_pairs) in others.chain([(main, &analysis.host_pairs)]) {
        for host_pair in host_pairs.iter().filter(|host_pair| host_pair.samples > 0) {
            let of_pair = analysis.pair_details.iter().find(|detail| {
                (detail.stage, detail.src, detail.dst) == (stage, host_pair.src, host_pair.dst)
            });
            let samples = of_pair.map_or(&[][..], |detail| &detail.samples);
            let rates: Vec<f64> = samples.iter().filter_map(|s| s.bits_per_sec).collect();
            assert_eq!(rates.len(), host_pair.samples as usize, "{host_pair:?}");
            assert_eq!(ew_stats::median(&rates), host_pair.bits_per_sec);
            let times: Vec<u64> = samples.iter().filter_map(|s| s.t_ns).collect();
            assert!(times.is_sorted(), "{times:?}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn oversubscription_of_two_racks_of_four() {
    for ratio in [1.0, 2.0, 4.0, 8.0] {
        check_oversubscription(&[4, 4], ratio, 100..130);
    }
}

#[test]
fn oversubscription_of_three_racks_of_three() {
    for ratio in [1.0, 2.0, 4.0, 8.0] {
        check_oversubscription(&[3, 3, 3], ratio, 200..230);
    }
}

#[test]
fn a_slow_host_is_named_with_its_side_and_nobody_else() {
    for (sizes, ratio) in [
        (&[4, 4][..], 1.0),
        (&[4, 4], 4.0),
        (&[3, 3, 3], 1.0),
        (&[3, 3, 3], 8.0),
    ] {
        for seed in 300..312 {
            for cause in [Cause::SlowHost, Cause::SlowSender, Cause::SlowReceiver] {
                let mut truth = Truth::new(sizes, ratio);
                let name = if seed % 2 == 0 { "r2h3" } else { "r1h1" };
                let host = truth.host(name).index();
                if cause != Cause::SlowReceiver {
                    truth.tx[host] = GOODPUT / 2.0;
                }
                if cause != Cause::SlowSender {
                    truth.rx[host] = GOODPUT / 2.0;
                }
                let analysis = qualify(&truth, seed);
                let what = format!(
                    "{sizes:?} {ratio} {cause:?} {seed}: {:#?}",
                    analysis.verdict
                );
                assert_eq!(
                    slow_hosts(&analysis),
                    vec![(name.to_owned(), cause)],
                    "{what}"
                );
                let expected = if ratio > 1.0 { 2 } else { 1 };
                assert_eq!(accusations(&analysis).len(), expected, "{what}");
                assert_eq!(analysis.verdict.status, VerdictStatus::Worse);
                assert!(
                    ew_report::in_words(&analysis).sentence.starts_with(name),
                    "{what}"
                );
                for pair in &analysis.rack_pairs {
                    let found = pair.oversubscription.expect(&what);
                    assert!((found.value / ratio - 1.0).abs() < 0.1, "{what} {pair:?}");
                }
            }
        }
    }
}

#[test]
fn a_clean_network_accuses_nobody() {
    let shapes = [
        (&[4, 4][..], 1000..1200),
        (&[3, 3, 3], 1200..1240),
        (&[2, 2], 1240..1300),
    ];
    for (sizes, seeds) in shapes {
        for seed in seeds {
            let mut truth = Truth::new(sizes, 1.0);
            truth.noise = 0.03;
            let analysis = qualify(&truth, seed);
            assert!(
                accusations(&analysis).is_empty(),
                "{sizes:?} {seed}: {:#?}",
                analysis.verdict
            );
            assert_eq!(analysis.verdict.status, VerdictStatus::NothingWrong);
            assert!(
                ew_report::in_words(&analysis)
                    .sentence
                    .contains(" hosts do ")
            );
        }
    }
}

#[test]
fn random_picks_with_collisions_accuse_nobody() {
    let mut collisions = 0;
    for seed in 2000..2200 {
        let truth = Truth::new(&[4, 4], 1.0);
        let analysis = ew_analyze::analyze(&random_run(&truth, seed));
        assert!(
            accusations(&analysis).is_empty(),
            "{seed}: {:#?}",
            analysis.verdict
        );
        collisions += analysis.stages[0]
            .random_collisions
            .expect("a random stage");
    }
    assert!(
        collisions > 100,
        "{collisions} collisions: the generator does not collide"
    );
}

/// The random-target loop alone, nothing else to learn from.
fn random_run(truth: &Truth, seed: u64) -> Run {
    use ew_model::scenario::{Pattern, Pick, RackScope, Senders};
    let mut scenario = scenario("qualify", &[]);
    scenario
        .tests
        .retain(|test| matches!(test.pattern, Pattern::CrossRack { .. }));
    scenario.tests.truncate(1);
    scenario.tests[0].pattern = Pattern::CrossRack {
        pick: Pick::Random { lanes: 3 },
        senders: Senders::All,
        scope: RackScope::All,
    };
    let plan = ew_plan::plan(&scenario, &truth.inventory, seed).expect("a plan");
    truth.run(scenario, plan, seed)
}

#[test]
fn unequal_racks_are_held_against_what_both_could_do() {
    for seed in 400..420 {
        let mut truth = Truth::new(&[5, 3], 1.0);
        truth.up = vec![GOODPUT, GOODPUT];
        truth.down = truth.up.clone();
        let analysis = qualify(&truth, seed);
        for pair in &analysis.rack_pairs {
            // Three hosts of the smaller rack can neither send nor receive more.
            let hosts = 3.0;
            let ratio = pair.oversubscription.expect("a ratio");
            assert!((ratio.value / hosts - 1.0).abs() < 0.1, "{seed}: {pair:?}");
            assert!(ratio.low.expect("low") <= hosts && hosts <= ratio.high.expect("high"));
        }
    }
}

#[test]
fn two_slow_hosts_are_both_named() {
    for seed in 500..530 {
        let mut truth = Truth::new(&[4, 4], 2.0);
        let (a, b) = (truth.host("r1h2").index(), truth.host("r2h4").index());
        truth.rx[a] = 0.6 * GOODPUT;
        truth.tx[b] = 0.4 * GOODPUT;
        truth.rx[b] = 0.4 * GOODPUT;
        let analysis = qualify(&truth, seed);
        let mut slow = slow_hosts(&analysis);
        slow.sort_by(|a, b| a.0.cmp(&b.0));
        let expected = vec![
            ("r1h2".to_owned(), Cause::SlowReceiver),
            ("r2h4".to_owned(), Cause::SlowHost),
        ];
        assert_eq!(slow, expected, "{seed}: {:#?}", analysis.verdict);
    }
}

#[test]
fn a_slow_direction_of_one_pair_accuses_the_pair_only() {
    for seed in 600..620 {
        let mut truth = Truth::new(&[4, 4], 1.0);
        let pair = (truth.host("r1h1"), truth.host("r1h3"));
        truth.pair.insert(pair, 0.4 * GOODPUT);
        // Seen in three rounds and more: in fewer, what happened in them explains it as well.
        let analysis = ew_analyze::analyze(&run(&truth, "qualify", &["mesh.samples=3"], seed));
        let found = accusations(&analysis);
        assert_eq!(found.len(), 1, "{:#?}", analysis.verdict);
        assert_eq!(
            found[0].subject,
            Subject::Pair {
                src: pair.0,
                dst: pair.1
            }
        );
    }
}

#[test]
fn a_lost_host_is_named_and_never_zero() {
    for seed in 700..710 {
        let mut truth = Truth::new(&[4, 4], 1.0);
        let dead = truth.host("r2h2");
        let whole = run(&truth, "qualify", &[], seed);
        let mesh = whole
            .plan
            .stages
            .iter()
            .position(|stage| stage.name == "mesh")
            .expect("a mesh");
        truth.dies = Some((dead, mesh, whole.plan.stages[mesh].rounds.len() / 2));
        let analysis = qualify(&truth, seed);
        assert_eq!(analysis.verdict.status, VerdictStatus::Partial);
        assert!(
            ew_report::in_words(&analysis).sentence.contains("r2h2"),
            "{}",
            ew_report::in_words(&analysis).sentence
        );
        assert!(
            analysis
                .verdict
                .findings
                .iter()
                .any(|f| f.cause == Cause::HostMissing)
        );
        assert!(
            analysis
                .verdict
                .findings
                .iter()
                .any(|f| f.cause == Cause::PairsMissing)
        );
        assert!(matches!(
            analysis.hosts[dead.index()].state,
            HostState::Lost { .. }
        ));
        let missing: Vec<_> = analysis
            .host_pairs
            .iter()
            .filter(|c| c.bits_per_sec.is_none())
            .collect();
        assert!(!missing.is_empty());
        for host_pair in missing {
            assert!(host_pair.src == dead || host_pair.dst == dead);
            assert!(host_pair.missing.is_some());
        }
        assert!(
            analysis
                .host_pairs
                .iter()
                .all(|host_pair| host_pair.bits_per_sec != Some(0.0))
        );
        let accused = |f: &&Finding| {
            !matches!(f.cause, Cause::HostMissing | Cause::PairsMissing)
                && f.severity > Severity::Info
        };
        assert_eq!(analysis.verdict.findings.iter().find(accused), None);
    }
}

#[test]
fn repaired_pairs_are_not_missing() {
    let truth = Truth::new(&[4, 4], 1.0);
    let mut run = run(&truth, "qualify", &[], 42);
    let mesh = run
        .plan
        .stages
        .iter()
        .position(|stage| stage.name == "mesh")
        .expect("a mesh");
    let rounds = run.plan.stages[mesh].rounds.len() as u32;
    let next = ew_plan::plan::next_flow_id(&run.plan);
    let at = run
        .flows
        .iter()
        .position(|row| row.stage.0 == mesh as u32)
        .expect("a row");
    let mut repaired = run.flows[at].clone();
    repaired.round.0 = rounds;
    repaired.flow = next;
    run.flows[at].outcome = FlowOutcome::Missing {
        reason: "cut".into(),
    };
    run.flows[at].receiver = None;
    assert_eq!(
        ew_analyze::analyze(&run).verdict.status,
        VerdictStatus::Partial
    );
    run.flows.push(repaired);
    let analysis = ew_analyze::analyze(&run);
    assert_eq!(
        analysis.verdict.status,
        VerdictStatus::NothingWrong,
        "{:#?}",
        analysis.verdict
    );
    assert_eq!(analysis.stages[mesh].missing, 0);
}

#[test]
fn nothing_measured_is_not_determined() {
    let truth = Truth::new(&[4, 4], 1.0);
    let mut run = run(&truth, "qualify", &[], 1);
    run.flows.clear();
    for host in truth.inventory.host_ids() {
        run.failed
            .insert(host, "ssh: connect to host: Connection refused".into());
    }
    run.facts.clear();
    let analysis = ew_analyze::analyze(&run);
    assert_eq!(analysis.verdict.status, VerdictStatus::NotDetermined);
    assert!(
        ew_report::in_words(&analysis)
            .sentence
            .contains("Connection refused")
    );
    assert_eq!(analysis.basis.nic_bits_per_sec, None);
    assert!(
        analysis
            .host_pairs
            .iter()
            .all(|host_pair| host_pair.bits_per_sec.is_none())
    );
}

#[test]
fn an_expectation_that_nothing_tests_leaves_the_run_incomplete() {
    let truth = Truth::new(&[4, 4], 1.0);
    let not_tested = |name: &str, expect: &str| {
        let analysis = ew_analyze::analyze(&run(&truth, name, &[expect], 7));
        let warnings = analysis.warnings.iter();
        let not_tested = warnings.filter_map(|warning| match warning {
            Warning::NotTested { expectation } => Some(*expectation),
            _ => None,
        });
        (analysis.verdict.status, not_tested.collect::<Vec<_>>())
    };
    for (expect, expectation) in [
        ("expect.oversubscription=1", Expectation::Oversubscription),
        ("expect.paths=4", Expectation::Paths),
        ("expect.rtt=300us", Expectation::Rtt),
    ] {
        assert_eq!(
            not_tested("permutation", expect),
            (VerdictStatus::Partial, vec![expectation])
        );
    }
    for expect in ["expect.oversubscription=1", "expect.rtt=10ms"] {
        let tested = (VerdictStatus::NothingWrong, Vec::new());
        assert_eq!(not_tested("qualify", expect), tested, "{expect}");
    }
    let of_mesh = not_tested("mesh", "expect.oversubscription=1");
    assert_eq!(of_mesh.1, [], "it loads the uplinks as far");
}

#[test]
fn stated_expectations_decide_between_fault_and_notice() {
    let truth = Truth::new(&[4, 4], 4.0);
    let judged = |overrides: &[&str]| ew_analyze::analyze(&run(&truth, "qualify", overrides, 7));
    let as_stated = judged(&["expect.oversubscription=4"]);
    assert_eq!(
        as_stated.verdict.status,
        VerdictStatus::AsExpected,
        "{:#?}",
        as_stated.verdict
    );
    let worse = judged(&["expect.oversubscription=2"]);
    assert_eq!(worse.verdict.status, VerdictStatus::Worse);
    assert!(
        ew_report::in_words(&worse)
            .sentence
            .contains("(expected 2.0:1)")
    );
    let slow_nic = judged(&["expect.nic=1G"]);
    assert_eq!(slow_nic.verdict.status, VerdictStatus::Worse);
    assert!(
        ew_report::in_words(&slow_nic)
            .sentence
            .contains("all 8 hosts"),
        "{}",
        ew_report::in_words(&slow_nic).sentence
    );
    let right_nic = judged(&["expect.nic=200M"]);
    assert_eq!(
        right_nic.verdict.status,
        VerdictStatus::AsExpected,
        "{:#?}",
        right_nic.verdict
    );
}

#[test]
fn a_low_link_speed_is_the_cause_of_its_slow_host() {
    let mut truth = Truth::new(&[4, 4], 1.0);
    for host in truth.inventory.host_ids() {
        truth.link_speeds.insert(host, 200e6);
    }
    let slow = truth.host("r1h4");
    truth.link_speeds.insert(slow, 100e6);
    truth.tx[slow.index()] = GOODPUT / 2.0;
    truth.rx[slow.index()] = GOODPUT / 2.0;
    let analysis = qualify(&truth, 3);
    assert_eq!(
        slow_hosts(&analysis),
        vec![("r1h4".to_owned(), Cause::LinkSpeed)]
    );
    assert_eq!(
        analysis.verdict.findings.len(),
        1,
        "{:#?}",
        analysis.verdict
    );
    assert_eq!(analysis.basis.nic_rate_source, NicRateSource::LinkSpeed);
}

#[test]
fn two_by_two_with_a_narrow_uplink_names_the_pair_or_its_slow_host() {
    for seed in 800..810 {
        let mut truth = Truth::new(&[2, 2], 4.0);
        let slow = truth.host("r1h2").index();
        truth.rx[slow] = GOODPUT / 2.0;
        let analysis = qualify(&truth, seed);
        let host = truth.host("r1h2");
        let pair = Subject::Pair {
            src: truth.host("r1h1"),
            dst: host,
        };
        let named = [pair, Subject::Host { host }];
        let others = accusations(&analysis)
            .into_iter()
            .filter(|f| f.cause != Cause::Uplink);
        let others: Vec<Subject> = others.map(|finding| finding.subject).collect();
        assert!(
            others.len() == 1 && named.contains(&others[0]),
            "{:#?}",
            analysis.verdict
        );
        for pair in &analysis.rack_pairs {
            let ratio = pair.oversubscription.expect("a ratio").value;
            assert!((ratio / 4.0 - 1.0).abs() < 0.1, "{seed}: {pair:?}");
        }
    }
}

#[test]
fn two_by_two_with_wide_uplinks_names_the_host() {
    for seed in 820..840 {
        let mut truth = Truth::new(&[2, 2], 1.0);
        let slow = truth.host("r1h2").index();
        truth.rx[slow] = GOODPUT / 2.0;
        let analysis = qualify(&truth, seed);
        let expected = vec![("r1h2".to_owned(), Cause::SlowReceiver)];
        assert_eq!(
            slow_hosts(&analysis),
            expected,
            "{seed}: {:#?}",
            analysis.verdict
        );
        assert_eq!(
            accusations(&analysis).len(),
            1,
            "{seed}: {:#?}",
            analysis.verdict
        );
    }
}

#[test]
fn a_partly_slow_host_is_still_told() {
    for seed in 900..920 {
        let mut truth = Truth::new(&[4, 4], 4.0);
        let slow = truth.host("r2h3").index();
        truth.rx[slow] = 0.88 * GOODPUT;
        let expected = vec![("r2h3".to_owned(), Cause::SlowReceiver)];
        assert_eq!(slow_hosts(&qualify(&truth, seed)), expected, "{seed}");
    }
}

#[test]
fn a_noisy_machine_accuses_nobody() {
    for seed in 940..970 {
        let mut truth = Truth::new(&[4, 4], 4.0);
        truth.noise = 0.05;
        truth.hiccups = 0.08;
        let analysis = qualify(&truth, seed);
        assert!(
            accusations(&analysis)
                .iter()
                .all(|f| f.cause == Cause::Uplink),
            "{seed}"
        );
    }
}

#[test]
fn one_narrow_uplink_is_told_with_its_direction() {
    for seed in 960..970 {
        let mut truth = Truth::new(&[3, 3, 3], 1.0);
        truth.up[1] = GOODPUT;
        let analysis = qualify(&truth, seed);
        assert_eq!(accusations(&analysis).len(), 1, "{:#?}", analysis.verdict);
        let sentence = &ew_report::in_words(&analysis).sentence;
        assert!(
            sentence.starts_with("rack2: oversubscribed 3.0:1"),
            "{sentence}"
        );
    }
}

#[test]
fn without_racks_a_low_stage_is_not_determined_and_blames_nobody() {
    let truth = Truth::new(&[4, 4], 4.0);
    let mut run = run(&truth, "qualify", &[], 1);
    for host in &mut run.manifest.inventory.hosts {
        host.rack = None;
    }
    run.manifest.inventory.racks.clear();
    let analysis = ew_analyze::analyze(&run);
    assert!(slow_hosts(&analysis).is_empty());
    let found = accusations(&analysis);
    assert!(
        !found.is_empty() && found.iter().all(|f| f.cause == Cause::NotDetermined),
        "{found:#?}"
    );
}

#[test]
fn every_builtin_scenario_is_analysed() {
    // Pods are hosts of their own, and a fan-in has roles, which a cluster of hosts does not have.
    for builtin in ew_plan::scenario::builtins()
        .into_iter()
        .filter(|builtin| !["pods", "fan-in"].contains(&builtin.name))
    {
        for ratio in [1.0, 4.0] {
            let truth = Truth::new(&[4, 4], ratio);
            let analysis = ew_analyze::analyze(&run(&truth, builtin.name, &[], 5));
            let found = accusations(&analysis);
            assert!(
                found.iter().all(|f| f.cause == Cause::Uplink),
                "{}: {found:#?}",
                builtin.name
            );
            assert!(
                ratio > 1.0 || found.is_empty(),
                "{}: {found:#?}",
                builtin.name
            );
            assert_eq!(
                analysis,
                ew_analyze::analyze(&run(&truth, builtin.name, &[], 5))
            );
        }
    }
}

#[test]
fn timelines_add_up_to_the_aggregate() {
    let analysis = qualify(&Truth::new(&[4, 4], 1.0), 6);
    let stage = analysis
        .stages
        .iter()
        .find(|s| s.name == "intra-rack")
        .expect("the stage");
    let sum: f64 = stage.timeline.iter().map(|point| point.bits_per_sec).sum();
    let mean = sum / stage.timeline.len() as f64;
    let aggregate = stage.aggregate_bits_per_sec.expect("an aggregate").value;
    assert!(
        (mean / aggregate - 1.0).abs() < 0.05,
        "{mean} against {aggregate}"
    );
    assert!(
        stage
            .timeline
            .windows(2)
            .all(|pair| pair[0].t_ns < pair[1].t_ns)
    );
    assert!(
        stage
            .start_skew_ns
            .is_some_and(|(p50, p99, max)| p50 <= p99 && p99 <= max)
    );
}

#[test]
fn many_slow_hosts_among_many_are_all_named_and_folded_on_top() {
    let mut truth = Truth::new(&[12; 6], 2.0);
    let names = ["r1h4", "r3h2", "r3h3", "r4h12", "r6h1"];
    for (name, share) in names.iter().zip([0.3, 0.5, 0.5, 0.7, 0.9]) {
        let host = truth.host(name).index();
        truth.rx[host] = share * GOODPUT;
    }
    let analysis = qualify(&truth, 11);
    let mut slow = slow_hosts(&analysis);
    slow.sort_by(|a, b| a.0.cmp(&b.0));
    let expected: Vec<_> = names
        .iter()
        .map(|name| ((*name).to_owned(), Cause::SlowReceiver))
        .collect();
    assert_eq!(slow, expected, "{:#?}", analysis.verdict);
    let sentence = &ew_report::in_words(&analysis).sentence;
    assert!(
        sentence.contains("5 hosts receive slowly: r1h4"),
        "{sentence}"
    );
    assert!(
        sentence.contains("all 6 racks: oversubscribed 2.0:1"),
        "{sentence}"
    );
}

#[test]
fn a_host_lost_before_the_rack_pairs_leaves_the_ratio_standing() {
    for (seed, ratio) in [(720, 1.0), (721, 2.0), (722, 4.0), (723, 8.0)] {
        let mut truth = Truth::new(&[4, 4], ratio);
        truth.dies = Some((truth.host("r1h1"), 1, 3));
        let analysis = qualify(&truth, seed);
        assert_eq!(analysis.verdict.status, VerdictStatus::Partial);
        for pair in &analysis.rack_pairs {
            let found = pair.oversubscription.expect("a ratio").value;
            assert!((found / ratio - 1.0).abs() < 0.1, "{ratio}: {pair:?}");
        }
    }
}

#[test]
fn damaged_rows_do_not_stop_the_analysis() {
    let truth = Truth::new(&[4, 4], 2.0);
    let mut run = run(&truth, "qualify", &[], 8);
    for (at, row) in run.flows.iter_mut().enumerate() {
        match at % 40 {
            0 => row.src = HostId(u32::MAX),
            1 => row.stage.0 = u32::MAX,
            2 => row.round.0 = u32::MAX,
            3 => row.receiver = None,
            4 => row.flow.0 = u32::MAX,
            5 => row.dst = row.src,
            6 => {
                if let Some(end) = &mut row.receiver {
                    end.window_ns = 0;
                    end.bytes = u64::MAX;
                    for interval in &mut end.intervals {
                        interval.offset_ns = u64::MAX;
                        interval.bytes = u64::MAX;
                    }
                }
            }
            _ => {}
        }
    }
    run.lost.insert(HostId(999), "not of this inventory".into());
    let analysis = ew_analyze::analyze(&run);
    assert_eq!(analysis.verdict.status, VerdictStatus::Partial);
    assert_eq!(analysis.hosts.len(), 8);
}

#[test]
fn any_cut_of_a_run_is_analysed() {
    let truth = Truth::new(&[3, 3, 3], 2.0);
    let whole = run(&truth, "qualify", &[], 9);
    for keep in (0..whole.flows.len()).step_by(whole.flows.len() / 25) {
        let mut cut = whole.clone();
        cut.flows.truncate(keep);
        let analysis = ew_analyze::analyze(&cut);
        let planned: u32 = analysis.stages.iter().map(|stage| stage.flows).sum();
        let missing: u32 = analysis.stages.iter().map(|stage| stage.missing).sum();
        let left = cut.flows.iter().filter(|row| !row.is_aggressor).count();
        assert_eq!(planned - missing, left as u32);
        let status = analysis.verdict.status;
        let expected = if keep == 0 {
            VerdictStatus::NotDetermined
        } else {
            VerdictStatus::Partial
        };
        assert_eq!(status, expected, "{keep} rows");
        let findings = ew_report::in_words(&analysis).findings.into_iter();
        let mut host_pairs = findings.filter(|f| f.cause == Cause::PairsMissing);
        let lines = host_pairs.next().unwrap().evidence;
        let of_many = lines
            .iter()
            .filter(|line| line.text.starts_with("no figure in"));
        let untouched = analysis
            .stages
            .iter()
            .filter(|stage| stage.missing == stage.flows);
        // What had not begun, and the stages that were cut.
        assert_eq!(
            of_many.count(),
            usize::from(untouched.count() > 1),
            "{lines:#?}"
        );
    }
}

#[test]
fn what_keeps_pods_apart_is_evidence_of_what_is_missing() {
    let truth = Truth::new(&[3, 3], 2.0);
    let mut cut = run(&truth, "qualify", &[], 9);
    cut.flows.truncate(cut.flows.len() / 2);
    cut.lost.insert(HostId(1), "its link broke".into());
    let barrier = |kind, host, words: &str| Barrier {
        kind,
        host,
        words: words.into(),
    };
    cut.manifest.barriers = vec![
        barrier(BarrierKind::PodEnded, Some(HostId(1)), "it was evicted"),
        barrier(BarrierKind::NoRoute, None, "node n1 has no route"),
    ];
    let analysis = ew_analyze::analyze(&cut);
    let evidence = |cause: Cause| -> Vec<String> {
        let findings = ew_report::in_words(&analysis).findings.into_iter();
        let of_cause = findings.filter(|finding| finding.cause == cause);
        let evidence = of_cause.flat_map(|finding| finding.evidence);
        let of_run = evidence.filter(|evidence| evidence.source == "run.json: barriers");
        of_run.map(|evidence| evidence.text).collect()
    };
    assert_eq!(evidence(Cause::PairsMissing), ["node n1 has no route"]);
    assert_eq!(evidence(Cause::HostMissing), ["it was evicted"]);
    assert_eq!(analysis.run.barriers, cut.manifest.barriers);
}
