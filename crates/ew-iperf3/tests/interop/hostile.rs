//! Peers that vanish, lie, or mean harm. None of them may cost anybody but themselves. The named
//! inputs are those of iperf3's own security history.

use crate::common::{OurServer, options, our_client, wait_for};
use ew_iperf3::report::Report;
use ew_iperf3::run_client;
use ew_iperf3::server::ServerOptions;
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

const COOKIE: &[u8; 37] = b"abcdefghijklmnopqrstuvwxyz234567abcd\0";
const QUIET: Duration = Duration::from_millis(300);
const RESULTS: &str = "{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":1,\"sender_has_retransmits\":0,\"streams\":[]}";

/// A client that speaks byte by byte.
struct Raw {
    server: SocketAddr,
    control: TcpStream,
    cookie: [u8; 37],
}

impl Raw {
    fn new(server: &OurServer) -> Self {
        static NEXT: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);
        let mut cookie = *COOKIE;
        cookie[0] = b'a' + NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 26;
        Self {
            server: server.address,
            control: server.connect(),
            cookie,
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.control.write_all(bytes).unwrap();
    }

    fn state(&mut self) -> u8 {
        let mut byte = [0];
        self.control.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// Up to the point where parameters are due.
    fn introduced(server: &OurServer) -> Self {
        let mut raw = Self::new(server);
        let cookie = raw.cookie;
        raw.send(&cookie);
        assert_eq!(raw.state(), 9);
        raw
    }

    fn send_json(&mut self, text: &str) {
        let length = text.len() as u32;
        self.send(&length.to_be_bytes());
        self.send(text.as_bytes());
    }

    /// Up to the point where streams are due.
    fn accepted(server: &OurServer, params: &str) -> Self {
        let mut raw = Self::introduced(server);
        raw.send_json(params);
        assert_eq!(raw.state(), 10);
        raw
    }

    fn stream(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.server).unwrap();
        stream.write_all(&self.cookie).unwrap();
        stream
    }

    /// Up to the point where bytes flow.
    fn running(server: &OurServer, params: &str) -> (Self, TcpStream) {
        let mut raw = Self::accepted(server, params);
        let stream = raw.stream();
        assert_eq!([raw.state(), raw.state()], [1, 2]);
        (raw, stream)
    }

    /// The number of a refusal.
    fn refusal(&mut self) -> i32 {
        assert_eq!(self.state(), 0xfe);
        let mut numbers = [0; 8];
        self.control.read_exact(&mut numbers).unwrap();
        i32::from_be_bytes(numbers[..4].try_into().unwrap())
    }
}

fn still_serves(server: &OurServer) {
    let params = Params {
        end: End::Bytes(100_000),
        ..Params::default()
    };
    let report = our_client(server.address, params);
    assert_eq!(report.error, None);
    let ended = report.ended.unwrap();
    assert_eq!(ended.streams[0].receiver.unwrap().bytes, 100_000);
}

#[test]
fn clients_that_stop_speaking_at_any_point_keep_nobody_out() {
    let server = OurServer::start();
    let silent = Raw::new(&server);
    let mut half_a_cookie = Raw::new(&server);
    half_a_cookie.send(b"abc");
    let no_params = Raw::introduced(&server);
    let mut half_a_length = Raw::introduced(&server);
    half_a_length.send(&[0, 0]);
    // CVE-2023-7250: fewer bytes than promised.
    let mut half_the_params = Raw::introduced(&server);
    half_the_params.send(&[0, 0, 1, 0]);
    half_the_params.send(b"{\"tcp\":true");
    let no_streams = Raw::accepted(&server, "{\"tcp\":true}");
    let half_the_streams = Raw::accepted(&server, "{\"tcp\":true,\"parallel\":2}");
    let one_stream = half_the_streams.stream();
    let no_greeting = Raw::accepted(&server, "{\"udp\":true}");
    let (running, its_stream) = Raw::running(&server, "{\"tcp\":true}");
    let (mut no_results, other_stream) = Raw::running(&server, "{\"tcp\":true}");
    no_results.send(&[4]);
    assert_eq!(no_results.state(), 13);
    still_serves(&server);
    drop((
        silent,
        half_a_cookie,
        no_params,
        half_a_length,
        half_the_params,
    ));
    drop((no_streams, one_stream, half_the_streams, no_greeting));
    drop((running, its_stream, no_results, other_stream));
    still_serves(&server);
    let ended = wait_for("all sessions to end", || {
        let reports = server.reports.lock().unwrap();
        let over = |r: &Report| r.error.is_some() || r.ended.is_some();
        reports.iter().all(over).then(|| reports.len())
    });
    // Two more were never a session: they had not identified themselves.
    assert_eq!(ended, 8 + 2);
}

