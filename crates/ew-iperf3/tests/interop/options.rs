//! Every flag, both directions, and JSON with iperf3's fields.

use crate::common::{OurServer, TheirServer, iperf3_is_there, options, their_client};
use ew_iperf3::report::{Report, json};
use ew_iperf3::server::ServerOptions;
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};
use serde_json::Value;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

fn short() -> Params {
    Params {
        end: End::Blocks(50),
        block_bytes: 10_000,
        bits_per_sec: 80_000_000,
        ..Params::default()
    }
}

/// Our client's flags, one at a time, with their server.
#[test]
fn our_flags_are_understood() {
    if !iperf3_is_there() {
        return;
    }
    let server = TheirServer::start(&[]);
    let with = |change: &dyn Fn(&mut Params)| {
        let mut params = short();
        change(&mut params);
        let report = server.ask(&params);
        assert_eq!(report.error, None, "{params:?}");
        report
    };
    with(&|p| p.window_bytes = 100_000);
    with(&|p| p.nodelay = true);
    with(&|p| p.congestion = "cubic".into());
    with(&|p| p.tos = 16);
    with(&|p| p.zerocopy = true);
    with(&|p| p.skip_rx_copy = true);
    with(&|p| p.burst = 5);
    with(&|p| p.fq_bits_per_sec = 80_000_000);
    with(&|p| p.repeating_payload = true);
    with(&|p| p.server_cpu = Some(0));
    with(&|p| (p.protocol, p.wide_counters) = (Protocol::Udp, true));
    with(&|p| (p.protocol, p.dont_fragment, p.block_bytes) = (Protocol::Udp, true, 1000));
    with(&|p| (p.direction, p.zerocopy) = (Direction::Reverse, true));
    with(&|p| (p.protocol, p.bits_per_sec) = (Protocol::Udp, 0));
    with(&|p| (p.protocol, p.skip_rx_copy) = (Protocol::Udp, true));
    let report = with(&|p| p.mss_bytes = 1000);
    assert_eq!(report.head.unwrap().params.mss_bytes, 1000);
    let report = with(&|p| p.get_server_output = true);
    let document = json::value(&report);
    let output = document["server_output_text"].as_str().unwrap();
    assert!(output.contains("receiver"), "{output}");
}

#[test]
fn our_clients_own_side() {
    if !iperf3_is_there() {
        return;
    }
    let server = TheirServer::start(&[]);
    let mut with_ports = options(server.address(), short());
    with_ports.params.streams = 2;
    with_ports.route.stream_port = 17_100;
    with_ports.route.bind = Some(Ipv4Addr::LOCALHOST.into());
    with_ports.end.cpu = Some(0);
    let report = server.ask_with(&with_ports);
    assert_eq!(report.error, None);
    let ports: Vec<u16> = report
        .head
        .unwrap()
        .streams
        .iter()
        .map(|s| s.local.port())
        .collect();
    assert_eq!(ports, [17_100, 17_101]);
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, server.address().port()));
    if has_ipv6() {
        let report = server.ask_with(&options(v6, Params { tos: 16, ..short() }));
        assert_eq!(report.error, None);
    }
}

/// Their client's flags, one at a time, with our server.
#[test]
fn their_flags_are_understood() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start_with((Ipv6Addr::UNSPECIFIED, 0).into(), ServerOptions::default());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.address.port()));
    let flags = [
        "-w 100K",
        "-M 1000",
        "-N",
        "-C cubic",
        "-S 0x10",
        "-4",
        "-Z",
        "-A 0",
        "-A 0,1",
        "--cport 17200",
        "-P 2 --cport 17210",
        "-T title",
        "--extra-data x",
        "--repeating-payload",
        "--fq-rate 80M",
        "-R -Z",
        "-R -M 1000 -w 100K -C cubic",
        "-u --udp-counters-64bit",
        "-u -R --udp-counters-64bit",
        "-u --dont-fragment",
        "-b 80M/10",
        "-i 0",
        "--get-server-output",
        "-u -l 16 -b 1M",
        "-u -w 100K",
        "-u -R -b 0",
    ];
    for flag in flags {
        let arguments = format!("-l 10000 -b 80M -k 50 {flag}");
        let reported = their_client(address, &arguments);
        assert!(reported.success, "{arguments}: {}", reported.text);
        if flag == "--get-server-output" {
            let output = reported.json["server_output_text"].as_str().unwrap();
            assert!(
                output.contains("Accepted connection") && output.contains("receiver"),
                "{output}"
            );
        }
    }
    if has_ipv6() {
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
        for flag in ["-6", "-6 -u", "-6 -u -R -S 0x10", "-6 -L 0xabc"] {
            let reported = their_client(v6, &format!("{flag} -l 1000 -b 8M -k 50"));
            assert!(reported.success, "{flag}: {}", reported.text);
        }
    }
}

