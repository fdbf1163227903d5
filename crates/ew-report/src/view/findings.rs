//! Findings in words.

use super::tone::Tone;
use crate::catalogue;
use crate::words::{cause, one_line, quantity, severity, severity_status, shortened};
use ew_model::finding::{Finding, Quantity, Severity, Subject};
use ew_model::{Analysis, Inventory};

/// A finding in words.
pub(crate) struct FindingWords {
    pub(crate) severity: Severity,
    pub(crate) subject: Subject,
    pub(crate) sentence: String,
    /// The part of the sentence before its cause. `None` where it names none apart.
    before_cause: Option<String>,
    pub(crate) cause: &'static str,
    pub(crate) measured: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) confidence: &'static str,
    pub(crate) evidence: Vec<EvidenceWords>,
    /// What to do.
    pub(crate) hint: String,
    /// Where its cause is explained.
    pub(crate) documentation: String,
}

pub(crate) struct EvidenceWords {
    pub(crate) text: String,
    /// Where it is recorded.
    pub(crate) source: String,
}

pub(super) fn all(analysis: &Analysis) -> Vec<FindingWords> {
    let names = analysis.inventory();
    let findings = analysis.verdict.findings.iter();
    findings.map(|finding| in_words(finding, names)).collect()
}

fn in_words(finding: &Finding, names: &Inventory) -> FindingWords {
    let figure = |figure: &Quantity| quantity(figure, finding.cause);
    let evidence = catalogue::evidence(finding, names).into_iter();
    let evidence = evidence.map(|evidence| EvidenceWords {
        text: one_line(&evidence.text),
        source: one_line(&evidence.source),
    });
    let headline = catalogue::headline(finding, names);
    FindingWords {
        severity: finding.severity,
        subject: finding.subject,
        sentence: one_line(&headline.sentence()),
        before_cause: headline.because.map(|_| one_line(&headline.what)),
        cause: cause(finding.cause),
        measured: finding.measured.as_ref().map(figure),
        expected: finding.expected.as_ref().map(figure),
        confidence: finding.confidence.word(),
        evidence: evidence.collect(),
        hint: one_line(&catalogue::next_step(finding, names)),
        documentation: catalogue::documentation(finding.cause),
    }
}

impl FindingWords {
    /// Whether it is more than good to know.
    pub(crate) fn is_open(&self) -> bool {
        self.severity != Severity::Info
    }

    /// Its sentence in at most so many characters: where it is longer, the cause is named by its
    /// word.
    pub(crate) fn headline(&self, max_chars: usize) -> String {
        let is_long = self.sentence.chars().count() > max_chars;
        match &self.before_cause {
            Some(what) if is_long => {
                let end = format!(" Cause: {}", self.cause);
                let width = max_chars.saturating_sub(end.chars().count());
                shortened(&format!("{what}."), width.max(1)) + &end
            }
            _ => shortened(&self.sentence, max_chars),
        }
    }

    pub(crate) fn tone(&self) -> Tone {
        Tone::of_severity(self.severity)
    }

    /// "Fault".
    pub(crate) fn word(&self) -> &'static str {
        severity(self.severity)
    }

    /// "FAIL".
    pub(crate) fn status(&self) -> &'static str {
        severity_status(self.severity)
    }

    /// The figures next to its sentence: "measured 40 Mb/s; expected 95 Mb/s; cause: uplink;
    /// confidence: high".
    pub(crate) fn figures(&self) -> String {
        let reported = |what: &str, figure: &String| format!("{what} {figure}");
        let parts = [
            self.measured.as_ref().map(|it| reported("measured", it)),
            self.expected.as_ref().map(|it| reported("expected", it)),
            Some(format!("cause: {}", self.cause)),
            Some(format!("confidence: {}", self.confidence)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join("; ")
    }
}
