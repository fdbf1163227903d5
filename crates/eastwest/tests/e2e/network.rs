//! Which network is measured: hosts find their own addresses, and every view shows what it was.

use crate::common::{TestLab, can_run_labs, eastwest, has_tool, processes_with, text, wait_for};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const LAB: &str = "racks: 1\nhosts-per-rack: 2\nnic: 100M\noversubscription: 1\n";
const QUICK: [&str; 6] = [
    "--set",
    "duration=300ms",
    "--set",
    "samples=1",
    "--set",
    "warm-up=100ms",
];

/// A process on a host of a lab that ends with the test.
struct Background(Child);

impl Background {
    /// A second network of two hosts, next to the lab's own: what keeps the cable between them.
    fn cable(lab: &TestLab, hosts: [&str; 2]) -> Self {
        // Its namespace is that of the second host.
        const SLEEP: &str = "3601.7";
        let other = lab.exec(hosts[1]).args(["sleep", SLEEP]).spawn().unwrap();
        let cable = Self(other);
        let mut there = Vec::new();
        wait_for(
            "a process on the other host",
            Duration::from_secs(10),
            || {
                there = processes_with(&["sleep", SLEEP]);
                there.retain(|pid| {
                    std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sleep\n")
                });
                !there.is_empty()
            },
        );
        let pid = there[0].to_string();
        let ip = |host: &str, args: &[&str]| {
            let done = lab.exec(host).arg("ip").args(args).output().unwrap();
            assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        };
        let peer = ["type", "veth", "peer", "name", "data0", "netns", &pid];
        ip(
            hosts[0],
            &[&["link", "add", "name", "data0"], &peer[..]].concat(),
        );
        for (number, host) in hosts.into_iter().enumerate() {
            let address = format!("198.19.7.{}/24", number + 1);
            ip(host, &["address", "add", &address, "dev", "data0"]);
            ip(host, &["link", "set", "data0", "mtu", "1400", "up"]);
        }
        cable
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pair(lab: &TestLab, args: &[&str]) -> Output {
    let mut command = lab.run_command("pair");
    command.args(QUICK).args(args).output().unwrap()
}

#[test]
fn hosts_find_their_addresses_on_the_network_asked_for() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(LAB);
    let _cable = Background::cable(&lab, ["r1h1", "r1h2"]);
    for choice in [["--network", "198.19.7.0/24"], ["--interface", "data0"]] {
        let out = pair(&lab, &choice);
        let stderr = text(&out.stderr);
        let json: Value =
            serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        let network = &json["networks"][0];
        assert_eq!(network["interface"], "data0", "{json}: {stderr}");
        assert_eq!(network["subnet"], "198.19.7.0/24");
        assert_eq!(network["mtu_bytes"], 1400);
        assert_eq!(network["hosts"], 2);
        let addresses: Vec<&Value> = [0, 1]
            .iter()
            .map(|at| &json["run"]["inventory"]["hosts"][at]["address"])
            .collect();
        assert_eq!(addresses, ["198.19.7.1", "198.19.7.2"]);
        assert!(
            stderr.contains("up over data0, 198.19.7.0/24"),
            "the live view shows it: {stderr}"
        );
        let rate = json["stages"][0]["aggregate_bits_per_sec"]["value"].as_f64();
        assert!(rate.is_some_and(|rate| rate > 1e6), "{rate:?}");
    }
    a_faster_idle_network_is_a_finding(&lab);
    let both = pair(&lab, &["--network", "198.19.7.0/24", "--interface", "eth0"]);
    let stream = serde_json::Deserializer::from_slice(&both.stdout).into_iter::<Value>();
    let documents: Vec<Value> = stream.map(Result::unwrap).collect();
    assert_eq!(documents.len(), 3, "two results and a comparison");
    let interface = |at: usize| &documents[at]["networks"][0]["interface"];
    assert_eq!([interface(0), interface(1)], ["data0", "eth0"]);
    let names = documents[2].to_string();
    assert!(
        names.contains("198.19.7.0/24") && names.contains("interface eth0"),
        "{names}"
    );
    let one_file = pair(
        &lab,
        &[
            "--network",
            "198.19.7.0/24",
            "--interface",
            "eth0",
            "-O",
            "both.md",
        ],
    );
    assert_eq!(one_file.status.code(), Some(2));
    assert!(
        text(&one_file.stderr).contains("a result of its own"),
        "{}",
        text(&one_file.stderr)
    );
    let nowhere = pair(&lab, &["--network", "203.0.113.0/24"]);
    let stderr = text(&nowhere.stderr);
    assert_ne!(nowhere.status.code(), Some(0));
    assert!(
        stderr.contains("no address on 203.0.113.0/24; it has")
            && stderr.contains("data0 (198.19.7."),
        "{stderr}"
    );
}

/// Speeds of virtual interfaces are their shapers'.
fn a_faster_idle_network_is_a_finding(lab: &TestLab) {
    for (host, device, rate) in [
        ("r1h1", "eth0", "150mbit"),
        ("r1h2", "eth0", "150mbit"),
        ("r1h1", "data0", "1gbit"),
        ("r1h2", "data0", "1gbit"),
    ] {
        let shape = ["replace", "dev", device, "root", "tbf", "rate", rate];
        let shape = [&["qdisc"], &shape[..], &["burst", "64k", "latency", "20ms"]].concat();
        let done = lab.exec(host).arg("tc").args(shape).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let typical = pair(lab, &["--sample-interval", "100ms"]);
    let json: Value = serde_json::from_slice(&typical.stdout).unwrap();
    assert_eq!(json["networks"][0]["interface"], "eth0");
    let findings = json["verdict"]["findings"].as_array().unwrap();
    let faster = findings.iter().find(|f| f["cause"] == "faster-network");
    let sentence = faster.map(|finding| finding["sentence"].as_str().unwrap());
    assert_eq!(
        sentence,
        Some(
            "2 hosts with a faster idle interface: data0 at 1.00 Gb/s, next to eth0 at 150 Mb/s, which was measured"
        ),
        "{findings:?}"
    );
}

#[test]
fn a_blocked_data_port_stops_the_run_before_any_load() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 3\nnic: 100M\n");
    let inside = |args: &[&str]| {
        let done = lab.exec("r1h2").arg("ip").args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    };
    // No answer of the host reaches anybody, as behind a firewall.
    let shown = inside(&["-4", "-o", "address", "show", "dev", "eth0"]);
    let own = shown
        .split_whitespace()
        .nth(3)
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let subnet = own.rsplit_once('.').unwrap().0;
    inside(&[
        "route",
        "add",
        "blackhole",
        &format!("{subnet}.0/25"),
        "metric",
        "1",
    ]);
    let mut command = lab.run_command("mesh");
    let out = command.args(QUICK).output().unwrap();
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(4), "{stderr}");
    assert!(
        stderr.contains("r1h2: no connection to the data ports (")
            && stderr.contains("firewall-cmd --add-port=5401-5499/tcp"),
        "{stderr}"
    );
    assert!(stderr.contains("pre-flight: 3 hosts"), "{stderr}");
    assert!(!stderr.contains("round"), "{stderr}");
}

