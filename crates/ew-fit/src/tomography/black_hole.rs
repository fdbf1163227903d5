//! A path that swallows what is hashed to it: its connections never open, whatever their rate.
//!
//! A connection needs both directions, so a member that drops only one direction of a rack's
//! uplinks takes connections from that rack and to it alike. A flow of s connections begins with
//! probability (1 - p)^s where the share p of the connections is lost. The scopes that the losses
//! could have are compared by likelihood, as for slow paths; a host that nobody reaches and two
//! racks that are kept apart are among them, so that neither is taken for a path.

use super::lost::{LostLocation, LostMember};
use super::members::BadMember;
use super::scope::{Pods, Scope};
use super::traces::Traces;
use crate::{ANYTHING, Direction, retransmitted_share};
use ew_evidence::criteria::{EQUAL, FAULT_ODDS, LOSSY, MANY, MIN_SEEN, SIGNIFICANT};
use ew_evidence::observations::{Observations, StageView};
use ew_evidence::quality::Quality;
use ew_model::HostId;
use ew_model::scenario::Pattern;
use ew_model::workload::SourcePorts;
use ew_stats::quantile;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Shares of connections lost that are tried: from one of 64, the widest groups of equal paths that
/// switches are set up with, ascending by a factor. Less than that is no path.
const MIN_SHARE: f64 = 1.0 / 64.0;
const STEP: f64 = 1.1;

/// One path that swallows its connections.
#[derive(Clone, Debug)]
pub struct BlackHole {
    /// Whose path it is.
    pub scope: Scope,
    /// Scopes that explain as much.
    pub rivals: Vec<Scope>,
    /// The router's address, by the rack that sends to it, where that is known.
    pub via: Vec<(usize, IpAddr)>,
    /// Share of the connections in the scope that never open.
    pub share: f64,
    /// Flows in the scope that never began, of all.
    pub failed: usize,
    /// All flows in the scope.
    pub flows: usize,
    /// Log-likelihood gained, less the price, nats.
    pub gain: f64,
}

impl BlackHole {
    /// The same, whose routers traces show.
    pub(super) fn at(self, member: BadMember) -> Self {
        Self {
            scope: member.scope,
            rivals: member.rivals,
            via: member.via,
            ..self
        }
    }

    /// A hole above the rack's own switch seems a path that is not in use: nothing comes as far as
    /// its router. But then traces of the rack end below it, about as many as are hashed to one
    /// path (half of them or more), where unused paths cut none.
    pub(super) fn in_place_of_lost(self, lost: &mut Vec<LostMember>, traces: &Traces) -> Self {
        let swallows = |one: &LostMember| {
            let from = one.location.sends()?;
            let fork = traces.forks.get(&from)?;
            let is_share = 2 * fork.cut * one.of > fork.traced() + fork.cut;
            is_share.then_some(from)
        };
        let Some((at, from)) =
            (lost.iter().enumerate()).find_map(|(at, one)| Some((at, swallows(one)?)))
        else {
            return self;
        };
        let one = lost.remove(at);
        Self {
            scope: Scope::Rack(from, Direction::Tx),
            rivals: match one.location {
                LostLocation::OneWay(_, to) => vec![Scope::Rack(to, Direction::Rx)],
                _ => Vec::new(),
            },
            via: one.without,
            ..self
        }
    }
}

/// What may keep flows from beginning. Of equal ones the first in this order is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suspect {
    Path(Scope),
    Host(HostId),
    Racks(usize, usize),
}

/// The flows of a pair of hosts in one stage.
struct Tried {
    src: HostId,
    dst: HostId,
    /// Where they are known and differ.
    racks: Option<(usize, usize)>,
    flows: f64,
    failed: f64,
    /// Connections of each flow.
    connections: f64,
    /// Share of the flows that would not begin without a black hole.
    typical: f64,
}

