//! An analysis compared with the truth.

use crate::family::Family;
use crate::truth::{Fault, LinkDirection, MemberFault, RackRatio, Truth, UniformCause};
use ew_model::finding::details::{Directions, LossyUplinks, LostPathLocation, PathLocation};
use ew_model::finding::{Cause, Details, Finding, Severity, Subject, VerdictStatus};
use ew_model::{Analysis, HostId, Inventory, RackId};
use std::net::IpAddr;

/// A ratio is right within this part of the truth.
const RIGHT_WITHIN: f64 = 0.05;
/// From this ratio on a rack is oversubscribed.
const OVERSUBSCRIBED: f64 = 1.05;

/// What an analysis got right and wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Each question that the truth asks, with whether the analysis answered it rightly.
    pub checks: Vec<(&'static str, bool)>,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
    /// Every notice and fault that infers a cause, with whether location and cause are right.
    pub findings: Vec<(Cause, bool)>,
}

impl Judgement {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }

    fn check(&mut self, name: &'static str, passed: bool, what: impl FnOnce() -> String) {
        self.checks.push((name, passed));
        if !passed {
            self.wrong.push(what());
        }
    }
}

/// Compares an analysis with the truth of the network that it is about.
#[must_use]
pub fn judge(truth: &Truth, analysis: &Analysis) -> Judgement {
    let mut judgement = Judgement::default();
    let inventory = analysis.inventory();
    let findings = &analysis.verdict.findings;
    let false_ones: Vec<&Finding> = findings
        .iter()
        .filter(|finding| is_accusation(finding) && !is_justified(truth, inventory, finding))
        .collect();
    judgement.check("no false accusation", false_ones.is_empty(), || {
        let sentences = false_ones.iter().map(|f| {
            format!(
                "{:?} {:?}: {}",
                f.severity,
                f.cause,
                ew_report::worded(f, inventory).sentence
            )
        });
        sentences.collect::<Vec<_>>().join("; ")
    });
    let inferred = findings
        .iter()
        .filter(|finding| finding.severity > Severity::Info && infers(finding.cause));
    judgement.findings = inferred
        .map(|finding| (finding.cause, has_right_cause(truth, inventory, finding)))
        .collect();
    if truth.is_starved && analysis.verdict.status == VerdictStatus::NotDetermined {
        return judgement;
    }
    if truth.family == Family::Oversubscribed {
        judge_ratios(truth, analysis, &mut judgement);
    }
    if truth.pod_ratio > OVERSUBSCRIBED {
        judge_pods(truth, analysis, &mut judgement);
    }
    for fault in &truth.faults {
        judge_fault(truth, fault, analysis, &mut judgement);
    }
    judgement
}

/// Whether pods' ratio is found, within [`RIGHT_WITHIN`].
fn judge_pods(truth: &Truth, analysis: &Analysis, judgement: &mut Judgement) {
    let mut findings = analysis.verdict.findings.iter();
    let found = findings.find_map(|finding| match &finding.details {
        Details::OversubscribedPods(found) => Some(found.ratio.value),
        _ => None,
    });
    let is_close = found.is_some_and(|found| (found / truth.pod_ratio - 1.0).abs() <= RIGHT_WITHIN);
    judgement.check("pods' ratio within 5%", is_close, || {
        format!("pods: {found:?}, in truth {:.2}", truth.pod_ratio)
    });
}

/// Whether it reports of a host, pair or rack that something is wrong there, or makes the run fail.
fn is_accusation(finding: &Finding) -> bool {
    match finding.severity {
        Severity::Fault => true,
        Severity::Notice => finding.subject != Subject::Run,
        Severity::Info => false,
    }
}

/// Whether a cause is a conclusion, and not what the run itself shows.
fn infers(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::PairsMissing
            | Cause::HostMissing
            | Cause::MeasurementQuality
            | Cause::NotDetermined
            // What the hosts' cores let a connection do is no truth that is selected.
            | Cause::ToolLimit
            | Cause::Congestion
            | Cause::PodNetwork
    )
}

