//! Each cause on a simulated cluster whose counters show it, and the same counters everywhere,
//! where nobody may be accused.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

#[path = "causes/limits.rs"]
mod limits;
#[path = "causes/pods.rs"]
mod pods;
#[path = "simulator/mod.rs"]
mod simulator;

use ew_analyze::analyze;
use ew_model::facts::{CpuCounters, HostSample, InterfaceCounters};
use ew_model::finding::{Cause, Severity, Subject, Symptom, WordedFinding};
use ew_model::record::CpuUse;
use ew_model::telemetry::{CauseCounters, PeerTraffic, ProcessTraffic, QdiscCounters};
use ew_model::{Analysis, HostId, RackId, Run};
use ew_report::in_words;
use simulator::{GOODPUT, Truth};

const SECOND: u64 = 1_000_000_000;
const SLOW: &str = "r1h2";
const YAML: &str = "name: why
defaults: {duration: 2s, warm-up: 300ms, gap: 200ms, samples: 6}
tests:
  - {name: intra-rack, pattern: permutation}
  - {name: cross-rack, pattern: cross-rack}
  - {name: mesh, pattern: {mesh: {mode: isolated}}, samples: 1}
";

/// What one host's counters show next to its flows.
type Change = fn(&mut HostSample, second: u64);

#[derive(Clone, Copy)]
enum Slow {
    Tx,
    Rx,
    Nowhere,
}

fn truth(slow: Slow) -> (Truth, HostId) {
    let mut truth = Truth::new(&[4, 4], 1.0);
    let host = truth.host(SLOW);
    match slow {
        Slow::Tx => truth.tx[host.index()] = 0.4 * GOODPUT,
        Slow::Rx => truth.rx[host.index()] = 0.4 * GOODPUT,
        Slow::Nowhere => {}
    }
    (truth, host)
}

fn run(slow: Slow) -> (Run, HostId) {
    let (truth, host) = truth(slow);
    (truth_run(&truth), host)
}

fn truth_run(truth: &Truth) -> Run {
    let scenario = ew_plan::scenario::parse(YAML, "why", &[]).unwrap();
    let plan = ew_plan::plan(&scenario, &truth.inventory, 7).unwrap();
    let mut run = truth.run(scenario, plan, 7);
    set_windows(&mut run);
    run
}

/// Stages one after the other, every round at its planned time.
fn set_windows(run: &mut Run) {
    for row in &mut run.flows {
        let stages = &run.plan.stages;
        let before: u64 = stages[..row.stage.0 as usize]
            .iter()
            .map(|s| s.planned_ns())
            .sum();
        let stage = &stages[row.stage.0 as usize];
        let start_ns = 10 * SECOND
            + before
            + u64::from(row.round.0) * stage.round_period_ns()
            + stage.warm_up_ns;
        for end in [&mut row.sender, &mut row.receiver].into_iter().flatten() {
            end.window_start_ns = Some(start_ns);
        }
    }
}

/// A reading a second of every host; `change` makes it that of a host that is in `who`.
fn with_counters(mut run: Run, who: impl Fn(HostId) -> bool, change: Change) -> Run {
    let planned: u64 = run.plan.stages.iter().map(|stage| stage.planned_ns()).sum();
    for host in run.manifest.inventory.host_ids() {
        let readings = (0..planned / SECOND + 20).map(|second| {
            let mut sample = quiet(second);
            if who(host) {
                change(&mut sample, second);
            }
            sample
        });
        run.samples.insert(host, readings.collect());
    }
    run
}

/// A host with time to spare: two CPUs, a third busy; its link carries what its flows do.
fn quiet(second: u64) -> HostSample {
    let cpu = |cpu| CpuCounters {
        cpu,
        system_ticks: 30 * second,
        idle_ticks: 70 * second,
        softirq_ticks: Some(0),
        ..CpuCounters::default()
    };
    HostSample {
        agent_ns: second * SECOND,
        cpus: vec![cpu(0), cpu(1)],
        interfaces: vec![InterfaceCounters {
            name: "eth0".into(),
            rx_bytes: second * 10_000_000,
            tx_bytes: second * 10_000_000,
            ..InterfaceCounters::default()
        }],
        causes: Some(Box::new(CauseCounters {
            traffic_ns: Some(second * SECOND),
            ..CauseCounters::default()
        })),
        ..HostSample::default()
    }
}

