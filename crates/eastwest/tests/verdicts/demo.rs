//! What everybody tries first.

use crate::accuracy::assert_oversubscription;
use crate::common::{Finished, can_run_labs, eastwest, text, word};

/// The demo's truth: 4:1, and r2h3 at half its rate. Nothing else is reported about anybody, and
/// the last ten lines on a terminal name both.
#[test]
fn names_its_slow_host_and_its_ratio_and_nothing_else() {
    if !can_run_labs() {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let mut demo = eastwest();
    demo.args(["demo", "--format", "json", "--runs-dir"]);
    let finished = Finished::of(&demo.arg(work.path()).output().unwrap());
    assert_oversubscription(&finished.json, 4.0);
    let findings = finished.json["verdict"]["findings"].as_array().unwrap();
    let accusing: Vec<(String, String)> = findings
        .iter()
        .filter(|finding| finding["severity"] != "info")
        .map(|finding| {
            (
                word(&finding["subject"]["type"]),
                word(&finding["sentence"]),
            )
        })
        .collect();
    let of = |kind: &str, words: &str| {
        let about =
            |(other, sentence): &&(String, String)| other == kind && sentence.contains(words);
        accusing.iter().filter(about).count()
    };
    assert_eq!(of("host", "r2h3: "), 1, "{accusing:#?}");
    assert_eq!(of("rack-pair", "oversubscribed 4.0:1"), 1, "{accusing:#?}");
    assert_eq!(accusing.len(), 2, "{accusing:#?}\n{}", finished.stderr);
    assert_eq!(finished.code, 0, "finding them is success");
    let mut shown = eastwest();
    shown
        .args(["report", "latest", "--runs-dir"])
        .arg(work.path());
    let shown = text(&shown.output().unwrap().stdout);
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(10)..].join("\n");
    assert!(
        last.contains("r2h3:") && last.contains("oversubscribed"),
        "{last}"
    );
}
