//! Every sentence about a finding, and about a figure next to it: one entry for each kind of
//! [`Details`], and nowhere else.
//!
//! An entry reads facts, which have hosts and racks by their numbers; the inventory has their
//! names. What is shown is decided by the analysis already: an entry chooses words, singular and
//! plural.

pub(crate) mod basis;
pub(crate) mod comparison;
mod congestion;
mod conntrack;
mod entries;
mod flow_completion;
mod phrases;
pub(crate) mod pods;
pub(crate) mod racks;
pub(crate) mod settings;
mod sweep;
pub(crate) mod tools;
mod verdict;
mod warnings;
mod why;

pub use basis::{WordedBasis, worded_basis};
pub use comparison::comparison_sentence;
pub use congestion::{WordedImpact, worded_impact};
pub use conntrack::conntrack_words;
pub use flow_completion::{WordedCompletion, worded_completion};
pub use pods::{WordedPodCause, WordedPodComparison, worded_pods};
pub use racks::{WordedRackPair, worded_rack_pair};
pub use settings::{WordedStageAnalysis, worded_stage};
pub(crate) use sweep::note as curve_note;
pub use sweep::{WordedHalfPerformance, WordedStep, WordedSweep, worded_step, worded_sweep};
pub use tools::{WordedStanding, WordedToolComparison, WordedToolFigure, worded_tools};
pub(crate) use verdict::sentence;
pub(crate) use warnings::warning;

use ew_model::finding::{Cable, Cause, Details, Evidence, Finding, WordedFinding, WordedVerdict};
use ew_model::{Analysis, Inventory};

/// The page with a heading for each cause.
const CAUSES: &str = "docs/reference/causes.md";

/// What a kind of finding says.
pub(crate) trait Entry {
    /// What was found, in a line.
    fn headline(&self, names: &Inventory) -> Headline;

    /// What it rests on, each with where to look.
    fn evidence(&self, names: &Inventory) -> Vec<Evidence>;

    /// What a person can do next.
    fn next_step(&self, names: &Inventory) -> String;
}

/// The first line of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headline {
    /// "r2h3: 50% of peers in both directions (47.3 vs 94.6 Mb/s)".
    pub(crate) what: String,
    /// What is behind "Cause: ". `None` where the first part says it.
    pub(crate) because: Option<String>,
}

impl Headline {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            because: None,
        }
    }

    /// With the cause.
    pub(crate) fn because(self, because: impl Into<String>) -> Self {
        Self {
            because: Some(because.into()),
            ..self
        }
    }

    /// All of it.
    pub(crate) fn sentence(&self) -> String {
        match &self.because {
            Some(because) => format!("{}. Cause: {because}", self.what),
            None => self.what.clone(),
        }
    }
}

/// The verdict with its sentences, as `findings.json` and the JSON report hold it.
#[must_use]
pub fn in_words(analysis: &Analysis) -> WordedVerdict {
    let names = analysis.inventory();
    let findings = analysis.verdict.findings.iter();
    WordedVerdict {
        sentence: sentence(analysis),
        status: analysis.verdict.status,
        findings: findings.map(|found| worded(found, names)).collect(),
        grounds: analysis.verdict.grounds.clone(),
    }
}

/// The finding with its sentences.
#[must_use]
pub fn worded(finding: &Finding, names: &Inventory) -> WordedFinding {
    WordedFinding {
        finding: finding.clone(),
        sentence: headline(finding, names).sentence(),
        evidence: evidence(finding, names),
        hint: next_step(finding, names),
        documentation: documentation(finding.cause),
    }
}

/// What a finding says first.
pub(crate) fn headline(finding: &Finding, names: &Inventory) -> Headline {
    entry(&finding.details).map_or_else(
        || Headline::new("a finding without details"),
        |entry| entry.headline(names),
    )
}

/// What a finding rests on, and where the cables of who it accuses end.
pub(crate) fn evidence(finding: &Finding, names: &Inventory) -> Vec<Evidence> {
    let mut found = entry(&finding.details).map_or_else(Vec::new, |entry| entry.evidence(names));
    found.extend(finding.cables.iter().map(|cable| end_of(cable, names)));
    found
}

/// What a person can do next. Empty where nothing is known of a finding.
pub(crate) fn next_step(finding: &Finding, names: &Inventory) -> String {
    entry(&finding.details).map_or_else(String::new, |entry| entry.next_step(names))
}

/// Where the documentation explains a cause.
pub(crate) fn documentation(cause: Cause) -> String {
    let word = serde_json::to_value(cause).unwrap_or_default();
    format!("{CAUSES}#{}", word.as_str().unwrap_or_default())
}

fn entry(details: &Details) -> Option<&dyn Entry> {
    Some(match details {
        Details::Unknown => return None,
        Details::BackgroundTraffic(it) => it,
        Details::BadPathByRouter(it) => it,
        Details::BadPathByShare(it) => it,
        Details::BelowConfiguredNic(it) => it,
        Details::BelowLinkSpeed(it) => it,
        Details::BlackHole(it) => it,
        Details::BondMember(it) => it,
        Details::BusyDisk(it) => it,
        Details::BusyDisks(it) => it,
        Details::Congestion(it) => it,
        Details::DatagramLoss(it) => it,
        Details::FasterNetwork(it) => it,
        Details::FlowsMissing(it) => it,
        Details::FlowsUnexplained(it) => it,
        Details::HostsMissing(it) => it,
        Details::Incast(it) => it,
        Details::InvalidMeasurement(it) => it,
        Details::LineRate(it) => it,
        Details::LongRoundTrips(it) => it,
        Details::LossyUplinks(it) => it,
        Details::LostPath(it) => it,
        Details::LowLinkSpeed(it) => it,
        Details::NarrowPath(it) => it,
        Details::NicClasses(it) => it,
        Details::OddMtu(it) => it,
        Details::Oversubscribed(it) => it,
        Details::OversubscribedPods(it) => it,
        Details::PathsByRates(it) => it,
        Details::PathsByRouters(it) => it,
        Details::PodNetwork(it) => it,
        Details::SingleConnections(it) => it,
        Details::SlowAtTimes(it) => it,
        Details::SlowHost(it) => it,
        Details::SlowPair(it) => it,
        Details::SlowPairs(it) => it,
        Details::StageBelow(it) => it,
        Details::StarvedHost(it) => it,
    })
}

/// A piece of evidence.
pub(in crate::catalogue) fn proof(text: impl Into<String>, source: impl Into<String>) -> Evidence {
    Evidence {
        text: text.into(),
        source: source.into(),
    }
}

fn end_of(cable: &Cable, names: &Inventory) -> Evidence {
    let Cable {
        host,
        link,
        switch,
        port,
    } = cable;
    proof(
        format!(
            "{}: {link} is at port {port} of {switch}",
            names.name(*host)
        ),
        "HostFacts: LLDP",
    )
}
