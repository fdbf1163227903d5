//! Which of a rack's hashed paths is bad, from the stage that loads all of them to half with pinned
//! ports.
//!
//! At half load nothing healthy is full. So a connection that stays below its pace, or retransmits,
//! in every round in which its 5-tuple was measured is on a bad path. A share of bad connections
//! out of one rack, whatever rack they go to, is a member of that rack's uplinks; into one rack, of
//! its downlinks; everywhere, a spine. Binomial likelihoods of the scopes are compared, as 007
//! (Arzani et al., NSDI 2018) and NetBouncer (Tan et al., NSDI 2019) do with votes.

mod black_hole;
mod common_loss;
mod connections;
mod links;
mod loads;
mod lost;
mod members;
mod pinned;
mod scope;
mod traces;

pub use black_hole::BlackHole;
pub(crate) use common_loss::{Losses, Moment};
pub(crate) use connections::{is_light, with_cpu};
pub use lost::{LostLocation, LostMember, short_racks};
pub use members::BadMember;
pub use scope::{Pods, Scope};
pub use traces::Traces;

use crate::{ANYTHING, Direction, Network, RackDirection};
use connections::{Fed, Judged, Key, connections_of};
use ew_evidence::criteria::{ALIKE, EQUAL, FAULT_ODDS, MANY, MIN_SEEN, SLOW, TIMES_TYPICAL};
use ew_evidence::observations::{Observations, RoundView, StageView};
use ew_evidence::quality::{LITTLE_STARVATION, starvation};
use ew_model::HostId;
use ew_model::analysis::{RackAnalysis, RackPath};
use ew_model::record::FlowRecord;
use ew_model::scenario::Pattern;
use ew_model::workload::Pace;
use ew_stats::median;
use loads::Loads;
use members::Stratum;
use pinned::{Badness, Connection, PathRounds, typical_loss};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is known of single paths.
#[derive(Debug, Default)]
pub struct Tomography {
    /// A bad one, by its share of a rack's connections.
    pub bad_path: Option<BadPath>,
    /// A bad one whose routers are known.
    pub bad_member: Option<BadMember>,
    /// One that swallows its connections.
    pub black_hole: Option<BlackHole>,
    /// Paths that a rack does not use, and others do.
    pub lost_members: Vec<LostMember>,
    /// The pods whose paths may be bad.
    pub pods: Pods,
    /// Share of the flows that load all paths by half whose ends lacked CPU. `None` without such
    /// flows.
    pub starved_share: Option<f64>,
    /// Parallel paths of a rack by their routers, and connections traced.
    pub traced_paths: Option<(usize, usize)>,
    /// The same of each rack: routers, and connections traced out of the rack.
    pub rack_paths: BTreeMap<usize, BTreeMap<IpAddr, u32>>,
}

impl Tomography {
    /// The racks with their traced paths.
    pub fn with_paths(&self, mut racks: Vec<RackAnalysis>) -> Vec<RackAnalysis> {
        let bad: Vec<(usize, IpAddr)> = (self.bad_member.iter())
            .flat_map(|found| found.via.iter().copied())
            .collect();
        for rack in &mut racks {
            let index = rack.rack.index();
            let paths = self.rack_paths.get(&index).into_iter().flatten();
            rack.paths = paths
                .map(|(router, connections)| RackPath {
                    router: *router,
                    connections: *connections,
                    is_bad: bad.contains(&(index, *router)),
                })
                .collect();
        }
        racks
    }
}

/// One bad path.
#[derive(Clone, Debug)]
pub struct BadPath {
    /// Whose path it is.
    pub scope: Scope,
    /// Scopes that explain as much.
    pub rivals: Vec<Scope>,
    /// Bad connections of those in the scope.
    pub bad: usize,
    /// All connections in the scope.
    pub connections: usize,
    /// Median over the bad ones: rate over pace, and share of segments retransmitted.
    pub of_pace: f64,
    /// Of all segments, 0 to 1.
    pub retransmitted_share: f64,
    /// Log-likelihood gained, less the price, nats.
    pub gain: f64,
    /// Stage that shows it.
    pub stage: String,
}

