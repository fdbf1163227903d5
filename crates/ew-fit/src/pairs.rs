//! Single ordered pairs that are slow although neither of their hosts is: a path between them.

use super::hypothesis::{Direction, Effect, Hypothesis, Location, Part};
use super::noise::{OVERDISPERSION, log_kernel, low_share};
use super::obs::Obs;
use super::prices;
use super::search::Search;
use ew_evidence::criteria::{EQUAL, MIN_EFFECT, MIN_SEEN, SURE};
use ew_model::HostId;
use ew_stats::{binomial_at_least, median, poisson_at_least, robust_sigma};
use std::collections::{BTreeMap, BTreeSet};

/// Adds pairs while they explain more than they cost.
pub(super) fn add(search: &mut Search<'_>, without: Hypothesis) -> Hypothesis {
    let measured: BTreeSet<(HostId, HostId)> = search
        .rounds
        .obs
        .iter()
        .map(|obs| (obs.src, obs.dst))
        .collect();
    let max = (MIN_SEEN - 1).max(((1.0 - SURE) * measured.len() as f64) as usize);
    let mut hypothesis = without.clone();
    for added in 0.. {
        let Some(part) = best(search, &hypothesis) else {
            break;
        };
        let other = hypothesis.with(part);
        if search.worth(&other) <= search.worth(&hypothesis) {
            break;
        }
        if added == max {
            return without;
        }
        hypothesis = other;
    }
    hypothesis
}

fn best(search: &mut Search<'_>, hypothesis: &Hypothesis) -> Option<Part> {
    let rounds = search.rounds;
    let candidates =
        isolated_pairs(search, hypothesis)
            .into_iter()
            .filter_map(|((src, dst), flows)| {
                let location = Location::Pair(src, dst);
                let (gain, effect) = gain(&flows).filter(|_| flows.len() >= MIN_SEEN)?;
                let part = Part { location, effect };
                let is_new = !hypothesis.has(location) && gain > prices::of_part(rounds, &part);
                is_new.then_some((gain, part))
            });
    candidates
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, part)| part)
}

/// Pairs whose flows are lower than explained, but too few to find why, the plainest first.
pub(super) fn unexplained(search: &mut Search<'_>, hypothesis: &Hypothesis) -> UnexplainedPairs {
    let isolated = isolated_pairs(search, hypothesis);
    let expected_by_noise = isolated.values().map(|flows| low_by_noise(flows)).sum();
    let mut found: Vec<(f64, Unexplained)> = isolated
        .iter()
        .filter_map(|(pair, flows)| unexplained_pair(*pair, flows))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    UnexplainedPairs {
        pairs: found.into_iter().map(|(_, pair)| pair).collect(),
        expected_by_noise,
    }
}

/// With what its flows speak for a lower rate than predicted, in nats.
fn unexplained_pair(
    (src, dst): (HostId, HostId),
    flows: &[IsolatedFlow<'_>],
) -> Option<(f64, Unexplained)> {
    let (gain, effect) = gain(flows)?;
    let (Effect::Capacity(bits_per_sec), true) = (effect, gain > EQUAL) else {
        return None;
    };
    let predicted: Vec<f64> = flows.iter().map(|flow| flow.predicted).collect();
    let pair = Unexplained {
        src,
        dst,
        flows: flows.len(),
        bits_per_sec,
        predicted_bits_per_sec: median(&predicted)?,
    };
    Some((gain, pair))
}

/// Probability that a pair that is as predicted is taken for unexplained: that most of its flows
/// are so low by a timeout, since that makes their median low.
fn low_by_noise(flows: &[IsolatedFlow<'_>]) -> f64 {
    let nats = EQUAL * OVERDISPERSION;
    let shares = flows
        .iter()
        .map(|flow| low_share(flow.sigma, flow.doubt, nats));
    let share = shares.sum::<f64>() / flows.len() as f64;
    binomial_at_least(flows.len() / 2 + 1, flows.len(), share)
}

/// The pairs that nothing explains.
#[derive(Debug, Default)]
pub struct UnexplainedPairs {
    pub pairs: Vec<Unexplained>,
    /// How many there are, on average, where every prediction is right.
    expected_by_noise: f64,
}

impl UnexplainedPairs {
    /// Whether the noise seldom leaves so many pairs. A timeout seldom takes one flow of a round
    /// alone, which is why this counts less, as all log-likelihoods do.
    pub fn is_beyond_noise(&self, pairs: usize) -> bool {
        let probability = poisson_at_least(pairs, self.expected_by_noise);
        -probability.ln() > EQUAL * OVERDISPERSION
    }
}

/// A pair that nothing explains.
#[derive(Clone, Copy, Debug)]
pub struct Unexplained {
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// How many were measured.
    pub flows: usize,
    /// Median of its flows, measured and predicted.
    pub bits_per_sec: f64,
    /// What the explanation makes of them.
    pub predicted_bits_per_sec: f64,
}

/// A flow that shares nothing.
struct IsolatedFlow<'r> {
    obs: &'r Obs,
    /// Bits per second.
    predicted: f64,
    /// Spread of the logarithm of such flows.
    sigma: f64,
    /// How little a low rate shows, 0 to 1.
    doubt: f64,
}

impl IsolatedFlow<'_> {
    fn kernel(&self, predicted: f64) -> f64 {
        log_kernel(
            self.obs.ln_rate - predicted.max(1.0).ln(),
            self.sigma,
            self.doubt,
        )
    }
}

