//! What a plan takes over from its own first stages: how many streams a host needs, what hosts
//! carry, and how long a sweep's messages take.

use crate::streams;
use crate::sweep::MessageTimes;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{HostRate, Plan, Stage};
use ew_model::record::FlowRecord;
use ew_model::scenario::{Pattern, Pick, Senders};
use ew_model::workload::{Pace, StreamCount, WorkloadKind};
use std::collections::BTreeMap;

/// Doubling ends when it brings less than this.
const MIN_GAIN: f64 = 0.03;
/// What the stages that have run have shown. Figures only, so that records need not be kept.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Payload rate of all flows by number of streams, of stages that double.
    doubled: BTreeMap<u32, f64>,
    /// By how well the stage shows what hosts carry, and by host: sums over flows, one a round.
    hosts: BTreeMap<Fitness, BTreeMap<HostId, Sums>>,
    /// Of sweeps.
    message_times: MessageTimes,
}

/// The better ones last: cross-rack shows the uplink, too, and several streams show more than
/// one.
type Fitness = (bool, u32);

#[derive(Clone, Debug, Default)]
struct Sums {
    tx: Vec<f64>,
    rx: Vec<f64>,
}

impl Shown {
    /// Takes the figures of a stage's records; all of a round's at once.
    pub fn note(&mut self, stage: &Stage, records: &[FlowRecord]) {
        self.message_times.note(stage, records);
        if stage.workload.stream_count == StreamCount::Doubling {
            self.doubled.extend(sums_by_streams(stage, records));
        } else if let Some(fitness) = shows_hosts(stage) {
            self.note_hosts(fitness, records);
        }
    }

    fn note_hosts(&mut self, fitness: Fitness, records: &[FlowRecord]) {
        let mut rounds: BTreeMap<(u32, HostId), (f64, f64)> = BTreeMap::new();
        for record in records {
            if let Some(rate) = record.bits_per_sec() {
                rounds.entry((record.round.0, record.src)).or_default().0 += rate;
                rounds.entry((record.round.0, record.dst)).or_default().1 += rate;
            }
        }
        let hosts = self.hosts.entry(fitness).or_default();
        for ((_, host), (tx, rx)) in rounds {
            let sums = hosts.entry(host).or_default();
            sums.tx.extend((tx > 0.0).then_some(tx));
            sums.rx.extend((rx > 0.0).then_some(rx));
        }
    }

    /// The number of streams after which doubling gained too little. `None` when none was doubled.
    #[must_use]
    pub fn streams(&self) -> Option<u32> {
        let rates: Vec<(u32, f64)> = self.doubled.iter().map(|(n, r)| (*n, *r)).collect();
        let enough = rates.windows(2).find(|two| !gains(two[0].1, two[1].1));
        enough
            .map_or(rates.last(), |two| two.first())
            .map(|(n, _)| *n)
    }

    /// By host id; a host that was not measured is taken to be as the median host.
    fn host_rates(&self, inventory: &Inventory) -> Vec<HostRate> {
        let Some(hosts) = self.hosts.values().next_back() else {
            return Vec::new();
        };
        let all = |of: fn(&Sums) -> &Vec<f64>| {
            median(hosts.values().filter_map(|s| median(of(s).iter().copied())))
        };
        let (tx, rx) = (all(|s| &s.tx), all(|s| &s.rx));
        let rate = |host: HostId| {
            let own = hosts.get(&host);
            let of = |of: fn(&Sums) -> &Vec<f64>| median(of(own?).iter().copied());
            HostRate {
                tx_bits_per_sec: of(|s| &s.tx).or(tx),
                rx_bits_per_sec: of(|s| &s.rx).or(rx),
            }
        };
        inventory.host_ids().map(rate).collect()
    }
}

/// Whether another doubling is worth its round, by the records so far.
#[must_use]
pub fn is_worth_doubling(stage: &Stage, records: &[FlowRecord]) -> bool {
    let rates: Vec<f64> = sums_by_streams(stage, records).into_values().collect();
    match rates[..] {
        [.., before, last] => gains(before, last),
        _ => true,
    }
}

/// The plan with what its stages from `next` on take over, where that changes anything.
#[must_use]
pub fn adapted(plan: &Plan, next: usize, shown: &Shown, inventory: &Inventory) -> Option<Plan> {
    let mut plan = plan.clone();
    adapt(&mut plan, next, shown, inventory).then_some(plan)
}

/// Whether anything changes.
fn adapt(plan: &mut Plan, next: usize, shown: &Shown, inventory: &Inventory) -> bool {
    let mut is_changed = shown.message_times.lengthen(plan, next);
    let is_shared = |stage: &Stage| stage.workload.pace.measured_share.is_some();
    if plan.stages[next..].iter().any(is_shared) {
        let rates = shown.host_rates(inventory);
        is_changed |= rates != plan.host_rates;
        plan.host_rates = rates;
    }
    for at in next..plan.stages.len() {
        if let Some(streams) = streams_for(plan, at, shown, inventory) {
            is_changed |= plan.stages[at].workload.streams != streams;
            plan.stages[at].workload.streams = streams;
        }
    }
    is_changed
}

