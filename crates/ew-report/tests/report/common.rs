//! Synthetic analyses: a demo-like pair of racks, a failed run, missing hosts, and a full mesh of
//! any size.

use crate::workloads;
use ew_model::analysis::{
    Analysis, Basis, CpuShare, DiskShare, Estimate, HostAnalysis, HostPair, HostPoint,
    HostStageAnalysis, HostState, KnownFraming, NicRateSource, RackAnalysis, RackPairAnalysis,
    StageAnalysis, StageCeiling, TimePoint, Undetermined, UplinkAnalysis, Warning,
};
use ew_model::ceiling::{Framing, LinkCounting, Transport};
use ew_model::facts::InterfaceFacts;
use ew_model::finding::details::{
    Absence, AbsenceReason, Directions, HostsMissing, Oversubscribed, PeersRate, SideRate,
    SideRates, SlowDirection, SlowHost, StageRate, UplinkLimit,
};
use ew_model::finding::{
    Cause, Confidence, Details, Finding, Grounds, Quantity, Severity, Subject, UplinkTest, Verdict,
    VerdictStatus,
};
use ew_model::inventory::{Host, HostId, Inventory, Rack, RackId};
use ew_model::run::{Outcome, RunManifest};
use ew_model::scenario::{Expect, Scenario};
use ew_model::workload::WorkloadKind;

pub(crate) const LINE: f64 = 200e6;
pub(crate) const PAYLOAD: f64 = LINE * 1448.0 / 1514.0;

pub(crate) fn estimate(value: f64) -> Option<Estimate> {
    Some(Estimate {
        value,
        low: Some(value * 0.99),
        high: Some(value * 1.01),
        samples: 8,
    })
}

pub(crate) fn inventory(racks: u32, per_rack: u32) -> Inventory {
    Inventory {
        hosts: (0..racks * per_rack)
            .map(|i| Host {
                name: format!("r{}h{:02}", i / per_rack + 1, i % per_rack + 1),
                address: None,
                rack: Some(RackId(i / per_rack)),
            })
            .collect(),
        racks: (1..=racks)
            .map(|r| Rack {
                name: format!("rack{r}"),
            })
            .collect(),
    }
}

/// Two racks of four, 4:1 uplinks, r2h03 receives at half rate.
pub(crate) fn demo() -> Analysis {
    cluster(2, 4, 4.0, Some(HostId(6)))
}

/// A cluster with the given oversubscription and, if any, one host that receives at half rate.
pub(crate) fn cluster(racks: u32, per_rack: u32, ratio: f64, slow: Option<HostId>) -> Analysis {
    let inventory = inventory(racks, per_rack);
    let rack_pairs = rack_pairs(racks, per_rack, ratio);
    let mut analysis = Analysis {
        racks: Vec::new(),
        verdict: verdict(ratio, slow),
        stages: stages(racks * per_rack, racks, ratio),
        hosts: inventory.host_ids().map(|h| host(h, slow)).collect(),
        host_pairs: host_pairs(&inventory, slow),
        host_pairs_stage: Some("mesh".into()),
        pair_maps: Vec::new(),
        pair_details: Vec::new(),
        pair_paths: Vec::new(),
        rack_pairs,
        basis: basis(),
        sweeps: Vec::new(),
        tools: Vec::new(),
        pods: Vec::new(),
        congestion: Vec::new(),
        flow_completion: Vec::new(),
        thresholds: Vec::new(),
        warnings: vec![Warning::Recorded {
            message:
                "r1h02: the clock is not disciplined (adjtimex); times of this host are its own"
                    .into(),
        }],
        run: manifest(inventory),
    };
    if ratio <= 1.0 && slow.is_none() {
        analysis.warnings.clear();
    }
    analysis
}