/// By ordered pair its flows that share nothing.
type Pairs<'r> = BTreeMap<(HostId, HostId), Vec<IsolatedFlow<'r>>>;

fn isolated_pairs<'r>(search: &mut Search<'r>, hypothesis: &Hypothesis) -> Pairs<'r> {
    let rounds = search.rounds;
    let capacities = hypothesis.capacities(rounds);
    let mut pairs: Pairs<'r> = BTreeMap::new();
    for round in &rounds.rounds {
        let predicted = search.scorer().mean_prediction(&capacities, round);
        for (slot, obs) in rounds.of(round).iter().enumerate() {
            let is_isolated = round.alone[slot] && predicted[slot].users < 1.5;
            if is_isolated && (obs.racks.is_none() || capacities.paths == 1) {
                let flow = IsolatedFlow {
                    obs,
                    predicted: predicted[slot].bits_per_sec,
                    sigma: hypothesis.isolated_sigma,
                    doubt: obs.doubt,
                };
                pairs.entry((obs.src, obs.dst)).or_default().push(flow);
            }
        }
    }
    widen(hypothesis, &mut pairs);
    pairs
}

/// The flows of a slow host spread as they do with all its peers: one peer's are odd only beyond
/// that. Where packets are lost at random a flow loses any part of its rate.
fn widen(hypothesis: &Hypothesis, pairs: &mut Pairs<'_>) {
    for part in &hypothesis.parts {
        match (part.location, part.effect) {
            (location, Effect::Loss(_)) => {
                flows_on(pairs, location).for_each(|flow| flow.doubt = 1.0);
            }
            (Location::Host(host, direction), Effect::Capacity(_)) => {
                for way in direction.each() {
                    widen_to_spread(flows_on(pairs, Location::Host(host, way)).collect());
                }
            }
            _ => (),
        }
    }
}

fn flows_on<'p, 'r>(
    pairs: &'p mut Pairs<'r>,
    location: Location,
) -> impl Iterator<Item = &'p mut IsolatedFlow<'r>> {
    let flows = pairs.values_mut().flatten();
    flows.filter(move |flow| location.carries(flow.obs))
}

fn widen_to_spread(flows: Vec<&mut IsolatedFlow<'_>>) {
    let residual = |flow: &&mut IsolatedFlow<'_>| flow.obs.ln_rate - flow.predicted.max(1.0).ln();
    let spread = robust_sigma(&flows.iter().map(residual).collect::<Vec<_>>());
    for flow in flows {
        flow.sigma = flow.sigma.max(spread);
    }
}

fn gain(flows: &[IsolatedFlow<'_>]) -> Option<(f64, Effect)> {
    let rates: Vec<f64> = flows.iter().map(|flow| flow.obs.bits_per_sec).collect();
    let middle = median(&rates)?;
    let of_flow = |flow: &IsolatedFlow<'_>| {
        flow.kernel(flow.predicted.min(middle)) - flow.kernel(flow.predicted)
    };
    let gain = flows.iter().map(of_flow).sum::<f64>() / OVERDISPERSION;
    let is_effect = flows
        .iter()
        .any(|flow| middle < (1.0 - MIN_EFFECT) * flow.predicted);
    is_effect.then_some((gain, Effect::Capacity(middle)))
}

/// Either end, in the pair's direction.
pub(super) fn rivals(src: HostId, dst: HostId) -> Vec<Location> {
    vec![
        Location::Host(src, Direction::Tx),
        Location::Host(dst, Direction::Rx),
    ]
}