/// Streams of a stage that leaves them to what was shown. `None` before anything was.
fn streams_for(plan: &Plan, at: usize, shown: &Shown, inventory: &Inventory) -> Option<u32> {
    let stage = &plan.stages[at];
    if stage.workload.stream_count != StreamCount::Auto {
        return None;
    }
    match stage.pattern {
        Pattern::Paths { .. } => streams::for_paths_at_pace(plan, stage, inventory),
        _ => Some(streams::for_capacity(
            plan,
            stage,
            inventory,
            shown.streams()?,
        )),
    }
}

fn gains(before: f64, after: f64) -> bool {
    after >= before * (1.0 + MIN_GAIN)
}

/// Of the flows that every one of the rounds measured, so that a lost one is no loss of speed.
fn sums_by_streams(stage: &Stage, records: &[FlowRecord]) -> BTreeMap<u32, f64> {
    let mut rounds: BTreeMap<u32, BTreeMap<(HostId, HostId), f64>> = BTreeMap::new();
    for record in records {
        let planned = stage.rounds.get(record.round.0 as usize);
        if let (Some(round), Some(rate)) = (planned, record.bits_per_sec()) {
            let flows = rounds.entry(stage.streams_in(round)).or_default();
            flows.insert((record.src, record.dst), rate);
        }
    }
    let is_everywhere =
        |pair: &(HostId, HostId)| rounds.values().all(|flows| flows.contains_key(pair));
    let sum = |flows: &BTreeMap<(HostId, HostId), f64>| {
        let common = flows.iter().filter(|(pair, _)| is_everywhere(pair));
        common.map(|(_, rate)| rate).sum()
    };
    rounds
        .iter()
        .map(|(streams, flows)| (*streams, sum(flows)))
        .collect()
}