fn causes(sample: &mut HostSample) -> &mut CauseCounters {
    sample.causes.as_mut().unwrap()
}

/// The findings about a host.
fn about(analysis: &Analysis, host: HostId) -> Vec<WordedFinding> {
    let findings = in_words(analysis).findings.into_iter();
    findings
        .filter(|f| f.subject == Subject::Host { host })
        .collect()
}

/// The slow host is explained by the cause; shown by everybody, the same explains nobody.
fn explains(slow: Slow, cause: Cause, symptom: Symptom, change: Change) -> WordedFinding {
    let (shown, host) = run(slow);
    let analysis = analyze(&with_counters(shown.clone(), |it| it == host, change));
    let found = about(&analysis, host);
    let [finding] = &found[..] else {
        panic!("{:#?}", analysis.verdict.findings);
    };
    assert_eq!(
        (finding.cause, finding.symptom),
        (cause, Some(symptom)),
        "{finding:#?}"
    );
    assert_eq!(finding.severity, Severity::Fault);
    assert!(finding.sentence.contains(". Cause: ") && !finding.hint.is_empty());
    let everywhere = analyze(&with_counters(shown, |_| true, change));
    let found = about(&everywhere, host);
    assert!(found.iter().all(|f| f.cause != cause), "{found:#?}");
    healthy_hosts_stay_unaccused(cause, change);
    finding.clone()
}

/// Without a slow host the same counters on every host accuse nobody.
fn healthy_hosts_stay_unaccused(cause: Cause, change: Change) {
    let (healthy, _) = run(Slow::Nowhere);
    let analysis = analyze(&with_counters(healthy, |_| true, change));
    let accused = analysis.verdict.findings.iter().any(|f| f.cause == cause);
    assert!(!accused, "{:#?}", analysis.verdict.findings);
}

#[test]
fn a_slow_host_without_a_reason_stays_so() {
    let (shown, host) = run(Slow::Tx);
    let analysis = analyze(&with_counters(shown, |_| false, |_, _| {}));
    let found = about(&analysis, host);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].cause, Cause::SlowSender);
}

#[test]
fn a_cpu_quota_that_ran_out() {
    let finding = explains(
        Slow::Tx,
        Cause::CpuQuota,
        Symptom::SlowSender,
        |sample, second| {
            let group = &mut causes(sample).cgroup;
            group.cpu_throttled_us = Some(600_000 * second);
            (group.cpu_quota_us, group.cpu_period_us) = (Some(50_000), Some(100_000));
        },
    );
    assert!(
        finding.sentence.contains("cgroup CPU limit (0.50 CPU)"),
        "{}",
        finding.sentence
    );
    assert!(finding.evidence[0].source.contains("counters.parquet"));
}

#[test]
fn a_quota_that_runs_out_now_and_then_is_told_of_the_host_and_not_of_its_pairs() {
    let (healthy, _) = run(Slow::Nowhere);
    let host = HostId(1);
    let quota: Change = |sample, second| {
        let group = &mut causes(sample).cgroup;
        group.cpu_throttled_us = Some(300_000 * second);
        (group.cpu_quota_us, group.cpu_period_us) = (Some(5_000), Some(100_000));
    };
    let analysis = analyze(&with_counters(healthy.clone(), |it| it == host, quota));
    let found = about(&analysis, host);
    assert_eq!(
        found
            .iter()
            .map(|f| (f.cause, f.severity))
            .collect::<Vec<_>>(),
        [(Cause::CpuQuota, Severity::Notice)]
    );
    // Towards two of its partners it was slow each time.
    let uneven = with_rows(healthy, |row| {
        if row.src == host && row.dst.0 % 3 == 0 {
            row.receiver.iter_mut().for_each(|end| {
                end.bytes /= 4;
                end.intervals.clear();
            });
        }
    });
    let analysis = analyze(&with_counters(uneven, |it| it == host, quota));
    let accused: Vec<Cause> = analysis.verdict.findings.iter().map(|f| f.cause).collect();
    assert_eq!(
        accused,
        [Cause::CpuQuota],
        "{:#?}",
        analysis.verdict.findings
    );
}

