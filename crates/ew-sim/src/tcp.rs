//! What TCP makes of loss, windows and queues.

use ew_model::topology::CongestionControl;

/// A retransmission that is lost again waits for the timer: Linux' min timeout.
const MIN_TIMEOUT_SEC: f64 = 0.2;
/// Losses of a retransmission that end in a timeout; RACK (RFC 8985) finds the others.
const TIMEOUT_PER_DOUBLE_LOSS: f64 = 0.5;
/// Random loss below this hardly slows BBR: its throughput falls with what is lost (Cardwell et al.
/// 2016, figure 8).
const BBR_COLLAPSE_LOSS: f64 = 0.15;

/// Window in segments that random loss allows on average: the greater of Reno's (Mathis et al.
/// 1997: sqrt(3/2) / sqrt(p)) and CUBIC's (RFC 9438, 5.1: 1.054 (RTT / p)^(3/4)).
pub(crate) fn window_segments(loss_share: f64, round_trip_sec: f64) -> f64 {
    let reno = 1.5_f64.sqrt() / loss_share.sqrt();
    let cubic = 1.054 * (round_trip_sec / loss_share).powf(0.75);
    reno.max(cubic)
}

/// Most that a stream with this random loss carries, bits per second of segments. Infinite without
/// loss.
pub(crate) fn loss_limit(
    control: CongestionControl,
    loss_share: f64,
    round_trip_sec: f64,
    segment_bytes: f64,
) -> f64 {
    if loss_share <= 0.0 {
        return f64::INFINITY;
    }
    if control == CongestionControl::Bbr && loss_share < BBR_COLLAPSE_LOSS {
        return f64::INFINITY;
    }
    window_segments(loss_share, round_trip_sec) * segment_bytes * 8.0 / round_trip_sec
}

/// What timeouts after lost retransmissions leave of a rate.
pub(crate) fn left_by_timeouts(
    control: CongestionControl,
    loss_share: f64,
    segments_per_sec: f64,
) -> f64 {
    if control == CongestionControl::Bbr {
        return 1.0 - loss_share;
    }
    let timeouts_per_sec = TIMEOUT_PER_DOUBLE_LOSS * loss_share.powi(2) * segments_per_sec;
    1.0 / (1.0 + timeouts_per_sec * MIN_TIMEOUT_SEC)
}

/// Share of segments that a stream loses because it shares a full queue with others: what keeps its
/// window where it is.
pub(crate) fn queue_loss(control: CongestionControl, window_segments: f64) -> f64 {
    const MAX: f64 = 0.05;
    match control {
        CongestionControl::Cubic => (1.5 / window_segments.max(1.0).powi(2)).min(MAX),
        // It does not fill queues that are deeper than a window.
        CongestionControl::Bbr => (0.3 / window_segments.max(1.0).powi(2)).min(MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_are_the_published_ones() {
        // Mathis et al.: MSS/RTT * 1.22/sqrt(p): 1448 bytes, 10 ms, 1% give 14.2 Mb/s.
        let limit = loss_limit(CongestionControl::Cubic, 0.01, 0.01, 1448.0);
        assert!((limit / 14.2e6 - 1.0).abs() < 0.01, "{limit}");
        // CUBIC's own at 0.1 s and 1e-4: 1.054 * 1000^0.75.
        assert!((window_segments(1e-4, 0.1) - 187.4).abs() < 1.0);
        assert_eq!(
            loss_limit(CongestionControl::Bbr, 0.01, 0.01, 1448.0),
            f64::INFINITY
        );
    }
}
