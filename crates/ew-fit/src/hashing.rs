//! What hashes leave of capacities. A connection takes one of a host's links (`lag`) at either end
//! and one of the racks' parallel paths between them, and where few connections share many links,
//! some carry less than they could.
//!
//! Hashes are not known, so each round's connections are thrown on the links, and the mean of
//! their max-min shares over the throws is what hosts can do in that round. How far single rounds
//! are from it is part of the spread that a run's own repeats show.

use super::filling::{Filling, Share, Strand};
use super::hypothesis::Hypothesis;
use super::lag::{self, Shares};
use super::obs::Obs;
use super::rounds::{Hashed, Round, Rounds};
use ew_stats::splitmix;
use std::collections::BTreeMap;

/// Throws of a round: the mean over the flows of a rack is within a percent.
const THROWS: u64 = 16;

/// Links of hosts and racks, each as wide as its others.
#[derive(Debug)]
pub(super) struct Links<'r> {
    rounds: &'r Rounds,
    /// By link, bits per second.
    capacities: Vec<f64>,
    /// First link, and how many: hosts' tx, hosts' rx, racks out, racks in.
    spans: Vec<(u32, u32)>,
    connection_bits_per_sec: f64,
    filling: Filling,
    strands: Vec<Strand>,
    filled: Vec<Share>,
}

impl<'r> Links<'r> {
    /// With the capacities of a host, by its side (tx of all, then rx of all), and of a rack's
    /// direction (out of all, then into all).
    pub(super) fn new(
        rounds: &'r Rounds,
        of_host: impl Fn(usize) -> f64,
        of_rack: impl Fn(usize) -> f64,
        connection_bits_per_sec: f64,
    ) -> Self {
        let (mut capacities, mut spans) = (Vec::new(), Vec::new());
        let mut add = |count: u32, all: f64| {
            spans.push((capacities.len() as u32, count));
            let each = all / f64::from(count);
            capacities.extend(std::iter::repeat_n(each, count as usize));
        };
        for side in 0..2 * rounds.hosts {
            add(rounds.members[side % rounds.hosts], of_host(side));
        }
        for direction in 0..2 * rounds.racks {
            add(paths(rounds, direction % rounds.racks), of_rack(direction));
        }
        Self {
            rounds,
            capacities,
            spans,
            connection_bits_per_sec,
            filling: Filling::default(),
            strands: Vec::new(),
            filled: Vec::new(),
        }
    }

    /// Throws a round's connections on the links.
    fn draw(&mut self, round: &Round, throw: u64) {
        let flows = self.rounds.of(round);
        self.strands.clear();
        for (at, obs) in round.flows.clone().zip(flows) {
            for stream in 0..obs.streams as u64 {
                let hash = splitmix(throw << 48 ^ stream << 32 ^ at as u64);
                let strand = self.strand(obs, hash);
                self.strands.push(strand);
            }
        }
    }

    /// The rates of a round's flows in one throw, bits per second.
    fn throw(&mut self, round: &Round, throw: u64) -> Vec<f64> {
        self.draw(round, throw);
        let flows = self.rounds.of(round);
        self.filling
            .fill(&self.strands, &self.capacities, &mut self.filled);
        let mut rates = self.filled.iter().map(|filled| filled.bits_per_sec);
        let of_flow = |obs: &Obs| rates.by_ref().take(obs.streams as usize).sum();
        flows.iter().map(of_flow).collect()
    }

    /// One connection on the links that its hash picks, 16 bits for each choice.
    fn strand(&self, obs: &Obs, hash: u64) -> Strand {
        let hosts = self.rounds.hosts;
        let pick = |(first, count): (u32, u32), choice: u32| {
            first + (hash >> (16 * choice) & 0xFFFF) as u32 % count
        };
        let mut way = [
            pick(self.spans[obs.src.index()], 0),
            pick(self.spans[hosts + obs.dst.index()], 1),
            0,
            0,
            0,
            0,
        ];
        if let Some((from, to)) = obs.racks {
            let (out, into) = (
                self.spans[2 * hosts + from],
                self.spans[2 * hosts + self.rounds.racks + to],
            );
            // What leaves over a spine arrives over it.
            let common = out.1.min(into.1);
            way[2] = pick((out.0, common), 2);
            way[3] = pick((into.0, common), 2);
        }
        Strand {
            weight: 1.0,
            way,
            hops: if obs.racks.is_some() { 4 } else { 2 },
            limit_bits_per_sec: self
                .connection_bits_per_sec
                .min(obs.pace_bits_per_sec / obs.streams),
        }
    }