#[test]
fn a_core_full_of_softirq() {
    let finding = explains(
        Slow::Rx,
        Cause::CoreSaturated,
        Symptom::SlowReceiver,
        |sample, second| {
            sample.cpus[1] = CpuCounters {
                cpu: 1,
                softirq_ticks: Some(97 * second),
                system_ticks: 3 * second,
                ..CpuCounters::default()
            };
        },
    );
    assert!(finding.sentence.contains("CPU 1"), "{}", finding.sentence);
    assert!(finding.sentence.contains("softirq"), "{}", finding.sentence);
}

#[test]
fn a_sampler_that_wakes_late() {
    let late: Change = |sample, second| sample.late_ns = (1 + second % 5) * 100_000_000;
    let finding = explains(Slow::Rx, Cause::CoreSaturated, Symptom::SlowReceiver, late);
    assert!(
        finding.sentence.contains("300 ms late"),
        "{}",
        finding.sentence
    );
}

#[test]
fn a_core_stolen_by_the_hypervisor() {
    let finding = explains(
        Slow::Tx,
        Cause::CoreSaturated,
        Symptom::SlowSender,
        |sample, second| {
            sample.cpus[0].idle_ticks = 0;
            sample.cpus[0].steal_ticks = Some(70 * second);
        },
    );
    assert!(finding.sentence.contains("steal"), "{}", finding.sentence);
}

#[test]
fn a_shaper_of_its_own() {
    let shaper = |sample: &mut HostSample, _| {
        causes(sample).qdiscs.push(QdiscCounters {
            interface: "eth0".into(),
            kind: "tbf".into(),
            root: true,
            rate_bytes_per_sec: Some(10_000_000),
            ..QdiscCounters::default()
        });
    };
    let finding = explains(Slow::Tx, Cause::LinkSpeed, Symptom::SlowSender, shaper);
    assert!(
        finding
            .sentence
            .contains("tc tbf shaper on eth0, 80.0 Mb/s"),
        "{}",
        finding.sentence
    );
}

#[test]
fn a_neighbour_on_the_same_link() {
    let finding = explains(
        Slow::Tx,
        Cause::BackgroundTraffic,
        Symptom::SlowSender,
        |sample, second| {
            let sent_bytes = 14_000_000 * second;
            causes(sample).traffic = vec![ProcessTraffic {
                pid: Some(812),
                command: "rsync".into(),
                sent_bytes,
                peers: vec![PeerTraffic {
                    address: "198.18.9.9".parse().unwrap(),
                    sent_bytes,
                    received_bytes: 0,
                }],
                ..ProcessTraffic::default()
            }];
        },
    );
    let said = "background traffic, rsync (pid 812) sends 112 Mb/s to 198.18.9.9";
    assert!(finding.sentence.contains(said), "{}", finding.sentence);
}

#[test]
fn the_runs_own_traffic_is_nobodys_fault() {
    let (shown, host) = run(Slow::Tx);
    let analysis = analyze(&with_counters(
        shown,
        |it| it == host,
        |sample, second| {
            causes(sample).traffic = vec![ProcessTraffic {
                is_ours: true,
                sent_bytes: 14_000_000 * second,
                ..ProcessTraffic::default()
            }];
        },
    ));
    assert_eq!(about(&analysis, host)[0].cause, Cause::SlowSender);
}

/// Changes every row; `mine` reports those on the slow host's side.
fn with_rows(mut run: Run, change: impl Fn(&mut ew_model::FlowRecord)) -> Run {
    run.flows.iter_mut().for_each(change);
    with_counters(run, |_| false, |_, _| {})
}

#[test]
fn windows_and_buffers_are_told_by_their_side() {
    for (slow, cause) in [
        (Slow::Rx, Cause::ReceiveWindow),
        (Slow::Tx, Cause::SendBuffer),
    ] {
        let (shown, host) = run(slow);
        let limited = with_rows(shown.clone(), |row| limit(row, is_own(row, slow, host)));
        assert_eq!(about(&analyze(&limited), host)[0].cause, cause);
        let everywhere = with_rows(shown, |row| limit(row, true));
        assert_ne!(about(&analyze(&everywhere), host)[0].cause, cause);
    }
}

fn is_own(row: &ew_model::FlowRecord, slow: Slow, host: HostId) -> bool {
    match slow {
        Slow::Tx => row.src == host,
        Slow::Rx => row.dst == host,
        Slow::Nowhere => false,
    }
}

