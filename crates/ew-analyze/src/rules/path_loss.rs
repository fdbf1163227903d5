//! Packets are lost on a host's link, or on the way between racks.

use super::peers::{lone_flows, percent};
use super::why::{Reason, Suspect};
use super::{Case, evidence};
use crate::basis::data_interface;
use crate::capacity::Side;
use crate::losses::{common_rack, loss_of};
use crate::solo::rack_pair;
use crate::stats::median;
use crate::telemetry::Cover;
use crate::words::{count, plain};
use ew_model::HostId;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
use ew_model::record::FlowRecord;

const HOST_HINT: &str = "look at `ethtool -S` (crc, symbol and fifo errors) and `tc -s qdisc` on the host and at the error counters of its \
                         switch port; then change transceiver and cable";
const PATH_HINT: &str = "look at error and discard counters of the uplinks' ports on both sides, member by member; then at their \
                         transceivers and cables";

pub(super) fn explain(case: &Case<'_>, suspect: &Suspect) -> Option<Reason> {
    let host = suspect.host;
    let (tx, rx) = (
        side_loss(case, Side::Tx(host)),
        side_loss(case, Side::Rx(host)),
    );
    let asked = [tx.filter(|_| suspect.tx), rx.filter(|_| suspect.rx)];
    asked.into_iter().flatten().next()?;
    Some(Reason {
        cause: Cause::Loss,
        because: format!("{} lost on its link", shares(tx, rx)),
        evidence: proofs(case, host, tx, rx),
        hint: HOST_HINT.into(),
        confidence: 0.9,
    })
}

/// Lossy links of hosts that are not slow for it, and lossy paths between racks.
pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let hosts = hosts.filter_map(|host| on_host(case, host));
    hosts.chain(between_racks(case)).collect()
}

fn side_loss(case: &Case<'_>, side: Side) -> Option<f64> {
    case.losses.sides.get(&side).copied()
}

fn on_host(case: &Case<'_>, host: HostId) -> Option<Finding> {
    let slow = &case.network.fit.slow;
    if slow.contains_key(&Side::Tx(host)) || slow.contains_key(&Side::Rx(host)) {
        return None;
    }
    let (tx, rx) = (
        side_loss(case, Side::Tx(host)),
        side_loss(case, Side::Rx(host)),
    );
    let worst = [tx, rx].into_iter().flatten().max_by(f64::total_cmp)?;
    let name = case.observations.inventory().name(host);
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host },
        cause: Cause::Loss,
        symptom: None,
        sentence: format!(
            "{name}'s link loses packets: {} lost, where {} is usual here",
            shares(tx, rx),
            percent(case.losses.usual)
        ),
        measured: Some(plain(worst, "share")),
        expected: Some(plain(case.losses.usual, "share")),
        confidence: 0.9,
        evidence: proofs(case, host, tx, rx),
        hint: HOST_HINT.into(),
    })
}

/// "3.1 % of the segments it sends and 2.9 % of those it receives are".
fn shares(tx: Option<f64>, rx: Option<f64>) -> String {
    match (tx, rx) {
        (Some(tx), Some(rx)) => format!(
            "{} of the segments it sends and {} of those sent to it are",
            percent(tx),
            percent(rx)
        ),
        (Some(tx), None) => format!("{} of the segments it sends are", percent(tx)),
        (None, Some(rx)) => format!("{} of the segments sent to it are", percent(rx)),
        (None, None) => String::new(),
    }
}

fn proofs(case: &Case<'_>, host: HostId, tx: Option<f64>, rx: Option<f64>) -> Vec<Evidence> {
    let name = case.observations.inventory().name(host);
    let usual = percent(case.losses.usual);
    let side = |column: &str, loss: Option<f64>| {
        Some(evidence(
            format!(
                "lone flows with {column} {name}: {} of the segments sent again in the median over partners, {usual} usual here",
                percent(loss?)
            ),
            format!(
                "flows.parquet: {column} = {name}, retransmits against tx_bytes over send_mss_bytes"
            ),
        ))
    };
    let counted = counted_at(case, host);
    [side("src", tx), side("dst", rx), counted]
        .into_iter()
        .flatten()
        .collect()
}

/// What the host's own counters saw of it: errors and drops of its interface and queueing disciplines.
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

/// All lossy paths are told in one finding: what they have in common is where to look.
fn between_racks(case: &Case<'_>) -> Option<Finding> {
    let paths = &case.losses.racks;
    let ((from, to), _) = paths.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let inventory = case.observations.inventory();
    let shares: Vec<f64> = paths.values().copied().collect();
    let loss = median(&shares)?;
    let two = paths
        .keys()
        .all(|(a, b)| (a, b) == (from, to) || (a, b) == (to, from));
    let where_ = match common_rack(paths) {
        Some(rack) => format!("between {} and every other rack", inventory.rack_name(rack)),
        None if two => format!(
            "between {} and {}",
            inventory.rack_name(*from.min(to)),
            inventory.rack_name(*from.max(to))
        ),
        None => format!(
            "on {}",
            count(paths.len(), "path between racks").replace("rackss", "racks")
        ),
    };
    Some(Finding {
        severity: Severity::Fault,
        subject: if two {
            Subject::RackPair {
                from: *from,
                to: *to,
            }
        } else {
            Subject::Run
        },
        cause: Cause::Loss,
        symptom: None,
        sentence: format!(
            "{} of the segments {where_} are lost, where {} is usual here",
            percent(loss),
            percent(case.losses.usual)
        ),
        measured: Some(plain(loss, "share")),
        expected: Some(plain(case.losses.usual, "share")),
        confidence: 0.9,
        evidence: paths
            .keys()
            .take(6)
            .filter_map(|path| on_path(case, *path))
            .collect(),
        hint: PATH_HINT.into(),
    })
}

fn on_path(case: &Case<'_>, path: (ew_model::RackId, ew_model::RackId)) -> Option<Evidence> {
    let inventory = case.observations.inventory();
    let is_on = |row: &&FlowRecord| rack_pair(inventory, row.src, row.dst) == Some(path);
    let losses: Vec<f64> = lone_flows(case).filter(is_on).filter_map(loss_of).collect();
    let (from, to) = (inventory.rack_name(path.0), inventory.rack_name(path.1));
    Some(evidence(
        format!(
            "{from} to {to}: {} of the segments sent again in the median of {}; what they carry together has no ceiling that they share",
            percent(median(&losses)?),
            count(losses.len(), "flow")
        ),
        format!(
            "flows.parquet: src_rack = {from}, dst_rack = {to}, retransmits against tx_bytes over send_mss_bytes"
        ),
    ))
}
