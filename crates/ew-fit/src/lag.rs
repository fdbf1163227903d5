//! Hosts whose link consists of several (LAG, bond). A connection's hash picks one of them at
//! either end; a link that no connection picked stays idle, and a single connection gets one link.
//!
//! To an ordinary link n greedy connections over m use 1 - (1 - 1/m)^n of all on average (balls
//! into bins: a link with any connection is full); between two LAGs the hashes of both ends meet,
//! and both are thrown.

use super::filling::{Filling, Strand};
use super::noise::{self, OVERDISPERSION, density};
use super::obs::Obs;
use super::prices;
use super::rounds::Rounds;
use ew_evidence::basis::{VIRTUAL, data_interface};
use ew_evidence::criteria::SLOW;
use ew_evidence::observations::Observations;
use ew_model::HostId;
use ew_stats::splitmix;
use ew_stats::{median, robust_sigma};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of links that are thought of where no host reports its own.
const COUNTS: std::ops::RangeInclusive<u32> = 2..=8;
/// Throws of both ends' hashes: the mean is within half a percent.
const THROWS: u64 = 512;
/// More connections on eight links leave nothing idle.
const MAX_CONNECTIONS: u32 = 128;
/// Hash policies of bonding that distinguish connections of one pair of hosts contain this.
const BY_PORTS: &str = "3+4";
/// Modes that hash connections (Documentation/networking/bonding.rst).
const HASHING: [&str; 2] = ["802.3ad", "balance-xor"];

/// What numbers of connections use between hosts of so many links.
#[derive(Debug, Default)]
pub(super) struct Shares {
    known: BTreeMap<[u32; 3], Outcomes>,
}

/// The shares that throws give.
#[derive(Clone, Debug)]
struct Outcomes {
    /// What most throws give: few leave much idle.
    part: f64,
    /// Each different one, and how often it is.
    all: Vec<(f64, f64)>,
}

impl Shares {
    fn outcomes(&mut self, connections: u32, members: [u32; 2]) -> &Outcomes {
        let connections = connections.clamp(1, MAX_CONNECTIONS);
        let [fewer, more] = [members[0].min(members[1]), members[0].max(members[1])];
        let known = self.known.entry([connections, fewer, more]);
        known.or_insert_with(|| Outcomes::of(connections, [fewer, more]))
    }

    pub(super) fn of(&mut self, connections: u32, members: [u32; 2]) -> f64 {
        self.outcomes(connections, members).part
    }

    /// Of a flow that shares neither of its hosts with another.
    pub(super) fn of_flow(&mut self, obs: &Obs, members: &[u32]) -> f64 {
        self.outcomes_of_flow(obs, members).part
    }

    fn outcomes_of_flow(&mut self, obs: &Obs, members: &[u32]) -> &Outcomes {
        let own = [members[obs.src.index()], members[obs.dst.index()]];
        self.outcomes(obs.streams as u32, own)
    }
}

impl Outcomes {
    fn of(connections: u32, members: [u32; 2]) -> Self {
        let mut used = used(connections, members);
        used.sort_by(f64::total_cmp);
        let alike = used.chunk_by(|a, b| b - a < SAME);
        let all = alike.map(|group| (group[0], group.len() as f64 / used.len() as f64));
        Self {
            part: median(&used).unwrap_or(1.0),
            all: all.collect(),
        }
    }
}

/// Throws whose shares differ by less are alike.
const SAME: f64 = 1e-3;

/// Part of all links that is used, by throw.
fn used(connections: u32, members: [u32; 2]) -> Vec<f64> {
    let most = members[0].max(members[1]);
    if most == 1 || connections == 1 {
        return vec![1.0 / f64::from(most)];
    }
    let capacities: Vec<f64> = members
        .iter()
        .flat_map(|count| std::iter::repeat_n(1.0 / f64::from(*count), *count as usize))
        .collect();
    let mut filling = Filling::default();
    let (mut strands, mut filled) = (Vec::new(), Vec::new());
    let used = (0..THROWS).map(|throw| {
        strands.clear();
        strands.extend((0..connections).map(|at| thrown(throw, at, members)));
        filling.fill(&strands, &capacities, &mut filled);
        filled.iter().map(|share| share.bits_per_sec).sum()
    });
    used.collect()
}

