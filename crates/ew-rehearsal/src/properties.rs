//! What must be true of every run, whatever goes wrong.

use crate::desk::Desk;
use crate::faults::Fault;
use crate::run::Trace;
use crate::world::End;
use ew_controller::max_waiting_bytes;
use ew_model::event::{RecordedEvent, RunEvent};
use ew_model::inventory::HostId;
use ew_model::plan::{FlowId, Plan, RoundIndex, Stage, StageIndex};
use ew_model::record::{FlowOutcome, FlowRecord};
use ew_model::workload::StreamCount;
use ew_proto::agent_session::WELCOME_DEADLINE_NS;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// An agent that hears nothing for this long has ended itself and its flows.
const SILENCE_NS: u64 = 5_000_000_000;
/// An agent to which no controller ever spoke has done nothing, and waits a little longer.
const WELCOME_NS: u64 = WELCOME_DEADLINE_NS + 1_000_000_000;
/// An interrupt ends a run within this time: the agents' farewells, and who does not answer.
const INTERRUPT_NS: u64 = 7_000_000_000;
/// What a run may take besides its rounds: launches that are tried again, looks before the load,
/// hosts that are launched anew before each stage's repair.
const ALLOWANCE_NS: u64 = 600_000_000_000;
/// A host from which nothing comes any more is lost after [`SILENCE_NS`]; one that hears nothing
/// ends itself then. Either is recorded within this time.
const NOTICED_NS: u64 = SILENCE_NS + 3_000_000_000;
/// An event that is not a list takes less, in memory.
const EVENT_BYTES: usize = 1024;

/// What is wrong with a trace, in words; empty where nothing is.
#[must_use]
pub fn violations(trace: &Trace) -> Vec<String> {
    let facts = Facts::of(trace);
    let mut found = Vec::new();
    found.extend(facts.lingering());
    found.extend(facts.outcomes());
    found.extend(facts.healthy_pairs());
    found.extend(facts.healthy_hosts());
    found.extend(facts.time());
    found.extend(facts.starts());
    found.extend(facts.noticed());
    found.extend(record(trace));
    found.extend(waiting(trace));
    found.extend(states(trace));
    found
}

/// A trace, read once.
struct Facts<'a> {
    trace: &'a Trace,
    plan: Option<&'a Plan>,
    rows: Vec<&'a FlowRecord>,
    finished: BTreeSet<StageIndex>,
    clock_error_ns: BTreeMap<HostId, u64>,
    /// Hosts of which nothing is wrong.
    healthy: BTreeSet<HostId>,
    was_ended_early: bool,
}

impl<'a> Facts<'a> {
    fn of(trace: &'a Trace) -> Self {
        let hosts = trace.inventory.host_ids().zip(&trace.drawn.hosts);
        let healthy = hosts.filter(|(_, host)| host.faults.is_empty());
        let mut facts = Self {
            trace,
            plan: None,
            rows: Vec::new(),
            finished: BTreeSet::new(),
            clock_error_ns: BTreeMap::new(),
            healthy: healthy.map(|(id, _)| id).collect(),
            was_ended_early: trace.driven.is_err(),
        };
        for event in &trace.events {
            match &event.event {
                RunEvent::RunStarted { plan, .. } | RunEvent::Replanned { plan } => {
                    facts.plan = Some(plan);
                }
                RunEvent::RoundFinished { records, .. } => facts.rows.extend(records),
                RunEvent::StageFinished { stage } => {
                    facts.finished.insert(*stage);
                }
                RunEvent::ClockSynced { host, error_ns, .. } => {
                    let most = facts.clock_error_ns.entry(*host).or_default();
                    *most = (*most).max(*error_ns);
                }
                RunEvent::Interrupted => facts.was_ended_early = true,
                _ => {}
            }
        }
        facts
    }

    fn name(&self, host: HostId) -> &str {
        self.trace.inventory.name(host)
    }

