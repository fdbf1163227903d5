//! Which rows of the tables a finding accuses.

use super::findings::severity_class;
use crate::words::cause;
use ew_model::analysis::RackPairAnalysis;
use ew_model::finding::{Cause, Finding, Severity, Subject};
use ew_model::{Analysis, HostId};
use serde::Serialize;
use std::collections::BTreeMap;

/// A word with an icon that leads from a row to its finding.
#[derive(Clone, Serialize)]
pub(super) struct Mark {
    class: &'static str,
    word: &'static str,
    to: String,
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
                class: severity_class(finding.severity),
                word: cause(finding.cause),
                to: format!("finding-{}", index + 1),
            };
            if let Subject::Host { host } = finding.subject {
                accused.hosts.entry(host).or_default().push(mark);
            } else if finding.cause == Cause::Uplink {
                let mark = Mark {
                    word: "oversubscribed",
                    ..mark
                };
                accused.uplinks.push((finding, mark));
            }
        }
        accused
    }

    pub(super) fn host(&self, host: HostId) -> Vec<Mark> {
        self.hosts.get(&host).cloned().unwrap_or_default()
    }

    /// A finding may tell both directions, or those of many racks, in one: a direction that limits is then marked
    /// with the finding that names it, else its other direction, else the whole run.
    pub(super) fn rack_pair(&self, pair: &RackPairAnalysis) -> Option<Mark> {
        let (from, to) = (pair.from, pair.to);
        let named = |wanted: Subject| {
            self.uplinks
                .iter()
                .find(|(finding, _)| finding.subject == wanted)
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
