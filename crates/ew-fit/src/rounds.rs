//! What the fit reads: the flows of every valid round of the capacity tests, and who shares a sum
//! with whom.

use super::loss_index::Index;
use super::noise::ISOLATED_SIGMA;
use super::obs::{Obs, has_many_streams, obs};
use super::paced::Paced;
use ew_evidence::criteria::{MANY, MIN_EFFECT, MIN_SAMPLES, NEGLIGIBLE, SURE};
use ew_evidence::observations::Observations;
use ew_evidence::quality::{LITTLE_STARVATION, Quality, starvation};
use ew_model::plan::Stage;
use ew_model::record::FlowRecord;
use ew_model::workload::StreamCount;
use ew_model::{HostId, Inventory};
use ew_stats::{median, quantile, robust_sigma};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// One round: its flows, and their sums at both ends.
#[derive(Clone, Debug)]
pub struct Round {
    pub stage: usize,
    /// Index among the stage's rounds with rows.
    pub at: usize,
    pub flows: Range<usize>,
    /// Controller's clock, middle of the windows. `None` in runs that do not report.
    pub time_ns: Option<i64>,
    pub(super) sums: [Sums; 2],
    /// All its flows were degraded at once, for a reason outside the network.
    pub is_excused: bool,
    /// Whether a flow shares neither its sender nor its receiver with another.
    pub alone: Vec<bool>,
    /// Share of a flow's weight that its split of the sums has: a flow by itself is its own sum.
    pub(super) split_weights: Vec<f64>,
    /// Where hosts or racks have several links.
    pub(super) hashed: Option<Hashed>,
}

/// What hashes over several links are expected to leave in one round.
#[derive(Clone, Debug)]
pub(super) struct Hashed {
    /// Of each host's capacity: tx of all, then rx of all.
    pub(super) hosts: Vec<f64>,
    /// Of what both hosts of a flow can do, per flow of the round.
    pub(super) flows: Vec<f64>,
}

/// The flows of a round that end, or begin, at the same host: a host with several flows, else a
/// rack, else the flow itself. TCP's split of a shared bottleneck shows little; the sum shows a
/// lot.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Per flow of the round, its group.
    pub(super) group_of: Vec<u32>,
    /// The flows of the first group, of the second, and so on.
    pub(super) slots: Vec<u32>,
    pub(super) groups: Vec<Sum>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) bits_per_sec: f64,
    pub(super) ln_rate: f64,
    pub(super) flows: f64,
    /// Mean over its flows.
    pub(super) doubt: f64,
}

/// What was seen of the paths between racks.
#[derive(Clone, Debug, Default)]
pub struct KnownPaths {
    /// Parallel ones of racks that have lost none. `None` where that is not known.
    pub most: Option<u32>,
    /// Racks that use fewer.
    pub short: BTreeSet<usize>,
    /// The pod of each rack, where some are nearer to one another than to the rest. Empty where
    /// none are.
    pub pod_of: Vec<usize>,
}

impl KnownPaths {
    pub(super) fn pods(&self) -> usize {
        self.pod_of.iter().max().map_or(0, |last| last + 1)
    }

    /// The pods of a flow's racks, where they differ.
    pub(super) fn pods_between(&self, racks: (usize, usize)) -> Option<(usize, usize)> {
        let pods = (*self.pod_of.get(racks.0)?, *self.pod_of.get(racks.1)?);
        (pods.0 != pods.1).then_some(pods)
    }
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub obs: Vec<Obs>,
    pub rounds: Vec<Round>,
    pub(super) hosts: usize,
    pub(super) racks: usize,
    pub(super) rack_of: Vec<Option<usize>>,
    /// Whether the host took part to the end.
    pub(super) is_up: Vec<bool>,
    /// Links of each host over which its connections are hashed.
    pub(super) members: Vec<u32>,
    pub(super) paths: KnownPaths,
    /// Whether cross-rack flows were to have many connections, measured or not.
    pub(super) asks_capacity: bool,
    /// The largest part of each host's capacity, tx of all and then rx of all, that hashes left to
    /// cross-rack connections in a round.
    pub(super) open: Vec<f64>,
    pub(super) loss: Index,
    pub(super) paced: Paced,
    /// Spread of the logarithm of what isolated intra-rack flows do of what their hosts can, over
    /// all of them.
    pub(super) scatter: f64,
}

/// Whether the stage asks with many connections what leads from rack to rack.
fn asks_capacity(inventory: &Inventory, stage: &Stage) -> bool {
    let workload = &stage.workload;
    let has_many = workload.stream_count == StreamCount::Doubling
        || has_many_streams(f64::from(workload.streams));
    let mut flows = stage.rounds.iter().flat_map(|round| &round.flows);
    has_many && flows.any(|flow| inventory.rack_of(flow.src) != inventory.rack_of(flow.dst))
}