/// Analyses the paths of a run. Of one whose rounds are mostly void nothing is concluded but that
/// nothing arrives.
pub fn tomography(
    observations: &Observations<'_>,
    network: &Network,
    traces: &Traces,
) -> Tomography {
    let quality = &network.quality;
    let racks = observations.inventory().racks.len();
    let mut lost_members = lost::lost_members(traces, observations.run.plan.expect.paths);
    let pods = Pods(traces.pods(racks));
    let black_hole = black_hole::black_hole(observations, quality, &pods);
    let black_hole = black_hole.map(|found| {
        let ended = by_length(&traces.ended, traces);
        let ended: Vec<Stratum> = ended.into_iter().map(Stratum::new).collect();
        // What leaves over a hole never arrives; what returns over one fails by the hash of the
        // way back, over every router.
        match members::bad_member(&ended, traces, (racks, &pods)) {
            Some(member) if member.bad == member.connections => found.at(member),
            _ => found.in_place_of_lost(&mut lost_members, traces),
        }
    });
    if quality.is_invalid() {
        return Tomography {
            black_hole,
            pods,
            ..Tomography::default()
        };
    }
    // What a throttled host carries depends on what else it does, and shows no path.
    let (bad_path, bad_member) = match quality.is_throttled {
        true => (None, None),
        false => bad_paths(observations, network, traces, &pods),
    };
    Tomography {
        bad_path,
        bad_member,
        black_hole,
        lost_members,
        pods,
        starved_share: starved_share(observations),
        traced_paths: traces.paths(),
        rack_paths: traces.of_racks(),
    }
}

fn starved_share(observations: &Observations<'_>) -> Option<f64> {
    let stages = observations.stages.iter();
    let light = stages.filter(|stage| {
        matches!(stage.stage.pattern, Pattern::Paths { .. }) && is_light(&stage.stage.workload)
    });
    let rounds = light.flat_map(|stage| stage.rounds.iter().map(move |round| (stage, round)));
    let (mut flows, mut fed) = (0, 0);
    for (stage, round) in rounds {
        flows += round.records.len();
        fed += with_cpu(observations.run, stage, round).count();
    }
    (flows > 0).then(|| 1.0 - fed as f64 / flows as f64)
}

/// By their shares of the connections, and by name.
fn bad_paths(
    observations: &Observations<'_>,
    network: &Network,
    traces: &Traces,
    pods: &Pods,
) -> (Option<BadPath>, Option<BadMember>) {
    let racks = observations.inventory().racks.len();
    let paced = paced(observations, network, traces);
    let strata: Vec<Stratum> = paced
        .iter()
        .flat_map(|paced| by_length(&paced.pooled, traces))
        .chain(together(observations, network, traces))
        .map(Stratum::new)
        .collect();
    let by_share = paced.first().and_then(|paced| {
        let found = explain(&paced.judged, racks, pods)?;
        let stage = paced.stage.clone();
        Some(BadPath { stage, ..found })
    });
    (
        by_share,
        members::bad_member(&strata, traces, (racks, pods)),
    )
}

/// Connections over as many routers, together.
fn by_length(judged: &[Judged], traces: &Traces) -> Vec<Vec<Judged>> {
    let mut lengths: BTreeMap<usize, Vec<Judged>> = BTreeMap::new();
    for one in judged {
        let of_length = lengths.entry(traces.length(one.racks)).or_default();
        of_length.push(one.clone());
    }
    lengths.into_values().collect()
}

/// A stage that loads all paths in part.
struct Paced {
    stage: String,
    /// By what is bad in every round.
    judged: Vec<Judged>,
    /// By all rounds together, to be compared with others.
    pooled: Vec<Judged>,
}

/// The connections of the stages that load all paths in part, the lowest load first: there what is
/// slow is not full by chance.
fn paced(observations: &Observations<'_>, network: &Network, traces: &Traces) -> Vec<Paced> {
    let stages = observations.stages.iter();
    let stages = stages.filter(|stage| matches!(stage.stage.pattern, Pattern::Paths { .. }));
    let mut stages: Vec<&StageView<'_>> = stages
        .filter(|stage| stage.stage.workload.pace != Pace::default())
        .collect();
    let load = |stage: &StageView<'_>| stage.stage.workload.pace.measured_share.unwrap_or(0.0);
    stages.sort_by(|a, b| load(a).total_cmp(&load(b)));
    // Where all connections of a host on one of its links would be too many for it, a slow one
    // may be slow on its host's link, in every round, since its ports are pinned.
    stages.retain(|stage| load(stage) * network.links <= 1.0);
    let loads = Loads::new(observations, traces, &stages);
    let paced = |(at, stage): (usize, &&StageView<'_>)| {
        let mut seen = PathRounds::new(observations.inventory(), traces, &loads);
        for (index, round) in stage.rounds.iter().enumerate() {
            let moment = (at, index);
            let flows: Vec<Fed<'_>> = with_cpu(observations.run, stage, round).collect();
            seen.take(moment, &flows);
        }
        let connections = seen.connections();
        let typical = typical_loss(&connections, traces);
        let judged = |badness| judge(observations, network, traces, &connections, badness);
        Paced {
            judged: judged(Badness::EveryRound),
            pooled: judged(Badness::Pooled(typical)),
            stage: stage.stage.name.clone(),
        }
    };
    stages.iter().enumerate().map(paced).collect()
}

