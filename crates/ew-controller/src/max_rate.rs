//! `--max-rate`: what a run may load of its hosts' links.

use ew_model::facts::InterfaceFacts;
use ew_model::inventory::HostId;
use ew_model::plan::{GOODPUT_SHARE, LimitedRound, Plan, RateLimit, Stage};
use ew_model::workload::{Pace, Workload, WorkloadKind};
use std::collections::BTreeMap;

/// How much of a link, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxRate {
    /// Of its line rate, above 0, at most 1.
    Share(f64),
    /// Bits per second on the wire.
    BitsPerSec(f64),
}

impl MaxRate {
    /// The limit of hosts whose line rates are known, bits per second each.
    #[must_use]
    pub fn of_lines(self, lines: &[f64]) -> RateLimit {
        let limit = |line: &f64| match self {
            Self::Share(share) => share * line,
            Self::BitsPerSec(rate) => rate,
        };
        let hosts_bits_per_sec: Vec<f64> = lines.iter().map(limit).collect();
        let lines = (0..).map(HostId).zip(lines.iter().copied()).collect();
        RateLimit {
            of_line_rate: of_line_rate(&hosts_bits_per_sec, &lines),
            hosts_bits_per_sec,
        }
    }
}

/// No network answers sooner.
const SHORTEST_RTT_SECS: f64 = 10e-6;
/// A flow's requests where they are held, at most: no host is busy with them.
const HELD_REQUESTS_PER_SEC: f64 = 10_000.0;
/// Drivers of devices that have no link of their own, and report any speed.
const VIRTUAL: [&str; 5] = ["veth", "tun", "bridge", "macvlan", "ipvlan"];

/// Whether an interface has no link of its own.
pub(crate) fn is_virtual(interface: &InterfaceFacts) -> bool {
    let driver = interface.driver.as_deref();
    driver.is_some_and(|driver| VIRTUAL.contains(&driver))
}

/// Requests in a closed loop are as many as answers come, whatever that loads a slow link with.
/// Where they could exceed the limit they get a rate (open loop) that does not.
pub(crate) fn hold_requests(plan: &mut Plan) {
    let rates: Vec<Option<f64>> = (plan.stages.iter())
        .map(|stage| held_requests(plan, stage))
        .collect();
    for (stage, rate) in plan.stages.iter_mut().zip(rates) {
        if rate.is_some() {
            stage.workload.pace.requests_per_sec = rate;
        }
    }
}

/// Requests per second of a flow; `None` where there are none, or they cannot exceed the limit.
fn held_requests(plan: &Plan, stage: &Stage) -> Option<f64> {
    let workload = &stage.workload;
    let asks = [
        WorkloadKind::TcpRr,
        WorkloadKind::UdpRr,
        WorkloadKind::TcpCrr,
    ];
    if !asks.contains(&workload.kind) || workload.pace != Pace::default() {
        return None;
    }
    let limits = stage.rounds.iter().filter_map(|round| {
        let limited = LimitedRound::new(plan, round)?;
        let asking = round.flows.iter().filter(|flow| !flow.is_aggressor);
        asking
            .map(|flow| limited.goodput_of(flow) / GOODPUT_SHARE)
            .reduce(f64::min)
    });
    let allowed = limits.reduce(f64::min)? / wire_bits(workload);
    let in_flight = f64::from(workload.streams) * f64::from(workload.outstanding.max(1));
    (allowed < in_flight / SHORTEST_RTT_SECS).then(|| allowed.min(HELD_REQUESTS_PER_SEC))
}

/// What a transaction loads a link with, at most, in one direction: its longer message in full
/// segments, as many acknowledgements, and TCP's handshake and end where it has its own connection.
fn wire_bits(workload: &Workload) -> f64 {
    const SEGMENT_BYTES: u64 = 1448;
    const FRAME_BYTES: u64 = 90;
    let message_bytes = workload.message_bytes.max(workload.answer_bytes());
    let handshake = 4 * u64::from(workload.kind == WorkloadKind::TcpCrr);
    let frames = 2 * message_bytes.div_ceil(SEGMENT_BYTES) + handshake;
    8.0 * (message_bytes + FRAME_BYTES * frames) as f64
}

/// Median over hosts. `None` unless every host has a limit and a line rate.
pub(crate) fn of_line_rate(limits: &[f64], lines: &BTreeMap<HostId, f64>) -> Option<f64> {
    let hosts = (0..).map(HostId).zip(limits);
    let shares = hosts.map(|(host, limit)| Some((limit / lines.get(&host)?).min(1.0)));
    let mut shares: Vec<f64> = shares.collect::<Option<_>>()?;
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: WorkloadKind, message_bytes: u64) -> Workload {
        Workload {
            kind,
            message_bytes,
            ..Workload::default()
        }
    }

    #[test]
    fn a_transaction_loads_a_link_with_frames_and_acknowledgements() {
        assert_eq!(
            wire_bits(&workload(WorkloadKind::TcpRr, 64)),
            8.0 * (64.0 + 180.0)
        );
        assert_eq!(
            wire_bits(&workload(WorkloadKind::TcpCrr, 64)),
            8.0 * (64.0 + 540.0)
        );
        let large = wire_bits(&workload(WorkloadKind::TcpRr, 4 * 1448));
        assert_eq!(large, 8.0 * (4.0 * 1448.0 + 8.0 * 90.0));
    }
}
