//! What a peer's message may take in memory: a promise that fuzzing alone would find broken by
//! luck.

use ew_fuzz::peak_bytes;
use ew_proto::message::ToController;
use ew_proto::{FrameDecoder, FrameError, MAX_FRAME_BYTES};

#[test]
fn a_frame_takes_at_most_64_times_its_length() {
    // A round's report whose flows are empty: five bytes each.
    let flows = |count: usize| message(&[4, 0, 0], count, &[0; 5]);
    // One flow with empty streams.
    let streams = |count: usize| message(&[4, 0, 0, 1, 0, 1, 0, 0, 0, 0], count, &[0; 5]);
    // A sample of empty CPUs, and one of counters without a name.
    let cpus = |count: usize| message(&[7, 0, 0, 0], count, &[0; 11]);
    let counters = |count: usize| message(&[7, 0, 0, 0, 0, 0, 1, 0, 0], count, &[0; 3]);
    // A port check's empty answers.
    let ports = |count: usize| message(&[8], count, &[0; 2]);
    for (name, body) in [
        ("flows", flows(MAX_FRAME_BYTES / 5 - 8)),
        ("streams", streams(MAX_FRAME_BYTES / 5 - 8)),
        ("cpus", cpus(300_000)),
        ("counters", counters(1_000_000)),
        ("few flows", flows(3000)),
        // Two bytes for each, which is enough.
        ("few or many ports", ports(2_000_000)),
    ] {
        let mut decoder = FrameDecoder::new();
        decoder.push(&(body.len() as u32).to_be_bytes());
        decoder.push(&body);
        let (read, peak_bytes) = peak_bytes(|| decoder.next::<ToController>());
        let most_bytes = 64 * body.len() + (1 << 20);
        assert!(
            peak_bytes <= most_bytes,
            "{name}: {peak_bytes} of {most_bytes}"
        );
        assert_eq!(read.is_ok(), name.starts_with("few"), "{name}");
        assert!(name != "flows" || matches!(read, Err(FrameError::TooDense { .. })));
    }
}

fn message(start: &[u8], count: usize, element: &[u8]) -> Vec<u8> {
    let mut body = start.to_vec();
    let mut left = count;
    while left >= 128 {
        body.push(left as u8 | 128);
        left >>= 7;
    }
    body.push(left as u8);
    body.extend(element.repeat(count));
    body
}
