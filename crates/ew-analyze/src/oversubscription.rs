//! Oversubscription per ordered rack pair: what a rack's hosts do inside it over what they get across.
//!
//! A path counts as limiting when the flows across it together stay below nine tenths of what their hosts could do,
//! by the hosts' measured capacities (slow ones counted with theirs). The ratio is then
//! hosts of the rack x median goodput inside / aggregate across.

use crate::basis::Reference;
use crate::capacity::{HostFit, Side};
use crate::observations::{Observations, RoundView, StageView};
use crate::paths::Paths;
use crate::ramp::{self, RampPoint};
use crate::solo::{Solo, rack_pair, waited_for_cpu};
use crate::stats::{median, median_estimate, quantile, ratio_estimate, scaled};
use ew_model::analysis::{Estimate, RackPairAnalysis};
use ew_model::scenario::{MeshMode, Pattern, Pick, RackScope, Senders};
use ew_model::{HostId, Inventory, RackId};
use ew_plan::expectation::max_min;
use std::collections::{BTreeMap, BTreeSet};

/// Below this share of what the hosts could do, the path limits.
const LIMITED_BELOW: f64 = 0.9;
/// The same for random picks and loaded meshes, where TCP alone stays well below max-min.
const LIMITED_BELOW_SHARED: f64 = 0.75;
/// A full path carries the same in every round. Where the upper quartile of rounds is above the lower one by more than this factor,
/// something else came and went.
const STEADY: f64 = 1.12;
/// The same where most flows across were not slowed at all.
const STEADY_WITH_FAST_FLOWS: f64 = 1.05;
/// Nor is it exceeded: the greatest sum is within this factor of the median, whatever timeouts take from some rounds.
const CEILING: f64 = 1.08;
/// What many flows carry together is what one carries alone, within this factor. Lossy paths carry with each flow as much again.
const LIKE_ONE: f64 = 0.75;
/// Fewest rounds that show whether they differ.
const LEAST_ROUNDS: usize = 4;
/// The reason then.
const UNSTEADY: &str = "sums differed from round to round, which a full path's do not";
/// The reason where the ends of most flows that a path may have slowed waited for a CPU.
const WITHOUT_CPU: &str = "most slow flows' ends had no CPU time to move more";
/// What repetition cannot show: protocol efficiency, window edges, acknowledgements of the other direction. The
/// interval of a ratio is widened by it.
pub(crate) const SYSTEMATIC: f64 = 0.02;
/// "Not limited" is only said when at least this share of the hosts that could send across did.
const NEEDED_SENDERS: f64 = 0.75;

/// One ordered rack pair with where its figures came from.
#[derive(Clone, Debug)]
pub(crate) struct PairResult {
    pub(crate) analysis: RackPairAnalysis,
    /// Name of the stage and number of rounds.
    pub(crate) source: Option<(String, u32)>,
    /// Whether the ratio is the sending rack's towards all others together.
    pub(crate) merged: bool,
}

/// All ordered rack pairs and the capacities that follow.
#[derive(Clone, Debug, Default)]
pub(crate) struct RackPairs {
    pub(crate) pairs: Vec<PairResult>,
    pub(crate) paths: Paths,
    /// Racks that were full: what entered them together had a ceiling, which was less than their hosts take.
    pub(crate) full_into: BTreeSet<RackId>,
}

/// What flows over one path did in one round.
#[derive(Clone, Copy, Debug, Default)]
struct RoundSum {
    measured: f64,
    /// What their hosts could have done.
    expected: f64,
    flows: u32,
    /// How many of them stayed below [`LIMITED_BELOW`] of that.
    slowed: u32,
    /// How many of these had an end whose threads waited for a CPU.
    slowed_without_cpu: u32,
    whole: bool,
}

/// The rounds of one stage by path.
struct StageSums {
    name: String,
    kind: StageKind,
    pair: BTreeMap<(RackId, RackId), Vec<RoundSum>>,
    out: BTreeMap<RackId, Vec<RoundSum>>,
    into: BTreeMap<RackId, Vec<RoundSum>>,
}

/// How good a stage is for the question, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum StageKind {
    EachPair,
    All,
    Bisection,
    Mesh,
    LoadedMesh,
    RandomPicks,
}

