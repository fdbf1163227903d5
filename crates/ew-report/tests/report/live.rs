//! The live view's lines and bars, and the dry run's table.

use crate::common;
use ew_model::event::RunEvent;
use ew_model::facts::HostFacts;
use ew_model::inventory::HostId;
use ew_model::latency::{Histogram, Latency};
use ew_model::plan::{End, Flow, FlowId, Plan, Round, RoundIndex, Stage, StageIndex};
use ew_model::record::{EndRecord, FlowOutcome, FlowRecord};
use ew_model::run::Outcome;
use ew_model::scenario::{Expect, MeshMode, Pattern};
use ew_model::workload::{Workload, WorkloadKind};
use ew_report::live::{Live, LiveState};
use ew_report::{TextStyle, dry_run};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn plain_lines() {
    insta::assert_snapshot!(played(false, false));
}

#[test]
fn quiet_shows_only_trouble() {
    insta::assert_snapshot!(played(true, true));
}

#[test]
fn bars_show_the_same() {
    let text = played(true, false);
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("bars.ansi"),
        &text,
    )
    .unwrap();
    for part in [
        "inside",
        "r1h02 did not come up: ssh: Connection refused",
        "3 of 4 hosts up, 1 failed",
        "median 191 Mb/s, 1 of 2 missing",
        "run ended: partial",
        "\u{1b}[",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
}

#[test]
fn progress_does_not_flood() {
    let out = Shared::default();
    let mut live = Live::new(out.clone(), false, false, false);
    live.handle(
        0,
        &RunEvent::RunStarted {
            id: String::from("20261122T120000Z-demo-1a2b"),
            inventory: common::inventory(2, 2),
            plan: plan(),
        },
    );
    for second in 0..60 {
        live.handle(
            second * SECOND,
            &RunEvent::Progress {
                bits_per_sec: Some(1e9),
                hosts_alive: 4,
                left_ns: SECOND,
            },
        );
    }
    live.finish();
    assert_eq!(out.text().lines().count(), 1 + 5);
}

#[test]
fn followed_flows_have_a_line_each_second() {
    let out = Shared::default();
    let mut live = Live::new(out.clone(), false, false, false);
    let inventory = common::inventory(2, 2);
    let began = RunEvent::RunStarted {
        id: String::from("20261122T120000Z-demo-1a2b"),
        inventory,
        plan: plan(),
    };
    live.handle(0, &began);
    let progress = |part: u64, bytes, transactions, retransmits| RunEvent::FlowProgress {
        stage: StageIndex(0),
        flow: FlowId(0),
        src: HostId(0),
        dst: HostId(2),
        offset_ns: part * SECOND,
        length_ns: SECOND / 2,
        bytes,
        transactions,
        retransmits,
    };
    live.handle(SECOND, &progress(0, 588_125_000, None, Some(12)));
    live.handle(2 * SECOND, &progress(1, 588_125_000, None, None));
    live.handle(3 * SECOND, &progress(11, 640_000, Some(10_000), None));
    live.finish();
    insta::assert_snapshot!(out.text());
}

#[test]
fn requests_end_with_their_time() {
    let out = Shared::default();
    let mut live = Live::new(out.clone(), false, false, false);
    let (stage, round) = (StageIndex(0), RoundIndex(0));
    let mut answered = record(0, Some(5e6));
    answered.sender = Some(EndRecord {
        latency: Some(Latency {
            times: Histogram::of(48_200, 100),
            uncorrected: None,
        }),
        ..EndRecord::default()
    });
    let records = vec![answered, record(1, None)];
    let over = RunEvent::RoundFinished {
        stage,
        round,
        records,
    };
    live.handle(SECOND, &over);
    live.handle(SECOND, &RunEvent::StageFinished { stage });
    live.finish();
    let expected = "1 round, median 48.2 µs, 1 of 2 missing";
    assert!(out.text().contains(expected), "{}", out.text());
}

