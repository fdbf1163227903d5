//! Datagrams between two engines over loopback, and between an engine and a peer made by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

mod common;
mod hello;
#[path = "common/pair.rs"]
mod pair;

use common::{
    LOCALHOST, TOKEN, data_address, engine, order, round, start, wait, with_flows, workload,
};
use ew_engine::{Engine, RoundSpec};
use ew_model::record::{DatagramCounts, EndRecord, FigureNote};
use ew_model::workload::{Limit, Workload, WorkloadKind};
use ew_proto::message::{FlowReport, Role, ServicePorts};
use ew_sys::datagram::{receive_trains, segment_sends};
use hello::{HELLO_BYTES, code, hello};
use pair::Pair;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

const STREAM: WorkloadKind = WorkloadKind::UdpStream;
const RR: WorkloadKind = WorkloadKind::UdpRr;
const BYTES: u64 = 1448;

fn of(kind: WorkloadKind, change: impl FnOnce(&mut Workload)) -> Workload {
    let mut workload = Workload::of(kind);
    change(&mut workload);
    workload
}

fn ends(workload: Workload) -> (EndRecord, EndRecord) {
    Pair::new(LOCALHOST).measure(&long_round(workload))
}

/// With a window in which what shall happen happens on a busy machine, too.
fn long_round(workload: Workload) -> RoundSpec {
    RoundSpec {
        window_ns: 1_500_000_000,
        ..round(workload)
    }
}

fn has_trains() -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    segment_sends(&socket, 1000).is_ok() && receive_trains(&socket).is_ok()
}

#[expect(clippy::print_stdout, reason = "it prints what a test skips")]
fn addresses() -> Vec<IpAddr> {
    let ipv6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
    match TcpListener::bind((ipv6, 0)) {
        Ok(_) => vec![LOCALHOST, ipv6],
        Err(_) => {
            println!("IPv6 skipped: this host has no IPv6 loopback address");
            vec![LOCALHOST]
        }
    }
}

fn rate(end: &EndRecord) -> f64 {
    end.bytes as f64 * 8e9 / end.window_ns as f64
}

#[test]
fn a_paced_flow_has_the_same_figures_at_both_ends() {
    for address in addresses() {
        for streams in [1, 3] {
            let workload = of(STREAM, |w| {
                w.streams = streams;
                w.pace.flow_bits_per_sec = Some(40e6);
            });
            let (sender, receiver) = Pair::new(address).measure(&long_round(workload));
            // A stall of 100 ms is made up for, and whoever has no CPU is slower: the pacer's own
            // tests are exact.
            for end in [&sender, &receiver] {
                assert!(rate(end) < 40e6 * 1.5, "{}", rate(end));
                assert!(end.streams.iter().all(|s| s.bytes > 0 && s.local_port > 0));
                assert!(end.streams.iter().all(|s| s.tcp_info.is_none()));
            }
            let datagrams = receiver.datagrams.unwrap();
            assert!(datagrams.received > 0);
            assert_eq!((datagrams.duplicates, datagrams.reordered), (0, 0));
            assert_eq!(sender.datagrams, None);
            assert_eq!(sender.one_way_delay, None);
            // Two engines, one clock.
            let delays = receiver.one_way_delay.unwrap();
            assert!(delays.min_ns > 0 && delays.quantile(0.5) < Some(500_000_000));
            assert_eq!(sender.notes, [FigureNote::PacedByEngine]);
            assert_eq!(sender.streams[0].local_port, receiver.streams[0].peer_port);
        }
    }
}

#[test]
fn as_fast_as_it_goes_with_and_without_trains() {
    for address in addresses() {
        for (segmentation, streams) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
            let workload = of(STREAM, |w| {
                w.segmentation = segmentation;
                w.streams = streams;
            });
            let (sender, receiver) = Pair::new(address).measure(&long_round(workload));
            let notes = match segmentation && has_trains() {
                true => vec![FigureNote::Segmented],
                false => vec![],
            };
            assert_eq!(sender.notes, notes);
            assert_eq!(receiver.notes, notes);
            assert!(sender.bytes > 0 && receiver.bytes > 0);
            assert!(sender.streams.iter().all(|s| s.bytes > 0));
            assert!(receiver.datagrams.unwrap().received > 0);
        }
    }
}