impl StageKind {
    /// The share of what the hosts could do below which the path counts as limiting.
    fn limited_below(self) -> f64 {
        match self {
            Self::EachPair | Self::All | Self::Bisection | Self::Mesh => LIMITED_BELOW,
            Self::LoadedMesh | Self::RandomPicks => LIMITED_BELOW_SHARED,
        }
    }

    /// Whether every round asks the same of a path.
    fn has_steady_rounds(self) -> bool {
        matches!(self, Self::EachPair | Self::All | Self::Bisection)
    }
}

/// Rates of pairs that had the path between their racks to themselves.
type Alone = BTreeMap<(HostId, HostId), f64>;

/// Works out every ordered rack pair.
pub(crate) fn rack_pairs(
    observations: &Observations<'_>,
    fit: &HostFit,
    inside: &[Solo],
    reference: &Reference,
) -> RackPairs {
    let inventory = observations.inventory();
    let mut alone = alone(observations);
    let usual = usual_alone(inventory, &alone);
    // Those that are slower than the others between the same racks.
    alone.retain(|(src, dst), rate| {
        let usual = rack_pair(inventory, *src, *dst).and_then(|racks| usual.get(&racks));
        usual.is_some_and(|usual| *rate < LIMITED_BELOW * usual)
    });
    let sums = stage_sums(observations, fit, &alone, reference);
    let ramps = ramp::points(observations, |round| {
        let mut sums = BTreeMap::new();
        add_round(
            &mut sums,
            inventory,
            round,
            &expected(inventory, round, fit, &alone, reference),
        );
        sums.into_iter()
            .map(|(pair, sum)| (pair, (sum.measured, sum.expected)))
            .collect()
    });
    let mut result = RackPairs::default();
    for from in inventory.rack_ids() {
        for to in inventory.rack_ids().filter(|to| *to != from) {
            let points = ramps.get(&(from, to)).map_or(&[][..], Vec::as_slice);
            let reference_rate = inside_rate(observations, inside, fit, from, reference, points);
            let pair = Judge {
                inventory,
                from,
                to,
                inside: reference_rate,
                alone: usual.get(&(from, to)).copied(),
                points,
            };
            result.pairs.push(pair.result(&sums, &mut result.paths));
        }
    }
    shared_capacities(inventory, &sums, &mut result.paths);
    result.full_into = full_into(&sums);
    result
}

fn stage_kind(stage: &StageView<'_>) -> Option<StageKind> {
    match &stage.stage.pattern {
        Pattern::CrossRack {
            senders: Senders::Ramp,
            ..
        } => None,
        Pattern::CrossRack {
            pick: Pick::Random { .. },
            ..
        } => Some(StageKind::RandomPicks),
        Pattern::CrossRack {
            scope: RackScope::EachPair,
            ..
        } => Some(StageKind::EachPair),
        Pattern::CrossRack {
            scope: RackScope::All,
            ..
        } => Some(StageKind::All),
        Pattern::Bisection => Some(StageKind::Bisection),
        Pattern::Mesh {
            mode: MeshMode::Isolated,
            ..
        } => Some(StageKind::Mesh),
        Pattern::Mesh {
            mode: MeshMode::Loaded { .. },
            ..
        } => Some(StageKind::LoadedMesh),
        Pattern::Pair | Pattern::Permutation | Pattern::Incast { .. } | Pattern::Outcast { .. } => {
            None
        }
    }
}

fn stage_sums(
    observations: &Observations<'_>,
    fit: &HostFit,
    alone: &Alone,
    reference: &Reference,
) -> Vec<StageSums> {
    let inventory = observations.inventory();
    let mut all = Vec::new();
    for stage in observations.judged() {
        let Some(kind) = stage_kind(stage) else {
            continue;
        };
        let mut sums = StageSums {
            name: stage.stage.name.clone(),
            kind,
            pair: BTreeMap::new(),
            out: BTreeMap::new(),
            into: BTreeMap::new(),
        };
        for round in &stage.rounds {
            let mut pairs = BTreeMap::new();
            let rates = expected(inventory, round, fit, alone, reference);
            add_round(&mut pairs, inventory, round, &rates);
            sums.add(&pairs);
        }
        all.push(sums);
    }
    all.sort_by_key(|sums| sums.kind);
    all
}

