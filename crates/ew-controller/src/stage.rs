//! Drives one stage: clocks, orders ahead, one common start, then only listening until the last
//! round is in.

use crate::command::Command;
use crate::fleet_event::FleetEvent;
use crate::journal::Journal;
use crate::members::{Members, State};
use crate::merge::{RecordKey, Reports};
use crate::orders::{Batch, ToolPorts};
use ew_model::event::RunEvent;
use ew_model::inventory::{HostId, Inventory};
use ew_model::record::FlowRecord;
use ew_model::workload::Tool;
use ew_proto::controller_session::ControllerEvent;
use ew_proto::message::{FlowProgress, RoundReport, StageOrder};
use std::collections::{BTreeMap, BTreeSet};

/// Clock estimates may take this long; who is slower keeps its last one, or is skipped without
/// one.
const SYNC_LIMIT_NS: u64 = 3_000_000_000;
/// Agents may take this long to accept a stage.
const ACCEPT_LIMIT_NS: u64 = 5_000_000_000;
/// And this much longer per host: every one's orders name its peers.
const ACCEPT_LIMIT_PER_HOST_NS: u64 = 5_000_000;
/// From `Go` to the stage's start: the word must have reached everybody.
const LEAD_NS: u64 = 150_000_000;
/// Additional lead per host.
const LEAD_PER_HOST_NS: u64 = 1_000_000;
/// A round's reports may come this long after its window, and after what a tool takes longer.
const REPORT_LIMIT_NS: u64 = 3_000_000_000;
/// Live rates at most this often.
const PROGRESS_INTERVAL_NS: u64 = 1_000_000_000;

/// How a batch of rounds ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    Done,
    Interrupted,
}

/// A batch of rounds under way.
pub(crate) struct BatchRun<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) batch: &'a Batch<'a>,
    pub(crate) members: &'a mut Members,
    pub(crate) journal: &'a mut Journal,
    pub(crate) tool_ports: &'a mut ToolPorts,
    /// Planned time of everything after this batch.
    pub(crate) later_ns: u64,
    /// All records of the batch, missing ones included, as far as what comes next depends on them.
    pub(crate) records: Vec<FlowRecord>,
}

