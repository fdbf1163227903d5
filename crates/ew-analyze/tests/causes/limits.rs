//! Limits that lie in the host itself: what moves the bytes, its link, its disk, and what it drops.

use super::*;
use ew_model::facts::{Bond, InterfaceFacts, SwitchPort};
use ew_model::finding::VerdictStatus;
use ew_model::record::StreamRecord;
use ew_model::telemetry::{DiskCounters, SoftnetCounters};
use ew_model::workload::Tool;
use std::collections::BTreeMap;

/// Every end has so many streams, and the engine's threads used so much of a CPU for each of a
/// host's ends.
fn with_engine_cpu(run: Run, streams: usize, cpus_per_end: impl Fn(HostId) -> f64) -> Run {
    // An end repeats the host's time, which is that of all its ends in the round.
    let mut ends: BTreeMap<_, f64> = BTreeMap::new();
    for row in &run.flows {
        for host in [row.src, row.dst] {
            *ends.entry((row.stage, row.round, host)).or_default() += 1.0;
        }
    }
    with_rows(run, |row| {
        let (stage, round) = (row.stage, row.round);
        for (end, host) in [(&mut row.sender, row.src), (&mut row.receiver, row.dst)] {
            let Some(end) = end else { continue };
            let cpus = cpus_per_end(host) * ends[&(stage, round, host)];
            end.cpu = Some(CpuUse {
                engine_ns: (cpus * end.window_ns as f64) as u64,
                cpus: 2,
                ..CpuUse::default()
            });
            end.streams.resize_with(streams, StreamRecord::default);
        }
    })
}

#[test]
fn a_thread_that_uses_a_cpu_whole_is_the_tools_limit() {
    let cause = |streams, own: f64, peers: f64| {
        let (shown, host) = run(Slow::Tx);
        let used = with_engine_cpu(shown, streams, |it| if it == host { own } else { peers });
        let analysis = analyze(&used);
        let found = about(&analysis, host);
        (found.len(), found[0].cause, found[0].symptom)
    };
    let slow = Some(Symptom::SlowSender);
    assert_eq!(cause(1, 0.98, 0.4), (1, Cause::ToolLimit, slow));
    assert_eq!(
        cause(1, 0.88, 0.4),
        (1, Cause::SlowSender, slow),
        "time left"
    );
    assert_eq!(cause(1, 0.98, 0.93), (1, Cause::SlowSender, slow), "all do");
    assert_eq!(cause(2, 1.96, 0.8), (1, Cause::ToolLimit, slow));
    assert_eq!(
        cause(2, 0.98, 0.4),
        (1, Cause::SlowSender, slow),
        "half each"
    );
}

#[test]
fn only_an_old_iperf3_has_one_thread() {
    let cause = |tool, version: &str| {
        let (mut shown, host) = run(Slow::Tx);
        for stage in &mut shown.plan.stages {
            stage.workload.tool = tool;
        }
        let tools = &mut shown.facts.get_mut(&host).unwrap().tools;
        tools.push(("iperf3".into(), format!("iperf {version} (cJSON 1.7.15)")));
        let busy = |sample: &mut HostSample, second| {
            sample.cpus[0].idle_ticks = 0;
            sample.cpus[0].user_ticks = 70 * second;
        };
        let analysis = analyze(&with_counters(shown, |it| it == host, busy));
        let found = about(&analysis, host);
        assert_eq!(found.len(), 1, "{found:#?}");
        found[0].cause
    };
    assert_eq!(cause(Tool::Iperf3, "3.12"), Cause::ToolLimit);
    assert_eq!(cause(Tool::Iperf3, "3.16"), Cause::CoreSaturated);
    assert_eq!(cause(Tool::Engine, "3.12"), Cause::CoreSaturated);
}

