//! What a test's flows carry: the keys, which workloads have them, and which of them go together.

use super::error::ScenarioError;
use super::repeat::width;
use super::settings::Settings;
use super::sizes;
use super::tree::Node;
use super::values::{choice, count, duration, quantity, size, switch, text};
use ew_model::scenario::Test;
use ew_model::sizes::SizeDistribution;
use ew_model::units;
use ew_model::workload::{
    Limit, Pace, Placement, ReceiveMode, SendMode, SocketSettings, SourcePorts, StreamCount, Tool,
    Workload, WorkloadKind,
};
use std::ops::RangeInclusive;

use WorkloadKind::{FlowSizes, Ping, TcpCrr, TcpRr, TcpStream, Trace, UdpRr, UdpStream};

type Kinds = &'static [WorkloadKind];

const ALL: Kinds = &WorkloadKind::ALL;
const BULK: Kinds = &[TcpStream, UdpStream];
const TCP: Kinds = &[TcpStream, TcpRr, TcpCrr, FlowSizes];
const BUFFERED: Kinds = &[TcpStream, UdpStream, TcpRr, UdpRr, TcpCrr, FlowSizes];
const REQUESTS: Kinds = &[TcpRr, UdpRr, TcpCrr];
const IN_FLIGHT: Kinds = &[TcpRr, UdpRr, Ping];
/// A trace has no messages, and no limit of them; those of flow-sizes are of their distribution.
const MESSAGES: Kinds = &[TcpStream, UdpStream, TcpRr, UdpRr, TcpCrr, Ping];
const FROM_PORTS: Kinds = &[TcpStream, UdpStream, TcpRr, UdpRr, TcpCrr, Trace, FlowSizes];

/// Every key and the workloads that have it.
const KEYS: [(&str, Kinds); 29] = [
    ("workload", ALL),
    ("tool", ALL),
    ("streams", ALL),
    ("threads", ALL),
    ("message-size", MESSAGES),
    ("response-size", REQUESTS),
    ("outstanding", IN_FLIGHT),
    ("rate", BULK),
    ("total-rate", BULK),
    ("request-rate", REQUESTS),
    ("interval", &[Ping]),
    ("distribution", &[FlowSizes]),
    ("load", &[FlowSizes]),
    ("limit-bytes", BULK),
    ("limit-messages", MESSAGES),
    ("nodelay", TCP),
    ("send-buffer", BUFFERED),
    ("receive-buffer", BUFFERED),
    ("congestion", TCP),
    ("mss", TCP),
    ("dscp", ALL),
    ("mptcp", TCP),
    ("device", ALL),
    ("send", &[TcpStream]),
    ("receive", &[TcpStream]),
    ("segmentation", &[UdpStream]),
    ("cpus", ALL),
    ("source-ports", FROM_PORTS),
    ("confidence", ALL),
];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MAX_STREAMS: u32 = 10_000;
/// Where doubling ends: as many streams as fill a NIC of 400 Gb/s from cores that copy 25 Gb/s
/// each.
pub(crate) const MAX_AUTO_STREAMS: u32 = 16;
/// Connections between two hosts at a load. With processor sharing at a load of 80% more messages
/// than these are under way in 3% of the time (0.8^16), and wait for a connection.
const POOL_STREAMS: u32 = 16;
/// More would only measure the queues on the way.
const MAX_OUTSTANDING: u32 = 65_536;
/// 65,535 less the headers of IPv4 and of UDP or ICMP (RFC 791, 768, 792).
const MAX_DATAGRAM_BYTES: u64 = 65_507;
/// Whose it is and its number; in a stream also when it was sent.
const MIN_DATAGRAM_BYTES: u64 = 16;
const MIN_STREAM_DATAGRAM_BYTES: u64 = 24;
const MAX_LIMIT: u64 = 1 << 60;
/// TCP_MIN_MSS and MAX_TCP_WINDOW of Linux (include/net/tcp.h), which bound `TCP_MAXSEG`.
const MSS_BYTES: RangeInclusive<u32> = 88..=32_767;
/// One less than IFNAMSIZ and TCP_CA_NAME_MAX of Linux, which count a closing zero.
const MAX_NAME_CHARS: usize = 15;
/// The most that Linux can be built for (NR_CPUS).
const MAX_CPU: u32 = 8191;