#[test]
fn a_client_that_closes_while_bytes_flow_ends_its_test() {
    let server = OurServer::start();
    let (raw, mut stream) = Raw::running(&server, "{\"tcp\":true}");
    stream.write_all(&[7; 1000]).unwrap();
    drop(raw);
    let error = server.report().error.unwrap();
    assert_eq!(error, "the client has unexpectedly closed the connection");
}

#[test]
fn a_client_that_gives_up_says_so() {
    let server = OurServer::start();
    let (mut raw, _stream) = Raw::running(&server, "{\"tcp\":true}");
    raw.send(&[12]);
    let report = server.report();
    wait_for("the error", || {
        let error = server.reports.lock().unwrap()[0].error.clone();
        error.map(|error| assert_eq!(error, "the client has terminated"))
    });
    assert!(report.ended.is_none_or(|ended| !ended.complete));
}

#[test]
fn a_stop_ends_sessions_at_every_point() {
    let server = OurServer::start();
    let waiting = Raw::accepted(&server, "{\"udp\":true}");
    let (mut running, _stream) = Raw::running(&server, "{\"tcp\":true}");
    server.stop();
    assert_eq!(running.state(), 11);
    drop(server);
    drop(waiting);
}

#[test]
fn lengths_that_lie_cost_nothing() {
    let server = OurServer::start();
    // CVE-2023-38403: one more than this was no memory at all.
    for length in [u32::MAX, 0x8000_0000, 8193, 0] {
        let mut raw = Raw::introduced(&server);
        raw.send(&length.to_be_bytes());
        assert_eq!(raw.refusal(), 114, "{length}");
    }
    let (mut raw, _stream) = Raw::running(&server, "{\"tcp\":true}");
    raw.send(&[4]);
    assert_eq!(raw.state(), 13);
    raw.send(&u32::MAX.to_be_bytes());
    assert_eq!(raw.refusal(), 114);
    still_serves(&server);
}

#[test]
fn parameters_that_once_crashed_servers_are_refused_or_ignored() {
    let server = OurServer::start();
    let many = format!("[{}]", "[".repeat(8000));
    let refused = [
        // CVE-2016-4303: half of a surrogate pair.
        ("{\"tcp\":true,\"title\":\"\\ud834\\u\"}", 114),
        ("{\"tcp\":true,\"title\":\"\\uD800\"}", 114),
        ("\0\0\0\0", 114),
        (many.as_str(), 114),
        ("{\"tcp\":true,\"parallel\":0}", 6),
        ("{\"tcp\":true,\"parallel\":100000}", 6),
        ("{\"tcp\":true,\"len\":2147483647}", 7),
        ("{\"udp\":true,\"len\":4}", 20),
        ("{\"tcp\":true,\"time\":999999}", 5),
        ("{\"tcp\":true,\"TOS\":-5}", 21),
        ("{\"sctp\":true}", 18),
    ];
    for (params, number) in refused {
        let mut raw = Raw::introduced(&server);
        raw.send_json(params);
        assert_eq!(raw.refusal(), number, "{params}");
    }
    // CVE-2024-53580: types that are not what they should be.
    let wrong = "{\"tcp\":true,\"congestion\":7,\"title\":[],\"time\":\"x\",\"authtoken\":{},\"client_version\":1}";
    drop(Raw::running(&server, wrong));
    still_serves(&server);
}

#[test]
fn results_that_lie_are_refused() {
    let server = OurServer::start();
    let lies = [
        "{}",
        "{\"cpu_util_total\":\"\\ud800\"}",
        "{\"cpu_util_total\":1,\"cpu_util_user\":1,\"cpu_util_system\":1,\"sender_has_retransmits\":1,\"streams\":7}",
    ];
    for lie in lies {
        let (mut raw, _stream) = Raw::running(&server, "{\"tcp\":true}");
        raw.send(&[4]);
        assert_eq!(raw.state(), 13);
        raw.send_json(lie);
        assert_eq!(raw.refusal(), 117, "{lie}");
    }
    still_serves(&server);
}

