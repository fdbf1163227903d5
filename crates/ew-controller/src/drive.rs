//! Drives the plan's stages, one after the other or interleaved, and fixes what was missed.

use crate::first_rounds::FirstRounds;
use crate::job::Job;
use crate::journal::Journal;
use crate::members::Members;
use crate::orders::{Batch, ToolPorts};
use crate::repair::{self, Patience, Wanting};
use crate::repeat::Repeats;
use crate::stage::{BatchEnd, BatchRun};
use ew_model::event::RunEvent;
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::{FlowId, Plan, Round, RoundIndex, Stage, StageIndex};
use ew_model::record::FlowRecord;
use ew_model::run::Outcome;
use ew_model::scenario::{MeshMode, Pattern};
use ew_model::tools::ServerPorts;
use ew_plan::adapt::{Shown, adapted};
use ew_plan::schedule::UplinkLimits;
use std::ops::Range;

/// Within it, a tool's server is up.
const SERVER_START_NS: u64 = 1_000_000_000;

/// All stages to their ends, each with all its repetitions at once, or interleaved with others.
/// Returns it when interrupted.
pub(crate) async fn drive(
    job: &Job,
    plan: &Plan,
    members: &mut Members,
    journal: &mut Journal,
) -> Outcome {
    let mut drive = Drive {
        plan: plan.clone(),
        next_flow: ew_plan::plan::next_flow_id(plan),
        tool_ports: ToolPorts::new(job.options.tool_ports),
        shown: Shown::default(),
        first_rounds: FirstRounds::new(job.inventory.hosts.len()),
        patience: Patience::PLANNED,
        all_measured: true,
    };
    for group in plan.groups() {
        if drive.drive_group(job, &group, members, journal).await == BatchEnd::Interrupted {
            journal.emit(RunEvent::Interrupted);
            return Outcome::Interrupted;
        }
        if let Some(why) = drive.first_rounds.are_void() {
            journal.warn(why);
            return Outcome::Partial;
        }
        drive.adapt(&job.inventory, group.end, journal);
    }
    let all_up = members.alive().len() == job.inventory.hosts.len();
    match drive.all_measured && all_up {
        true => Outcome::Complete,
        false => Outcome::Partial,
    }
}

/// What goes on from one group of stages to the next.
struct Drive {
    /// With what its first stages have shown taken over.
    plan: Plan,
    /// For flows of repair rounds.
    next_flow: FlowId,
    tool_ports: ToolPorts,
    shown: Shown,
    first_rounds: FirstRounds,
    patience: Patience,
    /// So far.
    all_measured: bool,
}

impl Drive {
    /// Stages that are interleaved with each other, or one alone.
    async fn drive_group(
        &mut self,
        job: &Job,
        group: &Range<usize>,
        members: &mut Members,
        journal: &mut Journal,
    ) -> BatchEnd {
        let mut stages_progress: Vec<StageProgress<'_>> = StageProgress::of_all(&self.plan, group);
        let later = self.plan.stages[group.end..].iter();
        let later_ns: u64 = later.map(Stage::planned_ns).sum();
        let mut pass = 0;
        while stages_progress.iter().any(|progress| !progress.is_over()) {
            for StageIndex(number) in ew_plan::plan::turns(&self.plan, group, pass) {
                let left_ns: u64 = stages_progress.iter().map(StageProgress::left_ns).sum();
                let progress = &mut stages_progress[number as usize - group.start];
                if progress.is_over() {
                    continue;
                }
                let mut driver = Driver {
                    job,
                    plan: &self.plan,
                    later_ns: later_ns + left_ns - progress.left_ns(),
                    takes_turns: group.len() > 1,
                    progress,
                    members,
                    journal,
                    tool_ports: &mut self.tool_ports,
                    next_flow: &mut self.next_flow,
                    patience: &mut self.patience,
                };
                if driver.take_turn().await == BatchEnd::Interrupted {
                    return BatchEnd::Interrupted;
                }
                self.first_rounds
                    .note(progress.stage, progress.new_records());
                self.shown.note(progress.stage, &progress.finished);
                progress.finished.clear();
                if self.first_rounds.are_void().is_some() {
                    return BatchEnd::Done;
                }
            }
            pass += 1;
        }
        self.all_measured &= stages_progress.iter().all(|c| c.all_measured == Some(true));
        BatchEnd::Done
    }

    /// Stages from `next` on take over what those before have shown.
    fn adapt(&mut self, inventory: &Inventory, next: usize, journal: &mut Journal) {
        if let Some(plan) = adapted(&self.plan, next, &self.shown, inventory) {
            journal.emit(RunEvent::Replanned { plan: plan.clone() });
            self.plan = plan;
        }
    }
}