/// All keys.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().map(|(key, _)| key)
}

/// Whether a key means anything to a workload. Keys of other tools do.
pub(super) fn takes(kind: WorkloadKind, key: &str) -> bool {
    kinds_with(key).contains(&kind)
}

/// A test's workload before anything is checked: overrides need it. An unknown word is refused
/// later.
pub(super) fn kind_before_checks(root: &Node, test: &Node) -> WorkloadKind {
    let own = test.get("workload");
    let word = own.or_else(|| root.get("defaults")?.get("workload"));
    word.and_then(Node::text)
        .and_then(kind_by_name)
        .unwrap_or(TcpStream)
}

/// The workload of that name.
pub(super) fn kind_by_name(name: &str) -> Option<WorkloadKind> {
    WorkloadKind::ALL.into_iter().find(|k| k.name() == name)
}

/// The tool of that name.
pub(super) fn tool_by_name(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// Reads a test's workload and the sizes it is swept over. With sizes, the workload has the first
/// that its tool carries.
pub(super) fn read(settings: &Settings<'_>) -> Result<(Workload, Vec<u64>), ScenarioError> {
    let kind = word_of(settings, "workload", &WorkloadKind::ALL, WorkloadKind::name)?;
    let tool = word_of(settings, "tool", &Tool::ALL, Tool::name)?;
    let reader = Reader {
        settings,
        kind: kind.unwrap_or(TcpStream),
        tool: tool.unwrap_or(Tool::Engine),
    };
    reader.refuse_foreign_keys()?;
    let mut workload = reader.workload()?;
    let sizes = reader.sizes()?;
    let of_size = |bytes: &u64| Workload {
        message_bytes: *bytes,
        ..workload.clone()
    };
    let mut swept = sizes.iter().map(of_size);
    let carried = swept.find(|workload| workload.refusal().is_none());
    workload = carried.or(sizes.first().map(of_size)).unwrap_or(workload);
    reader.check(&workload)?;
    Ok((workload, sizes))
}

/// Refuses workload keys in `defaults` that no test's workload has.
pub(super) fn check_defaults(defaults: &Node, tests: &[Test]) -> Result<(), ScenarioError> {
    let unused = |(key, kinds): &&(&str, Kinds)| {
        defaults.get(key).is_some() && !tests.iter().any(|t| kinds.contains(&t.workload.kind))
    };
    let Some((key, kinds)) = KEYS.iter().find(unused) else {
        return Ok(());
    };
    let location = defaults.get(key).unwrap_or(defaults).location.clone();
    let problem = "no test's workload has it";
    Err(ScenarioError::value(
        location,
        key,
        problem,
        with_workloads(kinds),
    ))
}

fn kinds_with(key: &str) -> Kinds {
    let known = KEYS.iter().find(|(known, _)| *known == key);
    known.map_or(ALL, |(_, kinds)| kinds)
}

/// `it with workload tcp-rr, udp-rr or tcp-crr`.
fn with_workloads(kinds: Kinds) -> String {
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("it with workload {} or {last}", others.join(", "))
        }
        _ => format!("it with workload {}", names.join("")),
    }
}

fn word_of<T: Copy>(
    settings: &Settings<'_>,
    key: &str,
    all: &[T],
    name: fn(T) -> &'static str,
) -> Result<Option<T>, ScenarioError> {
    let Some(node) = settings.find(key) else {
        return Ok(None);
    };
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    Ok(Some(all[choice(node, key, &names)?]))
}

/// A test's settings, seen by its workload.
struct Reader<'a> {
    settings: &'a Settings<'a>,
    kind: WorkloadKind,
    tool: Tool,
}

impl<'a> Reader<'a> {
    /// In the test itself; `defaults` are for all tests and may contain what only others have.
    fn refuse_foreign_keys(&self) -> Result<(), ScenarioError> {
        for (key, kinds) in KEYS {
            if let (Some(node), false) = (self.settings.test.get(key), kinds.contains(&self.kind)) {
                let problem = format!("{} has no such setting", self.kind.name());
                return Err(ScenarioError::value(
                    node.location.clone(),
                    key,
                    problem,
                    with_workloads(kinds),
                ));
            }
        }
        Ok(())
    }