/// Whether what a finding reports as wrong is what is wrong there.
fn has_right_cause(truth: &Truth, inventory: &Inventory, finding: &Finding) -> bool {
    if let Details::OversubscribedPods(_) = finding.details {
        return truth.pod_ratio > OVERSUBSCRIBED;
    }
    let is_uplink = finding.cause == Cause::Uplink && is_oversubscribed(truth, finding.subject);
    if is_uplink || may_be_its_rack(truth, finding) {
        return true;
    }
    truth.faults.iter().any(|fault| match fault {
        Fault::Uniform { cause } => matches_cause(finding.cause, *cause),
        Fault::Host {
            host, direction, ..
        } => {
            let is_side = match finding.cause {
                Cause::SlowSender => direction.covers(LinkDirection::Up),
                Cause::SlowReceiver => direction.covers(LinkDirection::Down),
                cause => matches!(cause, Cause::SlowHost | Cause::LinkSpeed),
            };
            finding.subject == Subject::Host { host: *host } && is_side
        }
        Fault::OnHost { cause, .. } => finding.cause == *cause && is_of_host(fault, finding),
        Fault::Member { kind, .. } => {
            let is_cause = match finding.cause {
                Cause::BadPath => !matches!(kind, MemberFault::Down | MemberFault::OneSided),
                Cause::LostPath => matches!(kind, MemberFault::Down | MemberFault::OneSided),
                Cause::Loss => matches!(kind, MemberFault::Loss(_)),
                Cause::Uplink => !matches!(kind, MemberFault::Loss(_) | MemberFault::BlackHole),
                _ => false,
            };
            is_cause && names_member(fault, inventory, finding)
        }
    })
}

/// Whether a finding is about the host of a fault that its counters show, or a pair with it.
fn is_of_host(fault: &Fault, finding: &Finding) -> bool {
    let Fault::OnHost { host, cause } = fault else {
        return false;
    };
    // Hosts of a lab share its disks.
    let is_shared = *cause == Cause::Disk && finding.cause == Cause::Disk;
    is_shared
        || match finding.subject {
            Subject::Host { host: named } => named == *host,
            Subject::Pair { src, dst } => [src, dst].contains(host),
            _ => false,
        }
}

/// Whether any direction of the rack, of the two, or of any for a finding about the run, is.
fn is_oversubscribed(truth: &Truth, subject: Subject) -> bool {
    let is = |rack: RackId| {
        let ratio = ratio(truth, rack);
        ratio.up.max(ratio.down) > OVERSUBSCRIBED
    };
    match subject {
        Subject::Rack { rack } => is(rack),
        Subject::RackPair { from, to } => is(from) || is(to),
        Subject::Run => (0..truth.ratios.len() as u32).any(|rack| is(RackId(rack))),
        Subject::Host { .. } | Subject::Pair { .. } => false,
    }
}

/// Whether a finding shows which rack's, and which direction's, path is at fault. A spine is every
/// rack's.
fn names_member(fault: &Fault, inventory: &Inventory, finding: &Finding) -> bool {
    let Fault::Member {
        rack,
        direction,
        kind,
        ..
    } = fault
    else {
        return false;
    };
    let are_two = inventory.racks.len() == 2;
    // Where among the locations shown the fault's is.
    let shows = |rack: RackId| {
        let locations = shown_locations(finding).into_iter().enumerate();
        locations.filter_map(move |(at, (location, way))| {
            // A connection needs both directions: what swallows one takes both.
            let is_way =
                way == *direction || *kind == MemberFault::BlackHole && way == LinkDirection::Both;
            (location == rack && is_way).then_some(at)
        })
    };
    match (finding.subject, rack) {
        (Subject::Run, None) => matches!(
            finding.cause,
            Cause::BadPath | Cause::LostPath | Cause::Uplink
        ),
        (Subject::RackPair { .. }, None) => are_two,
        // Between two racks a spine's path is as well either rack's, in both directions.
        (Subject::Rack { .. }, None) => are_two && may_be_every_rack(finding),
        // Between two racks nobody can know whose path it is.
        (Subject::RackPair { .. }, Some(rack)) => {
            are_two && (finding.cause == Cause::LostPath || shows(*rack).next().is_some())
        }
        (Subject::Rack { .. }, Some(rack)) if are_two => shows(*rack).next().is_some(),
        (Subject::Rack { rack: named }, Some(rack)) => {
            named == *rack && shows(*rack).next() == Some(0)
        }
        _ => false,
    }
}

