//! Flow completion times through the program, in a lab.

use crate::common::{TestLab, can_run_labs};
use serde_json::Value;

#[test]
fn messages_at_a_load_are_compared_with_the_same_sizes_alone() {
    if !can_run_labs() {
        return;
    }
    let lab = TestLab::up("racks: 2\nhosts-per-rack: 4\nnic: 100M\noversubscription: 1\n");
    let unknown = lab.run("flow-completion", &["--set", "samples=1"]);
    let said = unknown.json["error"]["message"].as_str().unwrap();
    assert!(said.contains("--expect-nic"), "{said}");
    let shortened = ["--set", "samples=2", "--expect-nic", "100M", "--seed", "7"];
    let finished = lab.run("flow-completion", &shortened);
    let stages = finished.json["flow_completion"].as_array().unwrap();
    assert_eq!(stages.len(), 4, "{stages:?}");
    for stage in stages {
        check(stage);
    }
    assert_eq!(stages[0]["load"], Value::Null);
}

fn check(stage: &Value) {
    assert_eq!(stage["baseline_stage"], "alone");
    let sizes = stage["sizes"].as_array().unwrap();
    let bytes: Vec<u64> = sizes.iter().map(|s| s["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.len() > 5 && bytes.is_sorted(), "{bytes:?}");
    let messages: u64 = sizes.iter().map(|s| s["messages"].as_u64().unwrap()).sum();
    assert!(messages > 50, "{messages}");
    // A hundred bytes are back long before a megabyte is through.
    let alone = |size: &Value| size["alone_ns"].as_f64().unwrap();
    assert!(alone(&sizes[0]) < alone(sizes.last().unwrap()));
    if let Some(load) = stage["load"].as_f64() {
        // A few seconds of messages that differ by four orders of magnitude.
        let achieved = stage["achieved_load"]["value"].as_f64().unwrap();
        assert!(
            (0.1 * load..2.0 * load).contains(&achieved),
            "{achieved} of {load}"
        );
        assert!(stage["sentence"].as_str().unwrap().contains("line rate"));
    }
}