    fn workload(&self) -> Result<Workload, ScenarioError> {
        let typical = Workload::of(self.kind);
        let is_engine = self.tool == Tool::Engine;
        let message_bytes = self.message_size("message-size")?;
        let message_bytes = message_bytes.unwrap_or(typical.message_bytes);
        let stream_count = self.stream_count();
        Ok(Workload {
            kind: self.kind,
            streams: self.streams(stream_count)?,
            threads: self.count("threads", 1..=1024)?,
            message_bytes,
            response_bytes: self.response_size(message_bytes)?,
            outstanding: self.count("outstanding", 1..=MAX_OUTSTANDING)?.unwrap_or(1),
            pace: self.pace()?,
            limit: self.limit()?,
            socket: self.socket()?,
            send_mode: self.send_mode()?,
            receive_mode: self.receive_mode()?,
            // Tools that people trust do it their own way unless the scenario specifies otherwise.
            segmentation: self.switch("segmentation")?.unwrap_or(is_engine),
            placement: self.find("cpus").map_or(Ok(Placement::Free), placement)?,
            tool: self.tool,
            confidence_width: self
                .find("confidence")
                .map(|node| width(node, "confidence"))
                .transpose()?,
            source_ports: self.source_ports()?,
            stream_count,
            distribution: self.distribution()?,
        })
    }

    fn distribution(&self) -> Result<SizeDistribution, ScenarioError> {
        let Some(node) = self.find("distribution") else {
            return Ok(SizeDistribution::default());
        };
        let names = SizeDistribution::WORDS.map(|(word, _)| word);
        Ok(SizeDistribution::WORDS[choice(node, "distribution", &names)?].1)
    }

    /// `auto`, `doubling`, or a number.
    fn stream_count(&self) -> StreamCount {
        match self.find("streams").and_then(Node::text) {
            Some("auto") => StreamCount::Auto,
            Some("doubling") => StreamCount::Doubling,
            _ => StreamCount::Fixed,
        }
    }

    fn streams(&self, count: StreamCount) -> Result<u32, ScenarioError> {
        match count {
            StreamCount::Fixed => {
                let is_pool = self.find("load").is_some();
                let typical = if is_pool { POOL_STREAMS } else { 1 };
                Ok(self.count("streams", 1..=MAX_STREAMS)?.unwrap_or(typical))
            }
            StreamCount::Doubling | StreamCount::Auto => Ok(MAX_AUTO_STREAMS),
        }
    }

    /// Tools choose theirs as they do.
    fn source_ports(&self) -> Result<SourcePorts, ScenarioError> {
        const ALL: [SourcePorts; 3] =
            [SourcePorts::Fresh, SourcePorts::Pinned, SourcePorts::Kernel];
        let names = ["fresh", "pinned", "kernel"];
        match self.find("source-ports") {
            None if self.tool == Tool::Engine => Ok(SourcePorts::Fresh),
            None => Ok(SourcePorts::Kernel),
            Some(node) => Ok(ALL[choice(node, "value for `source-ports`", &names)?]),
        }
    }

    fn pace(&self) -> Result<Pace, ScenarioError> {
        let rate = |key| self.find(key).map_or(Ok(None), |node| bit_rate(node, key));
        let requests = self.find("request-rate").map(request_rate).transpose()?;
        let echoes = self.find("interval").map(echo_rate).transpose()?.flatten();
        let share = self.find("total-rate").map(measured_share).transpose()?;
        let measured_share = share.flatten();
        Ok(Pace {
            stream_bits_per_sec: rate("rate")?,
            flow_bits_per_sec: match measured_share {
                Some(_) => None,
                None => rate("total-rate")?,
            },
            requests_per_sec: requests.or(echoes),
            measured_share,
            line_share: self.find("load").map(line_share).transpose()?,
        })
    }

    fn limit(&self) -> Result<Option<Limit>, ScenarioError> {
        let messages = self.count("limit-messages", 1..=MAX_LIMIT)?;
        let bytes = self.find("limit-bytes");
        let bytes = bytes
            .map(|node| size(node, "limit-bytes", 1..=MAX_LIMIT))
            .transpose()?;
        Ok(bytes.map(Limit::Bytes).or(messages.map(Limit::Messages)))
    }