    /// What flows through a rack's direction carry of its capacity in a round, mean over throws.
    pub(super) fn used(&mut self, round: &Round) -> Vec<f64> {
        let racks = self.rounds.racks;
        let mut loads = vec![0.0; 2 * racks];
        for throw in 0..THROWS {
            let rates = self.throw(round, throw);
            for (obs, rate) in self.rounds.of(round).iter().zip(rates) {
                if let Some((from, to)) = obs.racks {
                    loads[from] += rate / THROWS as f64;
                    loads[racks + to] += rate / THROWS as f64;
                }
            }
        }
        let spans = self.spans[2 * self.rounds.hosts..].iter().zip(loads);
        let used = spans.map(|((first, count), load)| {
            load / (self.capacities[*first as usize] * f64::from(*count))
        });
        used.collect()
    }
}

impl Links<'_> {
    /// What its flows ask of a rack's direction in a round, and what it carries of that, mean over
    /// throws, bits per second, where no connection takes over what another leaves: each has its
    /// share of its hosts' links, and of a path that is asked for too much as much less. TCP is
    /// between that and max-min shares, the nearer to it the less it heeds loss.
    pub(super) fn carried_evenly(&mut self, round: &Round) -> Vec<(f64, f64)> {
        let racks = self.spans[2 * self.rounds.hosts..].to_vec();
        let (mut asked, mut carried) = (vec![0.0; racks.len()], vec![0.0; racks.len()]);
        for throw in 0..THROWS {
            self.draw(round, throw);
            let rates = self.even_rates();
            let loads = self.loads(&rates);
            let left = |link: &u32| self.capacities[*link as usize] / loads[*link as usize];
            let carries = |(strand, rate): (&Strand, &f64)| {
                rate * strand.way[2..4].iter().map(left).fold(1.0, f64::min)
            };
            let arriving: Vec<f64> = self.strands.iter().zip(&rates).map(carries).collect();
            add_spans(&racks, &loads, &mut asked);
            add_spans(&racks, &self.loads(&arriving), &mut carried);
        }
        let mean = |sum: f64| sum / THROWS as f64;
        let asked = asked.into_iter().map(mean);
        asked.zip(carried.into_iter().map(mean)).collect()
    }

    /// What each strand gets of its hosts' links, as all on them get as much; bits per second.
    fn even_rates(&self) -> Vec<f64> {
        let mut strands_on = vec![0.0; self.capacities.len()];
        for link in self.strands.iter().flat_map(|strand| &strand.way[..2]) {
            strands_on[*link as usize] += 1.0;
        }
        let share = |link: &u32| self.capacities[*link as usize] / strands_on[*link as usize];
        let rate = |strand: &Strand| {
            let of_links = strand.way[..2].iter().map(share);
            of_links.fold(strand.limit_bits_per_sec, f64::min)
        };
        self.strands.iter().map(rate).collect()
    }

    /// What strands ask of the links between racks, by link, bits per second.
    fn loads(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.capacities.len()];
        let crossing = self.strands.iter().zip(rates);
        for (strand, rate) in crossing.filter(|(strand, _)| strand.hops > 2) {
            for link in &strand.way[2..4] {
                loads[*link as usize] += rate;
            }
        }
        loads
    }
}

fn add_spans(spans: &[(u32, u32)], of_links: &[f64], sums: &mut [f64]) {
    for ((first, count), sum) in spans.iter().zip(sums) {
        let links = *first as usize..(first + count) as usize;
        *sum += of_links[links].iter().sum::<f64>();
    }
}

/// Parallel paths of a rack. Of hosts with several links, whose connections cannot take over what
/// those next to them leave, nobody may be accused for paths that nobody counted: there may be as
/// many as hosts, since a path is no narrower than a NIC.
fn paths(rounds: &Rounds, rack: usize) -> u32 {
    let most = rounds.hosts_in(rack).count().max(1) as u32;
    match rounds.paths.most {
        Some(paths) => paths.max(1),
        None if rounds.has_lag() => most.min(super::members::MAX_PATHS as u32),
        None => 1,
    }
}

