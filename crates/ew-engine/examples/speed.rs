//! How fast the engine goes on this machine: two engines, one flow, one line of figures.
//!
//! `speed KIND STREAMS [THREADS] [key=value ...]` runs both ends on 127.0.0.1. Keys: `message`,
//! `response`, `outstanding`, `seconds`, `segmentation` (off), `send` (copy, sendfile, zerocopy),
//! `receive` (copy, discard, mmap), `rate` (bits per second of the flow), `requests` (per second),
//! `connect` (ms that connecting may take), `cpus` (comma-separated, sender's), `peer-cpus`,
//! `address`, and `role` with `port` and `peer` to run the two ends in different namespaces.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for developers, which prints what it measured and stops where it cannot go on"
)]

use ew_engine::{Engine, EngineConfig, RoundSpec};
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::record::EndRecord;
use ew_model::workload::{Placement, ReceiveMode, SendMode, Workload, WorkloadKind};
use ew_proto::message::{FlowOrder, FlowReport, Role, RunToken};
use ew_sys::clock::{monotonic_ns, realtime_ns};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, channel};

const SECOND: u64 = 1_000_000_000;

/// How long things take.
#[derive(Clone, Copy)]
struct Seconds {
    window: u64,
    connect_ms: u64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (plain, keyed): (Vec<_>, Vec<_>) = arguments.iter().partition(|a| !a.contains('='));
    let keys: BTreeMap<_, _> = keyed.iter().filter_map(|a| a.split_once('=')).collect();
    ew_sys::process::raise_open_files_limit();
    let workload = workload(&plain, &keys);
    let address: IpAddr = keys.get("address").unwrap_or(&"127.0.0.1").parse().unwrap();
    let seconds: u64 = keys.get("seconds").map_or(3, |s| s.parse().unwrap());
    let seconds = Seconds {
        window: seconds,
        connect_ms: keys.get("connect").map_or(1900, |ms| ms.parse().unwrap()),
    };
    match keys.get("role") {
        None => both(&workload, &keys, address, seconds),
        Some(role) => one(&workload, &keys, address, seconds, *role == "send"),
    }
}

fn both(workload: &Workload, keys: &BTreeMap<&str, &str>, address: IpAddr, seconds: Seconds) {
    let (near, far) = (engine(address, 0), engine(address, 0));
    let mut spec = round(workload.clone(), seconds);
    let far_order = order(Role::Receive, SocketAddr::new(address, near.port()));
    let near_order = order(Role::Send, SocketAddr::new(address, far.port()));
    let mut far_spec = spec.clone();
    if let Some(cpus) = keys.get("peer-cpus") {
        far_spec.workload.placement = placement(cpus);
    }
    far_spec.flows = vec![far_order];
    spec.flows = vec![near_order];
    let far_reports = start(&far, far_spec);
    let near_reports = start(&near, spec);
    print_end(workload, "sender", &near_reports.recv().unwrap());
    print_end(workload, "receiver", &far_reports.recv().unwrap());
}

/// Both ends begin to connect at the same full four seconds of the wall clock.
fn one(
    workload: &Workload,
    keys: &BTreeMap<&str, &str>,
    address: IpAddr,
    seconds: Seconds,
    sends: bool,
) {
    let port = keys["port"].parse().unwrap();
    let engine = engine(address, port);
    let peer = SocketAddr::new(keys["peer"].parse().unwrap(), port);
    let role = if sends { Role::Send } else { Role::Receive };
    let now_ns = realtime_ns();
    let start_ns = (now_ns / (4 * SECOND) + 1) * 4 * SECOND;
    let mut spec = round(workload.clone(), seconds);
    let shift_ns = monotonic_ns() + (start_ns - now_ns) - spec.connect_at_ns;
    spec.connect_at_ns += shift_ns;
    spec.start_ns += shift_ns;
    spec.window_start_ns += shift_ns;
    spec.flows = vec![order(role, peer)];
    let name = if sends { "sender" } else { "receiver" };
    print_end(workload, name, &start(&engine, spec).recv().unwrap());
}

