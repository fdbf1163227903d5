//! What pods pay against their nodes: each cause where its counters show it, and the same where
//! they do not.

use super::*;
use ew_model::ceiling::{Tunnel, TunnelKind};
use ew_model::facts::InterfaceFacts;
use ew_model::finding::VerdictStatus;
use ew_model::pods::PodCauseKind;
use ew_model::record::FlowRecord;
use ew_model::telemetry::ConntrackCounters;
use ew_model::{Host, Inventory};
use ew_report::{WordedPodCause, WordedPodComparison};

const AGENTS: [(&str, &str); 4] = [
    ("n1", "198.18.0.11"),
    ("n1/pod", "198.19.1.5"),
    ("n2", "198.18.0.12"),
    ("n2/pod", "198.19.2.5"),
];
/// 12 rounds of 3 s, and the readings begin 10 s before.
const STAGE_SECONDS: u64 = 36;
/// In the order of the plan.
const HOST: u64 = 0;
const POD: u64 = 1;

/// Nodes and their pods, all as fast as each other.
fn pods_run(workload: &str) -> Run {
    let yaml = format!(
        "name: pods
defaults: {{duration: 2s, warm-up: 300ms, gap: 700ms, samples: 12, workload: {workload}}}
tests:
  - {{name: host, pattern: {{pods: {{path: host-network}}}}}}
  - {{name: pod, pattern: {{pods: {{path: other-node}}}}}}
  - {{name: service, pattern: {{pods: {{path: cluster-ip}}}}}}
"
    );
    let mut truth = Truth::new(&[4], 1.0);
    let host = |(name, address): (&str, &str)| Host {
        name: name.into(),
        address: address.parse().ok(),
        rack: None,
    };
    truth.inventory = Inventory {
        hosts: AGENTS.map(host).to_vec(),
        racks: Vec::new(),
    };
    (truth.noise, truth.hiccups) = (0.002, 0.0);
    let scenario = ew_plan::scenario::parse(&yaml, "pods", &[]).unwrap();
    let plan = ew_plan::plan(&scenario, &truth.inventory, 7).unwrap();
    let mut run = truth.run(scenario, plan, 7);
    set_windows(&mut run);
    let run = of_rows(run, "", |row| set_segment(row, 1448));
    with_counters(run, |_| false, |_, _| {})
}

/// Rows of the stage, or of all for "".
fn of_rows(mut run: Run, stage: &str, change: impl Fn(&mut FlowRecord)) -> Run {
    let named = |row: &FlowRecord| run.plan.stages[row.stage.0 as usize].name == stage;
    let chosen: Vec<bool> = run
        .flows
        .iter()
        .map(|row| stage.is_empty() || named(row))
        .collect();
    for (row, _) in run
        .flows
        .iter_mut()
        .zip(chosen)
        .filter(|(_, chosen)| *chosen)
    {
        change(row);
    }
    run
}

fn scaled(run: Run, stage: &str, factor: f64) -> Run {
    of_rows(run, stage, |row| {
        for end in [&mut row.sender, &mut row.receiver].into_iter().flatten() {
            end.bytes = (end.bytes as f64 * factor) as u64;
            end.intervals.clear();
        }
    })
}

fn set_segment(row: &mut FlowRecord, bytes: u32) {
    let streams = row.sender.iter_mut().flat_map(|end| &mut end.streams);
    for info in streams.filter_map(|stream| stream.tcp_info.as_mut()) {
        info.send_mss_bytes = bytes;
    }
}

/// Readings of the named agents; `seconds` have passed of the stages in `during`.
fn with_growth(
    mut run: Run,
    agents: &[&str],
    during: &[u64],
    change: impl Fn(&mut HostSample, u64),
) -> Run {
    for name in agents {
        let host = run.manifest.inventory.find(name).unwrap();
        for sample in run.samples.get_mut(&host).unwrap() {
            let second = sample.agent_ns / SECOND;
            let of_stage = |stage: &u64| {
                let begin = 10 + stage * STAGE_SECONDS;
                second.clamp(begin, begin + STAGE_SECONDS) - begin
            };
            change(sample, during.iter().map(of_stage).sum());
        }
    }
    run
}

fn interface<'r>(run: &'r mut Run, agent: &str) -> &'r mut InterfaceFacts {
    let host = run.manifest.inventory.find(agent).unwrap();
    &mut run.facts.get_mut(&host).unwrap().interfaces[0]
}

