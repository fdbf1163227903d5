//! Every knob of the TCP workloads does what its name promises, over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;
#[path = "common/pair.rs"]
mod pair;

use common::{LOCALHOST, data_address, engine, order, round, start, wait, with_flows, workload};
use ew_engine::{Engine, RoundSpec};
use ew_model::record::{EndRecord, FigureNote};
use ew_model::workload::{
    Limit, Placement, ReceiveMode, SendMode, SocketSettings, Workload, WorkloadKind,
};
use ew_proto::message::Role;
use pair::Pair;
use std::net::{IpAddr, Ipv6Addr, TcpListener};
use std::time::Duration;

const STREAM: WorkloadKind = WorkloadKind::TcpStream;
const RR: WorkloadKind = WorkloadKind::TcpRr;

fn of(kind: WorkloadKind, change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = Workload::of(kind);
    change(&mut workload);
    workload
}

fn ends(workload: Workload) -> (EndRecord, EndRecord) {
    Pair::new(LOCALHOST).measure(&round(workload))
}

#[test]
fn streams_share_threads() {
    let (sender, receiver) = ends(Workload {
        threads: Some(2),
        ..workload(STREAM, 9, 10_000)
    });
    for end in [&sender, &receiver] {
        assert_eq!(end.streams.len(), 9);
        assert!(end.streams.iter().all(|s| s.bytes > 0), "{:?}", end.streams);
    }
}

#[test]
fn two_thousand_streams_are_all_served_on_both_ip_versions() {
    let mut addresses = vec![LOCALHOST];
    let ipv6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    if TcpListener::bind((ipv6, 0)).is_ok() {
        addresses.push(ipv6);
    } else {
        println!("IPv6 skipped: this host has no IPv6 loopback address");
    }
    for address in addresses {
        let workload = of(RR, |w| w.streams = 2000);
        let mut spec = round(workload);
        // Debug builds on a busy machine need their time.
        delay_start(&mut spec, 4000);
        spec.window_ns = 2_000_000_000;
        let (sender, receiver) = Pair::new(address).measure(&spec);
        assert!(sender.streams.iter().all(|s| s.bytes > 0));
        assert!(receiver.streams.iter().all(|s| s.bytes > 0));
        assert!(sender.transactions.unwrap() >= 2000);
    }
}

#[test]
fn more_streams_than_open_files_are_refused_with_a_remedy() {
    let engine = engine(LOCALHOST);
    let limit = ew_sys::process::raise_open_files_limit();
    if limit >= 16_000 {
        println!("skipped: this host allows {limit} open files");
        return;
    }
    let spec = round(of(RR, |w| w.streams = limit as u32));
    let flows = vec![order(0, Role::Send, true, data_address(&engine, LOCALHOST))];
    let refused = engine.run_round(with_flows(&spec, flows), Box::new(|_| {}));
    assert!(refused.unwrap_err().to_string().contains("ulimit -n"));
}

#[test]
fn settings_reach_both_ends_sockets() {
    let workload = of(STREAM, |w| {
        w.socket = SocketSettings {
            nodelay: false,
            send_buffer_bytes: Some(50_000),
            receive_buffer_bytes: Some(60_000),
            congestion: Some("reno".to_owned()),
            mss_bytes: Some(1000),
            dscp: Some(10),
            device: None,
            mptcp: false,
        };
    });
    let (sender, receiver) = ends(workload);
    assert_eq!(sender.notes, []);
    assert_eq!(receiver.notes, []);
    for end in [&sender, &receiver] {
        let mss = end.streams[0].tcp_info.unwrap().send_mss_bytes;
        assert!((900..=1000).contains(&mss), "{mss}");
    }
}

#[test]
fn a_listener_for_one_round_is_not_the_next_ones() {
    let pair = Pair::new(LOCALHOST);
    let mss = |end: &EndRecord| end.streams[0].tcp_info.unwrap().send_mss_bytes;
    let small = of(STREAM, |w| w.socket.mss_bytes = Some(700));
    let (sender, _) = pair.measure(&round(small));
    assert!(mss(&sender) <= 700);
    let (sender, _) = pair.measure(&round(Workload::of(STREAM)));
    assert!(mss(&sender) > 1400, "{}", mss(&sender));
    assert_eq!(pair.rejected_connections(), 0);
}