/// A host's data interface is a VLAN on a bond of two, of which the first carries so many bytes a
/// second in each direction, and the second so many.
fn with_bond(run: Run, host: HostId, mode: &str, tx: [u64; 2], rx: [u64; 2]) -> Run {
    let members = ["p0".to_owned(), "p1".to_owned()];
    let mut run = with_counters(run, |_| false, |_, _| {});
    let facts = run.facts.get_mut(&host).unwrap();
    let port = |name: &String| InterfaceFacts {
        name: name.clone(),
        switch_port: Some(SwitchPort {
            switch: format!("leaf-{name}"),
            port: "Ethernet7".into(),
        }),
        ..InterfaceFacts::default()
    };
    facts.interfaces[0].lower = Some("bond0".into());
    facts.interfaces.push(InterfaceFacts {
        name: "bond0".into(),
        bond: Some(Bond {
            members: members.to_vec(),
            mode: Some(mode.into()),
            hash_policy: Some("layer2".into()),
        }),
        ..InterfaceFacts::default()
    });
    facts.interfaces.extend(members.iter().map(port));
    for (second, sample) in (0..).zip(run.samples.get_mut(&host).unwrap()) {
        for (number, name) in members.iter().enumerate() {
            sample.interfaces.push(InterfaceCounters {
                name: name.clone(),
                tx_bytes: tx[number] * second,
                rx_bytes: rx[number] * second,
                ..InterfaceCounters::default()
            });
        }
    }
    run
}

#[test]
fn a_bond_that_uses_one_member_is_named_with_its_policy() {
    const BUSY: u64 = 10_000_000;
    let found = |mode: &str, tx, rx| {
        let (shown, host) = run(Slow::Nowhere);
        let analysis = analyze(&with_bond(shown, host, mode, tx, rx));
        let found = about(&analysis, host).into_iter();
        found.collect::<Vec<_>>()
    };
    let one = found("802.3ad", [0, BUSY], [BUSY, BUSY]);
    assert_eq!(one.len(), 1, "{one:#?}");
    assert_eq!(
        (one[0].cause, one[0].severity),
        (Cause::BondMember, Severity::Notice)
    );
    let expected = "r1h2: one of 2 members of bond0 carried nearly all that was sent";
    assert_eq!(one[0].sentence, expected);
    assert!(
        one[0].hint.contains("xmit_hash_policy=layer3+4"),
        "{}",
        one[0].hint
    );
    let texts: Vec<&str> = one[0].evidence.iter().map(|e| e.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "bond0 is 802.3ad, hash policy layer2, over p0 and p1",
            "r1h2: p1 carried 100%",
            "r1h2: p0 is at port Ethernet7 of leaf-p0",
            "r1h2: p1 is at port Ethernet7 of leaf-p1",
        ]
    );
    let received = found("802.3ad", [BUSY, BUSY], [BUSY, BUSY / 100]);
    assert!(
        received[0].sentence.ends_with("that was received"),
        "{received:?}"
    );
    assert!(
        received[0].hint.contains("the switch"),
        "{}",
        received[0].hint
    );
    assert!(found("802.3ad", [BUSY, BUSY / 2], [BUSY, BUSY]).is_empty());
    assert!(found("active-backup", [BUSY, 0], [BUSY, 0]).is_empty());
}

#[test]
fn a_host_that_was_lost_and_came_back_is_named_though_nothing_is_missing() {
    let (mut shown, host) = run(Slow::Nowhere);
    shown.returned.insert(host, "nothing came for 4 s".into());
    let analysis = analyze(&shown);
    assert_eq!(analysis.verdict.status, VerdictStatus::Partial);
    let found = about(&analysis, host);
    assert_eq!(
        (found[0].cause, found[0].severity),
        (Cause::HostMissing, Severity::Notice)
    );
    let expected = "r1h2 was lost during the run and came back: nothing came for 4 s";
    assert_eq!(found[0].sentence, expected);
}