fn may_be_every_rack(finding: &Finding) -> bool {
    let locations = match &finding.details {
        Details::BadPathByRouter(found) => &found.locations,
        Details::BadPathByShare(found) => &found.locations,
        Details::BlackHole(found) => &found.locations,
        _ => return false,
    };
    locations.contains(&PathLocation::EveryRack)
}

/// The racks and directions that a finding names, the likeliest first.
fn shown_locations(finding: &Finding) -> Vec<(RackId, LinkDirection)> {
    let all = |racks: &[RackId], directions| {
        let racks = racks.iter();
        racks.map(|rack| (*rack, way(directions))).collect()
    };
    match &finding.details {
        Details::Oversubscribed(found) => match found.one_way() {
            Some((from, to)) => one_way(from, to),
            None => all(&found.racks, found.directions),
        },
        Details::NarrowPath(found) => all(&found.racks, found.directions),
        Details::BadPathByRouter(found) => of_racks(&found.locations),
        Details::BadPathByShare(found) => of_racks(&found.locations),
        Details::BlackHole(found) => of_racks(&found.locations),
        Details::LostPath(found) => match found.location {
            LostPathLocation::Rack { rack } => vec![(rack, way(found.directions))],
            LostPathLocation::OneWay { from, to } => one_way(from, to),
            LostPathLocation::BetweenTwoRacks | LostPathLocation::EveryRack => Vec::new(),
        },
        Details::LossyUplinks(found) => lossy_uplinks(found),
        _ => Vec::new(),
    }
}

fn one_way(from: RackId, to: RackId) -> Vec<(RackId, LinkDirection)> {
    vec![(from, LinkDirection::Up), (to, LinkDirection::Down)]
}

/// Of two racks either one's may be meant: the other way round, seen from the second.
fn lossy_uplinks(found: &LossyUplinks) -> Vec<(RackId, LinkDirection)> {
    let seen_from_other = match found.directions {
        Directions::Tx => LinkDirection::Down,
        Directions::Rx => LinkDirection::Up,
        Directions::Both => LinkDirection::Both,
    };
    let own = found.racks.iter();
    let own = own.map(|lossy| (lossy.rack, way(found.directions)));
    let other = found.or_rack.map(|rack| (rack, seen_from_other));
    own.chain(other).collect()
}

fn way(directions: Directions) -> LinkDirection {
    match directions {
        Directions::Tx => LinkDirection::Up,
        Directions::Rx => LinkDirection::Down,
        Directions::Both => LinkDirection::Both,
    }
}

fn of_racks(locations: &[PathLocation]) -> Vec<(RackId, LinkDirection)> {
    let of_rack = |location: &PathLocation| match location {
        PathLocation::Rack { rack, directions } => Some((*rack, way(*directions))),
        PathLocation::Pod { .. } | PathLocation::EveryRack => None,
    };
    locations.iter().filter_map(of_rack).collect()
}

