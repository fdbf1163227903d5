use super::*;
use ew_model::scenario::{Direction, MeshMode, Pattern, Pick, RackScope, Senders};
use ew_model::workload::{Tool, WorkloadKind};

const FILE: &str = "\
name: my-check
description: a check
expect: {oversubscription: 4:1, nic: 10G, rtt: 100us}
time-budget: 10m
racks: ['@r1', '@r2']
defaults: {duration: 1s, samples: 3, message-size: 1M}
tests:
  - name: within racks
    pattern: permutation
  - name: ramp
    pattern: {cross-rack: {senders: ramp, scope: each-pair}}
    samples: 2
  - name: random
    pattern: {cross-rack: {pick: {random: {lanes: 5}}}}
    direction: both
  - pattern: mesh
    optional: true
  - name: rr
    pattern: {mesh: {mode: loaded, max-rounds: 8}}
    workload: tcp-rr
";

fn with(overrides: &[&str]) -> Result<Scenario, ScenarioError> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    parse(FILE, "my.yaml", &overrides)
}

fn message(text: &str) -> String {
    parse(text, "my.yaml", &[]).unwrap_err().to_string()
}

#[test]
fn a_file_becomes_a_scenario() {
    let file = parse_file(FILE, "my.yaml", &[]).unwrap();
    assert_eq!(file.racks, ["@r1", "@r2"]);
    let s = file.scenario;
    assert_eq!(s.expect.oversubscription, Some(4.0));
    assert_eq!(s.expect.nic_bits_per_sec, Some(1e10));
    assert_eq!(s.expect.rtt_ns, Some(100_000));
    assert_eq!(s.time_budget_ns, Some(600_000_000_000));
    assert_eq!(s.tests[0].duration_ns, 1_000_000_000);
    assert_eq!(s.tests[0].samples, 3);
    assert_eq!(s.tests[1].samples, 2);
    let ramp = Pattern::CrossRack {
        pick: Pick::Matching,
        senders: Senders::Ramp,
        scope: RackScope::EachPair,
    };
    assert_eq!(s.tests[1].pattern, ramp);
    assert_eq!(s.tests[2].direction, Direction::Both);
    assert!(matches!(
        s.tests[2].pattern,
        Pattern::CrossRack {
            pick: Pick::Random { lanes: 5 },
            ..
        }
    ));
    assert_eq!(s.tests[3].name, "mesh");
    assert!(s.tests[3].optional);
    assert_eq!(s.tests[4].workload.kind, WorkloadKind::TcpRr);
    assert_eq!(
        s.tests[4].workload.message_bytes, 64,
        "a bulk default is not for requests"
    );
    assert_eq!(s.tests[3].workload.message_bytes, 1 << 20);
}

#[test]
fn overrides_apply_to_all_or_one() {
    let s = with(&[
        "streams=4",
        "rr.streams=2",
        "tool=iperf3",
        "ramp.samples=9",
        "expect.nic=25G",
        "expect.pod-loss=12.5%",
        "time-budget=2m",
        "lanes=7",
        "mesh.mode=loaded",
        "mesh.shifts-at-once=4",
        "within racks.direction=reverse",
    ])
    .unwrap();
    assert_eq!(s.tests[0].workload.streams, 4);
    assert_eq!(s.tests[0].workload.tool, Tool::Iperf3);
    assert_eq!(s.tests[0].direction, Direction::Reverse);
    assert_eq!(s.tests[4].workload.streams, 2);
    assert_eq!(
        s.tests[4].workload.tool,
        Tool::Engine,
        "iperf3 has no requests"
    );
    let netperf = with(&["tool=netperf"]).unwrap();
    assert_eq!(netperf.tests[4].workload.tool, Tool::Netperf);
    assert_eq!(s.tests[1].samples, 9);
    assert_eq!(s.expect.nic_bits_per_sec, Some(25e9));
    assert_eq!(s.expect.pod_loss, Some(0.125));
    assert_eq!(s.time_budget_ns, Some(120_000_000_000));
    assert!(matches!(
        s.tests[2].pattern,
        Pattern::CrossRack {
            pick: Pick::Random { lanes: 7 },
            ..
        }
    ));
    assert!(matches!(
        s.tests[3].pattern,
        Pattern::Mesh {
            mode: MeshMode::Loaded { shifts_at_once: 4 },
            ..
        }
    ));
}

#[test]
fn overrides_reach_those_who_have_the_setting() {
    let s = with(&[
        "workload=udp-stream",
        "segmentation=off",
        "dscp=ef",
        "outstanding=4",
    ])
    .unwrap();
    let kinds: Vec<WorkloadKind> = s.tests.iter().map(|t| t.workload.kind).collect();
    assert_eq!(kinds[..4], [WorkloadKind::UdpStream; 4]);
    assert_eq!(kinds[4], WorkloadKind::TcpRr, "requests are spared");
    assert!(!s.tests[0].workload.segmentation);
    assert_eq!(s.tests[0].workload.message_bytes, 1448);
    assert!(s.tests.iter().all(|t| t.workload.socket.dscp == Some(46)));
    assert_eq!(s.tests[4].workload.outstanding, 4);
    let s = with(&["workload=ping"]).unwrap();
    assert!(
        s.tests
            .iter()
            .all(|t| t.workload.kind == WorkloadKind::Ping)
    );
    let nobody = with(&["interval=1s"]).unwrap_err().to_string();
    let expected = "--set interval=1s: interval: tcp-stream has no such setting";
    assert!(nobody.starts_with(expected), "{nobody}");
}