/// The progress of a stage.
struct StageProgress<'a> {
    index: StageIndex,
    stage: &'a Stage,
    repeats: Repeats<'a>,
    /// To be ordered next; none when only repair is left.
    next: Vec<RoundIndex>,
    /// Until it is over.
    records: Vec<FlowRecord>,
    /// All of them once it is over, to be analysed.
    finished: Vec<FlowRecord>,
    /// So many of them have been analysed.
    seen: usize,
    /// Number of the next round that is repeated.
    next_repeat: u32,
    /// The fewest of the stage's gaps that its own rounds were given before their times. `None`
    /// until one has run.
    fewest_gaps: Option<u64>,
    /// How long its own rounds took so far, with what starting them cost; repair rounds are on top.
    spent_ns: u64,
    /// `None` until it is over.
    all_measured: Option<bool>,
}

impl<'a> StageProgress<'a> {
    fn of_all(plan: &'a Plan, group: &Range<usize>) -> Vec<Self> {
        let takes_turns = group.len() > 1;
        let begin = |at: usize| {
            let (index, stage) = (StageIndex(at as u32), &plan.stages[at]);
            let mut repeats = Repeats::new(stage, takes_turns);
            Self {
                index,
                stage,
                next: repeats.next(&[], &[], 0),
                repeats,
                records: Vec::new(),
                finished: Vec::new(),
                seen: 0,
                next_repeat: stage.rounds.len() as u32,
                fewest_gaps: None,
                spent_ns: 0,
                all_measured: None,
            }
        };
        group.clone().map(begin).collect()
    }

    /// What came in since this was last asked.
    fn new_records(&mut self) -> &[FlowRecord] {
        let all = match self.finished.is_empty() {
            true => &self.records,
            false => &self.finished,
        };
        let seen = std::mem::replace(&mut self.seen, all.len());
        all.get(seen..).unwrap_or_default()
    }

    fn is_over(&self) -> bool {
        self.all_measured.is_some()
    }

    fn finish(&mut self) {
        self.finished = std::mem::take(&mut self.records);
        self.all_measured = Some(repair::all_measured(&self.finished));
    }

    /// Planned time of what has not run; the most it may be.
    fn left_ns(&self) -> u64 {
        match self.is_over() {
            true => 0,
            false => self.stage.planned_ns().saturating_sub(self.spent_ns),
        }
    }
}

/// One turn of a stage.
struct Driver<'a, 'p> {
    job: &'a Job,
    plan: &'a Plan,
    progress: &'a mut StageProgress<'p>,
    takes_turns: bool,
    /// Planned time of what has not run of the other stages.
    later_ns: u64,
    members: &'a mut Members,
    journal: &'a mut Journal,
    tool_ports: &'a mut ToolPorts,
    /// For flows of repair rounds.
    next_flow: &'a mut FlowId,
    patience: &'a mut Patience,
}

impl Driver<'_, '_> {
    /// All of a stage, or one repetition where stages are interleaved; when nothing of it is left,
    /// what is missing once more.
    async fn take_turn(&mut self) -> BatchEnd {
        self.journal.emit(RunEvent::StageStarted {
            stage: self.progress.index,
            hosts_alive: self.members.alive().len() as u32,
        });
        while !self.progress.next.is_empty() {
            if self.run_next().await == BatchEnd::Interrupted {
                return BatchEnd::Interrupted;
            }
            if self.takes_turns && !self.progress.next.is_empty() {
                return BatchEnd::Done;
            }
        }
        let end = self.repair().await;
        if end == BatchEnd::Done {
            self.progress.finish();
            self.journal.emit(RunEvent::StageFinished {
                stage: self.progress.index,
            });
        }
        end
    }

    async fn run_next(&mut self) -> BatchEnd {
        let stage = self.progress.stage;
        let numbered = |number: RoundIndex| (number, &stage.rounds[number.0 as usize]);
        let rounds = std::mem::take(&mut self.progress.next);
        let began_ns = self.members.now_ns();
        let rounds = rounds.into_iter().map(numbered).collect();
        let gaps = self.patience.gaps(stage);
        let end = self.run_rounds(rounds, gaps * stage.gap_ns).await;
        let alive = self.members.alive();
        let progress = &mut *self.progress;
        let fewest = progress.fewest_gaps.map_or(gaps, |known| known.min(gaps));
        progress.fewest_gaps = Some(fewest);
        progress.spent_ns += self.members.now_ns() - began_ns;
        progress.next = progress
            .repeats
            .next(&progress.records, &alive, progress.spent_ns);
        end
    }