/// Nothing came up, nothing was measured.
pub(crate) fn failed() -> Analysis {
    let mut analysis = demo();
    for host in &mut analysis.hosts {
        *host = absent(
            host.host,
            HostState::Failed {
                message: "ssh: connect to host r1h01 port 22: Connection refused".into(),
            },
        );
    }
    analysis.stages.clear();
    analysis.host_pairs.clear();
    analysis.host_pairs_stage = None;
    analysis.rack_pairs.clear();
    analysis.warnings.clear();
    analysis.verdict = Verdict {
        status: VerdictStatus::NotDetermined,
        findings: Vec::new(),
        grounds: Grounds {
            failure: Some("ssh: connect to host r1h01 port 22: Connection refused".into()),
            ..Grounds::default()
        },
    };
    analysis.basis.nic_bits_per_sec = None;
    analysis.basis.nic_rate_source = NicRateSource::Unknown;
    analysis.run.outcome = Outcome::Failed;
    analysis.run.finished_unix_ns = None;
    analysis.run.controller_cpu_ns = None;
    analysis.run.controller_peak_bytes = None;
    analysis
}

/// The demo with one host lost in the mesh and one that never came up.
pub(crate) fn missing() -> Analysis {
    let mut analysis = demo();
    analysis.hosts[1] = absent(
        HostId(1),
        HostState::Failed {
            message: "Permission denied (publickey).\r\n".into(),
        },
    );
    analysis.hosts[7].state = HostState::Lost {
        message: "no answer for 5 s".into(),
    };
    for host_pair in &mut analysis.host_pairs {
        if [host_pair.src, host_pair.dst]
            .iter()
            .any(|h| h.0 == 1 || h.0 == 7)
        {
            let who = if host_pair.src.0 == 1 || host_pair.dst.0 == 1 {
                "r1h02 never came up"
            } else {
                "r2h04 was lost"
            };
            *host_pair = HostPair {
                bits_per_sec: None,
                samples: 0,
                retransmits: None,
                rtt_us: None,
                missing: Some(who.into()),
                ..host_pair.clone()
            };
        }
    }
    analysis.rack_pairs[1].oversubscription = None;
    analysis.rack_pairs[1].limited = None;
    analysis.rack_pairs[1].details = Some(Undetermined::NotMeasured);
    analysis.verdict.status = VerdictStatus::Partial;
    analysis.verdict.findings.insert(
        0,
        host_missing(HostId(1), "Permission denied (publickey).".into()),
    );
    analysis.run.outcome = Outcome::Partial;
    analysis
}

fn rate(src: HostId, dst: HostId, slow: Option<HostId>) -> f64 {
    let wobble = 1.0 - f64::from((src.0 * 31 + dst.0 * 17) % 13) * 0.0008;
    PAYLOAD * wobble * if Some(dst) == slow { 0.5 } else { 1.0 }
}

fn host_pairs(inventory: &Inventory, slow: Option<HostId>) -> Vec<HostPair> {
    let mut host_pairs = Vec::new();
    for src in inventory.host_ids() {
        for dst in inventory.host_ids().filter(|d| *d != src) {
            host_pairs.push(HostPair {
                src,
                dst,
                bits_per_sec: Some(rate(src, dst, slow)),
                expected_bits_per_sec: Some(PAYLOAD),
                samples: 2,
                retransmits: Some(u64::from((src.0 * 7 + dst.0 * 3) % 5)),
                rtt_us: Some(400 + (src.0 * 13 + dst.0 * 29) % 700),
                missing: None,
            });
        }
    }
    host_pairs
}

fn rack_pairs(racks: u32, per_rack: u32, ratio: f64) -> Vec<RackPairAnalysis> {
    let mut pairs = Vec::new();
    for from in 0..racks {
        for to in (0..racks).filter(|t| *t != from) {
            let uplink = PAYLOAD * f64::from(per_rack) / ratio;
            pairs.push(RackPairAnalysis {
                from: RackId(from),
                to: RackId(to),
                inside_bits_per_sec: estimate(PAYLOAD),
                across_bits_per_sec: estimate(uplink),
                oversubscription: estimate(ratio),
                limited: Some(ratio > 1.0),
                ramp: (1..=per_rack)
                    .map(|n| (n, (PAYLOAD * f64::from(n)).min(uplink * 0.998)))
                    .collect(),
                knee_senders: (ratio > 1.0).then_some(f64::from(per_rack) / ratio),
                uplink_bits_per_sec: (ratio > 1.0).then_some(uplink),
                details: None,
            });
        }
    }
    pairs
}

