use super::*;
use crate::pattern::tests::{flat, inventory};
use crate::{estimate, scenario};
use ew_model::inventory::HostId;
use std::collections::{BTreeMap, BTreeSet};

fn built_in(name: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    scenario::parse(scenario::builtin(name).unwrap(), name, &overrides).unwrap()
}

fn one_test(yaml: &str) -> Scenario {
    let text = format!("name: t\ntests: [{{name: t, samples: 1, {yaml}}}]\n");
    scenario::parse(&text, "t", &[]).unwrap()
}

fn stage_names(plan: &Plan) -> Vec<&str> {
    plan.stages.iter().map(|s| s.name.as_str()).collect()
}

#[test]
fn every_builtin_has_a_plan_over_two_racks() {
    let inventory = inventory(&[4, 4]);
    // Pods are hosts of their own, which this inventory does not have.
    // One needs a cluster, the other roles.
    let of_hosts = |builtin: &scenario::Builtin| !["pods", "fan-in"].contains(&builtin.name);
    for builtin in scenario::builtins().into_iter().filter(of_hosts) {
        let plan = plan(&built_in(builtin.name, &[]), &inventory, 1).unwrap();
        assert!(plan.dropped_tests.is_empty(), "{}", builtin.name);
        let mut ids = plan
            .stages
            .iter()
            .flat_map(|s| &s.rounds)
            .flat_map(|r| &r.flows)
            .map(|f| f.id.0);
        assert!((0..).zip(ids.by_ref()).all(|(n, id)| n == id));
        assert!(
            plan.stages
                .iter()
                .all(|s| s.rounds.iter().all(|r| !r.flows.is_empty()))
        );
    }
}

#[test]
fn plans_repeat_and_depend_on_the_seed() {
    let inventory = inventory(&[5, 4, 3]);
    let qualify = built_in("qualify", &[]);
    assert_eq!(plan(&qualify, &inventory, 7), plan(&qualify, &inventory, 7));
    assert_ne!(plan(&qualify, &inventory, 7), plan(&qualify, &inventory, 8));
}

#[test]
fn tools_take_turns_in_an_order_drawn_from_the_seed() {
    let inventory = inventory(&[2]);
    let tools = built_in("compare-tools", &[]);
    let order = |seed, pass| {
        turns(
            &plan(&tools, &inventory, seed).unwrap(),
            &(0..tools.tests.len()),
            pass,
        )
    };
    assert_eq!(order(1, 0), order(1, 0));
    assert_ne!(order(1, 0), order(2, 0));
    assert_ne!(order(1, 0), order(1, 1));
    let mut sorted = order(1, 0);
    sorted.sort_unstable();
    let written: Vec<StageIndex> = (0..tools.tests.len() as u32).map(StageIndex).collect();
    assert_eq!(sorted, written);
    let qualify = plan(&built_in("qualify", &[]), &inventory, 1).unwrap();
    assert!(turns(&qualify, &(0..qualify.stages.len()), 0).is_sorted());
    // Whatever the direction, data goes where it shall: lmbench's client receives.
    let plan = plan(&tools, &inventory, 1).unwrap();
    let lmbench = plan
        .stages
        .iter()
        .find(|s| s.name == "lmbench throughput")
        .unwrap();
    assert_eq!(lmbench.rounds[0].flows[0].opened_by, End::Dst);
}

#[test]
fn editing_one_test_changes_no_other() {
    let inventory = inventory(&[4, 4]);
    let relations = |scenario: &Scenario, name: &str| {
        let plan = plan(scenario, &inventory, 7).unwrap();
        let stage = plan.stages.iter().find(|s| s.name == name).unwrap();
        let rounds = stage.rounds.iter();
        rounds
            .map(|r| r.flows.iter().map(|f| (f.src, f.dst)).collect())
            .collect::<Vec<Vec<_>>>()
    };
    let before = built_in("qualify", &[]);
    let after = built_in("qualify", &["intra-rack.samples=9"]);
    assert_eq!(
        relations(&before, "cross-rack"),
        relations(&after, "cross-rack")
    );
    assert_ne!(
        relations(&before, "intra-rack"),
        relations(&after, "intra-rack")
    );
}

#[test]
fn qualify_leaves_cross_rack_tests_out_without_racks() {
    let plan = plan(&built_in("qualify", &[]), &flat(6), 1).unwrap();
    assert_eq!(
        stage_names(&plan),
        [
            "idle rtt",
            "streams",
            "intra-rack",
            "paths",
            "paths, more load",
            "incast",
            "rtt alone",
            "rtt under load",
            "mesh",
            "path trace"
        ]
    );
    assert_eq!(dropped_names(&plan), ["cross-rack", "single flow"]);
    assert!(plan.dropped_tests[0].contains("--racks"));
    let alone = super::plan(&built_in("random-cross-rack", &[]), &flat(6), 1);
    assert!(matches!(
        alone,
        Err(PlanError::NeedsTwoRacks { have: 0, .. })
    ));
}