#[test]
fn what_the_kernel_does_not_grant_is_noted() {
    let (sender, receiver) = ends(of(STREAM, |w| {
        // More than net.core.wmem_max and rmem_max are anywhere.
        w.socket.send_buffer_bytes = Some(u32::MAX / 2);
        w.socket.receive_buffer_bytes = Some(u32::MAX / 2);
    }));
    assert!(sender.notes.contains(&FigureNote::SettingRefused));
    assert!(receiver.notes.contains(&FigureNote::SettingRefused));
}

#[test]
fn a_missing_congestion_control_and_a_missing_device_are_errors_with_a_remedy() {
    let error = |change: fn(&mut SocketSettings)| {
        let mut spec = round(of(STREAM, |w| change(&mut w.socket)));
        delay_start(&mut spec, -600);
        Pair::new(LOCALHOST).fail(&spec)
    };
    let congestion = error(|s| s.congestion = Some("nonesuch".to_owned()));
    assert!(congestion.contains("modprobe tcp_nonesuch"), "{congestion}");
    let device = error(|s| s.device = Some("nonesuch0".to_owned()));
    assert!(device.contains("no network device `nonesuch0`"), "{device}");
}

#[test]
fn multipath_is_used_or_its_absence_noted() {
    let (sender, receiver) = ends(of(STREAM, |w| w.socket.mptcp = true));
    let has_it =
        std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|t| t.trim() == "1");
    for end in [sender, receiver] {
        assert!(end.bytes > 0);
        assert_eq!(end.notes.contains(&FigureNote::MptcpUnavailable), !has_it);
    }
}

#[test]
fn a_flow_goes_at_its_pace() {
    for streams in [1, 3] {
        let (sender, receiver) = ends(of(STREAM, |w| {
            w.streams = streams;
            // Alone it blocks, with others it is polled.
            w.threads = Some(1);
            w.pace.flow_bits_per_sec = Some(80e6);
        }));
        let rate = receiver.bytes as f64 * 8e9 / receiver.window_ns as f64;
        // 300 ms on a machine that does other things.
        assert!((0.85..1.15).contains(&(rate / 80e6)), "{rate}");
        assert!(
            sender
                .notes
                .iter()
                .any(|r| matches!(r, FigureNote::PacedByEngine | FigureNote::PacedByKernel))
        );
    }
}

#[test]
fn a_stream_goes_at_its_pace() {
    let (_, receiver) = ends(of(STREAM, |w| {
        w.streams = 2;
        w.pace.stream_bits_per_sec = Some(40e6);
    }));
    for stream in &receiver.streams {
        let rate = stream.bytes as f64 * 8e9 / receiver.window_ns as f64;
        assert!((0.8..1.2).contains(&(rate / 40e6)), "{rate}");
    }
}

#[test]
fn a_limit_is_exact_and_ends_the_flows_window() {
    for (limit, streams, bytes) in [
        (Limit::Bytes(3_000_001), 1, 3_000_001),
        (Limit::Messages(10), 3, 3 * 10 * 128 * 1024),
    ] {
        let spec = round(of(STREAM, |w| {
            w.limit = Some(limit);
            w.streams = streams;
            w.threads = Some(1);
        }));
        let (sender, receiver) = Pair::new(LOCALHOST).measure(&spec);
        assert_eq!((sender.bytes, receiver.bytes), (bytes, bytes));
        assert!(receiver.window_ns < spec.window_ns);
        assert!(sender.window_ns < spec.window_ns);
        let counted: u64 = receiver.intervals.iter().map(|i| i.bytes).sum();
        assert_eq!(counted, bytes);
    }
}

#[test]
fn transactions_have_a_limit_too() {
    let spec = round(of(RR, |w| w.limit = Some(Limit::Messages(50))));
    let (sender, _) = Pair::new(LOCALHOST).measure(&spec);
    // One may be under way when the window begins.
    assert!((50..=51).contains(&sender.transactions.unwrap()));
    assert!(sender.window_ns < spec.window_ns);
}

#[test]
fn discarded_bytes_are_counted_and_labelled() {
    let (sender, receiver) = ends(of(STREAM, |w| {
        w.receive_mode = ReceiveMode::Discard;
        w.limit = Some(Limit::Bytes(5_000_000));
    }));
    assert_eq!((sender.bytes, receiver.bytes), (5_000_000, 5_000_000));
    assert_eq!(receiver.notes, [FigureNote::ReceiverDidNotSeeBytes]);
}

