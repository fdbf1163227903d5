//! Which hosts share a rack, guessed from a run that knew of no racks: by the routers between them,
//! by what they get in rounds that load all hosts at once, where flows inside a rack reach what
//! their NICs do and flows that share an oversubscribed uplink do not, or by their round trips.
//!
//! Pairs are divided into near and far ones where that divides their figures best (Otsu, 1979), and
//! hosts are put together by correlation clustering (Bansal, Blum and Chawla, 2004), greedily: the
//! two groups whose pairs speak most for it are joined until none do, then hosts move to where they
//! fit best.

mod evidence;

use evidence::Pair;
pub use evidence::RackEvidence;
use ew_evidence::basis::data_interface;
use ew_model::inventory::HostId;
use ew_model::run::Run;
use std::collections::{BTreeMap, BTreeSet};

/// A cluster of more hosts than this has somebody who knows its racks.
pub const MAX_HOSTS: usize = 512;
/// Below this, the pairs contradict each other.
const MIN_AGREEMENT: f64 = 0.8;
/// The same of round trips, which hosts and their virtual switches lengthen as racks do.
const MIN_AGREEMENT_OF_TRIPS: f64 = 0.95;
/// Of the variance of round trips, what the division into near and far must explain: of a normal
/// distribution it explains 64% (2/pi), of a uniform one 75%, where there are no two kinds.
const MIN_EXPLAINED_OF_TRIPS: f64 = 0.85;
/// With fewer hosts, pairs agree by chance.
const MIN_HOSTS_FOR_TRIPS: usize = 6;
/// Moves of single hosts converge long before this.
const MAX_PASSES: usize = 20;

/// Hosts that seem to share a rack.
#[derive(Clone, Debug, PartialEq)]
pub struct RackGuess {
    /// Two groups at least, each in the order of hosts, the one with the first host first.
    pub racks: Vec<Vec<HostId>>,
    /// Share of the measured pairs that are as the groups predict: near inside, far between.
    pub agreement: f64,
    /// What they are guessed from.
    pub evidence: RackEvidence,
    /// Measured pairs.
    pub pairs: usize,
}

/// Racks by the switches that hosts hear of by LLDP: hosts of the same switch, or of the same two
/// where a bond ends at two, by its name. Hosts that hear of none are in none.
#[must_use]
pub fn by_switch(run: &Run) -> BTreeMap<String, Vec<HostId>> {
    let mut racks: BTreeMap<String, Vec<HostId>> = BTreeMap::new();
    for host in run.manifest.inventory.host_ids() {
        let facts = run.facts.get(&host).zip(data_interface(run, host));
        let ports = facts.map(|(facts, interface)| facts.switch_ports(interface));
        let ports = ports.into_iter().flatten();
        let switches: BTreeSet<&str> = ports.map(|(_, at)| at.switch.as_str()).collect();
        let names: Vec<String> = switches.into_iter().map(rack_name).collect();
        if !names.is_empty() {
            racks.entry(names.join("-")).or_default().push(host);
        }
    }
    racks
}

/// A switch's name with nothing that means something in a node set.
fn rack_name(switch: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '-',
    };
    switch.chars().map(plain).collect()
}

/// The guess, by the first evidence that shows any. `None` where all pairs are alike (one rack, or
/// uplinks that limit nobody and switches that nobody notices), where they contradict each other,
/// or where nothing was measured that would show it.
#[must_use]
pub fn guess(run: &Run) -> Option<RackGuess> {
    let hosts = run.manifest.inventory.hosts.len();
    if hosts > MAX_HOSTS {
        return None;
    }
    let mut every = RackEvidence::ALL.into_iter();
    every.find_map(|evidence| grouped(evidence, &evidence.nearness(run), hosts))
}

fn grouped(
    evidence: RackEvidence,
    nearness: &BTreeMap<Pair, f64>,
    hosts: usize,
) -> Option<RackGuess> {
    let (scores, explained) = scores(nearness)?;
    let min_agreement = match evidence {
        RackEvidence::Routers | RackEvidence::Rates => MIN_AGREEMENT,
        RackEvidence::RoundTrips => {
            let is_clear = explained >= MIN_EXPLAINED_OF_TRIPS && hosts >= MIN_HOSTS_FOR_TRIPS;
            is_clear.then_some(MIN_AGREEMENT_OF_TRIPS)?
        }
    };
    let table = Table::new(hosts, &scores);
    let mut groups = join(&table);
    refine(&table, &mut groups);
    let racks = racks(&groups, hosts);
    let group_of = |host: HostId| groups[host.index()];
    let agree = |((a, b), score): (&Pair, &f64)| (group_of(*a) == group_of(*b)) == (*score > 0.0);
    let agreeing = scores.iter().filter(|pair| agree(*pair)).count();
    let agreement = agreeing as f64 / scores.len() as f64;
    (racks.len() > 1 && agreement >= min_agreement).then_some(RackGuess {
        racks,
        agreement,
        evidence,
        pairs: scores.len(),
    })
}

/// From -1, surely far, to 1, surely near; and the share of the variance that this explains.
fn scores(nearness: &BTreeMap<Pair, f64>) -> Option<(BTreeMap<Pair, f64>, f64)> {
    let mut sorted: Vec<f64> = nearness.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let Division {
        far,
        near,
        explained,
    } = divided(&sorted)?;
    let (middle, half) = (f64::midpoint(far, near), (near - far) / 2.0);
    if half <= 0.0 {
        return None;
    }
    let score = |nearness: &f64| ((nearness - middle) / half).clamp(-1.0, 1.0);
    let scores = nearness.iter().map(|(pair, value)| (*pair, score(value)));
    Some((scores.collect(), explained))
}