#[test]
fn racks_are_those_of_the_switches_that_hosts_hear_of() {
    let (mut shown, host) = run(Slow::Nowhere);
    assert!(ew_analyze::racks::by_switch(&shown).is_empty());
    for (id, facts) in &mut shown.facts {
        facts.interfaces[0].switch_port = (*id != host).then(|| SwitchPort {
            switch: format!("leaf {}", id.0 / 4),
            port: format!("swp{}", id.0),
        });
    }
    let racks = ew_analyze::racks::by_switch(&shown);
    let sizes: Vec<(&str, usize)> = racks.iter().map(|(n, h)| (n.as_str(), h.len())).collect();
    assert_eq!(sizes, [("leaf-0", 3), ("leaf-1", 4)]);
}

/// One of every host's disks is busy for so many ms of a second.
fn with_disks(run: Run, busy_ms: impl Fn(HostId) -> u64) -> Run {
    let mut run = with_counters(run, |_| false, |_, _| {});
    for (host, samples) in &mut run.samples {
        for (second, sample) in (0..).zip(samples) {
            let disk = |name: &str, busy_ms: u64| DiskCounters {
                name: name.into(),
                writes: 100 * second,
                written_bytes: 1_000_000 * second,
                write_ms: 2_000 * second,
                busy_ms: busy_ms * second,
                ..DiskCounters::default()
            };
            let busy_ms = busy_ms(*host);
            causes(sample).disks = vec![disk("sdb", 10), disk("sda", busy_ms), disk("sdc", 10)];
        }
    }
    run
}

#[test]
fn a_full_disk_is_a_cause_of_a_slow_host_and_worth_knowing_of_a_fast_one() {
    let found = |slow, own: u64, peers: u64| {
        let (shown, host) = run(slow);
        let full = with_disks(shown, |it| if it == host { own } else { peers });
        let analysis = analyze(&full);
        let found = about(&analysis, host).into_iter();
        let found = found.map(|f| (f.cause, f.severity, f.symptom, f.sentence.clone()));
        found.collect::<Vec<_>>()
    };
    let slow = found(Slow::Tx, 950, 50);
    assert_eq!(slow.len(), 1, "{slow:#?}");
    let symptom = Some(Symptom::SlowSender);
    assert_eq!(
        (slow[0].0, slow[0].1, slow[0].2),
        (Cause::Disk, Severity::Fault, symptom)
    );
    assert!(slow[0].3.contains("disk sda saturated"), "{slow:?}");
    let fast = found(Slow::Nowhere, 950, 50);
    assert_eq!(fast.len(), 1, "{fast:#?}");
    assert_eq!(
        (fast[0].0, fast[0].1, fast[0].2),
        (Cause::Disk, Severity::Notice, None)
    );
    let said = "disk sda 95% busy, 20";
    assert!(fast[0].3.contains(said), "{fast:?}");
    assert_eq!(found(Slow::Nowhere, 880, 50), [], "not full");
    assert_eq!(found(Slow::Nowhere, 950, 950), [], "everybody's");
    assert_eq!(
        found(Slow::Nowhere, 950, 850),
        [],
        "its peers' are busy, too"
    );
    assert_eq!(found(Slow::Tx, 880, 50)[0].0, Cause::SlowSender);
}

/// Every host's link carries so many bytes a second each way; the link's rate is configured or not.
fn filled(slow: Slow, stated: Option<f64>, bytes_per_sec: impl Fn(HostId) -> u64) -> Analysis {
    let (mut shown, _) = run(slow);
    shown.plan.expect.nic_bits_per_sec = stated;
    let mut run = with_counters(shown, |_| false, |_, _| {});
    for (host, samples) in &mut run.samples {
        for (second, sample) in (0..).zip(samples) {
            let counters = &mut sample.interfaces[0];
            counters.tx_bytes = bytes_per_sec(*host) * second;
            counters.rx_bytes = counters.tx_bytes / 2;
        }
    }
    analyze(&run)
}

