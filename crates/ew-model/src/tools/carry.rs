//! What a tool can carry: asked by the planner before a run, and by the host before it starts a
//! process.

use crate::units::format_bytes;
use crate::workload::{Limit, Placement, ReceiveMode, SendMode, Tool, Workload, WorkloadKind};
use WorkloadKind::{Ping, TcpCrr, TcpRr, TcpStream, UdpRr, UdpStream};

/// Why a tool cannot carry a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The scenario key that blocks it.
    pub key: &'static str,
    /// What is wrong, in words that name the tool.
    pub problem: String,
    /// What would be right.
    pub expected: String,
}

/// What a tool can be asked for.
struct Carries {
    /// Its workloads, each with the smallest and largest message.
    traffic: &'static [(WorkloadKind, u64, u64)],
    max_streams: u32,
    /// The keys besides those that every workload has. Any other that is set is refused.
    keys: &'static [&'static str],
    /// Whether it knows one size for both socket buffers.
    one_buffer_size: bool,
}

const MIB: u64 = 1 << 20;
/// 65,535 less the headers of IPv4 and UDP.
const MAX_DATAGRAM: u64 = 65_507;

/// Bounds are iperf3's own (iperf_api.h): MAX_STREAMS, MAX_TCP_BLOCKSIZE, MIN_UDP_BLOCKSIZE,
/// MAX_UDP_BLOCKSIZE.
const IPERF3: Carries = Carries {
    traffic: &[(TcpStream, 1, MIB), (UdpStream, 16, MAX_DATAGRAM)],
    max_streams: 128,
    keys: &[
        "rate",
        "total-rate",
        "limit-bytes",
        "limit-messages",
        "nodelay",
        "send-buffer",
        "receive-buffer",
        "congestion",
        "mss",
        "dscp",
        "send",
    ],
    one_buffer_size: true,
};
/// Its largest socket buffer and segment (MAX_TCP_BUFFER, MAX_MSS).
const IPERF3_MAX_BUFFER_BYTES: u32 = 512 * 1024 * 1024;
const IPERF3_MAX_MSS_BYTES: u32 = 9 * 1024;

/// A datagram contains at least its header (UDP_datagram and client_hdr of payloads.h).
const IPERF: Carries = Carries {
    traffic: &[(TcpStream, 1, 16 * MIB), (UdpStream, 64, MAX_DATAGRAM)],
    max_streams: 128,
    keys: &[
        "rate",
        "total-rate",
        "nodelay",
        "send-buffer",
        "receive-buffer",
        "congestion",
        "mss",
        "dscp",
    ],
    one_buffer_size: true,
};

const NETPERF: Carries = Carries {
    traffic: &[
        (TcpStream, 1, 16 * MIB),
        (UdpStream, 1, MAX_DATAGRAM),
        (TcpRr, 1, MIB),
        (UdpRr, 1, MAX_DATAGRAM),
        (TcpCrr, 1, MIB),
    ],
    max_streams: 1,
    keys: &[
        "response-size",
        "nodelay",
        "send-buffer",
        "receive-buffer",
        "congestion",
        "dscp",
        "send",
        "confidence",
    ],
    one_buffer_size: false,
};

/// lat_tcp's ends crash on a message that comes in parts (`free(): invalid pointer`), which one
/// segment at MTU 1500 does not; lat_udp's messages carry a number of 4 bytes; lat_connect sends
/// nothing.
const LMBENCH: Carries = Carries {
    traffic: &[
        (TcpStream, 1, 16 * MIB),
        (TcpRr, 1, 1448),
        (UdpRr, 4, MAX_DATAGRAM),
        (TcpCrr, 1, MIB),
    ],
    max_streams: 128,
    keys: &[],
    one_buffer_size: false,
};

const NETPIPE: Carries = Carries {
    traffic: &[(TcpStream, 1, 64 * MIB), (TcpRr, 1, MIB)],
    max_streams: 1,
    keys: &["send-buffer", "receive-buffer"],
    one_buffer_size: true,
};

/// MAXSTREAM of nuttcp.c.
const NUTTCP: Carries = Carries {
    traffic: &[(TcpStream, 1, 16 * MIB), (UdpStream, 32, MAX_DATAGRAM)],
    max_streams: 128,
    keys: &[
        "total-rate",
        "nodelay",
        "send-buffer",
        "receive-buffer",
        "mss",
        "dscp",
    ],
    one_buffer_size: true,
};