    /// No agent outlives its controller.
    fn lingering(&self) -> Vec<String> {
        let sleepers = |host: HostId| {
            let faults = &self.trace.drawn.hosts[host.index()].faults;
            faults.iter().any(|fault| fault.stopped_ns().is_some())
        };
        let ends = self.trace.seen.ends.iter();
        let limit_ns = |end: &End| match end.was_welcome {
            true => SILENCE_NS,
            false => WELCOME_NS,
        };
        let late =
            ends.filter(|end| end.at_ns - end.heard_ns > limit_ns(end) && !sleepers(end.host));
        let late = late.map(|end| {
            format!(
                "{}: its agent ended {} ms after it last heard its controller",
                self.name(end.host),
                (end.at_ns - end.heard_ns) / 1_000_000
            )
        });
        let left = self.trace.left.iter().filter(|host| !sleepers(**host));
        let left = left.map(|host| format!("{}: its agent outlives the run", self.name(*host)));
        late.chain(left).collect()
    }

    /// A flow has one outcome, and is measured only where both ends reported it.
    fn outcomes(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut known: BTreeSet<(StageIndex, RoundIndex, FlowId)> = BTreeSet::new();
        for row in &self.rows {
            if !known.insert((row.stage, row.round, row.flow)) {
                found.push(format!("{}: it has two outcomes", flow(row)));
            }
            let reported = |host| {
                let key = (host, row.stage, row.round, row.flow);
                self.trace.seen.reported.contains(&key)
            };
            if row.outcome == FlowOutcome::Measured && !(reported(row.src) && reported(row.dst)) {
                found.push(format!(
                    "{}: measured, and an end has not reported",
                    flow(row)
                ));
            }
        }
        let Some(plan) = self.plan.filter(|_| !self.was_ended_early) else {
            return found;
        };
        for (index, stage) in (0..).map(StageIndex).zip(&plan.stages) {
            if !self.finished.contains(&index) || ends_early(stage) {
                continue;
            }
            for (number, round) in (0..).map(RoundIndex).zip(&stage.rounds) {
                let missing = round
                    .flows
                    .iter()
                    .filter(|f| !known.contains(&(index, number, f.id)));
                if missing.count() > 0 {
                    found.push(format!(
                        "stage {} round {}: planned flows without an outcome",
                        index.0, number.0
                    ));
                }
            }
        }
        found
    }

    /// What goes wrong with others costs two good hosts nothing.
    fn healthy_pairs(&self) -> Vec<String> {
        let measured: BTreeSet<(StageIndex, HostId, HostId)> = (self.rows.iter())
            .filter(|row| row.outcome == FlowOutcome::Measured)
            .map(|row| (row.stage, row.src, row.dst))
            .collect();
        let is_healthy = |row: &&&FlowRecord| {
            self.healthy.contains(&row.src)
                && self.healthy.contains(&row.dst)
                && self.finished.contains(&row.stage)
        };
        let rows = self.rows.iter().filter(is_healthy);
        let lost = rows.filter(|row| !measured.contains(&(row.stage, row.src, row.dst)));
        lost.map(|row| format!("{}: both hosts are healthy: {:?}", flow(row), row.outcome))
            .collect()
    }

    /// A host of which nothing is wrong is never lost.
    fn healthy_hosts(&self) -> Vec<String> {
        let events = self.trace.events.iter();
        let lost = events.filter_map(|event| match &event.event {
            RunEvent::HostLost { host, message } | RunEvent::HostFailed { host, message } => {
                Some((*host, message))
            }
            _ => None,
        });
        lost.filter(|(host, _)| self.healthy.contains(host) && !self.was_ended_early)
            .map(|(host, message)| format!("{}: healthy, and lost: {message}", self.name(host)))
            .collect()
    }

    /// A run ends, and soon where the user wants it.
    fn time(&self) -> Option<String> {
        let planned_ns: u64 = self.plan.map_or(0, |plan| {
            let stages = plan.stages.iter();
            stages.map(Stage::planned_ns).sum()
        });
        let took_ns = self.trace.took_ns;
        if let Some(first_ns) = self.trace.drawn.interrupts_ns.first()
            && took_ns > first_ns + INTERRUPT_NS
        {
            let after_ms = (took_ns - first_ns) / 1_000_000;
            return Some(format!("it ended {after_ms} ms after the user's interrupt"));
        }
        let limit_ns = 4 * planned_ns + ALLOWANCE_NS;
        (took_ns > limit_ns).then(|| format!("it took {} s", took_ns / 1_000_000_000))
    }