/// Flows of one connection that leave their rack over the same router in the same round, together:
/// what they carry against what their hosts allow. Bad is what is below most of its kind.
fn together(
    observations: &Observations<'_>,
    network: &Network,
    traces: &Traces,
) -> Vec<Vec<Judged>> {
    let stages = observations.stages.iter().enumerate();
    let single = stages.filter(|(_, stage)| stage.judged && stage.stage.workload.streams == 1);
    let mut all: Vec<(usize, Load, Judged)> = Vec::new();
    for (at, stage) in single {
        let rounds = stage.rounds.iter().enumerate();
        for (_, round) in rounds.filter(|(number, _)| !network.quality.is_void(at, *number)) {
            let of_round = of_routers(observations, network, traces, round);
            all.extend(
                of_round
                    .into_iter()
                    .map(|(load, judged)| (at, load, judged)),
            );
        }
    }
    let mut sizes = PathSizes::of(observations, network, traces);
    for (_, load, judged) in &all {
        sizes.note(
            judged.racks,
            judged.of_pace * load.bits_per_sec / weight(traces, judged),
        );
    }
    let mut kinds: BTreeMap<Kind, Vec<Judged>> = BTreeMap::new();
    for (stage, load, judged) in all {
        let kind = Kind {
            stage,
            flows: load.flows,
            load: step(load.bits_per_sec),
            paths: sizes.of_way(judged.racks, weight(traces, &judged), load.bits_per_sec),
            routers: traces.length(judged.racks),
        };
        kinds.entry(kind).or_default().push(judged);
    }
    let mut kinds: Vec<Vec<Judged>> = kinds.into_values().collect();
    for judged in &mut kinds {
        let shares: Vec<f64> = judged.iter().map(|one| one.of_pace).collect();
        let typical = median(&shares).unwrap_or(1.0);
        for one in judged {
            one.is_bad = one.of_pace < SLOW * typical;
        }
    }
    kinds
}

/// Of the path that flows share.
fn weight(traces: &Traces, judged: &Judged) -> f64 {
    judged.via.map_or(1.0, |via| traces.weight(via))
}

/// Flows over one router that are alike: many share what few do not fill, and large racks have wide
/// paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    stage: usize,
    flows: usize,
    /// What their hosts allow.
    load: i64,
    /// Sizes of the paths out of the rack and into the other.
    paths: (i64, i64),
    /// Between the racks.
    routers: usize,
}

/// What the narrowest path of each rack carries, out and in: where the paths together carry what
/// its hosts can do, or what they were found to carry, and as much as any of them carried.
struct PathSizes(BTreeMap<usize, [f64; 2]>);

impl PathSizes {
    fn of(observations: &Observations<'_>, network: &Network, traces: &Traces) -> Self {
        let inventory = observations.inventory();
        let mut rates: BTreeMap<usize, f64> = BTreeMap::new();
        for host in inventory.host_ids() {
            if let Some((rack, rate)) = inventory.rack_of(host).zip(network.class_rate(host)) {
                *rates.entry(rack.index()).or_default() += rate;
            }
        }
        let each = |(rack, rate): (usize, f64)| {
            let narrowed = |direction: &RackDirection| {
                let found = direction.capacity.map_or(rate, |capacity| capacity.value);
                found.min(rate) / traces.weights_of(rack)
            };
            (rack, network.racks[rack].each_ref().map(narrowed))
        };
        Self(rates.into_iter().map(each).collect())
    }

    /// Takes what a path from a rack to another carried, over its weight.
    fn note(&mut self, racks: (usize, usize), carried: f64) {
        for (rack, end) in [(racks.0, 0), (racks.1, 1)] {
            let size = &mut self.0.entry(rack).or_default()[end];
            *size = size.max(carried);
        }
    }

    /// Of the path with such a weight, as far as it matters to such a load.
    fn of_way(&self, racks: (usize, usize), weight: f64, load: f64) -> (i64, i64) {
        let of = |rack, end: usize| {
            let sizes = self.0.get(&rack).copied().unwrap_or_default();
            step((weight * sizes[end]).min(load))
        };
        (of(racks.0, 0), of(racks.1, 1))
    }
}

