//! How many parallel paths tie racks, how wide each is, and whether one is bad: exactly, from small
//! groups of flows.
//!
//! A group is what one rack sends to one other in a round in which neither exchanges anything with
//! a third. Which of its flows share a path is a set partition; up to five flows have at most 52,
//! so the unknown hash is summed out, not guessed. Larger groups, and flows of several connections,
//! speak through their sum.

use super::hypothesis::Hypothesis;
use super::noise::{ISOLATED_SIGMA, OVERDISPERSION, density};
use super::obs::Obs;
use super::rounds::{Round, Rounds};
use ew_evidence::criteria::{FAULT_ODDS, NEGLIGIBLE, SLOW, SURE};
use ew_stats::MIN_FOR_INTERVAL;
use ew_stats::splitmix;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of parallel paths that are thought of.
pub(super) const COUNTS: [usize; 8] = [1, 2, 3, 4, 6, 8, 12, MAX_PATHS];
pub(super) const MAX_PATHS: usize = 16;
/// Flows of a group whose partitions are summed over.
const SMALL: usize = 5;
/// Max groups that are read: more add nothing.
const MAX_SMALL: usize = 120;
const MAX_LARGE: usize = 24;
/// Throws of the hashes of a large group.
const THROWS: usize = 48;
/// Range of a path's width, in NICs, and steps of the coarse grid.
const NARROWEST: f64 = 0.03;
const WIDEST: f64 = 8.0;
const COARSE_STEPS: usize = 48;
/// Steps of the fine grid around what the coarse one found: half its width as a logarithm, and
/// numbers.
const FINE_HALF: f64 = 0.16;
const FINE_STEPS: usize = 27;
const FAR_STEPS: usize = 20;
/// On the coarse grid sums need not meet exactly.
const COARSE_SUM_SIGMA: f64 = 0.05;
const SPLITS: [f64; 2] = [0.25, 0.5];

/// What was found.
#[derive(Clone, Debug)]
pub struct Posterior {
    /// The likeliest number of paths.
    pub paths: usize,
    /// Probability of each number that is thought of.
    pub counts: Vec<(usize, f64)>,
    /// Width of one, bits per second, with its 95% interval.
    pub each_bits_per_sec: f64,
    /// Bits per second.
    pub each_interval: (f64, f64),
    /// All together, 95% interval.
    pub total_interval: (f64, f64),
    pub(super) split_sigma: f64,
    /// One that is narrower than the others.
    pub bad: Option<BadMember>,
}

/// One path narrower than the others.
#[derive(Clone, Debug)]
pub struct BadMember {
    pub bits_per_sec: f64,
    pub interval: (f64, f64),
    pub probability: f64,
    /// Probability of each rack.
    pub racks: Vec<f64>,
}

impl Posterior {
    /// Probability that there is one path.
    pub(super) fn one_path(&self) -> f64 {
        self.counts
            .iter()
            .find(|(count, _)| *count == 1)
            .map_or(0.0, |(_, share)| *share)
    }

    /// Whether it is known how many paths there are.
    pub(super) fn is_count_sure(&self) -> bool {
        self.counts.iter().any(|(_, share)| *share > SURE)
    }

    /// The likeliest rack and the width of its bad path, where there surely is one.
    pub(super) fn bad_member(&self) -> Option<(usize, f64)> {
        let bad = self.bad.as_ref().filter(|bad| bad.probability > SURE)?;
        let racks = bad.racks.iter().enumerate();
        let (rack, _) = racks.max_by(|a, b| a.1.total_cmp(b.1))?;
        Some((rack, bad.bits_per_sec))
    }
}

/// The posterior. `None` where too few groups were measured.
pub(super) fn posterior(rounds: &Rounds, hypothesis: &Hypothesis) -> Option<Posterior> {
    let groups = Groups::new(rounds, hypothesis)?;
    let coarse = groups.on_grid(&even_grid(COARSE_STEPS), COARSE_SUM_SIGMA, &SPLITS);
    let nic = groups.nic_bits_per_sec;
    let mut near = vec![(coarse.each_bits_per_sec / nic).ln()];
    near.extend(
        coarse
            .bad
            .iter()
            .filter(|bad| bad.probability > 0.2)
            .map(|bad| (bad.bits_per_sec / nic).ln()),
    );
    let mut fine = even_grid(FAR_STEPS);
    let step = 2.0 * FINE_HALF / (FINE_STEPS - 1) as f64;
    fine.extend(
        near.iter().flat_map(|middle| {
            (0..FINE_STEPS).map(move |at| middle - FINE_HALF + step * at as f64)
        }),
    );
    fine.sort_by(f64::total_cmp);
    fine.dedup_by(|a, b| (*a - *b).abs() < 1e-4);
    Some(groups.on_grid(&fine, ISOLATED_SIGMA, &[coarse.split_sigma]))
}

