//! Interfaces, queueing disciplines and protocols between two readings.

use crate::counted::{rate, rate_or_zero, wrapping_rate};
use crate::view::{InterfaceView, InterruptView, ProtocolView, QdiscView};
use ew_model::facts::InterfaceCounters;
use ew_model::telemetry::{
    HostReading, InterfaceReading, InterruptCounters, ProtocolCounters, QdiscCounters,
};
use std::time::Duration;

/// Interfaces, in kernel order.
pub(crate) fn interface_views(
    before: &HostReading,
    now: &HostReading,
    time: Duration,
) -> Vec<InterfaceView> {
    let pairs = now.interfaces.iter().filter_map(|interface| {
        let name = &interface.counters.name;
        let was = before
            .interfaces
            .iter()
            .find(|i| i.counters.name == *name)?;
        Some(InterfaceView {
            shaped_bits_per_sec: shaper_rate(now, name),
            ..interface_view(was, interface, time)
        })
    });
    pairs.collect()
}

/// The outermost shaper is the one that counts.
fn shaper_rate(now: &HostReading, interface: &str) -> Option<f64> {
    let mut qdiscs = now.qdiscs.iter();
    let root = qdiscs.find(|q| q.root && q.interface == interface)?;
    root.rate_bytes_per_sec.map(|rate| rate as f64 * 8.0)
}

fn interface_view(
    before: &InterfaceReading,
    now: &InterfaceReading,
    time: Duration,
) -> InterfaceView {
    let per_second = |of: fn(&InterfaceCounters) -> u64| {
        rate_or_zero(of(&now.counters), of(&before.counters), time)
    };
    let (rx, tx) = (
        per_second(|c| c.rx_bytes) * 8.0,
        per_second(|c| c.tx_bytes) * 8.0,
    );
    let link = &now.link;
    let used = if link.duplex.as_deref() == Some("half") {
        rx + tx
    } else {
        rx.max(tx)
    };
    InterfaceView {
        name: now.counters.name.clone(),
        rx_bits_per_sec: rx,
        tx_bits_per_sec: tx,
        rx_packets_per_sec: per_second(|c| c.rx_packets),
        tx_packets_per_sec: per_second(|c| c.tx_packets),
        rx_losses_per_sec: per_second(|c| c.rx_drops) + per_second(|c| c.rx_errors),
        tx_losses_per_sec: per_second(|c| c.tx_drops) + per_second(|c| c.tx_errors),
        rx_overruns_per_sec: rate(
            now.counters.rx_fifo_errors,
            before.counters.rx_fifo_errors,
            time,
        ),
        utilisation: link.speed_bits_per_sec.map(|speed| used / speed),
        link: link.clone(),
        driver_counters: driver_counters(before, now, time),
        ..InterfaceView::default()
    }
}

fn driver_counters(
    before: &InterfaceReading,
    now: &InterfaceReading,
    time: Duration,
) -> Vec<(String, f64)> {
    let pairs = now.driver_counters.iter().zip(&before.driver_counters);
    pairs
        .filter(|((name, now), (was, before))| name == was && now > before)
        .map(|((name, now), (_, before))| (name.clone(), rate_or_zero(*now, *before, time)))
        .collect()
}

/// Queueing disciplines that held packets at either reading, dropped some or met their limit.
pub(crate) fn qdisc_views(
    before: &HostReading,
    now: &HostReading,
    time: Duration,
) -> Vec<QdiscView> {
    let pairs = now.qdiscs.iter().filter_map(|qdisc| {
        let same = |q: &&QdiscCounters| {
            (&q.interface, q.handle, &q.kind, q.root)
                == (&qdisc.interface, qdisc.handle, &qdisc.kind, qdisc.root)
        };
        let was = before.qdiscs.iter().find(same)?;
        Some(QdiscView {
            interface: qdisc.interface.clone(),
            kind: qdisc.kind.clone(),
            backlog_bytes: qdisc.backlog_bytes,
            standing: qdisc.backlog_packets > 0 && was.backlog_packets > 0,
            drops_per_sec: wrapping_rate(qdisc.drops, was.drops, time),
            overlimits_per_sec: wrapping_rate(qdisc.overlimits, was.overlimits, time),
        })
    });
    let reports = |q: &QdiscView| {
        q.standing || q.backlog_bytes > 0 || q.drops_per_sec > 0.0 || q.overlimits_per_sec > 0.0
    };
    pairs.filter(reports).collect()
}

/// Interrupts that were raised, the busiest first.
pub(crate) fn interrupt_views(
    before: &HostReading,
    now: &HostReading,
    time: Duration,
) -> Vec<InterruptView> {
    let view = |interrupt: &InterruptCounters| {
        let same = |i: &&InterruptCounters| i.interrupt == interrupt.interrupt;
        let was = before.interrupts.iter().find(same);
        let was = was.map_or(&[][..], |was| &was.per_cpu);
        let counts = interrupt.per_cpu.iter().map(|(cpu, count)| {
            // A CPU that raised none is not listed.
            let before = was.iter().find(|(c, _)| c == cpu).map_or(0, |(_, n)| *n);
            (*cpu, rate_or_zero(*count, before, time))
        });
        let mut cpus: Vec<(u32, f64)> = counts.filter(|(_, rate)| *rate > 0.0).collect();
        cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
        InterruptView {
            interrupt: interrupt.interrupt,
            name: interrupt.name.clone(),
            per_sec: cpus.iter().map(|(_, rate)| rate).sum(),
            cpus,
        }
    };
    let mut views: Vec<InterruptView> = now.interrupts.iter().map(view).collect();
    views.retain(|view| view.per_sec > 0.0);
    views.sort_by(|a, b| b.per_sec.total_cmp(&a.per_sec));
    views
}