#[test]
fn a_closed_writer_does_not_end_the_run() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }
    for terminal in [true, false] {
        let mut live = Live::new(Closed, terminal, true, false);
        for (at_ns, event) in story() {
            live.handle(at_ns, &event);
        }
        live.finish();
    }
}

#[test]
fn dry_run_table() {
    let style = TextStyle {
        width: 100,
        color: false,
        details: true,
    };
    insta::assert_snapshot!(dry_run(
        &plan(),
        &common::inventory(2, 2),
        "network 198.18.0.0/16 of every host",
        &[Some(3 << 30), None],
        &style
    ));
}

/// As the live page and a webhook get it.
#[test]
fn the_state_of_a_page_is_what_happened_so_far() {
    let mut state = LiveState::default();
    let parsed = |text: String| -> serde_json::Value { serde_json::from_str(&text).unwrap() };
    assert_eq!(parsed(state.json(0, false))["status"], "starting");
    for (at_ns, event) in story() {
        state.take(at_ns, &event);
    }
    let document = parsed(state.json(9, true));
    assert_eq!(document["news"], 9);
    assert_eq!(document["over"], false, "its report is still to be written");
    assert_eq!(
        document["status"],
        "over: partial: hosts or pairs are missing"
    );
    assert_eq!(document["host_rows"].as_array().unwrap().len(), 4);
    assert_eq!(document["host_rows"][1]["state"], "failed");
    assert_eq!(document["rounds"][0]["stage"], "inside");
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("Connection refused"), "{warnings}");
    state.close();
    assert_eq!(parsed(state.json(10, false))["over"], true);
    let progress = parsed(state.progress_json());
    assert_eq!(progress["kind"], "progress");
    assert_eq!(progress["rounds_done"], document["rounds_done"]);
}

#[test]
fn a_long_run_does_not_grow_its_state() {
    let mut state = LiveState::default();
    let progress = |i: u64| RunEvent::Progress {
        bits_per_sec: Some(1e9 + i as f64),
        hosts_alive: 4,
        left_ns: SECOND,
    };
    for i in 0..20_000 {
        state.take(i * SECOND, &progress(i));
        let message = format!("warning {i}");
        state.take(i * SECOND, &RunEvent::Warning { message });
    }
    let text = state.json(1, false);
    assert!(text.len() < 50_000, "{} bytes", text.len());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let goodput = document["goodput"].as_array().unwrap();
    let last = goodput.last().unwrap();
    // Of all the run, from its beginning to its end, at the mean of what was joined.
    assert!(goodput.len() >= 300, "{}", goodput.len());
    assert!(last[0].as_f64().unwrap() > 19_900.0, "{last}");
    let off = last[1].as_f64().unwrap() - 1e9 - last[0].as_f64().unwrap();
    assert!(off.abs() < 100.0, "{last}");
}

fn played(is_terminal: bool, quiet: bool) -> String {
    let out = Shared::default();
    let mut live = Live::new(out.clone(), is_terminal, false, quiet);
    for (at_ns, event) in story() {
        live.handle(at_ns, &event);
    }
    live.finish();
    out.text()
}

fn story() -> Vec<(u64, RunEvent)> {
    let mut events = launch();
    events.extend(stage_and_end());
    events
}

fn launch() -> Vec<(u64, RunEvent)> {
    let up = |host| RunEvent::HostUp {
        address: None,
        host: HostId(host),
        facts: HostFacts::default(),
        launch_ns: SECOND,
    };
    vec![
        (
            0,
            RunEvent::RunStarted {
                id: String::from("20261122T120000Z-demo-1a2b"),
                inventory: common::inventory(2, 2),
                plan: plan(),
            },
        ),
        (SECOND, up(0)),
        (SECOND, up(2)),
        (
            2 * SECOND,
            RunEvent::HostFailed {
                host: HostId(1),
                message: "ssh: Connection refused\r\n".into(),
            },
        ),
        (2 * SECOND, up(3)),
    ]
}

