//! After a stage: what is missing is tried again between the hosts that are up, those that came
//! back included.

use crate::fleet_event::FleetEvent;
use crate::journal::Journal;
use crate::members::Members;
use ew_model::event::RunEvent;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Flow, FlowId, Round, RoundIndex, Stage};
use ew_model::quality::{VOID_SHARE, late_share, straggler};
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::scenario::Pattern;
use ew_model::workload::{Tool, WorkloadKind};
use ew_plan::schedule::UplinkLimits;
use ew_proto::controller_session::ControllerEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A host is launched at most this often in a run.
const MAX_LAUNCHES: u32 = 3;

/// Max repair attempts of a stage.
pub(crate) const MAX_ATTEMPTS: u32 = 3;

/// Factor of the gap from one attempt to the next: what did not begin in its time is given more.
const MORE_GAPS: u64 = 4;

/// Max gap, in gaps of the stage.
const MAX_GAPS: u64 = 8;

/// Time to connect before a round, as hosts have shown to need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// In gaps of the stage that needed them.
    gaps: u64,
    /// Of a round of that stage.
    connections: u64,
    /// Whether longer gaps have shown not to help: what is missing then is lost, and not late.
    in_vain: bool,
}

impl Patience {
    /// Of hosts that have needed no more than the plan gives.
    pub(crate) const PLANNED: Self = Self {
        gaps: 1,
        connections: 1,
        in_vain: false,
    };

    /// After a stage that needed so many of its gaps.
    pub(crate) fn learned(stage: &Stage, gaps: u64) -> Self {
        Self {
            gaps,
            connections: connections(stage),
            in_vain: false,
        }
    }

    /// After a stage that longer gaps did not help.
    pub(crate) fn in_vain(self) -> Self {
        Self {
            in_vain: true,
            ..self
        }
    }

    /// The gap of the next attempt from that of the last, both in gaps of the stage.
    pub(crate) fn longer(self, gaps: u64) -> u64 {
        match self.in_vain {
            true => gaps,
            false => (gaps * MORE_GAPS).min(MAX_GAPS),
        }
    }

    /// Of another stage: fewer connections need less.
    pub(crate) fn gaps(self, stage: &Stage) -> u64 {
        let in_proportion = (self.gaps * connections(stage)).div_ceil(self.connections);
        in_proportion.clamp(1, self.gaps)
    }

    /// For the first repair of a stage whose rounds were given so many gaps or more: what was
    /// learned since then, or more than they had.
    pub(crate) fn first_repair(self, stage: &Stage, given: u64) -> u64 {
        let learned = self.gaps(stage);
        match learned > given {
            true => learned,
            false => self.longer(given),
        }
    }
}

/// Opened at once, at most.
fn connections(stage: &Stage) -> u64 {
    let flows = stage.rounds.iter().map(|round| round.flows.len()).max();
    (flows.unwrap_or(0) as u64 * u64::from(stage.workload.streams)).max(1)
}

/// Tries to bring lost hosts back, and waits until each is up or has failed again.
pub(crate) async fn revive(members: &mut Members, journal: &mut Journal) -> bool {
    let tries: BTreeSet<HostId> = members
        .down()
        .into_iter()
        .filter(|id| {
            members.get(*id).is_some_and(|member| {
                member.was_up && member.is_worth_launching() && member.launches < MAX_LAUNCHES
            })
        })
        .collect();
    for id in &tries {
        members.launch(*id);
    }
    while !members.launching().is_empty() {
        match members.next(u64::MAX).await {
            FleetEvent::Agent(host, ControllerEvent::Ready { .. }) => {
                journal.emit(RunEvent::HostReturned { host });
            }
            FleetEvent::Interrupt => return false,
            // It is down already.
            FleetEvent::LaunchFailed { .. } => {}
            // Those that are up are not looked after by anybody else meanwhile.
            other => {
                journal.note(other, members.inventory());
            }
        }
    }
    true
}