#[test]
fn the_time_budget_shortens_windows_before_it_drops_optional_tests() {
    let inventory = inventory(&[4, 4]);
    let qualify = |budget_ms: u64| {
        let budget = format!("time-budget={budget_ms}ms");
        plan(&built_in("qualify", &[&budget]), &inventory, 1).unwrap()
    };
    let window_ns = |plan: &Plan, name: &str| {
        let stage = plan.stages.iter().find(|s| s.name == name).unwrap();
        stage.duration_ns
    };
    let full = plan(&built_in("qualify", &[]), &inventory, 1).unwrap();
    let total_ms = estimate(&full, None).duration_ns / 1_000_000;
    let shortened = qualify(total_ms * 9 / 10);
    assert_eq!(stage_names(&shortened), stage_names(&full));
    let [before, after] = [&full, &shortened].map(|plan| window_ns(plan, "intra-rack"));
    assert!(before / 2 < after && after < before, "{before} {after}");
    assert!(estimate(&shortened, None).duration_ns <= total_ms * 900_000);
    assert!(
        estimate(&shortened, None).duration_ns > total_ms * 880_000,
        "no more than needed"
    );
    let probe = "idle rtt";
    assert_eq!(window_ns(&full, probe), window_ns(&shortened, probe));
    let least = qualify(1000);
    assert_eq!(
        dropped_names(&least),
        ["rtt alone", "rtt under load", "mesh"]
    );
    assert!(least.dropped_tests[0].contains("time budget"));
    let without_windows = planned_ns(
        &lay_out(&built_in("qualify", &[]), &inventory, 1).unwrap(),
        0.0,
    );
    let all = format!("would take {}", format_duration_ns(without_windows));
    assert!(
        least.dropped_tests[2].contains(&all),
        "{:?}",
        least.dropped_tests
    );
    assert_eq!(window_ns(&least, "intra-rack"), before / 2);
}

#[test]
fn qualify_takes_no_longer_for_many_hosts() {
    for sizes in [vec![4, 4], vec![16; 4], vec![40; 50], vec![20, 20, 31]] {
        let inventory = inventory(&sizes);
        let plan = plan(&built_in("qualify", &[]), &inventory, 1).unwrap();
        assert!(plan.dropped_tests.is_empty(), "{:?}", plan.dropped_tests);
        let took_ns = estimate(&plan, None).duration_ns;
        assert!(took_ns <= 150_000_000_000, "{sizes:?}: {took_ns}");
        let paths = plan.stages.iter().filter(|s| s.name.starts_with("paths"));
        let of_round = |stage: &Stage| stage.warm_up_ns + stage.duration_ns;
        let loads = paths.map(|stage| of_round(stage) * stage.rounds.len() as u64);
        assert!(loads.sum::<u64>() <= 15_000_000_000, "time under load");
        let paths = plan.stages.iter().find(|s| s.name == "paths").unwrap();
        assert_eq!(paths.duration_ns, 900_000_000, "nothing was shortened");
    }
}

#[test]
fn qualify_interleaves_what_ratios_are_made_of() {
    let plan = plan(&built_in("qualify", &[]), &inventory(&[4, 4]), 1).unwrap();
    let groups = plan.groups();
    let names = |group: &Range<usize>| -> Vec<&str> {
        plan.stages[group.clone()]
            .iter()
            .map(|s| s.name.as_str())
            .collect()
    };
    let together = groups.iter().find(|group| group.len() > 1).unwrap();
    assert_eq!(names(together), ["intra-rack", "cross-rack", "single flow"]);
    assert_eq!(
        groups.iter().map(|group| group.len()).sum::<usize>(),
        plan.stages.len()
    );
}

#[test]
fn incast_of_many_hosts_is_bounded() {
    let inventory = inventory(&[16, 16, 16, 16]);
    let fan_in = |overrides: &[&str]| {
        let plan = plan(&built_in("qualify", overrides), &inventory, 1).unwrap();
        let stage = plan.stages.iter().find(|s| s.name == "incast").unwrap();
        let mut senders: BTreeMap<HostId, u32> = BTreeMap::new();
        for flow in &stage.rounds[0].flows {
            *senders.entry(flow.dst).or_default() += 1;
        }
        senders.into_values().collect::<Vec<_>>()
    };
    assert_eq!(fan_in(&[]), [15; 4]);
    assert_eq!(fan_in(&["incast.senders=4"]), [4; 4]);
}