impl Rounds {
    pub(super) fn new(observations: &Observations<'_>, quality: &Quality) -> Self {
        let inventory = observations.inventory();
        let rack_of = inventory
            .host_ids()
            .map(|host| Some(inventory.rack_of(host)?.index()));
        let mut all = Self {
            obs: Vec::new(),
            rounds: Vec::new(),
            hosts: inventory.hosts.len(),
            racks: inventory.racks.len(),
            rack_of: rack_of.collect(),
            is_up: inventory
                .host_ids()
                .map(|host| is_up(observations, host))
                .collect(),
            members: vec![1; inventory.hosts.len()],
            paths: KnownPaths::default(),
            asks_capacity: false,
            open: vec![1.0; 2 * inventory.hosts.len()],
            loss: Index::default(),
            paced: Paced::of(observations, quality),
            scatter: ISOLATED_SIGMA,
        };
        for (index, stage) in observations.stages.iter().enumerate() {
            if !stage.judged {
                continue;
            }
            all.asks_capacity |= asks_capacity(inventory, stage.stage);
            for (at, round) in stage.rounds.iter().enumerate() {
                if quality.is_void(index, at) || round.is_mostly_missing() {
                    continue;
                }
                let start = all.obs.len();
                let workload = &stage.stage.workload;
                let flows = round.rates().zip(starvation(round));
                let flows = flows.filter(|((_, rate), _)| *rate > 0.0);
                all.obs.extend(flows.map(|((row, rate), starved)| {
                    let obs = obs(inventory, workload, row, rate, starved);
                    let doubt = if quality.is_throttled { 1.0 } else { obs.doubt };
                    Obs { doubt, ..obs }
                }));
                if all.obs.len() > start {
                    let time_ns = round
                        .records
                        .iter()
                        .find_map(|row| middle_ns(observations, row));
                    all.push_round((index, at), start, time_ns);
                }
            }
        }
        let slots = all
            .rounds
            .iter()
            .flat_map(|round| round.flows.clone().map(move |at| (round, at)));
        let isolated = slots.filter(|(round, at)| Self::is_isolated(round, at - round.flows.start));
        all.loss = Index::new(&all.obs, isolated.map(|(_, at)| at).collect());
        all
    }

    fn push_round(&mut self, (stage, at): (usize, usize), start: usize, time_ns: Option<i64>) {
        let flows = start..self.obs.len();
        let own = &self.obs[flows.clone()];
        let sums = [
            sums(
                own,
                self.hosts,
                |obs| obs.src,
                |obs| obs.racks.map(|racks| racks.0),
            ),
            sums(
                own,
                self.hosts,
                |obs| obs.dst,
                |obs| obs.racks.map(|racks| racks.1),
            ),
        ];
        let (sending, receiving) = (
            counts(own, self.hosts, |obs| obs.src),
            counts(own, self.hosts, |obs| obs.dst),
        );
        let is_alone = |obs: &Obs| sending[obs.src.index()] == 1 && receiving[obs.dst.index()] == 1;
        let alone = own.iter().map(is_alone).collect();
        let split_weight = |slot: usize| {
            let parts = sums.iter().map(|sums| 0.5 / sums.of(slot).flows);
            1.0 - parts.sum::<f64>()
        };
        let split_weights = (0..own.len()).map(split_weight).collect();
        self.rounds.push(Round {
            stage,
            at,
            flows,
            time_ns,
            sums,
            is_excused: false,
            alone,
            split_weights,
            hashed: None,
        });
    }

    pub fn of(&self, round: &Round) -> &[Obs] {
        &self.obs[round.flows.clone()]
    }

    /// Whether a flow, by its index in the round, shares no end and no rack's uplink with another.
    pub(super) fn is_isolated(round: &Round, slot: usize) -> bool {
        round.sums.iter().all(|sums| sums.of(slot).flows < 1.5)
    }