/// A message contains at least its header (MIN_PAYLOAD_SIZE of defs.h). What arrives of its UDP
/// throughput it does not report.
const SOCKPERF: Carries = Carries {
    traffic: &[
        (TcpStream, 14, MAX_DATAGRAM),
        (TcpRr, 14, MAX_DATAGRAM),
        (UdpRr, 14, MAX_DATAGRAM),
    ],
    max_streams: 1,
    keys: &["send-buffer", "receive-buffer", "dscp", "nodelay"],
    one_buffer_size: true,
};

const QPERF: Carries = Carries {
    traffic: &[
        (TcpStream, 1, 16 * MIB),
        (UdpStream, 1, MAX_DATAGRAM),
        (TcpRr, 1, MIB),
        (UdpRr, 1, MAX_DATAGRAM),
    ],
    max_streams: 1,
    keys: &["send-buffer", "receive-buffer"],
    one_buffer_size: true,
};

/// With fewer than 16 bytes there is no space for the time that it sends along.
const PING: Carries = Carries {
    traffic: &[(Ping, 16, MAX_DATAGRAM)],
    max_streams: 1,
    keys: &["interval", "limit-messages", "dscp"],
    one_buffer_size: false,
};

impl Tool {
    /// Whether it has this kind of traffic. The engine has every one.
    #[must_use]
    pub fn has(self, kind: WorkloadKind) -> bool {
        carries(self).is_none_or(|carries| carries.traffic.iter().any(|(known, ..)| *known == kind))
    }
}

