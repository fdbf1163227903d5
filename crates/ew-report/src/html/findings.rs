//! The findings' cards: what was found, what it rests on, and where to see that.

use super::anchors::{host_anchor, rack_anchor};
use super::evidence_links::{EvidenceLink, EvidenceLinks};
use super::rich_text::{rich, unbroken};
use crate::view::FindingWords;
use crate::words::{capitalised, full_sentence, host_name, rack_name};
use ew_model::Analysis;
use ew_model::HostId;
use ew_model::finding::{Severity, Subject};
use ew_model::inventory::Inventory;
use serde::Serialize;

/// This many findings are all open at first; of more than that only the faults among the first
/// ones.
const FINDINGS_OPEN: usize = 3;
/// A headline is one line.
const HEADLINE_CHARS: usize = 100;

#[derive(Serialize)]
pub(super) struct Card {
    anchor: String,
    open: bool,
    class: &'static str,
    severity: &'static str,
    sentence: String,
    subject: Vec<Link>,
    cause: &'static str,
    measured: Option<String>,
    expected: Option<String>,
    confidence: &'static str,
    evidence: Vec<EvidenceView>,
    hint: String,
    documentation: String,
    /// What the drawing of the fabric marks for it.
    drawn: Option<String>,
}

/// A finding on top of the page.
#[derive(Serialize)]
pub(super) struct Headline {
    to: String,
    class: &'static str,
    status: &'static str,
    text: String,
    whole: String,
}

/// Words that link to an element of the page, where there is one.
#[derive(Serialize)]
struct Link {
    text: String,
    to: Option<String>,
}

#[derive(Serialize)]
struct EvidenceView {
    text: String,
    source: String,
    links: Vec<EvidenceLink>,
}

/// What is not only good to know, a line each.
pub(super) fn headlines(inventory: &Inventory, findings: &[FindingWords]) -> Vec<Headline> {
    let shown = findings.iter().enumerate();
    shown
        .filter(|(_, finding)| finding.is_open())
        .map(|(index, finding)| {
            let whole = capitalised(inventory, &finding.sentence).replace('`', "");
            Headline {
                to: anchor(index),
                class: finding.tone().class(),
                status: finding.status(),
                text: capitalised(inventory, &finding.headline(HEADLINE_CHARS)).replace('`', ""),
                whole,
            }
        })
        .collect()
}

fn anchor(index: usize) -> String {
    format!("finding-{}", index + 1)
}

/// All findings, worst first.
pub(super) fn cards(analysis: &Analysis, findings: &[FindingWords]) -> Vec<Card> {
    let links = EvidenceLinks::new(analysis);
    let is_short = findings.len() <= FINDINGS_OPEN;
    let numbered = findings.iter().enumerate();
    numbered
        .map(|(index, finding)| {
            let is_first = index < FINDINGS_OPEN && finding.severity == Severity::Fault;
            card(analysis, &links, index, finding, is_short || is_first)
        })
        .collect()
}

fn card(
    analysis: &Analysis,
    links: &EvidenceLinks<'_>,
    index: usize,
    finding: &FindingWords,
    open: bool,
) -> Card {
    let inventory = analysis.inventory();
    let figure = |words: &String| unbroken(words);
    let evidence = finding.evidence.iter().map(|evidence| EvidenceView {
        text: rich(&capitalised(inventory, &evidence.text)),
        links: links.of(finding.subject, &evidence.source),
        source: evidence.source.replace('`', ""),
    });
    Card {
        anchor: anchor(index),
        open,
        class: finding.tone().class(),
        severity: finding.word(),
        sentence: rich(&full_sentence(inventory, &finding.sentence)),
        subject: subject_links(analysis, finding.subject),
        cause: finding.cause,
        measured: finding.measured.as_ref().map(figure),
        expected: finding.expected.as_ref().map(figure),
        confidence: finding.confidence,
        evidence: evidence.collect(),
        hint: rich(&full_sentence(inventory, &finding.hint)),
        documentation: finding.documentation.clone(),
        drawn: drawn(finding.subject),
    }
}

/// The name of a finding's element in the drawing of the fabric. `None`: it has no single one.
fn drawn(subject: Subject) -> Option<String> {
    match subject {
        Subject::Host { host } => Some(format!("host-{}", host.0)),
        Subject::Pair { src, dst } => Some(format!("pair-{}-{}", src.0, dst.0)),
        Subject::Rack { rack } | Subject::RackPair { from: rack, .. } => {
            Some(format!("rack-{}", rack.0))
        }
        Subject::Run => None,
    }
}

/// The subject in words, each name leading to its row where the page has one.
fn subject_links(analysis: &Analysis, subject: Subject) -> Vec<Link> {
    let inventory = analysis.inventory();
    let host = |id: HostId| Link {
        text: host_name(inventory, id),
        to: analysis
            .hosts
            .iter()
            .any(|h| h.host == id)
            .then(|| host_anchor(id)),
    };
    match subject {
        Subject::Host { host: id } => vec![host(id)],
        Subject::Pair { src, dst } => vec![
            host(src),
            Link {
                text: " to ".into(),
                to: None,
            },
            host(dst),
        ],
        Subject::RackPair { from, to } => vec![Link {
            text: format!(
                "{} to {}",
                rack_name(inventory, from),
                rack_name(inventory, to)
            ),
            to: analysis
                .rack_pairs
                .iter()
                .any(|p| (p.from, p.to) == (from, to))
                .then(|| rack_anchor(from, to)),
        }],
        Subject::Rack { rack } => vec![Link {
            text: rack_name(inventory, rack),
            to: None,
        }],
        Subject::Run => vec![Link {
            text: "the run".into(),
            to: None,
        }],
    }
}
