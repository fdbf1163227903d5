//! A host's figures next to its peers': without peers nothing is an outlier.

use super::case::Case;
use ew_model::HostId;
use ew_model::analysis::HostStageAnalysis;
use ew_model::finding::details::OwnAndPeers;
use ew_model::record::{EndRecord, FlowRecord};
use ew_stats::{median, quantile};

/// A host's figure and the median of its peers'.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    pub(super) own: f64,
    /// `None` where no other host has the figure.
    pub(super) peers: Option<f64>,
}

impl Compared {
    /// Whether it is at least `least`, and `times` its peers'. Without peers the first must do.
    pub(super) fn stands_out(&self, min: f64, times: f64) -> bool {
        self.own >= min && self.peers.is_none_or(|peers| self.own >= times * peers)
    }

    /// Whether it is at least `least`, and `more` than its peers'.
    pub(super) fn exceeds(&self, min: f64, more: f64) -> bool {
        self.own >= min && self.peers.is_none_or(|peers| self.own >= more + peers)
    }
}

impl From<Compared> for OwnAndPeers {
    /// As details have it.
    fn from(Compared { own, peers }: Compared) -> Self {
        Self { own, peers }
    }
}

/// Peers are the hosts that are slow on no side.
fn is_peer(case: &Case<'_>, host: HostId) -> bool {
    !case.network.is_slow(host)
}

/// A figure of a host and of its peers.
pub(super) fn compared(
    case: &Case<'_>,
    host: HostId,
    figure: impl Fn(HostId) -> Option<f64>,
) -> Option<Compared> {
    let peers = case.observations.inventory().host_ids();
    let peers: Vec<f64> = peers
        .filter(|peer| *peer != host && is_peer(case, *peer))
        .filter_map(&figure)
        .collect();
    Some(Compared {
        own: figure(host)?,
        peers: median(&peers),
    })
}

/// A figure of a host's counters: median over the capacity tests.
pub(super) fn of_stages(
    case: &Case<'_>,
    host: HostId,
    figure: impl Fn(&HostStageAnalysis) -> Option<f64>,
) -> Option<f64> {
    let stages = &case.hosts.get(host.index())?.stages;
    let judged = stages
        .iter()
        .filter(|stage| is_judged(case, stage.stage as usize));
    median(&judged.filter_map(figure).collect::<Vec<_>>())
}

/// Whether a stage's rates are compared with anything.
pub(super) fn is_judged(case: &Case<'_>, stage: usize) -> bool {
    case.observations
        .stages
        .get(stage)
        .is_some_and(|view| view.judged)
}

/// A figure of the flows that are alone at both ends: those with the host on the given sides,
/// median, against those that touch no slow host.
pub(super) fn of_isolated_flows(
    case: &Case<'_>,
    (host, tx, rx): (HostId, bool, bool),
    figure: impl Fn(&FlowRecord) -> Option<f64>,
) -> Option<Compared> {
    let (mut own, mut peers) = (Vec::new(), Vec::new());
    for row in &case.isolated_flows.all {
        let Some(value) = figure(row) else { continue };
        if (tx && row.src == host) || (rx && row.dst == host) {
            own.push(value);
        } else if ![row.src, row.dst].contains(&host)
            && is_peer(case, row.src)
            && is_peer(case, row.dst)
        {
            peers.push(value);
        }
    }
    Some(Compared {
        own: median(&own)?,
        peers: median(&peers),
    })
}

/// A figure of a host's own ends of isolated flows, at a quantile of them.
pub(super) fn of_own_ends(
    case: &Case<'_>,
    host: HostId,
    at: f64,
    figure: impl Fn(&EndRecord) -> Option<f64>,
) -> Option<f64> {
    let own = case.isolated_flows.ends.get(host.index())?.iter();
    let own = own.filter_map(|(_, end)| figure(end));
    quantile(&own.collect::<Vec<_>>(), at)
}