impl StageSums {
    fn add(&mut self, pairs: &BTreeMap<(RackId, RackId), RoundSum>) {
        let mut out: BTreeMap<RackId, RoundSum> = BTreeMap::new();
        let mut into: BTreeMap<RackId, RoundSum> = BTreeMap::new();
        for ((from, to), sum) in pairs {
            self.pair.entry((*from, *to)).or_default().push(*sum);
            out.entry(*from).or_default().add(sum);
            into.entry(*to).or_default().add(sum);
        }
        for (rack, sum) in out {
            self.out.entry(rack).or_default().push(sum);
        }
        for (rack, sum) in into {
            self.into.entry(rack).or_default().push(sum);
        }
    }
}

impl RoundSum {
    fn add(&mut self, other: &Self) {
        self.whole = other.whole;
        self.measured += other.measured;
        self.expected += other.expected;
        self.flows += other.flows;
        self.slowed += other.slowed;
        self.slowed_without_cpu += other.slowed_without_cpu;
    }
}

fn add_round(
    sums: &mut BTreeMap<(RackId, RackId), RoundSum>,
    inventory: &Inventory,
    round: &RoundView<'_>,
    expected: &[f64],
) {
    for ((row, rate), expected) in round.rates().zip(expected) {
        if let Some(pair) = rack_pair(inventory, row.src, row.dst) {
            let is_slowed = rate < LIMITED_BELOW * expected;
            sums.entry(pair).or_default().add(&RoundSum {
                measured: rate,
                expected: *expected,
                flows: 1,
                slowed: u32::from(is_slowed),
                slowed_without_cpu: u32::from(is_slowed && waited_for_cpu(row)),
                whole: round.whole,
            });
        }
    }
}

/// What each flow of a round would do if only hosts limited it; a pair that was slow even with the path to itself
/// (an unnoticed slow host, a bad member link) is expected to do no better in company.
fn expected(
    inventory: &Inventory,
    round: &RoundView<'_>,
    fit: &HostFit,
    alone: &Alone,
    reference: &Reference,
) -> Vec<f64> {
    let free = Paths::default();
    let capacities = free
        .with_measured_hosts(inventory, fit)
        .or_else(|| Some(free.with_equal_hosts(inventory, reference.goodput_bits_per_sec?)));
    let Some(capacities) = capacities else {
        return vec![0.0; round.flows.len()];
    };
    max_min(&round.flows, inventory, &capacities)
        .iter()
        .zip(&round.flows)
        .map(|(share, flow)| {
            let slow_alone = alone.get(&(flow.src, flow.dst)).copied();
            slow_alone.map_or(share.bits_per_sec, |alone| alone.min(share.bits_per_sec))
        })
        .collect()
}

/// Pairs across racks that had the path between their racks to themselves, with their median rates.
fn alone(observations: &Observations<'_>) -> Alone {
    let inventory = observations.inventory();
    let mut rates: BTreeMap<(HostId, HostId), Vec<f64>> = BTreeMap::new();
    for round in observations.judged().flat_map(|stage| &stage.rounds) {
        let mut out: BTreeMap<RackId, u32> = BTreeMap::new();
        let mut into: BTreeMap<RackId, u32> = BTreeMap::new();
        for (from, to) in round
            .records
            .iter()
            .filter_map(|r| rack_pair(inventory, r.src, r.dst))
        {
            *out.entry(from).or_default() += 1;
            *into.entry(to).or_default() += 1;
        }
        for ((row, rate), solo) in round.rates().zip(&round.solo) {
            let Some((from, to)) = rack_pair(inventory, row.src, row.dst) else {
                continue;
            };
            if *solo && out.get(&from) == Some(&1) && into.get(&to) == Some(&1) {
                rates.entry((row.src, row.dst)).or_default().push(rate);
            }
        }
    }
    let medians = rates.iter();
    medians
        .filter_map(|(pair, rates)| Some((*pair, median(rates)?)))
        .collect()
}

