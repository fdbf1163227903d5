//! Hosts that are all slow alike.

use super::golden;
use ew_model::HostId;
use ew_model::finding::Details;
use ew_model::finding::details::{BelowLinkSpeed, SharedLimit, SingleConnections};

#[test]
fn by_each_limit_and_by_none() {
    insta::assert_snapshot!(golden(&cases()));
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let limits = limits();
    let classes = limits
        .iter()
        .map(|(case, limit)| (*case, of_class(8, Some(limit.clone()))));
    let single = limits
        .iter()
        .map(|(case, limit)| (*case, of_connections(limit.clone())));
    let unknown = [
        ("one host, not determined", of_class(1, None)),
        ("hosts, not determined", of_class(8, None)),
    ];
    let connection = limits[0].1.clone();
    let of_one = Details::SingleConnections(SingleConnections {
        host: Some(HostId(1)),
        ..single_connections(connection)
    });
    let of_one = [("each connection of one host", of_one)];
    let all = unknown.into_iter().chain(classes).chain(single);
    all.chain(of_one).collect()
}

fn limits() -> Vec<(&'static str, SharedLimit)> {
    let connection = SharedLimit::Connection {
        bits_per_sec: 4.96e9,
        several_bits_per_sec: 9.3e9,
    };
    let quota = SharedLimit::CpuQuota {
        throttled_share: 0.42,
    };
    let window = |round_trip_ns| SharedLimit::ReceiveWindow {
        limited_share: 0.87,
        round_trip_ns,
    };
    vec![
        ("each connection", connection),
        ("CPU quota", quota),
        ("threads", SharedLimit::FullThreads { cpu_share: 0.97 }),
        ("receive window", window(Some(1_200_000))),
        ("receive window, no round trip", window(None)),
        (
            "send buffer",
            SharedLimit::SendBuffer {
                limited_share: 0.035,
            },
        ),
        (
            "shapers",
            SharedLimit::Shaper {
                discipline: "tbf".into(),
                bits_per_sec: 5e9,
                link_bits_per_sec: 10e9,
            },
        ),
    ]
}

fn of_class(hosts: usize, limit: Option<SharedLimit>) -> Details {
    Details::BelowLinkSpeed(BelowLinkSpeed {
        hosts,
        bits_per_sec: 4.1e9,
        goodput_bits_per_sec: 9.41e9,
        limit,
    })
}

fn of_connections(limit: SharedLimit) -> Details {
    Details::SingleConnections(single_connections(limit))
}

fn single_connections(limit: SharedLimit) -> SingleConnections {
    SingleConnections {
        host: None,
        bits_per_sec: 4.96e9,
        several_bits_per_sec: 9.3e9,
        limit,
    }
}