/// Logarithms of widths, in NICs.
fn even_grid(steps: usize) -> Vec<f64> {
    let step = (WIDEST / NARROWEST).ln() / (steps - 1) as f64;
    (0..steps)
        .map(|at| NARROWEST.ln() + step * at as f64)
        .collect()
}

/// What one rack sent to one other.
struct Group {
    racks: (usize, usize),
    /// Measured, what hosts alone would do, and starvation, per flow.
    flows: Vec<Flow>,
    streams: usize,
}

#[derive(Clone, Copy)]
struct Flow {
    bits_per_sec: f64,
    wanted: f64,
    starvation: f64,
}

struct Groups {
    small: Vec<Group>,
    large: Vec<Group>,
    nic_bits_per_sec: f64,
    racks: usize,
}

impl Groups {
    fn new(rounds: &Rounds, hypothesis: &Hypothesis) -> Option<Self> {
        let capacities = Hypothesis {
            fabric: super::hypothesis::Fabric::Unlimited,
            ..hypothesis.clone()
        }
        .capacities(rounds);
        let wanted = |obs: &Obs| {
            let tx = capacities.bits_per_sec[super::hypothesis::Capacities::tx(obs.src)];
            tx.min(capacities.bits_per_sec[capacities.rx(obs.dst)])
                .min(capacities.limit_of(obs))
        };
        let groups = rounds
            .rounds
            .iter()
            .flat_map(|round| groups_of(rounds, round, &wanted));
        let is_small = |group: &Group| group.flows.len() <= SMALL && group.streams == 1;
        let (mut small, mut large): (Vec<Group>, Vec<Group>) = groups.partition(is_small);
        small.sort_by_key(|group| std::cmp::Reverse(group.flows.len()));
        small.truncate(MAX_SMALL);
        large.truncate(MAX_LARGE);
        let together = small.iter().filter(|group| group.flows.len() > 1).count();
        if together < MIN_FOR_INTERVAL && (large.is_empty() || small.len() < MIN_FOR_INTERVAL) {
            return None;
        }
        let wants: Vec<f64> = small
            .iter()
            .chain(&large)
            .flat_map(|group| &group.flows)
            .map(|flow| flow.wanted)
            .collect();
        Some(Self {
            small,
            large,
            nic_bits_per_sec: ew_stats::median(&wants)?,
            racks: rounds.racks,
        })
    }

    fn on_grid(&self, lns: &[f64], sum_sigma: f64, splits: &[f64]) -> Posterior {
        let widths: Vec<f64> = lns
            .iter()
            .map(|ln| self.nic_bits_per_sec * ln.exp())
            .collect();
        let large = self.large_sums(&widths, sum_sigma);
        let of_splits = splits
            .iter()
            .map(|split| Evidence::new(self, &widths, sum_sigma, *split, &large));
        let best = of_splits.reduce(|a, b| if b.peak() > a.peak() { b } else { a });
        best.map_or_else(Posterior::nothing, |evidence| {
            evidence.posterior(self, lns, &widths)
        })
    }

    /// Log-likelihood of the large groups by number of paths and width.
    fn large_sums(&self, widths: &[f64], sum_sigma: f64) -> Vec<Vec<f64>> {
        let mut all = vec![vec![0.0; widths.len()]; COUNTS.len()];
        for (index, group) in self.large.iter().enumerate() {
            let measured: f64 = group.flows.iter().map(|flow| flow.bits_per_sec).sum();
            let starvation = group.flows.iter().map(|flow| flow.starvation).sum::<f64>()
                / group.flows.len() as f64;
            for (paths, of_paths) in COUNTS.iter().zip(&mut all) {
                let throws: Vec<Vec<f64>> = (0..THROWS)
                    .map(|throw| loads(group, *paths, (index * THROWS + throw) as u64))
                    .collect();
                for (width, sum) in widths.iter().zip(of_paths) {
                    *sum += sum_of_throws(&throws, *width, measured, starvation, sum_sigma);
                }
            }
        }
        all
    }
}