/// iperf3 before 3.16 counts every part of a block as one, and sends less than its blocks are.
#[test]
fn the_wait_for_blocks_that_never_come_is_no_part_of_the_test() {
    let server = OurServer::start();
    let began = Instant::now();
    let (mut raw, mut stream) =
        Raw::running(&server, "{\"tcp\":true,\"blockcount\":10,\"len\":1000}");
    stream.write_all(&[0; 5000]).unwrap();
    raw.send(&[4]);
    assert_eq!(raw.state(), 13);
    let waited = began.elapsed();
    raw.send_json(RESULTS);
    let ended = server.report().ended.unwrap();
    let receiver = ended.streams[0].receiver.unwrap();
    assert_eq!(receiver.bytes, 5000);
    let silence_s = waited.as_secs_f64() - receiver.duration_s();
    assert!(silence_s > 0.04, "{waited:?} {receiver:?}");
}

#[test]
fn more_streams_than_announced_are_turned_away() {
    let server = OurServer::start();
    let (raw, _stream) = Raw::running(&server, "{\"tcp\":true}");
    let mut extra = raw.stream();
    let mut byte = [0];
    extra.read_exact(&mut byte).unwrap();
    assert_eq!(byte, [0xff]);
}

#[test]
fn a_full_server_says_so() {
    let mut limits = ServerOptions::default();
    limits.limits.sessions = 1;
    limits.limits.streams = 2;
    let server = OurServer::start_with(([127, 0, 0, 1], 0).into(), limits);
    let first = Raw::introduced(&server);
    let report = our_client(server.address, Params::default());
    assert!(report.error.unwrap().contains("busy"));
    drop(first);
    wait_for("the slot to be free", || {
        let params = Params {
            streams: 3,
            ..Params::default()
        };
        let error = our_client(server.address, params).error.unwrap();
        error.contains("more parallel streams").then_some(())
    });
}

#[test]
fn greetings_of_unauthenticated_peers_are_not_answered() {
    let server = OurServer::start();
    let ask_from = |address: &str| {
        let socket = UdpSocket::bind((address, 0)).unwrap();
        socket.set_read_timeout(Some(QUIET)).unwrap();
        socket.send_to(b"9876", server.address).unwrap();
        socket.recv(&mut [0; 64]).is_ok()
    };
    assert!(!ask_from("127.0.0.1"), "nobody has a control connection");
    let raw = Raw::accepted(&server, "{\"udp\":true,\"reverse\":true}");
    assert!(
        !ask_from("127.0.0.2"),
        "another address than the control connection's"
    );
    assert!(ask_from("127.0.0.1"));
    drop(raw);
}

#[test]
fn a_greeting_whose_answer_was_lost_is_answered_again() {
    let server = OurServer::start();
    let mut raw = Raw::accepted(&server, "{\"udp\":true,\"parallel\":2}");
    let greet = |socket: &UdpSocket| {
        let patience = Some(Duration::from_secs(5));
        socket.set_read_timeout(patience).unwrap();
        socket.send(b"9876").unwrap();
        assert_eq!(socket.recv(&mut [0; 64]).unwrap(), 4);
    };
    let streams = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    for socket in &streams {
        socket.connect(server.address).unwrap();
    }
    greet(&streams[0]);
    greet(&streams[0]);
    greet(&streams[1]);
    assert_eq!([raw.state(), raw.state()], [1, 2]);
}

/// The last answer is lost: that the server goes on is one as well.
#[test]
fn a_server_that_goes_on_has_heard_the_greeting() {
    let (listener, udp) = std::iter::repeat_with(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind(listener.local_addr().unwrap());
        udp.map(|udp| (listener, udp))
    })
    .find_map(Result::ok)
    .unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.read_exact(&mut [0; 37]).unwrap();
        control.write_all(&[9, 10]).unwrap();
        assert_eq!(udp.recv(&mut [0; 64]).unwrap(), 4);
        control.write_all(&[1, 11]).unwrap();
        // Until the client closes.
        let _ = control.read_to_end(&mut Vec::new());
    });
    let params = Params {
        protocol: Protocol::Udp,
        ..Params::default()
    };
    let error = our_client(address, params).error.unwrap();
    server.join().unwrap();
    assert_eq!(error, "the server has terminated");
}