fn workload(plain: &[&String], keys: &BTreeMap<&str, &str>) -> Workload {
    let wanted = plain.first().map_or("tcp-stream", |kind| kind.as_str());
    let kind = WorkloadKind::ALL.into_iter().find(|k| k.name() == wanted);
    let mut workload = Workload::of(kind.unwrap());
    workload.streams = plain.get(1).map_or(1, |s| s.parse().unwrap());
    workload.threads = plain.get(2).map(|t| t.parse().unwrap());
    for (key, value) in keys {
        match *key {
            "message" => workload.message_bytes = value.parse().unwrap(),
            "response" => workload.response_bytes = Some(value.parse().unwrap()),
            "outstanding" => workload.outstanding = value.parse().unwrap(),
            "rate" => workload.pace.flow_bits_per_sec = Some(value.parse().unwrap()),
            "segmentation" => workload.segmentation = *value != "off",
            "requests" => workload.pace.requests_per_sec = Some(value.parse().unwrap()),
            "cpus" => workload.placement = placement(value),
            "send" => {
                workload.send_mode = match *value {
                    "sendfile" => SendMode::Sendfile,
                    "zerocopy" => SendMode::Zerocopy,
                    _ => SendMode::Copy,
                }
            }
            "receive" => {
                workload.receive_mode = match *value {
                    "discard" => ReceiveMode::Discard,
                    "mmap" => ReceiveMode::Mmap,
                    _ => ReceiveMode::Copy,
                }
            }
            _ => {}
        }
    }
    workload
}

fn placement(cpus: &str) -> Placement {
    Placement::Cpus(cpus.split(',').map(|cpu| cpu.parse().unwrap()).collect())
}

fn engine(address: IpAddr, port: u16) -> Engine {
    Engine::start(EngineConfig {
        address,
        ports: (port, port),
        token: RunToken([1; 16]),
        relay_key: None,
    })
    .unwrap()
}

fn round(workload: Workload, seconds: Seconds) -> RoundSpec {
    let start_ns = monotonic_ns() + SECOND * 2;
    RoundSpec {
        stage: StageIndex(0),
        round: RoundIndex(0),
        workload,
        connect_at_ns: start_ns - seconds.connect_ms * 1_000_000,
        start_ns,
        window_start_ns: start_ns + SECOND / 2,
        window_ns: seconds.window * SECOND,
        interval_ns: SECOND,
        flows: Vec::new(),
    }
}

/// The sender opens.
fn order(role: Role, peer: SocketAddr) -> FlowOrder {
    FlowOrder::new(FlowId(0), role, role == Role::Send, peer)
}

fn start(engine: &Engine, spec: RoundSpec) -> Receiver<Vec<FlowReport>> {
    let (sender, receiver) = channel();
    let done = Box::new(move |reports| sender.send(reports).unwrap_or(()));
    engine.run_round(spec, done).unwrap();
    receiver
}

fn print_end(workload: &Workload, name: &str, reports: &[FlowReport]) {
    if let Some(error) = &reports[0].error {
        println!("{name}: {error}");
        return;
    }
    let report = &reports[0];
    let end = report.sender.as_ref().or(report.receiver.as_ref()).unwrap();
    let seconds = end.window_ns as f64 / SECOND as f64;
    let cpu = end.cpu.unwrap_or_default();
    println!(
        "{name}: {} x{} {:.3} Gb/s; {:.0} transactions/s; engine {:.2} CPU, host {:.2} CPU; least of streams {} bytes; {:?}",
        workload.kind.name(),
        workload.streams,
        end.bytes as f64 * 8.0 / end.window_ns as f64,
        end.transactions.unwrap_or(0) as f64 / seconds,
        cpu.engine_ns as f64 / end.window_ns as f64,
        cpu.busy_ns as f64 / end.window_ns as f64,
        end.streams.iter().map(|s| s.bytes).min().unwrap_or(0),
        end.notes
    );
    print_details(name, end);
}

fn print_details(name: &str, end: &EndRecord) {
    let rates = end.intervals.iter().map(|i| {
        let rate = i.bytes as f64 * 8.0 / i.length_ns as f64;
        format!("{rate:.4}")
    });
    println!(
        "{name}: Gb/s by second: {}",
        rates.collect::<Vec<_>>().join(" ")
    );
    if let Some(datagrams) = &end.datagrams {
        println!("{name}: {datagrams:?}");
    }
    if let Some(latency) = &end.latency {
        println!("{name}: {:?}", latency.times.summary());
        if let Some(uncorrected) = &latency.uncorrected {
            println!("{name}: uncorrected {:?}", uncorrected.summary());
        }
    }
    let usage = ew_sys::process::usage();
    println!(
        "{name}: process's peak memory {} KiB",
        usage.peak_rss_bytes / 1024
    );
}
