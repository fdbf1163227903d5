//! Simulated runs against what is known of a network without noise, and what noise may and may not
//! do.

use ew_model::record::FlowOutcome;
use ew_model::topology::{
    BucketSpec, CongestionControl, HostSpec, PathSpec, Queue, RackSpec, Topology,
};
use ew_model::{FlowRecord, Outcome, Plan, Run, RunEvent};
use ew_sim::{Drift, Noise, simulate};
use proptest::prelude::*;

const NIC: u64 = 1_000_000_000;
/// Payload over frames: 1448 of 1514 bytes.
const GOODPUT: f64 = 1e9 * 1448.0 / 1514.0;

/// Racks of equal hosts; the members of each uplink carry `uplink` together.
fn topology(sizes: &[usize], paths: usize, uplink: impl Fn(usize) -> u64) -> Topology {
    let rack = |number: usize, size: usize| RackSpec {
        name: format!("r{number}"),
        hosts: (1..=size)
            .map(|host| HostSpec::healthy(&format!("r{number}h{host}"), NIC))
            .collect(),
        paths: vec![PathSpec::healthy(uplink(size) / paths as u64); paths],
        ..RackSpec::default()
    };
    Topology {
        racks: (1..)
            .zip(sizes)
            .map(|(number, size)| rack(number, *size))
            .collect(),
        ..Topology::default()
    }
}

fn plan(topology: &Topology, text: &str, seed: u64) -> Plan {
    let scenario = ew_plan::scenario::parse(text, "test.yaml", &[]).expect("a scenario");
    ew_plan::plan(&scenario, &topology.inventory(), seed).expect("a plan")
}

fn cross(topology: &Topology, streams: u32, samples: u32, seed: u64) -> Plan {
    let text = format!(
        "name: x\ndefaults: {{samples: {samples}, streams: {streams}}}\ntests:\n  - name: across\n    pattern: cross-rack\n"
    );
    plan(topology, &text, seed)
}

fn rates(run: &Run) -> Vec<f64> {
    run.flows
        .iter()
        .filter_map(FlowRecord::bits_per_sec)
        .collect()
}

/// Mean over all flows, as a share of a NIC's goodput.
fn attained(topology: &Topology, streams: u32, noise: &Noise) -> f64 {
    let run = simulate(topology, &cross(topology, streams, 20, 5), 5, noise);
    let rates = rates(&run);
    rates.iter().sum::<f64>() / rates.len() as f64 / GOODPUT
}

#[test]
fn a_pipe_is_shared_evenly_where_nothing_disturbs() {
    let topology = topology(&[4, 4], 1, |hosts| hosts as u64 * NIC / 4);
    let run = simulate(&topology, &cross(&topology, 1, 3, 1), 1, &Noise::none());
    assert_eq!(rates(&run).len(), 24);
    for rate in rates(&run) {
        assert!((rate / (GOODPUT / 4.0) - 1.0).abs() < 1e-3, "{rate}");
    }
}

/// The measurement review's independent model of the same: one stream 0.83 at 40 hosts over 8
/// members, eight 0.99.
#[test]
fn hashing_costs_single_streams_and_hardly_many() {
    let topology = topology(&[40, 40], 8, |hosts| hosts as u64 * NIC);
    let (one, eight) = (
        attained(&topology, 1, &Noise::none()),
        attained(&topology, 8, &Noise::none()),
    );
    assert!((0.78..0.88).contains(&one), "{one}");
    assert!((0.97..1.0).contains(&eight), "{eight}");
}

#[test]
fn a_run_repeats_and_another_seed_differs() {
    let topology = topology(&[3, 3], 4, |hosts| hosts as u64 * NIC);
    let qualify = ew_plan::scenario::builtin("qualify").unwrap();
    let plan = plan(&topology, qualify, 1);
    let run = |seed| simulate(&topology, &plan, seed, &Noise::starved());
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_events_are_those_of_the_run_in_order_of_time() {
    let topology = topology(&[3, 3], 4, |hosts| hosts as u64 * NIC);
    let qualify = ew_plan::scenario::builtin("qualify").unwrap();
    let plan = plan(&topology, qualify, 1);
    let run = simulate(&topology, &plan, 1, &Noise::default());
    let events = ew_sim::record(&topology, &plan, 1, &Noise::default());
    assert!(events.is_sorted_by_key(|event| event.at_ns));
    let mut rows = Vec::new();
    let mut stages_left = plan.stages.len();
    for event in &events {
        match &event.event {
            RunEvent::RoundFinished { records, .. } => rows.extend(records.iter().cloned()),
            RunEvent::StageFinished { .. } => stages_left -= 1,
            RunEvent::HostUp { host, facts, .. } => assert_eq!(run.facts[host], *facts),
            _ => {}
        }
    }
    assert_eq!((rows, stages_left), (run.flows, 0));
    let last = events.last().map(|event| &event.event);
    assert!(matches!(
        last,
        Some(RunEvent::RunFinished {
            outcome: Outcome::Complete,
            ..
        })
    ));
}

#[test]
fn a_black_hole_takes_its_share_of_connections_and_a_dead_link_none() {
    let mut topology = topology(&[20, 20], 4, |hosts| hosts as u64 * NIC);
    let missing = |topology: &Topology| {
        let run = simulate(topology, &cross(topology, 1, 200, 2), 2, &Noise::default());
        let all = run.flows.len() as f64;
        let lost = run
            .flows
            .iter()
            .filter(|row| row.outcome != FlowOutcome::Measured);
        lost.count() as f64 / all
    };
    assert_eq!(missing(&topology), 0.0);
    topology.racks[0].paths[2].up.black_hole = true;
    // A quarter of the data's ways out, or of the acknowledgements'.
    let share = missing(&topology);
    assert!((0.2..0.3).contains(&share), "{share}");
    topology.racks[0].paths[2].link_up = false;
    assert_eq!(missing(&topology), 0.0);
}

#[test]
fn a_lag_gives_one_stream_one_member() {
    let mut topology = topology(&[4, 4], 1, |hosts| hosts as u64 * NIC);
    for host in topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts) {
        host.nic.lag_members = 2;
    }
    assert!((attained(&topology, 1, &Noise::none()) - 0.5).abs() < 1e-3);
    assert!(attained(&topology, 16, &Noise::none()) > 0.8);
}