#[test]
fn what_is_omitted_does_not_count() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start();
    let reported = their_client(server.address, "-u -t 1 -O 1 -b 800K -l 1000");
    assert!(reported.success, "{}", reported.text);
    let received = &reported.json["end"]["sum_received"];
    let bytes = received["bytes"].as_u64().unwrap();
    assert!((50_000..150_000).contains(&bytes), "{received}");
    let ours = server.report();
    assert!(ours.intervals[0].omitted);
    let total = ours.ended.unwrap().streams[0];
    let (sender, receiver) = (total.sender.unwrap(), total.receiver.unwrap());
    assert!(receiver.packets.abs_diff(100) < 50 && sender.packets.abs_diff(100) < 50);
    let theirs = TheirServer::start(&[]);
    let params = Params {
        end: End::Time(1),
        omit_s: 1,
        bits_per_sec: 800_000,
        block_bytes: 1000,
        direction: Direction::Both,
        ..short()
    };
    let report = theirs.ask(&params);
    assert_eq!(report.error, None);
    for total in report.ended.unwrap().streams {
        for figures in [total.sender.unwrap(), total.receiver.unwrap()] {
            assert!((50_000..150_000).contains(&figures.bytes), "{figures:?}");
        }
    }
}

#[test]
fn an_amount_counts_from_the_end_of_the_omitted_time() {
    if !iperf3_is_there() {
        return;
    }
    let server = TheirServer::start(&[]);
    let params = Params {
        end: End::Bytes(100_000),
        omit_s: 1,
        bits_per_sec: 8_000_000,
        ..short()
    };
    let report = server.ask(&params);
    assert_eq!(report.error, None);
    assert_eq!(
        report.ended.unwrap().streams[0].sender.unwrap().bytes,
        100_000
    );
    let server = OurServer::start();
    let reported = their_client(server.address, "-O 1 -n 100000 -b 8M -l 10000");
    assert!(reported.success, "{}", reported.text);
    let end = &reported.json["end"];
    let sent = end["sum_sent"]["bytes"].as_u64().unwrap();
    let received = end["sum_received"]["bytes"].as_u64().unwrap();
    assert!(
        sent >= 100_000 && received.abs_diff(sent) <= 20_000,
        "{end}"
    );
}

#[test]
fn several_of_their_clients_at_once() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start();
    let kinds = ["-u -P 2", "-u -R", "", "-R", "--bidir", "-u --bidir"];
    let address = server.address;
    let clients: Vec<_> = kinds
        .into_iter()
        .map(|kind| {
            let arguments = format!("{kind} -t 1 -b 8M -l 1000");
            std::thread::spawn(move || (kind, their_client(address, &arguments)))
        })
        .collect();
    for client in clients {
        let (kind, reported) = client.join().unwrap();
        assert!(reported.success, "{kind}: {}", reported.text);
        let bytes = reported.json["end"]["sum_received"]["bytes"]
            .as_u64()
            .unwrap();
        assert!(bytes > 100_000, "{kind}: {bytes}");
    }
}

/// Every field of iperf3's document is in ours, with the same type, for every kind of test.
#[test]
fn our_document_has_all_of_their_fields() {
    if !iperf3_is_there() {
        return;
    }
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
            let arguments = format!(
                "-k 50 -l 10000 -b 80M {} {}",
                if protocol == Protocol::Udp { "-u" } else { "" },
                match direction {
                    Direction::Forward => "",
                    Direction::Reverse => "-R",
                    Direction::Both => "--bidir",
                }
            );
            // A server for each: between two tests it listens anew, and closes what connects.
            let theirs = TheirServer::start(&[]);
            let reported = their_client(theirs.address(), &arguments);
            assert!(reported.success, "{arguments}: {}", reported.text);
            let params = Params {
                protocol,
                direction,
                ..short()
            };
            let ours = TheirServer::start(&[]).ask(&params);
            assert_eq!(ours.error, None);
            let ours = json::value(&ours);
            let mut lacking = Vec::new();
            compare("", &reported.json, &ours, &mut lacking);
            assert_eq!(lacking, [""; 0], "{arguments}");
        }
    }
}

#[test]
fn our_document_is_valid_on_failure() {
    let refused = Report {
        error: Some("\"quoted\"".into()),
        ..Report::default()
    };
    let read: Value = serde_json::from_str(&json::document(&refused)).unwrap();
    assert_eq!(read["error"], "\"quoted\"");
}

fn compare(path: &str, theirs: &Value, ours: &Value, lacking: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(fields), _) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                match ours.get(name) {
                    Some(our_value) => compare(&path, value, our_value, lacking),
                    None => lacking.push(path),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if let (Some(theirs), Some(ours)) = (theirs.first(), ours.first()) {
                compare(&format!("{path}[]"), theirs, ours, lacking);
            } else if ours.is_empty() && !theirs.is_empty() {
                lacking.push(format!("{path}[]"));
            }
        }
        _ if std::mem::discriminant(theirs) != std::mem::discriminant(ours) => {
            lacking.push(format!("{path}: {theirs} is {ours}"));
        }
        _ => {}
    }
}

fn has_ipv6() -> bool {
    std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}