/// What has no figure though both ends are up, and rounds whose flows did not run together.
///
/// A mesh's flow measures the same with whoever else runs, so its missing pairs are packed anew.
/// Elsewhere a flow's figure depends on the others, so incomplete rounds are repeated whole.
#[derive(Debug)]
pub(crate) enum Wanting {
    Pairs(Vec<(HostId, HostId)>),
    Rounds(Vec<RoundIndex>),
}

impl Wanting {
    /// Of a stage with the records of all its rounds, repeated ones included.
    pub(crate) fn of(stage: &Stage, records: &[FlowRecord], alive: &[HostId]) -> Self {
        let incomplete = incomplete(records);
        let missing = records.iter().filter(|record| {
            both_up(alive, record.src, record.dst) && incomplete.contains(&figure(record))
        });
        if matches!(stage.pattern, Pattern::Mesh { .. }) {
            let pairs: BTreeSet<Figure> = missing.map(figure).collect();
            return Self::Pairs(pairs.into_iter().map(|(src, dst, _)| (src, dst)).collect());
        }
        let of_stage = |round: &RoundIndex| (round.0 as usize) < stage.rounds.len();
        let void = void_rounds(stage, records);
        let mut rounds: BTreeSet<RoundIndex> = missing.map(|record| record.round).collect();
        rounds.extend(&void);
        let repeated = repeated_whole(stage, records, &void);
        let is_whole = |round: &RoundIndex| {
            let round = &stage.rounds[round.0 as usize];
            let flows = round.flows.iter().filter(|f| both_up(alive, f.src, f.dst));
            let figures: BTreeSet<Figure> = flows.map(|f| (f.src, f.dst, round.sample)).collect();
            repeated.iter().any(|again| figures.is_subset(again))
        };
        let rounds = rounds.into_iter().filter(of_stage);
        Self::Rounds(rounds.filter(|round| !is_whole(round)).collect())
    }

    /// How many pairs or rounds.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::Rounds(rounds) => rounds.len(),
        }
    }

    /// Whether more than [`VOID_SHARE`] wants repair: then the gaps are too short for these hosts,
    /// and it is no accident of a few flows.
    pub(crate) fn is_widespread(&self, records: &[FlowRecord]) -> bool {
        let all = match self {
            Self::Pairs(_) => records.len(),
            Self::Rounds(_) => {
                let rounds: BTreeSet<RoundIndex> = records.iter().map(|row| row.round).collect();
                rounds.len()
            }
        };
        self.len() as f64 > VOID_SHARE * all as f64
    }

    /// So many of the rounds, and all pairs.
    pub(crate) fn some(self, most_rounds: usize) -> Self {
        match self {
            Self::Pairs(_) => self,
            Self::Rounds(mut rounds) => {
                rounds.truncate(most_rounds);
                Self::Rounds(rounds)
            }
        }
    }

    /// What to run for them. Flow ids count from `first_flow`.
    pub(crate) fn repeats(
        &self,
        stage: &Stage,
        alive: &[HostId],
        first_flow: FlowId,
        limits: Option<UplinkLimits<'_>>,
    ) -> Vec<Round> {
        let rounds = match self {
            Self::Pairs(pairs) => {
                return ew_plan::repair_rounds(pairs, opened_by(stage), first_flow, limits);
            }
            Self::Rounds(rounds) => rounds,
        };
        let mut ids = (first_flow.0..).map(FlowId);
        let repeated = |number: &RoundIndex| {
            let round = &stage.rounds[number.0 as usize];
            let flows = round.flows.iter();
            let flows = flows.filter(|flow| both_up(alive, flow.src, flow.dst));
            let renumbered = |(flow, id): (&Flow, FlowId)| Flow { id, ..flow.clone() };
            Round {
                flows: flows.zip(&mut ids).map(renumbered).collect(),
                ..round.clone()
            }
        };
        rounds.iter().map(repeated).collect()
    }
}

/// What a figure is of: source, destination and repetition.
type Figure = (HostId, HostId, u32);

fn figure(record: &FlowRecord) -> Figure {
    (record.src, record.dst, record.sample)
}

