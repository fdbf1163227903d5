//! Why a host is slow, one case for each reason.

use super::slow_host::without_flows;
use super::{background_traffic, disk, golden, host, mtu};
use ew_model::analysis::CpuShare;
use ew_model::finding::Details;
use ew_model::finding::details::{
    BusyThread, CountedLoss, CpuQuota, CpuTaker, DropLocation, Extent, FullCpu, HalfDuplex,
    LateSampler, LimitingSendBuffer, LossOnLink, OwnAndPeers, ReceiveDrops, Shaper, SingleThread,
    SlowHost, SmallReceiveWindow, SmallSendBuffer, StarvedThreads, Why,
};
use std::collections::BTreeSet;

#[test]
fn each_reason_in_words() {
    insta::assert_snapshot!(golden(&cases()));
}

#[test]
fn every_reason_has_a_golden_text() {
    let reason = |why: &Why| {
        let value = serde_json::to_value(why).unwrap();
        value["reason"].as_str().unwrap().to_owned()
    };
    let golden: BTreeSet<String> = reasons().iter().map(|(_, why)| reason(why)).collect();
    let schema = schemars::schema_for!(Why).to_value();
    let variants = schema["oneOf"].as_array().unwrap().iter();
    let known = variants.map(|v| v["properties"]["reason"]["const"].as_str().unwrap());
    let missing: Vec<&str> = known.filter(|name| !golden.contains(*name)).collect();
    assert!(missing.is_empty(), "without golden text: {missing:?}");
}

#[test]
fn reasons_are_read_as_they_were_written() {
    for (case, details) in cases() {
        let text = serde_json::to_string(&details).unwrap();
        let read: Details = serde_json::from_str(&text).unwrap();
        assert_eq!(read, details, "{case}");
    }
}

pub(super) fn cases() -> Vec<(&'static str, Details)> {
    let because = |why| {
        Details::SlowHost(SlowHost {
            why: Some(why),
            ..without_flows()
        })
    };
    let all = reasons().into_iter();
    all.map(|(case, why)| (case, because(why))).collect()
}

/// The reason of a case.
pub(super) fn reason(case: &str) -> Why {
    let found = reasons().into_iter().find(|(name, _)| *name == case);
    found.unwrap().1
}