/// What the better pairs between two racks do with the path to themselves.
fn usual_alone(inventory: &Inventory, alone: &Alone) -> BTreeMap<(RackId, RackId), f64> {
    let mut blocks: BTreeMap<(RackId, RackId), Vec<f64>> = BTreeMap::new();
    for ((src, dst), rate) in alone {
        if let Some(racks) = rack_pair(inventory, *src, *dst) {
            blocks.entry(racks).or_default().push(*rate);
        }
    }
    let usual = blocks.into_iter();
    usual
        .filter_map(|(racks, rates)| Some((racks, quantile(&rates, 0.75)?)))
        .collect()
}

/// Goodput of a healthy host inside the rack, from the best source there is: permutations inside this rack, other
/// lone flows inside it, flows inside other racks, a stated or believed NIC rate, a ramp's single sender.
fn inside_rate(
    observations: &Observations<'_>,
    inside: &[Solo],
    fit: &HostFit,
    rack: RackId,
    reference: &Reference,
    ramp: &[RampPoint],
) -> Option<Estimate> {
    let inventory = observations.inventory();
    let is_permutation = |solo: &Solo| {
        matches!(
            observations.stages[solo.stage].stage.pattern,
            Pattern::Permutation
        )
    };
    let of_rack: Vec<Solo> = inside
        .iter()
        .filter(|s| inventory.rack_of(s.src) == Some(rack))
        .copied()
        .collect();
    let permuted: Vec<Solo> = of_rack
        .iter()
        .filter(|s| is_permutation(s))
        .copied()
        .collect();
    [&permuted[..], &of_rack[..], inside]
        .into_iter()
        .find_map(|solos| healthy_rate(solos, fit))
        .or_else(|| {
            let goodput = reference
                .goodput_bits_per_sec
                .filter(|_| !reference.discovered)?;
            Some(Estimate {
                value: goodput,
                low: None,
                high: None,
                samples: 0,
            })
        })
        .or_else(|| median_estimate(&ramp.iter().find(|p| p.senders == 1)?.measured))
}

/// Median rate between healthy ends: none of the sides found slow, no pair below nine tenths of the better ones.
fn healthy_rate(solos: &[Solo], fit: &HostFit) -> Option<Estimate> {
    let mut cells: BTreeMap<(HostId, HostId), Vec<f64>> = BTreeMap::new();
    for solo in solos {
        let is_slow = fit.slow.contains_key(&Side::Tx(solo.src))
            || fit.slow.contains_key(&Side::Rx(solo.dst));
        if !is_slow {
            cells
                .entry((solo.src, solo.dst))
                .or_default()
                .push(solo.bits_per_sec);
        }
    }
    let medians: Vec<f64> = cells.values().filter_map(|rates| median(rates)).collect();
    let usual = quantile(&medians, 0.75)?;
    let rates: Vec<f64> = cells
        .values()
        .filter(|rates| median(rates).is_some_and(|m| m >= LIMITED_BELOW * usual))
        .flatten()
        .copied()
        .collect();
    median_estimate(&rates)
}

/// One ordered rack pair under judgement.
struct Judge<'a> {
    inventory: &'a Inventory,
    from: RackId,
    to: RackId,
    inside: Option<Estimate>,
    /// What one flow does with the path to itself.
    alone: Option<f64>,
    points: &'a [RampPoint],
}

