//! The metrics of a fixed story, and the dashboard and the reference page that go with them.

use crate::common;
use ew_model::event::RunEvent;
use ew_model::facts::{CpuCounters, HostFacts, HostSample, InterfaceCounters, InterfaceFacts};
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{FlowId, Plan, RoundIndex, Stage, StageIndex};
use ew_model::record::{EndRecord, FlowOutcome, FlowRecord, StreamRecord};
use ew_model::scenario::{Expect, Pattern};
use ew_model::storage::{
    DataNode, DataNodeState, FileOutcome, FileRecord, HdfsFacts, StorageJob, StorageOperation,
    StorageReport, StorageStep,
};
use ew_model::telemetry::{
    CauseCounters, CgroupReading, DiskCounters, MemoryReading, Pressure, ProtocolCounters,
    ReadingCost, SoftnetCounters, StallCounters,
};
use ew_model::workload::{Workload, WorkloadKind};
use ew_report::prometheus::Exposition;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

const SECOND: u64 = 1_000_000_000;
const BEGAN_UNIX_NS: u64 = 1_795_305_600 * SECOND;

#[test]
fn a_round_of_two_hosts() {
    insta::assert_snapshot!(reported(&story()));
}

#[test]
fn a_storage_step_and_the_next_one() {
    let page = reported(&storage_story());
    let storage = page
        .lines()
        .filter(|line| line.starts_with("eastwest_storage_"));
    insta::assert_snapshot!(storage.collect::<Vec<_>>().join("\n"));
    assert!(!reported(&story()).contains("eastwest_storage_"));
}

#[test]
fn before_the_first_event_there_is_nothing() {
    assert_eq!(reported(&[]), "");
}

#[test]
fn what_was_not_read_has_no_series() {
    let page = reported(&story()[..2]);
    assert!(page.contains("eastwest_host_up{host=\"r1h01\",rack=\"rack1\"} 1\n"));
    assert!(page.contains("eastwest_host_up{host=\"r2h01\",rack=\"rack2\"} 0\n"));
    for absent in ["cpu_seconds", "network", "goodput", "disk", "memory"] {
        assert!(!page.contains(absent), "{absent} in {page}");
    }
}

#[test]
fn series_grow_with_hosts_and_with_nothing_else() {
    let count = |hosts: u32| {
        let mut exposition = Exposition::new("1.2.3", BEGAN_UNIX_NS);
        exposition.take(0, &started(hosts / 2));
        for host in 0..hosts {
            exposition.take(1, &up(host));
            exposition.take(2, &sampled(host, 1, 64));
        }
        let rounds = (0..hosts).map(|round| RunEvent::RoundFinished {
            stage: StageIndex(0),
            round: RoundIndex(round),
            records: (0..hosts).map(|to| record(0, to, 1_000_000)).collect(),
        });
        for round in rounds {
            exposition.take(3, &round);
        }
        let page = exposition.render();
        page.lines().filter(|line| !line.starts_with('#')).count()
    };
    let (few, more, most) = (count(2), count(4), count(6));
    assert_eq!(more - few, most - more);
    assert!((more - few) / 2 < 100, "{} series a host", (more - few) / 2);
}

