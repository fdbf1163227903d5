//! What a client wants: the parameters it sends, and the bounds a server keeps them within.

use super::lenient;
use super::refusal::Refusal;
use serde_json::{Map, Value, json};

/// Longest test, seconds (`MAX_TIME` of iperf.h).
pub const MAX_TIME_S: u32 = 86_400;
/// Longest time to leave out, seconds (`MAX_OMIT_TIME`).
pub const MAX_OMIT_S: u32 = 600;
/// Most streams in one direction (`MAX_STREAMS`).
pub const MAX_STREAMS: usize = 128;
/// Largest block, bytes (`MAX_BLOCKSIZE`).
pub const MAX_BLOCK_BYTES: usize = 1024 * 1024;
/// Smallest datagram, bytes (`MIN_UDP_BLOCKSIZE`).
pub const MIN_UDP_BLOCK_BYTES: usize = 16;
/// Largest datagram, bytes (`MAX_UDP_BLOCKSIZE`: 65535 less the IPv4 and UDP headers).
pub const MAX_UDP_BLOCK_BYTES: usize = 65_507;
/// Largest socket buffer, bytes (`MAX_TCP_BUFFER`).
pub const MAX_WINDOW_BYTES: usize = 512 * 1024 * 1024;
/// Largest maximum segment size, bytes (`MAX_MSS`).
pub const MAX_MSS_BYTES: u32 = 32_767;
/// Largest burst, blocks (`MAX_BURST`).
pub const MAX_BURST: u32 = 1000;
/// Block of TCP when none is named, bytes (`DEFAULT_TCP_BLKSIZE`).
pub const DEFAULT_TCP_BLOCK_BYTES: usize = 128 * 1024;
/// Datagram where the path does not determine it, bytes (`DEFAULT_UDP_BLKSIZE`).
pub const DEFAULT_UDP_BLOCK_BYTES: usize = 1460;

/// Largest flow label (RFC 6437: 20 bits).
pub const MAX_FLOW_LABEL: u32 = 0xf_ffff;

/// Longest title and extra data that are kept, bytes.
const MAX_TEXT_BYTES: usize = 4096;
/// `TCP_CA_NAME_MAX` of linux/tcp.h, without the NUL.
const MAX_CONGESTION_BYTES: usize = 15;

/// What carries the streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP
    #[default]
    Tcp,
    /// UDP
    Udp,
}

/// Who sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// The client sends.
    #[default]
    Forward,
    /// The server sends (`-R`).
    Reverse,
    /// Both send (`--bidir`).
    Both,
}

/// When the client ends the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// After a time, seconds; 0 is never.
    Time(u32),
    /// After so many bytes over all streams.
    Bytes(u64),
    /// After so many blocks over all streams.
    Blocks(u64),
}