/// Both nodes have a VXLAN device.
fn with_tunnel(mut run: Run) -> Run {
    for node in ["n1", "n2"] {
        let host = run.manifest.inventory.find(node).unwrap();
        run.facts
            .get_mut(&host)
            .unwrap()
            .interfaces
            .push(InterfaceFacts {
                name: "vx0".into(),
                mtu_bytes: Some(1450),
                up: true,
                tunnel: Some(Tunnel {
                    kind: TunnelKind::Vxlan,
                    outer_ipv6: false,
                    extra_bytes: 0,
                }),
                ..InterfaceFacts::default()
            });
    }
    run
}

/// What passes the device while pods of different nodes talk.
fn with_tunnel_bytes(run: Run, bytes_per_sec: u64) -> Run {
    with_growth(run, &["n1", "n2"], &[POD], |sample, seconds| {
        sample.interfaces.push(InterfaceCounters {
            name: "vx0".into(),
            tx_bytes: bytes_per_sec * seconds,
            ..InterfaceCounters::default()
        });
    })
}

fn comparison(run: &Run, stage: &str) -> WordedPodComparison {
    let analysis = analyze(run);
    let mut all = analysis.pods.iter();
    let found = all.find(|found| found.stage == stage).unwrap();
    ew_report::worded_pods(found, analysis.inventory())
}

fn cause(run: &Run, stage: &str, kind: PodCauseKind) -> Option<WordedPodCause> {
    let mut causes = comparison(run, stage).causes.into_iter();
    causes.find(|cause| cause.kind == kind)
}

fn undetermined(run: &Run, stage: &str) {
    let found = comparison(run, stage);
    assert!(found.significant, "{found:#?}");
    let kinds: Vec<_> = found.causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(kinds, [PodCauseKind::NotDetermined], "{}", found.sentence);
}

#[test]
fn paths_alike_have_no_cause() {
    let found = comparison(&pods_run("tcp-stream"), "pod");
    assert!(!found.significant && found.causes.is_empty(), "{found:#?}");
    undetermined(&scaled(pods_run("tcp-stream"), "pod", 0.8), "pod");
}

#[test]
fn a_tunnel_is_one_that_the_path_passes() {
    let small = of_rows(pods_run("tcp-stream"), "pod", |row| set_segment(row, 1398));
    let slower = with_tunnel(scaled(small, "pod", 1398.0 / 1448.0));
    let through = with_tunnel_bytes(slower.clone(), 20_000_000);
    let found = cause(&through, "pod", PodCauseKind::Encapsulation).unwrap();
    assert!(
        found
            .words
            .starts_with("VXLAN encapsulation, MTU 1450 in pods: 3.5%"),
        "{}",
        found.words
    );
    assert!(found.share.unwrap() > 0.9, "{found:#?}");
    // The same device of another network, through which next to nothing goes.
    let beside = with_tunnel_bytes(slower, 10_000);
    assert_eq!(cause(&beside, "pod", PodCauseKind::Encapsulation), None);
    // What is left of it is the smaller packet alone, 0.1%.
    undetermined(&beside, "pod");
}

#[test]
fn a_smaller_mtu_is_one_without_a_tunnel() {
    let ratio = (524.0 / 590.0) / (1448.0 / 1514.0);
    let small = of_rows(pods_run("tcp-stream"), "pod", |row| set_segment(row, 524));
    let slower = scaled(small, "pod", ratio);
    let found = cause(&slower, "pod", PodCauseKind::Mtu).unwrap();
    assert!(
        found.words.contains("MTU 576 in pods: 7.1%"),
        "{}",
        found.words
    );
    // An unused tunnel changes nothing.
    let beside = with_tunnel_bytes(with_tunnel(slower), 0);
    assert!(cause(&beside, "pod", PodCauseKind::Mtu).is_some());
    assert_eq!(cause(&beside, "pod", PodCauseKind::Encapsulation), None);
    // Nor is an MTU to blame where segments are as large as ever.
    undetermined(&scaled(pods_run("tcp-stream"), "pod", ratio), "pod");
}

