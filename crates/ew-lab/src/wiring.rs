//! The lab's links, addresses, routes and rates as input for `ip -batch` and `tc -batch`.
//!
//! Every host has a point-to-point link to its leaf, as in a routed ("layer 3 to the host") fabric: the leaf owns one
//! gateway address and a /32 route per host. Unknown addresses of the range are unreachable in every router, and no
//! router has a default route.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use crate::error::LabError;
use crate::spec::{HostSpec, LabSpec, Queue, RackSpec};

/// MTU of the links between routers: never the limit.
const CORE_MTU_BYTES: u32 = 9000;
const RANGE: &str = "198.18.0.0/15";

/// Commands for a leaf: its links to the spine and its hosts. Paths name the peers' network namespaces.
pub(crate) fn leaf_links(
    rack: &RackSpec,
    index: usize,
    spine: &str,
    host_paths: &[String],
) -> String {
    let number = index + 1;
    let gateway = gateway(index);
    let mut text = format!(
        "link set dev lo up\naddress add {gateway}/32 dev lo\n\
         link add name up mtu {CORE_MTU_BYTES} type veth peer name rack{number} mtu {CORE_MTU_BYTES} netns {spine}\n\
         address add 198.19.{number}.2/30 dev up\nlink set dev up up\n\
         route add {RANGE} via 198.19.{number}.1\nroute add unreachable 198.18.{number}.0/24\n"
    );
    for (host, path) in rack.hosts.iter().zip(host_paths) {
        let port = port(host);
        let _ = writeln!(
            text,
            "link add name {port} type veth peer name eth0 netns {path}"
        );
        text += &leaf_mtu(host);
        text += &leaf_port(host, index);
    }
    text
}

/// Command for a leaf: the MTU of a host's port is the host's own.
pub(crate) fn leaf_mtu(host: &HostSpec) -> String {
    format!("link set dev {} mtu {}\n", port(host), host.mtu_bytes)
}

/// Commands for a leaf: plugs a host's cable in or out. The kernel forgets routes over a link that is down.
pub(crate) fn leaf_port(host: &HostSpec, index: usize) -> String {
    let port = port(host);
    if !host.link_up {
        return format!("link set dev {port} down\n");
    }
    format!(
        "link set dev {port} up\nroute replace {}/32 dev {port} src {}\n",
        host.address,
        gateway(index)
    )
}

/// Commands for the spine, after all leaves have their links to it.
pub(crate) fn spine_links(spec: &LabSpec, controller: &str) -> String {
    let mut text = format!(
        "link set dev lo up\nroute add unreachable {RANGE}\n\
         link add name mgmt mtu 1500 type veth peer name eth0 netns {controller}\n\
         address add 198.19.255.1/30 dev mgmt\nlink set dev mgmt up\n"
    );
    for number in 1..=spec.racks.len() {
        let _ = writeln!(
            text,
            "address add 198.19.{number}.1/30 dev rack{number}\nlink set dev rack{number} up\n\
             route add 198.18.{number}.0/24 via 198.19.{number}.2"
        );
    }
    text
}

/// Commands for the management host.
pub(crate) fn controller_links() -> String {
    format!(
        "link set dev lo up\naddress add {}/30 dev eth0\nlink set dev eth0 up\nroute add default via 198.19.255.1\n",
        LabSpec::controller_address()
    )
}

/// Commands for a host.
pub(crate) fn host_links(host: &HostSpec, index: usize) -> String {
    let gateway = gateway(index);
    let address = host.address;
    format!(
        "link set dev lo up\naddress add {address}/32 dev eth0\n{}link set dev eth0 up\n\
         route add {gateway} dev eth0 scope link src {address}\nroute add default via {gateway} src {address}{}\n",
        host_device(host),
        congestion()
    )
}

/// What clusters run, whatever this machine prefers: BBR shares a queue unevenly, and paces by timers that many hosts on few
/// CPUs cannot keep. A namespace's default may only be one that everybody is allowed, a route's may be any (ip-route(8)).
fn congestion() -> &'static str {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    match available {
        Ok(names) if names.split_whitespace().any(|name| name == "cubic") => " congctl cubic",
        _ => "",
    }
}