/// What each path is asked to carry when a group's connections are thrown on `paths` of them.
fn loads(group: &Group, paths: usize, seed: u64) -> Vec<f64> {
    let mut loads = vec![0.0; paths];
    let mut thrown = 0;
    for flow in &group.flows {
        for _ in 0..group.streams {
            thrown += 1;
            let at = splitmix(seed << 24 | thrown) % paths as u64;
            loads[at as usize] += flow.wanted / group.streams as f64;
        }
    }
    loads
}

fn sum_of_throws(
    throws: &[Vec<f64>],
    width: f64,
    measured: f64,
    starvation: f64,
    sum_sigma: f64,
) -> f64 {
    let carried = |loads: &Vec<f64>| loads.iter().map(|load| load.min(width)).sum::<f64>();
    let logs: Vec<f64> = throws
        .iter()
        .map(|loads| measured.ln() - carried(loads).ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs
        .iter()
        .map(|log| (log - mean) * (log - mean))
        .sum::<f64>()
        / logs.len() as f64;
    let sigma = (sum_sigma * sum_sigma + 0.25 * variance).sqrt();
    let likely = logs
        .iter()
        .map(|log| density(*log, sigma, starvation))
        .sum::<f64>()
        / logs.len() as f64;
    likely.ln()
}

/// The groups of a round in which racks exchange in pairs and every host has one flow.
fn groups_of(rounds: &Rounds, round: &Round, wanted: &impl Fn(&Obs) -> f64) -> Vec<Group> {
    let mut pairs: BTreeMap<(usize, usize), Vec<&Obs>> = BTreeMap::new();
    for (obs, alone) in rounds.of(round).iter().zip(&round.alone) {
        let Some(racks) = obs.racks else { continue };
        if !alone {
            return Vec::new();
        }
        pairs.entry(racks).or_default().push(obs);
    }
    let froms: BTreeSet<usize> = pairs.keys().map(|racks| racks.0).collect();
    let tos: BTreeSet<usize> = pairs.keys().map(|racks| racks.1).collect();
    if froms.len() < pairs.len() || tos.len() < pairs.len() {
        return Vec::new();
    }
    let flow = |obs: &&Obs| Flow {
        bits_per_sec: obs.bits_per_sec,
        wanted: wanted(obs),
        starvation: obs.starvation,
    };
    let group = |(racks, flows): (&(usize, usize), &Vec<&Obs>)| Group {
        racks: *racks,
        streams: flows
            .iter()
            .map(|obs| obs.streams as usize)
            .max()
            .unwrap_or(1),
        flows: flows.iter().map(flow).collect(),
    };
    pairs.iter().map(group).collect()
}

/// Log-likelihoods on the grid: of all paths alike, and of one that is bad, by rack.
struct Evidence {
    split_sigma: f64,
    /// By count, then by width.
    alike: Vec<Vec<f64>>,
    /// By rack, then count, then width, then the bad one's width, of those that are narrower.
    bad: Vec<Vec<Vec<Vec<f64>>>>,
}

impl Evidence {
    fn new(
        groups: &Groups,
        widths: &[f64],
        sum_sigma: f64,
        split_sigma: f64,
        large: &[Vec<f64>],
    ) -> Self {
        let mut alike = large.to_vec();
        let narrower = (0..widths.len()).map(|width| vec![Product::ONE; width]);
        let ones = vec![narrower.collect::<Vec<_>>(); COUNTS.len()];
        let mut bad = vec![ones; groups.racks];
        for group in &groups.small {
            let of_blocks = Blocks::new(group, widths, sum_sigma, split_sigma);
            let touched = BTreeSet::from([group.racks.0, group.racks.1]);
            for (at, count) in COUNTS.iter().enumerate() {
                let (none, with_bad) = of_blocks.over_partitions(*count);
                for width in 0..widths.len() {
                    alike[at][width] += none[width].ln();
                    for rack in &touched {
                        let row = &mut bad[*rack][at][width];
                        for (product, likely) in row.iter_mut().zip(&with_bad[width]) {
                            product.multiply(likely / none[width]);
                        }
                    }
                }
            }
        }
        let bad = bad.iter().map(|of_rack| with_alike(of_rack, &alike));
        Self {
            split_sigma,
            bad: bad.collect(),
            alike,
        }
    }

    fn peak(&self) -> f64 {
        let alike = self.alike.iter().flatten().copied();
        let bad = self.bad.iter().flatten().flatten().flatten().copied();
        alike.chain(bad).fold(f64::NEG_INFINITY, f64::max)
    }

    fn posterior(mut self, groups: &Groups, lns: &[f64], widths: &[f64]) -> Posterior {
        self.weigh(groups, lns, widths);
        let alike_total = log_sum(self.alike.iter().flatten().copied());
        let bad_total = log_sum(self.bad.iter().flatten().flatten().flatten().copied());
        let probability = 1.0 / (1.0 + (alike_total - bad_total).exp());
        let top = alike_total.max(bad_total);
        // By count and width, whether one is bad or not.
        let mut joint: Vec<Vec<f64>> = self
            .alike
            .iter()
            .map(|row| row.iter().map(|log| (log - top).exp()).collect())
            .collect();
        for (at, width, _, likely) in self.bad_points(top) {
            joint[at][width] += likely;
        }
        let all: f64 = joint.iter().flatten().sum();
        let counts: Vec<(usize, f64)> = COUNTS
            .iter()
            .zip(&joint)
            .map(|(count, row)| (*count, row.iter().sum::<f64>() / all))
            .collect();
        let best = (0..COUNTS.len())
            .max_by(|a, b| counts[*a].1.total_cmp(&counts[*b].1))
            .unwrap_or(0);
        let bad = (probability > 0.5).then(|| self.bad_member(widths, top, probability));
        let of_width = (0..widths.len()).map(|width| {
            (
                widths[width],
                joint.iter().map(|row| row[width]).sum::<f64>(),
            )
        });
        let each = (0..widths.len())
            .max_by(|a, b| joint[best][*a].total_cmp(&joint[best][*b]))
            .map_or(0.0, |at| widths[at]);
        let totals: Vec<(f64, f64)> = if bad.is_some() {
            let points = self.bad_points(top);
            points
                .map(|(at, width, narrow, likely)| {
                    (
                        (COUNTS[at] - 1) as f64 * widths[width] + widths[narrow],
                        likely,
                    )
                })
                .collect()
        } else {
            let points = joint.iter().zip(COUNTS).flat_map(|(row, count)| {
                row.iter()
                    .zip(widths)
                    .map(move |(likely, width)| (count as f64 * width, *likely))
            });
            points.collect()
        };
        Posterior {
            paths: COUNTS[best],
            counts,
            each_bits_per_sec: each,
            each_interval: interval(of_width.collect()),
            total_interval: interval(totals),
            split_sigma: self.split_sigma,
            bad,
        }
    }

    /// Log-likelihoods to log-posteriors: dependence, the widths' even prior, and what a bad path
    /// costs.
    fn weigh(&mut self, groups: &Groups, lns: &[f64], widths: &[f64]) {
        let prior = log_steps(lns);
        let measured = (groups.small.len() + groups.large.len()).max(2) as f64;
        let cost =
            (1.0 / FAULT_ODDS).ln() + 0.5 * measured.ln() + (groups.racks.max(1) as f64).ln();
        for row in &mut self.alike {
            row.iter_mut()
                .zip(&prior)
                .for_each(|(log, prior)| *log = *log / OVERDISPERSION + prior);
        }
        for of_rack in &mut self.bad {
            for (count, of_count) in COUNTS.iter().zip(of_rack.iter_mut()) {
                for (width, row) in of_count.iter_mut().enumerate() {
                    for (narrow, log) in row.iter_mut().enumerate() {
                        let is_bad = *count > 1 && widths[narrow] < SLOW * widths[width];
                        let weighed = *log / OVERDISPERSION + prior[width] + prior[narrow] - cost;
                        *log = if is_bad { weighed } else { f64::NEG_INFINITY };
                    }
                }
            }
        }
    }

    /// Count, width, the bad one's width, and how likely, over all racks.
    fn bad_points(&self, top: f64) -> impl Iterator<Item = (usize, usize, usize, f64)> + '_ {
        let racks = self.bad.iter();
        racks.flat_map(move |of_rack| {
            of_rack.iter().enumerate().flat_map(move |(at, rows)| {
                rows.iter().enumerate().flat_map(move |(width, row)| {
                    row.iter()
                        .enumerate()
                        .map(move |(narrow, log)| (at, width, narrow, (log - top).exp()))
                })
            })
        })
    }

    fn bad_member(&self, widths: &[f64], top: f64, probability: f64) -> BadMember {
        let mut of_narrow = vec![0.0; widths.len()];
        for (_, _, narrow, likely) in self.bad_points(top) {
            of_narrow[narrow] += likely;
        }
        let best = (0..widths.len())
            .max_by(|a, b| of_narrow[*a].total_cmp(&of_narrow[*b]))
            .unwrap_or(0);
        let racks = self
            .bad
            .iter()
            .map(|of_rack| log_sum(of_rack.iter().flatten().flatten().copied()));
        let racks: Vec<f64> = racks.map(|log| (log - top).exp()).collect();
        let all: f64 = racks.iter().sum();
        BadMember {
            bits_per_sec: widths[best],
            interval: interval(widths.iter().copied().zip(of_narrow).collect()),
            probability,
            racks: racks
                .iter()
                .map(|likely| likely / all.max(f64::MIN_POSITIVE))
                .collect(),
        }
    }
}

