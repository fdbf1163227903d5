//! What racks' uplinks carry, and lose, in the stages that load all paths in part.
//!
//! At half load nothing is full by chance: what nearly all connections lose there, their way loses,
//! unless it is so narrow that half load fills it.

use super::obs::retransmitted_share;
use super::side::Side;
use super::tomography::{Losses, Moment, is_light, with_cpu};
use ew_evidence::criteria::{LEAST_FILL, LOSSY_UNLOADED, MIN_EFFECT, MIN_SEEN};
use ew_evidence::observations::{Observations, RoundView, StageView};
use ew_evidence::quality::Quality;
use ew_model::HostId;
use ew_model::record::FlowRecord;
use ew_model::scenario::Pattern;
use ew_stats::median;
use std::collections::{BTreeMap, BTreeSet};

/// From which rack to which.
type Way = (usize, usize);

/// What ways carry in a round, bits per second.
type Sums = BTreeMap<Way, f64>;

/// What all racks sent and lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Paced {
    /// Of rounds, by the share of line rate that flows are paced to, in per mille.
    rounds: BTreeMap<u32, Vec<Sums>>,
    /// What is lost from rack to rack at light load.
    ways: BTreeMap<Way, Losses>,
    /// Of every rack, out and in.
    directions: Vec<[Direction; 2]>,
    /// What hosts' cross-rack flows lose at light load, out and in.
    sides: BTreeMap<Side, Losses>,
}

/// One direction of a rack's uplinks at light load.
#[derive(Clone, Debug, Default)]
struct Direction {
    /// Shares of segments that its flows retransmit, and their ends.
    lost: Vec<f64>,
    ends: [BTreeSet<HostId>; 2],
}

/// What else is known of one direction of a rack's uplinks.
pub(super) struct Uplinks {
    pub(super) rack: usize,
    /// Out is 0, in is 1.
    pub(super) index: usize,
    pub(super) is_one_path: bool,
    /// The max that was carried in a round.
    pub(super) most_bits_per_sec: f64,
    /// What full rounds carry, where they limit.
    pub(super) limit_bits_per_sec: Option<f64>,
}

impl Paced {
    pub(super) fn of(observations: &Observations<'_>, quality: &Quality) -> Self {
        let racks = observations.inventory().racks.len();
        let mut all = Self {
            directions: vec![<[Direction; 2]>::default(); racks],
            ..Self::default()
        };
        for (index, view) in observations.stages.iter().enumerate() {
            if !matches!(view.stage.pattern, Pattern::Paths { .. }) {
                continue;
            }
            let rounds = view.rounds.iter().enumerate();
            for (at, round) in rounds.filter(|(at, _)| !quality.is_void(index, *at)) {
                all.take_sums(observations, view, round);
                if is_light(&view.stage.workload) {
                    all.take_losses(observations, (index, at), round);
                }
            }
        }
        all
    }

    fn take_sums(
        &mut self,
        observations: &Observations<'_>,
        view: &StageView<'_>,
        round: &RoundView<'_>,
    ) {
        let Some(load) = view.stage.workload.pace.measured_share else {
            return;
        };
        let mut sums = Sums::new();
        for row in &round.records {
            let racks = observations.inventory().racks_between(row.src, row.dst);
            if let Some(way) = racks {
                *sums.entry(way).or_default() += row.bits_per_sec().unwrap_or_default();
            }
        }
        let per_mille = (1000.0 * load).round() as u32;
        self.rounds.entry(per_mille).or_default().push(sums);
    }

    fn take_losses(
        &mut self,
        observations: &Observations<'_>,
        moment: Moment,
        round: &RoundView<'_>,
    ) {
        let view = &observations.stages[moment.0];
        // What starved ends repeat although it was not lost is counted as such (RFC 2883), but for
        // a few segments of very many.
        for flow in with_cpu(observations.run, view, round) {
            let (row, seen) = (flow.row, flow.connections);
            let racks = observations.inventory().racks_between(row.src, row.dst);
            let Some((from, to)) = racks else {
                continue;
            };
            for (rack, index) in [(from, 0), (to, 1)] {
                self.directions[rack][index].take(row);
            }
            self.ways.entry((from, to)).or_default().take(moment, &seen);
            for side in [Side::Tx(row.src), Side::Rx(row.dst)] {
                self.sides.entry(side).or_default().take(moment, &seen);
            }
        }
    }

    /// From which rack to which connections lose alike, by what it is at one of the ends, and the
    /// share that they lose. Of ways without light load it is that of the end.
    pub(super) fn common_losses(&self) -> BTreeMap<Way, f64> {
        let common = |rack: usize, index: usize| {
            let losses = self.losses(rack, index);
            let share = losses.share();
            let is_common = !losses.differ() && !losses.come_at_once();
            let is_end = || is_common && self.is_lost_on_all_ways(rack, index);
            (losses.scattered_share() > LOSSY_UNLOADED && is_end()).then_some(share)
        };
        let racks = 0..self.directions.len();
        let ends: Vec<[Option<f64>; 2]> = racks
            .map(|rack| [0, 1].map(|index| common(rack, index)))
            .collect();
        let all = (0..ends.len()).flat_map(|from| (0..ends.len()).map(move |to| (from, to)));
        let common = all.filter_map(|way| {
            let end = ends[way.0][0].into_iter().chain(ends[way.1][1]);
            let of_end = end.reduce(f64::max)?;
            Some((way, self.ways.get(&way).map_or(of_end, Losses::share)))
        });
        common.collect()
    }