    /// Isolated intra-rack flows, and the logarithm of their rate over what their hosts, of which
    /// each does `rate`, let their connections have.
    fn isolated_inside<'r>(
        &'r self,
        round: &'r Round,
        rate: &'r impl Fn(HostId) -> f64,
    ) -> impl Iterator<Item = (&'r Obs, f64)> {
        let flows = self.of(round).iter().zip(&round.alone).enumerate();
        let isolated = flows.filter(|(_, (obs, alone))| **alone && obs.racks.is_none());
        isolated.map(move |(slot, (obs, _))| {
            let hosts = rate(obs.src).min(rate(obs.dst)) * round.hashed_share(slot);
            (obs, obs.ln_rate - hosts.ln())
        })
    }

    pub(super) fn note_scatter(&mut self, rate: impl Fn(HostId) -> f64) {
        let rounds = self.rounds.iter();
        let flows = rounds.flat_map(|round| self.isolated_inside(round, &rate));
        let gaps: Vec<f64> = flows.map(|(_, gap)| gap).collect();
        self.scatter = robust_sigma(&gaps).max(NEGLIGIBLE);
    }

    /// Starvation that takes nothing: where isolated intra-rack flows whose ends waited as much are
    /// as fast as their classes, buffers bridge the waiting, and a low rate of this run is not the
    /// CPU's doing up to that degree.
    pub(super) fn forgive_harmless_starvation(&mut self, rate: impl Fn(HostId) -> f64) {
        let flows = self
            .rounds
            .iter()
            .flat_map(|round| self.isolated_inside(round, &rate));
        let starved: Vec<(f64, f64)> = flows
            .filter(|(obs, _)| obs.starvation > LITTLE_STARVATION)
            .map(|(obs, gap)| (obs.starvation, gap))
            .collect();
        let gaps: Vec<f64> = starved.iter().map(|(_, gap)| *gap).collect();
        let degrees: Vec<f64> = starved.iter().map(|(degree, _)| *degree).collect();
        // Either end may be a slow host.
        let not_slow = 1.0 - (1.0 - MANY).powi(2);
        let is_harmless = starved.len() >= 2 * MIN_SAMPLES
            && quantile(&gaps, not_slow).is_some_and(|gap| gap > -MIN_EFFECT);
        let Some(degree) = quantile(&degrees, SURE).filter(|_| is_harmless) else {
            return;
        };
        for round in &mut self.rounds {
            for (slot, obs) in self.obs[round.flows.clone()].iter_mut().enumerate() {
                if obs.starvation > degree {
                    continue;
                }
                for sums in &mut round.sums {
                    let sum = &mut sums.groups[sums.group_of[slot] as usize];
                    sum.doubt -= obs.starvation / sum.flows;
                }
                obs.doubt -= obs.starvation;
                obs.starvation = 0.0;
            }
        }
    }

    /// A round whose intra-rack flows are low while most rounds of its stage are not was slow as a
    /// whole, for a reason outside the network: its low figures show nothing.
    pub(super) fn excuse_slow_rounds(&mut self, rate: impl Fn(HostId) -> f64) {
        let mut of_stages: BTreeMap<usize, (usize, Vec<usize>)> = BTreeMap::new();
        for (at, round) in self.rounds.iter().enumerate() {
            let flows = self.isolated_inside(round, &rate);
            let gaps: Vec<f64> = flows.map(|(_, gap)| gap).collect();
            let Some(middle) = median(&gaps).filter(|_| gaps.len() >= MIN_SAMPLES) else {
                continue;
            };
            let of_stage = of_stages.entry(round.stage).or_default();
            of_stage.0 += 1;
            of_stage.1.extend((middle < -MIN_EFFECT).then_some(at));
        }
        let few = of_stages
            .into_values()
            .filter(|(rounds, slow)| 2 * slow.len() < *rounds);
        for at in few.flat_map(|(_, slow)| slow) {
            self.rounds[at].is_excused = true;
            self.doubt(at, |_| true);
        }
    }

    /// Where cross-rack flows ask for capacity with many connections, those of one connection ask
    /// what a connection gets: hashed onto parallel paths, a low rate of theirs shows nothing about
    /// the capacity, and leaves the more to others.
    pub(super) fn doubt_single_connections(&mut self) {
        if !self.asks_capacity {
            return;
        }
        let is_single = |obs: &Obs| obs.racks.is_some() && !obs.has_many_streams();
        for at in 0..self.rounds.len() {
            self.doubt(at, is_single);
        }
        let single = self.obs.iter_mut().filter(|obs| is_single(obs));
        single.for_each(|obs| obs.asks_what_it_got = true);
    }

    fn doubt(&mut self, round: usize, is_meant: impl Fn(&Obs) -> bool) {
        let round = &mut self.rounds[round];
        let flows = &mut self.obs[round.flows.clone()];
        for (slot, obs) in flows
            .iter_mut()
            .enumerate()
            .filter(|(_, obs)| is_meant(obs))
        {
            for sums in &mut round.sums {
                let group = sums.group_of[slot] as usize;
                let sum = &mut sums.groups[group];
                sum.doubt += (1.0 - obs.doubt) / sum.flows;
            }
            obs.doubt = 1.0;
        }
    }

    /// The hosts of a rack that took part to the end.
    pub(super) fn hosts_in(&self, rack: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.hosts).filter(move |host| self.rack_of[*host] == Some(rack) && self.is_up[*host])
    }

    /// Whether cross-rack connections may share one of several paths by chance, so that they show
    /// neither what hosts can do nor what all paths carry: where none has others to spread with.
    pub(super) fn may_collide(&self) -> bool {
        !self.asks_capacity && self.paths.most != Some(1)
    }

    /// Whether intra-rack flows show what most hosts do by themselves.
    pub(super) fn shows_hosts(&self) -> bool {
        let mut shown = vec![false; self.hosts];
        for round in &self.rounds {
            let sides = self.shown_sides(round);
            for obs in self.of(round).iter().filter(|obs| obs.racks.is_none()) {
                shown[obs.src.index()] |= sides[obs.src.index()];
                shown[obs.dst.index()] |= sides[self.hosts + obs.dst.index()];
            }
        }
        let all: BTreeSet<HostId> = self.obs.iter().flat_map(|obs| [obs.src, obs.dst]).collect();
        let shown = shown.iter().filter(|shown| **shown).count();
        shown as f64 >= (1.0 - MANY) * all.len() as f64
    }

    /// By host, sending and then receiving: whether the other ends of all its flows in a round have
    /// no other flow, which would have it do less.
    pub(super) fn shown_sides(&self, round: &Round) -> Vec<bool> {
        let flows = self.of(round);
        let sending = counts(flows, self.hosts, |obs| obs.src);
        let receiving = counts(flows, self.hosts, |obs| obs.dst);
        let mut sides: Vec<bool> = sending.iter().chain(&receiving).map(|n| *n > 0).collect();
        for obs in flows {
            sides[obs.src.index()] &= receiving[obs.dst.index()] == 1;
            sides[self.hosts + obs.dst.index()] &= sending[obs.src.index()] == 1;
        }
        sides
    }

    /// Whether any host has several links.
    pub(super) fn has_lag(&self) -> bool {
        self.members.iter().any(|members| *members > 1)
    }

    /// Whether any flow crosses racks.
    pub(super) fn has_crossing(&self) -> bool {
        self.obs.iter().any(|obs| obs.racks.is_some())
    }
}