#[test]
fn what_is_dropped_is_counted_exactly() {
    for segmentation in [true, false] {
        let workload = of(STREAM, |w| {
            w.segmentation = segmentation;
            w.limit = Some(Limit::Messages(20_000));
            // The minimum the kernel has: a train or two.
            w.socket.receive_buffer_bytes = Some(1);
        });
        let (sender, receiver) = Pair::new(LOCALHOST).measure(&long_round(workload));
        assert_eq!(sender.bytes, 20_000 * BYTES);
        let datagrams = receiver.datagrams.unwrap();
        assert_eq!(datagrams.received + datagrams.lost, 20_000);
        assert_eq!(receiver.bytes, datagrams.received * BYTES);
        assert_eq!((datagrams.duplicates, datagrams.reordered), (0, 0));
    }
}

#[test]
fn a_limit_ends_both_ends_windows() {
    for (limit, datagrams) in [
        (Limit::Messages(100), 100),
        (Limit::Bytes(50 * BYTES + 1), 51),
    ] {
        let spec = long_round(of(STREAM, |w| {
            w.limit = Some(limit);
            w.streams = 2;
            w.pace.stream_bits_per_sec = Some(50e6);
        }));
        let (sender, receiver) = Pair::new(LOCALHOST).measure(&spec);
        assert_eq!(sender.bytes, 2 * datagrams * BYTES);
        let counts = receiver.datagrams.unwrap();
        assert_eq!(counts.received + counts.lost, 2 * datagrams);
        assert!(sender.window_ns < spec.window_ns);
        assert!(receiver.window_ns < spec.window_ns);
    }
}

#[test]
fn large_and_small_datagrams() {
    for message_bytes in [24, 40_000, 65_507] {
        let (_, receiver) = ends(of(STREAM, |w| {
            w.message_bytes = message_bytes;
            w.pace.flow_bits_per_sec = Some(100e6);
        }));
        assert_eq!(receiver.bytes % message_bytes, 0);
        assert!(receiver.datagrams.unwrap().received > 0);
    }
}

#[test]
fn requests_are_answered_and_timed() {
    for address in addresses() {
        for (outstanding, streams) in [(1, 1), (32, 1), (4, 3)] {
            let workload = of(RR, |w| {
                w.outstanding = outstanding;
                w.streams = streams;
                w.response_bytes = Some(40);
            });
            let (sender, receiver) = Pair::new(address).measure(&long_round(workload));
            let transactions = sender.transactions.unwrap();
            let latency = sender.latency.unwrap().times.summary().unwrap();
            assert!(latency.min_ns <= latency.p50_ns && latency.p50_ns <= latency.max_ns);
            let counts = sender.datagrams.unwrap();
            assert!(latency.count.abs_diff(counts.received) <= 64);
            assert!(sender.bytes > 0 && receiver.bytes > 0 && transactions > 0);
            assert_eq!((receiver.latency, receiver.datagrams), (None, None));
        }
    }
}

#[test]
fn an_open_loop_keeps_its_schedule() {
    let (sender, _) = ends(of(RR, |w| {
        w.streams = 3;
        w.pace.requests_per_sec = Some(1000.0);
    }));
    // 1500 in the window, and those of a stall before it.
    let transactions = sender.transactions.unwrap();
    assert!((1..2500).contains(&transactions), "{transactions}");
    let latency = sender.latency.unwrap();
    let uncorrected = latency.uncorrected.unwrap();
    assert_eq!(latency.times.count(), uncorrected.count());
    assert!(latency.times.sum_ns >= uncorrected.sum_ns);
}

#[test]
fn requests_have_a_limit_too() {
    let spec = long_round(of(RR, |w| w.limit = Some(Limit::Messages(50))));
    let pair = Pair::new(LOCALHOST);
    let (sender, _) = pair.measure(&spec);
    // One may be under way when the window begins.
    assert!((50..=51).contains(&sender.transactions.unwrap()));
    assert!(sender.window_ns < spec.window_ns);
    assert_eq!(pair.rejected_connections(), 0);
}