#[test]
fn a_reverse_udp_test_ends_with_its_control_connection() {
    let server = OurServer::start();
    let params = "{\"udp\":true,\"reverse\":true,\"len\":1000,\"bandwidth\":1000000,\"time\":60}";
    let mut raw = Raw::accepted(&server, params);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    socket.send(b"9876").unwrap();
    let mut buffer = [0; 2000];
    assert_eq!(socket.recv(&mut buffer).unwrap(), 4);
    assert_eq!([raw.state(), raw.state()], [1, 2]);
    assert_eq!(socket.recv(&mut buffer).unwrap(), 1000);
    raw.control.shutdown(Shutdown::Both).unwrap();
    wait_for("silence", || {
        socket.set_read_timeout(Some(QUIET)).unwrap();
        socket.recv(&mut buffer).err()
    });
}

#[test]
fn datagrams_longer_than_the_buffer_are_only_counted() {
    // CVE-2025-54351: with --skip-rx-copy the kernel returns more than was copied.
    let server = OurServer::start();
    let params = "{\"udp\":true,\"len\":16,\"skip_rx_copy\":1,\"udp_counters_64bit\":1}";
    let mut raw = Raw::accepted(&server, params);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.address).unwrap();
    socket.send(b"9876").unwrap();
    assert_eq!(socket.recv(&mut [0; 16]).unwrap(), 4);
    assert_eq!([raw.state(), raw.state()], [1, 2]);
    for sequence in 1..=3_u8 {
        let mut datagram = vec![0; 40_000];
        datagram[15] = sequence;
        socket.send(&datagram).unwrap();
    }
    socket.send(&[1; 3]).unwrap();
    raw.send(&[4]);
    assert_eq!(raw.state(), 13);
    raw.send_json(RESULTS);
    let ended = server.report().ended.unwrap();
    let receiver = ended.streams[0].receiver.unwrap();
    assert_eq!(
        (receiver.bytes, receiver.packets, receiver.lost),
        (120_000, 3, 0)
    );
}

/// A server that sends this and no more, and then closes.
fn told_by(words: &'static [&'static [u8]]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.read_exact(&mut [0; 37]).unwrap();
        for word in words {
            control.write_all(word).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        control.shutdown(Shutdown::Write).unwrap();
        // The listener stays, so that streams find somebody.
        let _ = control.read(&mut [0; 4096]);
        drop(listener);
    });
    let started = Instant::now();
    let report = our_client(address, Params::default());
    server.join().unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    report.error.unwrap()
}

#[test]
fn servers_that_vanish_or_lie_end_the_client_with_a_reason() {
    let closed = "control socket has closed unexpectedly";
    assert_eq!(told_by(&[]), closed);
    assert_eq!(told_by(&[&[9]]), closed);
    assert_eq!(told_by(&[&[9], &[10]]), closed);
    assert_eq!(told_by(&[&[9], &[10], &[1]]), closed);
    assert_eq!(
        told_by(&[&[0xff]]),
        "the server is busy running a test. try again later"
    );
    assert_eq!(told_by(&[&[11]]), "the server has terminated");
    assert_eq!(
        told_by(&[&[77]]),
        "received an unknown control message (77)"
    );
    assert_eq!(
        told_by(&[&[14]]),
        "received an unknown control message (14)"
    );
    assert_eq!(
        told_by(&[&[9], &[0xfe, 0, 0, 0, 142, 0, 0, 0, 0]]),
        "test authorization failed"
    );
}

#[test]
fn a_client_can_be_stopped_while_the_server_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = options(listener.local_addr().unwrap(), Params::default());
    let stop = AtomicBool::new(true);
    let mut report = Report::default();
    assert!(run_client(&options, &stop, &mut report).is_err());
    assert!(report.error.unwrap().contains("the client has terminated"));
}

#[test]
fn nobody_listening_is_told_in_iperf3s_words() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let params = Params {
        protocol: Protocol::Udp,
        direction: Direction::Both,
        ..Params::default()
    };
    let error = our_client(port, params).error.unwrap();
    assert!(
        error.starts_with("unable to connect to server: Connection refused"),
        "{error}"
    );
}
