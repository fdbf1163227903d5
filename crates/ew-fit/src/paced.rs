//! What racks' uplinks carry, and lose, in rounds whose flows are paced below what hosts can do.

use super::obs::retransmitted_share;
use ew_evidence::criteria::{LEAST_FILL, MANY, MIN_EFFECT, MIN_SEEN};
use ew_evidence::observations::Observations;
use ew_evidence::quality::{LITTLE_STARVATION, Quality, starvation};
use ew_model::record::FlowRecord;
use ew_model::scenario::Pattern;
use ew_stats::{median, quantile};
use std::collections::BTreeMap;

/// One direction of a rack's uplinks.
#[derive(Clone, Debug, Default)]
pub(super) struct Paced {
    /// Bits per second of all its flows, per round, by the share of line rate that they are paced
    /// to, in per mille.
    sums: BTreeMap<u32, Vec<f64>>,
    /// Shares of segments that its flows retransmit at half load and less, where nothing is full by
    /// chance.
    lost: Vec<f64>,
}

impl Paced {
    /// What its flows retransmit at light load, where nearly all of them retransmit more than
    /// `outlying_share` though the uplinks had room: at most they carried `most`, and where they
    /// limit, `limit`. None where that is not so.
    pub(super) fn lost_beside_room(
        &self,
        outlying_share: f64,
        most_bits_per_sec: f64,
        limit_bits_per_sec: Option<f64>,
    ) -> &[f64] {
        let least = quantile(&self.lost, MANY).filter(|_| self.lost.len() >= MIN_SEEN);
        let all_lose = least.is_some_and(|share| share > outlying_share);
        let light = self.sums.first_key_value();
        let light = light.and_then(|(_, sums)| median(sums));
        let has_room = light.is_some_and(|sum| sum < LEAST_FILL * most_bits_per_sec);
        // What is full carries the same whatever is asked of it.
        let is_exceeded = |limit: f64| {
            let sums = self.sums.values().filter_map(|sums| median(sums));
            sums.fold(0.0, f64::max) > (1.0 + MIN_EFFECT) * limit
        };
        match all_lose && (has_room || limit_bits_per_sec.is_some_and(is_exceeded)) {
            true => &self.lost,
            false => &[],
        }
    }

    /// The flows of a round that are paced to a share of line rate, with the starvation of each.
    fn take(&mut self, load: f64, flows: &[(&FlowRecord, f64)]) {
        let rates = flows.iter().filter_map(|(row, _)| row.bits_per_sec());
        let of_load = self.sums.entry((1000.0 * load).round() as u32);
        of_load.or_default().push(rates.sum());
        if load <= 0.5 {
            let with_cpu = (flows.iter()).filter(|(_, starved)| *starved < LITTLE_STARVATION);
            let shares = with_cpu.filter_map(|(row, _)| retransmitted_share(row));
            self.lost.extend(shares);
        }
    }
}

/// Of every rack, out and in, by the stages that load all paths in part.
pub(super) fn of_racks(observations: &Observations<'_>, quality: &Quality) -> Vec<[Paced; 2]> {
    let inventory = observations.inventory();
    let mut all = vec![<[Paced; 2]>::default(); inventory.racks.len()];
    for (index, view) in observations.stages.iter().enumerate() {
        let is_paths = matches!(view.stage.pattern, Pattern::Paths { .. });
        let load = view.stage.workload.pace.measured_share;
        let Some(load) = load.filter(|_| is_paths) else {
            continue;
        };
        let rounds = view.rounds.iter().enumerate();
        for (_, round) in rounds.filter(|(at, _)| !quality.is_void(index, *at)) {
            let mut ways: BTreeMap<(usize, usize), Vec<(&FlowRecord, f64)>> = BTreeMap::new();
            for (row, starved) in round.records.iter().zip(starvation(round)) {
                let racks = inventory.racks_between(row.src, row.dst);
                for way in racks
                    .into_iter()
                    .flat_map(|(from, to)| [(from, 0), (to, 1)])
                {
                    ways.entry(way).or_default().push((*row, starved));
                }
            }
            for ((rack, way), flows) in ways {
                all[rack][way].take(load, &flows);
            }
        }
    }
    all
}