#[test]
fn a_file_is_sent_whole() {
    let (sender, receiver) = ends(of(STREAM, |w| {
        w.send_mode = SendMode::Sendfile;
        w.limit = Some(Limit::Bytes(5_000_000));
    }));
    assert_eq!((sender.bytes, receiver.bytes), (5_000_000, 5_000_000));
    assert_eq!(sender.notes, [FigureNote::SenderDidNotTouchBytes]);
}

#[test]
fn zerocopy_over_loopback_says_that_it_copied() {
    for streams in [1, 4] {
        let (sender, receiver) = ends(of(STREAM, |w| {
            w.send_mode = SendMode::Zerocopy;
            w.streams = streams;
            w.threads = Some(1);
        }));
        assert!(receiver.bytes > 0);
        assert!(
            sender.notes == [FigureNote::ZerocopySendCopied]
                || sender.notes == [FigureNote::ZerocopyUnavailable],
            "{:?}",
            sender.notes
        );
    }
}

#[test]
fn mapped_receiving_counts_every_byte() {
    for streams in [1, 3] {
        let (sender, receiver) = ends(of(STREAM, |w| {
            w.receive_mode = ReceiveMode::Mmap;
            w.limit = Some(Limit::Bytes(2_000_000));
            w.streams = streams;
            w.threads = Some(1);
        }));
        assert_eq!(sender.bytes, receiver.bytes);
        assert_eq!(receiver.bytes, 2_000_000 * u64::from(streams));
    }
}

#[test]
fn requests_and_responses_have_their_sizes() {
    let (sender, receiver) = ends(of(RR, |w| {
        w.message_bytes = 100;
        w.response_bytes = Some(70_000);
    }));
    let transactions = sender.transactions.unwrap();
    assert_nearly(sender.bytes, transactions * 100);
    assert_nearly(receiver.bytes, transactions * 100);
    let cpu = sender.cpu.unwrap();
    assert_nearly(cpu.moved_bytes, cpu.transactions * 70_100);
}

/// The counters of one edge are read one after the other while the streams go on.
fn assert_nearly(bytes: u64, expected: u64) {
    assert!(expected > 0);
    let slack = 140_200 + expected / 10;
    assert!(bytes.abs_diff(expected) <= slack, "{bytes} of {expected}");
}

#[test]
fn several_requests_are_in_flight() {
    for outstanding in [1, 32] {
        let (sender, _) = ends(of(RR, |w| {
            w.outstanding = outstanding;
            w.message_bytes = 20_000;
        }));
        assert!(sender.transactions.unwrap() > 0);
        assert!(sender.latency.unwrap().times.count() > 0);
    }
}

#[test]
fn an_open_loop_keeps_its_schedule() {
    let (sender, _) = ends(of(RR, |w| {
        w.streams = 3;
        w.pace.requests_per_sec = Some(1000.0);
    }));
    let rate = sender.transactions.unwrap() as f64 * 1e9 / sender.window_ns as f64;
    assert!((0.8..1.2).contains(&(rate / 1000.0)), "{rate}");
    let latency = sender.latency.unwrap();
    let uncorrected = latency.uncorrected.unwrap();
    assert_eq!(latency.times.count(), uncorrected.count());
    assert!(latency.times.sum_ns >= uncorrected.sum_ns);
}

#[test]
fn an_open_loop_that_cannot_keep_up_tells_it_in_its_latency() {
    let (sender, _) = ends(of(RR, |w| {
        w.pace.requests_per_sec = Some(50e6);
        w.message_bytes = 1000;
    }));
    let latency = sender.latency.unwrap();
    let corrected = latency.times.summary().unwrap().p50_ns;
    let uncorrected = latency.uncorrected.unwrap().summary().unwrap().p50_ns;
    assert!(corrected > uncorrected, "{corrected} {uncorrected}");
}

#[test]
fn cpu_time_is_told_at_both_ends() {
    let (sender, receiver) = ends(Workload::of(STREAM));
    for end in [&sender, &receiver] {
        let cpu = end.cpu.unwrap();
        assert!(cpu.engine_ns > 0 && cpu.engine_ns < end.window_ns * 2);
        assert!(cpu.cpus > 0);
        assert!(cpu.moved_bytes.abs_diff(end.bytes) < end.bytes / 2 + 50_000_000);
    }
}

