//! Which rounds of a stage to order next: all at once, or with `samples: auto` some more until
//! every figure has converged or a bound is reached.
//!
//! A round is repeated whole: if a converged flow were skipped, the others would find the
//! network emptier than before.

use ew_analyze::convergence;
use ew_model::inventory::HostId;
use ew_model::plan::{RoundIndex, Stage};
use ew_model::record::FlowRecord;
use ew_model::workload::StreamCount;
use ew_plan::adapt::is_worth_doubling;
use std::collections::BTreeSet;
use std::ops::Range;

/// Further repetitions are ordered in batches of at least this part of those that were run: each
/// batch costs a common start, and every check of the figures is one more chance to stop by luck.
const BATCH_PART: u32 = 4;

/// A stage's repetitions.
pub(crate) struct Repeats<'a> {
    stage: &'a Stage,
    takes_turns: bool,
    /// Repetitions that were ordered.
    ordered: u32,
}

impl<'a> Repeats<'a> {
    /// Of a stage that begins. One that is interleaved with others orders one repetition at a time.
    pub(crate) fn new(stage: &'a Stage, takes_turns: bool) -> Self {
        Self {
            stage,
            takes_turns,
            ordered: 0,
        }
    }

    /// The rounds to order now, by their numbers; none when the stage is over. `alive` are the
    /// hosts that could take part, `spent_ns` is how long the stage has been running.
    pub(crate) fn next(
        &mut self,
        records: &[FlowRecord],
        alive: &[HostId],
        spent_ns: u64,
    ) -> Vec<RoundIndex> {
        let min = self.min_samples();
        if self.ordered < min {
            let first = self.ordered;
            self.ordered = if self.takes_turns { first + 1 } else { min };
            return self.all_rounds(first..self.ordered);
        }
        if self.doubles() {
            return self.next_doubling(records);
        }
        let slots = self.unconverged_slots(records, alive);
        let samples = self.affordable(slots.len(), spent_ns);
        let per_sample = self.stage.rounds_per_sample() as u32;
        let first = self.ordered;
        self.ordered += samples;
        (first..first + samples)
            .flat_map(|sample| {
                let number = move |slot: &usize| RoundIndex(sample * per_sample + *slot as u32);
                slots.iter().map(number)
            })
            .collect()
    }

    /// Repetitions that run in any case.
    fn min_samples(&self) -> u32 {
        if self.doubles() {
            return self.planned_samples().min(2);
        }
        let auto = self.stage.auto;
        auto.map_or_else(
            || self.planned_samples(),
            |auto| auto.at_least.min(auto.at_most),
        )
    }

    fn planned_samples(&self) -> u32 {
        let samples = self.stage.rounds.iter().map(|round| round.sample + 1);
        samples.max().unwrap_or(0)
    }

    fn doubles(&self) -> bool {
        self.stage.workload.stream_count == StreamCount::Doubling
    }

    /// Twice the streams, if the last doubling was worth it.
    fn next_doubling(&mut self, records: &[FlowRecord]) -> Vec<RoundIndex> {
        if !is_worth_doubling(self.stage, records) {
            return Vec::new();
        }
        let first = self.ordered;
        self.ordered = (first + 1).min(self.planned_samples());
        self.all_rounds(first..self.ordered)
    }

    fn all_rounds(&self, samples: Range<u32>) -> Vec<RoundIndex> {
        let numbered = (0..).map(RoundIndex).zip(&self.stage.rounds);
        let wanted = numbered.filter(|(_, round)| samples.contains(&round.sample));
        wanted.map(|(number, _)| number).collect()
    }

    /// Positions, in a repetition, of rounds with a figure that can still converge.
    fn unconverged_slots(&self, records: &[FlowRecord], alive: &[HostId]) -> BTreeSet<usize> {
        let records: Vec<&FlowRecord> = records.iter().collect();
        convergence::unconverged(self.stage, &records)
            .into_iter()
            .filter(|u| alive.contains(&u.figure.src) && alive.contains(&u.figure.dst))
            .map(|u| u.round)
            .collect()
    }