pub(crate) fn host(host: HostId, slow: Option<HostId>) -> HostAnalysis {
    let rx = if Some(host) == slow { 0.5 } else { 1.0 };
    HostAnalysis {
        host,
        state: HostState::Alive,
        tx_bits_per_sec: estimate(PAYLOAD * (1.0 - f64::from(host.0 % 5) * 0.001)),
        rx_bits_per_sec: estimate(PAYLOAD * rx * (1.0 - f64::from(host.0 % 3) * 0.002)),
        tx_effect: Some(1.0),
        rx_effect: Some(rx),
        interface: Some(InterfaceFacts {
            name: "eth0".into(),
            speed_bits_per_sec: None,
            mtu_bytes: Some(1500),
            driver: Some("veth".into()),
            duplex: Some("full".into()),
            up: true,
            ..InterfaceFacts::default()
        }),
        kernel: Some("6.12.0".into()),
        congestion: Some("cubic".into()),
        idle_rtt_ns: Some(61_000 + u64::from(host.0) * 900),
        retransmits: Some(u64::from(host.0) * 3),
        clock_error_ns: Some(21_000),
        rejected_connections: 0,
        busiest_cpu: Some(0.42),
        conntrack: None,
        stages: (1..4).map(|stage| host_stage(host, stage, rx)).collect(),
        series: (1..=SECONDS)
            .map(|second| host_point(host, second, rx))
            .collect(),
    }
}

/// Length of a run in readings.
const SECONDS: u64 = 60;

/// A quarter of the run for each stage.
fn span(stage: u64) -> (u64, u64) {
    let begin_ns = stage * SECONDS / 4 * 1_000_000_000 + 1_200_000_000;
    (
        begin_ns,
        begin_ns + SECONDS / 4 * 1_000_000_000 - 2_000_000_000,
    )
}

fn host_stage(host: HostId, stage: u32, rx: f64) -> HostStageAnalysis {
    let busy_share = 0.3 + f64::from((host.0 + stage) % 7) * 0.02;
    HostStageAnalysis {
        stage,
        rounds: 6,
        busiest_cpu: Some(CpuShare {
            cpu: host.0 % 4,
            busy_share,
            user_share: 0.02,
            system_share: 0.12,
            softirq_share: busy_share - 0.14,
            steal_share: 0.0,
            frequency_hz: (host.0 % 4 != 1).then_some(2.4e9),
        }),
        busy_share: Some(0.11),
        throttled_share: None,
        tx_bits_per_sec: Some(LINE * 0.98),
        rx_bits_per_sec: Some(LINE * 0.98 * rx),
        link_bits_per_sec: Some(LINE),
        sent_bits_per_sec: Some(PAYLOAD),
        received_bits_per_sec: Some(PAYLOAD * rx),
        max_sent_bits_per_sec: Some(PAYLOAD),
        max_received_bits_per_sec: Some(PAYLOAD * rx),
        disk: Some(DiskShare {
            name: "vda".into(),
            busy_share: 0.004,
            read_bytes_per_sec: 0.0,
            written_bytes_per_sec: 20_480.0,
            await_ns: Some(700_000),
        }),
        retransmits: Some(u64::from(host.0)),
        tcp_established: Some(14),
        receive_drops: Some(0),
    }
}

