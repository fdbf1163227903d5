//! What is reported for workloads other than plain bulk TCP, from made-up records whose truth is
//! known.

use ew_model::analysis::StageAnalysis;
use ew_model::finding::{Cause, Severity, Subject, VerdictStatus};
use ew_model::latency::{Histogram, Latency};
use ew_model::plan::{End, Flow, FlowId, RoundIndex, StageIndex};
use ew_model::record::{
    CpuSplit, CpuUse, DatagramCounts, EndRecord, FigureNote, FlowOutcome, FlowRecord, StreamRecord,
    TcpInfo,
};
use ew_model::run::{Outcome, RunManifest};
use ew_model::scenario::{Expect, Scenario};
use ew_model::tools::Standing;
use ew_model::workload::{ReceiveMode, Tool, Workload, WorkloadKind};
use ew_model::{Analysis, Host, HostId, Inventory, Pattern, Plan, Round, Run, Stage};
use std::collections::BTreeMap;

const SECOND: u64 = 1_000_000_000;

/// A stage of hosts 0 and 1, both clients of or sending to the other in every round, and what each
/// end reports.
struct Reported {
    name: &'static str,
    workload: Workload,
    rounds: u32,
    ends: fn(round: u32, src: HostId) -> (EndRecord, EndRecord),
}

fn end(bytes: u64) -> EndRecord {
    EndRecord {
        bytes,
        window_ns: SECOND,
        ..EndRecord::default()
    }
}

fn analysis(stages: &[Reported]) -> Analysis {
    ew_analyze::analyze(&made_up(stages))
}

fn made_up(stages: &[Reported]) -> Run {
    let pair = |src, dst, id| Flow {
        id: FlowId(id),
        src: HostId(src),
        dst: HostId(dst),
        opened_by: End::Src,
        lane: None,
        is_aggressor: false,
        traces: None,
    };
    let mut plan = Plan {
        scenario: "made up".into(),
        seed: 1,
        expect: Expect::default(),
        stages: Vec::new(),
        random_order: false,
        dropped_tests: Vec::new(),
        interleaved: Vec::new(),
        host_rates: Vec::new(),
        rate_limit: None,
        line_rates: Vec::new(),
    };
    let mut flows = Vec::new();
    for (index, reported) in (0..).zip(stages) {
        let rounds: Vec<Round> = (0..reported.rounds)
            .map(|round| Round {
                sample: round,
                senders_per_rack: None,
                flows: vec![
                    pair(0, 1, index * 100 + round * 2),
                    pair(1, 0, index * 100 + round * 2 + 1),
                ],
            })
            .collect();
        for (at, round) in (0..).zip(&rounds) {
            for flow in &round.flows {
                let (sender, receiver) = (reported.ends)(at, flow.src);
                flows.push(FlowRecord {
                    is_aggressor: false,
                    stage: StageIndex(index),
                    round: RoundIndex(at),
                    flow: flow.id,
                    sample: at,
                    src: flow.src,
                    dst: flow.dst,
                    outcome: FlowOutcome::Measured,
                    sender: Some(sender),
                    receiver: Some(receiver),
                });
            }
        }
        plan.stages.push(Stage {
            name: reported.name.into(),
            pattern: Pattern::Pair,
            workload: reported.workload.clone(),
            duration_ns: SECOND,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: None,
            sweep: None,
            rounds,
        });
    }
    run(plan, flows)
}

fn run(plan: Plan, flows: Vec<FlowRecord>) -> Run {
    let hosts = ["a", "b"].map(|name| Host {
        name: name.into(),
        address: None,
        rack: None,
    });
    Run {
        manifest: RunManifest {
            format_version: 2,
            id: "made-up".into(),
            version: "0".into(),
            started_unix_ns: 0,
            finished_unix_ns: None,
            fleet: "local".into(),
            command: Vec::new(),
            scenario: Scenario {
                name: "made up".into(),
                description: String::new(),
                expect: Expect::default(),
                tests: Vec::new(),
                time_budget_ns: None,
                random_order: false,
                roles: None,
                thresholds: Vec::new(),
            },
            inventory: Inventory {
                hosts: hosts.to_vec(),
                racks: Vec::new(),
            },
            seed: 1,
            node_labels: BTreeMap::new(),
            barriers: Vec::new(),
            plan_hash: String::new(),
            outcome: Outcome::Complete,
            controller_peak_bytes: None,
            controller_cpu_ns: None,
        },
        plan,
        facts: BTreeMap::new(),
        failed: BTreeMap::new(),
        lost: BTreeMap::new(),
        returned: BTreeMap::new(),
        flows,
        clock_offset_ns: BTreeMap::new(),
        clock_error_ns: BTreeMap::new(),
        samples: BTreeMap::new(),
        rejected_connections: BTreeMap::new(),
        warnings: Vec::new(),
        unclean: Vec::new(),
        storage: Vec::new(),
        hdfs: None,
    }
}