fn dropped_names(plan: &Plan) -> Vec<&str> {
    plan.dropped_tests
        .iter()
        .filter_map(|why| why.split(':').next())
        .collect()
}

#[test]
fn iperf3_gets_whole_seconds_and_time_between_rounds() {
    let overrides = ["tool=iperf3", "duration=300ms", "warm-up=100ms", "gap=50ms"];
    let plan = plan(&built_in("pair", &overrides), &flat(2), 1).unwrap();
    let stage = &plan.stages[0];
    assert_eq!(
        (stage.duration_ns, stage.warm_up_ns),
        (1_000_000_000, 1_000_000_000)
    );
    assert_eq!(stage.gap_ns, 1_000_000_000);
}

#[test]
fn directions_say_who_sends_and_who_opens() {
    let inventory = flat(2);
    let flows = |direction: &str| {
        let scenario = one_test(&format!("pattern: pair, direction: {direction}"));
        let plan = plan(&scenario, &inventory, 1).unwrap();
        let flows = plan.stages[0].rounds[0].flows.iter();
        flows
            .map(|f| (f.src.0, f.dst.0, f.client().0))
            .collect::<Vec<_>>()
    };
    assert_eq!(flows("forward"), [(0, 1, 0)]);
    assert_eq!(flows("reverse"), [(1, 0, 0)]);
    assert_eq!(flows("both"), [(0, 1, 0), (1, 0, 0)]);
}

#[test]
fn a_mesh_takes_both_as_what_it_does_anyway() {
    let inventory = flat(6);
    for direction in ["forward", "reverse", "both"] {
        let scenario = one_test(&format!("pattern: mesh, direction: {direction}"));
        let plan = plan(&scenario, &inventory, 1).unwrap();
        let pairs: Vec<_> = plan.stages[0]
            .rounds
            .iter()
            .flat_map(|r| &r.flows)
            .map(|f| (f.src, f.dst))
            .collect();
        assert_eq!(pairs.len(), 30);
        assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), 30);
    }
}

#[test]
fn what_cannot_be_is_said_with_the_remedy() {
    let error = |yaml: &str, inventory: &Inventory| {
        plan(&one_test(yaml), inventory, 1).unwrap_err().to_string()
    };
    assert!(error("pattern: mesh", &flat(1)).contains("needs 2 hosts and the inventory has 1"));
    assert!(error("pattern: cross-rack", &flat(4)).contains("--racks"));
    assert!(error("pattern: {incast: {senders: 9}}", &flat(4)).contains("at most 3"));
    assert!(error("pattern: permutation", &inventory(&[1, 1])).contains("no rack has two hosts"));
    assert!(error("pattern: mesh", &flat(5000)).contains("above the limit of 20000000"));
    assert!(
        error("pattern: mesh, duration: 24h", &flat(100))
            .contains("above the limit of 720 h 0 min")
    );
    let none = Scenario {
        tests: Vec::new(),
        ..one_test("pattern: mesh")
    };
    assert!(matches!(
        plan(&none, &flat(4), 1),
        Err(PlanError::NoTests { .. })
    ));
}

#[test]
fn a_threshold_on_a_stage_that_is_not_there_is_refused() {
    let with = |threshold: &str| built_in("qualify", &[threshold]);
    let racks = inventory(&[4, 4]);
    let refused = |threshold, inventory| plan(&with(threshold), inventory, 1).unwrap_err();
    let words = refused("expect.nosuch/pair.min=>1M", &racks).to_string();
    assert!(words.contains("no stage `nosuch`"), "{words}");
    assert!(words.contains("`intra-rack`, `cross-rack`"), "{words}");
    let skipped = refused("expect.cross-rack/pair.min=>1M", &flat(4));
    assert!(matches!(skipped, PlanError::NoSuchStage { .. }));
    let known = with("expect.intra-rack/pair.min=>1M");
    assert!(plan(&known, &racks, 1).is_ok());
    let not_there = with("expect.cross-rack/pair.min=>1M");
    assert!(crate::replan(&not_there, &flat(4), 1).is_ok());
}

#[test]
fn repairs_go_on_counting() {
    let plan = plan(&one_test("pattern: mesh"), &flat(4), 1).unwrap();
    assert_eq!(next_flow_id(&plan), FlowId(12));
}

