//! Stamps every event with the run's time and hands it to the recorder and to who watches, each on
//! a thread of its own: the thread that keeps the agents alive never writes to a file or a
//! terminal.

use crate::fleet_event::FleetEvent;
use crate::outside::Clock;
use crate::queue::{EventReceiver, EventSender, RECORD_BYTES, event_queue};
use ew_model::event::{RecordedEvent, RunEvent};
use ew_model::inventory::{HostId, Inventory};
use ew_model::plan::Plan;
use ew_proto::clock::ClockEstimate;
use ew_proto::controller_session::ControllerEvent;
use std::sync::Arc;

/// What may wait for the disk, and for the terminal, next to a round.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// What may wait for the disk, and for the terminal, in bytes: beyond it samples are skipped, and
/// events not shown. The largest round of the plan is never too large.
#[must_use]
pub fn max_waiting_bytes(plan: &Plan) -> usize {
    let rounds = plan.stages.iter().flat_map(|stage| &stage.rounds);
    let flows = rounds.map(|round| round.flows.len()).max().unwrap_or(0);
    MAX_WAITING_BYTES + flows * RECORD_BYTES
}

/// The one way out of the controller.
#[derive(Debug)]
pub(crate) struct Journal {
    clock: Clock,
    began_ns: u64,
    recorded: EventSender,
    shown: EventSender,
    /// Samples that were skipped since the last that was not.
    unwritten: u64,
}

/// What comes out of a journal.
#[derive(Debug)]
pub(crate) struct JournalEnds {
    /// For the recorder.
    pub(crate) recorded: EventReceiver,
    /// For who watches.
    pub(crate) shown: EventReceiver,
    /// For the recorder's own events to the listener.
    pub(crate) to_shown: EventSender,
}

impl Journal {
    /// For each of disk and terminal, about so many bytes may wait.
    pub(crate) fn new(clock: Clock, max_waiting_bytes: usize) -> (Self, JournalEnds) {
        let (to_recorded, recorded) = event_queue(max_waiting_bytes);
        let (to_shown, shown) = event_queue(max_waiting_bytes);
        let ends = JournalEnds {
            recorded,
            shown,
            to_shown: to_shown.clone(),
        };
        let journal = Self {
            clock,
            began_ns: clock.now_ns(),
            recorded: to_recorded,
            shown: to_shown,
            unwritten: 0,
        };
        (journal, ends)
    }

    /// Records and shows an event; never waits for either.
    pub(crate) fn emit(&mut self, event: RunEvent) {
        let event = self.stamped(event);
        if !event.event.is_live_only() {
            self.record(&event);
        }
        // Who does not keep up misses what was not shown yet; the record has it.
        self.shown.offer(&event);
    }

    /// How a host's clock relates to ours, by an estimate.
    pub(crate) fn clock_synced(&mut self, host: HostId, estimate: &ClockEstimate) {
        self.emit(RunEvent::ClockSynced {
            host,
            offset_ns: estimate.offset_ns,
            error_ns: estimate.error_ns,
            rate_ppb: estimate.rate_ppb,
        });
    }

    /// What matters of the fleet at any time, whatever is being waited for; returns a host that was
    /// lost.
    pub(crate) fn note(&mut self, event: FleetEvent, inventory: &Inventory) -> Option<HostId> {
        match event {
            FleetEvent::Agent(host, ControllerEvent::Lost { reason: message })
            | FleetEvent::LaunchFailed { host, message } => {
                self.emit(RunEvent::HostLost { host, message });
                return Some(host);
            }
            FleetEvent::Agent(host, ControllerEvent::ClockMoved(estimate)) => {
                self.clock_synced(host, &estimate);
            }
            FleetEvent::Agent(host, ControllerEvent::Sample(sample)) => {
                self.emit(RunEvent::HostSampled { host, sample });
            }
            FleetEvent::Agent(host, ControllerEvent::Reading(reading)) => {
                self.emit(RunEvent::HostRead { host, reading });
            }
            FleetEvent::Agent(host, ControllerEvent::Fault { message }) => {
                self.warn(format!("{}: {message}", inventory.name(host)));
            }
            FleetEvent::Agent(..)
            | FleetEvent::Ended { .. }
            | FleetEvent::Interrupt
            | FleetEvent::Deadline => {}
        }
        None
    }

    /// A warning in words.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.emit(RunEvent::Warning {
            message: message.into(),
        });
    }

    fn record(&mut self, event: &Arc<RecordedEvent>) {
        if !matches!(event.event, RunEvent::HostSampled { .. }) {
            return self.recorded.send(event);
        }
        if !self.recorded.offer(event) {
            self.unwritten += 1;
        } else if self.unwritten > 0 {
            let count = std::mem::take(&mut self.unwritten);
            self.recorded
                .send(&self.stamped(RunEvent::EventsLost { count }));
        }
    }

    fn stamped(&self, event: RunEvent) -> Arc<RecordedEvent> {
        let at_ns = self.clock.now_ns() - self.began_ns;
        Arc::new(RecordedEvent { at_ns, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::plan::{End, Flow, FlowId, Round, RoundIndex, Stage, StageIndex};
    use ew_model::record::{FlowOutcome, FlowRecord};
    use ew_model::scenario::Pattern;
    use ew_model::workload::{Workload, WorkloadKind};

    /// As many as 1,000 hosts' paths are traced by.
    const FLOWS: usize = 30_000;
    const HOSTS: [HostId; 2] = [HostId(0), HostId(1)];

    fn plan() -> Plan {
        let flow = Flow {
            id: FlowId(0),
            src: HOSTS[0],
            dst: HOSTS[1],
            opened_by: End::Src,
            lane: None,
            is_aggressor: false,
            traces: None,
        };
        let round = Round {
            sample: 0,
            senders_per_rack: None,
            flows: vec![flow; FLOWS],
        };
        let stage = Stage {
            name: "test".into(),
            pattern: Pattern::Permutation,
            workload: Workload::of(WorkloadKind::Trace),
            duration_ns: 1,
            warm_up_ns: 0,
            gap_ns: 0,
            auto: None,
            sweep: None,
            rounds: vec![round],
        };
        Plan {
            stages: vec![stage],
            ..Plan::default()
        }
    }

    #[test]
    fn the_largest_round_of_a_plan_is_shown_next_to_what_waits() {
        let (stage, round) = (StageIndex(0), RoundIndex(0));
        let record = FlowRecord {
            stage,
            round,
            flow: FlowId(0),
            sample: 0,
            src: HOSTS[0],
            dst: HOSTS[1],
            is_aggressor: false,
            outcome: FlowOutcome::Measured,
            sender: None,
            receiver: None,
        };
        let limit = max_waiting_bytes(&plan());
        let (mut journal, mut ends) = Journal::new(Clock::system(), limit);
        journal.warn("what waits");
        let records = vec![record; FLOWS];
        journal.emit(RunEvent::RoundFinished {
            stage,
            round,
            records,
        });
        journal.emit(RunEvent::StageFinished { stage });
        drop((journal, ends.to_shown));
        assert_eq!(ends.shown.by_ref().count(), 3);
    }
}
