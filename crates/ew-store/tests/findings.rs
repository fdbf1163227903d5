//! `findings.json` is as in its reference, word for word.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

use ew_model::HostId;
use ew_model::finding::{
    Cable, Cause, Confidence, Details, Evidence, Finding, Grounds, Quantity, Severity, Subject,
    Symptom, VerdictStatus, WordedFinding, WordedVerdict,
};
use ew_store::write_findings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn reference() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/findings.md");
    fs::read_to_string(path).unwrap()
}

/// The words between backquotes in a row of a table below a heading: all of the row's, or of its
/// first cell.
fn words<'r>(reference: &'r str, heading: &str, first_cells: bool) -> Vec<&'r str> {
    let (_, section) = reference.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let lines: Vec<&str> = section.lines().chain([""]).collect();
    let is_row = |pair: &&[&str]| pair[0].starts_with("| `") && !pair[1].starts_with("| ---");
    let rows = lines.windows(2).filter(is_row).map(|pair| pair[0]);
    let cells = rows.map(|row| match first_cells {
        true => row.split(" | ").next().unwrap(),
        false => row,
    });
    cells
        .flat_map(|text| text.split('`').skip(1).step_by(2))
        .collect()
}

/// Every word that an enumeration may have, from its reader's error for an unknown word.
fn variants<T: DeserializeOwned>(wrong: &str) -> Vec<String> {
    let refused = serde_json::from_str::<T>(wrong).err().unwrap().to_string();
    let words = refused.split('`').skip(1).step_by(2);
    words
        .filter(|word| *word != "?")
        .map(str::to_owned)
        .collect()
}

fn verdict() -> WordedVerdict {
    let quantity = Quantity {
        value: 1.0,
        low: None,
        high: None,
        unit: "count".into(),
    };
    let finding = Finding {
        severity: Severity::Fault,
        subject: Subject::Host { host: HostId(6) },
        cause: Cause::Disk,
        symptom: Some(Symptom::SlowHost),
        measured: Some(quantity),
        expected: None,
        confidence: Confidence::Low,
        details: Details::Unknown,
        cables: vec![Cable {
            host: HostId(6),
            link: "eth0".into(),
            switch: "leaf2".into(),
            port: "Ethernet7".into(),
        }],
    };
    WordedVerdict {
        sentence: "words".into(),
        status: VerdictStatus::Worse,
        findings: vec![WordedFinding {
            finding,
            sentence: "words".into(),
            evidence: vec![Evidence {
                text: "seen".into(),
                source: "where".into(),
            }],
            hint: "do".into(),
            documentation: "there".into(),
        }],
        grounds: Grounds::default(),
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn every_field_is_in_the_reference() {
    let temp_dir = tempfile::tempdir().unwrap();
    write_findings(temp_dir.path(), serde_json::to_string(&verdict())).unwrap();
    let text = fs::read(temp_dir.path().join("findings.json")).unwrap();
    let written: Value = serde_json::from_slice(&text).unwrap();
    let finding = &written["findings"][0];
    let reference = reference();
    let described = |heading, key: &str| words(&reference, heading, true).contains(&key);
    for key in keys(&written) {
        assert!(described("The verdict", key), "{key}");
    }
    for key in keys(finding) {
        assert!(described("A finding", key), "{key}");
    }
    for (part, reported) in [
        (&finding["evidence"][0], "evidence"),
        (&finding["measured"], "quantity"),
        (&finding["cables"][0], "cable"),
        (&written["grounds"], "grounds"),
    ] {
        for key in keys(part) {
            assert!(reference.contains(&format!("`{key}`")), "{reported}: {key}");
        }
    }
    assert_eq!(
        finding["subject"].to_string(),
        r#"{"host":6,"type":"host"}"#
    );
    assert!(reference.contains(r#"{"type": "host", "host": 6}"#));
}

#[test]
fn every_word_is_in_the_reference() {
    let reference = reference();
    let reported = |heading| words(&reference, heading, false);
    for status in variants::<VerdictStatus>("\"?\"") {
        assert!(reported("The verdict").contains(&&*status), "{status}");
    }
    for word in [
        variants::<Severity>("\"?\""),
        variants::<Symptom>("\"?\""),
        variants::<Confidence>("\"?\""),
    ]
    .concat()
    {
        assert!(reported("A finding").contains(&&*word), "{word}");
    }
    for kind in variants::<Subject>(r#"{"type": "?"}"#) {
        let shown = format!("{{\"type\": \"{kind}\"");
        assert!(reference.contains(&shown), "{shown}");
    }
    let causes = words(&reference, "Causes", true);
    let all = variants::<Cause>("\"?\"");
    assert!(all.len() > 20, "{all:?}");
    for cause in &all {
        assert!(causes.contains(&&**cause), "not reported: {cause}");
    }
    for cause in causes {
        assert!(all.iter().any(|known| known == cause), "no cause: {cause}");
    }
}