fn stage(analysis: &Analysis) -> &StageAnalysis {
    &analysis.stages[0]
}

/// 9990 fast answers and, in one of two rounds, 10 slow ones.
fn answers(round: u32, _src: HostId) -> (EndRecord, EndRecord) {
    let mut times = Histogram::of(40_000, 9_990);
    let slow = if round == 0 { 5_000_000 } else { 41_000 };
    times.merge(&Histogram::of(slow, 10));
    let sender = EndRecord {
        transactions: Some(10_000),
        latency: Some(Latency {
            times,
            uncorrected: Some(Histogram::of(40_000, 10_000)),
        }),
        cpu: Some(CpuUse {
            engine_ns: SECOND / 4,
            engine_wait_ns: None,
            busy_ns: SECOND / 2,
            softirq_ns: SECOND / 5,
            steal_ns: 0,
            split: Some(CpuSplit {
                user_ns: SECOND / 10,
                system_ns: SECOND / 5,
                ..CpuSplit::default()
            }),
            cpus: 4,
            moved_bytes: 2 * 20_000 * 64,
            transactions: 20_000,
        }),
        ..end(640_000)
    };
    (sender, end(640_000))
}

#[test]
fn percentiles_are_those_of_all_transactions() {
    let mut workload = Workload::of(WorkloadKind::TcpRr);
    workload.pace.requests_per_sec = Some(10_000.0);
    let analysis = analysis(&[Reported {
        name: "open",
        workload,
        rounds: 2,
        ends: answers,
    }]);
    let stage = stage(&analysis);
    let latency = stage.latency.as_ref().unwrap();
    assert_eq!(latency.times.count, 40_000);
    assert_eq!(latency.times.p99_ns, Some(40_000));
    assert_eq!(latency.times.p999_ns, Some(40_000));
    // All 20 slow ones of 40,000 are in one round: the mean of the rounds' p99.99 would be half of
    // this.
    assert_eq!(latency.times.p9999_ns, Some(5_000_000));
    assert_eq!(latency.uncorrected.unwrap().p9999_ns, Some(40_000));
    assert_eq!(latency.transactions_per_sec.unwrap().value, 20_000.0);
    assert_eq!(stage.pairs.len(), 2);
    assert_eq!(stage.pairs[0].times.unwrap().count, 20_000);
    assert_eq!(stage.pairs[0].times.unwrap().p9999_ns, None, "too few");
    assert_eq!(stage.pairs[0].transactions_per_sec, Some(10_000.0));
    assert!(analysis.hosts.iter().all(|host| host.idle_rtt_ns.is_none()));
    let sentence = &ew_report::in_words(&analysis).sentence;
    assert!(
        sentence.contains("20000 transactions a second"),
        "{sentence}"
    );
}

#[test]
fn a_host_is_charged_once_a_round() {
    let analysis = analysis(&[Reported {
        name: "rr",
        workload: Workload::of(WorkloadKind::TcpRr),
        rounds: 3,
        ends: answers,
    }]);
    let cpu = stage(&analysis).sender_cpu.unwrap();
    assert_eq!(cpu.hosts, 2);
    assert!((cpu.engine_cpus - 0.25).abs() < 1e-9);
    assert!((cpu.busy_share - 0.125).abs() < 1e-9);
    assert!((cpu.softirq_share - 0.05).abs() < 1e-9);
    let split = cpu.split.unwrap();
    assert!((split.user - 0.025).abs() < 1e-9 && (split.system - 0.05).abs() < 1e-9);
    assert_eq!(cpu.micros_per_kib, None);
    // Half a second of CPU for 20,000 transactions: each host asks for half of them and answers the
    // others.
    assert!((cpu.micros_per_transaction.unwrap() - 25.0).abs() < 1e-9);
    assert_eq!(stage(&analysis).receiver_cpu, None);
    let answering = self::analysis(&[Reported {
        name: "rr",
        workload: Workload::of(WorkloadKind::TcpRr),
        rounds: 1,
        ends: answered,
    }]);
    let cpu = stage(&answering).receiver_cpu.unwrap();
    assert_eq!(cpu.micros_per_transaction, Some(5.0));
}

