//! Sending at a rate: every byte has its time.

use crate::hello::StreamKey;
use crate::refusal::Refusal;
use ew_model::workload::Pace;

/// A stall is made up for by sending faster, if it was not longer than this.
const MAX_DEBT_NS: u64 = 100_000_000;
/// Streams that send less often begin within this, before a window does.
const MAX_STAGGER_NS: f64 = 100e6;
/// Sends are so short that this many go out in a second, so that the rate holds over short times,
/// too.
const SENDS_PER_SEC: f64 = 1000.0;
/// A send's min length, unless messages are shorter: what fits one segment of an Ethernet frame.
const MIN_BYTES: usize = 1448;

/// Keeps one stream at its rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    bytes_per_ns: f64,
    /// When `sent_bytes` was 0.
    origin_ns: u64,
    sent_bytes: u64,
    max_bytes: usize,
}

impl Pacer {
    /// From the time on, with messages of at most this length.
    pub(super) fn new(bits_per_sec: f64, origin_ns: u64, message_bytes: usize) -> Self {
        let bytes_per_sec = bits_per_sec / 8.0;
        let per_send = (bytes_per_sec / SENDS_PER_SEC) as usize;
        Self {
            bytes_per_ns: bytes_per_sec / 1e9,
            origin_ns,
            sent_bytes: 0,
            max_bytes: per_send.max(MIN_BYTES).min(message_bytes),
        }
    }

    /// Begins later by a part of the time between sends of this length that is the stream's own:
    /// streams that all begin at the same time would send at the same times, too, and what reaches
    /// a switch at once fills its buffers however low the rates are.
    pub(super) fn staggered(mut self, key: StreamKey, send_bytes: usize) -> Self {
        let between_ns = (send_bytes as f64 / self.bytes_per_ns).min(MAX_STAGGER_NS);
        self.origin_ns += (between_ns * own_phase(key)) as u64;
        self
    }

    /// The next send's length at most.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// When the next send is due. What was missed longer ago than can be made up for is let go.
    pub(super) fn due_ns(&mut self, now_ns: u64) -> u64 {
        let due_ns = self.origin_ns + (self.sent_bytes as f64 / self.bytes_per_ns) as u64;
        let debt_ns = now_ns.saturating_sub(due_ns);
        if debt_ns > MAX_DEBT_NS {
            self.origin_ns += debt_ns - MAX_DEBT_NS;
        }
        due_ns
    }

    pub(super) fn add_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes as u64;
    }
}

/// 0 to 1, evenly over the streams of a flow, over flows, and over rounds, so that repetitions are
/// no copies: multiples of the golden ratio, and of the two numbers that do the same in the plane
/// (Roberts, The unreasonable effectiveness of quasirandom sequences, 2018).
fn own_phase(key: StreamKey) -> f64 {
    const STEPS: [f64; 3] = [0.618_033_989, 0.754_877_666, 0.569_840_291];
    let numbers = [u32::from(key.stream), key.flow.0, key.round.0];
    let products = numbers
        .iter()
        .zip(STEPS)
        .map(|(number, step)| f64::from(*number) * step);
    products.sum::<f64>().fract()
}