/// Takes over what hashes are expected to leave of the capacities of hosts with several links in
/// every round, if racks do not limit them. A host with one link fills it over the paths that are
/// not full.
pub(super) fn expect(rounds: &mut Rounds, hypothesis: &Hypothesis, shares: &mut Shares) {
    if !rounds.has_lag() {
        return;
    }
    let hashed: Vec<Hashed> = {
        let of_host = |side: usize| hypothesis.class_rate(side % rounds.hosts);
        let of_rack = |direction: usize| open(rounds, hypothesis, direction % rounds.racks);
        let connection = lag::single_connections(rounds);
        let mut links = Links::new(rounds, of_host, of_rack, connection);
        let all = rounds.rounds.iter();
        all.map(|round| of_round(&mut links, hypothesis, round, shares))
            .collect()
    };
    rounds.open.fill(0.0);
    for (at, hashed) in hashed.into_iter().enumerate() {
        let flows = &rounds.obs[rounds.rounds[at].flows.clone()];
        for obs in flows.iter().filter(|obs| obs.racks.is_some()) {
            for side in [obs.src.index(), rounds.hosts + obs.dst.index()] {
                rounds.open[side] = rounds.open[side].max(hashed.hosts[side]);
            }
        }
        rounds.rounds[at].hashed = Some(hashed);
    }
}

/// What a rack's paths carry together where they do not limit its hosts: as much as these, and no
/// path less than a host.
fn open(rounds: &Rounds, hypothesis: &Hypothesis, rack: usize) -> f64 {
    let hosts = rounds
        .hosts_in(rack)
        .map(|host| hypothesis.class_rate(host));
    let (all, most) = hosts.fold((0.0, 0.0_f64), |(all, most), rate| {
        (all + rate, most.max(rate))
    });
    all.max(most * f64::from(paths(rounds, rack)))
}

fn of_round(
    links: &mut Links<'_>,
    hypothesis: &Hypothesis,
    round: &Round,
    shares: &mut Shares,
) -> Hashed {
    let rounds = links.rounds;
    let flows = rounds.of(round);
    let mut sides = sides(rounds, flows, shares);
    let thrown = thrown(links, hypothesis, round);
    let mut of_flows = Vec::with_capacity(flows.len());
    for (obs, alone) in flows.iter().zip(&round.alone) {
        let (tx, rx) = (obs.src.index(), rounds.hosts + obs.dst.index());
        if *alone {
            let both = thrown.get(&Kind::of(obs, hypothesis)).copied();
            let both = both.unwrap_or_else(|| shares.of_flow(obs, &rounds.members));
            (sides[tx], sides[rx]) = (both, both);
        }
        of_flows.push(sides[tx].min(sides[rx]));
    }
    Hashed {
        hosts: sides,
        flows: of_flows,
    }
}

/// What all the connections of a host's side use of its links towards ordinary ones.
fn sides(rounds: &Rounds, flows: &[Obs], shares: &mut Shares) -> Vec<f64> {
    let mut connections = vec![0; 2 * rounds.hosts];
    for obs in flows {
        connections[obs.src.index()] += obs.streams as u32;
        connections[rounds.hosts + obs.dst.index()] += obs.streams as u32;
    }
    let side = |(side, connections): (usize, &u32)| {
        let members = rounds.members[side % rounds.hosts];
        shares.of(*connections, [members, 1])
    };
    connections.iter().enumerate().map(side).collect()
}

/// Flows that are alike but for their hashes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    racks: Option<(usize, usize)>,
    streams: u64,
    classes: (usize, usize),
}

impl Kind {
    fn of(obs: &Obs, hypothesis: &Hypothesis) -> Self {
        let class = |host: usize| hypothesis.class_of[host];
        Self {
            racks: obs.racks,
            streams: obs.streams as u64,
            classes: (class(obs.src.index()), class(obs.dst.index())),
        }
    }
}

/// Shares of the isolated cross-rack flows whose connections spread over paths, by kind.
fn thrown(links: &mut Links<'_>, hypothesis: &Hypothesis, round: &Round) -> BTreeMap<Kind, f64> {
    let rounds = links.rounds;
    let flows = rounds.of(round);
    let spreads = |slot: usize| {
        let obs: &Obs = &flows[slot];
        round.alone[slot] && obs.racks.is_some() && obs.has_many_streams()
    };
    let slots: Vec<usize> = (0..flows.len()).filter(|slot| spreads(*slot)).collect();
    let mut of_kinds: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for throw in (0..THROWS).filter(|_| !slots.is_empty()) {
        let rates = links.throw(round, throw);
        for slot in &slots {
            let obs = &flows[*slot];
            let rate = |host: usize| hypothesis.class_rate(host);
            let able = rate(obs.src.index()).min(rate(obs.dst.index()));
            let of_kind = of_kinds.entry(Kind::of(obs, hypothesis)).or_default();
            of_kind.push(rates[*slot] / able);
        }
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let kinds = of_kinds.into_iter();
    kinds.map(|(kind, values)| (kind, mean(values))).collect()
}