impl BatchRun<'_> {
    /// Runs the batch to its end.
    pub(crate) async fn run(&mut self) -> BatchEnd {
        if self.sync_clocks().await == BatchEnd::Interrupted {
            return BatchEnd::Interrupted;
        }
        let orders = self.batch.orders(&self.listeners(), self.tool_ports);
        let mut rounds = OpenRounds::new(self.batch, &orders);
        if self.send_ahead(orders, &mut rounds).await == BatchEnd::Interrupted {
            return BatchEnd::Interrupted;
        }
        let start_ns = self.start(&rounds);
        self.members.load(true);
        let listened = self.listen(start_ns, &mut rounds).await;
        self.members.load(false);
        match listened {
            BatchEnd::Done => self.settle(&mut rounds).await,
            BatchEnd::Interrupted => BatchEnd::Interrupted,
        }
    }

    async fn sync_clocks(&mut self) -> BatchEnd {
        let mut waiting: BTreeSet<HostId> = self.members.alive().into_iter().collect();
        for id in &waiting {
            self.members.send(*id, Command::Sync);
        }
        let deadline_ns = self.members.now_ns() + SYNC_LIMIT_NS;
        while !waiting.is_empty() {
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(host, ControllerEvent::Synced(estimate)) => {
                    waiting.remove(&host);
                    self.journal.clock_synced(host, &estimate);
                }
                FleetEvent::Interrupt => return BatchEnd::Interrupted,
                FleetEvent::Deadline => break,
                other => {
                    if let Some(lost) = self.note(other) {
                        waiting.remove(&lost);
                    }
                }
            }
        }
        BatchEnd::Done
    }

    async fn send_ahead(
        &mut self,
        orders: BTreeMap<HostId, StageOrder>,
        rounds: &mut OpenRounds,
    ) -> BatchEnd {
        let mut waiting: BTreeSet<HostId> = orders.keys().copied().collect();
        for (id, order) in orders {
            self.members.send(id, Command::Stage(order));
        }
        let limit_ns = ACCEPT_LIMIT_NS + ACCEPT_LIMIT_PER_HOST_NS * waiting.len() as u64;
        let deadline_ns = self.members.now_ns() + limit_ns;
        while !waiting.is_empty() {
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(host, ControllerEvent::StageAccepted { .. }) => {
                    waiting.remove(&host);
                }
                FleetEvent::Agent(host, ControllerEvent::StageRefused { reason, .. }) => {
                    waiting.remove(&host);
                    rounds.give_up(self.batch, host, &reason);
                }
                FleetEvent::Interrupt => return BatchEnd::Interrupted,
                FleetEvent::Deadline => {
                    for host in waiting {
                        rounds.give_up(self.batch, host, "it did not accept the stage in time");
                        // Or its late answer would keep it from every later stage.
                        self.members.send(host, Command::Abort);
                    }
                    break;
                }
                other => {
                    if let Some(lost) = self.note(other) {
                        waiting.remove(&lost);
                        rounds.give_up(self.batch, lost, &self.why_down(lost));
                    }
                }
            }
        }
        BatchEnd::Done
    }

    /// Sends go to everybody, each in its own time; returns the start on the controller's clock.
    fn start(&mut self, rounds: &OpenRounds) -> u64 {
        let lead_ns = LEAD_NS + LEAD_PER_HOST_NS * rounds.hosts.len() as u64;
        let start_ns = self.members.now_ns() + lead_ns;
        for id in rounds
            .hosts
            .iter()
            .filter(|id| !rounds.given_up.contains_key(id))
        {
            if self.has_clock(*id) {
                let stage = self.batch.index;
                self.members.send(*id, Command::Go { stage, start_ns });
            }
        }
        start_ns
    }

    async fn listen(&mut self, start_ns: u64, rounds: &mut OpenRounds) -> BatchEnd {
        let mut rates = Rates::default();
        self.close_finished(rounds, start_ns, false);
        while !rounds.open.is_empty() {
            let deadline_ns = self.deadline_ns(rounds, start_ns);
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(host, ControllerEvent::RoundReport(report)) => {
                    rounds.take(self.batch, host, report);
                }
                FleetEvent::Agent(
                    host,
                    ControllerEvent::StageDone {
                        rejected_connections,
                        ..
                    },
                ) => {
                    self.on_stage_done(rounds, host, rejected_connections);
                }
                FleetEvent::Agent(host, ControllerEvent::Alive { rx_bytes, .. }) => {
                    self.show_progress(&mut rates, host, rx_bytes, start_ns);
                }
                FleetEvent::Interrupt => return BatchEnd::Interrupted,
                FleetEvent::Deadline => {
                    self.close_finished(rounds, start_ns, true);
                }
                other => {
                    if let Some(lost) = self.note(other) {
                        rounds.give_up(self.batch, lost, &self.why_down(lost));
                    }
                }
            }
            self.close_finished(rounds, start_ns, false);
        }
        BatchEnd::Done
    }

    /// Agents that report rounds but not the stage's end are ordered to drop it, so that the next
    /// stage finds them free.
    async fn settle(&mut self, rounds: &mut OpenRounds) -> BatchEnd {
        let deadline_ns = self.members.now_ns() + self.report_limit_ns();
        while !rounds.unfinished().is_empty() {
            match self.members.next(deadline_ns).await {
                FleetEvent::Agent(
                    host,
                    ControllerEvent::StageDone {
                        rejected_connections,
                        ..
                    },
                ) => {
                    self.on_stage_done(rounds, host, rejected_connections);
                }
                FleetEvent::Interrupt => return BatchEnd::Interrupted,
                FleetEvent::Deadline => break,
                other => {
                    if let Some(lost) = self.note(other) {
                        rounds.give_up(self.batch, lost, &self.why_down(lost));
                    }
                }
            }
        }
        for host in rounds.unfinished() {
            self.members.send(host, Command::Abort);
        }
        BatchEnd::Done
    }

    fn on_stage_done(&mut self, rounds: &mut OpenRounds, host: HostId, rejected_connections: u64) {
        rounds.done.insert(host);
        if rejected_connections > 0 {
            self.journal.emit(RunEvent::ConnectionsRejected {
                host,
                count: rejected_connections,
            });
        }
    }

    fn report_limit_ns(&self) -> u64 {
        REPORT_LIMIT_NS + self.batch.stage.workload.overrun_ns()
    }

    /// The first open round's last chance.
    fn deadline_ns(&self, rounds: &OpenRounds, start_ns: u64) -> u64 {
        let first = rounds.open.keys().next().copied().unwrap_or_default();
        start_ns + self.batch.window_end_ns(first) + self.report_limit_ns()
    }

    /// Emits the rounds that are complete, in order; with `overdue`, also the first one whose time
    /// is up.
    fn close_finished(&mut self, rounds: &mut OpenRounds, start_ns: u64, overdue: bool) {
        let mut overdue = overdue && self.members.now_ns() >= self.deadline_ns(rounds, start_ns);
        while let Some(entry) = rounds.open.first_entry() {
            if !entry.get().is_complete() && !overdue {
                return;
            }
            overdue = false;
            let (position, round) = entry.remove_entry();
            let records = self.records_of(position, round, &rounds.given_up);
            self.records.extend(records.iter().map(FlowRecord::figures));
            self.journal.emit(RunEvent::RoundFinished {
                stage: self.batch.index,
                round: self.batch.round_index(position),
                records,
            });
        }
    }

    fn records_of(
        &self,
        position: usize,
        mut round: OpenRound,
        given_up: &BTreeMap<HostId, String>,
    ) -> Vec<FlowRecord> {
        let (_, planned) = self.batch.rounds[position];
        let key = RecordKey {
            stage: self.batch.index,
            round: self.batch.round_index(position),
            sample: planned.sample,
        };
        let names = |id: HostId| self.inventory.name(id).to_owned();
        let why_silent = |id: HostId| match (given_up.get(&id), round.waiting.contains(&id)) {
            (Some(reason), _) => reason.clone(),
            (None, true) if round.is_hopeless => "not waited for".to_owned(),
            (None, true) => "no report in time".to_owned(),
            (None, false) => self.why_down(id),
        };
        planned
            .flows
            .iter()
            .map(|flow| {
                let workload = self.batch.stage.workload_of(flow);
                let reports = &mut round.reports;
                let mut record = reports.record(&key, flow, &workload, &names, &why_silent);
                self.note_clocks(&mut record);
                record
            })
            .collect()
    }

    fn why_down(&self, id: HostId) -> String {
        match self.members.get(id).map(|member| &member.state) {
            Some(State::Down { message }) => format!("lost: {message}"),
            Some(State::Up { .. } | State::Launching) | None => "it took no part".into(),
        }
    }

    /// Handles what matters at any time; returns a host that was lost.
    fn note(&mut self, event: FleetEvent) -> Option<HostId> {
        match event {
            FleetEvent::Agent(_, ControllerEvent::FlowProgress(progress)) => {
                self.show_flow(&progress);
                None
            }
            other => self.journal.note(other, self.inventory),
        }
    }

    fn listeners(&self) -> BTreeMap<HostId, std::net::SocketAddr> {
        let alive = self.members.alive().into_iter();
        alive
            .filter(|id| self.has_clock(*id))
            .filter_map(|id| Some((id, self.members.data_address(id)?)))
            .collect()
    }

    fn has_clock(&self, id: HostId) -> bool {
        self.members
            .get(id)
            .is_some_and(|member| member.clock.is_some())
    }

    /// How well the clocks of a flow's ends were known.
    fn note_clocks(&self, record: &mut FlowRecord) {
        let error_ns = |id| Some(self.members.get(id)?.clock?.error_ns);
        for (end, id) in [
            (&mut record.sender, record.src),
            (&mut record.receiver, record.dst),
        ] {
            if let Some(end) = end {
                end.clock_error_ns = error_ns(id);
            }
        }
    }

    fn show_flow(&mut self, progress: &FlowProgress) {
        let position = self.batch.position(progress.round);
        let round = position.map(|at| self.batch.rounds[at].1);
        let flow = round.and_then(|r| r.flows.iter().find(|f| f.id == progress.flow));
        if let Some(flow) = flow {
            self.journal.emit(RunEvent::FlowProgress {
                stage: progress.stage,
                flow: flow.id,
                src: flow.src,
                dst: flow.dst,
                offset_ns: progress.offset_ns,
                length_ns: progress.length_ns,
                bytes: progress.bytes,
                transactions: progress.transactions,
                retransmits: progress.retransmits,
            });
        }
    }

    fn show_progress(&mut self, rates: &mut Rates, host: HostId, rx_bytes: u64, start_ns: u64) {
        let now_ns = self.members.now_ns();
        let Some(bits_per_sec) = rates.update(host, rx_bytes, now_ns) else {
            return;
        };
        let last = self.batch.rounds.len().saturating_sub(1);
        let end_ns = start_ns + self.batch.window_end_ns(last);
        self.journal.emit(RunEvent::Progress {
            bits_per_sec: (self.batch.stage.workload.tool == Tool::Engine).then_some(bits_per_sec),
            hosts_alive: self.members.alive().len() as u32,
            left_ns: end_ns.saturating_sub(now_ns) + self.later_ns,
        });
    }
}