/// Rates within [`ALIKE.ln()`] of each other are alike.
fn step(bits_per_sec: f64) -> i64 {
    (bits_per_sec.max(1.0).ln() / ALIKE.ln()).round() as i64
}

/// A flow with the routers on its way, as far as they are known.
struct Way<'a> {
    row: &'a FlowRecord,
    racks: (usize, usize),
    via: Option<IpAddr>,
    /// Whether its rate shows something about its path.
    is_fit: bool,
}

/// What each router carried in a round, with the number of flows: of racks all of whose flows were
/// traced, and where all flows over the router went to one rack, over one path.
fn of_routers(
    observations: &Observations<'_>,
    network: &Network,
    traces: &Traces,
    round: &RoundView<'_>,
) -> Vec<(Load, Judged)> {
    let inventory = observations.inventory();
    let rack = |host| Some(inventory.rack_of(host)?.index());
    let rows = round
        .records
        .iter()
        .zip(&round.isolated)
        .zip(starvation(round));
    let ways = rows.filter_map(|((row, is_isolated), starved)| {
        let racks = rack(row.src).zip(rack(row.dst));
        let is_slow = network.is_slow(row.src) || network.is_slow(row.dst);
        let is_lossy = network.lossy_ways.contains_key(&racks?);
        let key = connections_of(row).first()?.key;
        Some(Way {
            row,
            racks: racks.filter(|(from, to)| from != to)?,
            via: traces.via(&key),
            is_fit: *is_isolated && starved < LITTLE_STARVATION && !is_slow && !is_lossy,
        })
    });
    let mut routers: BTreeMap<(usize, Option<IpAddr>), Vec<Way<'_>>> = BTreeMap::new();
    for way in ways {
        routers.entry((way.racks.0, way.via)).or_default().push(way);
    }
    let is_known = |from: usize| !routers.contains_key(&(from, None));
    let known = routers.iter().filter(|((from, _), _)| is_known(*from));
    known
        .filter(|(_, ways)| {
            let same_end = ways.iter().all(|way| way.racks.1 == ways[0].racks.1);
            same_end && ways.iter().all(|way| way.is_fit)
        })
        .filter_map(|(_, ways)| sum(network, ways))
        .collect()
}

/// What was asked of a path.
struct Load {
    flows: usize,
    /// By what their hosts allow.
    bits_per_sec: f64,
}