impl Round {
    /// What hashes leave of what the hosts of a flow, by its index in the round, can do.
    pub(super) fn hashed_share(&self, slot: usize) -> f64 {
        let hashed = self.hashed.as_ref();
        hashed.map_or(1.0, |hashed| hashed.flows[slot])
    }
}

impl Sums {
    pub(super) fn of(&self, slot: usize) -> &Sum {
        &self.groups[self.group_of[slot] as usize]
    }
}

fn is_up(observations: &Observations<'_>, host: HostId) -> bool {
    !observations.run.lost.contains_key(&host) && !observations.run.failed.contains_key(&host)
}

/// The middle of the sender's window on the controller's clock.
fn middle_ns(observations: &Observations<'_>, row: &FlowRecord) -> Option<i64> {
    let offset_ns = observations.run.clock_offset_ns.get(&row.src)?;
    let sender = row.sender.as_ref()?;
    let start_ns = i64::try_from(sender.window_start_ns?).ok()?;
    let half_ns = i64::try_from(sender.window_ns / 2).ok()?;
    start_ns.checked_sub(*offset_ns)?.checked_add(half_ns)
}

fn sums(
    flows: &[Obs],
    hosts: usize,
    end: impl Fn(&Obs) -> HostId,
    rack: impl Fn(&Obs) -> Option<usize>,
) -> Sums {
    let at_host = counts(flows, hosts, &end);
    let mut number: BTreeMap<(u8, usize), u32> = BTreeMap::new();
    let mut sums = Sums::default();
    for (slot, obs) in flows.iter().enumerate() {
        let host = end(obs).index();
        let key = match rack(obs) {
            _ if at_host[host] > 1 => (0, host),
            Some(rack) => (1, rack),
            None => (2, slot),
        };
        let group = *number.entry(key).or_insert_with(|| {
            sums.groups.push(Sum::default());
            sums.groups.len() as u32 - 1
        });
        sums.group_of.push(group);
        let sum = &mut sums.groups[group as usize];
        sum.bits_per_sec += obs.bits_per_sec;
        sum.flows += 1.0;
        sum.doubt += obs.doubt;
    }
    for sum in &mut sums.groups {
        sum.doubt /= sum.flows;
        sum.ln_rate = sum.bits_per_sec.ln();
    }
    sums.slots = (0..flows.len() as u32).collect();
    sums.slots.sort_by_key(|slot| sums.group_of[*slot as usize]);
    sums
}

/// Flows of each host at one of their ends.
fn counts(flows: &[Obs], hosts: usize, end: impl Fn(&Obs) -> HostId) -> Vec<u32> {
    let mut counts = vec![0; hosts];
    for obs in flows {
        counts[end(obs).index()] += 1;
    }
    counts
}
