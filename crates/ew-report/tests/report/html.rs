//! The page: escaped, whole, self-contained, small.

use crate::common;
use ew_model::Analysis;
use ew_model::analysis::HostState;
use ew_model::inventory::HostId;
use ew_report::{Format, TextStyle, render};
use std::path::Path;

fn page(analysis: &Analysis) -> String {
    render(analysis, Format::Html, &TextStyle::default()).unwrap()
}

/// Kept next to the test binaries, for eyes.
fn keep(name: &str, page: &str) {
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), page).unwrap();
}

#[test]
fn every_part_is_there() {
    let page = page(&common::demo());
    keep("report-demo.html", &page);
    for part in [
        "FAIL: worse than expected",
        "id=\"findings\"",
        "id=\"racks\"",
        "id=\"pairs\"",
        "id=\"hosts\"",
        "id=\"stages\"",
        "id=\"run\"",
        "4.00:1 (3.96–4.04)",
        "95.6 Mb&#x2f;s",
        "r2h03",
        "class=\"chart\"",
        "20261121T210000Z-qualify-7f3a",
        "prefers-color-scheme: dark",
        "aria-live=\"polite\"",
        "<main id=\"main\">",
    ] {
        assert!(page.contains(part), "no {part}");
    }
}

#[test]
fn findings_and_rows_lead_to_each_other() {
    let page = page(&common::demo());
    for id in ["finding-1", "finding-3", "rack-0-1", "rack-1-0", "host-6"] {
        assert!(page.contains(&format!("id=\"{id}\"")), "no {id}");
        assert!(
            page.contains(&format!("href=\"#{id}\"")),
            "nothing leads to {id}"
        );
    }
    assert_eq!(page.matches("<details").count(), 3);
    assert_eq!(page.matches("\" open>").count(), 3);
}

#[test]
fn the_fabric_is_drawn_with_its_faults() {
    let page = page(&common::demo());
    let start = page.find("class=\"fabric\"").unwrap();
    let drawing = &page[start..start + page[start..].find("fabric-keys").unwrap()];
    assert_eq!(drawing.matches("fabric-rack\"").count(), 2);
    let accused: Vec<&str> = drawing
        .split("<li>")
        .filter(|cell| cell.contains("class=\"host bad\""))
        .collect();
    assert_eq!(accused.len(), 1, "{accused:?}");
    assert!(accused[0].contains("r2h03") && accused[0].contains("href=\"#finding-"));
    assert!(drawing.contains("oversubscribed</a>"), "{drawing}");
}

#[test]
fn backquotes_are_code_and_sentences_are_whole() {
    let mut analysis = common::demo();
    analysis.verdict.findings[2].hint = "look at `ethtool -S <eth0>`".into();
    analysis.verdict.findings[2].evidence[0].text = "isolated flows in `mesh`".into();
    let page = page(&analysis);
    assert!(page.contains("Look at <code>ethtool -S &lt;eth0&gt;</code>.</p>"));
    assert!(page.contains("<li>Isolated flows in <code>mesh</code> "));
    assert!(
        page.contains("r2h03 receives at 95.7 Mb/s from everybody, half of what its peers do.<")
    );
}

#[test]
fn empty_and_partial_runs_render() {
    let failed = page(&common::failed());
    keep("report-failed.html", &failed);
    assert!(failed.contains("NO DATA"));
    assert!(!failed.contains("id=\"pairs\"") && !failed.contains("id=\"racks\""));
    let missing = page(&common::missing());
    keep("report-missing.html", &missing);
    assert!(missing.contains("Permission denied (publickey)."));
    assert!(missing.contains("fewer than two hosts left"));
    let clean = page(&common::cluster(3, 3, 1.0, None));
    keep("report-clean.html", &clean);
    assert!(clean.contains("PASS: nothing wrong found") && clean.contains("none found"));
}

#[test]
fn hostile_names_stay_text() {
    let evil = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
    let mut analysis = common::demo();
    for host in &mut analysis.run.inventory.hosts {
        host.name = evil.into();
    }
    for rack in &mut analysis.run.inventory.racks {
        rack.name = evil.into();
    }
    analysis.hosts[0].state = HostState::Failed {
        message: evil.into(),
    };
    analysis.cells[3].missing = Some(format!("</script>{evil}"));
    analysis.cells[3].bits_per_sec = None;
    analysis.warnings.push(evil.into());
    analysis.verdict.sentence = evil.into();
    analysis.run.command.push(evil.into());
    analysis.run.id = evil.into();
    for finding in &mut analysis.verdict.findings {
        finding.sentence = evil.into();
        finding.hint = evil.into();
        finding.evidence[0].text = evil.into();
        finding.evidence[0].source = evil.into();
    }
    for stage in &mut analysis.stages {
        stage.name = evil.into();
        stage.workload = evil.into();
        stage.settings = vec![evil.into()];
    }
    let page = page(&analysis);
    keep("report-hostile.html", &page);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    let scripts = "the matrix' data, the panels' data, and code";
    assert_eq!(page.matches("<script").count(), 3, "{scripts}");
    assert_eq!(page.matches("</script>").count(), 3, "{scripts}");
    balanced(&page);
}

#[test]
fn a_hundred_hosts_stay_below_two_megabytes() {
    let page = page(&common::cluster(10, 10, 4.0, Some(HostId(42))));
    keep("report-100.html", &page);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn a_thousand_hosts_render() {
    let page = page(&common::cluster(25, 40, 4.0, Some(HostId(417))));
    keep("report-1000.html", &page);
    assert!(page.len() < 20_000_000, "{} bytes", page.len());
}

#[test]
fn nothing_is_loaded() {
    let page = page(&common::demo());
    for load in [
        "http://",
        "https://",
        "//cdn",
        "@import",
        "url(",
        " src=",
        "<link",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!page.contains(load), "{load}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn elements_are_balanced_and_ids_unique() {
    for analysis in [
        common::demo(),
        common::failed(),
        common::missing(),
        crate::workloads::mixed(),
    ] {
        let page = page(&analysis);
        balanced(&page);
        let mut ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "an id is used twice");
    }
}

/// Every element that opens closes, in order; style and script bodies are skipped.
fn balanced(page: &str) {
    const VOID: [&str; 4] = ["meta", "input", "br", "!doctype"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = start + tag_end(&rest[start..]);
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(|c| !c.is_whitespace() && *c != '/')
            .collect();
        if tag.starts_with('/') {
            assert_eq!(
                open.pop().as_deref(),
                Some(name.as_str()),
                "near {}",
                &rest[..rest.len().min(80)]
            );
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            if name == "script" || name == "style" {
                let close = rest.find(&format!("</{name}>")).unwrap();
                rest = &rest[close + name.len() + 3..];
            } else {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

/// The `>` that ends a tag, not one inside a quoted value.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    for (i, c) in tag.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '>' if !quoted => return i,
            _ => {}
        }
    }
    panic!("a tag does not end: {}", &tag[..tag.len().min(80)]);
}
