//! A host sends or receives slower than its peers.

use super::why::{self, Reason, Suspect};
use super::{Case, evidence, link_speed};
use crate::capacity::{Side, SlowSide};
use crate::stats::{confidence, log_half_width};
use crate::words::{count, plain, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Symptom};
use ew_model::units::format_bits_per_sec;
use std::collections::{BTreeMap, BTreeSet};

/// Rates this close (logarithms) are alike.
const ALIKE: f64 = 0.25;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let Some(typical) = case.network.fit.typical else {
        return Vec::new();
    };
    case.observations
        .inventory()
        .host_ids()
        .filter(|host| !link_speed::explains(case, *host))
        .flat_map(|host| findings(case, host, &typical))
        .collect()
}

/// One finding for a host, unless its sides are slow for different reasons.
fn findings(case: &Case<'_>, host: HostId, typical: &Estimate) -> Vec<Finding> {
    let slow = &case.network.fit.slow;
    let tx = slow.get(&Side::Tx(host));
    let rx = slow.get(&Side::Rx(host));
    let why = |tx: bool, rx: bool| why::explain(case, &Suspect { host, tx, rx });
    let of_tx = tx.and_then(|_| why(true, false));
    let of_rx = rx.and_then(|_| why(false, true));
    let found = match (of_tx, of_rx) {
        (Some(a), Some(b)) if a.cause != b.cause && !is_one_link(tx, rx, &a) => vec![
            finding(case, host, (tx, None), typical, Some(a)),
            finding(case, host, (None, rx), typical, Some(b)),
        ],
        (a, b) => vec![finding(case, host, (tx, rx), typical, a.or(b))],
    };
    found.into_iter().flatten().collect()
}

/// A link that is known to be slow and is as slow the other way needs no other reason there.
fn is_one_link(tx: Option<&SlowSide>, rx: Option<&SlowSide>, of_tx: &Reason) -> bool {
    let (Some(tx), Some(rx)) = (tx, rx) else {
        return false;
    };
    of_tx.cause == Cause::LinkSpeed && (tx.rate.value / rx.rate.value).ln().abs() < ALIKE
}

/// `None` when neither side is slow.
fn finding(
    case: &Case<'_>,
    host: HostId,
    (tx, rx): (Option<&SlowSide>, Option<&SlowSide>),
    typical: &Estimate,
    why: Option<Reason>,
) -> Option<Finding> {
    let worse = match (tx, rx) {
        (Some(tx), Some(rx)) if rx.rate.value < tx.rate.value => rx,
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => return None,
    };
    let name = case.observations.inventory().name(host);
    let (symptom, alone) = kinds(tx.is_some(), rx.is_some());
    let effect = (worse.rate.value.max(1.0) / typical.value).ln();
    let sure = confidence(effect, log_half_width(&worse.rate, 0.1));
    let cause = why.as_ref().map_or(alone, |why| why.cause);
    let mut rests_on = why.as_ref().map_or(Vec::new(), |why| why.evidence.clone());
    rests_on.extend(side_evidence(case, host));
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host },
        cause,
        symptom: Some(symptom),
        sentence: words(name, (tx, rx), typical, why.as_ref()),
        measured: Some(quantity(&worse.rate, "bits_per_sec")),
        expected: Some(quantity(typical, "bits_per_sec")),
        confidence: why.as_ref().map_or(sure, |why| why.confidence.min(sure)),
        evidence: rests_on,
        hint: why.map_or_else(|| hint(cause).into(), |why| why.hint),
    })
}

/// What it does to the rates, and the cause where no deeper one is found.
fn kinds(tx: bool, rx: bool) -> (Symptom, Cause) {
    match (tx, rx) {
        (true, false) => (Symptom::SlowSender, Cause::SlowSender),
        (false, true) => (Symptom::SlowReceiver, Cause::SlowReceiver),
        _ => (Symptom::SlowHost, Cause::SlowHost),
    }
}