/// Two classes of figures.
struct Division {
    /// Means of the classes.
    far: f64,
    near: f64,
    /// Share of the variance that lies between them.
    explained: f64,
}

/// The two classes with the largest variance between them.
fn divided(sorted: &[f64]) -> Option<Division> {
    let total: f64 = sorted.iter().sum();
    let mean = total / sorted.len() as f64;
    let variance: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
    let mut below = 0.0;
    let mut best: Option<(f64, (f64, f64))> = None;
    for (count, value) in (1..sorted.len()).zip(sorted) {
        below += value;
        let (few, many) = (count as f64, (sorted.len() - count) as f64);
        let means = (below / few, (total - below) / many);
        let between = few * many * (means.1 - means.0).powi(2);
        if best.is_none_or(|(max, _)| between > max) {
            best = Some((between, means));
        }
    }
    let (between, (far, near)) = best?;
    Some(Division {
        far,
        near,
        explained: between / sorted.len() as f64 / variance,
    })
}

/// Scores of all pairs, 0 where nothing is known.
struct Table {
    hosts: usize,
    scores: Vec<f64>,
}

impl Table {
    fn new(hosts: usize, scores: &BTreeMap<(HostId, HostId), f64>) -> Self {
        let mut table = vec![0.0; hosts * hosts];
        for ((a, b), score) in scores {
            table[a.index() * hosts + b.index()] = *score;
            table[b.index() * hosts + a.index()] = *score;
        }
        Self {
            hosts,
            scores: table,
        }
    }

    /// How much a host belongs to each group: the sum of its scores.
    fn of_groups(&self, host: usize, groups: &[usize]) -> BTreeMap<usize, f64> {
        let mut sums = BTreeMap::new();
        let own = self.scores[host * self.hosts..].iter().take(self.hosts);
        for ((other, score), group) in own.enumerate().zip(groups) {
            if other != host {
                *sums.entry(*group).or_insert(0.0) += score;
            }
        }
        sums
    }
}

/// Joins groups, those first whose pairs speak most for it. A group has the number of its first
/// host.
fn join(table: &Table) -> Vec<usize> {
    let hosts = table.hosts;
    let mut groups: Vec<usize> = (0..hosts).collect();
    let mut sums = table.scores.clone();
    let mut left: Vec<usize> = groups.clone();
    loop {
        let mut best = (0.0, 0, 0);
        for (position, a) in left.iter().enumerate() {
            for b in &left[position + 1..] {
                let sum = sums[a * hosts + b];
                if sum > best.0 {
                    best = (sum, *a, *b);
                }
            }
        }
        let (sum, keep, gone) = best;
        if sum <= 0.0 {
            return groups;
        }
        for other in 0..hosts {
            let joined = sums[keep * hosts + other] + sums[gone * hosts + other];
            sums[keep * hosts + other] = joined;
            sums[other * hosts + keep] = joined;
        }
        left.retain(|group| *group != gone);
        groups
            .iter_mut()
            .filter(|group| **group == gone)
            .for_each(|group| *group = keep);
    }
}

/// Moves single hosts to the group that speaks most for them.
fn refine(table: &Table, groups: &mut [usize]) {
    for _ in 0..MAX_PASSES {
        let mut moved = false;
        for host in 0..table.hosts {
            let of_groups = table.of_groups(host, groups);
            let own = of_groups.get(&groups[host]).copied().unwrap_or(0.0);
            let best = of_groups.iter().max_by(|a, b| a.1.total_cmp(b.1));
            if let Some((group, sum)) = best
                && *sum > own
            {
                groups[host] = *group;
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

fn racks(groups: &[usize], hosts: usize) -> Vec<Vec<HostId>> {
    let mut racks: Vec<(usize, Vec<HostId>)> = Vec::new();
    for (host, group) in (0..).map(HostId).zip(groups).take(hosts) {
        let (id, group) = (host, *group);
        match racks.iter_mut().find(|(known, _)| *known == group) {
            Some((_, rack)) => rack.push(id),
            None => racks.push((group, vec![id])),
        }
    }
    racks.into_iter().map(|(_, rack)| rack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_divided_between_their_two_kinds() {
        let two = divided(&[-1.5, -1.4, -1.3, -0.1, 0.0]).unwrap();
        assert!((two.far + 1.4).abs() < 1e-9 && (two.near + 0.05).abs() < 1e-9);
        assert!(two.explained > 0.98, "{}", two.explained);
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        let explained = divided(&even).unwrap().explained;
        assert!((explained - 0.75).abs() < 0.01, "{explained}");
        assert!(divided(&[0.0]).is_none());
    }

    #[test]
    fn a_wrong_pair_does_not_join_two_racks() {
        let ids = |a: u32, b: u32| (HostId(a), HostId(b));
        let mut scores = BTreeMap::new();
        for a in 0..6 {
            for b in a + 1..6 {
                let same = (a < 3) == (b < 3);
                scores.insert(ids(a, b), if same { 1.0 } else { -1.0 });
            }
        }
        scores.insert(ids(2, 3), 1.0);
        let table = Table::new(6, &scores);
        let mut groups = join(&table);
        refine(&table, &mut groups);
        let found = racks(&groups, 6);
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, 3], "{found:?}");
    }
}
