//! A run's report: shown, and kept in its directory.

use crate::exit::Failure;
use crate::output::{self, ShowArgs};
use ew_model::Analysis;
use ew_report::{Format, ReportError};
use std::path::{Path, PathBuf};

/// Prints an analysis, or writes it to the file of `--output`.
pub(crate) fn show(analysis: &Analysis, args: &ShowArgs) -> Result<(), Failure> {
    let text = ew_report::render(analysis, args.format().report_format(), &args.style());
    args.put(&text.map_err(unreportable)?)
}

/// After a run, which has cost its load: a verdict that cannot be written to its file is printed.
/// Returns whether it is where it was asked for.
pub(crate) fn show_or_print(analysis: &Analysis, args: &ShowArgs) -> bool {
    let Err(failure) = show(analysis, args) else {
        return true;
    };
    output::say(&format!("error: {}", failure.message()));
    let style = output::text_style(args.color);
    if let Ok(text) = ew_report::render(analysis, Format::Text, &style) {
        output::print(&text);
    }
    false
}

/// What the user asked for, or a defect.
pub(crate) fn unreportable(error: ReportError) -> Failure {
    match error {
        ReportError::NoPods(_) | ReportError::NoComparison => Failure::usage(error),
        _ => Failure::failed(error),
    }
}

/// Writes `report.html` into the run's directory.
pub(crate) fn write_html(analysis: &Analysis, dir: &Path) -> Result<PathBuf, Failure> {
    let style = ew_report::TextStyle::default();
    let page = ew_report::render(analysis, Format::Html, &style).map_err(Failure::failed)?;
    ew_store::write_file(dir, "report.html", page.as_bytes()).map_err(Failure::failed)
}