#[test]
fn threads_run_where_they_are_put() {
    let placed = |placement| {
        let mut spec = round(of(STREAM, |w| w.placement = placement));
        // Whoever else is on the one CPU may keep it for long.
        spec.window_ns = 2_000_000_000;
        Pair::new(LOCALHOST).measure(&spec)
    };
    let (sender, receiver) = placed(Placement::Cpus(vec![0]));
    assert!(sender.bytes > 0 && receiver.bytes > 0);
    assert_eq!(sender.notes, []);
    let (sender, _) = placed(Placement::NearReceiveQueue);
    assert_eq!(sender.notes, []);
    let (sender, _) = placed(Placement::NearNic);
    // The loopback interface is attached nowhere.
    assert_eq!(sender.notes, [FigureNote::SettingRefused]);
    let nowhere = round(of(STREAM, |w| w.placement = Placement::Cpus(vec![1023])));
    let error = Pair::new(LOCALHOST).fail(&nowhere);
    assert!(error.contains("CPUs [1023]"), "{error}");
}

#[test]
fn nonsense_is_refused() {
    let engine: Engine = engine(LOCALHOST);
    let refused = |change: fn(&mut Workload)| {
        let spec: RoundSpec = round(of(RR, change));
        let outcome = engine.run_round(spec, Box::new(|_| {}));
        outcome.unwrap_err().to_string()
    };
    assert!(refused(|w| w.response_bytes = Some(0)).contains("message size 0"));
    assert!(refused(|w| w.outstanding = 0).contains("outstanding"));
    assert!(refused(|w| w.pace.requests_per_sec = Some(0.0)).contains("requests"));
    assert!(refused(|w| w.pace.requests_per_sec = Some(f64::NAN)).contains("requests"));
}

#[test]
fn a_vanished_peer_ends_one_stream_and_an_abort_ends_many() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let mut spec = round(of(STREAM, |w| w.streams = 200));
    spec.window_ns = 3_600_000_000_000;
    let to_far = vec![order(0, Role::Send, true, data_address(&far, LOCALHOST))];
    let to_near = vec![order(
        0,
        Role::Receive,
        false,
        data_address(&near, LOCALHOST),
    )];
    let far_reports = start(&far, with_flows(&spec, to_near));
    let near_reports = start(&near, with_flows(&spec, to_far));
    std::thread::sleep(Duration::from_millis(1200));
    drop(far);
    assert!(wait(&far_reports)[0].error.is_some());
    near.abort();
    assert!(wait(&near_reports)[0].error.is_some());
}

/// Moves start and window, ms.
fn delay_start(spec: &mut RoundSpec, by_ms: i64) {
    let by_ns = by_ms * 1_000_000;
    spec.start_ns = spec.start_ns.saturating_add_signed(by_ns);
    spec.window_start_ns = spec.window_start_ns.saturating_add_signed(by_ns);
}

#[test]
fn sockets_beside_the_listeners_take_data_ports_while_there_are_some() {
    const PORTS: (u16, u16) = (5401, 5404);
    let home = IpAddr::from([127, 0, 77, 1]);
    let pair = Pair::with_ports(home, PORTS);
    let measure = |kind, streams| {
        let (_, receiver) = pair.measure(&round(of(kind, |w| w.streams = streams)));
        let ports = receiver.streams.iter().map(|s| s.local_port);
        let inside = ports.filter(|p| (PORTS.0..=PORTS.1).contains(p)).count();
        (inside, receiver.notes)
    };
    for kind in [WorkloadKind::UdpRr, WorkloadKind::TcpCrr] {
        assert_eq!(measure(kind, 1), (1, vec![]), "{kind:?}");
    }
    // Both ends live at one address here: four ports are not enough for twelve sockets.
    let (inside, notes) = measure(WorkloadKind::UdpRr, 6);
    assert!(inside <= 4);
    assert!(notes.contains(&FigureNote::PortOutsideRange));
}

#[test]
fn the_congestion_control_in_use_is_told() {
    let (sender, receiver) = ends(of(STREAM, |w| w.socket.congestion = Some("reno".into())));
    for end in [sender, receiver] {
        assert_eq!(end.congestion.as_deref(), Some("reno"));
    }
    let (datagrams, _) = ends(of(WorkloadKind::UdpStream, |_| {}));
    assert_eq!(datagrams.congestion, None);
}