impl Workload {
    /// Why the workload's tool cannot carry it. `None` when it can; the engine carries everything
    /// that is not a tool's own.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let Some(carries) = carries(self.tool) else {
            return self.refused_by_the_engine();
        };
        self.refused_traffic(carries)
            .or_else(|| self.refused_key(carries))
            .or_else(|| self.refused_buffers(carries))
            .or_else(|| self.refused_by_the_tool())
    }

    fn refused_traffic(&self, carries: &Carries) -> Option<Refusal> {
        let (tool, kind) = (self.tool.name(), self.kind.name());
        let known = carries
            .traffic
            .iter()
            .find(|(known, ..)| *known == self.kind);
        let Some((_, least, most)) = known else {
            let others = carries.traffic.iter().map(|(kind, ..)| kind.name());
            return refuse(
                "tool",
                format!("{tool} has no {kind}"),
                format!(
                    "`tool: engine` for `workload: {kind}`, or a workload that {tool} has: {}",
                    others.collect::<Vec<_>>().join(", ")
                ),
            );
        };
        if !(1..=carries.max_streams).contains(&self.streams) {
            let most = match carries.max_streams {
                1 => "1".into(),
                most => format!("1 to {most}"),
            };
            return refuse(
                "streams",
                format!("{tool} does not run {} streams", self.streams),
                format!("{most} with `tool: {tool}`"),
            );
        }
        if !(*least..=*most).contains(&self.message_bytes) {
            let bytes = format_bytes(self.message_bytes);
            return refuse(
                "message-size",
                format!("{tool} does not send {bytes} at once over {kind}"),
                format!("{least} to {most} bytes with `tool: {tool}`"),
            );
        }
        None
    }

    fn refused_key(&self, carries: &Carries) -> Option<Refusal> {
        let foreign = |key: &&str| !carries.keys.contains(key);
        let key = self.keys_set().into_iter().find(foreign)?;
        let tool = self.tool.name();
        let instead = match key == "rate" && carries.keys.contains(&"total-rate") {
            true => "`total-rate`".to_owned(),
            false => format!("no `{key}`"),
        };
        refuse(
            key,
            format!("{tool} is not asked for it"),
            format!("{instead} with `tool: {tool}`, or `tool: engine`"),
        )
    }

    fn refused_buffers(&self, carries: &Carries) -> Option<Refusal> {
        let socket = &self.socket;
        if !carries.one_buffer_size || socket.send_buffer_bytes == socket.receive_buffer_bytes {
            return None;
        }
        let key = match socket.send_buffer_bytes {
            Some(_) => "send-buffer",
            None => "receive-buffer",
        };
        refuse(
            key,
            format!("{} knows one size for both buffers", self.tool.name()),
            "`send-buffer` and `receive-buffer` of the same size, or neither".into(),
        )
    }

    fn refused_by_the_engine(&self) -> Option<Refusal> {
        self.confidence_width?;
        refuse(
            "confidence",
            "the engine repeats whole rounds".into(),
            "`samples: auto`, or `tool: netperf`".into(),
        )
    }

    /// What is one tool's alone.
    fn refused_by_the_tool(&self) -> Option<Refusal> {
        let tool = self.tool.name();
        if self.send_mode == SendMode::Zerocopy {
            return refuse(
                "send",
                format!("{tool}'s zero-copy is sendfile"),
                format!("`send: sendfile` or `copy` with `tool: {tool}`"),
            );
        }
        if self.confidence_width.is_some() && self.send_mode == SendMode::Sendfile {
            return refuse(
                "confidence",
                format!("{tool} does not report it with sendfile"),
                "`send: copy`, or `samples: auto`".into(),
            );
        }
        let is_iperf3 = self.tool == Tool::Iperf3;
        if is_iperf3 && self.socket.send_buffer_bytes > Some(IPERF3_MAX_BUFFER_BYTES) {
            let most = "at most 512M with `tool: iperf3`";
            return refuse("send-buffer", "iperf3 refuses it".into(), most.into());
        }
        if is_iperf3 && self.socket.mss_bytes > Some(IPERF3_MAX_MSS_BYTES) {
            let most = format!("at most {IPERF3_MAX_MSS_BYTES} with `tool: iperf3`");
            return refuse("mss", "iperf3 refuses it".into(), most);
        }
        None
    }

    /// The keys beyond those that every tool is asked for, where something else is set than a tool
    /// does by itself.
    fn keys_set(&self) -> Vec<&'static str> {
        let (pace, socket) = (&self.pace, &self.socket);
        let paced_requests = match self.kind {
            Ping => "interval",
            _ => "request-rate",
        };
        let keys = [
            ("response-size", self.answer_bytes() != self.message_bytes),
            ("outstanding", self.outstanding > 1),
            ("rate", pace.stream_bits_per_sec.is_some()),
            ("total-rate", pace.flow_bits_per_sec.is_some()),
            (paced_requests, pace.requests_per_sec.is_some()),
            ("limit-bytes", matches!(self.limit, Some(Limit::Bytes(_)))),
            (
                "limit-messages",
                matches!(self.limit, Some(Limit::Messages(_))),
            ),
            ("nodelay", socket.nodelay && self.kind.is_tcp()),
            ("send-buffer", socket.send_buffer_bytes.is_some()),
            ("receive-buffer", socket.receive_buffer_bytes.is_some()),
            ("congestion", socket.congestion.is_some()),
            ("mss", socket.mss_bytes.is_some()),
            ("dscp", socket.dscp.is_some()),
            ("mptcp", socket.mptcp),
            ("device", socket.device.is_some()),
            ("threads", self.threads.is_some()),
            ("cpus", self.placement != Placement::Free),
            ("send", self.send_mode != SendMode::Copy),
            ("receive", self.receive_mode != ReceiveMode::Copy),
            ("segmentation", self.kind == UdpStream && self.segmentation),
            ("confidence", self.confidence_width.is_some()),
        ];
        let set = keys.into_iter().filter(|(_, is_set)| *is_set);
        set.map(|(key, _)| key).collect()
    }
}

/// `None` for the engine.
fn carries(tool: Tool) -> Option<&'static Carries> {
    match tool {
        Tool::Engine => None,
        Tool::Iperf3 => Some(&IPERF3),
        Tool::Iperf => Some(&IPERF),
        Tool::Netperf => Some(&NETPERF),
        Tool::Lmbench => Some(&LMBENCH),
        Tool::Netpipe => Some(&NETPIPE),
        Tool::Nuttcp => Some(&NUTTCP),
        Tool::Sockperf => Some(&SOCKPERF),
        Tool::Qperf => Some(&QPERF),
        Tool::Ping => Some(&PING),
    }
}