fn is_justified(truth: &Truth, inventory: &Inventory, finding: &Finding) -> bool {
    let is_quality = matches!(finding.cause, Cause::PairsMissing | Cause::HostMissing);
    if is_quality && (truth.is_starved || truth.faults.iter().any(kills_connections)) {
        return true;
    }
    if truth.faults.iter().any(|fault| is_of_host(fault, finding)) {
        return true;
    }
    if truth
        .faults
        .iter()
        .any(|fault| matches!(fault, Fault::Uniform { .. }))
    {
        let is_of_pair = matches!(
            finding.subject,
            Subject::Pair { .. } | Subject::RackPair { .. }
        );
        return !is_of_pair && !matches!(finding.cause, Cause::BadPath | Cause::LostPath);
    }
    match finding.subject {
        Subject::Host { host } => {
            has_host_fault(truth, host, LinkDirection::Both) || may_be_its_rack(truth, finding)
        }
        Subject::Pair { src, dst } => {
            let ends = has_host_fault(truth, src, LinkDirection::Up)
                || has_host_fault(truth, dst, LinkDirection::Down);
            let racks = inventory.rack_of(src).zip(inventory.rack_of(dst));
            ends || racks.is_some_and(|(from, to)| has_path_fault(truth, from, to))
        }
        Subject::RackPair { from, to } => {
            has_path_fault(truth, from, to)
                || ratio(truth, from).up > OVERSUBSCRIBED
                || ratio(truth, to).down > OVERSUBSCRIBED
        }
        Subject::Rack { rack } => {
            let racks = inventory.rack_ids().filter(|other| *other != rack);
            let mut on_its_way = racks.map(|other| {
                has_path_fault(truth, rack, other) || has_path_fault(truth, other, rack)
            });
            on_its_way.any(|is| is)
                || ratio(truth, rack).up > OVERSUBSCRIBED
                || ratio(truth, rack).down > OVERSUBSCRIBED
        }
        Subject::Run => !truth.faults.is_empty(),
    }
}

/// Whether a finding leaves open if it is the host or its rack's uplinks, and it is these.
fn may_be_its_rack(truth: &Truth, finding: &Finding) -> bool {
    let Details::SlowHost(slow) = &finding.details else {
        return false;
    };
    slow.alone_in.is_some_and(|rack| {
        let ratio = ratio(truth, rack);
        ratio.up.max(ratio.down) > OVERSUBSCRIBED
    })
}

fn kills_connections(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Member {
            kind: MemberFault::BlackHole,
            ..
        }
    )
}

fn ratio(truth: &Truth, rack: RackId) -> RackRatio {
    truth
        .ratios
        .get(rack.index())
        .copied()
        .unwrap_or(RackRatio {
            up: 1.0,
            down: 1.0,
            is_testable: true,
        })
}

fn has_host_fault(truth: &Truth, asked: HostId, way: LinkDirection) -> bool {
    truth.faults.iter().any(|fault| match fault {
        Fault::Host {
            host, direction, ..
        } => *host == asked && direction.covers(way),
        _ => false,
    })
}

/// Whether a bad member is on the way of some connections from rack to rack, or of their
/// acknowledgements.
fn has_path_fault(truth: &Truth, from: RackId, to: RackId) -> bool {
    truth.faults.iter().any(|fault| match fault {
        Fault::Member { rack: None, .. } => true,
        Fault::Member {
            rack: Some(rack),
            direction,
            kind,
            ..
        } => {
            let is_on_way = |end: RackId, way| end == *rack && direction.covers(way);
            let there = is_on_way(from, LinkDirection::Up) || is_on_way(to, LinkDirection::Down);
            let back = is_on_way(to, LinkDirection::Up) || is_on_way(from, LinkDirection::Down);
            there || *kind == MemberFault::BlackHole && back
        }
        _ => false,
    })
}

/// Every rack's own ratio, each direction by itself.
fn judge_ratios(truth_of: &Truth, analysis: &Analysis, judgement: &mut Judgement) {
    for rack in &analysis.racks {
        let own = ratio(truth_of, rack.rack);
        for (word, shown, truth) in [("TX", &rack.tx, own.up), ("RX", &rack.rx, own.down)] {
            let name = analysis.inventory().rack_name(rack.rack);
            let what = || {
                format!(
                    "{name} {word}: true {truth:.2}, shown {:?} {:?}",
                    shown.limited, shown.oversubscription
                )
            };
            // Between two racks nobody can know whose uplink is the limit.
            let between_two = analysis.racks.len() == 2;
            if truth <= OVERSUBSCRIBED && between_two && shown.limited == Some(true) {
                continue;
            }
            // Whose uplink nobody can fill is not known, and reported as such.
            if !own.is_testable && shown.limited.is_none() {
                continue;
            }
            if truth <= OVERSUBSCRIBED {
                judgement.check("1:1 shown as none", shown.limited != Some(true), what);
                continue;
            }
            let ratio = shown
                .oversubscription
                .filter(|_| shown.limited == Some(true));
            let is_near =
                ratio.is_some_and(|ratio| (ratio.value / truth - 1.0).abs() <= RIGHT_WITHIN);
            judgement.check("ratio within 5%", is_near, what);
            if let Some((low, high)) = ratio.and_then(|ratio| ratio.low.zip(ratio.high)) {
                judgement
                    .checks
                    .push(("interval contains the ratio", (low..=high).contains(&truth)));
            }
        }
    }
}

