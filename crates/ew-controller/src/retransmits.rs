//! Retransmissions of TCP connections that are not the run's: where they rise under load, the load
//! costs others their throughput.

use ew_model::inventory::HostId;
use ew_proto::message::OthersTcp;
use std::collections::{BTreeMap, VecDeque};

/// What is judged together.
const INTERVAL_NS: u64 = 5_000_000_000;
/// Fewer retransmissions than this in an interval may be chance, or a single dead peer.
const MIN_RETRANSMITTED: u64 = 50;
/// The share must be this many times that of before load: what was lossy stays so.
const TIMES_BEFORE: f64 = 3.0;

/// The connections of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Retransmits {
    hosts: BTreeMap<HostId, Connections>,
    is_load_on: bool,
    was_load_on: bool,
}

#[derive(Debug, Default)]
struct Connections {
    /// The first and the last totals of before any load.
    before_load: Option<(OthersTcp, OthersTcp)>,
    /// While load is on, with their times.
    readings: VecDeque<(u64, OthersTcp)>,
}

/// A host whose other connections suffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ManyRetransmits {
    pub(crate) host: HostId,
    /// What was sent meanwhile.
    pub(crate) sent: OthersTcp,
    /// `None` where nothing was sent before load.
    pub(crate) before_load: Option<f64>,
    pub(crate) interval_ns: u64,
}

impl Retransmits {
    /// Load begins or ends.
    pub(crate) fn load(&mut self, is_on: bool) {
        self.is_load_on = is_on;
        self.was_load_on |= is_on;
        let hosts = self.hosts.values_mut();
        hosts.for_each(|connections| connections.readings.clear());
    }

    /// A host's totals.
    pub(crate) fn take(
        &mut self,
        host: HostId,
        totals: OthersTcp,
        now_ns: u64,
        limit: f64,
    ) -> Option<ManyRetransmits> {
        let connections = self.hosts.entry(host).or_default();
        if !self.was_load_on {
            let before = connections.before_load.get_or_insert((totals, totals));
            before.1 = totals;
        }
        if !self.is_load_on {
            return None;
        }
        let readings = &mut connections.readings;
        while (readings.get(1)).is_some_and(|(at_ns, _)| at_ns + INTERVAL_NS <= now_ns) {
            readings.pop_front();
        }
        readings.push_back((now_ns, totals));
        let (first_ns, first) = *readings.front()?;
        let sent = sent(first, totals);
        let before_load = connections
            .before_load
            .and_then(|(first, last)| self::sent(first, last).share());
        let limit = limit.max(TIMES_BEFORE * before_load.unwrap_or(0.0));
        let is_many = sent.retransmitted_segments >= MIN_RETRANSMITTED
            && sent.share().is_some_and(|share| share > limit);
        is_many.then_some(ManyRetransmits {
            host,
            sent,
            before_load,
            interval_ns: now_ns - first_ns,
        })
    }
}

/// Totals fall where a connection turns out to be the run's.
fn sent(first: OthersTcp, last: OthersTcp) -> OthersTcp {
    let retransmitted = last.retransmitted_segments;
    OthersTcp {
        sent_segments: last.sent_segments.saturating_sub(first.sent_segments),
        retransmitted_segments: retransmitted.saturating_sub(first.retransmitted_segments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(1);

    /// Whether the run ends, by reading: one a second, (sent, retransmitted) in that second, the
    /// first `idle` of them before load.
    fn ends(idle: usize, seconds: &[(u64, u64)]) -> Vec<usize> {
        let mut retransmits = Retransmits::default();
        let mut totals = OthersTcp::default();
        let mut found = Vec::new();
        for (second, (sent, retransmitted)) in seconds.iter().enumerate() {
            if second == idle {
                retransmits.load(true);
            }
            totals.sent_segments += sent;
            totals.retransmitted_segments += retransmitted;
            let now_ns = second as u64 * 1_000_000_000;
            found.extend((retransmits.take(HOST, totals, now_ns, 0.1).is_some()).then_some(second));
        }
        found
    }

    #[test]
    fn a_tenth_of_the_segments_ends_the_run() {
        let with = |retransmitted| [(1000, 0), (1000, 0), (1000, 0), (1000, retransmitted)];
        assert_eq!(ends(2, &with(101)), [3]);
        assert_eq!(ends(2, &with(100)), [0; 0]);
        assert_eq!(ends(4, &with(500)), [0; 0], "no load");
        let few = [(1000, 0), (10, 0), (100, 49), (0, 0), (0, 1)];
        assert_eq!(ends(1, &few), [4], "50 in 4 s");
        let few = [(10, 0), (10, 0), (100, 49)];
        assert_eq!(ends(1, &few), [0; 0]);
    }

    #[test]
    fn what_was_lossy_before_is_not_the_loads() {
        let seconds = |loaded| [(0, 0), (1000, 80), (1000, 80), loaded, loaded];
        assert_eq!(ends(3, &seconds((1000, 240))), [0; 0]);
        assert_eq!(ends(3, &seconds((1000, 250))), [4]);
    }

    #[test]
    fn what_is_long_ago_does_not_count() {
        let mut seconds = vec![(1000, 0), (1000, 90)];
        seconds.extend([(1000, 0); 5]);
        seconds.push((1000, 90));
        assert_eq!(ends(0, &seconds), [0; 0]);
    }

    #[test]
    fn totals_that_fall_are_no_retransmissions() {
        let more = OthersTcp {
            sent_segments: 900,
            retransmitted_segments: 300,
        };
        assert_eq!(sent(more, OthersTcp::default()), OthersTcp::default());
    }
}
