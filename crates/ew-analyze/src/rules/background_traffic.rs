//! Traffic that is not the run's takes a part of a host's link.

use super::case::Case;
use super::peers::{compared, is_judged, of_stages};
use super::suspect::Suspect;
use crate::finding::{finding_of, plain};
use ew_evidence::criteria::{FULL, MIN_EFFECT, SLOW, TIMES_PEERS};
use ew_fit::Side;
use ew_model::HostId;
use ew_model::facts::HostSample;
use ew_model::finding::details::{BackgroundTraffic, Directions, TrafficOwner, Why};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::telemetry::{CauseCounters, PeerTraffic, ProcessTraffic};

/// Wire bytes of full segments over their payload (1514 over 1448, rounded up).
const HEADERS: f64 = 1.06;
/// Wire bytes of acknowledgements over the payload they acknowledge (66 bytes for every second
/// segment, rounded up).
const ACKNOWLEDGEMENTS: f64 = 0.03;

/// Bytes in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Sent,
    Received,
}

impl From<Direction> for Directions {
    /// As details have it.
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Sent => Self::Tx,
            Direction::Received => Self::Rx,
        }
    }
}

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Why> {
    let sent = suspect.tx.then_some(Direction::Sent);
    let received = suspect.rx.then_some(Direction::Received);
    let mut directions = sent.into_iter().chain(received);
    let others = directions.find_map(|direction| found(case, suspect.host, direction, MIN_EFFECT));
    others.map(Why::BackgroundTraffic)
}

/// Others' traffic on hosts that are not slow for it.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let both = hosts.flat_map(|host| [(host, Direction::Sent), (host, Direction::Received)]);
    both.filter_map(|(host, direction)| standing_apart(case, host, direction))
        .collect()
}

fn standing_apart(case: &Case<'_>, host: HostId, direction: Direction) -> Option<Finding> {
    let side = match direction {
        Direction::Sent => Side::Tx(host),
        Direction::Received => Side::Rx(host),
    };
    if case.network.slow.contains_key(&side) {
        return None;
    }
    // What is left is a full link.
    let others = found(case, host, direction, 1.0 - FULL)?;
    Some(Finding {
        measured: plain(others.link_share, "share"),
        expected: plain(0.0, "share"),
        ..finding_of(
            Severity::Notice,
            Subject::Host { host },
            Cause::BackgroundTraffic,
            Details::BackgroundTraffic(others),
        )
    })
}

/// Background traffic of a host that is an outlier among its peers.
fn found(
    case: &Case<'_>,
    host: HostId,
    direction: Direction,
    min: f64,
) -> Option<BackgroundTraffic> {
    let others = others(case, host, direction)?;
    let min = match others.process {
        Some(_) => min,
        // Headers and acknowledgements are estimated: what has no owner must be plainer.
        None => min.max(1.0 - SLOW),
    };
    if others.link_share < min {
        return None;
    }
    let share = |host| Some(others_share(case, host, direction));
    let stands_out = compared(case, host, share)?.stands_out(min, TIMES_PEERS);
    stands_out.then_some(others)
}

fn others_share(case: &Case<'_>, host: HostId, direction: Direction) -> f64 {
    others(case, host, direction).map_or(0.0, |others| others.link_share)
}

