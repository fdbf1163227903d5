//! Runs with pods in k8s-netperf's tables and field names.

use crate::{common, workloads};
use ew_model::Analysis;
use ew_model::analysis::{CpuAnalysis, CpuSplitShares, DatagramAnalysis, StageAnalysis};
use ew_model::inventory::{Host, Inventory};
use ew_model::pods::{PodComparison, PodFigures, PodPath};
use ew_model::scenario::{Direction, Pattern, Test};
use ew_model::workload::{Workload, WorkloadKind};
use ew_report::{Format, ReportError, TextStyle, render};
use serde_json::{Value, json};

fn report(analysis: &Analysis, format: Format) -> String {
    render(analysis, format, &TextStyle::default()).unwrap()
}

fn test(name: &str, path: PodPath, workload: Workload) -> Test {
    Test {
        name: name.into(),
        pattern: Pattern::Pods { path },
        workload,
        direction: Direction::Forward,
        duration_ns: 10_000_000_000,
        warm_up_ns: 1_000_000_000,
        gap_ns: 200_000_000,
        samples: 3,
        auto: None,
        sizes: Vec::new(),
        optional: false,
        required: false,
        interleaved: true,
    }
}

fn cpu(share: f64) -> Option<CpuAnalysis> {
    Some(CpuAnalysis {
        hosts: 2,
        engine_cpus: 0.5,
        busy_cpus: 8.0 * share,
        busy_share: share,
        softirq_share: share / 2.0,
        steal_share: 0.01,
        split: Some(CpuSplitShares {
            user: share / 8.0,
            nice: 0.0,
            system: share / 4.0,
            iowait: 0.02,
            irq: share / 8.0,
        }),
        micros_per_kib: None,
        micros_per_transaction: None,
    })
}

fn stage(test: &Test, flow: f64) -> StageAnalysis {
    let kind = test.workload.kind;
    let workload = format!("{} (engine)", kind.name());
    let mut stage = common::stage(&test.name, "pods", &workload, 3, flow, 1);
    stage.kind = kind;
    stage.sender_cpu = cpu(0.25);
    stage.receiver_cpu = cpu(0.5);
    if !kind.is_bulk() {
        stage.flow_bits_per_sec = None;
        stage.retransmits = None;
        stage.latency = Some(workloads::latency(20_000, 1.0));
    }
    stage
}

fn comparison(stage: &str, baseline: &str, kind: WorkloadKind, figures: [f64; 2]) -> PodComparison {
    let figures = PodFigures {
        stage: stage.into(),
        baseline_stage: baseline.into(),
        path: PodPath::OtherNode,
        baseline_path: PodPath::HostNetwork,
        kind,
        streams: 4,
        figure: common::estimate(figures[0]).unwrap(),
        baseline: common::estimate(figures[1]).unwrap(),
        ratio: common::estimate(figures[0] / figures[1]).unwrap(),
        p_value: None,
        significant: false,
        exceeded_loss_share: None,
        node_cpu: [None; 2],
        agent_cpus: [None; 2],
        baseline_node_cpu: [None; 2],
        baseline_agent_cpus: [None; 2],
    };
    PodComparison {
        figures,
        causes: Vec::new(),
    }
}

fn of_two_nodes(tests: Vec<Test>) -> Analysis {
    let mut analysis = common::demo();
    let names = ["n1", "n1/pod", "n2", "n2/pod"];
    let host = |name: &str| Host {
        name: name.into(),
        address: None,
        rack: None,
    };
    analysis.run = common::manifest(Inventory {
        hosts: names.map(host).to_vec(),
        racks: Vec::new(),
    });
    analysis.run.scenario.name = "pods".into();
    let labels = |zone: &str| {
        let pairs = [
            ("kubernetes.io/arch", "amd64"),
            ("topology.kubernetes.io/zone", zone),
        ];
        pairs
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    };
    analysis.run.node_labels = [("n1", "a"), ("n2", "b")]
        .map(|(node, zone)| (node.to_owned(), labels(zone)))
        .into();
    analysis.run.scenario.tests = tests;
    analysis.hosts.truncate(names.len());
    analysis
}

