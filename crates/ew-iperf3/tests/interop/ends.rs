//! What concerns one end alone: a user's file, offloads of UDP, Multipath TCP, the flow label.

use crate::common::{
    OurServer, TheirServer, iperf3_is_there, options, our_client_with, their_client, wait_for,
};
use ew_iperf3::EndOptions;
use ew_iperf3::report::Report;
use ew_iperf3::server::ServerOptions;
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Neither a multiple of a block, nor the same at any two offsets.
fn content() -> Vec<u8> {
    (0..100_003_u32).flat_map(u32::to_le_bytes).collect()
}

/// A directory of this test's own, with a file `sent` in it.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ew-iperf3-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("sent"), content()).unwrap();
    path
}

fn with_file(path: &Path) -> EndOptions {
    EndOptions {
        file: Some(path.to_owned()),
        ..EndOptions::default()
    }
}

fn server_with(end: EndOptions) -> OurServer {
    let options = ServerOptions {
        end,
        ..ServerOptions::default()
    };
    OurServer::start_with((Ipv4Addr::LOCALHOST, 0).into(), options)
}

fn ours(server: SocketAddr, end: EndOptions, params: Params) -> Report {
    let mut options = options(server, params);
    options.end = end;
    let report = our_client_with(&options);
    assert_eq!(report.error, None);
    report
}

#[test]
fn a_file_arrives_as_it_is_and_its_end_is_the_tests() {
    let directory = directory("file");
    let (sent, came) = (directory.join("sent"), directory.join("came"));
    let server = server_with(with_file(&came));
    let began = Instant::now();
    ours(server.address, with_file(&sent), Params::default());
    assert!(began.elapsed() < Duration::from_secs(9), "it has 10 s");
    assert_eq!(std::fs::read(&came).unwrap(), content());
    let two = Params {
        streams: 2,
        ..Params::default()
    };
    ours(server.address, with_file(&sent), two);
    let second = directory.join("came.2");
    assert!([&came, &second].map(|path| std::fs::read(path).unwrap()) == [content(), content()]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_goes_the_other_way_with_reverse() {
    let directory = directory("reverse");
    let (sent, came) = (directory.join("sent"), directory.join("came"));
    let server = server_with(with_file(&sent));
    let params = Params {
        direction: Direction::Reverse,
        end: End::Time(1),
        ..Params::default()
    };
    ours(server.address, with_file(&came), params);
    assert_eq!(std::fs::read(&came).unwrap(), content());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn files_come_from_and_go_to_iperf3() {
    if !iperf3_is_there() {
        return;
    }
    let directory = directory("theirs");
    let (sent, came) = (directory.join("sent"), directory.join("came"));
    let server = server_with(with_file(&came));
    let reported = their_client(server.address, &format!("-F {}", sent.display()));
    assert!(reported.success, "{}", reported.text);
    wait_for("all of the file", || {
        (std::fs::read(&came).ok()? == content()).then_some(())
    });
    let theirs = directory.join("theirs");
    let server = TheirServer::start(&["-F", theirs.to_str().unwrap()]);
    ours(server.address(), with_file(&sent), Params::default());
    wait_for("all of the file", || {
        (std::fs::read(&theirs).ok()? == content()).then_some(())
    });
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let server = OurServer::start();
    let mut options = options(server.address, Params::default());
    options.end = with_file(Path::new("/nonexistent/file"));
    let error = our_client_with(&options).error.unwrap();
    assert!(
        error.contains("`/nonexistent/file`: No such file"),
        "{error}"
    );
}

/// Datagrams that the kernel cuts and joins are counted one by one at both ends.
#[test]
fn trains_are_counted_as_datagrams() {
    let offloads = EndOptions {
        segments_sends: true,
        receives_trains: true,
        ..EndOptions::default()
    };
    let params = Params {
        protocol: Protocol::Udp,
        block_bytes: 1400,
        end: End::Blocks(2000),
        ..Params::default()
    };
    let server = server_with(offloads.clone());
    let report = ours(server.address, offloads.clone(), params.clone());
    let sent = |report: &Report| {
        let stream = &report.ended.as_ref().unwrap().streams[0];
        (stream.sender.unwrap(), stream.receiver.unwrap())
    };
    let (sender, receiver) = sent(&report);
    assert_eq!(sender.packets, 2000);
    assert!((1..=2000).contains(&receiver.packets), "{receiver:?}");
    let arrived = receiver.packets - receiver.lost;
    assert_eq!(receiver.bytes, 1400 * arrived, "{receiver:?}");
    if iperf3_is_there() {
        let server = TheirServer::start(&[]);
        let mut options = options(server.address(), params);
        options.end = offloads;
        let report = server.ask_with(&options);
        assert_eq!(report.error, None);
        assert_eq!(sent(&report).0.packets, 2000);
    }
}

#[test]
fn streams_are_multipath_tcp_where_both_ends_are() {
    let options = ServerOptions {
        multipath: true,
        ..ServerOptions::default()
    };
    let server = OurServer::start_with((Ipv4Addr::LOCALHOST, 0).into(), options);
    let mut wanted = crate::common::options(
        server.address,
        Params {
            end: End::Bytes(1_000_000),
            ..Params::default()
        },
    );
    wanted.route.multipath = true;
    let before = multipath_handshakes();
    let report = our_client_with(&wanted);
    if report
        .error
        .as_ref()
        .is_some_and(|error| error.contains("not supported"))
    {
        println!("skipped: this kernel has no Multipath TCP");
        return;
    }
    assert_eq!(report.error, None);
    assert!(multipath_handshakes() >= before + 2, "control and stream");
    // A server with Multipath TCP takes plain TCP, too.
    wanted.route.multipath = false;
    assert_eq!(our_client_with(&wanted).error, None);
}

/// Connections that this host has opened as Multipath TCP: `MPCapableSYNACKRX` of
/// /proc/net/netstat.
fn multipath_handshakes() -> u64 {
    let text = std::fs::read_to_string("/proc/net/netstat").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("MPTcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    let found = both.find(|(name, _)| *name == "MPCapableSYNACKRX");
    found.map_or(0, |(_, value)| value.parse().unwrap())
}

#[test]
fn a_flow_label_is_the_clients() {
    let server = OurServer::start();
    let labelled = Params {
        flow_label: 0xa_bcde,
        end: End::Time(1),
        ..Params::default()
    };
    let error = our_client_with(&options(server.address, labelled.clone())).error;
    assert!(error.unwrap().contains("IPv6 flow label"), "IPv4 has none");
    let any = (Ipv6Addr::LOCALHOST, 0).into();
    if std::net::TcpListener::bind::<SocketAddr>(any).is_err() {
        println!("skipped: no IPv6 here");
        return;
    }
    let server = OurServer::start_with(any, ServerOptions::default());
    let options = options(server.address, labelled);
    let client = std::thread::spawn(move || our_client_with(&options));
    // ip6_flowlabel lists what sockets have reserved, in hexadecimal.
    wait_for("the label among those in use", || {
        let labels = std::fs::read_to_string("/proc/net/ip6_flowlabel").ok()?;
        labels
            .lines()
            .any(|line| line.starts_with("ABCDE") || line.starts_with("abcde"))
            .then_some(())
    });
    assert_eq!(client.join().unwrap().error, None);
}
