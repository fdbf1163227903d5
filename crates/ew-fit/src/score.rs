//! How well a hypothesis explains the rounds.

use super::filling::{Filling, PRIVATE, Share, Strand};
use super::hypothesis::{Capacities, Hypothesis};
use super::noise::{
    ISOLATED_SIGMA, OVERDISPERSION, PARTIAL_SIGMA, SPLIT_SIGMA, log_kernel, swinging_density,
};
use super::obs::Obs;
use super::rounds::{Round, Rounds, Sum, Sums};
use ew_evidence::criteria::NEGLIGIBLE;
use ew_stats::splitmix;

/// Guesses at the hashes of a round's connections; fewer above [`MANY_HOSTS`].
const DRAWS: usize = 16;
const DRAWS_OF_MANY: usize = 8;
const MANY_HOSTS: usize = 40;

/// A flow as predicted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Predicted {
    pub(super) bits_per_sec: f64,
    /// The resource that limits it, or [`PRIVATE`].
    pub(super) bottleneck: u32,
    /// Flows of the round with that bottleneck.
    pub(super) users: f64,
    /// Random loss is assumed on its way.
    pub(super) lossy: bool,
}

/// Predicts and scores; keeps the buffers.
#[derive(Debug)]
pub(super) struct Scorer<'a> {
    pub(super) rounds: &'a Rounds,
    filling: Filling,
    strands: Vec<Strand>,
    /// Per flow, where its strands begin; one more at the end.
    first_strand: Vec<usize>,
    shares: Vec<Share>,
    /// Capacities as far as the hashes of a round's connections open them.
    open: Vec<f64>,
    users: Vec<f64>,
    /// Per draw, per flow.
    draws: Vec<Vec<Predicted>>,
    sum: SumScorer,
}

impl<'a> Scorer<'a> {
    pub(super) fn new(rounds: &'a Rounds) -> Self {
        Self {
            rounds,
            filling: Filling::default(),
            strands: Vec::new(),
            first_strand: Vec::new(),
            shares: Vec::new(),
            open: Vec::new(),
            users: Vec::new(),
            draws: Vec::new(),
            sum: SumScorer::default(),
        }
    }

    /// Log-likelihood of all rounds, flows' dependence allowed for.
    pub(super) fn score(&mut self, hypothesis: &Hypothesis) -> f64 {
        let capacities = hypothesis.capacities(self.rounds);
        let rounds = self.rounds.rounds.iter();
        let sum: f64 = rounds
            .map(|round| self.score_round(hypothesis, &capacities, round))
            .sum();
        (sum + super::loss::gain_of_parts(self.rounds, hypothesis)) / OVERDISPERSION
    }

    /// Every flow of a round, as predicted; with hidden paths, of the first guess at the hashes.
    pub(super) fn predict(&mut self, capacities: &Capacities, round: &Round) -> &[Predicted] {
        self.predict_draws(capacities, round, 1);
        &self.draws[0]
    }

    /// The prediction of each flow, the geometric mean over the guesses at the hashes.
    pub(super) fn mean_prediction(
        &mut self,
        capacities: &Capacities,
        round: &Round,
    ) -> Vec<Predicted> {
        let draws = self.draws_of(capacities);
        self.predict_draws(capacities, round, draws);
        let mut mean = self.draws[0].clone();
        for (slot, predicted) in mean.iter_mut().enumerate() {
            let logs = self.draws[..draws]
                .iter()
                .map(|draw| draw[slot].bits_per_sec.max(1.0).ln());
            predicted.bits_per_sec = (logs.sum::<f64>() / draws as f64).exp();
            predicted.users = self.draws[..draws]
                .iter()
                .map(|draw| draw[slot].users)
                .fold(0.0, f64::max);
        }
        mean
    }

    fn draws_of(&self, capacities: &Capacities) -> usize {
        match capacities.paths {
            1 => 1,
            _ if self.rounds.hosts > MANY_HOSTS => DRAWS_OF_MANY,
            _ => DRAWS,
        }
    }

    fn predict_draws(&mut self, capacities: &Capacities, round: &Round, draws: usize) {
        if self.draws.len() < draws {
            self.draws.resize_with(draws, Vec::new);
        }
        for draw in 0..draws {
            self.lay_strands(capacities, round, draw);
            let open = match &round.hashed {
                None => &capacities.bits_per_sec,
                Some(hashed) => {
                    self.open.clone_from(&capacities.bits_per_sec);
                    let hosts = self.open.iter_mut().zip(&hashed.hosts);
                    hosts.for_each(|(capacity, share)| *capacity *= share);
                    &self.open
                }
            };
            self.filling.fill(&self.strands, open, &mut self.shares);
            self.gather(capacities, round, draw);
        }
    }

