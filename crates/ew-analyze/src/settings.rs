//! What a workload sets otherwise than by default, in words.

use ew_model::units::{format_bits_per_sec, format_bytes};
use ew_model::workload::{Limit, Placement, ReceiveMode, SendMode, SocketSettings};
use ew_model::{Workload, WorkloadKind};

/// Each setting that differs from the default of its kind of workload and its tool, in the order of
/// the scenario's keys.
pub(crate) fn in_words(workload: &Workload) -> Vec<String> {
    let typical = Workload::of(workload.kind);
    let mut words = amounts(workload, &typical);
    words.extend(pace_and_limit(workload));
    words.extend(way_to_the_bytes(workload));
    words.extend(nagle(workload));
    words.extend(socket(&workload.socket));
    words.extend(placement(&workload.placement));
    words
}

fn amounts(workload: &Workload, typical: &Workload) -> Vec<String> {
    let mut words = Vec::new();
    let is_bulk = workload.kind.is_bulk();
    if workload.kind == WorkloadKind::FlowSizes {
        words.push(format!("sizes of {}", workload.distribution.name()));
    }
    if workload.streams != typical.streams {
        words.push(format!("{} streams", workload.streams));
    }
    if let Some(threads) = workload.threads {
        words.push(format!("{threads} threads"));
    }
    if workload.message_bytes != typical.message_bytes {
        let what = if is_bulk { "messages" } else { "requests" };
        words.push(format!("{} {what}", format_bytes(workload.message_bytes)));
    }
    if let Some(bytes) = workload.response_bytes.filter(|_| !is_bulk) {
        words.push(format!("{} responses", format_bytes(bytes)));
    }
    if workload.outstanding != typical.outstanding {
        words.push(format!("{} requests in flight", workload.outstanding));
    }
    words
}

fn pace_and_limit(workload: &Workload) -> Vec<String> {
    let pace = workload.pace;
    let rate = |rate: Option<f64>, whose| {
        rate.map(|rate| format!("at most {} a {whose}", format_bits_per_sec(rate)))
    };
    let mut words = Vec::new();
    words.extend(rate(pace.stream_bits_per_sec, "stream"));
    words.extend(rate(pace.flow_bits_per_sec, "flow"));
    words.extend(
        pace.line_share
            .map(|share| format!("at {:.0}% of line rate", 100.0 * share)),
    );
    words.extend(
        pace.requests_per_sec
            .map(|rate| format!("open loop at {rate:.0} requests/s a flow")),
    );
    words.extend(workload.limit.map(|limit| match limit {
        Limit::Bytes(bytes) => format!("until {} a stream", format_bytes(bytes)),
        Limit::Messages(count) => format!("until {count} messages a stream"),
    }));
    words
}

fn way_to_the_bytes(workload: &Workload) -> Vec<String> {
    let send = match workload.send_mode {
        SendMode::Copy => None,
        SendMode::Sendfile => Some("sendfile"),
        SendMode::Zerocopy => Some("zero-copy sending"),
    };
    let receive = match workload.receive_mode {
        ReceiveMode::Copy => None,
        ReceiveMode::Discard => Some("discarding receiver"),
        ReceiveMode::Mmap => Some("mapped receiving"),
    };
    let is_whole = workload.kind == WorkloadKind::UdpStream && !workload.segmentation;
    let whole = is_whole.then_some("no GSO or GRO");
    [send, receive, whole]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
}

/// Only TCP has it: what older runs kept for UDP shows nothing.
fn nagle(workload: &Workload) -> Option<String> {
    let nodelay = workload.socket.nodelay;
    let words = match nodelay {
        true => "Nagle's algorithm off",
        false => "Nagle's algorithm on",
    };
    let is_told = nodelay != workload.tool.usual_nodelay(workload.kind) && workload.kind.is_tcp();
    is_told.then(|| words.to_owned())
}

fn socket(socket: &SocketSettings) -> Vec<String> {
    let buffer = |bytes: Option<u32>, what| {
        bytes.map(|bytes| format!("{} {what} buffer", format_bytes(bytes.into())))
    };
    let mut words = Vec::new();
    words.extend(buffer(socket.send_buffer_bytes, "send"));
    words.extend(buffer(socket.receive_buffer_bytes, "receive"));
    words.extend(socket.congestion.clone());
    words.extend(socket.mss_bytes.map(|bytes| format!("MSS {bytes}")));
    words.extend(socket.dscp.map(|dscp| format!("DSCP {dscp}")));
    words.extend(socket.mptcp.then(|| "MPTCP".to_owned()));
    words.extend(socket.device.as_ref().map(|name| format!("over {name}")));
    words
}

fn placement(placement: &Placement) -> Option<String> {
    match placement {
        Placement::Free => None,
        Placement::Cpus(cpus) => {
            let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
            Some(format!("on CPU {}", names.join(", ")))
        }
        Placement::NearNic => Some("near the NIC".into()),
        Placement::NearReceiveQueue => Some("near the receive queue".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::workload::Tool;

    #[test]
    fn what_a_tool_does_by_itself_needs_no_words() {
        let mut workload = Workload {
            tool: Tool::Netperf,
            ..Workload::of(WorkloadKind::TcpRr)
        };
        workload.socket.nodelay = false;
        assert_eq!(in_words(&workload), Vec::<String>::new());
        workload.socket.nodelay = true;
        assert_eq!(in_words(&workload), ["Nagle's algorithm off"]);
    }

    #[test]
    fn defaults_need_no_words() {
        for kind in WorkloadKind::ALL {
            assert_eq!(in_words(&Workload::of(kind)), Vec::<String>::new());
        }
    }

    #[test]
    fn only_tcp_has_nagles_algorithm() {
        for kind in WorkloadKind::ALL {
            let mut workload = Workload::of(kind);
            workload.socket.nodelay ^= true;
            assert_eq!(
                in_words(&workload).len(),
                usize::from(kind.is_tcp()),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn what_was_set_is_said() {
        let mut workload = Workload {
            streams: 4,
            receive_mode: ReceiveMode::Discard,
            ..Workload::of(WorkloadKind::TcpStream)
        };
        workload.pace.flow_bits_per_sec = Some(1e9);
        workload.socket.nodelay = true;
        assert_eq!(
            in_words(&workload),
            [
                "4 streams",
                "at most 1.00 Gb/s a flow",
                "discarding receiver",
                "Nagle's algorithm off"
            ]
        );
    }
}