/// One connection on the links that this throw's hashes pick.
fn thrown(throw: u64, connection: u32, members: [u32; 2]) -> Strand {
    let hash = splitmix(throw << 32 | u64::from(connection));
    let tx = (hash & 0xFFFF_FFFF) % u64::from(members[0]);
    let rx = (hash >> 32) % u64::from(members[1]);
    Strand {
        weight: 1.0,
        way: [tx as u32, members[0] + rx as u32, 0, 0, 0, 0],
        hops: 2,
        limit_bits_per_sec: f64::INFINITY,
    }
}

/// Finds the number of links of each host, and corrects the classes' values, which were read from
/// rounds in which some links were idle.
pub(super) fn find(
    observations: &Observations<'_>,
    rounds: &mut Rounds,
    (classes, class_of): (&mut [f64], &[usize]),
    shares: &mut Shares,
) {
    let hosts = observations.inventory().host_ids();
    let reported: Vec<Option<u32>> = hosts.map(|host| reported(observations, host)).collect();
    let all = |members: u32| -> Vec<u32> {
        let of_host = reported.iter().map(|own| own.unwrap_or(members));
        of_host.collect()
    };
    let price = prices::of_lag(rounds, COUNTS.count());
    let none = vec![1; rounds.hosts];
    // What a host reports costs nothing to assume.
    let mut candidates = vec![(none.clone(), 0.0), (all(1), 0.0)];
    // One number of connections leaves a scatter that anything may make.
    let numbers: BTreeSet<u32> = inside(rounds).map(|obs| obs.streams as u32).collect();
    if reported.iter().any(Option::is_none) && numbers.len() > 1 {
        candidates.extend(COUNTS.map(|members| (all(members), price)));
    }
    candidates.dedup_by(|a, b| a.0 == b.0);
    let evidence = Evidence::new(rounds, |host| classes[class_of[host.index()]]);
    let scored = candidates.into_iter().map(|(members, price)| {
        let (score, scale) = evidence.of(&members, shares);
        (score - price, scale, members)
    });
    // Where nothing was measured that could show it, what hosts report counts.
    let best = scored.reduce(|a, b| if b.0 >= a.0 { b } else { a });
    if let Some((_, scale, members)) = best.filter(|(.., members)| *members != none) {
        classes.iter_mut().for_each(|class| *class *= scale);
        rounds.members = members;
    }
}

/// Links over which the connections of one pair of hosts are hashed; 1 where they all take one.
/// `None` where the host does not report: what a guest's or a pod's interface is made of is not
/// seen from inside.
fn reported(observations: &Observations<'_>, host: HostId) -> Option<u32> {
    let interface = data_interface(observations.run, host)?;
    let facts = observations.run.facts.get(&host)?;
    let Some((_, bond)) = facts.bond_of(interface) else {
        // A port with a speed is one link.
        let is_virtual = |driver: &str| VIRTUAL.contains(&driver);
        let is_port = !interface.driver.as_deref().is_none_or(is_virtual);
        return (is_port && interface.speed_bits_per_sec.is_some()).then_some(1);
    };
    let mode = bond.mode.as_deref()?;
    let is_by_ports = bond.hash_policy.as_deref()?.contains(BY_PORTS);
    let is_hashed = HASHING.contains(&mode) && is_by_ports;
    Some(if is_hashed {
        bond.members.len().max(1) as u32
    } else {
        1
    })
}

/// Isolated intra-rack flows, with what the classes of both hosts do: nothing but the hosts' links
/// and what a connection does by itself limits them.
fn inside(rounds: &Rounds) -> impl Iterator<Item = &Obs> {
    let all = rounds.rounds.iter();
    let flows = all.flat_map(|round| rounds.of(round).iter().zip(&round.alone));
    let isolated = flows.filter(|(obs, alone)| **alone && obs.racks.is_none());
    isolated.map(|(obs, _)| obs)
}

/// What isolated intra-rack flows of one connection do in the median.
pub(super) fn single_connections(rounds: &Rounds) -> f64 {
    let single = inside(rounds).filter(|obs| obs.streams < 1.5);
    let rates: Vec<f64> = single.map(|obs| obs.bits_per_sec).collect();
    median(&rates).unwrap_or(f64::INFINITY)
}