fn limit(row: &mut ew_model::FlowRecord, is_limited: bool) {
    for stream in row.sender.iter_mut().flat_map(|end| &mut end.streams) {
        if let Some(info) = &mut stream.tcp_info {
            let share_us = if is_limited { 1_500_000 } else { 10_000 };
            info.busy_us = Some(2_000_000);
            info.receive_window_limited_us = Some(share_us);
            info.send_buffer_limited_us = Some(share_us);
        }
    }
}

/// An end in a window of 2 s.
fn waiting(is_starved: bool) -> CpuUse {
    let engine_wait_ns = if is_starved { 15 } else { 1 } * SECOND / 10;
    CpuUse {
        engine_wait_ns: Some(engine_wait_ns),
        cpus: 2,
        ..CpuUse::default()
    }
}

#[test]
fn threads_that_wait_for_a_cpu() {
    let (shown, host) = run(Slow::Rx);
    let starved = with_rows(shown.clone(), |row| {
        for (end, is_own) in [
            (&mut row.sender, row.src == host),
            (&mut row.receiver, row.dst == host),
        ] {
            end.iter_mut()
                .for_each(|end| end.cpu = Some(waiting(is_own)));
        }
    });
    assert_eq!(
        about(&analyze(&starved), host)[0].cause,
        Cause::CoreSaturated
    );
    let all = with_rows(shown, |row| {
        for end in [&mut row.sender, &mut row.receiver].into_iter().flatten() {
            end.cpu = Some(waiting(true));
        }
    });
    assert_eq!(about(&analyze(&all), host)[0].cause, Cause::SlowReceiver);
}

#[test]
fn threads_that_wait_for_a_cpu_at_times() {
    let (shown, host) = run(Slow::Nowhere);
    let at_times = |starves: bool| {
        let rows = with_rows(shown.clone(), |row| {
            let is_slow = (row.src == host || row.dst == host) && row.round.0 % 3 == 0;
            let receiver = row.receiver.as_mut().unwrap();
            if is_slow {
                receiver.bytes /= 4;
            }
            receiver.cpu = Some(waiting(is_slow && starves && row.dst == host));
            row.sender.as_mut().unwrap().cpu = Some(waiting(is_slow && starves && row.src == host));
        });
        let findings = in_words(&analyze(&rows)).findings.into_iter();
        let about = findings.filter(|found| found.subject == Subject::Host { host });
        about.map(|found| found.cause).collect::<Vec<_>>()
    };
    assert_eq!(at_times(true), [Cause::CoreSaturated]);
    assert!(!at_times(false).contains(&Cause::CoreSaturated));
}

#[test]
fn threads_that_wait_everywhere_are_why_a_stage_is_slow() {
    let (shown, _) = run(Slow::Nowhere);
    let slow_stages = |is_starved: bool| {
        let rows = with_rows(shown.clone(), |row| {
            let receiver = row.receiver.as_mut().unwrap();
            if (row.src.0 + row.round.0) % 2 == 0 {
                receiver.bytes /= 3;
                receiver.intervals.clear();
            }
            receiver.cpu = Some(waiting(is_starved));
        });
        let findings = in_words(&analyze(&rows)).findings.into_iter();
        let of_stages = findings.filter(|found| found.sentence.contains("of expected throughput"));
        of_stages.map(|found| found.cause).collect::<Vec<_>>()
    };
    let determined = |causes: &[Cause]| causes.iter().all(|cause| *cause == Cause::CoreSaturated);
    let (starved, otherwise) = (slow_stages(true), slow_stages(false));
    assert!(!starved.is_empty() && determined(&starved), "{starved:?}");
    assert!(
        otherwise.is_empty() || !determined(&otherwise),
        "{otherwise:?}"
    );
}

#[test]
fn a_pair_whose_ends_lacked_cpu_is_no_slow_pair() {
    let (shown, src) = run(Slow::Nowhere);
    let dst = HostId(src.0 + 1);
    let slow_pair = |is_starved| {
        let rows = with_rows(shown.clone(), |row| {
            if (row.src, row.dst) == (src, dst) {
                let receiver = row.receiver.as_mut().unwrap();
                receiver.bytes /= 3;
                receiver.intervals.iter_mut().for_each(|i| i.bytes /= 3);
                receiver.cpu = Some(waiting(is_starved));
            }
        });
        let findings = in_words(&analyze(&rows)).findings.into_iter();
        let subject = Subject::Pair { src, dst };
        findings.filter(|found| found.subject == subject).count()
    };
    assert_eq!(slow_pair(false), 1);
    assert_eq!(slow_pair(true), 0);
}