/// TCP and UDP as a whole.
pub(crate) fn protocol_view(
    before: &HostReading,
    now: &HostReading,
    time: Duration,
) -> ProtocolView {
    let per_second = |of: fn(&ProtocolCounters) -> Option<u64>| {
        rate(of(&now.protocols), of(&before.protocols), time)
    };
    let out = per_second(|p| p.tcp_out_segments);
    let again = per_second(|p| p.tcp_retransmitted_segments);
    let share = |(out, again): (f64, f64)| (out + again > 0.0).then(|| again / (out + again));
    ProtocolView {
        connections: now.protocols.tcp_established,
        opens_per_sec: per_second(|p| Some(p.tcp_active_opens? + p.tcp_passive_opens?)),
        segments_out_per_sec: out,
        retransmits_per_sec: again,
        retransmit_share: out.zip(again).and_then(share),
        listen_drops_per_sec: per_second(|p| p.listen_drops),
        receive_drops_per_sec: per_second(|p| {
            Some(p.tcp_backlog_drops? + p.tcp_receive_queue_drops.unwrap_or(0))
        }),
        udp_in_per_sec: per_second(|p| p.udp_in_datagrams),
        udp_out_per_sec: per_second(|p| p.udp_out_datagrams),
        udp_buffer_errors_per_sec: per_second(|p| {
            Some(p.udp_receive_buffer_errors? + p.udp_send_buffer_errors.unwrap_or(0))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::telemetry::InterfaceLink;

    const SECOND: Duration = Duration::from_secs(1);

    fn interface(rx_bytes: u64, tx_bytes: u64, duplex: &str) -> InterfaceReading {
        InterfaceReading {
            counters: InterfaceCounters {
                name: "eth0".into(),
                rx_bytes,
                tx_bytes,
                ..InterfaceCounters::default()
            },
            link: InterfaceLink {
                speed_bits_per_sec: Some(1e9),
                duplex: Some(duplex.into()),
                ..InterfaceLink::default()
            },
            driver_counters: vec![("rx_missed".into(), rx_bytes), ("rx_err".into(), 5)],
        }
    }

    #[test]
    fn directions_share_a_half_duplex_link_only() {
        let view = |duplex| {
            let before = interface(0, 0, duplex);
            interface_view(&before, &interface(50_000_000, 25_000_000, duplex), SECOND)
        };
        assert_eq!(view("full").utilisation, Some(0.4));
        assert_eq!(view("half").utilisation, Some(0.6));
        assert_eq!(
            view("full").driver_counters,
            [("rx_missed".to_owned(), 50e6)]
        );
    }

    #[test]
    fn a_queue_stands_when_it_was_not_empty_twice() {
        let qdisc = |backlog_packets, drops| HostReading {
            qdiscs: vec![QdiscCounters {
                interface: "eth0".into(),
                kind: "tbf".into(),
                backlog_packets,
                drops,
                ..QdiscCounters::default()
            }],
            ..HostReading::default()
        };
        let views = |a: &HostReading, b: &HostReading| qdisc_views(a, b, SECOND);
        assert!(views(&qdisc(3, 0), &qdisc(1, 0))[0].standing);
        assert!(!views(&qdisc(0, 0), &qdisc(0, 7))[0].standing);
        assert!(views(&qdisc(0, 7), &qdisc(0, 7)).is_empty());
    }

    #[test]
    fn retransmissions_are_a_share_of_all_that_is_sent() {
        let reading = |out, again| HostReading {
            protocols: ProtocolCounters {
                tcp_out_segments: Some(out),
                tcp_retransmitted_segments: Some(again),
                ..ProtocolCounters::default()
            },
            ..HostReading::default()
        };
        let view = protocol_view(&reading(0, 0), &reading(900, 100), SECOND);
        assert_eq!(view.retransmit_share, Some(0.1));
        assert_eq!(view.udp_in_per_sec, None);
        let idle = protocol_view(&reading(5, 5), &reading(5, 5), SECOND);
        assert_eq!(idle.retransmit_share, None);
    }

    #[test]
    fn interrupts_are_told_by_cpu_when_they_were_raised() {
        let reading = |counts: &[(u32, &[(u32, u64)])]| HostReading {
            interrupts: counts
                .iter()
                .map(|(interrupt, per_cpu)| InterruptCounters {
                    interrupt: *interrupt,
                    name: format!("eth0-{interrupt}"),
                    per_cpu: per_cpu.to_vec(),
                })
                .collect(),
            ..HostReading::default()
        };
        let before = reading(&[(38, &[(0, 100)]), (39, &[(1, 7)]), (40, &[(0, 5)])]);
        let now = reading(&[(38, &[(0, 110), (2, 30)]), (39, &[(1, 7)]), (40, &[(0, 6)])]);
        let views = interrupt_views(&before, &now, SECOND);
        let reported: Vec<_> = views.iter().map(|v| (v.interrupt, v.per_sec)).collect();
        assert_eq!(reported, [(38, 40.0), (40, 1.0)]);
        assert_eq!(views[0].cpus, [(2, 30.0), (0, 10.0)]);
    }
}
