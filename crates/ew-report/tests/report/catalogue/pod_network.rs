//! Pods against their nodes: every cause, and what is above, exceeded or not significant.

use super::{estimate, golden_among};
use ew_model::analysis::{ConntrackRefusals, Estimate};
use ew_model::ceiling::TunnelKind;
use ew_model::finding::Details;
use ew_model::finding::details::PodNetwork;
use ew_model::inventory::Host;
use ew_model::pods::{
    DearerPath, NodeNic, PacketCost, PodCause, PodCauseFacts, PodComparison, PodConntrack,
    PodCpuLimit, PodFigures, PodPath, ReachedLimit, RefusingNode, RestOfDifference,
    SaturatedSoftirq, ServicePath, SlowerPath, SmallerPackets, ThrottledPod, TunnelledPackets,
};
use ew_model::workload::WorkloadKind;
use ew_model::{HostId, Inventory};

const NODE: HostId = HostId(2);
const POD: HostId = HostId(3);

#[test]
fn by_every_cause() {
    insta::assert_snapshot!(golden_among(&names(), &cases()));
}

#[test]
fn a_difference_has_its_interval_load_and_cause() {
    let lower = with(lower(), softirq(Some(0.41)), None);
    assert_eq!(
        sentence(&lower),
        "pods on different nodes: 27% below hostNetwork (25-29%), tcp-stream x8. Cause: softirq on CPU 3 of n2 saturated"
    );
    let exceeding = PodComparison {
        figures: PodFigures {
            exceeded_loss_share: Some(0.1),
            ..lower.figures.clone()
        },
        ..lower
    };
    assert_eq!(
        sentence(&exceeding),
        "pods on different nodes: 27% below hostNetwork (25-29%), above the 10% allowed, tcp-stream x8. Cause: softirq on CPU 3 of n2 saturated"
    );
    let slight = PodComparison {
        figures: of_ratio(estimate(0.966, 0.962, 0.969)),
        causes: Vec::new(),
    };
    assert!(sentence(&slight).contains("3.4% below hostNetwork (3.1-3.8%)"));
}

#[test]
fn none_is_reported_as_none() {
    let alike = PodComparison {
        figures: PodFigures {
            significant: false,
            ..of_ratio(estimate(0.998, 0.99, 1.01))
        },
        causes: Vec::new(),
    };
    assert_eq!(
        sentence(&alike),
        "pods on different nodes: no significant difference from hostNetwork (73.0 Gb/s vs 100 Gb/s), tcp-stream x8"
    );
}

fn sentence(comparison: &PodComparison) -> String {
    ew_report::worded_pods(comparison, &names()).sentence
}

/// Two nodes, each with a pod.
fn names() -> Inventory {
    let host = |name: &str| Host {
        name: name.into(),
        address: None,
        rack: None,
    };
    Inventory {
        hosts: ["n1", "n1/pod", "n2", "n2/pod"].map(host).to_vec(),
        racks: Vec::new(),
    }
}

/// One per case.
pub(crate) fn comparisons() -> Vec<PodComparison> {
    by_case().into_iter().map(|(_, found)| found).collect()
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let finding = |comparison| {
        Details::PodNetwork(PodNetwork {
            comparison: Box::new(comparison),
        })
    };
    let by_case = by_case().into_iter();
    by_case
        .map(|(case, found)| (case, finding(found)))
        .collect()
}

fn by_case() -> Vec<(&'static str, PodComparison)> {
    [of_packets(), of_cpus(), of_paths(), without_cause()].concat()
}

/// What a message costs.
fn of_packets() -> Vec<(&'static str, PodComparison)> {
    let tunnelled = |packets| {
        PodCauseFacts::Encapsulation(TunnelledPackets {
            tunnel: TunnelKind::Vxlan,
            interface: "flannel.1".into(),
            packets,
        })
    };
    let fragments = SmallerPackets {
        pods: cost(1448, 2, 1624),
        nodes: cost(1448, 1, 1490),
        lost_share: 0.083,
        ..packets(true)
    };
    let smaller = |packets| PodCauseFacts::Mtu(packets);
    vec![
        (
            "a tunnel, all of it",
            with(lower(), tunnelled(packets(true)), Some(0.98)),
        ),
        (
            "a tunnel, fragments",
            with(lower(), tunnelled(fragments), Some(1.0)),
        ),
        (
            "a smaller MTU, a part, the rest open",
            PodComparison {
                figures: lower(),
                causes: vec![
                    cause(smaller(packets(false)), Some(0.13)),
                    cause(rest(true), None),
                ],
            },
        ),
    ]
}

fn of_cpus() -> Vec<(&'static str, PodComparison)> {
    let limit = |pods: Vec<ThrottledPod>| PodCauseFacts::CpuLimit(PodCpuLimit { pods });
    let dearer = || {
        PodCauseFacts::DearerPath(DearerPath {
            cpu_ns: 1420.0,
            baseline_cpu_ns: 1010.0,
        })
    };
    let slower = PodCauseFacts::SlowerPath(SlowerPath {
        transaction_ns: 61_300.0,
        baseline_transaction_ns: 48_200.0,
    });
    vec![
        (
            "a CPU limit, as counted",
            with(lower(), limit(vec![throttled(Some(0.5), false)]), None),
        ),
        (
            "CPU limits of two, one not known, one reached",
            with(
                lower(),
                limit(vec![throttled(None, false), throttled(Some(0.2), true)]),
                None,
            ),
        ),
        (
            "a reached limit that is not known",
            with(lower(), limit(vec![throttled(None, true)]), None),
        ),
        ("softirq", with(lower(), softirq(Some(0.41)), None)),
        (
            "softirq, nothing read without pods",
            with(lower(), softirq(None), None),
        ),
        ("CPU time of bytes", with(lower(), dearer(), None)),
        (
            "CPU time of transactions",
            with(transactions(), dearer(), None),
        ),
        ("time of transactions", with(transactions(), slower, None)),
    ]
}