impl Posterior {
    fn nothing() -> Self {
        Self {
            paths: 1,
            counts: vec![(1, 1.0)],
            each_bits_per_sec: 0.0,
            each_interval: (0.0, 0.0),
            total_interval: (0.0, 0.0),
            split_sigma: SPLITS[0],
            bad: None,
        }
    }
}

/// What a bad path adds, by count and both widths, on top of all paths alike.
fn with_alike(of_rack: &[Vec<Vec<Product>>], alike: &[Vec<f64>]) -> Vec<Vec<Vec<f64>>> {
    let of_row = |(row, alike): (&Vec<Product>, &f64)| {
        let logs = row.iter().map(|product| product.ln() + alike);
        logs.collect::<Vec<f64>>()
    };
    let of_count = |(rows, alike): (&Vec<Vec<Product>>, &Vec<f64>)| {
        rows.iter().zip(alike).map(of_row).collect()
    };
    of_rack.iter().zip(alike).map(of_count).collect()
}

/// A product of likelihoods, of which the logarithm is wanted: taken now and then, and not of each.
#[derive(Clone, Copy)]
struct Product {
    /// Of the factors that are not in `ln`.
    factors: f64,
    ln: f64,
}

impl Product {
    const ONE: Self = Self {
        factors: 1.0,
        ln: 0.0,
    };
    /// One factor more must not leave the range of numbers.
    const RANGE: std::ops::Range<f64> = 1e-200..1e200;

