//! iperf3's client, our server.

use crate::common::{OurServer, iperf3_is_there, their_client};
use serde_json::Value;

/// 50 ms, and more where a busy machine let one side miss that altogether.
const BLOCKS: [u64; 3] = [100, 400, 1600];
const BLOCK_BYTES: u64 = 10_000;

/// Every protocol, direction and number of streams, with each way to end.
#[test]
fn the_whole_matrix() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start();
    for protocol in ["", "-u"] {
        for direction in ["", "-R", "--bidir"] {
            for (streams, rate) in [("", "160M"), ("-P 4", "40M")] {
                for unit in ["-k", "-n"] {
                    let fixed =
                        format!("{protocol} {direction} {streams} -l {BLOCK_BYTES} -b {rate}");
                    try_cell(&server, &fixed, unit);
                }
            }
        }
    }
}

#[test]
fn a_test_by_time_is_the_same_at_both_ends() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start();
    let reported = their_client(server.address, "-t 1 -P 2 -b 50M");
    assert!(reported.success, "{}", reported.text);
    let ended = server.report().ended.unwrap();
    let ours: u64 = ended
        .streams
        .iter()
        .map(|s| s.receiver.unwrap().bytes)
        .sum();
    let theirs: u64 = ended.streams.iter().map(|s| s.sender.unwrap().bytes).sum();
    let end = &reported.json["end"];
    assert_eq!(end["sum_received"]["bytes"].as_u64(), Some(ours));
    assert_eq!(end["sum_sent"]["bytes"].as_u64(), Some(theirs));
    assert!(end["receiver_tcp_congestion"].is_string());
}

fn try_cell(server: &OurServer, fixed: &str, unit: &str) {
    for (attempt, blocks) in BLOCKS.into_iter().enumerate() {
        let amount = match unit {
            "-n" => blocks * BLOCK_BYTES,
            _ => blocks,
        };
        let arguments = format!("{fixed} {unit} {amount}");
        let reported = their_client(server.address, &arguments);
        assert!(reported.success, "{arguments}: {}", reported.text);
        if check(&reported.json, &arguments) {
            return;
        }
        assert!(
            attempt + 1 < BLOCKS.len(),
            "nothing moved: {arguments}: {}",
            reported.text
        );
    }
}

/// False when one side saw nothing.
fn check(json: &Value, arguments: &str) -> bool {
    assert_eq!(json.get("error"), None, "{arguments}");
    let end = &json["end"];
    let mut sums = vec!["sum_sent", "sum_received"];
    if arguments.contains("--bidir") {
        sums.extend(["sum_sent_bidir_reverse", "sum_received_bidir_reverse"]);
    }
    let bytes = |sum: &str| end[sum]["bytes"].as_u64();
    let is_forward = !arguments.contains("-R") && !arguments.contains("--bidir");
    if is_forward && !arguments.contains("-u") {
        assert_eq!(
            bytes("sum_received"),
            bytes("sum_sent"),
            "{arguments}: {end}"
        );
    }
    sums.into_iter().all(|sum| bytes(sum).unwrap() > 0)
}