/// Rounds whose reports are not all in, by position in the batch.
struct OpenRounds {
    open: BTreeMap<usize, OpenRound>,
    hosts: BTreeSet<HostId>,
    done: BTreeSet<HostId>,
    given_up: BTreeMap<HostId, String>,
}

#[derive(Default)]
struct OpenRound {
    waiting: BTreeSet<HostId>,
    /// Each flow has an end that was given up: what the other ends report shows nothing.
    is_hopeless: bool,
    reports: Reports,
}

impl OpenRound {
    fn is_complete(&self) -> bool {
        self.waiting.is_empty() || self.is_hopeless
    }
}

impl OpenRounds {
    fn new(batch: &Batch<'_>, orders: &BTreeMap<HostId, StageOrder>) -> Self {
        let mut open: BTreeMap<usize, OpenRound> = (0..batch.rounds.len())
            .map(|position| (position, OpenRound::default()))
            .collect();
        for (host, order) in orders {
            for round in &order.rounds {
                if let Some(position) = batch.position(round.round) {
                    open.entry(position).or_default().waiting.insert(*host);
                }
            }
        }
        Self {
            open,
            hosts: orders.keys().copied().collect(),
            done: BTreeSet::new(),
            given_up: BTreeMap::new(),
        }
    }

    /// Hosts that were started and have neither finished the stage nor gone.
    fn unfinished(&self) -> Vec<HostId> {
        let over = |id: &HostId| self.done.contains(id) || self.given_up.contains_key(id);
        self.hosts.iter().copied().filter(|id| !over(id)).collect()
    }

