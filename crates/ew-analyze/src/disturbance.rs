//! Rounds that were slow as a whole: the machines were short of CPU, a hypervisor paused them, foreign traffic passed.
//! What slows everybody at once says nothing of any one host or pair, so such rounds are no evidence against them.

use crate::capacity::{Side, UPPER};
use crate::solo::Solo;
use crate::stats::quantile;
use std::collections::{BTreeMap, BTreeSet};

/// A flow below this share of its own usual rate is low.
const LOW: f64 = 0.9;
/// With fewer lone flows, a round that is slow as a whole is not told from one slow host or pair.
pub(crate) const LEAST_FLOWS: usize = 4;

/// Lone flows by whether they may be held against somebody.
#[derive(Debug, Default)]
pub(crate) struct Sifted {
    /// Those of steady rounds.
    pub(crate) steady: Vec<Solo>,
    /// Stage and round of those set aside.
    pub(crate) disturbed: BTreeSet<(usize, usize)>,
}

/// Sets the rounds aside in which more than half of the lone flows (of at least four) were low. More than half, since a
/// slow host or a bad path of some flows must not pass for a disturbance.
pub(crate) fn sift(solos: Vec<Solo>) -> Sifted {
    let usual = usual_rates(&solos);
    let mut rounds: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
    for solo in &solos {
        let own = sides(solo)
            .iter()
            .filter_map(|side| usual.get(side).copied())
            .fold(f64::INFINITY, f64::min);
        let (low, all) = rounds.entry((solo.stage, solo.round)).or_default();
        *low += usize::from(solo.bits_per_sec < LOW * own);
        *all = solo.company;
    }
    let disturbed: BTreeSet<(usize, usize)> = rounds
        .into_iter()
        .filter(|(_, (low, all))| *all >= LEAST_FLOWS && 2 * low > *all)
        .map(|(round, _)| round)
        .collect();
    let steady = solos
        .into_iter()
        .filter(|solo| !disturbed.contains(&(solo.stage, solo.round)))
        .collect();
    Sifted { steady, disturbed }
}

/// Upper quartile of each side's lone flows within a stage, which most rounds may be disturbed without spoiling. By
/// stage, since stages differ in how much they load the hosts. A slow host is slow in its usual rate too, so it makes
/// no round look disturbed.
fn usual_rates(solos: &[Solo]) -> BTreeMap<(usize, Side), f64> {
    let mut rates: BTreeMap<(usize, Side), Vec<f64>> = BTreeMap::new();
    for solo in solos {
        for side in sides(solo) {
            rates.entry(side).or_default().push(solo.bits_per_sec);
        }
    }
    rates
        .into_iter()
        .filter_map(|(side, rates)| Some((side, quantile(&rates, UPPER)?)))
        .collect()
}

fn sides(solo: &Solo) -> [(usize, Side); 2] {
    [
        (solo.stage, Side::Tx(solo.src)),
        (solo.stage, Side::Rx(solo.dst)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;

    /// Rounds of a ring of hosts: host h sends to h + 1 + round.
    fn rounds(hosts: usize, levels: &[f64], rate: impl Fn(usize, usize) -> f64) -> Vec<Solo> {
        let mut solos = Vec::new();
        for (round, level) in levels.iter().enumerate() {
            for src in 0..hosts {
                let dst = (src + 1 + round % (hosts - 1)) % hosts;
                solos.push(Solo {
                    src: HostId(src as u32),
                    dst: HostId(dst as u32),
                    stage: 0,
                    round,
                    company: hosts,
                    bits_per_sec: level * rate(src, dst),
                    upper_bits_per_sec: level * rate(src, dst),
                    lacked_cpu: false,
                    path_bits_per_sec: None,
                });
            }
        }
        solos
    }

    fn set_aside(solos: Vec<Solo>) -> Vec<usize> {
        sift(solos)
            .disturbed
            .into_iter()
            .map(|(_, round)| round)
            .collect()
    }

    #[test]
    fn a_round_slow_as_a_whole_is_set_aside() {
        let solos = rounds(6, &[1.0, 0.6, 1.0, 0.85, 0.95], |_, _| 1e9);
        let sifted = sift(solos);
        assert_eq!(sifted.disturbed, BTreeSet::from([(0, 1), (0, 3)]));
        assert_eq!(sifted.steady.len(), 18);
    }

    #[test]
    fn slow_hosts_and_pairs_disturb_nothing() {
        let slow_hosts = |src: usize, dst: usize| if src == 2 || dst < 3 { 5e8 } else { 1e9 };
        assert_eq!(set_aside(rounds(6, &[1.0; 5], slow_hosts)), []);
        let slow_pair = |src: usize, dst: usize| if (src, dst) == (1, 2) { 1e8 } else { 1e9 };
        assert_eq!(set_aside(rounds(4, &[1.0; 6], slow_pair)), []);
    }

    #[test]
    fn too_few_flows_and_states_that_last_are_no_disturbance() {
        assert_eq!(set_aside(rounds(3, &[1.0, 0.5, 1.0, 1.0], |_, _| 1e9)), []);
        assert_eq!(set_aside(rounds(6, &[1.0, 0.5, 0.5, 0.5], |_, _| 1e9)), []);
        assert_eq!(set_aside(rounds(6, &[0.5], |_, _| 1e9)), []);
    }
}
