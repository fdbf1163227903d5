//! The page: escaped, whole, self-contained, small.

use crate::common;
use ew_model::analysis::{HostState, PairDetail, PairSample, RackPath, Warning};
use ew_model::finding::details::{Shaper, Why};
use ew_model::finding::{Cause, Details, Subject};
use ew_model::inventory::{HostId, RackId};
use ew_model::record::TcpInfo;
use ew_model::{Analysis, Setting};
use ew_report::{Format, TextStyle, render};
use std::net::IpAddr;
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
fn a_fault_begins_where_findings_do() {
    let criteria = include_str!("../../../ew-evidence/src/criteria.rs");
    assert!(criteria.contains("pub const MIN_EFFECT: f64 = 0.07;"));
    let with = |effect| {
        let mut analysis = common::demo();
        analysis.hosts[0].tx_effect = Some(effect);
        page(&analysis)
    };
    let low = |page: &str| page.matches("class=\"rate low\"").count();
    let near = with(0.94);
    assert_eq!(low(&near), low(&with(1.0)));
    assert_eq!(low(&near) + 1, low(&with(0.92)));
    assert!(near.contains("A fault is below 93% (the upright line)"));
    assert!(near.contains("\"fault_below\":0.93"));
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

/// One of the drawings of the fabric, by what it is laid out for.
fn drawing<'a>(page: &'a str, shape: &str) -> &'a str {
    let start = page
        .find(&format!("<svg class=\"fabric-drawing {shape}"))
        .unwrap();
    &page[start..start + page[start..].find("</svg>").unwrap()]
}

/// Links of a drawing that have all these words.
fn links<'a>(drawing: &'a str, words: &[&str]) -> Vec<&'a str> {
    let links = drawing.split("<a ").skip(1);
    let has = |link: &&str| words.iter().all(|word| link.contains(word));
    links.filter(has).collect()
}

#[test]
fn the_fabric_is_drawn_with_its_faults() {
    let mut analysis = common::demo();
    analysis.racks = vec![common::rack(0, Some(4.0)), common::rack(1, None)];
    let page = page(&analysis);
    for shape in ["wide", "narrow"] {
        let drawing = drawing(&page, shape);
        assert_eq!(drawing.matches("class=\"rack\"").count(), 2);
        let accused = links(drawing, &["class=\"host bad\""]);
        assert_eq!(accused.len(), 1, "{accused:?}");
        assert!(accused[0].contains("r2h03") && accused[0].contains("href=\"#finding-3\""));
        let full = links(drawing, &["rack-link bad", "href=\"#finding-1\""]);
        assert_eq!(full.len(), 2, "oversubscribed in both directions");
        assert!(
            full[0].contains("load 191 Mb&#x2f;s") || full[0].contains("load 191 Mb/s"),
            "{}",
            full[0]
        );
        assert!(full[0].contains("191 Mb/s, 4.0:1"), "{}", full[0]);
        assert!(
            full[0].contains(" at the rate of their class"),
            "{}",
            full[0]
        );
        assert!(full[1].contains("not limiting"), "{}", full[1]);
    }
}

#[test]
fn parallel_paths_are_drawn_and_the_bad_one_is_marked() {
    let mut analysis = common::demo();
    analysis.racks = vec![common::rack(0, Some(4.0)), common::rack(1, None)];
    analysis.racks[0].paths = (1..=8)
        .map(|n| RackPath {
            router: IpAddr::from([198, 19, 1, n]),
            connections: 12,
            is_bad: n == 3,
        })
        .collect();
    let finding = &mut analysis.verdict.findings[1];
    finding.subject = Subject::Rack { rack: RackId(1) };
    finding.cause = Cause::LostPath;
    (finding.measured, finding.expected) = (common::count(3.0), common::count(4.0));
    analysis.verdict.findings[0].subject = Subject::Pair {
        src: HostId(0),
        dst: HostId(5),
    };
    let page = page(&analysis);
    let drawing = drawing(&page, "wide");
    let rack = |name: &str| links(drawing, &[&format!("data-at=\"rack-{name}\"")])[0];
    let wires = |link: &str| -> Vec<bool> {
        let wires = link.split("<path class=\"wire").skip(1);
        wires.map(|wire| wire.starts_with('"')).collect()
    };
    let mut eight = vec![true; 8];
    eight[2] = false;
    assert_eq!(wires(rack("0")), eight);
    assert_eq!(rack("0").matches("class=\"cross\"").count(), 1);
    assert!(rack("0").contains("8 parallel paths, 1 of them bad"));
    assert_eq!(rack("1").matches("wire unused").count(), 1);
    assert!(rack("1").contains("path not in use"));
    let pair = links(drawing, &["class=\"pair bad\"", "data-at=\"pair-0-5\""]);
    assert!(pair[0].contains("r1h01 to r2h02") && pair[0].contains("#finding-1"));
}