/// The black hole that explains the flows that never began, if one does. Where hosts lacked
/// much CPU nothing is concluded.
pub(super) fn black_hole(
    observations: &Observations<'_>,
    quality: &Quality,
    pods: &Pods,
) -> Option<BlackHole> {
    if quality.lacked_cpu() {
        return None;
    }
    let stages: Vec<&StageView<'_>> = observations
        .stages
        .iter()
        .filter(|stage| {
            !matches!(
                stage.stage.pattern,
                Pattern::Pods { .. } | Pattern::Congestion { .. }
            )
        })
        .collect();
    let mut tried: Vec<Tried> = stages
        .iter()
        .flat_map(|stage| of_stage(observations, stage))
        .collect();
    let random_loss = random_loss(observations, &stages);
    expect(&mut tried, &random_loss, quality.held_back_share());
    let hosts: BTreeSet<HostId> = tried.iter().flat_map(|one| [one.src, one.dst]).collect();
    let racks = observations.inventory().racks.len();
    let price = |suspect: &Suspect| {
        let locations = match suspect {
            Suspect::Path(_) => racks + pods.of_several().count() + 1,
            Suspect::Host(_) => hosts.len(),
            Suspect::Racks(..) => racks * racks,
        };
        (locations.max(1) as f64 / FAULT_ODDS).ln() + 0.5 * (tried.len().max(2) as f64).ln()
    };
    let suspected = suspected(&tried, pods);
    let mut explained: Vec<(f64, f64, Suspect)> = suspected
        .iter()
        .map(|(suspect, inside)| {
            let (gain, share) = best_share(inside);
            (gain - price(suspect), share, *suspect)
        })
        .collect();
    explained.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (gain, share, best) = *explained.first().filter(|(gain, ..)| *gain > 0.0)?;
    let Suspect::Path(scope) = best else {
        return None;
    };
    let inside = || suspected[&best].iter();
    let failed = inside().map(|one| one.failed).sum::<f64>() as usize;
    let ends: BTreeSet<HostId> = inside()
        .filter(|one| one.failed > 0.0)
        .flat_map(|one| [one.src, one.dst])
        .collect();
    let rivals = explained.iter().skip(1);
    let rivals = rivals.filter(|(other, ..)| *other > gain - EQUAL);
    (failed >= MIN_SEEN && ends.len() >= MIN_SEEN && share < 1.0 - MANY).then(|| BlackHole {
        scope,
        rivals: rivals
            .filter_map(|(_, _, suspect)| match suspect {
                Suspect::Path(scope) => Some(*scope),
                _ => None,
            })
            .collect(),
        via: Vec::new(),
        share,
        failed,
        flows: inside().map(|one| one.flows).sum::<f64>() as usize,
        gain,
    })
}

fn of_stage(observations: &Observations<'_>, stage: &StageView<'_>) -> Vec<Tried> {
    let run = observations.run;
    let is_up = |host: HostId| !run.lost.contains_key(&host) && !run.failed.contains_key(&host);
    let mut counts: BTreeMap<(HostId, HostId), (f64, f64)> = BTreeMap::new();
    for flow in stage.due.iter().flat_map(|round| &round.flows) {
        if is_up(flow.src) && is_up(flow.dst) {
            counts.entry((flow.src, flow.dst)).or_default().0 += 1.0;
        }
    }
    for flow in stage.missing.iter().filter(|flow| flow.never_began) {
        if let Some(count) = counts.get_mut(&(flow.src, flow.dst)) {
            count.1 += 1.0;
        }
    }
    // The same 5-tuples in every round are the same connections again, not further ones.
    let is_pinned = stage.stage.workload.source_ports == SourcePorts::Pinned;
    let tried = |((src, dst), (flows, failed)): ((HostId, HostId), (f64, f64))| Tried {
        src,
        dst,
        racks: observations.inventory().racks_between(src, dst),
        flows: if is_pinned { 1.0 } else { flows },
        failed: if is_pinned {
            f64::from(u8::from(2.0 * failed > flows))
        } else {
            failed
        },
        connections: f64::from(stage.stage.workload.streams.max(1)),
        typical: 0.0,
    };
    counts.into_iter().map(tried).collect()
}

/// From which rack to which.
type Racks = (usize, usize);

/// Share of segments that nearly all flows from one rack to another lose in any stage, whatever its
/// load: full queues lose in some, and of some flows. Only those that lose more are in it.
fn random_loss(observations: &Observations<'_>, stages: &[&StageView<'_>]) -> BTreeMap<Racks, f64> {
    let inventory = observations.inventory();
    let mut least: BTreeMap<Racks, f64> = BTreeMap::new();
    for stage in stages {
        let mut shares: BTreeMap<Racks, Vec<f64>> = BTreeMap::new();
        for row in stage.rounds.iter().flat_map(|round| &round.records) {
            let racks = inventory.racks_between(row.src, row.dst);
            if let Some((racks, share)) = racks.zip(retransmitted_share(row)) {
                shares.entry(racks).or_default().push(share);
            }
        }
        for (racks, shares) in shares {
            let of_stage = quantile(&shares, MANY).unwrap_or(0.0);
            let least = least.entry(racks).or_insert(of_stage);
            *least = least.min(of_stage);
        }
    }
    least.retain(|_, share| *share >= LOSSY);
    least
}

