//! How an agent's clock relates to the controller's over a run: an offset and a rate.
//!
//! An exchange shows that the offset, at its time, lay between *agent's time - received* and
//! *agent's time - sent*: a gate that the clock's line passes through, whatever delayed the two
//! messages. All gates of the last minute together bound the rate, and rate and gates the offset.
//! Inside these bounds the line stays as it was: load makes round trips long and uneven, which must
//! not move a clock that is right. Where no line passes through all gates, the rate has changed or
//! the clock was stepped (a host that was suspended), and the oldest gates are forgotten.

use crate::clock::{ClockEstimate, Exchange};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Of the exchanges within this time the one with the min round trip is kept.
const GATE_NS: u64 = 4_000_000_000;
/// A minute: much longer, and what temperature does to a crystal shows.
const MAX_GATES: usize = 16;
/// No kernel steers its clock by more (`MAXFREQ`, include/linux/timex.h), and no crystal is worse.
const MAX_RATE_PPB: i128 = 500_000;
const BILLION: i128 = 1_000_000_000;

/// How a stage's time passes on an agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The stage's start, agent's clock.
    pub start_ns: u64,
    /// By how much the agent's clock is faster than the controller's, parts per billion.
    pub rate_ppb: i32,
}

impl Timeline {
    /// Where the clock is right.
    #[must_use]
    pub fn from_start(start_ns: u64) -> Self {
        Self {
            start_ns,
            rate_ppb: 0,
        }
    }

    /// The agent's clock when this much of the stage has passed on the controller's; kept inside 0
    /// to `u64::MAX`.
    #[must_use]
    pub fn at(&self, offset_ns: u64) -> u64 {
        let gained_ns = gained_ns(offset_ns.into(), self.rate_ppb.into());
        clamped(i128::from(self.start_ns) + i128::from(offset_ns) + gained_ns)
    }
}

/// The offset and the rate of one agent's clock, kept right by exchanges.
#[derive(Clone, Debug, Default)]
pub struct ClockLine {
    gates: VecDeque<Gate>,
    fit: Option<Fit>,
}

/// The kept exchange of [`GATE_NS`].
#[derive(Clone, Copy, Debug)]
struct Gate {
    begun_ns: u64,
    exchange: Exchange,
}

/// Inclusive bounds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: i128,
    max: i128,
}

#[derive(Clone, Copy, Debug)]
struct Fit {
    /// Controller's clock at the last gate.
    at_ns: i128,
    /// Then.
    offset_ns: i128,
    offset_bounds_ns: Bounds,
    rate_ppb: i128,
    rate_bounds_ppb: Bounds,
}

impl ClockLine {
    /// Takes the deciding exchange of an estimate that was made while nothing loaded the link: its
    /// middle is as near as one comes.
    pub fn settle(&mut self, exchange: Exchange) {
        let middle = Some((exchange.midpoint_ns(), exchange.offset_ns()));
        self.keep(exchange);
        self.fit(middle);
    }

    /// Takes an exchange made at any time.
    pub fn follow(&mut self, exchange: Exchange) {
        let predicted = self.fit.map(|fit| (fit.at_ns, fit.offset_ns));
        if self.keep(exchange) {
            self.fit(predicted);
        }
    }

    /// The estimate for a time on the controller's clock; `None` without an exchange. `rtt_ns` is
    /// the last gate's.
    #[must_use]
    pub fn estimate(&self, now_ns: u64) -> Option<ClockEstimate> {
        let (fit, last) = (self.fit?, self.gates.back()?);
        let passed_ns = i128::from(now_ns) - fit.at_ns;
        let offset_ns = fit.offset_ns + gained_ns(passed_ns, fit.rate_ppb);
        let drifted_ns = gained_ns(passed_ns.abs(), fit.rate_bounds_ppb.farthest(fit.rate_ppb));
        let error_ns = fit.offset_bounds_ns.farthest(fit.offset_ns) + drifted_ns;
        Some(ClockEstimate {
            offset_ns: offset_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            error_ns: clamped(error_ns),
            rtt_ns: last.exchange.rtt_ns(),
            rate_ppb: (self.gates.len() > 1).then_some(fit.rate_ppb as i32),
        })
    }

    /// How the time of a stage that starts at `start_ns` of the controller's clock passes on the
    /// agent's; `None` without an exchange.
    #[must_use]
    pub fn timeline(&self, start_ns: u64) -> Option<Timeline> {
        let fit = self.fit?;
        let offset_ns = fit.offset_ns + gained_ns(i128::from(start_ns) - fit.at_ns, fit.rate_ppb);
        Some(Timeline {
            start_ns: clamped(i128::from(start_ns) + offset_ns),
            rate_ppb: fit.rate_ppb as i32,
        })
    }

