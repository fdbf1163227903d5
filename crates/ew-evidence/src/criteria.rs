//! What the verdict on the network decides by, each once, and why it is that much. What is not
//! here decides nothing: steps and ends of searches, formats, limits of what is shown. How figures
//! scatter is in `ew-fit` (`noise.rs`); the verdicts on storage, pods and sweeps have their own.

/// Prior odds that a given thing is at fault.
pub const FAULT_ODDS: f64 = 0.02;

/// Explanations this close, in nats, are equal: odds of twenty to one. One flow alone gives no
/// more evidence than that.
pub const EQUAL: f64 = 3.0;

/// What happens by chance less often than this did not happen by chance.
pub const SIGNIFICANT: f64 = 0.01;

/// What is this likely is reported as it is, as the ends of a 95% interval are.
pub const SURE: f64 = 0.95;

/// What was seen this often, in as many rounds or of as many flows, is no accident.
pub const MIN_SEEN: usize = 3;

/// Fewest figures of which a quartile says something.
pub const MIN_SAMPLES: usize = 4;

/// A loss of capacity below this share is no finding.
pub const MIN_EFFECT: f64 = 0.07;

/// A flow or connection below this share of what it should reach is slow. One alone scatters more
/// than all that touch a host do together, for which [`MIN_EFFECT`] suffices: twice that. The same
/// holds of what has no interval.
pub const SLOW: f64 = 1.0 - 2.0 * MIN_EFFECT;

/// Below this share of the link's payload rate a class of hosts is uniformly slow: what protocols
/// and machines cost leaves more.
pub const UNIFORMLY_SLOW: f64 = 0.8;

/// Rates, or ratios, within this factor are alike.
pub const ALIKE: f64 = 1.1;

/// Something used to this share is full: TCP leaves up to a tenth of a link, ticks and readings
/// some of a CPU or a disk.
pub const FULL: f64 = 0.9;

/// A share below this is as good as nothing. Window edges and protocols make errors that great,
/// which no repetition shows.
pub const NEGLIGIBLE: f64 = 0.01;

/// TCP that nothing limits fills at least this share of what it has, alone or where many flows
/// meet: shared buffers and short windows cost no more.
pub const LEAST_FILL: f64 = 0.65;

/// What held a flow back for this share of its time may be why it is slow: without it the flow
/// could be half as fast again.
pub const HELD_BACK: f64 = 0.3;

/// A CPU quota that throttles for this share of the time takes part in what is measured.
pub const THROTTLED: f64 = 1.0 - FULL;

/// More than this share are no exceptions but the rule, of hosts as of connections. Of a host or a
/// group of paths of which less than this is good, all is bad, and no path alone.
pub const MANY: f64 = 0.25;

/// What a host has this many times as much of as its peers is its own: chance among hosts that
/// are alike makes less.
pub const TIMES_PEERS: f64 = 2.0;

/// The same of what is rare, or varies by itself: losses, drops, round trips, lateness. Chance
/// alone makes twice as much of that.
pub const TIMES_TYPICAL: f64 = TIMES_PEERS * TIMES_PEERS;

/// A host whose CPU, disk or threads are full shows the cause where its peers' have this share of
/// their time more left.
pub const MORE_LEFT: f64 = 0.15;

/// A host is late, or a queue long, from this on: idle hosts and short queues stay below 1 ms.
pub const LONG_NS: f64 = 10e6;

/// Round trips are longer by this much where a host is busy.
pub const SCHEDULING_NS: f64 = 500_000.0;

/// Fewer than this share of all hosts are no class of their own but slow hosts.
pub const CLASS_SHARE: f64 = 0.15;

/// Share of segments retransmitted that may be why a flow is slow: TCP halves its window once in
/// 500 segments.
pub const LOSSY: f64 = 0.002;

/// The same of drops, and where no queue is full, where nothing else loses: once in 2000 segments.
pub const LOSSY_UNLOADED: f64 = LOSSY / TIMES_TYPICAL;
