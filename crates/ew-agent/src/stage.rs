//! Walks through a stage's rounds on the agent's own clock, with nothing sent on the control link
//! unless flows are followed.

use crate::cancel::{CANCEL_CHECK_NS, sleep_unless_cancelled};
use crate::follow;
use crate::host::Host;
use crate::inbox::Input;
use ew_engine::RoundSpec;
use ew_model::plan::{FlowId, RoundIndex, StageIndex};
use ew_model::workload::{Tool, Workload};
use ew_proto::Timeline;
use ew_proto::message::{FlowOrder, FlowReport, Role, RoundOrder, RoundReport, StageOrder};
use ew_sys::clock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// How long before its connect time a round is handed to the engine: time to make threads and
/// buffers.
const HAND_OVER_NS: u64 = 20_000_000;
/// At most this much of a gap is left for the previous round to drain.
const MAX_DRAIN_NS: u64 = 40_000_000;
/// Part of the window per interval record.
const INTERVAL_NS: u64 = 100_000_000;

/// A stage under way.
#[derive(Debug)]
pub(crate) struct RunningStage {
    cancelled: Arc<AtomicBool>,
    timeline: Arc<Mutex<Timeline>>,
}

impl RunningStage {
    /// Starts the rounds; every one of them ends as an [`Input::RoundDone`].
    pub(crate) fn start(order: StageOrder, timeline: Timeline, host: &Host) -> Self {
        let cancelled = Arc::new(AtomicBool::new(false));
        let timeline = Arc::new(Mutex::new(timeline));
        let running = Self {
            cancelled: Arc::clone(&cancelled),
            timeline: Arc::clone(&timeline),
        };
        let host = host.clone();
        thread::spawn(move || walk(&order, &timeline, &host, &cancelled));
        running
    }

    /// Rounds that are not at hand yet follow this timeline.
    pub(crate) fn retime(&self, timeline: Timeline) {
        *lock(&self.timeline) = timeline;
    }

    /// Ends the stage: no further round starts, and tools' children are killed.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn walk(order: &StageOrder, timeline: &Mutex<Timeline>, host: &Host, cancelled: &Arc<AtomicBool>) {
    for round in &order.rounds {
        if !await_hand_over(order, round, timeline, cancelled) {
            return;
        }
        let spec = spec(order, round, *lock(timeline));
        run_round(order.workload.tool, spec, &round.followed, host, cancelled);
    }
}

/// Until a round is at hand, as the timeline has it by then. False when it was cancelled meanwhile.
fn await_hand_over(
    order: &StageOrder,
    round: &RoundOrder,
    timeline: &Mutex<Timeline>,
    cancelled: &AtomicBool,
) -> bool {
    loop {
        let due_ns = hand_over_ns(order, round, *lock(timeline));
        let slice_ns = due_ns.min(clock::monotonic_ns() + CANCEL_CHECK_NS);
        if !sleep_unless_cancelled(slice_ns, cancelled) {
            return false;
        }
        if clock::monotonic_ns() >= due_ns {
            return true;
        }
    }
}

fn lock(timeline: &Mutex<Timeline>) -> MutexGuard<'_, Timeline> {
    timeline.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hand_over_ns(order: &StageOrder, round: &RoundOrder, timeline: Timeline) -> u64 {
    connect_at_ns(order, round, timeline).saturating_sub(HAND_OVER_NS)
}

fn connect_at_ns(order: &StageOrder, round: &RoundOrder, timeline: Timeline) -> u64 {
    let gap_ns = order.gap_ns - drain_ns(order.gap_ns);
    timeline.at(round.offset_ns).saturating_sub(gap_ns)
}

fn spec(order: &StageOrder, round: &RoundOrder, timeline: Timeline) -> RoundSpec {
    let window_offset_ns = round.offset_ns.saturating_add(order.warm_up_ns);
    let window_start_ns = timeline.at(window_offset_ns);
    let window_end_ns = timeline.at(window_offset_ns.saturating_add(order.duration_ns));
    RoundSpec {
        stage: order.stage,
        round: round.round,
        workload: Workload {
            streams: round.streams,
            ..(*order.workload).clone()
        },
        connect_at_ns: connect_at_ns(order, round, timeline),
        start_ns: timeline.at(round.offset_ns),
        window_start_ns,
        window_ns: window_end_ns - window_start_ns,
        interval_ns: INTERVAL_NS,
        flows: round.flows.clone(),
    }
}

/// The previous round's last segments are still on their way when the gap begins; a connection
/// attempt would be lost among them.
fn drain_ns(gap_ns: u64) -> u64 {
    (gap_ns / 4).min(MAX_DRAIN_NS)
}

fn run_round(
    tool: Tool,
    spec: RoundSpec,
    followed: &[FlowId],
    host: &Host,
    cancelled: &Arc<AtomicBool>,
) {
    let (stage, round, window_start_ns) = (spec.stage, spec.round, spec.window_start_ns);
    let flows = spec.flows.clone();
    let orders = spec.flows.clone();
    let inbox = host.inbox.clone();
    let done = Box::new(move |mut flows: Vec<FlowReport>| {
        for flow in &mut flows {
            say_when(flow, &orders, window_start_ns);
        }
        // The loop may have ended the agent meanwhile.
        let _ = inbox.send(Input::RoundDone(RoundReport {
            stage,
            round,
            flows,
        }));
    });
    let started = match tool {
        Tool::Engine => {
            let running = host.engine.run_round(spec.clone(), done);
            let follow = |running| {
                follow::spawn(spec, running, followed, host.clone(), Arc::clone(cancelled));
            };
            running.map(follow).map_err(|error| error.to_string())
        }
        _ => ew_tools::run_round(host.address, spec, Arc::clone(cancelled), done)
            .map_err(|error| error.to_string()),
    };
    if let Err(reason) = started {
        let report = all_failed(stage, round, &flows, &reason);
        let _ = host.inbox.send(Input::RoundDone(report));
    }
}

/// Puts the window's begin into the end that this host is. A tool's client reports the other end
/// too, whose clock is not this one.
fn say_when(report: &mut FlowReport, orders: &[FlowOrder], window_start_ns: u64) {
    let Some(order) = orders.iter().find(|order| order.flow == report.flow) else {
        return;
    };
    let own = match order.role {
        Role::Send => report.sender.as_mut(),
        Role::Receive => report.receiver.as_mut(),
    };
    if let Some(end) = own {
        end.window_start_ns = Some(window_start_ns);
    }
}

fn all_failed(
    stage: StageIndex,
    round: RoundIndex,
    flows: &[FlowOrder],
    reason: &str,
) -> RoundReport {
    let failed = |order: &FlowOrder| FlowReport {
        flow: order.flow,
        sender: None,
        receiver: None,
        standing: None,
        error: Some(reason.to_owned()),
    };
    RoundReport {
        stage,
        round,
        flows: flows.iter().map(failed).collect(),
    }
}

#[cfg(test)]
mod tests;
