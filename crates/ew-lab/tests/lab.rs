//! Labs on this machine. They need root, or user namespaces, and iproute2; without, each test
//! prints why it does nothing.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests too"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use ew_lab::{CONTROLLER, Fault, KeeperCommand, Lab, LabError, LabSpec};
use ew_model::topology::Queue;
use ew_sys::namespace::{ProcessHandle, effective_user_id};

/// Not a test: the keepers of the labs below begin here.
#[test]
fn keeper_process() {
    ew_lab::keeper_main_if_requested();
}

/// Not a test: what runs inside the lab's hosts begins here.
#[test]
fn inside_process() {
    match std::env::var("EASTWEST_TEST_INSIDE").as_deref() {
        Ok("connect") => inside_connect(),
        Ok("serve") => inside_serve(),
        Ok("discard") => inside_discard(),
        Ok("send") => inside_send(),
        _ => {}
    }
}

fn inside_connect() {
    for address in std::env::var("EASTWEST_TEST_ADDRESSES").unwrap().split(',') {
        let address = format!("{address}:22").parse().unwrap();
        // Nothing listens: a refusal is an answer from the host, anything else is none.
        let error = std::net::TcpStream::connect_timeout(&address, Duration::from_secs(5))
            .expect_err("nothing listens");
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused,
            "{address}"
        );
    }
}

/// Receives for a second after the first byte, and prints how much.
fn inside_serve() {
    let listener = std::net::TcpListener::bind("0.0.0.0:7000").unwrap();
    println!("\nlistening");
    let (mut stream, _) = listener.accept().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    let mut block = vec![0; 1 << 16];
    let mut count = stream.read(&mut block).unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        count += stream.read(&mut block).unwrap();
    }
    println!("\nreceived {count} in {}", start.elapsed().as_micros());
}

struct Skip;

fn lab(spec: &LabSpec) -> Result<Lab, Skip> {
    match Lab::up(spec, &KeeperCommand::current_test("keeper_process")) {
        Ok(lab) => Ok(lab),
        Err(error @ LabError::Unsupported { .. }) => {
            println!("skipped: {error}");
            Err(Skip)
        }
        Err(error) => panic!("{error}"),
    }
}

fn spec(test: &str) -> LabSpec {
    let name = format!("t{}-{test}", std::process::id());
    LabSpec::uniform(&name, 2, 2, 200_000_000, 100_000_000).unwrap()
}

fn run(lab: &Lab, host: &str, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments);
    lab.enter_command(host, &mut command).unwrap();
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn inside(lab: &Lab, host: &str, what: &str, addresses: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["inside_process", "--exact", "--nocapture"])
        .env("EASTWEST_TEST_INSIDE", what)
        .env("EASTWEST_TEST_ADDRESSES", addresses);
    lab.enter_command(host, &mut command).unwrap();
    command
}

#[test]
fn every_host_answers_every_other() {
    let Ok(lab) = lab(&spec("reach")) else { return };
    let addresses: Vec<_> = lab.hosts().iter().map(|h| h.address.to_string()).collect();
    assert_eq!(addresses.len(), 4);
    for host in ["controller", "r1h1", "r2h2"] {
        let others: Vec<_> = addresses.iter().map(String::as_str).collect();
        let output = inside(&lab, host, "connect", &others.join(","))
            .output()
            .unwrap();
        assert!(output.status.success(), "{host}: {output:?}");
    }
}

#[test]
fn a_host_sees_itself_and_the_lab_only() {
    let Ok(lab) = lab(&spec("view")) else { return };
    assert_eq!(text(&run(&lab, "r1h2", "hostname", &[])).trim(), "r1h2");
    let hosts = text(&run(&lab, CONTROLLER, "cat", &["/etc/hosts"]));
    assert!(hosts.contains("198.18.2.11 r2h2"), "{hosts}");
    let links = text(&run(&lab, "r1h1", "ip", &["-o", "link"]));
    assert_eq!(links.lines().count(), 2, "{links}");
    if lab.status().notes.is_empty() {
        let devices = text(&run(&lab, "r1h1", "ls", &["/sys/class/net"]));
        assert_eq!(devices, "eth0\nlo\n");
    }
    let here = text(&run(&lab, "r1h1", "pwd", &[]));
    assert_eq!(Path::new(here.trim()), std::env::current_dir().unwrap());
    let outside = run(&lab, "r1h1", "ip", &["route", "get", "192.0.2.1"]);
    let leaf = run(&lab, "leaf:r1", "ip", &["route", "get", "192.0.2.1"]);
    assert!(
        outside.status.success(),
        "the default route ends at the leaf"
    );
    assert!(!leaf.status.success(), "no way out of the lab: {leaf:?}");
    let unknown = run(&lab, "leaf:r1", "ip", &["route", "get", "198.18.1.99"]);
    assert!(!unknown.status.success(), "{unknown:?}");
}

