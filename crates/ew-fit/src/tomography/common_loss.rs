//! Whether all connections of several ways lose alike, or a part of them loses for the others, and
//! whether they always do.
//!
//! A bad path's connections lose in every round, and those of other paths in none, since their
//! source ports keep them where they are. So the rounds in which a connection loses are counted in
//! pairs: where all lose alike, there are as many as chance makes, and where one of n paths loses,
//! n times as many. How many segments go at once does not change that. What a stalled host or
//! switch loses at once, many connections lose in the same round, which is counted likewise.

use super::connections::{Key, PACE, Seen};
use ew_evidence::criteria::{SIGNIFICANT, SLOW};
use ew_stats::{median, poisson_at_least, quantile};
use std::collections::BTreeMap;

/// As many more pairs there are where half of the connections lose, as over one of two paths.
const OF_HALF: f64 = 2.0;

/// Halvings of an interval: to a thousandth of it.
const BISECTIONS: u32 = 10;

/// What connections sent and lost, by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses(BTreeMap<Key, Vec<Round>>);

/// The index of a stage, and of a round in it.
pub(crate) type Moment = (usize, usize);

#[derive(Clone, Copy, Debug)]
struct Round {
    moment: Moment,
    segments: f64,
    lost: f64,
    /// Its rate over that of the flow's better connections.
    of_pace: f64,
}

/// Pairs of rounds in which the same connection loses, or of connections that lose in one round.
#[derive(Clone, Copy)]
struct Pairs {
    seen: f64,
    /// If all lose alike.
    by_chance: f64,
    /// By how much more than a Poisson variable's the number varies then.
    dispersion: f64,
}

impl Losses {
    pub(crate) fn take(&mut self, moment: Moment, connections: &[Seen]) {
        let rates: Vec<f64> = connections.iter().map(|one| one.rate).collect();
        let pace = quantile(&rates, PACE).unwrap_or_default();
        for one in connections {
            let round = Round {
                moment,
                segments: one.segments,
                lost: one.lost,
                of_pace: one.rate / pace.max(f64::MIN_POSITIVE),
            };
            self.0.entry(one.key).or_default().push(round);
        }
    }

