//! The findings' cards: what was found, what it rests on, and where to see that.

use super::places::{Place, Places};
use super::view::{host_anchor, rack_anchor, rich, unbroken};
use crate::words::{
    capitalised, cause, full_sentence, host_name, one_line, quantity, rack_name, severity,
    severity_status, shortened,
};
use ew_model::Analysis;
use ew_model::HostId;
use ew_model::finding::{Evidence, Finding, Severity, Subject};
use serde::Serialize;

/// This many findings are all open at first; of more than that only the faults among the first
/// ones.
const FINDINGS_OPEN: usize = 3;
/// A headline is one line.
const HEADLINE_CHARS: usize = 100;

#[derive(Serialize)]
pub(super) struct FindingView {
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

/// Words that lead to a place in the page, where there is one.
#[derive(Serialize)]
struct Link {
    text: String,
    to: Option<String>,
}

#[derive(Serialize)]
struct EvidenceView {
    text: String,
    source: String,
    places: Vec<Place>,
}

/// What is not only good to know, a line each.
pub(super) fn headlines(analysis: &Analysis) -> Vec<Headline> {
    let findings = analysis.verdict.findings.iter().enumerate();
    let shown = findings.filter(|(_, finding)| finding.severity != Severity::Info);
    shown
        .map(|(index, finding)| {
            let whole = capitalised(analysis.inventory(), &finding.sentence).replace('`', "");
            Headline {
                to: anchor(index),
                class: severity_class(finding.severity),
                status: severity_status(finding.severity),
                text: shortened(&whole, HEADLINE_CHARS),
                whole,
            }
        })
        .collect()
}

fn anchor(index: usize) -> String {
    format!("finding-{}", index + 1)
}

/// All findings, worst first.
pub(super) fn views(analysis: &Analysis) -> Vec<FindingView> {
    let places = Places::new(analysis);
    let findings = analysis.verdict.findings.iter().enumerate();
    findings
        .map(|(index, finding)| view(analysis, &places, index, finding))
        .collect()
}

pub(super) fn severity_class(severity: Severity) -> &'static str {
    match severity {
        Severity::Fault => "bad",
        Severity::Notice => "part",
        Severity::Info => "open",
    }
}

fn view(analysis: &Analysis, places: &Places<'_>, index: usize, finding: &Finding) -> FindingView {
    let inventory = analysis.inventory();
    let is_short = analysis.verdict.findings.len() <= FINDINGS_OPEN;
    let figure = |q| unbroken(&quantity(q, finding.cause));
    let evidence = |evidence: &Evidence| EvidenceView {
        text: rich(&capitalised(inventory, &evidence.text)),
        source: one_line(&evidence.source).replace('`', ""),
        places: places.of(finding.subject, &evidence.source),
    };
    FindingView {
        anchor: anchor(index),
        open: is_short || (index < FINDINGS_OPEN && finding.severity == Severity::Fault),
        class: severity_class(finding.severity),
        severity: severity(finding.severity),
        sentence: rich(&full_sentence(inventory, &finding.sentence)),
        subject: subject_links(analysis, finding.subject),
        cause: cause(finding.cause),
        measured: finding.measured.as_ref().map(figure),
        expected: finding.expected.as_ref().map(figure),
        confidence: finding.confidence.word(),
        evidence: finding.evidence.iter().map(evidence).collect(),
        hint: rich(&full_sentence(inventory, &finding.hint)),
        drawn: drawn(finding),
    }
}

/// The name of a finding's place in the drawing of the fabric. `None`: it has no one place there.
fn drawn(finding: &Finding) -> Option<String> {
    match finding.subject {
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
