//! The lab's rates, queues and losses as input for `tc -batch`.

use std::fmt::Write as _;

use ew_model::topology::{AddressFamily, DirectionSpec, HostSpec, PathSpec, Queue};

use crate::fabric::{Fabric, Link, Router};
use crate::ports::{interface, ports};
use crate::spec::LabSpec;

/// Whether a port gets its queue for the first time, or another rate while packets flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Creates the queue.
    Build,
    /// Changes its rate and loses nothing.
    Change,
}

/// Commands for a router: the rates of its ends of cables, and what these lose.
pub(crate) fn router_ports(spec: &LabSpec, fabric: &Fabric, router: Router) -> String {
    let links = fabric.ends(router);
    links
        .map(|(_, _, link)| {
            let lossy = link.path.filter(|path| lost(path) > [0.0, 0.0]);
            port_rate(spec, link, router, Step::Build)
                + &lossy.map_or(String::new(), |_| port_loss(link, router))
        })
        .collect()
}

fn lost(path: &PathSpec) -> [f64; 2] {
    [lost_share(&path.up), lost_share(&path.down)]
}

/// Commands for one of the two routers of a cable: the rate at which it sends into it.
pub(crate) fn port_rate(spec: &LabSpec, link: &Link, router: Router, step: Step) -> String {
    let Some(path) = link.path else {
        return String::new();
    };
    let (device, direction) = match link.lower.router == router {
        true => (&link.lower.device, &path.up),
        false => (&link.upper.device, &path.down),
    };
    switch_port(spec, device, direction.rate_bits_per_sec, step)
}

/// Commands for one of the two routers of a cable: what of the other's packets never arrives.
pub(crate) fn port_loss(link: &Link, router: Router) -> String {
    let Some(path) = link.path else {
        return String::new();
    };
    let (device, direction) = match link.lower.router == router {
        true => (&link.lower.device, &path.down),
        false => (&link.upper.device, &path.up),
    };
    lose(device, "ingress", lost_share(direction))
}

fn lost_share(direction: &DirectionSpec) -> f64 {
    match direction.black_hole {
        true => 1.0,
        false => direction.loss_share,
    }
}

/// Commands for a leaf: what its hosts receive.
pub(crate) fn host_ports(spec: &LabSpec, rack: usize) -> String {
    let hosts = &spec.topology.racks[rack].hosts;
    hosts
        .iter()
        .map(|host| {
            let is_lossy = host.nic.tx_loss_share > 0.0 || host.nic.rx_loss_share > 0.0;
            let mut text = receive_rate(spec, host, Step::Build);
            if is_lossy {
                text += &host_loss(host);
            }
            text
        })
        .collect()
}

/// Commands for a leaf: what is lost between it and one host.
pub(crate) fn host_loss(host: &HostSpec) -> String {
    ports(host)
        .map(|port| {
            lose(&port, "ingress", host.nic.tx_loss_share)
                + &lose(&port, "egress", host.nic.rx_loss_share)
        })
        .collect()
}

/// Drops packets at random where they enter or leave a port, outside of any queue: the counters of
/// whoever sent them show nothing about it, as with a bad cable. The program (bpf(4)) compares a
/// random number (SKF_AD_RANDOM) with the share; its answers are actions (TC_ACT_SHOT,
/// TC_ACT_UNSPEC of linux/pkt_cls.h). What a stack hands over at once (GSO) is lost as a whole.
fn lose(device: &str, way: &str, share: f64) -> String {
    const LOAD_WORD: u32 = 0x20;
    const RANDOM: u32 = 0xffff_f000 + 56;
    const JUMP_IF_NOT_LESS: u32 = 0x35;
    const RETURN: u32 = 0x06;
    const DROP: u32 = 2;
    const GO_ON: u32 = u32::MAX;
    let below = (share * f64::from(u32::MAX)).round() as u32;
    let program = match share >= 1.0 {
        true => format!("1,{RETURN} 0 0 {DROP}"),
        false => format!(
            "4,{LOAD_WORD} 0 0 {RANDOM},{JUMP_IF_NOT_LESS} 1 0 {below},{RETURN} 0 0 {DROP},{RETURN} 0 0 {GO_ON}"
        ),
    };
    format!(
        "qdisc replace dev {device} clsact\n\
         filter replace dev {device} {way} protocol all prio 1 handle 1 bpf da bytecode \"{program}\"\n"
    )
}

