//! The control links' round trips: where they rise under load, it costs the hosts their management
//! network.

use ew_model::inventory::HostId;
use std::collections::BTreeMap;

/// A host's round trips that are too long, one after the other: a single one may be of a CPU that
/// had other work.
const IN_A_ROW: u32 = 3;
/// A round trip is too long above this many times the one before load, too: a far host has a long
/// one at any time.
const TIMES_BEFORE: u64 = 10;

/// The round trips of all hosts.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    hosts: BTreeMap<HostId, Link>,
}

#[derive(Debug)]
struct Link {
    before_load_ns: u64,
    /// When the last answer that counts came.
    answered_ns: u64,
    too_long: u32,
}

/// A host whose control link suffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongRoundTrips {
    pub(crate) host: HostId,
    /// The last of those in a row.
    pub(crate) rtt_ns: u64,
    pub(crate) before_load_ns: u64,
}

impl RoundTrips {
    /// A clock estimate's round trip: the first one is of before any load.
    pub(crate) fn estimated(&mut self, host: HostId, rtt_ns: u64) {
        self.hosts.entry(host).or_insert(Link {
            before_load_ns: rtt_ns,
            answered_ns: 0,
            too_long: 0,
        });
    }

    /// A heartbeat was answered. Those that waited at the same time are one: an agent without CPU
    /// answers all of them together.
    pub(crate) fn answered(
        &mut self,
        host: HostId,
        rtt_ns: u64,
        now_ns: u64,
        limit_ns: u64,
    ) -> Option<LongRoundTrips> {
        let link = self.hosts.get_mut(&host)?;
        if now_ns.saturating_sub(rtt_ns) < link.answered_ns {
            return None;
        }
        link.answered_ns = now_ns;
        let limit_ns = limit_ns.max(TIMES_BEFORE.saturating_mul(link.before_load_ns));
        link.too_long = match rtt_ns > limit_ns {
            true => link.too_long + 1,
            false => 0,
        };
        (link.too_long == IN_A_ROW).then_some(LongRoundTrips {
            host,
            rtt_ns,
            before_load_ns: link.before_load_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LIMIT_NS: u64 = 1000 * MS;
    const HOST: HostId = HostId(3);

    /// Which answers, as (sent, round trip) in ms, end the run.
    fn ends(before_load_ms: u64, answers: &[(u64, u64)]) -> Vec<usize> {
        let mut trips = RoundTrips::default();
        trips.estimated(HOST, before_load_ms * MS);
        trips.estimated(HOST, 5000 * MS);
        let end = |(at, (sent, rtt)): (usize, &(u64, u64))| {
            let now_ns = (sent + rtt) * MS;
            let long = trips.answered(HOST, rtt * MS, now_ns, LIMIT_NS)?;
            assert_eq!(long.before_load_ns, before_load_ms * MS);
            Some(at)
        };
        answers.iter().enumerate().filter_map(end).collect()
    }

    #[test]
    fn three_long_round_trips_in_a_row_end_the_run() {
        let long = [(0, 1001), (1500, 1001), (3000, 1001)];
        assert_eq!(ends(1, &long), [2]);
        assert_eq!(ends(100, &long), [2]);
        assert_eq!(ends(101, &long), [0; 0], "not ten times as long as before");
        let at_the_limit = [(0, 1000), (1500, 1000), (3000, 1000)];
        assert_eq!(ends(1, &at_the_limit), [0; 0]);
        let interrupted = [(0, 1500), (2000, 1500), (4000, 2), (5000, 1500)];
        assert_eq!(ends(1, &interrupted), [0; 0]);
    }

    #[test]
    fn heartbeats_that_waited_together_are_one() {
        let stopped_once = [(0, 3500), (500, 3000), (1000, 2500), (1500, 2000)];
        assert_eq!(ends(1, &stopped_once), [0; 0]);
    }

    #[test]
    fn a_host_without_an_estimate_has_no_limit() {
        let mut trips = RoundTrips::default();
        let long = (1..9).filter_map(|at| trips.answered(HOST, 3 * LIMIT_NS, at << 40, LIMIT_NS));
        assert_eq!(long.count(), 0);
    }
}
