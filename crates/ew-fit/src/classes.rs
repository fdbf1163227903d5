//! Classes of hosts: NICs of several speeds are no fault of the slower ones.

use super::rounds::{Round, Rounds};
use ew_evidence::criteria::{CLASS_SHARE, FULL, LEAST_FILL, MIN_SAMPLES, MIN_SEEN, SLOW};
use ew_model::HostId;
use ew_stats::{median, quantile};

/// Whether so many of all hosts are a class, and no exceptions.
pub fn is_class(hosts: usize, of: usize) -> bool {
    hosts >= MIN_SEEN && hosts as f64 >= CLASS_SHARE * of as f64
}

/// Value of each class, ascending, and the class of every host.
pub(super) fn classes(rounds: &Rounds) -> (Vec<f64>, Vec<usize>) {
    let best = best_rates(rounds);
    let values = values(rounds.hosts, &best);
    let class_of = best.iter().map(|best| class_of(&values, *best)).collect();
    (values, class_of)
}

/// The same if hosts without a partner in their rack can do what the others can: that they do less
/// may be for their uplinks. `None` where all have partners, and where too few have for a class.
pub(super) fn alike(rounds: &Rounds) -> Option<(Vec<f64>, Vec<usize>)> {
    let best = best_of(rounds, |round| rounds.shown_sides(round));
    let with_partner: Vec<f64> = best
        .iter()
        .filter_map(|best| best.is_intra.then_some(best.bits_per_sec))
        .collect();
    if !(MIN_SEEN..best.len()).contains(&with_partner.len()) {
        return None;
    }
    let values = values(with_partner.len(), &with_partner);
    let class_of = best
        .iter()
        .map(|best| class_of(&values, best.bits_per_sec))
        .collect();
    Some((values, class_of))
}

/// The same by what links let pass, where no flow shows what hosts do by themselves: what leads
/// from rack to rack may keep them below that. A link of which nothing is known limits nobody.
pub(super) fn of_links(
    rounds: &Rounds,
    goodput: impl Fn(HostId) -> Option<f64>,
) -> (Vec<f64>, Vec<usize>) {
    let seen = best_rates(rounds);
    let unlimited: f64 = seen.iter().sum();
    let able = seen.iter().enumerate().map(|(host, seen)| {
        let link = goodput(HostId(host as u32)).unwrap_or(unlimited);
        link.max(*seen)
    });
    let able: Vec<f64> = able.collect();
    let values = values(rounds.hosts, &able);
    let class_of = able.iter().map(|able| class_of(&values, *able)).collect();
    (values, class_of)
}

/// What each host did at its best, sending or receiving: its sums over the flows of a round whose
/// other ends had no other flow; where no round shows that of anybody, of any round. 0 of a host
/// that none shows.
fn best_rates(rounds: &Rounds) -> Vec<f64> {
    let shown = |round: &Round| rounds.shown_sides(round);
    let any = |round: &Round| vec![true; shown(round).len()];
    let rates = |best: Vec<Best>| best.into_iter().map(|best| best.bits_per_sec).collect();
    let best: Vec<f64> = rates(best_of(rounds, shown));
    match best.iter().any(|best| *best > 0.0) {
        true => best,
        false => rates(best_of(rounds, any)),
    }
}

/// What a host did at its best.
struct Best {
    bits_per_sec: f64,
    /// In rounds without cross-rack flows.
    is_intra: bool,
}

fn best_of(rounds: &Rounds, is_shown: impl Fn(&Round) -> Vec<bool>) -> Vec<Best> {
    let mut sums = vec![SideSums::default(); 2 * rounds.hosts];
    for round in &rounds.rounds {
        let mut of_round = vec![(0.0, true); 2 * rounds.hosts];
        for obs in rounds.of(round) {
            for side in [obs.src.index(), rounds.hosts + obs.dst.index()] {
                of_round[side].0 += obs.bits_per_sec;
                of_round[side].1 &= obs.racks.is_none();
            }
        }
        let sides = sums.iter_mut().zip(of_round).zip(is_shown(round));
        for ((sums, (sum, is_intra)), _) in sides.filter(|((_, (sum, _)), is)| *is && *sum > 0.0) {
            sums.all.push(sum);
            sums.intra.extend(is_intra.then_some(sum));
        }
    }
    let (tx, rx) = sums.split_at(rounds.hosts);
    tx.iter()
        .zip(rx)
        .map(|(tx, rx)| Best {
            bits_per_sec: tx.best().max(rx.best()),
            is_intra: tx.is_intra() || rx.is_intra(),
        })
        .collect()
}

