//! After a stage: what is missing is tried once more between the hosts that are up, those that came
//! back included.

use crate::journal::Journal;
use crate::members::{FleetEvent, Members};
use ew_model::event::RunEvent;
use ew_model::inventory::HostId;
use ew_model::plan::{End, Flow, FlowId, Round, RoundIndex, Stage};
use ew_model::quality::{VOID_SHARE, late_share};
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::scenario::Pattern;
use ew_model::workload::{Tool, WorkloadKind};
use ew_plan::schedule::UplinkLimits;
use ew_proto::controller_session::ControllerEvent;
use std::collections::{BTreeMap, BTreeSet};

/// A host is launched at most this often in a run.
const MAX_LAUNCHES: u32 = 3;

/// Gaps of repair rounds, in gaps of the stage's: what did not begin in its time is given more.
pub(crate) const PATIENCE: u64 = 4;

/// Tries to bring lost hosts back, and waits until each is up or has failed again.
pub(crate) async fn revive(members: &mut Members, journal: &mut Journal) -> bool {
    let tries: BTreeSet<HostId> = members
        .down()
        .into_iter()
        .filter(|id| {
            members.get(*id).is_some_and(|member| {
                member.was_up && member.may_return && member.launches < MAX_LAUNCHES
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
            FleetEvent::Agent(..)
            | FleetEvent::LaunchFailed { .. }
            | FleetEvent::Ended { .. }
            | FleetEvent::Deadline => {}
        }
    }
    true
}

/// Rounds for what has no figure though both ends are up, and for rounds whose flows did not run
/// together. Flow ids count from `first_flow`.
///
/// A mesh's flow measures the same with whoever else runs, so its missing pairs are packed anew.
/// Elsewhere a flow's figure depends on the others, so incomplete rounds are repeated whole; at
/// most a quarter of the stage, because what fails more often than that will not be fixed by
/// trying again.
pub(crate) fn rounds(
    stage: &Stage,
    records: &[FlowRecord],
    alive: &[HostId],
    first_flow: FlowId,
    limits: Option<UplinkLimits<'_>>,
) -> Vec<Round> {
    let both_up = |src: HostId, dst: HostId| alive.contains(&src) && alive.contains(&dst);
    let missing = records
        .iter()
        .filter(|record| record.outcome != FlowOutcome::Measured)
        .filter(|record| both_up(record.src, record.dst));
    if matches!(stage.pattern, Pattern::Mesh { .. }) {
        let pairs: Vec<(HostId, HostId)> = missing.map(|record| (record.src, record.dst)).collect();
        return ew_plan::repair_rounds(&pairs, opened_by(stage), first_flow, limits);
    }
    let mut incomplete: BTreeSet<RoundIndex> = missing.map(|record| record.round).collect();
    incomplete.extend(void_rounds(stage, records));
    let most = (stage.rounds.len() / 4).max(1);
    let mut ids = (first_flow.0..).map(FlowId);
    incomplete
        .into_iter()
        .take(most)
        .filter_map(|RoundIndex(number)| stage.rounds.get(number as usize))
        .map(|round| Round {
            flows: round
                .flows
                .iter()
                .filter(|flow| both_up(flow.src, flow.dst))
                .zip(&mut ids)
                .map(|(flow, id)| Flow { id, ..flow.clone() })
                .collect(),
            ..round.clone()
        })
        .collect()
}

/// Rounds whose flows did not run together: what each got says nothing of what all get.
pub(crate) fn void_rounds(stage: &Stage, records: &[FlowRecord]) -> BTreeSet<RoundIndex> {
    if stage.workload.kind != WorkloadKind::TcpStream || stage.workload.tool != Tool::Engine {
        return BTreeSet::new();
    }
    let mut rounds: BTreeMap<RoundIndex, Vec<&FlowRecord>> = BTreeMap::new();
    for record in records {
        rounds.entry(record.round).or_default().push(record);
    }
    let is_void = |rows: &[&FlowRecord]| late_share(rows.iter().copied()) > VOID_SHARE;
    let void = rounds.into_iter().filter(|(_, rows)| is_void(rows));
    void.map(|(round, _)| round).collect()
}

fn opened_by(stage: &Stage) -> End {
    let first = stage.rounds.iter().flat_map(|round| &round.flows).next();
    first.map_or(End::Src, |flow| flow.opened_by)
}

/// Whether every planned figure is there, repairs counted.
pub(crate) fn all_measured(records: &[FlowRecord]) -> bool {
    let figure = |record: &FlowRecord| (record.src, record.dst, record.sample);
    let measured: BTreeSet<_> = records
        .iter()
        .filter(|record| record.outcome == FlowOutcome::Measured)
        .map(figure)
        .collect();
    records
        .iter()
        .all(|record| measured.contains(&figure(record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::StageIndex;
    use ew_model::record::EndRecord;
    use ew_model::scenario::MeshMode;
    use ew_model::workload::Workload;

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

    #[test]
    fn an_incomplete_round_is_repeated_whole_with_new_numbers() {
        let stage = stage(Pattern::Permutation);
        let records = records(&stage, &[5]);
        assert!(!all_measured(&records));
        let rounds = rounds(&stage, &records, &ALIVE, FlowId(100), None);
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0].sample, 2);
        let ids: Vec<u32> = rounds[0].flows.iter().map(|flow| flow.id.0).collect();
        assert_eq!(ids, [100, 101]);
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
        let repeated = rounds(&stage, &records, &ALIVE, FlowId(100), None);
        let samples: Vec<u32> = repeated.iter().map(|round| round.sample).collect();
        assert_eq!(samples, [2, 6]);
    }

    #[test]
    fn what_always_fails_is_not_tried_for_ever_and_the_dead_are_left_alone() {
        let stage = stage(Pattern::Permutation);
        let all: Vec<u32> = (0..16).collect();
        let records = records(&stage, &all);
        assert_eq!(rounds(&stage, &records, &ALIVE, FlowId(16), None).len(), 2);
        assert_eq!(
            rounds(&stage, &records, &ALIVE[..1], FlowId(16), None).len(),
            0
        );
    }

    #[test]
    fn a_mesh_repeats_its_missing_pairs_only() {
        let stage = stage(Pattern::Mesh {
            mode: MeshMode::Isolated,
            max_rounds: None,
        });
        let records = records(&stage, &[3]);
        let rounds = rounds(&stage, &records, &ALIVE, FlowId(16), None);
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0].flows.len(), 1);
        assert_eq!(
            (rounds[0].flows[0].src, rounds[0].flows[0].dst),
            (HostId(1), HostId(2))
        );
    }
}
