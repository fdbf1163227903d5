//! Packets are lost on a host's link, or on the way between racks.

use super::peers::percent;
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use crate::basis::data_interface;
use crate::fit::{RackDirection, Side, is_scattered};
use crate::precision::confidence;
use crate::stats::median;
use crate::telemetry::Cover;
use crate::words::{count, plain};
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Worded};
use ew_model::{HostId, RackId};
use std::collections::BTreeMap;

const HOST_HINT: &str = "look at `ethtool -S` (crc, symbol and fifo errors) and `tc -s qdisc` on the host and at the error counters of its \
                         switch port; then change transceiver and cable";
const PATH_HINT: &str = "look at error and discard counters of the uplinks' ports on both sides, member by member; then at their \
                         transceivers and cables";

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    let host = suspect.host;
    let tx = side_loss(case, Side::Tx(host)).filter(|_| suspect.tx);
    let rx = side_loss(case, Side::Rx(host)).filter(|_| suspect.rx);
    tx.or(rx)?;
    Some(Reason {
        cause: Cause::Loss,
        because: format!("random loss on its link, {}", shares(tx, rx)),
        evidence: proofs(case, host, tx, rx),
        hint: HOST_HINT.into(),
    })
}

/// Racks whose uplinks lose packets at random.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let racks = (0..).map(RackId).zip(&case.network.racks);
    racks
        .filter_map(|(rack, directions)| of_rack(case, rack, directions))
        .collect()
}

/// Share of segments retransmitted that may be why a host is slow ...
const LOSSY_AND_SLOW: f64 = 0.002;
/// ... if it is this many times what isolated flows retransmit.
const TIMES_USUAL: f64 = 4.0;
/// A side needs this many peers before its losses are distinguished from theirs.
const LEAST_PEERS: usize = 2;

/// Median over peers of the share of segments retransmitted, where it stands out, and the share of
/// flows that are steady.
fn stands_out(case: &Case<'_>, side: Side, least: f64) -> Option<(f64, f64)> {
    let mut of_peers: BTreeMap<HostId, Vec<f64>> = BTreeMap::new();
    let (mut flows, mut steady) = (0.0, 0.0);
    // Cross-rack, queues of the fabric lose, too.
    let intra = case.network.isolated.iter().filter(|flow| !flow.crosses);
    for flow in intra.filter(|flow| flow.is_of(side)) {
        let peer = if matches!(side, Side::Tx(_)) {
            flow.dst
        } else {
            flow.src
        };
        of_peers
            .entry(peer)
            .or_default()
            .extend(flow.retransmitted_share);
        flows += 1.0;
        steady += f64::from(u8::from(flow.is_steady));
    }
    let shares: Vec<f64> = of_peers
        .values()
        .filter_map(|shares| median(shares))
        .collect();
    let share = median(&shares).filter(|_| shares.len() >= LEAST_PEERS)?;
    (share > least.max(TIMES_USUAL * case.network.typical_loss)).then_some((share, steady / flows))
}

/// A slow side that loses at random: a full one loses, too, but its rate is steady.
fn side_loss(case: &Case<'_>, side: Side) -> Option<f64> {
    let slow = case.network.slow.get(&side)?;
    let (share, steady) = stands_out(case, side, LOSSY_AND_SLOW)?;
    let own = case.network.isolated.iter().filter(|flow| flow.is_of(side));
    let rates: Vec<f64> = own.map(|flow| flow.bits_per_sec).collect();
    (slow.lossy || steady < 0.5 && is_scattered(&rates)).then_some(share)
}

/// "3.1% of TX segments retransmitted, 2.9% of RX".
fn shares(tx: Option<f64>, rx: Option<f64>) -> String {
    match (tx, rx) {
        (Some(tx), Some(rx)) => format!(
            "{} of TX and {} of RX segments retransmitted",
            percent(tx),
            percent(rx)
        ),
        (Some(tx), None) => format!("{} of TX segments retransmitted", percent(tx)),
        (None, Some(rx)) => format!("{} of RX segments retransmitted", percent(rx)),
        (None, None) => String::new(),
    }
}

