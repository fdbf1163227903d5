//! A run as JUnit's XML, for CI: a test case per threshold, per host, and for the network as a
//! whole.
//!
//! The layout is the one that Jenkins and GitLab read: testsuites, testsuite, testcase, failure,
//! skipped.

use crate::words::{host_name, one_line, status, took_ns};
use ew_model::Analysis;
use ew_model::analysis::HostState;
use ew_model::finding::{Finding, Severity, Subject, VerdictStatus};
use std::fmt::Write as _;

/// How a test case came out.
enum Outcome {
    Passed,
    Failed(String),
    /// There is no figure.
    Skipped(String),
}

struct Case {
    class: &'static str,
    name: String,
    outcome: Outcome,
}

pub(crate) fn render(analysis: &Analysis) -> String {
    let cases = cases(analysis);
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let run = &analysis.run;
    let seconds = took_ns(run).map_or(0.0, |ns| ns as f64 / 1e9);
    let totals = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\"",
        cases.len()
    );
    let name = escaped(&run.scenario.name);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"eastwest\" {totals}>\n  <testsuite name=\"{name}\" {totals}>\n"
    );
    for case in &cases {
        let head = format!(
            "    <testcase classname=\"{}\" name=\"{}\"",
            case.class,
            escaped(&case.name)
        );
        // Writing to a string cannot fail.
        let _ = match &case.outcome {
            Outcome::Passed => writeln!(xml, "{head}/>"),
            Outcome::Failed(why) => writeln!(
                xml,
                "{head}>\n      <failure message=\"{}\"/>\n    </testcase>",
                escaped(why)
            ),
            Outcome::Skipped(why) => writeln!(
                xml,
                "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>",
                escaped(why)
            ),
        };
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn cases(analysis: &Analysis) -> Vec<Case> {
    let mut cases = Vec::new();
    for checked in &analysis.thresholds {
        cases.push(Case {
            class: "threshold",
            name: checked.threshold.words(),
            outcome: match checked.is_met {
                Some(true) => Outcome::Passed,
                Some(false) => Outcome::Failed(checked.to_string()),
                None => Outcome::Skipped(checked.to_string()),
            },
        });
    }
    for host in &analysis.hosts {
        let faults = faults(analysis, |subject| {
            *subject == Subject::Host { host: host.host }
        });
        let outcome = match &host.state {
            HostState::Failed { message } | HostState::Lost { message } => {
                Outcome::Failed(message.clone())
            }
            HostState::Alive => outcome(&faults),
        };
        cases.push(Case {
            class: "host",
            name: host_name(analysis.inventory(), host.host),
            outcome,
        });
    }
    cases.push(Case {
        class: "network",
        name: "verdict".into(),
        outcome: verdict(analysis),
    });
    cases
}

/// As the exit code has it, under the same name in every run.
fn verdict(analysis: &Analysis) -> Outcome {
    let faults = faults(analysis, |_| true);
    let why = match faults.is_empty() {
        true => status(analysis).to_owned(),
        false => format!("{}: {}", status(analysis), faults.join("; ")),
    };
    match analysis.verdict.status {
        VerdictStatus::NothingWrong | VerdictStatus::AsExpected => Outcome::Passed,
        VerdictStatus::Worse => Outcome::Failed(why),
        VerdictStatus::Partial | VerdictStatus::NotDetermined if faults.is_empty() => {
            Outcome::Skipped(why)
        }
        VerdictStatus::Partial | VerdictStatus::NotDetermined => Outcome::Failed(why),
    }
}

fn outcome(faults: &[String]) -> Outcome {
    match faults.is_empty() {
        true => Outcome::Passed,
        false => Outcome::Failed(faults.join("; ")),
    }
}

fn faults(analysis: &Analysis, is_meant: impl Fn(&Subject) -> bool) -> Vec<String> {
    let is_fault = |finding: &&Finding| finding.severity == Severity::Fault;
    let findings = analysis.verdict.findings.iter().filter(is_fault);
    let meant = findings.filter(|finding| is_meant(&finding.subject));
    meant
        .map(|finding| {
            one_line(&crate::catalogue::headline(finding, analysis.inventory()).sentence())
        })
        .collect()
}

/// As an attribute of XML 1.0: without characters that are not allowed.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('?'),
            c => escaped.push(c),
        }
    }
    escaped
}