/// Figures that no round has measured whole: several of a round's flows may have one, such as the
/// traced connections of two hosts.
fn incomplete(records: &[FlowRecord]) -> BTreeSet<Figure> {
    let mut rounds: BTreeMap<(Figure, RoundIndex), bool> = BTreeMap::new();
    for record in records {
        let is_whole = rounds.entry((figure(record), record.round)).or_insert(true);
        *is_whole &= record.outcome == FlowOutcome::Measured;
    }
    let of = |wanted: bool| {
        let rounds = rounds.iter().filter(move |(_, whole)| **whole == wanted);
        rounds.map(|((figure, _), _)| *figure)
    };
    let whole: BTreeSet<Figure> = of(true).collect();
    of(false).filter(|figure| !whole.contains(figure)).collect()
}

/// Share of the flows of these rounds without a figure, or with one that shows nothing because the
/// round's flows did not run together.
pub(crate) fn failed_share(stage: &Stage, records: &[FlowRecord], rounds: Range<u32>) -> f64 {
    let void = void_rounds(stage, records);
    let inside = || records.iter().filter(|row| rounds.contains(&row.round.0));
    let failed = inside()
        .filter(|row| row.outcome != FlowOutcome::Measured || void.contains(&row.round))
        .count();
    failed as f64 / inside().count().max(1) as f64
}

fn both_up(alive: &[HostId], src: HostId, dst: HostId) -> bool {
    alive.contains(&src) && alive.contains(&dst)
}

/// The figures of every repeated round whose flows ran together.
fn repeated_whole(
    stage: &Stage,
    records: &[FlowRecord],
    void: &BTreeSet<RoundIndex>,
) -> Vec<BTreeSet<Figure>> {
    let mut repeated: BTreeMap<RoundIndex, Vec<&FlowRecord>> = BTreeMap::new();
    let is_repeat = |round: RoundIndex| round.0 as usize >= stage.rounds.len();
    for record in records.iter().filter(|record| is_repeat(record.round)) {
        repeated.entry(record.round).or_default().push(record);
    }
    let ran = |(round, rows): &(RoundIndex, Vec<&FlowRecord>)| {
        !void.contains(round) && rows.iter().all(|row| row.outcome == FlowOutcome::Measured)
    };
    let figures = |rows: Vec<&FlowRecord>| rows.into_iter().map(figure).collect();
    let whole = repeated.into_iter().filter(ran);
    whole.map(|(_, rows)| figures(rows)).collect()
}

/// Rounds whose flows did not run together: what each got shows nothing about what all get.
fn void_rounds(stage: &Stage, records: &[FlowRecord]) -> BTreeSet<RoundIndex> {
    if stage.workload.kind != WorkloadKind::TcpStream || stage.workload.tool != Tool::Engine {
        return BTreeSet::new();
    }
    let mut rounds: BTreeMap<RoundIndex, Vec<&FlowRecord>> = BTreeMap::new();
    for record in records {
        rounds.entry(record.round).or_default().push(record);
    }
    let straggler = straggler(records, []);
    let is_void = |rows: &[&FlowRecord]| late_share(rows.iter().copied(), straggler) > VOID_SHARE;
    let void = rounds.into_iter().filter(|(_, rows)| is_void(rows));
    void.map(|(round, _)| round).collect()
}

fn opened_by(stage: &Stage) -> End {
    let first = stage.rounds.iter().flat_map(|round| &round.flows).next();
    first.map_or(End::Src, |flow| flow.opened_by)
}