fn host_point(host: HostId, second: u64, rx: f64) -> HostPoint {
    let in_stage = (1..4).any(|stage| {
        let (from, to) = span(stage);
        (from..to).contains(&(second * 1_000_000_000))
    });
    let level = if in_stage { 0.98 } else { 0.001 };
    let wave = (second as f64 * 0.7 + f64::from(host.0)).sin();
    HostPoint {
        t_ns: second * 1_000_000_000 + 3_000_000,
        busiest_cpu: Some(0.05 + level * (0.3 + 0.05 * wave)),
        softirq_share: Some(level * (0.18 + 0.05 * wave)),
        steal_share: Some(0.0),
        tx_bits_per_sec: Some(LINE * level * (0.97 + 0.02 * wave)),
        rx_bits_per_sec: Some(LINE * level * rx * (0.97 - 0.02 * wave)),
        disk_busy_share: Some(0.002),
        retransmits_per_sec: Some(if second.is_multiple_of(9) { 3.0 } else { 0.0 }),
    }
}

fn absent(host: HostId, state: HostState) -> HostAnalysis {
    HostAnalysis {
        host,
        state,
        tx_bits_per_sec: None,
        rx_bits_per_sec: None,
        tx_effect: None,
        rx_effect: None,
        interface: None,
        kernel: None,
        congestion: None,
        idle_rtt_ns: None,
        retransmits: None,
        clock_error_ns: None,
        rejected_connections: 0,
        busiest_cpu: None,
        conntrack: None,
        stages: Vec::new(),
        series: Vec::new(),
    }
}

fn stages(hosts: u32, racks: u32, ratio: f64) -> Vec<StageAnalysis> {
    let all = f64::from(hosts) * PAYLOAD;
    let mut idle = stage(
        "idle round trips",
        "mesh",
        "tcp-rr (engine)",
        hosts - 1,
        0.0,
        hosts,
    );
    idle.aggregate_bits_per_sec = None;
    idle.flow_bits_per_sec = None;
    idle.of_expected = None;
    idle.retransmits = None;
    idle.judged = false;
    idle.latency = Some(workloads::latency(20_000, 1.0));
    idle.rtt_ns = Some((48_000, 63_000, 121_000));
    idle.timeline.clear();
    let mut stages = vec![
        idle,
        stage(
            "intra-rack",
            "permutation",
            "tcp-stream (engine)",
            6,
            all,
            hosts,
        ),
        stage(
            "cross-rack",
            "cross-rack",
            "tcp-stream (engine)",
            6 * (racks - 1),
            all / ratio,
            hosts,
        ),
        stage("mesh", "mesh", "tcp-stream (engine)", hosts - 1, all, hosts),
    ];
    for (index, stage) in (0..).zip(&mut stages) {
        stage.span_ns = Some(span(index));
    }
    stages
}

pub(crate) fn stage(
    name: &str,
    pattern: &str,
    workload: &str,
    rounds: u32,
    sum: f64,
    hosts: u32,
) -> StageAnalysis {
    let flow = sum / f64::from(hosts);
    StageAnalysis {
        name: name.into(),
        pattern: pattern.into(),
        workload: workload.into(),
        kind: match workload.starts_with("tcp-rr") {
            true => WorkloadKind::TcpRr,
            false => WorkloadKind::TcpStream,
        },
        settings: Vec::new(),
        judged: true,
        labels: Vec::new(),
        latency: None,
        datagrams: None,
        pairs: Vec::new(),
        sender_cpu: None,
        receiver_cpu: None,
        rounds,
        flows: rounds * hosts,
        missing: 0,
        aggregate_bits_per_sec: estimate(sum),
        flow_bits_per_sec: estimate(flow),
        slowest_bits_per_sec: Some(flow * 0.5),
        fastest_bits_per_sec: Some(flow * 1.02),
        of_expected: Some(0.996),
        ceiling: (sum > 0.0).then(|| StageCeiling {
            link_bits_per_sec: PAYLOAD,
            aggregate_bits_per_sec: f64::from(hosts) * PAYLOAD,
            reached: flow / PAYLOAD,
        }),
        retransmits: Some(u64::from(rounds) * 11),
        rtt_ns: None,
        start_skew_ns: Some((90_000, 310_000, 480_000)),
        start_skew_error_ns: Some(21_000),
        span_ns: None,
        timeline: (0..rounds)
            .flat_map(|round| {
                (0..10).map(move |i| TimePoint {
                    t_ns: u64::from(round) * 1_500_000_000 + i * 100_000_000,
                    bits_per_sec: sum
                        * (0.97 + 0.03 * (f64::from(round) * 1.7 + i as f64 * 0.9).sin()),
                })
            })
            .collect(),
        random_collisions: None,
        auto: None,
        unconverged: Vec::new(),
        sweep: None,
    }
}