#[test]
fn datagrams_in_fragments_of_a_tunnel() {
    // 1448 bytes: at MTU 1500 a frame of 1490; in VXLAN fragments of 1444 and 52, each in a frame
    // of 64 more.
    let ratio = (1448.0 / 1624.0) / (1448.0 / 1490.0);
    let mut run = scaled(pods_run("udp-stream, message-size: 1448"), "pod", ratio);
    for pod in ["n1/pod", "n2/pod"] {
        interface(&mut run, pod).mtu_bytes = Some(1450);
    }
    let through = with_tunnel_bytes(with_tunnel(run.clone()), 20_000_000);
    let found = cause(&through, "pod", PodCauseKind::Encapsulation).unwrap();
    assert!(
        found
            .words
            .contains("MTU 1450 in pods, datagrams in 2 fragments: 8.3%"),
        "{}",
        found.words
    );
    assert!(found.share.unwrap() > 0.9, "{found:#?}");
    for pod in ["n1/pod", "n2/pod"] {
        interface(&mut run, pod).mtu_bytes = Some(1500);
    }
    undetermined(&run, "pod");
}

#[test]
fn softirq_that_fills_a_cpu_with_pods_alone() {
    let busy = |during: &[u64]| {
        let slower = scaled(pods_run("tcp-stream"), "pod", 0.7);
        with_growth(slower, &["n2/pod", "n2"], during, |sample, seconds| {
            let cpu = &mut sample.cpus[1];
            cpu.softirq_ticks = Some(65 * seconds);
            cpu.idle_ticks -= 65 * seconds;
        })
    };
    let found = cause(&busy(&[POD]), "pod", PodCauseKind::Softirq).unwrap();
    assert_eq!(found.words, "softirq on CPU 1 of n2 saturated");
    undetermined(&busy(&[HOST, POD]), "pod");
}

#[test]
fn the_cpu_limit_of_exactly_that_pod() {
    let limited = scaled(pods_run("tcp-stream"), "pod", 0.5);
    let limited = with_growth(limited, &["n2/pod"], &[POD], |sample, seconds| {
        let group = &mut causes(sample).cgroup;
        group.cpu_throttled_us = Some(600_000 * seconds);
        (group.cpu_quota_us, group.cpu_period_us) = (Some(5_000), Some(100_000));
    });
    let found = cause(&limited, "pod", PodCauseKind::CpuLimit).unwrap();
    assert!(
        found
            .words
            .starts_with("CPU limit (0.05 CPU) throttled pod n2/pod 60%"),
        "{}",
        found.words
    );
    assert_eq!(found.evidence.len(), 1, "{found:#?}");
}

/// What the threads of the server's pod used and waited for, and how busy its node was, in CPUs.
fn with_threads(run: Run, used: f64, waited: f64, busy: f64) -> Run {
    let server = run.manifest.inventory.find("n2/pod").unwrap();
    let limited = with_growth(run, &["n2/pod"], &[POD], |sample, _| {
        let group = &mut causes(sample).cgroup;
        group.cpu_throttled_us = Some(0);
        (group.cpu_quota_us, group.cpu_period_us) = (Some(20_000), Some(100_000));
    });
    of_rows(limited, "pod", |row| {
        let end = match row.src == server {
            true => row.sender.as_mut(),
            false => row.receiver.as_mut(),
        };
        let end = end.unwrap();
        let of_window = |cpus: f64| (cpus * end.window_ns as f64) as u64;
        end.cpu = Some(CpuUse {
            engine_ns: of_window(used),
            engine_wait_ns: Some(of_window(waited)),
            busy_ns: of_window(busy),
            cpus: 2,
            ..CpuUse::default()
        });
    })
}

/// On a container's limit its pod's group, which has the same, is throttled first as often as its
/// own: the counters that it can read stay at 0.
#[test]
fn a_cpu_limit_that_the_groups_counters_do_not_show() {
    let slow = scaled(pods_run("tcp-stream"), "pod", 0.3);
    let limit = |used, waited, busy| {
        let run = with_threads(slow.clone(), used, waited, busy);
        cause(&run, "pod", PodCauseKind::CpuLimit)
    };
    let found = limit(0.19, 0.63, 0.5).unwrap();
    assert!(
        found
            .words
            .starts_with("CPU limit (0.20 CPU) throttled pod n2/pod 63%"),
        "{}",
        found.words
    );
    assert_eq!(limit(0.12, 0.63, 0.5), None, "the limit was not reached");
    assert_eq!(limit(0.19, 0.01, 0.5), None, "nothing waited");
    assert_eq!(limit(0.19, 0.63, 1.9), None, "the node was busy");
}

/// CPU time of both ends: a share of two CPUs while the flow's bytes were moved.
fn with_busy_nodes(run: Run, stage: &str, share: f64) -> Run {
    of_rows(run, stage, |row| {
        for end in [&mut row.sender, &mut row.receiver].into_iter().flatten() {
            end.cpu = Some(CpuUse {
                busy_ns: (share * 2.0 * end.window_ns as f64) as u64,
                cpus: 2,
                moved_bytes: end.bytes,
                ..CpuUse::default()
            });
        }
    })
}