/// Commands for a host: MTU, and the size of the bursts that its stack hands to its NIC.
pub(crate) fn host_device(host: &HostSpec) -> String {
    let gso_bytes = segment_burst_bytes(host.tx_bits_per_sec);
    format!(
        "link set dev eth0 mtu {} gso_max_size {gso_bytes}\n",
        host.mtu_bytes
    )
}

/// tc commands for a leaf: what its hosts receive, and the way up.
pub(crate) fn leaf_rates(spec: &LabSpec, rack: &RackSpec) -> String {
    let mut text = uplink_rate(spec, rack, Step::Build);
    for host in &rack.hosts {
        text += &receive_rate(spec, host, Step::Build);
    }
    text
}

/// tc commands for a leaf: what is lost on its hosts' links and on its uplink, where anything is.
pub(crate) fn leaf_losses(rack: &RackSpec) -> String {
    let hosts = rack.hosts.iter().filter(|host| host.loss_share > 0.0);
    let mut text: String = hosts.map(host_loss).collect();
    if rack.loss_share > 0.0 {
        text += &uplink_loss(rack);
    }
    text
}

/// tc commands for a leaf: what is lost between it and one host.
pub(crate) fn host_loss(host: &HostSpec) -> String {
    port_loss(&port(host), host.loss_share)
}

/// tc commands for a leaf: what is lost between it and the spine.
pub(crate) fn uplink_loss(rack: &RackSpec) -> String {
    port_loss("up", rack.loss_share)
}

/// Drops packets at random where they enter and leave a port, before any queue: the host's counters show nothing of it, as
/// with a bad cable. The program (bpf(4)) compares a random number (SKF_AD_RANDOM) with the share; its answers are actions
/// (TC_ACT_SHOT, TC_ACT_UNSPEC of linux/pkt_cls.h). What a stack hands over at once (GSO) is lost as a whole.
fn port_loss(device: &str, share: f64) -> String {
    const LOAD_WORD: u32 = 0x20;
    const RANDOM: u32 = 0xffff_f000 + 56;
    const JUMP_IF_NOT_LESS: u32 = 0x35;
    const RETURN: u32 = 0x06;
    const DROP: u32 = 2;
    const GO_ON: u32 = u32::MAX;
    let below = (share * f64::from(u32::MAX)).round() as u32;
    let program = format!(
        "4,{LOAD_WORD} 0 0 {RANDOM},{JUMP_IF_NOT_LESS} 1 0 {below},{RETURN} 0 0 {DROP},{RETURN} 0 0 {GO_ON}"
    );
    let mut text = format!("qdisc replace dev {device} clsact\n");
    for way in ["ingress", "egress"] {
        let _ = writeln!(
            text,
            "filter replace dev {device} {way} protocol all prio 1 handle 1 bpf da bytecode \"{program}\""
        );
    }
    text
}

/// tc commands for a leaf: what one host receives.
pub(crate) fn receive_rate(spec: &LabSpec, host: &HostSpec, step: Step) -> String {
    switch_port(spec, &port(host), host.rx_bits_per_sec, step)
}

/// tc command for a host: what it sends.
pub(crate) fn send_rate(host: &HostSpec) -> String {
    token_bucket("eth0", host.tx_bits_per_sec)
}

/// tc commands for a leaf: the way up alone.
pub(crate) fn uplink_rate(spec: &LabSpec, rack: &RackSpec, step: Step) -> String {
    switch_port(spec, "up", rack.uplink_bits_per_sec, step)
}

/// tc commands for the spine: the way down to one rack.
pub(crate) fn downlink_rate(spec: &LabSpec, index: usize, step: Step) -> String {
    let rate = spec.racks[index].uplink_bits_per_sec;
    switch_port(spec, &format!("rack{}", index + 1), rate, step)
}

/// Whether a port gets its queue for the first time, or another rate while packets flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates the queue.
    Build,
    /// Changes its rate and loses nothing.
    Change,
}

