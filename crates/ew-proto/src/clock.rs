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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_decides() {
        let mut estimator = ClockEstimator::new();
        assert_eq!(estimator.best(), None);
        let exchanges = [
            (1_000, 900_000, 9_000),
            (10_000, 510_100, 10_200),
            (20_000, 700_000, 28_000),
        ];
        let exchanges = exchanges.map(|(sent_ns, agent_ns, received_ns)| Exchange {
            sent_ns,
            agent_ns,
            received_ns,
        });
        for exchange in exchanges {
            estimator.add(exchange);
        }
        assert_eq!(estimator.exchanges(), 3);
        assert_eq!(estimator.best(), Some(exchanges[1]));
    }

    #[test]
    fn absurd_clocks_are_kept_in_range() {
        let estimate = |offset_ns| ClockEstimate {
            offset_ns,
            error_ns: 100,
            rtt_ns: 200,
            rate_ppb: None,
        };
        assert_eq!(estimate(500_000).to_agent_ns(1_000_000), 1_500_000);
        assert_eq!(estimate(i64::MAX).to_agent_ns(u64::MAX), u64::MAX);
        assert_eq!(estimate(i64::MIN).to_agent_ns(1), 0);
    }
}