#[test]
fn what_must_converge_is_selected_once_and_repeated() {
    let inventory = flat(6);
    let text = "name: t\ndefaults: {duration: 1s, warm-up: 0, gap: 1s}\ntests: [{pattern: permutation, direction: both, \
                samples: {auto: {at-least: 6, at-most: 10, budget: 15s}}}]\n";
    let scenario = scenario::parse(text, "t", &[]).unwrap();
    let plan = plan(&scenario, &inventory, 3).unwrap();
    let stage = &plan.stages[0];
    assert_eq!(stage.rounds.len(), 10);
    assert_eq!((stage.rounds_per_sample(), stage.min_rounds()), (1, 6));
    let relations = |round: &Round| {
        let flows = round.flows.iter();
        flows.map(|f| (f.src, f.dst)).collect::<Vec<_>>()
    };
    let first = relations(&stage.rounds[0]);
    assert!(stage.rounds.iter().all(|round| relations(round) == first));
    assert!((0..).zip(&stage.rounds).all(|(n, round)| round.sample == n));
    let bounds = estimate(&plan, None);
    let overhead = estimate::STAGE_OVERHEAD_NS;
    assert_eq!(bounds.least_duration_ns - overhead, 12_000_000_000);
    assert_eq!(bounds.duration_ns - overhead, 15_000_000_000, "the budget");
}

#[test]
fn a_host_without_a_partner_is_refused_unless_its_partner_was_lost() {
    let pair = built_in("pair", &[]);
    let refused = plan(&pair, &flat(3), 1).unwrap_err();
    assert!(matches!(refused, PlanError::HostAlone { have: 3, .. }));
    assert!(plan(&pair, &flat(4), 1).is_ok());
    let left = crate::replan(&pair, &flat(3), 1).unwrap();
    assert_eq!(left.stages[0].rounds[0].flows.len(), 1);
}

#[test]
fn cross_rack_without_racks_is_refused_and_qualify_is_not() {
    let refused = plan(&built_in("cross-rack", &[]), &flat(4), 1).unwrap_err();
    assert!(matches!(refused, PlanError::NeedsTwoRacks { have: 0, .. }));
    let qualify = plan(&built_in("qualify", &[]), &flat(4), 1).unwrap();
    let skipped = qualify.skipped_tests();
    let folded = skipped
        .iter()
        .filter(|line| line.contains("needs hosts in at least two racks"));
    assert_eq!(folded.count(), 1, "{skipped:?}");
}

#[test]
fn a_sweep_is_a_stage_for_each_size() {
    let inventory = flat(6);
    let text = "name: t\ndefaults: {samples: 2}\ntests: [{name: s, pattern: permutation, sizes: '1-8'}, {pattern: pair}]\n";
    let scenario = scenario::parse(text, "t", &[]).unwrap();
    let plan = plan(&scenario, &inventory, 3).unwrap();
    assert_eq!(
        stage_names(&plan),
        ["s 1 B", "s 2 B", "s 4 B", "s 8 B", "pair"]
    );
    let sweeps: Vec<Option<&str>> = plan.stages.iter().map(|s| s.sweep.as_deref()).collect();
    assert_eq!(sweeps, [Some("s"), Some("s"), Some("s"), Some("s"), None]);
    let relations = |stage: &Stage| {
        let flows = stage.rounds.iter().flat_map(|round| &round.flows);
        flows.map(|f| (f.src, f.dst)).collect::<Vec<_>>()
    };
    assert_eq!(
        relations(&plan.stages[0]),
        relations(&plan.stages[3]),
        "all sizes have the same random numbers"
    );
}

#[test]
fn services_carry_what_they_list_ports_for() {
    let host = |name: &str| ew_model::inventory::Host {
        name: name.into(),
        address: None,
        rack: None,
    };
    let inventory = Inventory {
        hosts: ["n1", "n1/pod", "n2", "n2/pod"].map(host).to_vec(),
        racks: Vec::new(),
    };
    let plan_of = |test: &str| {
        let yaml = format!(
            "name: x\ntests:\n  - {{name: t, pattern: {{pods: {{path: node-port}}}}, {test}}}\n"
        );
        let scenario = crate::scenario::parse(&yaml, "x", &[]).unwrap();
        plan(&scenario, &inventory, 1)
    };
    for kind in ["tcp-stream", "tcp-rr", "tcp-crr", "udp-stream", "udp-rr"] {
        assert!(
            plan_of(&format!("workload: {kind}, streams: 32")).is_ok(),
            "{kind}"
        );
    }
    for (test, why) in [
        ("workload: udp-stream, streams: 33", "lower `streams` to 32"),
        (
            "workload: udp-rr, direction: reverse",
            "the client must send first",
        ),
        ("workload: tcp-stream, tool: iperf3", "tool's server"),
        ("workload: ping", "use tcp-rr or udp-rr"),
    ] {
        let error = plan_of(test).unwrap_err().to_string();
        assert!(error.contains(why), "{test}: {error}");
    }
}
