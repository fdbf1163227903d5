//! Where in the page a piece of evidence can be seen: the panel of a host, a stage, a pair,
//! two racks' row.
//!
//! An evidence's `source` names a file and what to read in it (docs/reference/findings.md):
//! stages are between backquotes, hosts and racks by their names. What it names and the page
//! shows becomes a link.

use super::anchors::{host_anchor, rack_anchor, stage_anchor};
use super::panels::has_panel;
use crate::words::{host_name, one_line, rack_name};
use ew_model::analysis::RackPairAnalysis;
use ew_model::finding::Subject;
use ew_model::{Analysis, HostId, RackId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Links of one piece of evidence; more would be a list of everything.
const MAX_LINKS: usize = 4;

/// A link to an element of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct EvidenceLink {
    text: String,
    /// The element that shows it without a script.
    to: String,
    /// The host whose panel shows it.
    host: Option<u32>,
    /// The stage to point out in the panel.
    stage: Option<usize>,
    /// The host_pair of the map that shows it: sender and receiver.
    pair: Option<(u32, u32)>,
}

/// What can be named, found once for all findings.
pub(super) struct EvidenceLinks<'a> {
    analysis: &'a Analysis,
    hosts: BTreeMap<&'a str, HostId>,
    racks: BTreeMap<&'a str, RackId>,
    host_pairs: BTreeSet<(HostId, HostId)>,
}

/// What a source names, in its order.
#[derive(Debug, Default)]
struct Named {
    stages: Vec<usize>,
    hosts: Vec<HostId>,
    racks: Vec<RackId>,
}

impl<'a> EvidenceLinks<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let inventory = analysis.inventory();
        let hosts = inventory.host_ids().zip(&inventory.hosts);
        let racks = inventory.rack_ids().zip(&inventory.racks);
        Self {
            analysis,
            hosts: hosts.map(|(id, host)| (host.name.as_str(), id)).collect(),
            racks: racks.map(|(id, rack)| (rack.name.as_str(), id)).collect(),
            host_pairs: analysis.host_pairs.iter().map(|c| (c.src, c.dst)).collect(),
        }
    }

    /// The links of evidence with this source, of a finding about this subject.
    pub(super) fn of(&self, subject: Subject, source: &str) -> Vec<EvidenceLink> {
        let mut named = self.named(source);
        if let (Subject::Host { host }, true) = (subject, named.hosts.is_empty()) {
            named.hosts.push(host);
        }
        let mut links = Vec::new();
        match named.hosts[..] {
            [src, dst] if self.host_pairs.contains(&(src, dst)) => links.push(self.pair(src, dst)),
            _ => {}
        }
        let stage = named.stages.first().filter(|_| named.stages.len() == 1);
        links.extend(named.hosts.iter().map(|h| self.host(*h, stage.copied())));
        if let [from, to] = named.racks[..] {
            links.extend(self.rack_pair(from, to));
        }
        links.extend(named.stages.iter().map(|stage| self.stage(*stage)));
        links.truncate(MAX_LINKS);
        links
    }

    fn named(&self, source: &str) -> Named {
        let mut named = Named::default();
        for (at, piece) in source.split('`').enumerate() {
            let is_quoted = at % 2 == 1;
            if is_quoted {
                let stages = &self.analysis.stages;
                let stage = stages.iter().position(|stage| stage.name == piece);
                named.stages.extend(stage);
                continue;
            }
            for word in piece.split_whitespace() {
                let name = word.trim_end_matches([',', ';', ':']);
                named.hosts.extend(self.hosts.get(name));
                named.racks.extend(self.racks.get(name));
            }
        }
        named
    }

    /// Its panel; its row where there is no panel.
    fn host(&self, host: HostId, stage: Option<usize>) -> EvidenceLink {
        let name = host_name(self.analysis.inventory(), host);
        let known = self.analysis.hosts.get(host.index());
        if !known.is_some_and(has_panel) {
            return plain(name, host_anchor(host));
        }
        EvidenceLink {
            host: Some(host.0),
            stage,
            ..plain(format!("{name} over time"), host_anchor(host))
        }
    }

    fn pair(&self, src: HostId, dst: HostId) -> EvidenceLink {
        let inventory = self.analysis.inventory();
        let (from, to) = (host_name(inventory, src), host_name(inventory, dst));
        EvidenceLink {
            pair: Some((src.0, dst.0)),
            ..plain(format!("{from} to {to} in the map"), "pairs".into())
        }
    }

    fn rack_pair(&self, from: RackId, to: RackId) -> Option<EvidenceLink> {
        let inventory = self.analysis.inventory();
        let is_it = |pair: &&RackPairAnalysis| (pair.from, pair.to) == (from, to);
        self.analysis.rack_pairs.iter().find(is_it)?;
        let (from_name, to_name) = (rack_name(inventory, from), rack_name(inventory, to));
        let text = format!("{from_name} to {to_name}");
        Some(plain(text, rack_anchor(from, to)))
    }

    fn stage(&self, stage: usize) -> EvidenceLink {
        let name = self.analysis.stages.get(stage).map(|s| one_line(&s.name));
        let text = format!("stage {}", name.unwrap_or_default());
        plain(text, stage_anchor(stage))
    }
}

fn plain(text: String, to: String) -> EvidenceLink {
    EvidenceLink {
        text,
        to,
        host: None,
        stage: None,
        pair: None,
    }
}