#[test]
fn many_streams_share_two_threads() {
    for kind in [STREAM, RR] {
        let mut many = workload(kind, 300, 200);
        many.threads = Some(2);
        if kind == STREAM {
            many.pace.flow_bits_per_sec = Some(30e6);
        }
        let mut spec = round(many);
        // Debug builds on a busy machine need their time.
        spec.start_ns += 1_000_000_000;
        spec.window_start_ns += 1_000_000_000;
        spec.window_ns = 2_000_000_000;
        let (sender, receiver) = Pair::new(LOCALHOST).measure(&spec);
        for end in [&sender, &receiver] {
            assert_eq!(end.streams.len(), 300);
            assert!(end.streams.iter().all(|s| s.bytes > 0));
        }
    }
}

#[test]
fn sizes_that_do_not_go_are_refused() {
    let engine = engine(LOCALHOST);
    let refused = |workload| {
        let outcome = engine.run_round(round(workload), Box::new(|_| {}));
        outcome.unwrap_err().to_string()
    };
    assert!(refused(of(STREAM, |w| w.message_bytes = 23)).contains("24 to 65507"));
    assert!(refused(of(RR, |w| w.message_bytes = 65_508)).contains("16 to 65507"));
    let amplified = refused(of(RR, |w| w.response_bytes = Some(65)));
    assert!(amplified.contains("never sends more than it received"));
}

#[test]
fn a_device_that_is_not_there_is_an_error() {
    let spec = round(of(STREAM, |w| w.socket.device = Some("nonesuch0".into())));
    assert!(Pair::new(LOCALHOST).fail(&spec).contains("nonesuch0"));
}

#[test]
fn only_the_peers_datagrams_with_the_cookie_count() {
    let engine = engine(LOCALHOST);
    let spec = long_round(Workload::of(STREAM));
    let reports = start_end(&engine, &spec, Role::Receive, false, "127.0.0.1:9");
    let peer = Peer::connect(&engine, Role::Send);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    sleep_into_window(&spec, 20);
    for number in 0..10 {
        let good = peer.datagram(number, 100);
        other.send_to(&good, peer.engines_address).unwrap();
        if number % 5 != 3 {
            peer.socket.send(&good).unwrap();
        }
        let mut bad = good.clone();
        bad[7] ^= 1;
        peer.socket.send(&bad).unwrap();
        for cut in [0, 7, 15, 23] {
            peer.socket.send(&good[..cut]).unwrap();
        }
    }
    peer.socket.send(&peer.datagram(4, 100)).unwrap();
    let end = wait(&reports).remove(0).receiver.unwrap();
    let expected = DatagramCounts {
        received: 8,
        lost: 2,
        reordered: 0,
        duplicates: 1,
        jitter_ns: 0,
    };
    // The last of the lost ones is followed by one that came.
    let counts = end.datagrams.unwrap();
    assert_eq!(
        DatagramCounts {
            jitter_ns: 0,
            ..counts
        },
        expected
    );
    assert_eq!(end.bytes, 800);
}

#[test]
fn one_way_delays_are_as_long_as_the_senders_clock_says() {
    let engine = engine(LOCALHOST);
    let spec = long_round(Workload::of(STREAM));
    let reports = start_end(&engine, &spec, Role::Receive, false, "127.0.0.1:9");
    let peer = Peer::connect(&engine, Role::Send);
    sleep_into_window(&spec, 100);
    let since_start_ns = ew_sys::clock::monotonic_ns() - spec.start_ns;
    // One that left 80 ms ago; one that leaves in a minute only, by a clock that is off.
    for (number, sent_ns) in [
        (0, since_start_ns - 80_000_000),
        (1, since_start_ns + 60_000_000_000),
    ] {
        let mut datagram = peer.datagram(number, 100);
        datagram[16..24].copy_from_slice(&sent_ns.to_be_bytes());
        peer.socket.send(&datagram).unwrap();
    }
    let delays = wait(&reports)
        .remove(0)
        .receiver
        .unwrap()
        .one_way_delay
        .unwrap();
    assert_eq!((delays.count(), delays.min_ns), (2, 0));
    assert!(
        (80_000_000..1_500_000_000).contains(&delays.max_ns),
        "{delays:?}"
    );
}