/// A firewall that lets TCP through alone stops what sends datagrams, and nothing else.
#[test]
fn blocked_datagrams_stop_a_udp_run_before_any_load() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 3\nnic: 100M\n");
    let rule = [
        "ip",
        "rule",
        "add",
        "pref",
        "10",
        "ipproto",
        "udp",
        "blackhole",
    ];
    let done = lab.exec("r1h2").args(rule).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let run = |workload: &str| {
        let mut command = lab.run_command("mesh");
        let out = command
            .args(QUICK)
            .args(["--set", workload])
            .output()
            .unwrap();
        (out.status.code(), text(&out.stderr))
    };
    let (code, stderr) = run("workload=udp-stream");
    assert_eq!(code, Some(4), "{stderr}");
    assert!(
        stderr.contains("r1h2: no connection to the data ports (")
            && stderr.contains("TCP connects, but no datagram is answered"),
        "{stderr}"
    );
    let (code, stderr) = run("workload=tcp-stream");
    assert_eq!(code, Some(0), "{stderr}");
}

/// Its addresses are of the range for benchmarks, which is nobody's network.
#[test]
fn a_lab_of_ipv6_is_measured_like_any_other() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(&format!("{LAB}address-family: ipv6\n"));
    let out = pair(&lab, &[]);
    let stderr = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{stderr}");
    let json: Value = serde_json::from_slice(&out.stdout).unwrap();
    let address = &json["run"]["inventory"]["hosts"][0]["address"];
    assert_eq!(address, "2001:2:0:1::a");
    let rate = json["stages"][0]["aggregate_bits_per_sec"]["value"].as_f64();
    assert!(rate.is_some_and(|rate| rate > 1e6), "{rate:?}");
}

