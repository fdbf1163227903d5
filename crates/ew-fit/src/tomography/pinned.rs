//! Connections whose source ports are pinned, over all rounds of a stage that loads all paths in
//! part: how fast each is, and what it loses.

use super::common_loss::{Losses, Moment};
use super::connections::{Fed, Key, PACE, Seen};
use super::loads::Loads;
use super::traces::Traces;
use crate::ANYTHING;
use ew_evidence::criteria::{LOSSY_UNLOADED, SLOW, TIMES_TYPICAL};
use ew_model::Inventory;
use ew_model::inventory::RackId;
use ew_stats::{median, poisson_at_least, quantile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Rounds in which a 5-tuple must have been measured to be bad in every one.
const MIN_ROUNDS: usize = 2;

/// One pinned connection over all its rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Connection {
    pub(super) of_pace: Vec<f64>,
    pub(super) retransmitted: Vec<f64>,
    /// Segments sent, and of them retransmitted, over all rounds.
    pub(super) segments: f64,
    pub(super) lost: f64,
    /// The most that its path was asked for in one of them: out of its rack, and into the other.
    pub(super) asked: Option<[f64; 2]>,
    /// Those whose ends had CPU, and of them those in which it is bad.
    rounds: usize,
    bad_rounds: usize,
    /// Those in which something is lost, and of them those whose ends had next to no CPU.
    losing_rounds: usize,
    starved_losses: usize,
}

/// What makes a connection bad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Badness {
    /// Slow or lossy in every round: what remains hardly happens by chance.
    EveryRound,
    /// Slow in the mean, or more lost over all rounds than by chance where so large a share of
    /// segments is typical. What happens to good ones too must be compared with others.
    Pooled(f64),
}

impl Connection {
    fn take(&mut self, seen: &Seen, pace: f64, asked: Option<[f64; 2]>) {
        if let Some(asked) = asked {
            let known = self.asked.get_or_insert(asked);
            *known = [known[0].max(asked[0]), known[1].max(asked[1])];
        }
        self.of_pace.push(seen.rate / pace);
        self.retransmitted.push(seen.loss());
        self.segments += seen.segments;
        self.lost += seen.lost;
        self.losing_rounds += usize::from(seen.lost > 0.0);
    }

    /// Whether it was measured in enough rounds.
    pub(super) fn is_known(&self, badness: Badness) -> bool {
        match badness {
            Badness::EveryRound => self.rounds >= MIN_ROUNDS,
            Badness::Pooled(_) => !self.of_pace.is_empty(),
        }
    }

    pub(super) fn is_bad(&self, badness: Badness) -> bool {
        match badness {
            Badness::EveryRound => self.bad_rounds == self.rounds,
            Badness::Pooled(typical) => {
                let rounds = self.of_pace.len().max(1) as f64;
                let pace = self.of_pace.iter().sum::<f64>() / rounds;
                pace < SLOW || self.loses_more_than(typical) && !self.may_have_lost_nothing()
            }
        }
    }

    /// Than the share that is lost of all, and not by chance.
    pub(super) fn loses_more_than(&self, share: f64) -> bool {
        poisson_at_least(self.lost as usize, share * self.segments) < ANYTHING
    }

    /// Where ends wait for a CPU, acknowledgements may come so late that senders repeat what was
    /// not lost: a few segments, now and then.
    fn may_have_lost_nothing(&self) -> bool {
        self.losing_rounds == 1 && self.starved_losses == 1
    }

    pub(super) fn loss(&self) -> f64 {
        self.lost / self.segments.max(1.0)
    }
}

/// What is seen of a stage that loads all paths in part.
pub(super) struct PathRounds<'a> {
    inventory: &'a Inventory,
    traces: &'a Traces,
    loads: &'a Loads<'a>,
    connections: BTreeMap<Key, Connection>,
    /// What is lost over each router towards each rack.
    ways: BTreeMap<(IpAddr, RackId), Losses>,
}

impl<'a> PathRounds<'a> {
    pub(super) fn new(inventory: &'a Inventory, traces: &'a Traces, loads: &'a Loads<'a>) -> Self {
        Self {
            inventory,
            traces,
            loads,
            connections: BTreeMap::new(),
            ways: BTreeMap::new(),
        }
    }