#[test]
fn the_machine_sees_nothing_of_it() {
    let links = || fs::read_to_string("/proc/net/dev").unwrap().lines().count();
    let routes = || fs::read_to_string("/proc/net/route").unwrap();
    let (links_before, routes_before) = (links(), routes());
    let Ok(lab) = lab(&spec("hidden")) else {
        return;
    };
    assert_eq!(links(), links_before);
    assert_eq!(routes(), routes_before);
    assert!(fs::read_to_string("/etc/hosts").is_ok_and(|hosts| !hosts.contains("198.18.")));
    drop(lab);
}

#[test]
fn exit_status_and_signals_come_back() {
    let Ok(lab) = lab(&spec("exit")) else { return };
    let line = |script: &str| ["/bin/sh", "-c", script].map(std::ffi::OsString::from);
    assert_eq!(
        ew_lab::exec(lab.name(), "r1h1", &line("exit 7")).unwrap(),
        7
    );
    assert_eq!(
        ew_lab::exec(lab.name(), CONTROLLER, &line("kill -9 $$")).unwrap(),
        137
    );
    let error = ew_lab::exec(lab.name(), "r9h9", &line("true"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("r1h[1-2],r2h[1-2],controller"), "{error}");
    let error = ew_lab::exec("no-such-lab", "r1h1", &line("true"))
        .unwrap_err()
        .to_string();
    assert!(error.contains(lab.name()), "names what is up: {error}");
}

#[test]
fn down_leaves_no_process_file_or_namespace() {
    let spec = spec("down");
    let Ok(mut lab) = lab(&spec) else { return };
    lab.detach().unwrap();
    let dir = lab.dir().to_owned();
    let mut command = Command::new("sleep");
    command.arg("600");
    lab.enter_command("r2h1", &mut command).unwrap();
    let mut sleeper = command.spawn().unwrap();
    drop(lab);
    assert_eq!(
        ew_lab::status(spec.name()).unwrap().processes["r2h1"],
        [sleeper.id()]
    );
    assert!(matches!(
        Lab::up(&spec, &KeeperCommand::current_test("keeper_process")),
        Err(LabError::AlreadyUp { .. })
    ));
    let keeper = ew_lab::status(spec.name()).unwrap().keeper_pid;
    ew_lab::down(spec.name()).unwrap();
    assert!(!sleeper.wait().unwrap().success(), "it was ended");
    assert!(!dir.exists());
    assert!(ProcessHandle::open(keeper).is_err());
    assert!(matches!(
        ew_lab::down(spec.name()),
        Err(LabError::NotUp { .. })
    ));
}

#[test]
fn a_killed_keeper_takes_everything_along() {
    let mut spec = spec("kill");
    spec.sshd = effective_user_id() == 0 && Path::new("/usr/sbin/sshd").exists();
    let Ok(mut lab) = lab(&spec) else { return };
    lab.detach().unwrap();
    let status = lab.status();
    let servers: Vec<_> = status.processes.values().flatten().collect();
    assert_eq!(servers.len(), if spec.sshd { 4 } else { 0 });
    let servers: Vec<_> = servers
        .iter()
        .filter_map(|pid| ProcessHandle::open(**pid).ok())
        .collect();
    let keeper = ProcessHandle::open(status.keeper_pid).unwrap();
    keeper.end(true).unwrap();
    assert!(keeper.wait_ended(Duration::from_secs(10)));
    for server in servers {
        assert!(server.wait_ended(Duration::from_secs(10)));
    }
    assert!(
        ew_lab::names()
            .unwrap()
            .iter()
            .all(|name| *name != spec.name())
    );
    assert!(
        !status.dir.exists(),
        "the next command removes what is stale"
    );
}

#[test]
fn a_lab_ends_with_its_owner() {
    let spec = spec("owner");
    let Ok(lab) = lab(&spec) else { return };
    let (keeper, dir) = (lab.status().keeper_pid, lab.dir().to_owned());
    drop(lab);
    assert!(ProcessHandle::open(keeper).is_err());
    assert!(!dir.exists());
}

#[test]
fn a_narrow_link_carries_no_more_than_its_rate() {
    for queue in [Queue::Fair, Queue::Fifo] {
        let mut spec = spec(&format!("{queue:?}").to_lowercase());
        spec.topology.queue = queue;
        carries_no_more_than_its_rate(&spec);
    }
}

fn carries_no_more_than_its_rate(spec: &LabSpec) {
    let Ok(mut lab) = lab(spec) else {
        return;
    };
    let fault = Fault::parse("r2h1", "rx=10M").unwrap();
    lab.apply_fault(&fault).unwrap();
    let mut server = inside(&lab, "r2h1", "serve", "")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    wait_for(&mut output, "listening");
    let script = "exec 3<>/dev/tcp/r2h1/7000; timeout 4 cat /dev/zero >&3";
    let mut command = Command::new("bash");
    command.args(["-c", script]).stderr(Stdio::null());
    lab.enter_command("r1h1", &mut command).unwrap();
    let mut client = command.spawn().unwrap();
    let line = wait_for(&mut output, "received");
    client.wait().unwrap();
    server.wait().unwrap();
    let numbers: Vec<f64> = line
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let bits_per_sec = numbers[0] * 8e6 / numbers[1];
    // The bucket's first filling comes on top.
    assert!((1e6..11e6).contains(&bits_per_sec), "{bits_per_sec}");
}

fn wait_for(output: &mut impl std::io::BufRead, word: &str) -> String {
    let mut line = String::new();
    while !line.starts_with(word) {
        line.clear();
        assert_ne!(
            output.read_line(&mut line).unwrap(),
            0,
            "ended before `{word}`"
        );
    }
    line.trim().to_owned()
}

#[test]
fn a_cable_can_be_pulled_and_plugged() {
    let Ok(mut lab) = lab(&spec("link")) else {
        return;
    };
    let carrier = |lab: &Lab| text(&run(lab, "r2h2", "ip", &["-o", "link", "show", "eth0"]));
    let reaches = |lab: &Lab| {
        let address = "198.18.2.11";
        inside(lab, "r1h1", "connect", address)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(reaches(&lab));
    lab.apply_fault(&Fault::parse("r2h2", "link-down").unwrap())
        .unwrap();
    assert!(carrier(&lab).contains("NO-CARRIER"));
    assert!(!reaches(&lab));
    lab.clear_faults("r2h2").unwrap();
    assert!(!carrier(&lab).contains("NO-CARRIER"));
    assert!(reaches(&lab));
    assert!(
        lab.apply_fault(&Fault::parse("r3h1", "nic=10M").unwrap())
            .is_err()
    );
}

#[test]
fn faults_of_the_file_are_in_place() {
    let file = "racks: 1\nhosts-per-rack: 2\nnic: 200M\nfaults:\n  - {host: r1h1, receive-buffer: 64K}\n  - {host: r1h2, mtu: 1400}\n";
    let name = format!("name: t{}-faults\n", std::process::id());
    let spec = LabSpec::parse(&(name + file), "test.yaml").unwrap();
    let Ok(mut lab) = lab(&spec) else { return };
    let rmem = |lab: &Lab| text(&run(lab, "r1h1", "cat", &["/proc/sys/net/ipv4/tcp_rmem"]));
    assert_eq!(rmem(&lab).split_whitespace().nth(2), Some("65536"));
    assert!(text(&run(&lab, "r1h2", "ip", &["link", "show", "eth0"])).contains("mtu 1400"));
    lab.apply_fault(&Fault::parse("r1h1", "receive-buffer=128K").unwrap())
        .unwrap();
    assert_eq!(rmem(&lab).split_whitespace().nth(2), Some("131072"));
}

#[test]
fn a_cpu_quota_holds() {
    let Ok(mut lab) = lab(&spec("quota")) else {
        return;
    };
    match lab.apply_fault(&Fault::parse("r1h1", "cpu-quota=10%").unwrap()) {
        Err(error @ LabError::Unsupported { .. }) => return println!("skipped: {error}"),
        other => other.unwrap(),
    }
    let groups = text(&run(&lab, "r1h1", "cat", &["/proc/self/cgroup"]));
    assert!(
        groups.contains(&format!("/eastwest.{}.r1h1", lab.name())),
        "{groups}"
    );
    let other = text(&run(&lab, "r1h2", "cat", &["/proc/self/cgroup"]));
    assert!(!other.contains("eastwest."), "{other}");
    drop(lab);
    let left = fs::read_dir("/sys/fs/cgroup/cpu")
        .into_iter()
        .flatten()
        .flatten();
    let own = format!("eastwest.t{}-quota", std::process::id());
    assert!(
        left.map(|e| e.file_name())
            .all(|n| !n.to_string_lossy().starts_with(&own))
    );
}

#[test]
fn ssh_reaches_every_host() {
    if effective_user_id() != 0 || !Path::new("/usr/sbin/sshd").exists() {
        return println!("skipped: needs root and /usr/sbin/sshd");
    }
    let mut spec = spec("sshd");
    spec.sshd = true;
    let Ok(lab) = lab(&spec) else { return };
    let config = lab.dir().join("ssh_config");
    for host in lab.hosts() {
        let arguments = [
            "-o",
            "BatchMode=yes",
            "-F",
            config.to_str().unwrap(),
            &host.name,
            // No shell that reads start-up files of this machine's root.
            "echo `hostname` $0; exit 5",
        ];
        let output = run(&lab, CONTROLLER, "ssh", &arguments);
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        let words = String::from_utf8_lossy(&output.stdout);
        assert_eq!(words.trim(), format!("{} sh", host.name));
    }
}

#[test]
fn sshd_without_root_is_refused_in_words() {
    if effective_user_id() == 0 {
        return println!("skipped: this is root");
    }
    let mut spec = spec("refused");
    spec.sshd = true;
    let error = Lab::up(&spec, &KeeperCommand::current_exe())
        .unwrap_err()
        .to_string();
    assert!(error.contains("root"), "{error}");
}

/// As root, runs this program's other tests once more as a user without any privilege.
#[test]
fn it_works_without_root() {
    if effective_user_id() != 0 {
        return println!("skipped: the other tests run without root already");
    }
    let home = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(home.path(), open).unwrap();
    let program: PathBuf = home.path().join("lab-tests");
    fs::copy("/proc/self/exe", &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&program)
        .args(["--test-threads=2"])
        .env("TMPDIR", home.path())
        .env("HOME", home.path())
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_STATE_HOME")
        .current_dir(home.path())
        .output();
    let Ok(output) = output else {
        return println!("skipped: setpriv (util-linux) is not installed");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

#[test]
fn addresses_follow_rack_and_number() {
    let spec = spec("addresses");
    let last = spec.hosts().last().unwrap();
    assert_eq!(
        (last.name.as_str(), last.address),
        ("r2h2", Some(Ipv4Addr::new(198, 18, 2, 11).into()))
    );
}

#[test]
fn packets_are_lost_on_a_link_and_on_an_uplink() {
    let Ok(mut lab) = lab(&spec("loss")) else {
        return;
    };
    for (target, source, to) in [("r1h1", "r1h2", "r1h1"), ("r2", "r1h2", "r2h1")] {
        let Some(before) = lost_of_hundred(&lab, source, to) else {
            return println!("skipped: no ping that works here");
        };
        assert_eq!(before, 0, "before");
        match lab.apply_fault(&Fault::parse(target, "loss=50%").unwrap()) {
            Err(error @ LabError::Unsupported { .. }) => return println!("skipped: {error}"),
            other => other.unwrap(),
        }
        let Some(lost) = lost_of_hundred(&lab, source, to) else {
            return println!("skipped: no ping that works here");
        };
        // Half of the requests, and half of the answers to the rest; by chance alone never this far
        // off.
        assert!((40..99).contains(&lost), "{target}: {lost} of 100");
        lab.clear_faults(target).unwrap();
        assert_eq!(lost_of_hundred(&lab, source, to), Some(0), "after");
    }
}

/// `None` without a ping that may be used.
fn lost_of_hundred(lab: &Lab, from: &str, to: &str) -> Option<u32> {
    let mut command = Command::new("ping");
    command.args(["-n", "-q", "-c", "100", "-i", "0.01", "-W", "1", to]);
    lab.enter_command(from, &mut command).unwrap();
    let output = command.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = said.split_once("transmitted, ")?;
    let received = rest.split_whitespace().next()?.parse::<u32>().ok()?;
    Some(100 - received)
}

#[test]
fn small_send_buffers_are_in_place_and_go_again() {
    let Ok(mut lab) = lab(&spec("wmem")) else {
        return;
    };
    let limit = |lab: &Lab| {
        let triple = text(&run(lab, "r1h1", "cat", &["/proc/sys/net/ipv4/tcp_wmem"]));
        triple.split_whitespace().nth(2).map(str::to_owned)
    };
    let before = limit(&lab);
    lab.apply_fault(&Fault::parse("r1h1", "send-buffer=16K").unwrap())
        .unwrap();
    assert_eq!(limit(&lab).as_deref(), Some("16384"));
    lab.clear_faults("r1h1").unwrap();
    assert_eq!(limit(&lab), before);
}

#[test]
fn a_neighbour_sends_until_it_is_ended() {
    let Ok(mut lab) = lab(&spec("neighbour")) else {
        return;
    };
    let sent_bytes = |lab: &Lab| {
        let table = text(&run(lab, "r1h1", "cat", &["/proc/net/dev"]));
        let row = table.lines().find(|line| line.contains("eth0")).unwrap();
        row.split_whitespace()
            .nth(9)
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    lab.apply_fault(&Fault::parse("r1h1", "neighbour=8M").unwrap())
        .unwrap();
    let begin = Instant::now();
    while sent_bytes(&lab) < 1_000_000 {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it does not send"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    // What it sent in no time at all would not be a rate.
    assert!(begin.elapsed() > Duration::from_millis(500));
    let pids = lab.status().processes["r1h1"].clone();
    assert_eq!(pids.len(), 1);
    let name = fs::read_to_string(format!("/proc/{}/comm", pids[0])).unwrap();
    assert_eq!(name.trim(), "lab-neighbour");
    lab.apply_fault(&Fault::parse("r1h1", "neighbour=off").unwrap())
        .unwrap();
    assert!(!lab.status().processes.contains_key("r1h1"));
}

#[test]
fn what_faults_start_ends_with_the_keeper() {
    let mut spec = spec("intruders");
    for fault in ["neighbour=2M", "disk-writer=on", "cpu-hog=5%"] {
        let needs_root = fault.starts_with("cpu");
        if needs_root && effective_user_id() != 0 {
            continue;
        }
        spec = spec
            .with_fault(&Fault::parse("r1h1", fault).unwrap())
            .unwrap();
    }
    let Ok(mut lab) = lab(&spec) else { return };
    lab.detach().unwrap();
    let status = lab.status();
    let expected = if effective_user_id() == 0 { 3 } else { 2 };
    assert_eq!(status.processes["r1h1"].len(), expected);
    assert_eq!(status.processes["controller"].len(), 1, "who receives");
    let intruders: Vec<_> = status.processes.values().flatten().collect();
    let handles: Vec<_> = intruders
        .iter()
        .map(|pid| ProcessHandle::open(**pid).unwrap())
        .collect();
    ProcessHandle::open(status.keeper_pid)
        .unwrap()
        .end(true)
        .unwrap();
    for handle in handles {
        assert!(handle.wait_ended(Duration::from_secs(10)));
    }
    assert!(!ew_lab::names().unwrap().contains(&spec.name().to_owned()));
}

#[test]
fn a_host_with_a_hog_runs_on_one_cpu() {
    let Ok(mut lab) = lab(&spec("hog")) else {
        return;
    };
    match lab.apply_fault(&Fault::parse("r1h1", "cpu-hog=2%").unwrap()) {
        Err(error @ LabError::Unsupported { .. }) => return println!("skipped: {error}"),
        other => other.unwrap(),
    }
    let allowed = |lab: &Lab| {
        let status = text(&run(lab, "r1h1", "cat", &["/proc/self/status"]));
        let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
        line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    assert!(allowed(&lab).parse::<u32>().is_ok(), "{}", allowed(&lab));
    assert_eq!(lab.status().processes["r1h1"].len(), 1);
    lab.clear_faults("r1h1").unwrap();
    assert!(!lab.status().processes.contains_key("r1h1"));
}

/// Which uplinks of `r1` carry TCP connections from these source ports, by the counters of the
/// leaf's ports: one member each.
fn members_used(lab: &Lab, ports: std::ops::Range<u16>) -> Vec<usize> {
    let to = lab.hosts()[2].address.to_string();
    let from = lab.hosts()[0].address.to_string();
    let mut server = inside(lab, "r2h1", "discard", "")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    wait_for(&mut output, "listening");
    let used = ports.map(|port| {
        let before = sent_bytes(lab, "leaf:r1", "up");
        let sent = inside(lab, "r1h1", "send", &format!("{from}|{to}|{port}"))
            .output()
            .unwrap();
        assert!(sent.status.success(), "{sent:?}");
        let after = sent_bytes(lab, "leaf:r1", "up");
        let grown: Vec<usize> = (0..after.len())
            .filter(|member| after[*member] > before[*member] + 50_000)
            .collect();
        assert_eq!(grown.len(), 1, "one connection, one member: {grown:?}");
        grown[0]
    });
    let used = used.collect();
    server.kill().unwrap();
    server.wait().unwrap();
    used
}

/// Bytes that a router sent into its ports of this prefix, in order.
fn sent_bytes(lab: &Lab, place: &str, prefix: &str) -> Vec<u64> {
    let table = text(&run(lab, place, "cat", &["/proc/net/dev"]));
    let mut ports: Vec<(usize, u64)> = table
        .lines()
        .filter_map(|line| {
            let (name, counters) = line.trim().split_once(':')?;
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            let sent = counters.split_whitespace().nth(8)?.parse().ok()?;
            Some((number, sent))
        })
        .collect();
    ports.sort_unstable();
    ports.into_iter().map(|(_, sent)| sent).collect()
}

/// Accepts one connection after the other and takes what comes.
fn inside_discard() {
    let listener = std::net::TcpListener::bind("[::]:7000")
        .or_else(|_| std::net::TcpListener::bind("0.0.0.0:7000"))
        .unwrap();
    println!("\nlistening");
    for stream in listener.incoming() {
        let _ = std::io::copy(&mut stream.unwrap(), &mut std::io::sink());
    }
}

/// Sends 100,000 bytes from one source port.
fn inside_send() {
    let arguments = std::env::var("EASTWEST_TEST_ADDRESSES").unwrap();
    let [from, to, port] = arguments.split('|').collect::<Vec<_>>()[..] else {
        panic!("{arguments}")
    };
    let address = |text: &str, port: u16| std::net::SocketAddr::new(text.parse().unwrap(), port);
    let to = address(to, 7000);
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(to),
        socket2::Type::STREAM,
        None,
    )
    .unwrap();
    socket.set_reuse_address(true).unwrap();
    socket
        .bind(&address(from, port.parse().unwrap()).into())
        .unwrap();
    socket
        .connect_timeout(&to.into(), Duration::from_secs(5))
        .unwrap();
    (&socket).write_all(&[0; 100_000]).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    // The end of the other side shows that all has come.
    let _ = (&socket).read(&mut [0]);
}

fn fabric(test: &str, more: &str) -> LabSpec {
    let name = format!("t{}-{test}", std::process::id());
    let text = format!("name: {name}\nracks: 2\nhosts-per-rack: 2\nnic: 200M\n{more}");
    LabSpec::parse(&text, "test.yaml").unwrap()
}

#[test]
fn a_connection_takes_one_path_and_its_ports_say_which() {
    for family in ["ipv4", "ipv6"] {
        let more = format!("paths: 4\nqueue: fifo\naddress-family: {family}\n");
        let Ok(mut lab) = lab(&fabric(&format!("paths-{family}"), &more)) else {
            return;
        };
        let used = members_used(&lab, 42_000..42_016);
        assert!(used.iter().any(|member| *member != used[0]), "{used:?}");
        assert_eq!(
            used,
            members_used(&lab, 42_000..42_016),
            "{family}: selected anew"
        );
        // A member that is down is left, one that is in again is used again.
        lab.apply_fault(&Fault::parse("spine/2", "link-down").unwrap())
            .unwrap();
        assert!(!members_used(&lab, 42_000..42_008).contains(&1));
        lab.clear_faults("r1").unwrap();
        lab.clear_faults("r2").unwrap();
        assert_eq!(
            used,
            members_used(&lab, 42_000..42_016),
            "{family}: restored"
        );
        lab.apply_fault(&Fault::parse("r1/1", "withdrawn=up").unwrap())
            .unwrap();
        assert!(!members_used(&lab, 42_000..42_008).contains(&0));
    }
}

#[test]
fn pods_and_double_links_reach_everybody() {
    for family in ["ipv4", "ipv6"] {
        let name = format!("t{}-pods-{family}", std::process::id());
        let text = format!(
            "name: {name}\nracks: 4\nhosts-per-rack: 1\nnic: 200M\npaths: 2\nlag-members: 2\naddress-family: {family}\n\
             pods: [{{racks: 2, paths: 2}}, {{racks: 2, paths: 2, oversubscription: 2}}]\nflow-cap: 20M\n"
        );
        let Ok(lab) = lab(&LabSpec::parse(&text, "test.yaml").unwrap()) else {
            return;
        };
        let brackets = |address: std::net::IpAddr| match address {
            std::net::IpAddr::V4(address) => address.to_string(),
            std::net::IpAddr::V6(address) => format!("[{address}]"),
        };
        let all: Vec<String> = lab.hosts().iter().map(|h| brackets(h.address)).collect();
        for host in [CONTROLLER, "r1h1", "r4h1"] {
            let output = inside(&lab, host, "connect", &all.join(","))
                .output()
                .unwrap();
            assert!(output.status.success(), "{family}, {host}: {output:?}");
        }
    }
}

#[test]
fn a_black_hole_takes_a_share_of_the_connections() {
    let Ok(mut lab) = lab(&fabric("hole", "paths: 2\n")) else {
        return;
    };
    let used = members_used(&lab, 43_000..43_012);
    assert!(used.contains(&0) && used.contains(&1), "{used:?}");
    match lab.apply_fault(&Fault::parse("r1/2", "black-hole=up").unwrap()) {
        Err(error @ LabError::Unsupported { .. }) => return println!("skipped: {error}"),
        other => other.unwrap(),
    }
    let (from, to) = (lab.hosts()[0].address, lab.hosts()[2].address);
    let mut server = inside(&lab, "r2h1", "discard", "")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(server.stdout.take().unwrap());
    wait_for(&mut output, "listening");
    for (port, member) in (43_000..).zip(used).take(6) {
        let mut command = inside(&lab, "r1h1", "send", &format!("{from}|{to}|{port}"));
        let came_through = command.output().unwrap().status.success();
        assert_eq!(came_through, member == 0, "port {port}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn background_traffic_crosses_the_uplink_until_it_is_ended() {
    let Ok(mut lab) = lab(&fabric("background", "paths: 2\n")) else {
        return;
    };
    lab.apply_fault(&Fault::parse("r1", "background=r2:16M").unwrap())
        .unwrap();
    let begin = Instant::now();
    let total = |lab: &Lab| sent_bytes(lab, "leaf:r1", "up").iter().sum::<u64>();
    while total(&lab) < 2_000_000 {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it does not send"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begin.elapsed() > Duration::from_millis(500));
    let used = sent_bytes(&lab, "leaf:r1", "up");
    assert!(
        used.iter().all(|bytes| *bytes > 100_000),
        "on both paths: {used:?}"
    );
    lab.clear_faults("r1").unwrap();
    assert!(!lab.status().processes.contains_key("leaf:r1"));
}