fn refuse(key: &'static str, problem: String, expected: String) -> Option<Refusal> {
    Some(Refusal {
        key,
        problem,
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_by(
        tool: Tool,
        kind: WorkloadKind,
        change: fn(&mut Workload),
    ) -> Option<&'static str> {
        let mut workload = Workload {
            tool,
            segmentation: false,
            ..Workload::of(kind)
        };
        workload.socket.nodelay = false;
        change(&mut workload);
        workload.refusal().map(|refusal| refusal.key)
    }

    fn refused(kind: WorkloadKind, change: fn(&mut Workload)) -> Option<&'static str> {
        refused_by(Tool::Iperf3, kind, change)
    }

    #[test]
    fn what_iperf3_cannot_carry_is_refused_by_its_key() {
        assert_eq!(refused(TcpStream, |_| ()), None);
        assert_eq!(refused(UdpStream, |_| ()), None);
        assert_eq!(refused(TcpRr, |_| ()), Some("tool"));
        assert_eq!(refused(TcpStream, |w| w.streams = 129), Some("streams"));
        let size = Some("message-size");
        assert_eq!(refused(TcpStream, |w| w.message_bytes = 2 << 20), size);
        assert_eq!(refused(UdpStream, |w| w.message_bytes = 15), size);
        let one_buffer = |w: &mut Workload| w.socket.send_buffer_bytes = Some(4096);
        assert_eq!(refused(TcpStream, one_buffer), Some("send-buffer"));
        let two_buffers = |w: &mut Workload| {
            w.socket.send_buffer_bytes = Some(4096);
            w.socket.receive_buffer_bytes = Some(4096);
        };
        assert_eq!(refused(TcpStream, two_buffers), None);
        let sendfile = |w: &mut Workload| w.send_mode = SendMode::Sendfile;
        assert_eq!(refused(TcpStream, sendfile), None);
        let zerocopy = |w: &mut Workload| w.send_mode = SendMode::Zerocopy;
        assert_eq!(refused(TcpStream, zerocopy), Some("send"));
        let trains = |w: &mut Workload| w.segmentation = true;
        assert_eq!(refused(UdpStream, trains), Some("segmentation"));
        assert_eq!(refused(TcpStream, trains), None);
        let pinned = |w: &mut Workload| w.placement = Placement::NearNic;
        assert_eq!(refused(TcpStream, pinned), Some("cpus"));
    }

    #[test]
    fn every_tool_carries_something_and_refuses_the_rest_in_its_name() {
        for tool in Tool::ALL.into_iter().filter(|tool| *tool != Tool::Engine) {
            let takes = |kind| refused_by(tool, kind, |_| ()).is_none();
            assert!(WorkloadKind::ALL.into_iter().any(takes), "{tool:?}");
            assert!(!WorkloadKind::ALL.into_iter().all(takes), "{tool:?}");
        }
        let workload = Workload {
            tool: Tool::Lmbench,
            ..Workload::of(UdpStream)
        };
        let refusal = workload.refusal().unwrap();
        assert_eq!(refusal.problem, "lmbench has no udp-stream");
        assert!(
            refusal
                .expected
                .ends_with("tcp-stream, tcp-rr, udp-rr, tcp-crr")
        );
    }

    #[test]
    fn settings_that_a_tool_does_not_know_are_refused() {
        use Tool::{Lmbench, Netperf, Ping as PingTool, Sockperf};
        let nodelay = |w: &mut Workload| w.socket.nodelay = true;
        assert_eq!(refused_by(Lmbench, TcpRr, nodelay), Some("nodelay"));
        assert_eq!(refused_by(Netperf, TcpRr, nodelay), None);
        let answers = |w: &mut Workload| w.response_bytes = Some(1000);
        assert_eq!(refused_by(Netperf, TcpRr, answers), None);
        assert_eq!(refused_by(Sockperf, TcpRr, answers), Some("response-size"));
        let often = |w: &mut Workload| w.pace.requests_per_sec = Some(10.0);
        assert_eq!(refused_by(PingTool, Ping, often), None);
        assert_eq!(refused_by(Netperf, TcpRr, often), Some("request-rate"));
        let sure = |w: &mut Workload| w.confidence_width = Some(0.05);
        assert_eq!(refused_by(Netperf, TcpRr, sure), None);
        for tool in Tool::ALL.into_iter().filter(|tool| *tool != Netperf) {
            let kind = match tool {
                PingTool => Ping,
                Sockperf => TcpRr,
                _ => TcpStream,
            };
            assert_eq!(refused_by(tool, kind, sure), Some("confidence"), "{tool:?}");
        }
    }

    #[test]
    fn the_engine_carries_everything() {
        for kind in WorkloadKind::ALL {
            assert_eq!(Workload::of(kind).refusal(), None);
        }
    }
}