fn words(
    name: &str,
    (tx, rx): (Option<&SlowSide>, Option<&SlowSide>),
    typical: &Estimate,
    why: Option<&Reason>,
) -> String {
    let rate = |side: &SlowSide| format_bits_per_sec(side.rate.value);
    let does = match (tx, rx) {
        (Some(tx), Some(rx)) if rate(tx) == rate(rx) => format!("sends and receives {}", rate(tx)),
        (Some(tx), Some(rx)) => format!("sends {} and receives {}", rate(tx), rate(rx)),
        (Some(tx), None) => format!("sends {}", rate(tx)),
        (None, Some(rx)) => format!("receives {}", rate(rx)),
        (None, None) => String::new(),
    };
    let peers = format!("where its peers do {}", format_bits_per_sec(typical.value));
    if let Some(why) = why {
        return format!("{name} {does} {peers}, because {}", why.because);
    }
    match (tx, rx) {
        (Some(_), Some(_)) => format!("{name} is slow both ways: it {does} {peers}"),
        (Some(tx), None) => {
            format!(
                "{name} sends slowly: at {} {peers}; it receives as they do",
                rate(tx)
            )
        }
        (None, Some(rx)) => {
            format!(
                "{name} receives slowly: at {} {peers}; it sends as they do",
                rate(rx)
            )
        }
        (None, None) => String::new(),
    }
}

/// What the host's lone flows did, one piece per slow side, and the peers' figure.
pub(super) fn side_evidence(case: &Case<'_>, host: HostId) -> Vec<Evidence> {
    let fit = &case.network.fit;
    let mut found: Vec<Evidence> = [Side::Tx(host), Side::Rx(host)]
        .into_iter()
        .filter_map(|side| Some(one_side(case, host, side, fit.slow.get(&side)?)))
        .collect();
    if let Some(typical) = fit.typical {
        let stages: BTreeSet<usize> = case.network.solos.iter().map(|solo| solo.stage).collect();
        let names: Vec<String> = stages
            .iter()
            .map(|stage| stage_name(case, *stage))
            .collect();
        found.push(evidence(
            format!(
                "peers do {} in the median of {}",
                format_bits_per_sec(typical.value),
                count(typical.samples as usize, "lone flow")
            ),
            format!(
                "flows.parquet: stages {}, neither src nor dst slow",
                names.join(", ")
            ),
        ));
    }
    found
}

/// "lone flows with src h3: `inside racks` median 95.0 Mb/s (6), `mesh` 95.2 Mb/s (7); ..."
fn one_side(case: &Case<'_>, host: HostId, side: Side, slow: &SlowSide) -> Evidence {
    let name = case.observations.inventory().name(host);
    let column = match side {
        Side::Tx(_) => "src",
        Side::Rx(_) => "dst",
    };
    let by_stage = rates_by_stage(case, side);
    let rows: usize = by_stage.values().map(Vec::len).sum();
    let medians: Vec<String> = by_stage
        .iter()
        .filter_map(|(stage, rates)| {
            let middle = format_bits_per_sec(crate::stats::median(rates)?);
            Some((stage_name(case, *stage), middle, rates.len()))
        })
        .enumerate()
        .map(|(i, (stage, middle, flows))| {
            let word = if i == 0 { "median " } else { "" };
            format!("{stage} {word}{middle} ({flows})")
        })
        .collect();
    evidence(
        format!(
            "lone flows with {column} {name}: {}; modified z-score {:.1} among all hosts' sides, {}",
            medians.join(", "),
            slow.z.max(-999.0),
            count(slow.partners as usize, "partner"),
        ),
        format!("flows.parquet: {column} = {name}, {}", count(rows, "row")),
    )
}

fn stage_name(case: &Case<'_>, stage: usize) -> String {
    format!("`{}`", case.observations.stages[stage].stage.name)
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