    fn multiply(&mut self, factor: f64) {
        self.factors *= factor;
        if !Self::RANGE.contains(&self.factors) {
            *self = Self {
                factors: 1.0,
                ln: self.ln(),
            };
        }
    }

    fn ln(&self) -> f64 {
        self.ln + self.factors.ln()
    }
}

/// Likelihood of every subset of a group's flows behind one path, by the path's width.
struct Blocks {
    /// By subset (a bit per flow), then width.
    likely: Vec<Vec<f64>>,
    partitions: Vec<Vec<usize>>,
    flows: usize,
    widths: usize,
}

impl Blocks {
    fn new(group: &Group, widths: &[f64], sum_sigma: f64, split_sigma: f64) -> Self {
        let flows = group.flows.len();
        let of_subset = |subset: usize| {
            let own: Vec<Flow> = (0..flows)
                .filter(|at| subset >> at & 1 == 1)
                .map(|at| group.flows[at])
                .collect();
            widths
                .iter()
                .map(|width| block(&own, *width, sum_sigma, split_sigma))
                .collect()
        };
        Self {
            likely: (0..1 << flows).map(of_subset).collect(),
            partitions: partitions(flows),
            flows,
            widths: widths.len(),
        }
    }

    /// Likelihood of the group by width with `count` paths alike, and by both widths with one of
    /// them narrower.
    fn over_partitions(&self, count: usize) -> (Vec<f64>, Vec<Vec<f64>>) {
        let mut alike = vec![0.0; self.widths];
        let mut untouched = vec![0.0; self.widths];
        // By subset: likelihood of all other blocks when this one is on the bad path.
        let mut rest: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for partition in &self.partitions {
            let probability = partition_probability(count, partition.len(), self.flows);
            if probability == 0.0 {
                continue;
            }
            let free = 1.0 - partition.len() as f64 / count as f64;
            for width in 0..self.widths {
                let all: f64 = partition
                    .iter()
                    .map(|block| self.likely[*block][width])
                    .product();
                alike[width] += probability * all;
                untouched[width] += probability * free * all;
                for block in partition {
                    let others = all / self.likely[*block][width];
                    rest.entry(*block).or_insert_with(|| vec![0.0; self.widths])[width] +=
                        probability * others / count as f64;
                }
            }
        }
        let mut bad: Vec<Vec<f64>> = (0..self.widths)
            .map(|width| vec![untouched[width]; width])
            .collect();
        for (block, rest) in &rest {
            for (row, rest) in bad.iter_mut().zip(rest) {
                for (sum, narrow) in row.iter_mut().zip(&self.likely[*block]) {
                    *sum += rest * narrow;
                }
            }
        }
        (alike, bad)
    }
}