fn sum(network: &Network, ways: &[Way<'_>]) -> Option<(Load, Judged)> {
    let first = ways.first()?;
    let (mut carried, mut allowed) = (0.0, 0.0);
    for way in ways {
        let tx = network.class_rate(way.row.src)?;
        let rx = network.class_rate(way.row.dst)?;
        carried += way.row.bits_per_sec()?;
        allowed += tx.min(rx);
    }
    let load = Load {
        flows: ways.len(),
        bits_per_sec: allowed,
    };
    let judged = Judged {
        src: first.row.src,
        dst: first.row.dst,
        racks: first.racks,
        via: first.via,
        is_bad: false,
        of_pace: carried / allowed,
        retransmitted: 0.0,
        segments: 0.0,
        lost: 0.0,
        asked: None,
    };
    Some((load, judged))
}

fn judge(
    observations: &Observations<'_>,
    network: &Network,
    traces: &Traces,
    connections: &BTreeMap<Key, Connection>,
    badness: Badness,
) -> Vec<Judged> {
    let racks_of = |key: &Key| observations.inventory().racks_between(key.src, key.dst);
    let judged = connections.iter().filter_map(|(key, connection)| {
        let racks = racks_of(key)?;
        let is_bad = match network.lossy_ways.get(&racks) {
            // All paths are alike there, and only what loses far more shows another.
            Some(share) => {
                connection.loss() > TIMES_TYPICAL * share && connection.loses_more_than(*share)
            }
            None => connection.is_bad(badness),
        };
        connection.is_known(badness).then(|| Judged {
            src: key.src,
            dst: key.dst,
            racks,
            via: traces.via(key),
            is_bad,
            of_pace: median(&connection.of_pace).unwrap_or(1.0),
            retransmitted: median(&connection.retransmitted).unwrap_or(0.0),
            segments: connection.segments,
            lost: connection.lost,
            asked: connection.asked,
        })
    });
    let judged: Vec<Judged> = judged.collect();
    let own_fault = bad_hosts(&judged);
    let is_host = |host: HostId| network.is_slow(host) || own_fault.contains(&host);
    judged
        .into_iter()
        .filter(|one| !is_host(one.src) && !is_host(one.dst))
        .collect()
}

fn bad_hosts(judged: &[Judged]) -> BTreeSet<HostId> {
    let mut counts: BTreeMap<(HostId, bool), (usize, usize)> = BTreeMap::new();
    for one in judged {
        for end in [(one.src, true), (one.dst, false)] {
            let count = counts.entry(end).or_default();
            count.0 += usize::from(one.is_bad);
            count.1 += 1;
        }
    }
    let bad = counts
        .into_iter()
        .filter(|(_, (bad, all))| *bad as f64 > (1.0 - MANY) * *all as f64);
    bad.map(|((host, _), _)| host).collect()
}

fn explain(judged: &[Judged], racks: usize, pods: &Pods) -> Option<BadPath> {
    const WAYS: [Direction; 3] = [Direction::Tx, Direction::Rx, Direction::Both];
    let of_racks = (0..racks).flat_map(|rack| WAYS.map(|way| Scope::Rack(rack, way)));
    let of_pods = pods.of_several();
    let of_pods = of_pods.flat_map(|pod| WAYS.map(|way| Scope::Pod(pod, way)));
    let mut scopes: Vec<Scope> = of_racks.chain(of_pods).collect();
    scopes.push(Scope::Everywhere);
    let is_in = |one: &Judged, scope: Scope| scope.has(one.racks, pods);
    let price = (scopes.len() as f64).ln()
        + (1.0 / FAULT_ODDS).ln()
        + 0.5 * (judged.len().max(2) as f64).ln();
    let without = likelihood(judged.iter(), ANYTHING);
    let mut gains: Vec<(f64, Scope)> = scopes
        .into_iter()
        .filter(|scope| is_possible(judged, |one| is_in(one, *scope)))
        .map(|scope| {
            let gain = gain(judged, |one| is_in(one, scope), without);
            (gain - price, scope)
        })
        .collect();
    gains.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (gain, scope) = *gains.first().filter(|(gain, _)| *gain > 0.0)?;
    let inside: Vec<&Judged> = judged.iter().filter(|one| is_in(one, scope)).collect();
    let bad: Vec<&&Judged> = inside.iter().filter(|one| one.is_bad).collect();
    let over =
        |figure: fn(&Judged) -> f64| median(&bad.iter().map(|one| figure(one)).collect::<Vec<_>>());
    let rivals = gains
        .iter()
        .skip(1)
        .filter(|(other, _)| *other > gain - EQUAL);
    Some(BadPath {
        scope,
        rivals: rivals.map(|(_, scope)| *scope).collect(),
        bad: bad.len(),
        connections: inside.len(),
        of_pace: over(|one| one.of_pace)?,
        retransmitted_share: over(|one| one.retransmitted)?,
        gain,
        stage: String::new(),
    })
}

/// Enough bad connections of different hosts, and not most of the scope.
fn is_possible(judged: &[Judged], is_in: impl Fn(&Judged) -> bool) -> bool {
    let inside: Vec<&Judged> = judged.iter().filter(|one| is_in(one)).collect();
    let bad: Vec<&&Judged> = inside.iter().filter(|one| one.is_bad).collect();
    let hosts: BTreeSet<HostId> = bad.iter().flat_map(|one| [one.src, one.dst]).collect();
    bad.len() >= MIN_SEEN
        && hosts.len() >= MIN_SEEN
        && (bad.len() as f64) < (1.0 - MANY) * inside.len() as f64
}

/// Log-likelihood gained when the connections of a scope are bad with a probability of their own.
fn gain(judged: &[Judged], is_in: impl Fn(&Judged) -> bool, without: f64) -> f64 {
    let inside = || judged.iter().filter(|one| is_in(one));
    let (all, bad) = (inside().count(), inside().filter(|one| one.is_bad).count());
    let own = (bad as f64 / all as f64).max(ANYTHING);
    let outside = judged.iter().filter(|one| !is_in(one));
    likelihood(inside(), own) + likelihood(outside, ANYTHING) - without
}

fn likelihood<'j>(judged: impl Iterator<Item = &'j Judged>, bad: f64) -> f64 {
    judged
        .map(|one| {
            if one.is_bad {
                bad.ln()
            } else {
                (1.0 - bad).ln()
            }
        })
        .sum()
}
