//! A workload's settings in words, as far as they are not what the reader takes for granted.

use ew_model::Workload;
use ew_model::units::{format_bits_per_sec, format_bytes, format_duration_ns};
use ew_model::workload::{
    Limit, Placement, ReceiveMode, SendMode, SocketSettings, SourcePorts, StreamCount, Tool,
    WorkloadKind,
};

/// Comma-separated; empty when all is default.
pub(super) fn in_words(workload: &Workload) -> String {
    let mut parts = sizes(workload);
    parts.extend(pace(workload));
    parts.extend(limit(workload));
    parts.extend(socket(workload));
    parts.extend(modes(workload));
    parts.extend(placement(workload));
    parts.extend(streams_and_ports(workload));
    parts.extend(workload.confidence_width.map(|width| {
        format!(
            "{} repeats until its own 95% interval is no wider than {}%",
            workload.tool.name(),
            100.0 * width
        )
    }));
    parts.join(", ")
}

fn sizes(workload: &Workload) -> Vec<String> {
    let typical = Workload::of(workload.kind);
    let message = match workload.kind {
        WorkloadKind::UdpStream => "datagrams",
        WorkloadKind::TcpStream => "messages",
        WorkloadKind::Ping => "echoes",
        _ => "requests",
    };
    let mut parts = Vec::new();
    if workload.kind == WorkloadKind::FlowSizes {
        parts.push(format!("sizes of {}", workload.distribution.name()));
    }
    if workload.message_bytes != typical.message_bytes {
        parts.push(format!(
            "{message} of {}",
            format_bytes(workload.message_bytes)
        ));
    }
    if let Some(bytes) = workload.response_bytes {
        parts.push(format!("responses of {}", format_bytes(bytes)));
    }
    if workload.outstanding > 1 {
        parts.push(format!(
            "{} {message} outstanding a stream",
            workload.outstanding
        ));
    }
    parts
}

fn pace(workload: &Workload) -> Vec<String> {
    let pace = &workload.pace;
    let mut parts = Vec::new();
    if let Some(rate) = pace.stream_bits_per_sec {
        parts.push(format!("at most {} a stream", format_bits_per_sec(rate)));
    }
    if let Some(rate) = pace.flow_bits_per_sec {
        parts.push(format!("at most {} a flow", format_bits_per_sec(rate)));
    }
    if let Some(share) = pace.measured_share {
        parts.push(format!(
            "at {:.0}% of what the flow's hosts were measured to carry",
            100.0 * share
        ));
    }
    if let Some(share) = pace.line_share {
        let share = 100.0 * share;
        parts.push(format!(
            "arriving at random at {share:.0}% of the hosts' line rate"
        ));
    }
    match (workload.kind, pace.requests_per_sec) {
        (WorkloadKind::Ping, Some(rate)) => parts.push(format!(
            "an echo every {} a flow",
            format_duration_ns((1e9 / rate).round() as u64)
        )),
        (_, Some(rate)) => parts.push(format!(
            "{rate} requests/s a flow, sent at their times (open loop)"
        )),
        (WorkloadKind::Ping, None) => parts.push("as fast as answers come".into()),
        (WorkloadKind::FlowSizes, None) if parts.is_empty() => parts.push("one at a time".into()),
        (WorkloadKind::UdpStream, None) if parts.is_empty() => {
            parts.push("as fast as it goes".into());
        }
        (_, None) => {}
    }
    parts
}

fn streams_and_ports(workload: &Workload) -> Vec<String> {
    let streams = match workload.stream_count {
        StreamCount::Fixed => None,
        StreamCount::Doubling => Some("streams doubled from 1 until the gain is below 3%"),
        StreamCount::Auto if workload.pace.measured_share.is_some() => {
            Some("as many streams as show paths")
        }
        StreamCount::Auto => Some("as many streams as fill hosts and paths"),
    };
    let ports = match workload.source_ports {
        SourcePorts::Pinned => Some("the same 5-tuples in every round"),
        SourcePorts::Fresh | SourcePorts::Kernel => None,
    };
    let parts = [streams, ports].into_iter().flatten();
    parts.map(str::to_owned).collect()
}

fn limit(workload: &Workload) -> Option<String> {
    Some(match workload.limit? {
        Limit::Bytes(bytes) => format!("until {} a stream", format_bytes(bytes)),
        Limit::Messages(1) => "until 1 message a stream".into(),
        Limit::Messages(count) => format!("until {count} messages a stream"),
    })
}