    /// Of several ways, together.
    pub(crate) fn of<'l>(ways: impl Iterator<Item = &'l Self>) -> Self {
        let connections = ways.flat_map(|way| &way.0);
        Self(connections.map(|(key, own)| (*key, own.clone())).collect())
    }

    /// Share of all segments that is lost.
    pub(crate) fn share(&self) -> f64 {
        let lost: f64 = self.rounds().map(|round| round.lost).sum();
        lost / self.segments().max(1.0)
    }

    /// The same if the connections that lose anything lose segment by segment, whatever happens to
    /// others: as much as makes so many of their rounds lose. What a full queue drops comes in
    /// bursts, and this is far less of it.
    pub(crate) fn scattered_share(&self) -> f64 {
        let loses = |rounds: &&Vec<Round>| rounds.iter().any(|round| round.lost > 0.0);
        let losing: Vec<&Round> = self.0.values().filter(loses).flatten().collect();
        let sum = |figure: fn(&Round) -> f64| losing.iter().map(|one| figure(one)).sum::<f64>();
        let segments = sum(|round| round.segments).max(1.0);
        let seen = self.losing() as f64;
        let expected = |share: f64| {
            let loses = |round: &&Round| 1.0 - (1.0 - share).powf(round.segments);
            losing.iter().map(loses).sum::<f64>()
        };
        let (mut low, mut high) = (0.0, sum(|round| round.lost) / segments);
        if expected(high) <= seen {
            return self.share();
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            match expected(middle) < seen {
                true => low = middle,
                false => high = middle,
            }
        }
        high * segments / self.segments().max(1.0)
    }

    /// Whether it is shown that less than half as much is lost as elsewhere.
    pub(crate) fn are_fewer_than(&self, others: &Self) -> bool {
        let sent = self.segments() / others.segments().max(1.0);
        let rounds = self.rounds().count() as f64;
        let expected = (sent * others.losing() as f64).min(rounds);
        OF_HALF * self.share() < others.share()
            && poisson_at_most(self.losing(), expected) < SIGNIFICANT
    }

    /// Whether what loses is as fast as what does not: a full path slows its connections, too.
    pub(crate) fn leave_pace(&self) -> bool {
        let losing = self.rounds().filter(|round| round.lost > 0.0);
        let rates: Vec<f64> = losing.map(|round| round.of_pace).collect();
        median(&rates).is_some_and(|rate| rate >= SLOW)
    }

    /// Whether it is likelier that one of two paths, or fewer, loses than that all do.
    pub(crate) fn differ(&self) -> bool {
        self.of_connections().are_of_a_part()
    }

    /// Whether it is shown that not only one of two paths loses.
    pub(crate) fn are_common(&self) -> bool {
        let pairs = self.of_connections();
        !pairs.are_of_a_part() && pairs.is_less_than(OF_HALF * pairs.by_chance)
    }

    /// Whether it is shown that they do not lose all the time, but rather in half of the rounds or
    /// in fewer.
    pub(crate) fn come_at_once(&self) -> bool {
        let pairs = self.of_moments();
        pairs.are_of_a_part() && pairs.is_more_than(pairs.by_chance)
    }

    fn rounds(&self) -> impl Iterator<Item = &Round> {
        self.0.values().flatten()
    }

    fn segments(&self) -> f64 {
        self.rounds().map(|round| round.segments).sum()
    }

    /// Rounds, each of one connection, in which something is lost.
    fn losing(&self) -> usize {
        self.rounds().filter(|round| round.lost > 0.0).count()
    }

    fn of_connections(&self) -> Pairs {
        self.pairs(self.0.values())
    }

    fn of_moments(&self) -> Pairs {
        let mut moments: BTreeMap<Moment, Vec<Round>> = BTreeMap::new();
        for round in self.rounds() {
            moments.entry(round.moment).or_default().push(*round);
        }
        self.pairs(moments.values())
    }

    fn pairs<'r>(&self, groups: impl Iterator<Item = &'r Vec<Round>>) -> Pairs {
        let share = self.losing() as f64 / self.rounds().count().max(1) as f64;
        let of = |group: &Vec<Round>| Pairs::of(group, share);
        let sum = groups.map(of).fold(Pairs::NONE, Pairs::plus);
        Pairs {
            dispersion: (sum.dispersion / sum.by_chance.max(f64::MIN_POSITIVE)).max(1.0),
            ..sum
        }
    }
}

impl Pairs {
    const NONE: Self = Self {
        seen: 0.0,
        by_chance: 0.0,
        dispersion: 0.0,
    };

    /// Of one connection, or round, where such a share of all loses, with the variance in place of
    /// the dispersion: by the factorial moments of the number that loses, which is binomial.
    fn of(rounds: &[Round], share: f64) -> Self {
        let losing = rounds.iter().filter(|round| round.lost > 0.0).count() as f64;
        let all = rounds.len() as f64;
        let moment = |n: i32| {
            (0..n)
                .map(|k| (all - f64::from(k)) * share)
                .product::<f64>()
        };
        let by_chance = moment(2) / 2.0;
        let square = (moment(4) + 4.0 * moment(3) + 2.0 * moment(2)) / 4.0;
        Self {
            seen: losing * (losing - 1.0) / 2.0,
            by_chance,
            dispersion: square - by_chance * by_chance,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            seen: self.seen + other.seen,
            by_chance: self.by_chance + other.by_chance,
            dispersion: self.dispersion + other.dispersion,
        }
    }

    /// Whether it is likelier that one half loses, or less, than that all do: the likelihood ratio
    /// of Poisson variables.
    fn are_of_a_part(&self) -> bool {
        self.seen * f64::ln(OF_HALF) > self.by_chance * (OF_HALF - 1.0)
    }

    /// Whether it is more than chance that there are more than expected.
    fn is_more_than(&self, expected: f64) -> bool {
        let independent = |count: f64| count / self.dispersion;
        poisson_at_least(independent(self.seen) as usize, independent(expected)) < SIGNIFICANT
    }

    /// Whether it is more than chance that there are not as many as expected.
    fn is_less_than(&self, expected: f64) -> bool {
        let independent = |count: f64| count / self.dispersion;
        poisson_at_most(independent(self.seen) as usize, independent(expected)) < SIGNIFICANT
    }
}