/// The lower of a stream's own rate and its part of the flow's.
pub(super) fn stream_rate(pace: &Pace, streams: u32) -> Result<Option<f64>, Refusal> {
    let of_flow = pace.flow_bits_per_sec.map(|rate| rate / f64::from(streams));
    let rates = [pace.stream_bits_per_sec, of_flow];
    let rate = rates.into_iter().flatten().reduce(f64::min);
    match rate {
        Some(bits_per_sec) if !(bits_per_sec.is_finite() && bits_per_sec >= 1.0) => {
            Err(Refusal::StreamRate { bits_per_sec })
        }
        _ => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::FlowId;
    use ew_model::plan::{RoundIndex, StageIndex};
    use proptest::prelude::*;

    /// Bytes sent in each of some seconds by somebody who is late by up to `late_ns` each time.
    fn seconds(bits_per_sec: f64, late_ns: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut pacer = Pacer::new(bits_per_sec, 5, 128 * 1024);
        let (mut now_ns, mut sent, mut turn) = (5, [0.0; 3], 0);
        while now_ns < 5 + 3_000_000_000 {
            let due_ns = pacer.due_ns(now_ns);
            if due_ns <= now_ns {
                let second = (now_ns - 5) / 1_000_000_000;
                sent[second as usize] += pacer.max_bytes() as f64;
                pacer.add_sent(pacer.max_bytes());
                now_ns += 1000;
            } else {
                turn += 1;
                now_ns = due_ns + late_ns(turn);
            }
        }
        sent.to_vec()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn every_second_has_its_bytes(megabits in 50.0..10_000.0_f64, late_us in 0..400_u64) {
            for sent in seconds(megabits * 1e6, |turn| turn % 3 * late_us * 1000) {
                let share = sent * 8.0 / (megabits * 1e6);
                prop_assert!((0.99..1.01).contains(&share), "{share}");
            }
        }
    }

    #[test]
    fn streams_of_the_same_rate_send_at_times_of_their_own() {
        let due_ns = |bits_per_sec, flow, stream| {
            let key = StreamKey {
                stage: StageIndex(5),
                round: RoundIndex(1),
                flow: FlowId(flow),
                stream,
            };
            let pacer = Pacer::new(bits_per_sec, 1_000_000, 1000);
            pacer.staggered(key, 1000).due_ns(0) - 1_000_000
        };
        assert!(
            due_ns(8.0, 3, 7) < 100_000_000,
            "a thousand seconds between sends"
        );
        let flows = (0..3).flat_map(|flow| (0..32).map(move |stream| (flow, stream)));
        let mut all: Vec<u64> = flows
            .map(|(flow, stream)| due_ns(8e6, flow, stream))
            .collect();
        all.sort_unstable();
        // A send each millisecond: 96 in steps of 10 us would be even.
        assert!(all.iter().all(|due_ns| *due_ns < 1_000_000));
        assert!(
            all.windows(16).all(|near| near[15] - near[0] > 80_000),
            "{all:?}"
        );
    }

    #[test]
    fn a_long_stall_is_not_made_up_for() {
        let mut pacer = Pacer::new(8e9, 0, 1000);
        let now_ns = 5_000_000_000;
        assert_eq!(pacer.due_ns(now_ns), 0);
        let mut burst = 0;
        while pacer.due_ns(now_ns) <= now_ns {
            pacer.add_sent(1000);
            burst += 1000;
        }
        assert_eq!(burst / 1_000_000, MAX_DEBT_NS / 1_000_000);
    }

    #[test]
    fn sends_are_short_at_low_rates_and_never_longer_than_messages() {
        assert_eq!(Pacer::new(1e6, 0, 128 * 1024).max_bytes(), MIN_BYTES);
        assert_eq!(Pacer::new(1e12, 0, 128 * 1024).max_bytes(), 128 * 1024);
        assert_eq!(Pacer::new(1e6, 0, 100).max_bytes(), 100);
    }

    #[test]
    fn the_lower_rate_holds() {
        let rate = |stream_bits_per_sec, flow_bits_per_sec| {
            let pace = Pace {
                stream_bits_per_sec,
                flow_bits_per_sec,
                ..Pace::default()
            };
            stream_rate(&pace, 4)
        };
        assert_eq!(rate(None, None).unwrap(), None);
        assert_eq!(rate(Some(100.0), Some(800.0)).unwrap(), Some(100.0));
        assert_eq!(rate(Some(300.0), Some(800.0)).unwrap(), Some(200.0));
        assert!(rate(Some(0.0), None).is_err());
        assert!(rate(None, Some(f64::NAN)).is_err());
    }
}