    fn socket(&self) -> Result<SocketSettings, ScenarioError> {
        let usual_nodelay = self.tool.usual_nodelay(self.kind);
        Ok(SocketSettings {
            nodelay: self.switch("nodelay")?.unwrap_or(usual_nodelay),
            send_buffer_bytes: self.buffer("send-buffer")?,
            receive_buffer_bytes: self.buffer("receive-buffer")?,
            congestion: self.name("congestion", "the name of one, such as cubic or bbr")?,
            mss_bytes: self.count("mss", MSS_BYTES)?,
            dscp: self.find("dscp").map(dscp).transpose()?,
            mptcp: self.switch("mptcp")?.unwrap_or(false),
            device: self.name("device", "the name of a network interface, such as eth0")?,
        })
    }

    fn send_mode(&self) -> Result<SendMode, ScenarioError> {
        const ALL: [SendMode; 3] = [SendMode::Copy, SendMode::Sendfile, SendMode::Zerocopy];
        let names = ["copy", "sendfile", "zerocopy"];
        match self.find("send") {
            None => Ok(SendMode::Copy),
            Some(node) => Ok(ALL[choice(node, "value for `send`", &names)?]),
        }
    }

    fn receive_mode(&self) -> Result<ReceiveMode, ScenarioError> {
        const ALL: [ReceiveMode; 3] = [ReceiveMode::Copy, ReceiveMode::Discard, ReceiveMode::Mmap];
        let names = ["copy", "discard", "mmap"];
        match self.find("receive") {
            None => Ok(ReceiveMode::Copy),
            Some(node) => Ok(ALL[choice(node, "value for `receive`", &names)?]),
        }
    }

    /// Sizes in `defaults` are meant for the workload that is there, and for those like it.
    fn message_size(&self, key: &str) -> Result<Option<u64>, ScenarioError> {
        let default = self.settings.defaults.filter(|defaults| {
            let meant_for = defaults.get("workload").and_then(Node::text);
            let meant_for = meant_for.and_then(kind_by_name).unwrap_or(TcpStream);
            have_messages_alike(meant_for, self.kind)
        });
        let default = default.filter(|_| takes(self.kind, key));
        let node = self.settings.test.get(key).or_else(|| default?.get(key));
        let bounds = message_bytes(self.kind);
        node.map(|node| size(node, key, bounds)).transpose()
    }

    fn sizes(&self) -> Result<Vec<u64>, ScenarioError> {
        let node = self.settings.find("sizes");
        let own_size = self.settings.test.get("message-size");
        if let (Some(_), Some(size)) = (node, own_size) {
            return Err(ScenarioError::value(
                size.location.clone(),
                "message-size",
                "there are `sizes`, too",
                "one of the two",
            ));
        }
        sizes::read(node, message_bytes(self.kind))
    }

    /// Over UDP a responder never sends more than it received.
    fn response_size(&self, request_bytes: u64) -> Result<Option<u64>, ScenarioError> {
        let response_bytes = self.message_size("response-size")?;
        match (response_bytes, self.find("response-size")) {
            (Some(bytes), Some(node)) if self.kind == UdpRr && bytes > request_bytes => {
                Err(ScenarioError::value(
                    node.location.clone(),
                    "response-size",
                    format!(
                        "{bytes} bytes to a request of {request_bytes}, but over UDP a responder never sends more than it received"
                    ),
                    format!("at most {request_bytes}, or a greater `message-size`"),
                ))
            }
            _ => Ok(response_bytes),
        }
    }

    fn buffer(&self, key: &str) -> Result<Option<u32>, ScenarioError> {
        let node = self.find(key);
        let bytes = node
            .map(|node| size(node, key, KIB..=KIB * MIB))
            .transpose()?;
        Ok(bytes.and_then(|bytes| u32::try_from(bytes).ok()))
    }