/// A test as the client asks for it. Zero means "not set" where iperf3 means it.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Who sends.
    pub direction: Direction,
    /// The end, after the omitted time.
    pub end: End,
    /// Time at the start that does not count, seconds.
    pub omit_s: u32,
    /// Streams in each direction.
    pub streams: usize,
    /// Bytes of a block or a datagram.
    pub block_bytes: usize,
    /// Socket buffer, bytes; 0 leaves it to the kernel.
    pub window_bytes: usize,
    /// TCP maximum segment size, bytes; 0 leaves it to the kernel.
    pub mss_bytes: u32,
    /// TCP_NODELAY
    pub nodelay: bool,
    /// Rate of each stream, bits per second; 0 is unlimited.
    pub bits_per_sec: u64,
    /// Blocks sent back to back when there is a rate; 0 is one.
    pub burst: u32,
    /// Rate the kernel keeps for each stream, bits per second; 0 is none.
    pub fq_bits_per_sec: u64,
    /// IP type of service.
    pub tos: u8,
    /// IPv6 flow label of what the client sends; 0 leaves it to the kernel.
    pub flow_label: u32,
    /// CPU the server shall use.
    pub server_cpu: Option<usize>,
    /// Congestion control algorithm; empty leaves it to the kernel.
    pub congestion: String,
    /// Shown before every line.
    pub title: String,
    /// Shown in JSON only.
    pub extra_data: String,
    /// Send by sendfile.
    pub zerocopy: bool,
    /// Receive without copying.
    pub skip_rx_copy: bool,
    /// 64-bit sequence numbers in datagrams.
    pub wide_counters: bool,
    /// A pattern instead of random bytes.
    pub repeating_payload: bool,
    /// IPv4 datagrams are not fragmented.
    pub dont_fragment: bool,
    /// The server shall send its output with its results.
    pub get_server_output: bool,
    /// Proof of identity, see [`crate::auth`]; empty is none.
    pub auth_token: String,
    /// Version of the client's program, for people.
    pub client_version: String,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            protocol: Protocol::Tcp,
            direction: Direction::Forward,
            end: End::Time(10),
            omit_s: 0,
            streams: 1,
            block_bytes: DEFAULT_TCP_BLOCK_BYTES,
            window_bytes: 0,
            mss_bytes: 0,
            nodelay: false,
            bits_per_sec: 0,
            burst: 0,
            fq_bits_per_sec: 0,
            tos: 0,
            flow_label: 0,
            server_cpu: None,
            congestion: String::new(),
            title: String::new(),
            extra_data: String::new(),
            zerocopy: false,
            skip_rx_copy: false,
            wide_counters: false,
            repeating_payload: false,
            dont_fragment: false,
            get_server_output: false,
            auth_token: String::new(),
            client_version: String::new(),
        }
    }
}