    /// A host that goes silent is lost, and soon; before the first stage, it is launched anew
    /// meanwhile.
    fn noticed(&self) -> Vec<String> {
        let mut found = Vec::new();
        let of_load = self.trace.events.iter().filter(|event| {
            use RunEvent::{Interrupted, StageFinished, StageStarted};
            matches!(
                event.event,
                StageStarted { .. } | StageFinished { .. } | Interrupted
            )
        });
        let load_ns: Vec<u64> = of_load.map(|event| event.at_ns).collect();
        let (Some(first_ns), Some(last_ns)) = (load_ns.first(), load_ns.last()) else {
            return found;
        };
        for (host, spec) in self.trace.inventory.host_ids().zip(&self.trace.drawn.hosts) {
            let silent = spec.faults.iter().filter_map(Fault::silent_ns);
            for at_ns in silent.filter(|at_ns| at_ns > first_ns) {
                let span_ns = at_ns..at_ns + NOTICED_NS;
                let is_over = *last_ns < span_ns.end;
                if self.is_up(host, at_ns) && !is_over && !self.is_lost(host, span_ns) {
                    found.push(format!(
                        "{}: silent since {} ms, and still not lost",
                        self.name(host),
                        at_ns / 1_000_000
                    ));
                }
            }
        }
        found
    }

    /// By the record, in this time of the run.
    fn is_lost(&self, wanted: HostId, span_ns: Range<u64>) -> bool {
        self.trace.events.iter().any(|event| match &event.event {
            RunEvent::HostLost { host, .. } | RunEvent::HostFailed { host, .. } => {
                *host == wanted && span_ns.contains(&event.at_ns)
            }
            _ => false,
        })
    }

    /// By the record, at a time of the run.
    fn is_up(&self, wanted: HostId, at_ns: u64) -> bool {
        let events = self.trace.events.iter();
        let until = events.take_while(|event| event.at_ns <= at_ns);
        let last = until.filter_map(|event| match &event.event {
            RunEvent::HostUp { host, .. } | RunEvent::HostReturned { host } => Some((host, true)),
            RunEvent::HostLost { host, .. } | RunEvent::HostFailed { host, .. } => {
                Some((host, false))
            }
            _ => None,
        });
        last.filter(|(host, _)| **host == wanted)
            .last()
            .is_some_and(|(_, is_up)| is_up)
    }

    /// All hosts of a round begin together, as far as their clocks are known.
    fn starts(&self) -> Vec<String> {
        let error_ns = |host: &HostId| {
            self.clock_error_ns
                .get(host)
                .copied()
                .unwrap_or(u64::MAX / 4)
        };
        let mut found = Vec::new();
        for ((stage, round), begins) in &self.trace.seen.begins {
            let healthy = begins
                .iter()
                .filter(|(host, _)| self.healthy.contains(host));
            let healthy: Vec<(&HostId, &u64)> = healthy.collect();
            let first = healthy.iter().min_by_key(|(_, at_ns)| **at_ns);
            let last = healthy.iter().max_by_key(|(_, at_ns)| **at_ns);
            if let (Some((early, first_ns)), Some((late, last_ns))) = (first, last)
                && *last_ns - *first_ns > error_ns(early) + error_ns(late)
            {
                found.push(format!(
                    "stage {} round {}: {} began {} us after {}, and their clocks are known better",
                    stage.0,
                    round.0,
                    self.name(**late),
                    (*last_ns - *first_ns) / 1000,
                    self.name(**early)
                ));
            }
        }
        found
    }
}

/// The file has every event that the disk was given, but for those that are counted as lost; only a
/// full disk loses any, and whoever watches hears of it.
fn record(trace: &Trace) -> Option<String> {
    let desk = &trace.drawn.desk;
    let file = ew_store::plain_lines(&trace.file);
    let lines = file.iter().filter(|byte| **byte == b'\n');
    if *desk == Desk::default() && lines.count() == trace.events.len() {
        return None;
    }
    let mut given = trace.events.iter();
    let (mut lost, mut counted) = (0, 0);
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        let mut later = given.clone();
        if let Some(skipped) = later.position(|event| is_line(event, line)) {
            lost += skipped as u64;
            given = later;
            continue;
        }
        // The recorder's own.
        match serde_json::from_slice::<RecordedEvent>(line).map(|read| read.event) {
            Ok(RunEvent::EventsLost { count }) => counted += count,
            other => return Some(format!("the record has what was never sent: {other:?}")),
        }
    }
    lost += given.len() as u64;
    let is_full_disk = !desk.full_ns.is_empty();
    let (is_counted, is_known) = (lost == counted, trace.unwritten.is_some());
    if lost == 0 && is_counted {
        return None;
    }
    // Where the disk stays full, the count cannot be written either.
    if !is_full_disk || !is_known || counted > lost || !(is_counted || is_full_at_end(trace)) {
        return Some(format!(
            "the record lacks {lost} events, and counts {counted}"
        ));
    }
    let says_so = |event: &Arc<RecordedEvent>| matches!(&event.event, RunEvent::Warning { message } if message.contains("cannot be written"));
    let is_said = trace.shown.iter().any(says_so);
    (!is_said).then(|| format!("{lost} events are not written, and nothing shows it"))
}