fn stage_and_end() -> Vec<(u64, RunEvent)> {
    let stage = StageIndex(0);
    vec![
        (
            3 * SECOND,
            RunEvent::StageStarted {
                stage,
                hosts_alive: 3,
            },
        ),
        (
            4 * SECOND,
            RunEvent::RoundFinished {
                stage,
                round: RoundIndex(0),
                records: vec![record(0, Some(191e6)), record(1, None)],
            },
        ),
        (
            5 * SECOND,
            RunEvent::Progress {
                bits_per_sec: Some(382e6),
                hosts_alive: 3,
                left_ns: 41_300_000_000,
            },
        ),
        (
            14 * SECOND,
            RunEvent::Progress {
                bits_per_sec: Some(382e6),
                hosts_alive: 3,
                left_ns: 32_300_000_000,
            },
        ),
        (
            15 * SECOND,
            RunEvent::HostLost {
                host: HostId(3),
                message: "no answer for 5 s".into(),
            },
        ),
        (
            16 * SECOND,
            RunEvent::Warning {
                message: "the clock of r1h01 drifts".into(),
            },
        ),
        (17 * SECOND, RunEvent::HostReturned { host: HostId(3) }),
        (18 * SECOND, RunEvent::StageFinished { stage }),
        (19 * SECOND, RunEvent::Interrupted),
        (
            20 * SECOND,
            RunEvent::RunFinished {
                outcome: Outcome::Partial,
                unclean: vec![("r2h02".into(), "no answer".into())],
            },
        ),
    ]
}

fn record(flow: u32, bits_per_sec: Option<f64>) -> FlowRecord {
    FlowRecord {
        is_aggressor: false,
        stage: StageIndex(0),
        round: RoundIndex(0),
        flow: FlowId(flow),
        sample: 0,
        src: HostId(0),
        dst: HostId(2),
        outcome: match bits_per_sec {
            Some(_) => FlowOutcome::Measured,
            None => FlowOutcome::Missing {
                reason: "r1h02 never came up".into(),
            },
        },
        sender: None,
        receiver: bits_per_sec.map(|rate| EndRecord {
            bytes: (rate / 8.0) as u64,
            window_ns: SECOND,
            ..EndRecord::default()
        }),
    }
}

fn plan() -> Plan {
    let flow = |id, src, dst| Flow {
        id: FlowId(id),
        src: HostId(src),
        dst: HostId(dst),
        opened_by: End::Src,
        lane: None,
        is_aggressor: false,
        traces: None,
    };
    let stage = |name: &str, pattern, flows: Vec<Flow>, rounds: usize| Stage {
        name: name.into(),
        pattern,
        workload: Workload::of(WorkloadKind::TcpStream),
        duration_ns: SECOND,
        warm_up_ns: SECOND / 2,
        gap_ns: SECOND / 4,
        auto: None,
        sweep: None,
        rounds: (0..rounds)
            .map(|i| Round {
                sample: i as u32,
                senders_per_rack: None,
                flows: flows.clone(),
            })
            .collect(),
    };
    Plan {
        scenario: "qualify".into(),
        seed: 42,
        expect: Expect::default(),
        stages: vec![
            stage(
                "inside",
                Pattern::Permutation,
                vec![flow(0, 0, 1), flow(1, 1, 0)],
                6,
            ),
            stage(
                "mesh",
                Pattern::Mesh {
                    mode: MeshMode::Isolated,
                    max_rounds: None,
                },
                vec![flow(2, 0, 2)],
                3,
            ),
        ],
        random_order: false,
        dropped_tests: vec!["incast".into()],
        interleaved: Vec::new(),
        host_rates: Vec::new(),
        rate_limit: None,
        line_rates: Vec::new(),
    }
}