impl Judge<'_> {
    fn result(&self, sums: &[StageSums], paths: &mut Paths) -> PairResult {
        let pair = (self.from, self.to);
        let chosen = sums.iter().find_map(|stage| {
            let rounds = match stage.kind {
                StageKind::EachPair => stage.pair.get(&pair)?,
                _ => stage
                    .out
                    .get(&self.from)
                    .filter(|_| stage.pair.contains_key(&pair))?,
            };
            Some((stage, usable(rounds)))
        });
        let mut result = PairResult {
            analysis: self.empty(),
            source: None,
            merged: false,
        };
        ramp::describe(self.points, self.inside.as_ref(), &mut result.analysis);
        let Some((stage, rounds)) = chosen else {
            result.analysis.reason =
                Some("no test in which hosts of one rack send to the other was measured".into());
            return result;
        };
        result.source = Some((stage.name.clone(), rounds.len() as u32));
        result.merged = stage.kind != StageKind::EachPair && self.inventory.racks.len() > 2;
        self.decide(stage.kind, &rounds, &mut result, paths);
        if result.merged && result.analysis.reason.is_none() {
            let rack = self.inventory.rack_name(self.from);
            result.analysis.reason = Some(format!(
                "from {rack} to all other racks together: pairs were not measured apart"
            ));
        }
        result
    }

    fn empty(&self) -> RackPairAnalysis {
        RackPairAnalysis {
            from: self.from,
            to: self.to,
            inside_bits_per_sec: self.inside,
            across_bits_per_sec: None,
            oversubscription: None,
            limited: None,
            ramp: Vec::new(),
            knee_senders: None,
            uplink_bits_per_sec: None,
            reason: None,
        }
    }

    fn decide(
        &self,
        kind: StageKind,
        rounds: &[RoundSum],
        result: &mut PairResult,
        paths: &mut Paths,
    ) {
        let pair = (self.from, self.to);
        let analysis = &mut result.analysis;
        let flows = rounds.iter().map(|round| round.flows).max().unwrap_or(0);
        let shares: Vec<f64> = rounds
            .iter()
            .filter(|r| r.expected > 0.0)
            .map(|r| r.measured / r.expected)
            .collect();
        let (Some(inside), Some(share)) = (self.inside, median(&shares)) else {
            analysis.reason = Some(
                "nothing to compare with: no flow inside a rack was measured and no NIC rate is stated"
                    .into(),
            );
            return;
        };
        let threshold = kind.limited_below();
        if share < threshold {
            let slowed: Vec<f64> = rounds
                .iter()
                .filter(|r| kind == StageKind::EachPair || r.measured < threshold * r.expected)
                .map(|r| r.measured)
                .collect();
            analysis.across_bits_per_sec = median_estimate(&slowed);
            let is_proven = !kind.has_steady_rounds() || is_steady(rounds);
            if !is_proven && !self.is_filled_by_one(flows, analysis.across_bits_per_sec.as_ref()) {
                analysis.reason = Some(UNSTEADY.into());
            } else if lack_cpu(rounds) {
                analysis.reason = Some(WITHOUT_CPU.into());
            } else {
                analysis.oversubscription = self.ratio(&inside, analysis.across_bits_per_sec);
                analysis.limited = Some(true);
            }
            self.remember(result, paths);
            return;
        }
        let sums: Vec<f64> = rounds.iter().map(|round| round.measured).collect();
        analysis.across_bits_per_sec = median_estimate(&sums);
        if f64::from(flows) < NEEDED_SENDERS * self.possible_senders(kind) {
            paths.known.insert(pair, flows);
            let hosts = self.inventory.hosts_in(self.from).len();
            analysis.reason = Some(format!(
                "never more than {flows} of {hosts} hosts sent across at once; a cross-rack test answers this"
            ));
            return;
        }
        paths.known.insert(pair, u32::MAX);
        analysis.limited = Some(false);
        analysis.oversubscription = none_found(&shares);
    }

    /// Whether the path is shown to be full by what one flow does on it.
    fn is_filled_by_one(&self, flows: u32, across: Option<&Estimate>) -> bool {
        let (Some(inside), Some(alone), Some(across)) = (&self.inside, self.alone, across) else {
            return false;
        };
        flows > 1 && fills(alone, across.value, inside.value)
    }

    /// What all hosts of the rack do inside it over what they do across.
    fn ratio(&self, inside: &Estimate, across: Option<Estimate>) -> Option<Estimate> {
        let hosts = self.inventory.hosts_in(self.from).len() as f64;
        ratio_estimate(&scaled(inside, hosts), &across?, SYSTEMATIC).map(at_least_one)
    }

    /// How many flows can leave the rack at once without two meeting at a host.
    fn possible_senders(&self, kind: StageKind) -> f64 {
        let own = self.inventory.hosts_in(self.from).len();
        let others = match kind {
            StageKind::EachPair => self.inventory.hosts_in(self.to).len(),
            _ => self.inventory.hosts.len() - own,
        };
        own.min(others) as f64
    }

    fn remember(&self, result: &PairResult, paths: &mut Paths) {
        paths.known.insert((self.from, self.to), u32::MAX);
        let Some(across) = result.analysis.across_bits_per_sec else {
            return;
        };
        if result.merged {
            paths.up.insert(self.from, across.value);
        } else {
            paths.pair.insert((self.from, self.to), across.value);
        }
    }
}