/// Commands for a leaf: what one host receives.
pub(crate) fn receive_rate(spec: &LabSpec, host: &HostSpec, step: Step) -> String {
    let rate = host.nic.rx_bits_per_sec / u64::from(host.nic.lag_members);
    ports(host)
        .map(|port| switch_port(spec, &port, rate, step))
        .collect()
}

/// Commands for a host: what it sends. A change of the platform's shaper drops what is queued.
pub(crate) fn send_rate(host: &HostSpec, is_new_shaper: bool) -> String {
    let devices = (0..host.nic.lag_members).map(interface);
    devices
        .map(|device| {
            let mut text = String::new();
            if is_new_shaper {
                let _ = writeln!(text, "qdisc delete dev {device} root");
            }
            text + &send_queue(host, &device)
        })
        .collect()
}

fn send_queue(host: &HostSpec, device: &str) -> String {
    let members = u64::from(host.nic.lag_members);
    let rate = host.nic.tx_bits_per_sec / members;
    let mut text = match host.shaper.bucket {
        None => token_bucket(device, rate),
        Some(bucket) => format!(
            "qdisc replace dev {device} root handle 1: tbf rate {}bit burst {} peakrate {rate}bit mtu {} limit {}\n",
            bucket.sustained_bits_per_sec / members,
            (bucket.capacity_bytes / members).max(bucket_bytes(rate)),
            bucket_bytes(rate),
            queue_bytes(rate),
        ),
    };
    if let Some(cap) = host.shaper.flow_bits_per_sec {
        text += &flow_caps(device, cap);
    }
    text
}

/// As many as there may be before two connections share one.
const FLOW_CLASSES: u32 = 64;

/// A queue with a rate of its own for every 64th source port, below the NIC's token bucket.
fn flow_caps(device: &str, bits_per_sec: u64) -> String {
    let mut text = format!("qdisc replace dev {device} parent 1:1 handle 10: htb default 1\n");
    let burst_bytes = bucket_bytes(bits_per_sec);
    let queue_bytes = queue_bytes(bits_per_sec);
    for class in 1..=FLOW_CLASSES {
        let _ = writeln!(
            text,
            "class replace dev {device} parent 10: classid 10:{class:x} htb rate {bits_per_sec} ceil {bits_per_sec} \
             burst {burst_bytes} cburst {burst_bytes} quantum 9000\n\
             qdisc replace dev {device} parent 10:{class:x} bfifo limit {queue_bytes}"
        );
    }
    for (protocol, header_bytes, priority) in [("ip", 20, 1), ("ipv6", 40, 2)] {
        let program = port_class_program(14 + header_bytes);
        let _ = writeln!(
            text,
            "filter replace dev {device} parent 10: protocol {protocol} prio {priority} handle 1 bpf bytecode \"{program}\""
        );
    }
    text
}

/// Classic BPF (bpf(4)): the class of a packet is `10:(source port % 64 + 1)`.
fn port_class_program(transport_offset: u32) -> String {
    const LOAD_HALF: u32 = 0x28;
    const AND: u32 = 0x54;
    const ADD: u32 = 0x04;
    const RETURN: u32 = 0x16;
    format!(
        "4,{LOAD_HALF} 0 0 {transport_offset},{AND} 0 0 {},{ADD} 0 0 {},{RETURN} 0 0 0",
        FLOW_CLASSES - 1,
        0x10_0001
    )
}

fn switch_port(spec: &LabSpec, device: &str, bits_per_sec: u64, step: Step) -> String {
    match spec.topology.queue {
        Queue::Fifo => token_bucket(device, bits_per_sec),
        Queue::Fair => fair_port(spec, device, bits_per_sec, step),
    }
}