#[test]
fn a_data_path_that_takes_more_cpu_time() {
    let slower = with_busy_nodes(scaled(pods_run("tcp-stream"), "pod", 0.7), "pod", 0.95);
    let dearer = with_busy_nodes(slower.clone(), "host", 0.95);
    let found = cause(&dearer, "pod", PodCauseKind::PodDatapath).unwrap();
    assert!(
        found.words.contains("1.4x the CPU time per KiB"),
        "{}",
        found.words
    );
    // As much for every byte: the CPUs are full of something else.
    undetermined(&with_busy_nodes(slower, "host", 0.95 / 0.7), "pod");
}

#[test]
fn a_service_costs_what_the_same_pods_do_without() {
    let service = scaled(pods_run("tcp-stream"), "service", 0.8);
    let found = cause(&service, "service", PodCauseKind::ServicePath).unwrap();
    assert!(
        found.words.contains("20% below the same pods without it"),
        "{}",
        found.words
    );
    let both = scaled(service, "pod", 0.8);
    undetermined(&both, "service");
}

#[test]
fn connection_tracking_that_refuses_with_pods_alone() {
    let refusing = |during: &[u64]| {
        let slower = scaled(pods_run("tcp-stream"), "pod", 0.8);
        with_growth(slower, &["n1"], during, |sample, seconds| {
            causes(sample).conntrack = Some(ConntrackCounters {
                entries: 65_000,
                max_entries: Some(65_536),
                insert_failed: 0,
                dropped: 50 * seconds,
                early_dropped: 0,
            });
        })
    };
    let found = cause(&refusing(&[POD]), "pod", PodCauseKind::Conntrack).unwrap();
    assert!(
        found
            .words
            .starts_with("conntrack of n1 dropped 50 packets"),
        "{}",
        found.words
    );
    undetermined(&refusing(&[HOST, POD]), "pod");
}

#[test]
fn a_nic_that_drops_or_is_full() {
    let slower = || scaled(pods_run("tcp-stream"), "pod", 0.8);
    let dropping = |during: &[u64]| {
        with_growth(slower(), &["n2"], during, |sample, seconds| {
            sample.interfaces[0].rx_drops = 400 * seconds;
        })
    };
    let found = cause(&dropping(&[POD]), "pod", PodCauseKind::NodeNic).unwrap();
    assert_eq!(
        found.words,
        "NIC eth0 of n2 dropped 400 packets/s (0/s without pods)"
    );
    undetermined(&dropping(&[HOST, POD]), "pod");
    let at = |bytes_per_sec: u64| {
        let mut run = with_growth(slower(), &["n1", "n2"], &[POD], |sample, seconds| {
            sample.interfaces[0].tx_bytes = bytes_per_sec * seconds;
        });
        for node in ["n1", "n2"] {
            interface(&mut run, node).speed_bits_per_sec = Some(200e6);
        }
        run
    };
    let found = cause(&at(24_500_000), "pod", PodCauseKind::NodeNic).unwrap();
    assert_eq!(
        found.words,
        "NIC eth0 of n1 at line rate (196 Mb/s with less goodput)"
    );
    undetermined(&at(19_000_000), "pod");
}

#[test]
fn a_loss_above_what_is_allowed_fails_the_run() {
    let mut run = scaled(pods_run("tcp-stream"), "pod", 0.8);
    let status = |run: &Run| analyze(run).verdict.status;
    assert_eq!(status(&run), VerdictStatus::AsExpected);
    run.manifest.scenario.expect.pod_loss = Some(0.3);
    assert_eq!(status(&run), VerdictStatus::AsExpected);
    run.manifest.scenario.expect.pod_loss = Some(0.1);
    let analysis = analyze(&run);
    let sentence = ew_report::in_words(&analysis).sentence;
    let verdict = analysis.verdict;
    assert_eq!(
        (verdict.status, verdict.status.exit_code()),
        (VerdictStatus::Worse, 1)
    );
    assert!(sentence.contains("above the 10% allowed"), "{sentence}");
    assert_eq!(verdict.findings[0].severity, Severity::Fault);
    // Services are not what is asked for.
    let mut service = scaled(pods_run("tcp-stream"), "service", 0.8);
    service.manifest.scenario.expect.pod_loss = Some(0.1);
    assert_eq!(status(&service), VerdictStatus::AsExpected);
}