/// Whether this is the event as it is written.
fn is_line(event: &RecordedEvent, line: &[u8]) -> bool {
    let is_text = |text: Vec<u8>| Some(text.as_slice()) == line.strip_suffix(b"\n");
    let starts = format!("{{\"at_ns\":{},", event.at_ns);
    line.starts_with(starts.as_bytes()) && serde_json::to_vec(event).is_ok_and(is_text)
}

fn is_full_at_end(trace: &Trace) -> bool {
    let full = trace.drawn.desk.full_ns.iter();
    let last_ns = full.map(|span| span.end).max();
    last_ns.is_some_and(|end_ns| end_ns > trace.took_ns)
}

/// What waits for the terminal is bounded; where that is not little, all that is recorded is shown.
fn waiting(trace: &Trace) -> Option<String> {
    let little = trace.drawn.desk.max_waiting_bytes;
    let unplanned = Plan::default();
    let planned = trace.events.iter().find_map(|event| match &event.event {
        RunEvent::RunStarted { plan, .. } => Some(plan),
        _ => None,
    });
    let limit = little.unwrap_or_else(|| max_waiting_bytes(planned.unwrap_or(&unplanned)));
    let most = trace.most_waiting[1];
    if most > limit + EVENT_BYTES {
        return Some(format!("{most} bytes wait for the terminal"));
    }
    let is_shown =
        |event: &&Arc<RecordedEvent>| !matches!(event.event, RunEvent::EventsLost { .. });
    let mut shown = trace.shown.iter();
    let mut given = trace.events.iter().filter(is_shown);
    let unseen = given.find(|event| !shown.any(|shown| Arc::ptr_eq(shown, event)));
    let unseen = unseen.filter(|_| little.is_none())?;
    let event = format!("{:?}", unseen.event);
    // A round of a large run has many flows.
    Some(format!("it was not shown: {event:.200}"))
}

/// What a host is after the events so far: a second bookkeeping next to the controller's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Absent,
    Up,
    Down,
}

/// The record has every change of a host, in an order that is possible, and counts as many hosts
/// up as the controller does.
fn states(trace: &Trace) -> Vec<String> {
    let mut found = Vec::new();
    let mut states: BTreeMap<HostId, State> = BTreeMap::new();
    for event in &trace.events {
        use State::{Absent, Down, Up};
        let (host, before, after): (_, &[State], _) = match &event.event {
            // One that is lost while others are launched is launched anew with them.
            RunEvent::HostUp { host, .. } => (host, &[Absent, Up], Up),
            RunEvent::HostFailed { host, .. } => (host, &[Absent, Up, Down], Down),
            RunEvent::HostLost { host, .. } => (host, &[Up], Down),
            RunEvent::HostReturned { host } => (host, &[Down], Up),
            RunEvent::StageStarted { stage, hosts_alive } => {
                let up = states.values().filter(|state| **state == Up).count();
                if up != *hosts_alive as usize {
                    found.push(format!(
                        "stage {}: {hosts_alive} hosts are up by the controller, and {up} by the record",
                        stage.0
                    ));
                }
                continue;
            }
            _ => continue,
        };
        let state = states.entry(*host).or_default();
        if !before.contains(state) {
            let name = trace.inventory.name(*host);
            found.push(format!("{name}: {after:?} after {state:?}"));
        }
        *state = after;
    }
    found
}

/// Whether the stage's rounds run only until they have shown enough.
fn ends_early(stage: &Stage) -> bool {
    stage.auto.is_some() || stage.workload.stream_count == StreamCount::Doubling
}