#[test]
fn full_links_are_the_limit_of_a_run_in_which_nothing_is_wrong() {
    let (full, free) = (24_500_000, 22_500_000);
    let stated = Some(200e6);
    let causes = |analysis: &Analysis| {
        let findings = analysis.verdict.findings.iter();
        findings.map(|f| (f.cause, f.subject)).collect::<Vec<_>>()
    };
    let analysis = filled(Slow::Nowhere, stated, |_| full);
    assert_eq!(causes(&analysis), [(Cause::LineRate, Subject::Run)]);
    let finding = &analysis.verdict.findings[0];
    assert_eq!(finding.severity, Severity::Info);
    let share = finding.measured.as_ref().unwrap().value;
    assert!((share - 0.98).abs() < 0.005, "{share}");
    assert_eq!(causes(&filled(Slow::Nowhere, stated, |_| free)), []);
    let half = |host: HostId| if host.0 < 4 { full } else { free };
    assert_eq!(causes(&filled(Slow::Nowhere, stated, half)), []);
    assert_eq!(
        causes(&filled(Slow::Nowhere, None, |_| full)),
        [],
        "measured against itself"
    );
    let faulty = causes(&filled(Slow::Tx, stated, |_| full));
    assert!(!faulty.is_empty(), "a slow host");
    assert!(faulty.iter().all(|(cause, _)| *cause != Cause::LineRate));
}

/// Links are configured to `configured`.
fn below(mut shown: Run, configured: f64) -> Vec<(Cause, String)> {
    shown.plan.expect.nic_bits_per_sec = Some(configured);
    let findings = in_words(&analyze(&shown)).findings.into_iter();
    findings.map(|f| (f.cause, f.sentence)).collect()
}

/// All hosts have a shaper of that rate.
fn shaped(bytes_per_sec: u64) -> Run {
    let mut shown = with_counters(run(Slow::Nowhere).0, |_| false, |_, _| {});
    for sample in shown.samples.values_mut().flatten() {
        causes(sample).qdiscs.push(QdiscCounters {
            interface: "eth0".into(),
            kind: "tbf".into(),
            root: true,
            rate_bytes_per_sec: Some(bytes_per_sec),
            ..QdiscCounters::default()
        });
    }
    shown
}

#[test]
fn shapers_that_hosts_fill_are_why_all_stay_below_the_configured_nic() {
    let found = below(shaped(25_000_000), 400e6);
    assert_eq!(found.len(), 1, "{found:#?}");
    let (cause, sentence) = &found[0];
    assert_eq!(*cause, Cause::LinkSpeed);
    assert!(sentence.contains("all 8 hosts stay below"), "{sentence}");
    assert!(sentence.contains("tc tbf shapers, 200 Mb/s"), "{sentence}");
    for bytes_per_sec in [40_000_000, 50_000_000] {
        let found = below(shaped(bytes_per_sec), 400e6);
        assert_eq!(
            found[0].0,
            Cause::SlowHost,
            "far from full, or no less than the link: {found:?}"
        );
    }
}

/// The interval of one host's own rates is wide, and its median is that of the others.
#[test]
fn hosts_that_do_alike_stay_below_the_configured_nic_together() {
    let (shown, host) = run(Slow::Nowhere);
    let uneven = with_rows(shown, |row| {
        let is_own = row.src == host || row.dst == host;
        if let Some(end) = row
            .receiver
            .as_mut()
            .filter(|_| is_own && row.round.0 % 3 == 0)
        {
            end.bytes = end.bytes * 103 / 100;
        }
    });
    let found = below(uneven, 200e6 / 0.922);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].1.contains("all 8 hosts stay below"), "{found:#?}");
}

#[test]
fn half_duplex_is_told_by_the_hosts_facts() {
    let cause = |duplex: &str| {
        let (mut shown, host) = run(Slow::Tx);
        let facts = shown.facts.get_mut(&host).unwrap();
        facts.interfaces[0].duplex = Some(duplex.into());
        let analysis = analyze(&with_counters(shown, |_| false, |_, _| {}));
        let found = about(&analysis, host);
        assert_eq!(found.len(), 1, "{found:#?}");
        (found[0].cause, found[0].sentence.contains("at half duplex"))
    };
    assert_eq!(cause("half"), (Cause::LinkSpeed, true));
    assert_eq!(cause("full"), (Cause::SlowSender, false));
}