/// As virtual devices have it, all seen.
pub(crate) fn framing() -> KnownFraming {
    KnownFraming {
        framing: Framing {
            mtu_bytes: 1500,
            ipv6: false,
            transport: Transport::Tcp { timestamps: true },
            tunnels: Vec::new(),
            vlan_tags: 0,
            counting: LinkCounting::EthernetHeader,
        },
        is_mtu_known: true,
        are_timestamps_known: true,
    }
}

pub(crate) fn basis() -> Basis {
    Basis {
        nic_bits_per_sec: Some(LINE),
        nic_rate_source: NicRateSource::Configured,
        efficiency: 1448.0 / 1514.0,
        framing: framing(),
    }
}

fn quantity(value: f64, unit: &str) -> Option<Quantity> {
    Some(Quantity {
        value,
        low: Some(value * 0.98),
        high: Some(value * 1.02),
        unit: unit.into(),
    })
}

/// A number of things.
pub(crate) fn count(value: f64) -> Option<Quantity> {
    exact(value, "count")
}

/// A rack whose uplinks limit it out of the rack, or do not limit it at all.
pub(crate) fn rack(rack: u32, ratio: Option<f64>) -> RackAnalysis {
    let hosts = 4.0 * PAYLOAD;
    let free = UplinkAnalysis {
        hosts_bits_per_sec: hosts,
        carried_bits_per_sec: hosts * 0.98,
        capacity_bits_per_sec: None,
        oversubscription: None,
        limited: Some(false),
    };
    let full = |ratio: f64| UplinkAnalysis {
        carried_bits_per_sec: hosts / ratio,
        capacity_bits_per_sec: estimate(hosts / ratio),
        oversubscription: estimate(ratio),
        limited: Some(true),
        ..free
    };
    RackAnalysis {
        rack: RackId(rack),
        tx: ratio.map_or(free, full),
        rx: free,
        paths: Vec::new(),
    }
}

fn exact(value: f64, unit: &str) -> Option<Quantity> {
    Some(Quantity {
        value,
        low: None,
        high: None,
        unit: unit.into(),
    })
}

/// That a host never came up, and why, in the words of another program.
pub(crate) fn host_missing(host: HostId, message: String) -> Finding {
    Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host },
        cause: Cause::HostMissing,
        symptom: None,
        measured: None,
        expected: None,
        confidence: Confidence::High,
        details: Details::HostsMissing(HostsMissing {
            hosts: vec![host],
            absence: Absence::NeverCameUp,
            missing_flows: 0,
            reasons: vec![AbsenceReason { host, message }],
            pod_ends: Vec::new(),
        }),
        cables: Vec::new(),
    }
}

pub(crate) fn verdict(ratio: f64, slow: Option<HostId>) -> Verdict {
    let mut findings = Vec::new();
    if ratio > 1.0 {
        for (from, to) in [(0, 1), (1, 0)] {
            findings.push(uplink_finding(ratio, RackId(from), RackId(to)));
        }
    }
    if let Some(slow) = slow {
        findings.push(slow_finding(slow));
    }
    let status = if findings.is_empty() {
        VerdictStatus::NothingWrong
    } else {
        VerdictStatus::Worse
    };
    Verdict {
        status,
        findings,
        grounds: Grounds {
            is_judged: true,
            typical_bits_per_sec: estimate(PAYLOAD),
            uplinks: UplinkTest::NoneLimits,
            ..Grounds::default()
        },
    }
}

