//! A run's report: shown, and kept in its directory.

use crate::exit::Failure;
use crate::output::ShowArgs;
use ew_model::Analysis;
use ew_report::ReportError;
use std::path::{Path, PathBuf};

/// Prints an analysis, or writes it to the file of `--output`.
pub(crate) fn show(analysis: &Analysis, args: &ShowArgs) -> Result<(), Failure> {
    let text = ew_report::render(analysis, args.format().report_format(), &args.style());
    args.put(&text.map_err(unreportable)?)
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
    let page =
        ew_report::render(analysis, ew_report::Format::Html, &style).map_err(Failure::failed)?;
    ew_store::write_file(dir, "report.html", page.as_bytes()).map_err(Failure::failed)
}