#[test]
fn names_follow_prometheus_conventions() {
    let stories = [story(), storage_story()].map(|story| families(&reported(&story)));
    for (name, kind) in stories.concat() {
        assert!(name.starts_with("eastwest_"), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
        for odd in ["_ns", "_ms", "_us", "bits", "percent", "_milli", "_micro"] {
            assert!(!name.contains(odd), "{name}: base units only");
        }
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let known = [story(), storage_story()].map(|story| families(&reported(&story)));
    let known = known.concat();
    let known: BTreeSet<String> = known.into_iter().map(|(name, _)| name).collect();
    let expressions = expressions(&json("docs/grafana/eastwest.json"));
    assert!(expressions.len() > 30, "{}", expressions.len());
    for expression in &expressions {
        let asked = metric_names(expression);
        assert!(!asked.is_empty(), "{expression}");
        for name in asked {
            assert!(known.contains(&name), "{name} of `{expression}`");
        }
    }
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard = json("docs/grafana/eastwest.json");
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<_> = variables
        .iter()
        .map(|v| v["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["datasource", "run", "host"]);
    let text = dashboard.to_string();
    for title in [
        "Receive throughput",
        "Busiest core",
        "Throughput",
        "Latency",
        "Queue and busiest disk",
        "Active connections per node",
    ] {
        assert!(text.contains(&format!("\"title\":\"{title}\"")), "{title}");
    }
    assert!(
        text.contains("\"name\":\"Stages\""),
        "annotations of stages"
    );
}

/// Grafana's schema of a dashboard (kinds/dashboard/dashboard_kind.cue): what its import insists
/// on, and what would make panels empty.
#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = json("docs/grafana/eastwest.json");
    assert!(dashboard["id"].is_null(), "an id belongs to one Grafana");
    assert!((36..=42).contains(&dashboard["schemaVersion"].as_u64().unwrap()));
    assert!(!dashboard["uid"].as_str().unwrap().is_empty());
    // A variable chooses the data source, so that nothing is asked for on import.
    assert!(dashboard["__inputs"].is_null());
    let source = serde_json::json!({"type": "prometheus", "uid": "${datasource}"});
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(
        (&variables[0]["type"], &variables[0]["query"]),
        (&"datasource".into(), &"prometheus".into())
    );
    for variable in &variables[1..] {
        assert_eq!(
            (&variable["type"], &variable["datasource"]),
            (&"query".into(), &source)
        );
        assert_eq!(variable["query"]["query"], variable["definition"]);
    }
    assert_eq!(dashboard["annotations"]["list"][1]["datasource"], source);
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let grid = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(
            grid("w") > 0 && grid("h") > 0 && grid("x") + grid("w") <= 24,
            "{panel}"
        );
        for x in grid("x")..grid("x") + grid("w") {
            for y in grid("y")..grid("y") + grid("h") {
                assert!(taken.insert((x, y)), "{panel} lies on another");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert!(["timeseries", "stat"].contains(&panel["type"].as_str().unwrap()));
        assert_eq!(panel["datasource"], source, "{panel}");
        let targets = panel["targets"].as_array().unwrap();
        let ids: BTreeSet<&str> = targets
            .iter()
            .map(|t| t["refId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), targets.len(), "{panel}");
        assert!(
            targets.iter().all(|target| target["datasource"] == source),
            "{panel}"
        );
    }
}

#[test]
fn the_reference_lists_every_family() {
    let reference = read("docs/reference/metrics.md");
    let stories = [story(), storage_story()].map(|story| families(&reported(&story)));
    for (name, kind) in stories.concat() {
        let row = reference
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` | {kind} ")));
        assert!(row.is_some(), "{name}, a {kind}, is not in the page");
    }
}

#[test]
fn a_run_that_is_over_has_results_and_nothing_of_a_moment() {
    let mut exposition = Exposition::new("1.2.3", BEGAN_UNIX_NS);
    for (at_ns, event) in &story() {
        exposition.take(*at_ns, event);
    }
    let page = exposition.render_final(&crate::k8s_netperf::pods());
    let reference = read("docs/reference/metrics.md");
    for (name, kind) in families(&page) {
        let row = format!("| `{name}` | {kind} ");
        assert!(
            reference.lines().any(|line| line.starts_with(&row)),
            "{row}"
        );
    }
    for sample in [
        "eastwest_result_stage_flow_goodput_bytes_per_second{stage=\"pod\",workload=\"tcp-stream\"} 23087500\n",
        "eastwest_result_stage_datagram_loss_ratio{stage=\"udp\",workload=\"udp-stream\"} 0.01\n",
        "eastwest_result_pods_ratio{stage=\"rr\",workload=\"tcp-rr\",path=\"other-node\",baseline=\"host-network\"} 0.75\n",
        "eastwest_result_pods_significant{stage=\"rr\"",
        "quantile=\"0.99\"} ",
        "eastwest_run_info{",
    ] {
        assert!(page.contains(sample), "{sample} is not in {page}");
    }
    // Not measured: no series.
    assert!(!page.contains("stage=\"service\""), "{page}");
    for momentary in [
        "eastwest_run_goodput",
        "eastwest_run_time_left",
        "eastwest_run_stage_info",
    ] {
        assert!(!page.contains(momentary), "{momentary}");
    }
}

fn reported(events: &[(u64, RunEvent)]) -> String {
    let mut exposition = Exposition::new("1.2.3", BEGAN_UNIX_NS);
    for (at_ns, event) in events {
        exposition.take(*at_ns, event);
    }
    exposition.render()
}

/// Names and kinds.
fn families(page: &str) -> Vec<(String, String)> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let both = types.map(|line| line.split_once(' ').unwrap());
    both.map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// Everything in the dashboard that is asked of Prometheus.
fn expressions(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let here = ["expr", "definition"]
                .iter()
                .filter_map(|key| fields.get(*key));
            let mut found: Vec<String> =
                here.filter_map(|v| Some(v.as_str()?.to_owned())).collect();
            found.extend(fields.values().flat_map(expressions));
            found
        }
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

fn metric_names(expression: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_word(c));
    let names = words.filter(|word| word.starts_with("eastwest_"));
    names.map(str::to_owned).collect()
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Two racks of one host; r1h01 sends to r2h01.
fn story() -> Vec<(u64, RunEvent)> {
    let stage = StageIndex(0);
    let mut events = vec![(0, started(1)), (SECOND, up(0)), (SECOND, up(1))];
    let sync = |host| RunEvent::ClockSynced {
        host: HostId(host),
        offset_ns: -5,
        error_ns: 40_000,
        rate_ppb: None,
    };
    events.extend([0, 1].map(|host| (2 * SECOND, sync(host))));
    let hosts_alive = 2;
    events.push((2 * SECOND, RunEvent::StageStarted { stage, hosts_alive }));
    for host in [0, 1] {
        events.push((5 * SECOND, sampled(host, 1, 2)));
        events.push((5 * SECOND, sampled(host, 2, 2)));
    }
    events.push((
        5 * SECOND,
        RunEvent::RoundFinished {
            stage,
            round: RoundIndex(0),
            records: vec![record(0, 1, 25_000_000)],
        },
    ));
    events.push((
        5 * SECOND,
        RunEvent::Progress {
            bits_per_sec: Some(200e6),
            hosts_alive,
            left_ns: 3 * SECOND,
        },
    ));
    let host = HostId(1);
    events.push((5 * SECOND, RunEvent::ConnectionsRejected { host, count: 4 }));
    events
}

/// One write step that is over, of a host whose second file failed, and a read step under way.
fn storage_story() -> Vec<(u64, RunEvent)> {
    let node = |host: &str, state| DataNode {
        host: host.into(),
        address: "198.18.2.10".into(),
        state,
        capacity_bytes: 1 << 40,
        remaining_bytes: 1 << 39,
    };
    let facts = HdfsFacts {
        name_node: "nn:8020".into(),
        replication: Some(3),
        block_bytes: Some(128 << 20),
        capacity_bytes: Some(2 << 40),
        remaining_bytes: Some(1 << 40),
        data_nodes: Some(vec![
            node("dn1", DataNodeState::InService),
            node("dn2", DataNodeState::InMaintenance),
        ]),
        dead: Some(vec!["dn3".into()]),
    };
    let begins = |operation| RunEvent::StorageStepStarted {
        operation,
        storage_nodes: Some(1),
        hosts: 1,
        files: 2,
        bytes: 2_000_000,
    };
    let events = [
        started(1),
        RunEvent::StorageFacts(Box::new(facts)),
        begins(StorageOperation::Write),
        RunEvent::StorageStepFinished(Box::new(written())),
        begins(StorageOperation::Read),
    ];
    events.into_iter().map(|event| (SECOND, event)).collect()
}

/// A step of two files, the second of which failed.
pub(crate) fn written() -> StorageStep {
    let file = |file, outcome| FileRecord {
        file,
        worker: 0,
        start_ns: 0,
        open_ns: Some(0),
        first_byte_ns: Some(1),
        io_ns: Some(SECOND / 2),
        close_ns: Some(0),
        bytes: 1_000_000,
        outcome,
    };
    let error = String::from("no space left");
    StorageStep {
        step: 0,
        operation: StorageOperation::Write,
        job: StorageJob {
            target: "hdfs://nn:8020/x".into(),
            file_bytes: 1_000_000,
            buffer_bytes: 1000,
            parallel: 2,
            direct: false,
            sync: true,
            drop_cache: true,
            verify: true,
            seed: 1,
            replication: None,
            block_bytes: None,
            time_ns: None,
            testdfsio: None,
        },
        files: 2,
        exec_ns: SECOND,
        started_unix_ns: BEGAN_UNIX_NS,
        reports: vec![(
            HostId(0),
            StorageReport {
                files: vec![
                    file(0, FileOutcome::Done),
                    file(1, FileOutcome::Failed { error }),
                ],
                ..StorageReport::default()
            },
        )],
        missing: Vec::new(),
        interrupted: false,
        endpoints: Vec::new(),
        storage_nodes: vec!["dn1".into()],
        is_disk_alone: false,
        start_ns: None,
        data_node_of_file: None,
    }
}

fn started(per_rack: u32) -> RunEvent {
    let mut inventory: Inventory = common::inventory(2, per_rack);
    for (position, host) in inventory.hosts.iter_mut().enumerate() {
        host.address = Some(address(position as u32));
    }
    RunEvent::RunStarted {
        id: String::from("20261122T120000Z-demo-1a2b"),
        inventory,
        plan: plan(),
    }
}

fn address(host: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from(0xC612_0001 + host))
}

fn plan() -> Plan {
    Plan {
        scenario: String::from("demo"),
        seed: 7,
        expect: Expect::default(),
        stages: vec![Stage {
            name: String::from("inside \"racks\""),
            pattern: Pattern::Permutation,
            workload: Workload::of(WorkloadKind::TcpStream),
            duration_ns: SECOND,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: None,
            sweep: None,
            rounds: Vec::new(),
        }],
        random_order: false,
        dropped_tests: Vec::new(),
        interleaved: Vec::new(),
        host_rates: Vec::new(),
        rate_limit: None,
        line_rates: Vec::new(),
    }
}

fn up(host: u32) -> RunEvent {
    let named = |name: &str, address| InterfaceFacts {
        name: name.into(),
        addresses: vec![address],
        ..InterfaceFacts::default()
    };
    let other = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1));
    RunEvent::HostUp {
        address: None,
        host: HostId(host),
        facts: HostFacts {
            interfaces: vec![named("eth0", other), named("eth1", address(host))],
            ..HostFacts::default()
        },
        launch_ns: SECOND / 2,
    }
}

/// A host's sample of a second, with as many cores, disks and interfaces as asked for.
fn sampled(host: u32, second: u64, of_each: u32) -> RunEvent {
    let cpu = |cpu: u32| CpuCounters {
        cpu,
        user_ticks: 10 * second,
        system_ticks: 5 * second,
        idle_ticks: 25 * second * u64::from(1 + cpu),
        iowait_ticks: Some(1),
        softirq_ticks: Some(60 * second),
        steal_ticks: Some(0),
        ..CpuCounters::default()
    };
    let interface = |number: u32| InterfaceCounters {
        name: format!("eth{number}"),
        rx_bytes: 1_000_000 * second * u64::from(number),
        tx_bytes: 2_000_000 * second,
        rx_packets: 700,
        tx_packets: 1400,
        rx_drops: 3,
        ..InterfaceCounters::default()
    };
    let sample = HostSample {
        agent_ns: second * SECOND,
        late_ns: 1_500_000,
        cost: Some(ReadingCost {
            cpu_ns: 2_000_000,
            wall_ns: 3_000_000,
        }),
        cpus: (0..of_each).map(cpu).collect(),
        all_cpus: None,
        interfaces: (0..of_each).map(interface).collect(),
        causes: Some(Box::new(causes(second, of_each))),
    };
    RunEvent::HostSampled {
        host: HostId(host),
        sample,
    }
}

fn causes(second: u64, of_each: u32) -> CauseCounters {
    let disk = |name: String| DiskCounters {
        name,
        reads: 10 * second,
        read_bytes: 4096 * second,
        read_ms: 20 * second,
        writes: 100 * second,
        written_bytes: 1 << 20,
        write_ms: 500 * second,
        in_flight: 2,
        busy_ms: 400 * second,
        weighted_ms: 520 * second,
        ..DiskCounters::default()
    };
    let softnet = |cpu| {
        let counters = SoftnetCounters {
            processed: 1,
            dropped: 5,
            squeezed: 7,
            ..SoftnetCounters::default()
        };
        (cpu, counters)
    };
    let stall = |some_us| {
        Some(StallCounters {
            some_us,
            full_us: None,
        })
    };
    let disks = (0..of_each).map(|number| disk(format!("sd{number}")));
    CauseCounters {
        softnet: (0..of_each).map(softnet).collect(),
        protocols: ProtocolCounters {
            tcp_established: Some(9),
            tcp_out_segments: Some(1000 * second),
            tcp_retransmitted_segments: Some(second),
            listen_drops: Some(0),
            udp_receive_buffer_errors: Some(0),
            ..ProtocolCounters::default()
        },
        memory: MemoryReading {
            total_bytes: Some(16 << 30),
            available_bytes: Some(12 << 30),
            ..MemoryReading::default()
        },
        // What lies on other disks is not counted twice.
        disks: disks
            .chain([disk("dm-0".into()), disk("md127".into())])
            .collect(),
        pressure: Pressure {
            cpu: stall(2_500_000),
            io: stall(1000),
            memory: stall(0),
        },
        cgroup: CgroupReading {
            cpu_periods: Some(100),
            cpu_throttled_periods: Some(20),
            cpu_throttled_us: Some(700_000),
            ..CgroupReading::default()
        },
        ..CauseCounters::default()
    }
}

fn record(src: u32, dst: u32, bytes: u64) -> FlowRecord {
    let end = |retransmits| EndRecord {
        bytes,
        window_ns: SECOND,
        streams: vec![StreamRecord {
            retransmits,
            ..StreamRecord::default()
        }],
        ..EndRecord::default()
    };
    FlowRecord {
        is_aggressor: false,
        stage: StageIndex(0),
        round: RoundIndex(0),
        flow: FlowId(0),
        sample: 0,
        src: HostId(src),
        dst: HostId(dst),
        outcome: FlowOutcome::Measured,
        sender: Some(end(Some(11))),
        receiver: Some(end(None)),
    }
}