fn reasons() -> Vec<(&'static str, Why)> {
    let own: [Vec<(&'static str, Why)>; 5] = [cpu(), threads(), link(), buffers(), drops()];
    let with_entry = [
        (
            "background traffic",
            Why::BackgroundTraffic(background_traffic::sent(Some(background_traffic::rsync()))),
        ),
        (
            "background traffic of nobody seen",
            Why::BackgroundTraffic(background_traffic::sent(None)),
        ),
        ("disk", Why::BusyDisk(disk::busy())),
        ("MTU", Why::OddMtu(mtu::odd(1))),
    ];
    own.concat().into_iter().chain(with_entry).collect()
}

fn cpu() -> Vec<(&'static str, Why)> {
    let quota = CpuQuota {
        host: host(1, 2),
        throttled_share: next_to(0.42, 0.003),
        quota_us: Some(50_000),
        period_us: Some(100_000),
    };
    let unknown = CpuQuota {
        quota_us: None,
        period_us: None,
        throttled_share: alone(0.42),
        ..quota
    };
    vec![
        ("CPU quota", Why::CpuQuota(quota)),
        ("CPU quota of unknown size", Why::CpuQuota(unknown)),
        ("CPU full of softirq", full(CpuTaker::Softirq)),
        ("CPU full of steal", full(CpuTaker::Steal)),
        ("CPU full of programs", full(CpuTaker::Programs)),
        ("CPU full of the kernel", full(CpuTaker::Kernel)),
    ]
}

fn full(taker: CpuTaker) -> Why {
    let share = |by| if by == taker { 0.83 } else { 0.055 };
    Why::FullCpu(FullCpu {
        host: host(1, 2),
        cpu: CpuShare {
            cpu: 3,
            busy_share: 0.99,
            user_share: share(CpuTaker::Programs),
            system_share: share(CpuTaker::Kernel),
            softirq_share: share(CpuTaker::Softirq),
            steal_share: share(CpuTaker::Steal),
            frequency_hz: None,
        },
        taker,
        busy_share: next_to(0.985, 0.41),
        stage: "intra-rack".into(),
    })
}

fn threads() -> Vec<(&'static str, Why)> {
    let waited = |waited_share, extent| {
        Why::StarvedThreads(StarvedThreads {
            host: host(1, 2),
            waited_share,
            extent,
        })
    };
    let late = |late_ns, extent| {
        Why::LateSampler(LateSampler {
            host: host(1, 2),
            late_ns,
            extent,
        })
    };
    let thread = |cpu_share| {
        Why::BusyThread(BusyThread {
            host: host(1, 2),
            cpu_share,
        })
    };
    let single = |busy_share| {
        Why::SingleThread(SingleThread {
            host: host(1, 2),
            version: "iperf 3.12 (cJSON 1.7.15)".into(),
            busy_share,
        })
    };
    vec![
        ("threads wait", waited(next_to(1.31, 0.02), Extent::Mostly)),
        (
            "threads wait at times",
            waited(alone(0.46), Extent::AtTimes),
        ),
        (
            "sampler late",
            late(next_to(84.2e6, 0.31e6), Extent::Mostly),
        ),
        (
            "sampler late at times",
            late(alone(84.2e6), Extent::AtTimes),
        ),
        ("thread", thread(next_to(0.99, 0.52))),
        ("thread, no peers", thread(alone(0.99))),
        ("one thread", single(next_to(1.0, 0.52))),
        ("one thread, no peers", single(alone(1.0))),
    ]
}

fn link() -> Vec<(&'static str, Why)> {
    let lossy = |tx_share, rx_share, counted| {
        Why::LossOnLink(LossOnLink {
            host: host(1, 2),
            tx_share,
            rx_share,
            typical_share: 0.0004,
            counted,
        })
    };
    let counted = |errors, drops| {
        Some(CountedLoss {
            interface: "eth0".into(),
            errors,
            drops,
        })
    };
    let shaper = Shaper {
        host: host(1, 2),
        interface: "eth0".into(),
        discipline: "tbf".into(),
        bits_per_sec: 100e6,
        peers_bits_per_sec: 200e6,
    };
    let half = HalfDuplex {
        host: host(1, 2),
        interface: "eth0".into(),
    };
    vec![
        ("half duplex", Why::HalfDuplex(half)),
        ("shaper", Why::Shaper(shaper)),
        ("loss TX", lossy(Some(0.031), None, None)),
        ("loss RX", lossy(None, Some(0.029), counted(1, 0))),
        (
            "loss in both directions",
            lossy(Some(0.031), Some(0.029), counted(812, 1)),
        ),
    ]
}

fn buffers() -> Vec<(&'static str, Why)> {
    let window = |limited_share| {
        Why::SmallReceiveWindow(SmallReceiveWindow {
            host: host(1, 2),
            limited_share,
        })
    };
    let limiting = |limited_share| {
        Why::LimitingSendBuffer(LimitingSendBuffer {
            host: host(1, 2),
            limited_share,
        })
    };
    let small = SmallSendBuffer {
        host: host(1, 2),
        buffer_bytes: next_to(16_384.0, 2_626_560.0),
        congestion_window_bytes: 97_016,
    };
    vec![
        ("receive window", window(next_to(0.91, 0.0))),
        ("receive window, no peers", window(alone(0.91))),
        ("send buffer", limiting(next_to(0.88, 0.012))),
        ("send buffer, no peers", limiting(alone(0.88))),
        ("small send buffer", Why::SmallSendBuffer(small)),
    ]
}

fn drops() -> Vec<(&'static str, Why)> {
    let dropped = |location, packets, dropped_share| {
        Why::ReceiveDrops(ReceiveDrops {
            host: host(1, 2),
            location,
            packets,
            dropped_share,
        })
    };
    let share = next_to(0.0074, 0.0);
    vec![
        ("TCP sockets", dropped(DropLocation::TcpSockets, 812, share)),
        ("UDP sockets", dropped(DropLocation::UdpSockets, 812, share)),
        ("interface", dropped(DropLocation::Interface, 812, share)),
        ("backlog", dropped(DropLocation::Backlog, 812, share)),
        (
            "ring, one packet",
            dropped(DropLocation::Ring, 1, alone(0.0074)),
        ),
    ]
}

fn next_to(own: f64, peers: f64) -> OwnAndPeers {
    OwnAndPeers {
        own,
        peers: Some(peers),
    }
}

fn alone(own: f64) -> OwnAndPeers {
    OwnAndPeers { own, peers: None }
}