fn of_paths() -> Vec<(&'static str, PodComparison)> {
    let refusing = |host, max_entries| RefusingNode {
        host,
        packets_per_sec: 50.2,
        baseline_packets_per_sec: 0.4,
        refused: ConntrackRefusals {
            packets: 1800,
            entries: 65_000,
            max_entries,
        },
    };
    let conntrack = |nodes: Vec<RefusingNode>| PodCauseFacts::Conntrack(PodConntrack { nodes });
    let service = PodCauseFacts::ServicePath(ServicePath {
        direct_stage: "pod".into(),
        ratio: 0.804,
    });
    let nic = |is_dropping| {
        PodCauseFacts::NodeNic(NodeNic {
            host: NODE,
            interface: "eth0".into(),
            bits_per_sec: 98.4e9,
            drops_per_sec: 400.0,
            baseline_drops_per_sec: 2.0,
            is_dropping,
        })
    };
    vec![
        (
            "conntrack, full",
            with(lower(), conntrack(vec![refusing(NODE, Some(65_536))]), None),
        ),
        (
            "conntrack of two, not full",
            with(
                lower(),
                conntrack(vec![refusing(NODE, None), refusing(HostId(0), None)]),
                None,
            ),
        ),
        (
            "a Service",
            with(
                PodFigures {
                    stage: "service".into(),
                    path: PodPath::ClusterIp,
                    ..lower()
                },
                service,
                Some(0.7),
            ),
        ),
        ("a NIC that drops", with(lower(), nic(true), None)),
        ("a NIC that is full", with(lower(), nic(false), None)),
    ]
}

fn without_cause() -> Vec<(&'static str, PodComparison)> {
    let alone = |figures| PodComparison {
        figures,
        causes: Vec::new(),
    };
    vec![
        ("not determined", with(lower(), rest(false), None)),
        (
            "more than is allowed",
            with(
                PodFigures {
                    exceeded_loss_share: Some(0.05),
                    ..lower()
                },
                rest(false),
                None,
            ),
        ),
        ("above", alone(of_ratio(estimate(1.12, 1.08, 1.15)))),
        (
            "without interval and test, one stream",
            alone(PodFigures {
                streams: 1,
                p_value: None,
                ..of_ratio(Estimate {
                    value: 0.73,
                    low: None,
                    high: None,
                    samples: 3,
                })
            }),
        ),
        (
            "not significant, transactions",
            alone(PodFigures {
                significant: false,
                ..transactions()
            }),
        ),
    ]
}

fn with(figures: PodFigures, facts: PodCauseFacts, share: Option<f64>) -> PodComparison {
    PodComparison {
        figures,
        causes: vec![cause(facts, share)],
    }
}

fn cause(facts: PodCauseFacts, share: Option<f64>) -> PodCause {
    PodCause { facts, share }
}

fn rest(is_partly_explained: bool) -> PodCauseFacts {
    PodCauseFacts::NotDetermined(RestOfDifference {
        is_partly_explained,
    })
}

fn softirq(baseline_busy_share: Option<f64>) -> PodCauseFacts {
    PodCauseFacts::Softirq(SaturatedSoftirq {
        host: POD,
        cpu: 3,
        busy_share: 0.97,
        softirq_share: 0.88,
        baseline_busy_share,
    })
}

fn throttled(limit_cpus: Option<f64>, is_reached: bool) -> ThrottledPod {
    ThrottledPod {
        host: POD,
        throttled_share: 0.6,
        limit_cpus,
        reached: is_reached.then_some(ReachedLimit {
            used_cpus: 0.19,
            waited_share: 0.63,
        }),
    }
}

fn packets(is_all: bool) -> SmallerPackets {
    SmallerPackets {
        mtu_bytes: 1450,
        pods: cost(1398, 1, 1514),
        nodes: cost(1448, 1, 1514),
        lost_share: 0.0345,
        is_all,
    }
}

fn cost(message_bytes: u64, packets: u64, counted_bytes: u64) -> PacketCost {
    PacketCost {
        message_bytes,
        packets,
        counted_bytes,
    }
}

fn lower() -> PodFigures {
    of_ratio(estimate(0.73, 0.71, 0.75))
}

fn transactions() -> PodFigures {
    PodFigures {
        kind: WorkloadKind::TcpRr,
        streams: 1,
        figure: estimate(16_300.4, 16_000.0, 16_500.0),
        baseline: estimate(20_700.0, 20_500.0, 20_900.0),
        ..lower()
    }
}

fn of_ratio(ratio: Estimate) -> PodFigures {
    PodFigures {
        stage: "pod".into(),
        baseline_stage: "host".into(),
        path: PodPath::OtherNode,
        baseline_path: PodPath::HostNetwork,
        kind: WorkloadKind::TcpStream,
        streams: 8,
        figure: estimate(73e9, 72e9, 75e9),
        baseline: estimate(100e9, 99e9, 101e9),
        ratio,
        p_value: Some(0.004),
        significant: true,
        exceeded_loss_share: None,
        node_cpu: [Some(0.4), None],
        agent_cpus: [None; 2],
        baseline_node_cpu: [None; 2],
        baseline_agent_cpus: [None; 2],
    }
}