    fn name(&self, key: &str, expected: &str) -> Result<Option<String>, ScenarioError> {
        let Some(node) = self.find(key) else {
            return Ok(None);
        };
        let word = text(node, key)?;
        let fits = |c: char| c.is_ascii_graphic() && c != '/';
        if word.is_empty() || word.len() > MAX_NAME_CHARS || !word.chars().all(fits) {
            let problem = format!("`{word}` is no name");
            let expected = format!("{expected}, of 1 to {MAX_NAME_CHARS} characters");
            return Err(ScenarioError::value(
                node.location.clone(),
                key,
                problem,
                expected,
            ));
        }
        Ok(Some(word.into()))
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, ScenarioError> {
        self.find(key).map(|node| switch(node, key)).transpose()
    }

    fn count<N>(&self, key: &str, bounds: RangeInclusive<N>) -> Result<Option<N>, ScenarioError>
    where
        N: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        self.find(key)
            .map(|node| count(node, key, bounds))
            .transpose()
    }

    fn find(&self, key: &str) -> Option<&'a Node> {
        self.settings.find(key).filter(|_| takes(self.kind, key))
    }

    /// What is right by itself and wrong together.
    fn check(&self, workload: &Workload) -> Result<(), ScenarioError> {
        let refuse = |key, problem: &str, expected: &str| {
            let node = self.find(key).unwrap_or(self.settings.test);
            Err(ScenarioError::value(
                node.location.clone(),
                key,
                problem,
                expected,
            ))
        };
        if self
            .find("limit-bytes")
            .and(self.find("limit-messages"))
            .is_some()
        {
            let problem = "there is a limit of messages, too";
            return refuse("limit-bytes", problem, "one of the two");
        }
        if workload.pace.requests_per_sec.is_some() && self.find("outstanding").is_some() {
            let problem = "at a set rate requests leave at their times, whatever is outstanding";
            let expected =
                "`outstanding` (closed loop), or `request-rate` or `interval` (open loop)";
            return refuse("outstanding", problem, expected);
        }
        let fills = !matches!(self.kind, Trace | FlowSizes);
        if !fills && workload.stream_count != StreamCount::Fixed {
            let problem = format!("{} finds no rate to fill", self.kind.name());
            return refuse("streams", &problem, "a number");
        }
        let (mptcp, copies) = (workload.socket.mptcp, "with `mptcp: on` the kernel copies");
        if mptcp && workload.send_mode == SendMode::Zerocopy {
            return refuse("send", copies, "`send: copy` or `sendfile`");
        }
        if mptcp && workload.receive_mode == ReceiveMode::Mmap {
            return refuse("receive", copies, "`receive: copy` or `discard`");
        }
        match workload.refusal() {
            None => Ok(()),
            Some(refusal) => refuse(refusal.key, &refusal.problem, &refusal.expected),
        }
    }
}

fn have_messages_alike(a: WorkloadKind, b: WorkloadKind) -> bool {
    a == b || (REQUESTS.contains(&a) && REQUESTS.contains(&b))
}

fn message_bytes(kind: WorkloadKind) -> RangeInclusive<u64> {
    match kind {
        TcpStream | TcpRr => 1..=64 * MIB,
        TcpCrr => 1..=MIB,
        UdpStream => MIN_STREAM_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES,
        UdpRr | Ping => MIN_DATAGRAM_BYTES..=MAX_DATAGRAM_BYTES,
        Trace | FlowSizes => 1..=1,
    }
}

/// `None` for `unlimited`, which lifts what a file has set.
fn bit_rate(node: &Node, key: &str) -> Result<Option<f64>, ScenarioError> {
    if text(node, key)? == "unlimited" {
        return Ok(None);
    }
    let rate = quantity(Some(node), key, units::parse_bits_per_sec)?;
    match rate.filter(|rate| (1e3..=1e14).contains(rate)) {
        Some(rate) => Ok(Some(rate)),
        None => Err(ScenarioError::value(
            node.location.clone(),
            key,
            "it does not fit",
            "1 kb/s to 100 Tb/s, or unlimited",
        )),
    }
}

/// `50%` of what the flow's hosts were measured to carry before; `None` for a rate.
fn measured_share(node: &Node) -> Result<Option<f64>, ScenarioError> {
    let word = text(node, "total-rate")?;
    if !word.ends_with('%') {
        return Ok(None);
    }
    let refused = || {
        ScenarioError::value(
            node.location.clone(),
            "total-rate",
            format!("`{word}` is not a share of the measured rate"),
            "1% to 100%, or a rate such as 500M",
        )
    };
    percent(word).map(Some).ok_or_else(refused)
}

