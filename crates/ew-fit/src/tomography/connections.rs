//! Connections: their name, as seen in a round, and as judged over all rounds.

use ew_evidence::criteria::{FULL, SLOW};
use ew_evidence::observations::{RoundView, StageView};
use ew_evidence::quality::{LITTLE_STARVATION, starvation};
use ew_model::HostId;
use ew_model::record::FlowRecord;
use ew_model::run::Run;
use ew_model::workload::Workload;
use ew_stats::quantile;
use std::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) src: HostId,
    pub(crate) dst: HostId,
    /// Source and destination port of the opening end.
    pub(crate) ports: (u16, u16),
}

/// A judged connection.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) racks: (usize, usize),
    /// The router at which its path parts from others.
    pub(super) via: Option<IpAddr>,
    pub(super) is_bad: bool,
    pub(super) of_pace: f64,
    pub(super) retransmitted: f64,
    /// Segments sent, and of them retransmitted, in the rounds it is judged by. 0 where these show
    /// nothing of what a path loses.
    pub(super) segments: f64,
    pub(super) lost: f64,
    /// What its path was asked for: out of its rack, and into the other. `None` where that is not
    /// known, or the same for all it is compared with.
    pub(super) asked: Option<[f64; 2]>,
}

impl Judged {
    /// Else what is bad about it is what it loses.
    pub(super) fn is_slow(&self) -> bool {
        self.of_pace < SLOW
    }
}

/// The flow's connections at this quantile keep the pace.
pub(crate) const PACE: f64 = 0.75;

/// A connection in one round.
pub(crate) struct Seen {
    pub(crate) key: Key,
    /// Bytes per nanosecond.
    pub(crate) rate: f64,
    pub(crate) segments: f64,
    /// Retransmitted.
    pub(crate) lost: f64,
}

impl Seen {
    pub(super) fn bits_per_sec(&self) -> f64 {
        8e9 * self.rate
    }

    /// Share of segments retransmitted.
    pub(super) fn loss(&self) -> f64 {
        self.lost / self.segments
    }
}

/// Every connection of a flow.
pub(crate) fn connections_of(row: &FlowRecord) -> Vec<Seen> {
    let (Some(sender), Some(receiver)) = (&row.sender, &row.receiver) else {
        return Vec::new();
    };
    let streams = sender.streams.iter().filter_map(|sent| {
        let mut received = receiver.streams.iter();
        let received =
            received.find(|r| (r.local_port, r.peer_port) == (sent.peer_port, sent.local_port))?;
        let rate = received.bytes as f64 / receiver.window_ns.max(1) as f64;
        let mss = sent
            .tcp_info
            .map_or(1448, |info| info.send_mss_bytes.max(1));
        let segments = (sent.bytes as f64 / f64::from(mss)).max(1.0);
        let key = Key {
            src: row.src,
            dst: row.dst,
            ports: (sent.local_port, sent.peer_port),
        };
        Some(Seen {
            key,
            rate,
            segments,
            lost: sent.lost_segments().unwrap_or(0) as f64,
        })
    });
    streams.collect()
}

/// Half of what the hosts can carry, or less: nothing is full by chance, nor for a moment.
pub(crate) fn is_light(workload: &Workload) -> bool {
    let load = workload.pace.measured_share;
    load.is_some_and(|load| load <= 0.5)
}

/// A flow of a paced round whose ends had the CPU that they needed, or caught up.
pub(crate) struct Fed<'o> {
    pub(crate) row: &'o FlowRecord,
    pub(crate) connections: Vec<Seen>,
    /// Whether next to no CPU was left to it.
    pub(crate) is_starved: bool,
}

/// The flows of a paced round whose ends had the CPU that they needed, and of those that waited for
/// it the ones that kept their pace all the same.
pub(crate) fn with_cpu<'o>(
    run: &'o Run,
    stage: &'o StageView<'_>,
    round: &'o RoundView<'_>,
) -> impl Iterator<Item = Fed<'o>> {
    let rows = round.records.iter().zip(starvation(round));
    rows.filter_map(move |(row, starved)| {
        let flow = Fed {
            row,
            connections: connections_of(row),
            is_starved: starved > FULL,
        };
        let is_fed = starved < LITTLE_STARVATION || keeps_pace(run, stage, &flow);
        is_fed.then_some(flow)
    })
}

/// Whether a flow's better connections keep its pace: threads that waited for a CPU catch up where
/// a flow is paced. At half load what comes late and at once fills no path; at more it may.
fn keeps_pace(run: &Run, stage: &StageView<'_>, flow: &Fed<'_>) -> bool {
    let workload = &stage.stage.workload;
    let rates: Vec<f64> = flow.connections.iter().map(Seen::bits_per_sec).collect();
    let paced = run.plan.pace_between(workload, flow.row.src, flow.row.dst);
    let kept = quantile(&rates, PACE).zip(paced);
    is_light(workload) && kept.is_some_and(|(rate, pace)| rate * rates.len() as f64 >= FULL * pace)
}