fn proofs(case: &Case<'_>, host: HostId, tx: Option<f64>, rx: Option<f64>) -> Vec<Evidence> {
    let name = case.observations.inventory().name(host);
    let typical = percent(case.network.typical_loss);
    let side = |(column, word): (&str, &str), loss: Option<f64>| {
        Some(evidence(
            format!(
                "isolated flows {word} {name}: median {} of segments retransmitted (typical {typical})",
                percent(loss?)
            ),
            format!(
                "flows.parquet: {column} = {name}, retransmits against tx_bytes over send_mss_bytes"
            ),
        ))
    };
    let counted = counted_at(case, host);
    [side(("src", "from"), tx), side(("dst", "to"), rx), counted]
        .into_iter()
        .flatten()
        .collect()
}

fn of_rack(case: &Case<'_>, rack: RackId, [out, into]: &[RackDirection; 2]) -> Option<Finding> {
    let direction = match (out.loss_left, into.loss_left) {
        (Some(_), Some(_)) => "in both directions",
        (Some(_), None) => "TX",
        (None, Some(_)) => "RX",
        (None, None) => return None,
    };
    let inventory = case.observations.inventory();
    let name = inventory.rack_name(rack);
    let is_on = |host: HostId| inventory.rack_of(host) == Some(rack);
    let isolated = case
        .network
        .isolated
        .iter()
        .filter(|flow| flow.crosses && (is_on(flow.src) || is_on(flow.dst)));
    let shares: Vec<f64> = isolated
        .filter_map(|flow| flow.retransmitted_share)
        .collect();
    let share = median(&shares)?;
    let typical = percent(case.network.typical_loss);
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Rack { rack },
        cause: Cause::Loss,
        symptom: None,
        measured: Some(plain(share, "share")),
        expected: Some(plain(case.network.typical_loss, "share")),
        confidence: confidence(Cause::Loss),
        details: Worded::details(
            format!(
                "{name}: random loss on its uplinks {direction}, {} of segments retransmitted (typical {typical})",
                percent(share)
            ),
            vec![evidence(
                format!(
                    "{name}: median {} of segments retransmitted by {} that fill nothing",
                    percent(share),
                    count(shares.len(), "isolated flow")
                ),
                format!(
                    "flows.parquet: src_rack or dst_rack = {name}, retransmits against tx_bytes over send_mss_bytes"
                ),
            )],
            PATH_HINT.into(),
        ),
        cables: Vec::new(),
    })
}

/// What the host's own counters saw of it: errors and drops of its interface and queueing
/// disciplines.
fn counted_at(case: &Case<'_>, host: HostId) -> Option<Evidence> {
    let interface = data_interface(case.observations.run, host)?.name.as_str();
    let cover = case.telemetry.cover(host, |_| true)?;
    let errors = interface_errors(&cover, interface);
    let qdiscs = cover.grown_by_key(None, |sample| {
        let qdiscs = sample.causes.iter().flat_map(|causes| &causes.qdiscs);
        let own = qdiscs.filter(|qdisc| qdisc.interface == interface);
        own.map(|qdisc| ((qdisc.kind.as_str(), qdisc.handle), u64::from(qdisc.drops)))
            .collect()
    });
    let drops: f64 = qdiscs.values().sum();
    let name = case.observations.inventory().name(host);
    (errors + drops >= 1.0).then(|| {
        evidence(
            format!(
                "{name}: its own {interface} counted {} and {} of its queues meanwhile",
                count(errors as usize, "error"),
                count(drops as usize, "drop"),
            ),
            format!("hosts.parquet: host = {name}, rx_errors and tx_errors; counters.parquet: source = qdisc, drops"),
        )
    })
}

fn interface_errors(cover: &Cover<'_>, interface: &str) -> f64 {
    let errors = cover.grown(|sample| {
        let found = sample.interfaces.iter().find(|i| i.name == interface)?;
        Some(found.rx_errors + found.tx_errors)
    });
    errors.unwrap_or(0.0)
}