/// What a host sent, or received, in each round.
#[derive(Clone, Default)]
struct SideSums {
    all: Vec<f64>,
    /// Of them those of rounds without cross-rack flows, which uplinks may have limited.
    intra: Vec<f64>,
}

impl SideSums {
    fn is_intra(&self) -> bool {
        self.intra.len() >= MIN_SAMPLES
    }

    /// What cross-rack flows did counts where it is more by a class: single connections may be
    /// limited by themselves, and these intra-rack.
    fn best(&self) -> f64 {
        let (all, intra) = (high(&self.all), high(&self.intra));
        match self.is_intra() && intra > SLOW * all {
            true => intra,
            false => all,
        }
    }
}

/// The second largest of four or more, and no more than nearly all are: one figure may be anything,
/// and what waited for its CPU before a window makes some more than the link carries.
fn high(values: &[f64]) -> f64 {
    let sorted = ew_stats::sorted(values);
    match sorted.len() {
        0 => 0.0,
        1..MIN_SAMPLES => sorted[sorted.len() - 1],
        count => {
            let nearly_all = quantile(&sorted, FULL).unwrap_or_default();
            nearly_all.min(sorted[count - 2])
        }
    }
}

/// Speeds of links are at least a fifth apart; what hosts did at their best scatters by less.
fn values(hosts: usize, best: &[f64]) -> Vec<f64> {
    let sorted: Vec<f64> = ew_stats::sorted(best)
        .into_iter()
        .filter(|best| *best > 0.0)
        .collect();
    let groups: Vec<&[f64]> = sorted.chunk_by(|a, b| *a >= SLOW * b).collect();
    let is_class = |group: &&&[f64]| {
        is_class(group.len(), hosts) && group[0] > LEAST_FILL * group[group.len() - 1]
    };
    let mut classes: Vec<&[f64]> = groups.iter().filter(is_class).copied().collect();
    if classes.is_empty() {
        // Too few hosts for classes: the fastest that are not one alone, else the largest group.
        let last = groups.last().filter(|group| group.len() > 1);
        classes.extend(last.or_else(|| groups.iter().max_by_key(|group| group.len())));
    }
    classes.iter().filter_map(|class| median(class)).collect()
}

/// The lowest class whose value is as good as what the host did at its best; the highest where
/// nothing shows that.
fn class_of(values: &[f64], best: f64) -> usize {
    let best = if best > 0.0 { best } else { f64::INFINITY };
    let reaching = values.iter().position(|value| SLOW * best <= *value);
    reaching.unwrap_or(values.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_did_once_or_twice_is_not_its_best() {
        let mut sums = vec![47.4; 28];
        sums.extend([50.5, 51.1, 51.4]);
        assert!((47.4..48.0).contains(&high(&sums)), "{}", high(&sums));
        assert_eq!(high(&[12.0, 47.4, 47.3, 60.0]), 47.4);
        assert_eq!((high(&[47.4]), high(&[])), (47.4, 0.0));
    }

    #[test]
    fn links_of_20_and_25_are_two_classes_and_scattered_bests_are_one() {
        let of = |best: &[f64]| values(best.len(), best);
        assert_eq!(
            of(&[19.0, 19.1, 19.0, 23.8, 23.9, 23.8]),
            [19.0, 23.8],
            "two speeds"
        );
        assert_eq!(of(&[47.3, 47.4, 47.5, 51.2, 51.4]), [47.5], "one speed");
    }
}
