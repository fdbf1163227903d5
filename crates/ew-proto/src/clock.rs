//! How an agent's monotonic clock relates to the controller's, from request-reply exchanges.
//!
//! As in NTP (RFC 5905, section 10), the exchange with the min round trip decides: the agent read
//! its clock somewhere between sending and receiving, so taking the middle is wrong by at most half
//! the round trip.

use serde::{Deserialize, Serialize};

/// Exchanges of one estimate.
pub const EXCHANGES: u32 = 16;

/// One probe and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Controller's clock before the probe was sent.
    pub sent_ns: u64,
    /// Agent's clock as it answered.
    pub agent_ns: u64,
    /// Controller's clock after the reply had come.
    pub received_ns: u64,
}

/// The outcome of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockEstimate {
    /// Agent's monotonic clock minus the controller's.
    pub offset_ns: i64,
    /// The offset is right within this: half the round trip, rounded up.
    pub error_ns: u64,
    /// Round trip of the deciding exchange.
    pub rtt_ns: u64,
    /// By how much the agent's clock is faster than the controller's, parts per billion. `None`
    /// where the exchanges lie too close together to show it.
    pub rate_ppb: Option<i32>,
}

/// Keeps the exchange with the min round trip.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockEstimator {
    best: Option<Exchange>,
    exchanges: u32,
}

impl ClockEstimator {
    /// An estimator without exchanges.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one exchange; the earlier of equals is kept.
    pub fn add(&mut self, exchange: Exchange) {
        self.exchanges = self.exchanges.saturating_add(1);
        if self
            .best
            .is_none_or(|best| exchange.rtt_ns() < best.rtt_ns())
        {
            self.best = Some(exchange);
        }
    }

    /// Exchanges taken so far.
    #[must_use]
    pub fn exchanges(&self) -> u32 {
        self.exchanges
    }

    /// The estimate so far. `None` without an exchange.
    #[must_use]
    pub fn estimate(&self) -> Option<ClockEstimate> {
        self.best.map(Exchange::estimate)
    }

    /// The exchange that decides so far.
    #[must_use]
    pub fn best(&self) -> Option<Exchange> {
        self.best
    }
}

impl ClockEstimate {
    /// A time on the controller's clock as the agent's clock shows it; kept inside 0 to `u64::MAX`.
    #[must_use]
    pub fn to_agent_ns(&self, controller_ns: u64) -> u64 {
        controller_ns.saturating_add_signed(self.offset_ns)
    }
}

impl Exchange {
    pub(crate) fn rtt_ns(self) -> u64 {
        self.received_ns.saturating_sub(self.sent_ns)
    }

    fn estimate(self) -> ClockEstimate {
        let rtt_ns = self.rtt_ns();
        let midpoint_ns = i128::from(self.sent_ns) + i128::from(rtt_ns / 2);
        let offset_ns = i128::from(self.agent_ns) - midpoint_ns;
        ClockEstimate {
            offset_ns: offset_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            error_ns: rtt_ns.div_ceil(2),
            rtt_ns,
            rate_ppb: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_least_round_trip_decides() {
        let mut estimator = ClockEstimator::new();
        assert_eq!(estimator.estimate(), None);
        for (sent_ns, agent_ns, received_ns) in [
            (1_000, 900_000, 9_000),
            (10_000, 510_100, 10_200),
            (20_000, 700_000, 28_000),
        ] {
            estimator.add(Exchange {
                sent_ns,
                agent_ns,
                received_ns,
            });
        }
        let estimate = estimator.estimate().unwrap();
        assert_eq!(
            estimate,
            ClockEstimate {
                offset_ns: 500_000,
                error_ns: 100,
                rtt_ns: 200,
                rate_ppb: None,
            }
        );
        assert_eq!(estimate.to_agent_ns(1_000_000), 1_500_000);
    }

    #[test]
    fn absurd_clocks_are_kept_in_range() {
        let mut estimator = ClockEstimator::new();
        estimator.add(Exchange {
            sent_ns: 0,
            agent_ns: u64::MAX,
            received_ns: 1,
        });
        let estimate = estimator.estimate().unwrap();
        assert_eq!(estimate.offset_ns, i64::MAX);
        assert_eq!(estimate.to_agent_ns(u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_error(
            offset_ns in -1_000_000_000_000i64..1_000_000_000_000,
            delays in prop::collection::vec((0u64..5_000_000, 0u64..5_000_000), 1..17),
        ) {
            let mut estimator = ClockEstimator::new();
            let mut now_ns = 2_000_000_000_000u64;
            for (there_ns, back_ns) in delays {
                let sent_ns = now_ns;
                let agent_ns = (sent_ns + there_ns).saturating_add_signed(offset_ns);
                now_ns = sent_ns + there_ns + back_ns;
                estimator.add(Exchange { sent_ns, agent_ns, received_ns: now_ns });
            }
            let estimate = estimator.estimate().unwrap();
            prop_assert!(estimate.offset_ns.abs_diff(offset_ns) <= estimate.error_ns);
        }
    }
}