    fn take(&mut self, batch: &Batch<'_>, host: HostId, report: RoundReport) {
        let Some(position) = batch.position(report.round) else {
            return;
        };
        if let Some(round) = self.open.get_mut(&position)
            && round.waiting.remove(&host)
        {
            for flow in report.flows {
                round.reports.add(host, flow);
            }
        }
    }

    fn give_up(&mut self, batch: &Batch<'_>, host: HostId, reason: &str) {
        self.given_up
            .entry(host)
            .or_insert_with(|| reason.to_owned());
        let is_gone = |end: HostId| self.given_up.contains_key(&end);
        for (position, round) in &mut self.open {
            let mut flows = batch.rounds[*position].1.flows.iter();
            round.waiting.remove(&host);
            round.is_hopeless = flows.all(|flow| is_gone(flow.src) || is_gone(flow.dst));
        }
    }
}

/// Live rate from the agents' running totals.
#[derive(Default)]
struct Rates {
    last: BTreeMap<HostId, (u64, u64)>,
    bits_per_sec: BTreeMap<HostId, f64>,
    shown_ns: u64,
}

impl Rates {
    /// The fleet's rate, when it is time to show it again.
    fn update(&mut self, host: HostId, rx_bytes: u64, now_ns: u64) -> Option<f64> {
        if let Some((bytes, at_ns)) = self.last.insert(host, (rx_bytes, now_ns))
            && now_ns > at_ns
        {
            let rate = rx_bytes.saturating_sub(bytes) as f64 * 8e9 / (now_ns - at_ns) as f64;
            self.bits_per_sec.insert(host, rate);
        }
        if now_ns.saturating_sub(self.shown_ns) < PROGRESS_INTERVAL_NS {
            return None;
        }
        self.shown_ns = now_ns;
        Some(self.bits_per_sec.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::puppets::{CLOCK, Puppets};
    use crate::orders::Detours;
    use crate::outside::Clock;
    use ew_model::plan::{RoundIndex, StageIndex};

    #[tokio::test(start_paused = true)]
    async fn who_does_not_accept_a_stage_in_time_is_free_for_the_next() {
        let mut puppets = Puppets::up(2);
        let hosts = [HostId(0), HostId(1)];
        for host in hosts {
            puppets.say_of(host, ControllerEvent::Synced(CLOCK));
        }
        let stage = StageIndex(0);
        puppets.say_of(hosts[0], ControllerEvent::StageAccepted { stage });
        let (job, members) = (&puppets.job, &mut puppets.members);
        let plan = ew_plan::plan(&job.scenario, &job.inventory, job.seed).unwrap();
        let (mut journal, _ends) = Journal::new(Clock::simulated(), 1 << 20);
        let batch = Batch {
            plan: &plan,
            index: stage,
            stage: &plan.stages[0],
            rounds: vec![(RoundIndex(0), &plan.stages[0].rounds[0])],
            gap_ns: plan.stages[0].gap_ns,
            follow: false,
            detours: &Detours::new(),
        };
        let mut run = BatchRun {
            inventory: &job.inventory,
            batch: &batch,
            members,
            journal: &mut journal,
            tool_ports: &mut ToolPorts::new((5301, 5399)),
            later_ns: 0,
            records: Vec::new(),
        };
        assert_eq!(run.run().await, BatchEnd::Done);
        let is_abort = |command: &Option<Command>| matches!(command, Some(Command::Abort));
        assert!(puppets.orders(hosts[1]).iter().any(is_abort));
    }
}
