//! `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/snmp6`, see proc(5) and RFC 4022, RFC 4113,
//! RFC 4293.

use crate::file::{FileBuffer, read_net};
use ew_model::telemetry::ProtocolCounters;
use std::path::Path;

/// What the kernel counts of TCP, IP and UDP in the calling thread's network namespace.
pub(crate) fn protocols(root: &Path, buffer: &mut FileBuffer) -> ProtocolCounters {
    let mut counters = ProtocolCounters::default();
    for file in ["snmp", "netstat"] {
        let text = read_net(buffer, root, file).unwrap_or_default();
        named_pairs(text, |group, name, value| {
            add(&mut counters, group, name, value);
        });
    }
    let text = read_net(buffer, root, "snmp6").unwrap_or_default();
    for (name, value) in text
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
    {
        if let Ok(value) = value.trim().parse() {
            add_ipv6(&mut counters, name, value);
        }
    }
    counters
}

/// Two lines each: `Tcp: name name ...`, `Tcp: value value ...`.
fn named_pairs(text: &str, mut each: impl FnMut(&str, &str, u64)) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((_, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        let pairs = names.split_whitespace().zip(values.split_whitespace());
        for (name, value) in pairs {
            // A few, such as MaxConn, may be negative: none that is kept.
            if let Ok(value) = value.parse() {
                each(group, name, value);
            }
        }
    }
}

fn add(counters: &mut ProtocolCounters, group: &str, name: &str, value: u64) {
    let field = match (group, name) {
        ("Tcp", "InSegs") => &mut counters.tcp_in_segments,
        ("Tcp", "OutSegs") => &mut counters.tcp_out_segments,
        ("Tcp", "RetransSegs") => &mut counters.tcp_retransmitted_segments,
        ("Tcp", "ActiveOpens") => &mut counters.tcp_active_opens,
        ("Tcp", "PassiveOpens") => &mut counters.tcp_passive_opens,
        ("Tcp", "CurrEstab") => &mut counters.tcp_established,
        ("TcpExt", "TCPTimeouts") => &mut counters.tcp_timeouts,
        ("TcpExt", "ListenOverflows") => &mut counters.listen_overflows,
        ("TcpExt", "ListenDrops") => &mut counters.listen_drops,
        ("TcpExt", "TCPRcvQDrop") => &mut counters.tcp_receive_queue_drops,
        ("TcpExt", "TCPBacklogDrop") => &mut counters.tcp_backlog_drops,
        ("TcpExt", "PruneCalled") => &mut counters.tcp_prunes,
        ("TcpExt", "TCPZeroWindowDrop") => &mut counters.tcp_zero_window_drops,
        ("Udp", "InDatagrams") => &mut counters.udp_in_datagrams,
        ("Udp", "OutDatagrams") => &mut counters.udp_out_datagrams,
        ("Udp", "RcvbufErrors") => &mut counters.udp_receive_buffer_errors,
        ("Udp", "SndbufErrors") => &mut counters.udp_send_buffer_errors,
        ("Udp", "InErrors") => &mut counters.udp_in_errors,
        ("Ip", "InDiscards") => &mut counters.ip_in_discards,
        ("Ip", "OutDiscards") => &mut counters.ip_out_discards,
        ("Ip", "ReasmFails") => &mut counters.ip_reassembly_failures,
        _ => return,
    };
    *field = Some(value);
}

/// TCP counts both families in one; UDP and IP count them apart.
fn add_ipv6(counters: &mut ProtocolCounters, name: &str, value: u64) {
    let field = match name {
        "Udp6InDatagrams" => &mut counters.udp_in_datagrams,
        "Udp6OutDatagrams" => &mut counters.udp_out_datagrams,
        "Udp6RcvbufErrors" => &mut counters.udp_receive_buffer_errors,
        "Udp6SndbufErrors" => &mut counters.udp_send_buffer_errors,
        "Udp6InErrors" => &mut counters.udp_in_errors,
        "Ip6InDiscards" => &mut counters.ip_in_discards,
        "Ip6OutDiscards" => &mut counters.ip_out_discards,
        "Ip6ReasmFails" => &mut counters.ip_reassembly_failures,
        _ => return,
    };
    *field = Some(field.unwrap_or(0).saturating_add(value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::recorded;

    fn read(tree: &str) -> ProtocolCounters {
        protocols(&recorded(tree), &mut FileBuffer::default())
    }

    #[test]
    fn both_families_of_a_kernel_of_today() {
        let counters = read("linux-6.12");
        assert_eq!(counters.tcp_retransmitted_segments, Some(1234));
        assert_eq!(counters.listen_drops, Some(17));
        assert_eq!(counters.tcp_receive_queue_drops, Some(5));
        assert_eq!(counters.udp_in_datagrams, Some(1000 + 7));
        assert_eq!(counters.udp_receive_buffer_errors, Some(3));
    }

    #[test]
    fn linux_4_18_does_not_know_every_counter() {
        let counters = read("linux-4.18");
        assert_eq!(counters.tcp_out_segments, Some(9_000));
        assert_eq!(counters.tcp_receive_queue_drops, None, "Linux 4.20");
        assert_eq!(counters.udp_in_datagrams, Some(55), "no IPv6");
    }

    #[test]
    fn garbage_is_no_counter() {
        let mut seen = 0;
        named_pairs("Tcp: A B\nTcp: 1 x\nlonely\n\nUdp:\n", |_, _, _| seen += 1);
        assert_eq!(seen, 1);
        assert_eq!(read("nothing-here"), ProtocolCounters::default());
    }
}
