//! Text, Markdown, CSV and JSON of fixed analyses, as snapshots, and what holds for all of them.

use crate::{common, workloads};
use ew_model::Analysis;
use ew_model::analysis::HostState;
use ew_model::finding::VerdictStatus;
use ew_model::inventory::HostId;
use ew_model::scenario::Expect;
use ew_report::{Format, TextStyle, render};
use proptest::prelude::*;

fn report(analysis: &Analysis, format: Format, width: usize) -> String {
    render(
        analysis,
        format,
        &TextStyle {
            width,
            color: false,
            details: true,
        },
    )
    .unwrap()
}

#[test]
fn text_demo() {
    insta::assert_snapshot!(report(&common::demo(), Format::Text, 100));
}

#[test]
fn text_failed() {
    insta::assert_snapshot!(report(&common::failed(), Format::Text, 80));
}

#[test]
fn text_missing() {
    insta::assert_snapshot!(report(&common::missing(), Format::Text, 100));
}

#[test]
fn text_many_hosts() {
    insta::assert_snapshot!(report(
        &common::cluster(3, 20, 1.0, Some(HostId(5))),
        Format::Text,
        100
    ));
}

/// CI follows a test case over runs by its name.
#[test]
fn junit_has_the_verdict_under_one_name() {
    let case = |analysis: &Analysis| {
        let xml = report(analysis, Format::Junit, 100);
        let (_, case) = xml.split_once("classname=\"network\" ").unwrap();
        case.replace("\n      ", "")
    };
    let mut analysis = common::demo();
    let failed = "name=\"verdict\"><failure message=\"FAIL: worse than expected: ";
    assert!(case(&analysis).starts_with(failed), "{}", case(&analysis));
    analysis.verdict.status = VerdictStatus::AsExpected;
    assert!(case(&analysis).starts_with("name=\"verdict\"/>"));
    analysis.verdict.findings.clear();
    analysis.verdict.status = VerdictStatus::Partial;
    let skipped = "name=\"verdict\"><skipped message=\"INCOMPLETE: figures are missing\"/>";
    assert!(case(&analysis).starts_with(skipped));
}

/// The path of the report comes below it: ten lines in all.
#[test]
fn the_summary_has_at_most_nine_lines() {
    let mut crowded = common::demo();
    let finding = crowded.verdict.findings[0].clone();
    crowded.verdict.findings.extend(vec![finding; 30]);
    for analysis in [crowded, common::demo(), common::failed(), common::missing()] {
        for width in [60, 100, 200] {
            let text = report(&analysis, Format::Text, width);
            let status = ["PASS", "WARN", "FAIL", "INCOMPLETE", "NO DATA"];
            let lines: Vec<&str> = text.lines().collect();
            let begins = |line: &&str| status.iter().any(|word| line.starts_with(word));
            let start = lines.iter().rposition(begins).unwrap();
            assert!(lines.len() - start <= 9, "{width}: {text}");
            let too_long = lines[start..]
                .iter()
                .find(|line| line.chars().count() > width);
            assert_eq!(too_long, None);
        }
    }
}

#[test]
fn details_are_shown_on_request() {
    let of = |details| {
        let style = TextStyle {
            details,
            ..TextStyle::default()
        };
        render(&common::demo(), Format::Text, &style).unwrap()
    };
    let (short, long) = (of(false), of(true));
    for fact in ["efficiency", "controller", "% of line rate:"] {
        assert!(long.contains(fact) && !short.contains(fact), "{fact}");
    }
    for fact in ["reference host", "repeat"] {
        assert!(short.contains(fact), "{fact}");
    }
}

#[test]
fn json_names_hosts_and_racks() {
    let text = report(&common::demo(), Format::Json, 100);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let hosts = json["run"]["inventory"]["hosts"].as_array().unwrap();
    let racks = json["run"]["inventory"]["racks"].as_array().unwrap();
    let name = |of: &[serde_json::Value], number: &serde_json::Value| {
        of[number.as_u64().unwrap() as usize]["name"].clone()
    };
    for cell in json["cells"].as_array().unwrap() {
        assert_eq!(cell["src_name"], name(hosts, &cell["src"]));
        assert_eq!(cell["dst_name"], name(hosts, &cell["dst"]));
    }
    let pair = &json["rack_pairs"][0];
    assert_eq!(pair["from_name"], name(racks, &pair["from"]));
    let findings = json["verdict"]["findings"].as_array().unwrap();
    let details = &findings[0]["details"];
    assert_eq!(details["racks"], serde_json::json!([0]));
    assert_eq!(details["rack_names"], serde_json::json!(["rack1"]));
    let mut subjects = findings.iter().map(|finding| &finding["subject"]);
    let subject = subjects.find(|subject| subject["host"].is_u64()).unwrap();
    assert_eq!(subject["host_name"], name(hosts, &subject["host"]));
    let again: Analysis = serde_json::from_str(&text).unwrap();
    assert_eq!(again, common::demo(), "the names are for readers only");
}

#[test]
fn markdown_demo() {
    insta::assert_snapshot!(report(&common::demo(), Format::Markdown, 100));
}

