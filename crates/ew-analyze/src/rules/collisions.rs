//! What hashing costs single connections: what a rack sends while each host has one, of what its
//! uplinks and hosts can carry, next to what as many equal paths are expected to give.

use super::case::Case;
use ew_evidence::observations::RoundView;
use ew_model::RackId;
use ew_model::finding::details::HashingCost;
use ew_model::scenario::{Pattern, Pick};
use ew_stats::median;
use ew_stats::splitmix;
use std::collections::BTreeMap;

/// Throws of a round's connections on the paths; the mean of so many is within 1%.
const THROWS: u64 = 1024;

/// `None` without a test of single flows.
pub(super) fn cost(case: &Case<'_>, paths: usize) -> Option<HashingCost> {
    let mut measured = Vec::new();
    let mut expected = Vec::new();
    let stages = case.observations.judged().filter(|stage| {
        let is_matching = matches!(
            stage.stage.pattern,
            Pattern::CrossRack {
                pick: Pick::Matching,
                ..
            }
        );
        is_matching && stage.stage.workload.streams == 1
    });
    for round in stages.flat_map(|stage| &stage.rounds) {
        for (rack, sent) in by_rack(case, round) {
            let Some((capacity, asked)) = capacity(case, rack, &sent) else {
                continue;
            };
            measured.push(sent.iter().map(|(rate, _)| rate).sum::<f64>() / capacity);
            expected.push(expected_share(&asked, capacity, paths));
        }
    }
    Some(HashingCost {
        measured_share: median(&measured)?.min(1.0),
        expected_share: median(&expected)?,
    })
}

/// Rate and asked rate of each flow.
type Sent = Vec<(f64, f64)>;

/// What each rack sent to others, by what its flows' hosts allow; racks all of whose hosts sent.
fn by_rack(case: &Case<'_>, round: &RoundView<'_>) -> BTreeMap<RackId, Sent> {
    let inventory = case.observations.inventory();
    let mut racks: BTreeMap<RackId, Sent> = BTreeMap::new();
    for row in &round.records {
        let ends = inventory.rack_of(row.src).zip(inventory.rack_of(row.dst));
        let Some((from, _)) = ends.filter(|(from, to)| from != to) else {
            continue;
        };
        let allowed = case
            .network
            .class_rate(row.src)
            .zip(case.network.class_rate(row.dst));
        if let Some((rate, (tx, rx))) = row.bits_per_sec().zip(allowed) {
            racks.entry(from).or_default().push((rate, tx.min(rx)));
        }
    }
    racks.retain(|rack, sent| sent.len() == inventory.hosts_in(*rack).len());
    racks
}

/// What the rack's flows could carry together over one path as wide as all, and what each asks.
fn capacity(case: &Case<'_>, rack: RackId, sent: &Sent) -> Option<(f64, Vec<f64>)> {
    let limit = case.network.connection_limit().unwrap_or(f64::INFINITY);
    let asked: Vec<f64> = sent.iter().map(|(_, asked)| asked.min(limit)).collect();
    let all: f64 = asked.iter().sum();
    let uplinks = case.network.racks.get(rack.index())?[0].capacity;
    let capacity = uplinks.map_or(all, |uplinks| uplinks.value.min(all));
    (capacity > 0.0).then_some((capacity, asked))
}

/// What flows get of a capacity that is split over equal paths, each flow on one at random: the
/// mean over throws of balls into bins. A path is no narrower than what one flow asks.
fn expected_share(asked: &[f64], capacity: f64, paths: usize) -> f64 {
    let paths = paths.max(1);
    let widest = asked.iter().copied().fold(0.0, f64::max);
    let each = (capacity / paths as f64).max(widest);
    let mut carried = 0.0;
    for throw in 0..THROWS {
        let mut loads = vec![0.0; paths];
        for (flow, asked) in asked.iter().enumerate() {
            loads[(splitmix(throw << 32 | flow as u64) % paths as u64) as usize] += asked;
        }
        carried += loads.iter().map(|load| load.min(each)).sum::<f64>();
    }
    (carried / THROWS as f64 / capacity).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::expected_share;

    /// Of n flows on n paths of a flow's width each, 1 - (1 - 1/n)^n of the paths carry any.
    #[test]
    fn as_many_paths_as_flows_carry_what_balls_into_bins_say() {
        for n in [2_usize, 4, 8, 16] {
            let exact = 1.0 - (1.0 - 1.0 / n as f64).powi(n as i32);
            let share = expected_share(&vec![1.0; n], n as f64, n);
            assert!((share - exact).abs() < 0.02, "{n}: {share} {exact}");
        }
        assert!((expected_share(&[1.0; 5], 5.0, 1) - 1.0).abs() < 1e-9);
    }
}