    /// How many repetitions of so many rounds the bounds allow.
    fn affordable(&self, rounds: usize, spent_ns: u64) -> u32 {
        let Some(auto) = self.stage.auto.filter(|_| rounds > 0) else {
            return 0;
        };
        let wanted = match self.takes_turns {
            true => 1,
            false => (self.ordered / BATCH_PART).max(1),
        };
        let left = auto.at_most.saturating_sub(self.ordered);
        let in_time = auto.budget_ns.map_or(u64::MAX, |budget_ns| {
            let left_ns = budget_ns.saturating_sub(spent_ns);
            left_ns / (rounds as u64 * self.stage.round_period_ns()).max(1)
        });
        wanted
            .min(left)
            .min(u32::try_from(in_time).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{End, Flow, FlowId, Round, StageIndex};
    use ew_model::record::{EndRecord, FlowOutcome};
    use ew_model::scenario::{AutoSamples, Pattern};
    use ew_model::workload::{Workload, WorkloadKind};

    const SECOND: u64 = 1_000_000_000;
    const BOTH: [HostId; 2] = [HostId(0), HostId(1)];

    /// Two rounds of one second a repetition.
    fn stage(at_most: u32, budget_ns: Option<u64>) -> Stage {
        let round = |number: u32| Round {
            sample: number / 2,
            senders_per_rack: None,
            flows: vec![Flow {
                id: FlowId(number),
                src: HostId(0),
                dst: HostId(1),
                opened_by: End::Src,
                lane: None,
                is_aggressor: false,
                traces: None,
            }],
        };
        Stage {
            name: "t".into(),
            pattern: Pattern::Pair,
            workload: Workload::of(WorkloadKind::TcpStream),
            duration_ns: SECOND,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: Some(AutoSamples {
                width: 0.05,
                at_least: 6,
                at_most,
                budget_ns,
            }),
            sweep: None,
            rounds: (0..2 * at_most).map(round).collect(),
        }
    }

    fn measure(
        stage: &Stage,
        rounds: &[RoundIndex],
        bytes: impl Fn(u32) -> u64,
    ) -> Vec<FlowRecord> {
        let record = |round: &RoundIndex| {
            let planned = &stage.rounds[round.0 as usize];
            FlowRecord {
                is_aggressor: false,
                stage: StageIndex(0),
                round: *round,
                flow: planned.flows[0].id,
                sample: planned.sample,
                src: HostId(0),
                dst: HostId(1),
                outcome: FlowOutcome::Measured,
                sender: None,
                receiver: Some(EndRecord {
                    bytes: bytes(round.0),
                    window_ns: SECOND,
                    ..EndRecord::default()
                }),
            }
        };
        rounds.iter().map(record).collect()
    }

    /// The second round of every repetition is noisy for ever.
    fn noisy_bytes(round: u32) -> u64 {
        u64::from(1000 + (round % 2) * 200 * (round / 2 % 3))
    }

    /// Numbers of all rounds that were ordered, batch by batch, when each takes `round_ns`.
    fn batches(
        stage: &Stage,
        bytes: fn(u32) -> u64,
        alive: &[HostId],
        round_ns: u64,
    ) -> Vec<Vec<u32>> {
        batches_of(Repeats::new(stage, false), bytes, alive, round_ns)
    }

    fn batches_of(
        mut repeats: Repeats<'_>,
        bytes: fn(u32) -> u64,
        alive: &[HostId],
        round_ns: u64,
    ) -> Vec<Vec<u32>> {
        let stage = repeats.stage;
        let (mut records, mut spent_ns, mut batches) = (Vec::new(), 0, Vec::new());
        loop {
            let rounds = repeats.next(&records, alive, spent_ns);
            if rounds.is_empty() {
                return batches;
            }
            spent_ns += round_ns * rounds.len() as u64;
            records.extend(measure(stage, &rounds, bytes));
            batches.push(rounds.iter().map(|round| round.0).collect());
        }
    }

    #[test]
    fn a_given_number_of_samples_is_one_batch() {
        let mut stage = stage(3, None);
        stage.auto = None;
        assert_eq!(
            batches(&stage, noisy_bytes, &BOTH, SECOND),
            [[0, 1, 2, 3, 4, 5]]
        );
    }

    #[test]
    fn a_stage_that_takes_turns_orders_one_repetition_at_a_time() {
        let mut stage = stage(3, None);
        let turns = |stage: &Stage, bytes| batches_of(Repeats::new(stage, true), bytes, &BOTH, 0);
        stage.auto = None;
        assert_eq!(turns(&stage, noisy_bytes), [[0, 1], [2, 3], [4, 5]]);
        let stage = self::stage(30, None);
        assert_eq!(turns(&stage, |_| 1000).len(), 6);
        assert_eq!(turns(&stage, noisy_bytes)[6..8], [[13], [15]]);
    }

    #[test]
    fn steady_figures_converge_at_the_first_check() {
        let stage = stage(30, None);
        let ran = batches(&stage, |_| 1000, &BOTH, SECOND);
        assert_eq!((ran.len(), ran[0].len()), (1, 12));
    }

    #[test]
    fn only_rounds_with_unconverged_figures_run_again_until_the_bound() {
        let stage = stage(10, None);
        let ran = batches(&stage, noisy_bytes, &BOTH, SECOND);
        assert_eq!(ran[0].len(), 12);
        let later: Vec<u32> = ran[1..].concat();
        assert_eq!(
            later,
            [13, 15, 17, 19],
            "the noisy one of repetitions 6 to 9"
        );
    }

    #[test]
    fn the_budget_ends_a_stage_but_never_the_first_repetitions() {
        let stage = stage(30, Some(15 * SECOND));
        let ran = batches(&stage, noisy_bytes, &BOTH, SECOND);
        assert_eq!(ran.concat().len(), 15);
        let slow = batches(&stage, noisy_bytes, &BOTH, 10 * SECOND);
        assert_eq!(slow.concat().len(), 12);
    }

    #[test]
    fn nobody_waits_for_the_figures_of_a_host_that_is_gone() {
        let stage = stage(30, None);
        let ran = batches(&stage, noisy_bytes, &BOTH[..1], SECOND);
        assert_eq!(ran.len(), 1);
    }
}
