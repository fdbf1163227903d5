//! iperf3's client, our server.

use crate::common::{OurServer, iperf3_is_there, their_client};
use serde_json::Value;

/// Every protocol, direction and number of streams, with each way to end.
#[test]
fn the_whole_matrix() {
    if !iperf3_is_there() {
        return;
    }
    let server = OurServer::start();
    for protocol in ["", "-u -b 0"] {
        for direction in ["", "-R", "--bidir"] {
            for streams in ["", "-P 4"] {
                for end in ["-n 1000000", "-k 50"] {
                    let arguments = format!("{protocol} {direction} {streams} {end} -l 10000");
                    let told = their_client(server.address, &arguments);
                    assert!(told.success, "{arguments}: {}", told.text);
                    check(&told.json, &arguments);
                }
            }
        }
    }
}

fn check(json: &Value, arguments: &str) {
    assert_eq!(json.get("error"), None, "{arguments}");
    let end = &json["end"];
    let mut sums = vec!["sum_sent", "sum_received"];
    if arguments.contains("--bidir") {
        sums.extend(["sum_sent_bidir_reverse", "sum_received_bidir_reverse"]);
    }
    for sum in sums {
        let bytes = end[sum]["bytes"].as_u64();
        assert!(
            bytes.is_some_and(|bytes| bytes > 0),
            "{arguments}: {sum} {end}"
        );
    }
    if !arguments.contains("-u") && !arguments.contains("-R") && !arguments.contains("--bidir") {
        assert_eq!(
            end["sum_received"]["bytes"], end["sum_sent"]["bytes"],
            "{arguments}"
        );
    }
}
