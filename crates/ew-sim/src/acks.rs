//! What acknowledgements take of the way back.

use crate::tcp;
use ew_model::topology::CongestionControl;

/// A receiver answers what arrives together with one acknowledgement, and at least two segments:
/// what a sender hands over at once, a millisecond of its rate (Linux' `tcp_tso_autosize`) and at
/// most 64 KiB.
const BURST_SEC: f64 = 0.001;
const MIN_SEGMENTS: f64 = 2.0;
const MAX_BURST_BYTES: f64 = 65_536.0;

/// One stream, as it shares the way there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// Frames, bits per second.
    pub(crate) rate: f64,
    pub(crate) segment_bytes: f64,
    /// A segment's frame.
    pub(crate) frame_bytes: f64,
    /// An acknowledgement's.
    pub(crate) ack_frame_bytes: f64,
    /// Where it shares a switch port's queue that is full, which loses segments.
    pub(crate) full_port: Option<FullPort>,
}

/// What a stream finds in front of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullPort {
    pub(crate) control: CongestionControl,
    pub(crate) round_trip_sec: f64,
}

impl Acknowledged {
    /// What its acknowledgements take, frames, bits per second.
    pub(crate) fn ack_rate(&self) -> f64 {
        let burst_bytes = (self.rate / 8.0 * BURST_SEC).min(MAX_BURST_BYTES);
        let together = (burst_bytes / self.segment_bytes).max(MIN_SEGMENTS);
        let alone = self.out_of_order_share();
        let acks_per_segment = alone + (1.0 - alone) / together;
        self.rate * acks_per_segment * self.ack_frame_bytes / self.frame_bytes
    }

    /// Share of segments that arrive while one before them is missing, a window after each loss:
    /// each is answered at once (RFC 5681, 4.2).
    fn out_of_order_share(&self) -> f64 {
        self.full_port.map_or(0.0, |port| {
            let segments = self.rate * port.round_trip_sec / 8.0 / self.frame_bytes;
            (tcp::queue_loss(port.control, segments) * segments).min(1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledged(rate: f64, full_port: Option<FullPort>) -> f64 {
        let stream = Acknowledged {
            rate,
            segment_bytes: 1448.0,
            frame_bytes: 1514.0,
            ack_frame_bytes: 66.0,
            full_port,
        };
        stream.ack_rate() / rate
    }

    #[test]
    fn fast_streams_need_few_and_losses_many() {
        let every_second = 66.0 / 2.0 / 1514.0;
        assert!((acknowledged(1e6, None) - every_second).abs() < 1e-9);
        assert!(acknowledged(1e10, None) < 0.001);
        let small_window = FullPort {
            control: CongestionControl::Cubic,
            round_trip_sec: 0.06,
        };
        let share = acknowledged(1e6, Some(small_window));
        assert!((1.2..1.5).contains(&(share / every_second)), "{share}");
    }
}
