//! What the fuzz target runs, and the test that replays its inputs: it panics when a promise is
//! broken and returns otherwise.

use ew_analyze::compare::{CompareOptions, Runs, compare};
use ew_analyze_storage::job;
use ew_model::Run;
use ew_report::{Format, TextStyle};
use std::fmt::Display;
use std::path::Path;

/// A page brings its script and its style with it, and makes itself of a template: a run of a few
/// bytes takes this much.
pub const PAGE_BYTES: usize = 32 << 20;

/// A run directory, however damaged: what can be read of it can be analysed and shown in every
/// form, and the page has no element that the run brought with it.
pub fn run_directory(directory: &Path) {
    let _ = ew_store::load_manifest(directory);
    let Ok(run) = ew_store::load(directory) else {
        return;
    };
    show(&run);
    if let Some(analysis) = job::analyze(&run) {
        let _ = ew_report::storage_text(&analysis, &TextStyle::default());
        let _ = ew_report::storage_csv(&run);
        is_made(ew_report::storage_json(&analysis));
        is_made(ew_report::storage_html(&analysis));
    }
    let runs = [run];
    let both = Runs {
        base: &runs,
        other: &runs,
        history: &runs,
    };
    if let Ok(comparison) = compare(&both, &CompareOptions::default()) {
        for format in [Format::Text, Format::Json, Format::Html] {
            let _ = ew_report::render_comparison(&comparison, format, &TextStyle::default());
        }
    }
}

fn show(run: &Run) {
    let analysis = ew_analyze::analyze(run);
    let _ = ew_report::findings_json(&analysis);
    for word in Format::WORDS {
        let Ok(format) = Format::parse(word) else {
            continue;
        };
        let report = ew_report::render(&analysis, format, &TextStyle::default());
        if !format.is_of_pods() {
            is_made(report);
        }
    }
}

/// Text that ends as promised, and has nothing in it that a terminal would obey.
fn is_made(report: Result<String, impl Display>) {
    let text = report.unwrap_or_else(|error| panic!("{error}"));
    assert!(!text.contains(|c: char| c.is_control() && !"\n\t\r".contains(c)));
}