    /// The hosts' sides all of whose connections lose at light load, alike and without being slow,
    /// more than `outlying_share`.
    pub(super) fn lossy_sides(&self, outlying_share: f64) -> BTreeSet<Side> {
        let loses = |losses: &Losses| {
            losses.scattered_share() > outlying_share
                && losses.leave_pace()
                && losses.are_common()
                && !losses.come_at_once()
        };
        let lossy = self.sides.iter().filter(|(_, losses)| loses(losses));
        lossy.map(|(side, _)| *side).collect()
    }

    /// Whether all that goes out of a rack, or into it, loses alike: what some of its ways lose is
    /// lost at their other ends.
    pub(super) fn is_lost_on_all_ways(&self, rack: usize, index: usize) -> bool {
        let own: Vec<&Losses> = self.ways_of(rack, index).collect();
        (0..own.len()).all(|at| {
            let others = own.iter().enumerate().filter(|(other, _)| *other != at);
            let others = Losses::of(others.map(|(_, losses)| *losses));
            !own[at].are_fewer_than(&others)
        })
    }

    /// What flows retransmit at light load, where all together retransmit more than
    /// `outlying_share`, and alike, though the uplinks had room. None where that is not so.
    pub(super) fn lost_beside_room(&self, uplinks: &Uplinks, outlying_share: f64) -> &[f64] {
        let own = &self.directions[uplinks.rack][uplinks.index];
        let losses = self.losses(uplinks.rack, uplinks.index);
        // Of several paths one may be full, which a part of the connections loses on.
        let all_lose = || match uplinks.is_one_path {
            true => !losses.differ(),
            false => losses.are_common(),
        };
        let is_much = losses.scattered_share() > outlying_share && own.is_of_several_hosts();
        let is_steady = || !losses.come_at_once() && all_lose();
        match is_much && self.had_room(uplinks) && is_steady() {
            true => &own.lost,
            false => &[],
        }
    }

    fn had_room(&self, uplinks: &Uplinks) -> bool {
        let is_own = |(from, to): Way| [from, to][uplinks.index] == uplinks.rack;
        let is_room = |light: &f64| *light < LEAST_FILL * uplinks.most_bits_per_sec;
        let limit = uplinks.limit_bits_per_sec;
        let carried = self.carried(is_own);
        carried.values().next().is_some_and(is_room)
            || limit.is_some_and(|limit| self.exceeds(limit, is_own))
    }

    /// Whether such ways carry more than what is held for their limit: what is full carries the
    /// same whatever is asked of it.
    pub(super) fn exceeds(&self, limit: f64, is_meant: impl Fn(Way) -> bool) -> bool {
        let carried = self.carried(is_meant);
        let most = carried.into_values().fold(0.0, f64::max);
        most > (1.0 + MIN_EFFECT) * limit
    }

    /// Whether what such ways carry at full load may be what loss leaves of it: they lose without
    /// being slow at light load, and carry as much more at a higher load as is asked of them.
    pub(super) fn may_be_left_by_loss(
        &self,
        outlying_share: f64,
        is_meant: impl Fn(Way) -> bool,
    ) -> bool {
        let own = self.ways.iter().filter(|(way, _)| is_meant(**way));
        let losses = Losses::of(own.map(|(_, losses)| losses));
        let is_little = losses.scattered_share() < outlying_share;
        if is_little || !losses.leave_pace() || losses.come_at_once() {
            return false;
        }
        let carried = self.carried(is_meant);
        match (carried.first_key_value(), carried.last_key_value()) {
            (Some((light, low)), Some((heavy, high))) if heavy > light => {
                let asked = f64::from(*heavy) / f64::from(*light);
                high / low > (1.0 - MIN_EFFECT) * asked
            }
            _ => true,
        }
    }

    /// What such ways carry together, by load: medians over rounds.
    fn carried(&self, is_meant: impl Fn(Way) -> bool) -> BTreeMap<u32, f64> {
        let of_round = |ways: &Sums| {
            let meant = ways.iter().filter(|(way, _)| is_meant(**way));
            meant.map(|(_, sum)| sum).sum::<f64>()
        };
        let loads = self.rounds.iter().filter_map(|(load, rounds)| {
            let sums: Vec<f64> = rounds.iter().map(of_round).collect();
            Some((*load, median(&sums)?))
        });
        loads.collect()
    }

    /// Of all that goes out of a rack, or into it.
    fn losses(&self, rack: usize, index: usize) -> Losses {
        Losses::of(self.ways_of(rack, index))
    }

    fn ways_of(&self, rack: usize, index: usize) -> impl Iterator<Item = &Losses> {
        let is_own = move |(from, to): Way| [from, to][index] == rack;
        let own = self.ways.iter().filter(move |(way, _)| is_own(**way));
        own.map(|(_, losses)| losses)
    }
}

impl Direction {
    fn take(&mut self, row: &FlowRecord) {
        self.lost.extend(retransmitted_share(row));
        self.ends[0].insert(row.src);
        self.ends[1].insert(row.dst);
    }

    /// At both ends: a lone host's own link may be meant as well.
    fn is_of_several_hosts(&self) -> bool {
        self.lost.len() >= MIN_SEEN && self.ends.iter().all(|hosts| hosts.len() > 1)
    }
}