    /// Whether the exchange shows more than those that are there.
    fn keep(&mut self, exchange: Exchange) -> bool {
        let last = self.gates.back().map(|gate| gate.exchange);
        if last.is_some_and(|last| exchange.contradicts(last)) {
            self.gates.clear();
        }
        match self.gates.back_mut() {
            Some(last) if exchange.sent_ns < last.begun_ns.saturating_add(GATE_NS) => {
                let is_better = exchange.rtt_ns() < last.exchange.rtt_ns();
                if is_better {
                    last.exchange = exchange;
                }
                is_better
            }
            _ => {
                if self.gates.len() == MAX_GATES {
                    self.gates.pop_front();
                }
                self.gates.push_back(Gate {
                    begun_ns: exchange.sent_ns,
                    exchange,
                });
                true
            }
        }
    }

    /// A line through all gates: its rate next to the last line's, its offset next to `wanted`,
    /// which is a controller's time and the offset then.
    fn fit(&mut self, wanted: Option<(i128, i128)>) {
        let mut rates = self.rates_ppb();
        while rates.is_empty() {
            self.gates.pop_front();
            rates = self.rates_ppb();
        }
        let Some(last) = self.gates.back().map(|gate| gate.exchange) else {
            return;
        };
        let at_ns = last.midpoint_ns();
        let rate_ppb = rates.nearest(self.fit.map_or(0, |fit| fit.rate_ppb));
        let offsets = self.offsets_ns(at_ns, rates);
        let offset_ns = match wanted {
            Some((wanted_at_ns, offset_ns)) if self.gates.len() > 1 => {
                offsets.nearest(offset_ns + gained_ns(at_ns - wanted_at_ns, rate_ppb))
            }
            _ => last.offset_ns(),
        };
        self.fit = Some(Fit {
            at_ns,
            offset_ns,
            offset_bounds_ns: offsets,
            rate_ppb,
            rate_bounds_ppb: rates,
        });
    }

    /// Rates of the lines that pass through all gates. Lines of one rate pass through all of them
    /// when one passes through each two of them.
    fn rates_ppb(&self) -> Bounds {
        let mut rates = Bounds {
            min: -MAX_RATE_PPB,
            max: MAX_RATE_PPB,
        };
        for (number, later) in self.gates.iter().enumerate() {
            for earlier in self.gates.iter().take(number) {
                let (from, to) = (earlier.exchange, later.exchange);
                let passed_ns = (to.midpoint_ns() - from.midpoint_ns()).max(1);
                let (from, to) = (from.bounds_ns(), to.bounds_ns());
                let min = ((to.min - from.max) * BILLION).div_euclid(passed_ns);
                let max = ((to.max - from.min) * BILLION).div_euclid(passed_ns) + 1;
                rates = rates.within(Bounds { min, max });
            }
        }
        rates
    }

    /// Offsets at a time that lines of these rates through all gates may have.
    fn offsets_ns(&self, at_ns: i128, rates_ppb: Bounds) -> Bounds {
        let unbounded = Bounds {
            min: i128::MIN,
            max: i128::MAX,
        };
        self.gates.iter().fold(unbounded, |offsets, gate| {
            let passed_ns = (at_ns - gate.exchange.midpoint_ns()).max(0);
            let own = gate.exchange.bounds_ns();
            let grown = Bounds {
                min: own.min + gained_ns(passed_ns, rates_ppb.min),
                max: own.max + gained_ns(passed_ns, rates_ppb.max),
            };
            // Rounded outwards.
            offsets.within(grown.widened(1))
        })
    }
}

impl Exchange {
    fn midpoint_ns(self) -> i128 {
        i128::from(self.sent_ns) + i128::from(self.rtt_ns() / 2)
    }

    fn offset_ns(self) -> i128 {
        i128::from(self.agent_ns) - self.midpoint_ns()
    }

    /// Whether the clock was stepped since another exchange.
    fn contradicts(self, earlier: Self) -> bool {
        let passed_ns = (self.midpoint_ns() - earlier.midpoint_ns()).abs();
        let drifted_ns = gained_ns(passed_ns, MAX_RATE_PPB) + 1;
        let reachable = earlier.bounds_ns().widened(drifted_ns);
        reachable.within(self.bounds_ns()).is_empty()
    }

    fn bounds_ns(self) -> Bounds {
        let received_ns = i128::from(self.sent_ns) + i128::from(self.rtt_ns());
        Bounds {
            min: i128::from(self.agent_ns) - received_ns,
            max: i128::from(self.agent_ns) - i128::from(self.sent_ns),
        }
    }
}

impl Bounds {
    fn is_empty(self) -> bool {
        self.min > self.max
    }

    fn within(self, other: Self) -> Self {
        Self {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    fn widened(self, by: i128) -> Self {
        Self {
            min: self.min - by,
            max: self.max + by,
        }
    }

    fn nearest(self, value: i128) -> i128 {
        value.max(self.min).min(self.max)
    }

    /// Distance of the bound that is farther from a value between them.
    fn farthest(self, value: i128) -> i128 {
        (self.max - value).max(value - self.min).max(0)
    }
}

/// What a clock of this rate gains in a time.
fn gained_ns(passed_ns: i128, rate_ppb: i128) -> i128 {
    passed_ns * rate_ppb / BILLION
}

fn clamped(value: i128) -> u64 {
    u64::try_from(value.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