    /// The strands of a round's flows: one for each parallel member that the flow's connections are
    /// hashed to.
    fn lay_strands(&mut self, capacities: &Capacities, round: &Round, draw: usize) {
        self.strands.clear();
        self.first_strand.clear();
        for (slot, obs) in self.rounds.of(round).iter().enumerate() {
            self.first_strand.push(self.strands.len());
            let pair = capacities.pairs.get(&(obs.src, obs.dst)).copied();
            let asked = obs.asks_what_it_got.then_some(obs.bits_per_sec);
            let limits = [pair, asked].into_iter().flatten();
            let limit = limits.fold(capacities.limit_of(obs), f64::min);
            let ends = [
                Capacities::tx(obs.src) as u32,
                capacities.rx(obs.dst) as u32,
            ];
            let Some((from, to)) = obs.racks else {
                let way = [ends[0], ends[1], 0, 0, 0, 0];
                self.strands.push(Strand {
                    weight: obs.streams,
                    way,
                    hops: 2,
                    limit_bits_per_sec: limit,
                });
                continue;
            };
            let pods = self
                .rounds
                .paths
                .pods_between((from, to))
                .map(|(from, to)| {
                    (
                        capacities.pod_up(from) as u32,
                        capacities.pod_down(to) as u32,
                    )
                });
            for (member, connections) in
                members(obs, capacities.paths, round.flows.start + slot, draw)
            {
                let (up, down) = (capacities.up(from, member), capacities.down(to, member));
                let (out, into) = pods.unwrap_or_default();
                self.strands.push(Strand {
                    weight: connections,
                    way: [ends[0], ends[1], up as u32, down as u32, out, into],
                    hops: if pods.is_some() { 6 } else { 4 },
                    limit_bits_per_sec: limit * connections / obs.streams,
                });
            }
        }
        self.first_strand.push(self.strands.len());
    }

    fn gather(&mut self, capacities: &Capacities, round: &Round, draw: usize) {
        self.users.clear();
        self.users.resize(capacities.bits_per_sec.len(), 0.0);
        let flows = &mut self.draws[draw];
        flows.clear();
        for (slot, obs) in self.rounds.of(round).iter().enumerate() {
            let own = &self.shares[self.first_strand[slot]..self.first_strand[slot + 1]];
            let bottleneck = own[0].bottleneck;
            if let Some(users) = self.users.get_mut(bottleneck as usize) {
                *users += 1.0;
            }
            let left = loss_left(capacities, obs);
            let sum: f64 = own.iter().map(|share| share.bits_per_sec).sum();
            flows.push(Predicted {
                bits_per_sec: sum * left,
                bottleneck,
                users: 1.0,
                lossy: left < 1.0,
            });
        }
        for flow in flows {
            if let Some(users) = self.users.get(flow.bottleneck as usize) {
                flow.users = *users;
            }
        }
    }

    fn score_round(
        &mut self,
        hypothesis: &Hypothesis,
        capacities: &Capacities,
        round: &Round,
    ) -> f64 {
        let draws = self.draws_of(capacities);
        self.predict_draws(capacities, round, draws);
        let draws = &self.draws[..draws];
        self.sum.together.resize(capacities.bits_per_sec.len(), 0.0);
        let sums = round
            .sums
            .iter()
            .map(|sums| 0.5 * self.sum.score(hypothesis, sums, draws));
        let splits = score_splits(hypothesis, self.rounds.of(round), round, draws);
        sums.sum::<f64>() + splits
    }
}

/// How many of a flow's connections are hashed to each of `paths` members: of the given guess,
/// which is the same for every hypothesis with as many, so that scores differ by what is assumed
/// and not by luck.
fn members(
    obs: &Obs,
    paths: usize,
    flow: usize,
    draw: usize,
) -> impl Iterator<Item = (usize, f64)> {
    let mut connections = [0.0; super::members::MAX_PATHS];
    match paths {
        1 => connections[0] = obs.streams,
        _ => {
            for stream in 0..obs.streams as usize {
                let thrown = splitmix(((draw * 1024 + stream) as u64) << 32 | flow as u64);
                connections[(thrown % paths as u64) as usize] += 1.0;
            }
        }
    }
    connections
        .into_iter()
        .take(paths)
        .enumerate()
        .filter(|(_, count)| *count > 0.0)
}

/// What random loss on its way leaves of a flow's rate.
fn loss_left(capacities: &Capacities, obs: &Obs) -> f64 {
    let ends = capacities.loss[0][obs.src.index()].min(capacities.loss[1][obs.dst.index()]);
    obs.racks.map_or(ends, |(from, to)| {
        ends.min(capacities.loss[2][from])
            .min(capacities.loss[3][to])
    })
}