#[test]
fn hosts_without_cpu_make_no_oversubscription() {
    let truth = Truth::new(&[4, 4], 4.0);
    let across = |is_starved| {
        let rows = with_rows(truth_run(&truth), |row| {
            for end in [&mut row.sender, &mut row.receiver].into_iter().flatten() {
                end.cpu = Some(waiting(is_starved));
                // Waiting that takes nothing from intra-rack flows would be forgiven.
                let left = [3, 9, 5, 7, 4, 8][row.round.0 as usize % 6];
                end.bytes = if is_starved {
                    end.bytes * left / 10
                } else {
                    end.bytes
                };
            }
        });
        analyze(&rows).rack_pairs[0].oversubscription
    };
    assert!(across(false).is_some_and(|ratio| ratio.value > 3.5));
    assert!(across(true).is_none());
}

/// Sets what a row lost, and lets its intervals swing as random losses do.
fn lose(row: &mut ew_model::FlowRecord, share: f64, swings: bool) {
    if let Some(sender) = &mut row.sender {
        let segments = sender.bytes as f64 / 1448.0;
        for stream in &mut sender.streams {
            stream.retransmits = Some((share * segments) as u64);
            if let Some(info) = &mut stream.tcp_info {
                info.send_mss_bytes = 1448;
            }
        }
    }
    if let Some(receiver) = row.receiver.as_mut().filter(|_| swings) {
        let mut intervals = receiver.intervals.iter_mut().enumerate();
        intervals.by_ref().for_each(|(i, interval)| {
            interval.bytes = interval.bytes * [4, 6, 10, 16, 19][i % 5] / 11;
        });
    }
}

#[test]
fn a_lossy_link_is_told_from_a_full_one() {
    for (swings, cause) in [(true, Cause::Loss), (false, Cause::SlowReceiver)] {
        let (shown, host) = run(Slow::Rx);
        let lossy = with_rows(shown, |row| {
            let own = row.dst == host;
            lose(row, if own { 0.03 } else { 0.0002 }, own && swings);
            // Random loss leaves each flow another rate; what is full leaves all the same.
            if let Some(receiver) = row.receiver.as_mut().filter(|_| own && swings) {
                receiver.bytes = receiver.bytes
                    * [6, 8, 10, 12, 13][(row.src.0 + row.round.0) as usize % 5]
                    / 10;
            }
        });
        assert_eq!(
            about(&analyze(&lossy), host)[0].cause,
            cause,
            "swings {swings}"
        );
    }
}

#[test]
fn a_lossy_host_is_no_narrow_uplink() {
    let (shown, host) = run(Slow::Nowhere);
    let has_uplink = |own_share: f64| {
        let rows = with_rows(shown.clone(), |row| {
            let is_own = row.src == host || row.dst == host;
            lose(row, if is_own { own_share } else { 0.0002 }, false);
            let is_across = row.stage.0 == 1;
            if is_across && row.dst == host {
                let receiver = row.receiver.as_mut().unwrap();
                receiver.bytes = receiver.bytes * 2 / 5;
            }
        });
        let findings = analyze(&rows).verdict.findings;
        findings.iter().any(|found| found.cause == Cause::Uplink)
    };
    // One host's flows are no uplink, whatever they lose.
    assert!(!has_uplink(0.0002));
    assert!(!has_uplink(0.03));
}

#[test]
fn retransmissions_of_a_host_at_full_rate_accuse_nobody() {
    let (shown, host) = run(Slow::Nowhere);
    let lossy = with_rows(shown, |row| {
        let own = row.src == host || row.dst == host;
        lose(row, if own { 0.02 } else { 0.0002 }, false);
    });
    let analysis = analyze(&lossy);
    let losses = analysis
        .verdict
        .findings
        .iter()
        .filter(|f| f.cause == Cause::Loss);
    let subjects: Vec<Subject> = losses.map(|f| f.subject).collect();
    assert_eq!(subjects, []);
}

