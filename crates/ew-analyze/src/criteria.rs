//! What several judgements decide by, each once. What only one decides by is with it.

/// Prior odds that a given thing is at fault.
pub(crate) const FAULT_ODDS: f64 = 0.02;

/// Explanations this close, in nats, are equal: odds of twenty to one.
pub(crate) const EQUAL: f64 = 3.0;

/// A loss of capacity below this share is no finding.
pub(crate) const MIN_EFFECT: f64 = 0.07;

/// A flow or connection below this share of what it should reach is slow. One alone scatters more
/// than all that touch a host do together, for which [`MIN_EFFECT`] suffices: twice that.
pub(crate) const SLOW: f64 = 0.85;

/// A CPU that is busy for this share of the time has none left: what is missing is the resolution
/// of its ticks.
pub(crate) const FULL_CPU: f64 = 0.95;

/// What held a flow back for this share of its time may be why it is slow: without it the flow
/// could be half as fast again.
pub(crate) const HELD_BACK: f64 = 0.3;

/// A CPU quota that throttles for this share of the time takes part in what is measured.
pub(crate) const THROTTLED: f64 = 0.1;

/// A host or a group of paths with more than this share of bad connections is bad as a whole, and
/// none of its paths is.
pub(crate) const BAD_AS_A_WHOLE: f64 = 0.75;