/// Whether a stage's flows go as fast as hosts and network let them while all hosts are busy.
fn shows_hosts(stage: &Stage) -> Option<Fitness> {
    let workload = &stage.workload;
    let crosses = match stage.pattern {
        Pattern::Permutation => false,
        Pattern::CrossRack {
            pick: Pick::Matching,
            senders: Senders::All,
            ..
        } => true,
        _ => return None,
    };
    let is_free = workload.kind == WorkloadKind::TcpStream
        && workload.pace == Pace::default()
        && workload.limit.is_none();
    is_free.then_some((crosses, workload.streams))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::inventory;
    use ew_model::plan::{RoundIndex, StageIndex};
    use ew_model::record::{EndRecord, FlowOutcome};

    const SCENARIO: &str = "name: a
defaults: {samples: 2}
tests:
  - {name: streams, pattern: permutation, streams: doubling}
  - {name: intra, pattern: permutation, streams: auto, interleaved: true}
  - {name: cross, pattern: cross-rack, streams: auto, interleaved: true}
  - {name: paths, pattern: paths, streams: 8, total-rate: 50%, source-ports: pinned}
";

    fn planned(sizes: &[usize]) -> (Plan, Inventory) {
        let inventory = inventory(sizes);
        let scenario = crate::scenario::parse(SCENARIO, "a.yaml", &[]).unwrap();
        (crate::plan(&scenario, &inventory, 1).unwrap(), inventory)
    }

    /// All rounds of a stage as if a flow went at a rate of its streams and its sender.
    fn measured(
        plan: &Plan,
        stage: usize,
        rounds: usize,
        rate: impl Fn(u32, HostId) -> f64,
    ) -> Vec<FlowRecord> {
        let of = &plan.stages[stage];
        let numbered = (0..).zip(&of.rounds).take(rounds);
        let records = numbered.flat_map(|(number, round)| {
            let rate = &rate;
            round.flows.iter().map(move |flow| FlowRecord {
                is_aggressor: false,
                stage: StageIndex(stage as u32),
                round: RoundIndex(number),
                flow: flow.id,
                sample: round.sample,
                src: flow.src,
                dst: flow.dst,
                outcome: FlowOutcome::Measured,
                sender: None,
                receiver: Some(EndRecord {
                    bytes: (rate(of.streams_in(round), flow.src) / 8.0) as u64,
                    window_ns: 1_000_000_000,
                    ..EndRecord::default()
                }),
            })
        });
        records.collect()
    }

    #[test]
    fn streams_are_doubled_until_hosts_gain_nothing() {
        let (plan, _) = planned(&[4, 4]);
        let stage = &plan.stages[0];
        let of_streams: Vec<u32> = stage.rounds.iter().map(|r| stage.streams_in(r)).collect();
        assert_eq!(of_streams, [1, 2, 4, 8, 16]);
        assert!(stage.rounds.windows(2).all(|two| {
            let pairs = |n: usize| {
                two[n]
                    .flows
                    .iter()
                    .map(|f| (f.src, f.dst))
                    .collect::<Vec<_>>()
            };
            pairs(0) == pairs(1)
        }));
        // A NIC of 10 Gb/s that one stream fills to 3.
        let rate = |streams: u32, _| (3e9 * f64::from(streams)).min(1e10);
        let worth = |rounds| is_worth_doubling(stage, &measured(&plan, 0, rounds, rate));
        assert_eq!([2, 3, 4].map(worth), [true, true, false]);
        let mut shown = Shown::default();
        shown.note(stage, &measured(&plan, 0, 4, rate));
        assert_eq!(shown.streams(), Some(4));
        let alike = |_, _| 1e9;
        let mut shown = Shown::default();
        shown.note(stage, &measured(&plan, 0, 2, alike));
        assert_eq!(shown.streams(), Some(1));
    }

    #[test]
    fn capacity_has_streams_for_hosts_and_for_paths() {
        // Racks, streams that fill a host, and what intra-rack and cross-rack stages have then.
        let cases = [
            (vec![4, 4], 2, 8, 16),
            (vec![6, 20], 2, 8, 11),
            (vec![20, 20], 2, 8, 8),
            (vec![20, 20], 16, 16, 16),
        ];
        for (sizes, fills, intra_rack, cross_rack) in cases {
            let (plan, inventory) = planned(&sizes);
            let mut shown = Shown::default();
            let rate = |streams: u32, _| f64::from(streams.min(fills)) * 1e9;
            shown.note(&plan.stages[0], &measured(&plan, 0, 5, rate));
            let plan = adapted(&plan, 1, &shown, &inventory).unwrap_or(plan);
            let streams = [1, 2].map(|stage: usize| plan.stages[stage].workload.streams);
            assert_eq!(streams, [intra_rack, cross_rack], "{sizes:?} {fills}");
        }
    }

    #[test]
    fn streams_over_paths_are_so_few_that_each_shows_its_rate() {
        let text = SCENARIO.replace(
            "streams: 8, total-rate",
            "streams: auto, duration: 1s, total-rate",
        );
        let scenario = crate::scenario::parse(&text, "a.yaml", &[]).unwrap();
        let inventory = inventory(&[4, 4]);
        let plan = crate::plan(&scenario, &inventory, 1).unwrap();
        assert_eq!(plan.stages[3].workload.streams, 32);
        // At half of the rate: 20 segments of 1448 bytes in a second from each of 32 are 7.4 Mb/s.
        for (rate, expected) in [(1e9, 32), (15e6, 32), (1e7, 21), (1e6, 8)] {
            let mut shown = Shown::default();
            shown.note(&plan.stages[2], &measured(&plan, 2, 2, |_, _| rate));
            let plan = adapted(&plan, 3, &shown, &inventory).unwrap();
            assert_eq!(plan.stages[3].workload.streams, expected, "{rate}");
        }
    }

    #[test]
    fn a_sweeps_windows_grow_for_ten_messages_on_a_slow_link() {
        let text = "name: a\ntests: [{name: s, pattern: pair, duration: 100ms, samples: 1, sizes: [64k, 128k, 8M]}]";
        let scenario = crate::scenario::parse(text, "a.yaml", &[]).unwrap();
        let inventory = inventory(&[2]);
        let plan = crate::plan(&scenario, &inventory, 1).unwrap();
        let windows = |plan: &Plan| -> Vec<u64> {
            plan.stages
                .iter()
                .map(|stage| stage.duration_ns / 1_000_000)
                .collect()
        };
        assert_eq!(windows(&plan), [100, 100, 671], "ten messages at 1 Gb/s");
        let mut shown = Shown::default();
        shown.note(&plan.stages[0], &measured(&plan, 0, 1, |_, _| 2e7));
        let slow = adapted(&plan, 1, &shown, &inventory).unwrap();
        // 128 KiB at 20 Mb/s take 52 ms, and 8 MiB more than the longest window for ten.
        assert_eq!(windows(&slow), [100, 524, 20_000]);
        let mut shown = Shown::default();
        shown.note(&plan.stages[0], &measured(&plan, 0, 1, |_, _| 1e9));
        assert_eq!(adapted(&plan, 1, &shown, &inventory), None);
    }

    #[test]
    fn half_load_is_half_of_what_both_ends_carry_across_racks() {
        let (plan, inventory) = planned(&[2, 2]);
        let mut shown = Shown::default();
        let slow = HostId(1);
        shown.note(&plan.stages[1], &measured(&plan, 1, 2, |_, _| 8e9));
        shown.note(
            &plan.stages[2],
            &measured(&plan, 2, 2, |_, src| if src == slow { 1e9 } else { 4e9 }),
        );
        let plan = adapted(&plan, 3, &shown, &inventory).unwrap();
        assert_eq!(plan.host_rates.len(), 4);
        let stage = &plan.stages[3];
        for flow in stage.rounds.iter().flat_map(|round| &round.flows) {
            let pace = plan.pace_of(stage, flow).unwrap();
            assert!(pace <= 2e9);
            assert_eq!(
                pace <= 0.5e9,
                flow.src == slow || pace < 2e9,
                "{flow:?} {pace}"
            );
        }
        assert_eq!(plan.groups(), [0..1, 1..3, 3..4]);
    }
}