/// What other programs move on a host; where they move little, what nobody is seen to own.
fn others(case: &Case<'_>, host: HostId, direction: Direction) -> Option<BackgroundTraffic> {
    let (first, last) = traffic_ends(case, host)?;
    let (before, after) = (traffic(first)?, traffic(last)?);
    let seconds = traffic_seconds(before, after)?;
    let stages = &case.hosts.get(host.index())?.stages;
    let link = stages.first()?.link_bits_per_sec?;
    let with_rate = |bits_per_sec: f64, process| BackgroundTraffic {
        host,
        direction: direction.into(),
        bits_per_sec,
        link_share: bits_per_sec / link,
        process,
    };
    let grown = |process: &ProcessTraffic| grown(before, process, direction);
    let others = after
        .traffic
        .iter()
        .filter(|process| is_others(case, process));
    let others: Vec<(&ProcessTraffic, f64)> = others.map(|p| (p, grown(p))).collect();
    let visible: f64 = others.iter().map(|(_, bytes)| bytes).sum();
    let busiest = others.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let owned =
        busiest.map(|(busiest, _)| with_rate(visible * 8.0 / seconds, Some(owner(busiest))));
    match owned.filter(|owned| owned.link_share >= MIN_EFFECT) {
        Some(owned) => Some(owned),
        None => Some(with_rate(
            unowned_bits_per_sec(case, host, direction)?,
            None,
        )),
    }
}

/// The readings of traffic next to the capacity tests; where their rounds are so far apart that
/// none lies under load, those of the whole run: others do not wait for the rounds.
fn traffic_ends<'c>(case: &Case<'c>, host: HostId) -> Option<(&'c HostSample, &'c HostSample)> {
    let has_traffic = |sample: &&HostSample| traffic(sample).is_some();
    if let Some(cover) = case.telemetry.cover(host, |stage| is_judged(case, stage)) {
        return cover.ends(|sample| has_traffic(&sample));
    }
    let mut readings = case.telemetry.samples(host).iter().filter(has_traffic);
    readings.next().zip(readings.next_back())
}

fn owner(process: &ProcessTraffic) -> TrafficOwner {
    TrafficOwner {
        pid: process.pid,
        command: process.command.clone(),
        peer: process.peers.first().map(|peer| peer.address),
    }
}

/// Sockets without an owner towards hosts of the run are the run's own, closed before their owner
/// was seen.
fn is_others(case: &Case<'_>, process: &ProcessTraffic) -> bool {
    let hosts = &case.observations.inventory().hosts;
    let in_run = |peer: &PeerTraffic| hosts.iter().any(|host| host.address == Some(peer.address));
    let is_leftover = process.pid.is_none() && process.peers.first().is_some_and(in_run);
    !process.is_ours && !is_leftover
}

fn traffic(sample: &HostSample) -> Option<&CauseCounters> {
    sample
        .causes
        .as_deref()
        .filter(|causes| causes.traffic_ns.is_some())
}

fn traffic_seconds(before: &CauseCounters, after: &CauseCounters) -> Option<f64> {
    let ns = after.traffic_ns?.checked_sub(before.traffic_ns?)?;
    (ns > 0).then_some(ns as f64 / 1e9)
}

/// What a process moved since the earlier reading; it was not there yet when it is not in it.
fn grown(before: &CauseCounters, process: &ProcessTraffic, direction: Direction) -> f64 {
    let bytes = |process: &ProcessTraffic| match direction {
        Direction::Sent => process.sent_bytes,
        Direction::Received => process.received_bytes,
    };
    let mut known = before.traffic.iter();
    let known = known.find(|p| (p.pid, &p.command) == (process.pid, &process.command));
    bytes(process).saturating_sub(known.map_or(0, bytes)) as f64
}

/// What the data interface carries beyond the run's flows, their headers and acknowledgements: UDP,
/// other namespaces, the kernel's own. The flows' rates are those of the fullest round's window,
/// the interface's those of all rounds and gaps, so it is never too much.
fn unowned_bits_per_sec(case: &Case<'_>, host: HostId, direction: Direction) -> Option<f64> {
    of_stages(case, host, |stage| {
        let sent = stage.max_sent_bits_per_sec.unwrap_or(0.0);
        let received = stage.max_received_bits_per_sec.unwrap_or(0.0);
        let (wire, same, other) = match direction {
            Direction::Sent => (stage.tx_bits_per_sec?, sent, received),
            Direction::Received => (stage.rx_bits_per_sec?, received, sent),
        };
        Some((wire - HEADERS * same - ACKNOWLEDGEMENTS * other).max(0.0))
    })
}
