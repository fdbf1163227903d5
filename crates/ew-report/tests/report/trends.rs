//! Figures over runs in the terminal and as a page, and the list of stored runs.

use ew_model::comparison::{Change, Metric};
use ew_model::finding::VerdictStatus;
use ew_model::trend::{ChangePoint, Trend, TrendPoint};
use ew_report::{RunLine, RunsPage, TextStyle, runs_page, trends_page, trends_text};

const HOSTILE: &str = "<b>\"&\u{1b}[2J";

/// Twelve runs; from the eighth on a tenth less, one of them not measured.
fn trend() -> Trend {
    let point = |index: usize| TrendPoint {
        run_id: format!("run{index}"),
        started_unix_ns: 1_795_348_800_000_000_000 + index as u64,
        value: match index {
            3 => None,
            _ if index < 8 => Some(9.4e8 + 1e6 * index as f64),
            _ => Some(8.5e8),
        },
    };
    Trend {
        stage: "mesh".into(),
        metric: Metric::Throughput,
        points: (0..12).map(point).collect(),
        changes: vec![ChangePoint {
            at: 8,
            run_id: "run8".into(),
            before: 9.435e8,
            after: 8.5e8,
            p_value: 0.000_25,
            change: Change::Worse,
        }],
    }
}

#[test]
fn a_trend_in_the_terminal() {
    let steady = Trend {
        stage: "rtt".into(),
        metric: Metric::LatencyMedian,
        changes: Vec::new(),
        points: trend().points,
    };
    let text = trends_text(&[trend(), steady], &TextStyle::default());
    let first = "Worse: throughput in `mesh` fell by 9.9";
    assert!(
        text.starts_with(first) && text.contains("at run run8"),
        "{text}"
    );
    // A stroke stands before the first run of the new level.
    assert!(text.contains("\u{2588}|\u{2581}"), "{text}");
    assert!(
        text.contains("rtt") && !text.contains("`rtt`"),
        "no change of it: {text}"
    );
}

#[test]
fn a_page_of_trends_marks_the_change_and_links_runs() {
    let mut hostile = trend();
    hostile.stage = HOSTILE.into();
    hostile.points[0].run_id = HOSTILE.into();
    let page = trends_page(HOSTILE, &[trend(), hostile]).unwrap();
    assert_eq!(
        page.matches("class=\"change worse\" data-run=\"run8\"")
            .count(),
        2
    );
    assert_eq!(
        page.matches("<circle").count(),
        22,
        "a run without a figure has no dot"
    );
    assert!(page.contains("href=\"run/run0\"") && page.contains("href=\"run/%3Cb%3E"));
    assert!(
        !page.contains("<b>\"") && !page.contains('\u{1b}'),
        "{page}"
    );
    assert!(!page.contains("<script"), "trends need none");
}

#[test]
fn a_list_of_runs_leads_to_reports_and_comparisons() {
    let line = |id: &str, status| RunLine {
        id: id.into(),
        started_unix_ns: 1_795_348_800_000_000_000,
        scenario: "mesh".into(),
        fleet: "lab".into(),
        hosts: 8,
        outcome: "complete".into(),
        status,
    };
    let mut page = RunsPage {
        runs: vec![line("a", Some(VerdictStatus::Worse)), line(HOSTILE, None)],
        ..RunsPage::default()
    };
    let list = runs_page(&page).unwrap();
    assert!(
        list.contains("href=\"run/a\"") && list.contains("href=\"./?base=a\""),
        "{list}"
    );
    assert!(list.contains(">FAIL<") && list.contains("2026-"), "{list}");
    assert!(
        !list.contains("<b>\"") && !list.contains('\u{1b}'),
        "{list}"
    );
    page.base = Some("a".into());
    let list = runs_page(&page).unwrap();
    assert!(list.contains("compare?base=a&amp;other=%3Cb%3E"), "{list}");
    assert!(!list.contains("other=a\""), "a run with itself: {list}");
}