#[test]
fn goodput_that_lacks_just_what_is_repeated_shows_loss() {
    let (shown, host) = run(Slow::Nowhere);
    let of_host = with_rows(shown, |row| {
        let own = row.src == host || row.dst == host;
        lose(row, if own { 0.02 } else { 0.0002 }, false);
        if let Some(receiver) = row.receiver.as_mut().filter(|_| own) {
            receiver.bytes = receiver.bytes * 98 / 100;
        }
    });
    let (from, to) = (RackId(0), RackId(1));
    for (analysis, subject) in [
        (analyze(&of_host), Subject::Host { host }),
        (
            lossy_across(|_| true, |_| 0.97),
            Subject::RackPair { from, to },
        ),
    ] {
        let losses = analysis.verdict.findings.iter();
        let losses = losses.filter(|found| found.cause == Cause::Loss);
        let subjects: Vec<Subject> = losses.map(|found| found.subject).collect();
        assert_eq!(subjects, [subject]);
    }
}

#[test]
fn what_everybody_loses_accuses_nobody() {
    let (shown, _) = run(Slow::Nowhere);
    let analysis = analyze(&with_rows(shown, |row| lose(row, 0.01, false)));
    assert_eq!(analysis.verdict.findings, []);
}

/// Without a slow host, where flows between racks lose in the given stages; `left` is what that
/// leaves of their rates.
fn lossy_across(
    in_stage: impl Fn(u32) -> bool,
    left: impl Fn(&ew_model::FlowRecord) -> f64,
) -> Analysis {
    let (shown, _) = run(Slow::Nowhere);
    let inventory = shown.manifest.inventory.clone();
    analyze(&with_rows(shown, |row| {
        let loses = inventory.crosses_racks(row.src, row.dst) && in_stage(row.stage.0);
        lose(row, if loses { 0.03 } else { 0.0002 }, loses);
        if loses {
            let left = left(row);
            let receiver = row.receiver.as_mut().unwrap();
            receiver.bytes = (receiver.bytes as f64 * left) as u64;
        }
    }))
}

/// Of two racks the same flows cross both's uplinks.
#[test]
fn lossy_uplinks_of_two_racks_are_one_finding_where_flows_that_share_nothing_lose_rate() {
    for (least, step) in [(0.25, 0.1), (0.6, 0.1)] {
        let left = |row: &ew_model::FlowRecord| {
            least + step * f64::from((row.src.0 * 5 + row.dst.0 * 3 + row.round.0) % 5)
        };
        let findings = lossy_across(|_| true, left).verdict.findings;
        let losses = findings.iter().filter(|f| f.cause == Cause::Loss);
        let subjects: Vec<Subject> = losses.map(|f| f.subject).collect();
        let (from, to) = (RackId(0), RackId(1));
        assert_eq!(subjects, [Subject::RackPair { from, to }], "{findings:#?}");
    }
}

#[test]
fn retransmissions_between_racks_alone_are_no_fault() {
    for stages in [|_| true, |stage| stage == 1] {
        let findings = lossy_across(stages, |_| 1.0).verdict.findings;
        assert!(
            findings.iter().all(|f| f.severity < Severity::Fault),
            "{findings:#?}"
        );
    }
}

#[test]
fn figures_of_stages_and_points_over_time() {
    let (shown, host) = run(Slow::Nowhere);
    let analysis = analyze(&with_counters(shown, |_| false, |_, _| {}));
    let figures = &analysis.hosts[host.index()];
    assert_eq!(figures.stages.len(), 3);
    let stage = &figures.stages[0];
    assert_eq!(stage.rounds, 6);
    let close = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 0.01 * wanted;
    assert!(close(stage.tx_bits_per_sec, 80e6), "{stage:?}");
    assert!(close(stage.busy_share, 0.3), "{stage:?}");
    assert!(
        stage.sent_bits_per_sec.unwrap() > 0.9 * GOODPUT,
        "{stage:?}"
    );
    assert!(
        figures
            .series
            .windows(2)
            .all(|pair| pair[0].t_ns < pair[1].t_ns)
    );
    let (start_ns, end_ns) = analysis.stages[0].span_ns.unwrap();
    assert_eq!(start_ns, 10 * SECOND + 300_000_000);
    assert_eq!(end_ns - start_ns, 5 * 2_500_000_000 + 2 * SECOND);
}