/// `50%` of the line rate of the flow's hosts.
fn line_share(node: &Node) -> Result<f64, ScenarioError> {
    let word = text(node, "load")?;
    percent(word).ok_or_else(|| {
        ScenarioError::value(
            node.location.clone(),
            "load",
            format!("`{word}` is not a share of the hosts' line rate"),
            "1% to 100%, such as 50%",
        )
    })
}

/// `50%` as 0.5.
fn percent(word: &str) -> Option<f64> {
    let percent: f64 = word.strip_suffix('%')?.trim().parse().ok()?;
    (1.0..=100.0).contains(&percent).then_some(percent / 100.0)
}

/// `5000`, `5k`, `2.5M` or `5k/s`.
fn request_rate(node: &Node) -> Result<f64, ScenarioError> {
    let word = text(node, "request-rate")?;
    let plain = word.strip_suffix("/s").unwrap_or(word).trim();
    let (number, factor) = match plain.char_indices().last() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1e3),
        Some((at, 'M')) => (&plain[..at], 1e6),
        _ => (plain, 1.0),
    };
    let rate = number.trim().parse::<f64>().map(|n| n * factor);
    rate.ok()
        .filter(|rate| (0.01..=1e8).contains(rate))
        .ok_or_else(|| {
            ScenarioError::value(
                node.location.clone(),
                "request-rate",
                format!("`{word}` is not a number of requests per second that fits"),
                "0.01 to 100M, such as 5000, 5k or 1.5M",
            )
        })
}

/// Time between echoes as a rate; `None` for 0, which is as fast as answers come.
fn echo_rate(node: &Node) -> Result<Option<f64>, ScenarioError> {
    let ns = duration(Some(node), "interval", 0..=60_000_000_000)?;
    Ok(ns.filter(|ns| *ns > 0).map(|ns| 1e9 / ns as f64))
}

/// A number, or a name of RFC 2474 (cs), RFC 2597 (af), RFC 3246 (ef) or RFC 8622 (le).
fn dscp(node: &Node) -> Result<u8, ScenarioError> {
    let word = text(node, "dscp")?;
    let value = match word.as_bytes() {
        b"ef" => Some(46),
        b"le" => Some(1),
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') * 8),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some((class - b'0') * 8 + (drop - b'0') * 2)
        }
        _ => word.parse().ok().filter(|value| *value < 64),
    };
    value.ok_or_else(|| {
        ScenarioError::value(
            node.location.clone(),
            "dscp",
            format!("`{word}` is not a code point"),
            "0 to 63, cs0 to cs7, af11 to af43, ef or le",
        )
    })
}

fn placement(node: &Node) -> Result<Placement, ScenarioError> {
    let word = text(node, "cpus")?;
    match word {
        "near-nic" => Ok(Placement::NearNic),
        "near-receive-queue" => Ok(Placement::NearReceiveQueue),
        _ => cpu_list(word).map(Placement::Cpus).ok_or_else(|| {
            ScenarioError::value(
                node.location.clone(),
                "cpus",
                format!("`{word}` is not a list of CPUs"),
                format!("CPUs up to {MAX_CPU} such as 0-3,8, or near-nic, or near-receive-queue"),
            )
        }),
    }
}