fn judge_fault(truth: &Truth, fault: &Fault, analysis: &Analysis, judgement: &mut Judgement) {
    let findings = &analysis.verdict.findings;
    match fault {
        Fault::Host { host, .. } => {
            let is_named = findings
                .iter()
                .any(|f| f.subject == Subject::Host { host: *host });
            let name = analysis.inventory().name(*host);
            judgement.check("slow host named", is_named, || {
                format!("{name} is not named")
            });
        }
        Fault::OnHost { host, cause } => {
            let mut about = findings
                .iter()
                .filter(|finding| finding.severity > Severity::Info && is_of_host(fault, finding));
            let is_first = about.next().is_some_and(|first| first.cause == *cause);
            let name = analysis.inventory().name(*host);
            judgement.check("cause on the host named first", is_first, || {
                format!("{cause:?} of {name} is not named first")
            });
        }
        Fault::Member { .. } => {
            let inventory = analysis.inventory();
            let of_rack = findings.iter().any(|finding| match finding.subject {
                Subject::Rack { rack } => is_members_rack(fault, rack),
                _ => names_member(fault, inventory, finding),
            });
            judgement.checks.push(("rack of the member named", of_rack));
            let is_named = findings.iter().any(|f| names_member(fault, inventory, f));
            judgement.check("rack and direction named", is_named, || {
                format!("{fault:?} is not named")
            });
            judge_member(truth, fault, analysis, judgement);
        }
        Fault::Uniform { cause } => {
            let passes = analysis.verdict.status == VerdictStatus::NothingWrong;
            judgement.check("uniformly slow is no PASS", !passes, || {
                format!("{cause:?}: PASS")
            });
            let is_named = findings
                .iter()
                .any(|finding| matches_cause(finding.cause, *cause));
            judgement.check("cause of uniform slowness", is_named, || {
                format!("{cause:?} is not named")
            });
        }
    }
}

/// Whether the routers shown are the bad member's, all of them. Of one that carries nothing no
/// router answers.
fn judge_member(truth: &Truth, fault: &Fault, analysis: &Analysis, judgement: &mut Judgement) {
    let Fault::Member { kind, .. } = fault else {
        return;
    };
    // Of recorded labs the routers are not in the truth.
    let is_asked = matches!(kind, MemberFault::Narrow(_) | MemberFault::Loss(_));
    if !is_asked || truth.via.is_empty() {
        return;
    }
    let findings = analysis.verdict.findings.iter();
    let routers = findings.flat_map(|finding| match &finding.details {
        Details::BadPathByRouter(found) => found.routers.as_slice(),
        _ => &[],
    });
    let shown: Vec<IpAddr> = routers.map(|shown| shown.router).collect();
    let is_right = !shown.is_empty() && shown.iter().all(|router| truth.via.contains(router));
    judgement
        .checks
        .push(("router of the member named", is_right));
}

fn is_members_rack(fault: &Fault, named: RackId) -> bool {
    match fault {
        Fault::Member { rack, .. } => *rack == Some(named),
        _ => false,
    }
}

fn matches_cause(found: Cause, truth: UniformCause) -> bool {
    match truth {
        UniformCause::ReceiveWindow => found == Cause::ReceiveWindow,
        UniformCause::CpuQuota => found == Cause::CpuQuota,
        UniformCause::FlowCap | UniformCause::LagMember => found == Cause::ConnectionLimit,
    }
}