/// Whether it was silent or all was lost, only the sender knows.
#[test]
fn that_no_datagram_came_is_a_figure() {
    let engine = engine(LOCALHOST);
    let spec = round(Workload::of(STREAM));
    let reports = start_end(&engine, &spec, Role::Receive, false, "127.0.0.1:9");
    let _peer = Peer::connect(&engine, Role::Send);
    let end = wait(&reports).remove(0).receiver.unwrap();
    assert_eq!(
        (end.bytes, end.datagrams),
        (0, Some(DatagramCounts::default()))
    );
    assert!(end.window_ns > 0);
}

#[test]
fn a_responder_answers_its_peer_once_and_nobody_else() {
    let engine = engine(LOCALHOST);
    let spec = long_round(of(RR, |w| {
        w.message_bytes = 100;
        w.response_bytes = Some(60);
        w.outstanding = 4;
    }));
    let reports = start_end(&engine, &spec, Role::Receive, false, "127.0.0.1:9");
    let peer = Peer::connect(&engine, Role::Send);
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    sleep_into_window(&spec, 20);
    let mut got = [0; 200];
    for number in 0..10 {
        let good = peer.datagram(number, 100);
        other.send_to(&good, peer.engines_address).unwrap();
        let mut bad = good.clone();
        bad[0] ^= 1;
        peer.socket.send(&bad).unwrap();
        peer.socket.send(&good[..99]).unwrap();
        peer.socket.send(&good).unwrap();
        assert_eq!(peer.socket.recv(&mut got).unwrap(), 60);
        assert_eq!(got[..8], peer.cookie.to_be_bytes());
        assert_eq!(got[8..16], number.to_be_bytes());
    }
    for socket in [&peer.socket, &other] {
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut got).is_err());
    }
    let end = wait(&reports).remove(0).receiver.unwrap();
    assert_eq!(end.bytes, 1000);
}

#[test]
fn a_port_that_is_closed_for_a_while_ends_nothing() {
    for streams in [1, 2] {
        let engine = engine(LOCALHOST);
        let spec = long_round(of(STREAM, |w| {
            w.streams = streams;
            w.threads = Some(1);
            w.pace.stream_bits_per_sec = Some(10e6);
        }));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let reports = start_end(&engine, &spec, Role::Send, true, &address);
        let peers: Vec<_> = (0..streams).map(|_| Peer::accept(&listener)).collect();
        let ports: Vec<_> = peers.iter().map(|p| p.own_port).collect();
        let connections: Vec<_> = peers
            .into_iter()
            .map(|p| (p.connection, p.cookie))
            .collect();
        // All ports are closed now.
        sleep_into_window(&spec, 50);
        for (port, (_, cookie)) in ports.iter().zip(&connections) {
            let socket = UdpSocket::bind(("127.0.0.1", *port)).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let mut got = [0; 2000];
            assert_eq!(socket.recv(&mut got).unwrap(), 1448);
            assert_eq!(got[..8], cookie.to_be_bytes());
        }
        let report = wait(&reports).remove(0);
        assert_eq!(report.error, None);
        assert!(report.sender.unwrap().bytes > 0);
    }
}

#[test]
fn a_peer_that_is_gone_ends_its_stream() {
    let engine = engine(LOCALHOST);
    let spec = long_round(of(STREAM, |w| w.pace.stream_bits_per_sec = Some(10e6)));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let reports = start_end(&engine, &spec, Role::Send, true, &address);
    drop(Peer::accept(&listener));
    let error = wait(&reports).remove(0).error.unwrap();
    assert!(error.contains("the peer closed the connection"), "{error}");
}