fn switch_port(spec: &LabSpec, device: &str, bits_per_sec: u64, step: Step) -> String {
    match spec.queue {
        Queue::Fifo => token_bucket(device, bits_per_sec),
        Queue::Fair => fair_port(spec, device, bits_per_sec, step),
    }
}

/// A token bucket in front of a first-in-first-out queue: what a NIC or a plain switch port does. Its packet length counts
/// the Ethernet header of every segment but no preamble, so at MTU 1500 payload is 1448/1514 of the rate.
///
/// The queue holds 16 ms, and never less than one large burst.
fn token_bucket(device: &str, bits_per_sec: u64) -> String {
    let burst_bytes = bucket_bytes(bits_per_sec);
    let queue_bytes = (bits_per_sec / 8 * 16 / 1000).clamp(96 * 1024, 64 << 20);
    format!(
        "qdisc replace dev {device} root tbf rate {bits_per_sec}bit burst {burst_bytes} limit {queue_bytes}\n"
    )
}

/// The same rate, shared evenly among the sending hosts that want it: a queue per host, served in turn (HTB borrows by
/// deficit round robin). A single queue at this scale locks some flows out for many seconds; on real links, faster and
/// carrying many more flows, that evens out. Each queue is short, 2.5 ms of the port's rate, so that TCP recovers quickly
/// from overfilling it.
fn fair_port(spec: &LabSpec, device: &str, bits_per_sec: u64, step: Step) -> String {
    let classes = spec.hosts().count().clamp(1, MAX_CLASSES);
    let burst_bytes = bucket_bytes(bits_per_sec);
    let largest_nic = spec.hosts().map(|host| host.tx_bits_per_sec).max();
    let segment_bytes = segment_burst_bytes(largest_nic.unwrap_or(bits_per_sec));
    let turn_bytes = (4 * segment_bytes).min(150_000);
    let queue_bytes = (bits_per_sec / 8 / 400).clamp(3 * segment_bytes, 64 << 20);
    let mut text = String::new();
    if step == Step::Build {
        let _ = writeln!(
            text,
            "qdisc replace dev {device} root handle 1: htb default 1"
        );
    }
    let _ = writeln!(
        text,
        "class replace dev {device} parent 1: classid 1:fff htb rate {bits_per_sec} ceil {bits_per_sec} \
         burst {burst_bytes} cburst {burst_bytes} quantum {turn_bytes}"
    );
    for class in 1..=classes {
        let share = bits_per_sec / classes as u64;
        let _ = writeln!(
            text,
            "class replace dev {device} parent 1:fff classid 1:{class:x} htb rate {share} ceil {bits_per_sec} \
             burst 16k cburst {burst_bytes} quantum {turn_bytes}\n\
             qdisc replace dev {device} parent 1:{class:x} bfifo limit {queue_bytes}"
        );
    }
    if step == Step::Build {
        let program = sender_class_program(spec, classes);
        let _ = writeln!(
            text,
            "filter replace dev {device} parent 1: protocol ip prio 1 handle 1 bpf bytecode \"{program}\""
        );
    }
    text
}

/// What a stack hands over at once (GSO): 0.5 ms of the rate, so that hosts which share a port take short turns.
fn segment_burst_bytes(bits_per_sec: u64) -> u64 {
    (bits_per_sec / 8 / 2000).clamp(4 * 1514, 65536)
}

/// Above this many hosts, several share a queue at a port.
const MAX_CLASSES: usize = 256;

/// What a machine too busy to serve a queue for 10 ms does not lose.
fn bucket_bytes(bits_per_sec: u64) -> u64 {
    (bits_per_sec / 8 / 100).clamp(16 * 1514, 16 << 20)
}