/// What hosts send and receive with several connections at their best, tx of all and then rx of
/// all, where that is less than their class does: a slow host is as slow with one.
fn of_sides(rounds: &Rounds, class: impl Fn(HostId) -> f64) -> Vec<f64> {
    let mut best = vec![0.0_f64; 2 * rounds.hosts];
    for obs in inside(rounds).filter(|obs| obs.streams > 1.5) {
        for side in [obs.src.index(), rounds.hosts + obs.dst.index()] {
            best[side] = best[side].max(obs.bits_per_sec);
        }
    }
    let class = |side: usize| class(HostId((side % rounds.hosts) as u32));
    let sides = best.iter().enumerate();
    sides
        .map(|(side, best)| match *best > 0.0 {
            true => best.min(class(side)),
            false => class(side),
        })
        .collect()
}

struct Evidence<'r> {
    /// With what both hosts do.
    flows: Vec<(&'r Obs, f64)>,
    connection_bits_per_sec: f64,
    sigma: f64,
}

impl<'r> Evidence<'r> {
    fn new(rounds: &'r Rounds, class: impl Fn(HostId) -> f64) -> Self {
        let of_sides = of_sides(rounds, &class);
        let does = |obs: &Obs| {
            let (tx, rx) = (obs.src.index(), rounds.hosts + obs.dst.index());
            of_sides[tx].min(of_sides[rx])
        };
        let flows: Vec<(&Obs, f64)> = inside(rounds).map(|obs| (obs, does(obs))).collect();
        // Single connections have one link each, whatever the hashes. One that ends at a slow host
        // shows nothing of what connections do by themselves.
        let is_slow = |obs: &Obs| does(obs) < SLOW * class(obs.src).min(class(obs.dst));
        let single = || flows.iter().filter(|(obs, _)| obs.streams < 1.5);
        let fast: Vec<f64> = single()
            .filter(|(obs, _)| !is_slow(obs))
            .map(|(obs, _)| obs.ln_rate)
            .collect();
        let logs: Vec<f64> = match fast.is_empty() {
            true => single().map(|(obs, _)| obs.ln_rate).collect(),
            false => fast,
        };
        let connection = median(&logs).map_or(f64::INFINITY, f64::exp);
        let sigma = robust_sigma(&logs);
        Self {
            flows,
            connection_bits_per_sec: connection,
            sigma: sigma.clamp(noise::ISOLATED_SIGMA, noise::MAX_ISOLATED_SIGMA),
        }
    }

    /// Log-likelihood of the flows with so many links by host, and the factor on the classes'
    /// values with which it is that.
    fn of(&self, members: &[u32], shares: &mut Shares) -> (f64, f64) {
        let several = self.flows.iter().filter(|(obs, _)| obs.streams > 1.5);
        let scales: Vec<f64> = several
            .map(|(obs, class)| obs.bits_per_sec / (class * shares.of_flow(obs, members)))
            .collect();
        // Links carry no less than they did at their best.
        let scale = median(&scales).unwrap_or(1.0).max(1.0);
        let of_flow = |(obs, class): &(&Obs, f64)| {
            let connections = obs.streams * self.connection_bits_per_sec;
            let of_outcome = |(share, weight): &(f64, f64)| {
                let predicted = (scale * class * share).min(connections);
                weight * density(obs.ln_rate - predicted.ln(), self.sigma, obs.doubt)
            };
            let outcomes = shares.outcomes_of_flow(obs, members).all.iter();
            outcomes.map(of_outcome).sum::<f64>().ln()
        };
        let score: f64 = self.flows.iter().map(of_flow).sum();
        (score / OVERDISPERSION, scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towards_an_ordinary_link_the_share_is_that_of_balls_into_bins() {
        for members in [2, 4, 8] {
            for connections in [1, 2, 8, 16] {
                let idle = 1.0 - 1.0 / f64::from(members);
                let exact = 1.0 - idle.powi(connections as i32);
                let used = used(connections, [1, members]);
                let found = used.iter().sum::<f64>() / used.len() as f64;
                assert!(
                    (found - exact).abs() < 0.015,
                    "{connections} on {members}: {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn between_two_lags_a_connection_has_one_link_and_many_have_all() {
        assert!((Outcomes::of(1, [2, 4]).part - 0.25).abs() < 1e-12);
        // Of two connections both links differ in a quarter of the throws.
        let two = Outcomes::of(2, [2, 2]);
        let [(half, often), (all, seldom)] = two.all[..] else {
            panic!("{two:?}");
        };
        assert_eq!((half, all), (0.5, 1.0));
        assert!((often / seldom - 3.0).abs() < 0.5, "{two:?}");
        assert!(Outcomes::of(64, [2, 2]).part > 0.97);
    }
}