fn poisson_at_most(count: usize, mean: f64) -> f64 {
    1.0 - poisson_at_least(count + 1, mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;

    /// So many connections in four rounds of 100 segments, and what each loses in each of them by
    /// its number.
    fn losses(connections: u16, lost: impl Fn(u16, u16) -> f64) -> Losses {
        let mut losses = Losses::default();
        for round in 0..4 {
            let seen = |port: u16| Seen {
                key: Key {
                    src: HostId(0),
                    dst: HostId(1),
                    ports: (port, 5401),
                },
                rate: 1.0,
                segments: 100.0,
                lost: lost(port, round),
            };
            let seen: Vec<Seen> = (0..connections).map(seen).collect();
            losses.take((0, usize::from(round)), &seen);
        }
        losses
    }

    /// 1 in every so many, whatever the round (the finalizer of MurmurHash3).
    fn now_and_then(one_of: u16) -> impl Fn(u16, u16) -> f64 {
        move |port, round| {
            let mut number = u32::from(port * 4 + round);
            number = (number ^ (number >> 16)).wrapping_mul(0x85eb_ca6b);
            number = (number ^ (number >> 13)).wrapping_mul(0xc2b2_ae35);
            number ^= number >> 16;
            f64::from(u8::from(number % u32::from(one_of) == 0))
        }
    }

    #[test]
    fn what_all_lose_now_and_then_is_common() {
        let all = losses(256, now_and_then(4));
        assert!((0.002..0.003).contains(&all.share()), "{}", all.share());
        assert!(all.are_common() && !all.differ());
        // Several segments at once are no more rounds.
        let of_many = losses(256, |port, round| 5.0 * now_and_then(4)(port, round));
        assert!(of_many.are_common() && !of_many.differ());
    }

    #[test]
    fn what_one_of_several_paths_loses_is_not_common() {
        for paths in [2, 8] {
            let one = losses(256, |port, round| match port % paths {
                0 => now_and_then(2)(port, round),
                _ => 0.0,
            });
            assert!(one.differ() && !one.are_common(), "of {paths}");
        }
    }

    #[test]
    fn what_is_lost_in_one_round_comes_at_once() {
        let at_once = losses(256, |port, round| {
            f64::from(u8::from(round == 2 && port % 5 == 0))
        });
        assert!(at_once.come_at_once());
        for steady in [losses(256, now_and_then(4)), losses(64, |_, _| 3.0)] {
            assert!(!steady.come_at_once());
        }
        let of_a_path = losses(256, |port, _| f64::from(u8::from(port % 2 == 0)));
        assert!(!of_a_path.come_at_once());
    }

    #[test]
    fn what_comes_in_bursts_is_not_scattered() {
        let one_by_one = losses(256, now_and_then(4));
        let kept = one_by_one.scattered_share() / one_by_one.share();
        assert!((0.95..=1.0).contains(&kept), "{kept}");
        let bursts = losses(256, |port, round| 10.0 * now_and_then(20)(port, round));
        let kept = bursts.scattered_share() / bursts.share();
        assert!((0.08..0.12).contains(&kept), "{kept}");
        let every_round = losses(64, |_, _| 3.0);
        assert_eq!(every_round.scattered_share(), every_round.share());
        let of_a_path = losses(64, |port, _| f64::from(port % 2) * 50.0);
        assert_eq!(of_a_path.scattered_share(), of_a_path.share());
    }

    #[test]
    fn a_way_without_loss_differs_from_those_that_lose() {
        let lossy = losses(256, now_and_then(4));
        let none = losses(64, |_, _| 0.0);
        assert!(none.are_fewer_than(&lossy) && !lossy.are_fewer_than(&none));
        let of_few = losses(4, |_, _| 0.0);
        let alike = losses(64, now_and_then(3));
        assert!(!of_few.are_fewer_than(&lossy) && !alike.are_fewer_than(&lossy));
    }

    #[test]
    fn of_much_loss_and_of_little_it_is_known_or_open() {
        let every_round = losses(64, |_, _| 3.0);
        assert!(every_round.are_common() && !every_round.differ());
        let hardly_any = losses(16, now_and_then(16));
        assert!(!hardly_any.are_common() && !hardly_any.differ());
        assert!(!Losses::default().are_common() && !Losses::default().differ());
    }
}