#[test]
fn markdown_failed() {
    insta::assert_snapshot!(report(&common::failed(), Format::Markdown, 100));
}

#[test]
fn without_a_statement_nothing_is_worse_than_expected() {
    let mut analysis = common::demo();
    analysis.run.scenario.expect = Expect::default();
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = report(&analysis, format, 100);
        assert!(text.contains("FAIL: fault found"), "{format:?}");
        assert!(!text.contains("worse than expected"), "{format:?}");
    }
}

/// To have seen nothing wrong of what could not be seen is no good news.
#[test]
fn paths_that_were_not_tested_are_reported_as_such() {
    let mut analysis = common::cluster(3, 3, 1.0, None);
    let untested = "; single paths not tested: hosts CPU-starved in 81% of their flows";
    assert!(!report(&analysis, Format::Text, 200).contains("not tested"));
    analysis.verdict.grounds.starved_path_flows = Some(0.81);
    assert!(report(&analysis, Format::Text, 200).contains(untested));
}

#[test]
fn the_command_to_repeat_has_the_seed_and_no_path() {
    let mut analysis = common::demo();
    analysis.run.seed = 77;
    analysis.run.command[0] = "/home/me/bin/eastwest".into();
    analysis.run.command.push("it's".into());
    let text = report(&analysis, Format::Text, 400);
    let command =
        r"eastwest run qualify --hosts 'r[1-2]h[01-04]' --racks '@rack[1-2]' 'it'\''s' --seed 77";
    assert!(text.contains(command), "{text}");
    analysis.run.command.push("--seed=77".into());
    let text = report(&analysis, Format::Text, 400);
    assert!(
        text.contains(
            r"'it'\''s' --seed=77
"
        ),
        "{text}"
    );
}

#[test]
fn csv_missing() {
    insta::assert_snapshot!(report(&common::missing(), Format::Csv, 100));
}

#[test]
fn json_failed() {
    insta::assert_snapshot!(report(&common::failed(), Format::Json, 100));
}

#[test]
fn json_reads_back_as_the_same_analysis() {
    let mut analysis = common::missing();
    analysis.run.seed = u64::MAX;
    let text = report(&analysis, Format::Json, 100);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema_version"], 1);
    let read: Analysis = serde_json::from_str(&text).unwrap();
    assert_eq!(read.run, analysis.run);
    assert_eq!(read.verdict, analysis.verdict);
    // The reader may be off by one unit in the last place of a float, which no view shows.
    for format in [Format::Text, Format::Csv, Format::Markdown] {
        assert_eq!(report(&read, format, 100), report(&analysis, format, 100));
    }
}

#[test]
fn json_is_valid_with_numbers_that_are_none() {
    let mut analysis = common::demo();
    analysis.basis.efficiency = f64::NAN;
    let text = report(&analysis, Format::Json, 100);
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    for format in [Format::Text, Format::Markdown, Format::Csv, Format::Html] {
        report(&analysis, format, 100);
    }
}

#[test]
fn a_missing_pair_is_never_zero() {
    let csv = report(&common::missing(), Format::Csv, 100);
    let row = csv.lines().find(|l| l.starts_with("r1h01,r1h02,")).unwrap();
    assert!(
        row.starts_with("r1h01,r1h02,rack1,rack1,-,191281374,-,0,-,-,r1h02 never came up,mesh,"),
        "{row}"
    );
}

#[test]
fn text_fits_its_width() {
    for width in [40, 60, 80, 100, 160] {
        for analysis in [
            common::demo(),
            common::failed(),
            common::missing(),
            common::cluster(3, 20, 2.0, None),
            workloads::mixed(),
            workloads::rr_of_two(),
            workloads::streams_of_two(),
        ] {
            let text = report(&analysis, Format::Text, width);
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn colour_adds_nothing_but_escapes() {
    let analysis = common::missing();
    let plain = report(&analysis, Format::Text, 100);
    let colored = render(
        &analysis,
        Format::Text,
        &TextStyle {
            width: 100,
            color: true,
            details: true,
        },
    )
    .unwrap();
    assert_ne!(plain, colored);
    let mut stripped = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn formats_are_parsed_by_their_words() {
    for word in Format::WORDS {
        assert_eq!(Format::parse(word).unwrap().word(), word);
    }
    let error = "xml".parse::<Format>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`xml` is not a report format; write one of text, json, csv, csv-hosts, md, html, junit, k8s-netperf, k8s-netperf-json"
    );
}

proptest! {
    #[test]
    fn other_programs_words_cannot_steer_a_terminal(words in "\\PC{0,10}[\\x00-\\x1f\\x7f\u{9b}]{1,4}\\PC{0,10}") {
        let mut analysis = common::missing();
        analysis.hosts[1].state = HostState::Failed { message: words.clone() };
        analysis.run.inventory.hosts[2].name = words.clone();
                analysis.verdict.findings[0] = common::host_missing(HostId(1), words);
        for format in [Format::Text, Format::Markdown, Format::Csv, Format::Html] {
            let text = report(&analysis, format, 100);
            prop_assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