#[test]
fn credits_run_out() {
    let mut topology = topology(&[2, 2], 1, |hosts| hosts as u64 * NIC);
    for host in topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts) {
        host.shaper.bucket = Some(BucketSpec {
            sustained_bits_per_sec: NIC / 10,
            capacity_bytes: 1_000_000_000,
        });
    }
    let run = simulate(&topology, &cross(&topology, 1, 20, 1), 1, &Noise::none());
    let rates = rates(&run);
    assert!((rates[0] / GOODPUT - 1.0).abs() < 1e-3);
    assert!(rates[rates.len() - 1] < 0.15 * GOODPUT);
}

#[test]
fn random_loss_slows_cubic_and_hardly_bbr_and_is_retransmitted() {
    let mut topology = topology(&[2, 2], 1, |hosts| hosts as u64 * 10 * NIC);
    for host in topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts) {
        host.nic.tx_bits_per_sec = 10 * NIC;
        host.nic.rx_bits_per_sec = 10 * NIC;
    }
    topology.racks[0].paths[0].up.loss_share = 0.01;
    let from_lossy = |topology: &Topology| {
        let run = simulate(topology, &cross(topology, 1, 6, 1), 1, &Noise::default());
        let rows = run.flows.into_iter().filter(|row| row.src.0 < 2);
        rows.collect::<Vec<_>>()
    };
    let rows = from_lossy(&topology);
    assert_eq!(rows.len(), 12);
    for row in &rows {
        assert!(row.bits_per_sec().unwrap() < 2e9);
        let segments = row.sender.as_ref().unwrap().bytes as f64 / 1448.0;
        let share = row.retransmits().unwrap() as f64 / segments;
        assert!((0.009..0.011).contains(&share), "{share}");
    }
    for host in topology.racks.iter_mut().flat_map(|rack| &mut rack.hosts) {
        host.congestion_control = CongestionControl::Bbr;
    }
    let rates = from_lossy(&topology);
    let rates = rates.iter().map(|row| row.bits_per_sec().unwrap());
    assert!(rates.sum::<f64>() > 7e9 * 12.0);
}

#[test]
fn what_starves_is_recorded() {
    let topology = topology(&[8, 8], 1, |hosts| hosts as u64 * NIC);
    let run = simulate(&topology, &cross(&topology, 1, 30, 3), 3, &Noise::starved());
    let waits = run.flows.iter().filter_map(|row| {
        let end = row.receiver.as_ref()?;
        Some((
            end.cpu?.engine_wait_ns? as f64 / end.window_ns as f64,
            row.bits_per_sec()?,
        ))
    });
    let (starved, quiet): (Vec<_>, Vec<_>) = waits.partition(|(wait, _)| *wait > 0.1);
    let mean = |of: &[(f64, f64)]| of.iter().map(|(_, rate)| rate).sum::<f64>() / of.len() as f64;
    assert!(starved.len() > 50 && quiet.len() > 50);
    assert!(mean(&starved) < 0.95 * mean(&quiet));
    assert!(
        run.flows
            .iter()
            .any(|row| row.outcome != FlowOutcome::Measured)
    );
}

#[test]
fn drift_moves_the_level_over_the_run() {
    let topology = topology(&[4, 4], 1, |hosts| hosts as u64 * NIC);
    let noise = Noise {
        drift: Drift::Falling(0.1),
        ..Noise::none()
    };
    let run = simulate(&topology, &cross(&topology, 1, 40, 1), 1, &noise);
    let rates = rates(&run);
    assert!(rates[0] > 0.99 * GOODPUT);
    assert!((0.89..0.92).contains(&(rates[rates.len() - 1] / GOODPUT)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No noise makes more of a link than it carries.
    #[test]
    fn nothing_exceeds_its_links(seed in 0_u64..1000, paths in 1_usize..5, fifo in any::<bool>(), level in 0.0_f64..4.0) {
        let mut topology = topology(&[5, 3], paths, |hosts| hosts as u64 * NIC / 2);
        topology.queue = if fifo { Queue::Fifo } else { Queue::Fair };
        let noise = Noise { level, ..Noise::default() };
        let run = simulate(&topology, &cross(&topology, 2, 3, seed), seed, &noise);
        for sample in 0..3 {
            let rows = run.flows.iter().filter(|row| row.sample == sample && row.src.0 < 5);
            let sum: f64 = rows.filter_map(FlowRecord::bits_per_sec).sum();
            prop_assert!(sum <= 2.5 * GOODPUT * 1.001, "{sum}");
        }
    }
}