/// The server knows its CPU, and the client alone how many transactions there were.
fn answered(round: u32, src: HostId) -> (EndRecord, EndRecord) {
    let (sender, mut receiver) = answers(round, src);
    receiver.cpu = Some(CpuUse {
        engine_wait_ns: None,
        busy_ns: SECOND / 10,
        cpus: 1,
        ..CpuUse::default()
    });
    let sender = EndRecord {
        cpu: None,
        ..sender
    };
    (sender, receiver)
}

fn losing(_round: u32, src: HostId) -> (EndRecord, EndRecord) {
    let lost = if src == HostId(0) { 5_000 } else { 0 };
    let receiver = EndRecord {
        datagrams: Some(DatagramCounts {
            received: 100_000 - lost,
            lost,
            reordered: 3,
            duplicates: 1,
            jitter_ns: 7_000,
        }),
        one_way_delay: Some(Histogram::of(100_000 + u64::from(src.0) * 50_000, 1_000)),
        notes: vec![FigureNote::PacedByEngine, FigureNote::Segmented],
        ..end((100_000 - lost) * 1_250)
    };
    (end(125_000_000), receiver)
}

#[test]
fn loss_is_counted_and_told() {
    let mut workload = Workload::of(WorkloadKind::UdpStream);
    workload.pace.flow_bits_per_sec = Some(1e9);
    let reported = |workload| Reported {
        name: "udp",
        workload,
        rounds: 2,
        ends: losing,
    };
    let paced = analysis(&[reported(workload.clone())]);
    let datagrams = stage(&paced).datagrams.unwrap();
    assert_eq!((datagrams.received, datagrams.lost), (390_000, 10_000));
    assert_eq!(datagrams.loss, Some(0.025));
    assert_eq!(datagrams.worst_loss, Some(0.05));
    assert_eq!((datagrams.reordered, datagrams.duplicates), (12, 4));
    assert_eq!(datagrams.received_per_sec.unwrap().value, 195_000.0);
    let [finding] = &ew_report::in_words(&paced).findings[..] else {
        panic!("{:#?}", paced.verdict);
    };
    assert_eq!(
        (finding.cause, finding.severity),
        (Cause::Loss, Severity::Notice)
    );
    assert!(
        finding.evidence[1].text.contains("a to b: 5.0%"),
        "{finding:#?}"
    );
    assert_eq!(paced.verdict.status, VerdictStatus::AsExpected);
    let labels: Vec<_> = stage(&paced)
        .labels
        .iter()
        .map(|l| (l.note, l.flows))
        .collect();
    assert_eq!(
        labels,
        [(FigureNote::PacedByEngine, 4), (FigureNote::Segmented, 4)]
    );
    let unpaced = analysis(&[reported(Workload::of(WorkloadKind::UdpStream))]);
    assert_eq!(unpaced.verdict.findings[0].severity, Severity::Info);
    assert_eq!(unpaced.verdict.status, VerdictStatus::NothingWrong);
    workload.message_bytes = 8192;
    let long = analysis(&[reported(workload)]);
    let fragments = &ew_report::in_words(&long).findings[0].evidence[2].text;
    assert!(fragments.contains("6 fragments of MTU 1500"), "{fragments}");
}

#[test]
fn one_way_delays_need_both_clocks() {
    let mut run = made_up(&[Reported {
        name: "udp",
        workload: Workload::of(WorkloadKind::UdpStream),
        rounds: 2,
        ends: losing,
    }]);
    let one_way = |run: &Run| stage(&ew_analyze::analyze(run)).datagrams.unwrap().one_way;
    run.clock_error_ns.insert(HostId(0), 30_000);
    assert_eq!(one_way(&run), None);
    run.clock_error_ns.insert(HostId(1), 12_000);
    let delay = one_way(&run).unwrap();
    assert_eq!(delay.clock_error_ns, 42_000);
    assert_eq!((delay.times.count, delay.times.min_ns), (4_000, 100_000));
    assert_eq!(delay.times.max_ns, 150_000);
}