impl Params {
    /// Reads a client's parameters. What has the wrong type counts as absent, as iperf3 has it
    /// since 3.18.
    ///
    /// # Errors
    /// The refusal to send when it is no JSON object, or a value is out of bounds.
    pub fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let map = lenient::object(text).ok_or(Refusal::PARAMS)?;
        if lenient::is_true(&map, "sctp") {
            return Err(Refusal::SCTP);
        }
        let protocol = if lenient::is_true(&map, "udp") {
            Protocol::Udp
        } else {
            Protocol::Tcp
        };
        let number = |key, most, refusal| bounded(&map, key, most, refusal);
        let rate = |key| number(key, i64::MAX as u64, Refusal::PARAMS);
        Ok(Self {
            protocol,
            direction: direction(&map),
            end: end(&map)?,
            omit_s: number("omit", MAX_OMIT_S.into(), Refusal::OMIT)? as u32,
            streams: streams(&map)?,
            block_bytes: block(&map, protocol)?,
            window_bytes: number("window", MAX_WINDOW_BYTES as u64, Refusal::WINDOW)? as usize,
            mss_bytes: number("MSS", MAX_MSS_BYTES.into(), Refusal::MSS)? as u32,
            nodelay: lenient::is_true(&map, "nodelay"),
            bits_per_sec: rate("bandwidth")?,
            burst: number("burst", MAX_BURST.into(), Refusal::BURST)? as u32,
            fq_bits_per_sec: rate("fqrate")?,
            tos: number("TOS", 255, Refusal::TOS)? as u8,
            flow_label: number("flowlabel", MAX_FLOW_LABEL.into(), Refusal::PARAMS)? as u32,
            server_cpu: server_cpu(&map)?,
            congestion: lenient::text(&map, "congestion", MAX_CONGESTION_BYTES).unwrap_or_default(),
            title: lenient::text(&map, "title", MAX_TEXT_BYTES).unwrap_or_default(),
            extra_data: lenient::text(&map, "extra_data", MAX_TEXT_BYTES).unwrap_or_default(),
            zerocopy: lenient::is_set(&map, "zerocopy"),
            skip_rx_copy: lenient::is_set(&map, "skip_rx_copy"),
            wide_counters: lenient::is_set(&map, "udp_counters_64bit"),
            repeating_payload: lenient::is_set(&map, "repeating_payload"),
            dont_fragment: lenient::is_set(&map, "dont_fragment"),
            get_server_output: lenient::is_set(&map, "get_server_output"),
            auth_token: lenient::text(&map, "authtoken", usize::MAX).unwrap_or_default(),
            client_version: lenient::text(&map, "client_version", 64).unwrap_or_default(),
        })
    }

    /// What a client had better not ask for, in words for its user. A block of 0 bytes means
    /// the default.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let blocks = match self.protocol {
            Protocol::Tcp => 1..=MAX_BLOCK_BYTES,
            Protocol::Udp => MIN_UDP_BLOCK_BYTES..=MAX_UDP_BLOCK_BYTES,
        };
        let (least, most) = (blocks.start(), blocks.end());
        if self.block_bytes > 0 && !blocks.contains(&self.block_bytes) {
            return Some(format!("block size must be from {least} to {most} bytes"));
        }
        if !(1..=MAX_STREAMS).contains(&self.streams) {
            return Some(format!("parallel streams must be from 1 to {MAX_STREAMS}"));
        }
        if self.window_bytes > MAX_WINDOW_BYTES {
            return Some(format!(
                "socket buffers may be {MAX_WINDOW_BYTES} bytes at most"
            ));
        }
        if self.mss_bytes > MAX_MSS_BYTES {
            return Some(format!("the TCP MSS may be {MAX_MSS_BYTES} bytes at most"));
        }
        if self.omit_s > MAX_OMIT_S {
            return Some(format!("at most {MAX_OMIT_S} seconds can be omitted"));
        }
        if self.burst > MAX_BURST {
            return Some(format!("a burst may be {MAX_BURST} blocks at most"));
        }
        let is_too_long = matches!(self.end, End::Time(seconds) if seconds > MAX_TIME_S);
        is_too_long.then(|| format!("a test may last {MAX_TIME_S} seconds at most"))
    }

    /// The text to send. What is not set is skipped, because its presence alone means something to
    /// iperf3.
    #[must_use]
    pub fn to_json(&self) -> String {
        let (time, bytes, blocks) = match self.end {
            End::Time(seconds) => (seconds, 0, 0),
            End::Bytes(bytes) => (0, bytes, 0),
            End::Blocks(blocks) => (0, 0, blocks),
        };
        let mut map = Map::new();
        let is_udp = self.protocol == Protocol::Udp;
        map.insert(if is_udp { "udp" } else { "tcp" }.into(), Value::Bool(true));
        map.insert("omit".into(), self.omit_s.into());
        map.insert("time".into(), time.into());
        map.insert("num".into(), bytes.into());
        map.insert("blockcount".into(), blocks.into());
        map.insert("parallel".into(), self.streams.into());
        map.insert("len".into(), self.block_bytes.into());
        map.insert("pacing_timer".into(), 1000.into());
        for (key, value) in self.optional() {
            map.insert(key.into(), value);
        }
        Value::Object(map).to_string()
    }

    fn optional(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let text = |text: &str| (!text.is_empty()).then(|| json!(text));
        let number = |number: u64| (number > 0).then(|| json!(number));
        let flag = |on: bool| on.then(|| json!(1));
        let truth = |on: bool| on.then_some(Value::Bool(true));
        [
            ("server_affinity", self.server_cpu.map(|cpu| json!(cpu))),
            ("MSS", number(self.mss_bytes.into())),
            ("nodelay", truth(self.nodelay)),
            ("reverse", truth(self.direction == Direction::Reverse)),
            ("bidirectional", truth(self.direction == Direction::Both)),
            ("window", number(self.window_bytes as u64)),
            ("bandwidth", number(self.bits_per_sec)),
            ("fqrate", number(self.fq_bits_per_sec)),
            ("burst", number(self.burst.into())),
            ("TOS", number(self.tos.into())),
            ("flowlabel", number(self.flow_label.into())),
            ("title", text(&self.title)),
            ("extra_data", text(&self.extra_data)),
            ("congestion", text(&self.congestion)),
            ("get_server_output", flag(self.get_server_output)),
            ("udp_counters_64bit", flag(self.wide_counters)),
            ("repeating_payload", flag(self.repeating_payload)),
            ("zerocopy", flag(self.zerocopy)),
            ("skip_rx_copy", flag(self.skip_rx_copy)),
            ("dont_fragment", flag(self.dont_fragment)),
            ("authtoken", text(&self.auth_token)),
            ("client_version", text(&self.client_version)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
    }
}

/// A number from 0 to the bound; 0 when absent.
fn bounded(
    map: &Map<String, Value>,
    key: &str,
    most: u64,
    refusal: Refusal,
) -> Result<u64, Refusal> {
    let number = lenient::integer(map, key).unwrap_or(0);
    match u64::try_from(number) {
        Ok(number) if number <= most => Ok(number),
        _ => Err(refusal),
    }
}

fn direction(map: &Map<String, Value>) -> Direction {
    if lenient::is_true(map, "bidirectional") {
        Direction::Both
    } else if lenient::is_true(map, "reverse") {
        Direction::Reverse
    } else {
        Direction::Forward
    }
}

/// The client ends the test, and newer ones send a time together with `num` or `blockcount`.
fn end(map: &Map<String, Value>) -> Result<End, Refusal> {
    let bytes = bounded(map, "num", i64::MAX as u64, Refusal::PARAMS)?;
    let blocks = bounded(map, "blockcount", i64::MAX as u64, Refusal::PARAMS)?;
    let time = bounded(map, "time", MAX_TIME_S.into(), Refusal::DURATION)?;
    Ok(match (bytes, blocks) {
        (0, 0) => End::Time(time as u32),
        (0, blocks) => End::Blocks(blocks),
        (bytes, _) => End::Bytes(bytes),
    })
}

fn streams(map: &Map<String, Value>) -> Result<usize, Refusal> {
    match lenient::integer(map, "parallel") {
        None => Ok(1),
        Some(streams) => match usize::try_from(streams) {
            Ok(streams) if (1..=MAX_STREAMS).contains(&streams) => Ok(streams),
            _ => Err(Refusal::STREAMS),
        },
    }
}

fn block(map: &Map<String, Value>, protocol: Protocol) -> Result<usize, Refusal> {
    let (default, allowed, refusal) = match protocol {
        Protocol::Tcp => (DEFAULT_TCP_BLOCK_BYTES, 1..=MAX_BLOCK_BYTES, Refusal::BLOCK),
        Protocol::Udp => (
            DEFAULT_UDP_BLOCK_BYTES,
            MIN_UDP_BLOCK_BYTES..=MAX_UDP_BLOCK_BYTES,
            Refusal::UDP_BLOCK,
        ),
    };
    match lenient::integer(map, "len") {
        None => Ok(default),
        Some(bytes) => match usize::try_from(bytes) {
            Ok(bytes) if allowed.contains(&bytes) => Ok(bytes),
            _ => Err(refusal),
        },
    }
}

fn server_cpu(map: &Map<String, Value>) -> Result<Option<usize>, Refusal> {
    match lenient::integer(map, "server_affinity") {
        // iperf3 sends -1 for "none" in some versions.
        None | Some(-1) => Ok(None),
        Some(cpu) => match usize::try_from(cpu) {
            Ok(cpu) if cpu <= 1024 => Ok(Some(cpu)),
            _ => Err(Refusal::PARAMS),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Result<Params, i32> {
        Params::parse(text.as_bytes()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn what_debians_3_12_sends_is_understood() {
        let udp = r#"{"udp":true,"omit":0,"time":0,"num":0,"blockcount":100,"parallel":3,
            "bidirectional":true,"len":1024,"pacing_timer":1000,"client_version":"3.12"}"#;
        let expected = Params {
            protocol: Protocol::Udp,
            direction: Direction::Both,
            end: End::Blocks(100),
            streams: 3,
            block_bytes: 1024,
            client_version: "3.12".into(),
            ..Params::default()
        };
        assert_eq!(parsed(udp), Ok(expected));
        let tcp = r#"{"tcp":true,"omit":2,"server_affinity":1,"time":0,"num":10485760,"blockcount":0,
            "MSS":1000,"nodelay":true,"parallel":1,"window":65536,"len":131072,"bandwidth":10000000,
            "fqrate":5000000,"pacing_timer":500,"burst":5,"TOS":16,"title":"title","extra_data":"x",
            "congestion":"cubic","get_server_output":1,"udp_counters_64bit":1,"repeating_payload":1,
            "zerocopy":1,"client_version":"3.12"}"#;
        let tcp = parsed(tcp).unwrap();
        assert_eq!(tcp.end, End::Bytes(10_485_760));
        assert_eq!((tcp.server_cpu, tcp.burst, tcp.tos), (Some(1), 5, 16));
        assert!(tcp.zerocopy && tcp.get_server_output && tcp.nodelay);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let params = Params {
            direction: Direction::Reverse,
            end: End::Time(3),
            mss_bytes: 1000,
            bits_per_sec: 10_000_000_000,
            server_cpu: Some(0),
            congestion: "cubic".into(),
            auth_token: "abc=".into(),
            skip_rx_copy: true,
            dont_fragment: true,
            ..Params::default()
        };
        assert_eq!(parsed(&params.to_json()), Ok(params));
    }

    #[test]
    fn an_absent_rate_is_no_rate_for_udp_too() {
        assert_eq!(parsed(r#"{"udp":true}"#).unwrap().bits_per_sec, 0);
    }

    #[test]
    fn a_parameter_of_the_wrong_type_is_ignored() {
        // CVE-2024-53580: a text where a number or a flag belongs was a null pointer.
        let text = r#"{"tcp":1,"omit":"0","time":true,"num":null,"parallel":"x","len":[],"reverse":"yes",
            "title":5,"congestion":{},"authtoken":[],"nodelay":1,"TOS":"16"}"#;
        assert_eq!(
            parsed(text),
            Ok(Params {
                end: End::Time(0),
                ..Params::default()
            })
        );
    }

    #[test]
    fn values_out_of_bounds_are_refused_with_iperf3s_number() {
        let cases = [
            (r#"{"time":86401}"#, 5),
            (r#"{"time":-1}"#, 5),
            (r#"{"parallel":129}"#, 6),
            (r#"{"parallel":0}"#, 6),
            (r#"{"parallel":-3}"#, 6),
            (r#"{"len":1048577}"#, 7),
            (r#"{"len":0}"#, 7),
            (r#"{"udp":true,"len":15}"#, 20),
            (r#"{"udp":true,"len":65508}"#, 20),
            (r#"{"window":536870913}"#, 8),
            (r#"{"MSS":32768}"#, 10),
            (r#"{"omit":601}"#, 12),
            (r#"{"burst":1001}"#, 15),
            (r#"{"TOS":256}"#, 21),
            (r#"{"sctp":true}"#, 18),
            (r#"{"num":-1}"#, 114),
            (r#"{"bandwidth":-1}"#, 114),
            (r#"{"server_affinity":2000}"#, 114),
            ("[]", 114),
            ("", 114),
        ];
        for (text, code) in cases {
            assert_eq!(parsed(text).map(|_| ()), Err(code), "{text}");
        }
    }

    #[test]
    fn a_client_is_told_what_no_server_takes() {
        assert_eq!(Params::default().problem(), None);
        let default_block = Params {
            block_bytes: 0,
            ..Params::default()
        };
        assert_eq!(default_block.problem(), None);
        let datagram = Params {
            protocol: Protocol::Udp,
            ..Params::default()
        };
        let problem = datagram.problem().unwrap_or_default();
        assert_eq!(problem, "block size must be from 16 to 65507 bytes");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_bounds(time: i64, parallel: i64, len: i64, window: i64, tos: i64) {
            let text = json!({"time": time, "parallel": parallel, "len": len, "window": window, "TOS": tos});
            if let Ok(params) = parsed(&text.to_string()) {
                prop_assert!((1..=MAX_STREAMS).contains(&params.streams));
                prop_assert!((1..=MAX_BLOCK_BYTES).contains(&params.block_bytes));
                prop_assert!(params.window_bytes <= MAX_WINDOW_BYTES);
            }
        }
    }
}
