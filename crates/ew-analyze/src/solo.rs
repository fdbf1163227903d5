//! Lone flows: the only evidence against a host. A flow that shares a NIC direction or a filled uplink with others
//! gets what TCP's fairness leaves it, which says nothing of its ends.

use crate::observations::{Observations, RoundView};
use crate::paths::Paths;
use ew_model::{HostId, Inventory, RackId};
use std::collections::BTreeMap;

/// One measured flow that was alone at its sender and at its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solo {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    /// Index of the stage.
    pub(crate) stage: usize,
    pub(crate) bits_per_sec: f64,
    /// What the path between the racks leaves this flow. `None` when no path limits it.
    pub(crate) path_bits_per_sec: Option<f64>,
}

/// Lone flows that no path between racks slowed: those inside racks (or without racks), and, where the paths are
/// known, those across racks whose share of the path is at least `needed_bits_per_sec`.
pub(crate) fn host_limited(
    observations: &Observations<'_>,
    paths: Option<&Paths>,
    needed_bits_per_sec: f64,
) -> Vec<Solo> {
    let inventory = observations.inventory();
    let mut solos = Vec::new();
    for (index, stage) in observations
        .stages
        .iter()
        .enumerate()
        .filter(|(_, s)| s.is_bulk())
    {
        for round in &stage.rounds {
            let crowd = paths.map(|paths| Crowd::new(inventory, round, paths));
            for ((row, rate), solo) in round.rates().zip(&round.solo) {
                if !solo {
                    continue;
                }
                let share = if inventory.crosses_racks(row.src, row.dst) {
                    crowd
                        .as_ref()
                        .map_or(Share::Unknown, |c| c.share(inventory, row.src, row.dst))
                } else {
                    Share::Unlimited
                };
                let path_bits_per_sec = match share {
                    Share::Unlimited => None,
                    Share::Limited(share) if share >= needed_bits_per_sec => Some(share),
                    Share::Limited(_) | Share::Unknown => continue,
                };
                solos.push(Solo {
                    src: row.src,
                    dst: row.dst,
                    stage: index,
                    bits_per_sec: rate,
                    path_bits_per_sec,
                });
            }
        }
    }
    solos
}

/// What the paths leave a flow across racks.
#[derive(Clone, Copy, Debug)]
enum Share {
    Unknown,
    Unlimited,
    Limited(f64),
}

/// How many flows of a round use each path.
struct Crowd<'a> {
    paths: &'a Paths,
    pairs: BTreeMap<(RackId, RackId), u32>,
    out: BTreeMap<RackId, u32>,
    into: BTreeMap<RackId, u32>,
}

impl<'a> Crowd<'a> {
    fn new(inventory: &Inventory, round: &RoundView<'_>, paths: &'a Paths) -> Self {
        let mut crowd = Self {
            paths,
            pairs: BTreeMap::new(),
            out: BTreeMap::new(),
            into: BTreeMap::new(),
        };
        for row in &round.records {
            if let Some((from, to)) = rack_pair(inventory, row.src, row.dst) {
                *crowd.pairs.entry((from, to)).or_default() += 1;
                *crowd.out.entry(from).or_default() += 1;
                *crowd.into.entry(to).or_default() += 1;
            }
        }
        crowd
    }

    fn share(&self, inventory: &Inventory, src: HostId, dst: HostId) -> Share {
        let Some((from, to)) = rack_pair(inventory, src, dst) else {
            return Share::Unlimited;
        };
        let tested = self.paths.known.get(&(from, to)).copied().unwrap_or(0);
        if self.out.get(&from).is_none_or(|flows| *flows > tested) {
            return Share::Unknown;
        }
        let shares = [
            part(
                self.paths.pair.get(&(from, to)),
                self.pairs.get(&(from, to)),
            ),
            part(self.paths.up.get(&from), self.out.get(&from)),
            part(self.paths.down.get(&to), self.into.get(&to)),
        ];
        shares
            .into_iter()
            .flatten()
            .min_by(f64::total_cmp)
            .map_or(Share::Unlimited, Share::Limited)
    }
}

fn part(capacity: Option<&f64>, flows: Option<&u32>) -> Option<f64> {
    Some(capacity? / f64::from(*flows?))
}

/// The ordered racks of a flow that crosses racks.
pub(crate) fn rack_pair(
    inventory: &Inventory,
    src: HostId,
    dst: HostId,
) -> Option<(RackId, RackId)> {
    let (from, to) = (inventory.rack_of(src)?, inventory.rack_of(dst)?);
    (from != to).then_some((from, to))
}