#[test]
fn headlines_are_one_line_of_at_most_a_hundred_characters() {
    let mut analysis = common::demo();
    analysis.verdict.findings[0] = common::host_missing(HostId(1), "word ".repeat(60));
    let page = page(&analysis);
    let list = &page[page.find("class=\"headlines\"").unwrap()..];
    let list = &list[..list.find("</ul>").unwrap()];
    let texts: Vec<&str> = list
        .split("</b> ")
        .skip(1)
        .map(|rest| &rest[..rest.find('<').unwrap()])
        .collect();
    assert_eq!(texts.len(), 3);
    assert!(
        texts.iter().all(|text| text.chars().count() <= 100),
        "{texts:?}"
    );
    assert!(texts[0].ends_with("word\u{2026}"), "{}", texts[0]);
    let mut shaped = common::slow_host(HostId(1));
    shaped.why = Some(Why::Shaper(Shaper {
        host: HostId(1),
        interface: "enp193s0f0np0".into(),
        discipline: "tbf".into(),
        bits_per_sec: 50e6,
        peers_bits_per_sec: 100e6,
    }));
    analysis.verdict.findings[0].cause = Cause::LinkSpeed;
    analysis.verdict.findings[0].details = Details::SlowHost(shaped);
    let page = self::page(&analysis);
    assert!(
        page.contains("Cause: link speed<"),
        "the cause is a word where the sentence is long"
    );
    assert!(list.contains("<b>FAIL</b> r2h03: 50% of peers RX"));
}

#[test]
fn backquotes_are_code_and_sentences_are_whole() {
    let mut analysis = common::demo();
    let mut slow = common::slow_host(HostId(6));
    slow.flows.sides[0].stages[0].stage = "<mesh>".into();
    analysis.verdict.findings[2].details = Details::SlowHost(slow);

    let page = page(&analysis);
    assert!(page.contains("Look on the host at <code>ethtool -S</code> (rx_missed"));
    assert!(page.contains("<li>Isolated flows to r2h03: <code>&lt;mesh&gt;</code> median "));
    assert!(
        page.contains("r2h03: 50% of peers RX (95.6 Mb/s vs 191 Mb/s). Cause not determined.<")
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
    assert!(missing.contains("- (not measured)"));
    let clean = page(&common::cluster(3, 3, 1.0, None));
    keep("report-clean.html", &clean);
    assert!(clean.contains("PASS: nothing wrong found") && clean.contains("none found"));
}

#[test]
fn an_interrupted_run_says_how_far_it_came() {
    let mut analysis = common::demo();
    let planned = analysis.stages.len();
    assert!(page(&analysis).contains(&format!(">{planned} stages<")));
    analysis.stages[planned - 1].rounds = 0;
    let came_to = format!(">{} of {planned} stages<", planned - 1);
    assert!(page(&analysis).contains(&came_to), "no {came_to}");
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
    analysis.host_pairs[3].missing = Some(format!("</script>{evil}"));
    analysis.host_pairs[3].bits_per_sec = None;
    let message = evil.into();
    analysis.warnings.push(Warning::Recorded { message });
    analysis.run.command.push(evil.into());
    analysis.run.id = evil.into();
    for finding in &mut analysis.verdict.findings {
        *finding = common::host_missing(HostId(1), evil.into());
    }
    for stage in &mut analysis.stages {
        stage.name = evil.into();
        stage.workload = evil.into();
        stage.settings = vec![Setting::Congestion(evil.into())];
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
fn every_pair_of_a_thousand_hosts_stays_below_fifteen_megabytes() {
    let mut analysis = common::cluster(40, 25, 4.0, Some(HostId(417)));
    analysis.pair_details = (0..MAX_DETAILS).map(detail).collect();
    let page = page(&analysis);
    keep("report-1000.html", &page);
    assert!(page.len() < 15_000_000, "{} bytes", page.len());
}

/// As many as an analysis keeps.
const MAX_DETAILS: u32 = 60_000;

/// A pair's measurement, of which nothing is as the others'.
fn detail(number: u32) -> PairDetail {
    let src = number % 1000;
    let varied = |bits: u32| u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
    let tcp = TcpInfo {
        total_retransmits: varied(6) as u32,
        rtt_us: varied(10) as u32,
        rtt_variation_us: varied(8) as u32,
        min_rtt_us: Some(varied(7) as u32),
        congestion_window_segments: varied(9) as u32,
        delivery_rate_bytes_per_sec: Some(varied(30)),
        busy_us: Some(varied(20)),
        receive_window_limited_us: Some(varied(12)),
        ..TcpInfo::default()
    };
    let sample = PairSample {
        t_ns: Some(varied(37)),
        bits_per_sec: Some(varied(33) as f64),
        retransmits: Some(varied(6)),
        rtt_us: Some(tcp.rtt_us),
        ..PairSample::default()
    };
    PairDetail {
        stage: 0,
        src: HostId(src),
        dst: HostId((src + 1 + number / 1000 * 7) % 1000),
        samples: vec![sample],
        tcp: Some(tcp),
        streams: Some(1),
    }
}

#[test]
fn nothing_is_loaded() {
    let page = page(&common::demo());
    for load in [
        "http://",
        "https://",
        "//cdn",
        "@import",
        "url(\"",
        "url(h",
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
