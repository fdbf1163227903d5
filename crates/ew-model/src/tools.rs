//! What external tools can carry, in one place: the scenario reader says it with file and line before a run, the tool's
//! driver says it again to whoever orders it anyway.

use crate::units::format_bytes;
use crate::workload::{Placement, ReceiveMode, SendMode, Tool, Workload, WorkloadKind};

/// Why a tool cannot carry a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The scenario key that stands in the way.
    pub key: &'static str,
    /// What is wrong, in words that name the tool.
    pub problem: String,
    /// What would be right.
    pub expected: String,
}

/// iperf3's own bounds (iperf_api.h): MAX_STREAMS, MAX_TCP_BLOCKSIZE, MIN_UDP_BLOCKSIZE, MAX_UDP_BLOCKSIZE, MAX_TCP_BUFFER,
/// MAX_MSS.
const IPERF3_MAX_STREAMS: u32 = 128;
const IPERF3_MAX_TCP_MESSAGE_BYTES: u64 = 1024 * 1024;
const IPERF3_MIN_UDP_MESSAGE_BYTES: u64 = 16;
const IPERF3_MAX_UDP_MESSAGE_BYTES: u64 = 65_507;
const IPERF3_MAX_BUFFER_BYTES: u32 = 512 * 1024 * 1024;
const IPERF3_MAX_MSS_BYTES: u32 = 9 * 1024;

impl Workload {
    /// Why the workload's tool cannot carry it. `None` when it can; the engine carries everything.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        match self.tool {
            Tool::Engine => None,
            Tool::Iperf3 => iperf3_traffic(self)
                .or_else(|| iperf3_socket(self))
                .or_else(|| iperf3_modes(self)),
        }
    }
}

fn iperf3_traffic(workload: &Workload) -> Option<Refusal> {
    let kind = workload.kind.name();
    let (least, most) = match workload.kind {
        WorkloadKind::TcpStream => (1, IPERF3_MAX_TCP_MESSAGE_BYTES),
        WorkloadKind::UdpStream => (IPERF3_MIN_UDP_MESSAGE_BYTES, IPERF3_MAX_UDP_MESSAGE_BYTES),
        _ => {
            return refuse(
                "tool",
                format!("iperf3 has no {kind}"),
                format!("`tool: engine` for `workload: {kind}`"),
            );
        }
    };
    if !(1..=IPERF3_MAX_STREAMS).contains(&workload.streams) {
        return refuse(
            "streams",
            format!("iperf3 does not run {} streams", workload.streams),
            format!("1 to {IPERF3_MAX_STREAMS} with `tool: iperf3`"),
        );
    }
    if !(least..=most).contains(&workload.message_bytes) {
        let bytes = format_bytes(workload.message_bytes);
        return refuse(
            "message-size",
            format!("iperf3 does not send {bytes} at once over {kind}"),
            format!("{least} to {most} bytes with `tool: iperf3`"),
        );
    }
    None
}

fn iperf3_socket(workload: &Workload) -> Option<Refusal> {
    let socket = &workload.socket;
    if socket.send_buffer_bytes != socket.receive_buffer_bytes {
        let key = match socket.send_buffer_bytes {
            Some(_) => "send-buffer",
            None => "receive-buffer",
        };
        return refuse(
            key,
            "iperf3 knows one size for both buffers (-w)".into(),
            "`send-buffer` and `receive-buffer` of the same size, or neither".into(),
        );
    }
    if socket.send_buffer_bytes > Some(IPERF3_MAX_BUFFER_BYTES) {
        return refuse(
            "send-buffer",
            "iperf3 refuses it".into(),
            "at most 512M with `tool: iperf3`".into(),
        );
    }
    if socket.mss_bytes > Some(IPERF3_MAX_MSS_BYTES) {
        return refuse(
            "mss",
            "iperf3 refuses it".into(),
            format!("at most {IPERF3_MAX_MSS_BYTES} with `tool: iperf3`"),
        );
    }
    let engine_only = [
        (socket.mptcp, "mptcp"),
        (socket.device.is_some(), "device"),
        (workload.threads.is_some(), "threads"),
        (workload.placement != Placement::Free, "cpus"),
    ];
    first_set(&engine_only)
}

fn iperf3_modes(workload: &Workload) -> Option<Refusal> {
    if workload.send_mode == SendMode::Zerocopy {
        return refuse(
            "send",
            "iperf3's zero-copy (-Z) is sendfile".into(),
            "`send: sendfile` or `copy` with `tool: iperf3`".into(),
        );
    }
    let is_udp = workload.kind == WorkloadKind::UdpStream;
    let engine_only = [
        (workload.receive_mode != ReceiveMode::Copy, "receive"),
        (is_udp && workload.segmentation, "segmentation"),
    ];
    first_set(&engine_only)
}

fn first_set(engine_only: &[(bool, &'static str)]) -> Option<Refusal> {
    let (_, key) = engine_only.iter().find(|(is_set, _)| *is_set)?;
    refuse(
        key,
        "iperf3 is not asked for it".into(),
        format!("no `{key}` with `tool: iperf3`, or `tool: engine`"),
    )
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

    fn refused(kind: WorkloadKind, change: fn(&mut Workload)) -> Option<&'static str> {
        let mut workload = Workload {
            tool: Tool::Iperf3,
            segmentation: false,
            ..Workload::of(kind)
        };
        change(&mut workload);
        workload.refusal().map(|refusal| refusal.key)
    }

    #[test]
    fn what_iperf3_cannot_carry_is_refused_by_its_key() {
        use WorkloadKind::{TcpRr, TcpStream, UdpStream};
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
    fn the_engine_carries_everything() {
        for kind in WorkloadKind::ALL {
            assert_eq!(Workload::of(kind).refusal(), None);
        }
    }
}