#[test]
fn a_stated_number_of_senders_lifts_the_bound() {
    let incast = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        let text = "name: a\ntests: [{name: in, pattern: {incast: {senders: {at-most: 16}}}}]\n";
        parse(text, "my.yaml", &overrides).unwrap().tests[0]
            .pattern
            .clone()
    };
    let expected = |senders, max_senders| Pattern::Incast {
        senders,
        max_senders,
        at_once: false,
    };
    assert_eq!(incast(&[]), expected(None, Some(16)));
    assert_eq!(incast(&["in.senders=all"]), expected(None, None));
    assert_eq!(incast(&["senders=40"]), expected(Some(40), None));
}

#[test]
fn bad_overrides_say_what_is_known() {
    let text = |o: &str| with(&[o]).unwrap_err().to_string();
    assert!(
        text("stream=4").contains("did you mean `streams`?"),
        "{}",
        text("stream=4")
    );
    assert!(text("colour=red").contains("known keys: duration, warm-up"));
    assert!(text("streams").contains("key=value"));
    assert!(text("rmap.samples=2").contains("did you mean `ramp`?"));
    assert!(text("within racks.lanes=2").contains("has no option `lanes`"));
    assert!(text("receivers=2").contains("no test here has the option"));
    assert!(text("streams=0").starts_with("--set streams=0: streams: `0` does not fit"));
    assert!(text("expect.nik=1G").contains("expect.nic"));
    assert!(text("expect.pod-loss=100%").contains("0% to below 100%"));
    assert!(text("expect.pod-loss=ten").contains("`ten` is no percentage"));
}

#[test]
fn errors_point_at_the_spot() {
    let unknown = message("name: a\ntests:\n  - pattern: mesh\n    durration: 2s\n");
    assert!(unknown.starts_with("my.yaml:4:5: unknown key `durration` in a test (did you mean `duration`?); all keys: docs/reference"), "{unknown}");
    let unit = message("name: a\ntests:\n  - pattern: mesh\n    duration: fast\n");
    assert!(
        unit.starts_with("my.yaml:4:15: duration: `fast` is not a duration; expected one like 2s"),
        "{unit}"
    );
    let word = message("name: a\ntests:\n  - pattern: mehs\n");
    assert!(
        word.starts_with("my.yaml:3:14: `mehs` is not a pattern (did you mean `mesh`?)"),
        "{word}"
    );
    let option = message("name: a\ntests:\n  - pattern: {mesh: {mod: loaded}}\n");
    assert!(
        option.contains("3:22: unknown key `mod` in `mesh` (did you mean `mode`?)"),
        "{option}"
    );
    let bounds = message("name: a\ntests: [{pattern: mesh, samples: 1001}]\n");
    assert!(bounds.contains("a whole number from 1 to 1000"), "{bounds}");
    let missing = message("name: a\n");
    assert!(missing.contains("has no `tests`"), "{missing}");
    let twice = message("name: a\ntests: [{pattern: mesh}, {pattern: mesh}]\n");
    assert!(twice.contains("two tests are called `mesh`"), "{twice}");
    let syntax = message("name: a\ntests: [\n");
    assert!(syntax.contains("my.yaml:"), "{syntax}");
    let duplicate = message("name: a\nname: b\ntests: [{pattern: mesh}]\n");
    assert!(
        duplicate.ends_with("2:1: not readable as YAML: the key `name` is there twice; keep one"),
        "{duplicate}"
    );
    let list = message("- a\n");
    assert!(list.contains("a list is not a mapping"), "{list}");
    let rr = message("name: a\ntests: [{pattern: mesh, workload: tcp-rr, tool: iperf3}]\n");
    assert!(rr.contains("iperf3 has no tcp-rr"), "{rr}");
    let empty = message("");
    assert!(empty.contains("my.yaml"), "{empty}");
}

#[test]
fn builtins_parse_under_their_name() {
    for builtin in builtins() {
        let s = parse(builtin.yaml, builtin.name, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(s.name, builtin.name);
        assert_eq!(s.description, builtin.description);
        assert!(!s.description.is_empty());
    }
    assert_eq!(builtins()[0].name, DEFAULT_BUILTIN);
    assert!(builtin("no-such").is_none());
}

#[test]
fn every_builtin_takes_the_common_overrides() {
    let overrides = [
        "streams=2",
        "duration=1s",
        "samples=3",
        "direction=both",
        "tool=engine",
    ];
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    for builtin in builtins() {
        let s = parse(builtin.yaml, builtin.name, &overrides).unwrap();
        assert!(s.tests.iter().all(|t| t.samples == 3));
    }
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_scenario_or_an_error(text in ".{0,200}") {
        let _ = parse(&text, "x", &[]);
    }

    #[test]
    fn any_override_gives_a_scenario_or_an_error(text in "[a-z .=-]{0,40}") {
        let _ = parse(FILE, "x", &[text]);
    }
}
