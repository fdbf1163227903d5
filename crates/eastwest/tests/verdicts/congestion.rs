//! What others' load costs victims, in labs that keep flows apart and in labs that do not.

use crate::common::{Finished, TestLab, can_run_labs};

/// Round trips and large flows, alone and under a permutation that fills the uplinks.
const SCENARIO: &str = "
name: congestion
order: random
defaults: {duration: 1s, warm-up: 500ms, gap: 300ms, samples: 6}
tests:
  - {name: round trips, pattern: congestion, workload: tcp-rr}
  - {name: round trips under permutation, pattern: {congestion: {aggressors: permutation}}, workload: tcp-rr}
";

#[test]
fn one_queue_for_all_costs_victims_five_times_as_much_as_fair_queues() {
    let (Some(fifo), Some(fair)) = (run("fifo"), run("fair")) else {
        return;
    };
    let (fifo, fair) = (impact(&fifo), impact(&fair));
    assert!(fifo >= 5.0 * fair, "x{fifo:.1} against x{fair:.1}");
}

/// How many times longer round trips take.
fn impact(finished: &Finished) -> f64 {
    let impacts = finished.json["congestion"].as_array().unwrap();
    assert_eq!(impacts.len(), 1, "{impacts:?}");
    let carried = &impacts[0]["aggressors_bits_per_sec"]["value"];
    // Two uplinks of 40 Mb/s, less headers.
    assert!(carried.as_f64().unwrap() > 60e6, "{carried}");
    impacts[0]["mean"]["factor"]["value"].as_f64().unwrap()
}

fn run(queue: &str) -> Option<Finished> {
    if !can_run_labs() {
        return None;
    }
    let lab = TestLab::up(&format!(
        "racks: 2\nhosts-per-rack: 4\nnic: 40M\noversubscription: 4\nqueue: {queue}\n"
    ));
    let scenario = lab.work.path().join("congestion.yaml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    Some(lab.run(&scenario.to_string_lossy(), &["--seed", "7"]))
}