/// Every third round at a quarter, throttled by the send buffer.
fn swinging(round: u32, _src: HostId) -> (EndRecord, EndRecord) {
    let is_slow = round.is_multiple_of(3);
    let bytes = if is_slow { 31_250_000 } else { 125_000_000 };
    let tcp_info = TcpInfo {
        busy_us: Some(1_000_000),
        send_buffer_limited_us: Some(if is_slow { 900_000 } else { 500_000 }),
        ..TcpInfo::default()
    };
    let mut sender = end(bytes);
    sender.streams = vec![StreamRecord {
        bytes,
        tcp_info: Some(tcp_info),
        ..StreamRecord::default()
    }];
    (sender, end(bytes))
}

#[test]
fn between_two_hosts_nobody_is_slow_at_times() {
    let swinging = analysis(&[Reported {
        name: "permutation",
        workload: Workload::of(WorkloadKind::TcpStream),
        rounds: 9,
        ends: swinging,
    }]);
    let mut subjects = swinging.verdict.findings.iter().map(|found| &found.subject);
    assert!(
        !subjects.any(|subject| matches!(subject, Subject::Host { .. })),
        "{:#?}",
        swinging.verdict
    );
}

fn gigabit(_round: u32, _src: HostId) -> (EndRecord, EndRecord) {
    (end(125_000_000), end(125_000_000))
}

fn unseen(_round: u32, _src: HostId) -> (EndRecord, EndRecord) {
    let receiver = EndRecord {
        notes: vec![FigureNote::ReceiverDidNotSeeBytes],
        ..end(1_250_000_000)
    };
    (end(1_250_000_000), receiver)
}

#[test]
fn only_like_is_compared_with_like() {
    let discard = Workload {
        receive_mode: ReceiveMode::Discard,
        ..Workload::of(WorkloadKind::TcpStream)
    };
    let mut paced = Workload::of(WorkloadKind::TcpStream);
    paced.pace.stream_bits_per_sec = Some(1e8);
    let reported = |name, workload, ends| Reported {
        name,
        workload,
        rounds: 6,
        ends,
    };
    let both = analysis(&[
        reported("copy", Workload::of(WorkloadKind::TcpStream), gigabit),
        reported("discard", discard.clone(), unseen),
        reported("paced", paced, |_, _| (end(12_500_000), end(12_500_000))),
    ]);
    let judged: Vec<bool> = both.stages.iter().map(|stage| stage.judged).collect();
    assert_eq!(judged, [true, false, false]);
    assert!(both.verdict.findings.is_empty(), "{:#?}", both.verdict);
    let typical = both.hosts[0].tx_bits_per_sec.unwrap().value;
    assert!((typical - 1e9).abs() < 1.0, "{typical}");
    assert_eq!(both.stages[1].of_expected, None);
    assert_eq!(
        both.stages[2].of_expected,
        Some(1.0),
        "compared with its pace"
    );
    let alone = analysis(&[reported("discard", discard, unseen)]);
    assert!(stage(&alone).judged);
    let sentence = &ew_report::in_words(&alone).sentence;
    assert!(sentence.contains("did not see the bytes"), "{sentence}");
}

/// Within 1% over six rounds.
fn steady(bytes: u64, round: u32) -> (EndRecord, EndRecord) {
    let bytes = bytes + bytes / 500 * u64::from(round);
    (end(bytes), end(bytes))
}

#[test]
fn intervals_say_how_a_tool_stands_to_the_engine() {
    let standing = |rounds, ends| {
        let by = |name, tool, ends| Reported {
            name,
            workload: Workload {
                tool,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            rounds,
            ends,
        };
        let engine = by("engine", Tool::Engine, |round, _| {
            steady(100_000_000, round)
        });
        let analysis = analysis(&[engine, by("tool", Tool::Iperf3, ends)]);
        analysis.tools[0].figures[1].standing.clone()
    };
    let alike = standing(6, |round, _| steady(102_000_000, round));
    assert!(matches!(alike, Standing::Agrees { .. }), "{alike:?}");
    // Its median is the engine's, but it may as well be half of it.
    let anything = standing(6, |round, _| {
        steady(50_000_000 + 20_000_000 * u64::from(round), 0)
    });
    assert!(
        matches!(anything, Standing::NotToldApart { .. }),
        "{anything:?}"
    );
    let other = standing(6, |round, _| steady(150_000_000, round));
    assert!(matches!(other, Standing::Differs { .. }), "{other:?}");
    let once = standing(1, |round, _| steady(100_000_000, round));
    assert!(matches!(once, Standing::Open { .. }), "{once:?}");
}