fn socket(workload: &Workload) -> Vec<String> {
    let SocketSettings {
        nodelay,
        send_buffer_bytes,
        receive_buffer_bytes,
        congestion,
        mss_bytes,
        dscp,
        mptcp,
        device,
    } = &workload.socket;
    let bytes = |size: &Option<u32>| size.map(|size| format_bytes(u64::from(size)));
    let usual_nodelay = workload.tool.usual_nodelay(workload.kind);
    let switched = match nodelay {
        true => "nodelay on",
        false => "nodelay off",
    };
    let parts = [
        (workload.kind.is_tcp() && *nodelay != usual_nodelay).then(|| switched.into()),
        bytes(send_buffer_bytes).map(|size| format!("send buffer {size}")),
        bytes(receive_buffer_bytes).map(|size| format!("receive buffer {size}")),
        congestion.as_ref().map(|name| format!("congestion {name}")),
        mss_bytes.map(|size| format!("mss {size}")),
        dscp.map(|code| format!("dscp {code}")),
        mptcp.then(|| "mptcp".into()),
        device.as_ref().map(|name| format!("device {name}")),
    ];
    parts.into_iter().flatten().collect()
}

fn modes(workload: &Workload) -> Vec<String> {
    let is_whole = workload.segmentation || workload.tool != Tool::Engine;
    let parts = [
        match workload.send_mode {
            SendMode::Copy => None,
            SendMode::Sendfile => Some("sendfile (the sender does not touch the bytes)"),
            SendMode::Zerocopy => Some("zero-copy sending where the kernel can"),
        },
        match workload.receive_mode {
            ReceiveMode::Copy => None,
            ReceiveMode::Discard => Some("discarding (the receiver does not see the bytes)"),
            ReceiveMode::Mmap => Some("mapped receiving where the kernel can"),
        },
        (workload.kind == WorkloadKind::UdpStream && !is_whole)
            .then_some("one datagram at a time through the kernel"),
    ];
    parts.into_iter().flatten().map(Into::into).collect()
}

fn placement(workload: &Workload) -> Vec<String> {
    let threads = workload.threads.map(|threads| match threads {
        1 => "1 thread a host".into(),
        _ => format!("{threads} threads a host"),
    });
    let cpus = match &workload.placement {
        Placement::Free => None,
        Placement::Cpus(cpus) => {
            let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
            Some(format!("on CPUs {}", cpus.join(",")))
        }
        Placement::NearNic => Some("on CPUs near the NIC".into()),
        Placement::NearReceiveQueue => Some("on the receive queue's CPU".into()),
    };
    threads.into_iter().chain(cpus).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::workload::Pace;

    #[test]
    fn the_usual_is_not_said() {
        for kind in [
            WorkloadKind::TcpStream,
            WorkloadKind::TcpRr,
            WorkloadKind::TcpCrr,
        ] {
            assert_eq!(in_words(&Workload::of(kind)), "");
        }
        let udp = Workload::of(WorkloadKind::UdpStream);
        assert_eq!(in_words(&udp), "as fast as it goes");
    }

    #[test]
    fn what_is_set_is_said() {
        let bulk = Workload {
            message_bytes: 1 << 20,
            pace: Pace {
                stream_bits_per_sec: Some(1e9),
                ..Pace::default()
            },
            limit: Some(Limit::Bytes(1 << 30)),
            socket: SocketSettings {
                nodelay: true,
                congestion: Some("bbr".into()),
                ..SocketSettings::default()
            },
            send_mode: SendMode::Sendfile,
            receive_mode: ReceiveMode::Discard,
            placement: Placement::Cpus(vec![0, 2]),
            ..Workload::default()
        };
        assert_eq!(
            in_words(&bulk),
            "messages of 1.00 MiB, at most 1.00 Gb/s a stream, until 1.00 GiB a stream, nodelay on, congestion bbr, \
             sendfile (the sender does not touch the bytes), discarding (the receiver does not see the bytes), \
             on CPUs 0,2"
        );
        let mut ping = Workload::of(WorkloadKind::Ping);
        let mut sizes = Workload::of(WorkloadKind::FlowSizes);
        assert_eq!(in_words(&sizes), "sizes of hadoop, one at a time");
        sizes.pace.line_share = Some(0.5);
        assert_eq!(
            in_words(&sizes),
            "sizes of hadoop, arriving at random at 50% of the hosts' line rate"
        );
        ping.pace.requests_per_sec = Some(100.0);
        assert_eq!(in_words(&ping), "an echo every 10.0 ms a flow");
        let mut open = Workload::of(WorkloadKind::UdpRr);
        open.pace.requests_per_sec = Some(5000.0);
        let expected = "5000 requests/s a flow, sent at their times (open loop)";
        assert_eq!(in_words(&open), expected);
    }
}