/// What keeps intra-rack flows from beginning is no path between racks; cross-rack ones do not
/// begin either where the segment that opens a connection, or its answer, is lost at random, and
/// have more connections that ends may be late for.
fn expect(tried: &mut [Tried], random_loss: &BTreeMap<Racks, f64>, held_back_share: f64) {
    let inside = || tried.iter().filter(|one| one.racks.is_none());
    let flows: f64 = inside().map(|one| one.flows).sum();
    let failed: f64 = inside().map(|one| one.failed).sum();
    let everywhere = (failed / flows.max(1.0)).max(ANYTHING);
    for one in tried {
        let lost = |racks: Racks| random_loss.get(&racks).copied().unwrap_or(0.0);
        let passes = one.racks.map_or(1.0, |(from, to)| {
            (1.0 - lost((from, to))).max(0.0) * (1.0 - lost((to, from))).max(0.0)
        });
        let opens = (passes * (1.0 - held_back_share)).powf(one.connections);
        one.typical = (1.0 - (1.0 - everywhere) * opens).min(1.0 - SIGNIFICANT);
    }
}

/// Everything that keeps a pair's flows from beginning if it is at fault.
fn suspects(one: &Tried, pods: &Pods) -> Vec<Suspect> {
    let hosts = BTreeSet::from([one.src, one.dst]);
    let mut all: Vec<Suspect> = hosts.into_iter().map(Suspect::Host).collect();
    if let Some((from, to)) = one.racks {
        let path = |rack| Suspect::Path(Scope::Rack(rack, Direction::Both));
        all.extend([path(from), path(to), Suspect::Path(Scope::Everywhere)]);
        all.push(Suspect::Racks(from.min(to), from.max(to)));
        let of_pods = (pods.of_several()).map(|pod| Scope::Pod(pod, Direction::Both));
        let of_pods = of_pods.filter(|scope| scope.has((from, to), pods));
        all.extend(of_pods.map(Suspect::Path));
    }
    all
}

/// The flows of every suspect. One whose flows all began explains nothing, and is none.
fn suspected<'t>(tried: &'t [Tried], pods: &Pods) -> BTreeMap<Suspect, Vec<&'t Tried>> {
    let failed = tried.iter().filter(|one| one.failed > 0.0);
    let mut suspected: BTreeMap<Suspect, Vec<&Tried>> = failed
        .flat_map(|one| suspects(one, pods))
        .map(|suspect| (suspect, Vec::new()))
        .collect();
    if suspected.is_empty() {
        return suspected;
    }
    for one in tried {
        for suspect in suspects(one, pods) {
            if let Some(inside) = suspected.get_mut(&suspect) {
                inside.push(one);
            }
        }
    }
    suspected
}

/// What is gained, in nats, when the connections inside a suspect are lost with the likeliest share
/// of them, and that share.
fn best_share(inside: &[&Tried]) -> (f64, f64) {
    let gain = |lost: f64| {
        inside
            .iter()
            .map(|one| {
                let begins = (1.0 - one.typical) * (1.0 - lost).powf(one.connections);
                let of = |begins: f64| {
                    one.failed * (1.0 - begins).ln() + (one.flows - one.failed) * begins.ln()
                };
                of(begins) - of(1.0 - one.typical)
            })
            .sum::<f64>()
    };
    let shares = std::iter::successors(Some(MIN_SHARE), |share| Some(share * STEP));
    let tried_shares = shares.take_while(|share| *share < 1.0);
    tried_shares
        .map(|share| (gain(share), share))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((0.0, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flows of one connection, intra-rack and cross-rack, so many of which never began.
    fn tried(failed: f64) -> Vec<Tried> {
        let of = |racks, flows, failed| Tried {
            src: HostId(0),
            dst: HostId(1),
            racks,
            flows,
            failed,
            connections: 1.0,
            typical: 0.0,
        };
        vec![of(None, 80.0, 0.0), of(Some((1, 0)), 80.0, failed)]
    }

    #[test]
    fn connections_that_random_loss_keeps_from_opening_are_in_no_hole() {
        let gain = |lost: [f64; 2]| {
            let mut tried = tried(7.0);
            let lost = BTreeMap::from([((0, 1), lost[0]), ((1, 0), lost[1])]);
            expect(&mut tried, &lost, 0.0);
            best_share(&[&tried[1]]).0
        };
        assert!(gain([0.0; 2]) > 10.0, "{}", gain([0.0; 2]));
        // The segment that opens, or its answer: 11% of them.
        for lost in [[0.059, 0.059], [0.115, 0.0], [0.0, 0.115]] {
            assert!(gain(lost) < 0.1, "{lost:?}: {}", gain(lost));
        }
    }
}
