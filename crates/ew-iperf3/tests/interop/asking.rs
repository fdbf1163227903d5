//! Our client, iperf3's server.

use crate::common::{TheirServer, iperf3_is_there, our_client};
use ew_iperf3::report::Report;
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};

/// Every protocol, direction and number of streams, with each way to end.
#[test]
fn the_whole_matrix() {
    if !iperf3_is_there() {
        return;
    }
    let server = TheirServer::start(&[]);
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
            for streams in [1, 4] {
                for end in [End::Bytes(1_000_000), End::Blocks(100)] {
                    let params = Params {
                        protocol,
                        direction,
                        streams,
                        end,
                        block_bytes: 10_000,
                        // Slow enough for a server that stops receiving at the client's end.
                        bits_per_sec: 160_000_000 / streams as u64,
                        ..Params::default()
                    };
                    let report = our_client(server.address(), params.clone());
                    check(&report, &params);
                }
            }
        }
    }
}

fn check(report: &Report, params: &Params) {
    let what = format!("{params:?}");
    assert_eq!(report.error, None, "{what}");
    let ended = report.ended.as_ref().unwrap();
    let directions = if params.direction == Direction::Both {
        2
    } else {
        1
    };
    assert_eq!(ended.streams.len(), params.streams * directions, "{what}");
    let sums = |sends| {
        let streams = ended.streams.iter().filter(move |s| s.sends == sends);
        streams.fold((0, 0), |(sent, received), stream| {
            let (sender, receiver) = (stream.sender.unwrap(), stream.receiver.unwrap());
            (sent + sender.bytes, received + receiver.bytes)
        })
    };
    for sends in [true, false] {
        let (sent, received) = sums(sends);
        let wanted = match (params.direction, sends) {
            (Direction::Forward, false) | (Direction::Reverse, true) => {
                assert_eq!((sent, received), (0, 0), "{what}");
                continue;
            }
            _ => 1,
        };
        assert!(
            sent >= wanted && received >= wanted,
            "{sent} {received} {what}"
        );
        assert!(received <= sent + 128 * 1024, "{sent} {received} {what}");
    }
    let (sent, _) = sums(true);
    if params.direction == Direction::Forward {
        let wanted = match params.end {
            End::Bytes(bytes) => bytes,
            _ => 100 * params.block_bytes as u64,
        };
        assert_eq!(sent, wanted, "{what}");
    }
}