fn flow(row: &FlowRecord) -> String {
    format!(
        "stage {} round {} flow {}",
        row.stage.0, row.round.0, row.flow.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{draw_healthy, rehearse};
    use std::sync::Arc;

    /// A run in which nothing is wrong, after something was done to its trace.
    fn found(tamper: impl Fn(&mut Trace)) -> Vec<String> {
        let mut drawn = draw_healthy(1, 8);
        drawn.scenario.tests.truncate(4);
        let mut trace = rehearse(drawn).expect("a run");
        assert_eq!(violations(&trace), Vec::<String>::new());
        tamper(&mut trace);
        violations(&trace)
    }

    fn is_found(tamper: impl Fn(&mut Trace), words: &str) {
        let found = found(tamper);
        assert!(
            found.iter().any(|one| one.contains(words)),
            "{words}: {found:?}"
        );
    }

    fn add(trace: &mut Trace, event: RunEvent) {
        let at_ns = trace.events.last().map_or(0, |event| event.at_ns);
        let event = ew_model::event::RecordedEvent { at_ns, event };
        trace.events.push(Arc::new(event));
    }

    fn with_rounds(trace: &mut Trace, change: impl Fn(&mut Vec<FlowRecord>)) {
        for event in &mut trace.events {
            if let RunEvent::RoundFinished { records, .. } = &mut Arc::make_mut(event).event {
                change(records);
            }
        }
    }

    #[test]
    fn every_property_can_fail() {
        let host = HostId(3);
        let message = String::from("gone");
        is_found(
            |trace| trace.seen.ends[0].heard_ns = 0,
            "after it last heard",
        );
        is_found(
            |trace| trace.left = BTreeSet::from([host]),
            "outlives the run",
        );
        let twice = |records: &mut Vec<FlowRecord>| records.extend(records.clone());
        is_found(|trace| with_rounds(trace, twice), "two outcomes");
        is_found(
            |trace| trace.seen.reported.clear(),
            "an end has not reported",
        );
        is_found(|trace| with_rounds(trace, Vec::clear), "without an outcome");
        let miss = |records: &mut Vec<FlowRecord>| {
            for row in records {
                row.outcome = FlowOutcome::Missing {
                    reason: "lost".into(),
                };
            }
        };
        is_found(|trace| with_rounds(trace, miss), "both hosts are healthy");
        let lose = |trace: &mut Trace| {
            let message = message.clone();
            add(trace, RunEvent::HostLost { host, message });
        };
        is_found(lose, "healthy, and lost");
        is_found(|trace| trace.took_ns *= 1000, "it took");
        let late = |trace: &mut Trace| {
            let begins = trace.seen.begins.values_mut().next().expect("a round");
            *begins.values_mut().next().expect("a host") += 1_000_000_000;
        };
        is_found(late, "began");
        is_found(
            |trace| add(trace, RunEvent::HostReturned { host }),
            "Up after Up",
        );
        let stage = StageIndex(0);
        let hosts_alive = 3;
        let count = |trace: &mut Trace| add(trace, RunEvent::StageStarted { stage, hosts_alive });
        is_found(count, "are up by the controller");
        let mute = |trace: &mut Trace| {
            let at_ns = trace.took_ns / 4;
            trace.drawn.hosts[3].faults.push(Fault::Mutes { at_ns });
        };
        is_found(mute, "still not lost");
    }

    #[test]
    fn a_record_that_lacks_something_is_found() {
        let tear = |trace: &mut Trace| trace.file.truncate(trace.file.len() / 2);
        is_found(tear, "was never sent");
        let last_line = |trace: &mut Trace| {
            let lines: Vec<&[u8]> = trace.file.split_inclusive(|byte| *byte == b'\n').collect();
            trace.file = lines[..lines.len() - 1].concat();
        };
        is_found(last_line, "the record lacks 1 events, and counts 0");
        let silently = |trace: &mut Trace| {
            last_line(trace);
            trace.drawn.desk.full_ns = std::iter::once(0..u64::MAX).collect();
            trace.unwritten = Some(ew_store::StoreError::NotARun { path: "x".into() });
        };
        is_found(silently, "nothing shows it");
        is_found(|trace| trace.shown.clear(), "it was not shown");
        let wait = |trace: &mut Trace| {
            trace.most_waiting[1] = 2 * max_waiting_bytes(&Plan::default());
        };
        is_found(wait, "wait for the terminal");
    }
}
