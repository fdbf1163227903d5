//! A subset of the fault suite (`make faults`): one known fault each, and what is reported about
//! it. Kinds that depend on how fast this machine's CPUs and disks are, and on what else runs on
//! them, are in the suite alone.

use crate::common::{Finished, TestLab, can_run_labs, word};
use serde_json::Value;

/// So slow that several labs at once leave CPU to spare.
const NIC: &str = "20M";
/// Faster than a small buffer lets a flow be.
const FAST_NIC: &str = "50M";

#[test]
fn a_small_receive_buffer_is_named() {
    assert_named("r1h2", FAST_NIC, "receive-buffer: 4096", "receive-window");
}

#[test]
fn a_small_send_buffer_is_named() {
    assert_named("r2h1", FAST_NIC, "send-buffer: 4096", "send-buffer");
}

#[test]
fn another_mtu_is_named() {
    assert_named("r2h3", NIC, "mtu: 1400", "mtu");
}

#[test]
fn a_neighbour_that_sends_is_named() {
    assert_named("r1h1", NIC, "neighbour: 10M", "background-traffic");
}

#[test]
fn a_link_that_loses_packets_is_named() {
    assert_named("r1h3", NIC, "loss: 5%", "loss");
}

/// A full path loses what does not fit: that is no fault of its own.
#[test]
fn a_narrow_uplink_is_named_and_not_its_losses() {
    let Some(finished) = run("rack: r2, uplink: 16M", NIC) else {
        return;
    };
    let causes: Vec<String> = accusing(&finished).into_iter().map(|(c, _)| c).collect();
    assert!(causes.iter().any(|cause| cause == "uplink"), "{causes:?}");
    assert!(causes.iter().all(|cause| cause == "uplink"), "{causes:?}");
}

/// The finding with this cause is the worst one about the subject, and no other host is accused.
fn assert_named(target: &str, nic: &str, fault: &str, cause: &str) {
    let Some(finished) = run(&format!("host: {target}, {fault}"), nic) else {
        return;
    };
    let accusing = accusing(&finished);
    let about_it = accusing
        .iter()
        .find(|(_, subject_name)| subject_name == target);
    let said = &finished.json["verdict"]["findings"];
    assert_eq!(
        about_it.map(|(cause, _)| cause.as_str()),
        Some(cause),
        "{said:#}"
    );
    let others: Vec<_> = accusing.iter().filter(|(_, p)| p != target).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// What a lab with this fault is reported to have. `None` where there can be no lab.
fn run(fault: &str, nic: &str) -> Option<Finished> {
    if !can_run_labs() {
        return None;
    }
    let lab = TestLab::up(&format!(
        "racks: 2\nhosts-per-rack: 3\nnic: {nic}\nfaults: [{{{fault}}}]\n"
    ));
    let scenario = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../bench/measure/faults.yaml"
    );
    Some(lab.run(scenario, &SLOWER))
}

/// A busy machine needs longer windows and gaps than the suite's.
const SLOWER: [&str; 6] = ["--set", "duration=1s", "--set", "gap=500ms", "--seed", "7"];

/// (cause, host or rack) of what is worse than worth knowing. Of a rack pair the second rack: which
/// of two racks has the narrow uplink cannot be known.
fn accusing(finished: &Finished) -> Vec<(String, String)> {
    let inventory = &finished.json["run"]["inventory"];
    let name = |list: &str, number: &Value| {
        let index = usize::try_from(number.as_u64().unwrap()).unwrap();
        word(&inventory[list][index]["name"])
    };
    let findings = finished.json["verdict"]["findings"].as_array().unwrap();
    let accusing = findings
        .iter()
        .filter(|finding| finding["severity"] != "info" && finding["cause"] != "cells-missing");
    accusing
        .map(|finding| {
            let subject = &finding["subject"];
            let subject_name = match word(&subject["type"]).as_str() {
                "host" => name("hosts", &subject["host"]),
                "pair" => name("hosts", &subject["src"]),
                "rack-pair" => name("racks", &subject["to"]),
                other => other.into(),
            };
            (word(&finding["cause"]), subject_name)
        })
        .collect()
}
