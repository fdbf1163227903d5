//! A host sends or receives slower than its peers.

use super::{Case, evidence, link_speed};
use crate::capacity::{Side, SlowSide};
use crate::stats::{confidence, log_half_width};
use crate::words::{plain, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;
use std::collections::BTreeMap;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let Some(typical) = case.network.fit.typical else {
        return Vec::new();
    };
    case.observations
        .inventory()
        .host_ids()
        .filter(|host| !link_speed::explains(case, *host))
        .filter_map(|host| finding(case, host, &typical))
        .collect()
}

fn finding(case: &Case<'_>, host: HostId, typical: &Estimate) -> Option<Finding> {
    let slow = &case.network.fit.slow;
    let tx = slow.get(&Side::Tx(host));
    let rx = slow.get(&Side::Rx(host));
    let worse = match (tx, rx) {
        (Some(tx), Some(rx)) if rx.rate.value < tx.rate.value => rx,
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => return None,
    };
    let name = case.observations.inventory().name(host);
    let (cause, sentence) = words(name, tx, rx, typical)?;
    let effect = (worse.rate.value.max(1.0) / typical.value).ln();
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host },
        cause,
        sentence,
        measured: Some(quantity(&worse.rate, "bits_per_sec")),
        expected: Some(quantity(typical, "bits_per_sec")),
        confidence: confidence(effect, log_half_width(&worse.rate, 0.1)),
        evidence: side_evidence(case, host),
        hint: hint(cause).into(),
    })
}

fn words(
    name: &str,
    tx: Option<&SlowSide>,
    rx: Option<&SlowSide>,
    typical: &Estimate,
) -> Option<(Cause, String)> {
    let rate = |side: &SlowSide| format_bits_per_sec(side.rate.value);
    let peers = format!("where its peers do {}", format_bits_per_sec(typical.value));
    Some(match (tx, rx) {
        (Some(tx), Some(rx)) => {
            let is_alike = (tx.rate.value / rx.rate.value).ln().abs() < 0.1;
            let does = if is_alike {
                format!("it sends and receives at {}", rate(tx))
            } else {
                format!("it sends at {} and receives at {}", rate(tx), rate(rx))
            };
            (
                Cause::SlowHost,
                format!("{name} is slow both ways: {does} {peers}"),
            )
        }
        (Some(tx), None) => (
            Cause::SlowSender,
            format!(
                "{name} sends slowly: at {} {peers}; it receives as they do",
                rate(tx)
            ),
        ),
        (None, Some(rx)) => (
            Cause::SlowReceiver,
            format!(
                "{name} receives slowly: at {} {peers}; it sends as they do",
                rate(rx)
            ),
        ),
        (None, None) => return None,
    })
}

/// What the host's lone flows did, per side and stage, and the peers' figure.
pub(super) fn side_evidence(case: &Case<'_>, host: HostId) -> Vec<Evidence> {
    let fit = &case.network.fit;
    let name = case.observations.inventory().name(host);
    let mut found = Vec::new();
    for (side, column) in [(Side::Tx(host), "src"), (Side::Rx(host), "dst")] {
        let Some(slow) = fit.slow.get(&side) else {
            continue;
        };
        for (stage, rates) in rates_by_stage(case, side) {
            let stage = &case.observations.stages[stage].stage.name;
            let middle = crate::stats::median(&rates)
                .map(format_bits_per_sec)
                .unwrap_or_default();
            found.push(evidence(
                format!("lone flows with {column} {name} in `{stage}`: median {middle}"),
                format!(
                    "flows.parquet: stage `{stage}`, {column} = {name}, {} rows",
                    rates.len()
                ),
            ));
        }
        found.push(evidence(
            format!(
                "modified z-score {:.1} among all hosts' sides, {} partners",
                slow.z.max(-999.0),
                slow.partners
            ),
            format!("two-way model over lone flows, {column} = {name}"),
        ));
    }
    if let Some(typical) = fit.typical {
        found.push(evidence(
            format!("peers: median {}", format_bits_per_sec(typical.value)),
            format!(
                "flows.parquet: lone flows between other hosts, {} rows",
                typical.samples
            ),
        ));
    }
    found
}

fn rates_by_stage(case: &Case<'_>, side: Side) -> BTreeMap<usize, Vec<f64>> {
    let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for solo in &case.network.solos {
        let is_of_side = match side {
            Side::Tx(host) => solo.src == host,
            Side::Rx(host) => solo.dst == host,
        };
        if is_of_side {
            rates.entry(solo.stage).or_default().push(solo.bits_per_sec);
        }
    }
    rates
}

fn hint(cause: Cause) -> &'static str {
    match cause {
        Cause::SlowSender => {
            "look on the host at `ethtool -S` (tx errors, pause), `tc -s qdisc` (a rate limit), and one CPU at 100 %; \
             then at the receive counters of its switch port"
        }
        Cause::SlowReceiver => {
            "look on the host at `ethtool -S` (rx_missed, rx_no_buffer), softirq on one CPU in `mpstat -P ALL`, ring \
             and receive buffer sizes; then at discards on its switch port"
        }
        _ => {
            "look at `ethtool` (speed, duplex) and `ethtool -S` on the host, the counters of its switch port, then \
             cable and transceiver"
        }
    }
}

/// Expected quantity for other rules on hosts.
pub(super) fn rate_quantity(rate: f64) -> ew_model::finding::Quantity {
    plain(rate, "bits_per_sec")
}
