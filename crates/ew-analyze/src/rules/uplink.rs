//! The path between two racks carries less than their hosts could send.

use super::peers::percent;
use super::{Case, evidence};
use crate::oversubscription::PairResult;
use crate::solo::rack_pair;
use crate::stats::{confidence, log_half_width};
use crate::words::{count, plain, quantity, ratio};
use ew_model::analysis::Estimate;
use ew_model::finding::{Cause, Evidence, Finding, Severity, Subject};
use ew_model::units::format_bits_per_sec;
use ew_model::{Inventory, RackId};
use std::collections::BTreeSet;

/// Ratios within this factor of one another are told in one sentence.
const ALIKE: f64 = 1.1;
/// How far an interval's low end may lie above what was stated.
const STATED_TOLERANCE: f64 = 1.05;
/// An uplink that fills below this many senders has no rising part that could place its knee more exactly.
const FULL_WITH_ONE: f64 = 1.05;

/// A flow below this share of the usual rate is slow.
const SLOW_SHARE: f64 = 0.9;

/// A limited direction with its ratio.
type Limited<'a> = (&'a PairResult, Estimate);

pub(super) fn find(case: &Case<'_>) -> Vec<Finding> {
    let mut limited: Vec<Limited<'_>> = case
        .network
        .rack_pairs
        .pairs
        .iter()
        .filter(|pair| pair.analysis.limited == Some(true))
        .filter(|pair| !are_losses(case, (pair.analysis.from, pair.analysis.to)))
        .filter_map(|pair| Some((pair, pair.analysis.oversubscription?)))
        .collect();
    limited.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    let mut findings = Vec::new();
    while let Some(worst) = limited.first() {
        let group = group_of(*worst, &limited, case.observations.inventory());
        limited.retain(|other| !group.iter().any(|one| is_same(one, other)));
        findings.push(finding(case, &group));
    }
    findings
}

/// Whether most flows that are slow between two racks lose packets on the path or at a lossy host: that slows each of them by itself, and
/// is no ratio.
fn are_losses(case: &Case<'_>, path: (RackId, RackId)) -> bool {
    let Some(typical) = case.network.fit.typical else {
        return false;
    };
    let inventory = case.observations.inventory();
    let rounds = case.observations.judged().flat_map(|stage| &stage.rounds);
    let across = rounds
        .flat_map(|round| round.rates())
        .filter(|(row, _)| rack_pair(inventory, row.src, row.dst) == Some(path));
    let (mut slow, mut lossy) = (0, 0);
    for (row, _) in across.filter(|(_, rate)| *rate < SLOW_SHARE * typical.value) {
        slow += 1;
        lossy += usize::from(case.losses.touch(inventory, row.src, row.dst));
    }
    2 * lossy > slow
}

fn is_same(a: &Limited<'_>, b: &Limited<'_>) -> bool {
    a.0.analysis.from == b.0.analysis.from && a.0.analysis.to == b.0.analysis.to
}

/// The directions told together with the worst one: all of them when all are alike, else all out of its rack, else
/// all into its rack, else both ways between its racks, else itself.
fn group_of<'a>(
    worst: Limited<'a>,
    limited: &[Limited<'a>],
    inventory: &Inventory,
) -> Vec<Limited<'a>> {
    let racks = inventory.racks.len();
    let (from, to) = (worst.0.analysis.from, worst.0.analysis.to);
    let pick = |wanted: &dyn Fn(RackId, RackId) -> bool| -> Vec<Limited<'a>> {
        let fits = |l: &&Limited<'a>| wanted(l.0.analysis.from, l.0.analysis.to);
        limited.iter().filter(fits).copied().collect()
    };
    let is_alike = |group: &[Limited<'_>]| {
        group
            .iter()
            .all(|(_, ratio)| worst.1.value <= ALIKE * ratio.value)
    };
    let candidates = [
        (racks * (racks - 1), pick(&|_, _| true)),
        (racks - 1, pick(&|a, _| a == from)),
        (racks - 1, pick(&|_, b| b == to)),
        (
            2,
            pick(&|a, b| (a, b) == (from, to) || (a, b) == (to, from)),
        ),
    ];
    candidates
        .into_iter()
        .find(|(whole, group)| group.len() == *whole && group.len() > 1 && is_alike(group))
        .map_or(vec![worst], |(_, group)| group)
}

fn finding(case: &Case<'_>, group: &[Limited<'_>]) -> Finding {
    let inventory = case.observations.inventory();
    let estimate = together(group);
    let stated = case.observations.run.plan.expect.oversubscription;
    let is_worse = stated.is_some_and(|stated| match estimate.low {
        Some(low) => low > stated * STATED_TOLERANCE,
        None => estimate.value > stated * 1.1,
    });
    let (who, subject) = subject(inventory, group);
    let against = match stated {
        Some(stated) if is_worse => format!(", worse than the stated {stated:.1}:1"),
        Some(stated) => format!(", within the stated {stated:.1}:1"),
        None => String::new(),
    };
    Finding {
        severity: if is_worse {
            Severity::Fault
        } else {
            Severity::Notice
        },
        subject,
        cause: Cause::Uplink,
        symptom: None,
        sentence: sentence(&who, group, &estimate, &against),
        measured: Some(quantity(&estimate, "ratio")),
        expected: Some(plain(stated.unwrap_or(1.0), "ratio")),
        confidence: confidence(estimate.value.ln(), log_half_width(&estimate, 0.2)),
        evidence: group
            .iter()
            .take(6)
            .flat_map(|(pair, _)| {
                let mut found = evidence_of(inventory, pair);
                found.extend(lost_on(case, pair));
                found
            })
            .collect(),
        hint: hint(is_worse || stated.is_none()),
    }
}