/// `0-3,8`, each at most once, in the order given.
fn cpu_list(word: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in word.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > MAX_CPU {
            return None;
        }
        for cpu in first..=last {
            if cpus.contains(&cpu) {
                return None;
            }
            cpus.push(cpu);
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn workload(settings: &str) -> Result<Workload, ScenarioError> {
        let text = format!("name: a\ntests:\n  - {{pattern: pair, {settings}}}\n");
        let scenario = parse(&text, "my.yaml", &[])?;
        Ok(scenario.tests[0].workload.clone())
    }

    fn refused(settings: &str, words: &str) {
        let message = workload(settings).unwrap_err().to_string();
        assert!(message.starts_with("my.yaml:3:"), "{message}");
        assert!(message.contains(words), "{settings}: {message}");
    }

    #[test]
    fn every_key_reaches_the_workload() {
        let bulk = "threads: 2, streams: 10000, message-size: 1M, rate: 1G, total-rate: 5G, \
                    limit-bytes: 10G, nodelay: on, send-buffer: 4M, receive-buffer: 2M, congestion: bbr, \
                    mss: 1400, dscp: af41, device: eth0, send: zerocopy, receive: discard, cpus: '0-2,7'";
        let expected = Workload {
            streams: 10_000,
            threads: Some(2),
            message_bytes: 1 << 20,
            pace: Pace {
                stream_bits_per_sec: Some(1e9),
                flow_bits_per_sec: Some(5e9),
                ..Pace::default()
            },
            limit: Some(Limit::Bytes(10 << 30)),
            socket: SocketSettings {
                nodelay: true,
                send_buffer_bytes: Some(4 << 20),
                receive_buffer_bytes: Some(2 << 20),
                congestion: Some("bbr".into()),
                mss_bytes: Some(1400),
                dscp: Some(34),
                mptcp: false,
                device: Some("eth0".into()),
            },
            send_mode: SendMode::Zerocopy,
            receive_mode: ReceiveMode::Discard,
            placement: Placement::Cpus(vec![0, 1, 2, 7]),
            ..Workload::default()
        };
        assert_eq!(workload(bulk), Ok(expected));
        let requests = workload(
            "workload: udp-rr, message-size: 1400, response-size: 1400, request-rate: 5k, limit-messages: 1000000",
        )
        .unwrap();
        assert_eq!(requests.answer_bytes(), 1400);
        assert_eq!(requests.pace.requests_per_sec, Some(5000.0));
        assert_eq!(requests.limit, Some(Limit::Messages(1_000_000)));
        let closed = workload("workload: tcp-rr, outstanding: 8, mptcp: on").unwrap();
        assert_eq!((closed.outstanding, closed.socket.mptcp), (8, true));
        let echoes = |interval: &str| {
            let ping = workload(&format!("workload: ping, interval: {interval}")).unwrap();
            ping.pace.requests_per_sec
        };
        assert_eq!(echoes("10ms"), Some(100.0));
        assert_eq!(echoes("0"), None);
        assert_eq!(workload("rate: unlimited").unwrap().pace, Pace::default());
        let udp = workload("workload: udp-stream, segmentation: off, cpus: near-nic").unwrap();
        assert_eq!((udp.segmentation, udp.message_bytes), (false, 1448));
        assert_eq!(udp.placement, Placement::NearNic);
    }

    #[test]
    fn messages_have_a_distribution_and_a_load_or_go_one_at_a_time() {
        let idle = workload("workload: flow-sizes").unwrap();
        assert_eq!((idle.streams, idle.pace), (1, Pace::default()));
        assert_eq!(idle.distribution, SizeDistribution::Hadoop);
        assert!(idle.socket.nodelay);
        let loaded = workload("workload: flow-sizes, distribution: w5, load: 80%").unwrap();
        assert_eq!(loaded.pace.line_share, Some(0.8));
        assert_eq!((loaded.streams, loaded.message_bytes), (POOL_STREAMS, 1));
        assert_eq!(loaded.distribution, SizeDistribution::WebSearch);
        refused(
            "workload: flow-sizes, load: 1G",
            "`1G` is not a share of the hosts' line rate; expected 1% to 100%, such as 50%",
        );
        refused(
            "workload: flow-sizes, distribution: w6",
            "choose from: web-search, hadoop",
        );
        refused("workload: flow-sizes, message-size: 1K", "no such setting");
        refused("workload: flow-sizes, streams: auto", "no rate to fill");
        refused("load: 50%", "it with workload flow-sizes");
        refused(
            "total-rate: 0%",
            "of the measured rate; expected 1% to 100%, or a rate such as 500M",
        );
    }

    #[test]
    fn settings_that_a_workload_has_not_are_refused() {
        refused(
            "response-size: 1K",
            "response-size: tcp-stream has no such setting; expected it with workload tcp-rr, udp-rr or tcp-crr",
        );
        refused(
            "workload: udp-rr, response-size: 65",
            "never sends more than it received; expected at most 64",
        );
        refused(
            "workload: tcp-crr, outstanding: 4",
            "tcp-rr, udp-rr or ping",
        );
        refused(
            "workload: udp-rr, send: zerocopy",
            "with workload tcp-stream",
        );
        refused(
            "workload: udp-stream, nodelay: on",
            "udp-stream has no such setting",
        );
        refused("workload: tcp-rr, rate: 1G", "tcp-stream or udp-stream");
        refused("interval: 1s", "with workload ping");
    }

    #[test]
    fn settings_that_exclude_each_other_are_refused() {
        refused("limit-bytes: 1G, limit-messages: 5", "one of the two");
        refused(
            "workload: tcp-rr, outstanding: 4, request-rate: 1k",
            "(closed loop), or `request-rate` or `interval` (open loop)",
        );
        refused(
            "workload: ping, outstanding: 4, interval: 1s",
            "whatever is outstanding",
        );
        assert_eq!(
            workload("workload: ping, outstanding: 4")
                .unwrap()
                .outstanding,
            4
        );
        refused("mptcp: on, send: zerocopy", "the kernel copies");
        refused("mptcp: on, receive: mmap", "the kernel copies");
        refused("tool: iperf3, send-buffer: 4M", "one size for both buffers");
        refused("tool: iperf3, cpus: '1'", "no `cpus` with `tool: iperf3`");
        refused("workload: ping, tool: iperf3", "iperf3 has no ping");
    }

    #[test]
    fn bounds_are_told() {
        refused(
            "workload: udp-stream, message-size: 65508",
            "message-size: 65508 B does not fit; expected 24 B to 65507 B",
        );
        refused("streams: 10001", "from 1 to 10000");
        refused("mss: 80", "from 88 to 32767");
        refused("rate: 10", "expected one like 10G");
        refused("rate: 0.1k", "1 kb/s to 100 Tb/s");
        refused("workload: tcp-rr, request-rate: often", "5000, 5k or 1.5M");
        refused("dscp: 64", "0 to 63, cs0 to cs7, af11 to af43, ef or le");
        refused("dscp: af51", "`af51` is not a code point");
        refused("device: a/b", "`a/b` is no name");
        refused("cpus: 3-1", "`3-1` is not a list of CPUs");
        refused("cpus: '1,1'", "such as 0-3,8");
        refused("nodelay: maybe", "choose from: on, off");
        refused("send: fast", "choose from: copy, sendfile, zerocopy");
    }

    #[test]
    fn code_points_have_their_names() {
        let code_point = |word: &str| {
            let workload = workload(&format!("dscp: {word}")).unwrap();
            workload.socket.dscp.unwrap()
        };
        assert_eq!(["cs0", "cs5", "cs7"].map(code_point), [0, 40, 56]);
        assert_eq!(["af11", "af23", "af43"].map(code_point), [10, 22, 38]);
        assert_eq!(["ef", "le", "63"].map(code_point), [46, 1, 63]);
    }

    #[test]
    fn defaults_are_for_those_who_have_them() {
        let text = "name: a\ndefaults: {outstanding: 4, rate: 1G, message-size: 9K}\n\
                    tests: [{name: b, pattern: pair}, {name: r, pattern: pair, workload: udp-rr}]\n";
        let tests = parse(text, "my.yaml", &[]).unwrap().tests;
        let paced = |i: usize| tests[i].workload.pace.stream_bits_per_sec;
        assert_eq!((paced(0), paced(1)), (Some(1e9), None));
        assert_eq!(tests[1].workload.outstanding, 4);
        let sizes = [0, 1].map(|i: usize| tests[i].workload.message_bytes);
        assert_eq!(sizes, [9 << 10, 64]);
        let lonely = "name: a\ndefaults: {outstanding: 4}\ntests: [{pattern: pair}]\n";
        let message = parse(lonely, "my.yaml", &[]).unwrap_err().to_string();
        assert!(message.starts_with("my.yaml:2:"), "{message}");
        assert!(message.contains("no test's workload has it"), "{message}");
    }

    #[test]
    fn a_tool_keeps_its_own_ways() {
        let own = workload("tool: iperf3").unwrap();
        assert!(!own.socket.nodelay);
        assert!(
            workload("tool: iperf3, nodelay: on")
                .unwrap()
                .socket
                .nodelay
        );
        assert!(!workload("").unwrap().socket.nodelay);
        assert!(workload("workload: tcp-rr").unwrap().socket.nodelay);
        assert!(workload("workload: udp-stream, tool: iperf3").is_ok());
    }
}