/// Scores the sums at one end of a round's flows; keeps the buffers.
#[derive(Debug, Default)]
struct SumScorer {
    /// Per resource, the flows of a group that it limits: they use it together.
    together: Vec<f64>,
    /// Per draw.
    predicted: Vec<PredictedSum>,
    logs: Vec<f64>,
}

/// A sum as predicted.
#[derive(Clone, Copy, Debug, Default)]
struct PredictedSum {
    bits_per_sec: f64,
    /// Share of its bottlenecks that others use.
    partial: f64,
    /// Share of its flows that are lossy.
    lossy: f64,
}

impl SumScorer {
    fn score(&mut self, hypothesis: &Hypothesis, sums: &Sums, draws: &[Vec<Predicted>]) -> f64 {
        let mut left = sums.slots.as_slice();
        let mut score = 0.0;
        for sum in &sums.groups {
            let (slots, others) = left.split_at(sum.flows as usize);
            left = others;
            self.predicted.clear();
            for draw in draws {
                let predicted = self.predict(slots, draw);
                self.predicted.push(predicted);
            }
            score += self.score_sum(hypothesis, sum);
        }
        score
    }

    fn predict(&mut self, slots: &[u32], draw: &[Predicted]) -> PredictedSum {
        let flows = || slots.iter().map(|slot| &draw[*slot as usize]);
        let limited = || flows().filter(|flow| flow.bottleneck != PRIVATE);
        for flow in limited() {
            self.together[flow.bottleneck as usize] += 1.0;
        }
        let count = slots.len() as f64;
        let mut sum = PredictedSum::default();
        for flow in flows() {
            let others = match flow.bottleneck {
                PRIVATE => 0.0,
                shared => (flow.users - self.together[shared as usize]).max(0.0) / flow.users,
            };
            sum.bits_per_sec += flow.bits_per_sec;
            sum.partial += others / count;
            sum.lossy += f64::from(u8::from(flow.lossy)) / count;
        }
        for flow in limited() {
            self.together[flow.bottleneck as usize] = 0.0;
        }
        sum
    }

    fn score_sum(&mut self, hypothesis: &Hypothesis, sum: &Sum) -> f64 {
        let draws = &self.predicted;
        let logs = draws.iter().map(|draw| draw.bits_per_sec.max(1.0).ln());
        self.logs.clear();
        self.logs.extend(logs);
        let spread = deviation(&self.logs);
        let of_draw = |(log, draw): (&f64, &PredictedSum)| {
            let base = if sum.flows < 1.5 {
                if draw.partial > NEGLIGIBLE {
                    hypothesis.split_sigma
                } else {
                    hypothesis.isolated_sigma
                }
            } else {
                let others = PARTIAL_SIGMA * draw.partial;
                (ISOLATED_SIGMA * ISOLATED_SIGMA + others * others + 0.25 * spread * spread).sqrt()
            };
            let swing = base.max(SPLIT_SIGMA * draw.lossy);
            swinging_density(sum.ln_rate - log, base, swing, sum.doubt)
        };
        let mean = self.logs.iter().zip(draws).map(of_draw).sum::<f64>() / draws.len() as f64;
        mean.ln()
    }
}

/// What the single flows add to the sums they are part of.
fn score_splits(
    hypothesis: &Hypothesis,
    flows: &[Obs],
    round: &Round,
    draws: &[Vec<Predicted>],
) -> f64 {
    let mut score = 0.0;
    let weighed = flows.iter().zip(&round.split_weights).enumerate();
    for (slot, (obs, weight)) in weighed.filter(|(_, (_, weight))| **weight >= 1e-6) {
        let of_draw = |draw: &Vec<Predicted>| {
            let flow = &draw[slot];
            let z = obs.ln_rate - flow.bits_per_sec.max(1.0).ln();
            let steady = flow_sigma(hypothesis, obs, flow);
            let swing = if flow.lossy { SPLIT_SIGMA } else { steady };
            swinging_density(z, steady, swing, obs.doubt)
        };
        let mean = draws.iter().map(of_draw).sum::<f64>() / draws.len() as f64;
        score += weight * mean.ln();
    }
    score
}

fn flow_sigma(hypothesis: &Hypothesis, obs: &Obs, flow: &Predicted) -> f64 {
    if flow.users > 1.5 {
        hypothesis.split_sigma / obs.streams.min(16.0).sqrt()
    } else {
        hypothesis.isolated_sigma
    }
}

/// Of an isolated flow against a prediction.
pub(super) fn isolated_kernel(
    hypothesis: &Hypothesis,
    obs: &Obs,
    predicted: f64,
    doubt: f64,
) -> f64 {
    let z = obs.ln_rate - predicted.max(1.0).ln();
    log_kernel(z, hypothesis.isolated_sigma, doubt)
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}