/// Whether every planned figure is there, repairs counted.
pub(crate) fn all_measured(records: &[FlowRecord]) -> bool {
    incomplete(records).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::StageIndex;
    use ew_model::record::EndRecord;
    use ew_model::scenario::MeshMode;
    use ew_model::workload::Workload;

    #[test]
    fn fewer_connections_need_fewer_gaps() {
        let with_streams = |streams: u32| {
            let mut stage = stage(Pattern::Permutation);
            stage.workload.streams = streams;
            stage
        };
        let learned = Patience::learned(&with_streams(32), 8);
        let of = |streams| learned.gaps(&with_streams(streams));
        assert_eq!((of(64), of(32), of(12), of(1)), (8, 8, 3, 1));
        assert_eq!(Patience::PLANNED.gaps(&with_streams(32)), 1);
    }

    /// What was enough for another stage is not widened before it was tried.
    #[test]
    fn a_repair_begins_with_what_was_learned_and_else_with_more() {
        let stage = stage(Pattern::Permutation);
        let learned = Patience::learned(&stage, 4);
        assert_eq!(learned.first_repair(&stage, 1), 4);
        assert_eq!(learned.first_repair(&stage, 4), 8);
        assert_eq!(Patience::PLANNED.first_repair(&stage, 1), 4);
    }

    #[test]
    fn what_longer_gaps_did_not_help_is_given_no_more() {
        let stage = stage(Pattern::Permutation);
        let learned = Patience::learned(&stage, 2).in_vain();
        assert_eq!((learned.longer(2), learned.first_repair(&stage, 2)), (2, 2));
        assert_eq!(learned.first_repair(&stage, 1), 2);
    }

    #[test]
    fn flows_that_are_missing_or_of_a_void_round_have_failed() {
        let stage = stage(Pattern::Permutation);
        let mut records = records(&stage, &[0, 5]);
        let share = |records: &[FlowRecord], rounds| failed_share(&stage, records, rounds);
        assert_eq!(share(&records, 0..8), 2.0 / 16.0);
        assert_eq!((share(&records, 0..1), share(&records, 3..8)), (0.5, 0.0));
        for record in records.iter_mut().filter(|row| row.round.0 == 7) {
            record.sender = Some(EndRecord {
                window_ns: 1_000_000,
                start_skew_ns: 500_000,
                ..EndRecord::default()
            });
        }
        assert_eq!(share(&records, 0..8), 4.0 / 16.0);
    }

    fn stage(pattern: Pattern) -> Stage {
        let flow = |id: u32, src: u32, dst: u32| Flow {
            id: FlowId(id),
            src: HostId(src),
            dst: HostId(dst),
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        };
        let round = |id: u32| Round {
            sample: id,
            senders_per_rack: None,
            flows: vec![flow(2 * id, 0, 1), flow(2 * id + 1, 1, 2)],
        };
        Stage {
            name: "test".into(),
            pattern,
            workload: Workload {
                message_bytes: 1,
                ..Workload::of(WorkloadKind::TcpStream)
            },
            duration_ns: 1,
            warm_up_ns: 1,
            gap_ns: 1,
            auto: None,
            sweep: None,
            rounds: (0..8).map(round).collect(),
        }
    }

    fn records(stage: &Stage, missing: &[u32]) -> Vec<FlowRecord> {
        let mut records = Vec::new();
        for (number, round) in stage.rounds.iter().enumerate() {
            for flow in &round.flows {
                let outcome = if missing.contains(&flow.id.0) {
                    FlowOutcome::Missing {
                        reason: "test".into(),
                    }
                } else {
                    FlowOutcome::Measured
                };
                records.push(FlowRecord {
                    is_aggressor: false,
                    stage: StageIndex(0),
                    round: RoundIndex(number as u32),
                    flow: flow.id,
                    sample: round.sample,
                    src: flow.src,
                    dst: flow.dst,
                    outcome,
                    sender: None,
                    receiver: None,
                });
            }
        }
        records
    }

    const ALIVE: [HostId; 3] = [HostId(0), HostId(1), HostId(2)];

    /// What is run for all that is missing.
    fn repeats(stage: &Stage, records: &[FlowRecord], alive: &[HostId]) -> Vec<Round> {
        Wanting::of(stage, records, alive).repeats(stage, alive, FlowId(100), None)
    }

    #[test]
    fn an_incomplete_round_is_repeated_whole_with_new_numbers() {
        let stage = stage(Pattern::Permutation);
        let records = records(&stage, &[5]);
        assert!(!all_measured(&records));
        let rounds = repeats(&stage, &records, &ALIVE);
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0].sample, 2);
        let ids: Vec<u32> = rounds[0].flows.iter().map(|flow| flow.id.0).collect();
        assert_eq!(ids, [100, 101]);
    }

    /// The records of a round again, as the stage's ninth.
    fn again(records: &[FlowRecord], round: u32, missing: bool) -> Vec<FlowRecord> {
        let of_round = records.iter().filter(|row| row.round == RoundIndex(round));
        let repeated = |row: &FlowRecord| FlowRecord {
            round: RoundIndex(8),
            outcome: match missing {
                true => row.outcome.clone(),
                false => FlowOutcome::Measured,
            },
            ..row.clone()
        };
        of_round.map(repeated).collect()
    }

    #[test]
    fn what_a_repeat_has_measured_is_not_repeated_again() {
        let stage = stage(Pattern::Permutation);
        let mut failed = records(&stage, &[5]);
        failed.extend(again(&failed, 2, true));
        assert_eq!(Wanting::of(&stage, &failed, &ALIVE).len(), 1);
        let mut fixed = records(&stage, &[5]);
        fixed.extend(again(&fixed, 2, false));
        assert_eq!(Wanting::of(&stage, &fixed, &ALIVE).len(), 0);
        assert!(all_measured(&fixed));
    }

    /// As traces of several connections of two hosts are.
    #[test]
    fn one_of_two_flows_between_the_same_hosts_is_missed() {
        let mut stage = stage(Pattern::Permutation);
        stage.rounds.truncate(1);
        let flows = &mut stage.rounds[0].flows;
        (flows[1].src, flows[1].dst) = (flows[0].src, flows[0].dst);
        let mut records = records(&stage, &[1]);
        assert!(!all_measured(&records));
        assert_eq!(Wanting::of(&stage, &records, &ALIVE).len(), 1);
        records.extend(again(&records, 0, false));
        assert!(all_measured(&records));
        assert_eq!(Wanting::of(&stage, &records, &ALIVE).len(), 0);
    }

    #[test]
    fn one_missing_flow_is_not_widespread_but_a_quarter_is() {
        let stage = stage(Pattern::Mesh {
            mode: MeshMode::Isolated,
            max_rounds: None,
        });
        let of = |missing: &[u32]| {
            let records = records(&stage, missing);
            Wanting::of(&stage, &records, &ALIVE).is_widespread(&records)
        };
        assert!(!of(&[3]));
        assert!(of(&[3, 6, 9, 12]));
    }

    /// Two rounds of eight whose flows started half a window late: their share of the window, not
    /// their time, makes them void.
    #[test]
    fn rounds_that_started_late_are_repeated() {
        let stage = stage(Pattern::Permutation);
        let mut records = records(&stage, &[]);
        for record in &mut records {
            let is_late = [2, 6].contains(&record.round.0);
            record.sender = Some(EndRecord {
                window_ns: 1_000_000,
                start_skew_ns: if is_late { 500_000 } else { 50_000 },
                ..EndRecord::default()
            });
        }
        assert_eq!(
            void_rounds(&stage, &records),
            [RoundIndex(2), RoundIndex(6)].into()
        );
        let repeated = repeats(&stage, &records, &ALIVE);
        let samples: Vec<u32> = repeated.iter().map(|round| round.sample).collect();
        assert_eq!(samples, [2, 6]);
    }

    #[test]
    fn only_some_rounds_are_tried_at_first_and_the_dead_are_left_alone() {
        let stage = stage(Pattern::Permutation);
        let all: Vec<u32> = (0..16).collect();
        let records = records(&stage, &all);
        let wanting = Wanting::of(&stage, &records, &ALIVE);
        assert_eq!(wanting.len(), 8);
        assert_eq!(wanting.some(2).len(), 2);
        assert_eq!(Wanting::of(&stage, &records, &ALIVE[..1]).len(), 0);
    }

    #[test]
    fn a_mesh_repeats_its_missing_pairs_only() {
        let stage = stage(Pattern::Mesh {
            mode: MeshMode::Isolated,
            max_rounds: None,
        });
        let records = records(&stage, &[3]);
        let rounds = repeats(&stage, &records, &ALIVE);
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0].flows.len(), 1);
        assert_eq!(
            (rounds[0].flows[0].src, rounds[0].flows[0].dst),
            (HostId(1), HostId(2))
        );
    }
}