/// Whether what the flows carried together was alike in all rounds, as far as there are enough of them to say.
fn is_steady(rounds: &[RoundSum]) -> bool {
    let flows: u32 = rounds.iter().map(|round| round.flows).sum();
    let slowed: u32 = rounds.iter().map(|round| round.slowed).sum();
    let is_like = match 2 * slowed > flows {
        true => varies_at_most(rounds, (0.25, 0.75), STEADY) || has_ceiling(rounds),
        false => varies_at_most(rounds, (0.25, 0.75), STEADY_WITH_FAST_FLOWS),
    };
    rounds.len() < LEAST_ROUNDS || is_like
}

/// Whether most rounds touch a sum that none exceeds.
fn has_ceiling(rounds: &[RoundSum]) -> bool {
    varies_at_most(rounds, (0.5, 1.0), CEILING)
}

/// Whether the one quantile of sums is within this factor of the other.
fn varies_at_most(rounds: &[RoundSum], (low, high): (f64, f64), factor: f64) -> bool {
    let sums: Vec<f64> = rounds.iter().map(|round| round.measured).collect();
    match (quantile(&sums, low), quantile(&sums, high)) {
        (Some(low), Some(high)) => high <= factor * low,
        _ => true,
    }
}

/// A path that holds back even one flow, and many together to the same, is full, however uneven timeouts make its rounds.
fn fills(alone: f64, together: f64, inside: f64) -> bool {
    let alike = LIKE_ONE..=1.0 / LIKE_ONE;
    alone < LIMITED_BELOW * inside && alike.contains(&(together / alone))
}

/// Whether it may have been the hosts' CPUs that slowed the flows, and not the path.
fn lack_cpu(rounds: &[RoundSum]) -> bool {
    let slowed: u32 = rounds.iter().map(|round| round.slowed).sum();
    let without: u32 = rounds.iter().map(|round| round.slowed_without_cpu).sum();
    2 * without > slowed
}

/// Rounds in which every flow was measured, unless those are the lesser part.
fn usable(rounds: &[RoundSum]) -> Vec<RoundSum> {
    let whole: Vec<RoundSum> = rounds.iter().filter(|round| round.whole).copied().collect();
    if 2 * whole.len() >= rounds.len() {
        whole
    } else {
        rounds.to_vec()
    }
}

/// A path cannot be undersubscribed by this measure: hosts send no faster than their NICs.
fn at_least_one(estimate: Estimate) -> Estimate {
    Estimate {
        value: estimate.value.max(1.0),
        low: estimate.low.map(|v| v.max(1.0)),
        high: estimate.high.map(|v| v.max(1.0)),
        samples: estimate.samples,
    }
}

/// The bound when no limit was found: what is missing to the hosts' own rate. Its low end is 1, as nothing says more.
fn none_found(shares: &[f64]) -> Option<Estimate> {
    let ratios: Vec<f64> = shares
        .iter()
        .filter(|s| **s > 0.0)
        .map(|share| 1.0 / share)
        .collect();
    let estimate = median_estimate(&ratios)?;
    Some(at_least_one(Estimate {
        low: estimate.low.map(|_| 1.0),
        high: estimate.high.map(|high| high * (1.0 + SYSTEMATIC)),
        ..estimate
    }))
}

/// Capacities that rack pairs share: measured with all racks active, else taken to be the greatest of a rack's pairs
/// when every one of them is limited, the cautious reading that accuses nobody.
fn shared_capacities(inventory: &Inventory, sums: &[StageSums], paths: &mut Paths) {
    if inventory.racks.len() < 3 {
        return;
    }
    let all = sums.iter().find(|stage| stage.kind == StageKind::All);
    for rack in inventory.rack_ids() {
        let others: BTreeSet<RackId> = inventory
            .rack_ids()
            .filter(|other| *other != rack)
            .collect();
        let out = others
            .iter()
            .map(|other| paths.pair.get(&(rack, *other)).copied());
        let greatest_out = greatest(out.collect::<Option<Vec<f64>>>());
        let into = others
            .iter()
            .map(|other| paths.pair.get(&(*other, rack)).copied());
        let greatest_into = greatest(into.collect::<Option<Vec<f64>>>());
        let measured_out = all.and_then(|stage| limited_sum(stage.out.get(&rack)?));
        let measured_into = all.and_then(|stage| limited_sum(stage.into.get(&rack)?));
        if let Some(up) = measured_out.or(greatest_out) {
            paths.up.entry(rack).or_insert(up);
        }
        if let Some(down) = measured_into.or(greatest_into) {
            paths.down.entry(rack).or_insert(down);
        }
    }
}