fn sentence(who: &str, group: &[Limited<'_>], estimate: &Estimate, against: &str) -> String {
    let ratio = ratio(estimate);
    let mut racks = BTreeSet::new();
    for (pair, _) in group {
        racks.extend([pair.analysis.from, pair.analysis.to]);
    }
    match group.len() {
        2 if racks.len() == 2 => format!("{who} are oversubscribed {ratio} both ways{against}"),
        n if n > 1 && n == racks.len() * (racks.len() - 1) => {
            format!("{who} are oversubscribed {ratio} towards each other{against}")
        }
        _ => format!("{who} is oversubscribed {ratio}{against}"),
    }
}

/// The racks in words, and the finding's subject.
fn subject(inventory: &Inventory, group: &[Limited<'_>]) -> (String, Subject) {
    let pairs: Vec<(RackId, RackId)> = group
        .iter()
        .map(|(pair, _)| (pair.analysis.from, pair.analysis.to))
        .collect();
    let froms: BTreeSet<RackId> = pairs.iter().map(|pair| pair.0).collect();
    let tos: BTreeSet<RackId> = pairs.iter().map(|pair| pair.1).collect();
    let (from, to) = pairs[0];
    let name = |rack| inventory.rack_name(rack);
    let one = Subject::RackPair { from, to };
    if pairs.len() == 1 {
        return (format!("{} to {}", name(from), name(to)), one);
    }
    if froms.len() == 1 {
        return (format!("{} to every other rack", name(from)), Subject::Run);
    }
    if tos.len() == 1 {
        return (format!("every other rack to {}", name(to)), Subject::Run);
    }
    if froms.len() == 2 {
        let (low, high) = (from.min(to), from.max(to));
        return (format!("{} and {}", name(low), name(high)), one);
    }
    ("all racks".into(), Subject::Run)
}

/// One estimate for directions that are alike: the middle, with an interval that holds them all.
fn together(group: &[Limited<'_>]) -> Estimate {
    let values: Vec<f64> = group.iter().map(|(_, ratio)| ratio.value).collect();
    let lows: Option<Vec<f64>> = group.iter().map(|(_, ratio)| ratio.low).collect();
    let highs: Option<Vec<f64>> = group.iter().map(|(_, ratio)| ratio.high).collect();
    Estimate {
        value: crate::stats::median(&values).unwrap_or(1.0),
        low: lows.and_then(|lows| lows.into_iter().min_by(f64::total_cmp)),
        high: highs.and_then(|highs| highs.into_iter().max_by(f64::total_cmp)),
        samples: group
            .iter()
            .map(|(_, ratio)| ratio.samples)
            .min()
            .unwrap_or(0),
    }
}

fn evidence_of(inventory: &Inventory, pair: &PairResult) -> Vec<Evidence> {
    let analysis = &pair.analysis;
    let (from, to) = (
        inventory.rack_name(analysis.from),
        inventory.rack_name(analysis.to),
    );
    let mut found = Vec::new();
    if let (Some(across), Some((stage, rounds))) = (analysis.across_bits_per_sec, &pair.source) {
        let target = if pair.merged { "all other racks" } else { to };
        let inside = analysis
            .inside_bits_per_sec
            .map_or(String::new(), |inside| {
                let hosts = count(inventory.hosts_in(analysis.from).len(), "host");
                let rate = format_bits_per_sec(inside.value);
                format!("; its {hosts} do {rate} each inside the rack")
            });
        found.push(evidence(
            format!(
                "{from} to {target} carries {} with every host sending{inside}",
                format_bits_per_sec(across.value)
            ),
            format!(
                "flows.parquet: stage `{stage}`, src in {from}, dst in {target}, {}",
                count(*rounds as usize, "round")
            ),
        ));
    }
    if let (Some(uplink), Some(knee)) = (analysis.uplink_bits_per_sec, analysis.knee_senders) {
        found.push(evidence(
            if knee < FULL_WITH_ONE {
                format!(
                    "one healthy sender alone fills the uplink, which carries {}",
                    format_bits_per_sec(uplink)
                )
            } else {
                format!(
                    "the ramp fills at {knee:.1} healthy senders, with {}",
                    format_bits_per_sec(uplink)
                )
            },
            format!("flows.parquet: ramp rounds, src in {from}, dst in {to}"),
        ));
    }
    found
}

/// What did not fit: worth knowing where it is more than usual.
fn lost_on(case: &Case<'_>, pair: &PairResult) -> Option<Evidence> {
    let (from, to) = (pair.analysis.from, pair.analysis.to);
    let loss = case.losses.narrow.get(&(from, to))?;
    let inventory = case.observations.inventory();
    let (from, to) = (inventory.rack_name(from), inventory.rack_name(to));
    Some(evidence(
        format!(
            "{from} to {to}: {} of the segments sent again, as on a full path",
            percent(*loss)
        ),
        format!(
            "flows.parquet: src_rack = {from}, dst_rack = {to}, retransmits against tx_bytes over send_mss_bytes"
        ),
    ))
}

fn hint(unexpected: bool) -> String {
    if unexpected {
        "if the racks should not be oversubscribed: compare the number and speed of uplinks that are up on the leaf \
         switches with the design, and look at ECMP or LAG hashing and per-member counters"
            .into()
    } else {
        "nothing to do while jobs are placed with this in mind".into()
    }
}