    /// The connections of a round, each against the better ones of its own flow, which are as fast
    /// as the flow's pace lets them be. Those whose path is full show nothing.
    pub(super) fn take(&mut self, moment: Moment, flows: &[Fed<'_>]) {
        let all = flows.iter().flat_map(|flow| &flow.connections);
        let losses: Vec<f64> = all.map(Seen::loss).collect();
        let lossy = LOSSY_UNLOADED.max(TIMES_TYPICAL * median(&losses).unwrap_or(0.0));
        for flow in flows {
            let Some(pace) = shown_pace(&flow.connections) else {
                continue;
            };
            let shown = flow.connections.iter();
            for seen in shown.filter(|seen| !self.loads.is_full(moment, &seen.key)) {
                if let Some(way) = self.way(&seen.key) {
                    let losses = self.ways.entry(way).or_default();
                    losses.take(moment, std::slice::from_ref(seen));
                }
                let asked = self.loads.asked_of_path(moment, &seen.key);
                let connection = self.connections.entry(seen.key).or_default();
                let is_bad = seen.rate < SLOW * pace || seen.loss() > lossy;
                connection.take(seen, pace, asked);
                match flow.is_starved {
                    true => connection.starved_losses += usize::from(seen.lost > 0.0),
                    false => {
                        connection.rounds += 1;
                        connection.bad_rounds += usize::from(is_bad);
                    }
                }
            }
        }
    }

    /// Without what is lost at once over a router towards a rack: that has been full for a moment,
    /// as bursts of well loaded paths, or of ends that waited for a CPU, make it.
    pub(super) fn connections(mut self) -> BTreeMap<Key, Connection> {
        let at_once = self.ways.iter().filter(|(_, losses)| losses.come_at_once());
        let was_full: BTreeSet<(IpAddr, RackId)> = at_once.map(|(way, _)| *way).collect();
        let mut connections = std::mem::take(&mut self.connections);
        for (key, connection) in &mut connections {
            if self.way(key).is_some_and(|way| was_full.contains(&way)) {
                connection.lost = 0.0;
            }
        }
        connections
    }

    /// The router, and the rack that receives.
    fn way(&self, key: &Key) -> Option<(IpAddr, RackId)> {
        self.traces.via(key).zip(self.inventory.rack_of(key.dst))
    }
}

/// Bytes per nanosecond of a flow's better connections. `None` where they sent so few segments that
/// those which the window's edges take, up to one at either end, make a connection slow.
fn shown_pace(flow: &[Seen]) -> Option<f64> {
    const MIN_SEGMENTS: f64 = 2.0 / (1.0 - SLOW);
    let middle = |figure: fn(&Seen) -> f64| {
        let figures: Vec<f64> = flow.iter().map(figure).collect();
        quantile(&figures, PACE)
    };
    let pace = middle(|seen| seen.rate).filter(|pace| *pace > 0.0)?;
    (middle(|seen| seen.segments)? >= MIN_SEGMENTS).then_some(pace)
}

/// Share of segments that is typically retransmitted: by all but the worst quarter of the
/// connections, or over the router in the middle, the better of two, since of two paths one may be
/// bad in every rack. A bad path's own losses make both too high, so the lower one counts.
pub(super) fn typical_loss(connections: &BTreeMap<Key, Connection>, traces: &Traces) -> f64 {
    let mut routers: BTreeMap<IpAddr, Vec<&Connection>> = BTreeMap::new();
    for (key, connection) in connections {
        if let Some(via) = traces.via(key) {
            routers.entry(via).or_default().push(connection);
        }
    }
    let mut shares: Vec<f64> = routers.values().map(|all| loss_of(all)).collect();
    shares.sort_by(f64::total_cmp);
    let middle = shares.get(shares.len().saturating_sub(1) / 2);
    let mut all: Vec<&Connection> = connections.values().collect();
    all.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
    all.truncate(all.len() - all.len() / 4);
    middle.map_or(1.0, |share| *share).min(loss_of(&all))
}

fn loss_of(connections: &[&Connection]) -> f64 {
    let sum = |figure: fn(&Connection) -> f64| connections.iter().map(|one| figure(one)).sum();
    let (lost, segments): (f64, f64) = (sum(|one| one.lost), sum(|one| one.segments));
    lost / segments.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ew_model::HostId;

    fn connections(lost: &[f64]) -> BTreeMap<Key, Connection> {
        let connection = |lost: &f64| Connection {
            of_pace: vec![1.0, 1.0],
            segments: 1000.0,
            lost: *lost,
            ..Connection::default()
        };
        let key = |port| Key {
            src: HostId(0),
            dst: HostId(1),
            ports: (port, 5201),
        };
        (0..).map(key).zip(lost.iter().map(connection)).collect()
    }

    #[test]
    fn what_everybody_loses_makes_nobody_bad() {
        let even = connections(&[4.0, 5.0, 6.0, 5.0, 3.0, 7.0, 5.0, 4.0]);
        let typical = typical_loss(&even, &Traces::default());
        assert!((0.004..0.0055).contains(&typical), "{typical}");
        assert!(
            even.values()
                .all(|one| !one.is_bad(Badness::Pooled(typical)))
        );
        let uneven = connections(&[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 9.0, 0.0]);
        let typical = typical_loss(&uneven, &Traces::default());
        let bad: Vec<bool> = uneven
            .values()
            .map(|one| one.is_bad(Badness::Pooled(typical)))
            .collect();
        assert!(bad[6] && !bad[2], "{bad:?}");
    }

    #[test]
    fn what_sent_few_segments_shows_no_pace() {
        let flow = |segments: f64| -> Vec<Seen> {
            let seen = |port| Seen {
                key: Key {
                    src: HostId(0),
                    dst: HostId(1),
                    ports: (port, 5201),
                },
                rate: 1e-3,
                segments,
                lost: 0.0,
            };
            (0..8).map(seen).collect()
        };
        assert_eq!(shown_pace(&flow(8.0)), None);
        assert_eq!(shown_pace(&flow(30.0)), Some(1e-3));
    }
}