#[test]
fn requests_without_answers_are_lost_and_others_take_their_place() {
    let engine = engine(LOCALHOST);
    let spec = long_round(of(RR, |w| w.outstanding = 4));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let reports = start_end(&engine, &spec, Role::Send, true, &address);
    let peer = Peer::accept(&listener);
    let (mut got, mut seen, mut dropped) = ([0; 200], 0, 0);
    while let Ok(count) = peer.socket.recv(&mut got) {
        assert_eq!(count, 64);
        seen += 1;
        // A few at most, as each of them costs its slot 100 ms.
        if seen % 1000 == 200 {
            dropped += 1;
            continue;
        }
        let number = u64::from_be_bytes(got[8..16].try_into().unwrap());
        let answer = peer.datagram(number, 64);
        if peer.socket.send(&answer).is_err() {
            break;
        }
    }
    let end = wait(&reports).remove(0).sender.unwrap();
    let counts = end.datagrams.unwrap();
    assert!(counts.lost <= dropped, "{counts:?} {dropped}");
    assert!(counts.lost > 0 || dropped == 0, "{counts:?} {dropped}");
    assert!(counts.received > 0 && end.transactions.unwrap() > 0);
}

/// What a Service does on the way: datagrams to its port go on to the port `to`, from another
/// source, and the answers go back.
struct Service {
    port: u16,
    is_over: Arc<AtomicBool>,
    carries: JoinHandle<u64>,
}

impl Service {
    fn open(to: u16) -> Self {
        let outer = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        let inner = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        inner.connect((LOCALHOST, to)).unwrap();
        for socket in [&outer, &inner] {
            socket.set_nonblocking(true).unwrap();
        }
        let port = outer.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let carries = std::thread::spawn(move || {
            let (mut buffer, mut client, mut carried) = ([0; 2048], None, 0);
            while !over.load(Ordering::Relaxed) {
                let mut is_idle = true;
                if let Ok((bytes, sender)) = outer.recv_from(&mut buffer) {
                    client = Some(sender);
                    carried += u64::from(inner.send(&buffer[..bytes]).is_ok());
                    is_idle = false;
                }
                if let (Ok(bytes), Some(client)) = (inner.recv(&mut buffer), client) {
                    let _ = outer.send_to(&buffer[..bytes], client);
                    is_idle = false;
                }
                if is_idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            carried
        });
        Self {
            port,
            is_over,
            carries,
        }
    }

    /// How many datagrams it handed on.
    fn close(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.carries.join().unwrap()
    }
}

/// Behind a Service the server binds a port that this leads to, and the client sends to what it is
/// there; the server answers to where requests come from.
#[test]
fn datagrams_pass_a_service_that_translates_both_ends() {
    for kind in [STREAM, RR] {
        let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
        let free = UdpSocket::bind((LOCALHOST, 0)).unwrap();
        let first_port = free.local_addr().unwrap().port();
        drop(free);
        let way = Service::open(first_port);
        let service = Some(Box::new(ServicePorts {
            first_port,
            translated: vec![way.port],
        }));
        let workload = of(kind, |w| {
            w.message_bytes = 200;
            w.segmentation = false;
            w.pace.flow_bits_per_sec = (kind == STREAM).then_some(1e6);
        });
        let spec = long_round(workload);
        let end = |role, opens, engine: &Engine| ew_proto::message::FlowOrder {
            service: service.clone(),
            ..order(5, role, opens, data_address(engine, LOCALHOST))
        };
        let received = start(
            &far,
            with_flows(&spec, vec![end(Role::Receive, false, &near)]),
        );
        let sent = start(&near, with_flows(&spec, vec![end(Role::Send, true, &far)]));
        let (sent, received) = (wait(&sent).remove(0), wait(&received).remove(0));
        assert_eq!((&sent.error, &received.error), (&None, &None), "{kind:?}");
        let (sender, receiver) = (sent.sender.unwrap(), received.receiver.unwrap());
        assert!(receiver.bytes > 0, "{kind:?}");
        assert_eq!(sender.streams[0].peer_port, first_port);
        assert_eq!(receiver.streams[0].local_port, first_port);
        if kind == RR {
            assert!(sender.transactions.unwrap_or(0) > 0 || sender.latency.is_some());
        }
        assert!(way.close() > 0, "{kind:?}");
    }
}

#[test]
fn a_service_without_a_free_port_is_an_error() {
    let (near, far) = (engine(LOCALHOST), engine(LOCALHOST));
    let taken = UdpSocket::bind((LOCALHOST, 0)).unwrap();
    let first_port = taken.local_addr().unwrap().port();
    let service = Some(Box::new(ServicePorts {
        first_port,
        translated: vec![first_port],
    }));
    let spec = round(of(STREAM, |_| {}));
    let end = |role, opens, engine: &Engine| ew_proto::message::FlowOrder {
        service: service.clone(),
        ..order(5, role, opens, data_address(engine, LOCALHOST))
    };
    let received = start(
        &far,
        with_flows(&spec, vec![end(Role::Receive, false, &near)]),
    );
    let sent = start(&near, with_flows(&spec, vec![end(Role::Send, true, &far)]));
    let error = wait(&received).remove(0).error.unwrap();
    assert!(
        error.contains("no port that the Service leads to is free"),
        "{error}"
    );
    assert!(wait(&sent).remove(0).error.is_some());
}

fn start_end(
    engine: &Engine,
    spec: &RoundSpec,
    role: Role,
    opens: bool,
    peer: &str,
) -> Receiver<Vec<FlowReport>> {
    let order = order(7, role, opens, peer.parse().unwrap());
    start(engine, with_flows(spec, vec![order]))
}

fn sleep_into_window(spec: &RoundSpec, by_ms: u64) {
    ew_sys::clock::sleep_until_ns(spec.window_start_ns + by_ms * 1_000_000);
}

/// The other end of flow 7's stream, made by hand.
struct Peer {
    connection: TcpStream,
    socket: UdpSocket,
    own_port: u16,
    /// The engine's datagrams bear it.
    cookie: u64,
    engines_address: SocketAddr,
    engines_cookie: u64,
}

impl Peer {
    fn connect(engine: &Engine, role: Role) -> Self {
        let mut connection = TcpStream::connect(data_address(engine, LOCALHOST)).unwrap();
        let hello = hello(TOKEN, 7, role);
        connection.write_all(&hello).unwrap();
        let mut answer = [0; 16];
        connection.read_exact(&mut answer).unwrap();
        assert_eq!(answer, code(TOKEN, &[b"ack", &hello]));
        Self::exchange(connection)
    }

