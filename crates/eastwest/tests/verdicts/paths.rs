//! Single paths of a routed fabric, named by the routers that answer on them.

use crate::common::{TestLab, can_run_labs};
use serde_json::Value;

/// What qualify has for this, and not what it has for hosts and congestion.
const SCENARIO: &str = "
name: paths
defaults: {workload: tcp-stream, message-size: 128K, duration: 1s, warm-up: 300ms, gap: 200ms}
tests:
  - {name: intra-rack, pattern: permutation, streams: 8, samples: 6, interleaved: true}
  - {name: cross-rack, pattern: cross-rack, streams: 8, samples: 6, interleaved: true}
  - {name: single flow, pattern: cross-rack, streams: 1, samples: 12, interleaved: true}
  - {name: paths, pattern: {paths: {shifts: 2}}, streams: 8, source-ports: pinned, total-rate: 50%, samples: 4}
  - {name: path trace, pattern: other-tests, workload: trace, streams: 1, duration: 3s, samples: 1}
";

/// Path 3 of r2 carries a quarter out of the rack, and path 2 of r3 is down. The lab numbers the
/// links above rack R from 198.19.R.1 by four, the upper end first.
#[test]
fn a_narrow_path_and_one_that_is_down_are_named_by_their_routers() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up(
        "racks: 3\nhosts-per-rack: 3\nnic: 40M\npaths: 4\nqueue: fifo\nfaults:\n  - {rack: r2, path: 3, up: 10M}\n  \
         - {rack: r3, path: 2, link: down}\n",
    );
    let scenario = lab.work.path().join("paths.yaml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let finished = lab.run(scenario.to_str().unwrap(), &["--seed", "11"]);
    let narrow = finding(&finished.json, "bad-path");
    assert!(
        narrow.contains("r2 TX") && narrow.contains("via 198.19.2.9"),
        "{narrow}"
    );
    let lost = finding(&finished.json, "lost-path");
    assert!(lost.contains("r3: 3 of 4 paths in use"), "{lost}");
    let hosts = finished
        .findings()
        .into_iter()
        .filter(|(cause, _)| cause.starts_with("slow"));
    assert_eq!(hosts.collect::<Vec<_>>(), []);
}

/// The sentence of the only finding with this cause.
fn finding(json: &Value, cause: &str) -> String {
    let all = json["verdict"]["findings"].as_array().unwrap();
    let of_cause: Vec<&Value> = all.iter().filter(|f| f["cause"] == cause).collect();
    assert_eq!(of_cause.len(), 1, "{cause}: {all:#?}");
    of_cause[0]["sentence"].as_str().unwrap().to_owned()
}
