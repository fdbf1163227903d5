//! Which rows of the tables a finding accuses.

use crate::view::Tone;
use crate::words::cause;
use ew_model::RackId;
use ew_model::analysis::RackPairAnalysis;
use ew_model::finding::{Cause, Details, Finding, Severity, Subject};
use ew_model::{Analysis, HostId};
use serde::Serialize;
use std::collections::BTreeMap;

/// Whether the rack's uplinks limit its hosts in a direction.
fn is_limited(analysis: &Analysis, rack: RackId) -> bool {
    let of_rack = analysis.racks.iter().filter(|one| one.rack == rack);
    let mut directions = of_rack.flat_map(|one| [one.tx.limited, one.rx.limited]);
    let of_pair = |pair: &RackPairAnalysis| pair.from == rack || pair.to == rack;
    let mut pairs = analysis.rack_pairs.iter().filter(|pair| of_pair(pair));
    directions.any(|limited| limited == Some(true)) || pairs.any(|pair| pair.limited == Some(true))
}

/// What a mark shows of a rack's uplinks. `None`: the finding is about none of them.
fn of_uplink(finding: &Finding) -> Option<&'static str> {
    match (finding.cause, finding.subject) {
        (Cause::Uplink, _) => Some("oversubscribed"),
        (Cause::BadPath, _) => Some("bad path"),
        (Cause::LostPath, _) => Some("path not in use"),
        (other, Subject::Rack { .. } | Subject::RackPair { .. }) => Some(cause(other)),
        (other, Subject::Run) if matches!(finding.details, Details::LossyUplinks(_)) => {
            Some(cause(other))
        }
        _ => None,
    }
}

/// A word with an icon that leads from a row to its finding.
#[derive(Clone, Serialize)]
pub(super) struct Mark {
    class: &'static str,
    word: &'static str,
    to: String,
}

impl Mark {
    pub(super) fn class(&self) -> &'static str {
        self.class
    }

    pub(super) fn word(&self) -> &'static str {
        self.word
    }

    /// Anchor of the finding.
    pub(super) fn to(&self) -> &str {
        &self.to
    }
}

/// All accusations of an analysis.
pub(super) struct Accused<'a> {
    hosts: BTreeMap<HostId, Vec<Mark>>,
    uplinks: Vec<(&'a Finding, Mark)>,
}

impl<'a> Accused<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let mut accused = Self {
            hosts: BTreeMap::new(),
            uplinks: Vec::new(),
        };
        for (index, finding) in analysis.verdict.findings.iter().enumerate() {
            if finding.severity == Severity::Info {
                continue;
            }
            let mark = Mark {
                class: Tone::of_severity(finding.severity).class(),
                word: cause(finding.cause),
                to: format!("finding-{}", index + 1),
            };
            if let Subject::Host { host } = finding.subject {
                accused.hosts.entry(host).or_default().push(mark);
            } else if let Some(word) = of_uplink(finding) {
                accused.uplinks.push((finding, Mark { word, ..mark }));
            }
        }
        accused
    }

    pub(super) fn host(&self, host: HostId) -> Vec<Mark> {
        self.hosts.get(&host).cloned().unwrap_or_default()
    }

    /// Findings about a rack's uplinks: by itself, or of a pair or of all racks that it is one of.
    pub(super) fn rack(&self, analysis: &Analysis, rack: RackId) -> Vec<Mark> {
        let is_limited = is_limited(analysis, rack);
        let names = |subject: Subject| match subject {
            Subject::Rack { rack: named } => named == rack,
            Subject::RackPair { from, to } => from == rack || to == rack,
            Subject::Run => true,
            Subject::Host { .. } | Subject::Pair { .. } => false,
        };
        // A finding about several racks' uplinks names those that limit.
        let is_its = |finding: &Finding| match (&finding.details, finding.cause, finding.subject) {
            (Details::LossyUplinks(lossy), _, Subject::Run) => {
                lossy.racks.iter().any(|lossy| lossy.rack == rack)
            }
            (_, Cause::Uplink, Subject::RackPair { .. } | Subject::Run) => is_limited,
            _ => true,
        };
        let uplinks = self.uplinks.iter();
        let mut marks: Vec<Mark> = uplinks
            .filter(|(finding, _)| names(finding.subject) && is_its(finding))
            .map(|(_, mark)| mark.clone())
            .collect();
        // Two directions are one word.
        marks.dedup_by_key(|mark| mark.word);
        marks
    }

    /// A finding may cover both directions, or those of many racks, in one: a direction that limits
    /// is then marked with the finding that names it, else its other direction, else the whole run.
    pub(super) fn rack_pair(&self, pair: &RackPairAnalysis) -> Option<Mark> {
        let (from, to) = (pair.from, pair.to);
        let named = |wanted: Subject| {
            self.uplinks
                .iter()
                .find(|(finding, _)| finding.cause == Cause::Uplink && finding.subject == wanted)
                .map(|(_, mark)| mark.clone())
        };
        named(Subject::RackPair { from, to }).or_else(|| {
            pair.limited.filter(|limited| *limited)?;
            let wider = [
                Subject::RackPair { from: to, to: from },
                Subject::Rack { rack: from },
                Subject::Rack { rack: to },
                Subject::Run,
            ];
            wider.into_iter().find_map(named)
        })
    }
}