/// A host whose packets are delayed by 15 ms, as from another country.
#[test]
fn far_hosts_need_allow_wan() {
    const DELAY: &str = r"
import fcntl, os, socket, struct, time
tun = os.open('/dev/net/tun', os.O_RDWR)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH', b'far0', 0x1001))
os.system('ip link set far0 up && ip rule add pref 10 iif lo ipproto tcp lookup 7 && ip route add default dev far0 table 7')
wire = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
wire.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
print('up', flush=True)
while packet := os.read(tun, 65536):
    time.sleep(0.015)
    wire.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
";
    if !can_run_labs() {
        return;
    }
    if !has_tool("python3") {
        println!("skipped: no python3, whose program delays packets");
        return;
    }
    let lab = TestLab::up("racks: 1\nhosts-per-rack: 3\nnic: 100M\n");
    let delay = lab
        .exec("r1h2")
        .args(["python3", "-c", DELAY])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut delay = Background(delay);
    let mut up = [0; 3];
    delay.0.stdout.take().unwrap().read_exact(&mut up).unwrap();
    for tool in [&[][..], &["--tool", "iperf3"]] {
        let mut command = lab.run_command("mesh");
        let refused = command.args(QUICK).args(tool).output().unwrap();
        let stderr = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{tool:?}: {stderr}");
        assert!(
            stderr.contains("r1h2: far away (round trip ") && stderr.contains("--allow-wan"),
            "{tool:?}: {stderr}"
        );
    }
    let mut allowed = lab.run_command("pair");
    let allowed = allowed.args(QUICK).arg("--allow-wan").output().unwrap();
    let stderr = text(&allowed.stderr);
    assert!(!stderr.contains("far away"), "{stderr}");
}

#[test]
fn loopback_measures_no_network() {
    let refused = |args: &[&str]| {
        let mut command: Command = eastwest();
        command.args(["run", "pair"]).args(args);
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        text(&out.stderr)
    };
    let debian = refused(&["--hosts", "127.0.1.1,127.0.1.2"]);
    assert!(debian.contains("loopback address 127.0.1.1"), "{debian}");
    let local = refused(&[
        "--via",
        "local",
        "--hosts",
        "a,b",
        "--network",
        "10.0.0.0/8",
    ]);
    assert!(local.contains("leave them out"), "{local}");
    let wrong = refused(&["--hosts", "a,b", "--network", "10.0.0.0"]);
    assert!(wrong.contains("10.20.0.0/16"), "{wrong}");
    let dry = eastwest()
        .args([
            "run",
            "pair",
            "--dry-run",
            "--hosts",
            "a,b",
            "--network",
            "10.20.3.0/16",
        ])
        .output()
        .unwrap();
    let dry = text(&dry.stdout);
    assert!(
        dry.contains("network: 10.20.0.0/16, found on every host"),
        "{dry}"
    );
}

#[test]
fn a_large_run_is_asked_about_on_a_terminal() {
    if !has_tool("script") {
        println!("skipped: no `script`, which makes a terminal");
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let file = work.path().join("hosts");
    // Names that no resolver knows: nothing could be sent even if it were started.
    let lines: String = (1..=33)
        .map(|n| format!("h{n}.invalid 192.0.2.{n}\n"))
        .collect();
    std::fs::write(&file, lines).unwrap();
    let command = format!(
        "{} run permutation --set expect.nic=10G --runs-dir {} --hosts-file {}",
        env!("CARGO_BIN_EXE_eastwest"),
        work.path().join("runs").display(),
        file.display()
    );
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    script.stdin.take().unwrap().write_all(b"n\n").unwrap();
    let out = script.wait_with_output().unwrap();
    let shown = text(&out.stdout);
    assert_eq!(out.status.code(), Some(2), "{shown}");
    assert!(shown.contains("pre-flight: 33 hosts, network:"), "{shown}");
    assert!(shown.contains("data ports 5401-5499"), "{shown}");
    assert!(shown.contains("not started"), "{shown}");
    assert!(!work.path().join("runs").exists(), "nothing was begun");
}