/// Where a receiver drops most of what it drops.
const DROPS: [(&str, &str, Change); 4] = [
    (
        "packets dropped at the interface",
        "receive ring",
        |sample, second| {
            sample.interfaces[0].rx_drops = 500 * second;
            causes(sample).protocols.udp_receive_buffer_errors = Some(50 * second);
        },
    ),
    (
        "packets dropped in the backlog (softnet)",
        "netdev_max_backlog",
        |sample, second| {
            sample.interfaces[0].rx_drops = 50 * second;
            let of_cpu = |dropped: u64| SoftnetCounters {
                dropped: dropped as u32,
                ..SoftnetCounters::default()
            };
            causes(sample).softnet = vec![(0, of_cpu(100 * second)), (1, of_cpu(400 * second))];
        },
    ),
    (
        "packets dropped at TCP sockets",
        "tcp_rmem",
        |sample, second| {
            // Less than both counters of TCP together, more than either.
            sample.interfaces[0].rx_drops = 300 * second;
            let protocols = &mut causes(sample).protocols;
            protocols.tcp_receive_queue_drops = Some(250 * second);
            protocols.tcp_backlog_drops = Some(250 * second);
        },
    ),
    (
        "packets dropped at UDP sockets",
        "rmem_max",
        |sample, second| {
            sample.interfaces[0].rx_drops = 50 * second;
            causes(sample).protocols.udp_receive_buffer_errors = Some(500 * second);
        },
    ),
];

#[test]
fn the_place_where_a_receiver_drops_most_is_named() {
    for (location, remedy, change) in DROPS {
        let (cause, symptom) = (Cause::ReceiveDrops, Symptom::SlowReceiver);
        let finding = explains(Slow::Rx, cause, symptom, change);
        assert!(finding.sentence.contains(location), "{}", finding.sentence);
        assert!(finding.hint.contains(remedy), "{}", finding.hint);
    }
}

#[test]
fn few_drops_and_those_of_a_slow_sender_explain_nothing() {
    let cause = |slow, change: Change| {
        let (shown, host) = run(slow);
        let analysis = analyze(&with_counters(shown, |it| it == host, change));
        about(&analysis, host)[0].cause
    };
    // Received are some 6,600 full frames a second: 2 of them are 0.03%, 15 are 0.2%.
    let few: Change = |sample, second| sample.interfaces[0].rx_drops = 2 * second;
    let enough: Change = |sample, second| sample.interfaces[0].rx_drops = 15 * second;
    assert_eq!(cause(Slow::Rx, few), Cause::SlowReceiver);
    assert_eq!(cause(Slow::Rx, enough), Cause::ReceiveDrops);
    assert_eq!(cause(Slow::Tx, enough), Cause::SlowSender);
}

#[test]
fn drops_that_peers_have_too_explain_nothing() {
    let (shown, host) = run(Slow::Rx);
    let mut dropping = with_counters(shown, |_| false, |_, _| {});
    for (it, samples) in &mut dropping.samples {
        for (second, sample) in (0..).zip(samples) {
            sample.interfaces[0].rx_drops = if *it == host { 500 } else { 150 } * second;
        }
    }
    assert_eq!(
        about(&analyze(&dropping), host)[0].cause,
        Cause::SlowReceiver
    );
}

/// Hosts on one machine share its disks.
#[test]
fn disks_that_are_full_everywhere_are_told_once() {
    let reported = |busy_ms: u64| {
        let (shown, _) = run(Slow::Nowhere);
        let findings = analyze(&with_disks(shown, |_| busy_ms)).verdict.findings;
        let reported = findings.iter().filter(|f| f.cause == Cause::Disk);
        reported
            .map(|f| (f.subject, f.severity))
            .collect::<Vec<_>>()
    };
    assert_eq!(reported(950), [(Subject::Run, Severity::Notice)]);
    assert_eq!(reported(850), []);
}