    /// What is missing, once more, and again until the longest gaps do not help: at most a quarter
    /// of the stage's rounds until flows fail less than half as often as at first, because those
    /// that do not may well fail for ever. Connections that a black hole swallows are no better
    /// with more time, though another attempt may take another path.
    async fn repair(&mut self) -> BatchEnd {
        let hasty = self.wanting();
        if hasty.len() == 0 && repair::all_measured(&self.progress.records) {
            return BatchEnd::Done;
        }
        if !repair::revive(self.members, self.journal).await {
            return BatchEnd::Interrupted;
        }
        let is_widespread = hasty.is_widespread(&self.progress.records);
        let given = self.progress.fewest_gaps.unwrap_or(1);
        let mut gaps = self.patience.first_repair(self.progress.stage, given);
        let mut most_rounds = (self.progress.stage.rounds.len() / 4).max(1);
        let at_first = self.failed_share(0);
        for _ in 0..repair::MAX_ATTEMPTS {
            let tried = self.wanting().some(most_rounds);
            if tried.len() == 0 {
                return BatchEnd::Done;
            }
            let first = self.progress.next_repeat;
            if self.repeat(&tried, gaps).await == BatchEnd::Interrupted {
                return BatchEnd::Interrupted;
            }
            let failed = self.failed_share(first);
            let tried_gaps = gaps;
            if failed > 0.0 {
                gaps = self.patience.longer(gaps);
            }
            if 2.0 * failed < at_first {
                most_rounds = usize::MAX;
                if is_widespread {
                    *self.patience = Patience::learned(self.progress.stage, tried_gaps);
                }
            } else if gaps == tried_gaps {
                if is_widespread {
                    *self.patience = self.patience.in_vain();
                }
                return BatchEnd::Done;
            }
        }
        BatchEnd::Done
    }

    /// With so many times the stage's gap.
    async fn repeat(&mut self, wanting: &Wanting, gaps: u64) -> BatchEnd {
        let rounds = wanting.repeats(
            self.progress.stage,
            &self.able(),
            *self.next_flow,
            self.limits(),
        );
        let flows: usize = rounds.iter().map(|round| round.flows.len()).sum();
        self.next_flow.0 += flows as u32;
        let first = self.progress.next_repeat;
        self.progress.next_repeat += rounds.len() as u32;
        let rounds = (first..).map(RoundIndex).zip(&rounds).collect();
        self.run_rounds(rounds, gaps * self.progress.stage.gap_ns)
            .await
    }

    /// Of the flows of all rounds from this one on.
    fn failed_share(&self, first: u32) -> f64 {
        let rounds = first..self.progress.next_repeat;
        repair::failed_share(self.progress.stage, &self.progress.records, rounds)
    }

    fn wanting(&self) -> Wanting {
        Wanting::of(self.progress.stage, &self.progress.records, &self.able())
    }

    /// Hosts that are up and have what the stage's flows are run with.
    fn able(&self) -> Vec<HostId> {
        let tool = self.progress.stage.workload.tool;
        let mut able = self.members.alive();
        able.retain(|host| self.members.has_tool(*host, tool));
        able
    }

    /// Of rounds in which nobody is to disturb anybody.
    fn limits(&self) -> Option<UplinkLimits<'_>> {
        let inventory = &self.job.inventory;
        let isolated = matches!(
            self.progress.stage.pattern,
            Pattern::Mesh {
                mode: MeshMode::Isolated,
                ..
            }
        );
        (isolated && !inventory.racks.is_empty()).then(|| UplinkLimits {
            inventory,
            oversubscription: ew_plan::plan::assumed_oversubscription(&self.job.scenario.expect),
        })
    }

    /// A tool that cannot choose its port has one round after the other: its server must be gone
    /// before the next one, and no gap that suffices for that is short.
    async fn run_rounds(&mut self, rounds: Vec<(RoundIndex, &Round)>, gap_ns: u64) -> BatchEnd {
        let ServerPorts::Fixed(_) = self.progress.stage.workload.server_ports() else {
            return self.run_batch(rounds, gap_ns).await;
        };
        for round in rounds {
            let end = self.run_batch(vec![round], gap_ns.min(SERVER_START_NS));
            if end.await == BatchEnd::Interrupted {
                return BatchEnd::Interrupted;
            }
        }
        BatchEnd::Done
    }

    async fn run_batch(&mut self, rounds: Vec<(RoundIndex, &Round)>, gap_ns: u64) -> BatchEnd {
        let batch = Batch {
            plan: self.plan,
            index: self.progress.index,
            stage: self.progress.stage,
            rounds,
            gap_ns,
            follow: self.job.follow_flows,
            detours: &self.job.detours,
        };
        let mut run = BatchRun {
            inventory: &self.job.inventory,
            batch: &batch,
            members: self.members,
            journal: self.journal,
            tool_ports: self.tool_ports,
            later_ns: self.later_ns,
            records: Vec::new(),
        };
        let end = run.run().await;
        self.progress.records.extend(run.records);
        end
    }
}