fn uplink_finding(ratio: f64, from: RackId, to: RackId) -> Finding {
    Finding {
        severity: Severity::Fault,
        subject: Subject::RackPair { from, to },
        cause: Cause::Uplink,
        symptom: None,
        measured: quantity(ratio, "ratio"),
        expected: exact(1.0, "ratio"),
        confidence: Confidence::High,
        details: Details::Oversubscribed(Oversubscribed {
            racks: vec![from],
            directions: Directions::Tx,
            ratio: Estimate {
                value: ratio,
                low: Some(ratio * 0.98),
                high: Some(ratio * 1.02),
                samples: 12,
            },
            configured: Some(1.0),
            is_unlike_others: false,
            is_unexpected: true,
            limits: vec![UplinkLimit {
                rack: from,
                direction: Directions::Tx,
                capacity_bits_per_sec: 4.0 * PAYLOAD / ratio,
                hosts_bits_per_sec: 4.0 * PAYLOAD,
                rounds: 6,
                stage: Some("cross-rack".into()),
                rivals: None,
            }],
        }),
        cables: Vec::new(),
    }
}

fn slow_finding(slow: HostId) -> Finding {
    Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host: slow },
        cause: Cause::SlowReceiver,
        symptom: None,
        measured: quantity(PAYLOAD / 2.0, "bits_per_sec"),
        expected: exact(PAYLOAD, "bits_per_sec"),
        confidence: Confidence::High,
        details: Details::SlowHost(slow_host(slow)),
        cables: Vec::new(),
    }
}

/// A host that receives at half its peers' rate.
pub(crate) fn slow_host(host: HostId) -> SlowHost {
    SlowHost {
        host,
        sides: vec![SlowDirection {
            directions: Directions::Rx,
            bits_per_sec: PAYLOAD / 2.0,
        }],
        peers_bits_per_sec: PAYLOAD,
        flows: SideRates {
            host,
            sides: vec![SideRate {
                direction: Directions::Rx,
                stages: vec![StageRate {
                    stage: "mesh".into(),
                    median_bits_per_sec: PAYLOAD / 2.0,
                    flows: 14,
                }],
                peers: 7,
                gain_nats: 210.0,
            }],
            peers: Some(PeersRate {
                median_bits_per_sec: PAYLOAD,
                hosts: 7,
                stages: vec!["mesh".into()],
            }),
        },
        why: None,
        alone_in: None,
    }
}

pub(crate) fn manifest(inventory: Inventory) -> RunManifest {
    RunManifest {
        format_version: 1,
        id: "20261121T210000Z-qualify-7f3a".into(),
        version: "0.1.0".into(),
        started_unix_ns: 1_795_294_800_000_000_000,
        finished_unix_ns: Some(1_795_294_863_500_000_000),
        fleet: "lab".into(),
        command: [
            "eastwest",
            "run",
            "qualify",
            "--hosts",
            "r[1-2]h[01-04]",
            "--racks",
            "@rack[1-2]",
        ]
        .map(String::from)
        .to_vec(),
        scenario: Scenario {
            name: "qualify".into(),
            description: "Is this network what it should be?".into(),
            expect: Expect {
                oversubscription: Some(1.0),
                nic_bits_per_sec: Some(LINE),
                rtt_ns: None,
                paths: None,
                pod_loss: None,
            },
            tests: Vec::new(),
            time_budget_ns: None,
            random_order: false,
            roles: None,
            thresholds: Vec::new(),
        },
        inventory,
        node_labels: Default::default(),
        barriers: Vec::new(),
        seed: 42,
        plan_hash: "9ae16a3b2f90404f".into(),
        outcome: Outcome::Complete,
        controller_peak_bytes: Some(23_000_000),
        controller_cpu_ns: Some(840_000_000),
    }
}
