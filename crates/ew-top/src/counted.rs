//! Differences of counters.

use std::time::Duration;

/// Per second, or `None` when either is missing or the counter went back (it was reset).
pub(crate) fn rate(now: Option<u64>, before: Option<u64>, time: Duration) -> Option<f64> {
    let moved = now?.checked_sub(before?)?;
    per_second(moved as f64, time)
}

/// Per second, 0 when the counter went back or no time passed.
pub(crate) fn rate_or_zero(now: u64, before: u64, time: Duration) -> f64 {
    rate(Some(now), Some(before), time).unwrap_or(0.0)
}

/// Per second of a counter of 32 bits that wraps.
pub(crate) fn wrapping_rate(now: u32, before: u32, time: Duration) -> f64 {
    per_second(f64::from(now.wrapping_sub(before)), time).unwrap_or(0.0)
}

/// Share of the time that a counter of microseconds moved by, 0 to 1.
pub(crate) fn share_of_time_us(
    now: Option<u64>,
    before: Option<u64>,
    time: Duration,
) -> Option<f64> {
    Some((rate(now, before, time)? / 1e6).min(1.0))
}

/// Nanoseconds between two instants, none when they are not in order.
pub(crate) fn between_ns(before: u64, now: u64) -> Duration {
    Duration::from_nanos(now.saturating_sub(before))
}

fn per_second(moved: f64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (seconds > 0.0).then(|| moved / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_SECONDS: Duration = Duration::from_secs(2);

    #[test]
    fn missing_and_reset_counters_have_no_rate() {
        assert_eq!(rate(Some(30), Some(10), TWO_SECONDS), Some(10.0));
        assert_eq!(rate(None, Some(10), TWO_SECONDS), None);
        assert_eq!(rate(Some(5), Some(10), TWO_SECONDS), None);
        assert_eq!(rate(Some(30), Some(10), Duration::ZERO), None);
        assert_eq!(wrapping_rate(4, u32::MAX - 5, TWO_SECONDS), 5.0);
        assert_eq!(
            share_of_time_us(Some(1_000_000), Some(0), TWO_SECONDS),
            Some(0.5)
        );
    }
}