/// A token bucket in front of a first-in-first-out queue: what a NIC or a plain switch port does.
/// Its packet length counts the Ethernet header of every segment but no preamble, so at MTU 1500
/// payload is 1448/1514 of the rate.
fn token_bucket(device: &str, bits_per_sec: u64) -> String {
    format!(
        "qdisc replace dev {device} root handle 1: tbf rate {bits_per_sec}bit burst {} limit {}\n",
        bucket_bytes(bits_per_sec),
        queue_bytes(bits_per_sec)
    )
}

/// 16 ms, and never less than one large burst.
fn queue_bytes(bits_per_sec: u64) -> u64 {
    (bits_per_sec / 8 * 16 / 1000).clamp(96 * 1024, 64 << 20)
}

/// The same rate, shared evenly among the sending hosts that want it: a queue per host, served in
/// turn (HTB borrows by deficit round robin). A single queue at this scale locks some flows out for
/// many seconds; on real links, faster and carrying many more flows, that evens out. Each queue is
/// short, 2.5 ms of the port's rate, so that TCP recovers quickly from overfilling it.
fn fair_port(spec: &LabSpec, device: &str, bits_per_sec: u64, step: Step) -> String {
    let classes = senders(spec).clamp(1, MAX_CLASSES);
    let burst_bytes = bucket_bytes(bits_per_sec);
    let largest_nic = spec.hosts().map(|host| host.nic.tx_bits_per_sec).max();
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
        let protocol = match spec.topology.address_family {
            AddressFamily::Ipv4 => "ip",
            AddressFamily::Ipv6 => "ipv6",
        };
        let program = sender_class_program(spec, classes);
        let _ = writeln!(
            text,
            "filter replace dev {device} parent 1: protocol {protocol} prio 1 handle 1 bpf bytecode \"{program}\""
        );
    }
    text
}

/// What a stack hands over at once (GSO): 0.5 ms of the rate, so that hosts which share a port take
/// short turns.
pub(crate) fn segment_burst_bytes(bits_per_sec: u64) -> u64 {
    (bits_per_sec / 8 / 2000).clamp(4 * 1514, 65536)
}

/// Above this many hosts, several share a queue at a port.
const MAX_CLASSES: usize = 256;

/// What a machine too busy to serve a queue for 10 ms does not lose.
fn bucket_bytes(bits_per_sec: u64) -> u64 {
    (bits_per_sec / 8 / 100).clamp(16 * 1514, 16 << 20)
}

/// Hosts, and per rack one that sends background traffic.
fn senders(spec: &LabSpec) -> usize {
    spec.topology.racks.len() * senders_per_rack(spec)
}

fn senders_per_rack(spec: &LabSpec) -> usize {
    let racks = spec.topology.racks.iter();
    1 + racks.map(|rack| rack.hosts.len()).max().unwrap_or(0)
}

/// Classic BPF (bpf(4)): the class of a packet is `1:(n % classes + 1)`, n being the number of the
/// host that sent it, computed from two bytes of its source address: its rack's and its own.
fn sender_class_program(spec: &LabSpec, classes: usize) -> String {
    const LOAD_BYTE: u32 = 0x30;
    const SUBTRACT: u32 = 0x14;
    const COPY_TO_X: u32 = 0x07;
    const MULTIPLY: u32 = 0x24;
    const ADD_X: u32 = 0x0c;
    const MODULO: u32 = 0x94;
    const ADD: u32 = 0x04;
    const RETURN: u32 = 0x16;
    let (rack_offset, host_offset) = match spec.topology.address_family {
        AddressFamily::Ipv4 => (14 + 12 + 2, 14 + 12 + 3),
        AddressFamily::Ipv6 => (14 + 8 + 7, 14 + 8 + 15),
    };
    let steps = [
        (LOAD_BYTE, host_offset),
        (SUBTRACT, 9),
        (COPY_TO_X, 0),
        (LOAD_BYTE, rack_offset),
        (MULTIPLY, senders_per_rack(spec)),
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
