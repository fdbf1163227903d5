//! A host sends or receives slower than its peers.

use super::why::{self, Reason, Suspect};
use super::{Case, evidence, link_speed, slow_pair};
use crate::fit::{LEAST_EFFECT, Side, SlowSide};
use crate::precision::confidence;
use crate::words::{count, plain, quantity};
use ew_model::HostId;
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject, Symptom, Worded};
use ew_model::units::format_bits_per_sec;
use std::collections::{BTreeMap, BTreeSet};

/// Rates this close (logarithms) are alike.
const ALIKE: f64 = 0.25;

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let hosts = case.observations.inventory().host_ids();
    let unexplained = hosts.filter(|host| {
        !link_speed::explains(case, *host) && slow_pair::ambiguous(case, *host).is_none()
    });
    unexplained
        .flat_map(|host| findings(case, host).unwrap_or_default())
        .collect()
}

/// One finding for a host, unless its sides are slow for different reasons.
fn findings(case: &Case<'_>, host: HostId) -> Option<Vec<Finding>> {
    let typical = &peers_rate(case, host)?;
    let slow = &case.network.slow;
    let tx = slow.get(&Side::Tx(host));
    let rx = slow.get(&Side::Rx(host));
    // Why is asked of few: each question compares a host with all others.
    worse((tx, rx), typical)?;
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
    Some(found.into_iter().flatten().collect())
}

/// What the other hosts of its class do.
fn peers_rate(case: &Case<'_>, host: HostId) -> Option<Estimate> {
    let classes = case.network.classes.iter();
    let own = classes
        .filter(|(_, hosts)| hosts.contains(&host))
        .map(|(rate, _)| *rate);
    own.chain(case.network.typical).next()
}

/// A link that is known to be slow and is as slow the other way needs no other reason there.
fn is_one_link(tx: Option<&SlowSide>, rx: Option<&SlowSide>, of_tx: &Reason) -> bool {
    let (Some(tx), Some(rx)) = (tx, rx) else {
        return false;
    };
    of_tx.cause == Cause::LinkSpeed && (tx.rate.value / rx.rate.value).ln().abs() < ALIKE
}

/// `None` when neither side is slow enough.
fn finding(
    case: &Case<'_>,
    host: HostId,
    (tx, rx): (Option<&SlowSide>, Option<&SlowSide>),
    typical: &Estimate,
    why: Option<Reason>,
) -> Option<Finding> {
    let worse = worse((tx, rx), typical)?;
    let name = case.observations.inventory().name(host);
    let (symptom, alone) = kinds(tx.is_some(), rx.is_some());
    let cause = why.as_ref().map_or(alone, |why| why.cause);
    let mut rests_on = why.as_ref().map_or(Vec::new(), |why| why.evidence.clone());
    rests_on.extend(side_evidence(case, host));
    Some(Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host },
        cause,
        symptom: Some(symptom),
        measured: Some(quantity(&worse.rate, "bits_per_sec")),
        expected: Some(quantity(typical, "bits_per_sec")),
        confidence: confidence(cause),
        details: Worded::details(
            words(name, (tx, rx), typical, why.as_ref()),
            rests_on,
            why.map_or_else(|| hint(cause).into(), |why| why.hint),
        ),
        cables: Vec::new(),
    })
}

/// The slower side, where it is slow enough to be reported.
fn worse<'a>(
    (tx, rx): (Option<&'a SlowSide>, Option<&'a SlowSide>),
    typical: &Estimate,
) -> Option<&'a SlowSide> {
    let sides = [tx, rx].into_iter().flatten();
    let worse = sides.min_by(|a, b| a.rate.value.total_cmp(&b.rate.value))?;
    (worse.rate.value <= (1.0 - LEAST_EFFECT) * typical.value).then_some(worse)
}

/// What it does to the rates, and the cause where no deeper one is found.
fn kinds(tx: bool, rx: bool) -> (Symptom, Cause) {
    match (tx, rx) {
        (true, false) => (Symptom::SlowSender, Cause::SlowSender),
        (false, true) => (Symptom::SlowReceiver, Cause::SlowReceiver),
        _ => (Symptom::SlowHost, Cause::SlowHost),
    }
}

/// "r2h3: 50% of peers in both directions (47.3 vs 94.6 Mb/s). Cause: ...".
fn words(
    name: &str,
    (tx, rx): (Option<&SlowSide>, Option<&SlowSide>),
    typical: &Estimate,
    why: Option<&Reason>,
) -> String {
    let side = |direction: &str, side: &SlowSide| {
        let percent = 100.0 * side.rate.value / typical.value;
        let (rate, peers) = (
            format_bits_per_sec(side.rate.value),
            format_bits_per_sec(typical.value),
        );
        format!("{percent:.0}% of peers {direction} ({rate} vs {peers})")
    };
    let what = match (tx, rx) {
        (Some(tx), Some(rx)) if (tx.rate.value / rx.rate.value).ln().abs() < ALIKE => side(
            "in both directions",
            if tx.rate.value < rx.rate.value {
                tx
            } else {
                rx
            },
        ),
        (Some(tx), Some(rx)) => format!("{}, {}", side("TX", tx), side("RX", rx)),
        (Some(tx), None) => side("TX", tx),
        (None, Some(rx)) => side("RX", rx),
        (None, None) => String::new(),
    };
    match why {
        Some(why) => format!("{name}: {what}. Cause: {}", why.because),
        None => format!("{name}: {what}. Cause not determined"),
    }
}

/// The host's isolated flows, one piece per slow side, and the peers' figure.
pub(super) fn side_evidence(case: &Case<'_>, host: HostId) -> Vec<Evidence> {
    let network = case.network;
    let mut found: Vec<Evidence> = [Side::Tx(host), Side::Rx(host)]
        .into_iter()
        .filter_map(|side| Some(one_side(case, host, side, network.slow.get(&side)?)))
        .collect();
    if let Some(typical) = peers_rate(case, host) {
        let stages: BTreeSet<usize> = network.isolated.iter().map(|flow| flow.stage).collect();
        let names: Vec<String> = stages
            .iter()
            .map(|stage| stage_name(case, *stage))
            .collect();
        found.push(evidence(
            format!(
                "peers: median {} of {}",
                format_bits_per_sec(typical.value),
                count(typical.samples as usize, "host")
            ),
            format!(
                "flows.parquet: isolated flows of stages {}, neither src nor dst slow",
                names.join(", ")
            ),
        ));
    }
    found
}

/// "isolated flows from h3: `intra-rack` median 95.0 Mb/s (6), `mesh` 95.2 Mb/s (7); 5 peers;
/// ..."
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
            "isolated flows {} {name}: {}; {}; likelihood gain {:.0} nats",
            if column == "src" { "from" } else { "to" },
            medians.join(", "),
            count(slow.partners as usize, "peer"),
            slow.gain,
        ),
        format!("flows.parquet: {column} = {name}, {}", count(rows, "row")),
    )
}

fn stage_name(case: &Case<'_>, stage: usize) -> String {
    format!("`{}`", case.observations.stages[stage].stage.name)
}

fn rates_by_stage(case: &Case<'_>, side: Side) -> BTreeMap<usize, Vec<f64>> {
    let mut rates: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for flow in case.network.isolated.iter().filter(|flow| flow.is_of(side)) {
        rates.entry(flow.stage).or_default().push(flow.bits_per_sec);
    }
    rates
}

fn hint(cause: Cause) -> &'static str {
    match cause {
        Cause::SlowSender => {
            "look on the host at `ethtool -S` (tx errors, pause), `tc -s qdisc` (a rate limit), and one CPU at 100%; \
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