    fn accept(listener: &TcpListener) -> Self {
        let (mut connection, _) = listener.accept().unwrap();
        let mut hello = [0; HELLO_BYTES];
        connection.read_exact(&mut hello).unwrap();
        let answer = code(TOKEN, &[b"ack", &hello]);
        connection.write_all(&answer).unwrap();
        Self::exchange(connection)
    }

    fn exchange(mut connection: TcpStream) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (own_port, cookie) = (socket.local_addr().unwrap().port(), 0x0123_4567_89ab_cdef);
        let mut offer = [0; 16];
        offer[..2].copy_from_slice(&own_port.to_be_bytes());
        offer[8..].copy_from_slice(&u64::to_be_bytes(cookie));
        connection.write_all(&offer).unwrap();
        connection.read_exact(&mut offer).unwrap();
        let engines_port = u16::from_be_bytes([offer[0], offer[1]]);
        let engines_address = SocketAddr::new(LOCALHOST, engines_port);
        socket.connect(engines_address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        Self {
            connection,
            socket,
            own_port,
            cookie,
            engines_address,
            engines_cookie: u64::from_be_bytes(offer[8..].try_into().unwrap()),
        }
    }

    /// A datagram for the engine.
    fn datagram(&self, number: u64, bytes: usize) -> Vec<u8> {
        let mut datagram = vec![7; bytes];
        datagram[..8].copy_from_slice(&self.engines_cookie.to_be_bytes());
        datagram[8..16].copy_from_slice(&number.to_be_bytes());
        datagram
    }
}
