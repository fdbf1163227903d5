//! Our client, iperf3's server.

use crate::common::{TheirServer, iperf3_is_there};
use ew_iperf3::report::Report;
use ew_iperf3::wire::params::{Direction, End, Params, Protocol};

const BLOCK_BYTES: usize = 10_000;
/// 50 ms, and more where a busy machine let one side miss that altogether.
const BLOCKS: [u64; 3] = [100, 400, 1600];
const BITS_PER_SEC: u64 = 160_000_000;

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
                try_cell(&server, protocol, direction, streams, End::Blocks);
                let bytes = |blocks| End::Bytes(blocks * BLOCK_BYTES as u64 - 1);
                try_cell(&server, protocol, direction, streams, bytes);
            }
        }
    }
}

#[test]
fn a_test_by_time_has_intervals_and_agrees_with_itself() {
    if !iperf3_is_there() {
        return;
    }
    let server = TheirServer::start(&[]);
    let params = Params {
        end: End::Time(1),
        streams: 2,
        ..Params::default()
    };
    let report = server.ask(&params);
    assert_eq!(report.error, None);
    let ended = report.ended.unwrap();
    let total: u64 = ended.streams.iter().map(|s| s.sender.unwrap().bytes).sum();
    let by_interval = report.intervals.iter().flat_map(|i| &i.streams);
    assert_eq!(by_interval.map(|s| s.figures.bytes).sum::<u64>(), total);
    assert!(report.intervals[0].streams[0].tcp.is_some());
    let duration_s = ended.streams[0].sender.unwrap().duration_s();
    assert!((1.0..3.0).contains(&duration_s), "{duration_s}");
    assert!(ended.local_congestion.is_some() && ended.remote_congestion.is_some());
}

fn try_cell(
    server: &TheirServer,
    protocol: Protocol,
    direction: Direction,
    streams: usize,
    end: fn(u64) -> End,
) {
    for (attempt, blocks) in BLOCKS.into_iter().enumerate() {
        let params = Params {
            protocol,
            direction,
            streams,
            end: end(blocks),
            block_bytes: BLOCK_BYTES,
            bits_per_sec: BITS_PER_SEC / streams as u64,
            ..Params::default()
        };
        let report = server.ask(&params);
        if check(&report, &params) {
            return;
        }
        assert!(attempt + 1 < BLOCKS.len(), "nothing moved: {params:?}");
    }
}

/// False when one side saw nothing.
fn check(report: &Report, params: &Params) -> bool {
    let what = format!("{params:?}");
    assert_eq!(report.error, None, "{what}");
    let ended = report.ended.as_ref().unwrap();
    let both = params.direction == Direction::Both;
    assert_eq!(
        ended.streams.len(),
        params.streams << u8::from(both),
        "{what}"
    );
    let mut complete = true;
    for sends in [true, false] {
        let group = ended.streams.iter().filter(|s| s.sends == sends);
        let pairs = group.map(|s| (s.sender.unwrap(), s.receiver.unwrap()));
        let (sent, received) = pairs.fold((0, 0), |(sent, received), (s, r)| {
            (sent + s.bytes, received + r.bytes)
        });
        let unused = if sends {
            Direction::Reverse
        } else {
            Direction::Forward
        };
        if params.direction == unused {
            assert_eq!((sent, received), (0, 0), "{what}");
            continue;
        }
        complete &= sent > 0 && received > 0;
        assert!(received <= sent + 128 * 1024, "{sent} {received} {what}");
        let wanted = match params.end {
            End::Bytes(bytes) if params.protocol == Protocol::Tcp => bytes,
            End::Bytes(bytes) => bytes + 1,
            End::Blocks(blocks) => blocks * BLOCK_BYTES as u64,
            End::Time(_) => sent,
        };
        if sends && !both {
            assert_eq!(sent, wanted, "{what}");
        }
    }
    complete
}