/// Pairs of racks are judged by what leaves the sending one; flows that several racks send into one meet only there.
fn full_into(sums: &[StageSums]) -> BTreeSet<RackId> {
    let all = sums.iter().filter(|stage| stage.kind == StageKind::All);
    let racks = all.flat_map(|stage| &stage.into);
    let full = racks.filter(|(_, rounds)| {
        let rounds = usable(rounds);
        rounds.len() >= LEAST_ROUNDS && limited_sum(&rounds).is_some() && has_ceiling(&rounds)
    });
    full.map(|(rack, _)| *rack).collect()
}

fn greatest(values: Option<Vec<f64>>) -> Option<f64> {
    values?.into_iter().max_by(f64::total_cmp)
}

fn limited_sum(rounds: &[RoundSum]) -> Option<f64> {
    let rounds = usable(rounds);
    let shares: Vec<f64> = rounds
        .iter()
        .filter(|r| r.expected > 0.0)
        .map(|r| r.measured / r.expected)
        .collect();
    let sums: Vec<f64> = rounds.iter().map(|round| round.measured).collect();
    (median(&shares)? < LIMITED_BELOW)
        .then(|| median(&sums))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four flows a round, so many of them slowed.
    fn rounds(sums: &[f64], slowed: u32) -> Vec<RoundSum> {
        let round = |measured: &f64| RoundSum {
            measured: *measured,
            expected: 400.0,
            flows: 4,
            slowed,
            slowed_without_cpu: 0,
            whole: true,
        };
        sums.iter().map(round).collect()
    }

    #[test]
    fn a_full_path_carries_the_same_in_every_round() {
        assert!(is_steady(&rounds(&[198.0, 200.0, 201.0, 205.0], 4)));
        assert!(!is_steady(&rounds(&[130.0, 200.0, 290.0, 380.0], 4)));
        // Timeouts take from some rounds, and nothing exceeds the path.
        assert!(is_steady(&rounds(
            &[309.0, 387.0, 469.0, 492.0, 492.0, 503.0, 503.0],
            4
        )));
        // Two rounds show nothing of this kind.
        assert!(is_steady(&rounds(&[130.0, 290.0], 4)));
    }

    #[test]
    fn a_path_that_lets_most_flows_pass_is_not_the_limit() {
        let sums = [285.0, 300.0, 315.0, 330.0];
        assert!(is_steady(&rounds(&sums, 3)));
        assert!(!is_steady(&rounds(&sums, 1)));
    }
    #[test]
    fn flows_of_several_racks_fill_the_entrance_of_one() {
        let full = |sums: &[f64]| {
            full_into(&[StageSums {
                name: "across".into(),
                kind: StageKind::All,
                pair: BTreeMap::new(),
                out: BTreeMap::new(),
                into: BTreeMap::from([(RackId(2), rounds(sums, 4))]),
            }])
        };
        assert_eq!(
            full(&[198.0, 200.0, 201.0, 203.0]),
            BTreeSet::from([RackId(2)])
        );
        assert!(full(&[150.0, 170.0, 190.0, 210.0]).is_empty());
        // Its hosts take all of it.
        assert!(full(&[398.0, 399.0, 400.0, 400.0]).is_empty());
    }

    #[test]
    fn a_path_is_full_when_many_carry_what_one_does() {
        assert!(fills(24.0, 21.0, 47.0));
        // As random losses have it: four flows carry four times as much.
        assert!(!fills(10.0, 40.0, 47.0));
        assert!(!fills(47.0, 47.0, 47.0));
    }
}