/// Probability that `flows` thrown on `count` paths fall into a given partition of `blocks` blocks:
/// N! / (N - B)! / N^n.
fn partition_probability(count: usize, blocks: usize, flows: usize) -> f64 {
    if blocks > count {
        return 0.0;
    }
    let ways: f64 = (0..blocks).map(|taken| (count - taken) as f64).product();
    ways / (count as f64).powi(flows as i32)
}

/// All set partitions, each block as bits.
fn partitions(flows: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for flow in 0..flows {
        let bit = 1 << flow;
        let mut next = Vec::new();
        for partition in all {
            for at in 0..partition.len() {
                let mut joined: Vec<usize> = partition.clone();
                joined[at] |= bit;
                next.push(joined);
            }
            let mut alone = partition;
            alone.push(bit);
            next.push(alone);
        }
        all = next;
    }
    all
}

/// Likelihood of flows that share a path of this width: they do not disturb each other, or their
/// sum is tight and their split is not.
fn block(flows: &[Flow], width: f64, sum_sigma: f64, split_sigma: f64) -> f64 {
    let wanted: f64 = flows.iter().map(|flow| flow.wanted).sum();
    let alone = |flow: &Flow, predicted: f64| {
        density(
            (flow.bits_per_sec / predicted).ln(),
            ISOLATED_SIGMA,
            flow.starvation,
        )
    };
    if wanted <= width {
        return flows.iter().map(|flow| alone(flow, flow.wanted)).product();
    }
    if let [one] = flows {
        return alone(one, width);
    }
    let count = flows.len() as f64;
    let measured: f64 = flows.iter().map(|flow| flow.bits_per_sec).sum();
    let starvation = flows.iter().map(|flow| flow.starvation).sum::<f64>() / count;
    let sum = density((measured / width).ln(), sum_sigma, starvation);
    let shares = fair_shares(flows, width);
    let splits = flows.iter().zip(shares).map(|(flow, share)| {
        let likely = density(
            (flow.bits_per_sec / share).ln(),
            split_sigma,
            flow.starvation,
        );
        likely.powf((count - 1.0) / count)
    });
    sum * splits.product::<f64>()
}

fn fair_shares(flows: &[Flow], width: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by(|a, b| flows[*a].wanted.total_cmp(&flows[*b].wanted));
    let mut shares = vec![0.0; flows.len()];
    let mut left = width;
    for (done, at) in order.iter().enumerate() {
        shares[*at] = flows[*at].wanted.min(left / (flows.len() - done) as f64);
        left -= shares[*at];
    }
    shares
}

fn log_sum(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + logs.map(|log| (log - top).exp()).sum::<f64>().ln()
}

/// Logarithms of the share of the whole range that each step of a grid covers.
fn log_steps(lns: &[f64]) -> Vec<f64> {
    let last = lns.len() - 1;
    let range = lns[last] - lns[0];
    let step = |at: usize| {
        let (before, after) = (lns[at.saturating_sub(1)], lns[(at + 1).min(last)]);
        let spans = if at == 0 || at == last { 1.0 } else { 2.0 };
        ((after - before) / spans / range).ln()
    };
    (0..lns.len()).map(step).collect()
}

/// The central 95% of weighted values, and a little more.
fn interval(mut values: Vec<(f64, f64)>) -> (f64, f64) {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        let reached = |(_, weight): &&(f64, f64)| {
            sum += weight / all;
            sum >= share
        };
        let found = values.iter().find(reached).or(values.last());
        found.map_or(0.0, |(value, _)| *value)
    };
    (
        at(0.025) * (1.0 - NEGLIGIBLE),
        at(0.975) * (1.0 + NEGLIGIBLE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_the_bell_numbers_and_their_probabilities_sum_to_one() {
        for (flows, bell) in [(1, 1), (2, 2), (3, 5), (4, 15), (5, 52)] {
            let all = partitions(flows);
            assert_eq!(all.len(), bell);
            for count in COUNTS {
                let sum: f64 = all
                    .iter()
                    .map(|p| partition_probability(count, p.len(), flows))
                    .sum();
                assert!(
                    (sum - 1.0).abs() < 1e-9,
                    "{flows} flows on {count} paths: {sum}"
                );
            }
        }
    }
}