/// Streams and requests by nodes and pods, a stream through a Service that has no figure, and lost
/// datagrams within a node.
pub(crate) fn pods() -> Analysis {
    let streams = |kind, streams| Workload {
        streams,
        message_bytes: 1024,
        ..Workload::of(kind)
    };
    let requests = Workload {
        outstanding: 5,
        ..Workload::of(WorkloadKind::TcpRr)
    };
    let tests = vec![
        test(
            "host",
            PodPath::HostNetwork,
            streams(WorkloadKind::TcpStream, 4),
        ),
        test(
            "pod",
            PodPath::OtherNode,
            streams(WorkloadKind::TcpStream, 4),
        ),
        test(
            "service",
            PodPath::ClusterIp,
            streams(WorkloadKind::TcpStream, 4),
        ),
        test(
            "udp",
            PodPath::SameNode,
            streams(WorkloadKind::UdpStream, 1),
        ),
        test("rr host", PodPath::HostOtherZone, requests.clone()),
        test("rr", PodPath::OtherZone, requests),
    ];
    let rates = [191.3e6, 184.7e6, 0.0, 90e6, 0.0, 0.0];
    let mut stages: Vec<StageAnalysis> = tests
        .iter()
        .zip(rates)
        .map(|(t, rate)| stage(t, rate))
        .collect();
    let service = &mut stages[2];
    service.missing = service.flows;
    service.flow_bits_per_sec = None;
    service.retransmits = None;
    (service.sender_cpu, service.receiver_cpu) = (None, None);
    stages[3].retransmits = None;
    stages[3].datagrams = Some(DatagramAnalysis {
        received_per_sec: None,
        received: 990,
        lost: 10,
        loss: Some(0.01),
        worst_loss: Some(0.01),
        reordered: 0,
        duplicates: 0,
        jitter_ns: 0,
        worst_jitter_ns: 0,
        one_way: None,
    });
    let mut analysis = of_two_nodes(tests);
    analysis.stages = stages;
    analysis.pods = vec![
        comparison("pod", "host", WorkloadKind::TcpStream, [184.7e6, 191.3e6]),
        comparison("rr", "rr host", WorkloadKind::TcpRr, [9_000.0, 12_000.0]),
    ];
    analysis
}

#[test]
fn tables_have_the_columns_of_k8s_netperf() {
    insta::assert_snapshot!(report(&pods(), Format::K8sNetperf));
}

#[test]
fn documents_have_the_fields_of_k8s_netperf() {
    insta::assert_snapshot!(report(&pods(), Format::K8sNetperfJson));
}

#[test]
fn fields_mean_what_they_mean_there() {
    let documents: Vec<Value> =
        serde_json::from_str(&report(&pods(), Format::K8sNetperfJson)).unwrap();
    assert_eq!(documents.len(), 6);
    let [host, pod, service, udp, _, rr] = [0, 1, 2, 3, 4, 5].map(|row: usize| &documents[row]);
    assert_eq!(
        (&host["hostNetwork"], &pod["hostNetwork"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&pod["throughput"], &pod["tputMetric"]),
        (&json!(184.7), &json!("Mb/s"))
    );
    assert_eq!(
        (&rr["throughput"], &rr["tputMetric"]),
        (&json!(9000.0), &json!("OP/s"))
    );
    assert_eq!(
        (&rr["acrossAZ"], &rr["profile"]),
        (&json!(true), &json!("TCP_RR"))
    );
    assert_eq!(
        (&udp["local"], &udp["udpLossPercent"]),
        (&json!(true), &json!(1.0))
    );
    // Never 0 for what was not measured.
    assert_eq!(
        (&service["service"], &service["throughput"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(
        (&host["serverPods"], &pod["serverPods"][0]["cpuUsage"]),
        (&json!([]), &json!(50.0))
    );
    // Idle is neither waiting for disks nor stolen.
    let cpu = |field: &str| pod["serverCPU"][field].as_f64().unwrap();
    assert!((cpu("idleCPU") - 47.0).abs() < 1e-9, "{pod}");
    assert_eq!((cpu("systemCPU"), cpu("ioCPU")), (12.5, 2.0));
}

#[test]
fn every_message_size_of_a_sweep_has_its_row() {
    let mut analysis = pods();
    let mut swept = test(
        "sizes",
        PodPath::OtherNode,
        Workload::of(WorkloadKind::TcpStream),
    );
    swept.sizes = vec![64, 1024];
    analysis.stages = vec![stage(&swept, 10e6), stage(&swept, 90e6)];
    for (stage, size) in analysis.stages.iter_mut().zip(&swept.sizes) {
        stage.name = format!("sizes {size}");
        stage.sweep = Some("sizes".into());
    }
    analysis.run.scenario.tests = vec![swept];
    let documents: Vec<Value> =
        serde_json::from_str(&report(&analysis, Format::K8sNetperfJson)).unwrap();
    let sizes: Vec<&Value> = documents.iter().map(|d| &d["messageSize"]).collect();
    assert_eq!(sizes, [&json!(64), &json!(1024)]);
}

#[test]
fn a_run_without_pods_is_refused_by_name() {
    for format in [Format::K8sNetperf, Format::K8sNetperfJson] {
        let error = render(&common::demo(), format, &TextStyle::default()).unwrap_err();
        assert!(matches!(error, ReportError::NoPods(_)), "{error}");
        assert!(error.to_string().contains("`qualify`") && error.to_string().contains("run pods"));
        assert!(format.is_of_pods());
    }
}