/// Classic BPF (bpf(4)): the class of a packet is `1:(n % classes + 1)`, n being the number of the host that sent it,
/// computed from the last two bytes of its IPv4 source address.
fn sender_class_program(spec: &LabSpec, classes: usize) -> String {
    const LOAD_BYTE: u32 = 0x30;
    const SUBTRACT: u32 = 0x14;
    const COPY_TO_X: u32 = 0x07;
    const MULTIPLY: u32 = 0x24;
    const ADD_X: u32 = 0x0c;
    const MODULO: u32 = 0x94;
    const ADD: u32 = 0x04;
    const RETURN: u32 = 0x16;
    const SOURCE_OFFSET: usize = 14 + 12;
    let rack_size = spec.racks.iter().map(|rack| rack.hosts.len()).max();
    let steps = [
        (LOAD_BYTE, SOURCE_OFFSET + 3),
        (SUBTRACT, 10),
        (COPY_TO_X, 0),
        (LOAD_BYTE, SOURCE_OFFSET + 2),
        (MULTIPLY, rack_size.unwrap_or(1)),
        (ADD_X, 0),
        (MODULO, classes),
        (ADD, 0x1_0001),
        (RETURN, 0),
    ];
    let words: Vec<_> = steps
        .iter()
        .map(|(code, k)| format!("{code} 0 0 {k}"))
        .collect();
    format!("{},{}", steps.len(), words.join(","))
}

fn gateway(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, index as u8 + 1, 1)
}

fn port(host: &HostSpec) -> String {
    format!("p{}", host.address.octets()[3] - 9)
}

/// Runs `ip -batch` or `tc -batch` over `batch`; `prepare` may place the command into a namespace.
pub(crate) fn run_batch(
    tool: &'static str,
    batch: &str,
    prepare: impl FnOnce(&mut Command) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let mut command = Command::new(tool);
    command
        .args(["-batch", "-"])
        .env_clear()
        .env("PATH", tool_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    prepare(&mut command)?;
    let mut child = command.spawn().map_err(|error| tool_missing(tool, error))?;
    if let Some(mut input) = child.stdin.take() {
        // A tool that stops reading at a bad line says why on its way out.
        let _ = input.write_all(batch.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(LabError::io_named("wait for", tool))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Command {
        command: format!("{tool} -batch"),
        output: explain(&said, batch),
    })
}

/// Search path for tools that live in sbin, whatever the caller's own path is.
pub(crate) fn tool_path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("/usr/sbin:/usr/bin:/sbin:/bin:{own}")
}

fn tool_missing(tool: &str, source: std::io::Error) -> LabError {
    if source.kind() != std::io::ErrorKind::NotFound {
        return LabError::io_named("start", tool)(source);
    }
    LabError::Unsupported {
        problem: format!("`{tool}` is not installed; install iproute2"),
    }
}

/// iproute2 names the line of a batch that failed; show the line itself.
fn explain(said: &str, batch: &str) -> String {
    let number = said
        .rsplit_once("Command failed -:")
        .and_then(|(_, number)| number.trim().parse::<usize>().ok());
    let line = number.and_then(|number| batch.lines().nth(number.saturating_sub(1)));
    match line {
        Some(line) => format!("{} (`{line}`)", said.trim()),
        None => said.trim().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_benchmark_range_is_ever_addressed() {
        let spec = LabSpec::uniform("t", 3, 2, 200_000_000, 100_000_000).unwrap();
        let mut text = spine_links(&spec, "/n") + &controller_links();
        for (index, rack) in spec.racks.iter().enumerate() {
            text += &leaf_links(rack, index, "/n", &["/a".into(), "/b".into()]);
            for host in &rack.hosts {
                text += &host_links(host, index);
            }
        }
        let addresses = text
            .split([' ', '\n', '/'])
            .filter_map(|word| word.parse::<Ipv4Addr>().ok());
        let mut count = 0;
        for address in addresses {
            count += 1;
            assert!(matches!(address.octets(), [198, 18 | 19, ..]), "{address}");
        }
        assert!(count > 30);
    }

    #[test]
    fn a_failed_batch_line_is_shown() {
        let said = "RTNETLINK answers: File exists\nCommand failed -:2\n";
        assert!(explain(said, "link set dev lo up\nlink add x\n").contains("`link add x`"));
    }
}
